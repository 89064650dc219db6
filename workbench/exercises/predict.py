"""The widget that asks before a step: commit an answer, step, then compare with the run.

The widget only shows; what is asked, kept and compared is `question.Prediction`, which knows no
widget.
"""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as widgets

from workbench.languages import on_page, words
from workbench.trace.given import takes
from workbench.trace.schema import Row
from workbench.views.controls import named, on_enter
from workbench.views.looked import looked
from workbench.views.stills import Still

from .class_box import ClassBox
from .class_lock import obstacle, watchers
from .codes import asked, code_of
from .progress import CONFIDENCES, SURE, Progress, progress
from .progress_view import browser_copy
from .question import AnswerError, Prediction, Question, Stage, Verdict, say

_CODE = '<strong style="font:700 26px ui-monospace,monospace;letter-spacing:2px">{code}</strong>'
# Choices are sentences: in a narrow page they go on in a second line.
_STYLE = """<style>.wb-choices label { display: flex; flex-direction: row-reverse;
justify-content: flex-end; height: auto; padding: 2px 0; line-height: 1.35; white-space: normal }
.wb-choices input { flex: none }</style>"""
_BESIDE = {
    "display": "flex", "flex_flow": "row", "align_items": "baseline",
    "grid_gap": "12px", "width": "max-content",
}  # fmt: skip
"""A label beside what it names, and not above."""
_ROW = {"flex_flow": "row wrap", "align_items": "center", "grid_gap": "4px 16px"}


class PredictionView(Still, widgets.VBox):
    """Question, field, how sure, the buttons, and a line that tells what came of it.

    Args:
        prediction: what is asked.
        log: where the outcome is kept.
        recalled_in: the later lesson that asks again; None in the lesson itself.
    """

    still_is_prose = True

    def __init__(
        self,
        prediction: Prediction,
        log: Progress = progress,
        *,
        recalled_in: str | None = None,
    ) -> None:
        self.prediction = prediction
        self._log = log
        self._recalled_in = recalled_in
        question = prediction.question
        lesson = question.name.partition("/")[0]
        lead = say("predict") if recalled_in is None else say("recalled", lesson=lesson)
        self.heading = widgets.HTML(_STYLE + _question_html(lead, question.text))
        self.field = _field(question)
        self.commit = widgets.Button(
            description=say("commit"), tooltip=say("commit-tip"), button_style="primary"
        )
        self.compare = widgets.Button(
            description=say("compare"),
            tooltip=say("compare-tip"),
            disabled=True,
        )
        self.give_up = widgets.Button(description=say("give-up"), tooltip=say("give-up-tip"))
        self.confidence = widgets.RadioButtons(
            options=[(words("asking")["confidence"][one], one) for one in CONFIDENCES],
            value=None,
            description=say("how-sure"),
            orientation="horizontal",
            tooltip=say("how-sure-tip"),
            style={"description_width": "initial"},
            layout=_BESIDE,
        )
        self.hint = widgets.Button(tooltip=say("hint-tip"))
        self.hints = widgets.HTML()
        self.line = widgets.HTML()
        self.locked = widgets.VBox()
        self.code = widgets.HTML()
        buttons = [
            self.commit,
            self.compare,
            self.give_up,
            *([self.hint] if question.hints else []),
        ]
        fields = (
            # Choices are sentences; beside them everything else would wander about.
            [self.field, self.confidence]
            if question.choices
            else [widgets.Box([self.field, self.confidence], layout=_ROW)]
        )
        super().__init__(
            children=[
                self.heading,
                *fields,
                widgets.Box(buttons, layout=_ROW),
                self.hints,
                self.line,
                self.locked,
                self.code,
                browser_copy(log),
            ],
            layout={"border": "1px solid #8a94a0", "padding": "6px 14px", "max_width": "62em"},
        )
        if recalled_in is None:
            asked[question.name] = question
        self._committed: object = None  # what stood in the field when it was committed last
        self._label_hint()
        self._label_give_up()
        self.commit.on_click(lambda _button: self._commit())
        self.compare.on_click(lambda _button: self._compare())
        self.give_up.on_click(lambda _button: self._give_up())
        self.hint.on_click(lambda _button: self._hint())
        self.confidence.observe(lambda _change: self._show_code(), names="value")
        if not question.choices:
            on_enter(self.field, self._commit)
        self._put_back()
        log.watch(self._put_back)  # a copy in the browser may bring answers later

    def _put_back(self) -> None:
        """Show the answer of an earlier day, as the log has it; Compare works out the reason."""
        question = self.prediction.question
        if self.prediction.stage is not Stage.ASKED:
            return
        told = [
            one
            for one in self._log.records
            if (one.name, one.recalled_in) == (question.name, self._recalled_in)
            and one.is_of(question.text)
        ]
        if not told:
            return
        try:
            answer = self.prediction.remember(told[-1].answer)
        except AnswerError:  # the question was another one then
            return
        self.field.value = self._committed = str(answer)
        self.confidence.value = told[-1].confidence
        self.compare.disabled = False
        self.commit.description = say("change")
        mark = Verdict(right=told[-1].right, text="").mark
        self._say(say("from-before", answer=answer, mark=mark))
        self._show_code()

    def _obstacle(self) -> str | None:
        """Why nothing can be committed yet: what is asked again is open in any case."""
        return obstacle(self.prediction.question.name) if self._recalled_in is None else None

    def _commit(self) -> bool:
        """Make what stands in the field the answer; whether it is one is the result."""
        locked = self._obstacle()
        if locked is not None:
            self._say(locked)
            if not self.locked.children:
                self.locked.children = (ClassBox(),)
                watchers.add(self._code_typed)
            return False
        self.locked.children = ()
        try:
            answer = self.prediction.commit(self.field.value)
        except AnswerError as error:
            self._say(str(error))
            return False
        self._committed = self.field.value
        self.compare.disabled = False
        self.commit.description = say("change")
        self._say(say("see-now" if self._recalled_in is None else "compare-now", answer=answer))
        self._show_code()
        return True

    def _code_typed(self) -> None:
        """Here or in another cell: what was said of the lock may be true no more."""
        if self.locked.children:
            self._say(self._obstacle() or "")

    def _show_code(self) -> None:
        """The answer as a code that a trainer can type, where a class asks for it."""
        answer = self.prediction.answer
        if answer is None or self._recalled_in is not None:
            return
        code = code_of(self.prediction.question, answer, self.confidence.value)
        told = "" if code is None else say("your-code", code=_CODE.format(code=code))
        self.code.value = f'<div style="line-height:1.4">{told}</div>' if told else ""

    def _stands(self) -> bool:
        """Commit what was changed in the field since the last time; whether it is an answer."""
        return self.field.value == self._committed or self._commit()

    def _compare(self) -> None:
        if not self._stands():
            return
        # What is asked again in a later lesson stands alone: there is nothing to step through.
        alone = self._recalled_in is not None
        self._compared(self.prediction.compare(None if alone else _looked_at))

    def _give_up(self) -> None:
        if not self._stands():
            return
        self.compare.focus()  # what is hidden, or disabled, would leave the focus nowhere
        self._compared(self.prediction.give_up())

    def _compared(self, verdict: Verdict) -> None:
        self.prediction.confidence = self.confidence.value
        self._label_give_up()
        if verdict.right is not None:
            self._log.record(
                self.prediction.question.name,
                self.prediction.answer,
                bool(verdict.right),
                verdict.belief,
                confidence=self.prediction.confidence,
                hints=len(self.prediction.hints),
                recalled_in=self._recalled_in,
                asked=self.prediction.question.text,
            )
        self._show(verdict)

    def _hint(self) -> None:
        self.prediction.hint()
        told = (say("hint", number=n, text=text) for n, text in enumerate(self.prediction.hints, 1))
        lines = "".join(f'<div style="line-height:1.5">{on_page(one)}</div>' for one in told)
        self.hints.value = f'<div role="status">{lines}</div>'
        self._label_hint()
        if self.hint.disabled:
            self.commit.focus()

    def _label_hint(self) -> None:
        shown, there = len(self.prediction.hints), len(self.prediction.question.hints)
        self.hint.disabled = shown >= there
        self.hint.description = (
            say("no-more-hints")
            if shown >= there
            else say("next-hint", number=shown + 1, all=there)
        )

    def _label_give_up(self) -> None:
        shown = self.prediction.stage is Stage.UNSEEN
        self.give_up.layout.display = None if shown else "none"

    def _say(self, text: str) -> None:
        self.line.value = f'<div role="status" style="line-height:1.5">{on_page(text)}</div>'

    def _show(self, verdict: Verdict) -> None:
        shown = verdict._repr_html_()
        if verdict.right is False and self.prediction.confidence == SURE:
            shown += f'<div style="padding:2px 14px"><em>{say("sure-and-wrong")}</em></div>'
        self.line.value = shown

    def __repr__(self) -> str:
        return str(self.prediction)


class Questions(Still, widgets.Tab):
    """Several predictions in one place, one at a time.

    Args:
        asked: widgets that ask, in order.
    """

    still_is_prose = True

    def __init__(self, *asked: widgets.Widget) -> None:
        titles = tuple(say("question", number=n) for n, _ in enumerate(asked, start=1))
        super().__init__(children=asked, titles=titles, selected_index=0 if asked else None)

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.children))


@takes
def questions(*asked: widgets.Widget) -> Questions:
    """Ask several questions in one place, one at a time."""
    return Questions(*asked)


def _looked_at(row: Row) -> bool:
    return looked.at(str(row.run), row.seq)


def _question_html(lead: str, text: str) -> str:
    return (
        f'<div style="line-height:1.5;white-space:normal"><strong>{html.escape(lead)}</strong> '
        f"{on_page(text)}</div>"
    )


def _field(question: Question) -> Any:
    if question.choices:
        choices = widgets.RadioButtons(
            # A label is plain text, without code.
            options=[(choice.replace("`", ""), choice) for choice in question.choices],
            value=None,
            layout={"width": "auto"},
        )
        choices.add_class("wb-choices")
        return named(choices, question.text)  # the question itself stands above
    return widgets.Text(
        placeholder=say("your-answer"),
        description=question.unit,
        tooltip=question.text,
        style={"description_width": "initial"},
        layout={"width": "240px"},
    )
