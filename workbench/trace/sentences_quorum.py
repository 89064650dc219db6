"""Rows of quorum queues in plain words: replicas, their logs and disks, elections, faults.

Which text tells a row follows from its place, event and kind; the texts say what the row says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from workbench.languages import phrase

from .schema import Row
from .words import visible

LONGEST_REASON = 400
say = partial(phrase, "steps_queue")

_REPLICA = ("append", "replicate", "commit", "apply", "elect")
_LOG = {"append": "write", "fsync": "fsync"}
_NODE = ("crash", "restart", "cut", "heal")
_TIMES = ("fsync_us", "latency_us")


def quorum_sentence(row: Row) -> str | None:
    """The sentence of such a row without its full stop; None if the row is another's."""
    place, _, rest = row.vantage.partition(":")
    key = _key(row, place, rest)
    if key is None:
        return None
    if key == "no-majority":
        return visible(str(row.extra["why"]), LONGEST_REASON)
    return say(f"quorum.{key}", **_facts(row, visible(rest.rpartition("@")[2])))


def _key(row: Row, place: str, rest: str) -> str | None:
    event, kind = row.event, row.kind or ""
    if place == "queue" and "@" in rest:
        return _role(row) if event == "note" else event if event in _REPLICA else None
    if place == "wal":
        return _LOG.get(event)
    if place == "node":
        note = "fsync-time" if kind == "fsync-time" else "latency"
        return note if event == "note" else event if event in _NODE else None
    if place != "queue":
        return None
    if event == "confirm":
        return "confirm"
    if kind == "soft-limit":
        return "soft-limit" if event == "block" else "no-soft-limit"
    return kind if kind == "no-majority" else None


def _role(row: Row) -> str:
    if row.kind == "follower":
        return "follows" if row.extra.get("leader") else "no-leader"
    return row.kind if row.kind in ("pre-vote", "candidate") else "role"


def _facts(row: Row, node: str) -> dict[str, Any]:
    """What a text may say of a row: its details and columns, and what follows from them."""
    extra, ledger = row.extra, row.ledger or {}
    waiting, ready = ledger.get("mailbox", 0), ledger.get("queue_ready")
    told: dict[str, Any] = {
        "to": visible(row.kind or "?"), "role": visible(row.kind or "?"), "waiting": waiting,
        "pending": waiting, "ready": "" if ready is None else say("quorum.ready", n=ready),
    }  # fmt: skip
    for name, value in extra.items():
        told[name] = visible(value) if isinstance(value, str) else value
        if name in _TIMES:
            told["ms"] = int(value) / 1000
    if "first" in extra:
        told |= {"entries": _entries(extra), "messages": _messages(extra)}
    return told | {"node": node, "queue": visible(row.queue or node)}


def _entries(extra: Mapping[str, Any]) -> str:
    """`entry 7` or `entries 7 to 9`."""
    first, last = int(extra["first"]), int(extra["last"])
    return say("quorum.entry" if first == last else "quorum.entries", first=first, last=last)


def _messages(extra: Mapping[str, Any]) -> str:
    runs = extra.get("messages")
    if not isinstance(runs, list) or not runs:
        return ""
    parts = [
        str(first) if many == 1 else say("quorum.run", first=first, last=int(first) + int(many) - 1)
        for _, first, many in runs
    ]
    one = len(runs) == 1 and runs[0][2] == 1
    return say("quorum.message" if one else "quorum.messages", which=", ".join(parts))
