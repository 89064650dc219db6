"""Questions of words and facts: the words stand in a lesson's TOML file, the facts a run gives.

A question is a table of the file and a function of the lesson's module with the same name:

    [granted-twice]
    ask = "The receiver sends flow(link-credit={link_credit}) twice. How many of {publish} come?"
    right = "{answer:message} came and {left} wait."
    wrong.adds = "The same flow twice says the same thing twice."

    @lesson.asks
    def granted_twice(run, link_credit, publish):
        ...
        return facts(sent, left=publish - sent, wrong={"adds": 2 * link_credit})

`ask`, `choices` and the hints may name the function's arguments and what it yields first; `right`
and `wrong` also what it returns: it goes on after its `yield`, if it has one, when the learner has
committed. Where it returns None, what it reads has not happened yet, and `wait` says what must.
`{n:message}` is `1 message`, `no messages` and so on, `{n:more/more}` gives the plural too, and a
capital, `{n:Message}`, begins a sentence. Anything else after the colon is Python's format. A
language with more forms writes them out: `{n:keine Nachricht/eine Nachricht/# Nachrichten}`.

Each misconception can be shown beside the rule. Where it is one of `scenarios.beliefs`, or
`known_as` one of them, then in the run that `shown` is, or in the shortest schedule in which the
two differ. Every other one in step with what `beside` counts in a run, or finds decided there; one
for all misconceptions, or one for each by its name. What no run can show says why not:

    unshown.adds = "It is about a word."

One that the lesson's own run makes the right answer says so, and where it is wrong:

    right_here.adds = "right of the first flow; wrong of every later one"

`kept_as` is the name under which answers are kept, where it is not the table's: another question's
that this one asks again, or one for each form. What the lesson has its forms of stands in `forms`.

A check is a table below `check` and a function that finds which of its texts holds:

    [check.pieces]
    wrong.too-large = "A flow announces {largest}; {most} is the most allowed here."
    right = "All came, and no flow announced more than {largest}."

    @lesson.checks(scenarios=("windows",))
    def pieces(desk, most):
        ...
        return case("too-large" if largest > most else "right", largest=largest)

The texts below `unclear` say why there is nothing to judge. One of them holds of every check whose
argument is still the `...` that stands in the notebook: its function is not asked then. Those below
`hint` are hints that a function works out. All of them may name the check's arguments as well.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from workbench.exercises import recall
from workbench.exercises.checks import (
    CheckHint,
    Judge,
    checks,
    is_untouched,
    not_yet,
)
from workbench.exercises.checks import told as judged
from workbench.exercises.predict import PredictionView
from workbench.exercises.question import (
    Answer,
    Belief,
    NotYetError,
    Prediction,
    Question,
    Solution,
    Verdict,
    say,
)
from workbench.exercises.show_me import ShowMe
from workbench.languages import FactError, told, words
from workbench.languages.telling import found
from workbench.notebook import NoSuchNameError, PlainError, WrongValueError
from workbench.presets import UINT_MAX
from workbench.scenarios.beliefs import SHOWN
from workbench.scenarios.beside import Bars, Beside, InStep, Measured, Value
from workbench.scenarios.run import Run
from workbench.trace.given import given as taken
from workbench.trace.schema import Row

from .table import words_of

FORMS = 20  # in how many forms a question is asked again before they begin anew


Steps = InStep | Measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a run says about a question, or about one wrong answer to it.

    Attributes:
        answer: the right one (of a wrong answer: what is answered); a key of `choices`, if the
            question has those.
        wrong: what is answered by whoever has a misconception, by its name; `Facts` where its words
            name facts of their own, and several if it leads to several answers.
        seen: the row at which the answer can be seen in a picture of the lesson.
        shown: the run in which a misconception can be shown beside the rule.
        beside: what a misconception can be shown beside, in step; for all, or by its name.
        case: which of several `right` texts holds.
        named: everything else that the words name.
    """

    answer: Answer
    wrong: Mapping[str, Answer | Facts | Sequence[Facts]] = field(default_factory=dict)
    seen: Row | None = None
    shown: Run | None = None
    beside: Steps | Mapping[str, Steps] = field(default_factory=dict)
    case: str | None = None
    named: Mapping[str, Any] = field(default_factory=dict)


def facts(
    answer: Answer,
    *,
    wrong: Mapping[str, Answer | Facts | Sequence[Facts]] | None = None,
    seen: Row | None = None,
    shown: Run | None = None,
    beside: Steps | Mapping[str, Steps] | None = None,
    case: str | None = None,
    **named: Any,
) -> Facts:
    """What a run says; the words may name each of `named`, and `answer`."""
    return Facts(
        answer=answer,
        wrong=wrong or {},
        seen=seen,
        shown=shown,
        beside=beside or {},
        case=case,
        named=named,
    )


# What a question's function gives when it yields first what its text names. It returns None as long
# as what it reads has not happened: then the learner is told the question's `wait`.
Found = Generator[Mapping[str, Any], None, Facts | None]
Find = Callable[..., Facts | Found | None]


@contextmanager
def reached() -> Iterator[None]:
    """Says in one sentence that a run never comes to what is read in it. A decorator, too.

    A learner may change every number of a cell, and a lesson's functions look for rows that a run
    of other numbers has not.

    Raises:
        WrongValueError: it does not.
    """
    try:
        yield
    except (PlainError, FactError):
        raise
    except (
        ArithmeticError, AssertionError, LookupError, RuntimeError, StopIteration, ValueError,
    ) as error:  # fmt: skip
        raise WrongValueError(say("strayed")) from error


def largest(figures: Mapping[str, float]) -> str:
    """The name of the largest figure.

    Raises:
        WrongValueError: two are equally large, so nothing is to be said of one.
    """
    first, *others = sorted(figures, key=lambda name: figures[name], reverse=True)
    if others and round(figures[first]) == round(figures[others[0]]):
        raise WrongValueError(say("tie", first=first, second=others[0]))
    return first


class Asked:
    """A question of a lesson; to call it is to ask it, in a widget.

    Args:
        lesson: two digits.
        name: of the question, as the TOML file has it.
        words: its table in that file.
        find: gives its facts.
    """

    def __init__(self, lesson: str, name: str, words: Mapping[str, Any], find: Find) -> None:
        self.lesson = lesson
        self.name = name
        self.words = words
        self.find = find
        functools.update_wrapper(self, find)  # so that help() tells the arguments

    def __call__(self, *args: Any, **kwargs: Any) -> ShowMe:
        """The widget that asks, and shows what contradicts a wrong answer."""
        return ShowMe(PredictionView(Prediction(self.question(*args, **kwargs))))

    def again(self, inputs: Callable[[int], Mapping[str, Any]], kept_as: str = "") -> None:
        """Let later lessons ask again.

        Args:
            inputs: gives the arguments of the n-th of twenty forms.
            kept_as: the name under which they are kept, where it depends on the arguments.
        """

        def make(form: int) -> Question:
            return self._question(inputs(form % FORMS), self.words.get("again", self.words["ask"]))

        recall.register(self.lesson, kept_as or self.words.get("kept_as", self.name))(make)

    def question(self, *args: Any, **kwargs: Any) -> Question:
        """The question with its numbers."""
        return self._question(taken(self.find, args, kwargs).arguments, self.words["ask"])

    def _question(self, inputs: Mapping[str, Any], ask: str) -> Question:
        given = {**inputs, **self._first(inputs)}
        shown = given.get("choices") or self.words.get("choices") or {}
        if not isinstance(shown, Mapping):
            shown = {one: one for one in shown}
        choices = {key: told(text, given) for key, text in shown.items()}
        return Question(
            name=f"{self.lesson}/{self._kept_as(given)}",
            text=told(ask, given),
            solve=lambda: self._solution(inputs, given, choices),
            choices=tuple(choices.values()),
            unit=self.words.get("unit", words("asking")["unit"]),
            minimum=given.get("minimum", 0),
            maximum=given.get("maximum", UINT_MAX),
            hints=tuple(told(hint, given) for hint in self.words.get("hints", ())),
        )

    def _kept_as(self, given: Mapping[str, Any]) -> str:
        """The name under which answers are kept: another question's, or one for each rule."""
        return told(self.words.get("kept_as", self.name), given)

    def _known_as(self, misconception: str) -> str | None:
        """The name under which it can be searched; None if it cannot be."""
        # Some have the name of one about a link's rule and are not about that rule.
        name = self.words.get("known_as", {}).get(misconception, misconception)
        return name if self.words.get("search", True) and name in SHOWN else None

    def _first(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the function yields before anything is answered."""
        if not inspect.isgeneratorfunction(self.find):
            return {}
        with reached():
            first: Mapping[str, Any] = next(self.find(**inputs))
        return first

    def _facts(self, inputs: Mapping[str, Any]) -> Facts | None:
        found = self.find(**inputs)
        if found is None or isinstance(found, Facts):
            return found
        next(found)
        try:
            next(found)
        except StopIteration as end:
            result: Facts | None = end.value
            return result
        raise TypeError(f"{self.name}: a question yields once, and returns its facts")

    def _solution(
        self, inputs: Mapping[str, Any], given: Mapping[str, Any], choices: Mapping[Answer, str]
    ) -> Solution:
        with reached():
            found = self._facts(inputs)
        if found is None:
            raise NotYetError(told(self.words["wait"], given))

        def shown(answer: Answer) -> Answer:
            return choices[answer] if choices else answer

        named = {**given, **found.named, "answer": shown(found.answer)}
        right, wrong = self.words["right"], self.words.get("wrong", {})
        return Solution(
            answer=shown(found.answer),
            reason=told(right if found.case is None else right[found.case], named),
            beliefs=tuple(
                Belief(
                    name=name,
                    answer=shown(one.answer),
                    because=told(
                        wrong if isinstance(wrong, str) else wrong[name], {**named, **one.named}
                    ),
                    known_as=self._known_as(name),
                    beside=_beside(found, name, shown(one.answer), named["answer"]),
                )
                for name, answered in found.wrong.items()
                for one in _each(answered)
            ),
            seen=found.seen,
            shown=found.shown,
        )


def _beside(found: Facts, name: str, wrong: Value, right: Value) -> Beside | Bars | None:
    """A misconception in step with the run, if the question says how."""
    by = found.beside if isinstance(found.beside, Steps) else found.beside.get(name)
    return None if by is None else by.beside(name, wrong, right)


def _each(answered: Answer | Facts | Sequence[Facts]) -> Sequence[Facts]:
    if isinstance(answered, Facts):
        return (answered,)
    return (facts(answered),) if isinstance(answered, int | str) else answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a check found.

    Attributes:
        name: of the text that holds: below `right`, `wrong` or `unclear` in the check's table, or
            one of those words itself where it has that text alone.
        about: what was judged, as the log keeps it; None: the run, or the first argument.
        belief: the misconception that is behind it, as the log keeps it.
        named: what the text names besides the check's arguments.
    """

    name: str
    about: object = None
    belief: str | None = None
    named: Mapping[str, Any] = field(default_factory=dict)


def case(name: str, /, *, about: object = None, belief: str | None = None, **named: Any) -> Case:
    """Which of a check's texts holds, and what that text names."""
    return Case(name=name, about=about, belief=belief, named=named)


# What any check may say when there is nothing to judge yet.
UNCLEAR = {name: words("asking")[name] for name in ("untouched", "unanswered")}
RIGHT = {"right": True, "wrong": False, "unclear": None}


# What sees a case, or several, of which all is told.
Sees = Callable[..., Case | tuple[Case, ...]]


def _judged(
    words: Mapping[str, Any], found: Case, named: Mapping[str, Any]
) -> tuple[bool | None, str]:
    """Whether a case is right, and its text from a check's table.

    Raises:
        FactError: if there is no such text.
    """
    for group, right in RIGHT.items():
        texts = words.get(group, {})
        if isinstance(texts, str):
            texts = {group: texts}
        if group == "unclear":
            texts = {**UNCLEAR, **texts}
        if found.name in texts:
            return right, told(texts[found.name], {**named, **found.named})
    raise FactError(f"there is no text for the case {found.name!r}")


class Names(SimpleNamespace):
    """What a lesson asks, or checks, as attributes."""

    def __getattr__(self, name: str) -> Any:
        there = ", ".join(vars(self))
        raise NoSuchNameError(say("no-name", name=name, there=there))


class Declared:
    """What a lesson asks and checks, by the names that its notebook uses.

    Args:
        number: of the lesson, two digits.

    Attributes:
        words: what its TOML file holds.
        predict: its questions.
        check: its checks.
    """

    def __init__(self, number: str) -> None:
        self.number = number
        self.words = words_of(number)
        self.predict = Names()
        self.check = Names()

    def say(self, key: str, /, **named: Any) -> str:
        """A text of the file's table `said`, with what it names.

        Raises:
            FactError: if there is none.
        """
        text = found(self.words["said"], key)
        if text is None:
            raise FactError(f"lesson_{self.number}.toml says no {key}")
        return told(text, named)

    def joined(self, key: str, several: Sequence[object], /) -> str:
        """Several in one text, by a text of `said` that names `one` and `other`."""
        if not several:
            return ""
        return functools.reduce(
            lambda one, other: self.say(key, one=one, other=other), map(str, several)
        )

    def asks(self, find: Find) -> Asked:
        """Make a question of a function that gives its facts. A decorator."""
        name = find.__name__.replace("_", "-")
        asked = Asked(self.number, name, self.words[name], find)
        setattr(self.predict, find.__name__, asked)
        return asked

    def checks(
        self,
        *,
        scenarios: tuple[str, ...] = (),
        acted: bool = False,
        hints: tuple[Callable[..., Case], ...] = (),
    ) -> Callable[[Sees], Judge]:
        """Make a check of a function that finds a case. A decorator.

        Args:
            scenarios: whose stage or run the first argument must be; none if that is not one.
            acted: it judges what a learner has done: a stage that shows the run with which it
                began, or a run without an action, is not judged yet.
            hints: that are worked out; they come after those of the TOML file.
        """

        def make(find: Sees) -> Judge:
            name = find.__name__.replace("_", "-")
            words = self.words["check"][name]

            def hinted(hint: Callable[..., Case]) -> CheckHint:
                def say(*args: Any, **kwargs: Any) -> str:
                    bound = taken(find, args, kwargs)
                    found = hint(*bound.args, **bound.kwargs)
                    named = {**bound.arguments, **found.named}
                    return told(words["hint"][found.name], named)

                return say

            @functools.wraps(find)
            def judge(*args: Any, **kwargs: Any) -> Verdict:
                bound = taken(find, args, kwargs)
                named = bound.arguments
                first = next(iter(named.values()))
                if acted and is_untouched(first):
                    found: Case | tuple[Case, ...] = case("untouched")
                elif any(one is ... for one in named.values()):
                    found = case("unanswered")
                else:
                    with reached():
                        found = find(*bound.args, **bound.kwargs)
                cases = (found,) if isinstance(found, Case) else found
                about = cases[0].about
                if about is None:
                    about = Run.shown_by(first).name if scenarios else first
                said = [_judged(words, one, named) for one in cases]
                right, text = said[0][0], " ".join(text for _, text in said)
                if right is None:
                    return not_yet(text)
                return judged(about, right, text, cases[0].belief)

            ladder = (*words.get("hints", ()), *map(hinted, hints))
            check = checks(self.number, name, scenarios=scenarios, hints=ladder)(judge)
            setattr(self.check, find.__name__, check)
            return check

        return make
