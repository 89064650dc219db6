"""A lesson on one sheet of paper: a picture, three facts, the formula, and a code to scan."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.trace.whole import write_whole

from .scene import scene
from .stage_page import stage_page
from .static_html import asset
from .stills import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Handout:
    """One sheet.

    Attributes:
        title: of the lesson, with its number.
        facts: what to take home.
        formula: the rule.
        run: the picture.
        step: place of the step that is shown; one with something under way if None.
        code: the run's share code.
    """

    title: str
    facts: Sequence[str]
    formula: str
    run: Any
    code: str
    step: int | None = None

    @property
    def page(self) -> str:
        """The HTML: it needs nothing from elsewhere."""
        import segno  # for paper alone

        picture = scene(self.run, title=self.title, octets=False)
        for button in ("acts", "rules", "shares"):  # nobody presses one on paper
            picture.pop(button, None)
        square = segno.make(self.code, error="l", micro=False)
        drawn = square.svg_inline(scale=1, border=2, omitsize=True)
        above = (
            f'<div class="sheet"><h1>{html.escape(self.title)}</h1><div class="row"><div>'
            f'{self._text}</div><div class="code">{drawn}'
            f"<div>{html.escape(say('handout.code'), quote=False)}</div></div></div></div>"
        )
        return stage_page(picture, self.step, above=above, style=asset("handout.css"))

    @property
    def _text(self) -> str:
        facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in self.facts)
        return f'<ol>{facts}</ol><p class="formula">{html.escape(self.formula)}</p>'

    def _repr_html_(self) -> str:
        saves = html.escape(say("handout.saves"), quote=False)
        return f"<p><b>{html.escape(self.title)}</b></p>{self._text}<p>{saves}</p>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, to be printed from a browser."""
        return write_whole(path, self.page)

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"- {fact}" for fact in self.facts), self.formula])

    __repr__ = __str__


__all__ = ["Handout"]
