"""Invariants of link and session flow control under any order of acts and arrivals.

Either end sends, with 512 octets to a frame. Each step is an act of an end or the arrival of the
next frame of one direction; after each step the invariants hold, and observers beside the ends have
the counters that the ends keep.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10.pair import LinkPair, Side
from workbench import serial
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import FlowReceived
from workbench.amqp10.frame import Frame
from workbench.amqp10.observer import ConnectionObserver
from workbench.amqp10.performatives import Flow, Transfer
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

STARTS = [0, 10, 2147483640, 4294967290]

# One to four frames, and none so near to a whole number of frames that it matters how many octets
# a delivery-id takes.
SIZES = st.sampled_from([0, 100, 400, 700, 1200, 1600])

STEPS = st.one_of(
    st.tuples(st.just("arrive_at_receiver"), st.integers(1, 4)),
    st.tuples(st.just("arrive_at_sender"), st.integers(1, 4)),
    st.tuples(st.just("send"), SIZES),
    st.tuples(st.just("send_settled"), SIZES),
    st.tuples(st.just("grant"), st.integers(0, 12)),
    st.tuples(st.just("drain"), st.integers(0, 12)),
    st.tuples(st.just("stop"), st.just(0)),
    st.tuples(st.just("echo"), st.integers(0, 2)),
    st.tuples(st.just("give_back"), st.just(0)),
    st.tuples(st.just("available"), st.integers(0, 5)),
    st.tuples(st.just("settle"), st.integers(0, 9)),
    st.tuples(st.just("abort"), st.just(0)),
    st.tuples(st.just("window"), st.integers(0, 6)),
    st.tuples(st.just("pump"), st.just(0)),
)


class ShadowedSide(Side):
    """An end of our own with an observer beside it that sees what it sends and hears."""

    def __init__(self, name, is_client, *rest):
        self.shadow = ConnectionObserver(end="client" if is_client else "broker")
        self.is_client = is_client
        self.compared = 0
        super().__init__(name, is_client, *rest)

    def _emit(self, item):
        super()._emit(item)
        self.compare(item, outgoing=True)

    def compare(self, item, *, outgoing):
        mine = self.connection.scope(item, outgoing)
        seen = self.shadow.see(item, self.is_client == outgoing)
        assert seen.unknown == ()
        names = ("session", "link", "link_sender_is_local", "attach_no")
        if mine.link is not None or seen.link is None:
            assert [getattr(seen, n) for n in names] == [getattr(mine, n) for n in names]
        for own, shadow in (
            (mine.link_ledger, seen.link_ledger),
            (mine.session_ledger, seen.session_ledger),
        ):
            for name, value in (own or {}).items():
                # What an end has available, and whether it lowers its own outgoing-window, are its
                # own business: the wire tells neither.
                if shadow is not None and name not in ("available", "outgoing_window"):
                    assert shadow.get(name, value) == value, (name, type(item.performative))
                    self.compared += name in shadow


class ShadowedPair(LinkPair):
    side = ShadowedSide

    def deliver(self, side, count=1):
        peer = self.peer_of(side)
        for _ in range(count):
            item = side.flying.popleft()
            events = peer.connection.apply(item)
            peer.compare(item, outgoing=False)
            peer.events.extend(events)
            if self.answers:
                for event in events:
                    peer.connection.answer(event)


class Play:
    """One pair, the steps done to it, and what the invariants compare with."""

    def __init__(self, start, window, server_sends):
        ids = {"next_outgoing_id": start}
        ends = [
            SessionSettings(incoming_window=window, **ids),
            SessionSettings(delivery_id=start, **ids),
        ]
        receiving, sending = ("client", "server") if server_sends else ("server", "client")
        self.pair = ShadowedPair(
            server_sends=server_sends,
            sender_terms={"initial_delivery_count": start},
            **{
                receiving: ConnectionSettings(max_frame_size=512),
                f"{receiving}_session": ends[0],
                f"{sending}_session": ends[1],
            },
        )
        self.start = start
        self.limit = start  # delivery-limit of the last flow that reached the sender
        self.cut = False  # that flow was a cut below what had been sent
        self.heard = 0

    def do(self, name, number):
        before = {side: side.connection.overview() for side in (self.pair.client, self.pair.server)}
        try:
            getattr(self, name)(number)
        except LocalProtocolError:
            for side, picture in before.items():
                assert side.connection.overview() == picture, "a refused call changed something"
        self.check()

    def arrive_at_receiver(self, count):
        self.pair.deliver(self.pair.sending, min(count, len(self.pair.sending.flying)))

    def arrive_at_sender(self, count):
        for _ in range(min(count, len(self.pair.receiving.flying))):
            self.pair.deliver(self.pair.receiving)
            self._hear()

    def _hear(self):
        flows = [one for one in self.pair.sending.heard(FlowReceived) if one.link is not None]
        for event in flows[self.heard :]:
            flow = event.frame
            at = self.start if flow.delivery_count is None else flow.delivery_count
            self.limit = serial.add(at, flow.link_credit)
        self.heard = len(flows)

    def send(self, size):
        self.pair.sender.send(bytes(size))

    def send_settled(self, size):
        self.pair.sender.send(bytes(size), settled=True)
        if self.pair.sender.can_send:
            self.pair.sender.send(bytes(size), settled=True)

    def grant(self, credit):
        self.pair.receiver.grant(credit)

    def drain(self, credit):
        self.pair.receiver.grant(credit, drain=True)

    def stop(self, _):
        self.pair.receiver.grant(0, echo=True)

    def echo(self, which):
        # Never blocked by window or credit, whoever asks (invariant 6).
        pair = self.pair
        link_or_session = (pair.receiver, pair.receiver_session, pair.sender)[which]
        sent = len(pair.client.sent) + len(pair.server.sent)
        link_or_session.flow(echo=True)
        assert len(pair.client.sent) + len(pair.server.sent) == sent + 1

    def give_back(self, _):
        sender = self.pair.sender
        limit = serial.add(sender.delivery_count, sender.credit)
        sender.drained()
        assert (sender.credit, sender.delivery_count) == (0, limit)  # invariant 14
        flow = self.pair.sending.frames(Flow)[-1]
        assert (flow.link_credit, flow.delivery_count, flow.drain) == (0, limit, True)

    def available(self, count):
        self.pair.sender.available = count

    def settle(self, which):
        unsettled = list(self.pair.receiver.unsettled)
        if unsettled:
            first = unsettled[which % len(unsettled)]
            self.pair.receiver.settle(first, unsettled[-1])

    def abort(self, _):
        self.pair.sender.abort()

    def window(self, frames):
        self.pair.receiver_session.set_incoming_window(frames)
        self.pair.receiver_session.flow()

    def pump(self, _):
        while self.pair.client.flying or self.pair.server.flying:
            self.arrive_at_sender(1)
            self.arrive_at_receiver(1)

    # -- invariants -----------------------------------------------------------------------------

    def check(self):
        pair = self.pair
        sender, receiver = pair.sender, pair.receiver
        assert not pair.client.violations
        assert not pair.server.violations
        # 1: the sender's limit is the last one heard, unless a cut came too late.
        beyond = serial.diff(serial.add(sender.delivery_count, sender.credit), self.limit)
        assert beyond == 0 or (beyond > 0 and sender.credit == 0)
        # 2: what the sender has counted and the receiver has not is in flight.
        assert serial.diff(sender.delivery_count, receiver.delivery_count) >= 0
        assert sender.credit >= 0
        assert receiver.credit >= 0
        # 5: no more frames than some word of the receiver has allowed; windows are not negative.
        out = pair.sender_session.counters
        sent = serial.diff(out.next_outgoing_id, self.start)
        assert sent <= pair.receiver_session.counters.frames_allowed
        assert out.remote_incoming_window >= 0
        flying = sum(
            isinstance(item, Frame) and isinstance(item.performative, Transfer)
            for item in pair.sending.flying
        )
        assert sent - flying == pair.receiver_session.counters.frames_in

    def check_at_rest(self):
        """Nothing in flight: both ends agree, and the last flow said again changes nothing."""
        self.pump(0)
        self.check()
        pair = self.pair
        assert pair.delivery_count()[0] == pair.delivery_count()[1]
        assert pair.link_credit()[0] == pair.link_credit()[1]
        assert list(pair.sender.unsettled) == list(pair.receiver.unsettled)
        ids = pair.receiver_session.counters
        assert ids.next_incoming_id == pair.sender_session.counters.next_outgoing_id
        before = pair.sender.ledger()
        pair.receiver.flow()
        pair.answers = False  # a drain that is said again is answered again
        self.pump(0)
        assert pair.sender.ledger() == before  # 3

    def picture(self):
        """Everything that must not depend on where counting began (invariant 4)."""
        pair = self.pair
        return (
            pair.link_credit(),
            [serial.diff(count, self.start) for count in pair.delivery_count()],
            [serial.diff(one, self.start) for one in pair.receiver.unsettled],
            pair.sender_session.counters.remote_incoming_window,
            pair.receiver_session.counters.incoming_window,
            [type(event).__name__ for event in pair.client.events],
            [type(event).__name__ for event in pair.server.events],
        )


@settings(derandomize=True, deadline=None, max_examples=200)
@given(st.lists(STEPS, min_size=12, max_size=60), st.integers(0, 8), st.booleans())
def test_invariants_hold_in_every_order_and_from_every_start(steps, window, server_sends):
    """Invariants 1 to 6 and 14, for initial counts 0, 10, 2147483640 and 4294967290."""
    pictures = []
    for start in STARTS:
        play = Play(start, window, server_sends)
        for name, number in steps:
            play.do(name, number)
        play.check_at_rest()
        assert play.pair.client.compared > 20
        pictures.append(play.picture())
    assert pictures[1:] == pictures[:-1]
