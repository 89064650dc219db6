"""What a sender may send after each row: credit of a link, window of a session.

The one way in which every question works them out. A row says what its frame does to the counters
by a code and two numbers: most of a job's time goes into carrying rows from task to task and
putting them in order, so they are as narrow as can be. The definition is `folds.counters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from workbench.trace.schema import OBSERVED, RECEIVED

from . import serials
from .chunks import Chunks
from .endpoint_view import ends_message
from .lost import NEVER
from .segmented_scan import segmented_scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "GRANTED", "MOVED", "OPENED", "TRANSFERRED", "begun", "begun_since", "counted", "counter",
    "left", "limit", "link_word", "room", "scanned", "session_word", "stands", "unspoken",
    "with_left",
]  # fmt: skip

OTHER, TRANSFERRED, OPENED, MOVED, STARTED, STATED, WELCOMED, GRANTED = range(8)
"""What a frame does to counters; see `link_word` and `session_word`."""


def link_word(kind: Column, user: Column) -> dict[str, Column]:
    """What a frame does to its link's counters.

    | `op` | | `stated` | `given` |
    |---|---|---|---|
    | `TRANSFERRED` | transfer of the sender, its last | delivery-count by the importer | 1 if so |
    | `OPENED` | transfer of the sender, and more will follow | the same | the same |
    | `STARTED` | attach of the sender | initial-delivery-count | 1 if none was granted before |
    | `STATED` | flow of the sender with its count | delivery-count | credit, if its own row |
    | `WELCOMED` | attach of the receiver | | 1 if none was granted before |
    | `GRANTED` | flow of the receiver with credit | delivery-count | link-credit |
    | `OTHER` | anything else | | |

    Args:
        kind: of the row, which has the fields on the wire, `event`, `attach_no`, and of
            `endpoint_view` `reckoned`, `attaches` and, as `lost`, `lost_places`.
        user: the frame is of the link's sender; null where that is not known.
    """
    theirs, user = F.coalesce(~user, F.lit(False)), F.coalesce(user, F.lit(False))
    transfer, flow, attach = (kind == name for name in ("transfer", "flow", "attach"))
    count, credit = F.col("delivery_count"), F.col("link_credit")
    # See `folds.vantage.told_by_importer`.
    unseen = F.col("attach_no").isNull() | F.coalesce(F.col("lost.own") > NEVER, F.lit(False))
    told = (F.col("event") == OBSERVED) & unseen
    over = ends_message(F.col("more"), F.col("aborted"))
    op = (
        F.when(user & transfer, F.when(over, TRANSFERRED).otherwise(OPENED))
        .when(user & attach, STARTED)
        .when(theirs & attach, WELCOMED)
        .when(user & flow & count.isNotNull(), STATED)
        .when(theirs & flow & credit.isNotNull(), GRANTED)
        .otherwise(OTHER)
    )
    stated = (
        F.when(transfer, F.when(told, F.col("reckoned")))
        .when(attach & user, F.col("initial_delivery_count"))
        .when(flow, count)
    )
    given = (
        F.when(transfer, F.when(told, 1))
        .when(attach, F.when(F.col("attaches"), 1))
        # The receiver, whose row it may be, knows of what it has granted since.
        .when(flow & (theirs | (F.col("event") != RECEIVED)), credit)
    )
    return {"op": op, "stated": stated.cast("long"), "given": given.cast("long")}


def session_word(kind: Column, said: Column) -> dict[str, Column]:
    """What a frame does to the counters of its session, in one direction.

    `STARTED` by the sender's begin and `STATED` by its flow, with its next-outgoing-id; `GRANTED`
    by a begin or flow of its peer, with next-incoming-id and incoming-window; `MOVED` by each of
    its transfers.

    Args:
        kind: of the row, which has the fields on the wire.
        said: the frame is of the sender.
    """
    flow, begin = kind == "flow", kind == "begin"
    number, window = F.col("next_outgoing_id"), F.col("incoming_window")
    op = (
        F.when(said & (kind == "transfer"), MOVED)
        .when(said & begin, STARTED)
        .when(said & flow & number.isNotNull(), STATED)
        .when(~said & (begin | flow) & window.isNotNull(), GRANTED)
        .otherwise(OTHER)
    )
    return {
        "op": op,
        "stated": F.when(said, number).otherwise(F.col("next_incoming_id")).cast("long"),
        "given": F.when(~said, window).cast("long"),
    }


def counted(
    rows: DataFrame,
    chunks: Chunks,
    *,
    links: bool,
    lasts: Mapping[str, Column] | None = None,
    marks: Mapping[str, Column] | None = None,
    of: str = "",
    key: str = "key",
) -> DataFrame:
    """Adds what the other functions here read.

    Args:
        rows: with `seq`, the key, `lost`, and what a frame does by `link_word` or `session_word`.
        chunks: how they are cut.
        links: it is by `link_word`.
        lasts: what else is to be remembered, as of `segmented_scan`.
        marks: the same, with the sum and the state.
        of: what the names of those columns begin with.
        key: whose rows follow each other.
    """
    op, stated, given = (F.col(of + name) for name in ("op", "stated", "given"))
    placed = F.struct("seq", stated.alias("at"), given.alias("more"))
    message = op.isin(TRANSFERRED, OPENED)
    attach = op.isin(STARTED, WELCOMED) & given.isNotNull()
    counts = op.isin(STARTED, STATED) | (message & given.isNotNull())
    remembered = {
        "grant": F.when(op == GRANTED, placed),
        "start": F.when(op == STARTED, F.struct(stated.alias("number"))),
    }
    of_links = {
        "claim": F.when((op == STATED) & given.isNotNull(), placed),
        "attach": F.when(attach, F.col("seq")),
    }
    state = F.when(message, op == TRANSFERRED).when(op == STARTED, F.lit(True))
    read = segmented_scan(
        rows, chunks, remembered | (of_links if links else {}) | dict(lasts or {}),
        marks={"base": F.when(counts, F.struct("seq", stated.alias("number"))), **(marks or {})},
        count=op.isin(TRANSFERRED, MOVED), state=state if links else None, key=key,
    )  # fmt: skip
    # What sessions have not is not carried through their windows, which copy each row.
    none = {} if links else {name: F.lit(None).cast(kind) for name, kind in _OF_LINKS.items()}
    return read.withColumns(none) if none else read


_PLACED = "struct<seq: bigint, at: bigint, more: bigint>"
_OF_LINKS = {
    "state": "boolean", "state_before": "boolean", "now_claim": _PLACED, "was_claim": _PLACED,
    "now_attach": "bigint", "was_attach": "bigint",
}  # fmt: skip


def scanned(*more: str) -> list[str]:
    """The columns that `counted` adds, with those of what else is remembered."""
    names = ("grant", "claim", "start", "attach", "base", *more)
    return [
        "n",
        "state",
        "state_before",
        *(f"{when}_{one}" for when in ("was", "now") for one in names),
    ]


def with_left(read: DataFrame) -> DataFrame:
    """Adds `count`, the sender's counter, and `left`, what it may send, after each row.

    Args:
        read: of `counted`.
    """
    # In two steps: what a formula names several times is not worked out several times.
    read = read.withColumn("count", counter(F.col("lost")))
    return read.withColumn("left", left(F.col("count"), F.col("lost")))


def begun(when: str = "now") -> Column:
    """Messages, or frames, begun so far, the row's own included; or, by "was", before the row."""
    if when == "now":
        return F.col("n") + _still_open(F.col("state"))
    own = F.col("op").isin(TRANSFERRED, MOVED).cast("long")
    return F.col("n") - own + _still_open(F.col("state_before"))


def begun_since(mark: Column, when: str = "now") -> Column:
    """Those begun since a mark of the scan; one may have been in the middle then."""
    return begun(when) - mark["n"] - _still_open(mark["state"])


def counter(lost: Column, when: str = "now") -> Column:
    """The sender's counter: what was stated, and the messages or frames begun since.

    Args:
        lost: where octets are missing by then.
        when: after the row ("now") or before it ("was").
    """
    base = F.col(f"{when}_base")
    # The first transfer there is may be of a message that began before.
    state = F.col("state" if when == "now" else "state_before")
    sure = base["state"].isNotNull() | state.isNull()
    count = serials.add(base["it"]["number"], begun_since(base, when))
    return F.when(sure & stands(base["it"]["seq"], lost["own"]), count)


def room(count: Column, lost: Column, when: str = "now") -> Column:
    """How many more may be sent by the peer's latest word; below 0, by how many it is overrun."""
    grant, start = F.col(f"{when}_grant"), F.col(f"{when}_start")
    at, more = F.coalesce(grant["at"], start["number"]), grant["more"]
    return F.when(stands(grant["seq"], lost["peer"]), more - serials.used(more, at, count))


def left(count: Column, lost: Column, when: str = "now") -> Column:
    """The credit or window, 0 to 2^32 - 1; null if it is not known.

    Args:
        count: the sender's counter then.
        lost: where octets are missing by then.
        when: after the row ("now") or before it ("was").
    """
    grant, claim = F.col(f"{when}_grant"), F.col(f"{when}_claim")
    more = grant["more"]
    # A limit of 0 is 0 whatever the count is, and what was allowed before the sender has begun is
    # what it will begin with.
    nothing_lost = F.coalesce(lost["own"], F.lit(NEVER)) == NEVER
    early = grant["at"].isNull() & F.col(f"{when}_start")["number"].isNull() & nothing_lost
    by_grant = F.coalesce(_floored(room(count, lost, when)), F.when((more == 0) | early, more))
    told = grant.isNotNull() & stands(grant["seq"], lost["peer"])
    claimed = stands(claim["seq"], lost["peer"]) & stands(claim["seq"], lost["own"])
    by_claim = claim["more"] - serials.used(claim["more"], claim["at"], count)
    return (
        F.when(told, by_grant)
        .when(unspoken(lost, when), F.lit(0).cast("long"))
        .when(claimed, _floored(by_claim))
    )


def unspoken(lost: Column, when: str = "now") -> Column:
    """A link was attached, and its receiver has granted nothing yet."""
    attach = F.col(f"{when}_attach")
    there = attach.isNotNull() & stands(attach, lost["peer"])
    return F.col(f"{when}_grant").isNull() & there


def limit() -> Column:
    """The limit by the peer's latest word, as a serial number; null if it is not known."""
    at = F.coalesce("now_grant.at", "now_start.number")
    return serials.add(at, F.col("now_grant.more"))


def stands(told_seq: Column, lost_seq: Column) -> Column:
    """What was told in a row still counts: nothing is missing since of who told it."""
    return lost_seq.isNull() | (told_seq > lost_seq)


def _still_open(ended: Column) -> Column:
    """1 in the middle of a message: it is counted, and its end has not come yet."""
    return (~F.coalesce(ended, F.lit(True))).cast("long")


def _floored(room: Column) -> Column:
    return F.when(room.isNotNull(), F.least(F.greatest(room, F.lit(0)), F.lit(serials.LARGEST)))
