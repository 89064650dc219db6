"""A room's answers without a server: learners' codes in, a histogram by misconception out."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.languages import declared
from workbench.notebook import WrongValueError
from workbench.trace.given import takes
from workbench.views.charts import bar_chart
from workbench.views.controls import status
from workbench.views.stage_widget import StageWidget
from workbench.views.stills import Still

from .codes import Told, asked, mark_of
from .polls import Heard, heard, heard_in_poll, poll_text
from .progress import SURE
from .question import NotYetError, Question, Solution, say
from .sections import stepped
from .show_me import contradiction, is_shown
from .table import Table, table_of

MOST_LINES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One way in which the room has answered.

    Attributes:
        name: that it is right, a misconception, or that it is another answer; no other bar of the
            histogram has it.
        answer: what is answered so; None for another answer.
        belief: the misconception; None if it is none.
        number: how many answered so.
        sure: how many of them were sure.
    """

    name: str
    answer: str | None
    belief: str | None
    number: int
    sure: int


def bars_of(question: Question, solution: Solution | None, told: Sequence[Told]) -> list[Bar]:
    """The histogram: the right answer first, then each misconception, then the rest.

    Where the run has not answered yet there is a bar for each answer. Beliefs that share a name are
    told apart by their answers.
    """
    if solution is None:
        other = say("room.other")  # a code has no more than a hash of it
        names = [other if one.answer is None else str(one.answer) for one in told]
        certain = Counter(
            name for name, one in zip(names, told, strict=True) if one.confidence == SURE
        )
        return [
            Bar(name=name, answer=None, belief=None, number=n, sure=certain[name])
            for name, n in Counter(names).most_common()
        ]
    number: Counter[int] = Counter(one.mark for one in told)
    sure: Counter[int] = Counter(one.mark for one in told if one.confidence == SURE)
    found: dict[int, Bar] = {}
    known = [(say("room.right"), solution.answer, None)]
    known += [(declared(belief.name), belief.answer, belief.name) for belief in solution.beliefs]
    for name, answer, belief in known:
        mark = mark_of(question, answer)
        if mark not in found:  # a misconception that leads to the right answer here is none
            found[mark] = Bar(
                name=name, answer=str(answer), belief=belief, number=number[mark], sure=sure[mark]
            )
    shared = Counter(bar.name for bar in found.values())
    for mark, bar in found.items():
        if shared[bar.name] > 1:
            name = say("room.told-apart", name=bar.name, answer=bar.answer)
            found[mark] = replace(bar, name=name)
    rest = sum(n for mark, n in number.items() if mark not in found)
    rest_sure = sum(n for mark, n in sure.items() if mark not in found)
    if rest:
        found[-1] = Bar(
            name=say("room.other"), answer=None, belief=None, number=rest, sure=rest_sure
        )
    return list(found.values())


class Classroom(Still, widgets.VBox):
    """A field for codes, the histogram of the room, and what each bar stands for.

    Args:
        question: what was asked.

    Attributes:
        heard: what was read so far.
        bars: of the histogram.
        shown: the stage that a bar has brought; None before.
    """

    still_is_prose = True

    def __init__(self, question: Question) -> None:
        self.question = question
        self.heard = Heard()
        self.bars: list[Bar] = []
        self.shown: StageWidget | widgets.HTML | None = None
        self._solution: Solution | None = None
        self.field = widgets.Textarea(
            placeholder=say("room.paste"),
            layout={"width": "100%", "height": "90px"},
        )
        self.draw = widgets.Button(
            description=say("room.draw"), button_style="primary", tooltip=say("room.draw-tip")
        )
        self.poll = widgets.FileUpload(
            accept=".csv,.txt", description=say("room.poll"), tooltip=say("room.poll-tip")
        )
        self.clear = widgets.Button(description=say("room.clear"), tooltip=say("room.clear-tip"))
        self.line = widgets.HTML()
        self.chart = widgets.VBox()
        self.buttons = widgets.Box(layout={"flex_flow": "row wrap", "grid_gap": "4px 8px"})
        self.told = widgets.HTML()
        self.place = widgets.VBox()
        text = html.escape(f"{question.name}: {question.text}")
        super().__init__(
            children=[
                widgets.HTML(f'<div style="font-size:19px;line-height:1.5">{text}</div>'),
                self.field,
                widgets.HBox([self.draw, self.poll, self.clear]),
                self.line, self.chart, self.buttons, self.told, self.place,
            ]
        )  # fmt: skip
        self.draw.on_click(lambda _button: self.read(self.field.value.splitlines()))
        self.clear.on_click(lambda _button: self._clear())
        self.poll.observe(self._uploaded, names="value")

    def read(self, lines: Iterable[str]) -> None:
        """Count the codes in lines, and draw."""
        self._draw(heard(self.question, list(lines)[:MOST_LINES]))

    def read_poll(self, data: bytes) -> None:
        """Count the answers of a poll's CSV file, and draw."""
        self._draw(heard_in_poll(self.question, poll_text(data)))

    def pick(self, place: int) -> None:
        """Show what a bar stands for: its rule beside the rule, on the stage, playing."""
        bar = self.bars[place]
        self._close()
        told = f"{say('room.bar', name=bar.name, n=bar.number, sure=bar.sure)} "
        solution = self._solution
        known = () if solution is None else solution.beliefs
        mine = (one for one in known if (one.name, str(one.answer)) == (bar.belief, bar.answer))
        belief = next(mine, None)
        if belief is not None and is_shown(belief):
            words, self.shown = contradiction(belief, solution, theirs=True)
            told += words
        elif solution is not None:
            told += f"{belief.because} {solution.reason}" if belief else solution.reason
            if solution.shown is not None:
                self.shown = StageWidget(solution.shown, acts=[])
        self.told.value = status(told)
        if isinstance(self.shown, StageWidget):
            self.shown.plays = True
        if self.shown is not None:
            self.place.children = (self.shown,)

    def _draw(self, found: Heard) -> None:
        self._close()
        self.heard = found
        try:
            self._solution = self.question.solve()
        except NotYetError:
            self._solution = None
        self.bars = bars_of(self.question, self._solution, found.told)
        self.line.value = status(found.report)
        for old in (*self.chart.children, *self.buttons.children):
            old.close()
        if not found.told:
            self.chart.children = self.buttons.children = ()
            return
        heights = {_label(bar): bar.number for bar in self.bars}
        drawn = bar_chart(
            heights, unit=say("room.unit"), title=say("room.title"), width=860, use=self.pick
        )
        self.chart.children = (drawn, widgets.HTML(self.table._repr_html_()))
        self.buttons.children = tuple(self._key(place) for place in range(len(self.bars)))

    def _key(self, place: int) -> widgets.Button:
        button = widgets.Button(
            description=say("room.show", name=self.bars[place].name),
            tooltip=say("room.show-tip"),
            layout={"width": "auto"},
        )
        button.on_click(lambda _button: self.pick(place))
        return button

    @property
    def table(self) -> Table:
        """The histogram in words."""
        lines = [(bar.name, bar.answer or "–", str(bar.number), str(bar.sure)) for bar in self.bars]
        return table_of("room", lines)

    def _clear(self) -> None:
        self.field.value = ""
        self.read(())
        self.line.value = ""

    def _close(self) -> None:
        self.told.value = ""
        self.place.children = ()
        if self.shown is not None:
            self.shown.close()
            self.shown = None

    def _uploaded(self, change: Any) -> None:
        for file in change["new"]:
            self.read_poll(bytes(file["content"]))
        self.poll.value = ()  # the same file may be chosen again

    def __repr__(self) -> str:
        if not self.heard.told:
            return f"{self.question.name}: {self.question.text}\n{self.heard.report}"
        return f"{self.question.name}: {self.question.text}\n{self.heard.report}\n{self.table}"


def _label(bar: Bar) -> str:
    """A bar's name below it; the right answer has a mark, and is named by itself."""
    return f"✔ {bar.answer}" if bar.answer and bar.belief is None else bar.name


@takes
def classroom(question: str, lines: str | Iterable[str] = (), *, csv: str | Path = "") -> Classroom:
    """What a room says to a question, from the codes that its learners got when they committed.

    Args:
        question: such as "01/after-grant". If this kernel has not asked it, the lesson's cells are
            run up to it, so that its numbers are those of the lesson.
        lines: codes, in any order, with names or rubbish around them; more can be pasted later.
        csv: the file of a poll: codes in any column, or answers in one that is called `answer`.

    Raises:
        WrongValueError: if there is no such lesson or question; the text lists what there is. Or if
            the file cannot be read.
    """
    view = Classroom(_asked(question))
    if csv:
        try:
            view.read_poll(Path(csv).read_bytes())
        except OSError as error:
            raise WrongValueError(say("room.no-file", file=csv, why=error.strerror)) from None
    elif lines:
        view.read(lines.splitlines() if isinstance(lines, str) else lines)
    return view


def _asked(name: str) -> Question:
    """A question as this kernel has asked it, or else as its lesson does, run as far as there."""
    lesson = name.partition("/")[0]
    if name not in asked:
        for _ in stepped(lesson):
            if name in asked:
                break
    if name not in asked:
        there = ", ".join(one for one in sorted(asked) if one.startswith(f"{lesson}/"))
        raise WrongValueError(say("room.no-question", lesson=lesson, name=repr(name), there=there))
    return asked[name]


__all__ = ["Classroom", "bars_of", "classroom"]
