"""The broker's end of one AMQP 0-10 connection: the protocol is the endpoint's."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.amqp010.connection import Connection, ConnectionSettings
from workbench.amqp010.errors import CloseCode, DecodeError, DetachCode
from workbench.amqp010.events import (
    CommandReceived,
    CommandsCompleted,
    Event,
    FlowReceived,
    FlushReceived,
    SessionAttaching,
    Violation,
)
from workbench.amqp010.frame import WireItem
from workbench.amqp010.scope import ItemScope
from workbench.amqp010.session import Session
from workbench.broker import Broker
from workbench.broker.queue_process import QueueProcess
from workbench.presets.qpid import BrokerJ, Qpid
from workbench.sim import Wire

from .session import DEFAULTS, CommandError, QpidSession


class QpidConnection:
    """One connection as the broker has it; an end of a wire.

    Args:
        broker: that the client has connected to.
        name: of the connection.

    Attributes:
        name: of the connection, `c1`, `c2`, ...
        broker: that the client has connected to.
        amqp: the protocol endpoint.
        wire: over which it talks.
        sessions: what the broker does for each session.
        writable: False while the transport takes no more octets.
        intake: None: no frame waits before it is applied.
    """

    vantage = "broker"
    from_peer = "broker"
    ledger_source = "own"

    def __init__(self, broker: Broker, name: str) -> None:
        preset = broker.preset
        numbers = preset if isinstance(preset, Qpid) else DEFAULTS
        self.name = name
        self.broker = broker
        self.wire: Wire | None = None
        self.sessions: dict[Session, QpidSession] = {}
        self.writable = True
        self.intake = None
        self.amqp = Connection(
            is_client=False,
            emit=self._emit,
            settings=ConnectionSettings(
                max_frame_size=numbers.max_frame_size_010,
                channel_max=preset.channel_max,
                unfinished_octets=preset.unfinished_octets,
                properties={"product": preset.product, "version": preset.version},
                mechanisms=("ANONYMOUS", "PLAIN") if broker.anonymous else ("PLAIN",),
            ),
            login=self._login,
        )

    def _login(self, mechanism: str, response: bytes) -> str | None:
        if mechanism == "ANONYMOUS":
            return "anonymous"
        parts = response.split(b"\0")
        if len(parts) != 3:
            return None
        user, password = (part.decode(errors="replace") for part in parts[1:])
        return user if self.broker.login(user, password) else None

    # -- an end of a wire -----------------------------------------------------------------------

    def connect(self, wire: Wire) -> None:
        """Take the wire and wait for the client's header."""
        self.wire = wire
        self.amqp.start()

    def apply(self, item: WireItem) -> list[Event]:
        """Work a frame into the state; nothing is sent."""
        return self.amqp.apply(item)

    def react(self, events: Iterable[Event]) -> None:
        """Do what the frame asks for."""
        for event in events:
            try:
                self._handle(event)
            except CommandError as error:
                assert isinstance(event, CommandReceived)
                self.failed_command(
                    event.session.failed(error.code, str(error), event.command_id, event.command)
                )
        self._forget_gone()

    def failed_command(self, violation: Violation) -> None:
        """A command cannot be executed: its session ends, and what it holds goes back."""
        if violation.session is not None and violation.session.attached:
            self.amqp.answer(violation)
            self._forget_gone()

    def scope(self, item: WireItem, outgoing: bool) -> ItemScope:
        """What the frame concerns, with the broker's counters."""
        return self.amqp.scope(item, outgoing)

    def _emit(self, item: WireItem) -> None:
        assert self.wire is not None, "connect the broker's end to a wire first"
        self.wire.send(self, item)

    def _handle(self, event: Event) -> None:
        match event:
            case SessionAttaching(session=session) if self._busy(event):
                session.detached(DetachCode.SESSION_BUSY)
            case SessionAttaching(session=session):
                self.sessions[session] = QpidSession(session, self)
                self.amqp.answer(event)
            case CommandReceived(session=session) if session.attached:
                self.sessions[session].command(event)
            case FlowReceived(session=session) if session.attached:
                self.sessions[session].flow(event)
            case FlushReceived(session=session) if session.attached:
                self.sessions[session].flush(event)
            case CommandsCompleted(session=session) if session.attached:
                self.amqp.answer(event)
                self.sessions[session].completed()
            case _:
                self.amqp.answer(event)

    def _busy(self, event: SessionAttaching) -> bool:
        """Whether the user has a session of this name, and may not have a second one.

        In Qpid C++ `force` lets both be (`SessionManager.cpp:attach`); Broker-J ignores it.
        """
        if event.force and not isinstance(self.broker.preset, BrokerJ):
            return False
        return any(
            one.name == event.session.name
            for other in self.broker.connections.values()
            if isinstance(other, QpidConnection) and other.amqp.user == self.amqp.user
            for one in other.sessions
        )

    # -- the rest -------------------------------------------------------------------------------

    def _forget_gone(self) -> None:
        for session in [one for one in self.sessions if not one.attached]:
            self.sessions.pop(session).leave()

    def resource_alarm(self, on: bool) -> None:
        """Nothing: Qpid C++ knows no alarm; its queues have limits."""

    def queue_deleted(self, queue: QueueProcess) -> None:
        """A queue is no more: subscriptions to it get nothing, its messages are complete."""
        for session in self.sessions.values():
            session.queue_deleted(queue)

    @property
    def held_octets(self) -> int:
        """What has come of commands whose last frame has not."""
        return self.amqp.unfinished_octets

    def kick(self) -> None:
        """The transport takes messages again."""
        for session in self.sessions.values():
            session.kick()

    def undecodable(self, error: DecodeError) -> None:
        """Octets came that are no AMQP 0-10: close with framing-error."""
        self.react([self.amqp.violated(error.reason)])

    def failed(self, error: Exception) -> None:
        """A mistake of ours: close, as Qpid C++ does."""
        self.amqp.close(CloseCode.CONNECTION_FORCED, f"{type(error).__name__}: {error}")
        self._forget_gone()

    def lost(self) -> None:
        """The transport is gone: every session with it."""
        self.amqp.abandon()
        self._forget_gone()

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the connection and its sessions."""
        picture: dict[str, int | bool | str] = {
            "state": self.amqp.state.value,
            "user": self.amqp.user or "",
            "sessions": len(self.sessions),
        }
        for session, host in self.sessions.items():
            prefix = f"session{session.channel}"
            picture[f"{prefix}.incomplete"] = len(session.received_incomplete)
            picture[f"{prefix}.subscriptions"] = len(host.subscribers)
        return picture
