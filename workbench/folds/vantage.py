"""Which rows tell what an end of a connection knows, and what a row is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workbench.trace import schema
from workbench.trace.schema import (
    AMQP_1_0,
    BROKER,
    CLIENT,
    LOSSES,
    OBSERVED,
    Row,
    logged_by,
    other_peer,
)

PEERS = (CLIENT, BROKER)


Way = tuple[str, str, str | None]
"""Run, connection, and who sends on it."""


class LinkKey(NamedTuple):
    """A link, as `data/README.md` names one."""

    run: str
    connection: str
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LinkKey:
        """The link of which an answer's row speaks."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def way(self) -> Way:
        """The connection, and who sends on it."""
        return self.run, self.connection, self.link_sender

    @property
    def name(self) -> str:
        """`c1/1 receiver`: connection, session and name; without links channel and direction."""
        place = self.connection if self.session is None else f"{self.connection}/{self.session}"
        if self.link is None:
            return f"{place} {'published' if self.link_sender == CLIENT else 'delivered'}"
        again = f" (attach {self.attach_no})" if (self.attach_no or 1) > 1 else ""
        return f"{place} {self.link}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The rows that tell what one end of a connection knows.

    Attributes:
        run, connection: of the connection.
        peer: whose view it is, `client` or `broker`.
        own: False if another end's rows, or a capture's, stand in.
        rows: in order; one at the least, but of a trace that is still being written.
        lost: rows of the connection that tell of octets which are missing, in order.
    """

    run: str
    connection: str
    peer: str
    own: bool
    rows: Sequence[Row]
    lost: Sequence[Row] = ()


def link_key(row: Row) -> LinkKey | None:
    """The link that a row concerns, or None."""
    if row.link is None or row.connection is None:
        return None
    return LinkKey(row.run, row.connection, row.session, row.link, row.link_sender, row.attach_no)


def in_order(answer: Iterable[dict[str, Any]], *first: str) -> list[dict[str, Any]]:
    """The rows of an answer in order of these columns, and then of the key of their links."""
    return sorted(
        answer,
        key=lambda row: (*(row[name] for name in first), *(str(row[n]) for n in LinkKey._fields)),
    )


def value(row: Row, name: str) -> int | None:
    """A number on the wire; None where the frame did not carry it."""
    found = (row.frame or {}).get(name)
    return None if found is None else int(found)


def told_by_importer(row: Row, *, lost: bool) -> bool:
    """Whether a transfer's delivery-count is for the importer to tell, if anybody can.

    Of a link that was attached before the capture no end has said how its count began. The importer
    finds it out where the flows of both ends leave no choice; and behind octets that are missing
    so, too, or where all delivery-ids must be of this link (`amqp10.observed`). Its ledger has the
    count right after the transfer, or none.

    Args:
        row: of a link.
        lost: octets of its sender are missing before it.
    """
    unseen = lost or row.attach_no is None
    return unseen and row.kind == "transfer" and row.event == OBSERVED


def attaches(row: Row) -> bool:
    """An attach before which the receiver can have granted nothing.

    The importer does not know the credit behind one of which the other end's may lie before the
    capture, with grants on a handle that nobody can name.
    """
    return row.kind == "attach" and "link_credit" not in row.unknown


def lost_by(row: Row) -> str | None:
    """Whose octets are missing, by one of `LOSSES`."""
    peer = row.extra.get("from_peer") or row.from_peer
    return None if peer is None else str(peer)


def is_set(row: Row, name: str) -> bool:
    """Whether a flag is on the wire and true."""
    return bool((row.frame or {}).get(name))


def frames(rows: Iterable[Row], *protocols: str) -> list[Row]:
    """The rows of frames of these protocols, or of AMQP 1.0, on a connection, in order."""
    wanted = protocols or (AMQP_1_0,)
    return [
        row
        for row in rows
        if row.is_frame and row.protocol in wanted and row.connection is not None
    ]


def once(rows: Iterable[Row], *protocols: str) -> list[Row]:
    """One row for each of these frames; see `schema.once`."""
    return schema.once(frames(rows, *protocols))


def ends(rows: Iterable[Row], *protocols: str) -> list[End]:
    """Both ends of every connection, each with its own rows, or with those that stand in."""
    rows = list(rows)
    connections: dict[tuple[str, str], list[Row]] = {}
    for row in frames(rows, *protocols):
        connections.setdefault((row.run, str(row.connection)), []).append(row)
    lost: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.event in LOSSES:
            lost.setdefault((row.run, str(row.connection)), []).append(row)
    found = []
    for (run, connection), its in sorted(connections.items()):
        for peer in PEERS:
            own = [row for row in its if row.event != OBSERVED and logged_by(row) == peer]
            stand_in = [row for row in its if row.event == OBSERVED] or its
            found.append(
                End(
                    run=run, connection=connection, peer=peer, own=bool(own), rows=own or stand_in,
                    lost=lost.get((run, connection), ()),
                )
            )  # fmt: skip
    return found


def from_receiver(rows: Iterable[Row]) -> list[tuple[End, End]]:
    """Each end, and what it sends as the other end's rows tell it: (sender's, receiver's)."""
    by_peer = {(end.run, end.connection, end.peer): end for end in ends(rows)}
    return [
        (end, replace(by_peer[run, connection, other_peer(peer)], peer=peer, own=False))
        for (run, connection, peer), end in by_peer.items()
    ]


def percentile(values: Iterable[int], percent: int) -> int | None:
    """The nearest-rank percentile; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
