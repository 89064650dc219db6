"""What goes wrong with an analysis, in one line for a person."""

from __future__ import annotations

__all__ = ["AnalysisError"]


class AnalysisError(Exception):
    """A trace that cannot be asked, an answer that cannot be kept, or no Java.

    The text is one line and names the file, and the column where one is to blame.
    """
