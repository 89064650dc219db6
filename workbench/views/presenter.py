"""A lesson as slides: the question first, the picture behind its curtain, the answer last.

One HTML file that needs no Python and no network; a notebook shows the same page in a frame. The
keys of a remote go through it: Page Down and Page Up, `b` for black; a digit goes to a section.
"""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.trace.whole import write_whole

from .scene import packed
from .static_html import asset, stage_module, standing_alone
from .stills import say

_BODY = """<div id="presenter"><p>{needs}</p></div>
<script type="application/json" id="lesson">{lesson}</script>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slide:
    """A question, a picture, or a question about a picture.

    Attributes:
        number: of the section, as its heading has it.
        section: its title.
        scene: the picture's scene; None if there is none.
        step: place of the step at which it opens.
        question: `text`, `options`, `free`, `answer`, `reason` and `wrong`, a list of `name`,
            `answer` and `because`; None if nothing is asked.
    """

    number: int
    section: str
    scene: Mapping[str, Any] | None = None
    step: int = 0
    question: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Presentation:
    """The slides of a lesson, as one page.

    Attributes:
        number: of the lesson, two digits.
        title: of the lesson.
        minutes: that its timer counts to.
        slides: in order.
        opens: number of the section that is shown first.
    """

    number: str
    title: str
    minutes: int
    slides: Sequence[Slide]
    opens: int = 1

    @property
    def page(self) -> str:
        """The HTML: the stage, the slides, and nothing from elsewhere."""
        sections = list(dict.fromkeys(slide.section for slide in self.slides))
        doc = {
            "number": self.number,
            "title": self.title,
            "minutes": self.minutes,
            "opens": self.opens,
            "sections": sections,
            "slides": [
                {
                    "number": slide.number,
                    "section": sections.index(slide.section),
                    "step": slide.step,
                    "question": slide.question,
                    "scene": None
                    if slide.scene is None
                    else base64.b64encode(packed(slide.scene)).decode("ascii"),
                }
                for slide in self.slides
            ],
        }
        title = f"{self.number} {self.title}"
        text = json.dumps(doc, ensure_ascii=False).replace("<", "\\u003c")
        return standing_alone(
            title,
            body=_BODY.format(needs=html.escape(say("slides.needs", title=title)), lesson=text),
            module=stage_module() + asset("presenter.js"),
            style=asset("stage.css") + asset("presenter.css"),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; `FILE.html#section=4` opens at section 4."""
        return write_whole(path, self.page)

    def __str__(self) -> str:
        asked = [slide.question["text"] for slide in self.slides if slide.question is not None]
        title = f"{self.number} {self.title}"
        return "\n".join([say("slides.count", title=title, n=len(self.slides)), *asked])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return (
            f"<p>{say('slides.keys')}</p><iframe allowfullscreen"
            f' title="{html.escape(self.title, quote=True)}"'
            f' style="width:100%;height:78vh;border:0"'
            f' srcdoc="{html.escape(self.page, quote=True)}"></iframe>'
        )
