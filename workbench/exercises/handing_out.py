"""The handout of a lesson, from its data and a run."""

from __future__ import annotations

from workbench.lessons.table import lesson_numbered, room
from workbench.scenarios.run import run
from workbench.scenarios.share import share_code
from workbench.views.handout_page import Handout

from .question import say


def handout(lesson: str) -> Handout:
    """A page to print: the picture, three facts, the formula, and the share code to scan.

    Args:
        lesson: its number, such as "01".

    Raises:
        ValueError: if there is no such lesson, or no handout of it.
    """
    about = lesson_numbered(lesson)
    here = room().get(lesson)
    if here is None:
        there = ", ".join(name for name in room() if name != "plan")
        raise ValueError(say("no-handout", lesson=lesson, there=there))
    shown = here["run"]
    begun = run(shown["scenario"], shown.get("preset", "spec"), shown.get("parameters"))
    played = begun.act_each(shown.get("acts", ()))
    return Handout(
        title=f"{about.number} {about.title}",
        facts=here["facts"],
        formula=here["formula"],
        run=played,
        code=share_code(played, None),
    )


__all__ = ["handout"]
