"""What went wrong in a trace, a line each: errors that a peer told, and rules that frames broke."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.trace.schema import SENT, Row
from workbench.trace.words import times

from .vantage import LinkKey

__all__ = ["Wrong", "wrong"]

GOOD = 200
"""The reply code of an end without an error [0-9-1: 1.2, reply-success]."""


class Wrong(NamedTuple):
    """One of them; in their order errors come first, and a rule where it was first broken.

    Attributes:
        is_rule: a rule was broken; else it is an error that a peer told.
        seq: of its row, or of the first of its rows.
        text: the line.
    """

    is_rule: bool
    seq: int
    text: str


def wrong(rows: Sequence[Row], broken: Sequence[Mapping[str, Any]]) -> list[Wrong]:
    """Errors in order, then each rule that is certainly broken by somebody, with its first row.

    Args:
        rows: a whole run in order, or all rows of some connections.
        broken: its violations.
    """
    return [*_errors(rows), *_rules(broken)]


def _errors(rows: Sequence[Row]) -> Iterator[Wrong]:
    """Frames that tell an error; of a frame in the logs of both ends the row of who sent it."""
    sent = {row.frame_id for row in rows if row.event == SENT}
    for row in rows:
        once = row.is_frame and (row.event == SENT or row.frame_id not in sent)
        text = _error(row) if once and row.kind != "undecodable" else ""
        if text:
            place = row.connection if row.session is None else f"{row.connection}/{row.session}"
            told = f"{place}: {row.kind} of the {row.from_peer}, row {row.seq}: {text}"
            yield Wrong(False, row.seq, told)


def _error(row: Row) -> str:
    """The error that a frame tells, in its own words; empty if it tells none."""
    told = row.fields
    code = told.get("reply_code") or told.get("error_code")
    if code is not None and code != GOOD:
        return f"{code} {told.get('reply_text') or told.get('description') or ''}".strip()
    error = row.extra.get("error")
    if not isinstance(error, dict):
        return ""
    return ": ".join(str(error[name]) for name in ("condition", "description") if error.get(name))


def _rules(broken: Sequence[Mapping[str, Any]]) -> Iterator[Wrong]:
    """Which rule of AMQP 1.0 was broken, by whom, how often, and where first."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for breach in broken:
        if breach["certain"]:
            key = LinkKey(*(breach[name] for name in LinkKey._fields))
            place = key.name if key.link else f"{key.connection}/{key.session}"
            which = place, breach["from_peer"], breach["what"], breach["clause"]
            found.setdefault(which, []).append(breach["seq"])
    for (place, peer, what, clause), seqs in found.items():
        often = f"{times(len(seqs))}, first in row {seqs[0]}"
        yield Wrong(True, seqs[0], f"{place}: the {peer} broke {clause}, {what}, {often}")
