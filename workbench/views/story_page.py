"""The story of a capture as a page: what happened on each link, and the worst frame opened."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from workbench.trace.words import visible

from . import theme
from .stage_page import stage_page
from .static_html import asset

__all__ = ["report_html", "sends", "story_page"]

WIDTH = 1000
"""Units of a link's strip from the trace's first row to its last."""
LONGEST = 2_000
"""Characters of a text that may be a peer's."""
SHOWN_LINKS = 60
"""Links that a page tells of."""
SHOWN_ERRORS = 60
"""Errors and broken rules that a page tells of."""
SHOWN_LINES = 1_000
"""Lines of what was read that it has for whoever asks."""

_PALE = {
    "no credit": theme.ORANGE, "window closed": theme.SKY, "prefetch used up": theme.ORANGE,
    "TCP window 0": theme.BLUE,
}  # fmt: skip


def story_page(
    story: Any, about: Sequence[str], unknown: Sequence[str], doc: dict[str, Any], *, step: int
) -> str:
    """The whole page.

    Args:
        story: of `folds.story`.
        about: the file's name, and what was read, a line each.
        unknown: what the capture cannot tell, a line each.
        doc: the scene round the worst row.
        step: place of the step that shows it.
    """
    title = f"The worst frame: {story.opened_as}" if story.opened else "The first frames"
    opened = f'<h2 id="worst">{_text(title)}</h2>'
    above = f'<div class="story">{report_html(story, about, unknown)}{opened}</div>'
    return stage_page(doc, step, above=above, style=asset("story.css"))


def report_html(story: Any, about: Sequence[str], unknown: Sequence[str]) -> str:
    """What stands above the stage; `story.css` draws it in an element of class `story`."""
    shown = story.links[:SHOWN_LINKS]
    first, *others = about[1:]
    parts = [
        f"<h1>{_text(about[0])}</h1>",
        f'<p class="soft">{_text(first)}</p>',
        f'<p class="headline">{_text(story.headline)}</p>',
        "<h2>Links</h2>",
    ]
    if shown:
        kinds = {one.what: one.stall for link in shown for one in link.intervals}
        parts += [_key(kinds, story), *(_link(one, story) for one in shown)]
    else:
        parts.append(f"<p>{_text(story.without_links)}</p>")
    if len(story.links) > len(shown):
        parts.append(f'<p class="soft">{len(story.links) - len(shown):,} more links.</p>')
    if story.wrong:
        parts += ["<h2>Errors and broken rules</h2>", _list(story.wrong[:SHOWN_ERRORS])]
    if len(story.wrong) > SHOWN_ERRORS:
        parts.append(f'<p class="soft">{len(story.wrong) - SHOWN_ERRORS:,} more.</p>')
    parts += ["<h2>Stalls by brake</h2>", _brakes(story)]
    parts += [_more("What was read", others), _more("What this capture cannot tell", unknown)]
    return "".join(parts)


def _more(title: str, lines: Sequence[str]) -> str:
    """Lines that are there for whoever asks."""
    if not lines:
        return ""
    shown = _list(lines[:SHOWN_LINES])
    if len(lines) > SHOWN_LINES:
        shown += f'<p class="soft">{len(lines) - SHOWN_LINES:,} more.</p>'
    return f"<details><summary>{title} ({len(lines):,})</summary>{shown}</details>"


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{_text(line)}</li>' for line in lines)}</ul>"


def _text(value: object) -> str:
    return html.escape(visible(value, LONGEST))


def sends(link: Any) -> str:
    """Who sends on a link, and how many messages."""
    messages = f"{link.messages:,}" if link.messages else "no"  # a report's numbers are separated
    plural = "" if link.messages == 1 else "s"
    return f"the {link.key.link_sender} sends; {messages} message{plural}"


def _link(link: Any, story: Any) -> str:
    return (
        f'<div class="link"><h3>{_text(link.key.name)} <span>{_text(sends(link))}</span></h3>'
        f"<p>{_text(link.advice)}</p>"
        f'<p class="soft">{_text(" ".join(link.more))}</p>'
        f"{_strip(link, story)}</div>"
    )


def _strip(link: Any, story: Any) -> str:
    """The time of the trace from left to right, and when the sender could not send."""
    scale, moment = WIDTH / max(1, story.lasted_us), story.clock.moment
    drawn = [f'<rect class="base" x="0" y="0" width="{WIDTH}" height="16"/>']
    reached: dict[tuple[bool, str], float] = {}  # of thousands many fall on one place
    for one in sorted(link.intervals, key=lambda one: (one.stall, one.start_us)):
        kind, begin = (one.stall, one.what), one.start_us * scale
        end = begin + max(1.5, (one.end_us - one.start_us) * scale)
        begin = max(begin, reached.get(kind, 0))
        if end - begin >= 1:
            drawn.append(_mark(one.what, one.stall, begin, end - begin, 16))
            reached[kind] = end
    words = "; ".join(
        f"{one.what} from {moment(one.start_us)} to {moment(one.end_us)}"
        for one in link.intervals[:20]
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} 16" preserveAspectRatio="none" role="img"'
        f' aria-label="{_text(words or "no wait")}"><title>{_text(words or "no wait")}</title>'
        f"{''.join(drawn)}</svg>"
    )


def _mark(what: str, stall: bool, x: float, width: float, height: int) -> str:
    """A stall fills the strip; a time in which nothing could be sent is a thinner line."""
    colour = theme.BRAKE_STYLES[what].colour if stall else _PALE[what]
    top, size = (0, height) if stall else (height * 3 / 8, height / 4)
    return f'<rect x="{x:.1f}" y="{top:g}" width="{width:.1f}" height="{size:g}" fill="{colour}"/>'


def _key(kinds: dict[str, bool], story: Any) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 22 12">{_mark(what, stall, 0, 22, 12)}</svg>'
        f"{_text(f'stalled: {what}' if stall else what)}</li>"
        for what, stall in sorted(kinds.items(), key=lambda pair: not pair[1])
    )
    moment = story.clock.moment
    items += f"<li>each strip: from {moment(0)} to {moment(story.lasted_us)}</li>"
    return f'<ul class="key">{items}</ul>'


def _brakes(story: Any) -> str:
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{_text(value)}</td>"
            for value in (
                one.brake, f"{one.stalls:,}", f"{one.late:,}", f"{len(one.links):,}",
                *one.times(story.clock),
            )
        )
        + "</tr>"
        for one in story.brakes
    )  # fmt: skip
    if not rows:
        return '<p class="soft">None: nothing that is known to have waited was held.</p>'
    head = "".join(
        f"<th>{name}</th>"
        for name in ("blocked by", "stalls", "not proved", "links", "together", "longest")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
