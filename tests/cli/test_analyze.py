"""`workbench analyze` on the command line: what needs no Java, and what is refused."""

import csv
import gzip
import io
import json
import shlex
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import workbench
from tests.patience import TIMEOUT_S
from workbench import folds
from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import find_java
from workbench.capture.importer import import_capture
from workbench.cli import asking, main
from workbench.cli.asking import PLAIN_ROWS, engine_for
from workbench.cli.console import Progress
from workbench.scenarios.run import run
from workbench.trace import files


@pytest.fixture
def trace(tmp_path):
    """A receiver that was late with its second grant."""
    played = run("credit", "rmq4.3", {"messages": 9})
    for credit in (2, 3):
        played = played.act(len(played.rows) - 1, "grant", link_credit=credit)
    path = tmp_path / "t.parquet"
    files.write(path, played.rows)
    return path


def test_a_summary_needs_no_java(trace, capsys, monkeypatch):
    """Messages, time at zero credit, the longest stall and one line of advice."""
    monkeypatch.setenv("PATH", "")
    assert main(["analyze", str(trace), "summary", "--format", "json"]) == 0
    (link,) = json.loads(capsys.readouterr().out)
    assert link["messages"] == 5
    assert (link["stalls"], link["longest_brake"], link["violations"]) == (3, "link-credit", 0)
    assert "the receiver grants too little" in link["advice"]


def test_small_answers_load_no_spark(trace):
    """Half a second and more of every question."""
    code = (
        "import sys; from workbench.cli import main;"
        f"main(['analyze', {str(trace)!r}, 'stalls']); print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_faulty_trace_is_refused_without_java_too(trace, capsys):
    """Rows out of order, which a fold would take as they come."""
    rows = files.read(trace)
    files.write(trace, [*rows[:6], rows[7], rows[6], *rows[8:]])
    assert main(["analyze", str(trace), "summary"]) == 1
    assert "column seq 6 comes after 7" in capsys.readouterr().err


def test_the_other_formats_hold_the_same(trace, capsys):
    """A table for people, CSV for programs."""
    assert main(["analyze", str(trace), "summary"]) == 0
    assert "was for credit" in capsys.readouterr().out
    assert main(["analyze", str(trace), "summary", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["messages"] == "5"


@pytest.mark.parametrize("name", ["two words.pcapng", "b.parquet", "b'c.pcap.gz"])
def test_a_capture_is_told_a_command_that_makes_a_trace_of_it(
    repo, tmp_path, monkeypatch, capsys, name
):
    """As it stands: names are quoted, and none is both read and written."""
    monkeypatch.chdir(tmp_path)
    data = (repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng").read_bytes()
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert main(["analyze", name, "summary"]) == 1
    first = shlex.split(capsys.readouterr().err.partition("; first: ")[2])
    assert main(first[1:]) == 0
    assert main(["analyze", first[-1], "summary"]) == 0


def test_a_compressed_capture_is_a_capture_too(repo, tmp_path, capsys):
    """And is told how it becomes a trace."""
    place = tmp_path / "b.pcapng.gz"
    capture = repo / "data" / "captures" / "rmq43_b_consumer_credit.pcapng"
    place.write_bytes(gzip.compress(capture.read_bytes()))
    assert main(["analyze", str(place), "summary"]) == 1
    told = capsys.readouterr().err
    assert told.endswith(
        f"is a capture, not a trace; first: workbench import {place} -o b.parquet\n"
    )
    place.write_bytes(gzip.compress(b"another text"))
    assert main(["analyze", str(place), "summary"]) == 1
    assert "is not a Parquet file" in capsys.readouterr().err


def test_unknowns_need_no_java_and_are_a_page_or_rows(trace, capsys, monkeypatch):
    """Sentences for people; the same things row by row for programs."""
    monkeypatch.setenv("PATH", "")
    assert main(["analyze", str(trace), "unknowns"]) == 0
    page = capsys.readouterr().out
    assert "neither a detach" in page
    assert main(["analyze", str(trace), "unknowns", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(row["unknown"] in page and row["why"] in page for row in rows)
    assert {row["what"] for row in rows} == {"ending"}


KEY = ["run", "connection", "session", "link", "link_sender", "attach_no", "seq", "frame_id", "end"]


def told_of(capsys):
    """Rows of an answer in JSON, without the engine, which each of them names."""
    rows = json.loads(capsys.readouterr().out)
    assert {row.pop("engine") for row in rows} <= {"plain"}
    return rows


def test_stalls_for_programs_have_the_key_and_what_is_to_be_told(trace, capsys):
    """Its names are a contract."""
    answer = [row._asdict() for row in folds.stalls(files.read(trace))]
    assert main(["analyze", str(trace), "stalls", "--format", "json"]) == 0
    told = told_of(capsys)
    assert told == answer
    assert list(told[0]) == [
        *KEY, "brake", "start_us", "end_us", "messages_waiting", "release_frame_id", "evidence",
    ]  # fmt: skip


def test_credit_for_programs_has_the_key_and_both_counters(trace, capsys):
    """Of both ends, for this trace has both vantages."""
    answer = [row._asdict() for row in folds.credit_rows(files.read(trace))]
    assert main(["analyze", str(trace), "credit", "--format", "json"]) == 0
    told = told_of(capsys)
    assert told == answer
    assert list(told[0]) == [*KEY, "delivery_count", "link_credit", "known"]
    assert {row["end"] for row in told} == {"sender", "receiver"}


def test_each_stall_in_a_table_ends_with_the_line_that_opens_it(trace, capsys):
    """And the line works as it is printed."""
    answer = [row._asdict() for row in folds.stalls(files.read(trace))]
    assert main(["analyze", str(trace), "stalls"]) == 0
    *lines, caption = capsys.readouterr().out.splitlines()[1:]
    assert caption == "stalls: 3 rows; answered without Spark"
    assert len(lines) == len(answer) == 3
    for line, row in zip(lines, answer, strict=True):
        command = line[line.index("workbench show ") :]
        assert command.endswith(f" --at {row['seq']}")
        assert main(shlex.split(command)[1:]) == 0
        assert capsys.readouterr().out


def test_each_row_of_compare_ends_with_the_line_that_opens_its_larger_side(trace, tmp_path, capsys):
    """And the line works as it is printed; what neither side can show has none."""
    other = tmp_path / "a b.parquet"
    once = {"messages": 9, "policy": "batch-then-wait", "n": 9}
    files.write(other, run("credit", "rmq4.3", once).rows)
    answer = folds.compare(files.read(trace), files.read(other))
    assert main(["analyze", str(trace), "compare", str(other)]) == 0
    head, *lines, _caption = capsys.readouterr().out.splitlines()
    assert head.endswith("left_seq  right_seq  opens  open it with")
    opened = set()
    for line, row in zip(lines, answer, strict=True):
        if row["left_seq"] is None and row["right_seq"] is None:
            assert line.split()[-2:] == ["-", "-"]
            continue
        side = "right" if (row["right"] or 0) > (row["left"] or 0) else "left"
        command = shlex.split(line[line.index("workbench show ") :])
        assert command[2] == str(other if side == "right" else trace)
        assert line[: line.index("workbench show ")].split()[-1] == side
        assert command[3:] == [f"--run={row[f'{side}_run']}", "--at", str(row[f"{side}_seq"])]
        assert main(command[1:]) == 0
        assert capsys.readouterr().out
        opened.add(side)
    assert opened == {"left", "right"}


def test_a_table_names_runs_where_there_are_several(repo, trace, tmp_path, capsys):
    """Programs are told them in any case."""
    rows = files.read(trace)
    alarm = import_capture(repo / "data" / "captures" / "rmq43_f_memory_alarm.pcapng").rows
    many = run("credit", "rmq4.3", {"messages": 60, "policy": "one-at-a-time"}).rows
    two = tmp_path / "two.parquet"
    files.write(two, [*many, *alarm])
    assert main(["analyze", str(trace), "compare", str(two)]) == 0
    head = capsys.readouterr().out.splitlines()[0].split()
    assert ("left_run" in head, "right_run" in head) == (False, True)
    assert main(["analyze", str(trace), "compare", str(two), "--format", "json"]) == 0
    assert told_of(capsys) == folds.compare(rows, files.read(two))


def test_a_summary_is_advice_and_its_numbers_stand_behind_a_flag(trace, capsys):
    """Who waited, how long, why and what to change, with the line that opens the longest wait."""
    assert main(["analyze", str(trace), "summary"]) == 0
    link, advice, opened, caption = capsys.readouterr().out.splitlines()
    assert link == "c1/1 receiver"
    assert advice.strip().startswith(
        "The broker waited 3 times; the longest wait, 2.0 ms, was for credit: "
    )
    assert main(shlex.split(opened)[1:]) == 0
    assert caption == "summary: answered without Spark; --numbers shows counts and microseconds"
    capsys.readouterr()
    assert main(["analyze", str(trace), "summary", "--numbers"]) == 0
    assert "at_zero_us" in capsys.readouterr().out
    assert main(["analyze", str(trace), "stalls", "--numbers"]) == 2


@pytest.mark.parametrize(
    ("rows", "environment", "asked", "engine"),
    [
        (PLAIN_ROWS, {}, None, "plain"),
        (PLAIN_ROWS + 1, {}, None, "spark"),
        (PLAIN_ROWS + 1, {}, "plain", "plain"),
        (10, {}, "spark", "spark"),
        (10, {"WORKBENCH_SPARK_MASTER": "local[1]"}, None, "spark"),
        (10, {"PYSPARK_SUBMIT_ARGS": "--master spark://h:7077 pyspark-shell"}, None, "spark"),
        (10, {"WORKBENCH_SPARK_MASTER": "local[1]"}, "plain", "plain"),
    ],
)
def test_the_engine_fits_the_size_and_a_named_master_means_spark(
    monkeypatch, rows, environment, asked, engine
):
    """What is asked for wins."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert engine_for(rows, asked) == engine


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (lambda t_us: t_us, "see c1 published"),
        (lambda t_us: None, " frames for "),
        (lambda t_us: -t_us, "an unknown time"),
        (lambda t_us: 1_000_000_000 * t_us, "less than 1000 s"),
    ],
    ids=["as it was", "without times", "a clock that goes back", "a coarse clock"],
)
def test_spark_s_numbers_have_the_advice_of_the_folds(repo, tmp_path, at, said):
    """One row cannot tell all of it, nor what the clock of the trace is worth."""
    capture = repo / "data/captures/amqp091/rmq43_b1_amqp091_memory_alarm.pcapng"
    rows = [replace(row, t_raw_us=at(row.t_us)) for row in import_capture(capture).rows]
    files.write(tmp_path / "t.parquet", rows)
    links = [asdict(link) for link in folds.summarise(rows)]
    assert any(said in link["advice"] for link in links)
    numbers = [{name: link[name] for name in link if name != "advice"} for link in links]
    waits = asking._waits(numbers, tmp_path / "t.parquet", Progress())
    assert list(asking._advised(numbers, waits)) == links


def test_a_url_is_spark_s():
    """Its rows are not counted before."""
    assert asking._rows(["s3a://bucket/t.parquet"]) is None
    assert engine_for(None) == "spark"


def test_an_answer_in_a_notebook_says_which_engine_it_was(trace):
    """It is a sequence of rows, shown as a table with a caption."""
    answer = workbench.ask_trace(trace, "stalls")
    assert list(answer) == [row._asdict() for row in folds.stalls(files.read(trace))]
    assert (answer.engine, repr(answer)) == ("plain", "stalls: 3 rows; answered without Spark")
    assert repr(answer) in answer._repr_html_()
    assert answer._repr_html_().count("<tr>") == 4
    assert replace(answer, rows=answer[:1]).caption == "stalls: 1 row; answered without Spark"
    with pytest.raises(ValueError, match="'what' of 1 trace"):
        workbench.ask_trace(trace, "what")
    with pytest.raises(ValueError, match="engine 'fast'; legal: plain, spark"):
        workbench.ask_trace(trace, "stalls", engine="fast")


ENDLESS = """
import os, signal, sys, threading
from workbench.analysis import reading
from workbench.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it

def endless(spark, _trace):
    def interrupt():
        while not spark.sparkContext.statusTracker().getActiveJobsIds():
            pass
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    spark.range(10**15).selectExpr("sum(id)").collect()

reading.open_trace = endless
sys.argv[1:] = ["analyze", sys.argv[1], "stalls", "--engine", "spark"]
sys.exit(main())
"""


@pytest.mark.slow
def test_ctrl_c_ends_spark_s_work_with_one_word(trace):
    """What PySpark and Py4J would say of it is nothing that somebody who stops wants to read."""
    try:
        find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    asked = subprocess.run(
        [sys.executable, "-c", ENDLESS, str(trace)],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    told = [line for line in asked.stderr.splitlines() if not line.startswith(("Spark ", "... "))]
    assert (asked.stdout, told, asked.returncode) == ("", ["workbench analyze: stopped"], 130)
