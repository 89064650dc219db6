"""Where octets of a connection are missing, and with them what its frames said.

What a peer has told counts until the next place where some of its octets are missing: of its
counters, as a sender, and of what it has allowed, as the other one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import BROKER, CLIENT, LOSSES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["NEVER", "gaps", "lost_of", "with_lost"]

NEVER = -1
"""In place of a `seq`: nothing is missing."""


def with_lost(rows: DataFrame) -> DataFrame:
    """Adds the last place before each row where octets of its connection are missing, by peer.

    Args:
        rows: with `seq`, and their connection's columns of `gaps`.

    Returns:
        The rows with `lost_client` and `lost_broker`, null where there is none, without the gaps.
    """
    peers = {_column(peer): _last_gap(F.col(peer)) for peer in (CLIENT, BROKER)}
    return rows.withColumns(peers).drop(CLIENT, BROKER)


def lost_of(peer: Column) -> Column:
    """The seq of the last place before the row where octets of it are missing, or `NEVER`."""
    found = F.when(peer == CLIENT, F.col(_column(CLIENT)))
    return F.coalesce(found.when(peer == BROKER, F.col(_column(BROKER))), F.lit(NEVER).cast("long"))


def _column(peer: str) -> str:
    return f"lost_{peer}"


def gaps(trace: DataFrame) -> DataFrame:
    """Where frames are missing, by connection and by the peer that had sent them: a few rows.

    For each peer the places in order, cut into blocks, and the first place of each block: a row
    then looks at twice the root of their number and not at all of them.

    Returns:
        `run`, `connection` and, by the names of the peers, the places, null where there are none.
    """
    in_version_1 = F.get_json_object(F.col("frame")["extra_json"], "$.from_peer")
    peer = F.coalesce(F.col("details")["from_peer"], in_version_1, F.col("from_peer"))
    found = (
        trace.where(F.col("event").isin(*LOSSES))
        .select("run", "connection", "seq", peer.alias("peer"))
        .groupBy("run", "connection")
        .agg(
            *(
                F.sort_array(F.collect_list(F.when(F.col("peer") == one, F.col("seq")))).alias(one)
                for one in (CLIENT, BROKER)
            )
        )
    )
    return found.select("run", "connection", *(_in_blocks(one) for one in (CLIENT, BROKER)))


def _in_blocks(peer: str) -> Column:
    count = F.size(peer)
    size = F.ceil(F.sqrt(count)).cast("int")
    firsts = F.sequence(F.lit(1), count, size)
    blocks = F.transform(firsts, lambda first: F.slice(peer, first, size))
    there = F.struct(
        F.transform(firsts, lambda first: F.element_at(peer, first)).alias("firsts"),
        blocks.alias("blocks"),
    )
    return F.when(count > 0, there).alias(peer)


def _last_gap(gaps: Column) -> Column:
    """The seq of the last gap before the row; null if there is none."""
    before = F.size(F.filter(gaps["firsts"], lambda first: first < F.col("seq")))
    block = F.when(before > 0, F.get(gaps["blocks"], before - 1))
    return F.array_max(F.filter(block, lambda seq: seq < F.col("seq")))
