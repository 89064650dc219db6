"""What a frame concerns, and the counters there: what a tap asks an endpoint for."""

from typing import NamedTuple

from workbench.amqp091.counters import Ledger

__all__ = ["NOWHERE", "ItemScope"]


class ItemScope(NamedTuple):
    """What a frame concerns, and the counters right after it.

    Attributes:
        session: ordinal of the channel on its connection, from 1.
        consumer: tag of the consumer.
        ledger: of that consumer, or of the channel; see `ChannelCounters.ledger`.
        unknown: names of counters that cannot be known.
    """

    session: int | None = None
    consumer: str | None = None
    ledger: Ledger | None = None
    unknown: tuple[str, ...] = ()


NOWHERE = ItemScope()
"""Of a frame that concerns no channel."""
