"""Two real endpoints, a pipe in each direction, and a second set of books in plain numbers.

Three links share one session: over two of them the server sends, over one the client. Nothing
arrives before somebody lets it. Beside the endpoints a book is kept for each end, by the words of
the specification alone: its counts begin at 0, are never cut to 32 bits, and come from no function
of the endpoints. What an endpoint does otherwise than its book is kept as a fault, under the number
of the invariant (facts about flow control, 1 to 6 and 14) that it breaks; 0 is everything else.
"""

from collections import deque
from dataclasses import dataclass, field

from tests.amqp10.pair import Pair
from workbench.amqp10.events import ProtocolViolation
from workbench.amqp10.frame import Frame
from workbench.amqp10.performatives import Disposition, Flow, Role, Transfer
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

WRAP = 2**32
CLIENT, SERVER = 0, 1
LINKS = (SERVER, SERVER, CLIENT)  # who sends over each
# Added to the start, so that the counts wrap at different moments.
SHIFT_OF_COUNT = (0, 5, 2)
SHIFT_OF_ID = (3, 0)
SHIFT_OF_DELIVERY = (1, 4)
FRAME_SIZE = 512


@dataclass(slots=True)
class SenderBook:
    """A link at its sender. `limit`: delivery-count + link-credit of the last flow heard."""

    count: int = 0
    limit: int = 0
    available: int = 0
    drain: bool = False
    under_way: int | None = None
    unsettled: list[int] = field(default_factory=list)

    @property
    def credit(self):
        return max(0, self.limit - self.count)


@dataclass(slots=True)
class ReceiverBook:
    """A link at its receiver."""

    count: int = 0
    credit: int = 0
    available: int = 0
    drain: bool = False
    unsettled: list[int] = field(default_factory=list)


@dataclass(slots=True)
class EndBook:
    """A session at one end. `heard`: frames that had arrived at the peer, by its last flow."""

    window: int
    peer_window: int
    allowed: int
    sent: int = 0
    got: int = 0
    heard: int = 0
    deliveries: int = 0

    @property
    def room(self):
        return max(0, self.heard + self.peer_window - self.sent)


@dataclass(slots=True, kw_only=True)
class Note:
    """A frame on its way, as the books have it."""

    kind: str
    link: int | None = None
    moves: int = 0  # by how much delivery-count rises at the receiver when this arrives
    number: int = 0
    first: bool = False
    settled: bool = False
    aborted: bool = False
    got: int = 0
    window: int = 0
    sent: int = 0
    count: int = 0
    credit: int = 0
    available: int = 0
    drain: bool = False
    echo: bool = False
    numbers: tuple[int, ...] = ()
    role: Role = Role.SENDER


class World:
    """One play, from one start.

    Args:
        start: what all counts and ids begin with, but for a few steps that differ.
        windows: incoming-window of the client's and of the server's session at first.
    """

    def __init__(self, start, windows):
        self.start = start
        self.faults = {}
        settings = ConnectionSettings(max_frame_size=FRAME_SIZE)
        sessions = [
            SessionSettings(
                next_outgoing_id=(start + SHIFT_OF_ID[end]) % WRAP,
                delivery_id=(start + SHIFT_OF_DELIVERY[end]) % WRAP,
                incoming_window=windows[end],
            )
            for end in (CLIENT, SERVER)
        ]
        pair = Pair(
            client=settings, server=settings,
            client_session=sessions[CLIENT], server_session=sessions[SERVER],
        )  # fmt: skip
        self.pair, self.sides = pair, (pair.client, pair.server)
        own = pair.client.connection.begin()
        pair.pump()
        (peer,) = pair.server.connection.sessions
        self.sessions = (own, peer)
        pair.answers = False
        self.senders, self.receivers = [], []
        for link, sender in enumerate(LINKS):
            begun = {"initial_delivery_count": self._count(link, 0)}
            if sender == SERVER:
                near = own.attach_receiver(f"l{link}", "q")
            else:
                near = own.attach_sender(f"l{link}", None, "q", **begun)
            pair.pump()
            far = peer.links[-1]
            far.accept(**(begun if sender == SERVER else {}))
            pair.pump()
            self.senders.append(far if sender == SERVER else near)
            self.receivers.append(near if sender == SERVER else far)
        pair.answers = True
        self.snd = [SenderBook() for _ in LINKS]
        self.rcv = [ReceiverBook() for _ in LINKS]
        self.ends = [
            EndBook(window=windows[end], peer_window=windows[1 - end], allowed=windows[end])
            for end in (CLIENT, SERVER)
        ]
        self.pipes = (deque(), deque())
        self.giving_back = None
        self.last_flow = [None, None]  # the frame, while no transfer has come after it
        self.story = []
        self._read = [len(side.sent) for side in self.sides]
        self._events = [len(side.events) for side in self.sides]

    # -- numbers on the wire --------------------------------------------------------------------

    def _count(self, link, number):
        return (self.start + SHIFT_OF_COUNT[link] + number) % WRAP

    def _id(self, end, number):
        return (self.start + SHIFT_OF_ID[end] + number) % WRAP

    def _delivery(self, end, number):
        return (self.start + SHIFT_OF_DELIVERY[end] + number) % WRAP

    def _link_of(self, end, handle):
        for link, sender in enumerate(LINKS):
            one = self.senders[link] if sender == end else self.receivers[link]
            if one.handle == handle:
                return link
        raise AssertionError(f"no link has handle {handle}")

    def blame(self, invariant, text):
        """Keeps a fault."""
        self.faults.setdefault(invariant, []).append(f"start {self.start}: {text}")

    def same(self, invariant, what, endpoint, book):
        """Keeps a fault if an endpoint's number is not the book's."""
        if endpoint != book:
            self.blame(invariant, f"{what} is {endpoint}, by the book {book}")

    # -- frames that leave ----------------------------------------------------------------------

    def read(self):
        """Writes what the endpoints have sent since into the books; gives what it was."""
        told = []
        for end, side in enumerate(self.sides):
            for item in side.sent[self._read[end] :]:
                assert isinstance(item, Frame)
                frame = item.performative
                make = {Transfer: self._transfer, Flow: self._flow, Disposition: self._disposition}
                if type(frame) not in make:
                    self.blame(0, f"a {frame.NAME} was sent: {frame}")
                    self.pipes[end].append(Note(kind=frame.NAME))
                    continue
                note = make[type(frame)](end, frame)
                self.pipes[end].append(note)
                told.append((end, note.kind, note.link))
                self.story.append((end, note))
            self._read[end] = len(side.sent)
            for event in side.events[self._events[end] :]:
                if isinstance(event, ProtocolViolation):
                    self.blame(0, event.description)
            self._events[end] = len(side.events)
        for link, sender in enumerate(LINKS):
            if self.snd[link].under_way is not None and self.ends[sender].room:
                self.blame(5, f"link {link} waits in mid-delivery with the window open")
        return told

    def _transfer(self, end, frame):
        link, book = self._link_of(end, frame.handle), self.ends[end]
        snd = self.snd[link]
        if book.room == 0:
            sent, most = book.sent, book.heard + book.peer_window
            self.blame(5, f"transfer {sent + 1} was sent where {most} are allowed")
        book.sent += 1
        first = snd.under_way is None
        if first:
            if snd.credit == 0:
                self.blame(1, f"delivery {snd.count + 1} was begun, the limit is {snd.limit}")
            self.same(0, "delivery-id", frame.delivery_id, self._delivery(end, book.deliveries))
            snd.under_way = book.deliveries
            book.deliveries += 1
            snd.count += 1
            snd.available = max(0, snd.available - 1)
            if not frame.settled:
                snd.unsettled.append(snd.under_way)
        note = Note(
            kind="transfer", link=link, moves=int(first), number=snd.under_way, first=first,
            settled=bool(frame.settled), aborted=bool(frame.aborted),
        )  # fmt: skip
        if frame.aborted and snd.under_way in snd.unsettled:
            snd.unsettled.remove(snd.under_way)
        if not frame.more:
            snd.under_way = None
        return note

    def _flow(self, end, frame):
        book = self.ends[end]
        self.same(5, "next-incoming-id", frame.next_incoming_id, self._id(1 - end, book.got))
        self.same(5, "incoming-window", frame.incoming_window, book.window)
        self.same(5, "next-outgoing-id", frame.next_outgoing_id, self._id(end, book.sent))
        book.allowed = max(book.allowed, book.got + book.window)
        note = Note(
            kind="flow", got=book.got, window=book.window, sent=book.sent, echo=bool(frame.echo)
        )
        if frame.handle is None:
            return note
        note.link = link = self._link_of(end, frame.handle)
        if LINKS[link] != end:
            rcv = self.rcv[link]
            note.count, note.credit, note.drain = rcv.count, rcv.credit, rcv.drain
            self._same_flow(2, frame, note)
            return note
        snd = self.snd[link]
        giving_back = self.giving_back == link
        if giving_back:
            # "sends everything available up to the limit, then advances by the rest" [2.6.7]
            self.giving_back = None
            note.moves = snd.credit
            snd.count += snd.credit
        note.count, note.credit, note.drain = snd.count, snd.credit, snd.drain
        note.available = snd.available
        self._same_flow(14 if giving_back else 1, frame, note)
        self.same(0, "available", frame.available, snd.available)
        if giving_back:
            self.same(14, "link-credit of a drain's answer", frame.link_credit, 0)
        return note

    def _same_flow(self, invariant, frame, note):
        self.same(invariant, "delivery-count told", frame.delivery_count,
                  self._count(note.link, note.count))  # fmt: skip
        self.same(invariant, "link-credit told", frame.link_credit, note.credit)
        self.same(invariant, "drain told", bool(frame.drain), note.drain)

    def _disposition(self, end, frame):
        whose = 1 - end if frame.role is Role.RECEIVER else end
        last = frame.first if frame.last is None else frame.last
        first = (frame.first - self._delivery(whose, 0)) % WRAP
        numbers = tuple(range(first, first + (last - frame.first) % WRAP + 1))
        note = Note(
            kind="disposition", role=frame.role, numbers=numbers, settled=bool(frame.settled)
        )
        if note.settled:
            self._forget(whose, numbers, at_sender=frame.role is Role.SENDER)
        return note

    def _forget(self, sender, numbers, *, at_sender):
        for link, by in enumerate(LINKS):
            if by == sender:
                kept = (self.snd if at_sender else self.rcv)[link]
                kept.unsettled = [one for one in kept.unsettled if one not in numbers]

    # -- frames that arrive ---------------------------------------------------------------------

    def arrive(self, sender, count=1):
        """The oldest frames that an end has sent arrive, and are answered."""
        end = 1 - sender
        for _ in range(min(count, len(self.pipes[sender]))):
            note = self.pipes[sender].popleft()
            frame = self.sides[sender].flying[0]
            owed = self._taken(end, note)
            self.pair.deliver(self.sides[sender])
            if note.kind == "flow":
                self.last_flow[end] = frame
            elif note.kind == "transfer":
                self.last_flow[end] = None
            answers = [(kind, link) for _, kind, link in self.read() if kind != "transfer"]
            if answers != owed:
                self.blame(6, f"{note} was answered with {answers}, owed was {owed}")
            self.giving_back = None

    def _taken(self, end, note):
        """Works a frame into the receiving end's book; gives the answers that are due."""
        book = self.ends[end]
        if note.kind == "disposition":
            return self._disposition_taken(end, note)
        if note.kind == "transfer":
            book.got += 1
            book.window = max(0, book.window - 1)
            if book.got > book.allowed:
                self.blame(5, f"transfer {book.got} came where {book.allowed} were allowed")
            rcv = self.rcv[note.link]
            if note.first:
                rcv.count += 1
                rcv.credit = max(0, rcv.credit - 1)
                rcv.available = max(0, rcv.available - 1)
                if not note.settled:
                    rcv.unsettled.append(note.number)
            if note.aborted and note.number in rcv.unsettled:
                rcv.unsettled.remove(note.number)
            return []
        if note.kind != "flow":
            return []
        book.heard, book.peer_window = note.got, note.window
        self.same(0, "next-outgoing-id heard", note.sent, book.got)
        if note.link is None:
            return [("flow", None)] if note.echo else []
        if LINKS[note.link] == end:
            snd = self.snd[note.link]
            snd.limit = note.count + note.credit
            snd.drain = note.drain
            # An endpoint by itself answers a drain when its owner has said that nothing is there.
            if snd.drain and snd.credit and not snd.available:
                self.giving_back = note.link
                return [("flow", note.link)]
        else:
            rcv = self.rcv[note.link]
            if note.count < rcv.count:
                self.blame(2, f"the sender counts {note.count}, the receiver {rcv.count}")
            rcv.credit = max(0, rcv.credit - (note.count - rcv.count))
            rcv.count, rcv.available = note.count, note.available
        return [("flow", note.link)] if note.echo else []

    def _disposition_taken(self, end, note):
        at_sender = note.role is Role.RECEIVER
        whose = end if at_sender else 1 - end
        if note.settled:
            self._forget(whose, note.numbers, at_sender=at_sender)
            return []
        if not at_sender:
            return []
        # An outcome that the receiver has not settled is settled by the sender, if it knows it.
        known = [
            number
            for link, book in enumerate(self.snd)
            if LINKS[link] == end
            for number in book.unsettled
        ]
        return [("disposition", None)] if any(one in known for one in note.numbers) else []
