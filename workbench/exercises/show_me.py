"""A prediction that answers a misconception with a run: your rule and the rule, side by side.

It is the run of the question, with the learner's own numbers, if the two rules part in it. If not,
the explorer searches the shortest schedule in which they do, and it is played on the real broker.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

import ipywidgets as widgets

from workbench.scenarios import beliefs
from workbench.scenarios.race import LINK
from workbench.scenarios.run import Run
from workbench.views.scene import parts_at
from workbench.views.stage_widget import StageWidget
from workbench.views.stills import Still

from .codes import asked
from .predict import PredictionView
from .question import Prediction, Solution


def side_by_side(name: str, run: Run) -> StageWidget | None:
    """A misconception's rule beside the right one on the stage; None if they part nowhere."""
    link = LINK if run.scenario.name == "race" else None
    if parts_at(run, name, link) is None:
        return None
    title = f"The rule beside the misconception “{name}”"
    return StageWidget(run, title=title, link=link, acts=[], rules=[name], rule=name)


def searchable(name: str | None, known_as: Mapping[str, str] | None = None) -> str | None:
    """The misconception by the name under which it can be shown; None if none can be.

    Args:
        name: as a question has it.
        known_as: other names of a question's misconceptions.
    """
    name = (known_as or {}).get(str(name), name)
    return name if name in beliefs.SHOWN else None


def contradiction(
    name: str, solution: Solution | None, whose: str = "Your rule"
) -> tuple[str, StageWidget | None]:
    """What contradicts a misconception: words, and its rule beside the right one on the stage.

    Args:
        name: of the misconception; one that is `searchable`.
        solution: of the question; its run is taken if the two rules part in it.
        whose: rule it is, as a sentence begins with it.
    """
    says = beliefs.belief_named(name).says
    if solution is not None and solution.shown is not None:
        shown = side_by_side(name, solution.shown)
        if shown is not None:
            return (
                f"{whose}: {says}. Play: it stops where {whose.lower()} and the rule part.",
                shown,
            )
    found = beliefs.counterexample(name)
    if found is None:
        return "No schedule contradicts it here.", None
    return (
        f"The shortest schedule against “{says}”: {', '.join(found.moves)}"
        f" ({found.states} states looked at). {found.text}"
    ), side_by_side(name, found.run())


class ShowMe(Still, widgets.VBox):
    """A prediction and, below it, what contradicts the belief behind a wrong answer.

    Args:
        view: the prediction.
        known_as: the name by which a belief can be searched, where the question has another one.
    """

    still_is_prose = True

    def __init__(self, view: PredictionView, known_as: Mapping[str, str] | None = None) -> None:
        self.view = view
        self.known_as = known_as or {}
        question = view.prediction.question
        asked[question.name] = (question, self.known_as)
        self.button = widgets.Button(
            description="Show me",
            tooltip="your rule beside the rule, in a run in which the two differ",
        )
        self.told = widgets.HTML()
        self.place = widgets.VBox([self.button, self.told], layout={"display": "none"})
        self.shown: StageWidget | None = None
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
        return searchable(verdict.belief if verdict is not None else None, self.known_as)

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
        text, self.shown = contradiction(self.belief, self.prediction.solution)
        self._say(text)
        if self.shown is None:
            return
        self.place.children = (self.button, self.told, self.shown)

    def _say(self, text: str) -> None:
        self.told.value = (
            f'<div role="status" style="line-height:1.5;max-width:62em">{html.escape(text)}</div>'
        )

    def __repr__(self) -> str:
        return repr(self.view)


__all__ = ["ShowMe", "contradiction", "searchable", "side_by_side"]
