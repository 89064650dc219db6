"""The frames of a StepperDoc: what each carries in a few words, its octets, its fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.trace.fold import InFlight, Scope
from workbench.trace.octets import places
from workbench.trace.schema import AMQP_1_0, EXTRA_JSON, Row
from workbench.trace.words import spec_name, value_text

from . import theme
from .pack import Octets, Table, Texts, differences, trimmed

# Octets kept per frame; a longer payload says how much of it is left out.
RAW_LIMIT = 4096
# Characters kept of a field that is octets.
HEX_LIMIT = 34

# What a frame shows of itself while it is on the wire, in this order; the rest is in its fields.
_SHOWN = {
    "flow": ("delivery_count", "link_credit", "available", "drain", "echo"),
    "transfer": ("delivery_id", "settled", "more", "aborted"),
    "disposition": ("first", "last", "settled"),
    "attach": ("name", "handle", "initial_delivery_count"),
    "begin": ("next_outgoing_id", "incoming_window", "outgoing_window"),
    "open": ("container_id", "max_frame_size"),
    "detach": ("handle", "closed"),
    # AMQP 0-9-1
    "basic.qos": ("prefetch_count", "global"),
    "basic.publish": ("exchange", "routing_key", "mandatory"),
    "basic.deliver": ("delivery_tag", "redelivered"),
    "basic.get-ok": ("delivery_tag", "message_count"),
    "basic.ack": ("delivery_tag", "multiple"),
    "basic.nack": ("delivery_tag", "multiple", "requeue"),
    "basic.reject": ("delivery_tag", "requeue"),
    "basic.consume": ("queue", "consumer_tag", "no_ack"),
    "content-header": ("body_size",),
    "queue.declare": ("queue", "passive"),
    "connection.close": ("reply_code", "reply_text"),
    "channel.close": ("reply_code", "reply_text"),
    "connection.blocked": ("reason",),
}
_SESSION_FLOW = ("next_incoming_id", "incoming_window", "next_outgoing_id", "outgoing_window")


class Frames:
    """Each frame of the rows once, in order of first appearance.

    Args:
        texts: the document's table of sentences.
        lane_of_peer: lifeline of (connection, peer).
        link_place: the document's number of the link that a row concerns, or -1.
        spans: whether to work out where each field lies in the octets.
    """

    def __init__(
        self,
        texts: Texts,
        lane_of_peer: Callable[[str | None, str | None], int],
        link_place: Callable[[Row], int],
        *,
        spans: bool,
    ) -> None:
        self.heads = Table()
        self.layouts = Table()
        self.packed: list[list[Any]] = []
        self._octets = Octets()
        self._texts = texts
        self._lane_of_peer = lane_of_peer
        self._link_place = link_place
        self._spans = spans
        self._places: dict[Any, int] = {}
        self._first_values: list[list[Any]] = []

    def place(self, row: Row) -> int:
        """The frame's number in the document; the frame is stored when it is new."""
        key = row.frame_id
        if key not in self._places:
            self._places[key] = len(self.packed)
            self.packed.append(self._pack(row, len(self.packed)))
        return self._places[key]

    def before(self, flying: InFlight) -> int:
        """The number of a frame that was sent before the first row: only its kind is known."""
        link = flying.link or Scope("link")
        return self.place(
            Row(
                run="",
                seq=flying.seq,
                t_us=flying.t_us,
                vantage="",
                event="sent",
                protocol=AMQP_1_0,
                frame_id=flying.frame_id,
                from_peer=flying.from_peer,
                connection=flying.connection,
                session=link.session,
                link=link.link,
                link_sender=link.link_sender,
                attach_no=link.attach_no,
                kind=flying.kind,
            )
        )

    def known(self, frame_id: Any) -> int | None:
        """The number of a frame that has been stored, else None."""
        return self._places.get(frame_id)

    def way(self, place: int) -> tuple[str, str]:
        """(connection, sending peer) of a stored frame."""
        head = self.heads.items[self.packed[place][0]]
        return head[4], head[6]

    def _pack(self, row: Row, place: int) -> list[Any]:
        connection, peer = row.connection, row.from_peer
        other = "broker" if peer == "client" else "client"
        style = theme.frame_style(row.kind)
        head = [
            row.kind or "frame",
            style.name,
            self._lane_of_peer(connection, peer),
            self._lane_of_peer(connection, other),
            connection or "",
            self._link_place(row),
            peer or "",
            style.glyph,
        ]
        raw = row.raw or b""
        kept = raw[:RAW_LIMIT]
        stored = self._octets.store(place, kept, row.kind) if kept else 0
        layout, changed = self._fields(row, kept if len(kept) == len(raw) else raw)
        return trimmed(
            [
                self.heads.index(tuple(head), head),
                self._texts.ref(summary(row)),
                row.frame_bytes or len(raw),
                stored,
                layout + 1,
                changed,
            ]
        )

    def _fields(self, row: Row, raw: bytes) -> tuple[int, list[Any]]:
        fields = _spans(raw, row.protocol) if raw and self._spans else []
        if not fields:
            fields = [
                (spec_name(name), "", "", -1, -1, value_text(value))
                for name, value in row.fields.items()
                if name != EXTRA_JSON
            ]
            fields += [
                (spec_name(str(name)), "", "", -1, -1, value_text(value))
                for name, value in row.extra.items()
            ]
        shape = tuple(field[:5] for field in fields)
        values = [_number_or_text(field[5]) for field in fields]
        known = len(self.layouts.items)
        layout = self.layouts.index(
            shape, [[*field, value] for field, value in zip(shape, values, strict=True)]
        )
        if layout == known:
            self._first_values.append(values)
        return layout, differences(self._first_values[layout], values)


def summary(row: Row) -> str:
    """What the frame carries, in the fewest words: `link-credit 6 · delivery-count 20`."""
    frame = row.fields
    names: Sequence[str] = _SHOWN.get(row.kind or "", ())
    if row.kind == "flow" and frame.get("handle") is None:
        names = _SESSION_FLOW
    parts = []
    for name in names:
        value = frame.get(name)
        if value is None or value is False:
            continue
        parts.append(spec_name(name) if value is True else f"{spec_name(name)} {value_text(value)}")
    if row.kind == "transfer" and row.body_bytes:
        parts.append(f"{row.body_bytes} B")
    return " · ".join(parts)


def fields_of(row: Row) -> list[list[Any]]:
    """Name, value, first octet, octet after the last, and depth of each field of a frame."""
    return [
        [spec_name(place.path), _short(place.text), place.start, place.end, place.path.count(".")]
        for place in places(row.raw or b"", row.protocol)
    ]


def _spans(raw: bytes, protocol: str) -> list[tuple[str, str, str, int, int, str]]:
    return [
        (spec_name(place.path), *place[1:5], _short(place.text)) for place in places(raw, protocol)
    ]


def _short(text: str) -> str:
    """Octets as a value: the first few, for they all stand in the bytes beside the field."""
    if not text.startswith("0x") or len(text) <= HEX_LIMIT:
        return text
    _octets, bracket, length = text.partition(" (")
    return f"{text[:HEX_LIMIT]}…{bracket}{length}"


def _number_or_text(text: str) -> int | str:
    """Short whole numbers as numbers: the page is smaller, and what is shown is the same."""
    if text.isdecimal() and len(text) < 16 and str(int(text)) == text:
        return int(text)
    return text
