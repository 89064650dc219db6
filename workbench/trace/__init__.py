"""The trace: one row per event, whatever made it; recorded, kept, folded and told in words.

Light to import: Arrow is loaded by the first function that reads or writes a file.
"""

from .explain import Explainer, Explanation, explain
from .fields import FRAME_FIELDS
from .files import TraceFileError, TraceWriter, iter_rows, read, write
from .fold import Change, Fold, InFlight, Scope, State
from .formulas import Formula
from .hash import trace_hash
from .schema import EVENTS, LEDGER_FIELDS, SCHEMA_VERSION, Row, arrow_schema
from .taps import Recorder, frame_row
from .transcript import transcript

__all__ = [
    "EVENTS",
    "FRAME_FIELDS",
    "LEDGER_FIELDS",
    "SCHEMA_VERSION",
    "Change",
    "Explainer",
    "Explanation",
    "Fold",
    "Formula",
    "InFlight",
    "Recorder",
    "Row",
    "Scope",
    "State",
    "TraceFileError",
    "TraceWriter",
    "arrow_schema",
    "explain",
    "frame_row",
    "iter_rows",
    "read",
    "trace_hash",
    "transcript",
    "write",
]
