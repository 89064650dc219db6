"""Acts on the two ends of `books`, and the invariants of flow control as questions about them."""

from functools import partial

from tests.rules.books import LINKS, WRAP, World
from workbench.amqp10.errors import LocalProtocolError


class Play(World):
    """A world in which one may act, and that can be asked whether the invariants hold."""

    # -- what can be done now -------------------------------------------------------------------

    def may_send(self, link):
        """Whether a delivery may begin, by the book."""
        snd = self.snd[link]
        return snd.credit > 0 and self.ends[LINKS[link]].room > 0 and snd.under_way is None

    @property
    def sendable(self):
        """Links on which a delivery may begin."""
        return [link for link in range(len(LINKS)) if self.may_send(link)]

    @property
    def settleable(self):
        """Links with deliveries that their receiver has not settled."""
        return [link for link, book in enumerate(self.rcv) if book.unsettled]

    @property
    def under_way(self):
        """Links with a delivery that has stopped in its middle."""
        return [link for link, book in enumerate(self.snd) if book.under_way is not None]

    # -- acts -----------------------------------------------------------------------------------

    def act(self, call, *, legal):
        """Does what is legal; what is not must be refused and change nothing."""
        before = None if legal else [side.connection.overview() for side in self.sides]
        try:
            call()
        except LocalProtocolError as error:
            if legal:
                self.blame(0, f"refused: {error}")
        else:
            if not legal:
                self.blame(0, "what is not legal was done")
        if before is not None:
            after = [side.connection.overview() for side in self.sides]
            self.same(0, "what a refused act has changed", after, before)
        return self.read()

    def never_blocked(self, call, kind, link=None):
        """Flows and dispositions leave at once, whatever credit and windows are (invariant 6)."""
        sent = self.act(call, legal=True)
        found = [(what, which) for _, what, which in sent]
        if found != [(kind, link)]:
            self.blame(6, f"a {kind} was due, sent was {found}")

    def grant(self, link, credit, drain=False, echo=False):
        """The receiver's word: an absolute credit."""
        self.rcv[link].credit, self.rcv[link].drain = credit, drain
        call = partial(self.receivers[link].grant, credit, drain=drain, echo=echo)
        self.never_blocked(call, "flow", link)

    def say(self, link, by_sender, echo):
        """One end of a link tells its state."""
        one = self.senders[link] if by_sender else self.receivers[link]
        self.never_blocked(partial(one.flow, echo=echo), "flow", link)

    def say_session(self, end, echo):
        """One end of the session tells its state."""
        self.never_blocked(partial(self.sessions[end].flow, echo=echo), "flow")

    def window(self, end, frames):
        """One end opens or closes its incoming-window."""
        self.ends[end].window = frames
        self.sessions[end].set_incoming_window(frames)
        self.say_session(end, False)

    def send(self, link, size, settled):
        """The sender begins a delivery, where credit, window and the link allow."""
        legal = self.may_send(link)
        call = partial(self.senders[link].send, bytes(size), settled=settled)
        sent = self.act(call, legal=legal)
        if legal and sent[:1] != [(LINKS[link], "transfer", link)]:
            self.blame(1, f"with credit and window open, sent was {sent}")

    def available(self, link, count):
        """The sender's owner says how many messages there are."""
        self.snd[link].available = self.senders[link].available = count

    def give_back(self, link):
        """The sender answers a drain; without one it may not."""
        legal = self.snd[link].drain
        self.giving_back = link if legal else None
        sent = self.act(self.senders[link].drained, legal=legal)
        if legal:
            self.same(14, "what a drain sends", sent, [(LINKS[link], "flow", link)])
            self.same(14, "credit after a drain", self.senders[link].credit, 0)
        self.giving_back = None

    def settle(self, link, which, settled):
        """The receiver states an outcome for some deliveries, unless others lie between."""
        known = self.rcv[link].unsettled
        if not known:
            return
        first = known[which % len(known)]
        last = known[-1] if settled else first
        others = [
            number
            for other, book in enumerate(self.rcv)
            if other != link and LINKS[other] == LINKS[link]
            for number in book.unsettled
        ]
        ids = [self._delivery(LINKS[link], one) for one in (first, last)]
        call = partial(self.receivers[link].settle, *ids, settled=settled)
        if any(first <= number <= last for number in others):
            self.act(call, legal=False)
        else:
            self.never_blocked(call, "disposition")

    def abort(self, link):
        """The sender takes back a delivery in its middle."""
        self.act(self.senders[link].abort, legal=self.snd[link].under_way is not None)

    def empty(self):
        """Everything on the wire arrives, and what that causes too."""
        while any(self.pipes):
            for sender in range(2):
                self.arrive(sender)

    # -- invariants -----------------------------------------------------------------------------

    def check(self):
        """Compares both endpoints with the books; what differs is kept as a fault."""
        for link in range(len(LINKS)):
            self._check_limit(link)
            self._check_in_flight(link)
        for end in range(2):
            self._check_session(end)
        self._check_last_flow()

    def _check_limit(self, link):
        # 1: count and credit move together; the limit is the last one heard, or was passed before
        # it was heard.
        sender, snd = self.senders[link], self.snd[link]
        self.same(1, "sender's link-credit", sender.credit, snd.credit)
        self.same(1, "sender's delivery-count", sender.delivery_count, self._count(link, snd.count))
        limit = (sender.delivery_count + sender.credit) % WRAP
        self.same(1, "limit", limit, self._count(link, max(snd.limit, snd.count)))
        self.same(0, "sender's drain", sender.drain, snd.drain)
        self.same(0, "sender's available", sender.available, snd.available)

    def _check_in_flight(self, link):
        # 2: the counts differ by what is on the wire, and agree when it is empty.
        sender, receiver, rcv = self.senders[link], self.receivers[link], self.rcv[link]
        flying = sum(note.moves for note in self.pipes[LINKS[link]] if note.link == link)
        apart = (sender.delivery_count - receiver.delivery_count) % WRAP
        self.same(2, "difference of the counts", apart, flying)
        self.same(2, "receiver's delivery-count", receiver.delivery_count,
                  self._count(link, rcv.count))  # fmt: skip
        self.same(2, "receiver's link-credit", receiver.credit, rcv.credit)
        self.same(0, "receiver's available", receiver.available, rcv.available)
        if not any(self.pipes):
            self.same(2, "credits at rest", sender.credit, receiver.credit)
            self.same(0, "unsettled at rest", list(sender.unsettled), list(receiver.unsettled))
        numbers = [self._delivery(LINKS[link], one) for one in rcv.unsettled]
        self.same(0, "receiver's unsettled", list(receiver.unsettled), numbers)
        numbers = [self._delivery(LINKS[link], one) for one in self.snd[link].unsettled]
        self.same(0, "sender's unsettled", list(sender.unsettled), numbers)

    def _check_session(self, end):
        # 5: what was sent and not yet acknowledged by a flow fits into the window of that flow;
        # the part that did not fit was sent before the window shrank.
        counters, book = self.sessions[end].counters, self.ends[end]
        self.same(5, "remote-incoming-window", counters.remote_incoming_window, book.room)
        self.same(5, "next-outgoing-id", counters.next_outgoing_id, self._id(end, book.sent))
        self.same(5, "next-incoming-id", counters.next_incoming_id, self._id(1 - end, book.got))
        self.same(5, "incoming-window", counters.incoming_window, book.window)

    def _check_last_flow(self):
        # 3: the last flow, said again, is no news. A transfer that came after it has its own id.
        for side, frame in zip(self.sides, self.last_flow, strict=True):
            if frame is None:
                continue
            before = self._ledgers(side)
            side.connection.apply(frame)
            self.same(3, "after the last flow once more, all", self._ledgers(side), before)

    def _ledgers(self, side):
        (session,) = side.connection.sessions
        return [session.counters.ledger(), *(link.ledger() for link in session.links)]

    def picture(self):
        """All that invariant 4 says does not depend on where counting began."""
        told, self.story = self.story, []
        counts = [
            ((one.delivery_count - self._count(link, 0)) % WRAP, one.credit)
            for both in (self.senders, self.receivers)
            for link, one in enumerate(both)
        ]
        windows = []
        for end, session in enumerate(self.sessions):
            ledger = session.counters.ledger()
            for name, whose in (("next_outgoing_id", end), ("next_incoming_id", 1 - end)):
                ledger[name] = (ledger[name] - self._id(whose, 0)) % WRAP
            windows.append(ledger)
        return counts, windows, told
