"""Lesson 07 asked again: the same questions over runs with other numbers.

The numbers here are what is put in, never what comes out.
"""

from __future__ import annotations

from workbench.scenarios.run import Run, run

from .question import Question
from .quorum_predict import LESSON, overshoot, slow_disks, slower_sync, soft_limit, trigger, twice
from .quorum_runs import PRESET, disks
from .recall import register

# How many different forms there are before they begin anew.
FORMS = 20


def _replicas(form: int) -> Run:
    return run("quorum", PRESET, {"replicas": "5" if form % 2 else "3"})


@register(LESSON, "trigger")
def _trigger(form: int) -> Question:
    played = run("quorum", PRESET, {"replicas": "5"})
    step = form % FORMS
    times = {"n1": 3, "n2": 9 + step, "n3": 1, "n4": 60 + step, "n5": 6}
    return trigger.question(disks(played, times))


@register(LESSON, "slow-follower")
def _slow_follower(form: int) -> Question:
    return slow_disks.question(_replicas(form), ["n2"], 30 + form % FORMS)


@register(LESSON, "slow-majority")
def _slow_majority(form: int) -> Question:
    played = _replicas(form)
    slow = ["n1", "n2"] if form % 2 == 0 else ["n1", "n3", "n5"]
    return slow_disks.question(played, slow, 30 + form % FORMS)


@register(LESSON, "twice")
def _twice(form: int) -> Question:
    return twice.question(_replicas(form), 10 + form % FORMS)


@register(LESSON, "slower-sync")
def _slower_sync(form: int) -> Question:
    return slower_sync.question(40 + form % FORMS, 4000, 2)


@register(LESSON, "soft-limit")
def _soft_limit(form: int) -> Question:
    return soft_limit.question(20 + form % FORMS, 300)


@register(LESSON, "overshoot")
def _overshoot(form: int) -> Question:
    return overshoot.question(20 + form % FORMS, 400 + form % FORMS)
