"""What a quorum queue is declared with."""

from __future__ import annotations

from dataclasses import dataclass

from .base import QueueError

DROP_HEAD, REJECT_PUBLISH = "drop-head", "reject-publish"
ACQUIRED, FAILED = "acquired", "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTerms:
    """What a queue was declared with.

    Attributes:
        single_active: one consumer at a time gets messages.
        max_length: messages ready at most; None: no limit.
        max_length_bytes: octets ready at most; None: no limit.
        message_ttl_ms: so long a message may wait; None: for ever.
        overflow: beyond it the oldest goes (`drop-head`), or publishers are refused
            (`reject-publish`), who are let again when no more than 80 % is there.
        delivery_limit: so many returns are borne; None: any number.
        two_priorities: messages above the usual priority and the others (RabbitMQ 4.0); each of 32
            is heeded otherwise (4.3).
        limit_counts: which returns: `acquired`, each (RabbitMQ 4.0 to 4.2), or `failed`, only
            modified with delivery-failed and lost consumers (4.3).
    """

    single_active: bool = False
    max_length: int | None = None
    max_length_bytes: int | None = None
    message_ttl_ms: int | None = None
    overflow: str = DROP_HEAD
    delivery_limit: int | None = 20
    two_priorities: bool = False
    limit_counts: str = FAILED

    def __post_init__(self) -> None:
        if self.overflow not in (DROP_HEAD, REJECT_PUBLISH):
            raise QueueError(
                f"overflow is {self.overflow!r}; a quorum queue knows {DROP_HEAD} and"
                f" {REJECT_PUBLISH}"
            )
        for name in ("max_length", "max_length_bytes", "message_ttl_ms", "delivery_limit"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise QueueError(f"{name} is {value}; legal: 0 or more, or none at all")
