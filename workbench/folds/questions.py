"""The questions by name: the fold of each, and the columns of its answer in their order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from workbench.trace.schema import Row

from .compare import compare
from .consumers import prefetch
from .credit import CreditRow, credit_rows
from .grants import grants
from .latency import latency
from .stalls import Stall, stalls
from .summary import LinkSummary, summarise
from .throughput import throughput
from .vantage import LinkKey
from .violations import violations
from .windows import windows

__all__ = ["QUESTIONS", "Question"]

_LINK = LinkKey._fields
_ORDER = (
    "run", "seq", "window_start_us", "connection", "session", "link", "link_sender", "attach_no",
    "sender", "measure", "what",
)  # fmt: skip
"""Columns by which answers are sorted, as far as they have them: the key of each, and more."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one trace; `compare` alone is about two.

    Attributes:
        fold: takes the rows of each trace, in order, and the question's own arguments by name.
        columns: names, in the order in which an answer has them.
        about: what it tells, as the command line lists it.
    """

    fold: Callable[..., Sequence[Any]]
    columns: tuple[str, ...]
    about: str

    def answer(self, *traces: Sequence[Row], **arguments: Any) -> list[dict[str, Any]]:
        """The rows of the answer, in order of the row of the trace, the time or the link.

        Args:
            traces: the rows of each trace in order.
            arguments: `window_us` of `throughput`, `min_us` and `prompt_us` of `stalls`.
        """
        found = []
        for row in self.fold(*traces, **arguments):
            values = _plain(row)
            found.append({name: values[name] for name in self.columns})
        names = self.order
        return sorted(found, key=lambda row: tuple((row[n] is not None, row[n]) for n in names))

    @property
    def order(self) -> list[str]:
        """The columns by which the answer is sorted, null first; none for `compare`."""
        return [name for name in _ORDER if "run" in self.columns and name in self.columns]


def _plain(row: Any) -> dict[str, Any]:
    if isinstance(row, LinkSummary):
        return asdict(row)
    plain: dict[str, Any] = row if isinstance(row, dict) else row._asdict()
    return plain


QUESTIONS: dict[str, Question] = {
    "summary": Question(
        summarise, tuple(field.name for field in fields(LinkSummary)),
        "per link or channel: messages, time at zero credit, longest stall, advice",
    ),
    "stalls": Question(
        stalls, Stall._fields,
        "when a sender had something to send and a brake was on, and which brake",
    ),
    "credit": Question(
        credit_rows, CreditRow._fields,
        "both counters of every link at every frame, from the wire alone",
    ),
    "windows": Question(
        windows,
        ("run", "connection", "session", "sender", "frames", "messages", "frames_per_message",
         "grants", "window_first", "window_least", "closed_times", "closed_us",
         "longest_closed_us", "worst_seq", "known"),
        "per session and direction: how often and how long its window was closed",
    ),
    "grants": Question(
        grants,
        (*_LINK, "grants", "messages", "grants_per_message", "granted", "left", "interval_us",
         "rule", "zero_times", "zero_us", "worst_seq", "rate", "round_trip_us", "credit_needed",
         "arithmetic", "advice", "known"),
        "per link: how its receiver tops up, and what credit it needs",
    ),
    "latency": Question(
        latency,
        (*_LINK, "measure", "count", "p50_us", "p90_us", "p99_us", "max_us", "unanswered",
         "worst_seq"),
        "per link: settlement, grant, drain and echo, percentiles; of 0-9-1 confirm and ack, of"
        " 0-10 completion",
    ),
    "throughput": Question(
        throughput,
        (*_LINK, "window_start_us", "queue", "messages", "frames", "body_bytes", "rate",
         "queue_rate", "connection_rate", "share", "jain", "head_of_line_us"),
        "per second and link: rate, share, fairness, time behind a closed window",
    ),
    "prefetch": Question(
        prefetch,
        ("run", "connection", "session", "consumer", "seq", "frame_id", "t_us", "prefetch_count",
         "unacknowledged", "full"),
        "AMQP 0-9-1: what each consumer has at every frame, against what it may have",
    ),
    "violations": Question(
        violations,
        (*_LINK, "seq", "frame_id", "from_peer", "what", "clause", "by", "certain"),
        "frames that break a rule, with the clause",
    ),
    "compare": Question(
        compare,
        ("measure", "left", "right", "difference", "ratio", "effect", "left_run", "left_seq",
         "right_run", "right_seq"),
        "two traces side by side, with effect sizes",
    ),
}  # fmt: skip
