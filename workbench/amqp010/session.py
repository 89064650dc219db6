"""A session: commands numbered by their order, and their completion.

The rules of this file:

* A command has no number on the wire. Both ends count, from the id that session.command-point has
  named; here the count goes on beyond 2**32 (`ranges`).
* A command is incomplete until its receiver says that it is executed. It says so in ranges, when
  the sender asks (`sync`, session.flush, an execution.sync that had to wait), and says all that it
  does not know to be known.
* execution.sync completes when every command before it has.
* session.flush is answered at once, without the message.accept that is due, and the answer asks to
  be known.
* session.command-point may go back: what is sent again is counted, and read over.
* `apply` changes state and sends nothing; what this end says goes through the connection.

Where the specification leaves a choice it is Qpid C++'s (`SessionState.cpp`, `SessionHandler.cpp`,
`SemanticState.cpp`): a point that skips commands, and a completion of what was never sent, are
invalid-argument; session.gap is not-implemented.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .commands import (
    CreditUnit,
    ExecutionException,
    ExecutionResult,
    ExecutionSync,
    FlowMode,
    MessageAccept,
    MessageCancel,
    MessageFlow,
    MessageFlush,
    MessageSetFlowMode,
    MessageStop,
    MessageSubscribe,
    MessageTransfer,
)
from .composite import Command, Composite, Control, UnknownCommand
from .controls import (
    SessionAttach,
    SessionAttached,
    SessionCommandPoint,
    SessionCompleted,
    SessionConfirmed,
    SessionDetach,
    SessionDetached,
    SessionExpected,
    SessionFlush,
    SessionGap,
    SessionKnownCompleted,
    SessionRequestTimeout,
    SessionTimeout,
)
from .credit import Subscription
from .errors import DetachCode, ErrorCode, LocalProtocolError, Scope
from .events import (
    CommandReceived,
    CommandsCompleted,
    Event,
    ExceptionReceived,
    FlowReceived,
    FlushReceived,
    Ready,
    ResultReceived,
    SessionDetaching,
    Violation,
)
from .events import SessionDetached as Detached
from .frame import Headers
from .ranges import RangeSet, nearest, on_wire
from .states import SESSION_TABLE, SessionState, legal_words
from .values import SequenceSet

if TYPE_CHECKING:
    from .assembler import Assembled
    from .connection import Connection

__all__ = ["Session"]

MOST_SYNCS = 10_000
"""So many execution.sync may wait: each is an id to be kept. Ours; Qpid C++ has no bound."""

MOST_SUBSCRIPTIONS = 1_000
"""So many a session may have: each is a consumer of a queue. Ours; Qpid C++ has no bound."""

KNOWN_EVERY = 65_536
"""With every 65,536th command its receiver says unasked what is complete, and asks that it be
known: what is not known is told again and again (`SPONTANEOUS_REQUEST_INTERVAL`)."""


class Session:
    """One end of a session, attached to a channel.

    Args:
        connection: on which.
        channel: of the connection.
        name: of the session.
        first: the id of the first command that this end sends.
        ordinal: which session of the connection it is, from 1.

    Attributes:
        state: of the attachment.
        sent: the next command that this end sends, on a count that does not wrap.
        sent_incomplete: commands sent, and not completed by the peer.
        received: the next command that comes; None: no command-point has come.
        received_incomplete: commands that came and are not executed.
        completed: commands executed, as far as the peer has not said that it knows.
        pending_syncs: execution.sync commands that wait for earlier ones.
        subscriptions: of which this end sends the messages, by destination.
        transfers: messages sent under a subscription and not completed, with their octets.
    """

    def __init__(
        self,
        connection: Connection,
        channel: int,
        name: bytes,
        *,
        first: int = 0,
        ordinal: int = 1,
    ) -> None:
        self.connection = connection
        self.channel = channel
        self.name = name
        self.ordinal = ordinal
        self.state = SessionState.DETACHED
        self.sent = first
        self.sent_incomplete = RangeSet()
        self.received: int | None = None
        self.received_incomplete = RangeSet()
        self.completed = RangeSet()
        self.pending_syncs: deque[int] = deque()
        self.subscriptions: dict[str, Subscription] = {}
        self.transfers: dict[int, tuple[Subscription, int]] = {}
        self._accepted = RangeSet()
        self._told_at_once: set[int] = set()  # commands that came with sync
        self._again = 0  # so many of those that come next have come before

    # -- attaching ------------------------------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Commands may be sent."""
        return "S:frame" in SESSION_TABLE[self.state]

    @property
    def hears(self) -> bool:
        """Commands that come are heard."""
        return "R:frame" in SESSION_TABLE[self.state]

    def attach(self) -> None:
        """Attaches the session, and says from which id this end counts."""
        self._say(SessionAttach(self.name))
        self._point()

    def accept(self) -> None:
        """Answers the peer's attach."""
        self._say(SessionAttached(self.name))
        self._point()

    def detach(self) -> None:
        """Detaches the session; nothing that comes is heard any more."""
        self._say(SessionDetach(self.name))

    def detached(self, code: DetachCode = DetachCode.NORMAL) -> None:
        """Answers the peer's detach, or refuses its attach."""
        self._say(SessionDetached(self.name, code))
        if self.state is SessionState.DETACHED:
            self.connection.forget(self)

    def _point(self) -> None:
        self._control(SessionCommandPoint(on_wire(self.sent), 0))

    # -- sending --------------------------------------------------------------------------------

    def send(
        self, command: Command, headers: Headers | None = None, payload: bytes | None = None
    ) -> int:
        """Sends a command; returns its number on this end's count.

        Raises:
            LocalProtocolError: the session is not attached.
        """
        if not self.attached:
            raise LocalProtocolError(
                f"session {self.name!r} is {self.state.value}: no command can be sent; legal now: "
                + legal_words(self.state)
            )
        number = self.sent
        self.sent += 1
        self.sent_incomplete.add(number, number)
        self.connection.send(self.channel, command, headers, payload)
        return number

    def transfer(
        self, subscription: Subscription, headers: Headers, payload: bytes, octets: int
    ) -> int:
        """Sends a message under a subscription, and uses its credit.

        Args:
            subscription: that the peer has made.
            headers: properties of the message.
            payload: its body.
            octets: of both segments.

        Raises:
            LocalProtocolError: its credit does not allow it.
        """
        if not subscription.credit.check(octets):
            raise LocalProtocolError(
                f"subscription {subscription.destination!r} has credit for"
                f" {subscription.credit.messages.remaining} messages and"
                f" {subscription.credit.octets.remaining} octets; the message has {octets}"
            )
        command = MessageTransfer(
            subscription.destination,
            accept_mode=int(not subscription.accepts),
            acquire_mode=int(not subscription.acquires),
        )
        subscription.credit.consume(octets)
        self.transfers[self.sent] = subscription, octets
        return self.send(command, headers, payload)

    def flush(self) -> None:
        """Asks the peer for what it has completed."""
        self._control(SessionFlush(completed=True))

    # -- completing -----------------------------------------------------------------------------

    def complete(
        self, number: int, *, accept: bool = False, result: Composite | None = None
    ) -> None:
        """A command of the peer's is executed.

        Args:
            number: of the command, on this end's count.
            accept: the peer wants message.accept for it.
            result: what it has found out.
        """
        if not self.attached or not self.received_incomplete.remove(number, number):
            return
        self.completed.add(number, number)
        if accept:
            self._accepted.add(number, number)
        if result is not None:
            self.send(ExecutionResult(on_wire(number), result))
        wanted = number in self._told_at_once
        self._told_at_once.discard(number)
        if self._release_syncs() or wanted:
            self.tell_completed()

    def flushed(self, event: FlushReceived) -> None:
        """All that was there has been sent: the subscription's credit is 0, the flush complete."""
        event.subscription.credit.cancel()
        self.complete(event.command_id)

    def tell_completed(self) -> None:
        """Says which commands are complete, after accepting what is to be accepted."""
        if self._accepted:
            self.send(MessageAccept(self._accepted.as_sequence_set()))
            self._accepted = RangeSet()
        assert self.received is not None
        self._tell(known_wanted=on_wire(self.received) % KNOWN_EVERY == 0)

    def _tell(self, *, known_wanted: bool) -> None:
        self._control(SessionCompleted(self.completed.as_sequence_set(), known_wanted))

    def _release_syncs(self) -> bool:
        """Complete syncs with nothing incomplete before them; tells whether there was one."""
        released = False
        while self.pending_syncs and self.received_incomplete.first == self.pending_syncs[0]:
            number = self.pending_syncs.popleft()
            self.received_incomplete.remove(number, number)
            self.completed.add(number, number)
            self._told_at_once.discard(number)
            released = True
        return released

    # -- what the peer says ---------------------------------------------------------------------

    def take_control(self, control: Control) -> list[Event]:
        """Works a control of class session into the state."""
        step = f"R:{control.NAME}"
        table = SESSION_TABLE[self.state]
        named = isinstance(control, SessionAttached | SessionDetach | SessionDetached)
        due = step in table if named else self.hears
        if (
            isinstance(control, SessionAttached | SessionDetach)
            and control.name != self.name
            and (due or self.hears)
        ):
            return [
                self._violated(
                    ErrorCode.INVALID_ARGUMENT,
                    f"{control.NAME} names session {control.name!r}; attached to channel"
                    f" {self.channel} is {self.name!r}",
                    control,
                )
            ]
        if not due:
            return []  # this end has left, or it is an answer to nothing
        if named:
            self.state = table[step]
        try:
            return self._obey(control)
        except _BeyondError as beyond:
            return [self._violated(ErrorCode.INVALID_ARGUMENT, str(beyond), control)]

    def _obey(self, control: Control) -> list[Event]:
        match control:
            case SessionDetach():
                return [SessionDetaching(self)]
            case SessionDetached(code=code):
                self.connection.forget(self)
                return [Detached(self, code or 0)]
            case SessionCommandPoint(command_id=wire, command_offset=offset):
                return self._take_point(control, wire or 0, offset or 0)
            case SessionCompleted(commands=commands, timely_reply=wanted):
                return self._take_completed(control, commands or SequenceSet(), wanted)
            case SessionKnownCompleted(commands=commands):
                return self._take_known(control, commands or SequenceSet())
            case SessionConfirmed(commands=commands) | SessionExpected(commands=commands):
                return self._take_place(control, commands or SequenceSet())
            case SessionFlush() | SessionRequestTimeout():
                return [Ready(self, control)]
            case SessionGap():
                why = "session.gap is not heeded here; legal: send every command"
                return [self._violated(ErrorCode.NOT_IMPLEMENTED, why, control)]
        return []

    def take_command(self, found: Assembled) -> list[Event]:
        """Counts a command, and works what concerns the session itself into the state."""
        events = self._take_command(found)
        if events and self.received is not None and on_wire(self.received) % KNOWN_EVERY == 0:
            return [Ready(self, SessionFlush(completed=True)), *events]
        return events

    def _take_command(self, found: Assembled) -> list[Event]:
        command = found.method
        assert isinstance(command, Command)
        if self.received is None:
            why = f"{command.NAME} came before session.command-point, so it has no id"
            return [self._violated(ErrorCode.ILLEGAL_STATE, why, command)]
        if self._again:
            self._again -= 1
            return []
        number = self.received
        self.received += 1
        self.received_incomplete.add(number, number)
        if command.sync:
            self._told_at_once.add(number)
        is_message = found.headers is not None or found.payload is not None
        if is_message and not isinstance(command, MessageTransfer):
            why = f"{command.NAME} comes with a header or a body; legal: message.transfer alone"
            return [self._violated(ErrorCode.INTERNAL_ERROR, why, command, number)]
        match command:
            case ExecutionSync():
                if len(self.pending_syncs) == MOST_SYNCS:
                    why = f"{MOST_SYNCS} execution.sync wait; legal: wait for their completion"
                    return [self._violated(ErrorCode.RESOURCE_LIMIT_EXCEEDED, why, command, number)]
            case ExecutionResult(command_id=wire, value=value):
                return [ResultReceived(self, number, nearest(wire or 0, self.sent), value)]
            case ExecutionException(error_code=code, description=text):
                return [ExceptionReceived(self, number, code or 0, text or "")]
            case UnknownCommand(code=code):
                why = f"no command here has the code {code:#06x}: class {code >> 8}"
                return [self._violated(ErrorCode.NOT_IMPLEMENTED, why, command, number)]
            case MessageSubscribe(destination=destination):
                return self._subscribe(number, command, destination or "")
            case MessageSetFlowMode() | MessageFlow() | MessageStop() | MessageFlush():
                return self._take_flow(number, command, command.destination or "")
            case MessageCancel(destination=destination):
                if self.subscriptions.pop(destination or "", None) is None:
                    return [self._unknown(number, command, destination or "")]
        return [
            CommandReceived(
                self, number, command, found.headers, found.payload, found.content_octets
            )
        ]

    def answer(self, event: Event) -> None:
        """Does what the specification asks for where the owner has nothing to say."""
        match event:
            case Ready(control=SessionFlush() as flush):
                self._answer_flush(flush)
            case Ready(control=SessionExpected()):
                self._point()
            case Ready():
                self._control(SessionTimeout(0))  # a session is not kept beyond its attachment
            case SessionDetaching():
                self.detached()
            case CommandsCompleted(known=SequenceSet() as known):
                self._control(SessionKnownCompleted(known))
            case CommandReceived(command=ExecutionSync()) if self.received_incomplete.first != (
                event.command_id
            ):
                self.pending_syncs.append(event.command_id)
            case FlushReceived():
                self.flushed(event)
            case CommandReceived() | FlowReceived() | ResultReceived() | ExceptionReceived():
                self.complete(event.command_id)

    def fail(self, violation: Violation) -> None:
        """Says what is wrong, and leaves."""
        if not self.attached:
            return
        number, method = violation.command_id, violation.method
        if number is None:
            number = (self.received or 0) - 1
        if method == MessageTransfer.CODE:
            method = 0  # it fails at the last frame of its body, which has none
        self.send(
            ExecutionException(
                violation.code,
                on_wire(number),
                method >> 8,
                method & 0xFF,
                field_index=0,
                description=violation.reason[:1000],
                error_info={},
            )
        )
        self.detach()

    def failed(self, code: ErrorCode, reason: str, number: int, command: Command) -> Violation:
        """The violation for a command of the peer's that cannot be executed."""
        return self._violated(code, reason, command, number)

    def ledger(self) -> dict[str, int]:
        """Its counter: `incomplete_commands`, sent and not complete at the peer."""
        return {"incomplete_commands": len(self.sent_incomplete)}

    # -- inside ---------------------------------------------------------------------------------

    def _say(
        self, control: SessionAttach | SessionAttached | SessionDetach | SessionDetached
    ) -> None:
        step = f"S:{control.NAME}"
        following = SESSION_TABLE[self.state].get(step)
        if following is None:
            raise LocalProtocolError(
                f"session {self.name!r} is {self.state.value}: {control.NAME} cannot be sent;"
                f" legal now: {legal_words(self.state)}"
            )
        self.state = following
        self._control(control)

    def _control(self, control: Control) -> None:
        self.connection.send_control(self.channel, control)

    def _answer_flush(self, flush: SessionFlush) -> None:
        if flush.expected:
            # Nothing is ever missing: TCP keeps the order, and no session is resumed.
            expected = () if self.received is None else ((on_wire(self.received),) * 2,)
            self._control(SessionExpected(SequenceSet(expected), ()))
        if flush.confirmed:
            first, last = self.completed.first, self.received
            got = () if first is None or last is None else ((on_wire(first), on_wire(last)),)
            self._control(SessionConfirmed(SequenceSet(got), ()))
        if flush.completed:
            self._tell(known_wanted=True)

    def _take_point(self, control: Control, wire: int, offset: int) -> list[Event]:
        if offset:
            why = f"command-offset is {offset}; legal: 0, for no part of a command is sent again"
            return [self._violated(ErrorCode.NOT_IMPLEMENTED, why, control)]
        if self.received is None:
            self.received = wire
        self._again = self.received - nearest(wire, self.received)
        if self._again < 0:
            why = f"command-point is {wire}, the next command {on_wire(self.received)}: some lack"
            return [self._violated(ErrorCode.INVALID_ARGUMENT, why, control)]
        return []

    def _within(self, commands: SequenceSet, ends: int, control: Control) -> list[tuple[int, int]]:
        """The ranges on this end's count, of commands before `ends`.

        Raises:
            _BeyondError: one of them goes beyond, or backwards.
        """
        found = []
        for low, high in commands.ranges:
            first, last = nearest(low, ends), nearest(high, ends)
            if first > last or last >= ends:
                raise _BeyondError(
                    f"{control.NAME} speaks of commands {low} to {high}; the next one is"
                    f" {on_wire(ends)}"
                )
            found.append((first, last))
        return found

    def _take_completed(self, control: Control, commands: SequenceSet, wanted: bool) -> list[Event]:
        told = self._within(commands, self.sent, control)
        ranges = [one for first, last in told for one in self.sent_incomplete.remove(first, last)]
        for first, last in ranges:
            for number in range(first, last + 1) if self.transfers else ():
                moved = self.transfers.pop(number, None)
                if moved is not None:
                    moved[0].credit.move(moved[1])
        return [CommandsCompleted(self, tuple(ranges), commands if wanted else None)]

    def _take_place(
        self, control: SessionConfirmed | SessionExpected, commands: SequenceSet
    ) -> list[Event]:
        """What the peer has of this end's commands, or wants next: none is kept to be resent."""
        told = self._within(commands, self.sent + 1, control)
        if isinstance(control, SessionConfirmed):
            return []
        if told and told[0][0] < self.sent:
            why = f"session.expected names command {commands.ranges[0][0]}: none is sent again"
            return [self._violated(ErrorCode.INVALID_ARGUMENT, why, control)]
        return [Ready(self, control)]

    def _take_known(self, control: Control, commands: SequenceSet) -> list[Event]:
        for first, last in self._within(commands, self.received or 0, control):
            self.completed.remove(first, last)
        return []

    def _subscribe(self, number: int, command: MessageSubscribe, destination: str) -> list[Event]:
        if destination in self.subscriptions:
            why = f"destination {destination!r} is taken; legal: another one, or cancel it first"
            return [self._violated(ErrorCode.NOT_ALLOWED, why, command, number)]
        if len(self.subscriptions) == MOST_SUBSCRIPTIONS:
            why = f"the session has {MOST_SUBSCRIPTIONS} subscriptions; legal: cancel one first"
            return [self._violated(ErrorCode.RESOURCE_LIMIT_EXCEEDED, why, command, number)]
        for name, value in (("accept", command.accept_mode), ("acquire", command.acquire_mode)):
            if value not in (None, 0, 1):
                why = f"{name}-mode is {value}; legal: 0, 1"
                return [self._violated(ErrorCode.INVALID_ARGUMENT, why, command, number)]
        self.subscriptions[destination] = made = Subscription.of(
            destination, command.queue or "", command.accept_mode, command.acquire_mode
        )
        made.exclusive = command.exclusive
        return [CommandReceived(self, number, command)]

    def _take_flow(
        self,
        number: int,
        command: MessageSetFlowMode | MessageFlow | MessageStop | MessageFlush,
        destination: str,
    ) -> list[Event]:
        found = self.subscriptions.get(destination)
        if found is None and self.connection.is_client:
            # Credit is a subscriber's; what a broker means that sends it is its client's to know.
            return [CommandReceived(self, number, command)]
        if found is None:
            return [self._unknown(number, command, destination)]
        match command:
            case MessageFlow(unit=CreditUnit.MESSAGE | CreditUnit.BYTE as unit, value=value):
                credit = found.credit
                balance = credit.octets if unit == CreditUnit.BYTE else credit.messages
                balance.grant(value or 0)
            case MessageFlow(unit=unit):
                why = f"unit of message.flow is {unit}; legal: 0 (message), 1 (byte)"
                return [self._violated(ErrorCode.INVALID_ARGUMENT, why, command, number)]
            case MessageSetFlowMode(flow_mode=FlowMode.CREDIT | FlowMode.WINDOW as mode):
                found.credit.window = mode == FlowMode.WINDOW
            case MessageSetFlowMode(flow_mode=mode):
                why = f"flow-mode is {mode}; legal: 0 (credit), 1 (window)"
                return [self._violated(ErrorCode.INVALID_ARGUMENT, why, command, number)]
            case MessageStop():
                found.credit.cancel()
            case MessageFlush():
                return [FlushReceived(self, number, found)]
        return [FlowReceived(self, number, found)]

    def _unknown(self, number: int, command: Command, destination: str) -> Violation:
        there = ", ".join(map(repr, self.subscriptions)) or "none"
        why = f"{command.NAME} names no subscription {destination!r}; there are: {there}"
        return self._violated(ErrorCode.NOT_FOUND, why, command, number)

    def _violated(
        self, code: ErrorCode, reason: str, method: Composite, number: int | None = None
    ) -> Violation:
        return Violation(
            Scope.SESSION,
            code,
            reason,
            session=self,
            channel=self.channel,
            name=self.name,
            command_id=number,
            method=method.CODE,
        )


class _BeyondError(Exception):
    """A set of commands that cannot be; the text says why."""
