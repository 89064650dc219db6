"""`credit`: both counters of every link at every frame; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.trace.schema import AMQP_1_0, LOSSES, OBSERVED, SENT, Row

from .counters import Limit
from .vantage import lost_by, reckoned, value

__all__ = ["RECEIVER", "SENDER", "CreditRow", "credit_rows"]

SENDER, RECEIVER = "sender", "receiver"

_Key = tuple[str, str | None, int | None, str | None, str | None, int | None]


class CreditRow(NamedTuple):
    """Counters of one end of a link after a frame; see `data/README.md` for the key."""

    run: str
    connection: str | None
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    seq: int
    frame_id: int | None
    end: str
    delivery_count: int | None
    link_credit: int | None
    known: bool


@dataclass(slots=True)
class _Counters:
    """What is known of a link at one place. None: not known."""

    limit: Limit = field(default_factory=Limit)
    granted: int | None = None
    by_claim: bool = True  # what is granted was stated by the sender, so its next word counts too
    delivery_open: bool | None = None
    last_id: int | None = None

    def allow(self, at: int | None, credit: int, *, by_claim: bool = False) -> None:
        self.granted, self.by_claim = credit, by_claim
        self.limit.allow(at, credit)

    def left(self, untouched: bool) -> int | None:
        if self.granted is None or self.limit.left is not None:
            return None if self.granted is None else self.limit.left
        # Credit 0 is 0 whatever the count is, and what was granted before the sender's attach, of
        # which nothing is missing, is what it will begin with.
        early = untouched and self.limit.started is None
        return self.granted if self.granted == 0 or early else None


@dataclass(slots=True)
class _Connection:
    headers: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)


def credit_rows(rows: Sequence[Row]) -> list[CreditRow]:
    """Both counters of every link at each of its frames, from the wire fields alone.

    Args:
        rows: a whole trace in order; its runs may follow each other.
    """
    connections: dict[tuple[str, str | None], _Connection] = {}
    for row in rows:
        if row.kind == "protocol-header" and row.from_peer:
            connections.setdefault((row.run, row.connection), _Connection()).headers.add(
                row.from_peer
            )
    links: dict[tuple[_Key, str], _Counters] = {}
    found: list[CreditRow] = []
    for row in rows:
        connection = connections.setdefault((row.run, row.connection), _Connection())
        if row.event in LOSSES:
            peer = lost_by(row)
            connection.lost.add(str(peer))
            for (key, _), counters in links.items():
                if key[:2] == (row.run, row.connection):
                    _forget(counters, key[4] == peer)
            continue
        if not row.is_frame or row.protocol != AMQP_1_0 or row.session is None:
            continue
        if row.link is None and value(row, "handle") is None:
            continue
        key = (row.run, row.connection, row.session, row.link, row.link_sender, row.attach_no)
        if row.link is None or row.link_sender is None:
            found.append(CreditRow(*key, row.seq, row.frame_id, SENDER, None, None, False))
            continue
        end = _end(row)
        untouched = len(connection.headers) == 2 and not connection.lost
        mine = links.get((key, end))
        if mine is None:
            mine = links[key, end] = _Counters()
            if untouched:
                mine.allow(None, 0)
        _apply(mine, row, end, lost=row.link_sender in connection.lost)
        left = mine.left(untouched)
        count = mine.limit.count
        known = left is not None and count is not None
        found.append(CreditRow(*key, row.seq, row.frame_id, end, count, left, known))
    return found


def _end(row: Row) -> str:
    """Whose counters the row tells of."""
    if row.event == OBSERVED:
        return SENDER
    return SENDER if (row.event == SENT) == (row.from_peer == row.link_sender) else RECEIVER


def _forget(counters: _Counters, sender: bool) -> None:
    """Frames are missing: of the sender, or of the receiver."""
    if sender:
        counters.limit.forget()
        counters.delivery_open = None
        if counters.by_claim:
            counters.granted = None
    else:
        counters.granted, counters.by_claim = None, True


def _apply(counters: _Counters, row: Row, end: str, *, lost: bool) -> None:
    from_sender = row.from_peer == row.link_sender
    count, credit = value(row, "delivery_count"), value(row, "link_credit")
    if row.kind == "attach" and from_sender:
        counters.limit.begin(value(row, "initial_delivery_count"))
        counters.delivery_open, counters.last_id = False, None
    elif row.kind == "attach":
        counters.allow(None, 0)
    elif row.kind == "flow" and from_sender and count is not None:
        counters.limit.state(count)
        if credit is not None and counters.by_claim and end == SENDER:
            counters.allow(count, credit, by_claim=True)
    elif row.kind == "flow" and not from_sender and credit is not None:
        counters.allow(count, credit)
    elif row.kind == "transfer" and from_sender:
        count = reckoned(row, lost=lost)
        if count is None:
            _transfer(counters, row)
        else:
            counters.limit.state(count)


def _transfer(counters: _Counters, row: Row) -> None:
    """A delivery counts once, at its first transfer, which must carry its delivery-id [2.7.5]."""
    delivery_id = value(row, "delivery_id")
    another = delivery_id is not None and counters.last_id not in (None, delivery_id)
    if counters.delivery_open is None:
        if delivery_id is not None:
            counters.limit.forget()
    elif not counters.delivery_open or another:
        counters.limit.step()
    counters.delivery_open = row.goes_on
    counters.last_id = delivery_id
