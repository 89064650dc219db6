"""What are both counters of every link at every row, from the fields on the wire alone?

A link's sender counts deliveries and lives on a limit: delivery-count plus link-credit of the
receiver's last flow [AMQP 1.0, 2.6.7]. Serial numbers wrap, a message of several transfers counts
once, a drain moves the count, an attach begins anew, and what happened before the trace begins is
not known until an end states it. In a trace of both ends each row tells the counters of the end
that logged it; in a capture, the sender's entitlement at the place where it was made.

One shuffle: rows go to tasks by chunk of the trace, never by link (`chunks`, `counters`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .chunks import Chunks
from .compose import question
from .links import with_counters
from .schemas import CREDIT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["credit"]


@question(CREDIT)
def credit(trace: DataFrame, chunks: Chunks) -> DataFrame:
    """Gives one row for every frame that concerns a link."""
    return with_counters(trace, {"frame_id": F.col("frame_id")}, chunks).withColumns(
        {
            "delivery_count": F.col("count"),
            "link_credit": F.col("left"),
            "known": F.col("count").isNotNull() & F.col("left").isNotNull(),
        }
    )
