"""One quorum queue at work: its replicas on their nodes, and the clients that talk to the leader.

The rules are elsewhere: `workbench.queues.raft` for a replica, `quorum_fifo` for the queue,
`quorum_client` for a client. Here their effects are carried out: messages go over the ways between
nodes, entries to the node's log, timers to the clock, and every step leaves a row. How commands
wait for the leader is in `quorum_intake`, what is committed in `quorum_applying`, who is told what
in `quorum_ports`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.queues import Enqueue, QueueError
from workbench.queues.quorum_commands import Logged
from workbench.queues.quorum_fifo import QuorumFifo
from workbench.queues.quorum_terms import QuorumTerms
from workbench.queues.raft import ENTRIES_PER_APPEND, Replica
from workbench.queues.raft_log import Entry, RaftLog
from workbench.queues.raft_messages import (
    Became,
    Committed,
    Effect,
    ElectionTimer,
    Message,
    Persist,
    Send,
    Write,
)
from workbench.queues.raft_rules import RIGHT, RaftRules
from workbench.queues.raft_vote import LEADER

from .quorum_applying import Applying
from .quorum_intake import Commands, Intake
from .quorum_ports import Ports
from .quorum_roles import Member, Port, Watcher, message_runs

if TYPE_CHECKING:
    from .quorum_cluster import QuorumCluster

QUIET_ROUNDS = 8  # elections in vain after which a retry no longer keeps a run awake
BEFORE = "before"  # the client that filled the queue, when nothing had happened


class QuorumGroup:
    """A queue with its replicas.

    Args:
        cluster: that it is in.
        name: of the queue.
        nodes: that hold a replica; the first leads to begin with.
        terms: of the queue.
        writer: its name in the nodes' logs.
        command_us: service time of the leader for each command.
        rules: that its replicas keep.
        chunk: entries that a leader sends in one message at most.
    """

    def __init__(
        self,
        cluster: QuorumCluster,
        name: str,
        nodes: tuple[str, ...],
        terms: QuorumTerms,
        *,
        writer: str,
        command_us: int = 0,
        rules: RaftRules = RIGHT,
        chunk: int = ENTRIES_PER_APPEND,
    ) -> None:
        self.name = name
        self._chunk = chunk
        self.writer = writer  # its name in the logs: a queue declared again has another
        self.nodes = nodes
        self.majority = len(nodes) // 2 + 1
        self.terms = terms
        self.command_us = command_us
        self.rules = rules
        self.suspended = False
        self.members: dict[str, Member] = {}
        self.watchers: list[Watcher] = []
        self._cluster = cluster
        self._clock = cluster.clock
        self._ports = Ports(cluster.links)
        self._applying = Applying(
            cluster.clock, self._ports, self.watchers, self._log, self._propose
        )
        self._persisted: dict[str, tuple[int, str | None]] = dict.fromkeys(nodes, (0, None))
        self._at_once: deque[tuple[Callable[..., None], tuple[Any, ...]]] | None = None
        for node in nodes:
            self._live(node, self._replica(node))
        self._pump(lambda: self._carry(nodes[0], self.members[nodes[0]].replica.timer_expired()))

    # -- reading ----------------------------------------------------------------------------

    @property
    def leader(self) -> str | None:
        """The node whose replica leads, in the latest term if several believe so; None if none."""
        led = [
            (member.replica.term, node)
            for node, member in self.members.items()
            if member.replica.role == LEADER
        ]
        return max(led)[1] if led else None

    def front(self) -> QuorumFifo:
        """The copy that knows most: the leader's, else the furthest."""
        leader = self.leader
        if leader is not None:
            return self.members[leader].machine
        if not self.members:
            return self._machine()
        return max(self.members.values(), key=lambda member: member.applied).machine

    def overview(self) -> dict[str, int | str]:
        """Flat picture: who leads, and each replica's term, log, disk, commit and state."""
        picture: dict[str, int | str] = {"leader": self.leader or ""}
        for node in self.nodes:
            member = self.members.get(node)
            if member is None:
                picture[f"{node}.role"] = "down"
                continue
            replica = member.replica
            picture[f"{node}.role"] = replica.role
            picture[f"{node}.term"] = replica.term
            picture[f"{node}.last"] = replica.log.last_index
            picture[f"{node}.written"] = replica.written
            picture[f"{node}.commit"] = replica.commit
            picture[f"{node}.applied"] = member.applied
        return picture

    # -- clients ----------------------------------------------------------------------------

    def join(self, port: Port) -> None:
        """A client begins to use the queue; it is told who leads.

        Raises:
            QueueError: if it is nowhere.
        """
        places = self._cluster.links.alive
        if port.place not in places:
            raise QueueError(
                f"client {port.client.name} is at {port.place!r}; legal: {', '.join(places)}"
            )
        self._ports.join(port)
        leader = self.leader
        if leader is not None:
            port.leader_is(leader, self.members[leader].replica.term)

    def leave(self, name: str) -> None:
        """A client is no more."""
        self._ports.leave(name)

    def submit(self, place: str, leader: str, commands: tuple[Logged, ...]) -> None:
        """Send commands from a place to the replica that is believed to lead."""
        self._cluster.links.send(place, leader, self._arrived, leader, commands)

    def fill(self, commands: Iterable[Enqueue]) -> None:
        """Messages from before the run: on every disk and applied already; no time passes."""
        leader = self.leader
        assert leader is not None, "a queue is filled before anything happens to it"
        logged = [Logged(BEFORE, 0, number, command) for number, command in enumerate(commands, 1)]
        if logged:
            self._pump(lambda: self._carry(leader, self.members[leader].replica.propose(logged)))

    def _arrived(self, node: str, commands: Commands) -> None:
        member = self.members.get(node)
        if member is None:
            return
        if member.replica.role == LEADER:
            member.intake.post(commands)
        else:
            self._ports.refuse(node, commands)

    def _taken(self, node: str, commands: Commands) -> None:
        member = self.members[node]
        if member.replica.role == LEADER:
            self._carry(node, member.replica.propose(commands))
        else:
            self._ports.refuse(node, commands + member.intake.withdraw())

    def suspend(self) -> None:
        """The leader's process takes no commands; they wait in its mailbox."""
        self.suspended = True
        for member in self.members.values():
            member.intake.suspended = True

    def resume(self) -> None:
        """It goes on with them."""
        self.suspended = False
        for member in self.members.values():
            member.intake.suspended = False
            member.intake.go_on()

    def end(self) -> None:
        """The queue is deleted: its replicas stop, their disks forget it."""
        for node in tuple(self.members):
            self.crashed(node)
        self._applying.stop()
        self._ports.clear()
        self._cluster.forget(self.name, self.writer)

    # -- what happens to nodes ----------------------------------------------------------------

    def crashed(self, node: str) -> None:
        """The node's replica is gone; its disk and its vote remain."""
        member = self.members.pop(node, None)
        if member is None:
            return
        for watcher in self.watchers:
            watcher.synced(node)
        member.intake.closed = True
        if member.timer is not None:
            member.timer.cancel()

    def restarted(self, node: str, log: RaftLog) -> None:
        """A replica begins with what its disk holds."""
        replica = self._replica(node, log)
        replica.down = frozenset(replica.peers)
        self._live(node, replica)
        for watcher in self.watchers:
            watcher.appended(node, log, log.entries())
        self._carry(node, replica.start())

    def written(self, node: str, index: int, generation: int) -> None:
        """The node's log is on disk up to there."""
        member = self.members.get(node)
        if member is not None:
            for watcher in self.watchers:
                watcher.synced(node)
            self._carry(node, member.replica.written_to(index, generation))

    def node_down(self, at: str, node: str) -> None:
        """A node with a replica learns that another is lost."""
        if at in self.members and node in self.nodes:
            self._carry(at, self.members[at].replica.peer_down(node))

    def node_up(self, at: str, node: str) -> None:
        """A node with a replica learns that another is there; a place of clients too."""
        member = self.members.get(at)
        if member is None:
            return
        if node in self.nodes:
            self._carry(at, member.replica.peer_up(node))
        if member.replica.role == LEADER:
            term = member.replica.term
            self._ports.lead_by(at, term, at=node)
            self._ports.answer(at, term, {}, member.machine.standing(), at=node)

    # -- carrying effects out -----------------------------------------------------------------

    def _carry(self, node: str, effects: list[Effect]) -> None:
        member = self.members[node]
        for effect in effects:
            match effect:
                case Send(to=to, message=message):
                    self._send(node, to, message)
                case Write(entries=entries, generation=generation):
                    self._write(node, member, entries, generation)
                case Committed(index=index):
                    self._applying.up_to(node, member, index)
                case ElectionTimer(on=on):
                    self._set_timer(node, member, on=on)
                case Persist(term=term, voted_for=voted_for):
                    self._persisted[node] = (term, voted_for)
                case Became():
                    self._became(node, member, effect)

    def _send(self, node: str, to: str, message: Message) -> None:
        entries = getattr(message, "entries", ())
        if entries:
            self._log("replicate", node, kind=to, extra=_span(entries))
        if self._at_once is not None:
            self._at_once.append((self._receive, (to, node, message)))
        else:
            self._cluster.links.send(node, to, self._receive, to, node, message)

    def _receive(self, node: str, sender: str, message: Message) -> None:
        member = self.members.get(node)
        if member is not None:
            self._carry(node, member.replica.receive(sender, message))

    def _write(
        self, node: str, member: Member, entries: tuple[Entry, ...], generation: int
    ) -> None:
        for watcher in self.watchers:
            watcher.appended(node, member.replica.log, entries)
        if not self._cluster.unseen:
            self._log("append", node, extra={**_span(entries), "messages": message_runs(entries)})
        owner = self._cluster.nodes[node]
        if self._at_once is None:
            owner.wal.write(self.writer, entries, generation)
            owner.sync()
            return
        owner.wal.put(self.writer, entries)
        self._at_once.append((self.written, (node, entries[-1].index, generation)))

    def _propose(self, logged: Logged) -> None:
        leader = self.leader
        if leader is not None:
            self._carry(leader, self.members[leader].replica.propose((logged,)))

    def _became(self, node: str, member: Member, effect: Became) -> None:
        replica = member.replica
        self._log(
            "elect" if effect.role == LEADER else "note",
            node,
            kind=effect.role,
            extra={"term": replica.term, "leader": effect.leader or ""},
        )
        if effect.leader is not None:
            member.vain = 0
        if effect.role == LEADER:
            for watcher in self.watchers:
                watcher.led(node, replica.term, replica.log)
            self._ports.lead_by(node, replica.term)

    def _set_timer(self, node: str, member: Member, *, on: bool) -> None:
        if member.timer is not None:
            member.timer.cancel()
            member.timer = None
        if on and self._at_once is None:
            member.vain += 1
            member.timer = self._clock.call_later(
                self._cluster.election_us(),
                self._timer_expired,
                node,
                member,
                idle=member.vain > QUIET_ROUNDS,
            )

    def _timer_expired(self, node: str, member: Member) -> None:
        member.timer = None
        self._carry(node, member.replica.timer_expired())

    # -- inside -----------------------------------------------------------------------------

    def _live(self, node: str, replica: Replica) -> None:
        intake = Intake(self._clock, self.command_us, partial(self._taken, node))
        intake.suspended = self.suspended
        self.members[node] = Member(replica, self._machine(), intake)

    def _replica(self, node: str, log: RaftLog | None = None) -> Replica:
        term, voted_for = self._persisted[node]
        return Replica(
            node,
            self.nodes,
            log=log,
            term=term,
            voted_for=voted_for,
            rules=self.rules,
            chunk=self._chunk,
        )

    def _machine(self) -> QuorumFifo:
        return QuorumFifo(self.name, self.terms, self.rules)

    def _pump(self, begin: Callable[[], None]) -> None:
        """Do something and all that comes of it at once, as if ways and disks took no time."""
        self._at_once = deque()
        begin()
        while self._at_once:
            call, args = self._at_once.popleft()
            call(*args)
        self._at_once = None

    def _log(
        self, event: str, node: str, *, kind: str | None = None, extra: dict[str, Any] | None = None
    ) -> None:
        if self._cluster.unseen or self._at_once is not None:
            return  # what is before the run is told by one row, if at all
        machine = self.members[node].machine
        self._cluster.tap.internal(
            t_us=self._clock.now_us,
            event=event,
            vantage=f"queue:{self.name}@{node}",
            kind=kind,
            queue=self.name,
            ledger={"queue_ready": machine.ready, "queue_unsettled": machine.unsettled},
            extra=extra,
        )


def _span(entries: tuple[Entry, ...]) -> dict[str, int]:
    """Entries in a row's words."""
    return {"first": entries[0].index, "last": entries[-1].index, "term": entries[-1].term}
