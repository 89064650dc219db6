"""Make ready for the next group: one button for answers, branches, locks and copies."""

from __future__ import annotations

from pathlib import Path

from workbench.lessons.table import LESSONS

from .class_lock import unlock_all
from .lesson_pages import Forgetting, say
from .progress import Progress, ProgressError, progress
from .working_copies import beside_notebooks, renew_next


class NextGroup(Forgetting):
    """Forgets what was answered in every lesson.

    What the group has written in its copies of the lessons is put aside at the lab's next start.

    Args:
        log: where the answers are kept.
    """

    def __init__(self, log: Progress = progress) -> None:
        self._root = beside_notebooks(Path.cwd())
        super().__init__(log, forget=say("reset.all"), tip=say("reset.all-tip"))

    def _forget(self) -> None:
        try:
            for lesson in LESSONS:
                self._forget_lesson(lesson.number)
            unlock_all()
            if self._root is not None:
                renew_next(self._root)
        except (OSError, ProgressError) as error:
            self._say(say("reset.all-failed", why=error))
        else:
            told = {"n": len(self._gone), "desks": len(self._gone_branches)}
            self._say(say("reset.all-done", **told))
        self.undo.disabled = False

    def _undo(self) -> None:
        back = self._put_back()
        if self._root is not None:
            renew_next(self._root, wanted=False)
        self._say(say("reset.all-undone", n=back))

    def __repr__(self) -> str:
        return say("reset.all-still")


def reset_all() -> NextGroup:
    """A button for the next group: nothing is forgotten before you press it."""
    return NextGroup()


__all__ = ["NextGroup", "reset_all"]
