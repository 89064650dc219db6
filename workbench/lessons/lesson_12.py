"""Lesson 12: what the run of a mystery says about each question, and its checks."""

from __future__ import annotations

from typing import Any

from workbench.exercises.measure import milliseconds
from workbench.exercises.mystery import (
    APPLICATIONS,
    CARRIERS,
    CURED,
    MESSAGES,
    Mystery,
    cured,
    ill,
    most_ahead,
    mystery,
    points,
)
from workbench.scenarios.beside import Measured
from workbench.scenarios.office import DEPOT, PARCELS
from workbench.trace import brakes

from .declare import Case, Declared, Found, case, facts

__all__ = ["check", "mystery", "points", "predict"]

lesson = Declared("12")
predict, check, say = lesson.predict, lesson.check, lesson.say

MORE, FEWER = 1.25, 0.8
"""From these ratios on a number is more than another, or less; between them about the same."""
LONGEST_MS = 86_400_000
"""A day: no mystery lasts as long."""


# -- what is asked


@lesson.asks
def who(drawn: Mystery) -> Found:
    """Which application's sender was held?"""
    choices = {name: name for name in APPLICATIONS}
    yield {
        "choices": choices,
        "messages": MESSAGES,
        "level": drawn.level,
        "seed": drawn.seed,
    }
    found = drawn.finding
    ends = {
        name: max(row.t_us for row in drawn.of(name) if row.kind in CARRIERS)
        for name in APPLICATIONS
    }
    last = max((name for name in ends if name != found.who), key=lambda name: ends[name])
    # The depot ends with the last parcel: whoever takes slow for held may name either.
    slow = [last, PARCELS] if last == DEPOT and found.who != PARCELS else [last]
    return facts(
        found.who,
        lost_ms=milliseconds(found.lost_us),
        last=last,
        last_ms=milliseconds(ends[last]),
        its_ms=milliseconds(found.lost_by(last)),
        wrong={"the last to end was blocked": [facts(name) for name in slow]},
        beside=Measured(
            unit=say("lost"),
            heights={name: milliseconds(found.lost_by(name)) for name in APPLICATIONS},
        ),
    )


@lesson.asks
def cost(drawn: Mystery) -> Found:
    """How far is the held sender ahead of its answers when it is held no more?"""
    found = drawn.finding
    now = most_ahead(drawn.of(found.who))
    yield {"who": found.who, "now": now, "level": drawn.level}
    after = drawn
    for name in ill(drawn):
        after = cured(after, name)
    then = most_ahead(after.of(found.who))
    return facts(
        "more" if then > MORE * now else "fewer" if then < FEWER * now else "same",
        then=then,
        queued_now=drawn.most_queued(found.who),
        queued_then=after.most_queued(found.who),
        lost_ms=milliseconds(found.lost_us),
        left_ms=milliseconds(after.finding.lost_by(found.who)),
        wrong={"a cure is free": "same", "faster is emptier": "fewer"},
        beside=Measured(
            unit=say("ahead"),
            heights={say("before"): now, say("after"): then},
            yours={
                "a cure is free": (say("after"), now),
                "faster is emptier": (say("after"), FEWER * now),
            },
        ),
    )


@lesson.asks
def first_cure(drawn: Mystery) -> Found:
    """How much comes back when, of two brakes, only the one that is named is taken off?"""
    found = drawn.finding
    yield {"who": found.who, "brake": found.brake, "lost_ms": milliseconds(found.lost_us)}
    # The number behind a brake: without it, that brake is named less than without any other.
    trials = [cured(drawn, name).finding for name in ill(drawn)]
    after = min(trials, key=lambda one: one.lost.get((found.who, found.brake), 0))
    lost_ms, left_ms = (milliseconds(one.lost_by(found.who)) for one in (found, after))
    left = after.lost_by(found.who) / found.lost_us
    return facts(
        "all" if left < 1 / CURED else "part" if left < FEWER else "none",
        case="same" if after.brake_of(found.who) == found.brake else "other",
        left_ms=left_ms,
        next=after.brake_of(found.who),
        wrong={"one stall, one cause": "all"},
        beside=Measured(
            unit=say("lost"),
            heights={say("before"): lost_ms, say("cured"): left_ms},
            yours={"one stall, one cause": (say("cured"), 0.0)},
        ),
    )


# -- what is checked


@lesson.checks()
def named(drawn: Mystery, who: Any, brake: Any, lost_ms: Any) -> Case:
    """Are that the application that was held, the brake that held it, and the time it lost?

    Args:
        drawn: the mystery.
        who: the application; `...` while there is no answer, and so for the others.
        brake: its word.
        lost_ms: milliseconds, within a tenth.
    """
    if who not in APPLICATIONS:
        return case("no-application", given=repr(who), legal=", ".join(APPLICATIONS))
    legal = [name for name in brakes.ORDER if name != "none"]
    if brake not in legal:
        return case("no-brake", given=repr(brake), legal=", ".join(legal))
    if not isinstance(lost_ms, int | float) or not 0 <= lost_ms <= LONGEST_MS:
        return case("no-time", given=repr(lost_ms))
    found = drawn.finding
    about = f"{who}, {brake}, {lost_ms} ms"
    if who != found.who:
        return case("who", about=about, its_ms=milliseconds(found.lost_by(who)))
    if brake != found.brake:
        return case("brake", about=about, meaning=brakes.words(brake))
    if not 0.9 * found.lost_us <= lost_ms * 1_000 <= 1.1 * found.lost_us:
        return case("lost", about=about)
    real_ms = milliseconds(found.lost_us)
    return case("right", about=about, meaning=brakes.words(brake), real_ms=real_ms)


@lesson.checks()
def cured_by(drawn: Mystery, after: Mystery) -> Case:
    """Did what was changed help the one that was held, and nobody to his cost?

    Args:
        drawn: the mystery.
        after: what `change` has made of it.
    """
    return _cure(drawn, after)


@lesson.checks()
def both(drawn: Mystery, after: Mystery) -> Case:
    """The same of a mystery with two brakes."""
    return _cure(drawn, after)


def _cure(drawn: Mystery, after: Mystery) -> Case:
    if not isinstance(after, Mystery) or (after.seed, after.level) != (drawn.seed, drawn.level):
        return case("other")
    if not after.changed:
        return case("untouched")
    found, left = drawn.finding, after.finding
    who = found.who
    lost_ms, left_ms = milliseconds(found.lost_us), milliseconds(left.lost_by(who))
    done = ", ".join(
        say("changed", name=name, was=was, now=after.run.parameters[name])
        for name, was in after.changed.items()
    )
    if CURED * left.lost_by(who) > found.lost_us:
        return case(
            "still", about=done, belief="one stall, one cause", done=done, who=who,
            brake=left.brake_of(who), lost_ms=lost_ms, left_ms=left_ms,
        )  # fmt: skip
    for other in APPLICATIONS:
        if other != who and left.lost_by(other) > found.lost_by(other) + found.lost_us // CURED:
            its_ms = milliseconds(left.lost_by(other))
            return case("another", about=done, done=done, who=who, other=other, its_ms=its_ms)
    for name, was in after.changed.items() if len(after.changed) > 1 else ():
        if CURED * after.change(**{name: was}).finding.lost_by(who) <= found.lost_us:
            return case("needless", about=done, done=done, who=who, needless=name)
    now, then = (most_ahead(one.of(who)) for one in (drawn, after))
    return case(
        "right", about=done, done=done, who=who, lost_ms=lost_ms, left_ms=left_ms, now=now,
        then=then, queued_now=drawn.most_queued(who), queued_then=after.most_queued(who),
    )  # fmt: skip
