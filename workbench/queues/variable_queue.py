"""Where a classic queue's messages are, in RAM or on disk, and how they are paged out.

Five inner queues hold what is ready, in order of numbers from the head: q4, q3, delta, q2, q1.
A message is an *alpha* in q1 and q4 (its content and its position in RAM), a *beta* in q2 and q3
(content on disk, position in RAM), a *gamma* there if its position is on disk as well, and in
*delta* it is on disk alone, where only their number is kept. Beside them stand messages that were
handed out and wait for an acknowledgement, with their content in RAM or without.

Whether a message is persistent is another matter: a persistent one is written at once and is an
alpha until it is paged out. A small one is kept in the queue's index with its position: its content
stays in RAM, whatever it is called, until the position is written, and once it was handed out it is
not paged.

Rules, checked by a property test after every command:

1. q1 + q2 + delta + q3 + q4 is what is ready, and with the pending acknowledgements all there is.
2. Something is in q1 only if something is in q3; in q2 only if in delta; in delta only if in q3.
3. Counts of what is in RAM are those of the messages whose content is there.

After `rabbit_variable_queue.erl`, RabbitMQ 3.5.5; see `reduce` for what is paged out when.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from .base import QueueError

SEGMENT = 16_384
"""Entries of one file of a queue's index (`rabbit_queue_index.erl`: SEGMENT_ENTRY_COUNT)."""
HALF_LIFE_S = 5.0
"""After so many seconds an old rate counts half (RATE_AVG_HALF_LIFE)."""
RATES_AFTER = 100
"""Rates are worked out anew when more messages than this came or went (MSGS_PER_RATE_CALC)."""
IDLE_RATE = 0.01  # messages a second: a queue whose rates are all below has no duration
US_PER_S = 1_000_000


class Disk(Protocol):
    """Where messages are written that leave the RAM."""

    @property
    def blocked(self) -> bool:
        """The queue's process is out of credit: with a message store, or with a mirror."""

    def write(self, number: int) -> None:
        """Hand a message to the store, for one credit."""


class Kept(Struct):
    """One message, as the queue knows it (`msg_status`).

    Attributes:
        number: in its queue.
        octets: of its content.
        embedded: it is small, and kept in the index.
        in_ram: its content is.
        in_store: a message store has it, or has been handed it.
        index_on_disk: its position is on disk.
    """

    number: int
    octets: int
    embedded: bool
    in_ram: bool = True
    in_store: bool = False
    index_on_disk: bool = False


class Counts(Struct, frozen=True, gc=False, kw_only=True):
    """How many messages are where.

    Attributes:
        q1, q2, delta, q3, q4: in the inner queues.
        ram_messages: ready ones whose content is in RAM.
        ram_acks: handed out, with their content in RAM.
        disk_acks: handed out, without it.
        index_acks: handed out and small: in the index, and in RAM until they are acknowledged.
        ram_octets: of all contents in RAM.
    """

    q1: int
    q2: int
    delta: int
    q3: int
    q4: int
    ram_messages: int
    ram_acks: int
    disk_acks: int
    index_acks: int
    ram_octets: int

    @property
    def in_ram(self) -> int:
        """What a quota counts: messages in RAM, ready or handed out, that can be paged out."""
        return self.ram_messages + self.ram_acks

    @property
    def positions(self) -> int:
        """Messages, ready or handed out, of which a position is in RAM."""
        return self.q1 + self.q2 + self.q3 + self.q4 + self.acks

    @property
    def acks(self) -> int:
        """Messages that were handed out."""
        return self.ram_acks + self.disk_acks + self.index_acks

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""
        return self.q1 + self.q2 + self.delta + self.q3 + self.q4


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Messages a second, each an average that forgets by `HALF_LIFE_S`.

    Attributes:
        came, went: into the queue, and out of it.
        ack_came, ack_went: handed out, and acknowledged.
    """

    came: float = 0.0
    went: float = 0.0
    ack_came: float = 0.0
    ack_went: float = 0.0

    @property
    def total(self) -> float:
        """All four, added up."""
        return self.came + self.went + self.ack_came + self.ack_went

    @property
    def acks_first(self) -> bool:
        """Pending acknowledgements grow faster than what is ready."""
        return self.ack_came - self.ack_went > self.came - self.went


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What one go of `reduce` has done.

    Attributes:
        quota: messages that it was to page out in its first phase.
        acks: pending acknowledgements paged out, each for one of the quota.
        messages: ready messages paged out, each for one of the quota.
        positions: positions paged out in the second phase.
        acks_first: the order of the first phase.
        blocked: the first phase ended for lack of credit.
        limited: more was to be done than one go may do.
    """

    quota: int
    acks: int
    messages: int
    positions: int
    acks_first: bool
    blocked: bool
    limited: bool

    @property
    def left(self) -> int:
        """Of the quota."""
        return self.quota - self.acks - self.messages


class VariableQueue:
    """The book of one queue.

    Args:
        disk: takes what is paged out.
        io_batch: positions are paged out only so many at once, or more
            (`msg_store_io_batch_size`).
        most: messages of one go, and positions; 0: no limit, as in 3.5.5.

    Attributes:
        target: messages, ready or handed out, that may be in RAM (`target_ram_count`); None: any.
        rates: worked out last.

    Raises:
        QueueError: a number is negative.
    """

    def __init__(self, disk: Disk, *, io_batch: int, most: int = 0) -> None:
        for name, value in (("msg_store_io_batch_size", io_batch), ("most", most)):
            if value < 0:
                raise QueueError(f"{name} is {value}; legal: 0 or more messages")
        self.target: int | None = None
        self.rates = Rates()
        self._disk = disk
        self._io_batch = io_batch
        self._most = most
        self._q1: deque[Kept] = deque()
        self._q2: deque[Kept] = deque()
        self._q3: deque[Kept] = deque()
        self._q4: deque[Kept] = deque()
        self._delta: deque[Kept] = deque()  # on disk: a real queue knows its bounds and how many
        self._delta_start = 0
        self._ready: set[int] = set()  # numbers in these five
        self._ram_acks: dict[int, Kept] = {}
        self._disk_acks: dict[int, Kept] = {}
        self._index_acks: dict[int, Kept] = {}
        self._ram_messages = self._ram_octets = 0
        self._rates_us = 0
        self._came = self._went = self._ack_came = self._ack_went = 0

    # -- reading ----------------------------------------------------------------------------

    def counts(self) -> Counts:
        """How many messages are where."""
        return Counts(
            q1=len(self._q1),
            q2=len(self._q2),
            delta=len(self._delta),
            q3=len(self._q3),
            q4=len(self._q4),
            ram_messages=self._ram_messages,
            ram_acks=len(self._ram_acks),
            disk_acks=len(self._disk_acks),
            index_acks=len(self._index_acks),
            ram_octets=self._ram_octets,
        )

    def messages(self) -> dict[str, tuple[Kept, ...]]:
        """All there are, by place, each in order from the head."""
        places: dict[str, Iterable[Kept]] = {
            "q4": self._q4,
            "q3": self._q3,
            "delta": self._delta,
            "q2": self._q2,
            "q1": self._q1,
            "ram_acks": self._ram_acks.values(),
            "disk_acks": self._disk_acks.values(),
            "index_acks": self._index_acks.values(),
        }
        return {name: tuple(found) for name, found in places.items()}

    def permitted_betas(self) -> int | None:
        """How many messages in q2 and q3 may keep their position in RAM; None: any number."""
        counts = self.counts()
        if self.target is None or not counts.ready:
            return None
        if self.target == 0:
            return min(counts.q3, SEGMENT)
        lower = counts.ready - counts.q1 - counts.q4
        return max(SEGMENT, lower - lower * lower // (lower + self.target))

    # -- what becomes of messages -----------------------------------------------------------

    def published(
        self, number: int, octets: int, now_us: int, *, persistent: bool, embedded: bool
    ) -> None:
        """A message was taken in; a persistent one has been written already."""
        kept = Kept(
            number, octets, embedded, True, persistent and not embedded, index_on_disk=persistent
        )
        (self._q1 if self._q3 else self._q4).append(kept)
        self._ready.add(number)
        self._ram_messages += 1
        self._ram_octets += octets
        self._came += 1
        self._perhaps_rates(now_us)

    def handed_out(self, number: int, now_us: int) -> None:
        """A message went to a consumer, whose acknowledgement is pending."""
        kept = self._out(number)
        if not kept.in_ram:
            self._disk_acks[number] = kept
        elif kept.embedded:
            self._index_acks[number] = kept
        else:
            self._ram_acks[number] = kept
        self._went += 1
        self._ack_came += 1
        self._perhaps_rates(now_us)

    def gone(self, number: int, now_us: int) -> None:
        """A message has left the queue, acknowledged or dropped; of an unknown one it is known."""
        kept = self._pending(number)
        if kept is not None:
            self._ack_went += 1
        elif number in self._ready:
            kept = self._out(number)
            self._went += 1
            self._perhaps_rates(now_us)
        if kept is not None and kept.in_ram:
            self._ram_octets -= kept.octets

    def requeued(self, numbers: Iterable[int], now_us: int) -> None:
        """Messages that were handed out are back in their old places.

        One that belongs before q3 is an alpha again, and read if it must be; one that belongs
        into q3 is paged out, and one that belongs into delta with its position.
        """
        before_q3 = self._q3[0].number if self._q3 else None
        before_delta = self._delta_start if self._delta else None
        alphas: list[Kept] = []
        betas: list[Kept] = []
        count = 0
        for number in sorted(numbers):
            kept = self._pending(number)
            if kept is None:
                continue
            count += 1
            self._ready.add(number)
            if before_q3 is None or number < before_q3:
                if not kept.in_ram:
                    self._read(kept)
                alphas.append(kept)
                self._ram_messages += 1
            elif before_delta is None or number < before_delta:
                self._trim(kept)
                betas.append(kept)
                self._ram_messages += kept.in_ram
            else:
                self._trim(kept)
                self._into_delta(kept)
                insort(self._delta, kept, key=_number)
        self._q4 = _merged(self._q4, alphas)
        self._q3 = _merged(self._q3, betas)
        self._came += count
        self._perhaps_rates(now_us)

    # -- memory -----------------------------------------------------------------------------

    def set_target(self, count: int | None) -> bool:
        """Let so many messages be in RAM, ready or handed out; whether `reduce` is due now.

        Raises:
            QueueError: for a negative number.
        """
        if count is not None and count < 0:
            raise QueueError(f"target_ram_count is {count}; legal: 0 or more messages")
        before, self.target = self.target, count
        return count is not None and (before is None or count < before)

    def set_duration(self, seconds: float) -> bool:
        """Keep as many in RAM as come and go in so many seconds; whether `reduce` is due now."""
        endless = seconds == math.inf
        return self.set_target(None if endless else int(seconds * self.rates.total))

    def duration(self, now_us: int) -> float:
        """How many seconds of its traffic the queue has in RAM; endless where nothing moves.

        A quarter of what is there, over the four rates: it would be the mean of two reports, half
        of each, but the source never stores what it told before and adds 0.
        """
        self._work_out_rates(now_us)
        held = self._ram_messages + len(self._ram_acks) + len(self._index_acks)
        rates = self.rates
        if all(
            rate < IDLE_RATE for rate in (rates.came, rates.went, rates.ack_came, rates.ack_went)
        ):
            return math.inf
        return held / (4 * rates.total)

    def reduce(self) -> Pass | None:
        """Page messages out, until no more are in RAM than the target; None if nothing is to be.

        In the first phase each message or pending acknowledgement that is paged out costs one of
        the quota: what is in RAM, beyond the target. Whichever of the two grows faster comes first
        and may use it all. Ready messages are paged out from the tail, while the queue's process
        has credit; pending acknowledgements, the youngest first, whether it has or not.

        In the second phase positions are paged out: those in q2 and q3 beyond what is permitted,
        and only if they are as many as `io_batch`.
        """
        if self.target is None:
            return None
        quota = max(0, self._ram_messages + len(self._ram_acks) - self.target)
        allowed = left = min(quota, self._most) if self._most else quota
        acks = messages = 0
        acks_first = self.rates.acks_first
        for acknowledgements in (acks_first, not acks_first):
            if acknowledgements:
                acks = self._limit_ram_acks(left)
                left -= acks
            else:
                messages = self._push_alphas(left)
                left -= messages
        blocked = left > 0 and self._disk.blocked and bool(self._q1 or self._q4)
        positions, more = self._push_positions()
        if not (quota or positions):
            return None
        return Pass(
            quota=quota,
            acks=acks,
            messages=messages,
            positions=positions,
            acks_first=acks_first,
            blocked=blocked,
            limited=not self._disk.blocked and ((left == 0 and allowed < quota) or more),
        )

    def _limit_ram_acks(self, quota: int) -> int:
        paged = heapq.nlargest(quota, self._ram_acks) if quota else []
        for number in paged:
            kept = self._ram_acks.pop(number)
            self._trim(kept)
            self._disk_acks[number] = kept
        return len(paged)

    def _push_alphas(self, quota: int) -> int:
        """Alphas become betas: q1 from its head, behind what is paged out; then q4 from its end."""
        pushed = 0
        target = self.target
        assert target is not None
        for source, take in ((self._q1, deque[Kept].popleft), (self._q4, deque[Kept].pop)):
            while (
                source and pushed < quota and self._ram_messages > target and not self._disk.blocked
            ):
                kept = take(source)
                self._trim(kept)
                self._ram_messages -= not kept.in_ram
                if source is self._q4:
                    self._q3.appendleft(kept)
                else:
                    (self._q2 if self._delta else self._q3).append(kept)
                pushed += 1
        return pushed

    def _push_positions(self) -> tuple[int, bool]:
        """Betas go into delta; returns how many went, and whether more would have to go."""
        permitted = self.permitted_betas()
        if permitted is None:
            return 0, False
        surplus = len(self._q2) + len(self._q3) - permitted
        if surplus <= 0 or surplus < self._io_batch:
            return 0, False
        quota = allowed = min(surplus, self._most) if self._most else surplus
        if self._q3:  # what shares a segment of the index with the head of q3 stays
            limit = _segment_end(self._q3[0].number)
            while quota and self._q3 and self._q3[-1].number >= limit:
                kept = self._q3.pop()
                self._forget(kept)
                self._delta.appendleft(kept)
                quota -= 1
        while quota and self._q2:
            kept = self._q2.popleft()
            self._forget(kept)
            self._delta.append(kept)
            quota -= 1
        return allowed - quota, surplus > allowed

    def _forget(self, kept: Kept) -> None:
        """A beta goes into delta."""
        self._ram_messages -= kept.in_ram
        self._into_delta(kept)

    def _into_delta(self, kept: Kept) -> None:
        kept.index_on_disk = True
        if kept.in_ram:  # a small one, whose content is in the index with its position
            kept.in_ram = False
            self._ram_octets -= kept.octets
        if not self._delta or kept.number < self._delta_start:
            self._delta_start = kept.number

    def _trim(self, kept: Kept) -> None:
        """Its content leaves the RAM, for the store if that has not got it; a small one's stays."""
        if kept.embedded or not kept.in_ram:
            return
        if not kept.in_store:
            self._disk.write(kept.number)
            kept.in_store = True
        kept.in_ram = False
        self._ram_octets -= kept.octets

    def _read(self, kept: Kept) -> None:
        kept.in_ram = True
        self._ram_octets += kept.octets

    # -- order ------------------------------------------------------------------------------

    def _out(self, number: int) -> Kept:
        """Take a ready message out: the first, or one that goes before others by its priority."""
        for line in (self._q4, self._q3, self._delta, self._q2, self._q1):
            if not line or not line[0].number <= number <= line[-1].number:
                continue
            at = bisect_left(line, number, key=attrgetter("number"))
            kept = line[at]
            del line[at]
            self._ready.remove(number)
            self._ram_messages -= kept.in_ram
            self._mend()
            return kept
        raise QueueError(f"message {number} is not ready; legal: one that is")

    def _mend(self) -> None:
        """Let rule 2 hold again: what is behind an empty inner queue moves up."""
        if not self._q3:
            while self._delta and not self._q3:
                self._load_segment()
            if not self._q3:
                self._q4.extend(self._q1)
                self._q1.clear()
        if not self._delta:
            self._q3.extend(self._q2)
            self._q2.clear()

    def _load_segment(self) -> None:
        """Positions of one segment of the index come back into RAM, small messages as a whole."""
        end = _segment_end(self._delta_start)
        while self._delta and self._delta[0].number < end:
            kept = self._delta.popleft()
            if kept.embedded:
                self._read(kept)
                self._ram_messages += 1
            self._q3.append(kept)
        self._delta_start = end
        if not self._delta:
            self._q3.extend(self._q2)
            self._q2.clear()

    def _pending(self, number: int) -> Kept | None:
        for acks in (self._ram_acks, self._disk_acks, self._index_acks):
            kept = acks.pop(number, None)
            if kept is not None:
                return kept
        return None

    # -- rates ------------------------------------------------------------------------------

    def _perhaps_rates(self, now_us: int) -> None:
        if self._came + self._went > RATES_AFTER:
            self._work_out_rates(now_us)

    def _work_out_rates(self, now_us: int) -> None:
        elapsed = (now_us - self._rates_us) / US_PER_S
        if elapsed <= 0:
            return  # all of it at once: a rate comes of the next that takes time
        old: float = 0.5 ** (elapsed / HALF_LIFE_S)

        def average(count: int, rate: float) -> float:
            return count / elapsed * (1 - old) + rate * old

        rates = self.rates
        self.rates = Rates(
            came=average(self._came, rates.came),
            went=average(self._went, rates.went),
            ack_came=average(self._ack_came, rates.ack_came),
            ack_went=average(self._ack_went, rates.ack_went),
        )
        self._rates_us = now_us
        self._came = self._went = self._ack_came = self._ack_went = 0


def _segment_end(number: int) -> int:
    """The first number of the next segment of the index."""
    return (number // SEGMENT + 1) * SEGMENT


def _number(kept: Kept) -> int:
    return kept.number


def _merged(line: deque[Kept], more: list[Kept]) -> deque[Kept]:
    return deque(heapq.merge(line, more, key=_number)) if more else line
