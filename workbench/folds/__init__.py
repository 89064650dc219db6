"""The questions of `data/README.md` as plain folds over rows: no Spark, no Java, nothing clever.

They define the questions, answer them for traces of up to half a million rows, and are a second
opinion on the Spark queries of `analysis`: both are written from `data/README.md`, and neither from
the other.
"""

from .compare import compare
from .credit import CreditRow, credit_rows
from .grants import grants
from .latency import latency
from .questions import QUESTIONS
from .stalls import Stall, stalls
from .summary import LinkSummary, advice, summarise
from .throughput import throughput
from .violations import violations
from .windows import windows

__all__ = [
    "QUESTIONS", "CreditRow", "LinkSummary", "Stall", "advice", "compare", "credit_rows", "grants",
    "latency", "stalls", "summarise", "throughput", "violations", "windows",
]  # fmt: skip
