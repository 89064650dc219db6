"""The schemas of traces and answers as Spark has them, from `trace.schema` and never inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as T

from workbench.trace.schema import COLUMNS, SCHEMA_VERSION, VERSION_KEY

if TYPE_CHECKING:
    from workbench.trace.schema import Field

__all__ = [
    "BY_BRAKE", "COMPARE", "CREDIT", "GRANTS", "HELD", "LATENCY", "LINK", "LOST", "PREFETCH",
    "RATES",
    "STALLS", "SUMMARY", "THROUGHPUT", "TRACE", "VIOLATIONS", "WINDOWS", "spark_type",
]  # fmt: skip

_WORDS: dict[str, T.DataType] = {
    "string": T.StringType(),
    "int64": T.LongType(),
    "int32": T.IntegerType(),
    "bool": T.BooleanType(),
    "binary": T.BinaryType(),
    "list<string>": T.ArrayType(T.StringType()),
}


def spark_type(column: Field) -> T.DataType:
    """Spark's type of a column or of a field in one."""
    if column.fields:
        return T.StructType(
            [T.StructField(inner.name, spark_type(inner), True) for inner in column.fields]
        )
    return _WORDS[column.type]


TRACE = T.StructType(
    [
        T.StructField(
            column.name,
            spark_type(column),
            column.nullable,
            {"doc": column.doc} | ({} if number else {VERSION_KEY: SCHEMA_VERSION}),
        )
        for number, column in enumerate(COLUMNS)
    ]
)
"""A trace: `data/README.md` field by field. What Spark writes keeps the version with `run`."""


def _answer(*columns: tuple[str, T.DataType, str]) -> T.StructType:
    return T.StructType(
        [T.StructField(name, kind, True, {"doc": doc}) for name, kind, doc in columns]
    )


_TEXT, _LONG, _INT, _BOOL = T.StringType(), T.LongType(), T.IntegerType(), T.BooleanType()
_REAL = T.DoubleType()

LINK_KEY: tuple[tuple[str, T.DataType, str], ...] = (
    ("run", _TEXT, "which run, branch or capture"),
    ("connection", _TEXT, "c1, c2, ..."),
    ("session", _INT, "ordinal of the session on its connection"),
    ("link", _TEXT, "the link's name; null where no attach of it is in the trace"),
    ("link_sender", _TEXT, "which peer sends messages over it"),
    ("attach_no", _INT, "1, 2, ... each time it is attached again"),
)
LINK: tuple[str, ...] = tuple(name for name, _, _ in LINK_KEY)
"""What names one link."""
_ROW_KEY = (
    *LINK_KEY,
    ("seq", _LONG, "the row of the trace"),
    ("frame_id", _LONG, "its frame"),
    ("end", _TEXT, "whose counters: sender or receiver"),
)
"""Columns that say which row of which link an answer speaks of."""

CREDIT = _answer(
    *_ROW_KEY,
    ("delivery_count", _LONG, "that end's delivery-count after the frame, 0 to 2^32-1"),
    ("link_credit", _LONG, "that end's link-credit after the frame, floored at 0"),
    ("known", _BOOL, "both counters can be known from the frames in the trace"),
)
STALLS = _answer(
    *_ROW_KEY,
    ("brake", _TEXT, "what held the sender"),
    ("start_us", _LONG, "since when, microseconds since the run's start"),
    ("end_us", _LONG, "until when; the run's last row if nothing released it"),
    ("messages_waiting", _LONG, "messages that waited at least"),
    ("release_frame_id", _LONG, "the frame that released it; null if none did"),
    ("evidence", _TEXT, "how it is known that messages waited: available, later-frames, internal"),
)
SUMMARY = _answer(
    *LINK_KEY,
    ("messages", _LONG, "deliveries that its sender began"),
    ("first_seq", _LONG, "the row of the first of them"),
    ("at_zero_us", _LONG, "time with link-credit 0"),
    ("lasted_us", _LONG, "time from its first frame to its last"),
    ("stalls", _LONG, "how often a sender with something to send was held"),
    ("longest_us", _LONG, "the longest of those"),
    ("longest_brake", _TEXT, "what held it then"),
    ("longest_seq", _LONG, "the row where that began"),
    ("violations", _LONG, "deliveries that were certainly begun without credit"),
    ("beyond_window", _LONG, "transfer frames that were certainly sent beyond the window"),
)
WINDOWS = _answer(
    *LINK_KEY[:3],
    ("sender", _TEXT, "which peer's transfers the window lets through"),
    ("frames", _LONG, "transfer frames of the sender"),
    ("messages", _LONG, "messages of the sender"),
    ("frames_per_message", _REAL, "null without a message"),
    ("grants", _LONG, "flows of the receiver that raised the window's upper end"),
    ("window_first", _LONG, "incoming-window of the receiver's begin"),
    ("window_least", _LONG, "smallest window; null if it was never known"),
    ("closed_times", _LONG, "intervals in which the window was 0"),
    ("closed_us", _LONG, "all of them together"),
    ("longest_closed_us", _LONG, "the longest of them"),
    ("worst_seq", _LONG, "the row with which that began; null if there is none"),
    ("known", _BOOL, "the window was known from the session's beginning"),
)
GRANTS = _answer(
    *LINK_KEY,
    ("grants", _LONG, "flows of the receiver that raised its limit, or the first with credit"),
    ("messages", _LONG, "messages of the link"),
    ("grants_per_message", _REAL, "null without a message"),
    ("granted", _LONG, "typical credit right after a grant"),
    ("left", _LONG, "typical credit right before a grant, the first left out"),
    ("interval_us", _LONG, "typical time from one grant to the next"),
    ("rule", _TEXT, "how the receiver tops up"),
    ("zero_times", _LONG, "intervals in which credit was 0 after the first grant"),
    ("zero_us", _LONG, "all of them together"),
    ("worst_seq", _LONG, "the row with which the longest of them began; null if there is none"),
    ("rate", _REAL, "messages per second while there was credit"),
    ("round_trip_us", _LONG, "typical time from a grant at credit 0 to the next message"),
    ("credit_needed", _LONG, "rate times round trip and interval, rounded up"),
    ("arithmetic", _TEXT, "how credit_needed was worked out, in words of numbers"),
    ("advice", _TEXT, "unknown, enough or raise"),
    ("known", _BOOL, "the delivery-count was known from the link's beginning"),
)
PREFETCH = _answer(
    *LINK_KEY[:3],
    ("consumer", _TEXT, "the consumer's tag"),
    ("seq", _LONG, "the row of the trace"),
    ("frame_id", _LONG, "its frame"),
    ("t_us", _LONG, "microseconds since the run's start"),
    ("prefetch_count", _LONG, "how many the consumer may have; 0 is any"),
    ("unacknowledged", _LONG, "how many it has, after the frame"),
    ("full", _BOOL, "as many as it may"),
)
LATENCY = _answer(
    *LINK_KEY,
    (
        "measure",
        _TEXT,
        "settlement, grant, drain, echo; without links confirm, ack, completion",
    ),
    ("count", _LONG, "how many were answered"),
    ("p50_us", _LONG, "half of them took no longer"),
    ("p90_us", _LONG, "nine tenths took no longer"),
    ("p99_us", _LONG, "99 of 100 took no longer"),
    ("max_us", _LONG, "the longest"),
    ("unanswered", _LONG, "begun and never ended"),
    ("worst_seq", _LONG, "where the slowest began; if none was answered, the first that began"),
)
THROUGHPUT = _answer(
    *LINK_KEY,
    ("window_start_us", _LONG, "where the window begins"),
    ("queue", _TEXT, "the first that a row of the link names"),
    ("messages", _LONG, "that the link's sender began in the window"),
    ("frames", _LONG, "transfer frames of the sender in it"),
    ("body_bytes", _LONG, "octets of bodies in those"),
    ("rate", _REAL, "messages per second"),
    ("queue_rate", _REAL, "the same of all links of this sender's side with this queue"),
    ("connection_rate", _REAL, "the same of all links of this sender on this connection"),
    ("share", _REAL, "of what this peer sent on this connection in the window"),
    ("jain", _REAL, "Jain's index of fairness between those links"),
    ("head_of_line_us", _LONG, "time with credit behind a closed session window"),
)
VIOLATIONS = _answer(
    *LINK_KEY,
    ("seq", _LONG, "the row of the trace"),
    ("frame_id", _LONG, "its frame"),
    ("from_peer", _TEXT, "who sent it"),
    ("what", _TEXT, "which rule it breaks"),
    ("clause", _TEXT, "where AMQP 1.0 says so"),
    ("by", _LONG, "by how many; null where no number tells"),
    ("certain", _BOOL, "nothing that was still on its way, or is missing, can excuse it"),
)
COMPARE = _answer(
    ("measure", _TEXT, "what is compared"),
    ("left", _REAL, "in the one trace"),
    ("right", _REAL, "in the other"),
    ("difference", _REAL, "right less left"),
    ("ratio", _REAL, "right by left; null if left is 0"),
    ("effect", _REAL, "Cohen's d; null for totals"),
    ("left_run", _TEXT, "where the one trace shows it most; null where it has nothing to show"),
    ("left_seq", _LONG, "the row of it"),
    ("right_run", _TEXT, "where the other trace shows it most"),
    ("right_seq", _LONG, "the row of it"),
)
RATES = _answer(
    ("window_start_us", _LONG, "where the window begins"),
    ("messages", _LONG, "that begin in it, over all links"),
)
HELD = _answer(
    ("window_start_us", _LONG, "where the window begins"),
    ("brake", _TEXT, "what held senders"),
    ("links", _LONG, "how many links it held at some moment of the window"),
)
BY_BRAKE = _answer(
    ("brake", _TEXT, "what held senders"),
    ("stalls", _LONG, "how often"),
    ("links", _LONG, "how many links"),
    ("lost_us", _LONG, "all of it together"),
    ("longest_us", _LONG, "the longest"),
)
LOST = _answer(
    ("run", _TEXT, "which run"),
    ("link", _TEXT, "the link's name"),
    ("brake", _TEXT, "what held its sender"),
    ("lost_us", _LONG, "all of it together"),
)
