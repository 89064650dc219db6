"""The learner's log: what is kept, what is shown, how logs are joined; map, card and reset."""

from datetime import UTC, datetime

import pytest

from workbench.exercises.lesson_pages import lesson_card, lesson_map, reset_lesson
from workbench.exercises.progress import GUESS, SURE, THINK, Progress, progress
from workbench.exercises.progress_view import ProgressView
from workbench.lessons.table import LESSONS


@pytest.fixture
def log() -> Progress:
    """Two answers to one question of a lesson, one to another."""
    log = Progress()
    log.record("01/grant", 14, False, "adds", confidence=SURE)
    log.record("01/grant", 7, True, confidence=THINK)
    log.record("01/stop", 0, False, "takes back")
    return log


def said(log: Progress) -> list[tuple]:
    """What the records say, without their numbers."""
    return [(one.name, one.answer, one.right) for one in log.records]


def test_the_log_says_what_was_answered_and_what_came_of_it(log):
    """One line a question: mark, answers in order, belief, confidence; then the surprises."""
    assert list(log.lines()) == [
        "✔ 01/grant: 14 → 7 (you said: I think so)",
        "✘ 01/stop: 0 (misconception “takes back”)",
        "You were sure and wrong here: 01/grant, 14; the misconception “adds”",
    ]
    assert log.summary("01") == "2 answered, 1 right, 1 sure and wrong"
    assert log.summary("02") == ""


def test_what_is_solved_stays_so_whatever_is_tried_afterwards(log):
    """The line ends with the first right answer; every later one is kept all the same."""
    for answer, right in ((32, True), (35, True), (40, False)):
        log.record("09/stop-mark", answer, right)
    for answer, right in ((2, False), (5, True), (12, False)):
        log.record("09/largest-window", answer, right)
    assert list(log.lines())[2:4] == [
        "✔ 09/stop-mark: 32 (at the first try)",
        "✔ 09/largest-window: 2 → 5",
    ]
    assert log.entries["09/stop-mark"].answers == ["32", "35", "40"]
    assert log.summary("09") == "2 answered, 2 right"


def test_a_line_counts_runs_and_does_not_name_them():
    """What a check of a run keeps as the answer is the run's name, a sum of hexadecimal digits."""
    log = Progress()
    log.record("08/over", "memory-a1ad76f5", False)
    assert list(log.lines()) == ["✘ 08/over: 1 run"]
    log.record("08/over", "memory-e5db0570", True)
    assert list(log.lines()) == ["✔ 08/over: 2 runs"]


def test_there_is_a_record_for_each_answer(log):
    """Lesson, question, answer, confidence, belief, right, order: what a trainer's view reads."""
    first = log.records[0]
    assert (first.lesson, first.question, first.order, first.answer) == ("01", "grant", 1, "14")
    assert (first.confidence, first.belief, first.right, first.hints) == ("sure", "adds", False, 0)
    assert [one.order for one in log.records] == [1, 2, 3]
    assert [one.belief for one in log.records] == ["adds", None, "takes back"]


def test_a_right_answer_has_no_belief_behind_it():
    """A belief that happened to be right is none to be told about."""
    log = Progress()
    log.record("01/grant", 7, True, "adds")
    assert log.records[0].belief is None


def test_comparing_the_same_answer_twice_counts_once(log):
    """Pressing Compare again is no new answer."""
    log.record("01/stop", 0, False, "takes back")
    assert log.entries["01/stop"].answers == ["0"]
    log.record("01/grant", 7, True)
    assert len(log.records) == 3


def test_what_is_asked_again_later_is_no_answer_of_the_lesson(log):
    """A recall has lines of its own and does not change what the lesson's own questions say."""
    log.record("01/stop", 20, True, recalled_in="02", confidence=GUESS)
    assert log.entries["01/stop"].answers == ["0"]
    assert log.summary("01") == "2 answered, 1 right, 1 sure and wrong"
    assert "✔ 01/stop, asked again in lesson 02: 20" in list(log.lines())


@pytest.mark.parametrize("name", ["grant", "/grant", "01/", "0 1/x", "../x"])
def test_a_record_must_name_lesson_and_question(name):
    """A lesson's mistake, told to its author."""
    with pytest.raises(ValueError, match="no lesson/question"):
        Progress().record(name, 1, True)
    with pytest.raises(ValueError, match="legal: sure, I think so, a guess"):
        Progress().record("01/x", 1, True, confidence="very")


def test_an_empty_log_says_so():
    """Nobody wonders whether something is broken."""
    assert list(Progress().lines()) == ["Nothing predicted or checked yet."]


def test_a_log_is_taken_up_once_and_undoes_nothing(log):
    """It stands before what was answered here since, or beside it; nothing is doubled."""
    here, there = Progress(), Progress()
    for one in (here, there, here):
        one.take_up(log.text().encode())
    assert here.records == log.records
    here.record("01/stop", 20, True)
    there.record("02/cross", 6, False, "sets")
    here.take_up(there.text().encode())
    assert said(here)[:3] == said(log)
    assert sorted(said(here)[3:]) == [("01/stop", "20", True), ("02/cross", "6", False)]
    there.take_up(here.text().encode())
    assert there.text() == here.text()


def test_an_answer_given_twice_is_taken_up_twice():
    """Wrong, right and wrong again is three records, and stays three."""
    log, other = Progress(), Progress()
    for answer, right in ((6, False), (5, True), (6, False)):
        log.record("02/cross", answer, right)
    other.take_up(log.text().encode())
    assert said(other) == said(log)


def test_a_lesson_can_be_forgotten_and_put_back(log):
    """Only what was answered in it goes, with its recalls, and all of it comes back in place."""
    log.record("01/stop", 3, True, recalled_in="02")
    log.record("02/cross", 5, True)
    log.record("03/drain", 0, True)
    whole, copy = said(log), log.text().encode()
    gone = log.forget("02")
    assert said(log) == [*whole[:3], whole[5]]
    assert log.put_back(gone) == 2
    assert said(log) == whole
    # A copy that was made before brings it back as well, and no second time.
    log.forget("02")
    for _ in range(2):
        log.take_up(copy)
        assert said(log) == whole


# -- in the notebook --------------------------------------------------------------------------


def file(name: str, content: bytes) -> dict:
    """A file as the browser hands it over."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    view = memoryview(content)
    return {"name": name, "content": view, "type": "", "size": len(content), "last_modified": at}


def test_what_is_shown_is_text(log):
    """Nothing of an answer becomes part of the page, and the still says the same."""
    log.record("01/<b>", "<img src=x onerror=alert(1)>", False)
    view = ProgressView(log)
    assert "<img" not in view.text.value
    assert "14 → 7" in view.text.value
    data = view._repr_mimebundle_()
    data = data[0] if isinstance(data, tuple) else data
    assert "14 → 7" in data["text/plain"]
    assert "<img" not in data["text/html"]


def test_a_still_does_not_claim_that_nothing_was_answered():
    """It is from when the cell ran; much may have been answered since."""
    bundle = ProgressView(Progress())._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    for text in (data["text/plain"], data["text/html"]):
        assert "Run this cell to see" in text
        assert "Nothing" not in text


def test_the_download_is_the_log(log):
    """The link carries the whole file: no server is asked."""
    import base64
    import re

    link = ProgressView(log).text.value
    data = base64.b64decode(re.search(r"base64,([^\"]+)", link)[1]).decode()
    assert data == log.text()
    assert "Download" not in ProgressView(Progress()).text.value


def test_a_log_can_be_brought_from_elsewhere(log):
    """An uploaded file is taken up; one that is no log is told and changes nothing."""
    view = ProgressView(Progress())
    view.upload.value = (file("p.jsonl", log.text().encode()),)
    assert "p.jsonl: 3 answers read, 3 of them new here." in view.line.value
    for _ in range(2):  # the second time, too, it is read
        view.line.value = ""
        view.upload.value = (file("again.jsonl", log.text().encode("utf-8-sig")),)
        assert "again.jsonl: 3 answers read, 0 of them new here." in view.line.value
    view.upload.value = (file("cat.png", b"\xff\x00"),)
    assert "cat.png: not a saved log" in view.line.value
    view.upload.value = (file("huge.json", b"{" * 4_000_001),)
    assert "too large" in view.line.value
    assert "14 → 7" in view.text.value


# -- the map, the card and the reset ------------------------------------------------------------


def test_the_map_lists_every_lesson_and_is_honest_about_the_rest(tmp_path):
    """A lesson is ready when its notebook is there, and only then is it a link."""
    (tmp_path / "01_credit.ipynb").write_text("{}")
    page = lesson_map(tmp_path)
    told = str(page)
    assert len(told.splitlines()) == len(LESSONS) + 1
    assert [lesson.number for lesson in LESSONS] == [f"{n:02}" for n in range(1, 13)]
    lines = told.splitlines()
    assert "ready" in lines[1]
    assert all("planned" in line for line in lines[2:])
    html = page._repr_html_()
    assert html.count("<a href=") == 1
    assert '<a href="01_credit.ipynb">' in html


def test_minutes_stay_within_what_a_person_can_take():
    """15 to 40 minutes each."""
    assert all(15 <= lesson.minutes <= 40 for lesson in LESSONS)


def test_a_lesson_comes_after_what_it_needs():
    """Prerequisites are earlier lessons, and the ways through them end at the first."""
    known = {lesson.number: lesson for lesson in LESSONS}
    for lesson in LESSONS[1:]:
        assert lesson.after, lesson.number
        assert all(number in known and number < lesson.number for number in lesson.after)
    assert known["01"].after == ()


def test_a_card_says_minutes_prerequisites_and_what_for(tmp_path, monkeypatch):
    """Links only to notebooks that are there; as text as well."""
    (tmp_path / "01_credit.ipynb").write_text("{}")
    monkeypatch.chdir(tmp_path)
    card = lesson_card("02")
    assert "About 30 minutes." in str(card)
    assert "Before it: 01 Grant credit by hand." in str(card)
    assert card.lesson.able[0] in str(card)
    assert '<a href="01_credit.ipynb">01 Grant credit by hand</a>' in card._repr_html_()
    (tmp_path / "01_credit.ipynb").unlink()
    assert "<a" not in card._repr_html_()
    with pytest.raises(ValueError, match="no lesson '2'; there are: 01, 02"):
        lesson_card("2")


def test_a_reset_forgets_nothing_before_its_button_is_pressed():
    """Running all cells runs the reset cell too: only a press forgets, and it can be undone."""
    log = Progress()
    log.record("01/grant", 7, True)
    log.record("02/cross", 5, True)
    view = type(reset_lesson("02"))(LESSONS[1], log)
    assert len(log.records) == 2
    assert view.undo.disabled
    view.forget.click()
    assert [one.name for one in log.records] == ["01/grant"]
    assert "1 answer of lesson 02 forgotten" in view.line.value
    view.undo.click()
    assert len(log.records) == 2
    assert view.undo.disabled
    view.forget.click()
    view.forget.click()
    assert "There are no answers of lesson 02" in view.line.value
    view.undo.click()
    assert len(log.records) == 2


def test_the_tests_keep_nothing_in_the_checkout(repo, home):
    """The log of this process lies in a folder of its own."""
    assert progress.where == home / "progress.jsonl"


def test_what_is_forgotten_and_put_back_again_and_again_stays_readable():
    """As long as its identity is one that a file may have."""
    log = Progress()
    log.record("02/cross", 5, True)
    for _ in range(100):
        log.put_back(log.forget("02"))
    copy = Progress()
    copy.take_up(log.text().encode())
    assert said(copy) == said(log) != []
