"""Any row of any answer opens in the stepper, at the row that it means."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from workbench import folds
from workbench.scenarios.run import run
from workbench.trace import files, fold
from workbench.trace.files import TraceFileError
from workbench.trace.naming import cut_row, plain
from workbench.views.opening import open_row
from workbench.views.reader import Reader


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    """A broker that grants, is drained and grants again; a second run beside it."""
    played = run("credit", "rmq4.3", {"messages": 40, "policy": "top-up-at-half", "n": 4})
    other = run("publishers", "rmq4.3")
    return [*played.rows, *other.rows]


@pytest.fixture(scope="module")
def trace(rows: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """They in a file."""
    path = tmp_path_factory.mktemp("trace") / "both.parquet"
    files.write(path, rows)
    return path


QUESTIONS = ("windows", "grants", "latency", "throughput", "violations")


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_row_of_each_answer_opens(question: str, rows: list[Any], trace: Path) -> None:
    """At a row of its run, connection and link, with the state of a replay."""
    for answer in getattr(folds, question)(rows)[:4]:
        found = cut_row(answer, trace, around=3)
        row = found.row
        assert row.run == answer["run"]
        for name in ("connection", "session", "link"):
            assert answer.get(name) in (None, getattr(row, name))
        mine = [row for row in rows if row.run == found.run]
        assert found.start == fold(mine[: found.rows[0].seq])


def test_a_row_of_a_whole_link_opens_where_it_was_worst(tmp_path: Path) -> None:
    """The longest time without credit, the slowest answer: as the answer itself measured it."""
    played = run("credit", "rmq4.3", {"messages": 300, "initial_delivery_count": 2**32 - 5})
    for credit, wait in ((3, 0), (9, 1), (1, 0), (20, 1)):
        played = played.act(len(played.rows) - 1, "grant", link_credit=credit)
        if wait:
            played = played.act(len(played.rows) - 1, "publish", count=2)
    played = played.act(len(played.rows) - 1, "drain")
    rows = list(played.rows)
    path = tmp_path / "t.parquet"
    files.write(path, rows)
    for answer in folds.latency(rows):
        row = cut_row(answer, path).row
        assert row.kind == ("transfer" if answer["measure"] == "settlement" else "flow")
        if answer["max_us"] is not None:
            assert any(later.t_us == row.t_us + answer["max_us"] for later in rows[row.seq :])
    for answer in folds.grants(rows):
        if answer["link_sender"] == "broker" and answer["zero_times"]:
            row = cut_row(answer, path).row
            assert row.ledger is not None
            assert row.ledger["link_credit"] == 0
            assert row.seq > next(r.seq for r in rows if (r.ledger or {}).get("link_credit"))


def test_a_window_opens_where_it_was_closed_for_longest(tmp_path: Path) -> None:
    """An alarm closes the publisher's window, and later another."""
    played = run("publishers", "rmq4.3")
    for act, arguments in (
        ("alarm", {}), ("publish", {"count": 3}), ("clear", {}), ("publish", {"count": 2}),
    ):  # fmt: skip
        played = played.act(len(played.rows) - 1, act, **arguments)
    rows = list(played.rows)
    path = tmp_path / "t.parquet"
    files.write(path, rows)
    closed = [answer for answer in folds.windows(rows) if answer["closed_times"]]
    assert closed
    for answer in closed:
        row = cut_row(answer, path).row
        assert row.ledger is not None
        assert row.ledger["remote_incoming_window"] == 0
        assert (row.connection, row.session) == (answer["connection"], answer["session"])
        after = [
            later for later in rows[row.seq :]
            if later.vantage == row.vantage and (later.ledger or {}).get("remote_incoming_window")
        ]  # fmt: skip
        assert after[0].t_us - row.t_us == answer["longest_closed_us"]


def test_the_stepper_stands_at_the_row_with_what_came_before(rows: list[Any], trace: Path) -> None:
    """Cursor, note and counters."""
    target = next(row for row in reversed(rows) if row.kind == "flow" and row.link)
    widget = open_row({"run": target.run, "seq": target.seq}, trace, around=2)
    assert widget.seq == target.seq
    assert "what came before is in the counters" in widget.doc["note"]
    assert len(widget.doc["rows"]) <= 5
    assert len(Reader(widget.doc).doc["start"]["cells"]) > 10
    assert str(target.link) in widget.still()


class Named(NamedTuple):
    """A row of a table as `itertuples` gives it."""

    run: str
    seq: int


class Spark:
    """What a Spark Row offers."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def asDict(self) -> dict[str, Any]:  # noqa: N802
        return self.values


def test_rows_of_spark_pandas_and_python_are_alike(rows: list[Any]) -> None:
    """Whole numbers that pandas made floats, and what is missing, are told as they were."""
    import pandas as pd

    frame = pd.DataFrame(
        [{"run": "a", "seq": 3, "session": 0}, {"run": "b", "seq": 4, "session": None}]
    )
    assert plain(frame.iloc[0]) == {"run": "a", "seq": 3, "session": 0}
    assert plain(frame.iloc[[1]]) == {"run": "b", "seq": 4, "session": None}
    assert plain(Named("a", 3)) == plain(Spark(run="a", seq=3)) == {"run": "a", "seq": 3}


@pytest.mark.parametrize(
    ("row", "telling"),
    [
        ({"run": "elsewhere", "seq": 3}, "no run 'elsewhere' in it; there are: "),
        ({"run": "{run}", "seq": 10**9}, "step 1000000000 is not in this trace; legal: 0 to "),
        ({"run": "{run}", "seq": 4, "frame_id": 10**9}, "the row is of another trace: it tells of"),
        ({"run": "{run}", "seq": 20, "connection": "c77"}, "it tells of connection c77"),
        ({"run": "{run}", "link": "nobody's"}, "has no row of link nobody's"),
        ({"run": "{run}", "rate": 1.5}, "names no row of a trace"),
        ({"run": "{run}", "seq": "four"}, "a row is named by a whole number"),
        ({"seq": 4}, "holds 2 runs"),
        (7, "int is no row of an answer"),
    ],
)
def test_a_row_that_cannot_be_opened_says_why(
    row: Any, telling: str, rows: list[Any], trace: Path
) -> None:
    """One line, with what is legal."""
    if isinstance(row, dict) and row.get("run") == "{run}":
        row = row | {"run": rows[0].run}
    with pytest.raises(TraceFileError) as error:
        open_row(row, trace)
    assert telling in str(error.value)
    assert "\n" not in str(error.value)


def test_a_trace_that_is_not_here_says_so() -> None:
    """A number is no trace; a cluster's files are not on this machine."""

    class There:
        def inputFiles(self) -> list[str]:  # noqa: N802
            return ["s3a://bucket/t.parquet"]

    with pytest.raises(TraceFileError, match="int is no trace"):
        open_row({"run": "a", "seq": 1}, 7)
    with pytest.raises(TraceFileError, match="lies in s3a://bucket"):
        open_row({"run": "a", "seq": 1}, There())


def test_a_dataframe_s_files_are_the_trace(rows: list[Any], tmp_path: Path) -> None:
    """One file with a blank in its name, or a folder of several."""

    class Frame:
        def __init__(self, *paths: Path) -> None:
            self.paths = paths

        def inputFiles(self) -> list[str]:  # noqa: N802
            return [path.as_uri() for path in self.paths]

    both = tmp_path / "a b"
    both.mkdir()
    first, second = both / "one.parquet", both / "two.parquet"
    files.write(first, rows[:30])
    files.write(second, [dataclasses.replace(row, run="second") for row in rows[:30]])
    assert open_row({"run": rows[0].run, "seq": 5}, Frame(first)).seq == 5
    assert open_row({"run": "second", "seq": 6}, Frame(first, second)).seq == 6
