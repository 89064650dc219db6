"""What a fold has seen of a connection and of a link; `unknown_words` says what it means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row

__all__ = ["Connection", "Key", "Link", "Places"]

Key = tuple[str | None, int | None, str | None, str | None, int | None]
"""connection, session, link, link_sender, attach_no."""

TLS = 2
"""Protocol id of a header that changes to TLS [5.2.1]."""
# Rows about octets, or acts of a person: they tell nothing of what a peer does inside.
_NOT_INSIDE = frozenset(
    {"gap", "error", "action", "hold", "release", "latency", "note", "connect", "disconnect"}
)


@dataclass(slots=True)
class Places:
    """How many rows, and the first and last of them."""

    rows: int = 0
    first: int = 0
    last: int = 0

    def add(self, seq: int) -> None:
        """One row more; rows come in order."""
        if not self.rows:
            self.first = seq
        self.rows += 1
        self.last = seq


@dataclass(slots=True)
class Connection:
    """One connection of a run.

    Attributes:
        name: c1, c2, ...; None collects the rows that are about none.
        frames: frame rows.
        events: which of `sent`, `received`, `observed` there are, by peer that logged them.
        opened: peers whose `open` is here.
        began: peers whose `begin` is here, for each session.
        sessions: all sessions that a row names.
        over: sessions whose `end` is here.
        closed: the connection's `close` is here.
        tls: the peers that went over to TLS.
        inside: rows of what a peer does inside.
        gaps, errors: rows of octets that are missing, or cannot be read, by peer that sent them.
        lost: octets of the gaps, by peer.
        cut: transfers of which the capture kept only a part.
        octets: frame rows with their octets.
        shadow: rows whose counters an endpoint of ours has reckoned, by who logged them.
    """

    name: str | None
    frames: Places = field(default_factory=Places)
    events: dict[str, set[str]] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    began: dict[int, set[str]] = field(default_factory=dict)
    sessions: set[int] = field(default_factory=set)
    over: set[int] = field(default_factory=set)
    closed: bool = False
    tls: set[str] = field(default_factory=set)
    inside: int = 0
    gaps: dict[str, Places] = field(default_factory=dict)
    errors: dict[str, Places] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    cut: Places = field(default_factory=Places)
    octets: int = 0
    shadow: dict[str, Places] = field(default_factory=dict)

    def see(self, row: Row) -> None:
        """Takes one row of this connection."""
        if not row.is_frame:
            self._internal(row)
            return
        self.frames.add(row.seq)
        self.events.setdefault(row.event, set()).add(_logger(row))
        peer = row.from_peer or "?"
        if row.session is not None:
            self.sessions.add(row.session)
        if row.kind == "open":
            self.opened.add(peer)
        elif row.kind == "begin" and row.session is not None:
            self.began.setdefault(row.session, set()).add(peer)
        elif row.kind == "end" and row.session is not None:
            self.over.add(row.session)
        elif row.kind == "close":
            self.closed = True
        elif row.kind == "protocol-header" and (row.frame or {}).get("protocol_id") == TLS:
            self.tls.add(peer)
        if row.ledger_source == "shadow":
            self.shadow.setdefault(row.vantage, Places()).add(row.seq)
        if row.raw is not None:
            self.octets += 1
        elif row.kind == "transfer" and row.t_raw_us is not None:
            self.cut.add(row.seq)

    def _internal(self, row: Row) -> None:
        if row.event not in {"gap", "error"}:
            self.inside += row.event not in _NOT_INSIDE
            return
        about = row.extra
        peer = str(about.get("from_peer") or row.from_peer or "?")
        places = self.gaps if row.event == "gap" else self.errors
        places.setdefault(peer, Places()).add(row.seq)
        octets = about.get("octets")
        if row.event == "gap" and isinstance(octets, int):
            self.lost[peer] = self.lost.get(peer, 0) + octets

    @property
    def whole_octets(self) -> bool:
        """The octets were kept, so that a frame without them was cut by the capture."""
        return self.octets > 0


def _logger(row: Row) -> str:
    """Whose row it is: the peer that logged it, or the wire."""
    if row.event == OBSERVED:
        return "wire"
    sent = row.event == SENT
    if row.from_peer == CLIENT:
        return CLIENT if sent else BROKER
    return BROKER if sent else CLIENT


@dataclass(slots=True)
class Link:
    """One link of a connection.

    Attributes:
        key: connection, session, link, link_sender, attach_no.
        frames: its frame rows.
        attached: peers whose `attach` is here.
        ended: a `detach` is here.
        unknown: for each counter the rows at which it was not known.
        known: the row at which a counter was first known.
        transfers: rows of transfers, in one vantage only.
        settled: of those, the ones sent settled.
        stated: flows of the sender with `available`.
        own: the sender's own counter of what waits is here.
        held: rows at which the sender has no credit.
    """

    key: Key
    frames: Places = field(default_factory=Places)
    attached: set[str] = field(default_factory=set)
    ended: bool = False
    unknown: dict[str, Places] = field(default_factory=dict)
    known: dict[str, int] = field(default_factory=dict)
    transfers: Places = field(default_factory=Places)
    settled: int = 0
    stated: int = 0
    own: bool = False
    held: int = 0

    def see(self, row: Row) -> None:
        """Takes one frame row of this link."""
        self.frames.add(row.seq)
        peer, frame, ledger = row.from_peer or "?", row.frame or {}, row.ledger or {}
        if row.kind == "attach":
            self.attached.add(peer)
        elif row.kind == "detach":
            self.ended = True
        for name in row.unknown:
            self.unknown.setdefault(name, Places()).add(row.seq)
        for name in ledger:
            self.known.setdefault(name, row.seq)
        sender = self.key[3]
        if row.event != RECEIVED:
            self._once(row, frame, sender == peer)
        if row.ledger_source == "own" and sender == _logger(row) and "available" in ledger:
            self.own = True
        self.held += ledger.get("link_credit") == 0

    def _once(self, row: Row, frame: dict[str, Any], from_sender: bool) -> None:
        if row.kind == "transfer":
            self.transfers.add(row.seq)
            self.settled += frame.get("settled") is True
        elif row.kind == "flow" and from_sender and frame.get("available") is not None:
            self.stated += 1
