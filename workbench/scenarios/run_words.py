"""The table of what a run tells of itself: its branches, and what came of it beside an article."""

from __future__ import annotations

from functools import partial

from workbench.languages import phrase

say = partial(phrase, "runs")
