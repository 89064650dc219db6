"""A lesson's desks: `stage` and `open_code`, with branches that stay; and `stack`."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from workbench.notebook import WrongValueError
from workbench.scenarios.branches import Branches
from workbench.trace.given import not_wanted, takes
from workbench.trace.schema import Row
from workbench.views import share_view
from workbench.views.stage_widget import StageWidget
from workbench.views.stills import Still

from .kept_branches import keep
from .question import say

if TYPE_CHECKING:
    from workbench.views.chart_box import ChartedStage


def stage(
    run_or_rows: Any,
    *,
    at: int | None = None,
    title: str = "",
    acts: Collection[str] | None = None,
    link: str | None = None,
    chart: bool = False,
) -> StageWidget | ChartedStage:
    """The picture of a run: play it, step through it, act on it, and begin it anew.

    An act makes a branch, and other values of the scenario's parameters a run of their own. Both
    are there again when the notebook is run another day. Rows that were recorded, such as a
    capture's, can be looked at only.

    Args:
        run_or_rows: a run, a tree of runs, a capture, or rows in order of `seq`.
        at: `seq` of the row to begin at; where the run's set-up ends if None.
        title: what the picture is called; the scenario's title if empty.
        acts: names of the acts that are offered; all of the scenario's if None. Without any, the
            run cannot be begun anew either.
        link: name of the link whose line comes first; the busiest if None.
        chart: whether link credit over time stands above it.

    Raises:
        TypeError: if there are no rows to draw.
        WrongValueError: if there is no such row, or no such act; the text says what is legal.
    """
    root = run_or_rows.runs[0] if isinstance(run_or_rows, Branches) else run_or_rows
    rows = getattr(root, "rows", root)
    if not isinstance(rows, Sequence) or not all(isinstance(row, Row) for row in rows):
        raise not_wanted(Sequence[Row], run_or_rows)
    if not isinstance(title, str):
        raise not_wanted(str, title)
    legal = [spec.name for spec in getattr(getattr(root, "scenario", None), "actions", ())]
    names = isinstance(acts, Collection) and not isinstance(acts, str)
    if acts is not None and not (names and all(name in legal for name in acts)):
        told = {"acts": repr(acts), "legal": ", ".join(legal)}
        raise WrongValueError(say("no-acts" if legal else "no-acts-here", **told))
    anew = bool(legal) and (acts is None or bool(acts))
    desk = StageWidget(run_or_rows, at=at, title=title, acts=acts, link=link, anew=anew)
    if legal:
        keep(desk)
    if chart:
        from workbench.views.chart_box import ChartedStage  # it draws, most stages do not

        return ChartedStage(desk)
    return desk


class Stack(Still, widgets.VBox):
    """Widgets of one cell, one under the other."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.children))


@takes
def stack(*several: widgets.Widget) -> Stack:
    """Questions and the picture that they are about, in one cell."""
    return Stack(several, layout={"grid_gap": "8px"})


@functools.wraps(share_view.open_code)
def open_code(*arguments: Any, **more: Any) -> share_view.OpenedView:
    """A stage that keeps its branches, from a share code."""
    opened = share_view.open_code(*arguments, **more)
    if opened.stage is not None:
        keep(opened.stage)
    return opened
