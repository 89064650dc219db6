"""What bounds a queue: how many messages may wait, how long, and where they go then.

A classic queue's rules are those of `rabbit_amqqueue_process.erl`: `will_overflow` and
`over_max_length` for length, `calculate_msg_expiry` for age, `with_dlx` for dead letters; a quorum
queue's those of `rabbit_fifo.erl`: `is_over_limit`, `is_below` and `maybe_set_msg_ttl`.
"""

from __future__ import annotations

from collections import Counter

from .arguments import QUORUM, REJECT_PUBLISH, REJECT_PUBLISH_DLX, QueueArguments
from .base import DeadLettered, Dropped, Stored
from .ready import FifoReady, Ready, ReadyByPriority

US_PER_MS = 1000

EXPIRED, MAXLEN, REJECTED, PURGED = "expired", "maxlen", "rejected", "purged"
DELIVERY_LIMIT = "delivery_limit"

LOW_PERCENT = 80  # rabbit_fifo.erl: LOW_LIMIT, of each limit: publishers may go on then


class Limits:
    """The limits of one queue, and the tally of what left it.

    Args:
        arguments: how it was declared.

    Attributes:
        left: messages that have left for good, by how: `settled`, `dead_lettered`, `dropped`,
            `expired`, `purged`. What is dead-lettered counts only as that.
        refused: messages that were not taken in.
        bounded: how much may be ready is limited.
        rejects, drops: what is done beyond that: the newest is refused, or the oldest goes.
    """

    def __init__(self, arguments: QueueArguments) -> None:
        self.left: Counter[str] = Counter()
        self.refused = 0
        self._arguments = arguments
        self._max_length = arguments.max_length
        self._max_octets = arguments.max_length_bytes
        self.bounded = self._max_length is not None or self._max_octets is not None
        quorum = arguments.queue_type == QUORUM
        # A quorum queue does not know reject-publish-dlx [rabbit_quorum_queue.erl:overflow].
        keeps = (REJECT_PUBLISH,) if quorum else (REJECT_PUBLISH, REJECT_PUBLISH_DLX)
        self.rejects = self.bounded and arguments.overflow in keeps
        self.drops = self.bounded and not self.rejects
        self._shortest_ms = 1 if quorum else 0  # there a ttl of 0 means: within this millisecond

    def over(
        self, ready: Ready | ReadyByPriority | FifoReady, message: Stored | None = None
    ) -> bool:
        """Whether more is ready than may be, or would be with this message."""
        length, octets = len(ready), ready.octets
        if message is not None:
            length, octets = length + 1, octets + len(message.payload)
        return (self._max_length is not None and length > self._max_length) or (
            self._max_octets is not None and octets > self._max_octets
        )

    def low(self, ready: FifoReady) -> bool:
        """Whether so little is ready that publishers who were refused may go on."""
        measures = ((len(ready), self._max_length), (ready.octets, self._max_octets))
        return all(most is None or there <= most * LOW_PERCENT // 100 for there, most in measures)

    def expires_us(self, now_us: int, ttl_ms: int | None) -> int | None:
        """When a message that comes now is too old: the queue's word or its own, the shorter."""
        own = self._arguments.message_ttl_ms
        if ttl_ms is None and own is None:
            return None
        given = [ms for ms in (ttl_ms, own) if ms is not None]
        return now_us + max(self._shortest_ms, min(given)) * US_PER_MS

    def leave(self, message: Stored, reason: str) -> DeadLettered | Dropped:
        """What becomes of a message that leaves the queue unwanted."""
        exchange = self._arguments.dead_letter_exchange
        if exchange is None or reason == PURGED:
            self.left[reason if reason in (EXPIRED, PURGED) else "dropped"] += 1
            return Dropped(message=message, reason=reason)
        self.left["dead_lettered"] += 1
        return self._dead(message, reason, exchange)

    def refuse(self, message: Stored) -> list[DeadLettered]:
        """A message that is not taken in: it may be dead-lettered all the same."""
        self.refused += 1
        exchange = self._arguments.dead_letter_exchange
        if exchange is None or self._arguments.overflow != REJECT_PUBLISH_DLX:
            return []
        return [self._dead(message, MAXLEN, exchange)]

    def _dead(self, message: Stored, reason: str, exchange: str) -> DeadLettered:
        key = self._arguments.dead_letter_routing_key
        return DeadLettered(
            message=message,
            reason=reason,
            exchange=exchange,
            routing_keys=message.origin.routing_keys if key is None else (key,),
        )

    def overview(self) -> dict[str, int]:
        """The tally of what left otherwise than settled, where any did."""
        names = ("dead_lettered", "dropped", "expired", "purged")
        told = {name: self.left[name] for name in names if self.left[name]}
        return {**told, **({"refused": self.refused} if self.refused else {})}
