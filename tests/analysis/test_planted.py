"""All stalls that an act has made are found, and no others."""

import pytest

from workbench import folds
from workbench.analysis.reading import open_trace
from workbench.analysis.stalls import stalls
from workbench.scenarios.big_trace import episodes
from workbench.trace.tiling import tile


def planted(found, copy=None):
    """Run, brake, first row and duration of every planted stall."""
    return sorted(
        (
            episode.rows[0].run + ("" if copy is None else f"#{copy}"),
            one.brake,
            one.start_seq,
            episode.rows[one.end_seq].t_us - episode.rows[one.start_seq].t_us,
        )
        for episode in found
        for one in episode.planted
    )


def shape(rows):
    return sorted((row.run, row.brake, row.seq, row.end_us - row.start_us) for row in rows)


@pytest.mark.parametrize("latency_us", [1_000, 40_000])
def test_a_fold_finds_what_was_planted(latency_us):
    """Brake, beginning and length follow from the acts; a near-miss is no stall."""
    found = episodes(latency_us)
    assert {one.brake for episode in found for one in episode.planted} == {"link-credit", "alarm"}
    assert sum(not episode.planted for episode in found) >= 2
    rows = [row for episode in found for row in episode.rows]
    assert shape(folds.stalls(rows)) == planted(found)


def test_spark_finds_what_was_planted(spark, tmp_path):
    """In every copy of a trace of any size."""
    found = episodes()
    path = tmp_path / "big.parquet"
    count = tile(path, [episode.rows for episode in found], 6_000)
    trace = open_trace(spark, path)
    assert trace.rows == count >= 6_000
    copies = count // sum(len(episode.rows) for episode in found)
    wanted = sorted(one for copy in range(copies) for one in planted(found, copy))
    assert shape(stalls(chunks=trace.chunks)(trace.frame).collect()) == wanted
