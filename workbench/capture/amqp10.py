"""The decoder of AMQP 1.0: frames of both directions, and what `amqp10.observer` counts by them."""

from __future__ import annotations

import re

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import Frame, ProtocolHeader, decode_checked
from workbench.amqp10.observer import ConnectionObserver, ObservedScope
from workbench.amqp10.performatives import Begin, Open, Transfer, decode_performative
from workbench.capture.decoder import MAX_FRAME, DecodedFrame, Decoder, FrameRecord
from workbench.capture.redact import Redactor
from workbench.capture.report import ConnectionReport, LinkReport
from workbench.capture.splitter import FrameSplitter
from workbench.trace.brakes import first, link_brakes
from workbench.trace.clauses import clause_for
from workbench.trace.flatten import frame_fields
from workbench.trace.schema import AMQP_1_0, BROKER, CLIENT

__all__ = ["Amqp10Decoder", "FrameSplitter10", "frame_record", "link_reports"]

SMALLEST_LIMIT = 64 * 1024
"""A frame of this size is believed even where the peer's max-frame-size is smaller: a peer that
breaks the limit is worth seeing."""


# A frame that begins with a performative: SIZE, DOFF 2, TYPE 0 or 1, channel, and the descriptor
# as small ulong, ulong or symbol; or one without any, with which nothing or a frame goes on.
# Frames with an extended header are rare enough to be missed when looking for a boundary.
_FRAME_START = re.compile(
    rb"(?s)....\x02[\x00\x01]..\x00"
    rb"(?:\x53[\x10-\x18\x40-\x44]|\x80\x00{7}[\x10-\x18\x40-\x44]|\xa3.amqp:)"
    rb"|\x00\x00\x00\x08\x02\x00..(?=\Z|....\x02[\x00\x01])"
)


class FrameSplitter10(FrameSplitter):
    """What frames of AMQP 1.0 look like [2.3]."""

    protocol = AMQP_1_0
    header_size = 8
    start = _FRAME_START
    at_end = 2
    header = ProtocolHeader

    def size(self, data: bytes, at: int, limit: int) -> int:
        """Octets of the frame that begins here."""
        size = int.from_bytes(data[at : at + 4], "big")
        if not 8 <= size <= limit:
            raise DecodeError(f"SIZE {size}, believed are 8 to {limit}", at)
        if data[at + 4] < 2:
            raise DecodeError(f"DOFF {data[at + 4]}, the least is 2", at + 4)
        if data[at + 5] > 1:
            raise DecodeError(f"TYPE {data[at + 5]}, legal are 0 (AMQP) and 1 (SASL)", at + 5)
        return size

    def read(self, raw: bytes) -> tuple[Frame, int]:
        """A whole frame, and the octets of its payload."""
        item = decode_checked(raw, 0, len(raw), raw[4], raw[5], raw[6] << 8 | raw[7])
        return item, len(item.payload)

    def without_body(self, have: bytes, size: int) -> tuple[Frame, int] | None:
        """A transfer whose performative is there and whose payload is not, or not all of it."""
        body = 4 * have[4]
        if have[5] != 0 or not 8 <= body < len(have):
            return None
        try:
            performative, end = decode_performative(have, body, len(have))
        except DecodeError:
            return None
        if type(performative) is not Transfer:
            return None
        return Frame(int.from_bytes(have[6:8], "big"), performative), size - end


class Amqp10Decoder(Decoder):
    """Reads one connection of AMQP 1.0; see `Decoder`."""

    splitter = FrameSplitter10
    observer = ConnectionObserver
    client_kinds = frozenset({"sasl-init", "sasl-response"})
    broker_kinds = frozenset({"sasl-mechanisms", "sasl-challenge", "sasl-outcome"})

    def __init__(self, *whole: bool, **how: bool) -> None:
        super().__init__(*whole, **how)
        self._redactor = Redactor() if self._redact else None

    def author(self, frame: DecodedFrame) -> str | None:
        """The peer that alone sends such a frame; a broker begins no session [2.7.2]."""
        begin = getattr(frame.item, "performative", None)
        if type(begin) is Begin:
            return CLIENT if begin.remote_channel is None else BROKER
        return super().author(frame)

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it."""
        if not self._begun[side]:
            self._begun[side] = True
            if type(frame.item) is not ProtocolHeader:
                self._observer.lost(from_client)
        if self._redactor is not None:
            raw, item = self._redactor.frame(frame.raw, frame.item, from_client)
            frame = DecodedFrame(frame.offset, raw, item, frame.size, frame.body_bytes)
        item = frame.item
        if type(item) is Frame and type(item.performative) is Open:
            largest = item.performative.max_frame_size or MAX_FRAME
            self._splitters[1 - side].limit = min(MAX_FRAME, max(SMALLEST_LIMIT, largest))
        scope = self._observer.see(item, from_client)
        if scope.unknown:
            self._unknown.update(scope.unknown)
        return frame_record(frame, scope, CLIENT if from_client else BROKER)

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds links, assumptions and what cannot be known."""
        super().explain(report, peers)
        report.links = link_reports(self._observer)


def link_reports(observer: ConnectionObserver) -> list[LinkReport]:
    """The links that an observer has seen, in order of first appearance."""
    return [
        LinkReport(
            session=link.session,
            name=link.called,
            sender=_peer(link.sender_is_client),
            attach_no=link.attach_no,
            source=link.source,
            target=link.target,
            deliveries=link.deliveries,
        )
        for link in observer.links
    ]


def _peer(is_client: bool | None) -> str | None:
    return None if is_client is None else CLIENT if is_client else BROKER


def frame_record(frame: DecodedFrame, scope: ObservedScope, from_peer: str) -> FrameRecord:
    """What a row tells of a frame; the same as `taps.frame_row` makes.

    Args:
        frame: the frame.
        scope: what it concerns.
        from_peer: who sent it.
    """
    item = frame.item
    kind, fields = frame_fields(item)
    ledger = scope.session_ledger
    if scope.link_ledger:
        ledger = {**scope.link_ledger, **(ledger or {})}
    link, link_sender = scope.link, scope.link_sender
    if link_sender is not None:
        link = scope.called
    brake: str | None = None
    held: tuple[str, ...] = ()
    if link is not None and ledger and "link_credit" in ledger:
        held = link_brakes(ledger, in_message=scope.in_message)
        brake = first(held)
    return FrameRecord(
        kind, fields, scope.session, link, link_sender, scope.attach_no,
        ledger if ledger or scope.unknown else None, scope.unknown, brake, held,
        frame.body_bytes if kind == "transfer" else None, frame.size, frame.raw,
        clause_for(
            kind,
            fields,
            from_receiver=None if link_sender is None else from_peer != link_sender,
        ),
    )  # fmt: skip
