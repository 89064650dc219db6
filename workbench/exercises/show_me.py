"""A prediction that answers a wrong belief with a run: the shortest schedule that contradicts it.

The schedule is written nowhere: the explorer searches for it when the learner asks to see it, it is
played on the real broker, and it opens in the stepper.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

import ipywidgets as widgets

from workbench.scenarios import beliefs
from workbench.scenarios.beliefs import Counterexample
from workbench.views.stepper_widget import StepperWidget, stepper
from workbench.views.stills import Still

from .predict import PredictionView
from .question import Prediction


def counterexample(name: str) -> Counterexample | None:
    """The shortest schedule that contradicts a named belief.

    Where a sender works by the belief, it is the shortest one after which that sender may send more
    than was ever granted; else the shortest one in which belief and truth differ.
    """
    belief = beliefs.belief_named(name)
    return beliefs.counterexample(
        belief, beliefs.DIFFERENCE if belief.rule is None else beliefs.LIMIT
    )


def contradiction(found: Counterexample) -> StepperWidget:
    """The schedule in the stepper, which stands where it has come to its point."""
    played = found.run()
    return stepper(
        played,
        at=found.at(played),
        title=f"Against the misconception “{found.belief.name}”",
        note="◀ goes back through the moves that lead here",
    )


class ShowMe(Still, widgets.VBox):
    """A prediction and, below it, what contradicts the belief behind a wrong answer.

    Args:
        view: the prediction.
        known_as: the name by which a belief can be searched, where the question has another one.
    """

    still_is_prose = True

    def __init__(self, view: PredictionView, known_as: Mapping[str, str] | None = None) -> None:
        self.view = view
        self._known_as = known_as or {}
        self.button = widgets.Button(
            description="Show me",
            tooltip="search the shortest schedule that contradicts this belief, and open it",
        )
        self.told = widgets.HTML()
        self.place = widgets.VBox([self.button, self.told], layout={"display": "none"})
        self.shown: StepperWidget | None = None
        super().__init__(children=[view, self.place])
        # After the handlers of the prediction itself, so the verdict is there.
        for button in (view.compare, view.give_up):
            button.on_click(lambda _button: self._compared())
        view.commit.on_click(lambda _button: self._hide())
        self.button.on_click(lambda _button: self._show())

    @property
    def prediction(self) -> Prediction:
        """What is asked."""
        return self.view.prediction

    @property
    def belief(self) -> str | None:
        """The belief behind the answer, if it was recognised and a schedule can contradict it."""
        verdict = self.prediction.verdict
        name = verdict.belief if verdict is not None else None
        name = self._known_as.get(str(name), name)
        return name if name in beliefs.BELIEFS else None

    def _compared(self) -> None:
        self._hide()
        if self.belief is not None:
            self.button.disabled = False
            self.place.layout.display = None

    def _hide(self) -> None:
        self.place.layout.display = "none"
        self.place.children = (self.button, self.told)
        self.told.value = ""
        if self.shown is not None:
            self.shown.close()
            self.shown = None

    def _show(self) -> None:
        if self.belief is None:
            return
        self.button.disabled = True
        self._say("Searching every schedule, the shortest first…")
        found = counterexample(self.belief)
        if found is None:
            self._say("No schedule contradicts it here.")
            return
        self._say(
            f"The shortest schedule against “{found.belief.says}”: {', '.join(found.moves)}"
            f" ({found.states} states looked at). {found.text}"
        )
        self.shown = contradiction(found)
        self.place.children = (self.button, self.told, self.shown)

    def _say(self, text: str) -> None:
        self.told.value = (
            f'<div role="status" style="line-height:1.5;max-width:62em">{html.escape(text)}</div>'
        )

    def __repr__(self) -> str:
        return repr(self.view)


__all__ = ["ShowMe", "contradiction", "counterexample"]
