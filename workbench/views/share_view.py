"""Share codes in a notebook: a code ready to copy, and a desk from a code."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.scenarios.branches import grown
from workbench.scenarios.run import Run
from workbench.scenarios.share import Restored, ShareCodeError
from workbench.scenarios.share import open_code as restore
from workbench.scenarios.share import share_code as code_of

from .static_html import script
from .stills import Still


class ShareBox(anywidget.AnyWidget):
    """Shows a share code in a field, with a button that copies it, or nothing.

    Attributes:
        shown: `text`, the code; `own`, names of functions of the learner's own that are not in it.
    """

    _esm = script("share.js")

    shown = traitlets.Dict({"text": "", "own": []}).tag(sync=True)

    @property
    def text(self) -> str:
        """The code that is shown; empty if none is."""
        return str(self.shown["text"])

    def show(self, code: str, own: Sequence[str] = ()) -> None:
        """Show a code, and say which functions of the learner's own are not in it."""
        self.shown = {"text": code, "own": list(own)}

    def clear(self) -> None:
        """Show nothing: what is looked at is not what the code says any more."""
        self.shown = {"text": "", "own": []}


class OpenedView(Still, widgets.VBox):
    """What came of a share code: what it is, what is not as it was, and the desk with the run.

    Attributes:
        restored: run, cursor and problems.
        panel: the learner's desk; None where nothing could be restored.
    """

    def __init__(self, restored: Restored) -> None:
        from .panel_widget import Panel

        self.restored = restored
        self.panel = (
            None if restored.run is None else Panel(grown(restored.run), cursor=restored.cursor)
        )
        lines = "".join(f"<li>{html.escape(problem)}</li>" for problem in restored.problems)
        told = widgets.HTML(
            f'<div role="status" style="line-height:1.5;max-width:62em">'
            f"{html.escape(restored.summary)}<ul style='margin-top:0'>{lines}</ul></div>"
        )
        super().__init__(children=[told, *([self.panel.view] if self.panel else [])])

    @property
    def model(self) -> Any:
        """The desk's model, so that a check takes this as it takes a panel.

        Raises:
            ValueError: if nothing could be restored.
        """
        if self.panel is None:
            raise ValueError("there is no run: nothing of this code could be restored")
        return self.panel.model

    def still(self) -> str:
        """What is shown now, as text."""
        return "\n".join([str(self.restored), *([self.panel.still()] if self.panel else [])])

    def __repr__(self) -> str:
        return self.still()


def share_code(desk: Any, cursor: int | None = None) -> str:
    """The share code of a run, or of what a panel shows.

    Args:
        desk: a run, a panel, or what `open_code` gave.
        cursor: the step to open it at; where the panel stands, or where the run's set-up ends, if
            None.

    Raises:
        ShareCodeError: if the run has too many acts for a short code.
        TypeError: if it is neither a run nor a panel.
    """
    model = getattr(desk, "model", None)
    if model is not None:
        return code_of(model.run, model.cursor if cursor is None else cursor)
    if not isinstance(desk, Run):
        raise TypeError(f"a run or a panel is wanted here, not {type(desk).__name__}")
    return code_of(desk, cursor)


def open_code(text: str, *, code: Mapping[str, Callable[..., Any]] | None = None) -> OpenedView:
    """A desk with the run of a share code, at the step that was shared.

    What is altered, unknown or not legal any more is said; the rest is restored.

    Args:
        text: the code; line breaks and blanks in it do not matter.
        code: functions of a learner's own that the run needs, by name: they are in no code.
    """
    return OpenedView(restore(text, code=code))


__all__ = ["OpenedView", "ShareBox", "ShareCodeError", "open_code", "share_code"]
