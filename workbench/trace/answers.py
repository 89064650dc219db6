"""The answers `credit` and `stalls` as plain folds over rows, without Spark.

Written from the definitions in `data/README.md` for traces that fit in memory, and as the second
opinion on the Spark questions: nothing of theirs is used here, and the tests hold the two against
each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench import serial
from workbench.trace.schema import (
    AMQP_1_0,
    BROKER,
    CLIENT,
    OBSERVED,
    OWN,
    RECEIVED,
    SENT,
    Row,
)

__all__ = ["CreditRow", "Stall", "credit_rows", "stalls"]

SENDER, RECEIVER = "sender", "receiver"
PROMPT_US = 20_000
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


class Stall(NamedTuple):
    """Something to send and a brake on."""

    run: str
    connection: str | None
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    seq: int
    frame_id: int | None
    end: str
    brake: str
    start_us: int
    end_us: int
    messages_waiting: int
    release_frame_id: int | None
    evidence: str


# -- credit -------------------------------------------------------------------------------------


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


# -- stalls -------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a state of a link began, and the state: what holds it, what is known of messages."""

    brake: str | None
    knows: str
    row: Row
    waiting: int | None
    inside: bool


@dataclass(slots=True)
class _Hold:
    """What holds one link now."""

    key: LinkKey
    held: str | None = None
    closed: bool = False
    alarm: bool = False
    knows: str = "?"
    waiting: int | None = None
    inside: bool = False
    now: _Place | None = None
    released: tuple[_Place, Row] | None = None  # a brake went off and no transfer has come since

    def brake(self) -> str | None:
        if self.held:
            return self.held
        return ("alarm" if self.alarm else "session-window") if self.closed else None


_OF_WINDOWS = ("alarm", "session-window", "tcp", "no-message")


def stalls(rows: Sequence[Row], min_us: int = 0, prompt_us: int = PROMPT_US) -> list[Stall]:
    """When a sender had something to send and a brake was on.

    Args:
        rows: a whole trace in order; its runs may follow each other.
        min_us: leave shorter ones out.
        prompt_us: how soon after the brake a transfer must follow to prove that it had waited.
    """
    found: list[Stall] = []
    holds: dict[LinkKey, _Hold] = {}
    windows: dict[tuple[Any, ...], bool] = {}
    alarms: dict[str, int] = {}
    last_us: dict[str, int] = {}
    ends: dict[tuple[Any, ...], int] = {}
    for row in rows:
        last_us[row.run] = row.t_us
        if row.event in ("alarm-set", "alarm-clear"):
            alarms[row.run] = alarms.get(row.run, 0) + (1 if row.event == "alarm-set" else -1)
        if row.kind == "end":
            ends.setdefault((row.run, row.connection, row.session), row.t_us)
        elif row.kind == "close" or row.event == "disconnect":
            ends.setdefault((row.run, row.connection), row.t_us)
        owner = _owner(row)
        if row.session is None or owner is None or row.link_sender not in (None, owner):
            continue
        ledger = row.ledger or {}
        if row.is_frame:
            if row.kind not in ("attach", "flow", "transfer", "detach", "begin"):
                continue
        elif row.link is None or row.ledger is None:
            continue
        mine = None
        if row.link is not None and row.link_sender is not None:
            key = _key(row)
            mine = holds.setdefault(key, _Hold(key))
            _update(mine, row, ledger)
            found += _turn(mine, row, prompt_us)
        window = ledger.get("remote_incoming_window")
        if window is None or (window > 0 and row.kind not in ("flow", "begin")):
            continue
        session = (row.run, row.connection, row.session, owner)
        if windows.get(session, False) == (window <= 0):
            continue
        windows[session] = window <= 0
        for hold in holds.values():
            other = hold.key[3] != row.link
            if (*hold.key[:3], hold.key[4]) == session and hold is not mine and other:
                hold.closed = window <= 0
                hold.alarm = alarms.get(row.run, 0) > 0 and owner == CLIENT
                found += _turn(hold, row, prompt_us)
    for hold in holds.values():
        place = hold.now
        if place is not None and place.brake is not None and place.knows == "some":
            run = hold.key[0]
            over = [last_us[run]]
            over += [ends[scope] for scope in (hold.key[:2], hold.key[:3]) if scope in ends]
            found.append(_stall(hold, place, max(place.row.t_us, min(over)), None))
    found = [stall for stall in found if stall.end_us - stall.start_us >= min_us]
    return sorted(found, key=lambda stall: (stall.run, stall.seq, str(stall[:6])))


def _owner(row: Row) -> str | None:
    """Whose end logged the row; a capture's rows are those of the sender that they concern."""
    other = BROKER if row.from_peer == CLIENT else CLIENT
    if row.event == SENT:
        return row.from_peer
    if row.event == RECEIVED:
        return other
    if row.event == OBSERVED:
        return row.link_sender or other
    if row.vantage == BROKER:
        return BROKER
    return CLIENT if row.vantage.startswith("client:") else None


def _update(hold: _Hold, row: Row, ledger: dict[str, Any]) -> None:
    """Take in what a row of the link tells."""
    if row.kind == "detach":
        hold.held, hold.closed, hold.knows, hold.waiting, hold.inside = None, False, "none", 0, True
        return
    if "link_credit" in ledger:
        hold.held = next((name for name in row.brakes if name not in _OF_WINDOWS), None)
    if "remote_incoming_window" in ledger:
        hold.closed = ledger["remote_incoming_window"] <= 0
        hold.alarm = "alarm" in row.brakes
    hold.waiting, hold.inside = ledger.get("available"), row.ledger_source == OWN
    if hold.waiting is not None:
        hold.knows = "some" if hold.waiting > 0 else "none" if hold.inside else "?"


def _turn(hold: _Hold, row: Row, prompt_us: int) -> Iterable[Stall]:
    """What the row ends: a state of which it is known that messages waited, or a doubtful one."""
    of_link = row.link == hold.key[3]
    if row.kind == "transfer" and of_link and row.is_frame:
        if hold.released is not None:
            place, release = hold.released
            if row.t_us - release.t_us <= prompt_us:
                yield _stall(hold, place, release.t_us, release.frame_id)
        hold.released = None
    brake, now = hold.brake(), hold.now
    if now is not None and (now.brake, now.knows) == (brake, hold.knows):
        return
    if brake is None and now is not None and now.brake is None:
        return
    if now is not None and now.brake is not None:
        if now.knows == "some":
            waiting = hold.waiting if of_link else None
            yield _stall(hold, now, row.t_us, row.frame_id, waiting)
        elif now.knows == "?" and brake is None:
            hold.released = (now, row)
    if brake is not None:
        hold.released = None
    waiting = hold.waiting if of_link else None
    hold.now = _Place(brake, hold.knows, row, waiting, hold.inside if of_link else False)


def _stall(
    hold: _Hold, place: _Place, end_us: int, release: int | None, waiting: int | None = None
) -> Stall:
    doubtful = place.knows == "?"
    return Stall(
        *hold.key,
        place.row.seq,
        place.row.frame_id,
        SENDER,
        str(place.brake),
        place.row.t_us,
        end_us,
        1 if doubtful else max(place.waiting or 0, waiting or 0, 1),
        release,
        "later-frames" if doubtful else "internal" if place.inside else "available",
    )
