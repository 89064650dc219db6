"""What goes wrong with an analysis, in one line for a person."""

from __future__ import annotations

from workbench.notebook import PlainError

__all__ = ["ENDED", "UNSEEN", "AnalysisError"]


class AnalysisError(PlainError):
    """A trace that cannot be asked, an answer that cannot be kept, or no Java.

    The text is one line and names the file, and the column where one is to blame.
    """


UNSEEN = (
    "this program sees it and Spark's executors do not; put it into a folder that all machines"
    " share, or at a URL"
)
"""Of a file or folder, where Spark runs on other machines."""

ENDED = (
    "Spark's Java has ended, most likely because its heap was full; start this program or notebook"
    " again with more, for example WORKBENCH_SPARK_MEMORY=4g"
)
"""Spark cannot be started a second time by a program whose first Java is gone."""
