"""The row before, for rows dealt to cells: what `lag` is, without one task for one link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from .chunks import CELL, CHUNK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

__all__ = ["with_previous"]


def with_previous(cells: DataFrame, columns: Sequence[str], name: str = "previous") -> DataFrame:
    """Adds a struct of these columns as they are in the row before of the same `key`.

    Args:
        cells: rows with `cell`, `chunk`, `key` and `seq`.
        columns: what is wanted of the row before.
        name: of the struct; null in the first row of a key.
    """
    order = Window.partitionBy(CELL, "key").orderBy("seq")
    here = F.struct(*columns)
    local = cells.withColumns(
        {name: F.lag(here).over(order), "is_last": F.lead("seq").over(order).isNull()}
    )
    ends = local.where("is_last").select(CELL, CHUNK, "key", here.alias("it"))
    earlier = Window.partitionBy("key").orderBy(CHUNK).rowsBetween(Window.unboundedPreceding, -1)
    carried = ends.select(
        CELL, "key", F.last("it", ignorenulls=True).over(earlier).alias("carried")
    )
    return (
        local.join(F.broadcast(carried), [CELL, "key"])
        .withColumn(name, F.coalesce(name, "carried"))
        .drop("carried", "is_last")
    )
