"""What consumers of AMQP 0-9-1 and 0-10 have, against what they may have; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from workbench.trace.brakes import is_full
from workbench.trace.consumers import SUBSCRIBE, Consumer, Fullness, brake_of, consumer_name
from workbench.trace.schema import AMQP_0_9_1, BROKER, Row

from .channels import INTERNAL, LINKLESS, Channels, Held
from .intervals import Intervals
from .vantage import End, LinkKey, ends

TX_SELECT, TX_COMMIT, TX_ROLLBACK = "tx.select", "tx.commit", "tx.rollback"
RECOVER = frozenset({"basic.recover", "basic.recover-async"})
"""Gives all that is not acknowledged on a channel back to its queues."""
CANCEL = "message.cancel"
OF_SESSION = frozenset({"channel.close", "session.detach", "session.detached"})
CANCELS = frozenset({"basic.cancel", CANCEL})
"""Ends one consumer."""
GONE = frozenset({"connection.close", *OF_SESSION, *CANCELS})
"""Ends consumers."""

_Place = tuple[str, str, int | None, str]
"""A consumer of a run: its connection, and the consumer there."""
_Queue = tuple[str, str | None]
"""A queue of a run."""


def full(rows: Iterable[Row], protocol: str) -> dict[LinkKey, list[Intervals]]:
    """When a consumer got no more; one for each of a channel, or of a session.

    Args:
        rows: a whole run in order.
        protocol: 0-9-1: it had as many messages as its prefetch allows; or 0-10: no credit.
    """
    found: dict[LinkKey, list[Intervals]] = {}
    for end in ends(rows, protocol):
        if end.peer == BROKER:
            its = _Unacknowledged(end) if protocol == AMQP_0_9_1 else _Credit()
            for session, one in _full(end, its):
                key = LinkKey(end.run, end.connection, session, None, BROKER, None)
                found.setdefault(key, []).append(one)
    return found


def _full(end: End, its: _Unacknowledged | _Credit) -> Iterator[tuple[int | None, Intervals]]:
    found: dict[Consumer, Intervals] = {}
    for row in end.rows:
        for one, holds in its.take(row):
            found.setdefault(one, Intervals()).note(row, holds)
        if row.kind in GONE:
            for one in [one for one in found if _gets_no_more(one, row)]:
                found[one].finish(row)
                its.drop(one)
                yield one[0], found.pop(one)
    for (session, _), intervals in found.items():
        intervals.finish(end.rows[-1], lasts=True)
        yield session, intervals


class _Unacknowledged:
    """Deliveries of AMQP 0-9-1, counted one by one.

    An acknowledgement may name those of other consumers too, and no row of theirs tells that. In a
    transaction it counts when that is committed. A limit of the whole channel counts all of them.
    """

    def __init__(self, end: End) -> None:
        self._channels = Channels(end)
        self._has: dict[Consumer, set[int]] = {}  # deliveries that nothing has answered, by seq
        self._owner: dict[int, Consumer] = {}
        self._limits: dict[Consumer, int | None] = {}  # None: octets are missing, nobody knows
        self._shared: set[int | None] = set()  # channels with a limit for all their consumers
        self._open: dict[int | None, list[int]] = {}  # in transactions, what would be answered

    def take(self, row: Row) -> Iterator[tuple[Consumer, bool]]:
        """The end's next row; gives whom it changes, and whether they are full after it."""
        step, consumer, has = self._channels.step(row), (row.session, row.consumer or ""), self._has
        changed = [consumer]
        if row.consumer is not None:
            self._limits[consumer] = (row.ledger or {}).get("prefetch_count")
        if step is not None and step.asks:
            has.setdefault(consumer, set()).add(row.seq)
            self._owner[row.seq] = consumer
        answered = [since.seq for since, _ in step.answered] if step is not None else []
        if row.kind in (TX_SELECT, TX_ROLLBACK):
            self._open[row.session] = []
        elif row.session in self._open and row.kind not in RECOVER:
            self._open[row.session] += answered
            answered = []
            if row.kind == TX_COMMIT:
                answered, self._open[row.session] = self._open[row.session], []
        for seq in answered:
            whose = self._owner.pop(seq)
            has.get(whose, set()).discard(seq)
            changed.append(whose)
        if row.kind == "basic.qos" and row.fields.get("global"):
            put = self._shared.add if row.fields.get("prefetch_count") else self._shared.discard
            put(row.session)
        shared = row.session in self._shared
        here: list[Consumer] = []
        if shared or row.kind in RECOVER:
            here = [one for one in self._limits if one[0] == row.session]
        if row.kind in RECOVER:
            changed += here
            for one in here:
                has[one] = set()
        if shared:
            count = sum(len(has.get(one, ())) for one in here)
            yield from ((one, is_full(self._limits[one] or 0, count)) for one in here)
            return
        for one in set(changed) & self._limits.keys():
            yield one, is_full(self._limits[one] or 0, len(has.get(one, ())))

    def drop(self, consumer: Consumer) -> None:
        """It is gone, whatever it acknowledges later."""
        self._has.pop(consumer, None)
        self._limits.pop(consumer, None)


class _Credit:
    """Credit of subscriptions of AMQP 0-10."""

    def __init__(self) -> None:
        self._fullness = Fullness()

    def take(self, row: Row) -> Iterator[tuple[Consumer, bool]]:
        """As that of `_Unacknowledged`."""
        yield from ((one, False) for one, _ in self._fullness.take(row))
        name = consumer_name(row)
        if name is not None:
            yield (row.session, name), (row.session, name) in self._fullness.full

    def drop(self, consumer: Consumer) -> None:
        """It is gone."""
        self._fullness.full.pop(consumer, None)


def _gets_no_more(consumer: Consumer, row: Row) -> bool:
    """With this row of its connection it is over, whatever it acknowledges later."""
    if row.kind == "connection.close" or row.event == "disconnect":
        return True
    if row.kind in OF_SESSION:
        return row.session == consumer[0]
    name = row.fields.get("destination") if row.kind == CANCEL else row.consumer
    return consumer == (row.session, name)


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
    limit, unacked = ledger["prefetch_count"], ledger.get("unacknowledged")
    return {
        "run": row.run, "connection": row.connection, "session": row.session,
        "consumer": row.consumer, "seq": row.seq, "frame_id": row.frame_id, "t_us": row.t_us,
        "prefetch_count": limit, "unacknowledged": unacked,
        "full": None if limit and unacked is None else is_full(limit, unacked or 0),
    }  # fmt: skip


class Starved:
    """Consumers that get no more while messages are ready for them.

    Their queue tells that itself, where rows come from inside a broker.
    """

    def __init__(self) -> None:
        self._queues: dict[_Place, str] = {}  # from which a consumer gets
        self._consumers: dict[_Queue, dict[_Place, None]] = {}
        self._connections: dict[tuple[str, str], Fullness] = {}
        self._ready: dict[_Queue, int] = {}
        self._told: dict[str, int] = {}  # by run, the first row in which a queue tells what it has
        # By consumer the row with which it began to wait, the messages ready then, queue and brake.
        self._begun: dict[_Place, tuple[Row, int, str, str]] = {}

    def take(self, row: Row) -> list[Held]:
        """The next row; gives what it ends."""
        ready = (row.ledger or {}).get("queue_ready")
        if ready is not None:
            if row.vantage != f"queue:{row.queue}":
                return []  # a replica's own picture, which may be behind
            queue = row.run, row.queue
            self._told.setdefault(row.run, row.seq)
            turns = bool(ready) != bool(self._ready.get(queue))
            self._ready[queue] = ready
            concerned = list(self._consumers.get(queue, ())) if turns else []
        elif row.event == "disconnect" or (row.vantage == BROKER and row.kind in GONE):
            here = row.run, row.connection
            concerned = [
                one for one in self._queues if one[:2] == here and _gets_no_more(one[2:], row)
            ]
            for one in concerned:
                self._cancel(one)
        elif row.vantage == BROKER and row.protocol in LINKLESS and row.session is not None:
            concerned = self._concerned(row)
        else:
            return []
        return [held for place in concerned for held in self._turn(row, place)]

    def _concerned(self, row: Row) -> list[_Place]:
        """Whom the row tells something about."""
        here = row.run, str(row.connection)
        freed = self._connections.setdefault(here, Fullness()).take(row)
        if consumer_name(row) is None:
            return [(*here, *consumer) for consumer, _ in freed]
        place = _place(row)
        if row.kind in SUBSCRIBE:
            self._cancel(place)
            queue = self._queues[place] = row.fields.get("queue") or ""
            self._consumers.setdefault((row.run, queue), {})[place] = None
        return [place]

    def _cancel(self, place: _Place) -> None:
        queue = self._queues.pop(place, None)
        if queue is not None:
            del self._consumers[place[0], queue][place]

    def _turn(self, row: Row, place: _Place) -> Iterator[Held]:
        queue = self._queues.get(place)
        ready = self._ready.get((place[0], queue), 0)
        its = self._connections.get(place[:2])
        since = None if its is None else its.full.get(place[2:])
        holds = None if queue is None or since is None or not ready else (queue, brake_of(since))
        if place in self._begun and self._begun[place][2:] != holds:
            yield self._held(place, row, row.t_us)
        if holds is not None:
            self._begun.setdefault(place, (row, ready, *holds))

    def _held(self, place: _Place, last: Row | None, end_us: int) -> Held:
        first, waiting, _queue, brake = self._begun.pop(place)
        return Held(
            key=LinkKey(*place[:3], None, BROKER, None), brake=brake, first=first, last=last,
            end_us=end_us, evidence=INTERNAL, waiting=waiting,
        )  # fmt: skip

    def tells(self, held: Held) -> bool:
        """Whether queues had told before what they have, so that later frames need not."""
        if held.evidence == INTERNAL or not isinstance(held.first, Row):
            return False
        known = self._told.get(held.key.run, held.first.seq) < held.first.seq
        return known and bool(self._queues.get(_place(held.first)))

    def finish(self, last_us: Mapping[str, int]) -> Iterator[Held]:
        """What nothing has ended lasts to its run's last row."""
        for place in list(self._begun):
            yield self._held(place, None, last_us[place[0]])

    def forget(self, run: str, connection: str) -> None:
        """Nothing more will come of a connection; it has no consumers any more."""
        self._connections.pop((run, connection), None)


def _place(row: Row) -> _Place:
    return row.run, str(row.connection), row.session, str(consumer_name(row))
