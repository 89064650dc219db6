"""Rows of quorum queues in plain words: replicas, their logs and disks, elections, faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .schema import Row
from .words import count, quoted, visible

LONGEST_REASON = 400


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
    return f"entry {first}" if first == last else f"entries {first} to {last}"


def _messages(extra: Mapping[str, Any]) -> str:
    runs = extra.get("messages")
    if not isinstance(runs, list) or not runs:
        return ""
    parts = [
        str(first) if many == 1 else f"{first} to {int(first) + int(many) - 1}"
        for _, first, many in runs
    ]
    one = len(runs) == 1 and runs[0][2] == 1
    return f" (message{'' if one else 's'} {', '.join(parts)})"


def _append(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"replica {node} takes {entries(extra)}{_messages(extra)} into its log, not yet safe"


def _replicate(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"the leader {node} sends {entries(extra)} to {visible(row.kind or '?')}"


def _commit(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"replica {node} knows that a majority has everything up to entry {extra['index']} safe"


def _apply(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    many = int(extra["count"])
    ready = (row.ledger or {}).get("queue_ready")
    state = f"; its queue has {ready} ready" if ready is not None else ""
    return (
        f"replica {node} carries out {count(many, 'entry', 'entries')}, up to"
        f" entry {extra['index']}{state}"
    )


def _elect(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"a majority has voted for {node}: it leads in term {extra['term']}"


def _role(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    role, leader = row.kind or "?", visible(extra.get("leader") or "")
    if role == "follower":
        follows = f"follows {leader}" if leader else "waits for a leader"
        return f"replica {node} {follows}, in term {extra['term']}"
    if role == "pre-vote":
        return f"replica {node} hears of no leader and asks the others whether they would elect it"
    if role == "candidate":
        return f"replica {node} asks for votes in term {extra['term']}"
    return f"replica {node} is {visible(role)} in term {extra['term']}"


def _write(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    many = count(int(extra["entries"]), "entry", "entries")
    return f"the disk of {node} begins an fsync of {many}; what comes now waits for the next one"


def _fsync(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    many = int(extra["entries"])
    waiting = (row.ledger or {}).get("mailbox", 0)
    are = "is" if many == 1 else "are"
    return f"{count(many, 'entry', 'entries')} {are} safe on the disk of {node}; {waiting} wait"


def _crash(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    lost = count(int(extra["lost"]), "entry", "entries")
    return f"node {node} crashes; its log had {lost} that no fsync had made safe"


def _restart(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"node {node} is back, and knows what its disk knows"


def _cut(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"the way between {node} and {visible(extra['to'])} is cut; neither knows yet"


def _heal(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    return f"the way between {node} and {visible(extra['to'])} is mended"


def _node_note(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    if row.kind == "fsync-time":
        return f"from the next one on an fsync on {node} takes {int(extra['fsync_us']) / 1000:g} ms"
    return (
        f"from now on a message between {node} and {visible(extra['to'])} is under way for"
        f" {int(extra['latency_us']) / 1000:g} ms"
    )


def _soft_limit(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    pending = count(int(extra["pending"]), "command")
    if row.event == "block":
        return (
            f"queue {quoted(row.queue or node)} counts as slow: {pending} are pending; a 0-9-1"
            " channel would stop here, an AMQP 1.0 session does not"
        )
    return f"queue {quoted(row.queue or node)} is no longer slow: {pending} pending"


def _confirm(row: Row, node: str, extra: Mapping[str, Any]) -> str:
    queue = quoted(row.queue or node)
    pending = (row.ledger or {}).get("mailbox", 0)
    return f"queue {queue} confirms message {int(extra['message'])}; {pending} are still pending"


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
