"""The rows of a trace that concern a link, with what each does to the link's counters.

Most of a job's time goes into carrying rows from task to task and putting them in order, so a row
is made as narrow as it can be: its link is one number, and what its frame does to the counters is
a code and two numbers. The names of links are few and travel on their own (`link_names`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED

from .chunks import UNIT, unit
from .endpoint_view import (
    ends_message,
    is_named,
    needed,
    of_a_link,
    other,
    reckoned,
    roster,
    stray,
)
from .lost import gaps, lost_of, with_lost
from .schemas import LINK

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "GRANTED", "OPENED", "OTHER", "RECEIVER", "SENDER", "STARTED", "STATED", "TRANSFERRED",
    "WELCOMED", "by_user", "link_names", "link_rows",
]  # fmt: skip

SENDER, RECEIVER = "sender", "receiver"
OTHER, TRANSFERRED, OPENED, STARTED, STATED, WELCOMED, GRANTED = range(7)
"""What a frame does to its link's counters; see `link_rows`."""


def link_rows(trace: DataFrame, more: Mapping[str, Column] | None = None) -> DataFrame:
    """Frames that concern one link.

    Args:
        trace: the trace.
        more: columns to be carried along, as expressions over the trace's row.

    Returns:
        `key` (of link and end), `unit`, `seq`, `lost_user`, `lost_granter` (seq of the last place
        before the row where frames are missing of the link's sender, and of its receiver; else
        `NEVER`), what was asked for, and what the frame does:

        | `op` | | `said` | `given` |
        |---|---|---|---|
        | `TRANSFERRED` | transfer of the sender, its last | delivery-id | |
        | `OPENED` | transfer of the sender, and more will follow | delivery-id | |
        | `STARTED` | attach of the sender | initial-delivery-count | |
        | `STATED` | flow of the sender with its count | delivery-count | credit, if its own row |
        | | transfer whose count the importer knows | delivery-count | |
        | `WELCOMED` | attach of the receiver: no credit yet | | |
        | `GRANTED` | flow of the receiver with credit | delivery-count | link-credit |
        | `OTHER` | anything else | | |

        Nothing is counted for a frame that names neither its link nor who sends over it, as of a
        link that was attached before the capture and has sent nothing yet.
    """
    frame, user = F.col("frame"), by_user()
    rows = trace.where(of_a_link()).select(
        _key(_end()).alias("key"),
        "run",
        "connection",
        "link_sender",
        "attach_no",
        "seq",
        _op(user).alias("op"),
        *(frame[name].alias(name) for name in _FIELDS),
        F.when(user, reckoned()).alias("reckoned"),
        (_end() == SENDER).alias("own"),
        *(column.alias(name) for name, column in (more or {}).items()),
    )
    counted = F.col("counted")
    op = F.when(counted.isNotNull(), STATED).otherwise(F.col("op"))
    said = (
        F.when(counted.isNotNull(), counted)
        .when(F.col("op").isin(TRANSFERRED, OPENED), F.col("delivery_id"))
        .when(F.col("op") == STARTED, F.col("initial_delivery_count"))
        .when(F.col("op").isin(STATED, GRANTED), F.col("delivery_count"))
    )
    # The sender states what it has left; the receiver's own number may be ahead of that.
    given = F.when(
        (F.col("op") == GRANTED) | ((F.col("op") == STATED) & F.col("own")), F.col("link_credit")
    )
    user = F.col("link_sender")
    gapped = rows.join(F.broadcast(gaps(trace)), ["run", "connection"], "left")
    return with_lost(gapped).withColumn("counted", needed()).select(
        "key", unit().alias(UNIT), "seq", op.alias("op"), said.alias("said"), given.alias("given"),
        lost_of(user).alias("lost_user"), lost_of(other(user)).alias("lost_granter"),
        *(more or {}),
    )  # fmt: skip


_FIELDS = ("initial_delivery_count", "delivery_count", "link_credit", "delivery_id")


def by_user() -> Column:
    """The frame is of the link's sender; null where the sender is not known."""
    return F.col("from_peer") == F.col("link_sender")


def _end() -> Column:
    """Whose counters a row tells of: a capture shows the sender's, an end its own."""
    user = by_user()
    own = F.when(F.col("event") == RECEIVED, ~user).otherwise(user)
    return F.when((F.col("event") == OBSERVED) | F.coalesce(own, F.lit(True)), SENDER).otherwise(
        RECEIVER
    )


def _key(end: Column) -> Column:
    """An unnamed link is told apart by its handle, so that it is never mixed with another."""
    return F.xxhash64(*LINK, end, stray())


def _op(user: Column) -> Column:
    frame, kind = F.col("frame"), F.col("kind")
    count, credit = frame["delivery_count"], frame["link_credit"]
    goes_on = ~ends_message(frame["more"], frame["aborted"])
    granter = F.coalesce(is_named() & ~user, F.lit(False))
    user = F.coalesce(is_named() & user, F.lit(False))
    return (
        F.when(user & (kind == "transfer"), F.when(goes_on, OPENED).otherwise(TRANSFERRED))
        .when(user & (kind == "flow") & count.isNotNull(), STATED)
        .when(granter & (kind == "flow") & credit.isNotNull(), GRANTED)
        .when(user & (kind == "attach"), STARTED)
        .when(granter & (kind == "attach"), WELCOMED)
        .otherwise(OTHER)
    )


def link_names(trace: DataFrame) -> DataFrame:
    """What the keys of `link_rows` stand for: a row for each end of each link.

    Columns: `key`, those of the link's name, `end`, and `whole`: no frame of its connection is
    missing at the beginning of the trace.
    """
    connection = Window.partitionBy("run", "connection")
    named = is_named()
    ends = F.when(named, F.array(F.lit(SENDER), F.lit(RECEIVER))).otherwise(F.array(F.lit(SENDER)))
    return (
        roster(trace)
        .withColumn(
            "whole", F.max(CLIENT).over(connection) & F.max(BROKER).over(connection) & named
        )
        .where("of_a_link")
        .withColumn("end", F.explode(ends))
        .select(F.xxhash64(*LINK, "end", "handle").alias("key"), *LINK, "end", "whole")
    )
