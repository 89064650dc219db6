"""Sentences about classic queues that page messages out, their stores, and their mirrors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .schema import Row
from .sentences_hops import process_words
from .words import count, quoted

RAM_TARGET = "ram-target"
"""Kind of the row by which a queue first tells what is in RAM: it has a target."""


def paging_sentence(row: Row) -> str | None:
    """The sentence of a row about paging or mirrors, without its full stop; None for any other."""
    if row.event == "append" and row.vantage.startswith("store:"):
        return f"{process_words(row.vantage)} writes {count(row.extra.get('count', 1), 'message')}"
    mirror = row.vantage.startswith("mirror:")
    if mirror and row.event == "enqueue":
        return f"{process_words(row.vantage)} takes a message in, on the master's word"
    if mirror and row.event == "note" and row.kind in _HANGS:
        return f"{process_words(row.vantage)} {_HANGS[row.kind]}"
    tell = _KINDS.get(row.kind or "") if row.event == "note" else None
    return None if tell is None else tell(row)


def in_ram(row: Row) -> Mapping[str, Any]:
    """Where a queue's messages are, as a row tells: numbers by place; empty if it does not."""
    told = row.extra.get("ram")
    return told if isinstance(told, dict) else {}


def _queue(row: Row) -> str:
    return f"queue {quoted(row.queue or '')}"


def _paged(row: Row) -> str:
    told = row.extra
    order = [count(told["messages"], "ready message")]
    order.append(count(told["acks"], "pending acknowledgement"))
    if told["first"] == "acks":
        order.reverse()
    text = f"{_queue(row)} pages out {order[0]}, then {order[1]}, of a quota of {told['quota']}"
    if told["positions"]:
        text += f", and {count(told['positions'], 'position')}"
    if told["stopped"]:
        text += f"; {told['left']} of the quota wait for credit with the message store"
    return text


def _target(row: Row) -> str:
    target = in_ram(row).get("target")
    if target is None:
        return f"{_queue(row)} may have any number of messages in RAM"
    return f"{_queue(row)} is to have {count(target, 'message')} in RAM at most"


def _duration(row: Row) -> str:
    told = row.extra
    used = f"{told['used']} of {count(told['limit'], 'octet')} are used"
    if told.get("duration_ms") is None:
        return f"the memory monitor lets queues have any number of messages in RAM: {used}"
    seconds = told["duration_ms"] / 1000
    return (
        f"the memory monitor lets queues have messages for {seconds:g} s of their traffic in RAM:"
        f" {used}"
    )


_HANGS = {"stalled": "hangs: it reads nothing", "resumed": "goes on"}
_KINDS: dict[str, Callable[[Row], str]] = {
    "paged": _paged,
    RAM_TARGET: _target,
    "ram-duration": _duration,
    "cut-off": lambda row: f"{process_words(row.vantage)} is cut off; nobody has noticed yet",
    "mended": lambda row: f"{process_words(row.vantage)} can be reached again",
    "down": lambda row: (
        f"{process_words(row.vantage)} is seen to be down: nobody waits for it any more"
    ),
    "synchronising": lambda row: (
        f"{_queue(row)} begins to copy {count(row.extra.get('count', 0), 'message')} to its mirrors"
    ),
    "synchronised": lambda row: f"{process_words(row.vantage)} has all that its queue has",
}
