"""A sender of the learner's own: the verdict of the explorer, and what breaks it on the stage."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets

from workbench.trace.given import takes
from workbench.views.controls import status
from workbench.views.lattice_desk import LatticeDesk
from workbench.views.lattice_view import button
from workbench.views.stills import Still

from .trial import OnFlow, Trial, say

_COLUMN = {"padding": "0 0 0 14px"}


class TrialView(Still, widgets.VBox):
    """The verdict on a sender, and buttons that open what is behind it.

    A verdict that is green although wrong rules would have passed as well says so when asked.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.line = widgets.HTML(_verdict(trial))
        self.printed = widgets.HTML(
            f"<details><summary>{say('printed')}</summary><pre>{html.escape(trial.printed)}</pre>"
            "</details>"
            if trial.printed
            else ""
        )
        self.button = button(say("open"), say("open-tip"))
        self.worth = button(say("ask"), say("ask-tip"))
        self.all = button(say("all"), say("all-tip"))
        buttons = [self.button] if trial.breaking is not None else []
        buttons += [self.worth] if trial.blind and trial.grants else []
        buttons += [self.all] if trial.found is not None else []
        self.place = widgets.VBox()
        self.asked = widgets.VBox(layout=_COLUMN)
        self.shown: Any = None
        row = {"flex_flow": "row wrap", "grid_gap": "4px 8px"}
        super().__init__(
            children=[
                self.line,
                self.printed,
                widgets.Box(buttons, layout=row),
                self.asked,
                self.place,
            ]
        )
        self.button.on_click(lambda _button: self._show(self.trial.broken()))
        self.all.on_click(lambda _button: self._show(self._lattice()))
        self.worth.on_click(lambda _button: self._ask())

    def _lattice(self) -> LatticeDesk:
        trial = self.trial
        return LatticeDesk(**trial.given, rule_function=trial.rule, path=trial.breaking or ())

    def _show(self, widget: Any) -> None:
        """One thing at a time."""
        old, self.shown = self.shown, widget
        self.place.children = () if widget is None else (widget,)
        if old is not None:
            old.close()

    def _ask(self) -> None:
        self.worth.disabled = True
        further = self.trial.further()
        text = f"{self.trial.worth} {say('further', grant=further.grants[-1])}"
        self.asked.children = (
            widgets.HTML(status(text)),
            TrialView(further),
        )

    def __repr__(self) -> str:
        return str(self.trial)


def _verdict(trial: Trial) -> str:
    """The verdict, and move by move what breaks it."""
    colour = "#009E73" if trial.passed else "#D55E00"
    story = "".join(f"<div>{html.escape(sentence)}</div>" for sentence in trial.story)
    told = f"<details><summary>{say('story')}</summary>{story}</details>" if story else ""
    return (
        f'<div role="status" style="border-left:4px solid {colour};padding:2px 10px;'
        f'max-width:62em;line-height:1.5;white-space:normal">'
        f"{html.escape(trial.text)}{told}</div>"
    )


@takes
def try_sender(
    on_flow: OnFlow,
    *,
    messages: int = 10,
    grants: Sequence[int] = (3, 6),
    initial_delivery_count: int = 0,
) -> TrialView:
    """Try a sender in every order that a small link allows.

    Args:
        on_flow: the learner's function of `state` and `frame`.
        messages: that the sender has.
        grants: link-credit of the receiver's flows.
        initial_delivery_count: with which the sender begins.
    """
    return TrialView(
        Trial(
            on_flow,
            messages=messages,
            grants=grants,
            initial_delivery_count=initial_delivery_count,
        )
    )


__all__ = ["TrialView", "try_sender"]
