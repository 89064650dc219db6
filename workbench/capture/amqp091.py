"""The decoder of AMQP 0-9-1: frames of both directions, and the books of the channels."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from workbench.amqp091.errors import DecodeError
from workbench.amqp091.frame import (
    EMPTY_FRAME_SIZE,
    Frame,
    ProtocolHeader,
    Undecodable,
    WireItem,
    encode_item,
    read_frame,
)
from workbench.amqp091.methods import BY_BROKER, BY_CLIENT
from workbench.amqp091.observer import ConnectionObserver
from workbench.capture.decoder import DecodedFrame, Decoder, FrameRecord
from workbench.capture.splitter import FrameSplitter
from workbench.trace.brakes import first as first_brake
from workbench.trace.brakes import prefetch_brakes
from workbench.trace.clauses import clause_091
from workbench.trace.flatten_091 import fields_091
from workbench.trace.schema import AMQP_0_9_1
from workbench.trace.secret_fields import without_secret

__all__ = ["Amqp091Decoder", "FrameSplitter091"]

_TYPES = (1, 2, 3, 8)
_BODY = 3


class FrameSplitter091(FrameSplitter):
    """What frames of AMQP 0-9-1 look like [4.2.3]."""

    protocol = AMQP_0_9_1
    header_size = EMPTY_FRAME_SIZE - 1
    start = re.compile(rb"(?s)[\x01\x02\x03\x08]..\x00[\x00-\x03]")
    at_end = 1  # each ends with an octet of its own
    header = ProtocolHeader

    def size(self, data: bytes, at: int, limit: int) -> int:
        """Octets of the frame that begins here."""
        size = int.from_bytes(data[at + 3 : at + 7], "big") + EMPTY_FRAME_SIZE
        if data[at] not in _TYPES:
            raise DecodeError(f"TYPE {data[at]}, legal are 1, 2, 3 and 8", at)
        if size > limit:
            raise DecodeError(f"a frame of {size:,} octets, believed are up to {limit:,}", at + 3)
        return size

    def read(self, raw: bytes) -> tuple[Frame, int | None]:
        """A whole frame, and the octets of a body in it."""
        item = read_frame(raw, 0, len(raw))
        return item, len(item.payload) if isinstance(item.payload, bytes) else None

    def is_frame(self, raw: bytes) -> bool:
        """Whether it can be decoded whole."""
        try:
            return not isinstance(read_frame(raw, 0, len(raw)).payload, Undecodable)
        except DecodeError:
            return False

    def without_body(self, have: bytes, size: int) -> tuple[Frame, int] | None:
        """A frame of a body whose octets are lost, and how many they are."""
        if have[0] != _BODY:
            return None
        return Frame(int.from_bytes(have[1:3], "big"), b""), size - EMPTY_FRAME_SIZE

    def fault(self, size: int, reason: str) -> tuple[str, str]:
        """RabbitMQ's reason tells type and octets, and behind them what is wrong."""
        octets, _, what = reason.rpartition(": ")
        return f"a frame of {size:,} octets cannot be decoded: {what}", octets


class Amqp091Decoder(Decoder):
    """Reads one connection of AMQP 0-9-1; see `Decoder`."""

    splitter = FrameSplitter091
    observer = ConnectionObserver
    client_kinds = frozenset(kind.NAME for kind in BY_CLIENT)
    broker_kinds = frozenset(kind.NAME for kind in BY_BROKER)

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it."""
        item, raw = frame.item, frame.raw
        if not self._begun[side]:
            self._begun[side] = True
            if from_client and not isinstance(item, ProtocolHeader):
                self._observer.lost(from_client)
        if self._redact:
            item = _redacted(item)
            raw = None if raw is None else encode_item(item)
        scope = self._observer.see(item, from_client)
        if scope.unknown:
            self._unknown.update(scope.unknown)
        brake: str | None = None
        held: tuple[str, ...] = ()
        if scope.consumer is not None and scope.ledger is not None:
            held = prefetch_brakes(scope.ledger)
            brake = first_brake(held)
        kind, fields = fields_091(item)
        return FrameRecord(
            kind, fields, scope.session, None, None, None, scope.ledger, scope.unknown, brake,
            held, frame.body_bytes, frame.size, raw, clause_091(kind), scope.consumer,
        )  # fmt: skip


def _redacted(item: WireItem) -> WireItem:
    """The frame with zeros where secrets and message bodies are."""
    if not isinstance(item, Frame):
        return item
    said: Any = item.payload
    if isinstance(said, bytes):
        return Frame(item.channel, bytes(len(said)))
    if isinstance(said, Undecodable):
        clean = said.octets[:4] + bytes(max(0, len(said.octets) - 4))
        return Frame(item.channel, replace(said, octets=clean))
    return Frame(item.channel, without_secret(said))
