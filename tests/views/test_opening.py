"""Any row of any answer opens on the stage, at the row that it means."""

from __future__ import annotations

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.trace.rows import state_after
from workbench import folds
from workbench.scenarios.run import run
from workbench.trace import files
from workbench.trace.files import TraceFileError
from workbench.trace.naming import cut_row, plain
from workbench.views.opening import open_row
from workbench.views.scene import resolved
from workbench.views.scene_link import line_id


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


def scene_of(widget: Any) -> dict[str, Any]:
    """The scene that a stage has been sent."""
    found: dict[str, Any] = json.loads(gzip.decompress(widget.scene))
    return found


QUESTIONS = ("windows", "grants", "latency", "throughput", "violations")


def test_a_row_of_a_connection_that_names_a_queue_is_that_connection_s(tmp_path: Path) -> None:
    """Only what a queue itself tells may be about another one."""
    rows = run("overload").rows
    path = tmp_path / "t.parquet"
    files.write(path, rows)
    row = next(row for row in rows if row.queue and row.connection)
    with pytest.raises(TraceFileError, match="it tells of connection c77"):
        cut_row({"run": row.run, "seq": row.seq, "connection": "c77"}, path)


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
        assert found.start == state_after(mine[: found.rows[0].seq])


@pytest.mark.parametrize("name", ["credit", "overload"])
def test_each_stall_opens_where_it_begins(name: str, tmp_path: Path) -> None:
    """That may be the word of a queue, which is on no connection."""
    rows = run(name).rows
    path = tmp_path / "t.parquet"
    files.write(path, rows)
    held = folds.stalls(rows)
    assert held
    for stall in held:
        assert cut_row(stall._asdict(), path, around=1).seq == stall.seq
    begins = {rows[stall.seq].connection for stall in held}
    assert (None in begins) is (name == "overload")


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


@pytest.fixture(scope="module")
def two_sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[Path, Path], list[Any]]:
    """A receiver that waits for each message before it grants again, and one that tops up sooner.

    The runs have the same name: only what is in them tells them apart.
    """
    folder = tmp_path_factory.mktemp("sides")
    runs = [
        run("credit", "rmq4.3", {"policy": "batch-then-wait", "n": n, "messages": messages}).rows
        for n, messages in ((1, 20), (10, 90))
    ]
    paths = folder / "before.parquet", folder / "after.parquet"
    named = [[dataclasses.replace(row, run="both") for row in played] for played in runs]
    for path, played in zip(paths, named, strict=True):
        files.write(path, played)
    return paths, folds.compare(*named)


def test_a_row_of_compare_opens_on_either_side(two_sides: Any) -> None:
    """At the row that it names there; unasked at the side with the larger value."""
    paths, answer = two_sides
    opened = 0
    for row in answer:
        for side, path in zip(("left", "right"), paths, strict=True):
            if row[f"{side}_seq"] is not None:
                found = cut_row(row, paths, around=3, side=side)
                assert (found.path, found.seq) == (str(path), row[f"{side}_seq"])
                opened += 1
        if row["left_seq"] is not None and row["left"] != row["right"]:
            larger = paths[row["right"] > row["left"]]
            assert cut_row(row, paths, around=3).path == str(larger)
    assert opened >= 10


def test_the_stage_of_a_row_of_compare_tells_its_side_and_the_other(two_sides: Any) -> None:
    """In a notebook both are one word apart."""
    paths, answer = two_sides
    row = next(row for row in answer if row["measure"] == "gap_us")
    widget = open_row(row, list(paths), around=3)
    told = scene_of(widget)["idea"]
    assert told.startswith('Gap_us in the left trace, side="right" opens the other; ')
    other = open_row(row, list(paths), around=3, side="right")
    assert other.seq == row["right_seq"]
    told = scene_of(other)["idea"]
    assert told.startswith('Gap_us in the right trace, side="left" opens the other; ')


def test_where_one_side_has_nothing_to_show_the_other_one_opens(two_sides: Any) -> None:
    """A value of 0 may stand on both sides; and the note offers no side that has no row."""
    paths, answer = two_sides
    row = next(row for row in answer if row["measure"] == "messages")
    row = row | {"left": 0.0, "right": 0.0, "left_run": None, "left_seq": None}
    widget = open_row(row, paths)
    assert widget.seq == row["right_seq"]
    assert "opens the other" not in scene_of(widget)["idea"]
    with pytest.raises(TraceFileError, match="the left trace has nothing to show for messages"):
        open_row(row, paths, side="left")
    with pytest.raises(TraceFileError, match="neither trace has anything to show for messages"):
        open_row(row | {"right_seq": None}, paths)


def test_a_row_of_compare_needs_its_own_two_traces(two_sides: Any, trace: Path) -> None:
    """One line each: one trace alone, another trace, both the wrong way round, sides of no row."""
    paths, answer = two_sides
    rows = {row["measure"]: row for row in answer}

    def refused(row: Any, given: Any, **options: Any) -> str:
        with pytest.raises(TraceFileError) as error:
            open_row(row, given, **options)
        assert "\n" not in str(error.value)
        return str(error.value)

    frames = rows["frames"]
    assert "give both: (left, right)" in refused(frames, paths[0])
    assert "about two traces: (left, right); given: 3" in refused(frames, [*paths, trace])
    assert "no side 'up'; legal: left, right" in refused(frames, paths, side="up")
    stranger = frames | {"right_run": "elsewhere"}
    text = refused(stranger, (paths[0], trace), side="right")
    assert text.startswith(f"{trace}: no run 'elsewhere' in it; there are: ")
    assert text.endswith("(given as the right trace)")
    text = refused(rows["duration_us"], paths[::-1], side="left")
    assert f"{paths[1]}: the row is of another trace: row " in text
    text = refused(rows["duration_us"], paths[::-1], side="right")
    assert text.startswith(f"{paths[0]}: row ")
    alone = {"run": frames["left_run"], "seq": 4}
    assert "about one trace; given: 2" in refused(alone, paths)
    assert "only a row of compare has sides" in refused(alone, paths[0], side="left")


def test_the_stage_stands_at_the_row_with_what_came_before(rows: list[Any], trace: Path) -> None:
    """Cursor, note and counters."""
    target = next(row for row in reversed(rows) if row.kind == "flow" and row.link)
    widget = open_row({"run": target.run, "seq": target.seq}, trace, around=2)
    assert widget.seq == target.seq
    doc = scene_of(widget)
    assert "what came before is in the counters" in doc["idea"]
    assert len(doc["branches"][0]["steps"]) <= 5
    assert any(None not in cells for cells in next(resolved(doc))["counters"].values())
    assert str(target.link) in str(doc["counters"]["rows"][0]["group"])


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


def test_of_very_many_links_only_those_of_the_slice_are_shown(tmp_path: Path) -> None:
    """The document stays small, and the counters of its links are those of the whole."""
    played = run("credit", "rmq4.3", {"messages": 8, "policy": "top-up-at-half", "n": 4}).rows
    rows = [
        dataclasses.replace(
            row, run="many", seq=n * len(played) + row.seq, t_us=n * 10**6 + row.t_us,
            connection=row.connection and f"c{n}",
            frame_id=None if row.frame_id is None else n * 1000 + row.frame_id,
        )
        for n in range(70)
        for row in played
    ]  # fmt: skip
    path = tmp_path / "many.parquet"
    files.write(path, rows)
    at = rows[-9].seq
    widget = open_row({"run": "many", "seq": at}, path, around=20)
    doc = scene_of(widget)
    assert len(doc["links"]) <= 2
    assert "links of which no row is here left out" in doc["idea"]
    state = state_after(rows[: at + 1])
    link = next(scope for _vantage, scope in state.ledgers if scope.connection == "c69"
                and scope.group == "link")  # fmt: skip
    shown = list(resolved(doc))[widget.cursor]
    credit = shown["counters"][f"{line_id(link)} link_credit"]
    assert credit[0] == state.ledgers["broker", link]["link_credit"]


def test_of_very_many_channels_only_those_of_the_slice_are_shown(tmp_path: Path) -> None:
    """AMQP 0-9-1 has no links: its page listed every channel there was."""
    played = run("prefetch", "rmq4.3").rows
    rows = [
        dataclasses.replace(
            row, run="many", seq=n * len(played) + row.seq, t_us=n * 10**6 + row.t_us,
            connection=row.connection and f"c{n}",
            frame_id=None if row.frame_id is None else n * 1000 + row.frame_id,
        )
        for n in range(70)
        for row in played
    ]  # fmt: skip
    path = tmp_path / "many.parquet"
    files.write(path, rows)
    widget = open_row({"run": "many", "seq": rows[-9].seq}, path, around=20)
    doc = scene_of(widget)
    assert len(doc["links"]) <= 2
    assert "68 channels or sessions of which no row is here left out" in doc["idea"]


@pytest.mark.parametrize(
    ("application", "kind", "drawn"),
    [
        ("orders", "transfer", "link"), ("bills", "basic.publish", "link"),
        ("parcels", "message.transfer", "gauge"), ("mail", "basic.deliver", "link"),
        ("depot", "message.transfer", "link"),
    ],
)  # fmt: skip
def test_of_several_protocols_the_connection_of_the_row_is_drawn(
    office: Any, application: str, kind: str, drawn: str
) -> None:
    """By a picture of its protocol, with its own queue, and nobody else's client."""
    rows, path = office
    row = next(row for row in rows if (row.connection, row.kind) == (application, kind))
    widget = open_row({"run": row.run, "seq": row.seq}, path, around=40)
    doc = scene_of(widget)
    assert doc["layout"] == drawn
    assert {node["id"] for node in doc["nodes"]} == {"broker", f"client:{application}"}
    assert f"only {application} is drawn" in doc["idea"]
    if drawn == "gauge":
        (state,) = (node for node in doc["nodes"] if node["id"] == "broker")
        assert state["name"] == "Queue parcels"


def test_one_connection_alone_is_told_from_the_first_row_on(office: Any) -> None:
    """Nothing is before it that would tell of the others."""
    rows, path = office
    row = next(row for row in rows if (row.connection, row.kind) == ("orders", "transfer"))
    idea = scene_of(open_row({"run": row.run, "seq": row.seq}, path, around=len(rows)))["idea"]
    assert idea == "Of the connections, which speak different protocols, only orders is drawn."


def test_of_a_row_without_any_frame_every_connection_stays(office: Any) -> None:
    """No protocol is spoken there, and so there are not several."""
    rows, path = office
    row = next(row for row in rows if row.connection == "bills" and not row.is_frame)
    idea = scene_of(open_row({"run": row.run, "seq": row.seq}, path, around=0))["idea"]
    assert "is drawn" not in idea


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], Path]:
    """Six applications of three protocols, and their trace."""
    rows = list(run("office", "rmq4.3", {"messages": 3}).rows)
    path = tmp_path_factory.mktemp("office") / "office.parquet"
    files.write(path, rows)
    return rows, path


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
        ({"run": "{run}", "seq": 10**9}, "row 1000000000 is not in this trace; legal: 0 to "),
        ({"run": "{run}", "seq": 4, "frame_id": 10**9}, "the row is of another trace: it tells of"),
        ({"run": "{run}", "seq": 20, "connection": "c77"}, "it tells of connection c77"),
        ({"run": "{run}", "link": "nobody's"}, "has no row of link nobody's"),
        ({"run": "{run}", "rate": 1.5}, "names no row of a trace"),
        ({"run": "{run}", "seq": "four"}, "a row is named by a whole number"),
        ({"run": "{run}", "connection": "c1", "session": "1"}, "session is '1', where a row is"),
        ({"run": "{run}", "connection": 1}, "connection is 1, where a row is named by a text"),
        ({"run": "{run}", "window_start_us": "x"}, "window_start_us is 'x', where a row is named"),
        ({"seq": 4}, "holds 2 runs"),
        ({"measure": "zero_us", "left_seq": None, "right_seq": None}, "neither trace has anything"),
        ({"measure": "zero_us", "left_seq": 1, "right_seq": 2}, "give both: (left, right)"),
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
