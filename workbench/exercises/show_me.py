"""A prediction that answers a misconception with a run: your rule and the rule, side by side.

It is the run of the question, with the learner's own numbers, if the two rules part in it. If not,
the explorer searches the shortest schedule in which they do, and it is played on the real broker.
Where the misconception is no rule of a link, what it expects is set beside what the run's rows
make, in step (`scenarios.beside`).
"""

from __future__ import annotations

import html

import ipywidgets as widgets

from workbench.languages import capital, declared
from workbench.scenarios import beliefs
from workbench.scenarios.beside import Bars
from workbench.scenarios.race import LINK
from workbench.scenarios.run import Run
from workbench.views.charts import number
from workbench.views.controls import status
from workbench.views.scene import parts_at
from workbench.views.stage_widget import StageWidget
from workbench.views.stills import Still

from .predict import PredictionView
from .question import Belief, Prediction, Solution, say


def side_by_side(name: str, run: Run, *, theirs: bool = False) -> StageWidget | None:
    """A misconception's rule beside the right one on the stage; None if they part nowhere.

    Args:
        name: of the misconception.
        run: in which they part.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """
    link = LINK if run.scenario.name == "race" else None
    if parts_at(run, name, link) is None:
        return None
    title = say("shown.rule", name=declared(name))
    return StageWidget(run, title=title, link=link, acts=[], rules=[name], rule=name, theirs=theirs)


def in_step(belief: Belief, *, theirs: bool = False) -> StageWidget | widgets.HTML | None:
    """What a misconception expects beside what the question's run does; None if it cannot be.

    Args:
        belief: the misconception.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """
    beside, title = belief.beside, say("shown.run", name=declared(belief.name))
    if beside is None:
        return None
    if isinstance(beside, Bars):
        return widgets.HTML(_drawn(beside, _whose(theirs=theirs)))
    return StageWidget(
        beside.run, at=beside.opens, title=title, acts=[], beside=beside, theirs=theirs
    )


def _whose(*, theirs: bool) -> str:
    """Whose rule a misconception is, as the table of texts names it."""
    return "theirs" if theirs else "yours"


_RUN = "background:#0072B2"
_YOURS = "box-sizing:border-box;border:2px dashed #D55E00"


def _drawn(bars: Bars, whose: str) -> str:
    """Bars that need no library in the page; the one of the misconception is dashed."""
    lines = [(name, height, _RUN) for name, height in bars.heights.items()]
    place = (
        [name for name, _, _ in lines].index(bars.which) + 1 if bars.which in bars.heights else 0
    )
    lines.insert(place, (say(f"shown.bar.{whose}", which=bars.which), bars.yours, _YOURS))
    most = max(height for _, height, _ in lines) or 1
    unit = capital(bars.unit)
    rows = "".join(
        f'<tr><td style="text-align:right;padding:2px 10px 2px 0">{html.escape(name)}</td>'
        f'<td style="width:100%"><div style="display:flex;align-items:center;gap:8px">'
        f'<div style="{style};height:18px;width:{80 * height / most:.1f}%"></div>'
        f"{number(height)}</div></td></tr>"
        for name, height, style in lines
    )
    return (
        f'<table style="width:100%;max-width:62em;border-collapse:collapse;white-space:nowrap">'
        f'<caption style="text-align:left;padding:4px 0">{html.escape(unit)}'
        f"</caption>{rows}</table>"
    )


def is_shown(belief: Belief) -> bool:
    """Whether a misconception can be shown, in one way or the other."""
    return belief.known_as is not None or belief.beside is not None


def contradiction(
    belief: Belief, solution: Solution | None, *, theirs: bool = False
) -> tuple[str, StageWidget | widgets.HTML | None]:
    """What contradicts a misconception: words, and its rule beside the right one on the stage.

    Args:
        belief: the misconception; one that `is_shown`.
        solution: of the question; its run is taken if the two rules part in it.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """
    name, whose = belief.known_as, _whose(theirs=theirs)
    if name is None:
        told = say(f"shown.beside.{whose}", name=declared(belief.name))
        play = "" if isinstance(belief.beside, Bars) else f" {say('shown.play')}"
        return f"{told}{play}", in_step(belief, theirs=theirs)
    says = beliefs.belief_named(name).says
    if solution is not None and solution.shown is not None:
        shown = side_by_side(name, solution.shown, theirs=theirs)
        if shown is not None:
            return say(f"shown.parts.{whose}", says=says), shown
    found = beliefs.counterexample(name)
    if found is None:
        return say("shown.none"), None
    moves = ", ".join(found.moves)
    told = say("shown.schedule", says=says, moves=moves, states=found.states, text=found.text)
    return told, side_by_side(name, found.run(), theirs=theirs)


class ShowMe(Still, widgets.VBox):
    """A prediction and, below it, what contradicts the belief behind a wrong answer.

    Args:
        view: the prediction.
    """

    still_is_prose = True

    def __init__(self, view: PredictionView) -> None:
        self.view = view
        self.button = widgets.Button(
            description=say("show-me"),
            tooltip=say("show-me-tip"),
        )
        self.told = widgets.HTML()
        self.place = widgets.VBox([self.button, self.told], layout={"display": "none"})
        self.shown: StageWidget | widgets.HTML | None = None
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
    def belief(self) -> Belief | None:
        """The belief behind the answer, if it was recognised and can be shown."""
        verdict, solution = self.prediction.verdict, self.prediction.solution
        if verdict is None or verdict.belief is None or solution is None:
            return None
        answer = self.prediction.answer
        found = None if answer is None else solution.belief_of(answer)
        return found if found is not None and is_shown(found) else None

    def _compared(self) -> None:
        self._hide()
        if self.belief is not None:
            self.place.layout.display = None

    def _hide(self) -> None:
        self.place.layout.display = "none"
        self.place.children = (self.button, self.told)
        self.told.value = ""
        if self.shown is not None:
            self.shown.close()
            self.shown = None

    def _show(self) -> None:
        belief = self.belief
        if belief is None or self.told.value:  # it is shown already
            return
        if belief.known_as is not None:
            self._say(say("searching"))
        text, self.shown = contradiction(belief, self.prediction.solution)
        self._say(text)
        if self.shown is None:
            return
        self.place.children = (self.button, self.told, self.shown)

    def _say(self, text: str) -> None:
        self.told.value = status(text)

    def __repr__(self) -> str:
        return repr(self.view)


__all__ = ["ShowMe", "contradiction", "in_step", "is_shown", "side_by_side"]
