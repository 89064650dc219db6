"""Where the progress lies, and that nothing is lost there: restarts, two kernels, damage."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.exercises import progress_place
from workbench.exercises.progress import Progress
from workbench.exercises.progress_place import Place, standard_place, write_whole
from workbench.exercises.progress_view import ProgressView

REPO = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def file(tmp_path) -> Path:
    """A file that does not exist yet, in a folder that does not exist yet."""
    return tmp_path / "my" / "progress.json"


def kernel(file: Path, **more) -> Progress:
    """The log of a kernel that has just started."""
    return Progress(lambda: Place(file, **more))


def names(log: Progress) -> list[str]:
    """Which questions were answered, in order."""
    return [one.question for one in log.records]


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
        ".progress.json.lock", "progress.json",
    ]  # fmt: skip


def test_looking_makes_no_file_and_no_folder(file):
    """Whoever answers nothing leaves nothing behind."""
    log = kernel(file)
    assert log.records == []
    log.refresh()
    assert not file.parent.exists()


def test_two_kernels_keep_each_other_s_answers(file):
    """Both have read the file before either writes; both write; all is there."""
    one, two = kernel(file), kernel(file)
    assert one.records == two.records == []
    one.record("01/a", 1, True)
    two.record("02/b", 2, True)
    one.record("01/c", 3, True)
    assert names(kernel(file)) == ["a", "b", "c"]
    two.refresh()
    assert names(two) == ["a", "b", "c"]
    assert [record.order for record in two.records] == [1, 2, 3]


def test_many_processes_at_once_lose_nothing(file):
    """Real processes, written at the same time: the lock and the merge hold."""
    code = (
        "import sys; from pathlib import Path\n"
        "from workbench.exercises.progress import Progress\n"
        "from workbench.exercises.progress_place import Place\n"
        "log = Progress(lambda: Place(Path(sys.argv[1])))\n"
        "for n in range(15): log.record(f'01/{sys.argv[2]}-{n}', n, True)\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code, str(file), str(number)], cwd=REPO)
        for number in range(3)
    ]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    kept = names(kernel(file))
    assert sorted(kept) == sorted(f"{number}-{n}" for number in range(3) for n in range(15))


def test_what_is_forgotten_stays_forgotten_in_every_kernel(file):
    """Another kernel's next answer does not bring it back; taking it back does."""
    one, two = kernel(file), kernel(file)
    one.record("01/a", 1, True)
    one.record("02/b", 2, True)
    two.refresh()
    gone = one.forget("01")
    two.record("02/c", 3, True)
    assert names(kernel(file)) == ["b", "c"]
    one.put_back(gone)
    assert sorted(names(kernel(file))) == ["a", "b", "c"]


def test_a_file_that_is_deleted_comes_back_with_the_next_answer(file):
    """What this kernel knows is not lost because somebody tidied up."""
    log = kernel(file)
    log.record("01/a", 1, True)
    file.unlink()
    log.record("01/b", 2, True)
    assert names(kernel(file)) == ["a", "b"]


def test_a_damaged_file_is_kept_aside_and_what_can_be_read_is_used(file):
    """It is never written over: its octets are still there, and the log says where."""
    log = kernel(file)
    for name in "abc":
        log.record(f"01/{name}", 1, True)
    broken = file.read_bytes().replace(b'"question": "b"', b'"question": \xc3\xa9 b"')
    file.write_bytes(broken)
    again = kernel(file)
    assert names(again) == ["a", "c"]
    assert (file.parent / "progress.damaged.json").read_bytes() == broken
    assert "1 of its lines cannot be read" in again.problem
    assert "kept as progress.damaged.json" in again.problem
    assert "kept as progress.damaged.json" in ProgressView(again).line.value
    again.record("01/d", 1, True)
    assert names(kernel(file)) == ["a", "c", "d"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"{", b"[" * 50_000, b" " * 4_000_001, b'{"format": 1}'],
    ids=["empty", "octets", "begun", "deep", "huge", "other"],
)  # fmt: skip
def test_a_file_of_which_nothing_can_be_read_is_kept_aside(file, content):
    """Answers go on being kept, in a file of their own."""
    file.parent.mkdir()
    file.write_bytes(content)
    log = kernel(file)
    log.record("01/a", 1, True)
    assert names(kernel(file)) == ["a"]
    assert (file.parent / "progress.damaged.json").read_bytes() == content
    assert log.problem


def test_a_file_of_a_newer_workbench_is_not_written_over(file):
    """Going back to an older version of the workbench costs nothing."""
    file.parent.mkdir()
    newer = '{"format": "amqp-flow-workbench/progress", "version": 3, "records": []}'
    file.write_text(newer)
    log = kernel(file)
    log.record("01/a", 1, True)
    assert "version 3" in log.problem
    assert (file.parent / "progress.damaged.json").read_text() == newer


def test_a_second_damaged_file_does_not_replace_the_first(file):
    """Each one is kept under a name of its own."""
    file.parent.mkdir()
    for content in (b"one", b"two"):
        file.write_bytes(content)
        assert kernel(file).records == []
    kept = sorted(path.name for path in file.parent.glob("progress.damaged*"))
    assert kept == ["progress.damaged-2.json", "progress.damaged.json"]


def test_where_nothing_can_be_written_the_answers_stay_in_memory_until_it_can(file, monkeypatch):
    """A full disk: the reason is told, nothing is lost, and the next write that works has all."""
    log = kernel(file)
    log.record("01/a", 1, True)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(progress_place, "write_whole", full)
        log.record("01/b", 2, True)
        log.forget("01")
        log.record("02/c", 3, True)
        log.take_up(kernel_with("02/d").to_json())
        assert names(log) == ["d", "c"]
        assert "No space left on device" in log.problem
        assert "No space left on device" in ProgressView(log).line.value
        assert names(kernel(file)) == ["a"]
    log.record("02/e", 4, True)
    assert names(kernel(file)) == ["d", "c", "e"]
    assert log.problem == ""


def kernel_with(name: str) -> Progress:
    """A log in memory with one answer."""
    log = Progress()
    log.record(name, 1, True)
    return log


def test_a_lock_that_is_never_given_up_is_not_waited_for_for_ever(file, monkeypatch):
    """The answer waits in memory and goes out with the next one."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(progress_place, "LOCK_WAIT_S", 0.0)
    log = kernel(file)
    log.record("01/a", 1, True)
    with (file.parent / ".progress.json.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        log.record("01/b", 2, True)
        assert "another notebook is writing" in log.problem
    log.record("01/c", 3, True)
    assert names(kernel(file)) == ["a", "b", "c"]


def test_an_older_file_beside_the_notebooks_is_taken_up_once(tmp_path, file):
    """Version 1 lay in the notebooks' folder; it stays there, and its answers go on."""
    older = tmp_path / "progress.json"
    entry = {"answers": ["3"], "right": True, "first_right": True, "belief": None}
    older.write_text(
        json.dumps(
            {"format": "amqp-flow-workbench/progress", "version": 1, "entries": {"01/a": entry}}
        )
    )
    log = kernel(file, older=older)
    assert names(log) == ["a"]
    log.record("01/b", 1, True)
    assert names(kernel(file, older=older)) == ["a", "b"]
    log.forget("01")
    assert names(kernel(file, older=older)) == []
    assert older.exists()


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    """Whole or not at all: no half file, no leftover."""
    target = tmp_path / "progress.json"
    target.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="Input/output"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


# -- which place --------------------------------------------------------------------------------


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A user with a home of their own and no WORKBENCH_HOME."""
    monkeypatch.delenv("WORKBENCH_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def lessons(folder: Path) -> Path:
    """A checkout's notebooks."""
    notebooks = folder / "notebooks"
    notebooks.mkdir(parents=True)
    (notebooks / "00_index.ipynb").write_text("{}")
    return notebooks


def test_the_place_is_beside_the_notebooks(nobody, monkeypatch):
    """A lesson's kernel works in `notebooks/`; the answers lie in `my/` beside it, not in it."""
    notebooks = lessons(nobody / "checkout")
    monkeypatch.chdir(notebooks)
    assert standard_place().file == nobody / "checkout" / "my" / "progress.json"
    assert not (nobody / "checkout" / "my").exists()


def test_an_environment_variable_names_another_place(nobody, monkeypatch):
    """Relative ones are where the kernel starts, wherever it goes later."""
    monkeypatch.chdir(nobody)
    monkeypatch.setenv("WORKBENCH_HOME", "mine")
    assert standard_place().file == nobody / "mine" / "progress.json"


def test_a_checkout_that_cannot_be_written_to_gives_way_to_the_user_s_folder(nobody, monkeypatch):
    """A shared installation: everybody's answers lie in their own home."""
    notebooks = lessons(nobody / "checkout")
    monkeypatch.chdir(notebooks)
    writable = progress_place._writable
    monkeypatch.setattr(
        progress_place,
        "_writable",
        lambda folder: folder != notebooks.parent / "my" and writable(folder),
    )
    place = standard_place().file
    assert place is not None
    assert place.name == "progress.json"
    assert "amqp-flow-workbench" in str(place)
    assert nobody in place.parents


def test_where_there_is_no_place_at_all_it_is_said(nobody, monkeypatch):
    """The log lives in memory, and whoever looks at it is told what to do."""
    monkeypatch.setattr(progress_place, "_writable", lambda folder: False)
    log = Progress(standard_place)
    log.record("01/a", 1, True)
    assert names(log) == ["a"]
    assert log.where is None
    assert "in memory only" in log.problem
    assert "WORKBENCH_HOME" in ProgressView(log).line.value


def test_git_ignores_what_a_learner_keeps(repo):
    """Pulling new lessons never meets a learner's file."""
    assert "/my/" in (repo / ".gitignore").read_text().splitlines()
