"""The learner's log: what is kept, what is shown, and what is refused when it comes back."""

import json
from datetime import UTC, datetime

import pytest

from workbench.exercises.lessons import LESSONS, lesson_map
from workbench.exercises.progress import Progress, ProgressError, progress
from workbench.exercises.progress_view import ProgressView


@pytest.fixture
def log() -> Progress:
    """Two answers in one lesson."""
    log = Progress()
    log.record("01/grant", 14, False, "adds")
    log.record("01/grant", 7, True)
    log.record("01/stop", 0, False, "takes back")
    return log


def test_the_log_says_what_was_answered_and_what_came_of_it(log):
    """One line a question: mark, answers in order, and the belief behind a wrong one."""
    assert list(log.lines()) == [
        "✔ 01/grant: 14 → 7",
        "✘ 01/stop: 0 (belief “takes back”)",
    ]
    assert log.summary("01") == "2 answered, 1 right"
    assert log.summary("02") == ""


def test_comparing_the_same_answer_twice_counts_once(log):
    """Pressing Compare again is no new answer."""
    log.record("01/stop", 0, False, "takes back")
    assert log.entries["01/stop"].answers == ["0"]


def test_an_empty_log_says_so():
    """Nobody wonders whether something is broken."""
    assert list(Progress().lines()) == ["Nothing predicted or checked yet."]


def test_a_saved_log_comes_back_whole(log, tmp_path):
    """Save and load are each other's opposite, and the file names its format and version."""
    path = log.save(tmp_path / "progress.json")
    assert json.loads(path.read_text())["format"] == "amqp-flow-workbench/progress"
    other = Progress()
    assert other.load(path) == 2
    assert other.entries == log.entries
    assert [entry.name for entry in tmp_path.iterdir()] == ["progress.json"]


def test_answers_given_since_then_stay(log):
    """Restoring an older log does not undo what was answered in this kernel."""
    later = Progress()
    later.record("01/stop", 20, True)
    later.restore(log.to_json())
    assert later.entries["01/stop"].answers == ["20"]
    assert later.entries["01/grant"].answers == ["14", "7"]


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1, 2]", "not a saved progress"),
        ('{"format": "something else"}', "not a saved progress"),
        ('{"format": "amqp-flow-workbench/progress", "version": 99}', "version 99"),
        ('{"format": "amqp-flow-workbench/progress", "version": 1}', "entries are missing"),
        (
            '{"format": "amqp-flow-workbench/progress", "version": 1, "entries": {"a": 1}}',
            "entry 'a' has no answers",
        ),
    ],
)
def test_what_is_no_log_is_refused_and_changes_nothing(log, text, telling):
    """One line, and the log is as it was."""
    before = log.to_json()
    with pytest.raises(ProgressError, match=telling):
        log.restore(text)
    assert log.to_json() == before


def test_a_file_that_is_no_text_or_is_too_large_is_refused(log, tmp_path):
    """A picture given by mistake is told as what it is."""
    path = tmp_path / "progress.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProgressError, match="no text in it"):
        log.load(path)
    path.write_bytes(b" " * 1_000_001)
    with pytest.raises(ProgressError, match="too large"):
        log.load(path)
    assert log.load(tmp_path / "absent.json") == 0


def test_a_log_that_cannot_be_written_is_told_in_one_line(log, tmp_path):
    """The folder is not there: nothing is left behind, and the reason is said."""
    with pytest.raises(ProgressError, match="cannot write there: No such file"):
        log.save(tmp_path / "absent" / "progress.json")


def test_the_log_in_the_notebook_is_kept_and_found_again(log, tmp_path):
    """Keep writes the file, a new kernel's log takes it up, and what is shown is text."""
    log.record("01/<b>", "<img src=x onerror=alert(1)>", False)
    view = ProgressView(log, tmp_path)
    view.keep.click()
    assert "Kept in progress.json" in view.line.value
    assert "<img" not in view.text.value
    again = ProgressView(Progress(), tmp_path)
    assert "3 answers taken up" in again.line.value
    assert "14 → 7" in again.text.value


def test_a_log_can_be_brought_from_elsewhere(log, tmp_path):
    """An uploaded file is taken up; one that is no log is told and changes nothing."""

    def file(name: str, content: bytes) -> dict:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        size = len(content)
        view = memoryview(content)
        return {"name": name, "content": view, "type": "", "size": size, "last_modified": at}

    view = ProgressView(Progress(), tmp_path)
    view.upload.value = (file("p.json", log.to_json().encode()),)
    assert "2 answers taken up from p.json." in view.line.value
    view.upload.value = (file("cat.png", b"\xff\x00"),)
    assert "cat.png: not a saved progress" in view.line.value
    assert "14 → 7" in view.text.value


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


def test_the_map_shows_what_was_kept(log, tmp_path):
    """Another notebook's kernel wrote it; a damaged file is not the map's business."""
    log.save(tmp_path / "progress.json")
    assert "2 answered, 1 right" in str(lesson_map(tmp_path))
    (tmp_path / "progress.json").write_text("{")
    assert "answered" not in str(lesson_map(tmp_path))
    assert progress.entries == {}


def test_minutes_stay_within_what_a_person_can_take():
    """15 to 30 minutes each."""
    assert all(15 <= lesson.minutes <= 30 for lesson in LESSONS)
