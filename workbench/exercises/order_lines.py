"""Lines of a sender's function to be put in order; what they make is run, never compared.

Whatever order the learner finds is right if the explorer finds nothing wrong with it.
"""

from __future__ import annotations

import html
import linecache
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from workbench import serial
from workbench.trace.given import takes
from workbench.views.controls import named
from workbench.views.lattice_view import WITHIN, button
from workbench.views.stills import Still

from .own_sender import TrialView
from .progress import Progress, progress
from .trial import OnFlow, Trial, say

NAME = "02/order-lines"
HEAD = "def on_flow(state, frame):"
FILE = "<your lines>"
# A list's words hold no space at which a line could go on: ipywidgets makes them unbreakable.
_STYLE = """<style>.wb-lines select { font-family: var(--jp-code-font-family, monospace) }
.wb-lines option { white-space: pre-wrap; overflow-wrap: anywhere; padding-left: 4ch; \
text-indent: -4ch }</style>"""


class OrderLines(Still, widgets.VBox):
    """Lines of a function to be put in order.

    A line is chosen in one of the two lists, by mouse or arrow keys, and moved by buttons.

    Args:
        lines: of the function's body, as they are offered; some may not belong.
        messages: of the link on which the result is tried.
        grants: of that link.
        starts: initial delivery-counts of that link to try.
        log: where the outcome is kept.
    """

    def __init__(
        self,
        lines: Sequence[str],
        *,
        messages: int,
        grants: Sequence[int],
        starts: Sequence[int] = (0,),
        log: Progress = progress,
    ) -> None:
        self._lines = tuple(lines)
        self._link: dict[str, Any] = {"messages": messages, "grants": tuple(grants)}
        self._starts = tuple(starts)
        self._log = log
        size = {"width": "600px", "max_width": WITHIN}
        self.used = named(_lines([], len(lines), size), HEAD)
        self.offered = named(_lines(lines, len(lines), size), say("lines.choose"))
        self.take = button(say("lines.take"), say("lines.take-tip"))
        self.drop = button(say("lines.drop"), say("lines.drop-tip"))
        self.up = button(say("lines.up"), say("lines.up-tip"))
        self.down = button(say("lines.down"), say("lines.down-tip"))
        self.reset = button(say("lines.reset"), say("lines.reset-tip"))
        self.check = button(say("lines.check"), say("lines.check-tip"))
        self.check.button_style = "primary"
        self.place = widgets.VBox()
        row = {"flex_flow": "row wrap", "grid_gap": "4px 8px"}
        super().__init__(
            children=[
                widgets.HTML(_STYLE + f"<code>{html.escape(HEAD)}</code>"),
                self.used,
                widgets.Box(
                    [self.up, self.down, self.take, self.drop, self.reset, self.check], layout=row
                ),
                widgets.HTML(say("lines.choose")),
                self.offered,
                self.place,
            ],
            layout={"border": "1px solid #8a94a0", "padding": "6px 14px", "max_width": "62em"},
        )
        self.add_class("wb-lines")
        self.take.on_click(lambda _button: self._move(self.offered, self.used))
        self.drop.on_click(lambda _button: self._move(self.used, self.offered))
        self.up.on_click(lambda _button: self._shift(-1))
        self.down.on_click(lambda _button: self._shift(1))
        self.reset.on_click(lambda _button: self._reset())
        self.check.on_click(lambda _button: self._check())
        self._put_back()

    def _put_back(self) -> None:
        """Put in the lines that were tried last, on an earlier day perhaps."""
        told = self._log.entries.get(NAME)
        lines = told.answers[-1].split("; ") if told else []
        if set(lines) <= set(self._lines):
            self.used.options = lines
            self.offered.options = [line for line in self._lines if line not in lines]

    @property
    def source(self) -> str:
        """The function as it stands."""
        body = [f"    {line}" for line in self.used.options] or ["    pass"]
        return "\n".join([HEAD, *body])

    def trial(self) -> Trial:
        """What the lines make, tried in every order; of several beginnings the first that fails."""
        made = compiled(self.source)
        for start in self._starts or (0,):
            trial = Trial(made, initial_delivery_count=start, **self._link)
            if not trial.passed:
                break
        return trial

    # -- moving ---------------------------------------------------------------------------------

    def _move(self, away: Any, to: Any) -> None:
        if away.index is None:
            return
        place, lines = away.index, list(away.options)
        line = lines.pop(place)
        _fill(to, [*to.options, line], len(to.options))
        _fill(away, lines, min(place, len(lines) - 1) if lines else None)
        self._clear()

    def _shift(self, step: int) -> None:
        lines, place = list(self.used.options), self.used.index
        if place is None or not 0 <= place + step < len(lines):
            return
        lines[place], lines[place + step] = lines[place + step], lines[place]
        _fill(self.used, lines, place + step)
        self._clear()

    def _reset(self) -> None:
        _fill(self.used, (), None)
        _fill(self.offered, self._lines, 0)
        self._clear()

    # -- trying ---------------------------------------------------------------------------------

    def _check(self) -> None:
        self._clear()
        if not self.used.options:
            self.place.children = (widgets.HTML(say("lines.none")),)
            return
        trial = self.trial()
        self._log.record(NAME, "; ".join(self.used.options), trial.passed)
        view = TrialView(trial)
        start = trial.given["initial_delivery_count"]
        begun = [widgets.HTML(say("lines.start", start=start))] if start else []
        self.place.children = (view,) if trial.passed else (*begun, view)

    def _clear(self) -> None:
        """What was tried is not what stands here any more."""
        old, self.place.children = self.place.children, ()
        for child in old:
            child.close()

    # -- without a kernel -----------------------------------------------------------------------

    def __repr__(self) -> str:
        offered = "\n".join(f"    {line}" for line in self.offered.options)
        return f"{self.source}\n\n{say('lines.offered')}\n{offered}"


def _lines(lines: Sequence[str], rows: int, size: dict[str, str]) -> Any:
    return widgets.Select(options=list(lines), rows=rows + 1, layout=size)


def _fill(chosen: Any, lines: Sequence[str], index: int | None) -> None:
    """In one message: what somebody chooses between two would be lost."""
    with chosen.hold_sync():
        chosen.options = lines
        chosen.index = index


def compiled(source: str) -> OnFlow:
    """The function that lines of ours make; the lines are those of the exercise and no others."""
    # So that a fault can be told with its line.
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    names: dict[str, Any] = {"serial": serial, "max": max, "__builtins__": {}}
    exec(compile(source, FILE, "exec"), names)
    made: OnFlow = names["on_flow"]
    return made


def on_flow_lines() -> dict[str, Any]:
    """The lines of a right `on_flow`, out of order and with some that do not belong.

    The link begins once at 0, and once where the count wraps around.
    """
    return {
        "lines": (
            "state.link_credit = max(0, left)",
            "in_flight = state.delivery_count - frame.delivery_count",
            "left = frame.link_credit - in_flight",
            "state.link_credit = state.link_credit + frame.link_credit",
            "in_flight = serial.diff(state.delivery_count, frame.delivery_count)",
            "state.delivery_count = frame.delivery_count",
        ),
        "starts": (0, serial.MAX),
    }


@takes
def order_lines(
    lines: Sequence[str],
    *,
    messages: int = 10,
    grants: Sequence[int] = (3, 6),
    starts: Sequence[int] = (0,),
    log: Progress = progress,
) -> OrderLines:
    """Lines to be put in order; arguments as of `OrderLines`."""
    return OrderLines(lines, messages=messages, grants=grants, starts=starts, log=log)
