"""Walks over a run's rows once, for a scene: times, frames on their way, and what is so after each.

Nothing is worked out here that rows do not tell: counters are folded, frames are followed from the
row that sent them to the row that received them, what holds a sender is told by `Braking`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import inf

from workbench.trace.braking import Braking, Held, links_of
from workbench.trace.cut import Cut, Earlier
from workbench.trace.explain import Explanation, explain
from workbench.trace.fold import (
    Fold,
    InFlight,
    Scope,
    State,
    Value,
    link_scope,
    observed_end,
)
from workbench.trace.gates import Gates
from workbench.trace.schema import (
    AMQP_1_0,
    BROKER,
    CLIENT,
    LINK,
    OBSERVED,
    RECEIVED,
    SENT,
    SESSION,
    WIRE_VANTAGE,
    Row,
    peer_of,
)

WAITS_AT = 0.86
"""Part of its way at which a frame is drawn that a closed gate holds, where no gate is drawn."""

_SEEN_AT = 0.5  # where a captured frame is drawn
_INSIDE_MS = 1e-5  # between two rows of one microsecond, so that what is drawn has an order
_MOST_INSIDE = 99
_MICROSECOND = 0.001

Path = list[tuple[float, float]]


def times_ms(rows: Sequence[Row]) -> list[float]:
    """When each row is drawn, in ms: its own microsecond, and within it the order of rows."""
    found: list[float] = []
    before, inside = -1, 0
    for row in rows:
        inside = min(inside + 1, _MOST_INSIDE) if row.t_us == before else 0
        before = row.t_us
        found.append(round(row.t_us / 1000 + inside * _INSIDE_MS, 5))
    return found


KINDS = {
    "transfer": "message",
    "flow": "permission",
    "disposition": "acknowledgement",
    "basic.publish": "message",
    "basic.deliver": "message",
    "basic.get-ok": "message",
    "basic.return": "message",
    "content-header": "message",
    "content-body": "message",
    "basic.qos": "permission",
    "connection.blocked": "permission",
    "connection.unblocked": "permission",
    "channel.flow": "permission",
    "basic.ack": "acknowledgement",
    "basic.nack": "acknowledgement",
    "basic.reject": "acknowledgement",
    "message.transfer": "message",
    "message.flow": "permission",
    "message.accept": "acknowledgement",
    "session.completed": "acknowledgement",
}
"""What a frame means to a picture, by its kind; all others write something."""


@dataclass(slots=True, kw_only=True)
class Flight:
    """A frame of the run, from the row that sent it to the row that received it.

    Attributes:
        row: the first that tells of it.
        path: time in ms and part of the way, in order.
        begun, ended: places of the rows; `begun` is -1 for one that was in flight before the first
            row, `ended` is None for one that has not arrived.
        lost: its connection ended before it arrived.
        held: when a hand took hold of it and when it let go, ms, in order.
    """

    row: Row
    path: Path
    begun: int
    ended: int | None = None
    lost: bool = False
    held: Path = field(default_factory=list)

    def comes(self, t: float) -> float:
        """When it is there that would come at `t` if no hand held it, ms.

        What would come in the microsecond of an act has not come.
        """
        for taken, let_go in self.held:
            if taken < t + _MICROSECOND:
                t = max(t, let_go)
        return t


def flights(
    rows: Sequence[Row],
    times: Sequence[float],
    before: Mapping[int, Flight],
    gates: Gates,
    gate: float,
) -> list[Flight]:
    """Every frame that is in flight at some time among these rows, in order of sending.

    Args:
        rows: in order of `seq`.
        times: when each is drawn, ms.
        before: frames that were in flight before the first row, by frame_id.
        gates: what a hand holds before the first row.
        gate: part of its way at which a held frame is drawn.
    """
    found = dict(before)
    usual: dict[tuple[str | None, str | None], float] = {}
    readers = _Readers()
    for place, (row, t) in enumerate(zip(rows, times, strict=True)):
        number = row.frame_id
        if row.event == OBSERVED and number is not None:
            # Seen where it passed; the capture does not tell when it was sent or came.
            after = times[min(place + 1, len(times) - 1)]
            path = [(t, _SEEN_AT), (after, 1.0)]
            found[number] = Flight(row=row, path=path, begun=place, ended=place)
        elif row.event == SENT and number is not None:
            found[number] = Flight(row=row, path=[(t, 0.0)], begun=place)
        readers.take(row, t)
        held = gates.apply(row)
        for frame_id, holds in held:
            if frame_id in found:
                _gate(found[frame_id], t, usual, gate, holds=holds)
        if row.event == RECEIVED and number in found:
            flight = found[number]
            if len(flight.path) == 1 and not readers.hold_up(flight, t, usual):
                usual[_way(flight.row)] = t - flight.path[0][0]
            flight.path.append((t, 1.0))
            flight.ended = place
        if row.event == "disconnect":
            _lose(found, row.connection, t)
    end = times[-1] if times else 0.0
    for flight in found.values():
        if flight.ended is None and not flight.lost:
            if len(flight.path) == 1:
                readers.hold_up(flight, end, usual)
            last = flight.path[-1]
            part = last[1] if len(flight.path) > 1 else _part(flight, end, usual)
            # Two points with one part are a frame that is held.
            held = bool(flight.held) and flight.held[-1][1] == inf
            if held or (end > last[0] and part > last[1]):
                flight.path.append((end, part))
    return list(found.values())


class _Readers:
    """Readers of AMQP 0-9-1 that are blocked: what a client sends stands in its socket."""

    def __init__(self) -> None:
        self._blocked: set[tuple[str | None, str | None]] = set()
        self._until: dict[str | None, float] = {}

    def take(self, row: Row, t: float) -> None:
        """Take note of what blocks a reader, or no longer does."""
        if not row.vantage.startswith("reader:") or row.event not in ("block", "unblock"):
            return
        if row.event == "block":
            self._blocked.add((row.connection, row.kind))
            self._until[row.connection] = inf
        else:
            self._blocked.discard((row.connection, row.kind))
            if all(connection != row.connection for connection, _ in self._blocked):
                self._until[row.connection] = t

    def hold_up(
        self, flight: Flight, t: float, usual: Mapping[tuple[str | None, str | None], float]
    ) -> bool:
        """Draws in the socket a frame that has waited there up to `t`; False if none has."""
        began, takes = flight.path[0][0], usual.get(_way(flight.row), 0.0)
        came = began + takes
        if (
            flight.row.from_peer != CLIENT
            or not began < came < t - _MICROSECOND
            or self._until.get(flight.row.connection, -inf) < came
        ):
            return False
        # Two points with one part would be a frame that a hand holds.
        flight.path += [(came, WAITS_AT), (t - _INSIDE_MS / 2, WAITS_AT + 0.001)]
        return True


def flying_before(
    rows: Sequence[Row], start: State, earlier: Earlier, gates: Gates, gate: float
) -> dict[int, Flight]:
    """Frames that were in flight before the first row; of some only their kind is known."""
    known = {row.frame_id: row for row in rows if row.event == RECEIVED}
    known |= {row.frame_id: row for row in earlier.flying}
    found: dict[int, Flight] = {}
    for frame in start.in_flight.values():
        row = replace(known.get(frame.frame_id) or _bare(frame), t_us=frame.t_us)
        t = frame.t_us / 1000
        path = [(t, 0.0)]
        flight = found[frame.frame_id] = Flight(row=row, path=path, begun=-1)
        if gates.flying.get(frame.frame_id):
            _gate(flight, t, {}, gate, holds=True)
    return found


def _bare(frame: InFlight) -> Row:
    """A frame of which only its kind and its way are known."""
    link = frame.link or Scope(LINK)
    return Row(
        run="", seq=frame.seq, t_us=frame.t_us, vantage="", event=SENT, protocol=AMQP_1_0,
        frame_id=frame.frame_id, from_peer=frame.from_peer, connection=frame.connection,
        session=link.session, link=link.link, link_sender=link.link_sender,
        attach_no=link.attach_no, kind=frame.kind,
    )  # fmt: skip


def _way(row: Row) -> tuple[str | None, str | None]:
    return row.connection, row.from_peer


def _part(flight: Flight, t: float, usual: dict[tuple[str | None, str | None], float]) -> float:
    """How far a frame has come that nobody held: by the time that the last one like it took."""
    began, part = flight.path[-1]
    takes = usual.get(_way(flight.row), 0.0)
    gone = (t - began) / takes if takes > 0 else 1.0
    return round(min(WAITS_AT, part + gone * (1 - part)), 3) if t > began else part


def _gate(
    flight: Flight,
    t: float,
    usual: dict[tuple[str | None, str | None], float],
    gate: float,
    *,
    holds: bool,
) -> None:
    """A hand holds a frame, or lets it go."""
    began, part = flight.path[-1]
    if not holds:
        flight.path.append((t, part))
        flight.held[-1] = flight.held[-1][0], t
        return
    flight.held.append((t, inf))
    if part == 0.0 and (t <= began or gate < WAITS_AT):
        # Its gate was closed when it was sent; or it is drawn, and nothing is held beyond it.
        flight.path.append((round(began + _INSIDE_MS / 2, 6), gate))
    else:
        flight.path.append((t, max(part, min(gate, _part(flight, t, usual)))))


def _lose(found: dict[int, Flight], connection: str | None, t: float) -> None:
    for flight in found.values():
        if flight.ended is None and not flight.lost and flight.row.connection == connection:
            flight.path.append((t, flight.path[-1][1] or 0.5))
            flight.lost = True


def first_frames(rows: Sequence[Row]) -> set[int]:
    """`seq` of rows of transfer frames that begin a message, as each end sees them."""
    found: set[int] = set()
    unfinished: dict[tuple[str, Scope | None], bool] = {}
    for row in rows:
        if row.kind == "transfer":
            key = f"{row.vantage} {row.event}", link_scope(row)
            if not unfinished.get(key):
                found.add(row.seq)
            unfinished[key] = row.goes_on
    return found


@dataclass(slots=True)
class Walk:
    """A run, or a part of one, row after row.

    Attributes:
        rows: all of them.
        cut: where they are from, with what came before; None if they begin the run.
        gate: part of its way at which a frame is drawn that a closed gate holds.
        times: when each is drawn, ms.
        flights: its frames.
        links: links of the run, in order of appearance.
        ends: by connection and peer, the vantage that logs there.
        begins: `seq` of rows of transfer frames that are the first of their message.
        place: of the row taken last.
        folding: the counters after it.
        gates: what a hand holds after it.
        explanation: the row in words.
        captured: a capture tells it, and no end itself.
    """

    rows: Sequence[Row]
    cut: Cut | None = None
    gate: float = WAITS_AT
    times: list[float] = field(init=False)
    flights: list[Flight] = field(init=False)
    links: list[Scope] = field(init=False)
    ends: dict[tuple[str | None, str], str] = field(init=False)
    begins: set[int] = field(init=False)
    place: int = -1
    folding: Fold = field(init=False)
    gates: Gates = field(init=False)
    explanation: Explanation | None = None
    captured: bool = field(init=False)
    _braking: dict[Scope, Braking] = field(init=False)

    def __post_init__(self) -> None:
        earlier = self.cut.earlier if self.cut is not None else Earlier()
        start = self.cut.start if self.cut is not None else State()
        flying = start.in_flight.values()
        self.gates = deepcopy(earlier.gates) if earlier.gates is not None else Gates(flying)
        self.folding = Fold(start)
        self.times = times_ms(self.rows)
        before = flying_before(self.rows, start, earlier, self.gates, self.gate)
        self.flights = flights(self.rows, self.times, before, deepcopy(self.gates), self.gate)
        told = [line for line in earlier.lines if line.link_sender in (CLIENT, BROKER)]
        self.links = list(dict.fromkeys([*told, *links_of(self.rows)]))
        self.begins = first_frames(self.rows)
        self.ends = dict(earlier.ends)
        self.captured = any(vantage == WIRE_VANTAGE for vantage, _ in start.ledgers)
        if self.captured:
            for link in told:
                self._see(link.connection)
        for row in self.rows:
            peer = peer_of(row.vantage)
            if row.event in (SENT, RECEIVED) and peer is not None:
                self.ends.setdefault((row.connection, peer), row.vantage)
            elif row.event == OBSERVED:
                self._see(row.connection)
                self.captured = True
        self._braking = {link: Braking(link, start, earlier.blocking) for link in self.links}

    def _see(self, connection: str | None) -> None:
        """Name the ends of a captured connection, which log nothing themselves."""
        self.ends.setdefault((connection, CLIENT), f"client:{connection}")
        self.ends.setdefault((connection, BROKER), BROKER)

    def __iter__(self) -> Iterator[Row]:
        """Takes row after row; what this object says is so after the row that it gave last."""
        words = explain(self.rows) if self.cut is None else self.cut.explanations
        for place, (row, told) in enumerate(zip(self.rows, words, strict=True)):
            self.place, self.explanation = place, told
            self.folding.apply(row)
            self.gates.apply(row)
            for braking in self._braking.values():
                braking.apply(row)
            yield row

    @property
    def from_start(self) -> bool:
        """Whether nothing to be counted came before the rows."""
        return self.cut is None or not self.cut.start.ledgers

    @property
    def row(self) -> Row:
        """The row taken last."""
        return self.rows[self.place]

    def holding(self, link: Scope) -> Held:
        """What holds the link's sender now."""
        return self._braking[link].now

    def vantages(self, link: Scope) -> tuple[str | None, str | None]:
        """Who logs at the sender's and at the receiver's end of a link; None: nobody does."""
        client, broker = (self.ends.get((link.connection, peer)) for peer in (CLIENT, BROKER))
        return (client, broker) if link.link_sender == CLIENT else (broker, client)

    def counters(self, vantage: str | None, scope: Scope) -> dict[str, Value]:
        """That end's counters now; empty if it has logged none.

        A capture tells those of a link's sender alone, and of a session those of each end.
        """
        if not self.captured or vantage is None:
            return self.folding.ledgers.get((vantage or "", scope), {})
        if scope.group == LINK and self.vantages(scope)[0] != vantage:
            return {}
        if scope.group == SESSION:
            scope = scope._replace(link_sender=peer_of(vantage))
        return self.folding.ledgers.get((WIRE_VANTAGE, scope), {})

    def told_by(self, row: Row) -> str | None:
        """Whose counters of its link, or of its session, a row has."""
        if row.event != OBSERVED:
            return row.vantage
        return self.ends.get((row.connection, observed_end(row) or ""))

    def author(self, row: Row) -> str | None:
        """Which party sent a frame."""
        return self.ends.get((row.connection, row.from_peer or ""))

    def number(self, vantage: str | None, scope: Scope, name: str) -> int | None:
        """One of that end's counters, if it is known."""
        value = self.counters(vantage, scope).get(name)
        return int(value) if value is not None else None


def session_of(link: Scope) -> Scope:
    """The session of a link."""
    return Scope(SESSION, link.connection, link.session)
