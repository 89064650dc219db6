"""Links of a client: each with its address, and with the rule by which it sends or grants.

A link is made first and attached by its client: `Client(clock, [Consumer("in", "q")])`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workbench.amqp10.credit import CreditPolicy, Manual
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import DeliveryReceived, Event
from workbench.amqp10.link import runs
from workbench.amqp10.messaging import Accepted, Modified, Outcome, Rejected, Released
from workbench.amqp10.receiver import IncomingDelivery, ReceiverLink
from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.sim import Actor

if TYPE_CHECKING:
    from .client import Client

Overview = dict[str, int | bool | str]

OUTCOMES: dict[str, Outcome] = {
    "accepted": Accepted(),
    "rejected": Rejected(),
    "released": Released(),
    "modified": Modified(delivery_failed=True),
}


class ClientLink(ABC):
    """What publishers and consumers have in common.

    Args:
        name: of the link.
        address: of its source, or of its target if it sends.
        terms: further fields of the attach, such as `snd_settle_mode`.

    Attributes:
        client: to which it belongs.
        link: the protocol's link, once its attach was sent.
        answered: the broker's attach has come.
        begun: every link of the client has been attached since this one was made.
    """

    client: Client
    link: SenderLink | ReceiverLink | None

    def __init__(self, name: str, address: str, terms: Mapping[str, Any] | None) -> None:
        self.name = name
        self.address = address
        self.terms = dict(terms or {})
        self.link = None
        self.answered = False
        self.begun = False

    def join(self, client: Client) -> None:
        """Becomes a link of the client."""
        self.client = client

    @property
    def attached(self) -> bool:
        """Whether both ends of the link are attached."""
        return self.link is not None and self.link.attached

    @property
    def link_credit(self) -> int:
        """This end's own view of the credit."""
        return 0 if self.link is None else self.link.credit

    @property
    def vantage(self) -> str:
        """Its client's vantage."""
        return self.client.vantage

    @abstractmethod
    def attach(self, session: Session) -> None:
        """Sends the attach."""

    def begin(self) -> None:
        """Starts the link's own work, when every link of the client is attached."""
        self.begun = True

    def handle(self, event: Event) -> None:
        """Acts on an event of this link; by default on none."""
        return

    def lost(self) -> None:
        """Called after events while the link is not attached; by default nothing is done."""
        return

    def detach(self) -> None:
        """Closes the link.

        Raises:
            LocalProtocolError: it is not attached.
        """
        self._live().close()

    def overview(self) -> Overview:
        """Flat picture of the link."""
        return {
            "vantage": self.vantage,
            "attached": self.attached,
            "link_credit": self.link_credit,
        }

    def _live(self) -> SenderLink | ReceiverLink:
        if self.link is None or not self.link.attached:
            state = "not attached yet" if self.link is None else self.link.state.value
            raise LocalProtocolError(
                f"link {self.name} is {state}; legal now: wait until it is attached"
            )
        return self.link


class Consumer(ClientLink):
    """A receiving link whose credit is granted by a policy, by hand, or both.

    Args:
        name: of the link.
        address: of its source.
        policy: grants credit; Manual grants none.
        processing_us: how long the application works on one message.
        auto_settle: accept each message when it has been worked on.
        terms: further fields of the attach.

    Attributes:
        payloads: encoded messages in the order in which they arrived.
    """

    link: ReceiverLink | None

    def __init__(
        self,
        name: str = "receiver",
        address: str = "q",
        *,
        policy: CreditPolicy | None = None,
        processing_us: int = 0,
        auto_settle: bool = False,
        terms: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, address, terms)
        self.policy: CreditPolicy = policy or Manual()
        self.auto_settle = auto_settle
        self.payloads: list[bytes] = []
        self._processing_us = processing_us
        self._processed = 0  # since the last grant
        self._settled = 0
        self._worker: Actor[IncomingDelivery]

    def join(self, client: Client) -> None:
        """Becomes a link of the client."""
        super().join(client)
        self._worker = Actor(
            client.clock,
            f"worker:{self.name}",
            service_us=self._processing_us,
            handle=self._finish,
        )

    def attach(self, session: Session) -> None:
        """Sends the attach."""
        self.link = session.attach_receiver(self.name, self.address, **self.terms)

    def begin(self) -> None:
        """Makes the policy's first grant."""
        super().begin()
        self._grant(self.policy.initial())

    # -- what a person may ask of it ----------------------------------------------------------

    @property
    def unsettled(self) -> int:
        """Deliveries that arrived and are not yet settled."""
        return 0 if self.link is None else len(self.link.unsettled)

    @property
    def received(self) -> int:
        """Messages that have arrived."""
        return len(self.payloads)

    def grant(self, link_credit: int, *, drain: bool = False, echo: bool = False) -> None:
        """Sets the credit, absolute, and tells the sender.

        Raises:
            LocalProtocolError: the link is not attached, or the credit is no legal number.
        """
        self._receiver().grant(link_credit, drain=drain, echo=echo)
        self._processed = 0

    def drain(self) -> None:
        """Asks for the present credit to be used up or given back."""
        link = self._receiver()
        link.grant(link.credit, drain=True)

    def echo(self) -> None:
        """Asks for the sender's state."""
        self._receiver().flow(echo=True)

    def stop(self) -> None:
        """Sets credit 0 and asks for an echo: after the answer nothing more comes [2.6.10]."""
        self.grant(0, echo=True)

    def acknowledge(self, count: int | None = None, outcome: str = "accepted") -> int:
        """Settles the oldest `count` deliveries, or all; returns how many."""
        link = self._receiver()
        chosen: list[IncomingDelivery] = list(link.unsettled.values())[:count]
        for first, last, _ in runs(chosen):
            link.settle(first, last, OUTCOMES[outcome])
        self._settled += len(chosen)
        return len(chosen)

    def set_policy(self, policy: CreditPolicy) -> None:
        """Lets another rule grant from now on; it makes its first grant at once."""
        self.policy = policy
        if self.attached:
            self.begin()

    def overview(self) -> Overview:
        """Flat picture of the consumer."""
        return {
            **super().overview(),
            "received": self.received,
            "unsettled": self.unsettled,
            "settled": self._settled,
            "in_work": self._worker.depth,
        }

    # -- inside -------------------------------------------------------------------------------

    def _receiver(self) -> ReceiverLink:
        link = self._live()
        assert isinstance(link, ReceiverLink)
        return link

    def handle(self, event: Event) -> None:
        """Lets the application work on what arrives."""
        if isinstance(event, DeliveryReceived):
            self.payloads.append(event.delivery.payload)
            self._worker.post(event.delivery)

    def _finish(self, delivery: IncomingDelivery) -> None:
        link = self.link
        if link is None or not link.attached:
            return
        if self.auto_settle and not delivery.settled:
            link.settle(delivery.delivery_id)
            self._settled += 1
        self._processed += 1
        self._grant(self.policy.after_delivery(link.credit, self._processed))

    def _grant(self, link_credit: int | None) -> None:
        if link_credit is not None:
            self.grant(link_credit)


def _no_note(_publisher: Publisher, _count: int) -> None:
    pass


class Publisher(ClientLink):
    """A sending link, and the application that hands messages over to it.

    When a message goes is decided by the client's send policy.

    Args:
        name: of the link.
        address: of its target.
        settled: send settled: nobody confirms.
        endless: a message that the application publishes again and again, until `stop`.
        on_waiting: told how many messages the application has handed over that must wait.
        terms: further fields of the attach.

    Attributes:
        sent: messages sent.
        outcomes: how many deliveries got which outcome.
        scheduled: the send policy has scheduled the next message.
        ignores_window: it sends whatever the window is; credit is still heeded.
    """

    link: SenderLink | None

    def __init__(
        self,
        name: str = "publisher",
        address: str = "q",
        *,
        settled: bool = False,
        endless: bytes | None = None,
        on_waiting: Callable[[Publisher, int], None] = _no_note,
        terms: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(name, address, terms)
        self.sent = 0
        self.outcomes: dict[str, int] = {}
        self.scheduled = False
        self.ignores_window = False
        self._settled_sends = settled
        self._endless = endless
        self._on_waiting = on_waiting
        self._backlog: deque[bytes] = deque()
        self._coming: deque[tuple[bytes, int]] = deque()  # message, us after the one before it
        self._handing_over = False  # the application's next message is scheduled

    def attach(self, session: Session) -> None:
        """Sends the attach."""
        self.link = session.attach_sender(self.name, target=self.address, **self.terms)

    def begin(self) -> None:
        """Sends what the application has handed over by now."""
        super().begin()
        self._tell_available()
        self.client.sending.go_on((self,))

    # -- the application ----------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Messages that wait for credit, window or TCP."""
        return len(self._backlog) if self._endless is None else 1

    def publish(self, payloads: Iterable[bytes], every_us: int = 0) -> None:
        """Hands messages over, one each `every_us`; 0 hands all of them over now."""
        messages = list(payloads)
        if every_us or self._coming:
            self._coming.extend((payload, every_us) for payload in messages)
            self._hand_over_next()
        else:
            self._hand_over(messages)

    def stop(self) -> None:
        """Ends an endless application."""
        self._endless = None

    def _hand_over_next(self) -> None:
        if self._coming and not self._handing_over:
            self._handing_over = True
            self.client.clock.call_later(self._coming[0][1], self._next_is_due)

    def _next_is_due(self) -> None:
        self._handing_over = False
        payload, _ = self._coming.popleft()
        self._hand_over([payload])
        self._hand_over_next()

    def _hand_over(self, messages: list[bytes]) -> None:
        self._backlog.extend(messages)
        self._tell_available()
        if self.attached and (len(messages) > 1 or not self.can_send):
            self._on_waiting(self, len(messages))
        self.client.sending.go_on((self,))

    def _tell_available(self) -> None:
        if self.link is not None and self.attached:
            self.link.available = self.backlog

    # -- sending, as the policy wants it ------------------------------------------------------

    @property
    def can_send(self) -> bool:
        """Whether a message, or the rest of one, can go now."""
        link = self.link
        if link is None or not self.begun or not self.client.writable:
            return False
        if not link.attached or not link.session.mapped:
            return False
        if link.sending is not None:
            return self.ignores_window
        return bool(self.backlog) and (link.can_send or (self.ignores_window and link.credit > 0))

    def send_next(self) -> bool:
        """Sends the next message, or the rest of one; False if nothing can go."""
        if not self.can_send:
            return False
        link = self.link
        assert link is not None
        delivery = link.sending
        if delivery is None:
            self._pretend(link)
            delivery = self.transmit(link, self._take(link))
            self.sent += 1
        while self.ignores_window and not delivery.complete:
            self._pretend(link)
            link.pump()
        return True

    def transmit(self, link: SenderLink, payload: bytes) -> OutgoingDelivery:
        """Starts a delivery."""
        return link.send(payload, settled=self._settled_sends)

    def settled(self, delivery: OutgoingDelivery, state: object) -> None:
        """Counts a delivery that the receiver has settled."""
        outcome = type(state).__name__.lower()
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def _take(self, link: SenderLink) -> bytes:
        if self._endless is None:
            return self._backlog.popleft()
        link.available = 2  # a next message is ready, whatever becomes of this one
        return self._endless

    def _pretend(self, link: SenderLink) -> None:
        """Lets one frame through a closed window; its row still shows the window closed."""
        counters = link.session.counters
        if self.ignores_window and not counters.remote_incoming_window:
            counters.remote_incoming_window = 1

    def overview(self) -> Overview:
        """Flat picture of the publisher."""
        return {
            **super().overview(),
            "backlog": self.backlog,
            "coming": len(self._coming),
            "sent": self.sent,
            **{f"outcome_{name}": count for name, count in self.outcomes.items()},
        }
