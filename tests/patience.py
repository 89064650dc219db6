"""How long a test waits for what another thread, process or page does: for as long as it takes.

No test is decided by it, however busy the machine: it only ends what hangs, and says where.
"""

import time

TIMEOUT_S = 120


def until(condition) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {TIMEOUT_S} s"
        time.sleep(0.005)


def held_on(wire, frames=1, *, direction=None):
    """Wait until so many frames are held on a live wire, and give them all."""
    until(lambda: len(wire.held(direction)) >= frames)
    return wire.held(direction)
