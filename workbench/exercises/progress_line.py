"""One line that says how far a run is, for cells that take some seconds."""

from __future__ import annotations

import sys
from typing import Self

from .table import say

US_PER_MS = 1_000


class ProgressLine:
    """A line that is written over itself, and gone at the end; use it as a context manager.

    Args:
        label: what is being done.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self._out = sys.stdout  # which a notebook shows under the cell
        self._width = 0

    def __enter__(self) -> Self:
        self._write(f"{self.label} ...")
        return self

    def __exit__(self, *_: object) -> None:
        self._write("")
        self._out.write("\r")
        self._out.flush()

    def at(self, now_us: int, of_ms: int) -> None:
        """So much virtual time has passed."""
        now_ms = min(now_us // US_PER_MS, of_ms)
        self._write(say("at", label=self.label, now=now_ms, all=of_ms))

    def _write(self, text: str) -> None:
        self._out.write(f"\r{text:<{self._width}}")
        self._out.flush()
        self._width = len(text)
