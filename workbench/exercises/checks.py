"""What checks share: run a model, judge what the learner made or said, and keep the outcome.

A check is a function that gives a `Verdict`. `checks` makes of it what a lesson calls: the verdict
is recorded, and hints are shown one by one for those who ask:

    @checks("02", "both-orders", hints=("Look at ...", lambda desk: f"... {desk.run.name}"))
    def both_orders(desk: Any) -> Verdict:
        return told(Run.shown_by(desk).name, right, text)

and in the notebook `check.both_orders(desk)`, or `check.both_orders(desk, hints=1)`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any
from weakref import WeakKeyDictionary

from workbench.scenarios.run import Run
from workbench.trace.given import given, not_wanted

from .progress import Progress, progress, shortened
from .question import Verdict, say

# A hint of a check: a text, or worked out from what was given to the check.
CheckHint = str | Callable[..., str]
Judge = Callable[..., Verdict]


def checks(
    lesson: str, name: str, *, scenarios: tuple[str, ...] = (), hints: tuple[CheckHint, ...] = ()
) -> Callable[[Judge], Judge]:
    """Make a check of a function that judges.

    What comes of it takes two arguments more: `log`, where the outcome is kept, and `hints`, how
    many hints to show with the verdict. The log keeps the most that were ever looked at.

    Args:
        lesson: two digits.
        name: under which the outcome is kept.
        scenarios: whose stage or run the first argument must be; none if that is not one. With
            anything else the learner is told what is wanted, and nothing is recorded.
        hints: from a nudge to nearly the answer. A function gets what the check gets.
    """

    def make(judge: Judge) -> Judge:
        seen: WeakKeyDictionary[Progress, int] = WeakKeyDictionary()  # hints looked at, by log

        @functools.wraps(judge)
        def check(*args: Any, log: Progress = progress, hints: int = 0, **kwargs: Any) -> Verdict:
            first, *_ = given(judge, args, kwargs).arguments.values()
            if scenarios and (wrong := _other_desk(first, scenarios)):
                return not_yet(wrong)
            verdict = judge(*args, **kwargs)
            try:
                wanted = max(0, min(int(hints), len(ladder)))
            except (TypeError, ValueError):
                raise not_wanted(int, hints) from None
            shown = tuple(
                hint if isinstance(hint, str) else hint(*args, **kwargs) for hint in ladder[:wanted]
            )
            most = seen[log] = max(wanted, seen.get(log, 0))
            if verdict.right is not None:
                log.record(
                    f"{lesson}/{name}",
                    verdict.answer,
                    verdict.right,
                    verdict.belief,
                    hints=most,
                )
            return replace(verdict, hints=shown, more=_more(verdict, wanted, len(ladder)))

        return check

    ladder = hints
    return make


def _other_desk(desk: Any, scenarios: tuple[str, ...]) -> str:
    """What to say of a run that this check cannot judge; nothing if it can."""
    shown = Run.shown_by(desk).scenario.name
    if shown in scenarios:
        return ""
    wanted = say("or").join(f'"{name}"' for name in scenarios)
    return say("other-scenario", wanted=wanted, shown=shown)


def _more(verdict: Verdict, shown: int, there: int) -> str:
    if verdict.right or not there:
        return ""
    if shown >= there:
        return say("last-hint")
    return say("first-hint" if shown == 0 else "further-hint", number=shown + 1)


def is_untouched(desk: Any) -> bool:
    """Whether a stage shows the run with which it began, or a run has no action."""
    played, tree = Run.shown_by(desk), getattr(desk, "branches", None)
    return not played.actions or (tree is not None and played is tree.runs[0])


def is_whole(answer: object, least: int = 1, most: float = inf) -> bool:
    """Whether an answer is a whole number from `least` to `most`."""
    return isinstance(answer, int) and not isinstance(answer, bool) and least <= answer <= most


def not_yet(text: str) -> Verdict:
    """There is nothing to judge yet; nothing is recorded."""
    return Verdict(right=None, text=text)


def told(answer: object, right: bool, text: str, belief: str | None = None) -> Verdict:
    """What is told about an answer, or about a run (by its name)."""
    return Verdict(right=right, text=text, belief=belief, answer=shortened(answer))
