"""A number or a word that a run makes step by step, and what a misconception makes of it.

A *course* says by `seq` of a row what holds from that row on. The course of the rule is read off
the run's rows; the other is what somebody expects of the same rows who has a misconception. Where
they first differ the two rules part. Neither is written down: both follow the run's numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from workbench.trace.schema import Row

from .misconception import say

Value = int | float | str
Course = Mapping[int, Value]
# What is seen before the courses part: so many of their turns, and of the run's rows, at most.
_TURNS, _ROWS = 3, 60


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A misconception beside the rule in one run.

    Attributes:
        name: of the misconception.
        what: is counted or told: `Messages that the reader has read`.
        run: a run, or rows in order of `seq`.
        rule: the course that the run takes.
        yours: the course by the misconception.
    """

    name: str
    what: str
    run: Any = field(repr=False)
    rule: Course = field(repr=False)
    yours: Course = field(repr=False)

    @cached_property
    def parts(self) -> int | None:
        """`seq` of the row at which the two first differ; None if they never do."""
        rule = yours = None
        for seq in self._turns:
            rule, yours = self.rule.get(seq, rule), self.yours.get(seq, yours)
            if rule != yours:
                return seq
        return None

    @property
    def opens(self) -> int | None:
        """`seq` of the row to begin at: shortly before they part, the two agreeing."""
        parts = self.parts
        if parts is None:
            return None
        turns = [seq for seq in self._turns if seq < parts]
        rows = [row.seq for row in getattr(self.run, "rows", self.run) if row.seq < parts]
        first = max([*rows[-_ROWS:][:1], *turns[-_TURNS:][:1]], default=parts)
        start = min(max(first, int(getattr(self.run, "start_seq", 0))), parts - 1)
        return next((seq for seq in reversed(rows) if seq <= start), None)

    def told(self, seq: int, *, theirs: bool = False) -> str:
        """What a row brings to both courses, in words; empty if it brings nothing.

        Args:
            seq: of the row.
            theirs: the rule shown is the room's, and whoever looks is its trainer.
        """
        if seq not in self.rule and seq not in self.yours:
            return ""
        rule, yours = (_latest(course, seq) for course in (self.rule, self.yours))
        their = "-theirs" if theirs else ""
        if rule == yours:
            return say(f"beside.same{their}", what=self.what, rule=_words(rule))
        told = {"rule": _words(rule), "yours": _words(yours)}
        return say(f"beside.other{their}", what=self.what, **told)

    def differs(self, seq: int, *, theirs: bool = False) -> str | None:
        """How they differ, in words; None as long as they do not. Arguments as of `told`."""
        parts = self.parts
        if parts is None or seq < parts:
            return None
        told = self.told(parts, theirs=theirs)
        return say("beside.part" if seq == parts else "beside.parted", told=told)

    @cached_property
    def _turns(self) -> list[int]:
        return sorted({*self.rule, *self.yours})


def _latest(course: Course, seq: int) -> Value | None:
    return next((course[at] for at in sorted(course, reverse=True) if at <= seq), None)


def _words(value: Value | None) -> str:
    if value is None:
        return say("beside.nothing")
    return f"{value:,.10g}" if isinstance(value, int | float) else say("beside.word", word=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A misconception beside what whole runs come to, which are too long to be drawn.

    Attributes:
        name: of the misconception.
        unit: of the heights.
        heights: of the runs, by what they are called.
        which: of them the misconception is about.
        yours: how high that would be by it.
    """

    name: str
    unit: str
    heights: Mapping[str, float]
    which: str
    yours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What whole runs come to, so that a wrong answer can be shown beside it.

    Attributes:
        unit: of the heights.
        heights: of the runs, by their names.
        yours: by the name of a misconception, what it expects of one of them: its name and height.
            One that is not named says of the run that it picks that it is the highest.
    """

    unit: str
    heights: Mapping[str, float]
    yours: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def beside(self, name: str, wrong: Value, right: Value) -> Bars | None:
        """The misconception's bar beside those of the runs; None if it expects what they came to.

        Args:
            name: of the misconception.
            wrong: what it leads to.
            right: the question's answer, which the bars need not know.
        """
        picked = str(wrong)
        if name not in self.yours and picked not in self.heights:
            return None
        which, height = self.yours.get(name, (picked, max(self.heights.values())))
        if self.heights.get(which) == height:
            return None
        return Bars(name=name, unit=self.unit, heights=self.heights, which=which, yours=height)


@dataclass(frozen=True, slots=True, kw_only=True)
class InStep:
    """Where a question's answer comes about, so that each wrong answer can be shown beside it.

    Attributes:
        what: is counted or told.
        run: a run, or rows in order of `seq`.
        rows: of which each adds one; the answer is their number. None: the answer is told at once.
        end: `seq` of the row at which it is decided.
        full: from which each row takes one away; None: each adds one.
        rule: the course of the run, where it is none of these.
        yours: the courses of misconceptions, by name, with that.
    """

    what: str
    run: Any = field(repr=False)
    rows: Sequence[int] | None = None
    end: int = 0
    full: int | None = None
    rule: Course | None = None
    yours: Mapping[str, Course] = field(default_factory=dict)

    def beside(self, name: str, wrong: Value, right: Value) -> Beside | None:
        """The misconception beside the rule, from both answers; None if they part nowhere.

        Args:
            name: of the misconception.
            wrong: what it leads to.
            right: the question's answer.
        """
        if self.rule is not None:
            courses = self.rule, self.yours.get(name, self.rule)
        elif self.rows is None:
            courses = {self.end: right}, {self.end: wrong}
        else:
            # Who expects more to happen waits for it to the end; who expects less is surprised.
            sign, begin = (1, 0) if self.full is None else (-1, self.full)
            most = sign * (int(wrong) - begin)
            turns = list(enumerate(self.rows, 1))
            courses = (
                {seq: begin + sign * place for place, seq in turns} | {self.end: right},
                {seq: begin + sign * min(place, most) for place, seq in turns} | {self.end: wrong},
            )
        rule, yours = courses
        found = Beside(name=name, what=self.what, run=self.run, rule=rule, yours=yours)
        return None if found.parts is None else found


def counted(
    run: Any, what: str, rows: Sequence[Row], *, end: Row | None = None, full: int | None = None
) -> InStep:
    """An answer that is counted in a run, a row at a time.

    Args:
        run: a run, or rows in order of `seq`.
        what: is counted.
        rows: of which each adds one.
        end: the row at which the count is the answer; the last of the run if None.
        full: from which each row takes one away; None: each adds one.
    """
    last = getattr(run, "rows", run)[-1]
    return InStep(
        what=what,
        run=run,
        rows=tuple(row.seq for row in rows),
        end=max([(last if end is None else end).seq, *(row.seq for row in rows[-1:])]),
        full=full,
    )


def decided(run: Any, what: str, row: Row | None = None) -> InStep:
    """An answer that one row of a run decides.

    Args:
        run: a run, or rows in order of `seq`.
        what: is told.
        row: which decides; the last of the run if None.
    """
    last = getattr(run, "rows", run)[-1]
    return InStep(what=what, run=run, end=(last if row is None else row).seq)


def followed(run: Any, what: str, rule: Course, yours: Mapping[str, Course]) -> InStep:
    """An answer that comes of two courses, both read off the run's rows.

    Args:
        run: a run, or rows in order of `seq`.
        what: is told.
        rule: its course.
        yours: the course of each misconception, by name.
    """
    return InStep(what=what, run=run, rule=dict(rule), yours=dict(yours))
