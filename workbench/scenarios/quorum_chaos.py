"""A quorum queue under faults drawn from a seed, with a referee watching.

Publishers publish; consumers take what comes and give some back. In most runs they speak to the
queue itself (`quorum_chaos_clients`), in three of eight they are AMQP 1.0 clients of a broker
(`quorum_chaos_links`). Meanwhile nodes crash, one or all, some of them between write and fsync,
ways are cut, disks are slow. Then everything is mended, and when all is quiet, what clients were
promised is checked. The same seed is the same run: in a test, and on the stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from workbench.broker.quorum_cluster import FRONT
from workbench.broker.quorum_node import SyncTime
from workbench.broker.raft_group import Watcher
from workbench.queues.draws import SeededDraws
from workbench.queues.raft import ENTRIES_PER_APPEND, PRE_VOTE, RIGHT, RaftLog, RaftRules
from workbench.queues.raft_referee import InvariantBrokenError, Referee
from workbench.sim import Tap, VirtualClock

from .quorum_chaos_clients import QueueClients
from .quorum_chaos_links import PRESET, QUEUE, WAY_US, LinkClients
from .world import World

MOST_EVENTS = 200_000
MESSAGES = 80  # of each publisher
CALM_US = 15_000_000  # after everything was mended: longer than any timer


@dataclass(slots=True)
class Tally:
    """What befell one run: a test adds these up."""

    commands: int = 0
    faults: int = 0
    leader_changes: int = 0
    torn: int = 0  # crashes between write and fsync
    resent: int = 0
    events: int = 0
    kinds: dict[str, int] = field(default_factory=dict)


class _OnLeader(Watcher):
    """Watches for leaders alone."""

    def __init__(self, then: Callable[[str], None]) -> None:
        self._then = then

    def led(self, node: str, term: int, log: RaftLog) -> None:
        """A replica leads."""
        self._then(node)


class Chaos:
    """One run.

    Args:
        clock, tap: of the run.
        seed: of everything that is drawn.
        rules: that replicas keep; a broken one is for the mutant shelf.
        messages: of each publisher.
        report: told of the first broken invariant, where it is not to be raised.
    """

    def __init__(
        self,
        clock: VirtualClock,
        seed: int,
        tap: Tap | None = None,
        *,
        rules: RaftRules = RIGHT,
        messages: int = MESSAGES,
        report: Callable[[InvariantBrokenError], None] | None = None,
    ) -> None:
        self.clock = clock
        self.seed = seed
        self.draws = draws = SeededDraws(seed)
        pick = draws.randrange
        self.tally = Tally()
        plan = {0: self._plan_figure_8, 1: self._plan_forgotten_vote}.get(pick(0, 8), self._plan)
        eight = plan == self._plan_figure_8
        over_links = plan == self._plan and pick(0, 2) == 0
        self.replicas = (1, 3, 3, 3, 5)[pick(0, 5)] if plan == self._plan else 5 if eight else 3
        low = pick(200, 4_000)
        world = World(preset=PRESET, parameters={"latency_us": WAY_US}, tap=tap, clock=clock)
        self.cluster = world.broker.make_cluster(
            self.replicas,
            fsync=SyncTime.between(low, low + pick(1, 6_000)),
            latency_us=pick(50, 3_000),
            client_latency_us=pick(0, 500),
            detect_us=pick(50_000, 1_000_000),
            draws=draws,
            rules=rules,
            chunk=1 if eight or pick(0, 4) == 0 else ENTRIES_PER_APPEND,
        )
        broken = self._broken
        over = LinkClients(world, self.replicas, messages, draws, broken) if over_links else None
        self.group = self.cluster.declare(QUEUE, replicas=self.replicas)
        self.referee = Referee(
            self.group.nodes,
            lambda node: self.cluster.nodes[node].wal.disk.get(QUEUE),
            report,
        )
        self.group.watchers.append(self.referee)
        for node, member in self.group.members.items():
            log = member.replica.log
            self.referee.appended(node, log, log.entries())
            self.referee.committed_up_to(node, log, member.replica.term, member.replica.commit)
        self.clients = over or QueueClients(self.group, clock, messages, draws, broken)
        self._stage = ""
        plan(pick)

    # -- the plan ---------------------------------------------------------------------------

    def _plan(self, pick: Callable[[int, int], int]) -> None:
        """Draw three to eight faults, and the hour at which all is mended."""
        t_us = pick(15_000, 60_000)
        for _ in range(pick(3, 9)):
            kind = pick(0, 13)
            fault = (
                partial(self._crash_all, pick(0, 4)) if kind == 10
                else self._cut_clients if kind > 10
                else partial(self._crash_leader, pick(0, 2) == 0, pick(0, 4)) if kind < 3
                else partial(self._crash_any, pick(0, 8), pick(0, 2) == 0, pick(0, 4)) if kind < 5
                else partial(self._isolate, kind < 7, pick(0, 8)) if kind < 8
                else partial(self._slow_disk, pick(0, 8), pick(10_000, 200_000)) if kind < 9
                else partial(self._slow_way, pick(0, 8), pick(5_000, 100_000))
            )  # fmt: skip
            self.clock.call_at(t_us - pick(0, 12_000), self.clients.busy)
            self.clock.call_at(t_us, fault, pick(30_000, 1_500_000))
            t_us += pick(10_000, 900_000)
        self.clock.call_at(t_us + 50_000, self._at_least, 3, pick(0, 8))
        self.clock.call_at(t_us + 200_000, self._mend)

    def _at_least(self, faults: int, which: int) -> None:
        """Some faults found nothing to befall: slow disks make up for them."""
        while self.tally.faults < faults:
            which += 1
            self._slow_disk(which, 50_000, 100_000)

    # -- figure 8 ---------------------------------------------------------------------------

    def _plan_figure_8(self, pick: Callable[[int, int], int]) -> None:
        """The schedule of the paper's figure 8, at drawn times: whether it meets is chance.

        Two replicas have entries that the rest has not, and die. Another leads for a moment, and
        dies with an entry of its own in the same place. The two come back, one of them leads and
        copies its old entries to a majority, and dies. The other one comes back.
        """
        self._way_us = pick(10_000, 40_000)
        self.group.watchers.append(_OnLeader(self._eight_led))
        nodes = self.group.nodes
        for at, node in enumerate(nodes):
            for other in nodes[at + 1 :]:
                self.cluster.network.set_latency(node, other, self._way_us)
        self.clock.call_at(pick(100_000, 200_000), self._eight_cut)
        self.clock.call_at(12_000_000, self._mend)

    def _eight_cut(self) -> None:
        first, second, *rest = self.group.nodes
        if self.group.leader != first:
            return
        self._two = first, second
        self._note("cut")
        for other in rest:
            self.cluster.cut(first, other)
        self.clock.call_later(self._near(2), self._eight_die, "led for a moment")

    def _eight_die(self, then: str) -> None:
        for node in self._two:
            self._crash(node, 0, 20_000_000)
        self._stage = then
        if then == "other leads":
            self.clock.call_later(self._near(1), self._restart, self._other)

    def _eight_led(self, node: str) -> None:
        """A leader was elected: the plan goes on from here."""
        if self._stage == "led for a moment":
            self._stage, self._other = "", node
            self.clock.call_later(self._near(1) // 3, self._eight_back)
        elif self._stage == "two are back":
            self._stage = ""
            self.clock.call_later(self._near(4), self._eight_die, "other leads")
        elif self._stage == "other leads":
            self._stage = ""
            self.clock.call_later(300_000, self._mend)

    def _eight_back(self) -> None:
        self._crash(self._other, 0, 20_000_000)
        for a, b in self.cluster.network.cuts():
            self.cluster.heal(a, b)
        for node in self._two:
            self.clock.call_later(self._near(1), self._restart, node)
        self._stage = "two are back"

    # -- a forgotten vote -------------------------------------------------------------------

    def _plan_forgotten_vote(self, pick: Callable[[int, int], int]) -> None:
        """Two stand in one term, and who voted for the one is gone for a moment: five times.

        The leader dies. The two others, far from each other, ask whether they may stand, and each
        says yes. Both will stand in the same term, one after the other, with the old leader back,
        whose vote decides. When it has voted it dies, and comes back before the other one asks it,
        and before it hears of the one that leads.
        """
        self._way_us = pick(60_000, 120_000)
        self.group.watchers.append(_OnLeader(self._forgotten_led))
        for at in range(5):
            self.clock.call_at(100_000 + at * 2_000_000, self._forgotten_begin)
        self.clock.call_at(10_100_000, self._mend)

    def _forgotten_begin(self) -> None:
        for node in self.group.nodes:
            self._restart(node)
        for a, b in self.cluster.network.cuts():
            self.cluster.heal(a, b)
        leader = self.group.leader
        if leader is None:
            return
        self._voter = leader
        one, other = (node for node in self.group.nodes if node != leader)
        self._two = one, other
        for node in self._two:
            self.cluster.set_latency(leader, node, 500)
        self.cluster.set_latency(*self._two, self._way_us)
        self._crash(leader, 0, 1_500_000)
        self._stage = "both ask"
        self.clock.call_later(100_000, self._forgotten_asked, 200)

    def _forgotten_asked(self, tries: int) -> None:
        roles = {self.group.members[node].replica.role for node in self._two}
        if roles == {PRE_VOTE}:
            self._restart(self._voter)
            self._stage = "both will stand"
        elif tries and self.group.leader is None:
            self.clock.call_later(2_000, self._forgotten_asked, tries - 1)

    def _forgotten_led(self, node: str) -> None:
        if self._stage == "both will stand" and node in self._two:
            self._stage = ""
            self.cluster.cut(node, self._voter)
            self._crash(self._voter, 0, 0)

    def _near(self, ways: int) -> int:
        """About so many times the way between two nodes."""
        return self._way_us * ways + self.draws.randrange(0, self._way_us)

    def _note(self, kind: str) -> None:
        self.tally.faults += 1
        self.tally.kinds[kind] = self.tally.kinds.get(kind, 0) + 1

    def _alive(self) -> list[str]:
        return [node for node in self.group.nodes if self.cluster.nodes[node].alive]

    def _crash_leader(self, in_sync: bool, saved: int, for_us: int) -> None:
        node = self.group.leader
        if node is None:
            alive = self._alive()
            if not alive:
                return
            node = alive[0]
        self._crash_at(node, in_sync, saved, for_us)

    def _crash_any(self, which: int, in_sync: bool, saved: int, for_us: int) -> None:
        alive = self._alive()
        if alive:
            self._crash_at(alive[which % len(alive)], in_sync, saved, for_us)

    def _crash_all(self, saved: int, for_us: int) -> None:
        """Power is gone everywhere, and comes back to one node after the other."""
        for at, node in enumerate(self._alive(), 1):
            self._crash(node, saved, for_us * at // self.replicas)

    def _crash_at(self, node: str, in_sync: bool, saved: int, for_us: int) -> None:
        """Crash now, or wait up to some milliseconds for a batch to be between write and fsync."""
        if in_sync and not self.cluster.nodes[node].wal.syncing:
            self.clock.call_later(300, self._crash_in_sync, node, saved, for_us, 200)
        else:
            self._crash(node, saved, for_us)

    def _crash_in_sync(self, node: str, saved: int, for_us: int, tries: int) -> None:
        owner = self.cluster.nodes[node]
        if owner.alive and not owner.wal.syncing and tries:
            self.clock.call_later(300, self._crash_in_sync, node, saved, for_us, tries - 1)
        else:
            self._crash(node, saved, for_us)

    def _crash(self, node: str, saved: int, for_us: int) -> None:
        owner = self.cluster.nodes[node]
        if not owner.alive:
            return
        if owner.wal.syncing:
            self.tally.torn += 1
        self._note("crash")
        self.cluster.crash(node, saved=saved)
        self.clock.call_later(for_us, self._restart, node)

    def _restart(self, node: str) -> None:
        if not self.cluster.nodes[node].alive:
            self.cluster.restart(node)

    def _isolate(self, leader: bool, which: int, for_us: int) -> None:
        nodes = self.group.nodes
        node = (self.group.leader if leader else None) or nodes[which % len(nodes)]
        others = [other for other in (*nodes, FRONT) if other != node]
        if which % 3 == 0:
            others = others[:1]  # one way only
        cut = [other for other in others if not self.cluster.network.is_cut(node, other)]
        if not cut:
            return
        self._note("cut")
        for other in cut:
            self.cluster.cut(node, other)
        self.clock.call_later(for_us, self._heal, node, cut)

    def _cut_clients(self, for_us: int) -> None:
        """The clients and the leader lose their way to each other."""
        node = self.group.leader
        if node is not None and not self.cluster.network.is_cut(node, FRONT):
            self._note("cut")
            self.cluster.cut(node, FRONT)
            self.clock.call_later(for_us, self._heal, node, [FRONT])

    def _heal(self, node: str, others: list[str]) -> None:
        for other in others:
            if self.cluster.network.is_cut(node, other):
                self.cluster.heal(node, other)

    def _slow_disk(self, which: int, fsync_us: int, for_us: int) -> None:
        node = self.group.nodes[which % self.replicas]
        self._note("slow disk")
        self.cluster.set_fsync(node, SyncTime.constant(fsync_us))
        self.clock.call_later(for_us, self.cluster.set_fsync, node, self.cluster.fsync)

    def _slow_way(self, which: int, latency_us: int, for_us: int) -> None:
        nodes = self.group.nodes
        a, b = nodes[which % self.replicas], (*nodes[1:], FRONT)[which % self.replicas]
        self._note("slow way")
        self.cluster.set_latency(a, b, latency_us)
        self.clock.call_later(for_us, self.cluster.set_latency, a, b, 1_000)

    def _mend(self) -> None:
        """All is well again."""
        for node in self.group.nodes:
            self._restart(node)
            self.cluster.set_fsync(node, self.cluster.fsync)
        for a, b in self.cluster.network.cuts():
            self.cluster.heal(a, b)
        self.clients.calm()
        self.clock.call_later(CALM_US, self.clients.finish)

    # -- the end ----------------------------------------------------------------------------

    def _broken(self, invariant: str, what: str) -> None:
        self.referee.broken(invariant, what)

    def run(self) -> Tally:
        """Let it happen, then check what was promised.

        Raises:
            InvariantBrokenError: at the first invariant that does not hold.
        """
        self.tally.events = self.clock.run_until_rest(MOST_EVENTS)
        self.clients.check()
        self.tally.commands = self.clients.sent
        self.tally.leader_changes = self.referee.leader_changes
        self.tally.resent = self.clients.resent
        return self.tally
