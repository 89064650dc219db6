"""A small quorum group, explored in every order: no invariant breaks, and each mutant is found."""

import pytest

from tests.rules import every_order
from tests.rules.quorum_model import QuorumModel
from tests.rules.quorum_search import FIGURE_8, directed, play, shrink
from workbench.queues.raft import RIGHT, RULES_BROKEN
from workbench.queues.raft_referee import CONFIRMED_IS_SAFE, LEADER_COMPLETENESS
from workbench.sim.explorer import Bounds, explore

OLD_TERM = "commit-of-an-old-term"
BOUNDS = Bounds(states=120_000, octets=1_500_000_000)


@pytest.mark.parametrize(
    "size",
    [
        # Two messages and one crash, followed by an election.
        {"commands": 2, "crashes": 1, "timeouts": 1, "comes_back": False},
        # Two messages and one crash, and the node comes back.
        {"commands": 2, "crashes": 1, "timeouts": 0, "comes_back": True},
        # One message, one crash, an election, and the node comes back at any time.
        pytest.param(
            {"commands": 1, "crashes": 1, "timeouts": 1, "comes_back": True}, marks=pytest.mark.slow
        ),
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


class Everything(QuorumModel):
    """The model that keeps what nobody will heed."""

    def _heeds(self, message, frozen):
        return True


@pytest.mark.parametrize(
    "size",
    [
        {"commands": 1, "crashes": 1, "timeouts": 1, "comes_back": False},
        {"commands": 1, "crashes": 1, "timeouts": 0, "comes_back": True},
        {"commands": 0, "crashes": 1, "timeouts": 1, "comes_back": True},
    ],
    ids=lambda size: "-".join(f"{name}={value}" for name, value in size.items()),
)
def test_nothing_is_lost_by_leaving_out_what_nobody_heeds(size):
    """The states without it are exactly those with it, each without what it does not heed."""
    model = QuorumModel(**size)
    everything = explore(Everything(**size), BOUNDS)
    fewer = explore(model, BOUNDS)
    assert everything.complete and fewer.complete

    def stripped(state):
        ways = state.ways
        for at, node in enumerate(state.nodes):
            if node.replica is not None:
                ways = model._heeded(ways, at, node.replica)
        return state._replace(ways=ways)

    assert {stripped(state) for state in everything.ordered} == set(fewer.ordered)
    assert fewer.states <= everything.states


def test_the_command_that_explores_larger_bounds_says_what_it_found(capsys):
    """To the end, or stopped by a bound, or bad with the shortest schedule."""
    small = ["--commands", "1", "--crashes", "0", "--timeouts", "0"]
    assert every_order.main(small) == 0
    assert "0 bad" in (told := capsys.readouterr().out) and "every order of events" in told
    assert every_order.main(["--states", "500"]) == 2
    assert "stopped at 500 states, the bound" in capsys.readouterr().out
    assert every_order.main(["--mutant", "confirm-before-majority"]) == 1
    told = capsys.readouterr().out
    assert f"{CONFIRMED_IS_SAFE}, after:" in told and "  propose n1\n" in told


# The others need more events than every order of them can be tried of; `test_quorum_safety`.
@pytest.mark.parametrize(
    "name", ["commit-before-fsync", "leader-counts-itself-early", "confirm-before-majority"]
)
def test_a_mutant_is_found_by_a_shortest_schedule(name):
    """Breadth first: there is no shorter one."""
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


def figure_8(rules):
    """Three replicas, a leader that sends one entry at a time, and crashes enough."""
    return QuorumModel(commands=1, crashes=3, timeouts=4, chunk=1, rules=rules)


@pytest.fixture(scope="module")
def old_term():
    """A schedule that catches the commit of an old term's entry; as found, and made shorter."""
    model = figure_8(RULES_BROKEN[OLD_TERM])
    found = directed(model, FIGURE_8, Bounds(states=20_000))
    assert found is not None
    return found, shrink(model, found)


def test_the_commit_of_an_old_term_is_found_past_the_waypoints_of_figure_8(old_term):
    """And the referee's name for it is leader completeness."""
    model = figure_8(RULES_BROKEN[OLD_TERM])
    played, state = play(model, old_term[0])
    assert played == old_term[0]
    assert model.broken(state) == LEADER_COMPLETENESS


def test_no_move_can_be_left_out_of_it(old_term):
    """Nor two neighbours: without them nothing bad comes of the rest."""
    model = figure_8(RULES_BROKEN[OLD_TERM])
    _, least = old_term
    assert len(least) <= len(old_term[0])
    assert play(model, least)[0] == least
    for at in range(len(least)):
        for width in (1, 2):
            _, state = play(model, least[:at] + least[at + width :])
            assert not model.bad(state)


def test_what_was_made_longer_is_made_as_short_again(old_term):
    """Moves that change nothing for the worse are left out, wherever they stand."""
    model = figure_8(RULES_BROKEN[OLD_TERM])
    _, least = old_term
    longer = []
    state = model.initial
    for move in least:
        more = [(name, there) for name, there in model.successors(state) if name[0] == "fsync"]
        for name, there in more[:1]:
            if name != move and not model.bad(there) and move in dict(model.successors(there)):
                longer.append(name)
                state = there
        longer.append(move)
        state = dict(model.successors(state))[move]
    assert len(longer) > len(least)
    assert len(shrink(model, longer)) <= len(least)


def test_the_same_schedule_is_harmless_if_only_the_own_term_is_counted(old_term):
    """The moves that are left of it under the right rules break nothing."""
    model = figure_8(RIGHT)
    assert not model.bad(play(model, old_term[1])[1])


def test_a_search_that_does_not_find_a_waypoint_says_so():
    """Within its bounds, as every search is."""
    model = figure_8(RULES_BROKEN[OLD_TERM])
    assert directed(model, FIGURE_8, Bounds(states=50)) is None
