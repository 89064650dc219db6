"""What a watcher of a connection knows: the books of its sessions, by the frames that pass.

A capture may lose frames: how many commands were among them is not known, and what they granted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .commands import (
    CreditUnit,
    FlowMode,
    MessageCancel,
    MessageFlow,
    MessageSetFlowMode,
    MessageStop,
    MessageSubscribe,
    MessageTransfer,
)
from .composite import Command
from .controls import SessionAttach, SessionCommandPoint, SessionCompleted, SessionDetached
from .credit import Subscription, subscription_name
from .frame import FRAME_HEADER_SIZE, Frame, ProtocolHeader, SegmentType, WireItem, encode_item
from .ranges import RangeSet, nearest
from .scope import NOWHERE, ItemScope
from .states import CLIENT
from .values import SequenceSet

__all__ = ["ConnectionObserver"]

INCOMPLETE = "incomplete_commands"


@dataclass(slots=True)
class _Commands:
    """Commands of one peer on a session.

    Attributes:
        sent: the next one, on a count that does not wrap; None: its point was not seen.
        incomplete: those that the other peer has not completed.
    """

    sent: int | None = None
    incomplete: RangeSet = field(default_factory=RangeSet)

    def complete(self, told: SequenceSet) -> RangeSet:
        """Takes out what a session.completed tells of; returns what of it was there."""
        found = RangeSet()
        if self.sent is not None:
            for low, high in told.ranges:
                first, last = nearest(low, self.sent), nearest(high, self.sent)
                for one in self.incomplete.remove(first, last):
                    found.add(*one)
        return found


def _both() -> dict[bool, _Commands]:
    return {from_client: _Commands() for from_client in (True, False)}


@dataclass(slots=True)
class _Transfer:
    """A message that is sent and not completed.

    Attributes:
        subscription: under which.
        number: of its command; None: that is not known.
        octets: those of it that have come so far.
    """

    subscription: Subscription
    number: int | None
    octets: int = 0


@dataclass(slots=True)
class _Session:
    """A session as its frames show it.

    Attributes:
        ordinal: which of the connection.
        commands: by whether the client sends them.
        subscriptions: by destination, as the broker sends under them.
        transfers: messages sent under one and not completed.
        open: the one that is under way.
    """

    ordinal: int
    commands: dict[bool, _Commands] = field(default_factory=_both)
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    transfers: list[_Transfer] = field(default_factory=list)
    open: _Transfer | None = None

    def lost(self) -> None:
        """What was said here is not known any more."""
        self.commands = _both()
        self.subscriptions.clear()
        self.transfers.clear()
        self.open = None

    def take(self, item: Frame, from_client: bool, size: int | None) -> str | None:
        """Work a frame into the books; the destination that it concerns."""
        content = item.content
        mine, other = self.commands[from_client], self.commands[not from_client]
        match content:
            case SessionCommandPoint(command_id=first):
                mine.sent = first or 0
            case SessionCompleted(commands=commands):
                completed = other.complete(commands or SequenceSet())
                if from_client:
                    self._completed(completed)
        if item.segment_type == SegmentType.COMMAND and item.first_frame and mine.sent is not None:
            mine.incomplete.add(mine.sent, mine.sent)
            mine.sent += 1
        link = subscription_name(content, from_client)
        if isinstance(content, MessageTransfer) and not from_client:
            self.open = None  # what it is sent under may not be known
        if isinstance(content, Command) and link is not None:
            self._credit(link, content, mine)
        elif item.segment_type in (SegmentType.HEADER, SegmentType.BODY) and not from_client:
            self._octets((len(encode_item(item)) if size is None else size) - FRAME_HEADER_SIZE)
        return link if link in self.subscriptions else None

    def _credit(self, destination: str, command: Command, sent: _Commands) -> None:
        """What a command does to a subscription."""
        if isinstance(command, MessageSubscribe):
            self.subscriptions[destination] = Subscription.of(
                destination, command.queue or "", command.accept_mode, command.acquire_mode
            )
        found = self.subscriptions.get(destination)
        if found is None:
            return
        match command:
            case MessageFlow(unit=CreditUnit.BYTE, value=value):
                found.credit.octets.grant(value or 0)
            case MessageFlow(value=value):
                found.credit.messages.grant(value or 0)
            case MessageSetFlowMode(flow_mode=mode):
                found.credit.window = mode == FlowMode.WINDOW
            case MessageStop():
                found.credit.cancel()
            case MessageCancel():
                del self.subscriptions[destination]
            case MessageTransfer():
                found.credit.consume(0)
                self.open = _Transfer(found, None if sent.sent is None else sent.sent - 1)
                self.transfers.append(self.open)

    def _octets(self, octets: int) -> None:
        """Of a message that is under way so many octets more have been sent."""
        if self.open is None:
            return
        self.open.octets += octets
        credit = self.open.subscription.credit
        if not credit.octets.unlimited and credit.window:
            credit.octets.used += octets
        elif not credit.octets.unlimited:
            credit.octets.allocated -= octets

    def _completed(self, commands: RangeSet) -> None:
        """The client has completed these; one without a number may be among them."""
        left = []
        for one in self.transfers:
            credit = one.subscription.credit
            if one.number is None:
                if credit.window:  # whether it is given back, nobody knows
                    self.subscriptions.pop(one.subscription.destination, None)
            elif one.number in commands:
                credit.move(one.octets)
            else:
                left.append(one)
        self.transfers = left


class ConnectionObserver:
    """Follows one AMQP 0-10 connection.

    Args:
        end: `client` or `broker` to shadow that end: the counters are always its own; None gives
            those of the end that sent the frame.

    Attributes:
        sessions_seen: how many sessions it has met.
    """

    def __init__(self, end: str | None = None) -> None:
        self.sessions_seen = 0
        self.assumptions: list[str] = []
        self._end = end
        self._sessions: dict[int, _Session] = {}

    def see(self, item: WireItem, from_client: bool, size: int | None = None) -> ItemScope:
        """Takes in one frame or protocol header and returns what it concerns.

        Args:
            item: the frame.
            from_client: who sent it.
            size: its octets; worked out if None and they count.
        """
        content = None if isinstance(item, ProtocolHeader) else item.content
        name = getattr(content, "NAME", "")
        if isinstance(item, ProtocolHeader) or name.startswith("connection."):
            return NOWHERE
        if isinstance(content, SessionAttach) or item.channel not in self._sessions:
            self.sessions_seen += 1
            self._sessions[item.channel] = _Session(self.sessions_seen)
        session = self._sessions[item.channel]
        destination = session.take(item, from_client, size)
        if isinstance(content, SessionDetached):
            del self._sessions[item.channel]
        of_client = from_client if self._end is None else self._end == CLIENT
        mine = session.commands[of_client]
        known = mine.sent is not None
        ledger = {INCOMPLETE: len(mine.incomplete)} if known else {}
        unknown = () if known else (INCOMPLETE,)
        if destination is None or self._end == CLIENT:  # it keeps no count of what it has granted
            return ItemScope(session.ordinal, ledger=ledger, unknown=unknown)
        ledger |= session.subscriptions[destination].ledger()
        return ItemScope(session.ordinal, destination, not of_client, ledger, unknown)

    def lost(self, from_client: bool) -> None:
        """Octets of a peer gave no frame: commands may have been among them."""
        for session in self._sessions.values():
            session.lost()
