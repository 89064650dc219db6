"""A scene as one HTML file: the stage, the scene and nothing else. No network, no kernel."""

from __future__ import annotations

import base64
import html
from pathlib import Path
from typing import Any

from workbench.scenarios.branches import Branches
from workbench.trace.given import Place, rows_of, takes
from workbench.trace.whole import write_whole

from .scene import packed, scene
from .static_html import asset, stage_module, standing_alone
from .stills import say

_BODY = """{above}<main id="stage">
<p>{needs}</p>
</main>
<script type="text/plain" id="scene">{scene}</script>"""

_PAGE_STYLE = """
body { margin: 0; padding: 12px; background: #e9edf2; }
@media (prefers-color-scheme: dark) { body { background: #0b0e12; } }
#stage { max-width: 1050px; margin: 0 auto; }
"""

# In a block of its own: its names are not the module's.
_MOUNT = """{
const place = document.getElementById("stage");
place.textContent = "";
const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("step"));
const scene = document.getElementById("scene").textContent.trim();
const stage = await mount(place, scene, { step: wanted || %(step)d });
stage.el.focus({ preventScroll: true });
}"""


def stage_page(
    doc: dict[str, Any], step: int | None = None, *, above: str = "", style: str = ""
) -> str:
    """The HTML of a scene.

    Args:
        doc: the scene.
        step: place of the step that is shown first, where the address names none; one that shows
            something if None.
        above: HTML that stands above the stage; it may hold no script and no style.
        style: the style of that.
    """
    place = telling_step(doc) if step is None else step
    module = stage_module() + _MOUNT % {"step": place}
    style = asset("stage.css") + _PAGE_STYLE + style
    packed_scene = base64.b64encode(packed(doc)).decode("ascii")
    needs = html.escape(say("page.needs", title=doc["title"]))
    body = _BODY.format(above=above, needs=needs, scene=packed_scene)
    return standing_alone(str(doc["title"]), body=body, module=module, style=style)


def telling_step(doc: dict[str, Any]) -> int:
    """Place of a step of the lesson that shows something: the first with most under way.

    Messages and entries count; the lesson's first step if none is under way at any.
    """
    begin = int(doc.get("begin", 0))
    branch = doc["branches"][0]
    paths = [f["path"] for f in branch["frames"] if f["kind"] in ("message", "write")]
    flying = [
        sum(path[0][0] <= step["t"] < path[-1][0] for path in paths)
        for step in branch["steps"][begin:]
    ]
    return begin + flying.index(max(flying)) if flying else begin


@takes
def export(run: Any, path: Place, *, title: str = "", note: str = "") -> Path:
    """Write a self-contained page that shows a run on the stage; it opens from `file://`.

    Args:
        run: a run, a part of one, a tree of runs, a stage, or rows in order of `seq`.
        path: where to write; an existing file is replaced, whole or not at all.
        title: the page's title; the scenario's if empty.
        note: what is to be said of the rows instead of the one idea.

    Returns:
        The path written.

    Raises:
        GivenError: there are no rows to draw, or an argument is not what is wanted.
        WriteError: the page cannot be written.
    """
    desk = getattr(run, "stage", run)
    shown = getattr(desk, "branches", desk)
    if not isinstance(shown, Branches):
        rows_of(shown)
    return write_whole(path, stage_page(scene(shown, title=title, note=note)))
