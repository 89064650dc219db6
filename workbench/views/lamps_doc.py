"""The lamps of each message of a quorum queue, at every step: as plain JSON, and as text.

The kernel works every lamp out once; the browser looks up the step. A lamp is off, lit in part
while some nodes have done their share, or on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from workbench.trace.replicas import (
    APPLIED,
    COMMITTED,
    CONFIRMED,
    FSYNCED,
    LAMPS,
    REPLICATED,
    WRITTEN,
    Message,
    Replicas,
)
from workbench.trace.schema import Row

OFF, PART, ON = "○", "◐", "●"
SHOWN = 8  # messages at a time
BEFORE = 2  # of them, how many stand before the first that is not confirmed

MEANING = {
    WRITTEN: "in the leader's log",
    FSYNCED: "on disk",
    REPLICATED: "in other logs",
    COMMITTED: "the leader knows of a majority",
    APPLIED: "in the queue",
    CONFIRMED: "told the session",
}


def cell(story: Replicas, message: Message, lamp: str, step: int) -> str:
    """One lamp: its glyph, and the nodes that speak for it."""
    lit, nodes = story.lamp(message, lamp, step)
    glyph = ON if lit else PART if nodes else OFF
    return " ".join((glyph, *nodes))


def lamps_doc(rows: Sequence[Row], queue: str | None = None) -> dict[str, Any]:
    """The document of the lamps.

    Args:
        rows: of one run, in order of `seq`.
        queue: a quorum queue; the first one if None.
    """
    story = Replicas(rows, queue)
    messages = [story.messages[number] for number in sorted(story.messages)]
    return {
        "queue": story.queue,
        "steps": len(rows),
        "majority": story.majority,
        "nodes": len(story.nodes),
        "lamps": [{"name": lamp, "meaning": MEANING[lamp]} for lamp in LAMPS],
        "messages": [_message(story, message) for message in messages],
        "window": _window(story, messages),
        "shown": SHOWN,
    }


def _message(story: Replicas, message: Message) -> dict[str, Any]:
    known = message.logs.steps[1] if len(message.logs.steps) > 1 else 0
    return {
        "number": message.number,
        "known": known,
        "lamps": [_changes(story, message, lamp) for lamp in LAMPS],
    }


def _changes(story: Replicas, message: Message, lamp: str) -> list[list[Any]]:
    """[steps, cells]: what stands there from each of these steps on."""
    steps, cells = [0], [cell(story, message, lamp, 0)]
    moments = {*message.logs.steps, *message.disks.steps, *message.done.values()}
    for step in sorted(moments - {0}):
        now = cell(story, message, lamp, step)
        if now != cells[-1]:
            steps.append(step)
            cells.append(now)
    return [steps, cells]


def _window(story: Replicas, messages: Sequence[Message]) -> list[list[int]]:
    """[steps, first, known, confirmed]: which messages to show, and how many there are."""
    moments = {0, *story.confirmed.steps}
    moments |= {message.logs.steps[1] for message in messages if len(message.logs.steps) > 1}
    found: list[list[int]] = [[], [], [], []]
    known = first = 0
    for step in sorted(moments):
        while known < len(messages) and messages[known].known(step):
            known += 1
        while first < known and messages[first].done.get(CONFIRMED, step + 1) <= step:
            first += 1
        begin = max(0, min(first - BEFORE, known - SHOWN))
        for line, value in zip(found, (step, begin, known, story.confirmed.at(step)), strict=True):
            line.append(value)
    return found


def window_at(doc: dict[str, Any], step: int) -> tuple[int, int, int]:
    """(place of the first message shown, how many are known, how many are confirmed)."""
    steps, first, known, confirmed = doc["window"]
    place = max(0, bisect_right(steps, step) - 1)
    return first[place], known[place], confirmed[place]


def sentence(doc: dict[str, Any], step: int) -> str:
    """How many messages are confirmed, and which are shown."""
    first, known, confirmed = window_at(doc, step)
    if not known:
        return "No message is in a log yet."
    last = min(known, first + doc["shown"])
    numbers = [message["number"] for message in doc["messages"][first:last]]
    text = f"{confirmed} of {known} messages are confirmed."
    return f"{text} Shown: {numbers[0]} to {numbers[-1]}." if known > len(numbers) else text


def lamps_words(doc: dict[str, Any], step: int) -> str:
    """The lamps at a step as text: a line for each message."""
    first, known, _ = window_at(doc, step)
    names = [lamp["name"] for lamp in doc["lamps"]]
    lines = [["message", *names]]
    for message in doc["messages"][first : min(known, first + doc["shown"])]:
        cells = [cells[max(0, bisect_right(steps, step) - 1)] for steps, cells in message["lamps"]]
        lines.append([str(message["number"]), *cells])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    table = [
        "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    majority = f"A majority is {doc['majority']} of {doc['nodes']}."
    return "\n".join([f"Step {step} of {doc['steps']}. {sentence(doc, step)} {majority}", *table])
