"""Charts of a trace: credit at both ends, what blocks a sender, rates and stalls of a whole trace.

Each reads its lines and stretches off rows or off the answers to questions; `charts` draws them.
What is shaded is a stall: the sender had a message and something blocked it. Time without a message
is left white, for nobody was held up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from string import ascii_uppercase
from typing import Any

from workbench.notebook import WrongValueError
from workbench.trace.braking import Held, blocked_intervals, held_by, links_of
from workbench.trace.fold import Scope, link_scope
from workbench.trace.given import holder_of, rows_of
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, Row

from .charts import MOST_POINTS, Chart, Steps, Stretch, say, time_chart

DIP = 0.97
"""A window below this share of the usual rate is in a dip."""
LEAST_WINDOWS = 2
BURST = 2.0
"""The chart ends at so many times the usual rate; what is above has its number written to it."""
US_PER_S = 1_000_000

SENDER, RECEIVER, CAPTURE = SIDES = ("sender", "receiver", "capture")
COUNTERS = ("link_credit", "unconfirmed", "window")
"""Attributes of `Held` that are lines."""

Window = tuple[int, int]
"""Where it begins, in microseconds, and the messages in it."""


# -- one link -----------------------------------------------------------------------------------


def busiest_link(rows: Sequence[Row]) -> Scope | None:
    """The link that most rows concern."""
    scopes = map(link_scope, rows)
    counts = Counter(one for one in scopes if one is not None and one.link_sender is not None)
    return max(counts, key=counts.__getitem__, default=None)


def credit_steps(rows: Sequence[Row], link: Scope) -> dict[str, Steps]:
    """Link credit as each end has it, or as the capture point has it, by whose view it is in words.

    A counter that cannot be known makes a gap: its value is None until it is known.
    """
    found: dict[str, list[tuple[int, float | None]]] = {side: [] for side in SIDES}
    for row in rows:
        if link_scope(row) != link:
            continue
        unknown = "link_credit" in row.unknown
        credit = (row.ledger or {}).get("link_credit")
        if credit is None and not unknown:
            continue
        steps = found[_side(row, link)]
        value = None if unknown else int(credit)
        if not steps or steps[-1][1] != value:
            steps.append((row.t_us, value))
    return {say(f"view.{side}"): steps for side, steps in found.items() if steps}


def _side(row: Row, link: Scope) -> str:
    if row.event == OBSERVED:
        return CAPTURE
    peer = CLIENT if row.vantage.startswith("client") else BROKER
    return SENDER if peer == link.link_sender else RECEIVER


def _begun(trace: Any) -> tuple[list[Row], int]:
    """Rows, and the time from which a stage counts: where a run's set-up ends, if it has one."""
    return list(rows_of(trace)), getattr(holder_of(trace), "start_us", 0)


def credit_chart(
    trace: Any,
    link: Scope | str | None = None,
    *,
    at_us: int | None = None,
    title: str = "",
    height: int = 260,
) -> Chart:
    """Link credit over time at both ends, with the intervals in which the sender was blocked.

    Args:
        trace: a run, a stage (anything with `rows`), or rows in order of `seq`.
        link: which link, or its name; the busiest one if None.
        at_us: where the cursor stands, in microseconds; none is drawn if None.
        title: above the chart; the link's name if empty.
        height: in pixels.

    Raises:
        GivenError: there are no rows in it.
        WrongValueError: the run has no such link.
    """
    rows, begin_us = _begun(trace)
    link = busiest_link(rows) if link is None else chosen_link(rows, link)
    return time_chart(
        credit_steps(rows, link) if link else {},
        end_us=rows[-1].t_us if rows else 0,
        begin_us=begin_us,
        unit=say("credit.unit"),
        stretches=blocked_intervals(rows, held_by(rows, link)) if link else (),
        at_us=at_us,
        title=title or (say("credit.title", link=link.link) if link else say("credit.no-link")),
        height=height,
    )


def chosen_link(rows: Sequence[Row], link: Scope | str | None) -> Scope:
    """The link that is meant, by its name perhaps; those over which a client sends come first.

    Raises:
        WrongValueError: there is none; the text lists the names.
    """
    links = list(dict.fromkeys([*links_of(rows, sender=CLIENT), *links_of(rows)]))
    if not links:
        raise WrongValueError(say("brakes.no-link"))
    found = [one for one in links if link in (None, one, one.link)]
    if not found:
        listed = ", ".join(str(one.link) for one in links)
        raise WrongValueError(say("brakes.no-such-link", link=repr(link), listed=listed))
    return found[0]


def _counter_steps(rows: Sequence[Row], held: Sequence[Held], name: str) -> Steps:
    """(time in µs, value) at each change of a counter; None where it is not known any more."""
    found: list[tuple[int, float | None]] = []
    for row, one in zip(rows, held, strict=True):
        value = getattr(one, name)
        if found[-1][1] != value if found else value is not None:
            found.append((row.t_us, value))
    return found


def brake_chart(
    trace: Any,
    link: Scope | str | None = None,
    *,
    title: str = "",
) -> Chart:
    """What one sender may do over time, and what blocked it when.

    Args:
        trace: a run, a stage (anything with `rows`), or rows in order of `seq`.
        link: over which it sends, or its name; the first one if None.
        title: above the chart; the link's name if empty.

    Raises:
        GivenError: there are no rows in it.
        WrongValueError: the run has no such link.
    """
    rows, begin_us = _begun(trace)
    chosen = chosen_link(rows, link)
    held = held_by(rows, chosen)
    return time_chart(
        {say(f"brakes.line-{name}"): _counter_steps(rows, held, name) for name in COUNTERS},
        end_us=rows[-1].t_us,
        begin_us=begin_us,
        unit=say("brakes.unit"),
        stretches=blocked_intervals(rows, held),
        title=title or say("brakes.title", link=chosen.link),
        height=280,
    )


# -- a whole trace ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Dip:
    """A time in which less was sent than usual.

    Attributes:
        name: A, B, ... in order of time.
        start_us, end_us: from when to when, microseconds.
        rate: messages a second in it.
        usual: messages a second in the middle window of the trace.
    """

    name: str
    start_us: int
    end_us: int
    rate: float
    usual: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return (self.end_us - self.start_us) / US_PER_S


def dips(windows: Sequence[Window]) -> list[Dip]:
    """The dips of a rate: windows in a row, two at least, with clearly less than the middle one.

    What touches the first or the last window is a beginning or an ending and no dip.

    Args:
        windows: all windows in order of time.
    """
    if len(windows) < LEAST_WINDOWS:
        return []
    size = windows[1][0] - windows[0][0]
    usual = median(count for _, count in windows)
    found: list[Dip] = []
    low: list[Window] = []
    for place, window in enumerate([*windows, (0, int(usual) + 1)]):
        if place < len(windows) and window[1] < DIP * usual:
            low.append(window)
            continue
        inside = low and low[0] is not windows[0] and low[-1] is not windows[-1]
        if inside and len(low) >= LEAST_WINDOWS:
            per_s = US_PER_S / size
            found.append(
                Dip(
                    name=ascii_uppercase[len(found) % len(ascii_uppercase)],
                    start_us=low[0][0],
                    end_us=low[-1][0] + size,
                    rate=per_s * sum(count for _, count in low) / len(low),
                    usual=per_s * usual,
                )
            )
        low = []
    return found


def rate_chart(windows: Iterable[Window]) -> Chart:
    """Throughput over time; dips are shaded and have letters.

    However large the trace, the chart has a few hundred points: it draws what was counted by
    window, and refuses what was not. It ends at twice the usual rate.

    Args:
        windows: where each begins, microseconds, and its messages; all of the same length.

    Raises:
        WrongValueError: there are too many windows to draw; the text says what to do.
    """
    windows = list(windows)
    _checked(len(windows))
    size = windows[1][0] - windows[0][0] if len(windows) > 1 else US_PER_S
    rates = [(start, count * US_PER_S / size) for start, count in windows]
    # What comes at once after a stall is many times the usual; it must not flatten the dips.
    usual = median([rate for _, rate in rates] or [1])
    top = min(max((rate for _, rate in rates), default=1), BURST * usual) * 1.05 or 1
    return time_chart(
        {say("rate.line"): rates},
        end_us=windows[-1][0] + size if windows else 0,
        unit=say("rate.unit"),
        stretches=[Stretch(dip.start_us, dip.end_us, dip.name) for dip in dips(windows)],
        marks=[
            (start, f"\N{BLACK UP-POINTING TRIANGLE} {rate:,.0f}")
            for start, rate in rates
            if rate > top
        ],
        top=top,
        seconds=True,
        title=say("rate.title"),
    )


def held_chart(
    rows: Iterable[Mapping[str, Any]],
    *,
    window_us: int,
    end_us: int,
) -> Chart:
    """How many links were blocked, window by window; each reason has a lane of its own.

    Args:
        rows: `window_start_us`, `brake` and `links`, as `analysis.overview.held` answers.
        window_us: length of a window, microseconds.
        end_us: where the time axis ends.

    Raises:
        WrongValueError: there are too many windows to draw.
    """
    found = sorted(rows, key=lambda row: (row["window_start_us"], row["brake"]))
    _checked(len(found))
    starts = ((row["window_start_us"], row["brake"], row["links"]) for row in found)
    return time_chart(
        end_us=end_us,
        stretches=[Stretch(start, start + window_us, *what) for start, *what in starts],
        lanes=True,
        seconds=True,
        title=say("held.title"),
        height=220,
    )


def _checked(count: int) -> None:
    if count > MOST_POINTS:
        raise WrongValueError(say("chart.too-many", n=count, most=MOST_POINTS))
