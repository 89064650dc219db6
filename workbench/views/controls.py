"""Widgets' controls for a keyboard and a screen reader: what the page does for them, and names."""

from __future__ import annotations

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
