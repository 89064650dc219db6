"""What lesson 10 asks, checks and needs: the notebook imports it by name."""

from __future__ import annotations

from . import spark_check as check
from . import spark_predict as predict
from .spark_desk import WINDOW_US, start_spark
from .spark_shows import archive_chart, dip_table, drawn, held_over_time, rate_over_time
from .spark_traces import big_trace, cannot_tell, real_captures

__all__ = [
    "WINDOW_US",
    "archive_chart",
    "big_trace",
    "cannot_tell",
    "check",
    "dip_table",
    "drawn",
    "held_over_time",
    "predict",
    "rate_over_time",
    "real_captures",
    "start_spark",
]
