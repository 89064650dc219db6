"""The decoder of AMQP 0-9-1: frames of both directions, and the books of the channels."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from workbench.amqp091.frame import (
    Frame,
    ProtocolHeader,
    Undecodable,
    WireItem,
    encode_item,
)
from workbench.amqp091.observer import ConnectionObserver
from workbench.capture.decoder import DecodedFrame, Decoder, FrameRecord
from workbench.capture.report import ConnectionReport
from workbench.capture.splitter_091 import FrameSplitter091
from workbench.trace.brakes import first as first_brake
from workbench.trace.brakes import prefetch_brakes
from workbench.trace.clauses import clause_091
from workbench.trace.flatten_091 import fields_091
from workbench.trace.secret_fields import without_secret

__all__ = ["Amqp091Decoder"]

_ASKED = (
    "connection.open", "connection.update-secret", "channel.open", "exchange.declare",
    "exchange.delete", "exchange.bind", "exchange.unbind", "queue.declare", "queue.bind",
    "queue.unbind", "queue.purge", "queue.delete", "basic.qos", "basic.consume", "basic.recover",
    "tx.select", "tx.commit", "tx.rollback", "confirm.select",
)  # fmt: skip
"""What a client asks and a broker answers."""


class Amqp091Decoder(Decoder):
    """Reads one connection of AMQP 0-9-1; see `Decoder`."""

    splitter = FrameSplitter091
    client_kinds = frozenset(
        {"connection.start-ok", "connection.secure-ok", "connection.tune-ok", "basic.publish",
         "basic.get", "basic.reject", "basic.recover-async", *_ASKED}
    )  # fmt: skip
    broker_kinds = frozenset(
        {"connection.start", "connection.secure", "connection.tune", "connection.blocked",
         "connection.unblocked", "basic.deliver", "basic.return", "basic.get-ok",
         "basic.get-empty", *(f"{kind}-ok" for kind in _ASKED)}
    )  # fmt: skip

    def __init__(self, *whole: bool, **how: bool) -> None:
        super().__init__(*whole, **how)
        self._observer = ConnectionObserver()
        self._begun = [False, False]

    def observe(self, side: int, frame: DecodedFrame, from_client: bool) -> FrameRecord:
        """What a frame concerns, and the counters right behind it."""
        item, raw = frame.item, frame.raw
        if not self._begun[side]:
            self._begun[side] = True
            if from_client and not isinstance(item, ProtocolHeader):
                self._observer.lost(from_client)
        if raw is None:
            self._cut[side] += 1
        if self._redact:
            item = _redacted(item)
            raw = None if raw is None else encode_item(item)
        scope = self._observer.see(item, from_client)
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

    def lost(self, from_client: bool) -> None:
        """Octets of a peer gave no frame."""
        self._observer.lost(from_client)

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds assumptions and what cannot be known."""
        super().explain(report, peers)
        report.assumptions.extend(self._observer.assumptions)


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
