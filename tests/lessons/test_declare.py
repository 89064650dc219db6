"""A lesson's words and its facts fit together: none is unknown, none is unused, none is missing."""

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from workbench.exercises.question import judge
from workbench.exercises.show_me import ShowMe
from workbench.lessons import declare
from workbench.lessons.declare import Asked, FactError, facts, told
from workbench.lessons.table import HERE, LESSONS, words_of

DECLARED = sorted(path for path in HERE.glob("lesson_*.py"))
RESERVED = {"lesson", "check"}


def number_of(path: Path) -> str:
    """The lesson's two digits."""
    return path.stem.removeprefix("lesson_")


def asked() -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Lesson, name and function of every question."""
    for path in DECLARED:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                marks = [ast.unparse(mark) for mark in node.decorator_list]
                if "lesson.asks" in marks:
                    yield number_of(path), node.name.replace("_", "-"), node


ASKED = list(asked())
EACH = pytest.mark.parametrize(
    ("lesson", "name", "find"), ASKED, ids=[f"{lesson}/{name}" for lesson, name, _ in ASKED]
)


def named_in(*templates: object) -> set[str]:
    """The facts that words name."""
    found: set[str] = set()
    for template in templates:
        if isinstance(template, dict):
            found |= named_in(*template.values())
        elif isinstance(template, list):
            found |= named_in(*template)
        else:
            found |= {name for _, name, _, _ in Formatter().parse(str(template)) if name}
    return found


def keys_of(node: ast.AST | None) -> set[str]:
    """The keys of the dicts that are written out in an expression."""
    dicts = [one for one in ast.walk(node) if isinstance(one, ast.Dict)] if node else []
    return {ast.literal_eval(key) for one in dicts for key in one.keys if key}


SHAPE = {"wrong", "seen", "case"}
RANGE = {"choices", "minimum", "maximum"}


def given_by(find: ast.FunctionDef) -> tuple[set[str], set[str], set[str]]:
    """What a question's function yields, what it returns, and its misconceptions."""
    first: set[str] = set()
    then: set[str] = set()
    wrong: set[str] = set()
    for node in ast.walk(find):
        if isinstance(node, ast.Yield):
            first |= keys_of(node.value)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "facts":
            then |= {one.arg for one in node.keywords if one.arg}
            for one in node.keywords:
                wrong |= keys_of(one.value) if one.arg == "wrong" else set()
    return first, then - SHAPE, wrong


@EACH
def test_every_fact_that_the_words_name_is_given(lesson, name, find):
    """What is asked knows the arguments and what was yielded; the rest what was returned too."""
    words = words_of(lesson)[name]
    first, then, _ = given_by(find)
    asking = {argument.arg for argument in find.args.args} | first
    before = named_in(words["ask"], words.get("again", ""), words.get("hints", []))
    assert before <= asking
    after = named_in(words["right"], words.get("wrong", {}))
    assert after <= asking | then | {"answer"}


@EACH
def test_every_fact_that_is_given_is_named_in_the_words(lesson, name, find):
    """A fact that no word needs would be worked out in vain."""
    words = words_of(lesson)[name]
    first, then, _ = given_by(find)
    assert (first | then) - RANGE <= named_in(words)


@EACH
def test_the_misconceptions_of_words_and_facts_are_the_same(lesson, name, find):
    """Each has words, and an answer that the function gives."""
    _, _, wrong = given_by(find)
    words = words_of(lesson)[name].get("wrong", {})
    assert isinstance(words, str) or set(words) == wrong


@pytest.mark.parametrize("path", DECLARED, ids=lambda path: path.stem)
def test_every_table_of_the_file_has_its_function(path):
    """A question that nobody asks would be dead words."""
    lesson = number_of(path)
    tables = set(words_of(lesson)) - RESERVED
    assert tables == {name for of, name, _ in ASKED if of == lesson}


def test_the_map_has_every_lesson_in_order():
    """Thirteen are planned, and the index is none of them."""
    assert [lesson.number for lesson in LESSONS] == [f"{n:02}" for n in range(1, 13)]


# -- the machinery


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{n:message} came", "3 messages came"),
        ("{one:message} came", "1 message came"),
        ("{none:Message} came", "No messages came"),
        ("{n:more/more} came", "3 more came"),
        ("{share:.0%} of {big:,}", "25% of 1,200"),
        ("link {name}", "link in"),
    ],
)
def test_numbers_are_told_with_their_nouns(template, text):
    """One, several, none; and whatever Python's own format makes."""
    named = {"n": 3, "one": 1, "none": 0, "share": 0.25, "big": 1200, "name": "in"}
    assert told(template, named) == text


def test_an_unknown_fact_is_told_by_its_name():
    """With those there are."""
    with pytest.raises(FactError, match="no fact 'sent'; there are: left, publish"):
        told("{sent} came", {"publish": 3, "left": 1})


WORDS = {
    "ask": "{n:message} wait. How many come?",
    "right": {"some": "{answer:message} came.", "all": "All {answer} came."},
    "wrong": {"half": "Half of {n} is {half}.", "every": "Not {n}."},
    "hints": ["At most {n}."],
}


def some(n):
    """A question about nothing but numbers."""
    yield {"maximum": n}
    half = facts(n // 2, half=n // 2)
    return facts(n - 1, case="some", wrong={"half": half, "every": n})


def test_words_and_facts_make_a_question():
    """Text, range, hints at once; the answer and its reasons when it is solved."""
    question = Asked("01", "some", WORDS, some).question(6)
    assert (question.name, question.text) == ("01/some", "6 messages wait. How many come?")
    assert (question.maximum, question.hints) == (6, ("At most 6.",))
    solution = question.solve()
    assert (solution.answer, solution.reason) == (5, "5 messages came.")
    assert judge(3, solution).belief == "half"
    assert "Half of 6 is 3." in judge(3, solution).text
    assert "Not 6." in judge(6, solution).text


def test_nothing_is_worked_out_before_it_is_asked_for():
    """To make a question is to run its function up to what its text names."""
    reached = []

    def find(n):
        yield {}
        reached.append(n)
        return facts(n, case="all")

    question = Asked("01", "find", WORDS, find).question(4)
    assert reached == []
    assert question.solve().reason == "All 4 came."
    assert reached == [4]


def test_an_answer_among_choices_is_a_key_of_its_words():
    """So the module holds no text that a learner reads."""
    words = {
        "ask": "Who?", "right": "It was {answer}.", "wrong": {"me": "No."},
        "choices": {"s": "the sender", "r": "the receiver"},
    }  # fmt: skip
    question = Asked("01", "who", words, lambda: facts("s", wrong={"me": "r"})).question()
    assert question.choices == ("the sender", "the receiver")
    assert question.solve().reason == "It was the sender."
    assert judge("the receiver", question.solve()).belief == "me"


def test_a_misconception_about_a_rule_can_be_shown_contradicted():
    """Every question can; one that means something else by the name says so."""
    plain = {"ask": "?", "right": "!"}
    make = lambda words: Asked("01", "q", words, lambda: facts(1))()  # noqa: E731
    assert isinstance(make(plain), ShowMe)
    assert not isinstance(make({**plain, "search": False}), ShowMe)


def test_what_is_asked_again_keeps_its_name(monkeypatch):
    """Another text, another form, even another question: the log knows it by the first name."""
    kept = {}
    monkeypatch.setattr(
        declare.recall, "register", lambda *name: lambda make: kept.setdefault(name, make)
    )
    words = {"ask": "Now {n}?", "again": "{n} once more?", "right": "!", "kept_as": "first"}
    Asked("01", "second", words, lambda n: facts(n)).again(lambda form: {"n": form})
    question = kept["01", "first"](23)
    assert (question.name, question.text) == ("01/first", "3 once more?")
