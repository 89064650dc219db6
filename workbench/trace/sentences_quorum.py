"""Rows of quorum queues in plain words: replicas, their logs and disks, elections, faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from workbench.languages import phrase

from .schema import Row
from .words import visible

LONGEST_REASON = 400
say = partial(phrase, "steps_queue")


def quorum_sentence(row: Row) -> str | None:
    """The sentence of such a row without its full stop; None if the row is another's."""
    place, _, rest = row.vantage.partition(":")
    tell: Callable[[Row, str, Mapping[str, Any]], str] | None = None
    if place == "queue" and "@" in rest:
        tell = _REPLICA.get(row.event)
        if row.event == "note":
            tell = _role
        rest = rest.rpartition("@")[2]
    elif place == "wal":
        tell = _LOG.get(row.event)
    elif place == "node":
        tell = _node_note if row.event == "note" else _NODE.get(row.event)
    elif place == "queue" and row.event == "confirm":
        tell = _confirm
    elif place == "queue":
        tell = {"soft-limit": _soft_limit, "no-majority": _no_majority}.get(row.kind or "")
    if tell is None:
        return None
    try:
        return tell(row, visible(rest), row.extra)
    except (KeyError, TypeError, ValueError):
        return None  # a row of somebody else's making: the plain sentence will do


def entries(extra: Mapping[str, Any]) -> str:
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


def _append(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.append", node=node, entries=entries(extra), messages=_messages(extra))


def _replicate(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.replicate", node=node, entries=entries(extra), to=visible(row.kind or "?"))


def _commit(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.commit", node=node, index=extra["index"])


def _apply(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    text = say("quorum.apply", node=node, n=int(extra["count"]), index=extra["index"])
    ready = (row.ledger or {}).get("queue_ready")
    return text if ready is None else text + say("quorum.ready", n=ready)


def _elect(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.elect", node=node, term=extra["term"])


def _role(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    role, leader = row.kind or "?", visible(extra.get("leader") or "")
    if role == "pre-vote":
        return say("quorum.pre-vote", node=node)
    term = extra["term"]
    if role == "follower":
        return say(
            "quorum.follows" if leader else "quorum.no-leader", node=node, leader=leader, term=term
        )
    if role == "candidate":
        return say("quorum.candidate", node=node, term=term)
    return say("quorum.role", node=node, role=visible(role), term=term)


def _write(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.write", node=node, n=int(extra["entries"]))


def _fsync(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    waiting = (row.ledger or {}).get("mailbox", 0)
    return say("quorum.fsync", node=node, n=int(extra["entries"]), waiting=waiting)


def _crash(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.crash", node=node, n=int(extra["lost"]))


def _restart(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.restart", node=node)


def _cut(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.cut", node=node, to=visible(extra["to"]))


def _heal(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return say("quorum.heal", node=node, to=visible(extra["to"]))


def _node_note(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    if row.kind == "fsync-time":
        return say("quorum.fsync-time", node=node, ms=int(extra["fsync_us"]) / 1000)
    ms = int(extra["latency_us"]) / 1000
    return say("quorum.latency", node=node, to=visible(extra["to"]), ms=ms)


def _soft_limit(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    queue = visible(row.queue or node)
    return say(
        "quorum.soft-limit" if row.event == "block" else "quorum.no-soft-limit",
        queue=queue,
        n=int(extra["pending"]),
    )


def _confirm(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    pending = (row.ledger or {}).get("mailbox", 0)
    queue, message = visible(row.queue or node), int(extra["message"])
    return say("quorum.confirm", queue=queue, message=message, pending=pending)


def _no_majority(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return visible(str(extra["why"]), LONGEST_REASON)


_REPLICA = {
    "append": _append,
    "replicate": _replicate,
    "commit": _commit,
    "apply": _apply,
    "elect": _elect,
}
_LOG = {"append": _write, "fsync": _fsync}
_NODE = {"crash": _crash, "restart": _restart, "cut": _cut, "heal": _heal}
