"""Where it was worst: the row to open of an answer's row that speaks of a whole link or session.

The answer tells how long the longest was; here it is looked up where that one began, from the
counters in the trace and from the times of its frames. Rows are those of the end that the answer
speaks for, or a capture's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from .pieces import Pieces
from .schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT

__all__ = ["worst"]

_END = 1 << 62
_COLUMNS = (
    "run", "seq", "t_us", "vantage", "event", "from_peer", "connection", "session", "link",
    "link_sender", "attach_no", "kind", "ledger.link_credit", "ledger.remote_incoming_window",
    "frame.settled", "frame.drain", "frame.echo", "frame.role",
)  # fmt: skip
_LINK = ("connection", "session", "link", "link_sender", "attach_no")


def worst(pieces: Pieces, run: str, values: Mapping[str, Any]) -> int | None:
    """`seq` of the row where the worst began that a row of an answer tells of; None if unknown.

    Args:
        pieces: the trace.
        run: the run.
        values: a row of `windows`, `grants` or `latency`.
    """
    if "longest_closed_us" in values:
        shut = _counter(pieces, run, values, ("connection", "session"), str(values.get("sender")))
        return _longest_at_zero(*shut)
    if "zero_times" in values:
        sender = str(values.get("link_sender"))
        seqs, times, credit = _counter(pieces, run, values, _LINK, sender)
        granted = np.flatnonzero(credit > 0)
        since = int(granted[0]) if len(granted) else 0
        return _longest_at_zero(seqs[since:], times[since:], credit[since:])
    if "measure" in values:
        return _slowest(pieces, run, values)
    return None


class _Rows(NamedTuple):
    """Columns of the rows that are about a link or session and logged by one end, or a capture."""

    seqs: Any
    times: Any
    kind: Any
    from_sender: Any
    of_sender: Any  # its session counters are the sender's: in a capture those of one end or other
    ledger: Any
    frame: Any


def _counter(
    pieces: Pieces, run: str, values: Mapping[str, Any], about: tuple[str, ...], sender: str
) -> tuple[Any, Any, Any]:
    """Places, times and values of a counter of the sender, at the rows that tell it."""
    name = "link_credit" if "link" in about else "remote_incoming_window"
    parts: list[tuple[Any, Any, Any]] = []
    for rows in _rows(pieces, run, values, about, sender, sender):
        column = pc.struct_field(rows.ledger, name)
        told = pc.is_valid(column).to_numpy(zero_copy_only=False)
        if name == "remote_incoming_window":
            told = told & rows.of_sender
        numbers = pc.fill_null(column, 0).to_numpy()
        parts.append((rows.seqs[told], rows.times[told], numbers[told]))
    if not parts:
        none = np.array([], np.int64)
        return none, none, none
    seqs, times, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    return seqs, times, numbers


def _longest_at_zero(seqs: Any, times: Any, numbers: Any) -> int | None:
    """Where the longest stretch of 0 began; where it was least if it never was 0."""
    if not len(numbers):
        return None
    at = numbers <= 0
    if not at.any():
        return int(seqs[int(np.argmin(numbers))])
    starts = np.flatnonzero(at & ~np.concatenate(([False], at[:-1])))
    ends = np.flatnonzero(~at & np.concatenate(([False], at[:-1])))
    until = times[np.append(ends, len(times) - 1)[: len(starts)]]
    return int(seqs[starts[int(np.argmax(until - times[starts]))]])


def _slowest(pieces: Pieces, run: str, values: Mapping[str, Any]) -> int | None:
    """Where that began which took the longest: what followed after just that time tells."""
    measure, sender = values.get("measure"), str(values.get("link_sender"))
    receiver = BROKER if sender == CLIENT else CLIENT
    settles = measure == "settlement"
    about = ("connection", "session") if settles else _LINK  # a disposition may name no link
    asked, answered = [], []
    for rows in _rows(pieces, run, values, about, sender, sender if settles else receiver):
        transfers, flows = rows.kind("transfer"), rows.kind("flow")
        if settles:
            asks, answers = transfers & rows.from_sender, rows.kind("disposition")
        else:
            asks = flows & ~rows.from_sender
            if measure in ("drain", "echo"):
                asks &= _true(rows.frame, str(measure))
            answers = (transfers if measure == "grant" else flows) & rows.from_sender
        asked.append((rows.seqs[asks], rows.times[asks]))
        answered.append(rows.times[answers])
    if not asked:
        return None
    seqs, times = (np.concatenate(each) for each in zip(*asked, strict=True))
    if not len(seqs):
        return None
    longest = values.get("max_us")
    fits: Any = np.isin(times + longest, np.concatenate(answered)) if longest is not None else []
    found = np.flatnonzero(fits)
    return int(seqs[int(found[0]) if len(found) else 0])


def _rows(
    pieces: Pieces,
    run: str,
    values: Mapping[str, Any],
    about: tuple[str, ...],
    sender: str,
    end: str,
) -> Iterator[_Rows]:
    """The rows about it, of that end or observed, a batch at a time."""
    for batch in pieces.chosen(run, 0, _END, _COLUMNS):
        mask = np.ones(batch.num_rows, bool)
        for name in about:
            if values.get(name) is not None:
                mask &= _same(batch.column(name), values[name])
        event, author = batch.column("event"), batch.column("from_peer")
        theirs = _same(author, end)
        mask &= (
            (_same(event, SENT) & theirs) | (_same(event, RECEIVED) & ~theirs)
            | _same(event, OBSERVED)
        )  # fmt: skip
        places = np.flatnonzero(mask)
        if not len(places):
            continue
        part = batch.take(places)
        kinds, from_sender = part.column("kind"), _same(part.column("from_peer"), sender)
        by_author = _same(kinds, "transfer") | _same(pc.struct_field(part.column("frame"), "role"),
                                                     "sender")  # fmt: skip
        of_author = np.where(by_author, from_sender, ~from_sender)
        linked = pc.is_valid(part.column("link")).to_numpy(zero_copy_only=False)
        of_link = _same(part.column("link_sender"), sender)
        observed = _same(part.column("event"), OBSERVED)
        yield _Rows(
            part.column("seq").to_numpy(),
            part.column("t_us").to_numpy(),
            lambda kind, kinds=kinds: _same(kinds, kind),
            from_sender,
            ~observed | np.where(linked, of_link, of_author),
            part.column("ledger"),
            part.column("frame"),
        )


def _same(column: Any, value: object) -> Any:
    return pc.fill_null(pc.equal(column, value), False).to_numpy(zero_copy_only=False)


def _true(frame: Any, name: str) -> Any:
    return pc.fill_null(pc.struct_field(frame, name), False).to_numpy(zero_copy_only=False)
