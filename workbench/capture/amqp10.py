"""The decoder of AMQP 1.0: frames of both directions, and what `amqp10.observer` counts by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

from workbench.amqp10.frame import Frame, ProtocolHeader
from workbench.amqp10.observer import ConnectionObserver, ObservedScope
from workbench.amqp10.performatives import Open
from workbench.capture.decoder import MAX_FRAME, DecodedFrame, Decoder, Found, FrameRecord
from workbench.capture.redact import Redactor
from workbench.capture.report import ConnectionReport, LinkReport
from workbench.capture.splitter import FrameSplitter
from workbench.trace.brakes import brakes, first
from workbench.trace.clauses import clause_for
from workbench.trace.flatten import frame_fields
from workbench.trace.schema import BROKER, CLIENT
from workbench.trace.words import counted

__all__ = ["Amqp10Decoder", "frame_record", "link_reports"]

SMALLEST_LIMIT = 64 * 1024
"""A frame of this size is believed even where the peer's max-frame-size is smaller: a peer that
breaks the limit is worth seeing."""


class Amqp10Decoder(Decoder):
    """Reads one connection of AMQP 1.0; see `Decoder`."""

    splitter = FrameSplitter
    client_kinds = frozenset({"sasl-init", "sasl-response"})
    broker_kinds = frozenset({"sasl-mechanisms", "sasl-challenge", "sasl-outcome"})

    def __init__(self, *whole: bool, **how: bool) -> None:
        super().__init__(*whole, **how)
        self._observer = ConnectionObserver()
        self._redactor = Redactor() if self._redact else None
        self._begun = [False, False]
        self._synced_by = [0, 0]

    def restarted(self, first: bool, second: bool) -> Self:
        """The same connection from its beginning; what showed its protocol is kept."""
        fresh = super().restarted(first, second)
        fresh._synced_by = [splitter.synced_by for splitter in self._splitters]
        return fresh

    def feed(self, side: int, data: bytes) -> list[Found]:
        """The frames that these octets complete."""
        splitter = self._splitters[side]
        found = super().feed(side, data)
        if splitter.late:
            # What the other end said meanwhile came first here and did not come first there.
            splitter.late = False
            self._observer.lost(True)
            self._observer.lost(False)
        return found

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
        if frame.raw is None:
            self._cut[side] += 1
        elif type(item) is Frame and type(item.performative) is Open:
            largest = item.performative.max_frame_size or MAX_FRAME
            self._splitters[1 - side].limit = min(MAX_FRAME, max(SMALLEST_LIMIT, largest))
        scope = self._observer.see(item, from_client)
        if scope.unknown:
            self._unknown.update(scope.unknown)
        return frame_record(frame, scope, CLIENT if from_client else BROKER)

    def lost(self, from_client: bool) -> None:
        """Octets of a peer gave no frame."""
        self._observer.lost(from_client)

    def proof(self, side: int) -> str:
        """What shows its protocol where a side's beginning is not there; else empty."""
        frames = self._synced_by[side] or self._splitters[side].synced_by
        if not frames:
            return ""
        return counted(frames, "valid frame") + (" in a row" if frames > 1 else "")

    def untold(self, side: int) -> Iterator[str]:
        """What a side said, and the capture does not have."""
        splitter = self._splitters[side]
        if splitter.became is not None:
            what = "encrypted" if splitter.became == "tls" else "not AMQP 1.0"
            yield f"from stream offset {splitter.offset} on it is {splitter.became}, {what}"
        if self._cut[side]:
            transfers = counted(self._cut[side], "transfer")
            yield f"payload of {transfers}, which the capture kept only in part"

    def explain(self, report: ConnectionReport, peers: tuple[str, str]) -> None:
        """Adds links, assumptions and what cannot be known."""
        super().explain(report, peers)
        report.assumptions.extend(self._observer.assumptions)
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
        held = brakes(
            link_credit=ledger["link_credit"],
            available=ledger.get("available"),
            remote_incoming_window=ledger.get("remote_incoming_window"),
            in_message=scope.in_message,
        )
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
