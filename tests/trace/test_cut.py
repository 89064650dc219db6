"""A row of a trace opens as if everything before it had been replayed."""

from __future__ import annotations

import dataclasses
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.rows import same, state_after
from workbench.capture.importer import import_capture
from workbench.scenarios import registry
from workbench.scenarios.run import run
from workbench.trace import Fold, files, pieces
from workbench.trace import cut as cutting
from workbench.trace.before import Before
from workbench.trace.braking import Held
from workbench.trace.cut import cut, cut_rows
from workbench.trace.fold import link_scope
from workbench.trace.schema import INTERNAL, Row
from workbench.trace.story import Story
from workbench.views.opening import scene_of
from workbench.views.scene import Strip
from workbench.views.scene_walk import Walk

CAPTURES = Path(__file__).resolve().parents[2] / "data" / "captures"
MOST = 1_000  # rows of one scenario that are replayed again and again
LONG = (
    "emergency_brake",
    "office",
    "overload",
    "quorum_chaos",
    "one_sender_one_receiver",
    "multicast",
    "two_senders",
    "rmq43_a_publisher_grants",
)
FEWER = {
    "emergency_brake": {"messages": 8, "watermark": "0.25"},
    "multicast": {"messages": 12, "message_bytes": 100},
    "overload": {"messages": 8},
}
NAMES = [
    # What was captured of 4.0 was done with 4.3, too.
    pytest.param(name, marks=pytest.mark.slow) if name in LONG or "rmq40" in name else name
    for name in (*registry.names(), *sorted(file.stem for file in CAPTURES.glob("*.pcapng")))
]


@cache
def rows_of(name: str) -> tuple[Row, ...]:
    """The beginning of the scenario's run, or the rows of the capture."""
    if name in registry.names():
        return tuple(run(name, parameters=FEWER.get(name, {})).rows[:MOST])
    return tuple(import_capture([CAPTURES / f"{name}.pcapng"]).rows)


def cuts_of(count: int, many: int) -> list[int]:
    """The first rows, the last, and some between."""
    draw = random.Random(count)
    return sorted({0, 1, count - 1, *(draw.randrange(count) for _ in range(many))} - {-1})


def written(folder: Path, rows: Any, group_rows: int = 40) -> Path:
    """A trace file in small row groups, so that a cut goes through several."""
    path = folder / "t.parquet"
    with files.TraceWriter(path, group_rows=group_rows) as writer:
        for row in rows:
            writer.write(row)
    return path


def shown(run: Any, link: Any = None) -> dict[int, Any]:
    """What the stage shows at each row, by `seq`: words, counters, lines, brakes, frames held."""
    strip = Strip(run, link=link, octets=False)
    walk, found = Walk(strip.walk.rows, strip.walk.cut), {}
    for row, step, state in zip(walk, strip.steps, strip.states, strict=True):
        found[row.seq] = {
            "step": {key: step.get(key) for key in ("sentence", "frame")},
            "clause": walk.explanation.clause,
            "formula": walk.explanation.formula,
            "counters": {
                name: cells
                for name, cells in state["counters"].items()
                if link is not None or name.startswith("link")  # it is the first link's session
            },
            "ends": {
                # Not where a window was stated: that may have been before the cut.
                line: {who: [n % 2**32 for n in end[:2]] for who, end in drawn["ends"].items()}
                for line, drawn in state["lines"].items()
            },
            "brakes": {link: told(walk.holding(link)) for link in walk.links},
            "held": {number for number, held in walk.gates.flying.items() if held},
            "flying": {
                flight.row.frame_id: (flight.row.kind, flight.ended and walk.rows[flight.ended].seq)
                for flight in walk.flights
                if flight.row.frame_id in walk.folding.in_flight
            },
        }
    return found


def told(held: Held) -> Any:
    """What blocks a sender, and the counters from which that follows."""
    return held.brake, held.link_credit, held.available, held.window, held.unconfirmed, held.known


def alike(part: dict[int, Any], whole: dict[int, Any], last: int) -> None:
    """A part shows of each of its rows what the whole shows; it may know of fewer links."""
    for seq, of_part in part.items():
        of_whole = whole[seq]
        for key in ("step", "clause", "formula", "held"):
            assert of_part[key] == of_whole[key], (key, seq)
        for key in ("counters", "ends", "brakes"):
            both = of_part[key].keys() & of_whole[key].keys()
            assert {one: of_part[key][one] for one in both} == {
                one: of_whole[key][one] for one in both
            }, (key, seq)
        assert of_part["flying"].keys() == of_whole["flying"].keys()
        for number, (kind, ended) in of_part["flying"].items():
            theirs, came = of_whole["flying"][number]
            assert (kind, ended) == (theirs, came if came is not None and came <= last else None)


@pytest.mark.parametrize("name", NAMES)
def test_the_state_at_a_cut_is_that_of_a_full_replay(name: str, tmp_path: Path) -> None:
    """Counters of both ends, windows, brakes and frames in flight, at many cuts of every trace."""
    rows = rows_of(name)
    path = written(tmp_path, rows)
    for seq in cuts_of(len(rows), 12):
        found = cut(path, rows[seq].seq, rows[seq].run, around=7)
        first = next(n for n, row in enumerate(rows) if row.run == found.run)
        mine = [row for row in rows if row.run == found.run]
        place = found.rows[0].seq - mine[0].seq
        want = state_after(mine[:place])
        assert same(found.start, want), (name, seq, first)
        assert found.row == rows[seq]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_of_a_cut_is_what_is_shown_of_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counters, lines, frames in flight and held, words, formulas and clauses, at each row."""
    monkeypatch.setattr(cutting, "WARM_ROWS", 30)
    rows = [row for row in rows_of(name) if row.run == rows_of(name)[0].run][:900]
    path = written(tmp_path, rows)
    whole: dict[Any, Any] = {}
    mixed = len({row.protocol for row in rows} - {INTERNAL}) > 1
    for seq in cuts_of(len(rows), 5):
        found = cut(path, seq, around=9)
        at_hand = cut_rows(rows, seq, first=max(0, seq - 9), end=seq + 10)
        assert (at_hand.start, at_hand.rows) == (found.start, found.rows)
        assert at_hand.explanations == found.explanations
        link = link_scope(found.row) if found.row.link_sender else None
        # Of a trace of several protocols the connection is drawn that the opened row is about.
        about = found.row.connection if mixed else None
        if (link, about) not in whole:
            replayed = cut_rows(rows, seq, first=0, end=len(rows)) if mixed else rows
            whole[link, about] = shown(replayed, link)
        for one in (found, at_hand):
            alike(shown(one, link), whole[link, about], one.rows[-1].seq)


def test_a_frame_that_a_hand_holds_is_held_in_the_cut(tmp_path: Path) -> None:
    """Acts before the slice: a gate closed and opened again, one frame held, some let through."""
    played = run("credit", "rmq4.3", {"messages": 6})
    for act, arguments in (
        ("hold", {"direction": "c2b"}),
        ("grant", {"link_credit": 4}),
        ("grant", {"link_credit": 5}),
        ("release", {"direction": "c2b", "count": 1}),
        ("release", {"direction": "c2b"}),
        ("hold", {"direction": "b2c"}),
        ("publish", {"count": 3}),
        ("grant", {"link_credit": 9}),
    ):
        played = played.act(len(played.rows) - 1, act, **arguments)
    path = written(tmp_path, played.rows, 11)
    whole, held = shown(played.rows), 0
    for seq in range(0, len(played.rows), 2):
        for found in (cut(path, seq, around=0), cut_rows(played.rows, seq, first=seq, end=seq + 1)):
            part = shown(found)
            held += bool(part[seq]["held"])
            alike(part, whole, seq)
    assert held > 10


COUNTERS = ("delivery_count", "link_credit", "drain", "incoming_window", "queue_ready")


def strange_rows(seed: int) -> list[Row]:
    """Rows that no broker makes: frames sent twice, received unsent, ends that come and go."""
    draw = random.Random(seed)

    def some(*values: Any) -> Any:
        return draw.choice(values)

    rows = []
    for seq in range(draw.randrange(1, 60)):
        event = some("sent", "received", "observed", "grant")
        frame = {"role": some(None, "sender", "receiver"), "handle": some(None, 0),
                 "echo": some(None, True)}  # fmt: skip
        told = draw.sample(COUNTERS, draw.randrange(4))
        rows.append(
            Row(
                run="r", seq=seq, t_us=seq * 10, event=event, protocol="amqp-1.0",
                vantage=some("broker", "client:a", "wire", "queue:q"),
                frame_id=None if event == "grant" else some(1, 2, 3, 10**12),
                from_peer=None if event == "grant" else some("client", "broker"),
                connection=some(None, "c1", "c2"), session=some(None, 0, 1),
                link=some(None, "a", "b"), link_sender=some(None, "client", "broker"),
                attach_no=some(1, 2), queue=some(None, "q"),
                kind=some("flow", "transfer", "disposition", "attach"),
                frame={name: value for name, value in frame.items() if value is not None},
                ledger={name: some(True, False) if name == "drain" else draw.randrange(9)
                        for name in told},
                unknown=tuple(draw.sample(COUNTERS, draw.randrange(3))),
                brake=some(None, "none", "link-credit"),
            )
        )  # fmt: skip
    return rows


@pytest.mark.slow
@settings(derandomize=True, max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 41))
def test_columns_fold_to_what_rows_fold_to(seed: int, size: int) -> None:
    """The same state, in the same order, and the same memory for words, however it is batched."""
    rows = strange_rows(seed)
    table = files.to_table(rows).combine_chunks()
    folding, story = Before(), Story(Fold())
    for batch in table.to_batches(max_chunksize=size):
        folding.take(batch)
    for row in rows:
        story.tell(row)
    want = state_after(rows)
    assert folding.state() == want
    assert list(folding.state().ledgers) == list(want.ledgers)
    assert list(folding.state().in_flight) == list(want.in_flight)
    assert list(folding.state().brakes) == list(want.brakes)
    assert folding.memory() == story.memory


def test_a_later_row_goes_on_from_a_kept_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept on the way is a copy: rows opened in any order have the state of a replay."""
    monkeypatch.setattr(cutting, "KEEP_EVERY", 25)
    monkeypatch.setattr(cutting, "WARM_ROWS", 3)
    monkeypatch.setattr("workbench.trace.pieces.BATCH_ROWS", 10)
    rows = rows_of("handover")
    path = written(tmp_path, rows)
    for seq in (*range(len(rows) - 1, 0, -11), *range(0, len(rows), 7)):
        found = cut(path, seq, around=2)
        assert found.start == state_after(rows[: found.rows[0].seq])


def test_only_row_groups_of_the_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run among many is opened without reading the others' row groups."""
    rows = rows_of("handover")
    copies = [dataclasses.replace(row, run=f"copy {n}") for n in range(9) for row in rows]
    path = written(tmp_path, copies, len(rows))
    groups: list[int] = []
    plain = pieces._read

    def counted(chosen: Any, columns: Any) -> Any:
        groups.extend(piece.group for piece in chosen)
        return plain(chosen, columns)

    monkeypatch.setattr(pieces, "_read", counted)
    assert cut(path, 9, "copy 4", around=2).start == state_after(rows[:7])
    assert set(groups) == {4}


def test_frames_in_flight_are_looked_up_in_one_read_of_the_groups_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames of the beginning and of the end that never arrived, and none of those between."""
    monkeypatch.setattr(cutting, "WARM_ROWS", 5)
    rows = [row for row in rows_of("handover") if row.event != "received" or 19 < row.seq < 54]
    rows = [dataclasses.replace(row, seq=seq) for seq, row in enumerate(rows)]
    path = written(tmp_path, rows, 5)
    whole: list[list[int]] = []
    plain = pieces._read

    def counted(chosen: Any, columns: Any) -> Any:
        if columns == pieces.COLUMN_NAMES:
            whole.append([piece.group for piece in chosen])
        return plain(chosen, columns)

    monkeypatch.setattr(pieces, "_read", counted)
    found = cut(path, len(rows) - 1, around=2)
    sent = {flying.seq: flying for flying in found.start.in_flight.values()}
    assert [row.seq for row in found.earlier.flying] == list(sent)
    assert list(found.earlier.flying) == [rows[seq] for seq in sent]
    _, groups = whole
    looked_up = [seq for seq in sent if seq < found.rows[0].seq - 5]
    assert groups == sorted({seq // 5 for seq in looked_up})
    assert len(looked_up) > 2 * len(groups)
    assert not set(range(groups[0], groups[-1])) <= set(groups)


def test_runs_of_several_files_in_a_folder(tmp_path: Path) -> None:
    """A run goes on from file to file; another run in the same row group is not its business."""
    rows = rows_of("handover")
    mixed = [dataclasses.replace(row, run=name) for row in rows for name in ("mixed a", "mixed b")]
    files.write(tmp_path / "live-1.parquet", mixed[:60])
    files.write(tmp_path / "live-2.parquet", mixed[60:])
    (tmp_path / ".live-3.parquet.1234.part").write_bytes(b"half a file")
    found = cut(tmp_path, 40, "mixed b", around=3)
    assert found.start == state_after(rows[:37])
    assert (found.first_seq, found.last_seq) == (0, len(rows) - 1)


@pytest.mark.parametrize(
    ("seq", "name", "telling"),
    [
        (3, "nobody", "no run 'nobody' in it; there are: one, two"),
        (3, None, "holds 2 runs; choose one with --run: one, two"),
        (-1, "one", "row -1 is not in this trace; legal: 0 to"),
        (10**6, "two", "row 1000000 is not in this trace; legal: 0 to"),
    ],
)
def test_a_place_that_is_not_there_is_told_in_one_line(
    tmp_path: Path, seq: int, name: str | None, telling: str
) -> None:
    """With what would be legal."""
    rows = rows_of("handover")
    both = [dataclasses.replace(row, run=run) for run in ("one", "two") for row in rows]
    path = written(tmp_path, both)
    with pytest.raises(cutting.StepError) as error:
        cut(path, seq, name)
    assert telling in str(error.value)
    assert "\n" not in str(error.value)


def test_a_trace_that_is_none_is_told(tmp_path: Path) -> None:
    """No file, an empty trace, rows out of order."""
    with pytest.raises(files.TraceFileError, match="no such file"):
        cut(tmp_path / "absent.parquet", 0)
    files.write(tmp_path / "empty.parquet", [])
    with pytest.raises(files.TraceFileError, match="an empty trace"):
        cut(tmp_path / "empty.parquet", 0)
    rows = rows_of("handover")
    path = written(tmp_path, [*rows[:20], rows[25], *rows[20:]], 7)
    with pytest.raises(files.TraceFileError, match="out of order"):
        cut(path, 40, around=1)


def test_a_row_that_was_lost_is_told(tmp_path: Path) -> None:
    """A recorder whose disk was full drops rows; those after them still open."""
    rows = rows_of("handover")
    path = written(tmp_path, [*rows[:20], *rows[25:]], 7)
    with pytest.raises(cutting.StepError, match="row 22 is missing"):
        cut(path, 22)
    assert cut(path, 27, around=4).row == rows[27]


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    """The recorder of a live broker replaces its latest file as it grows."""
    rows = rows_of("handover")
    path = tmp_path / "live-00001.parquet"
    files.write(path, rows[:30])
    assert cut(tmp_path, 29, around=1).last_seq == 29
    files.write(path, rows)
    assert cut(tmp_path, 29, around=1).last_seq == len(rows) - 1


def many_connections(name: str, count: int) -> list[Row]:
    """A scenario so many times in one run, on its own connections, each a while after the last."""
    alone = rows_of(name)
    tall = 1 + max(row.frame_id or 0 for row in alone)
    copies = [
        dataclasses.replace(
            row,
            t_us=row.t_us + 700 * number,
            connection=row.connection and f"{row.connection}.{number + 1}",
            frame_id=row.frame_id and row.frame_id + number * tall,
        )
        for number in range(count)
        for row in alone
    ]
    copies.sort(key=lambda row: row.t_us)
    return [dataclasses.replace(row, seq=seq) for seq, row in enumerate(copies)]


@pytest.fixture
def many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> tuple[Path, list[Row]]:
    """A trace of more links than a picture shows, or of as many channels, and its rows."""
    monkeypatch.setattr(cutting, "WARM_ROWS", 5)
    rows = many_connections(request.param, cutting.MANY_LINES + 20)
    return written(tmp_path, rows, 150), rows


@pytest.mark.parametrize(
    "many",
    ["credit", *(pytest.param(name, marks=pytest.mark.slow) for name in ("prefetch", "qpid"))],
    indirect=True,
)
def test_of_many_lines_only_what_the_rows_are_of_is_followed_and_all_of_that(
    many: tuple[Path, list[Row]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of connections need not be folded to show one, and it is shown as if they were."""
    path, rows = many
    followed = {seq: cut(path, seq, around=4) for seq in cuts_of(len(rows), 4)}
    scenes = {seq: scene_of(found) for seq, found in followed.items()}
    monkeypatch.setattr(cutting, "MANY_LINES", len(rows))
    cutting._kept.cache_clear()
    for seq, found in followed.items():
        whole = cut(path, seq, around=4)
        assert scenes[seq] == scene_of(whole), seq
        assert found.explanations == whole.explanations
        assert found.earlier.lines == whole.earlier.lines
    last = followed[len(rows) - 1]
    there = {scope.connection for _, scope in last.start.ledgers}
    assert len(last.earlier.lines) > 70
    assert there <= {row.connection for row in rows[last.seq - 9 :]} | {None}


@pytest.mark.parametrize("many", ["credit"], indirect=True)
def test_the_link_of_an_answer_is_followed_where_no_row_is_of_it(
    many: tuple[Path, list[Row]],
) -> None:
    """The row that an answer names may be another connection's, or a queue's."""
    path, rows = many
    link = next(scope for row in rows if (scope := link_scope(row)))
    about = {name: getattr(link, name) for name in cutting.ABOUT}
    found = cut(path, len(rows) - 1, around=4, about=about)
    assert found.link == link
    assert link.connection not in {row.connection for row in found.rows}
    mine = {key: told for key, told in found.start.ledgers.items() if key[1] == link}
    assert mine
    want = state_after(rows[: found.rows[0].seq]).ledgers
    assert mine == {key: told for key, told in want.items() if key[1] == link}
