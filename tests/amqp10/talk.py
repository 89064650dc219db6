"""Conversations over a link, with frames in flight, as `tests.conversation` reads them."""

from tests.amqp10.pair import LinkPair
from tests.conversation import Conversation
from workbench import serial
from workbench.amqp10.events import DeliveriesUpdated, DeliveryReceived
from workbench.amqp10.messaging import Accepted, Modified, Rejected, Released
from workbench.amqp10.observer import ConnectionObserver
from workbench.amqp10.performatives import Flow
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

STARTS = [0, 10, 2147483640, 4294967290]
OUTCOMES = {one.NAME: one() for one in (Accepted, Rejected, Released, Modified)}


class WatchedPair(LinkPair):
    """A link over which the server sends, with an observer on the wire."""

    def __init__(self, **options):
        self.observer = ConnectionObserver()
        self.seen = None  # what the last frame about the link told it
        super().__init__(**options)

    def deliver(self, side, count=1):
        for _ in range(count):
            scope = self.observer.see(side.flying[0], side is self.client)
            self.seen = scope if scope.link else self.seen
            super().deliver(side)


class Talk(Conversation):
    """What the two ends of a link do: the receiver grants, the sender sends.

    Nothing arrives until `pump`. What is seen is the sender's, and behind a stroke the receiver's.

    Args:
        start: initial counts and ids of everything.
    """

    def __init__(self, start):
        self.start = start
        self.pair = WatchedPair(
            client=ConnectionSettings(max_frame_size=512),
            client_session=SessionSettings(next_outgoing_id=start),
            server_session=SessionSettings(next_outgoing_id=start, delivery_id=start),
            sender_terms={"initial_delivery_count": start},
        )
        self.sender, self.receiver = self.pair.sender, self.pair.receiver

    def do_pump(self):
        """Carry frames until it is quiet; the observer then knows what the sender has."""
        self.pair.pump()
        seen, own = self.pair.seen, self.sender.ledger()
        assert {**own, **seen.link_ledger, "available": 0} == {**own, "available": 0}
        window = self.sender.session.counters.remote_incoming_window
        assert seen.session_ledger["remote_incoming_window"] == window

    def do_grant(self, credit):
        self.receiver.grant(credit)

    def do_drain(self, credit):
        self.receiver.grant(credit, drain=True)

    def do_stop(self):
        self.receiver.grant(0, echo=True)

    def do_ask(self):
        self.receiver.session.flow(echo=True)

    def do_send(self, count, size=1):
        for _ in range(count):
            self.sender.send(bytes(size), settled=True)

    def do_deliver(self, count, size=1):
        """Unsettled messages."""
        for _ in range(count):
            self.sender.send(bytes(size))

    def do_settle(self, first, last=None, outcome="accepted"):
        """The receiver settles."""
        self.receiver.settle(self._id(first), self._id(last), state=OUTCOMES[outcome])

    def do_settle_first(self, first, last=None, outcome="accepted"):
        """The sender does."""
        self.sender.settle(self._id(first), self._id(last), state=OUTCOMES[outcome])

    def _id(self, number):
        return None if number is None else serial.add(self.start, number)

    def do_available(self, count):
        self.sender.available = count

    def do_tell(self):
        self.sender.flow()

    def do_give_back(self, expected):
        assert self.sender.drained() == expected

    def see_credit(self):
        return "{}/{}".format(*self.pair.link_credit())

    def see_count(self):
        """From the initial delivery-count."""
        counts = (serial.diff(count, self.start) for count in self.pair.delivery_count())
        return "{}/{}".format(*counts)

    def see_available(self):
        return f"{self.sender.available}/{self.receiver.available}"

    def see_unsettled(self):
        ends = [
            ",".join(str(serial.diff(one, self.start)) for one in end.unsettled)
            for end in (self.sender, self.receiver)
        ]
        return "{}/{}".format(*ends)

    def see_states(self):
        """What the receiver has said of each delivery; `!` where it is settled."""
        sent = [event.deliveries for event in self.pair.sending.heard(DeliveriesUpdated)]
        told = {one.delivery_id: one for some in sent for one in some}
        return [f"{one.remote_state.NAME}{'!' * one.settled}" for one in told.values()]

    def see_got(self):
        """Sizes of the messages that have come."""
        return [len(one.delivery.payload) for one in self.pair.receiving.heard(DeliveryReceived)]

    def see_window(self):
        return self.sender.session.counters.remote_incoming_window

    def see_draining(self):
        return self.sender.drain

    def see_answers(self):
        """The sender's flows: link-credit@delivery-count, `!` for drain and `?` for echo."""
        return [
            "session"
            if flow.handle is None
            else f"{flow.link_credit}@{serial.diff(flow.delivery_count, self.start)}"
            + "!" * bool(flow.drain)
            + "?" * bool(flow.echo)
            for flow in self.pair.sending.frames(Flow)
        ]
