"""`workbench import` of several captures into a folder, by processes of this machine."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S
from workbench.capture.importer import import_capture
from workbench.cli import importing_many, main
from workbench.trace import files

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"
NAMES = ("rmq40_c_drain.pcapng", "rmq43_c_drain.pcapng")


@pytest.fixture
def folder(tmp_path):
    """Two good captures, and a file that is none."""
    place = tmp_path / "captures"
    place.mkdir()
    for name in NAMES:
        shutil.copy(CAPTURES / name, place)
    (place / "broken.pcap").write_bytes(b"no capture at all")
    return place


def test_a_folder_becomes_a_folder_of_the_good_ones(folder, tmp_path, capsys):
    """The bad one is named, and a second time nothing is decoded again."""
    target = tmp_path / "traces"
    assert main(["import", str(folder), "-o", str(target)]) == 0
    told = capsys.readouterr().err
    assert "skipped: broken.pcap" in told
    alone = import_capture([folder / name for name in NAMES]).rows
    assert files.read(target) == sorted(alone, key=lambda row: (row.run, row.seq))
    assert main(["import", str(folder / "*.pcapng"), "-o", str(target)]) == 0
    assert "0 captures, 0 rows, 2 there already" in capsys.readouterr().err


@pytest.mark.parametrize(("few", "said"), [(2, "problem"), (1, "workbench import")])
def test_what_is_damaged_is_told_of_a_folder_as_of_one_capture(
    folder, tmp_path, capsys, monkeypatch, few, said
):
    """The octets that there are, are in the trace; of many captures only what is wrong is told."""
    monkeypatch.setattr(importing_many, "FEW", few)
    cut = folder / NAMES[0]
    cut.write_bytes(cut.read_bytes()[:5_000])
    assert main(["import", str(folder), "-o", str(tmp_path / "traces")]) == 0
    out, err = capsys.readouterr()
    assert f"{said}: {NAMES[0]}: the file ends in the middle of" in (out or err)
    assert bool(out) == (few == 2)
    assert "2 captures" in err


def test_captures_by_name_become_a_folder_too(folder, tmp_path, capsys):
    """Whether it is there or not."""
    target = tmp_path / "traces"
    for _ in range(2):
        given = [str(folder / name) for name in NAMES]
        assert main(["import", *given, "-o", str(target)]) == 0
    assert "0 captures, 0 rows, 2 there already" in capsys.readouterr().err


STUCK = """
import os, signal, sys, time
from workbench.capture.importer import Capture

def tables(self, progress=None):
    print(os.getpid(), flush=True)
    time.sleep(600)
    yield

Capture.tables = tables  # in the processes that read, too: they take in this file
if __name__ == "__main__":
    from workbench.cli import main
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background run ignores
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("number", "of_a_reader", "code", "told"),
    [
        (signal.SIGINT, False, 130, "workbench import: stopped"),
        (signal.SIGKILL, False, -signal.SIGKILL, ""),
        (signal.SIGKILL, True, 1, "perhaps for want of memory"),
    ],
    ids=["an interrupt", "a kill", "a reader's end"],
)
def test_what_ends_an_import_leaves_no_process_and_no_file(
    folder, tmp_path, number, of_a_reader, code, told
):
    """But for what nobody could take away, which the next import does."""
    program, target = tmp_path / "stuck.py", tmp_path / "traces"
    program.write_text(STUCK)
    command = [sys.executable, str(program), "import", str(folder), "-o", str(target)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CAPTURES.parents[1]
    ) as run:
        reader = int(run.stdout.readline())
        os.kill(reader if of_a_reader else run.pid, number)
        _, err = run.communicate(timeout=TIMEOUT_S)  # until no process holds its output
    assert run.returncode == code
    assert told in err
    assert "Traceback" not in err
    if code != -signal.SIGKILL:
        assert not target.exists()
    assert main(["import", str(folder), "-o", str(target)]) == 0
    assert {path.suffix for path in target.iterdir()} == {".parquet"}


def test_one_row_is_told_as_one(tmp_path, capsys):
    """Of a folder, as of one capture."""
    place = tmp_path / "logs"
    place.mkdir()
    (place / "one.log").write_text("[0x1]: AMQP:FRAME:0 -> AMQP\n")
    assert main(["import", str(place), "-o", str(tmp_path / "many")]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[-1].endswith("1 row")
    assert "1 captures" not in told[-1]


def test_strict_leaves_nothing_where_one_is_bad(folder, tmp_path):
    """Neither a part nor a folder."""
    target = tmp_path / "traces"
    assert main(["import", str(folder), "--strict", "-o", str(target)]) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captures"]
    (folder / "broken.pcap").unlink()
    assert main(["import", str(folder), "--strict", "-o", str(target)]) == 0
    assert len(list(target.glob("*.parquet"))) == 2
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("place", ["t.parquet", "traces"])
def test_a_disk_that_fills_leaves_nothing(folder, tmp_path, place):
    """One line that names the file; no half a file is left [no file may grow here]."""
    small = (
        "import resource, sys; from workbench.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000)); sys.exit(main(sys.argv[1:]))"
    )
    given = folder / NAMES[0] if place.endswith("t") else folder
    target = tmp_path / place
    done = subprocess.run(
        [sys.executable, "-B", "-c", small, "import", str(given), "-o", str(target)],
        capture_output=True, text=True, cwd=CAPTURES.parent.parent, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert str(target) in last
    assert "File too large" in last
    assert sorted(path.name for path in tmp_path.iterdir()) == ["captures"]


def test_a_folder_without_captures_is_one_clear_line(tmp_path, capsys):
    """Nothing is made, and it is bad input."""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["import", str(empty), "-o", str(tmp_path / "traces")]) == 1
    assert f"{empty}: no capture there" in capsys.readouterr().err
    assert not (tmp_path / "traces").exists()
