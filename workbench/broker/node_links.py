"""The ways between the nodes of a cluster: latency, cuts, and who is told when somebody is lost.

As between nodes of an Erlang cluster: one connection per pair, in order, nothing lost while it
lasts. A cut way keeps what is on it. If it is mended before anybody notices, everything arrives,
late; after `detect_us` the connection is given up, what was on it is lost, and both ends are told.
A node that dies is noticed at once, for its machine closes its connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from workbench.queues import QueueError
from workbench.sim import Timer, VirtualClock

Call = tuple[Callable[..., None], tuple[Any, ...]]


class Told(Protocol):
    """Who hears that nodes are lost and come back."""

    def node_down(self, at: str, node: str) -> None:
        """`at` learns that it has no connection to `node` any more."""

    def node_up(self, at: str, node: str) -> None:
        """`at` learns that it has a connection to `node` again."""


class _Lane:
    """One direction of a way."""

    __slots__ = ("cut", "epoch", "flying", "held", "last_us", "latency_us")

    def __init__(self, latency_us: int) -> None:
        self.latency_us = latency_us
        self.last_us = 0  # nothing arrives before what was sent earlier
        self.epoch = 0  # of the connection; what belongs to an earlier one is lost
        self.cut = False
        self.held: list[Call] = []
        self.flying: deque[tuple[int, Callable[..., None], tuple[Any, ...]]] = deque()


class _Pair:
    """A way between two nodes."""

    __slots__ = ("connected", "cut", "ends", "noticing", "stale")

    def __init__(self, ends: tuple[str, str]) -> None:
        self.ends = ends
        self.connected = True
        self.cut = False
        self.stale = False  # one end has died, and the other has not noticed for the cut
        self.noticing: Timer | None = None


class NodeLinks:
    """Every way of a cluster.

    Args:
        clock: the run's clock.
        names: of the nodes.
        latency_us: one direction of any way.
        detect_us: how long a cut stays unnoticed.
        told: hears of losses.
    """

    def __init__(
        self,
        clock: VirtualClock,
        names: tuple[str, ...],
        *,
        latency_us: int,
        detect_us: int,
        told: Told,
    ) -> None:
        self.detect_us = detect_us
        self.alive = dict.fromkeys(names, True)
        self._clock = clock
        self._told = told
        self._lanes = {(a, b): _Lane(latency_us) for a in names for b in names if a != b}
        pairs = [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]
        self._pairs = {frozenset(ends): _Pair(ends) for ends in pairs}

    # -- reading ----------------------------------------------------------------------------

    def connected(self, a: str, b: str) -> bool:
        """Whether the two have a connection, or believe so."""
        return a == b or self._pairs[frozenset((a, b))].connected

    def reaches(self, a: str, b: str) -> bool:
        """Whether something sent by one would arrive at the other now."""
        if a == b:
            return self.alive[a]
        pair = self._pairs[frozenset((a, b))]
        return self.alive[a] and self.alive[b] and not pair.cut

    def is_cut(self, a: str, b: str) -> bool:
        """Whether the way is cut."""
        return self._pairs[frozenset((a, b))].cut

    def cuts(self) -> list[tuple[str, str]]:
        """The ways that are cut."""
        return [pair.ends for pair in self._pairs.values() if pair.cut]

    # -- traffic ----------------------------------------------------------------------------

    def send(self, a: str, b: str, call: Callable[..., None], *args: Any) -> None:
        """Have something done at the other end, when it arrives; lost if there is no connection."""
        if a == b:
            self._clock.call_soon(call, *args)
        elif self._pairs[frozenset((a, b))].connected:
            self._post(self._lanes[a, b], call, args)

    def set_latency(self, a: str, b: str, latency_us: int) -> None:
        """How long a message is under way from now on, in each direction."""
        for ends in ((a, b), (b, a)):
            self._lanes[ends].latency_us = latency_us

    def _post(self, lane: _Lane, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        lane.last_us = max(self._clock.now_us + lane.latency_us, lane.last_us)
        lane.flying.append((lane.epoch, call, args))
        self._clock.call_at(lane.last_us, self._arrive, lane)

    def _arrive(self, lane: _Lane) -> None:
        # Whichever timer it is, the oldest arrives: a wall clock may wake two in another order.
        epoch, call, args = lane.flying.popleft()
        if epoch != lane.epoch:
            return
        if lane.cut:
            lane.held.append((call, args))
        else:
            call(*args)

    # -- faults -----------------------------------------------------------------------------

    def cut(self, a: str, b: str) -> None:
        """Nothing passes any more; who is at the ends does not know yet.

        Raises:
            QueueError: if the way is cut already.
        """
        pair = self._pair(a, b)
        if pair.cut:
            raise QueueError(f"the way {a}-{b} is cut already; legal now: heal it")
        self._set_cut(pair, True)
        if pair.connected:
            pair.noticing = self._clock.call_later(self.detect_us, self._give_up, pair)

    def heal(self, a: str, b: str) -> None:
        """Things pass again: what was held arrives, or a new connection is made.

        Raises:
            QueueError: if the way is not cut.
        """
        pair = self._pair(a, b)
        if not pair.cut:
            listed = ", ".join(f"{one}-{other}" for one, other in self.cuts()) or "none"
            raise QueueError(f"the way {a}-{b} is not cut; cut now: {listed}")
        self._set_cut(pair, False)
        if pair.noticing is not None:
            pair.noticing.cancel()
            pair.noticing = None
        if pair.stale and pair.connected:
            self._give_up(pair)
        for lane in self._both(pair):
            held, lane.held = lane.held, []
            for call, args in held:
                call(*args)
        self._connect(pair)

    def node_lost(self, name: str) -> None:
        """A node is dead: its connections are gone, and with them what was on them."""
        self.alive[name] = False
        for pair in self._of(name):
            if not pair.connected:
                continue
            self._drop(pair)
            if pair.cut:
                pair.stale = True  # the other end believes in the connection until it gives up
                continue
            pair.connected = False
            other = self._other(pair, name)
            self._post(self._lanes[name, other], self._tell_down, (other, name))

    def node_back(self, name: str) -> None:
        """A node lives again, and makes connections where nothing is cut."""
        self.alive[name] = True
        for pair in self._of(name):
            self._connect(pair)

    # -- inside -----------------------------------------------------------------------------

    def _connect(self, pair: _Pair) -> None:
        a, b = pair.ends
        if pair.connected or pair.cut or not (self.alive[a] and self.alive[b]):
            return
        pair.connected, pair.stale = True, False
        for here, there in ((a, b), (b, a)):
            self._post(self._lanes[there, here], self._tell_up, (here, there))

    def _give_up(self, pair: _Pair) -> None:
        """The ends notice that nothing comes any more."""
        pair.connected, pair.stale, pair.noticing = False, False, None
        self._drop(pair)
        a, b = pair.ends
        self._tell_down(a, b)
        self._tell_down(b, a)

    def _tell_down(self, at: str, node: str) -> None:
        if self.alive[at]:
            self._told.node_down(at, node)

    def _tell_up(self, at: str, node: str) -> None:
        if self.alive[at]:
            self._told.node_up(at, node)

    def _drop(self, pair: _Pair) -> None:
        for lane in self._both(pair):
            lane.epoch += 1
            lane.held = []

    def _set_cut(self, pair: _Pair, cut: bool) -> None:
        pair.cut = cut
        for lane in self._both(pair):
            lane.cut = cut

    def _both(self, pair: _Pair) -> tuple[_Lane, _Lane]:
        a, b = pair.ends
        return self._lanes[a, b], self._lanes[b, a]

    def _of(self, name: str) -> list[_Pair]:
        return [pair for pair in self._pairs.values() if name in pair.ends]

    def _other(self, pair: _Pair, name: str) -> str:
        a, b = pair.ends
        return b if a == name else a

    def _pair(self, a: str, b: str) -> _Pair:
        pair = self._pairs.get(frozenset((a, b)))
        if pair is None:
            raise QueueError(f"there is no way {a}-{b}; nodes: {', '.join(self.alive)}")
        return pair
