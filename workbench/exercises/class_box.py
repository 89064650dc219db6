"""A field for the trainer's code: in the index, in a lesson's card, and at a locked question."""

from __future__ import annotations

import ipywidgets as widgets

from workbench.views.controls import on_enter, status
from workbench.views.stills import Still

from .class_lock import EXAMPLE, class_code, open_now
from .question import say


class ClassBox(Still, widgets.VBox):
    """The code that stands on the board, typed without Python; a line says what is open then."""

    still_is_prose = True

    def __init__(self) -> None:
        self.code = widgets.Text(
            description=say("class-code"),
            placeholder=EXAMPLE,
            tooltip=say("class-code-tip"),
            style={"description_width": "initial"},
            layout={"width": "320px"},
        )
        self.enter = widgets.Button(description=say("class-enter"), tooltip=say("class-enter-tip"))
        self.line = widgets.HTML()
        super().__init__(children=[widgets.HBox([self.code, self.enter]), self.line])
        self._say(open_now())
        self.enter.on_click(lambda _button: self._entered())
        on_enter(self.code, self._entered)

    def _entered(self) -> None:
        code = self.code.value.strip()
        self._say(class_code(code) if code else open_now())

    def _say(self, text: str) -> None:
        self.line.value = text and status(text)

    def __repr__(self) -> str:
        return f"{say('class-code')} {open_now()}".strip()


def class_box() -> ClassBox:
    """A field for the trainer's code, for those who take the lessons in a class."""
    return ClassBox()


__all__ = ["ClassBox", "class_box"]
