"""Views: the stage and its homes, and charts.

The names are looked up when they are first used: whoever wants a static page does not load Bokeh,
and whoever wants a chart does not load widgets.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "bar_chart": "charts",
    "brake_chart": "trace_charts",
    "credit_chart": "trace_charts",
    "curve_chart": "charts",
    "export": "stage_page",
    "frozen_wire": "frozen_wire",
    "open_row": "opening",
    "StageWidget": "stage_widget",
    "time_chart": "charts",
}

__all__ = sorted(_HOME)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Import a view's name from its module on first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"workbench.views has no {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(f".{home}", __name__), name)


def __dir__() -> list[str]:
    """List the lazy names too."""
    return sorted({*globals(), *_HOME})
