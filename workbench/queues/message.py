"""A message as queues and routing see it, whatever protocol it came over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

NO_HEADERS: Mapping[str, Any] = {}


class Message(Struct, frozen=True, gc=False, kw_only=True):
    """A payload, and what queues and exchanges ask of it.

    A front end reads a published message once and makes one of these. It may keep more in a kind
    of its own, for when it sends the message on: queues pass on what they are given.

    Attributes:
        payload: the octets, encoded as its front end knows.
        ttl_ms: how long it may wait; None: as long as the queue says.
        priority: None: the message has none. Heeded by quorum queues, and by classic queues that
            were declared with `x-max-priority`.
        durable: it is to survive a restart of the broker.
        annotations: what consumers of queues that it died in have added to it: names and values.
        blind_keys: of its routing keys those of which no receiver is told.
    """

    payload: bytes
    ttl_ms: int | None = None
    priority: int | None = None
    durable: bool = True
    annotations: tuple[tuple[object, object], ...] = ()
    blind_keys: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Octets of the payload."""
        return len(self.payload)

    @property
    def headers(self) -> Mapping[str, Any]:
        """What a headers exchange looks at; read when it is asked for."""
        return NO_HEADERS
