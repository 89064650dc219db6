"""Share codes in a notebook: a code ready to copy, and a desk from a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anywidget
import traitlets

from workbench.scenarios.run import Run
from workbench.scenarios.share import ShareCodeError
from workbench.scenarios.share import share_code as code_of

from .stage_widget import StageWidget
from .static_html import script


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


def share_code(desk: Any, cursor: int | None = None) -> str:
    """The share code of a run, or of what a stage or a panel shows.

    Args:
        desk: a run, a stage, a panel, or what `open_code` gave.
        cursor: the step to open it at; where the picture stands, or where the run's set-up ends, if
            None.

    Raises:
        ShareCodeError: if the run has too many acts for a short code.
        TypeError: if it is none of these.
    """
    desk = getattr(desk, "stage", desk)
    if isinstance(desk, StageWidget):
        return code_of(desk.run, desk.cursor + 1 if cursor is None else cursor)
    model = getattr(desk, "model", None)
    if model is not None:
        return code_of(model.run, model.cursor if cursor is None else cursor)
    if not isinstance(desk, Run):
        raise TypeError(f"a run, a stage or a panel is wanted here, not {type(desk).__name__}")
    return code_of(desk, cursor)


__all__ = ["ShareBox", "ShareCodeError", "share_code"]
