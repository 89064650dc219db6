"""Frames that were read many at a time, as the rows of a trace: an Arrow table.

Rows that differ in numbers, times, delivery-tag and octets alone are made after one of them, which
`capture_rows` makes: so what is alike in them is what a row made by itself would have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from workbench.amqp10.frame import decode_checked
from workbench.amqp10.observed import ObservedScope

from .bulk_frames import LIKENESSES, NUMBERS, TRANSFER, Frames
from .bulk_observer import ABSENT, COUNTED, Place
from .capture_rows import RowMaker
from .cutter import Cut
from .files import to_table
from .schema import BROKER, CLIENT, Row, arrow_schema

__all__ = ["table_of"]

_COUNTERS = COUNTED[2:]
_OF_LINK = ("delivery_count", "link_credit", "available", "unsettled")
_SIGNS = ("link_credit", "available", "remote_incoming_window")
_KINDS = 4


def table_of(
    maker: RowMaker,
    data: bytes,
    frames: Frames,
    chosen: Any,
    counts: Any,
    places: list[Place],
    numbers: dict[str, Any],
) -> Any:
    """The rows of some frames.

    Args:
        maker: of the run's rows.
        data: what the frames are in.
        frames: all that were read.
        chosen: which of them, in order.
        counts: for each a row of the numbers that `COUNTED` names.
        places: what they concern.
        numbers: `seq`, `frame_id`, `t_us` and `t_raw_us` of each.
    """
    counters = {name: counts[:, place] for place, name in enumerate(COUNTED)}
    first, which = _alike(frames, chosen, counters)
    patterns = []
    for place in first.tolist():
        number = int(chosen[place])
        counted = dict(zip(COUNTED, counts[place].tolist(), strict=True))
        patterns.append(_pattern(maker, data, frames, number, counted, places))
    begins, ends = frames.at[chosen], frames.at[chosen] + frames.size[chosen]
    slices = zip(begins.tolist(), ends.tolist(), strict=True)
    found = {name: pa.array(values) for name, values in numbers.items()}
    found["frame_bytes"] = pa.array(frames.size[chosen])
    found["body_bytes"] = _numbers(
        np.where(frames.kind[chosen] == TRANSFER, frames.body[chosen], ABSENT)
    )
    found["raw"] = pa.array([data[begin:end] for begin, end in slices], pa.binary())
    inner = {"channel": pa.array(frames.channel[chosen], pa.int32())}
    for name in NUMBERS:
        inner[name] = _numbers(frames.numbers[name][chosen])
    inner["delivery_tag"] = _tags(data, frames, chosen)
    ledger = {name: _numbers(counters[name]) for name in _COUNTERS}
    alike = to_table(patterns, raw=False).combine_chunks().to_batches()[0].take(pa.array(which))
    columns = []
    for column in arrow_schema():
        values = found.get(column.name)
        if values is None:
            values = alike.column(column.name)
        if column.name == "frame":
            values = _with_fields(column, values, inner)
        elif column.name == "ledger":
            values = _with_fields(column, values, ledger)
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=arrow_schema())


def _alike(frames: Frames, chosen: Any, counters: dict[str, Any]) -> tuple[Any, Any]:
    """Which rows are alike: the first of each sort, and the sort of each row."""
    sort = counters["place"] * 2 + counters["drain"]
    sort = sort * _KINDS + frames.kind[chosen]
    sort = sort * LIKENESSES + frames.likeness[chosen]
    for name in _SIGNS:
        sort = sort * 3 + np.sign(counters[name]) - ABSENT
    _, first, which = np.unique(sort, return_index=True, return_inverse=True)
    return first, which


def _pattern(
    maker: RowMaker,
    data: bytes,
    frames: Frames,
    number: int,
    counted: dict[str, int],
    places: list[Place],
) -> Row:
    """The row of one frame."""
    at, size = int(frames.at[number]), int(frames.size[number])
    raw = data[at : at + size]
    item = decode_checked(raw, 0, size, raw[4], raw[5], int.from_bytes(raw[6:8], "big"))
    place = places[counted["place"]]
    scope = ObservedScope(
        session=place.session,
        link=place.link,
        link_sender=place.link_sender,
        attach_no=place.attach_no,
        session_ledger={name: counted[name] for name in _COUNTERS if name not in _OF_LINK},
        in_message=place.in_message,
    )
    if place.link_sender is not None:
        known = {name: counted[name] for name in _OF_LINK if counted[name] != ABSENT}
        scope.link_ledger = known | {"drain": bool(counted["drain"])}
    peer = CLIENT if place.from_client else BROKER
    cut = Cut(0, None, item, size, int(frames.body[number]))
    return maker.row(cut, 0, peer, place.connection, scope)


def _numbers(values: Any) -> Any:
    """As a column of whole numbers, null where they are `ABSENT`."""
    absent = values == ABSENT
    return pa.array(values, pa.int64(), mask=absent if absent.any() else None)


def _tags(data: bytes, frames: Frames, chosen: Any) -> Any:
    begins, sizes = frames.tag_at[chosen].tolist(), frames.tag_size[chosen].tolist()
    tags = [
        None if begin < 0 else data[begin : begin + size]
        for begin, size in zip(begins, sizes, strict=True)
    ]
    return pa.array(tags, pa.binary())


def _with_fields(column: Any, structs: Any, found: dict[str, Any]) -> Any:
    """A column of structs, none of them null, with some fields in place of its own."""
    children = [
        found.get(inner.name, structs.field(place)) for place, inner in enumerate(column.type)
    ]
    return pa.StructArray.from_arrays(children, fields=list(column.type))
