"""What went wrong in a trace, a line each: errors that a peer told, and rules that frames broke."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.trace.schema import SENT, Row
from workbench.trace.words import times

from .vantage import LinkKey

__all__ = ["wrong"]

GOOD = 200
"""The reply code of an end without an error [0-9-1: 1.2, reply-success]."""


def wrong(rows: Sequence[Row], broken: Sequence[Mapping[str, Any]]) -> list[str]:
    """Errors in order, then each rule that is certainly broken by somebody, with its first row.

    Args:
        rows: a whole run in order.
        broken: its violations.
    """
    return [*_errors(rows), *_rules(broken)]


def _errors(rows: Sequence[Row]) -> Iterator[str]:
    """Frames that tell an error; of a frame in the logs of both ends the row of who sent it."""
    sent = {row.frame_id for row in rows if row.event == SENT}
    for row in rows:
        once = row.is_frame and (row.event == SENT or row.frame_id not in sent)
        text = _error(row) if once and row.kind != "undecodable" else ""
        if text:
            place = row.connection if row.session is None else f"{row.connection}/{row.session}"
            yield f"{place}: {row.kind} of the {row.from_peer}, row {row.seq}: {text}"


def _error(row: Row) -> str:
    """The error that a frame tells, in its own words; empty if it tells none."""
    told: dict[str, Any] = {**(row.frame or {}), **(row.frame_091 or {}), **(row.frame_010 or {})}
    code = told.get("reply_code") or told.get("error_code")
    if code is not None and code != GOOD:
        return f"{code} {told.get('reply_text') or told.get('description') or ''}".strip()
    error = json.loads(told.get("extra_json") or "{}").get("error")
    if not isinstance(error, dict):
        return ""
    return ": ".join(str(error[name]) for name in ("condition", "description") if error.get(name))


def _rules(broken: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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
        yield f"{place}: the {peer} broke {clause}, {what}, {often}"
