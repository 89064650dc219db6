"""Clients of ours that do as they are told: a receiver with a credit policy, and a sender."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from workbench.amqp.credit import CreditPolicy, Manual
from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.events import DeliveriesUpdated, DeliveryReceived, Event, FlowReceived
from workbench.amqp.messaging import Accepted, Modified, Outcome, Rejected, Released
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sasl import SaslClient
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings, SessionSettings
from workbench.amqp.settlement import runs
from workbench.sim import Actor, Timer, VirtualClock

from .client import ScriptedClient, nothing

OUTCOMES: dict[str, Outcome] = {
    "accepted": Accepted(),
    "rejected": Rejected(),
    "released": Released(),
    "modified": Modified(delivery_failed=True),
}


class ScriptedReceiver(ScriptedClient):
    """A receiver whose credit is granted by a policy, by hand, or both.

    Args:
        clock: the run's clock.
        address: of the source.
        policy: grants credit; Manual grants none.
        processing_us: how long one message is worked on.
        auto_settle: accept each message when it is done with.
        settings, session_settings: of this client's end.
        link_terms: further fields of the attach, such as `snd_settle_mode`.
        on_attached: called when the link is attached.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        address: str = "q",
        name: str = "receiver",
        link_name: str = "receiver",
        policy: CreditPolicy | None = None,
        processing_us: int = 0,
        auto_settle: bool = False,
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        sasl: SaslClient | None = None,
        link_terms: dict[str, object] | None = None,
        on_attached: Callable[[], None] = nothing,
    ) -> None:
        super().__init__(
            name=name,
            address=address,
            link_name=link_name,
            settings=settings,
            session_settings=session_settings,
            sasl=sasl,
            on_attached=on_attached,
        )
        self.policy: CreditPolicy = policy or Manual()
        self.auto_settle = auto_settle
        self.payloads: list[bytes] = []
        self._terms = link_terms or {}
        self._processed = 0  # since the last grant
        self._begun = False  # the policy has made its first grant
        self._settled = 0
        self._worker: Actor[IncomingDelivery] = Actor(
            clock, f"worker:{name}", service_us=processing_us, handle=self._finish
        )

    # -- what a person may ask of it ----------------------------------------------------------

    @property
    def link_credit(self) -> int:
        """This receiver's own view of the credit."""
        link = self.link
        return link.credit if link is not None else 0

    @property
    def unsettled(self) -> int:
        """Deliveries that arrived and are not yet settled."""
        return len(self.link.unsettled) if self.link is not None else 0

    @property
    def received(self) -> int:
        """Messages that have arrived."""
        return len(self.payloads)

    def grant(self, link_credit: int) -> None:
        """Set the credit, absolute, and tell the sender."""
        self._receiver().grant(link_credit)
        self._processed = 0

    def drain(self) -> None:
        """Ask for the present credit to be used up or given back."""
        link = self._receiver()
        link.grant(link.credit, drain=True)

    def echo(self) -> None:
        """Ask for the sender's state."""
        self._receiver().flow(echo=True)

    def stop(self) -> None:
        """Credit 0 and echo: after the answer nothing more comes [2.6.10]."""
        self._receiver().stop_sender()
        self._processed = 0

    def acknowledge(self, count: int | None = None, outcome: str = "accepted") -> int:
        """Settle the oldest `count` deliveries, or all; returns how many."""
        link = self._receiver()
        chosen: list[IncomingDelivery] = list(link.unsettled.values())[:count]
        for first, last, _ in runs(chosen):  # type: ignore[arg-type]  # looks at ids and links only
            link.settle(first, last, OUTCOMES[outcome])
        self._settled += len(chosen)
        return len(chosen)

    def set_policy(self, policy: CreditPolicy) -> None:
        """Let another rule grant from now on; it makes its first grant at once."""
        self.policy = policy
        if self.attached:
            self._begin_policy()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the receiver."""
        return {
            "vantage": self.vantage,
            "attached": self.attached,
            "link_credit": self.link_credit,
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

    def _attach(self, session: Session) -> ReceiverLink:
        return session.attach_receiver(self.link_name, self.address, **self._terms)  # type: ignore[arg-type]

    def _attached(self) -> None:
        # A person may have set a policy when the attach had come and this was still to be done.
        if not self._begun:
            self._begin_policy()

    def _begin_policy(self) -> None:
        self._begun = True
        self._grant(self.policy.initial())

    def _handle(self, event: Event) -> None:
        if isinstance(event, DeliveryReceived):
            self.payloads.append(event.delivery.payload)
            self._worker.post(event.delivery)

    def _finish(self, delivery: IncomingDelivery) -> None:
        link = self.link
        if not isinstance(link, ReceiverLink) or not link.attached:
            return
        if self.auto_settle and not delivery.settled:
            link.settle(delivery.delivery_id)
            self._settled += 1
        self._processed += 1
        self._grant(self.policy.after_delivery(link.credit, self._processed))

    def _grant(self, link_credit: int | None) -> None:
        if link_credit is not None:
            self.grant(link_credit)


class ScriptedSender(ScriptedClient):
    """A sender that publishes what it is told to, as far as its credit goes.

    Args:
        clock: the run's clock.
        address: of the target.
        settled: send settled: nobody confirms.
        settings, session_settings: of this client's end.
        on_attached: called when the link is attached.
    """

    def __init__(
        self,
        clock: VirtualClock,
        *,
        address: str = "q",
        name: str = "publisher",
        link_name: str = "publisher",
        settled: bool = False,
        initial_delivery_count: int = 0,
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        sasl: SaslClient | None = None,
        on_attached: Callable[[], None] = nothing,
    ) -> None:
        super().__init__(
            name=name,
            address=address,
            link_name=link_name,
            settings=settings,
            session_settings=session_settings,
            sasl=sasl,
            on_attached=on_attached,
        )
        self._clock = clock
        self._settled_sends = settled
        self._initial_delivery_count = initial_delivery_count
        self._backlog: deque[bytes] = deque()
        self._timer: Timer | None = None
        self.sent = 0
        self.outcomes: dict[str, int] = {}

    def publish(self, payloads: Iterable[bytes]) -> None:
        """Send these messages, each as soon as credit and window allow."""
        self._backlog.extend(payloads)
        self._tell_available()
        self._go_on()

    @property
    def backlog(self) -> int:
        """Messages that wait for credit."""
        return len(self._backlog)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the sender."""
        return {
            "vantage": self.vantage,
            "attached": self.attached,
            "link_credit": self.link.credit if self.link is not None else 0,
            "backlog": self.backlog,
            "sent": self.sent,
            **{f"outcome_{name}": count for name, count in self.outcomes.items()},
        }

    # -- inside -------------------------------------------------------------------------------

    def _attach(self, session: Session) -> SenderLink:
        return session.attach_sender(
            self.link_name,
            target=self.address,
            initial_delivery_count=self._initial_delivery_count,
        )

    def _attached(self) -> None:
        self._tell_available()
        self._go_on()

    def _handle(self, event: Event) -> None:
        if isinstance(event, FlowReceived):
            self._go_on()
        elif isinstance(event, DeliveriesUpdated) and event.settled:
            name = type(event.state).__name__.lower()
            self.outcomes[name] = self.outcomes.get(name, 0) + len(event.deliveries)

    def _go_on(self) -> None:
        """One message per clock event, so that a person may act between two."""
        if self._timer is None and self._backlog and self._sendable():
            self._timer = self._clock.call_soon(self._send_one)

    def _sendable(self) -> bool:
        return isinstance(self.link, SenderLink) and self.link.can_send

    def _send_one(self) -> None:
        self._timer = None
        if self._backlog and self._sendable():
            assert isinstance(self.link, SenderLink)
            self.link.send(self._backlog.popleft(), settled=self._settled_sends)
            self.sent += 1
        self._go_on()

    def _tell_available(self) -> None:
        if self.attached:
            assert isinstance(self.link, SenderLink)
            self.link.available = len(self._backlog)
