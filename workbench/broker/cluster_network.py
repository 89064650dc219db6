"""The network between the nodes of a cluster: latency, cuts, and word of nodes that are lost.

As between nodes of an Erlang cluster: one connection per pair, in order, nothing lost while it
lasts. A cut way keeps what is on it. If it is mended before the ends notice, everything arrives,
late; after `detect_us` the connection is given up, what was on it is lost, and both ends are told.
A node that dies is noticed at once, for its machine closes its connections.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from workbench.queues import QueueError
from workbench.sim import Clock, Timer

Call = tuple[Callable[..., None], tuple[Any, ...]]


class Told(Protocol):
    """Who hears that nodes are lost and come back."""

    def node_down(self, at: str, node: str) -> None:
        """`at` learns that it has no connection to `node` any more."""

    def node_up(self, at: str, node: str) -> None:
        """`at` learns that it has a connection to `node` again."""


class _Lane:
    """One direction of a way."""

    __slots__ = ("epoch", "flying", "held", "last_us", "latency_us")

    def __init__(self, latency_us: int) -> None:
        self.latency_us = latency_us
        self.last_us = 0  # nothing arrives before what was sent earlier
        self.epoch = 0  # of the connection; what belongs to an earlier one is lost
        self.held: list[Call] = []
        self.flying: deque[tuple[int, Call]] = deque()


class _Pair:
    """The way between two nodes; its lanes by the node to which they lead."""

    __slots__ = ("connected", "cut", "ends", "lanes", "noticing", "stale")

    def __init__(self, ends: tuple[str, str], latency_us: int) -> None:
        self.ends = ends
        self.lanes = {end: _Lane(latency_us) for end in reversed(ends)}
        self.connected = True
        self.cut = False
        self.stale = False  # one end has died, and the other has not noticed for the cut
        self.noticing: Timer | None = None

    def drop(self) -> None:
        """The connection is gone, and with it what is under way."""
        for lane in self.lanes.values():
            lane.epoch += 1
            lane.held = []


class ClusterNetwork:
    """Every way of a cluster.

    Args:
        clock: the run's clock.
        names: of the nodes.
        latency_us: one direction of any way.
        detect_us: how long a cut stays unnoticed.
        told: hears of losses.

    Attributes:
        alive: which nodes live.
    """

    def __init__(
        self,
        clock: Clock,
        names: tuple[str, ...],
        *,
        latency_us: int,
        detect_us: int,
        told: Told,
    ) -> None:
        self.alive = dict.fromkeys(names, True)
        self._detect_us = detect_us
        self._clock = clock
        self._told = told
        self._all = [
            _Pair((a, b), latency_us) for at, a in enumerate(names) for b in names[at + 1 :]
        ]
        self._pairs = {ends: pair for pair in self._all for ends in (pair.ends, pair.ends[::-1])}

    # -- reading ----------------------------------------------------------------------------

    def reaches(self, a: str, b: str) -> bool:
        """Whether something sent by one would arrive at the other now."""
        return self.alive[a] and self.alive[b] and (a == b or not self._pairs[a, b].cut)

    def is_cut(self, a: str, b: str) -> bool:
        """Whether the way is cut."""
        return self._pairs[a, b].cut

    def cuts(self) -> list[tuple[str, str]]:
        """The ways that are cut."""
        return [pair.ends for pair in self._all if pair.cut]

    # -- traffic ----------------------------------------------------------------------------

    def send(self, a: str, b: str, call: Callable[..., None], *args: Any) -> None:
        """Have something done at the other end, when it arrives; lost if there is no connection."""
        if a == b:
            self._clock.call_soon(call, *args)
        elif (pair := self._pairs[a, b]).connected:
            self._post(pair, b, call, *args)

    def set_latency(self, a: str, b: str, latency_us: int) -> None:
        """How long a message is under way from now on, in each direction."""
        for lane in self._pair(a, b).lanes.values():
            lane.latency_us = latency_us

    def _post(self, pair: _Pair, to: str, call: Callable[..., None], *args: Any) -> None:
        lane = pair.lanes[to]
        lane.last_us = max(self._clock.now_us + lane.latency_us, lane.last_us)
        lane.flying.append((lane.epoch, (call, args)))
        self._clock.call_at(lane.last_us, self._arrive, pair, lane)

    def _arrive(self, pair: _Pair, lane: _Lane) -> None:
        # Whichever timer it is, the oldest arrives: a wall clock may wake two in another order.
        epoch, (call, args) = lane.flying.popleft()
        if epoch != lane.epoch:
            return
        if pair.cut:
            lane.held.append((call, args))
        else:
            call(*args)

    # -- faults -----------------------------------------------------------------------------

    def cut(self, a: str, b: str) -> None:
        """Nothing passes any more; the ends do not know yet.

        Raises:
            QueueError: if the way is cut already.
        """
        pair = self._pair(a, b)
        if pair.cut:
            raise QueueError(f"the way {a}-{b} is cut already; legal now: heal it")
        pair.cut = True
        if pair.connected:
            pair.noticing = self._clock.call_later(self._detect_us, self._give_up, pair)

    def heal(self, a: str, b: str) -> None:
        """Things pass again: what was held arrives, or a new connection is made.

        Raises:
            QueueError: if the way is not cut.
        """
        pair = self._pair(a, b)
        if not pair.cut:
            listed = ", ".join(f"{one}-{other}" for one, other in self.cuts()) or "none"
            raise QueueError(f"the way {a}-{b} is not cut; cut now: {listed}")
        pair.cut = False
        if pair.noticing is not None:
            pair.noticing.cancel()
            pair.noticing = None
        if pair.stale and pair.connected:
            self._give_up(pair)
        for lane in pair.lanes.values():
            held, lane.held = lane.held, []
            for call, args in held:
                call(*args)
        self._connect(pair)

    def node_lost(self, name: str) -> None:
        """A node is dead: its connections are gone, and with them what was on them."""
        self.alive[name] = False
        for pair in self._all:
            if name not in pair.ends or not pair.connected:
                continue
            pair.drop()
            if pair.cut:
                pair.stale = True  # the other end believes in the connection until it gives up
                continue
            pair.connected = False
            a, b = pair.ends
            other = a if b == name else b
            self._post(pair, other, self._tell_down, other, name)

    def node_back(self, name: str) -> None:
        """A node lives again, and makes connections where nothing is cut."""
        self.alive[name] = True
        for pair in self._all:
            if name in pair.ends:
                self._connect(pair)

    # -- inside -----------------------------------------------------------------------------

    def _connect(self, pair: _Pair) -> None:
        a, b = pair.ends
        if pair.connected or pair.cut or not (self.alive[a] and self.alive[b]):
            return
        pair.connected, pair.stale = True, False
        for here, there in ((a, b), (b, a)):
            self._post(pair, here, self._tell_up, here, there)

    def _give_up(self, pair: _Pair) -> None:
        """The ends notice that nothing comes any more."""
        pair.connected, pair.stale, pair.noticing = False, False, None
        pair.drop()
        a, b = pair.ends
        self._tell_down(a, b)
        self._tell_down(b, a)

    def _tell_down(self, at: str, node: str) -> None:
        if self.alive[at]:
            self._told.node_down(at, node)

    def _tell_up(self, at: str, node: str) -> None:
        if self.alive[at]:
            self._told.node_up(at, node)

    def _pair(self, a: str, b: str) -> _Pair:
        pair = self._pairs.get((a, b))
        if pair is None:
            raise QueueError(f"there is no way {a}-{b}; nodes: {', '.join(self.alive)}")
        return pair
