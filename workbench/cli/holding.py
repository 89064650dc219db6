"""Frames held by hand on a terminal: each that waits is told, each line read lets some go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from workbench.sim import WireError

LEGAL = "legal: Enter, a number, c2b, b2c, go, hold, break WHAT, clear, quit"
DIRECTIONS = ("c2b", "b2c")
_COUNT = re.compile(r"[0-9]{1,9}")


class _QuitError(Exception):
    """Enough."""


def hold_by_hand(server: Any, lines: Iterable[str], say: Callable[[str], None]) -> None:
    """Follow a person's lines until they end, or until the word is `quit`.

    Args:
        server: a live broker or proxy.
        lines: what the person types.
        say: prints a line.
    """
    from workbench.views.scene_live import in_a_line, way_of

    told: set[int] = set()

    def look() -> None:
        for line in server.news():
            say(line)
        for wire in server.wires():
            gates = wire.picture().gates.values()
            for frame in (held for gate in gates for held in gate.held):
                if frame.frame_id not in told:
                    told.add(frame.frame_id)
                    say(f"{wire.connection} {way_of(frame.direction)}: {in_a_line(frame)} waits")

    watch = server.watch(look)
    try:
        for line in lines:
            try:
                say(_follow(server, line.strip()))
            except WireError as error:
                say(str(error))
    except _QuitError:
        pass
    finally:
        watch.close()


def _follow(server: Any, line: str) -> str:
    word, _, rest = line.partition(" ")
    if word == "quit":
        raise _QuitError
    wires = server.wires()
    if word in ("go", "hold"):
        server.freeze_new(word == "hold")
        for wire in wires:
            if word == "go":
                wire.free_run()
            else:
                wire.hold()
        return "free run; hold closes the gates" if word == "go" else "the gates are closed"
    if word == "break":
        points = [wire.break_when(rest) for wire in wires]
        return f"stops at {points[0]}" if points else "nobody is connected yet"
    if word == "clear":
        for wire in wires:
            wire.clear_breakpoints()
        return "no breakpoints"
    count = int(line) if _COUNT.fullmatch(line) else 0
    if line and not count and line not in DIRECTIONS:
        return f"{line[:40]!r} is none of these; {LEGAL}"
    return _step(wires, count or 1, line if line in DIRECTIONS else None)


def _step(wires: list[Any], frames: int, direction: str | None) -> str:
    """Let the frames through that have waited longest, whichever connection they belong to."""
    waiting = sorted(
        ((frame.frame_id, wire) for wire in wires for frame in wire.held(direction)),
        key=lambda pair: pair[0],
    )
    for frame_id, wire in waiting[:frames]:
        wire.release(frame_id)
    passed = min(frames, len(waiting))
    return f"{passed} let through, {len(waiting) - passed} wait" if waiting else "nothing waits"
