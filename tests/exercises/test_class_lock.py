"""A class that stays together, and the next group that begins with nothing."""

import pytest

from workbench import lesson_card
from workbench.exercises import class_lock
from workbench.exercises.class_box import ClassBox
from workbench.exercises.class_lock import class_code, obstacle, section_code
from workbench.exercises.headings import FOLDER
from workbench.exercises.next_group import NextGroup
from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import Progress
from workbench.exercises.question import Prediction, Question, Solution
from workbench.exercises.recall_view import RecallView
from workbench.exercises.watchers import Watchers
from workbench.exercises.working_copies import make_copies


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder in which this learner's files lie."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # the copies of this checkout are nobody's here
    return tmp_path


def test_a_lesson_is_open_up_to_the_section_of_the_code(home):
    """Questions of later sections wait, those of other lessons do not; the next code opens more."""
    code = section_code("01", 2)
    assert len(code) == 7
    assert "up to section 2" in class_code(code.lower())
    assert obstacle("01/after-grant") is None
    assert "this is section 3" in obstacle("01/granted-twice")
    assert obstacle("02/crossing") is None
    assert "up to section 4" in class_code(f"‘{section_code('01', 4).replace('-', '–')}’.")
    assert obstacle("01/granted-twice") is None
    assert "to its end" in class_code(section_code("01"))
    assert obstacle("01/rabbit-flows") is None
    assert (home / class_lock.FILE_NAME).read_text("utf-8") == "{}\n"


@pytest.fixture
def view(home):
    """A question of section 3, answered while the class is at section 1."""
    question = Question(
        name="01/granted-twice", text="How many?", solve=lambda: Solution(answer=1, reason="")
    )
    view = PredictionView(Prediction(question), Progress())
    view.field.value = "7"
    class_code(section_code("01", 1))
    view.commit.click()
    assert "Your class is at section 1" in view.line.value
    return view


def test_a_locked_question_takes_no_answer_and_says_why(view):
    """Nothing is committed; when it is open, the same button commits."""
    assert view.prediction.answer is None
    (box,) = view.locked.children
    assert "up to section 1" in box.line.value
    box.code.value = section_code("01", 2)
    box.enter.click()
    assert "Your class is at section 2" in view.line.value
    box.code.value = section_code("01")
    box.enter.click()
    assert "to its end" in box.line.value
    assert "Your class" not in view.line.value
    view.commit.click()
    assert view.prediction.answer == 7
    assert view.locked.children == ()


def test_a_code_typed_in_another_cell_takes_back_that_a_question_is_locked(view):
    """What the question says follows the code; once it is answered, no code changes that."""
    class_code(section_code("01", 2))
    assert "Your class is at section 2" in view.line.value
    class_code(section_code("01"))
    assert "Your class" not in view.line.value
    view.commit.click()
    assert "You say: 7" in view.line.value
    class_code(section_code("01", 1))
    assert "You say: 7" in view.line.value


def test_a_code_entered_in_another_notebook_is_said_to_count_here(view, monkeypatch):
    """Nothing of another kernel reaches what stands here; the button that it names looks again."""
    assert "in another notebook, press Commit again" in view.line.value
    monkeypatch.setattr(class_lock, "watchers", Watchers())
    class_code(section_code("01", 4))
    view.commit.click()
    assert view.prediction.answer == 7
    assert view.locked.children == ()
    assert "in another notebook, press Commit again" in str(obstacle("01/rabbit-flows"))


def test_the_code_is_typed_in_a_lessons_card(home):
    """By button and by the Enter key; rubbish is told and locks nothing."""
    view = RecallView("02", Progress(), card=lesson_card("02"))
    (box,) = [child for child in view.children if isinstance(child, ClassBox)]
    box.code.value = "hello"
    box.enter.click()
    assert "no trainer&#x27;s code" in box.line.value
    box.code.value = " "
    box.enter.click()
    assert box.line.value == ""
    box.code.value = section_code("02", 1)
    box.code._handle_custom_msg({"event": "submit"}, [])
    assert "up to section 1" in box.line.value
    assert "section 1" in repr(ClassBox())


def test_the_code_that_is_named_as_an_example_opens_nothing(home):
    """Everybody sees it in the empty field, and where what was typed is no code."""
    class_code(section_code("01", 2))
    example = ClassBox().code.placeholder
    assert example in class_code("hello")
    assert "mistyped" in class_code(example)
    assert obstacle("01/granted-twice")


def test_what_stands_in_no_numbered_section_opens_with_the_whole_lesson(home):
    """In practice and Further come last, however far the class is."""
    class_code(section_code("01", 6))
    assert obstacle("01/after-acknowledging") is None
    for question in ("01/proton-again", "01/rabbit-flows"):
        assert "whole lesson" in obstacle(question)
    class_code(section_code("01"))
    assert obstacle("01/proton-again") is None


def test_a_mistyped_code_locks_nothing(home):
    """It is told, and a section that there is not has no code."""
    code = section_code("01", 2)
    assert "mistyped" in class_code(("1" if code[0] != "1" else "2") + code[1:])
    assert "no trainer's code" in class_code("hello, is it me")
    assert "no trainer's code" in class_code(None)  # type: ignore[arg-type]
    assert "123456 is mistyped" in class_code(123456)  # type: ignore[arg-type]
    assert obstacle("01/granted-twice") is None
    with pytest.raises(ValueError, match="no section 40; it has 1 to"):
        section_code("01", 40)
    for section in ("3", 1.0):
        with pytest.raises(ValueError, match=f"no section {section!r}; it has 1 to"):
            section_code("01", section)  # type: ignore[arg-type]


def test_without_a_folder_the_lock_holds_in_this_kernel(monkeypatch):
    """A server that can keep nothing still keeps a class together."""
    monkeypatch.setattr(class_lock, "standard_folder", lambda: None)
    class_code(section_code("01", 1))
    assert obstacle("01/granted-twice")
    class_lock.unlock_all()
    assert obstacle("01/granted-twice") is None


def test_the_next_group_begins_with_nothing_and_it_can_be_taken_back(home):
    """Answers of every lesson, and the locks; the button acts, not the cell."""
    log = Progress()
    for name in ("01/after-grant", "02/crossing", "07/trigger"):
        log.record(name, 3, True)
    class_code(section_code("01", 1))
    view = NextGroup(log)
    assert len(log.records) == 3
    view.forget.click()
    assert log.records == []
    assert "Forgotten: 3 answers, and the branches of 0 pictures" in view.line.value
    assert obstacle("01/granted-twice") is None
    view.undo.click()
    assert len(log.records) == 3


def test_the_next_group_finds_the_lessons_as_new(home):
    """At the lab's next start, for now they are open; what was typed is kept, or taken back."""
    (home / "notebooks").mkdir()
    for name in ("00_index.ipynb", "01_credit.ipynb"):
        (home / "notebooks" / name).write_bytes((FOLDER / name).read_bytes())
    make_copies(home)
    copy = home / "my" / "01_credit.ipynb"
    new = copy.read_bytes()
    typed = new.replace(b"link_credit=3", b"link_credit=4")
    copy.write_bytes(typed)
    view = NextGroup(Progress())
    view.forget.click()
    view.undo.click()
    assert make_copies(home, renew=True) == []
    assert copy.read_bytes() == typed
    view.forget.click()
    assert make_copies(home) == []
    assert copy.read_bytes() == typed
    (line,) = make_copies(home, renew=True)
    assert "my/01_credit_earlier.ipynb" in line
    assert copy.read_bytes() == new
    assert copy.with_stem("01_credit_earlier").read_bytes() == typed
    assert make_copies(home, renew=True) == []
