"""Codes that learners read out, and the room's histogram that is made of them."""

import json
import random
from datetime import UTC, datetime

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from tests.exercises.golden import CREDIT
from workbench.exercises import sections
from workbench.exercises.classroom import Classroom, bars_of, classroom
from workbench.exercises.codes import ALPHABET, CodeError, asked, code_of, codes_in, read_code
from workbench.exercises.headings import Heading
from workbench.exercises.polls import heard, heard_in_poll
from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import CONFIDENCES, GUESS, SURE, Progress
from workbench.exercises.question import Belief, Prediction, Question, Solution
from workbench.exercises.show_me import ShowMe
from workbench.lessons.lesson_01 import predict
from workbench.lessons.table import LESSONS, words_of
from workbench.notebook import WrongValueError
from workbench.scenarios import run

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOLUTION = Solution(
    answer=5, reason="It was five.",
    beliefs=(
        Belief(name="adds", answer=8, because="nothing is added.", known_as="adds"),
        Belief(name="sets", answer=6, because="some had left.", known_as="sets"),
    ),
)  # fmt: skip


def question(text="How many?", **more) -> Question:
    """A question of lesson 01 whose run says five."""
    return Question(name="01/after-grant", text=text, solve=lambda: SOLUTION, **more)


CHOICES = question(choices=("none", "only what was on the wire", "more"))


@pytest.mark.parametrize("sure", [None, *CONFIDENCES])
@pytest.mark.parametrize(
    ("asked_so", "answer"), [(question(), 0), (question(), 65535), (CHOICES, "more")]
)
def test_a_code_says_what_was_committed(asked_so, answer, sure):
    """Answer and confidence come back, however the code is typed."""
    code = code_of(asked_so, answer, sure)
    assert len(code.replace("-", "")) == 8
    for typed in (code, code.lower(), code.replace("-", " "), code.replace("0", "O")):
        told = read_code(typed, asked_so)
        assert (told.answer, told.confidence) == (answer, sure)


def test_an_answer_too_large_for_a_code_is_recognised_where_it_is_known():
    """Its hash stands for it: 4294967295 falls into the bar of whoever thinks so."""
    believed = Solution(
        answer=3, reason="", beliefs=(Belief(name="naive", answer=4294967295, because=""),)
    )
    told = [read_code(code_of(question(), 4294967295), question())]
    assert told[0].answer is None
    assert [(bar.name, bar.number) for bar in bars_of(question(), believed, told)] == [
        ("right", 0), ("naive", 1),
    ]  # fmt: skip


def test_a_mistyped_code_is_refused():
    """Each of the eight characters, replaced by any other, gives no answer of this question."""
    code = code_of(question(), 8, SURE).replace("-", "")
    wrong = [
        code[:at] + letter + code[at + 1 :]
        for at in range(8)
        for letter in ALPHABET
        if letter != code[at]
    ]
    read = 0
    for one in wrong:
        try:
            read_code(one, question())
            read += 1
        except CodeError:
            pass
    assert read <= len(wrong) // 40  # a check of seven bits lets one in 128 pass


def test_a_code_about_other_numbers_is_not_counted():
    """A learner who changed the cell has answered another question."""
    other = code_of(question("How many of 70?"), 5)
    with pytest.raises(CodeError, match="other numbers"):
        read_code(other, question("How many of 10?"))


def test_questions_of_a_lesson_have_codes_of_their_own():
    """No two of them share their ten bits, so that a code of another question is recognised."""
    for lesson in LESSONS:
        names = {
            f"{lesson.number}/{words.get('kept_as', name)}"
            for name, words in words_of(lesson.number).items()
            if "ask" in words
        }
        codes = {
            code_of(Question(name=name, text="", solve=lambda: SOLUTION), 0)[:3] for name in names
        }
        assert len(codes) == len(names)


def test_thirty_codes_with_rubbish_around_them_give_the_histogram():
    """Names, times, greetings, blank lines, any order: what is a code counts, the rest is told."""
    given = [(5, GUESS)] * 11 + [(8, SURE)] * 12 + [(6, None)] * 5 + [(77, SURE)] * 2
    lines = [
        f"09:{minute:02d} Learner{minute}: my code is {code_of(question(), *one)} :-)"
        for minute, one in enumerate(given)
    ]
    lines += ["", "can you repeat the question please?", "A1B2-C3D4"]
    random.Random(7).shuffle(lines)
    found = heard(question(), lines)
    assert len(found.told) == 30
    assert {line for line, _ in found.unread} == {
        "can you repeat the question please?", "A1B2-C3D4",
    }  # fmt: skip
    bars = [(bar.name, bar.number, bar.sure) for bar in bars_of(question(), SOLUTION, found.told)]
    assert bars == [("right", 11, 0), ("adds", 12, 12), ("sets", 5, 0), ("another answer", 2, 2)]


def test_a_line_that_was_pasted_twice_counts_once():
    """With a name in it; two bare codes are two learners with the same answer."""
    code = code_of(question(), 8)
    found = heard(question(), [f"Anna {code}", f"Anna  {code}", f"Ben {code}", code, code])
    assert (len(found.told), found.repeated) == (4, 1)
    assert "word for word" in found.report


def test_a_poll_is_read_by_codes_or_by_words():
    """Whichever a row has; its head is no answer, and what is neither is told."""
    code = code_of(CHOICES, "more", SURE)
    text = f"Time,Name,Answer,Sure\n9:01,A,{code},\n9:02,B,none,sure\n9:03,C,perhaps,\n"
    found = heard_in_poll(CHOICES, text)
    assert [(one.answer, one.confidence) for one in found.told] == [
        ("more", SURE), ("none", SURE),
    ]  # fmt: skip
    assert len(found.unread) == 1


@pytest.mark.parametrize("between", ["; ", ";", "\t", ","])
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_poll_is_read_as_the_spreadsheet_of_any_country_writes_it(tmp_path, between, coding):
    """Columns part at what its head has most of; by the file's name as by the button."""
    rows = [["Zeit", "Größe, in cm", "answer", "sure"], ["9:01", "180", "5", "sure"]]
    rows[0][1] = f'"{rows[0][1]}"'
    rows.append(["9:02", "170", "8"])
    file = tmp_path / "poll.csv"
    file.write_bytes("\r\n".join(between.join(row) for row in rows).encode(coding))
    asked["01/after-grant"] = question()
    by_name = classroom("01/after-grant", csv=file)
    by_button = Classroom(question())
    by_button.poll.value = [
        {
            "name": "poll.csv", "type": "text/csv", "size": 0, "last_modified": NOW,
            "content": memoryview(file.read_bytes()),
        }
    ]  # fmt: skip
    for room in (by_name, by_button):
        assert [(one.answer, one.confidence) for one in room.heard.told] == [(5, SURE), (8, None)]
        assert room.heard.unread == []


def test_a_poll_that_is_not_there_is_told_in_a_line(tmp_path):
    """A slip in the file's name, and a folder in its place."""
    predict.after_grant(run("credit"), link_credit=3)
    with pytest.raises(WrongValueError, match=r"nowhere\.csv: No such file or directory$"):
        classroom("01/after-grant", csv=tmp_path / "nowhere.csv")
    with pytest.raises(WrongValueError, match=r": Is a directory$"):
        classroom("01/after-grant", csv=tmp_path)


def test_the_head_of_a_poll_is_no_answer_that_could_not_be_read():
    """A first row with what may be a mistyped code is one."""
    code = code_of(question(), 5)
    head = heard_in_poll(question(), f"Name,Code\nAnna,{code}\n")
    assert (len(head.told), head.unread) == (1, [])
    row = heard_in_poll(question(), f"Ben,A1B2-C3D4\nAnna,{code}\n")
    assert [line for line, _ in row.unread] == ["Ben, A1B2-C3D4"]


def test_the_report_is_made_of_sentences():
    """Each begins with a capital and ends with one full stop."""
    found = heard_in_poll(question(), "answer\nperhaps\n-1\n")
    assert found.report.startswith("No answers read. 2 lines could not be read: “perhaps” ")
    assert found.report.endswith(" 4294967295.")
    assert "." not in found.report.replace(". ", " ")[:-1]


def test_words_that_are_no_codes_are_quick_to_see():
    """A line has few candidates, the eight characters in a row first."""
    assert next(codes_in("Eva, 0T4C-81ZK")) == "0T4C81ZK"
    assert next(codes_in("Eva 0T4C81ZK")) == "0T4C81ZK"


def test_the_widget_shows_the_code_after_commit_and_not_before():
    """It follows the answer and how sure the learner is."""
    view = PredictionView(Prediction(question()), Progress())
    assert view.code.value == ""
    view.field.value = "8"
    view.commit.click()
    assert code_of(question(), 8) in view.code.value
    view.confidence.value = SURE
    assert code_of(question(), 8, SURE) in view.code.value


def test_a_bar_plays_its_rule_beside_the_rule():
    """By a key as by a click, in the run of the question."""
    queue = run("credit", parameters={"messages": 0})
    shown = predict.granted_twice(queue, 50, 120)
    assert isinstance(shown, ShowMe)
    room = classroom("01/granted-twice", [code_of(shown.prediction.question, 100)] * 3)
    names = [bar.name for bar in room.bars]
    assert [bar.number for bar in room.bars][names.index("adds")] == 3
    room.buttons.children[names.index("adds")].click()
    assert room.shown.plays
    scene = room.shown._doc()
    assert [rule["id"] for rule in scene["rules"]] == ["adds"]
    assert scene["theirs"]
    assert "Here they part: their rule makes link-credit 100" in json.dumps(scene)
    room.pick(0)
    assert "a flow sets credit" in room.told.value
    room.clear.click()
    assert room.bars[0].number == 0
    assert room.shown is None


def test_misconceptions_of_one_name_have_a_bar_each():
    """Told apart by their answers: in the chart, on the keys, and in what a key says."""
    same = "what is long takes long, and what is short does not"
    beliefs = tuple(
        Belief(name=name, answer=answer, because=because)
        for name, answer, because in [
            (same, 8, "eight"),
            (same, 6, "six is what it comes to"),
            (f"{same} either", 7, ""),
        ]
    )
    solution = Solution(answer=5, reason="", beliefs=beliefs)
    several = Question(name="01/after-grant", text="How many?", solve=lambda: solution)
    room = Classroom(several)
    given = [5] + [8] * 3 + [6] * 5 + [7] * 2
    room.read([code_of(several, answer) for answer in given])
    (drawn, _) = room.chart.children
    bars = drawn.figure.renderers[0].data_source.data
    assert list(bars["value"]) == [1, 3, 5, 2]
    assert len(set(bars["name"])) == 4
    keys = [key.description for key in room.buttons.children]
    assert keys[1:3] == [f"Show “{same} ({answer})”" for answer in (8, 6)]
    drawn.figure.renderers[0].data_source.selected.indices = [2]
    assert f"{same} (6): 5 answers" in room.told.value
    assert "six is what it comes to" in room.told.value


def test_answers_that_a_code_only_hashes_are_one_bar_before_the_run_answers():
    """They are known to differ, and not from what."""
    told = [read_code(code_of(question(), answer), question()) for answer in (70_000, 80_000, 5)]
    bars = bars_of(question(), None, told)
    assert [(bar.name, bar.number) for bar in bars] == [("another answer", 2), ("5", 1)]


def test_no_code_at_all_is_no_fault():
    """Nothing is drawn, and the report says so."""
    room = Classroom(question())
    room.draw.click()
    assert "No answers read." in room.line.value
    assert not room.chart.children


def test_a_question_that_nobody_asked_here_is_asked_as_in_its_lesson():
    """Its numbers are those of the notebook, so that the room's codes fit."""
    asked.pop("01/after-grant", None)
    room = classroom("01/after-grant")
    lesson = CREDIT["after_grant"](0)
    assert room.question.text == lesson.text
    with pytest.raises(ValueError, match=r"it asks: .*01/before-any-flow"):
        classroom("01/no-such-question")


@pytest.fixture
def shell():
    """IPython, which shows what a cell displays."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_nothing_of_the_lesson_is_shown_above_the_question(shell):
    """Its charts hold the answer."""
    for name in ("01/fastest-rule", "01/after-grant"):
        asked.pop(name, None)
        with capture_output() as shown:
            classroom(name)
        assert (shown.outputs, shown.stdout) == ([], "")


def test_no_cell_is_run_behind_the_one_that_asks(monkeypatch):
    """The rest of its section shows what the run answers."""
    ran = []
    heading = Heading(1, "", ["asked['01/here'] = question", "ran.append(2)"])
    monkeypatch.setattr(sections, "sections_of", lambda lesson: [heading])
    monkeypatch.setattr(
        sections,
        "_value",
        lambda source, _: exec(source, {"asked": asked, "question": question(), "ran": ran}),
    )
    try:
        assert classroom("01/here").question.text == "How many?"
    finally:
        del asked["01/here"]
    assert ran == []


def test_a_poll_whose_quotation_never_ends_is_told_in_a_line():
    """Also where it is longer than a cell may be."""
    found = heard_in_poll(question(), 'answer\n4\n4\n"' + "x" * 200_000)
    assert len(found.told) == 2  # what came before it counts
    assert "“xxx" in found.report.replace('"', "")
