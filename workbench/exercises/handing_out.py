"""The handout of a lesson, from its data and a run."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.lessons.table import lesson_numbered, room
from workbench.notebook import WrongValueError
from workbench.scenarios.run import Run, run
from workbench.scenarios.share import share_code
from workbench.views.handout_page import Handout

from .question import say


def handout(lesson: str) -> Handout:
    """A page to print: the picture, three facts, the formula, and the share code to scan.

    Args:
        lesson: its number, such as "01".

    Raises:
        WrongValueError: if there is no such lesson, or no handout of it.
    """
    about = lesson_numbered(lesson)
    here = room().get(lesson)
    if here is None:
        there = ", ".join(name for name in room() if name != "plan")
        raise WrongValueError(say("no-handout", lesson=lesson, there=there))
    shown = here["run"]
    begun = run(shown["scenario"], shown.get("preset", "spec"), shown.get("parameters"))
    played = begun.act_each(shown.get("acts", ()))
    step = _sought(played, shown["at"]) if "at" in shown else None
    return Handout(
        title=f"{about.number} {about.title}",
        facts=here["facts"],
        formula=here["formula"],
        run=played,
        step=step,
        code=share_code(played, None if step is None else step + 1),
    )


def _sought(played: Run, wanted: Mapping[str, str]) -> int:
    """Place of the lesson's first row that is as wanted: what the facts are about is seen there."""
    return next(
        place
        for place, row in enumerate(played.rows)
        if row.seq > played.start_seq
        and all(getattr(row, name) == value for name, value in wanted.items())
    )


__all__ = ["handout"]
