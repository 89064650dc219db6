"""A bar and a line that tell how far long work is; both stay on the page when it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from workbench.views.controls import status
from workbench.views.stills import Still

from .spark_answers import say

_PLANNED_LITTLE = 8  # of so few tasks known, more are sure to come


class WorkBar(Still, widgets.HBox):
    """One piece of work.

    Args:
        what: what is being done, a few words.
    """

    still_is_prose = True

    def __init__(self, what: str) -> None:
        self.what = what
        self.bar = widgets.FloatProgress(
            value=0.0, min=0.0, max=1.0, layout={"width": "220px"}, tooltip=what
        )
        self.line = widgets.HTML()
        super().__init__(
            children=[self.bar, self.line],
            layout={"align_items": "center", "grid_gap": "12px", "flex_flow": "row wrap"},
        )
        self.say(say("work.begins"))

    def say(self, text: str) -> None:
        """What is told beside the bar."""
        self.text = text
        self.line.value = status(f"{self.what}: {text}")

    def step(self, done: int, steps: int, text: str) -> None:
        """So many of so many steps are done."""
        self.bar.value = done / steps if steps else 0.0
        if text:
            self.say(text)

    def spark(self, progress: Any) -> None:
        """What a watch over Spark has seen (`analysis.jobs.Progress`)."""
        planned = max(progress.tasks, _PLANNED_LITTLE)
        # Spark plans job after job: the bar never goes back when there is more to do.
        share = 1.0 if progress.over else progress.done / planned * 0.95
        self.bar.value = max(self.bar.value, min(share, 1.0))
        self.say(str(progress))

    def done(self, text: str, *, well: bool = True) -> None:
        """It is over."""
        self.bar.value = 1.0 if well else self.bar.value
        self.bar.bar_style = "success" if well else "danger"
        self.say(text)

    def note(self, text: str) -> None:
        """There is no work to do, and so no bar."""
        self.bar.layout.display = "none"
        self.bar.bar_style = "info"
        self.say(text)

    def __repr__(self) -> str:
        return f"{self.what}: {self.text}"


@contextmanager
def shown(view: WorkBar) -> Iterator[WorkBar]:
    """Puts the bar on the page and ends it with the work."""
    handle = display(view, display_id=True)
    try:
        yield view
    except BaseException as error:
        view.done(say("work.ended", kind=type(error).__name__), well=False)
        raise
    if not view.bar.bar_style:
        view.done(say("work.done"))
    if handle is not None:
        handle.update(view)  # the words that stay on a page without a kernel
