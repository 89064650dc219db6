"""What does each consumer of AMQP 0-9-1 have, against what it may have?

`prefetch` of `data/README.md`: one row for each frame that concerns a consumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import BROKER

from .channels import channel_rows
from .chunks import Chunks
from .compose import question
from .endpoint_view import VIEW
from .schemas import PREFETCH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["prefetch"]


@question(PREFETCH)
def prefetch(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for each frame that concerns a consumer."""
    limit = F.col("prefetch_count")
    return channel_rows(trace).where(
        (F.col(VIEW) == BROKER) & F.col("consumer").isNotNull() & limit.isNotNull()
    )
