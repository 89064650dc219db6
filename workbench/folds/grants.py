"""`grants`: how each receiver tops up; see `data/README.md`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.trace.schema import Row

from .counters import Counters
from .intervals import Intervals, Span, over, took
from .latency import round_trips
from .vantage import End, LinkKey, attaches, from_receiver, in_order, percentile

FITS = 4, 5  # a rule fits if four fifths of the grants agree with it
STEADY = 10  # of the typical interval, its tenth: so far a timer's may vary


def grants(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """One row per link, in order of its key."""
    rows = list(rows)
    trips = round_trips(rows)
    return in_order(
        {**key._asdict(), **one.answer(trips.get(key, ()))} for key, one in gathered(rows).items()
    )


def gathered(rows: Sequence[Row]) -> dict[LinkKey, Grants]:
    """What a whole trace tells of the credit of each link."""
    found: dict[LinkKey, Grants] = {}
    for end, receivers in from_receiver(rows):
        links: dict[LinkKey, Grants] = {}
        for step in Counters(receivers).steps():
            if step.link is not None and step.grants:
                one = links.setdefault(step.link.key, Grants())
                one.grant(
                    step.row.t_us, step.link.limit.upper, step.credit_before, step.link.credit
                )
        _at_zero(end, links)
        found |= links
    return found


def _at_zero(end: End, links: dict[LinkKey, Grants]) -> None:
    """What the sender knows: its messages, and when it had no credit."""
    of_session: dict[int | None, dict[LinkKey, Grants]] = {}
    for key, one in links.items():
        of_session.setdefault(key.session, {})[key] = one
    for step in Counters(end).steps():
        row = step.row
        if row.kind in ("close", "end"):
            gone = links if row.kind == "close" else of_session.get(row.session, {})
            over(row, (its for one in gone.values() for its in one.without))
        if step.link is None:
            continue
        key = step.link.key
        one = links.setdefault(key, Grants())
        of_session.setdefault(key.session, {})[key] = one
        one.known |= attaches(row) and row.from_peer == end.peer
        one.messages += step.begins
        if row.kind == "transfer":
            one.last_transfer = row.t_us
        credit = step.link.credit
        if step.grants and one.first_heard is None:
            one.first_heard = row.t_us
        one.attached |= attaches(row)
        one.unheard.note(row, one.attached and one.first_heard is None)
        if one.first_heard is not None:
            one.zero.note(row, None if credit is None else credit == 0)
        if row.kind == "detach":
            over(row, one.without)
    over(end.rows[-1], (its for one in links.values() for its in one.without), lasts=True)


class Grants:
    """What is gathered of one link."""

    def __init__(self) -> None:
        self.messages = 0
        self.known = self.attached = False
        self.first_heard: int | None = None  # when the sender heard of its first grant
        self.last_transfer: int | None = None
        self.times: list[int] = []
        self.uppers: list[int | None] = []
        self.before: list[int | None] = []
        self.after: list[int | None] = []
        self.unheard, self.zero = Intervals(), Intervals()
        self.without = (self.unheard, self.zero)

    def without_credit(self, prompt_us: int) -> list[tuple[Span, bool]]:
        """When the credit was 0 between attach and end, and whether nothing had ended that.

        Args:
            prompt_us: a first grant that comes so soon ends no wait.
        """
        first = [(span, lasts) for span, lasts in self.unheard.told
                 if self.first_heard is None or took(span) > prompt_us]  # fmt: skip
        return [*first, *self.zero.told]

    def grant(self, t_us: int, upper: int | None, before: int | None, after: int | None) -> None:
        """One more, with the limit that it sets, and the credit before and after it."""
        self.times.append(t_us)
        self.uppers.append(upper)
        self.before.append(before)
        self.after.append(after)

    @property
    def intervals(self) -> list[int]:
        """Microseconds from each grant to the next."""
        return [later - sooner for sooner, later in zip(self.times, self.times[1:], strict=False)]

    def rule(self) -> str:
        """The rule that the grants after the first agree with."""
        if len(self.times) < 2:
            return ("none", "once")[len(self.times)]
        moves = [
            None if a is None or b is None else b - a
            for a, b in zip(self.uppers, self.uppers[1:], strict=False)
        ]
        left = self.before[1:]
        halves = [
            here is not None and had is not None and 0 < here <= had / 2
            for here, had in zip(left, self.after, strict=False)
        ]
        if _fits([move == 1 for move in moves]):
            return "one-at-a-time"
        if _fits([here == 0 for here in left]):
            return "batch"
        if _fits(halves):
            return "at-half"
        intervals = self.intervals
        low, typical, high = (percentile(intervals, percent) or 0 for percent in (10, 50, 90))
        if len(intervals) >= 3 and (high - low) * STEADY <= typical:
            return "fixed-timer"
        return "other"

    def rate(self) -> float | None:
        """Messages per second while there was credit."""
        if self.first_heard is None or self.last_transfer is None:
            return None
        start, end = self.first_heard, self.last_transfer
        open_us = end - start - self.zero.within(start, end)
        return self.messages * 1e6 / open_us if open_us > 0 else None

    def answer(self, trips: Sequence[int]) -> dict[str, Any]:
        """The columns."""
        granted = percentile([one for one in self.after if one is not None], 50)
        rate, trip = self.rate(), percentile(trips, 50)
        interval = percentile(self.intervals, 50)
        needed = arithmetic = None
        if rate is not None and trip is not None:
            wait, tenths = interval or 0, math.floor(rate * 10 + 0.5)
            needed = math.ceil(rate * (trip + wait) / 1e6)
            arithmetic = (
                f"{tenths // 10}.{tenths % 10}/s x ({trip} + {wait} µs), rounded up: {needed}"
            )
        advice = "unknown"
        if self.known and self.times:
            if self.zero.total_us == 0:
                advice = "enough"
            elif needed is not None and granted is not None:
                advice = "enough" if granted >= needed else "raise"
        return {
            "grants": len(self.times),
            "messages": self.messages,
            "grants_per_message": len(self.times) / self.messages if self.messages else None,
            "granted": granted,
            "left": percentile([one for one in self.before[1:] if one is not None], 50),
            "interval_us": interval,
            "rule": self.rule(),
            "zero_times": self.zero.times,
            "zero_us": self.zero.total_us,
            "worst_seq": self.zero.worst_seq,
            "rate": rate,
            "round_trip_us": trip,
            "credit_needed": needed,
            "arithmetic": arithmetic,
            "advice": advice,
            "known": self.known,
        }


def _fits(agree: Sequence[bool]) -> bool:
    part, whole = FITS
    return sum(agree) * whole >= len(agree) * part
