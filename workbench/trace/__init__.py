"""The trace: one row per event, whatever made it; recorded, kept, folded and told in words.

Light to import: Arrow is loaded by the first function that reads or writes a file.
"""

from .explain import Explainer, Explanation, explain
from .files import TraceFileError, TraceWriter, read
from .fold import Fold, Scope, State
from .hash import trace_hash
from .schema import Row
from .taps import Recorder, frame_row
from .transcript import transcript

__all__ = [
    "Explainer",
    "Explanation",
    "Fold",
    "Recorder",
    "Row",
    "Scope",
    "State",
    "TraceFileError",
    "TraceWriter",
    "explain",
    "frame_row",
    "read",
    "trace_hash",
    "transcript",
]
