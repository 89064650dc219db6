"""Credit, window and unconfirmed over time, with the time in which the sender was held shaded.

What is shaded is a stall: the sender had a message and a brake was on. Time without a message is
left white, for nobody was held up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.trace import brakes
from workbench.trace.braking import Held, blocked_intervals, held_by, held_us, links_of
from workbench.trace.fold import Scope
from workbench.trace.schema import CLIENT, Row

from . import theme
from .time_chart import (
    Look,
    Steps,
    finish,
    shade,
    step_line,
    time_figure,
    top_of,
)

# Line, attribute of `Held`, how it is drawn.
LINES: tuple[tuple[str, str, Look], ...] = (
    ("link credit (sender)", "link_credit", Look(theme.BLUE)),
    ("session window (frames)", "window", Look(theme.GREEN, "dotted", 2.0)),
    ("unconfirmed (broker)", "unconfirmed", Look(theme.VERMILLION, "dashed", 2.0)),
)


def chosen_link(rows: Sequence[Row], link: Scope | str | None) -> Scope:
    """The link that is meant: a client's sending link by name, or the first.

    Raises:
        ValueError: there is none; the text lists the names.
    """
    links = links_of(rows, sender=CLIENT) or links_of(rows)
    if not links:
        raise ValueError("no link in these rows: a chart needs one over which somebody sends")
    found = [one for one in links if link in (None, one, one.link)]
    if not found:
        listed = ", ".join(str(one.link) for one in links)
        raise ValueError(f"no link {link!r} sends in this run; there are: {listed}")
    return found[0]


def counter_steps(rows: Sequence[Row], held: Sequence[Held], name: str) -> Steps:
    """(time in us, value) at each change of a counter; what is not known yet is left out."""
    found: Steps = []
    for row, one in zip(rows, held, strict=True):
        value = getattr(one, name)
        if value is not None and (not found or found[-1][1] != value):
            found.append((row.t_us, int(value)))
    return found


def brake_chart(
    trace: Any,
    link: Scope | str | None = None,
    *,
    at_us: int | None = None,
    title: str = "",
    width: int = 900,
    height: int = 280,
) -> Any:
    """What one sender may do over time, and when a brake held it.

    Args:
        trace: a run (anything with `rows`), or rows in order of `seq`.
        link: over which it sends; the first one if None.
        at_us: where the cursor stands, in microseconds; none is drawn if None.
        title: above the chart; the link's name if empty.
        width: in pixels.
        height: in pixels.

    Returns:
        A Bokeh figure: time in ms. Each line has a dash of its own, each brake a hatch and its name
        in the legend.

    Raises:
        ValueError: the run has no such link.
    """
    rows = list(getattr(trace, "rows", trace))
    chosen = chosen_link(rows, link)
    held = held_by(rows, chosen)
    chart = time_figure(
        title=title or f"What holds {chosen.link}",
        unit="messages or frames",
        width=width,
        height=height,
    )
    steps = {name: counter_steps(rows, held, field) for name, field, _ in LINES}
    top = top_of(steps.values())
    shade(chart, blocked_intervals(rows, held), top)
    lines = [
        step_line(chart, name, steps[name], rows[-1].t_us, look)
        for name, _, look in LINES
        if steps[name]
    ]
    finish(chart, lines, top, at_us)
    return chart


def brake_words(trace: Any, link: Scope | str | None = None) -> str:
    """How long each brake held the sender, in words: a line each."""
    rows = list(getattr(trace, "rows", trace))
    chosen = chosen_link(rows, link)
    held = held_by(rows, chosen)
    total = held_us(rows, held)
    last = rows[-1].t_us if rows else 0
    lines = [f"Link {chosen.link}: {last / 1000:,.1f} ms in all."]
    for brake, time_us in total.items():
        words = brakes.WORDS[brake]
        lines.append(f"  {brake:<15} {time_us / 1000:>10,.1f} ms   {words}")
    free = last - sum(total.values())
    lines.append(f"  {'free':<15} {free / 1000:>10,.1f} ms   nothing holds it")
    return "\n".join(lines)
