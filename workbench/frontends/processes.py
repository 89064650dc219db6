"""The processes of one connection: a reader, one for each session, and a writer.

Each has a mailbox and needs its service time for every message in it. The reader takes frames off
the wire and hands them to their sessions; a session works them in, and takes what its queues hand
out; the writer puts the sessions' frames on the wire. So a slow reader leaves frames in the socket,
a slow session delays its own links and no other session's, and a slow writer stops each session
that has spent its credit with it; only transfers cost any (`rabbit_amqp_reader`,
`rabbit_amqp_session`, `rabbit_amqp_writer.erl:send_command/4`).

With a service time of 0 there is no mailbox: everything happens at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from workbench.amqp10.connection import Connection
from workbench.amqp10.frame import Frame, WireItem
from workbench.amqp10.performatives import Close, Transfer
from workbench.amqp10.sender import SenderLink
from workbench.amqp10.session import Session
from workbench.presets import Preset
from workbench.sim import (
    NO_NOTES,
    Actor,
    Clock,
    CreditFlow,
    End,
    Flight,
    Ledger,
    Notes,
    Tap,
    Wire,
)

from .session_inbox import NS_PER_US, SessionInbox

Task = Callable[[], None]


class Host(Protocol):
    """The connection, as its processes see it."""

    name: str
    amqp: Connection
    wire: Wire | None

    @property
    def clock(self) -> Clock:
        """The run's clock."""

    @property
    def tap(self) -> Tap:
        """Observer of what happens inside."""

    def sessions_stopped(self, stopped: bool, depth: int) -> None:
        """So much waits for the writer that a session has to stop; or all may go on."""

    def kick(self) -> None:
        """A session may send again."""


class Processes:
    """Reader, sessions and writer of one connection.

    Args:
        host: the connection.
        preset: service times, and each session's credit with the writer.
    """

    def __init__(self, host: Host, preset: Preset) -> None:
        self._host = host
        self._session_ns = NS_PER_US * preset.session_us + preset.session_ns
        self._credit = partial(
            CreditFlow, initial=preset.process_credit, more_after=preset.process_regrant_after
        )
        self._reader, self._reader_notes = self._process(f"reader:{host.name}", preset.reader_us)
        self._writer, self._writer_notes = self._process(f"writer:{host.name}", preset.writer_us)
        self._sessions: dict[Session, SessionInbox] = {}
        self._notes: dict[Session, Notes] = {}  # of sessions
        self._waiting: dict[Session, int] = {}  # messages in the session's line
        self._spenders: dict[Session, Actor[Task]] = {}  # sessions, as they spend credit
        self._last: Task | None = None  # the client's close, behind what sessions have to do

    def _process(self, name: str, service_us: int) -> tuple[Actor[Task] | None, Notes]:
        """A process, if it needs any time, and what takes rows about its mailbox."""
        if not service_us:
            return None, NO_NOTES
        actor = self._actor(name, service_us)
        return actor, self._notes_of(name, lambda: {"mailbox": actor.depth})

    def _actor(
        self, name: str, service_us: int, blocking: Callable[[bool], None] | None = None
    ) -> Actor[Task]:
        return Actor(
            self._host.clock,
            name,
            service_us=service_us,
            handle=lambda task: task(),
            flow=self._credit(),
            blocking=blocking,
        )

    def _notes_of(self, name: str, ledger: Ledger, session: int | None = None) -> Notes:
        host = self._host
        return host.tap.bind(
            host.clock, vantage=name, connection=host.name, session=session, ledger=ledger
        )

    # -- what comes -----------------------------------------------------------------------------

    @property
    def buffers_input(self) -> bool:
        """Whether a frame that arrives may have to wait before it is worked in."""
        return self._reader is not None or self._session_ns > 0

    def intake(self, flight: Flight) -> None:
        """A frame has arrived, and waits until somebody works it in."""
        if self._reader is None:
            self._dispatch(flight)
            return
        notes = self._reader_notes

        def read() -> None:
            notes.note("note", "mailbox")
            self._dispatch(flight)

        self._reader.post(read)
        notes.note("note", "mailbox")

    def _dispatch(self, flight: Flight) -> None:
        """Hand a frame to its session; what is about none is worked in by the reader."""
        wire, item, session = self._host.wire, flight.item, None
        assert wire is not None, "a frame has come over no wire"
        take = partial(wire.take_in, flight)
        if type(item) is Frame and item.performative is not None:
            if type(item.performative) is not Close:
                session = self._host.amqp.remote_channels.get(item.channel)
            elif self._busy():
                self._last = take
                return
        if session is None:
            take()
        else:
            self.post(session, take)

    def post(self, session: Session, task: Task) -> None:
        """Let a session do something when its turn has come."""
        inbox = self.inbox(session)
        if inbox is None:
            task()
        else:
            inbox.post(task)

    def inbox(self, session: Session) -> SessionInbox | None:
        """The session's mailbox; None where a session needs no time."""
        if not self._session_ns:
            return None
        inbox = self._sessions.get(session)
        if inbox is None:
            self._forget_ended()
            inbox = self._sessions[session] = SessionInbox(
                self._host.clock,
                self.name_of(session),
                self._session_ns,
                note=partial(self._session_notes(session).note, "note", "mailbox"),
                rests=self._one_rests,
            )
        return inbox

    def name_of(self, session: Session) -> str:
        """The name of a session's process in a trace."""
        return f"session:{self._host.name}/{session.ordinal}"

    def _session_notes(self, session: Session) -> Notes:
        """Takes rows about what waits in a session: in its mailbox, and for its window."""
        notes = self._notes.get(session)
        if notes is None:
            inboxes, waiting = self._sessions, self._waiting

            def depth() -> dict[str, int | bool]:
                inbox = inboxes.get(session)
                before = 0 if inbox is None else inbox.depth
                return {"mailbox": waiting.get(session, 0) + before}

            name = self.name_of(session)
            notes = self._notes[session] = self._notes_of(name, depth, session.ordinal)
        return notes

    def _busy(self) -> bool:
        return any(inbox.busy for inbox in self._sessions.values())

    def _one_rests(self) -> None:
        if self._last is not None and not self._busy():
            last, self._last = self._last, None
            last()

    def _forget_ended(self) -> None:
        for session in set(self._sessions).difference(self._host.amqp.sessions):
            if not self._sessions[session].busy:
                del self._sessions[session]
        for by_session in (self._waiting, self._spenders):
            for session in set(by_session).difference(self._host.amqp.sessions):
                del by_session[session]
        for session in set(self._notes).difference(self._host.amqp.sessions, self._sessions):
            del self._notes[session]

    # -- what goes ------------------------------------------------------------------------------

    def waits(self, link: SenderLink, count: int) -> None:
        """So many messages now wait in a session's line, one of this link came or went."""
        session = link.session
        if count == self._waiting.get(session, 0):
            return
        self._waiting[session] = count
        self._session_notes(session).note(
            "note", "buffer", link=link.name, link_sender="broker", attach_no=link.attach_no
        )

    def stopped(self, session: Session) -> bool:
        """Whether the session has no credit left with the writer: it sends no further message."""
        spender = self._spenders.get(session)
        return spender is not None and spender.blocked

    def write(self, wire: Wire, end: End, item: WireItem) -> None:
        """Send a frame, as soon as the writer comes to it."""
        writer = self._writer
        if writer is None:
            wire.send(end, item)
            return

        def written() -> None:
            wire.depart(flight)
            self._writer_notes.note("note", "mailbox")

        _, session, _ = self._host.amqp.last_out
        if session is not None and type(item) is Frame and type(item.performative) is Transfer:
            self._spender(session).send(writer, written)
        else:
            writer.post(written)
        # After the session was stopped by it, so that the frame's own row says so.
        flight = wire.park(end, item)
        self._writer_notes.note("note", "mailbox")

    def _spender(self, session: Session) -> Actor[Task]:
        """The session towards the writer: nothing is posted to it, it only sends."""
        spender = self._spenders.get(session)
        if spender is None:
            self._forget_ended()
            spender = self._actor(self.name_of(session), 0, self._one_stops)
            self._spenders[session] = spender
        return spender

    def _one_stops(self, stopped: bool) -> None:
        """Tell of the first session that stops, and when none is stopped any more."""
        assert self._writer is not None
        if sum(spender.blocked for spender in self._spenders.values()) == stopped:
            self._host.sessions_stopped(stopped, self._writer.depth)
        if not stopped:
            self._host.kick()

    def stop(self) -> None:
        """The connection is gone: nobody does anything more."""
        self._last = None
        for actor in (self._reader, self._writer):
            if actor is not None:
                actor.withdraw(lambda task: True)
        for inbox in self._sessions.values():
            inbox.clear()

    def overview(self) -> dict[str, int]:
        """Flat picture: what waits in each process that there is."""
        picture = {}
        for actor in (self._reader, self._writer, *self._sessions.values()):
            if actor is not None:
                picture[f"{actor.name}.mailbox"] = actor.depth
        return picture
