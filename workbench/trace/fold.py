"""From rows to what everybody knows at a step: take the last value, re-implement no rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .schema import (
    ACTOR,
    CLIENT,
    DESTINATION,
    GROUP_OF,
    HOP,
    LINK,
    OBSERVED,
    PREFETCH,
    RECEIVED,
    SENT,
    SESSION,
    Row,
    other_peer,
)

Value = int | bool | None


class Scope(NamedTuple):
    """What a ledger is about.

    Attributes:
        group: one of `LEDGER_GROUPS`.
        connection: name of the connection, None for an actor.
        session: ordinal of the session.
        link: name of the link; None in the other groups.
        link_sender: which peer sends over the link. For a session it is None, but in a capture,
            where one vantage logs the windows of both ends: the peer whose windows they are.
        attach_no: which attach of the link.
        queue: the queue, for an actor or the next hop.
        consumer: the consumer's tag, for a prefetch; None is the whole channel.
    """

    group: str
    connection: str | None = None
    session: int | None = None
    link: str | None = None
    link_sender: str | None = None
    attach_no: int | None = None
    queue: str | None = None
    consumer: str | None = None


ABOUT = Scope._fields[1:6]
"""What a row is about, or an answer's row, beside its run: from the connection to the attach."""


class InFlight(NamedTuple):
    """A frame that was sent and has not been received."""

    frame_id: int
    seq: int
    t_us: int
    connection: str | None
    from_peer: str | None
    kind: str | None
    link: Scope | None


class Change(NamedTuple):
    """One counter that a row moved. None before: it was not known to the fold; None after: `?`."""

    vantage: str
    scope: Scope
    field: str
    before: Value
    after: Value


def link_scope(row: Row) -> Scope | None:
    """The link that a row concerns."""
    if row.link is None:
        return None
    return Scope(LINK, row.connection, row.session, row.link, row.link_sender, row.attach_no)


def line_scope(row: Row) -> Scope | None:
    """What has a line in a picture: the link that a row concerns; of none, its session."""
    if row.link is not None or row.session is None:
        return link_scope(row)
    return Scope(SESSION, row.connection, row.session)


def drawn_lines(lines: Iterable[Scope]) -> list[Scope]:
    """Links, and sessions that have none: those of AMQP 0-9-1, of publishers over 0-10."""
    lines = list(lines)
    serving = {line[1:3] for line in lines if line.group == LINK}
    return [line for line in lines if line.group == LINK or line[1:3] not in serving]


def session_scope(row: Row) -> Scope | None:
    """The session that a row concerns; in a capture, that session's end."""
    if row.session is None:
        return None
    end = observed_end(row) if row.event == OBSERVED else None
    return Scope(SESSION, row.connection, row.session, link_sender=end)


def observed_end(row: Row) -> str | None:
    """Whose session counters an observed row has.

    Those of the link's sender where the row is about one link, else those of the end that the frame
    moves: the one it goes to, but for a frame about the author's own deliveries or link.
    """
    if row.link is not None:
        return row.link_sender or CLIENT
    if row.kind == "transfer" or (row.frame or {}).get("role") == "sender":
        return row.from_peer
    if row.from_peer is None:
        return None
    return other_peer(row.from_peer)


def scope_of(row: Row, group: str) -> Scope:
    """What the given group of the row's ledger is about."""
    if group == LINK:
        return link_scope(row) or Scope(LINK, row.connection, row.session)
    if group == SESSION:
        return session_scope(row) or Scope(SESSION, row.connection)
    if group == ACTOR:
        return Scope(ACTOR, queue=row.queue)
    on_session = Scope(group, row.connection, row.session)
    if group == PREFETCH:
        return on_session._replace(consumer=row.consumer)
    if group == DESTINATION:
        return on_session._replace(
            link=row.link, link_sender=row.link_sender, attach_no=row.attach_no
        )
    return on_session._replace(queue=row.queue) if group == HOP else on_session


def held_in(row: Row) -> int:
    """What a queue holds after a row of its own: messages that nobody has accepted."""
    ledger = row.ledger or {}
    return int(ledger.get("queue_ready", 0)) + int(ledger.get("queue_unsettled", 0))


Ledgers = dict[tuple[str, Scope], dict[str, Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What everybody knows after a row, and what is in flight.

    Attributes:
        seq: the last row taken in, -1 before the first.
        t_us: its time.
        ledgers: by vantage and scope, field to value; None is `?` (cannot be known).
        brakes: by vantage and link, what holds the link's sender.
        in_flight: by frame_id, in order of sending.
    """

    seq: int = -1
    t_us: int = 0
    ledgers: Ledgers = field(default_factory=dict)
    brakes: dict[tuple[str, Scope], str] = field(default_factory=dict)
    in_flight: dict[int, InFlight] = field(default_factory=dict)


class Fold:
    """Takes rows one after the other; a view shows `state()` after each.

    Args:
        start: where to begin: the state just before the first row of a slice.
    """

    def __init__(self, start: State | None = None) -> None:
        start = start or State()
        self.seq = start.seq
        self.t_us = start.t_us
        self.ledgers: Ledgers = {key: dict(value) for key, value in start.ledgers.items()}
        self.brakes = dict(start.brakes)
        self.in_flight = dict(start.in_flight)

    def apply(self, row: Row) -> list[Change]:
        """Take in one row; returns the counters it moved, in the order of the schema."""
        self.seq, self.t_us = row.seq, row.t_us
        self.fly(row)
        changes: list[Change] = []
        if row.ledger or row.unknown:
            values: dict[str, Value] = {**(row.ledger or {}), **dict.fromkeys(row.unknown)}
            for name, group in GROUP_OF.items():
                if name in values:
                    self._set(row, name, group, values[name], changes)
        if row.brake is not None:
            scope = link_scope(row)
            if scope is not None:
                self.brakes[row.vantage, scope] = row.brake
        return changes

    def state(self) -> State:
        """A snapshot that later rows do not change."""
        return State(
            seq=self.seq,
            t_us=self.t_us,
            ledgers={key: dict(value) for key, value in self.ledgers.items()},
            brakes=dict(self.brakes),
            in_flight=dict(self.in_flight),
        )

    def _set(self, row: Row, name: str, group: str, value: Value, changes: list[Change]) -> None:
        scope = scope_of(row, group)
        counters = self.ledgers.setdefault((row.vantage, scope), {})
        before = counters.get(name)
        if name not in counters or before != value:
            changes.append(Change(row.vantage, scope, name, before, value))
            counters[name] = value

    def fly(self, row: Row) -> None:
        """Take in what a row does to the frames in flight, and nothing else of it."""
        if row.frame_id is None:
            return
        if row.event == SENT:
            self.in_flight[row.frame_id] = InFlight(
                row.frame_id,
                row.seq,
                row.t_us,
                row.connection,
                row.from_peer,
                row.kind,
                link_scope(row),
            )
        elif row.event == RECEIVED:
            self.in_flight.pop(row.frame_id, None)
