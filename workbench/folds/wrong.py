"""What went wrong in a trace, a line each: errors that a peer told, and rules that frames broke."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.trace.schema import BROKER, LOSSES, SENT, Row
from workbench.trace.words import duration, times

from .vantage import LinkKey

__all__ = ["Wrong", "dropped", "wrong"]

CLOSES = frozenset({"close", "connection.close"})
"""With which an end says that it goes."""
GOOD = 200
"""The reply code of an end without an error [0-9-1: 1.2, reply-success]."""


class Wrong(NamedTuple):
    """One of them; in their order errors come first, and a rule where it was first broken.

    Attributes:
        is_rule: a rule was broken; else it is an error that a peer told.
        seq: of its row, or of the first of its rows.
        text: the line.
        stops: it stopped a client: an error that a peer told, or the broker went.
    """

    is_rule: bool
    seq: int
    text: str
    stops: bool = False


def wrong(rows: Sequence[Row], broken: Sequence[Mapping[str, Any]]) -> list[Wrong]:
    """Errors in order, then each rule that is certainly broken by somebody, with its first row.

    Args:
        rows: a whole run in order, or all rows of some connections.
        broken: its violations.
    """
    return [*_errors(rows), *_rules(broken)]


def dropped(rows: Sequence[Row], ended: Mapping[str, tuple[int, str]]) -> Iterator[Wrong]:
    """Connections that a peer ended without a word, and how long the other had been silent.

    Args:
        rows: all rows of some connections, in order.
        ended: by connection when one end was the first to close or reset it, and which.
    """
    its: dict[str, list[Row]] = {}
    for row in rows:
        if row.connection is not None and row.connection in ended:
            its.setdefault(row.connection, []).append(row)
    for name, found in its.items():
        ended_us, peer = ended[name]
        if any(row.kind in CLOSES or row.event in LOSSES for row in found):
            continue
        text = f"{name}: the {peer} ended it at {ended_us / 1e6:,.3f} s without a close"
        heard = [row.t_us for row in found if row.from_peer not in (None, peer)]
        silent_us, most = ended_us - max(heard, default=0), _patience(found, peer)
        if most is not None and silent_us >= most[0]:
            text += f"; nothing had come for {duration(silent_us)}, {most[1]}"
        yield Wrong(False, found[-1].seq, text, peer == BROKER)


def _patience(rows: Iterable[Row], peer: str) -> tuple[int, str] | None:
    """How long a peer bears silence, in microseconds, and what was agreed; None if for ever."""
    for row in rows:
        most = row.fields.get("idle_time_out")
        if str(row.kind).endswith("tune-ok"):  # two of them [0-9-1: 4.2.7]
            interval = {**row.extra, **row.fields}.get("heartbeat")
            if interval:
                return 2_000_000 * interval, f"with a heartbeat every {interval} s"
        if row.kind == "open" and row.from_peer == peer and most:
            return 1_000 * most, f"with an idle-time-out of {duration(1_000 * most)}"
    return None


def _errors(rows: Sequence[Row]) -> Iterator[Wrong]:
    """Frames that tell an error; of a frame in the logs of both ends the row of who sent it."""
    sent = {row.frame_id for row in rows if row.event == SENT}
    for row in rows:
        once = row.is_frame and (row.event == SENT or row.frame_id not in sent)
        text = _error(row) if once and row.kind != "undecodable" else ""
        if text:
            place = row.connection if row.session is None else f"{row.connection}/{row.session}"
            told = f"{place}: {row.kind} of the {row.from_peer}, row {row.seq}: {text}"
            yield Wrong(False, row.seq, told, True)


def _error(row: Row) -> str:
    """The error that a frame tells, in its own words; empty if it tells none."""
    told = {**row.extra, **row.fields}
    code = told.get("reply_code") or told.get("error_code")
    if code is not None and code != GOOD:
        return f"{code} {told.get('reply_text') or told.get('description') or ''}".strip()
    error = told.get("error")
    if not isinstance(error, dict):
        return ""
    return ": ".join(str(error[name]) for name in ("condition", "description") if error.get(name))


def _rules(broken: Sequence[Mapping[str, Any]]) -> Iterator[Wrong]:
    """Which rule of AMQP 1.0 was broken, by whom, how often, and where first."""
    found: dict[tuple[str, str, str, str], list[int]] = {}
    for breach in broken:
        if breach["certain"]:
            key = LinkKey.of(breach)
            place = key.name if key.link else f"{key.connection}/{key.session}"
            which = place, breach["from_peer"], breach["what"], breach["clause"]
            found.setdefault(which, []).append(breach["seq"])
    for (place, peer, what, clause), seqs in found.items():
        often = f"{times(len(seqs))}, first in row {seqs[0]}"
        yield Wrong(True, seqs[0], f"{place}: the {peer} broke {clause}, {what}, {often}")
