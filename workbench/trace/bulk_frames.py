"""Many frames at once, as columns: transfers, flows and dispositions in their usual encoding.

It reads what the codec reads, for the same three frames and with the same encodings, of
thousands of frames at a time: field by field, each time for all frames. A frame that it cannot read
so is marked as odd; `amqp.frame` then reads it, or says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.amqp10.frame import FRAME_HEADER_SIZE
from workbench.amqp10.outcome import Accepted
from workbench.amqp10.performatives import Disposition, Flow, Transfer

from .bulk_observer import ABSENT
from .bulk_packets import stretches, u16, u32

__all__ = [
    "COUNTED_OF",
    "DISPOSITION",
    "FLOW",
    "NUMBERS",
    "ODD",
    "TRANSFER",
    "Frames",
    "read_frames",
]

ODD, TRANSFER, FLOW, DISPOSITION = range(4)

LIKENESSES = 64

_FLOW_NUMBERS = (
    "next_incoming_id", "incoming_window", "next_outgoing_id", "outgoing_window", "handle",
    "delivery_count", "link_credit", "available",
)  # fmt: skip
NUMBERS: tuple[str, ...] = (*_FLOW_NUMBERS, "delivery_id", "first", "last")
"""Fields whose numbers differ from frame to frame, in no order of the specification."""

COUNTED_OF: dict[int, tuple[str, ...]] = {
    TRANSFER: ("channel", "handle", "delivery_id", "settled", "more"),
    FLOW: ("channel", *_FLOW_NUMBERS, "drain"),
    DISPOSITION: ("channel", "receiver", "first", "last", "settled"),
}
"""What the methods of `BulkObserver` take, in their order."""

_LIST8 = 0xC0
_DESCRIPTORS = {
    TRANSFER: Transfer.DESCRIPTOR, FLOW: Flow.DESCRIPTOR, DISPOSITION: Disposition.DESCRIPTOR,
}  # fmt: skip
_FIELDS = FRAME_HEADER_SIZE + 6  # the first field, behind `00 53 xx c0 size count`
_ZERO, _SMALL, _WIDE, _NULL = 0x43, 0x52, 0x70, 0x40
_WIDTH = np.zeros(256, np.int64)
_WIDTH[[_ZERO, _SMALL, _WIDE, _NULL]] = 1, 2, 5, 1
_TRUE, _FALSE = 0x41, 0x42
_BINARY, _LONGEST_TAG = 0xA0, 32
_MEANT = np.full(256, -2, np.int64)
_MEANT[[_NULL, _FALSE, _TRUE]] = ABSENT, 0, 1
_ACCEPTED = np.frombuffer(Accepted().encode(), np.uint8)


@dataclass(slots=True, eq=False)
class Frames:
    """Frames, one place in each array for each.

    Attributes:
        at: where it begins.
        size: its octets.
        kind: `TRANSFER`, `FLOW`, `DISPOSITION`, or `ODD`: not read here.
        channel: of its header.
        body: octets of its payload.
        numbers: by name (`NUMBERS`) its numbers, `ABSENT` where it has none.
        tag_at: where a transfer's delivery-tag begins; ABSENT if it has none.
        tag_size: octets of it.
        likeness: equal for frames of a kind which differ in nothing but the numbers and the tag;
            below `LIKENESSES`.
        flags: by name (`settled`, `more`, `drain`, `receiver`) 1, 0, or `ABSENT`.
    """

    at: Any
    size: Any
    kind: Any
    channel: Any
    body: Any
    numbers: dict[str, Any] = field(default_factory=dict)
    tag_at: Any = None
    tag_size: Any = None
    likeness: Any = None
    flags: dict[str, Any] = field(default_factory=dict)


class _Fields:
    """The fields of frames of one kind, read one after the other.

    Attributes:
        good: which frames could be read so far.
    """

    def __init__(self, octets: Any, at: Any) -> None:
        self.octets = octets
        self.at = at + _FIELDS
        self.count = octets[at + _FIELDS - 1].astype(np.int64)
        self.stop = self.at - 1 + octets[at + _FIELDS - 2]
        self.good = np.ones(len(at), bool)
        self._number = 0

    def _next(self) -> Any:
        """Which frames have the next field."""
        self._number += 1
        return self.count >= self._number

    def number(self, *legal: int, null: bool = False) -> Any:
        """A number, encoded in one of these ways; `null`: it may be absent in other ways too."""
        here = self._next()
        code = self.octets[self.at]
        value = np.where(code == _SMALL, self.octets[self.at + 1], 0).astype(np.int64)
        wide = np.flatnonzero(here & (code == _WIDE))
        if len(wide):
            value[wide] = u32(self.octets, self.at[wide] + 1)
        value[code == _NULL] = ABSENT
        value[~here] = ABSENT
        known = np.isin(code, (*legal, _NULL) if null else legal)
        self.good &= known | ~here
        self.at = self.at + np.where(here, _WIDTH[code], 0)
        return value

    def flag(self) -> Any:
        """True, false or null: 1, 0 or `ABSENT`."""
        here = self._next()
        value = np.where(here, _MEANT[self.octets[self.at]], ABSENT)
        self.good &= value >= ABSENT
        self.at = self.at + here
        return value

    def binary(self) -> tuple[Any, Any]:
        """Where octets are, and how many; `ABSENT` and 0 for none."""
        here = self._next()
        code = self.octets[self.at]
        there = here & (code == _BINARY)
        size = np.where(there, self.octets[self.at + 1], 0).astype(np.int64)
        begins = np.where(there, self.at + 2, ABSENT)
        self.good &= (there | ~here | (code == _NULL)) & (size <= _LONGEST_TAG)
        self.at = self.at + np.where(there, size + 2, here)
        return begins, size

    def accepted(self) -> Any:
        """The state `accepted`, or nothing: 1 or 0."""
        here = self._next()
        found = stretches(self.octets, self.at, len(_ACCEPTED))
        self.good &= (found == _ACCEPTED).all(axis=1) | ~here
        self.at = self.at + np.where(here, len(_ACCEPTED), 0)
        return here.astype(np.int64)


def read_frames(octets: Any, at: Any, size: Any) -> Frames:
    """Reads frames.

    Args:
        octets: what they are in, with `PADDING` behind them.
        at: where each begins; all of it is there.
        size: the octets of each, 8 or more.
    """
    count = len(at)
    frames = Frames(
        at, size, np.full(count, ODD), u16(octets, at + 6), np.zeros(count, np.int64),
        {name: np.full(count, ABSENT, np.int64) for name in NUMBERS},
        np.full(count, ABSENT, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64),
        {name: np.full(count, ABSENT) for name in ("settled", "more", "drain", "receiver")},
    )  # fmt: skip
    head = stretches(octets, at, _FIELDS)
    usual = (head[:, 4] == 2) & (head[:, 5] == 0) & (head[:, 8] == 0) & (head[:, 9] == 0x53)
    usual &= (head[:, 11] == _LIST8) & (size >= _FIELDS)
    for kind, read in ((TRANSFER, _transfers), (FLOW, _flows), (DISPOSITION, _dispositions)):
        some = np.flatnonzero(usual & (head[:, 10] == _DESCRIPTORS[kind]))
        if len(some):
            fields = _Fields(octets, at[some])
            good = read(frames, fields, some)
            behind = at[some] + size[some] - fields.stop
            good = good & fields.good & (fields.at == fields.stop)
            good &= (behind >= 0) if kind == TRANSFER else (behind == 0)
            frames.kind[some[good]] = kind
            frames.body[some] = behind
    return frames


def _transfers(frames: Frames, fields: _Fields, some: Any) -> Any:
    good = (fields.count >= 1) & (fields.count <= 6)
    numbers, flags = frames.numbers, frames.flags
    numbers["handle"][some] = fields.number(_ZERO, _SMALL)
    numbers["delivery_id"][some] = fields.number(_ZERO, _SMALL, _WIDE, _NULL)
    frames.tag_at[some], frames.tag_size[some] = fields.binary()
    form = fields.number(_ZERO, _NULL)
    flags["settled"][some] = settled = fields.flag()
    flags["more"][some] = more = fields.flag()
    numbered = np.minimum(numbers["delivery_id"][some], 0)
    frames.likeness[some] = _packed((form, 2), (settled, 3), (more, 3), (numbered, 2))
    return good


def _flows(frames: Frames, fields: _Fields, some: Any) -> Any:
    good = (fields.count >= 4) & (fields.count <= 10)
    numbers, flags = frames.numbers, frames.flags
    for place, name in enumerate(_FLOW_NUMBERS):
        null = () if 1 <= place <= 3 else (_NULL,)
        numbers[name][some] = fields.number(_ZERO, _SMALL, _WIDE, *null)
    flags["drain"][some] = drain = fields.flag()
    echo = fields.flag()
    stopped = np.minimum(numbers["link_credit"][some], 1)
    on_link = np.minimum(numbers["handle"][some], 0)
    frames.likeness[some] = _packed((drain, 3), (echo, 3), (stopped, 3), (on_link, 2))
    return good


def _dispositions(frames: Frames, fields: _Fields, some: Any) -> Any:
    good = (fields.count >= 2) & (fields.count <= 5)
    numbers, flags = frames.numbers, frames.flags
    flags["receiver"][some] = role = fields.flag()
    numbers["first"][some] = fields.number(_ZERO, _SMALL, _WIDE)
    numbers["last"][some] = fields.number(_ZERO, _SMALL, _WIDE, _NULL)
    flags["settled"][some] = settled = fields.flag()
    state = fields.accepted()
    frames.likeness[some] = _packed((role, 3), (settled, 3), (state + ABSENT, 2))
    return good & (role >= 0)


def _packed(*parts: tuple[Any, int]) -> Any:
    """One number for several, each from `ABSENT` to so many steps further."""
    whole: Any = 0
    for values, steps in parts:
        whole = whole * steps + (values - ABSENT)
    return whole
