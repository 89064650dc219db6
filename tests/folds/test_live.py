"""Folded batch by batch, kept and taken up again, the answers are those of the whole trace."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.analysis.made import STOPPED, paused, pierced
from tests.analysis.runs import capture_rows, scenario_rows
from tests.folds.test_channels import captured, flooded, windowed
from workbench import folds
from workbench.folds.consumers import prefetch
from workbench.folds.live import FORGET_US, LiveFold
from workbench.folds.stalls import stalls
from workbench.folds.throughput import EMPTY
from workbench.trace.schema import Row

WINDOW_US = 5_000
ANSWER_COLUMNS = (
    "run", "connection", "session", "link", "link_sender", "attach_no", "measure", "count",
    "max_us", "unanswered", "worst_seq",
)  # fmt: skip
RATE_COLUMNS = (
    "run", "connection", "session", "link", "link_sender", "attach_no", "window_start_us",
    "messages", "frames", "body_bytes", "rate",
)  # fmt: skip


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in sorted(row)))


def whole(rows: list[Row], window_us: int = WINDOW_US) -> dict[str, list[dict[str, Any]]]:
    """The answers over all rows at once; of latency that of protocols without links."""
    rates = folds.throughput(rows, window_us=window_us)
    answers = [row for row in folds.latency(rows) if row["link"] is None]
    latest = {(row["run"], row["connection"], row["session"], row["consumer"]): row
              for row in prefetch(rows)}  # fmt: skip
    return {
        "stalls": in_order([stall._asdict() for stall in stalls(rows)]),
        "rates": in_order([{name: row[name] for name in RATE_COLUMNS} for row in rates]),
        "answers": in_order([{name: row[name] for name in ANSWER_COLUMNS} for row in answers]),
        "prefetch": in_order(list(latest.values())),
    }


def nothing() -> dict[str, list[dict[str, Any]]]:
    """No answer to any of them yet."""
    return {name: [] for name in whole([])}


def told(found: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """In order, and without what a trace that is whole does not tell."""
    for row in found["answers"]:
        row.pop("waiting_us", None)
    return {name: in_order(each) for name, each in found.items()}


def taken_up(fold: LiveFold) -> LiveFold:
    """The same fold, put away as JSON and made again of that."""
    text, again = json.dumps(fold.kept()), LiveFold()
    again.restore(json.loads(text))
    return again


def streamed(
    rows: list[Row], draw: random.Random, window_us: int = WINDOW_US
) -> dict[str, list[dict[str, Any]]]:
    """The answers batch by batch; now and then the fold is put away and taken up again."""
    fold, at = LiveFold(window_us), 0
    found = nothing()
    while at < len(rows):
        size = draw.choice([1, 1, 2, 5, 40, 400])
        for name, over in fold.take(rows[at : at + size]).items():
            found[name] += over
        at += size
        if draw.random() < 0.3:
            fold = taken_up(fold)
    for name, rest in fold.now().items():
        found[name] += rest
    return told(found)


@pytest.mark.parametrize("name", list(scenario_rows()))
def test_batches_of_a_scenario_come_to_the_whole(name: str) -> None:
    """However its rows are dealt to batches."""
    rows = list(scenario_rows()[name])[:3_000]
    window_us = max(WINDOW_US, rows[-1].t_us // 200)  # of seconds there are many windows
    expected = whole(rows, window_us)
    for seed in range(3):
        assert streamed(rows, random.Random(seed), window_us) == expected


def test_batches_of_captures_come_to_the_whole() -> None:
    """Of one vantage: observed rows stand in for both ends."""
    rows = list(capture_rows())
    assert streamed(rows, random.Random(1)) == whole(rows)


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_batches_of_captures_that_lack_frames_come_to_the_whole(seed: int) -> None:
    """What is missing leaves the same unknown, and one that was put away minds it too."""
    rows = pierced(random.Random(seed), list(capture_rows()))
    its = whole(rows)
    assert its["stalls"] != whole([row for row in rows if row.event != "gap"])["stalls"]
    assert streamed(rows, random.Random(seed)) == its


def test_a_pause_of_the_clock_is_left_out_as_in_the_whole() -> None:
    """No second of it is kept, however long it is."""
    found = [row for row in capture_rows() if row.run.startswith(STOPPED)]
    rows = paused(random.Random(2), found)
    assert rows[-1].t_us - rows[0].t_us > EMPTY * WINDOW_US
    assert streamed(rows, random.Random(1)) == whole(rows)


def test_the_answer_is_right_after_each_row() -> None:
    """What is over and what goes on are together the answer over the rows so far."""
    rows = list(scenario_rows()["drained rmq4.3"])
    fold = LiveFold(WINDOW_US)
    found = nothing()
    for count, row in enumerate(rows, 1):
        for name, over in fold.take([row]).items():
            found[name] += over
        now = {name: found[name] + rest for name, rest in fold.now().items()}
        assert told(now) == whole(rows[:count])


def test_a_row_that_comes_twice_counts_once() -> None:
    """A batch that is given again changes nothing."""
    rows = list(scenario_rows()["publisher rmq4.3"])
    fold = LiveFold(WINDOW_US)
    fold.take(rows[:200])
    before = fold.now()
    assert fold.take(rows[100:200]) == {"stalls": [], "rates": [], "answers": []}
    assert fold.now() == before
    assert fold.rows == 200


@pytest.mark.parametrize(
    "made",
    [
        lambda: scenario_rows()["drained rmq4.3"], flooded, windowed,
        lambda: captured("b1_amqp091_memory_alarm"), lambda: scenario_rows()["overload"],
    ],
    ids=["links", "readers", "windows", "alarm", "consumers"],
)  # fmt: skip
def test_a_connection_that_is_over_is_forgotten_and_its_answers_stay(
    made: Callable[[], Sequence[Row]],
) -> None:
    """Many clients come and go: of each nothing is carried on but that it is gone."""
    played = list(made())
    names = {row.connection for row in played if row.connection}
    rows: list[Row] = []
    fold = LiveFold(WINDOW_US)
    found = nothing()
    for client in range(6):
        start = rows[-1].t_us + FORGET_US if rows else 0
        more = [
            dataclasses.replace(
                row, run="live", seq=len(rows) + n, t_us=start + row.t_us,
                connection=f"{row.connection} of {client}" if row.connection else None,
                frame_id=None if row.frame_id is None else row.frame_id + 10_000 * client,
            )
            for n, row in enumerate(played)
        ]  # fmt: skip
        more += [
            dataclasses.replace(
                more[-1], seq=more[-1].seq + n, event="disconnect", vantage="broker", kind=None,
                connection=f"{name} of {client}", protocol="internal", session=None, link=None,
                frame=None, ledger=None, frame_id=None,
            )
            for n, name in enumerate(names, 1)
        ]  # fmt: skip
        rows += more
        for name, over in fold.take(more).items():
            found[name] += over
        assert not client or json.dumps(fold.kept()).count(f' of {client - 1}"') == len(names)
    now = {name: found[name] + rest for name, rest in fold.now().items()}
    expected = whole(rows)
    expected["prefetch"] = [one for one in expected["prefetch"] if one["connection"].endswith("5")]
    assert told(now) == expected


def test_runs_side_by_side_do_not_disturb_each_other() -> None:
    """Two recorders in one folder."""
    rows = list(scenario_rows()["drained rmq4.0"])
    mixed = [dataclasses.replace(row, run=name) for row in rows for name in ("a", "b")]
    assert streamed(mixed, random.Random(3)) == whole(mixed)


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"state": {"dict": []}, "objects": []},
        {"state": {"object": 0}, "objects": [["subprocess.Popen", {"args": "true"}]]},
        {"state": {"posix.system": ["true"]}, "objects": []},
        {"state": {"workbench.folds.live._Rates": [1]}, "objects": []},
        {"state": {"object": 7}, "objects": []},
    ],
    ids=["nothing", "less", "another class", "a call", "a class called", "no such object"],
)
def test_what_no_fold_has_kept_is_refused(kept: dict[str, Any]) -> None:
    """And nothing of it is called: only a fold's own classes are made, and only filled in."""
    with pytest.raises(ValueError, match="not what a fold has kept"):
        LiveFold().restore(kept)
