"""Which steps of which runs have been on the screen of this kernel's stages."""

from __future__ import annotations


class Looked:
    """The furthest row that was looked at, by the name of the run.

    A stage that nobody has moved yet counts for nothing.
    """

    def __init__(self) -> None:
        self._furthest: dict[str, int] = {}

    def add(self, run: str, seq: int) -> None:
        """Take note that a stage has shown this row, and with it what led there."""
        self._furthest[run] = max(seq, self._furthest.get(run, seq))

    def at(self, run: str, seq: int) -> bool:
        """Whether a stage has shown this row of the run, or a later one."""
        return run in self._furthest and self._furthest[run] >= seq


looked = Looked()
"""What the learner who works in this kernel has looked at."""
