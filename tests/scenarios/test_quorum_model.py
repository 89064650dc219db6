"""A small quorum group, explored in every order: no invariant breaks, and each mutant is found."""

import pytest

from workbench.queues.raft_referee import CONFIRMED_IS_SAFE
from workbench.queues.raft_rules import RIGHT, RULES_BROKEN
from workbench.scenarios.quorum_model import QuorumModel
from workbench.sim.explorer import Bounds, explore

BOUNDS = Bounds(states=120_000, octets=1_500_000_000)


@pytest.mark.parametrize(
    "size",
    [
        # Two messages and one crash, followed by an election.
        {"commands": 2, "crashes": 1, "timeouts": 1, "comes_back": False},
        # Two messages and one crash, and the node comes back.
        {"commands": 2, "crashes": 1, "timeouts": 0, "comes_back": True},
        # One message, one crash, an election, and the node comes back at any time.
        {"commands": 1, "crashes": 1, "timeouts": 1, "comes_back": True},
    ],
    ids=lambda size: "-".join(f"{name}={value}" for name, value in size.items()),
)
def test_three_replicas_are_safe_in_every_order(size):
    """Within the stated bounds every state was visited, and none is bad."""
    found = explore(QuorumModel(**size), BOUNDS)
    assert found.complete, found.stopped
    assert found.bad == 0
    answered = [state for state in found.ordered if state.answered]
    assert len(answered) > 100  # it is no safety of nothing ever happening
    terms = {node.replica[1] for state in answered for node in state.nodes if node.replica}
    assert (max(terms) > 1) == (size["timeouts"] > 0)


@pytest.mark.parametrize("name", [name for name in RULES_BROKEN if name != "commit-of-an-old-term"])
def test_a_mutant_is_found_by_a_shortest_schedule(name):
    """Breadth first: there is no shorter one. An old term's commit needs five replicas."""
    model = QuorumModel(rules=RULES_BROKEN[name])
    found = explore(model, BOUNDS, stop_at_bad=True)
    assert model.broken(found.bad_states[0]) == CONFIRMED_IS_SAFE
    state = model.initial
    for move in found.shortest:  # the schedule can be played, and only its last move is bad
        assert not model.bad(state)
        state = dict(model.successors(state))[move]
    assert model.bad(state)


def test_a_shortest_schedule_is_harmless_under_the_right_rules():
    """The same moves, as far as they exist, break nothing."""
    for name in ("commit-before-fsync", "leader-counts-itself-early"):
        schedule = explore(QuorumModel(rules=RULES_BROKEN[name]), BOUNDS, stop_at_bad=True).shortest
        model = QuorumModel(rules=RIGHT)
        state = model.initial
        for move in schedule:
            moves = dict(model.successors(state))
            if move in moves:
                state = moves[move]
            assert not model.bad(state)
