"""Reading numbers off a run: how many messages moved, what credit each end holds, how fast it went.

Everything here counts rows. No rule of the protocol is worked out again, so whatever a lesson says
with these numbers is what the run did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench.notebook import WrongValueError
from workbench.scenarios.run import Run, step_of
from workbench.trace import braking
from workbench.trace.braking import Held, held_by, links_of
from workbench.trace.given import takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row

from .table import say

MICROSECONDS = 1_000_000


def step(row: Row) -> int:
    """The number of a row on the stage: 1 is where the lesson begins."""
    return step_of(row)


def step_words(row: Row) -> str:
    """The number of a row on the stage, or that it is of the set-up."""
    number = step_of(row)
    return str(number) if number > 0 else say("set-up")


def milliseconds(time_us: int) -> float:
    """A time of a trace in milliseconds."""
    return time_us / 1000


def frames(
    rows: Iterable[Row],
    kind: str,
    *,
    event: str = SENT,
    from_peer: str | None = None,
    after: int = -1,
    upto: int | None = None,
) -> list[Row]:
    """The rows of frames of one kind.

    Args:
        rows: of one run, in order.
        kind: performative, such as `transfer`.
        event: `sent`, `received` or `observed`.
        from_peer: only those that this peer sent.
        after: only rows after this `seq`.
        upto: only rows up to this `seq`, included; all if None.
    """
    return [
        row
        for row in rows
        if row.kind == kind
        and row.event == event
        and (from_peer is None or row.from_peer == from_peer)
        and row.seq > after
        and (upto is None or row.seq <= upto)
    ]


def messages(
    rows: Iterable[Row], *, event: str = SENT, after: int = -1, upto: int | None = None
) -> int:
    """How many messages the broker handed over: transfers that are not to be continued."""
    return len(handed_over(rows, event=event, after=after, upto=upto))


def handed_over(
    rows: Iterable[Row], *, event: str = SENT, after: int = -1, upto: int | None = None
) -> list[Row]:
    """The row of each of those messages, in order."""
    moved = frames(rows, "transfer", event=event, from_peer=BROKER, after=after, upto=upto)
    return [row for row in moved if not (row.frame or {}).get("more")]


def counter(rows: Iterable[Row], end: str, name: str, *, upto: int | None = None) -> Any:
    """What an end's ledger shows for a counter of the queue's link; None before it shows any.

    Args:
        rows: of one run, in order.
        end: `broker` (the sender of these links) or `client` (their receiver).
        name: of the counter, such as `available`.
        upto: as it was after this row; at the end of the run if None.
    """
    found = None
    for row in rows:
        if upto is not None and row.seq > upto:
            break
        if row.link_sender == BROKER and peer(row) == end and row.ledger:
            found = row.ledger.get(name, found)
    return found


def credit(rows: Iterable[Row], end: str, *, upto: int | None = None) -> int | None:
    """The link-credit that an end holds, as `counter`."""
    held: int | None = counter(rows, end, "link_credit", upto=upto)
    return held


def peer(row: Row) -> str:
    """Which end has logged a row."""
    return CLIENT if row.vantage.startswith(CLIENT) else row.vantage


def last_frame(rows: Sequence[Row], kind: str, **which: Any) -> Row:
    """The last row that `frames` finds; the last row of all if it finds none."""
    return (frames(rows, kind, **which) or rows)[-1]


def seq_of(rows: Iterable[Row], kind: str, number: int = 1, *, event: str = RECEIVED) -> int:
    """`seq` of the first, second, ... row of such a frame; for placing an act or a cursor.

    Raises:
        WrongValueError: if there are not so many.
    """
    found = frames(rows, kind, event=event)
    if not 1 <= number <= len(found):
        raise WrongValueError(say("no-row", n=len(found), event=event, kind=kind, number=number))
    return found[number - 1].seq


@takes
def arrival(played: Run, number: int) -> int:
    """`seq` of the row at which the first, second, ... message arrives at the receiver.

    Raises:
        WrongValueError: if not so many arrive.
    """
    return seq_of(played.rows, "transfer", number)


def in_flight(rows: Sequence[Row], kind: str, upto: int) -> int:
    """How many of the broker's frames of a kind are on the wire after a row."""
    gone = frames(rows, kind, event=SENT, from_peer=BROKER, upto=upto)
    come = frames(rows, kind, event=RECEIVED, from_peer=BROKER, upto=upto)
    return len({row.frame_id for row in gone} - {row.frame_id for row in come})


def deliveries(
    rows: Iterable[Row], *, connection: str | None = None, consumer: str | None = None
) -> list[Row]:
    """A row for each delivery that a client got over AMQP 0-9-1.

    Args:
        rows: of one run, in order.
        connection: only what came on it.
        consumer: only what is its.
    """
    return [
        row
        for row in frames(rows, "basic.deliver", event=RECEIVED, from_peer=BROKER)
        if connection in (None, row.connection) and consumer in (None, row.consumer)
    ]


def taken_in(rows: Iterable[Row], queue: str) -> list[Row]:
    """A row for each message that a queue took in; what its mirrors take is not counted."""
    return [row for row in rows if row.event == "enqueue" and row.vantage == f"queue:{queue}"]


def grants(rows: Iterable[Row]) -> list[int]:
    """The link-credit in each flow of the client that carries one, in order."""
    flows = frames(rows, "flow", from_peer=CLIENT)
    credits = [(row.frame or {}).get("link_credit") for row in flows]
    return [value for value in credits if value is not None]


def numbers(row: Row, *names: str) -> dict[str, Any]:
    """Fields of a frame by name; None where the wire did not carry one."""
    return {name: (row.frame or {}).get(name) for name in names}


def number_in(row: Row, name: str) -> int:
    """A field of a frame that holds a number; 0 where the wire did not carry it."""
    return int((row.frame or {}).get(name) or 0)


def duration_us(rows: Sequence[Row]) -> int:
    """Time from the client's first flow to the arrival of the last message; 0 if none arrived."""
    flows = frames(rows, "flow", from_peer=CLIENT)
    arrivals = frames(rows, "transfer", event=RECEIVED, from_peer=BROKER)
    if not flows or not arrivals:
        return 0
    return arrivals[-1].t_us - flows[0].t_us


def rate(rows: Sequence[Row]) -> float:
    """Messages a second from the first flow to the last arrival; 0 if nothing arrived."""
    time_us = duration_us(rows)
    return messages(rows, event=RECEIVED) * MICROSECONDS / time_us if time_us else 0.0


def link_rate(played: Run, link: str) -> float:
    """Messages a second that arrive over a publisher's link, from the first to the last."""
    arrivals = [
        row.t_us
        for row in frames(played.rows, "transfer", event=RECEIVED, from_peer=CLIENT)
        if row.link == link
    ]
    time_us = arrivals[-1] - arrivals[0] if arrivals else 0
    return (len(arrivals) - 1) * MICROSECONDS / time_us if time_us else 0.0


def about(one: float, other: float) -> bool:
    """Whether two rates differ by less than a tenth."""
    return abs(one - other) < max(one, other) / 10


def stalls_us(played: Run, link: str) -> dict[str, int]:
    """How long each brake held a publisher's link that had a message, in us, the longest first."""
    scope = next(one for one in links_of(played.rows, sender=CLIENT) if one.link == link)
    total = braking.blocked_us(played.rows, held_by(played.rows, scope))
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def observed_grants(rows: Iterable[Row]) -> list[Row]:
    """A capture's flows of the client that carry a link-credit."""
    flows = frames(rows, "flow", event=OBSERVED, from_peer=CLIENT)
    return [row for row in flows if (row.frame or {}).get("link_credit") is not None]


def blocked_us(rows: Sequence[Row], brake: str) -> int:
    """How long a brake blocked the queue's link in all, as the charts shade it."""
    return braking.blocked_us(rows, _queues_link(rows)).get(brake, 0)


def blocked_share(rows: Sequence[Row], brake: str) -> float:
    """The same as a part of the time from the link's beginning to the last arrival; 0 to 1."""
    arrivals = frames(rows, "transfer", event=RECEIVED, from_peer=BROKER)
    begins = [row for row, held in zip(rows, _queues_link(rows), strict=True) if held.known]
    time_us = arrivals[-1].t_us - begins[0].t_us if arrivals and begins else 0
    return blocked_us(rows, brake) / time_us if time_us else 0.0


def starvations(rows: Sequence[Row], brake: str) -> list[Row]:
    """The rows at which that brake stopped the queue's link after it had begun to send."""
    found: list[Row] = []
    begun, blocked = False, False
    for row, held in zip(rows, _queues_link(rows), strict=True):
        begun = begun or (
            row.kind == "transfer" and row.event == SENT and row.link_sender == BROKER
        )
        if not begun:
            continue
        if held.brake == brake and not blocked:
            found.append(row)
        blocked = held.brake == brake
    return found


def _queues_link(rows: Sequence[Row]) -> list[Held]:
    """After each row, what holds the broker on the first link over which it sends."""
    link = next(iter(links_of(rows, sender=BROKER)), None)
    return [Held()] * len(rows) if link is None else held_by(rows, link)
