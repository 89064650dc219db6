"""Sentences about classic queues that page messages out, their stores, and their mirrors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from workbench.languages import phrase

from .schema import Row
from .sentences_hops import process_words

RAM_TARGET = "ram-target"
"""Kind of the row by which a queue first tells what is in RAM: it has a target."""

say = partial(phrase, "steps_queue")


def paging_sentence(row: Row) -> str | None:
    """The sentence of a row about paging or mirrors, without its full stop; None for any other."""
    who = process_words(row.vantage)
    if row.event == "append" and row.vantage.startswith("store:"):
        return say("paging.writes", who=who, n=row.extra.get("count", 1))
    mirror = row.vantage.startswith("mirror:")
    if mirror and row.event == "enqueue":
        return say("paging.mirrors", who=who)
    if row.event != "note":
        return None
    if row.kind in _PLAIN or (mirror and row.kind in _HANGS):
        return say(f"paging.{row.kind}", who=who)
    tell = _KINDS.get(row.kind or "")
    return None if tell is None else tell(row)


def in_ram(row: Row) -> Mapping[str, Any]:
    """Where a queue's messages are, as a row tells: numbers by place; empty if it does not."""
    told = row.extra.get("ram")
    return told if isinstance(told, dict) else {}


def _queue(row: Row) -> str:
    return process_words(f"queue:{row.queue or ''}")


def _paged(row: Row) -> str:
    told = row.extra
    first = "acks" if told["first"] == "acks" else "ready"
    text = say(f"paging.{first}-first", **told, queue=_queue(row))
    if told["positions"]:
        text += say("paging.positions", n=told["positions"])
    if told["stopped"]:
        text += say("paging.wait", **told)
    return text


def _target(row: Row) -> str:
    target = in_ram(row).get("target")
    if target is None:
        return say("paging.any-target", queue=_queue(row))
    return say("paging.target", queue=_queue(row), n=target)


def _duration(row: Row) -> str:
    told = row.extra
    if told.get("duration_ms") is None:
        return say("paging.any-duration", **told)
    return say("paging.duration", **told, seconds=told["duration_ms"] / 1000)


def _synchronising(row: Row) -> str:
    return say("paging.synchronising", queue=_queue(row), n=row.extra.get("count", 0))


_HANGS = ("stalled", "resumed")
_PLAIN = ("cut-off", "mended", "down", "synchronised")
_KINDS: dict[str, Callable[[Row], str]] = {
    "paged": _paged,
    RAM_TARGET: _target,
    "ram-duration": _duration,
    "synchronising": _synchronising,
}
