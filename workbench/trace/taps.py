"""From what passes to rows: the recorder that watches a run, and the maker of one frame's row.

The recorder is told of a frame right after an end has updated its counters for it and before any
frame that this one causes, so the counters it asks for are those that the row's `ledger` promises.
It changes nothing it looks at. A run goes on whatever happens here: what the recorder cannot make
sense of is left out of the row and told in `problems`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import brakes
from .brakes import link_brakes, prefetch_brakes, window_brakes
from .braking import LinkKey, Outside, link_key
from .clauses import clause_of
from .flatten import details_of
from .schema import (
    AMQP_0_9_1,
    AMQP_0_10,
    BROKER,
    EVENTS,
    FRAME_COLUMNS,
    GROUP_OF,
    INTERNAL,
    OBSERVED,
    OWN,
    RECEIVED,
    SENT,
    Row,
    other_peer,
    peer_of,
)
from .wire_items import codec_of

# kind, fields, size of the frame, size of the payload
Flat = tuple[str, dict[str, Any], int, int | None]

_EVENTS = frozenset(EVENTS)


_NOTHING = Outside()


def flat_item(item: Any, raw: bytes | None = None) -> Flat:
    """What every row of one frame shares: kind, fields, octets of the frame, octets of its payload.

    The payload's size is None for a frame that cannot carry one. A peer may have chosen longer
    encodings than ours: octets that are at hand (`raw`) are counted.
    """
    codec = codec_of(item)
    kind, fields = codec.fields(item)
    size = codec.size(item) if raw is None else len(raw)
    return kind, fields, size, codec.body(item, kind)


def _octets(flight: Any) -> bytes | None:
    """The frame as it was on a socket; a frame of a run has none."""
    return getattr(flight, "octets", None)


def frame_row(
    item: Any,
    *,
    run: str,
    seq: int,
    t_us: int,
    vantage: str,
    event: str,
    frame_id: int,
    from_peer: str,
    connection: str,
    scope: Any = None,
    ledger_source: str = OWN,
    t_raw_us: int | None = None,
    raw: bytes | None = None,
    flat: Flat | None = None,
    outside: Outside = _NOTHING,
) -> Row:
    """The row of one frame.

    Args:
        item: the frame or protocol header as a value.
        run: name of the run or capture.
        seq: its place in the run, from 0.
        t_us: microseconds since the run's start.
        vantage: who logs it.
        event: `sent`, `received` or `observed`.
        frame_id: number of the frame, the same at both ends.
        from_peer: `client` or `broker`, who sent it.
        connection: `c1`, `c2`, ...
        scope: what it concerns, with the counters of the end that logs it: an object with
            `session`, `link`, `attach_no`, `link_ledger`, `session_ledger`, and either
            `link_sender` (a peer) or `link_sender_is_local`; it may have `in_message`, whether the
            link's sender is in the middle of a message, and `unknown`, names of ledger fields.
            Of AMQP 0-9-1: `session`, `consumer` and `ledger`; of 0-10: `session`, `destination`,
            `sends` (this end sends its messages) and `ledger`. None if it concerns no session.
        ledger_source: `own`, `shadow` or `observed`.
        t_raw_us: the packet clock, for a capture; at a gate, when the frame passed it.
        raw: the frame's octets, if they are at hand, and whole; else `Row.raw` encodes the item
            when asked.
        flat: `flat_item(item, raw)`, if it is at hand.
        outside: what else holds its link's sender.
    """
    kind, fields, frame_bytes, body_bytes = flat if flat is not None else flat_item(item, raw)
    own_peer = other_peer(from_peer) if event == RECEIVED else from_peer
    protocol = codec_of(item).protocol
    row = Row(
        run=run,
        seq=seq,
        t_us=t_us,
        t_raw_us=t_raw_us,
        vantage=vantage,
        event=event,
        protocol=protocol,
        frame_id=frame_id,
        from_peer=from_peer,
        connection=connection,
        kind=kind,
        body_bytes=body_bytes,
        frame_bytes=frame_bytes,
        raw=raw,
        item=item,
    )
    setattr(row, FRAME_COLUMNS[protocol], fields)
    if scope is not None:
        _concern(row, scope, own_peer, ledger_source, outside)
    row.clause = clause_of(row)
    return row


def _concern(row: Row, scope: Any, own_peer: str, ledger_source: str, outside: Outside) -> None:
    """Fill in session, link or consumer, ledger and brakes."""
    row.session = scope.session
    row.unknown = tuple(getattr(scope, "unknown", None) or ())
    local = None  # whether the link's sender is the end that logs
    if row.protocol == AMQP_0_9_1:
        row.consumer, ledger = scope.consumer, scope.ledger
    elif row.protocol == AMQP_0_10:
        row.link, ledger = scope.destination, scope.ledger
        local = scope.sends if row.link is not None else None
    else:
        row.link, row.attach_no = scope.link, scope.attach_no
        row.link_sender = getattr(scope, "link_sender", None)
        local = getattr(scope, "link_sender_is_local", None)
        ledger = _present(scope.link_ledger, scope.session_ledger)
    if row.link_sender is None and local is not None:
        row.link_sender = own_peer if local else other_peer(own_peer)
    if not ledger and not row.unknown:
        return
    row.ledger, row.ledger_source = dict(ledger or {}), ledger_source
    if row.protocol == AMQP_0_9_1:
        if row.consumer is not None and (own_peer == BROKER or row.event == OBSERVED):
            _hold(row, prefetch_brakes(row.ledger))
    elif row.protocol == AMQP_0_10:
        if "waiting_transfers" in row.ledger:
            _hold(row, window_brakes(row.ledger))
    elif row.link_sender == own_peer or row.event == OBSERVED:
        _brake(row, outside, in_message=getattr(scope, "in_message", False))


def _hold(row: Row, found: tuple[str, ...]) -> None:
    row.brakes, row.brake = found, brakes.first(found)


def _present(*ledgers: Mapping[str, int | bool | None] | None) -> dict[str, int | bool]:
    """The counters of some ledgers that have a value."""
    return {
        name: value
        for ledger in filter(None, ledgers)
        for name, value in ledger.items()
        if value is not None
    }


def _brake(row: Row, outside: Outside, *, in_message: bool) -> None:
    """Say what holds the link's sender, if the row has its counters."""
    ledger = row.ledger or {}
    if row.link is not None and "link_credit" in ledger:
        holds = outside.holds(link_key(row))
        _hold(row, link_brakes(ledger, in_message=in_message, **holds))


@dataclass(slots=True)
class BoundNotes:
    """Makes internal rows that have columns in common; see `Recorder.bind`."""

    _tap: Recorder
    _clock: Any
    _ledger: Callable[[], Mapping[str, int | bool]] | None
    _columns: Mapping[str, Any]

    def note(
        self,
        event: str,
        kind: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Something happened there, now; see `Recorder.internal`."""
        told: dict[str, Any] = {**self._columns, **columns}
        if self._ledger is not None and "ledger" not in columns:
            told["ledger"] = self._ledger()
        self._tap.internal(t_us=self._clock.now_us, event=event, kind=kind, extra=extra, **told)


class Recorder:
    """A tap that makes a trace: one row per event, in `rows`.

    Rows of one frame share their `frame` dict: rows are read, never changed.

    Attributes:
        rows: the trace so far; `seq` is a row's place in it.
        problems: what could not be recorded as it should be, in words.

    Args:
        run: name of the run.
        now: gives the run's time in microseconds; without it a row has the time that its flight was
            made with, which is too early for a frame that was held.
        sink: called with every row, for example to write a long run to a file.
        keep: False to leave `rows` empty and only feed `sink`.
    """

    def __init__(
        self,
        run: str,
        *,
        now: Callable[[], int] | None = None,
        sink: Callable[[Row], None] | None = None,
        keep: bool = True,
    ) -> None:
        self.run = run
        self.rows: list[Row] = []
        self.problems: list[str] = []
        self._now = now
        self._sink = sink
        self._keep = keep
        self._seq = 0
        self._t_us = 0
        self._flat: dict[int, Flat] = {}  # of frames in flight
        self._outside = Outside()
        self._in_message: set[LinkKey] = set()  # links of which a message is under way

    @property
    def count(self) -> int:
        """Rows made so far."""
        return self._seq

    def sent(self, end: Any, flight: Any) -> None:
        """`end` has sent the frame."""
        flat = self._flat[flight.frame_id] = flat_item(flight.item, _octets(flight))
        self._frame(end, flight, SENT, flat, flight.sent_us)

    def received(self, end: Any, flight: Any) -> None:
        """`end` has applied the frame."""
        flat = self._flat.pop(flight.frame_id, None) or flat_item(flight.item, _octets(flight))
        self._frame(end, flight, RECEIVED, flat, flight.arrives_us)

    def internal(
        self,
        *,
        t_us: int,
        event: str,
        vantage: str,
        kind: str | None = None,
        ledger: Mapping[str, int | bool] | None = None,
        extra: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Something that is no frame.

        Args:
            t_us: when, in microseconds.
            event: one of `INTERNAL_EVENTS`; another is recorded as `note` and told in `problems`.
            vantage: who logs it: an end, or an actor inside the broker.
            kind: the actor's word for it; for an action its name.
            ledger: counters after the event; names that no ledger has are left out.
            extra: details; they come back as `row.extra`.
            **columns: what it concerns: `connection`, `session`, `link`, `link_sender`,
                `attach_no`, `queue`.
        """
        if event not in _EVENTS:
            self.problems.append(f"row {self._seq}: no event {event!r}; recorded as a note")
            kind, event = kind or event, "note"
        row = Row(
            run=self.run,
            seq=self._seq,
            t_us=self._time(t_us),
            vantage=vantage,
            event=event,
            protocol=INTERNAL,
            kind=kind,
            **columns,
        )
        self._outside.take(row)
        if extra:
            row.details = details_of(extra)
        counters = _present(ledger)
        for name in sorted(name for name in counters if name not in GROUP_OF):
            self.problems.append(f"row {self._seq}: no ledger has a field {name!r}; left out")
            del counters[name]
        if counters:
            row.ledger, row.ledger_source = counters, OWN
            if row.link_sender is not None and peer_of(vantage) == row.link_sender:
                _brake(row, self._outside, in_message=link_key(row) in self._in_message)
        self._add(row)

    def bind(
        self,
        clock: Any,
        *,
        vantage: str,
        ledger: Callable[[], Mapping[str, int | bool]] | None = None,
        **columns: Any,
    ) -> BoundNotes:
        """What makes rows of `internal` that have columns in common.

        Args:
            clock: its `now_us` is each row's time.
            vantage: who logs them.
            ledger: asked for counters whenever a row is made; always of the same names.
            **columns: what else they have in common; see `internal`.
        """
        return BoundNotes(self, clock, ledger, {"vantage": vantage, **columns})

    def _frame(self, end: Any, flight: Any, event: str, flat: Flat, t_us: int) -> None:
        outgoing = event == SENT
        try:
            scope = end.scope(flight.item, outgoing)
        except Exception as error:  # a row without counters is better than none
            self.problems.append(f"row {self._seq}: {end.vantage} gives no counters: {error}")
            scope = None
        now_us = t_us if self._now is None else self._now()
        row = frame_row(
            flight.item,
            run=self.run,
            seq=self._seq,
            t_us=self._time(now_us),
            t_raw_us=now_us if event == OBSERVED else None,
            vantage=end.vantage,
            event=event,
            frame_id=flight.frame_id,
            from_peer=end.from_peer if outgoing else other_peer(end.from_peer),
            connection=flight.connection,
            scope=scope,
            ledger_source=end.ledger_source,
            raw=_octets(flight),
            flat=flat,
            outside=self._outside,
        )
        if row.kind == "transfer" and row.brake is not None:
            goes_on = getattr(scope, "in_message", False)
            (self._in_message.add if goes_on else self._in_message.discard)(link_key(row))
        self._add(row)

    def _time(self, t_us: int) -> int:
        self._t_us = max(self._t_us, t_us)
        return self._t_us

    def _add(self, row: Row) -> None:
        self._seq += 1
        if self._keep:
            self.rows.append(row)
        if self._sink is not None:
            self._sink(row)
