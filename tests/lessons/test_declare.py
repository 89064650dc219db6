"""A lesson's words and its facts fit together: none is unknown, none is unused, none is missing."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from string import Formatter

import pytest

from tests.test_languages import keys_in, leaves
from workbench.exercises.progress import Progress
from workbench.exercises.question import NotYetError, judge
from workbench.exercises.show_me import ShowMe
from workbench.languages import ENGLISH, words_in
from workbench.lessons import declare, instructors
from workbench.lessons.declare import UNCLEAR, Asked, FactError, case, facts, told
from workbench.lessons.table import LESSONS, words_of
from workbench.scenarios.beliefs import SHOWN

HERE = Path(declare.__file__).parent
DECLARED = sorted(path for path in HERE.glob("lesson_*.py"))
RESERVED = {"lesson", "check", "said"}


def number_of(path: Path) -> str:
    """The lesson's two digits."""
    return path.stem.removeprefix("lesson_")


def marked(mark: str) -> Iterator[tuple[str, str, ast.FunctionDef]]:
    """Lesson, name and function of everything that a decorator declares."""
    for path in DECLARED:
        for name, node in functions_of(path).items():
            if any(ast.unparse(each).startswith(mark) for each in node.decorator_list):
                yield number_of(path), name.replace("_", "-"), node


def functions_of(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions of a module by name."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def each(found: list[tuple[str, str, ast.FunctionDef]]) -> pytest.MarkDecorator:
    """One test for each."""
    ids = [f"{lesson}/{name}" for lesson, name, _ in found]
    return pytest.mark.parametrize(("lesson", "name", "find"), found, ids=ids)


ASKED, CHECKED = list(marked("lesson.asks")), list(marked("lesson.checks"))
EACH = each(ASKED)


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


SHAPE = {"wrong", "seen", "shown", "beside", "case"}
RANGE = {"choices", "minimum", "maximum"}


def calls(node: ast.AST, *names: str) -> list[ast.Call]:
    """The calls of functions of these names in a function."""
    found = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    return [one for one in found if ast.unparse(one.func) in names]


HELPERS = {
    name: node
    for path in (*DECLARED, HERE / "neighbours.py")
    for name, node in functions_of(path).items()
    if calls(node, "facts") and not node.decorator_list
}
"""Functions that give facts for several questions."""


def given_by(find: ast.FunctionDef) -> tuple[set[str], set[str], set[str]]:
    """What a question's function yields, what it returns, and its misconceptions."""
    first: set[str] = set()
    then: set[str] = set()
    wrong: set[str] = set()
    helping = [HELPERS[name] for name in HELPERS if calls(find, name)]
    for node in ast.walk(find):
        if isinstance(node, ast.Yield):
            first |= keys_of(node.value)
    for function in (find, *helping):
        for call in calls(function, "facts", *HELPERS):
            then |= {one.arg for one in call.keywords if one.arg}
            for one in call.keywords:
                wrong |= keys_of(one.value) if one.arg == "wrong" else set()
    return first, then - SHAPE, wrong


@EACH
def test_every_fact_that_the_words_name_is_given(lesson, name, find):
    """What is asked knows the arguments and what was yielded; the rest what was returned too."""
    words = words_of(lesson)[name]
    first, then, _ = given_by(find)
    asking = {argument.arg for argument in find.args.args} | first
    before = named_in(*(words.get(part, []) for part in ("ask", "again", "choices", "hints")))
    assert before <= asking
    after = named_in(words["right"], words.get("wrong", {}))
    assert named_in(words.get("wait", "")) <= asking
    assert after <= asking | then | {"answer"}


@EACH
def test_every_fact_that_is_given_is_named_in_the_words(lesson, name, find):
    """A fact that no word needs would be worked out in vain."""
    words = words_of(lesson)[name]
    first, then, _ = given_by(find)
    assert (first | then) - RANGE <= named_in(words)


@EACH
def test_what_a_misconception_is_known_as_can_be_shown(lesson, name, find):
    """It is one of the question's, and can be shown beside the rule by the other name."""
    words = words_of(lesson)[name]
    for of, known_as in words.get("known_as", {}).items():
        assert of in words["wrong"]
        assert known_as in SHOWN


@EACH
def test_the_misconceptions_of_words_and_facts_are_the_same(lesson, name, find):
    """Each has words, and an answer that the function gives."""
    _, _, wrong = given_by(find)
    words = words_of(lesson)[name].get("wrong", {})
    assert isinstance(words, str) or set(words) == wrong


def cases_of(lesson: str, find: ast.FunctionDef) -> dict[str, set[str]]:
    """The cases that a check finds, itself or by other functions of its module, and their facts."""
    there = functions_of(HERE / f"lesson_{lesson}.py")
    seen: set[str] = set()
    todo = [find.name]
    found: dict[str, set[str]] = {}
    while todo:
        name = todo.pop()
        seen.add(name)
        for node in ast.walk(there[name]):
            if isinstance(node, ast.Name) and node.id.startswith("_"):
                todo += {node.id} & there.keys() - seen
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "case":
                facts = {one.arg for one in node.keywords if one.arg} - {"about", "belief"}
                names = [
                    one
                    for one in ast.walk(node.args[0])
                    if isinstance(one, ast.Constant) and isinstance(one.value, str)
                ]
                found |= {one.value: facts for one in names}
    return found


def texts_of(words: dict) -> dict[str, str]:
    """The texts of a check's table by the names of their cases."""
    found = {}
    for group in ("right", "wrong", "unclear", "hint"):
        texts = words.get(group, {})
        found |= {group: texts} if isinstance(texts, str) else texts
    return found


@each(CHECKED)
def test_the_cases_of_a_check_and_its_texts_are_the_same(lesson, name, find):
    """Each case has its text, each text its case, and each fact is named where it is given."""
    words = words_of(lesson)["check"][name]
    texts = texts_of(words)
    cases = cases_of(lesson, find)
    assert cases.keys() - UNCLEAR.keys() == texts.keys()
    arguments = find.args.args + find.args.kwonlyargs
    given = {argument.arg for argument in arguments}
    for text in texts:
        assert named_in(texts[text]) <= given | cases[text]
        together = [texts[one] for one in texts if cases[one] == cases[text]]  # of one call
        assert cases[text] <= named_in(*together)


@EACH
def test_a_question_that_may_be_asked_too_early_says_what_must_happen(lesson, name, find):
    """Its function returns None as long as that has not; no other question needs the words."""
    returned = [one.value for one in ast.walk(find) if isinstance(one, ast.Return)]
    may_be_early = any(isinstance(one, ast.Constant) and one.value is None for one in returned)
    assert may_be_early == ("wait" in words_of(lesson)[name])


@pytest.mark.parametrize("path", DECLARED, ids=lambda path: path.stem)
def test_every_table_of_the_file_has_its_function(path):
    """A question that nobody asks would be dead words."""
    lesson = number_of(path)
    words = words_of(lesson)
    assert words.keys() - RESERVED == {name for of, name, _ in ASKED if of == lesson}
    assert words["check"].keys() == {name for of, name, _ in CHECKED if of == lesson}


@pytest.mark.parametrize("path", DECLARED, ids=lambda path: path.stem)
def test_every_text_that_is_said_elsewhere_is_asked_for_and_no_other(path):
    """A text that nobody asks for is dead; to ask for one that is not there is an error."""
    asked = {
        key
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("say", "lesson.say", "lesson.joined")
        for key in keys_in(node.args[0])
    }
    texts = {".".join(way) for way, _ in leaves(words_of(number_of(path)).get("said", {}))}
    assert [text for text in texts if not any(fnmatchcase(text, key) for key in asked)] == []
    assert [key for key in asked if not any(fnmatchcase(text, key) for text in texts)] == []


def test_the_map_has_every_lesson_in_order():
    """The index is none of them."""
    assert [lesson.number for lesson in LESSONS] == [f"{n:02}" for n in range(1, 13)]


def test_the_notes_for_instructors_are_those_of_the_lessons():
    """They are made, and not written; no sentence with a fact is in them."""
    text = instructors.FILE.read_text(encoding="utf-8")
    assert text == instructors.text(), "run: python -m workbench.lessons.instructors"
    prose = re.sub(r"```python.*?```", "", instructors.text(), flags=re.DOTALL)
    assert "{" not in prose


def test_the_notes_for_instructors_are_english_in_every_language(speak):
    """Who writes them anew need not unset the language first."""
    speak("de")
    assert words_of("01")["check"] != words_in(ENGLISH, "lesson_01")["check"]
    assert instructors.FILE.read_text(encoding="utf-8") == instructors.text()


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


def seen(n, most=3):
    """A check of nothing but a number."""
    return case("many", over=n - most) if n > most else case("none" if n < 1 else "right")


@pytest.fixture
def checked(monkeypatch):
    """The check `seen`, with words for its cases."""
    texts = {
        "wrong": {"many": "{over} over {most}."},
        "unclear": {"none": "{n} is nothing."},
        "hint": {"so": "Fewer than {less}."},
        "right": "{n:message} seen.",
        "hints": ["Count."],
    }
    monkeypatch.setattr(declare, "words_of", lambda number: {"check": {"seen": texts}})
    hint = lambda n, most=3: case("so", less=most + 1)  # noqa: E731
    return declare.Declared("01").checks(hints=(hint,))(seen)


@pytest.mark.parametrize(
    ("n", "right", "text"),
    [(5, False, "2 over 3."), (0, None, "0 is nothing."), (2, True, "2 messages seen.")],
)
def test_words_and_a_case_make_a_verdict(checked, n, right, text):
    """The group of the text says what it is worth; the log keeps what was judged."""
    log = Progress()
    verdict = checked(n, log=log)
    assert (verdict.right, verdict.text) == (right, text)
    assert [one.answer for one in log.records] == ([] if right is None else [str(n)])
    assert checked(n, hints=2, log=log).hints == ("Count.", "Fewer than 4.")


def test_what_has_not_happened_yet_is_waited_for():
    """Before it yields facts or after it: the learner is told what must happen."""
    words = {"ask": "How many of {n}?", "wait": "Let {n} through first.", "right": "!"}

    def after(n):
        yield {}
        return None

    for find in (lambda n: None, after):
        with pytest.raises(NotYetError, match="Let 4 through"):
            Asked("11", "q", words, find).question(4).solve()


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
    plain = {"ask": "?", "right": "!", "wrong": {"adds": "No."}}
    make = lambda words: Asked("01", "q", words, lambda: facts(1, wrong={"adds": 2}))  # noqa: E731
    assert isinstance(make(plain)(), ShowMe)
    assert make(plain).question().solve().beliefs[0].known_as == "adds"
    assert make({**plain, "search": False}).question().solve().beliefs[0].known_as is None


def test_a_misconception_is_searched_by_the_name_that_it_is_known_as():
    """Its own name stays in the log."""
    words = {"ask": "?", "right": "!", "wrong": {"mine": "No."}, "known_as": {"mine": "adds"}}
    shown = Asked("01", "q", words, lambda: facts(1, wrong={"mine": 2}))()
    shown.prediction.commit("2")
    assert shown.prediction.compare(None).belief == "mine"
    assert shown.belief.known_as == "adds"


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
