"""Make ready for the next group: one button for answers, branches, locks and copies."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.lessons.table import LESSONS
from workbench.views.stills import Still

from . import kept_branches
from .class_lock import unlock_all
from .lesson_pages import say
from .progress import Progress, ProgressError, Record, progress
from .working_copies import beside_notebooks, renew_next


class NextGroup(Still, widgets.VBox):
    """A button that forgets what was answered in every lesson, and one that takes it back.

    What the group has written in its copies of the lessons is put aside at the lab's next start.

    Args:
        log: where the answers are kept.
    """

    still_is_prose = True

    def __init__(self, log: Progress = progress) -> None:
        self._log = log
        self._gone: list[Record] = []
        self._branches: dict[str, Any] = {}
        self._root = beside_notebooks(Path.cwd())
        self.forget = widgets.Button(
            description=say("reset.all"),
            tooltip=say("reset.all-tip"),
            layout={"width": "auto"},
        )
        self.undo = widgets.Button(description=say("reset.undo"), disabled=True)
        self.line = widgets.HTML(layout={"min_height": "28px"})
        super().__init__(children=[widgets.HBox([self.forget, self.undo]), self.line])
        self.forget.on_click(lambda _button: self._forget())
        self.undo.on_click(lambda _button: self._undo())

    def _forget(self) -> None:
        try:
            for lesson in LESSONS:
                self._gone += self._log.forget(lesson.number)
                self._branches.update(kept_branches.forget(lesson.number))
            unlock_all()
            if self._root is not None:
                renew_next(self._root)
        except (OSError, ProgressError) as error:
            self._say(say("reset.all-failed", why=error))
        else:
            self._say(say("reset.all-done", n=len(self._gone), desks=len(self._branches)))
        self.undo.disabled = False

    def _undo(self) -> None:
        back = self._log.put_back(self._gone)
        kept_branches.remember(self._branches)
        if self._root is not None:
            renew_next(self._root, wanted=False)
        self._gone, self._branches = [], {}
        self.undo.disabled = True
        self._say(say("reset.all-undone", n=back))

    def _say(self, text: str) -> None:
        self.line.value = f'<div role="status">{html.escape(text)}</div>'

    def __repr__(self) -> str:
        return say("reset.all-still")


def reset_all() -> NextGroup:
    """A button for the next group: nothing is forgotten before you press it."""
    return NextGroup()


__all__ = ["NextGroup", "reset_all"]
