"""A client with several receiving links on one session, driven by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.amqp.delivery import IncomingDelivery
from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.events import DeliveryReceived, Event
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings, SessionSettings
from workbench.amqp.settlement import runs

from .client import ScriptedClient, nothing
from .scripted import OUTCOMES


class ManyLinksReceiver(ScriptedClient):
    """Receives over several links of one session; each has credit of its own.

    Args:
        addresses: of the sources, by link name, in the order of attaching.
        link_terms: further fields of every attach.
        on_attached: called once, when every link is attached.

    Attributes:
        links: by name, once their attaches were sent.
        arrived: link name and message of everything that came, in order.
    """

    link: ReceiverLink | None

    def __init__(
        self,
        *,
        addresses: Mapping[str, str],
        name: str = "receiver",
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        link_terms: dict[str, object] | None = None,
        on_attached: Callable[[], None] = nothing,
        on_arrival: Callable[[str], None] | None = None,
    ) -> None:
        first = next(iter(addresses))
        super().__init__(
            name=name,
            address=addresses[first],
            link_name=first,
            settings=settings,
            session_settings=session_settings,
            sasl=None,
            on_attached=self._one_attached,
        )
        self.addresses = dict(addresses)
        self.links: dict[str, ReceiverLink] = {}
        self.arrived: list[tuple[str, bytes]] = []
        self._terms = link_terms or {}
        self._on_all_attached = on_attached
        self._on_arrival = on_arrival

    @property
    def attached(self) -> bool:
        """Every link is attached at both ends."""
        return bool(self.links) and all(link.attached for link in self.links.values())

    def receiver(self, name: str) -> ReceiverLink:
        """The link of that name.

        Raises:
            LocalProtocolError: there is none, or it is not attached.
        """
        link = self.links.get(name)
        if link is None or not link.attached:
            listed = ", ".join(one for one, there in self.links.items() if there.attached)
            raise LocalProtocolError(
                f"link {name} is not attached; legal now: {listed or 'wait until it is'}"
            )
        return link

    def received(self, name: str) -> int:
        """Messages that have arrived over a link."""
        return sum(1 for link, _ in self.arrived if link == name)

    def acknowledge(self, name: str, count: int | None = None, outcome: str = "accepted") -> int:
        """Settle the oldest `count` deliveries of a link, or all; returns how many."""
        link = self.receiver(name)
        chosen: list[IncomingDelivery] = list(link.unsettled.values())[:count]
        for first, last, _ in runs(chosen):  # type: ignore[arg-type]  # looks at ids and links only
            link.settle(first, last, OUTCOMES[outcome])
        return len(chosen)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the receiver and each of its links."""
        picture: dict[str, int | bool | str] = {
            "vantage": self.vantage,
            "attached": self.attached,
            "received": len(self.arrived),
        }
        for name, link in self.links.items():
            picture[f"{name}.link_credit"] = link.credit
            picture[f"{name}.unsettled"] = len(link.unsettled)
        return picture

    # -- inside -------------------------------------------------------------------------------

    def _attach(self, session: Session) -> ReceiverLink:
        for name, address in self.addresses.items():
            self.links[name] = session.attach_receiver(name, address, **self._terms)  # type: ignore[arg-type]
        return self.links[self.link_name]

    def _one_attached(self) -> None:
        if self.attached:
            self._on_all_attached()

    def _handle(self, event: Event) -> None:
        if isinstance(event, DeliveryReceived):
            self.arrived.append((event.link.name, event.delivery.payload))
            if self._on_arrival is not None:
                self._on_arrival(event.link.name)
