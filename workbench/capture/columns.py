"""The rows that an import makes, numbered and timed, collected by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import astuple

from workbench.capture.decoder import FrameRecord, Unreadable
from workbench.trace.files import table_of_columns
from workbench.trace.schema import FRAME_COLUMNS, INTERNAL, OBSERVED, WIRE_VANTAGE

__all__ = ["RowColumns"]

_RECORD = FrameRecord.__struct_fields__
_COLUMNS = (
    "t_us", "t_raw_us", "event", "frame_id", "from_peer", "protocol", "connection",
    "ledger_source", "details", *_RECORD,
)  # fmt: skip
"""Columns that differ from row to row, in the order in which `RowColumns` keeps their values; those
of a frame's fields, which has a column for each protocol, are one here."""

BATCH_ROWS = 20_000
BATCH_OCTETS = 16 * 1024 * 1024
"""A table has so many rows, or its frames so many octets: frames may be large, memory is not."""


class RowColumns:
    """Collects the rows of one run.

    Args:
        run: name of the run.
        timed: the times given are those of a packet clock; else they only keep rows apart.

    Attributes:
        waiting: rows that nobody has taken away.
    """

    def __init__(self, run: str, *, timed: bool = True) -> None:
        self.run = run
        self._timed = timed
        self.waiting = 0
        self._taken = 0
        self._start_us: int | None = None
        self._t_us = 0
        self._frames = 0
        self._octets = 0  # of the frames that wait
        self._values: list[Any] = []

    @property
    def count(self) -> int:
        """Rows made so far."""
        return self._taken + self.waiting

    @property
    def is_full(self) -> bool:
        """It is time to take what waits."""
        return self.waiting >= BATCH_ROWS or self._octets >= BATCH_OCTETS

    def begin(self, t_us: int) -> None:
        """The run starts at this packet time, microseconds since the epoch."""
        self._start_us = t_us

    def frame(
        self, record: FrameRecord, protocol: str, t_raw_us: int, from_peer: str, connection: str
    ) -> None:
        """Adds the row of a frame.

        Args:
            record: what its decoder says of it.
            protocol: of the connection, as the schema names it.
            t_raw_us: when it could be read, microseconds.
            from_peer: who sent it.
            connection: its name.
        """
        self._values += (
            self._time(t_raw_us), t_raw_us if self._timed else None, OBSERVED, self._frames,
            from_peer, protocol, connection, None if record.ledger is None else OBSERVED, None,
        )  # fmt: skip
        self._values += astuple(record)
        if record.raw is not None:
            self._octets += len(record.raw)
        self._frames += 1
        self.waiting += 1

    def unreadable(self, place: Unreadable, t_raw_us: int, from_peer: str, connection: str) -> None:
        """Adds the row of a place that gave no frame; arguments as those of `frame`."""
        about = {
            "from_peer": from_peer,
            "offset": place.offset,
            "octets": place.octets if place.lost is None else place.lost,
            "text": place.text,
        }
        self._values += (
            self._time(t_raw_us), t_raw_us, "error" if place.lost is None else "gap", None, None,
            INTERNAL, connection, None, about, *(None for _ in _RECORD),
        )  # fmt: skip
        self.waiting += 1

    def _time(self, t_raw_us: int) -> int:
        """Time in the run: the running maximum of the packet clock."""
        if self._start_us is None:
            self._start_us = t_raw_us
        t_us = t_raw_us - self._start_us
        if t_us > self._t_us:
            self._t_us = t_us
        return self._t_us

    def take(self) -> Any:
        """The rows so far as an Arrow table in order of `seq`; they are no longer kept here."""
        count, values = self.waiting, self._values
        columns: dict[str, Sequence[Any]] = {
            name: values[at :: len(_COLUMNS)] for at, name in enumerate(_COLUMNS)
        }
        frames, protocols = columns.pop("frame"), columns["protocol"]
        columns |= {
            name: [frame if each == protocol else None
                   for frame, each in zip(frames, protocols, strict=True)]
            for protocol, name in FRAME_COLUMNS.items() if protocol in protocols
        } | {
            "run": [self.run] * count,
            "vantage": [WIRE_VANTAGE] * count,
            "seq": range(self._taken, self._taken + count),
        }  # fmt: skip
        self._values = []
        self._taken += count
        self.waiting = self._octets = 0
        return table_of_columns(columns)
