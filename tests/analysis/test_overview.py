"""Answers small enough to draw: the same sums by hand, over planted stalls and real captures."""

from collections import Counter

import pytest

from workbench.analysis.chunks import Chunks
from workbench.analysis.errors import AnalysisError
from workbench.analysis.overview import by_brake, held, lost, rates, worst
from workbench.analysis.stalls import stalls
from workbench.scenarios.big_trace import episodes
from workbench.trace.schema import OBSERVED, SENT

from .runs import capture_rows

WINDOW = 5_000
LINK = ("run", "connection", "session", "link", "link_sender", "attach_no")


@pytest.fixture(scope="module")
def rows():
    """Runs with planted stalls, and captures."""
    return [*(row for episode in episodes() for row in episode.rows), *capture_rows()]


@pytest.fixture(scope="module")
def trace(as_trace, rows):
    return as_trace(rows)


@pytest.fixture(scope="module")
def table(trace):
    """The table of stalls, worked out once."""
    return stalls(chunks=Chunks(tasks=3, whole=True))(trace).cache()


@pytest.fixture(scope="module")
def found(table):
    return [row.asDict() for row in table.collect()]


def answered(frame):
    return [row.asDict() for row in frame.collect()]


def test_rates_count_messages_by_window_and_a_frame_once(trace, rows):
    """A message of many frames counts with its first; what both ends logged counts once."""
    counted = Counter()
    for row in rows:
        begins = row.kind == "transfer" and (row.frame or {}).get("delivery_id") is not None
        counted[row.t_us // WINDOW * WINDOW] += begins and row.event in (SENT, OBSERVED)
    wanted = [{"window_start_us": at, "messages": counted[at]} for at in sorted(counted)]
    assert answered(rates(WINDOW)(trace)) == wanted
    assert sum(counted.values()) > 500


@pytest.mark.slow
def test_held_counts_links_in_every_window_that_a_stall_touches(table, found):
    """A link that is held twice in a window is one link."""
    links = {}
    for row in found:
        for at in range(row["start_us"] // WINDOW, row["end_us"] // WINDOW + 1):
            key = (at * WINDOW, row["brake"])
            links.setdefault(key, set()).add(tuple(row[name] for name in LINK))
    wanted = [
        {"window_start_us": at, "brake": brake, "links": len(links[at, brake])}
        for at, brake in sorted(links)
    ]
    assert answered(held(WINDOW)(table)) == wanted


@pytest.mark.slow
def test_sums_by_brake(table, found):
    """How often, how many links, how long in all, and the longest."""
    wanted = []
    for brake in {row["brake"] for row in found}:
        mine = [row for row in found if row["brake"] == brake]
        times = [row["end_us"] - row["start_us"] for row in mine]
        wanted.append(
            {
                "brake": brake, "stalls": len(mine), "lost_us": sum(times),
                "links": len({tuple(row[name] for name in LINK) for row in mine}),
                "longest_us": max(times),
            }
        )  # fmt: skip
    wanted.sort(key=lambda row: -row["lost_us"])
    assert answered(by_brake()(table)) == wanted
    assert len(wanted) > 1


@pytest.mark.slow
def test_sums_by_link_and_brake(table, found):
    """The time that each link lost, the most first."""
    sums = Counter()
    for row in found:
        sums[row["run"], row["link"], row["brake"]] += row["end_us"] - row["start_us"]
    answer = answered(lost()(table))
    assert {(row["run"], row["link"], row["brake"]): row["lost_us"] for row in answer} == sums
    assert [row["lost_us"] for row in answer] == sorted(sums.values(), reverse=True)


@pytest.mark.slow
def test_the_worst_are_the_longest(table, found):
    """So many, the longest first, equal ones in order of the trace."""
    order = sorted(found, key=lambda row: (row["start_us"] - row["end_us"], row["run"], row["seq"]))
    assert answered(worst(3)(table)) == order[:3]


@pytest.mark.parametrize("question", [rates, held])
def test_a_window_without_length_is_refused(question):
    """The text names what is legal."""
    with pytest.raises(AnalysisError, match="legal: 1 or more"):
        question(0)
