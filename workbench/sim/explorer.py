"""A generic explorer: every state that a model can reach, breadth first, within stated bounds.

A model is a pure function from a state to the moves that are possible in it. States are hashable
values, best plain tuples. Breadth first means that the first bad state found is one of the nearest,
so the schedule that leads to it is a shortest one.

Memory is estimated by the state: `OCTETS_PER_STATE` for its place in the index and in three lists,
its own size, and that of the tuples in it. Numbers are not charged, for neighbours share most of
them; `benchmarks/explore_lattice.py` holds the estimate against what a process really takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)
Move = TypeVar("Move", bound=Hashable)
MoveOut = TypeVar("MoveOut", bound=Hashable, covariant=True)

# A slot of the index (24 octets, and as much again free, twice while it grows: up to 90), its place
# as a number (32), three lists (27), new numbers in the state (up to 64). Seen: at most 245.
OCTETS_PER_STATE = 250
LOOK_EVERY = 64  # states whose moves were tried, between two looks at clock and memory
TELL_EVERY = 1024  # the same, between two words of progress


class Model(Protocol[State, MoveOut]):
    """What the explorer asks of a model."""

    @property
    def initial(self) -> State:
        """Where every schedule begins."""

    def successors(self, state: State) -> Iterable[tuple[MoveOut, State]]:
        """Every possible move with the state it leads to, in a fixed order."""

    def bad(self, state: State) -> bool:
        """Whether this state must not be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far an exploration goes.

    The number of states is kept exactly. Time and memory are looked at after the moves of every
    `LOOK_EVERY` states, and kept to within that.

    Attributes:
        states: no more than this many, at least 1.
        seconds: no longer than this, if a clock is given.
        octets: no more memory than this, as estimated from the states.

    Raises:
        ValueError: if one of them bounds nothing.
    """

    states: int = 1_000_000
    seconds: float = 10.0
    octets: int = 300_000_000

    def __post_init__(self) -> None:
        if self.states < 1:
            raise ValueError(f"states is {self.states}; legal: 1 or more")
        if not self.seconds >= 0:
            raise ValueError(f"seconds is {self.seconds}; legal: 0 or more")
        if self.octets < 1:
            raise ValueError(f"octets is {self.octets}; legal: 1 or more")


@dataclass(slots=True, kw_only=True)
class Exploration(Generic[State, Move]):
    """What was found.

    Attributes:
        model: what was explored.
        ordered: the states in the order in which they were found; the first is the initial one.
        bad_at: places of the bad ones in `ordered`, nearest first.
        complete: whether every reachable state was visited.
        stopped: which bound ended it otherwise, in words.
    """

    model: Model[State, Move]
    ordered: list[State] = field(default_factory=list)
    bad_at: list[int] = field(default_factory=list)
    complete: bool = False
    stopped: str = ""
    _index: dict[State, int] = field(default_factory=dict)
    _parent: list[int] = field(default_factory=list)
    _moves: list[Move | None] = field(default_factory=list)

    @property
    def states(self) -> int:
        """How many states were found."""
        return len(self.ordered)

    @property
    def bad(self) -> int:
        """How many of them are bad."""
        return len(self.bad_at)

    @property
    def bad_states(self) -> list[State]:
        """The bad ones, nearest first."""
        return [self.ordered[at] for at in self.bad_at]

    @property
    def shortest(self) -> tuple[Move, ...] | None:
        """A shortest schedule to a bad state; None if none was found."""
        return self.schedule_to(self.bad_at[0]) if self.bad_at else None

    def __contains__(self, state: State) -> bool:
        return state in self._index

    def index_of(self, state: State) -> int:
        """Place of a state in `ordered`.

        Raises:
            KeyError: if it was not found.
        """
        return self._index[state]

    def schedule_to(self, index: int) -> tuple[Move, ...]:
        """A shortest schedule to the state at that place of `ordered`."""
        moves: list[Move] = []
        while index:
            move = self._moves[index]
            assert move is not None
            moves.append(move)
            index = self._parent[index]
        return tuple(reversed(moves))

    def depths(self) -> list[int]:
        """How many moves each state of `ordered` is away from the first."""
        depths = [0] * len(self.ordered)
        for index in range(1, len(depths)):
            depths[index] = depths[self._parent[index]] + 1
        return depths

    def levels(self) -> list[int]:
        """How many states there are at each depth."""
        counts: list[int] = []
        for depth in self.depths():
            if depth == len(counts):
                counts.append(0)
            counts[depth] += 1
        return counts

    def edges(self) -> Iterator[tuple[int, Move, int]]:
        """Every move between found states, as (from, move, to), worked out again."""
        for index, state in enumerate(self.ordered):
            for move, after in self.model.successors(state):
                found = self._index.get(after)
                if found is not None:
                    yield index, move, found


def explore(
    model: Model[State, Move],
    bounds: Bounds | None = None,
    *,
    now: Callable[[], float] | None = None,
    progress: Callable[[int], None] | None = None,
    stop_at_bad: bool = False,
) -> Exploration[State, Move]:
    """Visit every reachable state, breadth first, until a bound is met.

    Args:
        model: what is explored; an exception of its successors goes through to the caller.
        bounds: how far.
        now: a clock in seconds; without it time is no bound.
        progress: told now and then how many states were found.
        stop_at_bad: end with the first bad state.
    """
    limits = bounds or Bounds()
    started = now() if now is not None else 0.0
    initial = model.initial
    found: Exploration[State, Move] = Exploration(model=model)
    ordered, index, parent, moves = found.ordered, found._index, found._parent, found._moves
    ordered.append(initial)
    index[initial] = 0
    parent.append(0)
    moves.append(None)
    if model.bad(initial):
        found.bad_at.append(0)
        if stop_at_bad:
            found.stopped = "stopped at the first bad state"
            return found
    successors, bad, bad_at = model.successors, model.bad, found.bad_at
    octets = _octets(initial)
    charged = 1
    at = 0
    while at < len(ordered):
        state = ordered[at]
        for move, after in successors(state):
            if after in index:
                continue
            place = len(ordered)
            if place >= limits.states:
                found.stopped = f"stopped at {limits.states:,} states, the bound"
                return found
            index[after] = place
            ordered.append(after)
            parent.append(at)
            moves.append(move)
            if bad(after):
                bad_at.append(place)
                if stop_at_bad:
                    found.stopped = "stopped at the first bad state"
                    return found
        at += 1
        if at % LOOK_EVERY == 0:
            if progress is not None and at % TELL_EVERY == 0:
                progress(len(ordered))
            # States found since the last look weigh about as much as the newest of them.
            octets += (len(ordered) - charged) * _octets(ordered[-1])
            charged = len(ordered)
            if octets > limits.octets:
                found.stopped = (
                    f"stopped at {charged:,} states: they take about {octets // 1_000_000} MB, the"
                    f" bound is {limits.octets // 1_000_000} MB"
                )
                return found
            if now is not None and now() - started > limits.seconds:
                found.stopped = (
                    f"stopped at {charged:,} states after {limits.seconds:g} s, the bound"
                )
                return found
    found.complete = True
    return found


def _octets(state: object) -> int:
    """About how much memory a state takes."""
    octets = OCTETS_PER_STATE + sys.getsizeof(state)
    if isinstance(state, tuple):
        octets += sum(sys.getsizeof(part) for part in state if isinstance(part, tuple))
    return octets
