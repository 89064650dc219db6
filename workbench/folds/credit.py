"""`credit`: both counters of every link at every frame; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench import serial
from workbench.trace.schema import AMQP_1_0, OBSERVED, SENT, Row

__all__ = ["RECEIVER", "SENDER", "CreditRow", "credit_rows"]

SENDER, RECEIVER = "sender", "receiver"
LARGEST = 4294967295

LinkKey = tuple[str, str | None, int | None, str | None, str | None, int | None]


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

    initial: int | None = None
    count: int | None = None
    granted: int | None = None
    granted_at: int | None = None
    by_claim: bool = True  # what is granted was stated by the sender, so its next word counts too
    delivery_open: bool | None = None
    last_id: int | None = None
    sender_lost: bool = False

    def left(self, untouched: bool) -> int | None:
        if self.granted is None:
            return None
        at = self.initial if self.granted_at is None else self.granted_at
        if at is None or self.count is None:
            early = untouched and self.initial is None
            return self.granted if self.granted == 0 or early else None
        try:
            used = serial.diff(self.count, at)
        except serial.SerialError:
            used = None
        forward = serial.steps(self.count, at)
        if self.granted >= serial.HALF and forward <= self.granted:
            used = forward
        return None if used is None else min(max(0, self.granted - used), LARGEST)


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
    links: dict[tuple[LinkKey, str], _Counters] = {}
    found: list[CreditRow] = []
    for row in rows:
        connection = connections.setdefault((row.run, row.connection), _Connection())
        if row.event in ("gap", "error"):
            peer = row.extra.get("from_peer") or row.from_peer
            connection.lost.add(str(peer))
            for (key, end), counters in links.items():
                if key[:2] == (row.run, row.connection):
                    _forget(counters, key[4] == peer, end)
            continue
        if not row.is_frame or row.protocol != AMQP_1_0 or row.session is None:
            continue
        fields = row.frame or {}
        if row.link is None and fields.get("handle") is None:
            continue
        key = _key(row)
        if row.link is None or row.link_sender is None:
            found.append(CreditRow(*key, row.seq, row.frame_id, SENDER, None, None, False))
            continue
        end = _end(row)
        untouched = len(connection.headers) == 2 and not connection.lost
        mine = links.get((key, end))
        if mine is None:
            mine = _Counters(granted=0 if untouched else None, by_claim=not untouched)
            links[key, end] = mine
        _apply(mine, row, fields, end)
        left = mine.left(untouched)
        known = left is not None and mine.count is not None
        found.append(CreditRow(*key, row.seq, row.frame_id, end, mine.count, left, known))
    return found


def _key(row: Row) -> LinkKey:
    return row.run, row.connection, row.session, row.link, row.link_sender, row.attach_no


def _end(row: Row) -> str:
    """Whose counters the row tells of."""
    if row.event == OBSERVED:
        return SENDER
    return SENDER if (row.event == SENT) == (row.from_peer == row.link_sender) else RECEIVER


def _forget(counters: _Counters, sender: bool, end: str) -> None:
    """Frames are missing: of the sender, or of the receiver."""
    if sender:
        counters.count = counters.delivery_open = None
        if counters.by_claim:
            counters.granted = None
    else:
        counters.granted, counters.by_claim = None, True


def _apply(counters: _Counters, row: Row, fields: dict[str, Any], end: str) -> None:
    from_sender = row.from_peer == row.link_sender
    count, credit = fields.get("delivery_count"), fields.get("link_credit")
    if row.kind == "attach" and from_sender:
        counters.initial = counters.count = fields.get("initial_delivery_count")
        counters.delivery_open, counters.last_id = False, None
    elif row.kind == "attach":
        counters.granted, counters.granted_at, counters.by_claim = 0, None, False
    elif row.kind == "flow" and from_sender and count is not None:
        counters.count = count
        if credit is not None and counters.by_claim and end == SENDER:
            counters.granted, counters.granted_at = credit, count
    elif row.kind == "flow" and not from_sender and credit is not None:
        counters.granted, counters.granted_at, counters.by_claim = credit, count, False
    elif row.kind == "transfer" and from_sender:
        _transfer(counters, fields)


def _transfer(counters: _Counters, fields: dict[str, Any]) -> None:
    """A delivery counts once, at its first transfer, which must carry its delivery-id [2.7.5]."""
    delivery_id = fields.get("delivery_id")
    another = delivery_id is not None and counters.last_id not in (None, delivery_id)
    if counters.delivery_open is None:
        if delivery_id is not None:
            counters.count = None
    elif (not counters.delivery_open or another) and counters.count is not None:
        counters.count = serial.add(counters.count, 1)
    counters.delivery_open = bool(fields.get("more")) and not fields.get("aborted")
    counters.last_id = delivery_id
