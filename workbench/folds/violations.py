"""`violations`: frames that break a rule, with the clause; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workbench import serial
from workbench.trace.schema import CLIENT, LOSSES, Row, other_peer

from .counters import Counters
from .vantage import End, LinkKey, ends, is_set, link_key, value

BEYOND_CREDIT, BEYOND_WINDOW, NO_ANSWER = "beyond-credit", "beyond-window", "no-answer"
CLAUSES = {
    BEYOND_CREDIT: "2.6.7",
    BEYOND_WINDOW: "2.5.6",
    "delivery-id-missing": "2.7.5",
    "delivery-id-order": "2.6.12",
    "id-never-sent": "2.5.6",
    "handle-unknown": "2.6.2",
    "handle-in-use": "2.6.2",
    "handle-too-high": "2.7.2",
    "delivery-id-changed": "2.7.5",
    NO_ANSWER: "2.7.4",
}
_NO_LINK = dict.fromkeys(LinkKey._fields[3:])


def violations(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row for each frame and each rule that it breaks, in order of run and seq."""
    rows = list(rows)
    lost: dict[tuple[str, str | None], int] = {}
    for row in rows:
        if row.event in LOSSES:
            lost.setdefault((row.run, row.connection), row.seq)
    found: list[dict[str, Any]] = []
    for end in ends(rows):
        found += _counted(end)
        found += _handles(end)
        found += _unanswered(end)
    for breach in found:
        first = lost.get((breach["run"], breach["connection"]))
        # Missing octets may hold what makes it legal: an attach, a grant, a message; an answer that
        # never came may be in them wherever they are.
        late = first is not None and (breach["what"] == NO_ANSWER or breach["seq"] > first)
        breach["certain"] &= not late
    return sorted(found, key=lambda row: (row["run"], row["seq"], row["what"]))


def _breach(row: Row, what: str, *, by: int | None = None, certain: bool = True) -> dict[str, Any]:
    key = link_key(row)
    link = _NO_LINK if key is None else {name: getattr(key, name) for name in _NO_LINK}
    return {
        "run": row.run,
        "connection": row.connection,
        "session": row.session,
        **link,
        "seq": row.seq,
        "frame_id": row.frame_id,
        "from_peer": row.from_peer,
        "what": what,
        "clause": CLAUSES[what],
        "by": by,
        "certain": certain,
    }


def _counted(end: End) -> Iterator[dict[str, Any]]:
    """What the end's transfers overrun, how they are numbered, and ids that it has not sent."""
    last_id: dict[int | None, int] = {}
    current: dict[LinkKey, int | None] = {}
    for step in Counters(end).steps():
        row = step.row
        if row.from_peer != end.peer and step.id_ahead is not None and step.id_ahead > 0:
            yield _breach(row, "id-never-sent", by=step.id_ahead)
        if row.kind != "transfer" or row.from_peer != end.peer:
            continue
        if step.window_over is not None:
            sure = end.own or step.window_over_furthest is not None
            yield _breach(row, BEYOND_WINDOW, by=step.window_over, certain=sure)
        if not step.begins:
            number = value(row, "delivery_id")
            if step.link is not None and number is not None:
                first = current.get(step.link.key)
                if first is not None and number != first:
                    yield _breach(row, "delivery-id-changed", by=serial.signed(number, first))
            continue
        if step.link is not None:
            current[step.link.key] = value(row, "delivery_id")
            if step.link.attached and not step.link.limit.spoken:
                sure = step.link.limit.started is not None
                yield _breach(row, BEYOND_CREDIT, by=step.link.begun, certain=sure)
        if step.over is not None:
            # RabbitMQ puts a flow aside while its queue has not answered the one before.
            heeds = end.own and end.peer == CLIENT
            sure = heeds or step.over_furthest is not None
            yield _breach(row, BEYOND_CREDIT, by=step.over, certain=sure)
        # What begins in a capture may be the rest of a message.
        whole = step.link is None or step.link.key.attach_no is not None or step.link.begun > 1
        yield from _numbered(row, last_id, whole)


def _numbered(row: Row, last_id: dict[int | None, int], whole: bool) -> Iterator[dict[str, Any]]:
    number = value(row, "delivery_id")
    if number is None:
        yield _breach(row, "delivery-id-missing", certain=whole)
        return
    before = last_id.get(row.session)
    if before is not None and number != serial.add(before, 1):
        yield _breach(row, "delivery-id-order", by=serial.signed(number, serial.add(before, 1)))
    last_id[row.session] = number


def _handles(end: End) -> Iterator[dict[str, Any]]:
    """Frames of the end whose handle stands for no link."""
    standing: dict[int | None, set[int]] = {}
    highest: dict[int | None, int] = {}
    for row in end.rows:
        handle = value(row, "handle")
        if row.from_peer != end.peer:
            most = value(row, "handle_max")
            if row.kind == "begin" and most is not None and row.session is not None:
                highest[row.session] = most
            continue
        if (
            row.kind == "attach"
            and handle is not None
            and handle > highest.get(row.session, handle)
        ):
            yield _breach(row, "handle-too-high", by=handle - highest[row.session])
        if row.kind == "begin":
            standing[row.session] = set()
        elif row.session in standing and handle is not None:
            there = standing[row.session]
            if row.kind == "attach":
                if handle in there:
                    yield _breach(row, "handle-in-use")
                there.add(handle)
            elif row.kind in ("flow", "transfer", "detach"):
                if handle not in there:
                    yield _breach(row, "handle-unknown")
                if row.kind == "detach":
                    there.discard(handle)


def _unanswered(end: End) -> Iterator[dict[str, Any]]:
    """Flows of the end that ask, and are passed over."""
    asking: dict[LinkKey, list[Row]] = {}
    passed: dict[LinkKey, list[Row]] = {}
    draining: dict[LinkKey, bool] = {}
    for row in end.rows:
        key = link_key(row)
        if row.from_peer == end.peer and row.kind == "flow" and key is not None:
            begins = key.link_sender != end.peer and is_set(row, "drain")
            asks = is_set(row, "echo") or (begins and not draining.get(key, False))
            if key.link_sender != end.peer:
                draining[key] = begins
            if asks:
                asking.setdefault(key, []).append(row)
        elif row.from_peer == other_peer(end.peer):
            if row.kind == "flow" and key is not None and (key in asking or key in passed):
                asking.pop(key, None)
                passed.pop(key, None)
            if row.kind != "transfer":
                for link in [one for one in asking if one.session == row.session]:
                    passed.setdefault(link, []).extend(asking.pop(link))
    yield from (_breach(row, NO_ANSWER) for its in passed.values() for row in its)
