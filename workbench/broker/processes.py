"""The processes of one connection: a reader, one for each session, and a writer.

Each has a mailbox and needs its service time for every message in it. The reader takes frames off
the wire and hands them to their sessions; a session works them in, and takes what its queues hand
out; the writer puts the sessions' frames on the wire. So a slow reader leaves frames in the socket,
a slow session delays its own links and no other session's, and a slow writer stops the sessions
when too much waits for it (`rabbit_amqp_reader`, `rabbit_amqp_session`, `rabbit_amqp_writer`).

With a service time of 0 there is no mailbox: everything happens at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workbench.amqp.connection import Connection
from workbench.amqp.frame import Frame, WireItem
from workbench.amqp.performatives import Close
from workbench.amqp.sender import SenderLink
from workbench.amqp.session import Session
from workbench.presets import Preset
from workbench.sim import Actor, End, Flight, Tap, VirtualClock, Wire

from .session_inbox import NS_PER_US, SessionInbox

Task = Callable[[], None]


class Host(Protocol):
    """The connection, as its processes see it."""

    name: str
    amqp: Connection
    wire: Wire | None

    @property
    def clock(self) -> VirtualClock:
        """The run's clock."""

    @property
    def tap(self) -> Tap:
        """Observer of what happens inside."""

    @property
    def unseen(self) -> bool:
        """Nobody observes: rows need not be made."""

    def actor(self, name: str, service_us: int) -> Actor[Task]:
        """A process that does what is posted to it."""

    def note_depth(
        self,
        vantage: str,
        kind: str,
        depth: int,
        session: Session | None = None,
        link: SenderLink | None = None,
    ) -> None:
        """A row that tells how much waits in a process."""

    def writer_is_full(self, full: bool, depth: int) -> None:
        """The sessions have to stop, or may go on."""


class Processes:
    """Reader, sessions and writer of one connection.

    Args:
        host: the connection.
        preset: service times, and how much may wait for the writer.

    Attributes:
        full: so much waits for the writer that no further message is handed to it.
    """

    def __init__(self, host: Host, preset: Preset) -> None:
        self.full = False
        self._host = host
        self._session_ns = NS_PER_US * preset.session_us + preset.session_ns
        self._limit = preset.writer_credit
        self._again_at = preset.writer_credit - preset.writer_regrant_after
        self._reader = self._process(f"reader:{host.name}", preset.reader_us)
        self._writer = self._process(f"writer:{host.name}", preset.writer_us)
        self._sessions: dict[Session, SessionInbox] = {}
        self._waiting: dict[Session, int] = {}  # messages in the session's line
        self._last: Task | None = None  # the client's close, behind what sessions have to do

    def _process(self, name: str, service_us: int) -> Actor[Task] | None:
        return self._host.actor(name, service_us) if service_us else None

    # -- what comes -----------------------------------------------------------------------------

    @property
    def buffers_input(self) -> bool:
        """Whether a frame that arrives may have to wait before it is worked in."""
        return self._reader is not None or self._session_ns > 0

    def intake(self, item: WireItem, take: Task) -> None:
        """A frame has arrived; `take` works it in."""
        if self._reader is None:
            self._dispatch(item, take)
            return
        reader = self._reader

        def read() -> None:
            self._host.note_depth(reader.name, "mailbox", reader.depth)
            self._dispatch(item, take)

        reader.post(read)
        self._host.note_depth(reader.name, "mailbox", reader.depth)

    def _dispatch(self, item: WireItem, take: Task) -> None:
        """Hand a frame to its session; what is about none is worked in by the reader."""
        session = None
        if type(item) is Frame and item.performative is not None:
            if type(item.performative) is not Close:
                session = self._host.amqp.remote_channels.get(item.channel)
            elif self._busy():
                self._last = take
                return
        inbox = None if session is None else self._sessions.get(session)
        if inbox is not None:
            inbox.post(take)
        elif session is not None:
            self.post(session, take)
        else:
            take()

    def post(self, session: Session, task: Task) -> None:
        """Let a session do something when its turn has come."""
        inbox = self._sessions.get(session) or self.inbox(session)
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
            name = f"session:{self._host.name}/{session.ordinal}"
            wire = self._host.wire
            inbox = self._sessions[session] = SessionInbox(
                self._host.clock,
                name,
                self._session_ns,
                note=self._mailbox_note(session, name),
                rests=self._one_rests,
                prompt=wire is not None and wire.prompt,
            )
        return inbox

    def _mailbox_note(self, session: Session, name: str) -> Task | None:
        """What tells how much waits in a session; as `_note_session`, and quicker.

        None where nobody wants to know.
        """
        host, clock, waiting = self._host, self._host.clock, self._waiting
        tell = host.tap.series(
            event="note",
            kind="mailbox",
            vantage=name,
            connection=host.name,
            session=session.ordinal,
            ledger=("mailbox",),
        )

        sessions = self._sessions

        def note() -> None:
            tell(clock.now_us, waiting.get(session, 0) + sessions[session].depth)

        return None if host.unseen else note

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
        for session in set(self._waiting).difference(self._host.amqp.sessions):
            del self._waiting[session]

    # -- what goes ------------------------------------------------------------------------------

    def waits(self, link: SenderLink, count: int) -> None:
        """So many messages now wait in a session's line, one of this link came or went."""
        session = link.session
        if count == self._waiting.get(session, 0):
            return
        self._waiting[session] = count
        self._note_session(session, "buffer", link)

    def _note_session(self, session: Session, kind: str, link: SenderLink | None = None) -> None:
        if self._host.unseen:
            return
        inbox = self._sessions.get(session)
        depth = self._waiting.get(session, 0) + (inbox.depth if inbox is not None else 0)
        name = f"session:{self._host.name}/{session.ordinal}"
        self._host.note_depth(name, kind, depth, session, link)

    def write(self, wire: Wire, end: End, item: WireItem) -> None:
        """Send a frame, as soon as the writer comes to it."""
        writer = self._writer
        if writer is None:
            wire.send(end, item)
            return
        if not self.full and writer.depth + 1 >= self._limit:
            self.full = True
            self._host.writer_is_full(True, writer.depth + 1)
        flight = wire.park(end, item)
        writer.post(lambda: self._written(wire, flight))
        self._host.note_depth(writer.name, "mailbox", writer.depth)

    def _written(self, wire: Wire, flight: Flight) -> None:
        assert self._writer is not None
        wire.depart(flight)
        depth = self._writer.depth
        self._host.note_depth(self._writer.name, "mailbox", depth)
        if self.full and depth <= self._again_at:
            self.full = False
            self._host.writer_is_full(False, depth)

    def stop(self) -> None:
        """The connection is gone: nobody does anything more."""
        self._last = None
        for actor in (self._reader, self._writer):
            if actor is not None:
                actor.withdraw(_everything)
        for inbox in self._sessions.values():
            inbox.clear()

    def overview(self) -> dict[str, int]:
        """Flat picture: what waits in each process that there is."""
        picture = {}
        for actor in (self._reader, self._writer, *self._sessions.values()):
            if actor is not None:
                picture[f"{actor.name}.mailbox"] = actor.depth
        return picture


def _everything(task: Task) -> bool:
    return True
