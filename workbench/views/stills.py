"""Stills: what a view shows now, as text and HTML, for a page without a kernel."""

from __future__ import annotations

import html
import re
from functools import partial
from itertools import islice
from typing import Any

from workbench.languages import phrase

from .scene import resolved, steps_of

# Lines of the transcript before and after the step.
_AROUND = 6

# What stands before a line's words: blanks, and in a transcript a mark and a number.
_LEAD = re.compile(r"[ >]*(?:\d+  )?")
say = partial(phrase, "pages")


def scene_still(scene: dict[str, Any], step: int | None = None, branch: int = 0) -> str:
    """A step of a scene as text: what happened, the whole state in words, the log round it.

    Args:
        scene: the document.
        step: its place; where the lesson begins if None.
        branch: of which branch.
    """
    steps = steps_of({one["id"]: one for one in scene["branches"]}, branch)
    begin = scene.get("begin", 0)
    zero = steps[min(begin, len(steps) - 1)]["t"] if begin and steps else 0.0
    place = max(0, min(len(steps) - 1, begin if step is None else step))
    lines = [scene["title"]]
    if not steps:
        return "\n".join([*lines, say("still.no-row")])
    shown = steps[place]
    state = next(islice(resolved(scene, branch), place, None))
    named = scene.get("first", 1)
    number, last = named + place, named + len(steps) - 1
    time = _time(max(0.0, shown["t"] - zero), untimed=scene.get("untimed", False))
    row = shown.get("row")
    if row is not None:
        lines += [say("still.row", n=row, time=time)]
    else:
        numbers = {"n": number, "last": last, "time": time}
        lines += [say("still.step" if number > 0 else "still.set-up", **numbers)]
    lines += [shown.get("sentence", ""), "", shown.get("in_words", "")]
    if formula := shown.get("formula"):
        text, clause = formula["text"], formula.get("clause", "")
        lines.append(say("still.formula", text=text, clause=clause))
    for node in scene["nodes"]:
        words = state.get("nodes", {}).get(node["id"], {}).get("blocked")
        if words:
            lines.append(f"{node['name']}: {words}")
    lines.append("")
    first, last = max(0, place - _AROUND), min(len(steps) - 1, place + _AROUND)
    for number in range(first, last + 1):
        mark = ">" if number == place else " "
        name = steps[number].get("row", named + number if named + number > 0 else "")
        lines.append(f"{mark} {name:>4}  {steps[number].get('sentence', '')}")
    return "\n".join(lines)


def _time(ms: float, *, untimed: bool) -> str:
    """A time as the picture writes it, `geometry.ms`: with tenths, unless it is long and round."""
    if untimed or ms >= 100_000:
        return "?" if untimed else f"{ms / 1000:.4f} s"
    tenths = f"{ms:.1f}"
    return f"{tenths if ms < 10 else tenths.removesuffix('.0')} ms"


def html_still(text: str, *, prose: bool = False) -> str:
    """A still as HTML; whatever the text holds is text in it.

    Args:
        text: what is shown, in lines.
        prose: sentences, which need no columns.
    """
    lines = "".join(map(_line, text.splitlines()))
    element = "div" if prose else "pre"
    return (
        '<figure style="margin:0;padding:2px 14px;border-left:3px solid #8a94a0">'
        '<figcaption style="font-style:italic;margin-bottom:6px">'
        f"{say('still.caption')}</figcaption>"
        f'<{element} style="white-space:pre-wrap;word-break:normal;margin:0;line-height:1.5;'
        f'max-width:{62 if prose else 100}em">{lines}</{element}></figure>'
    )


def _line(text: str) -> str:
    """A line that goes on, where the page is narrow, below the beginning of its words."""
    indent = len(_LEAD.match(text)[0])  # type: ignore[index]
    hanging = f";padding-left:{indent}ch;text-indent:-{indent}ch" if indent else ""
    return f'<span style="display:block;min-height:1.5em{hanging}">{html.escape(text)}</span>'


def with_still(bundle: Any, text: str, *, prose: bool = False) -> Any:
    """A widget's bundle and with it what stays on a page without a kernel, as of `html_still`."""
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    if data is not None:
        data["text/plain"] = text
        data["text/html"] = html_still(text, prose=prose)
    return bundle


class Still:
    """Beside a widget's class, in front of it: leaves what `repr` tells on a page without a kernel.

    A saved notebook keeps stills only (`workbench.cli.lab_server`). And all that is shown is for
    keyboards and screen readers too (`controls`).
    """

    still_is_prose = False

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        # Here, because a static page has no widgets.
        from .controls import controls

        controls()
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return with_still(bundle, self._still(), prose=self.still_is_prose)

    def _still(self) -> str:
        return repr(self)
