"""What consumers of AMQP 0-9-1 have, against what they may have; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.trace.brakes import PREFETCH
from workbench.trace.schema import AMQP_0_9_1, BROKER, Row

from .channels import INTERNAL, Channels, Consumer, Held, is_full
from .intervals import Intervals
from .vantage import End, LinkKey, ends

RECOVER = frozenset({"basic.recover", "basic.recover-async"})
"""Gives all that is not acknowledged on a channel back to its queues."""
GONE = frozenset({"connection.close", "channel.close", "basic.cancel"})
"""Ends consumers."""

_Place = tuple[str, str, int | None, str]
"""A consumer of a run: its connection, channel and tag."""
_Queue = tuple[str, str | None]
"""A queue of a run."""


def full(rows: Iterable[Row]) -> dict[LinkKey, list[Intervals]]:
    """When a consumer had as many messages as its prefetch allows; one for each of a channel.

    Deliveries are counted one by one: an acknowledgement may name those of other consumers too, and
    no row of theirs tells that.
    """
    found: dict[LinkKey, list[Intervals]] = {}
    for end in ends(rows, AMQP_0_9_1):
        if end.peer == BROKER:
            for session, one in _full(end):
                key = LinkKey(end.run, end.connection, session, None, BROKER, None)
                found.setdefault(key, []).append(one)
    return found


def _full(end: End) -> Iterator[tuple[int | None, Intervals]]:
    its = Channels(end)
    found: dict[Consumer, Intervals] = {}
    has: dict[Consumer, set[int]] = {}  # deliveries that nothing has answered, by seq
    owner: dict[int, Consumer] = {}
    limits: dict[Consumer, int | None] = {}  # None: octets are missing, and nobody knows
    for row in end.rows:
        step, consumer = its.step(row), (row.session, row.consumer or "")
        changed = [consumer]
        if row.consumer is not None:
            limits[consumer] = (row.ledger or {}).get("prefetch_count")
        if step is not None and step.asks:
            has.setdefault(consumer, set()).add(row.seq)
            owner[row.seq] = consumer
        for since, _ in step.answered if step is not None else ():
            whose = owner.pop(since.seq)
            has.get(whose, set()).discard(since.seq)
            changed.append(whose)
        if row.kind in RECOVER:
            changed += (one for one in has if one[0] == row.session)
            for one in changed:
                has[one] = set()
        for one in set(changed) & limits.keys():
            holds = is_full(limits[one] or 0, len(has.get(one, ())))
            found.setdefault(one, Intervals()).note(row, holds)
        if row.kind in GONE:
            for one in [one for one in found if _gets_no_more(one, row)]:
                found[one].finish(row)
                has.pop(one, None)
                yield one[0], found.pop(one)
    for (session, _), intervals in found.items():
        intervals.finish(end.rows[-1], lasts=True)
        yield session, intervals


def _gets_no_more(consumer: Consumer, row: Row) -> bool:
    """With this row of its connection it is over, whatever it acknowledges later."""
    if row.kind == "connection.close" or row.event == "disconnect":
        return True
    if row.kind == "channel.close":
        return row.session == consumer[0]
    return consumer == (row.session, row.consumer)


def prefetch(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A row for each frame that concerns a consumer: what it has, and what it may have."""
    return [
        prefetch_row(row)
        for end in ends(rows, AMQP_0_9_1)
        if end.peer == BROKER
        for row in end.rows
        if row.consumer is not None and row.ledger and "prefetch_count" in row.ledger
    ]


def prefetch_row(row: Row) -> dict[str, Any]:
    """What a consumer has after a frame."""
    ledger = row.ledger or {}
    limit, unacked = ledger["prefetch_count"], ledger["unacknowledged"]
    return {
        "run": row.run, "connection": row.connection, "session": row.session,
        "consumer": row.consumer, "seq": row.seq, "frame_id": row.frame_id, "t_us": row.t_us,
        "prefetch_count": limit, "unacknowledged": unacked, "full": is_full(limit, unacked),
    }  # fmt: skip


class Starved:
    """Consumers that have all that their prefetch allows while messages are ready for them.

    Their queue tells that itself, where rows come from inside a broker of AMQP 0-9-1.
    """

    def __init__(self) -> None:
        self._queues: dict[_Place, str] = {}  # from which a consumer gets
        self._consumers: dict[_Queue, dict[_Place, None]] = {}
        self._full: set[_Place] = set()
        self._ready: dict[_Queue, int] = {}
        self._told: dict[str, int] = {}  # by run, the first row in which a queue tells what it has
        self._begun: dict[_Place, tuple[Row, int]] = {}

    def take(self, row: Row) -> list[Held]:
        """The next row; gives what it ends."""
        ready = (row.ledger or {}).get("queue_ready")
        if ready is not None:
            if row.vantage != f"queue:{row.queue}":
                return []  # a replica's own picture, which may be behind
            queue = row.run, row.queue
            self._told.setdefault(row.run, row.seq)
            self._ready[queue] = ready
            concerned = list(self._consumers.get(queue, ()))
        elif row.event == "disconnect" or (row.vantage == BROKER and row.kind in GONE):
            here = row.run, row.connection
            concerned = [
                one for one in self._queues if one[:2] == here and _gets_no_more(one[2:], row)
            ]
            for one in concerned:
                self._cancel(one)
        elif row.vantage == BROKER and row.consumer is not None:
            concerned = [_place(row)]
            self._consumer(row)
        else:
            return []
        return [held for place in concerned for held in self._turn(row, place)]

    def _consumer(self, row: Row) -> None:
        place, ledger = _place(row), row.ledger or {}
        if row.kind == "basic.consume":
            self._cancel(place)
            queue = self._queues[place] = row.fields.get("queue") or ""
            self._consumers.setdefault((row.run, queue), {})[place] = None
        limit, unacked = ledger.get("prefetch_count"), ledger.get("unacknowledged")
        if limit is not None and unacked is not None:
            (self._full.add if is_full(limit, unacked) else self._full.discard)(place)

    def _cancel(self, place: _Place) -> None:
        queue = self._queues.pop(place, None)
        if queue is not None:
            del self._consumers[place[0], queue][place]

    def _turn(self, row: Row, place: _Place) -> Iterator[Held]:
        ready = self._ready.get((place[0], self._queues.get(place)), 0)
        if place in self._queues and place in self._full and ready:
            self._begun.setdefault(place, (row, ready))
        elif place in self._begun:
            yield self._held(place, row, row.t_us)

    def _held(self, place: _Place, last: Row | None, end_us: int) -> Held:
        first, waiting = self._begun.pop(place)
        return Held(
            key=LinkKey(*place[:3], None, BROKER, None), brake=PREFETCH, first=first, last=last,
            end_us=end_us, evidence=INTERNAL, waiting=waiting,
        )  # fmt: skip

    def tells(self, held: Held) -> bool:
        """Whether queues had told before what they have, so that later frames need not."""
        if held.brake != PREFETCH or held.evidence == INTERNAL or not isinstance(held.first, Row):
            return False
        known = self._told.get(held.key.run, held.first.seq) < held.first.seq
        return known and bool(self._queues.get(_place(held.first)))

    def finish(self, last_us: Mapping[str, int]) -> Iterator[Held]:
        """What nothing has ended lasts to its run's last row."""
        for place in list(self._begun):
            yield self._held(place, None, last_us[place[0]])

    def forget(self, run: str, connection: str) -> None:
        """Nothing more will come of a connection; it has no consumers any more."""
        self._full = {one for one in self._full if one[:2] != (run, connection)}


def _place(row: Row) -> _Place:
    return row.run, str(row.connection), row.session, str(row.consumer)
