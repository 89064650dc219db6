"""A cluster of nodes with quorum queues on them, and what may befall it.

Every act is checked before anything changes: what cannot be is refused with what is legal. A
cluster without a majority is no error: nothing is committed, publishers are held by `unconfirmed`,
and `stall` says why in words.
"""

from __future__ import annotations

import itertools
from functools import partial

from workbench.queues import QueueArguments, QueueError
from workbench.queues.draws import Draws, SeededDraws
from workbench.queues.quorum_fifo import (
    DEFAULT_DELIVERY_LIMIT,
    FAILED,
    PLAIN_QUORUM,
    QuorumFifo,
)
from workbench.queues.raft import ENTRIES_PER_APPEND, RIGHT, RaftRules, Replica
from workbench.queues.wal import Done
from workbench.sim import Clock, NoTap, Tap

from .cluster_network import ClusterNetwork
from .quorum_node import ClusterNode, SyncTime
from .raft_group import RaftGroup

FRONT = "front"
REPLICAS = (1, 3, 5, 7)
BROADCAST_US = 100_000  # ra_server_proc.erl: DEFAULT_BROADCAST_TIME
ELECTION_MULTIPLIER = 5  # ra_server_proc.erl: DEFAULT_ELECTION_MULT
DETECT_US = 1_000_000  # aten: poll interval


class QuorumCluster:
    """Nodes `n1`, `n2`, ... and a place `front` where clients are, which has no replica.

    Args:
        clock, tap: of the run.
        nodes: how many.
        fsync: how long one takes, on every node.
        latency_us: between two nodes, one direction.
        client_latency_us: between a client and any node; 0: clients are where the leader is.
        detect_us: how long a cut stays unnoticed.
        draws: seeded source of election time-outs and fsync times.
        rules: that replicas keep.
        chunk: entries that a leader sends in one message at most.

    Raises:
        QueueError: if a number is not legal.
    """

    def __init__(
        self,
        clock: Clock,
        tap: Tap | None = None,
        *,
        nodes: int = 5,
        fsync: SyncTime | None = None,
        latency_us: int = 200,
        client_latency_us: int = 0,
        detect_us: int = DETECT_US,
        draws: Draws | None = None,
        rules: RaftRules = RIGHT,
        chunk: int = ENTRIES_PER_APPEND,
    ) -> None:
        if nodes < 1:
            raise QueueError(f"a cluster of {nodes} nodes; legal: 1 or more")
        _not_negative("latency_us", latency_us)
        _not_negative("client_latency_us", client_latency_us)
        _not_negative("detect_us", detect_us)
        self.clock = clock
        self._make_replica = partial(Replica, rules=rules, chunk=chunk)
        self._make_machine = partial(QuorumFifo, rules=rules)
        self.tap: Tap = tap if tap is not None else NoTap()
        self.draws: Draws = draws if draws is not None else SeededDraws()
        self.groups: dict[str, RaftGroup] = {}
        self._writers: dict[str, str] = {}  # names in the logs, with the queue's name
        self.fsync = fsync if fsync is not None else SyncTime.constant(5_000)
        names = tuple(f"n{number}" for number in range(1, nodes + 1))
        self.network = ClusterNetwork(
            clock, (*names, FRONT), latency_us=latency_us, detect_us=detect_us, told=self
        )
        self.nodes: dict[str, ClusterNode] = {}
        for name in names:
            self.network.set_latency(name, FRONT, client_latency_us)
            self.nodes[name] = ClusterNode(
                name, clock, self.tap, self.fsync, self.draws, self._written
            )

    # -- queues -----------------------------------------------------------------------------

    def declare(
        self,
        name: str,
        arguments: QueueArguments = PLAIN_QUORUM,
        *,
        replicas: int = 3,
        command_us: int = 0,
        delivery_limit: int = DEFAULT_DELIVERY_LIMIT,
        limit_counts: str = FAILED,
        two_priorities: bool = False,
    ) -> RaftGroup:
        """The queue of that name; made if there is none, with a replica on each of the first nodes.

        Args:
            name: of the queue.
            arguments: with which it is declared.
            replicas: 1, 3, 5 or 7.
            command_us: service time of the leader for each command.
            delivery_limit: as in `QuorumFifo`.
            limit_counts: as in `QuorumFifo`.
            two_priorities: as in `QuorumFifo`.

        Raises:
            QueueError: if so many replicas cannot be.
        """
        if name in self.groups:
            return self.groups[name]
        check_replicas(replicas)
        _not_negative("command_us", command_us)
        if replicas > len(self.nodes):
            raise QueueError(
                f"{replicas} replicas need {replicas} nodes, the cluster has {len(self.nodes)}"
            )
        members = tuple(self.nodes)[:replicas]
        down = [node for node in members if not self.nodes[node].alive]
        if down:
            raise QueueError(f"{', '.join(down)} down; legal now: restart, then declare")
        group = self.groups[name] = RaftGroup(
            self,
            name,
            members,
            partial(
                self._make_machine,
                name,
                arguments,
                delivery_limit=delivery_limit,
                limit_counts=limit_counts,
                two_priorities=two_priorities,
            ),
            self._make_replica,
            writer=self._writer(name),
            command_us=command_us,
        )
        self._writers[group.writer] = name
        return group

    def _writer(self, name: str) -> str:
        """A name for a queue's entries in the logs that no queue had before, whatever its own."""
        numbers = itertools.count(len(self._writers))
        every = itertools.chain((name,), (f"{name}#{number}" for number in numbers))
        return next(one for one in every if one not in self._writers)

    def forget(self, queue: str, writer: str) -> None:
        """A queue is deleted: nothing of it is kept."""
        self.groups.pop(queue, None)
        for node in self.nodes.values():
            node.wal.forget(writer)

    def election_us(self) -> int:
        """A fresh election time-out: no two replicas are likely to have the same."""
        return BROADCAST_US + self.draws.randrange(0, BROADCAST_US * ELECTION_MULTIPLIER)

    # -- acts -------------------------------------------------------------------------------

    def crash(self, node: str, *, saved: int = 0) -> int:
        """Power off one node; returns how many entries its log had not made safe.

        Args:
            node: which.
            saved: of the batch that was being synced, so many entries are on disk all the same.
        """
        found = self._node(node)
        _not_negative("saved", saved)
        if not found.alive:
            alive = [name for name, each in self.nodes.items() if each.alive]
            raise QueueError(
                f"{node} is down already; legal now: restart {node}"
                + (f", or crash {' or '.join(alive)}" if alive else "")
            )
        syncing, waiting = found.wal.syncing, found.wal.waiting
        lost = found.crash(saved)
        self._log("crash", node, {"lost": lost, "syncing": syncing, "waiting": waiting})
        for group in self.groups.values():
            group.crashed(node)
        self.network.node_lost(node)
        self._tell_majorities()
        return lost

    def restart(self, node: str) -> None:
        """Power a node on again: it knows what its disk knows."""
        found = self._node(node)
        if found.alive:
            down = [name for name, each in self.nodes.items() if not each.alive]
            raise QueueError(f"{node} is running; down now: {', '.join(down) or 'none'}")
        found.alive = True
        self._log("restart", node, {})
        for group in self.groups.values():
            if node in group.nodes:
                group.restarted(node, found.wal.restore(group.writer))
        self.network.node_back(node)
        self._tell_majorities()

    def cut(self, a: str, b: str) -> None:
        """Cut the way between two nodes, or between one and the clients (`front`)."""
        self.network.cut(a, b)
        self._log("cut", a, {"to": b})
        self._tell_majorities()

    def heal(self, a: str, b: str) -> None:
        """Mend the way."""
        self.network.heal(a, b)
        self._log("heal", a, {"to": b})
        self._tell_majorities()

    def isolate(self, node: str) -> None:
        """Cut every way of a node that is not cut.

        Raises:
            QueueError: if there is none left.
        """
        self._node(node)
        others = [other for other in (*self.nodes, FRONT) if other != node]
        ways = [other for other in others if not self.network.is_cut(node, other)]
        if not ways:
            raise QueueError(f"every way of {node} is cut already; legal now: heal")
        for other in ways:
            self.cut(node, other)

    def set_fsync(self, node: str, time: SyncTime) -> None:
        """Another disk in a node: its time counts from the next fsync on."""
        self._node(node).fsync = time
        self._log("note", node, {"fsync_us": time.quantiles[-1][1]}, kind="fsync-time")

    def set_latency(self, a: str, b: str, latency_us: int) -> None:
        """How long messages between two are under way from now on, each direction."""
        _not_negative("latency_us", latency_us)
        self.network.set_latency(a, b, latency_us)
        self._log("note", a, {"to": b, "latency_us": latency_us}, kind="node-latency")

    # -- reading ----------------------------------------------------------------------------

    def stall(self, queue: str) -> str | None:
        """Why a queue commits nothing now, and what would help; None if it can.

        Raises:
            QueueError: if there is no such queue.
        """
        if queue not in self.groups:
            listed = ", ".join(self.groups) or "none"
            raise QueueError(f"there is no queue {queue!r}; queues: {listed}")
        group = self.groups[queue]
        reaches = self.network.reaches
        best = max(sum(reaches(node, other) for other in group.nodes) for node in group.nodes)
        if best >= group.majority:
            return None
        down = [node for node in group.nodes if not self.nodes[node].alive]
        cuts = [f"{a}-{b}" for a, b in self.network.cuts() if {a, b} <= {*group.nodes}]
        helps = [f"restart {node}" for node in down] + [f"heal {way}" for way in cuts]
        return (
            f"queue {queue}: {best} of {len(group.nodes)} replicas reach each other,"
            f" {group.majority} are a majority; nothing is committed or confirmed, and its"
            f" publishers are held by unconfirmed; legal now: {' or '.join(helps)}"
        )

    def overview(self) -> dict[str, int | str]:
        """Flat picture of every node and queue."""
        picture: dict[str, int | str] = {}
        for name, node in self.nodes.items():
            picture[f"{name}.alive"] = int(node.alive)
            picture[f"{name}.waiting"] = node.wal.waiting
            picture[f"{name}.syncing"] = node.wal.syncing
        for name, group in self.groups.items():
            for key, value in group.overview().items():
                picture[f"{name}.{key}"] = value
        return picture

    # -- told by the network ------------------------------------------------------------------

    def node_down(self, at: str, node: str) -> None:
        """`at` has lost `node`."""
        for group in self.groups.values():
            group.node_down(at, node)

    def node_up(self, at: str, node: str) -> None:
        """`at` has found `node` again."""
        for group in self.groups.values():
            group.node_up(at, node)

    # -- inside -----------------------------------------------------------------------------

    def _written(self, node: str, done: Done) -> None:
        group = self.groups.get(self._writers[done.writer])
        if group is not None and group.writer == done.writer:
            group.written(node, done.index, done.generation)

    def _node(self, name: str) -> ClusterNode:
        if name not in self.nodes:
            raise QueueError(f"there is no node {name!r}; nodes: {', '.join(self.nodes)}")
        return self.nodes[name]

    def _tell_majorities(self) -> None:
        """A row for every queue that has no majority now: the brake has a name."""
        for name in self.groups:
            why = self.stall(name)
            if why is not None:
                self.tap.internal(
                    t_us=self.clock.now_us,
                    event="note",
                    vantage=f"queue:{name}",
                    kind="no-majority",
                    queue=name,
                    extra={"why": why},
                )

    def _log(
        self, event: str, node: str, extra: dict[str, int | str], kind: str | None = None
    ) -> None:
        self.tap.internal(
            t_us=self.clock.now_us,
            event=event,
            vantage=f"node:{node}",
            kind=kind,
            extra=extra or None,
        )


def check_replicas(replicas: int) -> None:
    """Refuse a number of replicas that no queue should have.

    Raises:
        QueueError: if it is none of 1, 3, 5, 7.
    """
    if replicas in REPLICAS:
        return
    why = "a queue has at least one replica"
    if replicas > REPLICAS[-1]:
        why = "every replica must be reached for each message"
    elif replicas > 0:
        why = (
            f"a majority of {replicas} is {replicas // 2 + 1}, so it bears no more crashes than"
            f" {replicas - 1} do"
        )
    raise QueueError(f"{replicas} replicas: {why}; legal: {', '.join(map(str, REPLICAS))}")


def _not_negative(name: str, value: int) -> None:
    if value < 0:
        raise QueueError(f"{name} is {value}; legal: 0 or more")
