"""What a frame concerns, and the counters there: what a tap asks an endpoint for."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NOWHERE", "ItemScope"]


class ItemScope(NamedTuple):
    """What a frame concerns, and an end's counters right after it.

    Attributes:
        session: ordinal of the session on its connection, from 1.
        destination: of a subscription.
        sends: the end whose counters these are sends its messages.
        ledger: the session's and the subscription's.
        unknown: names of counters that cannot be known.
    """

    session: int | None = None
    destination: str | None = None
    sends: bool = False
    ledger: dict[str, int] | None = None
    unknown: tuple[str, ...] = ()


NOWHERE = ItemScope()
"""Of a frame that concerns no session."""
