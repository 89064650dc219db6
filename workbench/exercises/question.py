"""Ask first, look afterwards: a question, what is committed as its answer, and what the run says.

A question holds no answer. `Question.solve` works one out by looking at a run, and only when the
learner has committed theirs, so nothing that a widget sends to the browser gives it away.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from workbench.languages import MINUS, declared, on_page, phrase
from workbench.notebook import PlainError
from workbench.presets import UINT_MAX
from workbench.scenarios.beside import Bars, Beside
from workbench.scenarios.run import Run, step_of
from workbench.trace.schema import Row

Answer = int | str
# A hint is a text, or is worked out from the run when it is asked for.
Hint = str | Callable[[], str]

LONGEST_NUMBER = 20  # digits; longer ones are not even read

say = partial(phrase, "asking")


# 4,294,967,295 and 4_294_967_295 are numbers; 5,5 is none.
_THOUSANDS = re.compile(r"(?<=[0-9])[,_](?=(?:[0-9]{3}[,_])*[0-9]{3}$)", re.ASCII)


class AnswerError(PlainError, ValueError):
    """What was given is no answer to this question; the text says what would be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A way of thinking about flow control that leads to a wrong answer.

    Attributes:
        name: what the belief says, in a word or two, such as `adds`.
        answer: what somebody who holds it answers here; worked out from the run as well.
        because: why the run disagrees, in words, with the run's own numbers.
        known_as: the name under which `scenarios.beliefs` can show it; None if it cannot.
        beside: the belief beside what the run does, in step; None where it is shown otherwise.
    """

    name: str
    answer: Answer
    because: str
    known_as: str | None = None
    beside: Beside | Bars | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What the run says.

    Attributes:
        answer: the value that the run shows.
        reason: why, in words, with the run's numbers.
        beliefs: known wrong ways to answer; one whose answer is right here is left out of sight.
        seen: the row of a run, shown in a picture of the lesson, at which the answer can be seen.
            None where the lesson shows it elsewhere: in a table, in a chart, in a trace to come.
        shown: the run with the question's numbers, in which a misconception can be shown beside
            the rule.
    """

    answer: Answer
    reason: str
    beliefs: tuple[Belief, ...] = ()
    seen: Row | None = None
    shown: Run | None = None

    def belief_of(self, answer: Answer) -> Belief | None:
        """The belief that leads to this wrong answer, if one is known."""
        if answer == self.answer:
            return None
        return next((belief for belief in self.beliefs if belief.answer == answer), None)


class NotYetError(Exception):
    """Raised by a `solve` that reads what has not happened yet; the text says what must happen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a learner is told about an answer. True in a condition if it was right.

    Attributes:
        right: whether the run agrees; None if there was nothing to compare yet.
        text: one short paragraph.
        belief: name of the belief behind a wrong answer, if it is known.
        answer: what was judged, as the log keeps it; None lets a check say it otherwise.
        hints: those that the learner asked for.
        more: how to get the next hint, if there is one.
    """

    right: bool | None
    text: str
    belief: str | None = None
    answer: str | None = None
    hints: tuple[str, ...] = ()
    more: str = ""

    def __bool__(self) -> bool:
        return bool(self.right)

    @property
    def mark(self) -> str:
        """Sign and word, so that nobody has to tell colours apart."""
        return {True: say("right"), False: say("wrong"), None: "…"}[self.right]

    def _hint_lines(self) -> list[str]:
        lines = [say("hint", number=n, text=text) for n, text in enumerate(self.hints, start=1)]
        return [*lines, self.more] if self.more else lines

    def __str__(self) -> str:
        return "\n".join([f"{self.mark} {self.text}", *self._hint_lines()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = {True: "#009E73", False: "#D55E00", None: "#999999"}[self.right]
        hints = "".join(f"<div>{on_page(line)}</div>" for line in self._hint_lines())
        return (
            f'<div role="status" style="border-left:4px solid {colour};padding:2px 10px;'
            f'max-width:60em;line-height:1.5"><strong>{html.escape(self.mark)}</strong> '
            f"{on_page(self.text)}{hints}</div>"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, and how an answer looks.

    Attributes:
        name: under which the answer is kept in the progress.
        text: the question, one or two sentences.
        solve: works out the solution from a run, each time it is called.
        choices: the possible answers; a whole number is asked for if there are none.
        unit: what a whole number counts.
        minimum, maximum: range of a whole number, both included. An answer outside it is asked
            for again; the range must not give the answer away.
        hints: from a nudge to nearly the answer, shown one by one.
    """

    name: str
    text: str
    solve: Callable[[], Solution] = field(repr=False)
    choices: tuple[str, ...] = ()
    unit: str = "messages"
    minimum: int = 0
    maximum: int = UINT_MAX
    hints: tuple[Hint, ...] = field(default=(), repr=False)

    @property
    def legal(self) -> str:
        """The answers there may be, as a sentence."""
        if self.choices:
            return say("choose-one", choices=", ".join(self.choices))
        return say("give-number", least=self.minimum, most=self.maximum)

    def read(self, given: object) -> Answer:
        """The answer that was meant.

        Raises:
            AnswerError: if it is none; the text says what would be one.
        """
        if self.choices:
            if given not in self.choices:
                raise AnswerError(self.legal)
            return str(given)
        text = str(given).strip().replace(MINUS, "-")
        if len(text) <= 2 * LONGEST_NUMBER:  # else it is none, and to look would take long
            text = _THOUSANDS.sub("", text)
        if not text:
            raise AnswerError(self.legal)
        digits = text.removeprefix("-") if self.minimum < 0 else text
        # `isdecimal` alone would let pass digits of other scripts, which `int` reads as well.
        if not (digits.isascii() and digits.isdecimal()):
            raise AnswerError(
                f"{say('no-count', given=_short(given), unit=self.unit)} {self.legal}"
            )
        if len(digits) > LONGEST_NUMBER or not self.minimum <= int(text) <= self.maximum:
            given = _short(given).replace("-", MINUS)
            raise AnswerError(f"{say('outside', given=given)} {self.legal}")
        return int(text)


def judge(answer: Answer, solution: Solution) -> Verdict:
    """Compare an answer with what the run says, in words."""
    if answer == solution.answer:
        return Verdict(right=True, text=solution.reason)
    belief = solution.belief_of(answer)
    text = say("you-said", said=answer, answer=solution.answer)
    if belief is None:
        return Verdict(right=False, text=f"{text} {solution.reason}")
    because = say("misconception", name=declared(belief.name), because=belief.because)
    return Verdict(right=False, belief=belief.name, text=f"{text} {because} {solution.reason}")


class Stage(Enum):
    """How far a learner is with a question: predict, commit, look, and only then compare."""

    ASKED = "asked"  # nothing was committed yet
    COMMITTED = "committed"  # and the run is to be looked at
    UNSEEN = "unseen"  # Compare was pressed before the step that decides was looked at
    SEEN = "seen"  # the step that decides was looked at, or nothing needs to be
    COMPARED = "compared"  # the run has judged the answer


# What happens in a stage, and the stage that follows. Nothing else can happen in it.
STAGES = {
    Stage.ASKED: {"commit": Stage.COMMITTED, "remember": Stage.SEEN},
    Stage.COMMITTED: {"commit": Stage.COMMITTED, "refuse": Stage.UNSEEN, "look": Stage.SEEN},
    Stage.UNSEEN: {
        "commit": Stage.UNSEEN,
        "refuse": Stage.UNSEEN,
        "look": Stage.SEEN,
        "give up": Stage.SEEN,
    },
    Stage.SEEN: {"commit": Stage.SEEN, "compare": Stage.COMPARED},
    Stage.COMPARED: {"commit": Stage.SEEN, "compare": Stage.COMPARED},
}


class Prediction:
    """One asking of a question: what was committed, and what came of comparing.

    Attributes:
        question: what is asked.
        stage: how far the learner is.
        answers: everything committed so far, in order; the last one counts.
        confidence: how sure the learner is of it, one of `progress.CONFIDENCES`; None if unsaid.
        hints: those shown so far.
        verdict: of the last comparison; None before it and after a new answer.
        solution: what the run said in it.
    """

    def __init__(self, question: Question) -> None:
        self.question = question
        self.stage = Stage.ASKED
        self.answers: list[Answer] = []
        self.confidence: str | None = None
        self.hints: list[str] = []
        self.verdict: Verdict | None = None
        self.solution: Solution | None = None

    @property
    def answer(self) -> Answer | None:
        """The answer that stands, None before the first."""
        return self.answers[-1] if self.answers else None

    def commit(self, given: object) -> Answer:
        """Put down an answer; a later one takes its place, and the earlier ones are remembered.

        Raises:
            AnswerError: if it is no answer; what was committed before stands.
        """
        return self._answered(given, "commit")

    def remember(self, given: object) -> Answer:
        """Put down an answer that was compared on an earlier day: its step was looked at then.

        Raises:
            AnswerError: if it is no answer, for the question was another one then.
            KeyError: if something was committed already.
        """
        return self._answered(given, "remember")

    def _answered(self, given: object, how: str) -> Answer:
        answer = self.question.read(given)
        self.stage = STAGES[self.stage][how]
        self.answers.append(answer)
        self.verdict = None
        return answer

    def compare(self, looked_at: Callable[[Row], bool] | None = None) -> Verdict:
        """Work out what the run says and compare; before an answer is committed, ask for one.

        Args:
            looked_at: says whether a row was shown in a picture; with it the comparison waits
                until the row at which the answer can be seen was. None waits for nothing.
        """
        if self.stage is Stage.ASKED:
            return Verdict(right=None, text=say("commit-first"))
        try:
            solution = self.question.solve()
        except (NotYetError, PlainError) as error:  # or the run cannot do what the question says
            return Verdict(right=None, text=str(error))
        if "look" in STAGES[self.stage]:
            seen = solution.seen
            unseen = seen is not None and looked_at is not None and not looked_at(seen)
            self.stage = STAGES[self.stage]["refuse" if unseen else "look"]
            if seen is not None and unseen:
                # The picture opens at step 1: only what somebody does in it shows that they look.
                step = step_of(seen)
                words = say("look-first", step=step) if step > 1 else say("move-first")
                return Verdict(right=None, text=words)
        self.stage = STAGES[self.stage]["compare"]
        self.solution = solution
        self.verdict = judge(self.answers[-1], solution)
        return self.verdict

    def give_up(self) -> Verdict:
        """Compare without having looked, for a learner who was told to look first.

        Raises:
            KeyError: in any other stage.
        """
        self.stage = STAGES[self.stage]["give up"]
        return self.compare()

    def hint(self) -> str | None:
        """The next hint; None if there is no further one."""
        hints = self.question.hints
        if len(self.hints) >= len(hints):
            return None
        hint = hints[len(self.hints)]
        self.hints.append(hint if isinstance(hint, str) else hint())
        return self.hints[-1]

    def __str__(self) -> str:
        lines = [say("asked", text=self.question.text)]
        if self.question.choices:
            lines.append(say("choices", choices="; ".join(self.question.choices)))
        lines += [say("hint", number=n, text=text) for n, text in enumerate(self.hints, start=1)]
        if self.answers:
            lines.append(say("committed", answer=self.answers[-1]))
        if self.verdict is not None:
            lines.append(str(self.verdict))
        return "\n".join(lines)


def _short(given: object) -> str:
    text = str(given).strip()
    return repr(text if len(text) <= 40 else text[:39] + "…")
