"""The fold of `fold` over columns instead of rows: what everybody knows after millions of rows.

A fold keeps the last value of each counter of each end. Of a batch of rows only the last row that
tells a counter matters, and that row is found by column, without making a row of any other. The
result is the same to the last counter; `tests/trace/test_cut.py` holds the two against each other.

What the stepper's words remember beyond counters (`story.Memory`) is gathered on the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from .batches import Batch, Manner, Place, dense, lasts
from .fold import Fold, Scope, State, Value, link_scope, scope_of
from .gates import GATE_EVENTS
from .schema import (
    BROKER,
    CLIENT,
    GROUP_OF,
    LEDGER_FIELDS,
    LINK,
    OBSERVED,
    RECEIVED,
    SENT,
    Row,
)
from .story import CONTROL_KINDS, Memory, Story, is_end

__all__ = ["ColumnFold"]

_Key = tuple[str, Scope]
_OTHER = {CLIENT: BROKER, BROKER: CLIENT}
_PEERS = (CLIENT, BROKER, None)


class ColumnFold:
    """Takes batches of one run in order; `state()` is what `fold` would say.

    Attributes:
        sources: by vantage and scope, where its counters come from (`ledger_source`).
        ends: by connection and peer, the vantage that logs there.
        links: by link, the vantages that logged rows of it, in order.
        gate_seq: the first row at which a hand held or released something; None if none.
    """

    def __init__(self) -> None:
        self.sources: dict[_Key, str] = {}
        self.ends: dict[tuple[str | None, str], str] = {}
        self.links: dict[Scope, list[str]] = {}
        self.gate_seq: int | None = None
        self._fold = Fold()
        self._control = Story(Fold())
        self._more: dict[tuple[str, str | None, Scope | None], bool] = {}
        self._asked: dict[tuple[str | None, Scope | None], int] = {}
        self._answered: dict[tuple[str | None, Scope | None], int] = {}

    @property
    def seq(self) -> int:
        """`seq` of the last row; -1 before the first."""
        return self._fold.seq

    def take(self, rows: Any) -> None:
        """Take in a record batch: rows of one run with `batches.COLUMNS`, in order of `seq`."""
        if not rows.num_rows:
            return
        batch = Batch(rows)
        self._fly(batch)
        self._meet(batch)
        self._count(batch)
        self._brake(batch)
        self._control_frames(batch)
        self._transfers(batch)
        self._echoes(batch)
        self._fold.seq = batch.seq(-1)
        self._fold.t_us = rows.column("t_us")[-1].as_py()

    def note(self, row: Row) -> None:
        """Take in one row, told elsewhere, for what a slice shows beside counters."""
        link = link_scope(row)
        if link is not None:
            self.links.setdefault(link, [])
        if row.event in (SENT, RECEIVED):
            peer = CLIENT if row.vantage.startswith(CLIENT) else BROKER
            self.ends.setdefault((row.connection, peer), row.vantage)
        if row.event in GATE_EVENTS and self.gate_seq is None:
            self.gate_seq = row.seq
        if row.ledger_source:
            told = {GROUP_OF[name] for name in (*(row.ledger or {}), *row.unknown)}
            for group in told | ({LINK} if row.brake is not None and link else set()):
                self.sources[row.vantage, scope_of(row, group)] = row.ledger_source

    def state(self) -> State:
        """The state after the rows so far."""
        return self._fold.state()

    def memory(self) -> Memory:
        """What the words of later rows need to know of these."""
        control = self._control.memory()
        return Memory(
            opened=control.opened,
            initial=control.initial,
            initial_out=control.initial_out,
            more=dict(self._more),
            echo={one for one, seq in self._asked.items() if seq > self._answered.get(one, -1)},
            links={link: list(ends) for link, ends in self.links.items()},
        )

    # -- counters -----------------------------------------------------------------------------

    def _count(self, batch: Batch) -> None:
        told: list[_Told] = []
        for order, field in enumerate(LEDGER_FIELDS):
            values, mask, lost = batch.counter(field.name)
            if mask is None:
                continue
            for place, first, last in batch.lasts(mask):
                value = None if last in lost else values[last].as_py()
                told.append(_Told(first, order, last, place, field.name, value))
        told.sort(key=lambda one: one[:2])  # as the rows would have made them appear
        latest: dict[tuple[_Key, str], int] = {}
        source: dict[_Key, int] = {}
        for one in told:
            group = GROUP_OF[one.name]
            key = one.place.keys[group]
            counters = self._fold.ledgers.setdefault(key, {})
            # Rows of several places may tell one ledger: the last of them holds.
            if one.last > latest.get((key, one.name), -1):
                latest[key, one.name] = one.last
                counters[one.name] = one.value
            if one.place.source and one.last > source.get(key, -1):
                source[key] = one.last
                self.sources[key] = one.place.source

    def _brake(self, batch: Batch) -> None:
        brakes, mask = batch.told("brake")
        if mask is None:
            return
        latest: dict[_Key, int] = {}
        found = [one for one in batch.lasts(mask) if one[0].link is not None]
        for place, _first, last in sorted(found, key=lambda one: one[1]):
            key = place.keys[LINK]
            self._fold.brakes.setdefault(key, "")
            if last > latest.get(key, -1):
                latest[key] = last
                if place.source:
                    self.sources[key] = place.source
                self._fold.brakes[key] = brakes[last].as_py()

    # -- frames in flight ---------------------------------------------------------------------

    def _fly(self, batch: Batch) -> None:
        """Most frames come and go within a batch; only the others are looked at one by one."""
        ids, mask = batch.told("frame_id")
        if mask is None:
            return
        departs = batch.manner(lambda one: one.event == SENT)
        at = np.flatnonzero(mask & (departs | batch.manner(lambda one: one.event == RECEIVED)))
        if not len(at):
            return
        frames, sent = pc.fill_null(ids, 0).to_numpy()[at], departs[at]
        codes, size = dense(frames)
        once = (np.bincount(codes[sent], minlength=size) == 1) & (
            np.bincount(codes[~sent], minlength=size) == 1
        )
        left, came = lasts(codes, sent, size), lasts(codes, ~sent, size)
        passed = once & (left < came)
        if self._fold.in_flight:
            carried = np.fromiter(self._fold.in_flight, np.int64)
            passed &= ~np.isin(frames[np.maximum(left, came)], carried)
        for row in batch.rows(at[~passed[codes]]):
            self._fold.fly(row)

    # -- what words remember --------------------------------------------------------------------

    def _meet(self, batch: Batch) -> None:
        met = sorted(batch.lasts(np.ones(batch.count, bool)), key=lambda one: one[1])
        for place, _first, _last in met:
            if place.link is not None:
                ends = self.links.setdefault(place.link, [])
                if is_end(place.vantage) and place.vantage not in ends:
                    ends.append(place.vantage)
        moved = batch.manner(lambda one: one.event in (SENT, RECEIVED))
        for place, _first, _last in sorted(batch.lasts(moved), key=lambda one: one[1]):
            peer = CLIENT if place.vantage.startswith(CLIENT) else BROKER
            self.ends.setdefault((place.connection, peer), place.vantage)
        if self.gate_seq is None:
            acts = np.flatnonzero(batch.manner(lambda one: one.event in GATE_EVENTS))
            if len(acts):
                self.gate_seq = batch.seq(acts[0])

    def _control_frames(self, batch: Batch) -> None:
        """The few frames that open and end things are told as a story, one by one."""
        for row in batch.rows(np.flatnonzero(batch.manner(lambda one: one.kind in CONTROL_KINDS))):
            self._control.tell(row)

    def _transfers(self, batch: Batch) -> None:
        for peer in _PEERS:
            mask = batch.manner(_is("transfer", peer))
            for place, _first, last in sorted(batch.lasts(mask), key=lambda one: one[2]):
                manner = batch.manner_of(last)
                self._more[place.vantage, peer, place.link] = manner.more and not manner.aborted

    def _echoes(self, batch: Batch) -> None:
        """Who was asked for an answer last, and who has sent a flow last, by what it is about."""
        asking = batch.manner(lambda one: one.echo and one.event in (RECEIVED, OBSERVED))
        new = batch.manner(lambda one: one.event in (SENT, OBSERVED))
        on_link = batch.manner(lambda one: one.on_link)
        for peer in _PEERS:
            flows = batch.manner(_is("flow", peer))
            asked, answered = (self._asked, _OTHER.get(peer or "")), (self._answered, peer)
            for (known, who), mask in ((asked, asking), (answered, new)):
                for of_link in (True, False):
                    for place, _first, last in batch.lasts(flows & mask & (on_link == of_link)):
                        about = place.link if of_link else place.both_ends
                        known[who, about] = max(batch.seq(last), known.get((who, about), -1))


def _is(kind: str, peer: str | None) -> Callable[[Manner], bool]:
    return lambda one: one.kind == kind and one.from_peer == peer


class _Told(NamedTuple):
    first: int
    order: int
    last: int
    place: Place
    name: str
    value: Value
