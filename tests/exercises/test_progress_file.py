"""The file of the log: nothing is lost by restarts, several kernels, damage, or a lost server."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patience import TIMEOUT_S
from workbench.exercises import progress, shared_file
from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import CONFIDENCES, MOST_RECORDS, Lines, Progress, Record, read
from workbench.exercises.progress_view import BrowserCopy, ProgressView, browser_copy
from workbench.exercises.question import Prediction, Question, Solution

REPO = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def file(tmp_path) -> Path:
    """A file that does not exist yet, in a folder that does not exist yet."""
    return tmp_path / "my" / "progress.jsonl"


def kernel(file: Path) -> Progress:
    """The log of a kernel that has just started."""
    return Progress(lambda: file)


def names(log: Progress) -> list[str]:
    """Which questions were answered, in order."""
    return [one.question for one in log.records]


# -- lines


texts = st.text('aé–日\u202e"\\\n ', min_size=1, max_size=80)
records = st.builds(
    Record,
    id=st.integers(0, 30).map(str),
    order=st.integers(0, 10),
    lesson=st.sampled_from(["01", "12", "x"]),
    question=texts,
    answer=st.text(max_size=300).map(progress.shortened),
    confidence=st.sampled_from([None, *CONFIDENCES]),
    belief=st.none() | texts,
    right=st.sampled_from([True, False, None]),
    hints=st.integers(0, 9),
    recalled_in=st.none() | st.just("02"),
)


def holding(*several: Lines) -> Lines:
    """One log after the other, merged."""
    merged = Lines()
    for one in several:
        merged.merge(one)
    return merged


@settings(max_examples=40)
@given(st.lists(records, unique_by=lambda one: one.id, max_size=9), st.data())
def test_logs_are_merged_in_any_order_and_however_often(everything, data):
    """As sets are; what one has forgotten is in none; and what is written is read again."""
    parts = []
    for _ in range(3):
        some = data.draw(st.lists(st.sampled_from(everything))) if everything else []
        gone = data.draw(st.sets(st.integers(0, 30).map(str), max_size=2))
        parts.append(Lines({one.id: one for one in some}, gone))
    a, b, c = parts
    merged = holding(a, b, c)
    assert merged.text() == holding(c, a, b).text() == holding(merged, b, merged, a).text()
    gone = a.forgotten | b.forgotten | c.forgotten
    assert merged.records.keys() == (a.records | b.records | c.records).keys() - gone
    again = read(merged.text().encode())
    assert (again.text(), again.unreadable) == (merged.text(), [])


def test_the_format_is_fixed():
    """Names and order of the fields are for others to rely on."""
    one = Record(id="5c", order=1, lesson="01", question="q", answer="14", belief="b", right=False)
    assert Lines({"5c": one}, {"9a"}).text() == (
        '{"id":"5c","order":1,"lesson":"01","question":"q","answer":"14","confidence":null,'
        '"belief":"b","right":false,"hints":0,"recalled_in":null}\n'
        '{"forgets":["9a"]}\n'
    )


GOOD = {"id": "1", "order": 1, "lesson": "01", "question": "q", "answer": "7", "right": True}


@pytest.mark.parametrize(
    "changes",
    [
        {"id": 7}, {"id": ""}, {"lesson": 1}, {"lesson": "../../etc"}, {"question": ""},
        {"question": "x" * 81}, {"order": -1}, {"order": True}, {"order": 2.5},
        {"order": 10**400}, {"answer": None}, {"answer": {"a": 1}}, {"answer": "x" * 201},
        {"answer": "\ud800"}, {"confidence": "very"}, {"right": 1}, {"belief": []},
        {"hints": "many"}, {"recalled_in": 2}, {"forgets": [1]}, {"forgets": "all"},
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_costs_that_line(changes):
    """The others are read, and fields that are not known are no mistake."""
    listed = [{**GOOD, "mood": "cheerful"}, {**GOOD, "id": "2", **changes}, {**GOOD, "id": "3"}]
    found = read("\n".join(map(json.dumps, listed)).encode())
    assert (list(found.records), len(found.unreadable)) == (["1", "3"], 1)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_nothing_that_is_read_raises(data):
    """Whatever a file holds: lines that can be read, and lines that cannot."""
    found = read(data)
    assert len(found.records) + len(found.unreadable) <= data.count(b"\n") + 1


def test_a_log_is_bounded():
    """The newest records stay."""
    many = {
        str(n): Record(id=str(n), order=n, lesson="01", question="q", answer="", right=True)
        for n in range(MOST_RECORDS + 5)
    }
    kept = holding(Lines(many)).records
    assert len(kept) == MOST_RECORDS
    assert "4" not in kept


# -- files


def test_a_saved_log_is_put_in_order_once(monkeypatch):
    """Once for each answer, ten thousand of them take half a minute."""
    made = [
        Record(id=f"{n:04}", order=n + 1, lesson="01", question="a", answer=str(n), right=True)
        for n in range(50)
    ]
    log, merged, merge = Progress(), [], Lines.merge
    monkeypatch.setattr(Lines, "merge", lambda *both: [merged.append(1), merge(*both)][1])
    assert log.put_back([*made, *made]) == 50
    assert len(merged) == 1
    assert log.records == made


def test_a_restart_loses_nothing(file):
    """Each answer is in the file at once; a new kernel has them without being asked."""
    first = kernel(file)
    assert not file.exists()
    first.record("01/a", 1, True)
    first.record("01/b", 2, False, "adds", confidence="sure")
    again = kernel(file)
    assert again.records == first.records
    assert first.problem == again.problem == ""
    assert sorted(path.name for path in file.parent.iterdir()) == [
        ".progress.jsonl.lock", "progress.jsonl",
    ]  # fmt: skip


def test_looking_makes_no_file_and_no_folder(file):
    """Whoever answers nothing leaves nothing behind."""
    log = kernel(file)
    assert log.records == []
    log.refresh()
    assert not file.parent.exists()


WRITERS = st.integers(0, 2)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(WRITERS, st.sampled_from(["record", "record", "refresh", "restart", "tear"])),
        max_size=12,
    ),
    st.integers(1, 300),
)
def test_any_interleaving_of_writers_and_a_torn_last_line_lose_nothing(acts, torn):
    """Whoever has written a line that was torn writes it again; every whole line stays.

    A writer that restarts after its line was torn, before anybody wrote again, has lost that one.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "progress.jsonl"
        writers = [kernel(file) for _ in range(3)]
        said: set[str] = set()
        for number, (writer, act) in enumerate(acts):
            if act == "record":
                said.add(str(number))
                writers[writer].record("01/q", number, True)
            elif act == "refresh":
                writers[writer].refresh()
            elif act == "restart":
                for one in writers:
                    one.refresh()
                writers[writer] = kernel(file)
            elif file.exists():
                whole = file.read_bytes()
                last = len(whole) - len(whole.splitlines()[-1]) - 1
                file.write_bytes(whole[: max(last, len(whole) - torn)])
        for one in writers:
            one.refresh()
        assert {one.answer for one in kernel(file).records} == said


def test_many_processes_at_once_lose_nothing(file):
    """Real processes, written at the same time: the lock and the merge hold."""
    code = (
        "import sys; from pathlib import Path\n"
        "from workbench.exercises.progress import Progress\n"
        "log = Progress(lambda: Path(sys.argv[1]))\n"
        "for n in range(15): log.record(f'01/{sys.argv[2]}-{n}', n, True)\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(file), str(number)], cwd=REPO)
        for number in range(3)
    ]
    assert [worker.wait(timeout=TIMEOUT_S) for worker in workers] == [0, 0, 0]
    kept = names(kernel(file))
    assert sorted(kept) == sorted(f"{number}-{n}" for number in range(3) for n in range(15))


def test_what_is_forgotten_stays_forgotten_in_every_kernel(file):
    """Another kernel's next answer does not bring it back; taking it back does, in its place."""
    one, two = kernel(file), kernel(file)
    one.record("01/a", 1, True)
    one.record("02/b", 2, True)
    two.refresh()
    gone = one.forget("01")
    assert '"a"' not in file.read_text()
    two.record("02/c", 3, True)
    assert names(kernel(file)) == ["b", "c"]
    one.put_back(gone)
    assert names(kernel(file)) == ["a", "b", "c"]
    one.forget("01")
    assert names(one) == ["b", "c"]


def test_a_file_that_is_deleted_comes_back_with_the_next_answer(file):
    """What this kernel knows is not lost because somebody tidied up."""
    log = kernel(file)
    log.record("01/a", 1, True)
    file.unlink()
    log.record("01/b", 2, True)
    assert names(kernel(file)) == ["a", "b"]


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\x00", b"{", b"[" * 50_000, b'{"question": "c', b"9" * 5000],
    ids=["octets", "begun", "deep", "cut", "number"],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_kept_aside_and_told(file, line):
    """Its octets are still there, the log says where, and the other lines are used."""
    log = kernel(file)
    log.record("01/a", 1, True)
    log.record("01/b", 1, True)
    first, second = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([first, line, second]))
    again = kernel(file)
    assert names(again) == ["a", "b"]
    assert (file.parent / "progress.unreadable.jsonl").read_bytes() == line + b"\n"
    assert "1 line cannot be read; kept in progress.unreadable.jsonl" in again.problem
    assert "kept in progress.unreadable.jsonl" in ProgressView(again).line.value
    assert kernel(file).problem == ""


def test_where_nothing_can_be_written_the_answers_stay_in_memory_until_it_can(file, monkeypatch):
    """A full disk: the reason is told, nothing is lost, and the next write that works has all."""
    log = kernel(file)
    log.record("01/a", 1, True)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(progress, "write_whole", full)
        log.record("01/b", 2, True)
        log.forget("01")
        log.record("02/c", 3, True)
        assert names(log) == ["c"]
        assert "No space left on device" in log.problem
        assert "No space left on device" in ProgressView(log).line.value
        assert names(kernel(file)) == ["a"]
    log.record("02/d", 4, True)
    assert names(kernel(file)) == ["c", "d"]
    assert log.problem == ""


def test_a_lock_that_is_never_given_up_is_not_waited_for_for_ever(file, monkeypatch):
    """The answer waits in memory and goes out with the next one."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(shared_file, "LOCK_WAIT_S", 0.0)
    log = kernel(file)
    log.record("01/a", 1, True)
    with (file.parent / ".progress.jsonl.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        log.record("01/b", 2, True)
        assert "another notebook is writing" in log.problem
    log.record("01/c", 3, True)
    assert names(kernel(file)) == ["a", "b", "c"]


OLDER = """{"format": "amqp-flow-workbench/progress", "version": 2, "records": [
{"lesson": "01", "question": "a", "order": 1, "answer": "14", "confidence": null, "belief": "adds",\
 "right": false, "hints": 0, "recalled_in": null},
{"lesson": "01", "question": "damaged
{"lesson": "02", "question": "b", "order": 2, "answer": "5", "confidence": "sure", "belief": null,\
 "right": true, "hints": 2, "recalled_in": "03"}
]}
"""


def test_a_log_of_the_older_form_is_carried_over_once(file):
    """It stays as it is; what was forgotten since does not come back from it."""
    older = file.with_name("progress.json")
    file.parent.mkdir()
    older.write_text(OLDER)
    log = kernel(file)
    assert [(one.name, one.answer, one.right) for one in log.records] == [
        ("01/a", "14", False), ("02/b", "5", True),
    ]  # fmt: skip
    assert "progress.json: 1 line cannot be read" in log.problem
    assert log.take_up(OLDER.encode()) == (2, 1)
    assert len(log.records) == 2
    log.forget("01")
    assert names(kernel(file)) == ["b"]
    assert older.read_text() == OLDER


# -- the browser


class Browser:
    """What the script does with a site's storage, for the copies of one page."""

    def __init__(self, *logs: Progress) -> None:
        self.stored = ""
        self.copies = [BrowserCopy(log) for log in logs]
        for copy in self.copies:
            copy.send = lambda content, copy=copy: self._heard(copy, content)
        self._told: dict[BrowserCopy, str] = {}
        for copy in self.copies:
            self._tell(copy)

    def _tell(self, copy: BrowserCopy) -> None:
        self._told[copy] = self.stored
        copy._handle_custom_msg({"found": self.stored}, [])

    def _heard(self, copy: BrowserCopy, content: dict) -> None:
        if "keep" not in content or self.stored != self._told.get(copy):
            self._tell(copy)
        elif content["keep"] != self.stored:
            self.stored = self._told[copy] = content["keep"]


def test_a_browser_gives_a_lost_server_its_answers_back(tmp_path):
    """A new server has an empty folder and learns all; what was forgotten stays so."""
    first = kernel(tmp_path / "one" / "progress.jsonl")
    first.record("01/a", 1, True)
    browser = Browser(first)
    first.record("01/b", 2, True)
    first.record("02/c", 3, True)
    first.forget("02")
    assert browser.stored == first.text()
    second = kernel(tmp_path / "two" / "progress.jsonl")
    later = Browser(second)
    later.stored = browser.stored
    later._tell(later.copies[0])
    assert names(second) == ["a", "b"]
    assert (tmp_path / "two" / "progress.jsonl").read_text() == browser.stored


def test_two_kernels_of_a_browser_keep_each_other_s_answers(tmp_path):
    """Each has a server of its own; neither writes over what it has not read."""
    one, two = (kernel(tmp_path / name / "progress.jsonl") for name in "ab")
    browser = Browser(one, two)
    one.record("01/a", 1, True)
    two.record("01/b", 2, True)
    one.record("01/c", 3, True)
    assert sorted(names(one)) == ["a", "b", "c"]
    assert browser.stored == one.text()


def test_every_view_of_a_log_has_the_same_copy_in_the_browser():
    """A question has it itself: a server may be lost before the log is looked at."""
    log = Progress()
    question = Question(name="01/a", text="How many?", solve=lambda: Solution(answer=1))
    asked = PredictionView(Prediction(question), log)
    assert browser_copy(log) in asked.children
    assert browser_copy(log) is ProgressView(log).copy


@pytest.mark.parametrize(("said", "minutes"), [(None, 0), ("10", 10)])
def test_the_browser_warns_where_the_server_ends_when_idle(monkeypatch, said, minutes):
    """Nowhere else: a lab at home stays."""
    monkeypatch.delenv("WORKBENCH_IDLE_END_MIN", raising=False)
    if said is not None:
        monkeypatch.setenv("WORKBENCH_IDLE_END_MIN", said)
    assert BrowserCopy(Progress()).idle_end_min == minutes


@pytest.mark.parametrize("content", [None, 7, {}, {"found": 7}, {"found": "\ud800nonsense"}])
def test_what_a_browser_says_is_not_trusted(content):
    """Nothing is raised and nothing is taken up."""
    log = Progress()
    BrowserCopy(log)._handle_custom_msg(content, [])
    assert log.records == []
