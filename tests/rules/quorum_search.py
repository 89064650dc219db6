"""Short schedules to a broken invariant, where breadth first would take too long.

`directed` goes from one waypoint to the next, each time by a shortest way: the whole is not always
shortest. `shrink` leaves out moves, one by one, for as long as the end stays bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.rules.quorum_model import Cluster, Move, QuorumModel
from workbench.queues.raft import LEADER
from workbench.sim.explorer import Bounds, explore

Waypoint = Callable[[Cluster], bool]


@dataclass(frozen=True, slots=True)
class _From:
    """The model, begun at a state, with a waypoint in the place of what is bad."""

    model: QuorumModel
    initial: Cluster
    bad: Waypoint

    def successors(self, state: Cluster) -> Iterable[tuple[Move, Cluster]]:
        return self.model.successors(state)


def directed(
    model: QuorumModel, waypoints: Sequence[Waypoint], bounds: Bounds | None = None
) -> tuple[Move, ...] | None:
    """A schedule past all waypoints to a bad state; None if a leg was not found.

    Args:
        model: what is explored.
        waypoints: conditions to be met one after the other.
        bounds: of each leg.
    """
    state = model.initial
    schedule: list[Move] = []
    for waypoint in (*waypoints, model.bad):
        found = explore(_From(model, state, waypoint), bounds, stop_at_bad=True)
        if found.shortest is None:
            return None
        schedule += found.shortest
        state = found.bad_states[0]
    return tuple(schedule)


def play(model: QuorumModel, schedule: Iterable[Move]) -> tuple[tuple[Move, ...], Cluster]:
    """The moves of a schedule that are possible, up to the first bad state, and where they lead."""
    state, played = model.initial, []
    for move in schedule:
        after = next((there for name, there in model.successors(state) if name == move), None)
        if after is None:
            continue
        state = after
        played.append(move)
        if model.bad(state):
            break
    return tuple(played), state


def shrink(model: QuorumModel, schedule: Sequence[Move]) -> tuple[Move, ...]:
    """A schedule to a bad state from which no move can be left out, nor two neighbours."""
    best, _ = play(model, schedule)
    at = len(best)
    while at > 0:
        at -= 1
        for width in (2, 1):
            shorter, state = play(model, best[:at] + best[at + width :])
            if len(shorter) < len(best) and model.bad(state):
                best = shorter
                at = len(best)
                break
    return best


# -- the paper's figure 8 -------------------------------------------------------------------------


def alone_and_down(state: Cluster) -> bool:
    """A node is down whose disk has an entry that no other node has."""
    return any(
        node.replica is None
        and all(len(other.disk) < len(node.disk) for other in state.nodes if other is not node)
        for node in state.nodes
    )


def another_in_its_place(state: Cluster) -> bool:
    """Two nodes are down whose disks have different entries in the same place."""
    down = [node.disk for node in state.nodes if node.replica is None]
    return any(
        one[at] != other[at]
        for number, one in enumerate(down)
        for other in down[number + 1 :]
        for at in range(min(len(one), len(other)))
    )


def the_earlier_one_leads(state: Cluster) -> bool:
    """Somebody leads whose log has an entry where a disk that is down has a later one."""
    logs = [node.replica[4] for node in state.nodes if node.replica and node.replica[0] == LEADER]
    down = [node.disk for node in state.nodes if node.replica is None]
    return any(
        log[at] < disk[at]
        for log in logs
        for disk in down
        for at in range(min(len(log), len(disk)))
    )


def answered_and_a_later_one_in_its_place(state: Cluster) -> bool:
    """A leader has taken an entry for committed, and a disk has a later one in the same place."""
    return any(
        len(node.disk) >= index and node.disk[index - 1] > term
        for index, term, *_ in state.answered
        for node in state.nodes
    )


FIGURE_8: tuple[Waypoint, ...] = (
    alone_and_down,
    another_in_its_place,
    the_earlier_one_leads,
    answered_and_a_later_one_in_its_place,
)
