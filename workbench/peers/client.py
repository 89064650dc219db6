"""What scripted clients have in common: the way to an attached link.

A client goes through SASL, open, begin and attach one step at a time, each waiting for the answer,
so that a learner sees who says what first. Frames could be pipelined; nothing here needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from workbench.amqp.connection import Connection
from workbench.amqp.errors import LocalProtocolError
from workbench.amqp.events import (
    Event,
    LinkAttached,
    LinkDetached,
    OpenReceived,
    SessionBegun,
)
from workbench.amqp.frame import WireItem
from workbench.amqp.performatives import Error
from workbench.amqp.receiver import ReceiverLink
from workbench.amqp.sasl import SaslClient
from workbench.amqp.scope import ItemScope
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.amqp.settings import ConnectionSettings, SessionSettings
from workbench.sim import Wire


def nothing() -> None:
    """For callbacks that nobody wants."""


class ScriptedClient:
    """What receiver and sender have in common: getting to an attached link.

    Attributes:
        amqp: the protocol endpoint.
        link: the one link, once its attach was sent.
        refusal: why the broker refused the link, or ended it.
        writable: False while the transport takes no more; frames that are no messages go all the
            same, for there are few.
    """

    from_peer = "client"
    ledger_source = "own"

    def __init__(
        self,
        *,
        name: str,
        address: str,
        link_name: str,
        settings: ConnectionSettings | None,
        session_settings: SessionSettings | None,
        sasl: SaslClient | None,
        on_attached: Callable[[], None],
    ) -> None:
        self.vantage = f"client:{name}"
        self.address = address
        self.link_name = link_name
        self.link: ReceiverLink | SenderLink | None = None
        self.refusal: Error | None = None
        self.wire: Wire | None = None
        self.writable = True
        self._on_attached = on_attached
        self.amqp = Connection(
            container_id=name,
            is_client=True,
            emit=self._emit,
            settings=settings,
            session_settings=session_settings,
            sasl=sasl or SaslClient(),
        )

    @property
    def attached(self) -> bool:
        """Both ends of the link are attached."""
        return self.link is not None and self.link.attached

    def connect(self, wire: Wire) -> None:
        """Take the wire and begin to talk."""
        self.wire = wire
        self.amqp.start()

    def apply(self, item: WireItem) -> list[Event]:
        """Work a frame into the state; nothing is sent."""
        return self.amqp.apply(item)

    def react(self, events: Iterable[Event]) -> None:
        """Answer, and take the next step towards an attached link."""
        for event in events:
            self.amqp.answer(event)
            match event:
                case OpenReceived():
                    self.amqp.begin()
                case SessionBegun(session=session, by_peer=False):
                    self.link = self._attach(session)
                case LinkAttached(refused=False):
                    self._attached()
                    self._on_attached()
                case LinkDetached(error=error):
                    self.refusal = self.refusal or error
                case _:
                    self._handle(event)

    def kick(self) -> None:
        """The transport takes octets again."""

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with this client's counters."""
        return self.amqp.scope(item, outgoing)

    def detach(self) -> None:
        """Close the link."""
        self._live().close()

    def close(self) -> None:
        """Close the connection."""
        self.amqp.close()

    def _live(self) -> ReceiverLink | SenderLink:
        if self.link is None or not self.link.attached:
            state = "not attached yet" if self.link is None else self.link.state.value
            raise LocalProtocolError(
                f"link {self.link_name} is {state}; legal now: wait until it is attached"
            )
        return self.link

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the client to a wire first"
        self.wire.send(self, item)

    def _attach(self, session: Session) -> ReceiverLink | SenderLink:
        raise NotImplementedError

    def _attached(self) -> None:
        """What happens as soon as the link is attached."""

    def _handle(self, event: Event) -> None:
        """Whatever else comes."""
