"""Following a recorder's folder: all of it, once, however often it is stopped."""

import argparse
import gzip
import io
import json
import os
import pickle
import random
import re
import signal
import struct
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from tests.analysis.runs import acted, scenario_rows
from tests.cli.test_console import Terminal
from tests.folds.test_channels import flooded, windowed
from tests.folds.test_live import told
from tests.folds.test_live import whole as every_answer
from tests.patience import TIMEOUT_S
from workbench import folds
from workbench.capture import columns
from workbench.capture.importer import import_capture
from workbench.capture.pcap import CaptureReader
from workbench.cli import following
from workbench.cli.following import Follower
from workbench.cli.main import main
from workbench.folds.live import LiveFold
from workbench.folds.stalls import with_ends
from workbench.trace import files
from workbench.trace.files import TraceFileError
from workbench.trace.words import duration

RATES = (
    "run", "connection", "session", "link", "link_sender", "attach_no", "window_start_us",
    "messages", "frames", "body_bytes", "rate",
)  # fmt: skip
WINDOW_US = 20_000


@pytest.fixture(scope="module")
def rows():
    """A receiver that grants now and then: stalls that end, and one that goes on."""
    acts = [("grant", {"link_credit": 3 * n + 1}) for n in range(8)]
    return acted("credit", "rmq4.3", {"messages": 300}, *acts)


def beside(folder):
    """A checkpoint for it: another folder."""
    return folder.with_name(f"{folder.name}-followed")


def follower(folder):
    """One with windows so short that many are past, and a checkpoint beside the folder."""
    return Follower(folder, beside(folder), window_us=WINDOW_US)


def in_order(rows):
    """Rows of an answer in an order of their own."""
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in sorted(row)))


def whole(rows):
    """The answers over all rows, from the folds."""
    return {
        "stalls": in_order(stall._asdict() for stall in folds.stalls(rows)),
        "rates": in_order(
            {name: row[name] for name in RATES}
            for row in folds.throughput(rows, window_us=WINDOW_US)
        ),
    }


def answers(followed):
    """What is answered now."""
    return {name: in_order(followed.answer(name)) for name in ("stalls", "rates")}


def test_what_is_stopped_and_started_counts_everything_once(rows, tmp_path):
    """A file that grows, a next file, names that are not whole."""
    folder = tmp_path / "live"
    folder.mkdir()
    cuts = sorted(random.Random(5).sample(range(1, len(rows)), 4))
    (folder / ".live-00002.parquet.1234.part").write_bytes(b"half a file")
    (folder / "_live-00003.parquet").write_bytes(b"no file of a recorder")
    files.write(folder / "live-00001.parquet", rows[: cuts[0]])
    followed = follower(folder)
    assert answers(followed) == whole(rows[: cuts[0]])
    files.write(folder / "live-00001.parquet", rows[: cuts[1]])
    assert answers(followed) == whole(rows[: cuts[1]])
    files.write(folder / "live-00001.parquet", rows[: cuts[2]])
    files.write(folder / "live-00002.parquet", rows[cuts[2] : cuts[3]])
    followed = follower(folder)
    assert followed.rows == cuts[1]
    assert answers(followed) == whole(rows[: cuts[3]])
    files.write(folder / "live-00002.parquet", rows[cuts[2] :])
    assert len(answers(followed)["stalls"]) > 5
    assert answers(follower(folder)) == whole(rows)
    assert follower(folder).rows == len(rows)


@pytest.mark.parametrize(
    ("made", "line"),
    [(flooded, "c1/4 consumer: 0 of 3 unacknowledged\n"),
     (windowed, "c1/1 published: completion: 28 answered, the slowest after 0.131 s; 2 waiting,"
      " the oldest for ")],
)  # fmt: skip
def test_channels_are_followed_as_links_are(made, line, tmp_path, capsys):
    """Their stalls and rates; how long answers take, and what each consumer has; counted once."""
    rows = made()
    for number, part in enumerate((rows[:400], rows[400:]), 1):
        files.write(tmp_path / f"live-{number:05d}.parquet", part)
        followed = follower(tmp_path)
        assert followed.poll() == len(part)
        found = {name: followed.answer(name) for name in following.QUESTIONS.values()}
        assert told(found) == every_answer(rows[: 400 if number == 1 else None], WINDOW_US)
    lines = ""
    for question in following.QUESTIONS.values():
        screen_of(followed, tmp_path, question).show(fresh=True)
        lines += capsys.readouterr().out
    assert line in lines


def screen_of(followed, folder, question="stalls", **more):
    """What tells of it, as a table of fifty rows."""
    given = {"format": "table", "rows": 50, "trace": str(folder)} | more
    return following._Screen(argparse.Namespace(**given), question, followed)


@pytest.fixture
def clock(monkeypatch):
    """Seconds since 1970, which a test sets."""
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(following, "time", SimpleNamespace(time=lambda: now.s))
    return now


def held(rows):
    """The first rows, up to one after which a stall lasts; and when it began."""
    for end in range(100, len(rows)):
        for stall in folds.stalls(rows[:end]):
            if stall.release_frame_id is None and stall.messages_waiting > 1:
                return rows[:end], stall.end_us - stall.start_us
    raise AssertionError("none lasts")


def test_a_stall_lasts_while_no_row_comes(rows, tmp_path, clock, capsys):
    """Its time runs on from the latest row; in a file it has a line when it has doubled."""
    first, before_us = held(rows)
    files.write(tmp_path / "live-00001.parquet", first)
    os.utime(tmp_path / "live-00001.parquet", (5_000, 5_000))
    followed = Follower(tmp_path)
    screen, told = screen_of(followed, tmp_path), []
    for clock.s in (5_010, 5_010.3, 5_020, 5_020.3, 5_040):
        screen.show(fresh=bool(followed.poll()))
        told += re.findall(r" for (.*?), \d+ wait ", capsys.readouterr().out)
    assert told == [duration(before_us + s * 1_000_000) for s in (10, 20, 40)]


def test_a_stall_lasts_while_only_another_connection_has_rows(repo, tmp_path, clock, capsys):
    """Its age began anew with each of them."""
    file = repo / "data" / "captures" / "amqp091" / "rmq43_b1_amqp091_memory_alarm.pcapng"
    rows = import_capture([file]).rows
    stall = next(
        one for one in folds.stalls(rows) if (one.connection, one.brake) == ("c1", "alarm")
    )
    begun = stall.seq + 1
    ended = next(row.seq for row in rows if row.frame_id == stall.release_frame_id)
    clock.s = 5_000
    followed, told = Follower(tmp_path), []
    screen = screen_of(followed, tmp_path)
    for number, (start, end) in enumerate([(0, begun), *((n, n + 1) for n in range(begun, ended))]):
        part = tmp_path / f"live-{number:05}.parquet"
        files.write(part, rows[start:end])
        os.utime(part, (5_000, 5_000))
        screen.show(fresh=bool(followed.poll()))
        age = duration(rows[end - 1].t_us - stall.start_us)
        ages = re.findall(r"c1 published: alarm for (.*?),", capsys.readouterr().out)
        told += [(one, age) for one in ages]
    assert len(told) > 5
    assert [one for one in told if one[0] != one[1]] == []


def test_a_stall_that_ended_without_a_frame_is_over(tmp_path, capsys):
    """As the fold has it: not each that no frame has released goes on."""
    rows = [replace(row, item=None, raw=None) for row in scenario_rows()["quorum_chaos"]]
    seen = set()
    for number, end in enumerate(range(100, len(rows), 100)):
        files.write(folder_made(tmp_path / f"{number}") / "live-00001.parquet", rows[:end])
        followed = Follower(tmp_path / f"{number}")
        screen_of(followed, tmp_path, format="json").show(fresh=bool(followed.poll()))
        told = {
            (one["seq"], one["brake"]): one["lasts"] for one in json.loads(capsys.readouterr().out)
        }
        ends = {(one.seq, one.brake): lasts for one, lasts in with_ends(rows[:end])}
        assert told == {place: ends[place] for place in told}
        seen |= {
            (one.release_frame_id, lasts) for one, lasts in with_ends(rows[:end])
            if (one.seq, one.brake) in told
        }  # fmt: skip
    assert {(None, True), (None, False)} <= seen


def test_a_stall_is_told_when_one_goes_on_though_no_row_comes(rows, tmp_path, clock, capsys):
    """With all of its time, while nobody followed too."""
    first, before_us = held(rows)
    files.write(folder_made(tmp_path / "live") / "live-00001.parquet", first)
    os.utime(tmp_path / "live" / "live-00001.parquet", (5_000, 5_000))
    clock.s = 5_010
    follower(tmp_path / "live").poll()
    clock.s = 5_070
    followed = follower(tmp_path / "live")
    assert followed.poll() == 0
    screen_of(followed, tmp_path).show(fresh=False)
    assert f" for {duration(before_us + 70_000_000)}, " in capsys.readouterr().out


def test_a_terminal_is_kept_current(rows, tmp_path, clock, monkeypatch):
    """Each time it is looked, with the time since the latest row."""
    first, before_us = held(rows)
    files.write(tmp_path / "live-00001.parquet", first)
    os.utime(tmp_path / "live-00001.parquet", (5_000, 5_000))
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    followed = Follower(tmp_path)
    with screen_of(followed, tmp_path) as screen:
        for clock.s in (5_011, 5_012, 5_013):
            screen.show(fresh=bool(followed.poll()))
    shown = sys.stdout.getvalue()
    for s in (11, 12, 13):
        assert f"link-credit for {duration(before_us + s * 1_000_000)}, " in " ".join(shown.split())
        assert f"the latest {s} s ago; stalls now: 1" in shown


def test_a_rate_is_that_of_now_or_is_not_told(rows, tmp_path, clock, capsys):
    """While no frame comes nothing goes on, and the last rate is soon gone."""
    files.write(tmp_path / "live-00001.parquet", rows)
    os.utime(tmp_path / "live-00001.parquet", (5_000, 5_000))
    followed = Follower(tmp_path)
    screen, told = screen_of(followed, tmp_path, "rates"), []
    for clock.s in (5_000, 5_000.5, 5_010):
        screen.show(fresh=bool(followed.poll()))
        told.append("messages/s" in capsys.readouterr().out)
    assert told == [True, False, False]
    assert screen._last == []


def test_as_many_are_told_as_a_table_has_rows(repo, capsys):
    """And how many there are more."""
    place = repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"
    followed = Follower(place)
    screen = screen_of(followed, place, rows=1)
    screen.show(fresh=bool(followed.poll()))
    first, more, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("over: ")
    assert re.fullmatch(r"\.\.\. and \d more; --rows 0 shows all", more)


@pytest.mark.parametrize("batch", [1, 7, 10_000])
def test_each_stall_of_a_capture_is_told_once_it_is_over(
    repo, tmp_path, monkeypatch, capsys, batch
):
    """Frames that come after it tell of it, and so it never goes on."""
    monkeypatch.setattr(columns, "BATCH_ROWS", batch)
    place = repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"
    followed = Follower(place)
    screen = screen_of(followed, place)
    while not followed.rows or followed.over:
        screen.show(fresh=bool(followed.poll()))
    stalls = folds.stalls(import_capture(place).rows)
    assert len(stalls) == 4
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("over: ")]
    assert [line.partition(" for ")[2] for line in told] == [
        f"{duration(one.end_us - one.start_us)}, {one.messages_waiting} waited (later-frames)"
        for one in stalls
    ]


@pytest.mark.parametrize("when", ["before the answers", "before the state", "after the state"])
def test_a_batch_in_which_the_process_was_killed_counts_once(rows, tmp_path, monkeypatch, when):
    """What it had begun to write is passed over."""
    files.write(tmp_path / "live-00001.parquet", rows[:150])
    follower(tmp_path).poll()
    files.write(tmp_path / "live-00001.parquet", rows[:400])
    keep = following._Kept.keep

    def killed(self, over, read, fold):
        if when == "after the state":
            keep(self, over, read, fold)
        elif when == "before the state":
            for name in over:
                with self._answers[name].open("ab") as file:
                    file.write(b'{"begun": "to be wri')
        raise SystemExit("killed")

    with monkeypatch.context() as patched:
        patched.setattr(following._Kept, "keep", killed)
        with pytest.raises(SystemExit):
            follower(tmp_path).poll()
    files.write(tmp_path / "live-00002.parquet", rows[400:])
    followed = follower(tmp_path)
    assert answers(followed) == whole(rows)
    assert followed.rows == len(rows)


def test_each_row_is_taken_once_from_files_that_grow(rows, tmp_path, monkeypatch):
    """In batches of at most so many, without a checkpoint as with one."""
    monkeypatch.setattr(following, "BATCH_ROWS", 60)
    written, sizes, followed = 0, [], Follower(tmp_path, window_us=WINDOW_US)
    while sum(sizes) < len(rows):
        written = min(len(rows), written + 45)
        for number, first in enumerate(range(0, written, 200), 1):
            part = rows[first : min(written, first + 200)]
            files.write(tmp_path / f"live-{number:05d}.parquet", part)
        sizes.append(followed.poll())
    assert max(sizes) <= 60
    assert followed.poll() == 0
    assert answers(followed) == whole(rows)


@pytest.mark.parametrize("kind", ["pcapng", "pcap"])
def test_a_capture_that_grows_is_followed_and_counts_once(repo, tmp_path, kind):
    """In pieces that end in mid-packet; after a stop it goes on, and the rows are the same."""
    whole_file = (repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng").read_bytes()
    if kind == "pcap":
        whole_file = as_pcap(whole_file)
    place = tmp_path / "grows.pcap"
    place.write_bytes(whole_file)
    rows = [replace(row, run="grows") for row in import_capture(place).rows]
    cuts = [10, 24, 300, 1000, *range(1001, 1040), 3000, 6000, len(whole_file)]
    place.write_bytes(b"")
    followed, seen = Follower(place, beside(tmp_path), window_us=WINDOW_US), []
    for cut in cuts:
        with place.open("r+b") as file:
            file.write(whole_file[:cut])
        if cut in (1010, 3000):
            followed = Follower(place, beside(tmp_path), window_us=WINDOW_US)
        while followed.poll():
            pass
        seen.append(followed.rows)
        assert answers(followed) == whole(rows[: followed.rows])
    assert seen == sorted(seen)
    assert len(set(seen)) > 4
    assert seen[-1] == len(rows)
    place.write_bytes(whole_file[:500])
    with pytest.raises(TraceFileError, match="a capture was begun anew"):
        followed.poll()
    place.write_bytes(whole_file[:100] + b"other" + whole_file[105:])
    with pytest.raises(TraceFileError, match="another capture than the checkpoint knows"):
        Follower(place, beside(tmp_path))


def packets_of(data):
    """Those of a capture."""
    return [packet for packet in CaptureReader(io.BytesIO(data)) if packet is not None]


def as_pcap(data, kept=262_144):
    """The packets of a pcapng file in the older format, of each as many octets at most."""
    return pcap_of(packets_of(data), kept)


def pcap_of(found, kept=262_144):
    """Packets as a file."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, found[0].linktype)]
    for one in found:
        seconds, us = divmod(one.t_us, 1_000_000)
        octets, size = one.data[:kept], len(one.data) + one.missing
        parts += [struct.pack("<IIII", seconds, us, len(octets), size), octets]
    return b"".join(parts)


def test_two_recorders_in_one_folder_are_both_read(rows, tmp_path):
    """Their files are numbered apart; a file without a number is read too."""
    followed = Follower(tmp_path)
    files.write(tmp_path / "live-00001.parquet", rows[:10])
    files.write(tmp_path / "proxy-00001.parquet", rows[10:30])
    assert followed.poll() == 30
    files.write(tmp_path / "proxy-00002.parquet", rows[30:60])
    files.write(tmp_path / "zother.parquet", rows[60:65])
    assert (followed.poll(), followed.rows) == (35, 65)


def test_a_recorder_that_began_anew_is_told(rows, tmp_path):
    """Its rows are not those that were read: no answer could be right."""
    files.write(tmp_path / "live-00001.parquet", rows[:50])
    followed = Follower(tmp_path)
    followed.poll()
    files.write(tmp_path / "live-00001.parquet", rows[:20])
    with pytest.raises(TraceFileError, match="has 20 rows, and 50 were read"):
        followed.poll()


def test_a_folder_or_a_checkpoint_that_is_none_is_told(rows, tmp_path):
    """One line, before anything is followed."""
    with pytest.raises(TraceFileError, match="no such file or folder"):
        Follower(tmp_path / "absent")
    folder, state = tmp_path / "live", beside(tmp_path / "live") / "state.json"
    files.write(folder_made(folder) / "live-00001.parquet", rows[:400])
    follower(folder).poll()
    good = json.loads(state.read_text(encoding="utf-8"))
    for text in (
        "nothing", "{}", '{"version": 6}', json.dumps(good | {"fold": {}}),
        json.dumps(good | {"octets": good["octets"] | {"stalls": 10**9}}),
        json.dumps(good | {"read": {}}),
    ):  # fmt: skip
        state.write_text(text, encoding="utf-8")
        with pytest.raises(TraceFileError, match=r"state.json: is damaged"):
            follower(folder)
    state.write_text(json.dumps(good | {"version": 3}), encoding="utf-8")
    with pytest.raises(TraceFileError, match="of version 3, and this is version 10"):
        follower(folder)
    state.write_text(json.dumps(good), encoding="utf-8")
    answers = max(state.parent.glob("*.jsonl"), key=lambda file: file.stat().st_size)
    whole = answers.read_bytes()
    answers.write_bytes(whole.replace(b":", b";", 1))
    with pytest.raises(TraceFileError, match=r"state.json: is damaged"):
        follower(folder)
    answers.write_bytes(whole)
    with pytest.raises(TraceFileError, match=r"follows .*/live; begin with another checkpoint"):
        Follower(folder_made(tmp_path / "other"), beside(folder))


def test_the_command_says_what_goes_on_and_goes_on_after_a_kill(rows, tmp_path, request):
    """Each change is told as it comes; after a kill nothing is told or counted twice."""
    folder, checkpoint = folder_made(tmp_path / "live"), str(beside(tmp_path / "live"))
    words = [
        sys.executable, "-m", "workbench", "analyze", str(folder), "stalls", "--follow",
        "--checkpoint", checkpoint, "--format", "json",
    ]  # fmt: skip

    @contextmanager
    def started():
        with subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    # What a shell starts in the background ignores Ctrl-C, and so would what it starts.
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fold = LiveFold()
    for first, end, ending in ((0, 300, signal.SIGKILL), (300, len(rows), signal.SIGINT)):
        name = f"live-{1 if first == 0 else 2:05d}.parquet"
        files.write(folder / name, rows[first:end])
        wanted = [{**one, "lasts": False} for one in fold.take(rows[first:end])["stalls"]]
        wanted += [
            {**one, "lasts": True}
            for one in whole(rows[:end])["stalls"]
            if one["release_frame_id"] is None
        ]
        with started() as process:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert [{**one, "engine": "plain"} for one in wanted] == told
            process.send_signal(ending)
            _, error = process.communicate(timeout=TIMEOUT_S)
    assert error.splitlines()[-1] == f"{len(rows):,} rows so far"
    assert process.returncode == 0
    followed = Follower(folder, checkpoint)
    assert (followed.poll(), followed.rows) == (0, len(rows))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent", None, "no such file or folder"),
        (
            "text.txt",
            b"no capture",
            "cannot be followed; legal: the folder of a recorder, or a pcap",
        ),
        ("b.pcapng.gz", gzip.compress(b"\x0a\x0d\x0d\x0a", mtime=0), "file that is not compressed"),
    ],
)
def test_what_cannot_be_followed_is_told_with_what_can(tmp_path, capsys, name, content, words):
    """A file that is there is not said to be absent."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["analyze", str(tmp_path / name), "stalls", "--follow"]) == 1
    told = capsys.readouterr().err
    assert f"{name}: " in told
    assert words in told


class Planted:
    """Runs a command when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.system, (f"touch {self.mark}",)


def test_nothing_in_a_trace_folder_is_run(rows, tmp_path):
    """What lies beside the rows may come from anybody; a folder is data, and stays as it was."""
    folder, mark = tmp_path / "live", tmp_path / "was-run"
    files.write(folder_made(folder) / "live-00001.parquet", rows)
    planted = folder_made(folder / ".follow" / "answers")
    for name in ("state-7.pickle", "state-7.json", "stalls-0-0.pickle"):
        (planted / name).write_bytes(pickle.dumps((1, Planted(mark))))
    there = sorted(folder.rglob("*"))
    assert in_order(Follower(folder).answer("stalls")) == whole(rows)["stalls"]
    assert not mark.exists()
    assert sorted(folder.rglob("*")) == there
    with pytest.raises(TraceFileError, match="lies in the folder that is followed"):
        Follower(folder, checkpoint=folder / ".follow")


def folder_made(folder):
    """A folder, with those above it."""
    folder.mkdir(parents=True)
    return folder
