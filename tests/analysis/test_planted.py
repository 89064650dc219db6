"""All stalls that an act has made are found, and no others."""

from dataclasses import replace

import pytest

from benchmarks.grown import tile
from workbench import folds
from workbench.analysis.reading import open_trace
from workbench.analysis.stalls import stalls
from workbench.scenarios.big_trace import episodes
from workbench.trace.brakes import ALARM, LINK_CREDIT, SESSION_WINDOW, UNCONFIRMED
from workbench.trace.schema import OBSERVED, SENT


def planted(found, copy=None):
    """Run, link, brake, first row, duration and releasing frame of every planted stall."""
    return sorted(
        (
            episode.rows[0].run + ("" if copy is None else f"#{copy}"),
            one.link,
            one.brake,
            one.start_seq,
            episode.rows[one.end_seq].t_us - episode.rows[one.start_seq].t_us,
            episode.rows[one.end_seq].frame_id if one.released else -1,
        )
        for episode in found
        for one in episode.planted
    )


def shape(rows):
    return sorted(
        (row.run, row.link, row.brake, row.seq, row.end_us - row.start_us,
         -1 if row.release_frame_id is None else row.release_frame_id)
        for row in rows
    )  # fmt: skip


def numbered(found):
    """The episodes, each a run of its own name, as a trace has them."""
    return [
        replace(each, rows=[replace(row, run=f"{number:02d}") for row in each.rows])
        for number, each in enumerate(found)
    ]


def as_captured(rows):
    """What somebody between the ends would have seen: frames, and nothing that an end knows."""
    return [
        replace(row, event=OBSERVED, ledger=None, ledger_source=None, brake=None, brakes=())
        for row in rows
        if row.event == SENT
    ]


@pytest.fixture(scope="module")
def planned():
    return numbered(episodes())


def test_every_brake_is_planted_and_every_near_miss(planned):
    """Four brakes; one link and several; brakes on with nothing that waits."""
    brakes = {one.brake for episode in planned for one in episode.planted}
    assert brakes == {LINK_CREDIT, SESSION_WINDOW, ALARM, UNCONFIRMED}
    assert sum(not episode.planted for episode in planned) >= 3
    links = [{row.link for row in episode.rows if row.link} for episode in planned]
    assert any(len(names) > 1 for names in links)


@pytest.mark.parametrize("latency_us", [1_000, 40_000])
def test_a_fold_finds_what_was_planted(latency_us):
    """Brake, beginning, length and release follow from the acts; a near-miss is no stall."""
    found = numbered(episodes(latency_us))
    rows = [row for episode in found for row in episode.rows]
    assert shape(folds.stalls(rows)) == planted(found)


def test_the_same_acts_make_the_same_trace(planned):
    """Deterministic: every row of it."""
    assert [episode.rows for episode in numbered(episodes())] == [
        episode.rows for episode in planned
    ]


def test_a_capture_shows_the_planted_stalls_that_were_released(planned):
    """From frames alone: the same links, released by the same frames.

    When a message came is not known there, so a stall counts from the brake on; what a broker
    withholds for want of confirms looks like any lack of credit; and a publisher that was given its
    messages at the moment when credit came looks as if it had waited. Of a queue's consumers there
    are no others.
    """
    for episode in planned:
        rows = as_captured(episode.rows)
        found = folds.stalls(rows)
        wanted = [one for one in episode.planted if one.released]
        assert {row.evidence for row in found} <= {"later-frames", "available"}
        for one in wanted:
            released_by = episode.rows[one.end_seq].frame_id
            (row,) = [
                row for row in found if (row.link, row.release_frame_id) == (one.link, released_by)
            ]
            assert row.brake == (LINK_CREDIT if one.brake == UNCONFIRMED else one.brake)
        if all(row.link_sender == "broker" for row in found):
            assert len(found) == len(wanted)


def test_messages_waiting_are_those_that_followed(planned):
    """In a capture of a receiver that grants by hand, each grant is answered by as many."""
    rows = as_captured(planned[0].rows)
    found = folds.stalls(rows)
    assert [row.messages_waiting for row in found] == [3, 5, 20]


@pytest.mark.slow
def test_spark_finds_what_was_planted(spark, planned, tmp_path):
    """In every copy of a trace of any size."""
    path = tmp_path / "big.parquet"
    count = tile(path, [episode.rows for episode in planned], 6_000)
    trace = open_trace(spark, path)
    assert trace.rows == count >= 6_000
    copies = count // sum(len(episode.rows) for episode in planned)
    wanted = sorted(one for copy in range(copies) for one in planted(planned, copy))
    assert shape(stalls(chunks=trace.chunks)(trace.frame).collect()) == wanted
