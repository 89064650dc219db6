"""The decoder of AMQP 0-10: frames of both directions, commands that are not complete, and credit.

A producer's window is its own affair and is never told on the wire: what a capture knows is how
many commands of each peer the other has not completed, and what credit a subscription has.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

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
from workbench.amqp010.observer import ConnectionObserver
from workbench.capture.decoder import DecodedFrame, Decoder, FrameRecord
from workbench.capture.report import ConnectionReport
from workbench.capture.splitter import FrameSplitter
from workbench.trace.clauses import clause_010
from workbench.trace.flatten_010 import fields_010
from workbench.trace.schema import AMQP_0_10, BROKER
from workbench.trace.secret_fields import without_secret

__all__ = ["Amqp010Decoder", "FrameSplitter010"]


class FrameSplitter010(FrameSplitter):
    """What frames of AMQP 0-10 look like."""

    protocol = AMQP_0_10
    header_size = FRAME_HEADER_SIZE
    start = re.compile(rb"(?s)[\x00-\x0f][\x00-\x03]..\x00[\x00\x01]..\x00{4}")
    at_end = 1  # twelve octets of each are its header
    header = ProtocolHeader

    def size(self, data: bytes, at: int, limit: int) -> int:
        """Octets of the frame that begins here."""
        return check_frame_header(data[at : at + FRAME_HEADER_SIZE], limit)

    def read(self, raw: bytes) -> tuple[Frame, int | None]:
        """A whole frame, and the octets of a body in it."""
        item = decode_frame(raw)
        body = item.segment_type == SegmentType.BODY
        return item, len(raw) - FRAME_HEADER_SIZE if body else None

    def without_body(self, have: bytes, size: int) -> tuple[Frame, int] | None:
        """A frame of a body whose octets are lost, and how many they are."""
        if have[1] != SegmentType.BODY:
            return None
        empty = have[:2] + FRAME_HEADER_SIZE.to_bytes(2, "big") + have[4:FRAME_HEADER_SIZE]
        return decode_frame(empty), size - FRAME_HEADER_SIZE


class Amqp010Decoder(Decoder):
    """Reads one connection of AMQP 0-10; see `Decoder`."""

    splitter = FrameSplitter010
    observer = ConnectionObserver
    client_kinds = frozenset(
        {"connection.start-ok", "connection.tune-ok", "connection.open", "session.attach",
         "message.subscribe", "message.flow", "queue.declare", "queue.query", "exchange.query"}
    )  # fmt: skip
    broker_kinds = frozenset(
        {"connection.start", "connection.tune", "connection.open-ok", "session.attached",
         "execution.result", "execution.exception"}
    )  # fmt: skip

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it."""
        item, raw = frame.item, frame.raw
        if self._redact:
            item = _redacted(item)
            raw = None if raw is None else encode_item(item)
        kind, fields = fields_010(item)
        scope = self._observer.see(frame.item, from_client, frame.size or 0)
        self._unknown.update(scope.unknown)
        link = scope.destination
        return FrameRecord(
            kind, fields, scope.session, link, None if link is None else BROKER, None,
            scope.ledger or None, scope.unknown, None, (), frame.body_bytes, frame.size, raw,
            clause_010(kind),
        )  # fmt: skip

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds assumptions and what cannot be known."""
        super().explain(report, peers)
        if self._observer.sessions_seen:
            report.unknown.append("the window of a producer, which is never told on the wire")


def _redacted(item: WireItem) -> WireItem:
    """The frame with zeros where secrets and message bodies are."""
    if not isinstance(item, Frame):
        return item
    said: Any = item.content
    if isinstance(said, bytes):  # a body, or a part of something that takes several frames
        return replace(item, content=bytes(len(said)))
    return replace(item, content=without_secret(said))
