"""The widget that asks before a step: commit an answer, step, then compare with the run.

The widget only shows; what is asked, kept and compared is `question.Prediction`, which knows no
widget.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable
from typing import Any, ParamSpec

import ipywidgets as widgets

from .progress import Progress, progress
from .question import AnswerError, Prediction, Question, Verdict

P = ParamSpec("P")

_STEP_NOW = "You say {answer}. Now step through the run below and see; then press Compare."


class PredictionView(widgets.VBox):
    """Question, field, two buttons and a line that tells what came of it.

    Args:
        prediction: what is asked.
        log: where the outcome is kept.
    """

    def __init__(self, prediction: Prediction, log: Progress = progress) -> None:
        self.prediction = prediction
        self._log = log
        question = prediction.question
        self.heading = widgets.HTML(_question_html(question.text))
        self.field = _field(question)
        self.commit = widgets.Button(
            description="Commit", tooltip="put your answer down", button_style="primary"
        )
        self.compare = widgets.Button(
            description="Compare",
            tooltip="work out what the run says and compare it with your answer",
            disabled=True,
        )
        self.line = widgets.HTML(layout={"min_height": "28px"})
        super().__init__(
            children=[
                self.heading,
                widgets.Box(
                    [self.field, self.commit, self.compare],
                    layout={
                        "flex_flow": "row wrap",
                        "align_items": "center",
                        "grid_gap": "4px 8px",
                    },
                ),
                self.line,
            ],
            layout={"border": "1px solid #8a94a0", "padding": "6px 14px", "max_width": "62em"},
        )
        self.commit.on_click(lambda _button: self._commit())
        self.compare.on_click(lambda _button: self._compare())
        if not question.choices:
            self.field.on_msg(self._entered)

    def _entered(self, _widget: Any, content: Any, _buffers: Any) -> None:
        if isinstance(content, dict) and content.get("event") == "submit":  # the Enter key
            self._commit()

    def _commit(self) -> None:
        try:
            answer = self.prediction.commit(self.field.value)
        except AnswerError as error:
            self._say(str(error))
            return
        self.compare.disabled = False
        self.commit.description = "Change"
        self._say(_STEP_NOW.format(answer=answer))

    def _compare(self) -> None:
        verdict = self.prediction.compare()
        if verdict.right is not None:
            self._log.record(
                self.prediction.question.name,
                self.prediction.answer,
                bool(verdict.right),
                verdict.belief,
            )
        self._show(verdict)

    def _say(self, text: str) -> None:
        self.line.value = f'<div role="status" style="line-height:1.5">{html.escape(text)}</div>'

    def _show(self, verdict: Verdict) -> None:
        self.line.value = verdict._repr_html_()

    def __repr__(self) -> str:
        return str(self.prediction)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        if data is not None:
            # What stays on a page without a kernel.
            data["text/plain"] = str(self.prediction)
            data["text/html"] = f"<pre>{html.escape(str(self.prediction))}</pre>"
        return bundle


def _question_html(text: str) -> str:
    return (
        '<div style="line-height:1.5;white-space:normal"><strong>Predict.</strong> '
        f"{html.escape(text)}</div>"
    )


def _field(question: Question) -> Any:
    if question.choices:
        return widgets.RadioButtons(
            options=list(question.choices),
            value=None,
            layout={"width": "max-content"},
            # A name for screen readers; the question itself stands above.
            tooltip=question.text,
        )
    return widgets.Text(
        placeholder="your answer",
        description=question.unit,
        tooltip=question.text,
        style={"description_width": "initial"},
        layout={"width": "240px"},
    )


def asks(make: Callable[P, Question]) -> Callable[P, PredictionView]:
    """Turn a function that makes a question into one that asks it; the maker stays as `.question`.

    A decorator. The name under which answers are kept is the question's own.
    """

    @functools.wraps(make)
    def ask(*args: P.args, **kwargs: P.kwargs) -> PredictionView:
        return PredictionView(Prediction(make(*args, **kwargs)))

    ask.question = make  # type: ignore[attr-defined]
    return ask
