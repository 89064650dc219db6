"""Widgets' controls for a keyboard and a screen reader: what the page does for them, and names."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import cache
from typing import Any

import anywidget

from .static_html import asset


class Controls(anywidget.AnyWidget):
    """Keeps keys from the notebook's commands, and names what ipywidgets leave without a name."""

    _esm = asset("controls.js")
    _css = asset("lab.css")


@cache
def controls() -> Controls:
    """What does it for the pages of this kernel."""
    return Controls()


def named(control: Any, name: str) -> Any:
    """Give a control a name that is read aloud only; what is seen says it in another way.

    Args:
        control: a widget with a description.
        name: as text, perhaps with code.
    """
    control.description = name.replace("`", "")
    return control.add_class("wb-unseen")


def on_enter(field: Any, then: Callable[[], None]) -> None:
    """Do something when the Enter key is pressed in a field of text."""

    def heard(_widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and content.get("event") == "submit":
            then()

    field.on_msg(heard)


def status(text: str) -> str:
    """A line that is read aloud when it changes."""
    style = "line-height:1.5;max-width:62em;white-space:normal"
    return f'<div role="status"><div style="{style}">{html.escape(text)}</div></div>'
