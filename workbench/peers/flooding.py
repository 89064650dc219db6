"""A client that publishes over several links as fast as it is allowed, until it is told to stop.

Each link has an application of its own that always has a next message and waits for nothing but
credit, window and TCP. Where several may send they take turns, one message each, as threads do that
share a connection's writer. What is allowed at one instant leaves in one clock event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.amqp.events import Event, FlowReceived
from workbench.amqp.quick import send_settled
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings, SessionSettings

from .client import ScriptedClient


class FloodingPublisher(ScriptedClient):
    """Publishes the same settled message over every link, again and again.

    Args:
        addresses: of the targets, by link name, in the order of attaching.
        payload: the message, encoded.
        name: of the client.
        settings, session_settings: of this client's end.
        on_attached: called once, when every link is attached; they send from then on.

    Attributes:
        links: by name.
        sent: messages sent over each.
        stopped: nothing more is sent.
    """

    def __init__(
        self,
        *,
        addresses: Mapping[str, str],
        payload: bytes,
        name: str = "app",
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        on_attached: Callable[[], None] = lambda: None,
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
        self.links: dict[str, SenderLink] = {}
        self.sent = dict.fromkeys(addresses, 0)
        self.stopped = False
        self._addresses = dict(addresses)
        self._payload = payload
        self._begun = False
        self._on_all_attached = on_attached

    @property
    def attached(self) -> bool:
        """Every link is attached at both ends."""
        return bool(self.links) and all(link.attached for link in self.links.values())

    def stop(self) -> None:
        """Send nothing more."""
        self.stopped = True

    def kick(self) -> None:
        """The transport takes octets again: go on."""
        self._go_on()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the client and each of its links."""
        picture: dict[str, int | bool | str] = {
            "vantage": self.vantage,
            "attached": self.attached,
            "writable": self.writable,
            "stopped": self.stopped,
        }
        for name, link in self.links.items():
            picture[f"{name}.link_credit"] = link.credit
            picture[f"{name}.sent"] = self.sent[name]
        return picture

    def _attach(self, session: Session) -> SenderLink:
        for name, address in self._addresses.items():
            self.links[name] = session.attach_sender(name, target=address)
        return self.links[next(iter(self._addresses))]

    def _one_attached(self) -> None:
        if self.attached and not self._begun:
            self._begun = True
            self._on_all_attached()
            self._go_on()

    def _handle(self, event: Event) -> None:
        if isinstance(event, FlowReceived):
            self._go_on()

    def _go_on(self) -> None:
        """Send what is allowed now, a message of each link in turn."""
        if not self._begun or self.stopped:
            return
        able, payload = dict(self.links), self._payload
        while able and self.writable:
            for name in tuple(able):
                link = able[name]
                # The application has a next message ready, whatever becomes of this one.
                link.counters.available = 2
                if self.writable and (send_settled(link, payload) or self._sent_plainly(link)):
                    self.sent[name] += 1
                    continue
                link.counters.available = 1
                del able[name]

    def _sent_plainly(self, link: SenderLink) -> bool:
        if not link.can_send:
            return False
        link.send(self._payload, settled=True)
        return True
