"""Which consumers get no more: of AMQP 0-9-1, and the subscriptions of 0-10, by a broker's rows."""

from __future__ import annotations

from .brakes import LINK_CREDIT, PREFETCH, is_full
from .schema import AMQP_0_9_1, AMQP_0_10, CLIENT, Row

COMPLETED, SET_MODE = "session.completed", "message.set-flow-mode"
SUBSCRIBE = frozenset({"basic.consume", "message.subscribe"})
CREDIT_MODE = 0
"""`flow_mode` in which credit is used up."""

Consumer = tuple[int | None, str]
"""Its channel, and its tag; of a subscription of AMQP 0-10 its session and its destination."""


def consumer_name(row: Row) -> str | None:
    """The consumer that a row concerns."""
    return row.link if row.protocol == AMQP_0_10 else row.consumer


def brake_of(row: Row) -> str:
    """What holds a consumer that gets none."""
    return PREFETCH if row.protocol == AMQP_0_9_1 else LINK_CREDIT


def gets_none(row: Row) -> bool | None:
    """Whether the row's consumer gets no more after it; None if the row does not tell.

    It has as many messages as its prefetch allows, or on 0-10 no credit, of messages or of octets.
    """
    ledger = row.ledger or {}
    if row.protocol == AMQP_0_10:
        credit = ledger.get("credit_messages"), ledger.get("credit_octets")
        return None if None in credit else 0 in credit
    limit, unacked = ledger.get("prefetch_count"), ledger.get("unacknowledged")
    return None if limit is None or unacked is None else is_full(limit, unacked)


class Fullness:
    """Which consumers get no more, by a connection's rows at the broker's end.

    A subscription in window mode has credit again when messages of it are complete. The frame that
    says so names none, so all of its session are taken for having some until they show their own.

    Attributes:
        full: since which row.
    """

    def __init__(self) -> None:
        self.full: dict[Consumer, Row] = {}
        self._used_up: set[Consumer] = set()  # subscriptions that get no credit back

    def take(self, row: Row) -> list[tuple[Consumer, Row]]:
        """The next row; gives who gets more from it on, and since when it had got none."""
        name = consumer_name(row)
        if name is None:
            if row.kind != COMPLETED or row.from_peer != CLIENT:
                return []
            freed = [one for one in self.full if one[0] == row.session and one not in self._used_up]
            return [(one, self.full.pop(one)) for one in freed]
        consumer = row.session, name
        if row.kind in SUBSCRIBE:
            self._used_up.discard(consumer)
        elif row.kind == SET_MODE:
            uses_up = row.fields.get("flow_mode") == CREDIT_MODE
            (self._used_up.add if uses_up else self._used_up.discard)(consumer)
        none = gets_none(row)
        if none:
            self.full.setdefault(consumer, row)
        elif none is not None and consumer in self.full:
            return [(consumer, self.full.pop(consumer))]
        return []
