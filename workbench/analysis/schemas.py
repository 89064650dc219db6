"""The schemas of traces and answers as Spark has them, from `trace.schema` and never inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import types as T

from workbench.trace.schema import COLUMNS, SCHEMA_VERSION, VERSION_KEY

if TYPE_CHECKING:
    from workbench.trace.schema import Field

__all__ = [
    "BY_BRAKE", "COMPARE", "CREDIT", "GRANTS", "HELD", "LATENCY", "LINK", "LOST", "PREFETCH",
    "RATES", "STALLS", "SUMMARY", "THROUGHPUT", "TRACE", "VIOLATIONS", "WINDOWS", "spark_type",
]  # fmt: skip

_WORDS: dict[str, T.DataType] = {
    "string": T.StringType(),
    "int64": T.LongType(),
    "int32": T.IntegerType(),
    "bool": T.BooleanType(),
    "double": T.DoubleType(),
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


def _answer(*columns: str) -> T.StructType:
    """Columns by name and type; `data/README.md` says what they mean."""
    each = (column.split() for column in ", ".join(columns).split(", "))
    return T.StructType([T.StructField(name, _WORDS[kind]) for name, kind in each])


_SESSION = "run string, connection string, session int32"
_LINK = f"{_SESSION}, link string, link_sender string, attach_no int32"
_ROW = f"{_LINK}, seq int64, frame_id int64, end string"
LINK: tuple[str, ...] = tuple(_answer(_LINK).names)
"""What names one link."""

CREDIT = _answer(_ROW, "delivery_count int64, link_credit int64, known bool")
STALLS = _answer(
    _ROW,
    "brake string, start_us int64, end_us int64, messages_waiting int64",
    "release_frame_id int64, evidence string",
)
SUMMARY = _answer(
    _LINK,
    "messages int64, first_seq int64, at_zero_us int64, lasted_us int64, stalls int64",
    "longest_us int64, longest_brake string, longest_seq int64, violations int64",
    "beyond_window int64",
)
WINDOWS = _answer(
    _SESSION,
    "sender string, frames int64, messages int64, frames_per_message double, grants int64",
    "window_first int64, window_least int64, closed_times int64, closed_us int64",
    "longest_closed_us int64, worst_seq int64, known bool",
)
GRANTS = _answer(
    _LINK,
    "grants int64, messages int64, grants_per_message double, granted int64, left int64",
    "interval_us int64, rule string, zero_times int64, zero_us int64, worst_seq int64",
    "rate double, round_trip_us int64, credit_needed int64, arithmetic string, advice string",
    "known bool",
)
PREFETCH = _answer(
    _SESSION,
    "consumer string, seq int64, frame_id int64, t_us int64, prefetch_count int64",
    "unacknowledged int64, full bool",
)
LATENCY = _answer(
    _LINK,
    "measure string, count int64, p50_us int64, p90_us int64, p99_us int64, max_us int64",
    "unanswered int64, worst_seq int64",
)
THROUGHPUT = _answer(
    _LINK,
    "window_start_us int64, queue string, messages int64, frames int64, body_bytes int64",
    "rate double, queue_rate double, connection_rate double, share double, jain double",
    "head_of_line_us int64",
)
VIOLATIONS = _answer(
    _LINK,
    "seq int64, frame_id int64, from_peer string, what string, clause string, by int64",
    "certain bool",
)
COMPARE = _answer(
    "measure string, left double, right double, difference double, ratio double",
    "effect double, left_run string, left_seq int64, right_run string, right_seq int64",
)
RATES = _answer("window_start_us int64, messages int64")
HELD = _answer("window_start_us int64, brake string, links int64")
BY_BRAKE = _answer("brake string, stalls int64, links int64, lost_us int64, longest_us int64")
LOST = _answer("run string, link string, brake string, lost_us int64")
