"""What bounds a quorum queue: how much may wait, how long, and how often a message may come back.

The rules are those of `rabbit_fifo.erl`: `is_over_limit`, `is_below` and `evaluate_limit` for
length, `maybe_set_msg_ttl` and `expire_msgs` for age, `return_one` for returns.
"""

from __future__ import annotations

from .base import Dropped, Stored
from .limits import EXPIRED, MAXLEN, US_PER_MS
from .quorum_commands import Full, QuorumEffect
from .quorum_ready import QuorumReady
from .quorum_terms import ACQUIRED, REJECT_PUBLISH, QuorumTerms

LEFT_OF_TEN = 8  # rabbit_fifo.erl: LOW_LIMIT, 0.8: publishers are let again with so much there
SHORTEST_MS = 1  # a ttl of 0 means: within the millisecond in which the message came


class QuorumLimits:
    """The limits of one copy of a queue.

    Args:
        terms: what the queue was declared with.
        ready: what is ready in this copy.

    Attributes:
        full: publishers are refused.
        ages: a message has come that may get too old.
    """

    def __init__(self, terms: QuorumTerms, ready: QuorumReady) -> None:
        self.full = False
        self.ages = False
        self.bounded = terms.max_length is not None or terms.max_length_bytes is not None
        self._terms = terms
        self._ready = ready

    def expires_us(self, now_us: int, ttl_ms: int | None) -> int | None:
        """When a message that comes now is too old: the queue's word or its own, the shorter."""
        given = [ms for ms in (ttl_ms, self._terms.message_ttl_ms) if ms is not None]
        if not given:
            return None
        self.ages = True
        return now_us + max(SHORTEST_MS, min(given)) * US_PER_MS

    def expired(self, now_us: int) -> list[Dropped]:
        """What is too old goes, from the heads: behind a younger message an old one stays."""
        late = self._ready.take_expired(now_us)
        return [Dropped(message=message, reason=EXPIRED) for message in late]

    def overflow(self) -> list[QuorumEffect]:
        """Too much is ready: the oldest go, or publishers are told to stop, or to go on."""
        if self._terms.overflow == REJECT_PUBLISH:
            if self.full != (self._over() if not self.full else not self._below()):
                self.full = not self.full
                return [Full(self.full)]
            return []
        gone: list[QuorumEffect] = []
        while self._over():
            gone.append(Dropped(message=self._ready.take(), reason=MAXLEN))
        return gone

    def bears(self, message: Stored) -> bool:
        """Whether a message that comes back may be handed out once more."""
        limit = self._terms.delivery_limit
        acquired = self._terms.limit_counts == ACQUIRED
        count = message.acquired_count if acquired else message.delivery_count
        return limit is None or count <= limit

    def _over(self) -> bool:
        return any(there > most for there, most in self._measures())

    def _below(self) -> bool:
        return all(there <= most * LEFT_OF_TEN // 10 for there, most in self._measures())

    def _measures(self) -> list[tuple[int, int]]:
        """What is ready, and how much may be, for each limit that there is."""
        terms, ready = self._terms, self._ready
        both = ((len(ready), terms.max_length), (ready.octets, terms.max_length_bytes))
        return [(there, most) for there, most in both if most is not None]
