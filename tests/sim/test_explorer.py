"""The explorer: every reachable state, breadth first, within its bounds."""

import tracemalloc
from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.sim.explorer import LOOK_EVERY, Bounds, explore


@dataclass
class Graph:
    """A model made of a table: node to successors; nodes in `faults` are bad."""

    edges: dict[int, list[int]]
    faults: set[int] = field(default_factory=set)
    initial: int = 0

    def successors(self, state):
        for place, after in enumerate(self.edges.get(state, [])):
            yield (state, place), after

    def bad(self, state):
        return state in self.faults


class Endless:
    """A model without end: every state has two successors never seen before."""

    initial = (0,)

    def successors(self, state):
        yield "left", (*state[-1:], state[0] * 2 + 1)
        yield "right", (*state[-1:], state[0] * 2 + 2, len(state))

    def bad(self, state):
        return False


def distances(edges: dict[int, list[int]], start: int) -> dict[int, int]:
    """Shortest distances, by a search written for this test alone."""
    found = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for after in edges.get(node, []):
            if after not in found:
                found[after] = found[node] + 1
                queue.append(after)
    return found


GRAPHS = st.dictionaries(st.integers(0, 12), st.lists(st.integers(0, 12), max_size=4), max_size=13)


@given(GRAPHS, st.sets(st.integers(0, 12), max_size=4))
@settings(derandomize=True, max_examples=200)
def test_it_finds_what_a_plain_search_finds_and_the_nearest_fault(edges, faults):
    """States, bad states, depths and shortest schedule agree with a plain search."""
    expected = distances(edges, 0)
    found = explore(Graph(edges, faults))
    assert found.complete
    assert set(found.ordered) == set(expected)
    assert {found.ordered[at] for at in found.bad_at} == faults & set(expected)
    assert dict(zip(found.ordered, found.depths(), strict=True)) == expected
    nearest = min((expected[node] for node in faults & set(expected)), default=None)
    assert (None if found.shortest is None else len(found.shortest)) == nearest
    assert sum(found.levels()) == found.states


@given(GRAPHS)
@settings(derandomize=True, max_examples=100)
def test_a_schedule_leads_to_its_state(edges):
    """Following a schedule's moves from the first state ends in the state asked for."""
    found = explore(Graph(edges))
    for state in found.ordered:
        at = 0
        for node, place in found.schedule_to(found.index_of(state)):
            assert node == at
            at = edges[node][place]
        assert at == state


@given(GRAPHS)
@settings(derandomize=True, max_examples=100)
def test_edges_are_all_moves_between_found_states(edges):
    """No move is left out and none is invented."""
    found = explore(Graph(edges))
    told = sorted((found.ordered[a], found.ordered[b]) for a, _, b in found.edges())
    reached = set(found.ordered)
    assert told == sorted((a, b) for a in reached for b in edges.get(a, []))


def test_stopping_at_the_first_fault_gives_the_same_shortest_schedule():
    """`stop_at_bad` saves work and changes no answer."""
    model = Graph({0: [1, 2], 1: [3], 2: [4], 3: [5], 4: [5]}, faults={4, 5})
    whole, quick = explore(model), explore(model, stop_at_bad=True)
    assert quick.shortest == whole.shortest
    assert not quick.complete
    assert quick.states < whole.states


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        (Bounds(states=500), "500 states"),
        (Bounds(octets=1_000_000), "1 MB"),
        (Bounds(seconds=3, states=10**9), "after 3 s"),
    ],
)
def test_a_bound_ends_a_search_without_end_and_says_which(bounds, word):
    """States, memory and time are kept; an unfinished exploration is never called complete."""
    ticks = iter(range(10**9))
    found = explore(Endless(), bounds, now=lambda: next(ticks) / 1000)
    assert not found.complete
    assert word in found.stopped
    assert found.states <= bounds.states


def test_progress_is_told_while_it_goes_on():
    """Whoever waits sees the number of states grow."""
    told = []
    explore(Endless(), Bounds(states=20_000), progress=told.append)
    assert told == sorted(told)
    assert len(told) > 2


class Slow(Endless):
    """A model that takes a second for the moves of one state."""

    def __init__(self):
        self.clock = 0.0

    def successors(self, state):
        self.clock += 1.0
        return super().successors(state)


def test_a_slow_model_is_stopped_in_time():
    """The clock is looked at after the moves of a few dozen states, however long they take."""
    model = Slow()
    found = explore(model, Bounds(seconds=10), now=lambda: model.clock)
    assert "after 10 s" in found.stopped
    assert model.clock <= LOOK_EVERY


def test_an_exploration_as_large_as_its_bound_is_complete():
    """The bound stops what lies beyond it, not what just fits."""
    model = Graph({0: [1, 2], 1: [2]})
    assert explore(model, Bounds(states=3)).complete
    short = explore(model, Bounds(states=2))
    assert (short.states, short.complete) == (2, False)


def test_the_estimate_of_memory_covers_what_is_taken():
    """The interpreter's own count of what an exploration holds stays below what is charged."""
    bounds = Bounds(octets=8_000_000)
    tracemalloc.start()
    try:
        found = explore(Endless(), bounds)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "8 MB" in found.stopped
    assert peak <= bounds.octets * 1.05


@pytest.mark.parametrize("wrong", [{"states": 0}, {"seconds": -1.0}, {"octets": 0}])
def test_a_bound_that_bounds_nothing_is_refused(wrong):
    """The text says what is legal."""
    with pytest.raises(ValueError, match=r"legal: \d or more"):
        Bounds(**wrong)


def test_bad_states_come_nearest_first():
    """And a bad first state is found before any move."""
    found = explore(Graph({0: [1], 1: [2]}, faults={2, 1}))
    assert found.bad_states == [1, 2]
    assert [len(found.schedule_to(found.index_of(state))) for state in found.bad_states] == [1, 2]
    at_once = explore(Graph({0: [1]}, faults={0}), stop_at_bad=True)
    assert at_once.shortest == ()
    assert at_once.states == 1


def test_what_was_not_found_has_no_schedule():
    """Asking for it is a `KeyError`, not a wrong answer."""
    found = explore(Graph({0: [1]}))
    assert 1 in found
    assert 7 not in found
    with pytest.raises(KeyError):
        found.index_of(7)
