"""The decoder of AMQP 0-10: frames of both directions, commands that are not complete, and credit.

A producer's window is its own affair and is never told on the wire: what a capture knows is how
many commands of each peer the other has not completed, and what credit a subscription has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from workbench.amqp010.commands import (
    CreditUnit,
    FlowMode,
    MessageCancel,
    MessageFlow,
    MessageSetFlowMode,
    MessageStop,
    MessageSubscribe,
    MessageTransfer,
)
from workbench.amqp010.composite import Command
from workbench.amqp010.controls import (
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStartOk,
    SessionAttach,
    SessionCommandPoint,
    SessionCompleted,
    SessionDetached,
)
from workbench.amqp010.credit import Subscription
from workbench.amqp010.errors import DecodeError
from workbench.amqp010.frame import (
    FRAME_HEADER_SIZE,
    Frame,
    ProtocolHeader,
    SegmentType,
    WireItem,
    check_frame_header,
    decode_frame,
    encode_item,
)
from workbench.amqp010.ranges import RangeSet, nearest
from workbench.amqp010.values import SequenceSet
from workbench.capture.decoder import DecodedFrame, FrameRecord, WithBodies
from workbench.capture.report import ConnectionReport
from workbench.capture.splitter_091 import FrameSplitter091
from workbench.trace.clauses import clause_010
from workbench.trace.flatten_010 import fields_010
from workbench.trace.schema import BROKER, CLIENT

__all__ = ["Amqp010Decoder", "FrameSplitter010"]

_SECRETS: dict[Any, str] = {
    ConnectionStartOk: "response",
    ConnectionSecure: "challenge",
    ConnectionSecureOk: "response",
}
_LARGEST = 65_535  # the size of a frame has two octets
INCOMPLETE = "incomplete_commands"


class FrameSplitter010(FrameSplitter091):
    """Splits the octets of one direction into frames; the rules are those of AMQP 0-9-1's."""

    protocol = "AMQP 0-10"
    header_size = FRAME_HEADER_SIZE
    start = re.compile(rb"(?s)[\x00-\x0f][\x00-\x03]..\x00[\x00\x01]..\x00{4}")
    error = DecodeError

    def protocol_header(self, octets: bytes) -> ProtocolHeader:
        """The eight octets with which a connection begins."""
        return ProtocolHeader(*octets[4:])

    def size(self, data: bytes, at: int = 0) -> int | None:
        """Octets of the frame that begins here; None if none does, or its header is not there."""
        begin = data[at : at + FRAME_HEADER_SIZE]
        if len(begin) < FRAME_HEADER_SIZE:
            return None
        try:
            return check_frame_header(begin, _LARGEST)
        except DecodeError:
            return None

    def read(self, data: bytes, at: int, end: int) -> tuple[Frame, int | None]:
        """A whole frame, and the octets of a body in it."""
        item = decode_frame(data[at:end])
        body = item.segment_type == SegmentType.BODY
        return item, end - at - FRAME_HEADER_SIZE if body else None

    def is_frame(self, data: bytes, at: int, end: int) -> bool:
        """Whether what stands here can be decoded whole."""
        try:
            decode_frame(data[at:end])
        except DecodeError:
            return False
        return True

    def without_body(self, have: bytes) -> tuple[Frame, int] | None:
        """A frame of a body whose octets are lost, and how many they are."""
        size = self.size(have)
        if size is None or have[1] != SegmentType.BODY:
            return None
        empty = have[:2] + FRAME_HEADER_SIZE.to_bytes(2, "big") + have[4:FRAME_HEADER_SIZE]
        return decode_frame(empty), size - FRAME_HEADER_SIZE


@dataclass(slots=True)
class _Commands:
    """Commands of one peer on a session.

    Attributes:
        sent: the next one, on a count that does not wrap; None: its point was not seen.
        incomplete: those that the other peer has not completed.
    """

    sent: int | None = None
    incomplete: RangeSet = field(default_factory=RangeSet)


@dataclass(slots=True)
class _Session:
    """A session as a capture shows it.

    Attributes:
        ordinal: which of the connection.
        commands: by peer.
        subscriptions: by destination, as the broker sends under them.
        transfers: messages sent under one and not completed, with their octets so far.
        open: the destination whose message is under way.
    """

    ordinal: int
    commands: dict[str, _Commands] = field(
        default_factory=lambda: {CLIENT: _Commands(), BROKER: _Commands()}
    )
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    transfers: dict[int, tuple[Subscription, int]] = field(default_factory=dict)
    open: int | None = None

    def lost(self) -> None:
        """What was said here is not known any more."""
        self.commands = {CLIENT: _Commands(), BROKER: _Commands()}
        self.subscriptions.clear()
        self.transfers.clear()


class Amqp010Decoder(WithBodies[FrameSplitter010]):
    """Reads one connection of AMQP 0-10; see `Decoder`."""

    protocol = "AMQP 0-10"
    client_kinds = frozenset(
        {"connection.start-ok", "connection.tune-ok", "connection.open", "session.attach",
         "message.subscribe", "message.flow", "queue.declare", "queue.query", "exchange.query"}
    )  # fmt: skip
    broker_kinds = frozenset(
        {"connection.start", "connection.tune", "connection.open-ok", "session.attached",
         "execution.result", "execution.exception"}
    )  # fmt: skip

    def __init__(
        self, first: bool, second: bool, *, known: bool = False, redact: bool = False
    ) -> None:
        super().__init__(
            FrameSplitter010(first, trusted=known),
            FrameSplitter010(second, trusted=known),
            redact=redact,
        )
        self._sessions: dict[int, _Session] = {}
        self._made = 0

    def restarted(self, first: bool, second: bool) -> Amqp010Decoder:
        """The same connection from its beginning, known to be AMQP 0-10."""
        return Amqp010Decoder(first, second, known=True, redact=self._redact)

    def kind(self, frame: DecodedFrame) -> str:
        """The control's or command's name, `header`, `body` and so on."""
        return fields_010(frame.item)[0]

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it."""
        item, raw = frame.item, frame.raw
        if raw is None:
            self._without_body[side] += 1
        if self._redact:
            item = _redacted(item)
            raw = None if raw is None else encode_item(item)
        kind, fields = fields_010(item)
        session, link, ledger = self._see(frame, CLIENT if from_client else BROKER)
        unknown = () if session is None or INCOMPLETE in ledger else (INCOMPLETE,)
        self._unknown.update(unknown)
        return FrameRecord(
            kind, fields, session, link, BROKER if link is not None else None, None,
            ledger or None, unknown, None, (), frame.body_bytes, frame.size, raw,
            clause_010(kind),
        )  # fmt: skip

    def lost(self, from_client: bool) -> None:
        """Octets of a peer gave no frame: commands may have been among them."""
        for session in self._sessions.values():
            session.lost()

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds assumptions and what cannot be known."""
        super().explain(report, peers)
        if self._sessions or self._made:
            report.unknown.append("the window of a producer, which is never told on the wire")

    # -- inside ---------------------------------------------------------------------------------

    def _see(
        self, frame: DecodedFrame, peer: str
    ) -> tuple[int | None, str | None, dict[str, int | bool]]:
        """Session, destination and counters of a frame."""
        item = frame.item
        content = None if isinstance(item, ProtocolHeader) else item.content
        name = getattr(content, "NAME", "")
        if isinstance(item, ProtocolHeader) or name.startswith("connection."):
            return None, None, {}
        if isinstance(content, SessionAttach) or item.channel not in self._sessions:
            self._made += 1
            self._sessions[item.channel] = _Session(self._made)
        session = self._sessions[item.channel]
        link = self._take(session, frame, peer)
        if isinstance(content, SessionDetached):
            del self._sessions[item.channel]
        mine = session.commands[peer]
        ledger: dict[str, int | bool] = {}
        if mine.sent is not None:
            ledger[INCOMPLETE] = len(mine.incomplete)
        if link is not None:
            ledger |= session.subscriptions[link].ledger()
        return session.ordinal, link, ledger

    def _take(self, session: _Session, frame: DecodedFrame, peer: str) -> str | None:
        """Work a frame into the books; the destination that it concerns."""
        item, content = frame.item, frame.item.content
        mine, other = session.commands[peer], session.commands[BROKER if peer == CLIENT else CLIENT]
        match content:
            case SessionCommandPoint(command_id=first):
                mine.sent = first or 0
            case SessionCompleted(commands=commands) if other.sent is not None:
                for low, high in (commands or SequenceSet()).ranges:
                    first, last = nearest(low, other.sent), nearest(high, other.sent)
                    for begin, end in other.incomplete.remove(first, last):
                        self._completed(session, begin, end)
        if item.segment_type == SegmentType.COMMAND and item.first_frame and mine.sent is not None:
            mine.incomplete.add(mine.sent, mine.sent)
            mine.sent += 1
        link = getattr(content, "destination", None)
        if isinstance(content, Command) and link is not None:
            self._credit(session, content, mine)
        elif item.segment_type in (SegmentType.HEADER, SegmentType.BODY) and peer == BROKER:
            self._octets(session, (frame.size or 0) - FRAME_HEADER_SIZE)
        return link if link in session.subscriptions else None

    def _credit(self, session: _Session, command: Command, sent: _Commands) -> None:
        """What a command does to a subscription."""
        destination = str(command.destination)  # type: ignore[attr-defined]
        if isinstance(command, MessageSubscribe):
            session.subscriptions[destination] = Subscription.of(
                destination, command.queue or "", command.accept_mode, command.acquire_mode
            )
        found = session.subscriptions.get(destination)
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
                del session.subscriptions[destination]
            case MessageTransfer():
                found.credit.consume(0)
                session.open = None if sent.sent is None else sent.sent - 1
                if session.open is not None:
                    session.transfers[session.open] = found, 0

    @staticmethod
    def _octets(session: _Session, octets: int) -> None:
        """Of a message that is under way so many octets more have been sent."""
        if session.open is None or session.open not in session.transfers:
            return
        found, before = session.transfers[session.open]
        session.transfers[session.open] = found, before + octets
        balance = found.credit.octets
        if not balance.unlimited and found.credit.window:
            balance.used += octets
        elif not balance.unlimited:
            balance.allocated -= octets

    @staticmethod
    def _completed(session: _Session, first: int, last: int) -> None:
        for number in [one for one in session.transfers if first <= one <= last]:
            found, octets = session.transfers.pop(number)
            found.credit.move(octets)


def _redacted(item: WireItem) -> WireItem:
    """The frame with zeros where secrets and message bodies are."""
    if not isinstance(item, Frame):
        return item
    said: Any = item.content
    if isinstance(said, bytes):  # a body, or a part of something that takes several frames
        return replace(item, content=bytes(len(said)))
    name = _SECRETS.get(type(said))
    if name is None:
        return item
    return replace(item, content=replace(said, **{name: bytes(len(getattr(said, name) or b""))}))
