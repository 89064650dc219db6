"""What everybody knew before a row of a large trace, from the few rows that tell it.

A fold keeps the last value of each counter of each end, and what words remember (`story.Memory`) is
the last or the first of something too. So of rows that are about the same, of the same kind, and
tell the same counters, only the first and the last matter: one aggregation of Arrow finds them, and
they are replayed as a short trace would be. So are frames that open or end things; and of frames in
flight it is noted that they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .files import from_table
from .fold import Fold, Scope, State, link_scope, scope_of
from .gates import GATE_EVENTS
from .schema import (
    BLOCKED,
    BROKER,
    CLIENT,
    GROUP_OF,
    LINK,
    RECEIVED,
    SENT,
    UNBLOCKED,
    Row,
    fitted,
)
from .story import CONTROL_KINDS, Memory, Story

__all__ = ["COLUMNS", "TEXTS", "Before"]

TEXTS: tuple[str, ...] = (
    "vantage", "event", "from_peer", "connection", "link", "link_sender", "consumer", "queue",
    "kind", "ledger_source", "brake",
)  # fmt: skip
"""Columns of few words: read as numbers of words they cost a tenth."""

COLUMNS: tuple[str, ...] = (
    *TEXTS, "run", "seq", "t_us", "frame_id", "session", "attach_no", "ledger", "unknown",
    "frame.role", "frame.handle", "frame.echo", "frame.more", "frame.aborted",
    "frame.next_outgoing_id", "frame.initial_delivery_count", "frame.protocol_id",
)  # fmt: skip
"""The columns that a replay reads; the rest of a row is only shown."""

_ALIKE = (*TEXTS[:-1], "session", "attach_no")
_FLAGS = ("echo", "more", "aborted")


class Before:
    """Takes batches of one run in order; `state()` is what `fold` says of all their rows.

    Attributes:
        sources: by vantage and scope, where its counters come from (`ledger_source`).
        ends: by connection and peer, the vantage that logs there.
        gate_seq: the first row at which a hand held or released something; None if none.
        blocking: rows that began what blocks a sender and is not over, beside its counters.
    """

    def __init__(self) -> None:
        self.sources: dict[tuple[str, Scope], str] = {}
        self.ends: dict[tuple[str | None, str], str] = {}
        self.gate_seq: int | None = None
        self.blocking: dict[tuple[Any, ...], Row] = {}
        self._story = Story(Fold())

    @property
    def seq(self) -> int:
        """`seq` of the last row; -1 before the first."""
        return self._story.folding.seq

    def take(self, batch: Any) -> None:
        """Take in a record batch: rows of one run with `COLUMNS`, in order of `seq`."""
        if not batch.num_rows:
            return
        telling = _telling(batch)
        chosen = telling | _flying(batch, telling, self._story.folding.in_flight)
        rows = from_table(fitted(batch.filter(pa.array(chosen))))
        for row, tells in zip(rows, telling[chosen].tolist(), strict=True):
            if tells:
                self._story.tell(row)
                self.note(row)
            else:
                self._story.folding.fly(row)

    def note(self, row: Row) -> None:
        """Take in one row for what a slice shows beside counters and words."""
        link = link_scope(row)
        if row.event in (SENT, RECEIVED):
            peer = CLIENT if row.vantage.startswith(CLIENT) else BROKER
            self.ends.setdefault((row.connection, peer), row.vantage)
        if row.event in GATE_EVENTS and self.gate_seq is None:
            self.gate_seq = row.seq
        what = (row.kind, row.connection, row.vantage, link)
        if row.event in ("block", "alarm-set"):
            self.blocking[what] = row
        elif row.event in ("unblock", "alarm-clear"):
            self.blocking.pop(what, None)
        elif row.kind == BLOCKED and row.event != SENT:
            self.blocking[BLOCKED, row.connection] = row
        elif row.kind == UNBLOCKED and row.event != SENT:
            self.blocking.pop((BLOCKED, row.connection), None)
        if row.ledger_source:
            told = {GROUP_OF[name] for name in (*(row.ledger or {}), *row.unknown)}
            for group in told | ({LINK} if row.brake is not None and link else set()):
                self.sources[row.vantage, scope_of(row, group)] = row.ledger_source

    def state(self) -> State:
        """The state after the rows so far."""
        return self._story.folding.state()

    def memory(self, links: Iterable[Scope] = ()) -> Memory:
        """What the words of later rows need to know of these.

        Args:
            links: all of the run; rows of some may not have been taken in.
        """
        memory = deepcopy(self._story.memory)
        for link in links:
            memory.links.setdefault(link, [])
        return memory


def _telling(batch: Any) -> Any:
    """Which rows tell the last or the first of something: an array of bool."""
    at = pa.array(np.arange(batch.num_rows))
    ends = _grouped(_alike(batch), {"at": at}, ("min", "max"))
    found = _bools(pc.is_in(batch.column("kind"), pa.array(CONTROL_KINDS))).copy()
    for name in ("at_min", "at_max"):
        found[ends[name].to_numpy()] = True
    return found


def _flying(batch: Any, telling: Any, in_flight: Iterable[int]) -> Any:
    """Which rows say of frames whether they are in flight: an array of bool.

    A frame that came and went within the batch is none; of every other frame, and of each that a
    telling row is about, all rows are needed.
    """
    at = pa.array(np.arange(batch.num_rows))
    ids, event = batch.column("frame_id"), batch.column("event")
    sent, came = pc.equal(event, SENT), pc.equal(event, RECEIVED)
    never = pa.scalar(None, pa.int64())
    moves = {"sent": pc.if_else(sent, at, never), "came": pc.if_else(came, at, never)}
    frames = _grouped({"id": ids}, moves, ("count", "max"))
    once = pc.and_(pc.equal(frames["sent_count"], 1), pc.equal(frames["came_count"], 1))
    passed = pc.and_(once, pc.less(frames["sent_max"], frames["came_max"]))
    others = frames["id"].filter(pc.invert(pc.fill_null(passed, False))).combine_chunks()
    carried = pa.array(list(in_flight), pa.int64())
    whole = pa.concat_arrays([others, carried, ids.filter(pa.array(telling))])
    moved = pc.and_(pc.or_(sent, came), pc.is_valid(ids))
    return _bools(pc.and_(moved, pc.is_in(ids, whole)))


def _alike(batch: Any) -> dict[str, Any]:
    """What makes rows alike: what they are about, their kind, and which counters they tell."""
    keys = {name: batch.column(name) for name in _ALIKE}
    frame, ledger, unknown = (batch.column(name) for name in ("frame", "ledger", "unknown"))
    keys["role"] = pc.struct_field(frame, "role")
    bits = [pc.is_valid(pc.struct_field(frame, "handle")), pc.is_valid(batch.column("brake"))]
    bits += [pc.fill_null(pc.struct_field(frame, name), False) for name in _FLAGS]
    bits += [pc.is_valid(pc.struct_field(ledger, field.name)) for field in ledger.type]
    keys["bits"] = pa.array(sum(_bools(bit).astype(np.int64) << n for n, bit in enumerate(bits)))
    if unknown.null_count < len(unknown):
        keys["unknown"] = pc.binary_join(unknown, " ")
    return keys


def _grouped(keys: dict[str, Any], values: dict[str, Any], how: tuple[str, ...]) -> Any:
    """One row for each combination of keys: each value taken together in these ways."""
    keys = {
        name: key.indices if pa.types.is_dictionary(key.type) else key for name, key in keys.items()
    }
    wanted = [(name, one) for name in values for one in how]
    return pa.table(keys | values).group_by(list(keys), use_threads=False).aggregate(wanted)


def _bools(mask: Any) -> Any:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
