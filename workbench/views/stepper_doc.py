"""StepperDoc: the slice of a trace that the stepper shows, as plain JSON.

Python works out everything here that takes knowledge of the protocol (what changed, the formula
with its numbers, the clause, the sentence, where a field lies in the octets, which counters of the
two ends are comparable). The browser applies deltas and draws. The shape is described field by
field in `stepper_doc.schema.json`; `replay` is the reference reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

from workbench.trace.cut import Earlier
from workbench.trace.explain import Explanation, explain
from workbench.trace.fold import Scope, State, link_scope, scope_of
from workbench.trace.gates import Gates
from workbench.trace.schema import GROUP_OF, OBSERVED, RECEIVED, SENT, WIRE_VANTAGE, Row
from workbench.trace.taps import other_peer
from workbench.trace.words import visible

from . import theme
from .frames import Frames
from .ledgers import BRAKE, Slots, link_tables
from .pack import Table, Texts, trimmed

FORMAT = "amqp-flow-workbench/stepper"
VERSION = 1

_NEVER = object()

# What a row does to the frames in flight; the browser knows these five numbers.
NOTHING, DEPARTS, ARRIVES, HELD, RELEASED, SEEN = range(6)
_FLIGHT = {SENT: DEPARTS, RECEIVED: ARRIVES, OBSERVED: SEEN}


def schema() -> dict[str, Any]:
    """The JSON Schema of a StepperDoc."""
    text = resources.files(__package__).joinpath("stepper_doc.schema.json").read_text("utf-8")
    return json.loads(text)


def build(
    rows: Iterable[Row],
    *,
    start: State | None = None,
    earlier: Earlier | None = None,
    title: str = "",
    note: str = "",
    explanations: Iterable[Explanation] | None = None,
    spans: bool = True,
    begin: int | None = None,
) -> dict[str, Any]:
    """Make the document for a run or a slice of one.

    Args:
        rows: trace rows in order of `seq`.
        start: fold just before the first row (`trace.fold`), None if the rows begin the run.
        earlier: what else a slice shows of the rows before it.
        title: shown above the stepper; a name of the run if empty.
        note: one sentence about the run's end or origin, shown under the title.
        explanations: one per row; worked out from the rows if not given.
        spans: whether to work out where each field lies in the octets.
        begin: `seq` of the last row of the set-up: playing from the end begins there. None begins
            at the start.

    Returns:
        A StepperDoc of version 1: numbers, strings, lists and dicts only.
    """
    rows = list(rows)
    if explanations is None:
        explanations = explain(rows, start)
    builder = _Builder(rows, spans=spans, earlier=earlier)
    builder.begin(start)
    for row, explanation in zip(rows, explanations, strict=True):
        builder.add(row, explanation)
    doc = builder.document(title=title, note=note)
    if begin is not None and rows:
        doc["begin"] = max(0, min(len(rows), begin - rows[0].seq + 1))
    return doc


class _Builder:
    """Gathers tables while it goes through the rows once."""

    def __init__(self, rows: Sequence[Row], *, spans: bool, earlier: Earlier | None) -> None:
        self.rows = rows
        self.earlier = earlier = earlier or Earlier()
        self.texts = Texts()
        self.slots = Slots()
        self.heads = Table()
        self.clauses = Table()
        self.links = Table()
        self.rows_of_link: dict[int, int] = {}
        self.lanes = Table()
        self.packed: list[list[Any]] = []
        self.values: dict[int, Any] = {}
        self.start_cells: list[Any] = []
        self.start_flights: list[int] = []
        self.ends = dict(earlier.ends)
        _add_ends(self.ends, rows)
        about = {link.connection for link in earlier.links}
        self.connections = sorted({row.connection for row in rows if row.connection} | about)
        self.frames = Frames(self.texts, self.lane_of_peer, self.link_place, spans=spans)
        self.t_us = rows[0].t_us if rows else 0
        self.gates = Gates()

    # -- names ------------------------------------------------------------------------------

    def lane_of_peer(self, connection: str | None, peer: str | None) -> int:
        """The lifeline of a peer; the broker has one for all its connections."""
        if peer == "broker":
            name = self.ends.get((connection, "broker"), "broker")
            return self.lanes.index(("broker", None), [name, "broker", ""])
        name = self.ends.get((connection, "client"), "client")
        return self.lanes.index(("client", connection), [name, "client", connection or ""])

    def lane_of_row(self, row: Row) -> int:
        """The lifeline on which a row's mark stands, -1 for none in particular."""
        if row.vantage == WIRE_VANTAGE or row.event in ("action", "hold", "release", "latency"):
            return -1
        peer = "client" if row.vantage.startswith("client") else "broker"
        return self.lane_of_peer(row.connection, peer)

    def link_place(self, row: Row) -> int:
        """Which of the document's links a row concerns, -1 for none."""
        scope = link_scope(row)
        if scope is None or scope.connection is None or scope.link_sender is None:
            return -1
        place = self.links.index(scope)
        self.rows_of_link[place] = self.rows_of_link.get(place, 0) + 1
        return place

    # -- rows -------------------------------------------------------------------------------

    def begin(self, start: State | None) -> None:
        """Take over the state before the first row."""
        if start is None:
            return
        for link in self.earlier.links:
            self.links.index(link)
        for (vantage, scope), counters in start.ledgers.items():
            slot = self.slots.of(vantage, scope, self.earlier.sources.get((vantage, scope)))
            for name, value in counters.items():
                self._set(self.start_cells, slot.cell(name), value)
            if scope.group == "link" and scope.link_sender:
                self.links.index(scope)
        for (vantage, scope), brake in start.brakes.items():
            self._set(self.start_cells, self.slots.of(vantage, scope).cell(BRAKE), brake)
        flying = start.in_flight.values()
        self.gates = self.earlier.gates or Gates(flying)
        known = {row.frame_id: row for row in self.rows if row.event == RECEIVED}
        known |= {row.frame_id: row for row in self.earlier.flying}
        for frame in flying:
            row = known.get(frame.frame_id)
            place = self.frames.before(frame) if row is None else self.frames.place(row)
            self.start_flights += [place, int(self.gates.flying.get(frame.frame_id, False))]

    def add(self, row: Row, explanation: Explanation) -> None:
        """Append one row."""
        cells = self._cells(row)
        frame, extra = self._flights(row)
        head = self.heads.index(*self._head(row, explanation))
        formulas = [
            self.texts.ref(part)
            for formula in explanation.formulas[:2]
            for part in (formula.symbolic, formula.numbers)
        ]
        self.packed.append(
            trimmed(
                [
                    head,
                    row.t_us - self.t_us,
                    frame + 1,
                    cells,
                    self.texts.ref(explanation.sentence or row.event),
                    formulas,
                    self.texts.ref(explanation.interesting) if explanation.interesting else 0,
                    extra,
                ]
            )
        )
        self.t_us = row.t_us

    def _head(self, row: Row, explanation: Explanation) -> tuple[tuple[Any, ...], list[Any]]:
        clause = explanation.clause or row.clause
        place = -1
        if clause:
            place = self.clauses.index(
                clause, [clause, explanation.clause_title or theme.clause_title(clause)]
            )
        head = [
            row.event,
            row.vantage,
            row.kind or "",
            row.connection or "",
            self.link_place(row),
            place,
            self.lane_of_row(row),
            _FLIGHT.get(row.event, NOTHING) if row.frame_id is not None else NOTHING,
            row.queue or "",
            row.ledger_source or "own",
        ]
        return tuple(head), head

    def _cells(self, row: Row) -> list[Any]:
        delta: list[Any] = []
        for name, value in (row.ledger or {}).items():
            self._put(delta, row, name, value)
        for name in row.unknown:
            self._put(delta, row, name, None)
        scope = link_scope(row)
        if row.brake is not None and scope is not None:
            slot = self.slots.of(row.vantage, scope, row.ledger_source)
            self._set(delta, slot.cell(BRAKE), row.brake)
        return delta

    def _put(self, delta: list[Any], row: Row, name: str, value: Any) -> None:
        group = GROUP_OF.get(name)
        if group is not None:
            slot = self.slots.of(row.vantage, scope_of(row, group), row.ledger_source)
            self._set(delta, slot.cell(name), value)

    def _set(self, delta: list[Any], cell: int, value: Any) -> None:
        known = self.values.get(cell, _NEVER)
        # 1 == True in Python, and the page shows a difference between them.
        if known is _NEVER or known != value or type(known) is not type(value):
            self.values[cell] = value
            delta += [cell, value]

    def _flights(self, row: Row) -> tuple[int, list[int]]:
        """The row's frame, and what else it does to frames in flight (`[op, frame, ...]`)."""
        place: int | None = None
        if row.frame_id is not None and row.event in _FLIGHT:
            place = self.frames.place(row)
        elif row.event in ("hold", "release"):
            place = self.frames.known(row.extra.get("frame_id", row.frame_id))
        extra: list[int] = []
        for frame_id, held in self.gates.apply(row):
            known = self.frames.known(frame_id)
            assert known is not None  # whatever flies has been stored
            extra += [HELD if held else RELEASED, known]
        return -1 if place is None else place, extra

    # -- the whole --------------------------------------------------------------------------

    def document(self, *, title: str, note: str) -> dict[str, Any]:
        """Everything gathered, as one JSON-safe dict."""
        first = self.rows[0] if self.rows else None
        return {
            "format": FORMAT,
            "version": VERSION,
            "title": visible(title or (first.run if first else "an empty trace"), 200),
            "note": note,
            "run": str(first.run) if first else "",
            "first_seq": first.seq if first else 0,
            "t0_us": first.t_us if first else 0,
            "cells": self.slots.cells,
            "slots": self.slots.document(),
            "link": max(self.rows_of_link, key=self.rows_of_link.__getitem__, default=0),
            "links": [self._link(key) for key in self.links.items],
            "lanes": self.lanes.items,
            "clauses": self.clauses.items,
            "brakes": theme.brake_words(),
            "heads": self.heads.items,
            "start": {"cells": self.start_cells, "flights": self.start_flights},
            "frame_heads": self.frames.heads.items,
            "layouts": self.frames.layouts.items,
            "frames": self.frames.packed,
            "texts": self.texts.templates,
            "rows": self.packed,
        }

    def _link(self, link: Scope) -> dict[str, Any]:
        _group, connection, session, name, link_sender, attach_no, *_ = link
        client = self.ends.get((connection, "client"))
        broker = self.ends.get((connection, "broker"))
        way = "client → broker" if link_sender == "client" else "broker → client"
        again = f", attach {attach_no}" if (attach_no or 1) > 1 else ""
        lanes = [self.lane_of_peer(connection, peer) for peer in ("client", "broker")]
        others = [name for name in self.connections if name != connection]
        senders = {other.link_sender for other in self.links.items if other.connection in others}
        if len(others) == 1 and senders == {other_peer(link_sender)}:
            # A publisher on one connection, a consumer on the other: three lifelines show both.
            lanes.append(self.lane_of_peer(others[0], "client"))
        if link_sender != "client":
            lanes.reverse()
        return {
            "label": f"{visible(name)} ({way}, {connection}, session {session}{again})",
            "name": visible(name),
            "connection": connection or "",
            "lanes": lanes,
            **link_tables(self.slots, link, client, broker),
        }


def _add_ends(ends: dict[tuple[str | None, str], str], rows: Sequence[Row]) -> None:
    """(connection, peer) -> the vantage that logs there."""
    for row in rows:
        if row.event not in (SENT, RECEIVED):
            continue
        peer = "client" if row.vantage.startswith("client") else "broker"
        ends.setdefault((row.connection, peer), row.vantage)
