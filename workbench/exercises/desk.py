"""A lesson's desks: `panel` and `open_code` as the views have them, with branches that stay."""

from __future__ import annotations

import functools
from typing import Any

from workbench.views import opened_view, panel_widget

from .kept_branches import keep


@functools.wraps(panel_widget.panel)
def panel(*arguments: Any, **more: Any) -> panel_widget.Panel:
    """A desk that keeps its branches."""
    desk = panel_widget.panel(*arguments, **more)
    keep(desk.model)
    return desk


@functools.wraps(opened_view.open_code)
def open_code(*arguments: Any, **more: Any) -> opened_view.OpenedView:
    """A desk that keeps its branches, from a share code."""
    opened = opened_view.open_code(*arguments, **more)
    if opened.panel is not None:
        keep(opened.panel.model)
    return opened
