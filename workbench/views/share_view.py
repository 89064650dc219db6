"""Share codes in a notebook: the code of what is shown, and a stage from a code."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from workbench.notebook import GivenError, WrongValueError
from workbench.scenarios.branches import grown
from workbench.scenarios.run import Run
from workbench.scenarios.share import Restored
from workbench.scenarios.share import open_code as restore
from workbench.scenarios.share import share_code as code_of
from workbench.trace.given import takes

from .stage_widget import StageWidget
from .stills import Still, say


@takes
def share_code(desk: Any, cursor: int | None = None) -> str:
    """The share code of a run, or of what a stage shows.

    Args:
        desk: a run, a stage, or what `open_code` gave.
        cursor: how many rows have passed at the step to open it at; where the picture stands, or
            where the run's set-up ends, if None.

    Raises:
        ShareCodeError: if the run has too many acts for a short code.
        GivenError: if it is none of these.
    """
    desk = getattr(desk, "stage", desk)
    if isinstance(desk, StageWidget):
        desk, cursor = desk.run, desk.cursor + 1 if cursor is None else cursor
    if not isinstance(desk, Run):
        raise GivenError(say("share.no-run", kind=type(desk).__name__))
    return code_of(desk, cursor)


class OpenedView(Still, widgets.VBox):
    """What came of a share code: what it is, what is not as it was, and the stage with the run.

    Attributes:
        restored: run, cursor and problems.
        stage: the picture; None where nothing could be restored.
    """

    def __init__(self, restored: Restored) -> None:
        self.restored = restored
        self.stage: StageWidget | None = None
        if restored.run is not None:
            # The code counts rows that have passed; the picture shows the last of them.
            at = restored.run.rows[max(0, restored.cursor - 1)].seq
            self.stage = StageWidget(grown(restored.run), at=at, anew=True)
        lines = "".join(f"<li>{html.escape(problem)}</li>" for problem in restored.problems)
        told = widgets.HTML(
            f'<div role="status" style="line-height:1.5;max-width:62em">'
            f"{html.escape(restored.summary)}<ul style='margin-top:0'>{lines}</ul></div>"
        )
        super().__init__(children=[told, *([self.stage] if self.stage else [])])

    @property
    def run(self) -> Run:
        """The run that is shown, so that a check takes this as it takes a stage.

        Raises:
            WrongValueError: if nothing could be restored.
        """
        if self.stage is None:
            raise WrongValueError(say("share.nothing"))
        run: Run = self.stage.run
        return run

    def still(self) -> str:
        """What is shown now, as text."""
        return "\n".join([str(self.restored), *([self.stage.still()] if self.stage else [])])

    def __repr__(self) -> str:
        return self.still()


def open_code(text: str, *, code: Mapping[str, Callable[..., Any]] | None = None) -> OpenedView:
    """A stage with the run of a share code, at the step that was shared.

    What is altered, unknown or not legal any more is said; the rest is restored.

    Args:
        text: the code; line breaks and blanks in it do not matter.
        code: functions of a learner's own that the run needs, by name: they are in no code.
    """
    return OpenedView(restore(text, code=code))
