"""Random-looking numbers from a seed, the same on every machine and in every version of Python."""

from __future__ import annotations

from typing import Protocol

_MASK = (1 << 64) - 1


class Draws(Protocol):
    """Where numbers are drawn from: `SeededDraws`, or a generator of the standard library."""

    def randrange(self, start: int, stop: int, /) -> int:
        """A whole number from `start` on, below `stop`."""


class SeededDraws:
    """The generator splitmix64 [Steele, Lea, Flood 2014].

    Args:
        seed: any whole number.
    """

    def __init__(self, seed: int = 0) -> None:
        self._state = seed & _MASK

    def randrange(self, start: int, stop: int, /) -> int:
        """A whole number from `start` on, below `stop`."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return start + (mixed ^ (mixed >> 31)) % (stop - start)
