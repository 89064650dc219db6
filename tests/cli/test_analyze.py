"""`workbench analyze` on the command line: what needs no Java, and what is refused."""

import csv
import io
import json

import pytest

from workbench.cli import main
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


def test_the_other_formats_hold_the_same(trace, capsys):
    """A table for people, CSV for programs."""
    assert main(["analyze", str(trace), "summary"]) == 0
    assert "link-credit" in capsys.readouterr().out
    assert main(["analyze", str(trace), "summary", "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row["messages"] == "5"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["nowhere.parquet", "stalls"], 1, "no such file"),
        (["nowhere.parquet", "what"], 2, "invalid choice"),
        (["nowhere.parquet", "compare"], 2, "compare takes two traces"),
        (["nowhere.parquet", "grants", "b.parquet"], 2, "grants takes one trace"),
        (["data/captures/rmq40_c_drain.pcapng", "stalls"], 1, "first: workbench import"),
    ],
)
def test_what_cannot_be_asked_is_told_in_one_line(repo, monkeypatch, capsys, arguments, code, text):
    """1 for a bad file, 2 for a wrong command line."""
    monkeypatch.chdir(repo)
    assert main(["analyze", *arguments]) == code
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


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
