"""One quorum queue at work: its replicas on their nodes, and the clients that talk to the leader.

The rules are elsewhere: `workbench.queues.raft` for a replica, `quorum_fifo` for the queue,
`quorum_client` for a client. Here their effects are carried out: messages go over the network
between nodes, entries to the node's log, timers to the clock, and every step leaves a row.

What a replica knows to be committed is applied to its copy of the queue; the leader answers for it.
A leader carries out the effects of entries of its own term alone, because an earlier leader may
have carried out those of its own. So nothing is done twice, and what was not done is asked for:
clients send again what was not answered, and say which deliveries they have not seen. (Ra's leader
carries out what it applies for the first time, whoever wrote it, and knows from its disk, more or
less, what it had applied before: `ra_server.erl:persist_last_applied`.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from workbench.queues import DeadLettered, Dropped, Enqueue, Expire, QueueError
from workbench.queues.quorum_fifo import Full, Logged, QuorumEffect, QuorumFifo, QuorumReply
from workbench.queues.raft import (
    LEADER,
    Became,
    Committed,
    Effect,
    ElectionTimer,
    Entry,
    Message,
    Persist,
    RaftLog,
    Replica,
    Send,
    Write,
)
from workbench.sim import Clock, Timer

from .queue_timer import QueueTimer

if TYPE_CHECKING:
    from .quorum_cluster import QuorumCluster

QUIET_ROUNDS = 8  # elections in vain after which a retry no longer keeps a run awake
COMMANDS_PER_TURN = 16  # ra_server_proc.erl: FLUSH_COMMANDS_SIZE
BEFORE = "before"  # the client that filled the queue, when nothing had happened
ITSELF = "itself"  # the queue as its own client: what its timer has to say

Answers = list[tuple[int, QuorumReply]]
Commands = tuple[Logged, ...]


class Client(Protocol):
    """A client's process, somewhere in the cluster."""

    name: str
    place: str

    def heard(self, term: int, answers: Answers, effects: list[QuorumEffect]) -> None:
        """The leader of a term has applied commands: effects first, then the answers."""

    def leader_is(self, leader: str, term: int) -> None:
        """A replica tells that it leads."""

    def not_leader(self, replica: str) -> None:
        """A replica tells that it does not lead."""


class Watcher(Protocol):
    """An observer of what replicas do; it changes nothing, and what it leaves out does nothing."""

    def appended(self, node: str, log: RaftLog, entries: tuple[Entry, ...]) -> None:
        """Entries stand at the end of a replica's log."""
        return

    def synced(self, node: str) -> None:
        """Entries of a node's replica have come to its disk; in a crash perhaps none."""
        return

    def led(self, node: str, term: int, log: RaftLog) -> None:
        """A replica leads from now on; its log as it was before its own first entry."""
        return

    def committed_up_to(self, node: str, log: RaftLog, term: int, index: int) -> None:
        """A replica takes everything up to this index for committed."""
        return

    def applied(self, node: str, entry: Entry, machine: QuorumFifo) -> None:
        """A replica has applied an entry."""
        return

    def answering(self, node: str, index: int) -> None:
        """The leader answers clients: all that it applied, up to this index."""
        return


class CommandMailbox:
    """Clients' commands wait here until the replica's process takes some of them.

    Args:
        clock: of the run.
        command_us: service time of one command.
        take: what is done with those that are taken.

    Attributes:
        suspended: nothing is taken.
        closed: the process is gone.
    """

    __slots__ = ("_clock", "_command_us", "_take", "_turn", "_waiting", "closed", "suspended")

    def __init__(self, clock: Clock, command_us: int, take: Callable[[Commands], None]) -> None:
        self.suspended = False
        self.closed = False
        self._clock = clock
        self._command_us = command_us
        self._take = take
        self._waiting: deque[Logged] = deque()
        self._turn = 0  # commands that the process is at work on

    def post(self, commands: Commands) -> None:
        """Commands have come."""
        self._waiting.extend(commands)
        self.go_on()

    def go_on(self) -> None:
        """Take what waits, when its time is over."""
        if not self._turn and self._waiting and not self.suspended:
            self._turn = min(len(self._waiting), COMMANDS_PER_TURN)
            self._clock.call_later(self._turn * self._command_us, self._end_turn)

    def withdraw(self) -> Commands:
        """Take out all that waits."""
        rest = tuple(self._waiting)
        self._waiting.clear()
        return rest

    def _end_turn(self) -> None:
        # Where commands cost nothing, all that come at one instant go into the log together.
        count = self._turn if self._command_us else len(self._waiting)
        self._turn = 0
        if self.closed:
            return
        self._take(tuple(self._waiting.popleft() for _ in range(count)))
        self.go_on()


class Member:
    """A replica that lives: its Raft state, its copy of the queue, its mailbox, its timer.

    Args:
        group: the queue.
        node: where the replica is.
        replica: its Raft state.

    Attributes:
        machine: its copy of the queue.
        applied: the last index that was applied to the copy.
    """

    def __init__(self, group: RaftGroup, node: str, replica: Replica) -> None:
        self.replica = replica
        self.machine = group.make_machine()
        self.applied = 0
        self.mailbox = CommandMailbox(group.clock, group.command_us, self._taken)
        self.mailbox.suspended = group.suspended
        self._group = group
        self._node = node
        self._timer: Timer | None = None
        self._vain = 0  # rounds of elections without a leader
        # When it will look for messages that are too old, as the leader of which term.
        self._looks: tuple[int, int | None] = (0, None)

    @property
    def leads(self) -> bool:
        """Whether the replica leads, as it believes."""
        return self.replica.role == LEADER

    def crash(self) -> None:
        """Its process is gone."""
        self.mailbox.closed = True
        if self._timer is not None:
            self._timer.cancel()

    # -- what comes ---------------------------------------------------------------------------

    def arrived(self, commands: Commands) -> None:
        """Commands of a client have come."""
        if self.leads:
            self.mailbox.post(commands)
        else:
            self._group.refuse(self._node, commands)

    def _taken(self, commands: Commands) -> None:
        if self.leads:
            self.carry_out(self.replica.propose(commands))
        else:
            self._group.refuse(self._node, commands + self.mailbox.withdraw())

    def carry_out(self, effects: list[Effect]) -> None:
        """Do what the replica asks for, in order."""
        for effect in effects:
            match effect:
                case Send(to=to, message=message):
                    self._send(to, message)
                case Write(entries=entries, generation=generation):
                    self._group.write(self._node, self.replica.log, entries, generation)
                case Committed(index=index):
                    self._apply_up_to(index)
                case ElectionTimer(on=on):
                    self._set_timer(on=on)
                case Persist(term=term, voted_for=voted_for):
                    self._group.persisted[self._node] = (term, voted_for)
                case Became():
                    self._became(effect)

    # -- effects ------------------------------------------------------------------------------

    def _send(self, to: str, message: Message) -> None:
        entries = getattr(message, "entries", ())
        if entries:
            self._group.log("replicate", self._node, kind=to, extra=_span(entries))
        self._group.send(self._node, to, message)

    def _became(self, effect: Became) -> None:
        group, replica = self._group, self.replica
        group.log(
            "elect" if effect.role == LEADER else "note",
            self._node,
            kind=effect.role,
            extra={"term": replica.term, "leader": effect.leader or ""},
        )
        if effect.leader is not None:
            self._vain = 0
        if effect.role == LEADER:
            for watcher in group.watchers:
                watcher.led(self._node, replica.term, replica.log)
            group.tell_leader(self._node, replica.term)

    def _set_timer(self, *, on: bool) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if on and not self._group.takes_no_time:
            self._vain += 1
            idle = self._vain > QUIET_ROUNDS
            self._timer = self._group.clock.call_later(
                self._group.election_us(), self._timer_expired, idle=idle
            )

    def _timer_expired(self) -> None:
        self._timer = None
        self.carry_out(self.replica.timer_expired())

    def _apply_up_to(self, index: int) -> None:
        """Everything up to this index is committed."""
        group, node, replica = self._group, self._node, self.replica
        watchers, log = group.watchers, replica.log
        for watcher in watchers:
            watcher.committed_up_to(node, log, replica.term, index)
        group.log("commit", node, extra={"index": index, "term": replica.term})
        leads = replica.role == LEADER
        answers: dict[str, Answers] = {}
        effects: list[QuorumEffect] = []
        count = index - self.applied
        while self.applied < index:
            self.applied += 1
            entry = log[self.applied]
            logged: Any = entry.command
            own = leads and entry.term == replica.term
            if logged is not None:
                reply, caused = self.machine.apply(logged)
                if own:
                    answers.setdefault(logged.client, []).append((logged.seq, reply))
                    effects += caused
            elif own:  # all before it is applied: what earlier leaders may not have told any more
                effects += self.machine.standing()
            for watcher in watchers:
                watcher.applied(node, entry, self.machine)
        group.log("apply", node, extra={"index": index, "count": count})
        if leads:
            for watcher in watchers:
                watcher.answering(node, index)
            group.answer(node, replica.term, answers, effects)
            self._look_for_age()

    def _look_for_age(self) -> None:
        """The leader sets its clock to when the first message is too old, once a term for each."""
        looks = (self.replica.term, self.machine.deadline_us())
        if looks != self._looks:
            self._looks = looks
            self._group.age_timer.set(looks[1])


class RaftGroup:
    """A queue with its replicas.

    Args:
        cluster: that it is in.
        name: of the queue.
        nodes: that hold a replica; the first leads to begin with.
        make_machine: makes a replica's copy of the queue.
        make_replica: makes a replica of a node's name, the members, and what its disk holds.
        writer: its name in the nodes' logs; a queue that is declared again has another.
        command_us: service time of the leader for each command.

    Attributes:
        clock: of the run.
        members: the replicas that live, by node.
        watchers: told of every step.
        majority: how many replicas that is.
        persisted: what each node's disk holds of term and vote.
        first_leader: the node that led when the queue was there, which is before any row.
        suspended: the leader's process takes no commands.
        age_timer: when the leader looks for messages that are too old.
    """

    def __init__(
        self,
        cluster: QuorumCluster,
        name: str,
        nodes: tuple[str, ...],
        make_machine: Callable[[], QuorumFifo],
        make_replica: Callable[..., Replica],
        *,
        writer: str,
        command_us: int = 0,
    ) -> None:
        self.name = name
        self.writer = writer
        self.nodes = nodes
        self.majority = len(nodes) // 2 + 1
        self.make_machine = make_machine
        self.command_us = command_us
        self.clock = cluster.clock
        self.suspended = False
        self.members: dict[str, Member] = {}
        self.watchers: list[Watcher] = []
        self.persisted: dict[str, tuple[int, str | None]] = dict.fromkeys(nodes, (0, None))
        self.age_timer = QueueTimer(cluster.clock, self._time_is_up)
        self._make_replica = make_replica
        self._cluster = cluster
        self._clients: dict[str, Client] = {}
        self._filling: deque[Callable[[], None]] | None = None
        self._notes = {
            node: cluster.tap.bind(
                cluster.clock,
                vantage=f"queue:{name}@{node}",
                queue=name,
                ledger=partial(self._counters, node),
            )
            for node in nodes
        }
        for node in nodes:
            self._live(node, None)
        first = self.members[nodes[0]]
        self._pump(lambda: first.carry_out(first.replica.timer_expired()))
        self.first_leader = self.leader

    # -- reading ----------------------------------------------------------------------------

    @property
    def leader(self) -> str | None:
        """The node whose replica leads, in the latest term if several believe so; None if none."""
        led = [(member.replica.term, node) for node, member in self.members.items() if member.leads]
        return max(led)[1] if led else None

    @property
    def takes_no_time(self) -> bool:
        """Whether nothing has happened yet: messages and disks take no time."""
        return self._filling is not None

    def front(self) -> QuorumFifo:
        """The copy that knows most: the leader's, else the furthest."""
        leader = self.leader
        if leader is not None:
            return self.members[leader].machine
        if not self.members:
            return self.make_machine()
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

    def election_us(self) -> int:
        """A fresh election time-out."""
        return self._cluster.election_us()

    # -- clients ----------------------------------------------------------------------------

    def join(self, client: Client) -> None:
        """A client begins to use the queue; it is told who leads.

        Raises:
            QueueError: if it is nowhere.
        """
        places = self._cluster.network.alive
        if client.place not in places:
            raise QueueError(
                f"client {client.name} is at {client.place!r}; legal: {', '.join(places)}"
            )
        self._clients[client.name] = client
        leader = self.leader
        if leader is not None:
            client.leader_is(leader, self.members[leader].replica.term)

    def leave(self, name: str) -> None:
        """A client is no more."""
        self._clients.pop(name, None)

    def submit(self, place: str, leader: str, commands: Commands) -> None:
        """Send commands from a place to the replica that is believed to lead."""
        self._cluster.network.send(place, leader, self._arrived, leader, commands)

    def _arrived(self, node: str, commands: Commands) -> None:
        member = self.members.get(node)
        if member is not None:
            member.arrived(commands)

    def tell_leader(self, node: str, term: int, *, at: str | None = None) -> None:
        """The leader tells that it leads: all clients, or those at one place."""
        for client in tuple(self._clients.values()):
            if at in (None, client.place):
                self._cluster.network.send(node, client.place, client.leader_is, node, term)

    def refuse(self, node: str, commands: Commands) -> None:
        """Tell the clients that sent these commands that the node does not lead."""
        for name in dict.fromkeys(logged.client for logged in commands):
            client = self._clients.get(name)
            if client is not None:
                self._cluster.network.send(node, client.place, client.not_leader, node)

    def answer(
        self,
        node: str,
        term: int,
        answers: dict[str, Answers],
        caused: list[QuorumEffect],
        *,
        at: str | None = None,
    ) -> None:
        """What the leader has to tell: to each client what concerns it.

        Args:
            node: where the leader is.
            term: in which it leads.
            answers: to commands, by client.
            caused: every effect, in order.
            at: only clients at this place are told; None: all of them.
        """
        effects: dict[str, list[QuorumEffect]] = {}
        for effect in caused:
            for name in self._concerned(effect):
                effects.setdefault(name, []).append(effect)
        for name in {**effects, **answers}:
            client = self._clients.get(name)
            if client is not None and at in (None, client.place):
                given = (answers.get(name, []), effects.get(name, []))
                self._cluster.network.send(node, client.place, client.heard, term, *given)

    def _concerned(self, effect: QuorumEffect) -> Iterable[str]:
        match effect:
            case Full():
                return self._clients  # every publisher
            case Dropped() | DeadLettered():
                return tuple(self._clients)[:1]  # any one of them
            case _:
                return (effect.client,)

    # -- acts -------------------------------------------------------------------------------

    def fill(self, commands: Iterable[Enqueue]) -> None:
        """Messages from before the run: on every disk and applied already; no time passes."""
        logged = [Logged(BEFORE, 0, number, command) for number, command in enumerate(commands, 1)]
        if logged:
            self._pump(lambda: self._propose(*logged))

    def suspend(self) -> None:
        """The leader's process takes no commands; they wait in its mailbox."""
        self.suspended = True
        for member in self.members.values():
            member.mailbox.suspended = True

    def resume(self) -> None:
        """It goes on with them."""
        self.suspended = False
        for member in self.members.values():
            member.mailbox.suspended = False
            member.mailbox.go_on()

    def end(self) -> None:
        """The queue is deleted: its replicas stop, their disks forget it."""
        for node in tuple(self.members):
            self.crashed(node)
        self.age_timer.stop()
        self._clients.clear()
        self._cluster.forget(self.name, self.writer)

    def _propose(self, *logged: Logged) -> None:
        """Put commands into the log, if a replica leads."""
        leader = self.leader
        if leader is not None:
            member = self.members[leader]
            member.carry_out(member.replica.propose(logged))

    def _time_is_up(self) -> None:
        """What is too old leaves every copy at one place of the log."""
        self._propose(Logged(ITSELF, 0, 0, Expire(), self.clock.now_us))

    # -- what happens to nodes ----------------------------------------------------------------

    def crashed(self, node: str) -> None:
        """The node's replica is gone; its disk and its vote remain."""
        member = self.members.pop(node, None)
        if member is not None:
            for watcher in self.watchers:
                watcher.synced(node)
            member.crash()

    def restarted(self, node: str, log: RaftLog) -> None:
        """A replica begins with what its disk holds."""
        member = self._live(node, log)
        member.replica.down = frozenset(member.replica.peers)
        for watcher in self.watchers:
            watcher.appended(node, log, log.entries())
        member.carry_out(member.replica.start())

    def written(self, node: str, index: int, generation: int) -> None:
        """The node's log is on disk up to there."""
        member = self.members.get(node)
        if member is not None:
            for watcher in self.watchers:
                watcher.synced(node)
            member.carry_out(member.replica.written_to(index, generation))

    def node_down(self, at: str, node: str) -> None:
        """A node with a replica learns that another is lost."""
        if at in self.members and node in self.nodes:
            self.members[at].carry_out(self.members[at].replica.peer_down(node))

    def node_up(self, at: str, node: str) -> None:
        """A node with a replica learns that another is there; a place of clients too."""
        member = self.members.get(at)
        if member is None:
            return
        if node in self.nodes:
            member.carry_out(member.replica.peer_up(node))
        if member.leads:
            term = member.replica.term
            self.tell_leader(at, term, at=node)
            self.answer(at, term, {}, member.machine.standing(), at=node)

    # -- asked for by members -----------------------------------------------------------------

    def send(self, node: str, to: str, message: Message) -> None:
        """Send a message from one replica to another."""
        if self._filling is not None:
            self._filling.append(partial(self._receive, to, node, message))
        else:
            self._cluster.network.send(node, to, self._receive, to, node, message)

    def _receive(self, node: str, sender: str, message: Message) -> None:
        member = self.members.get(node)
        if member is not None:
            member.carry_out(member.replica.receive(sender, message))

    def write(self, node: str, log: RaftLog, entries: tuple[Entry, ...], generation: int) -> None:
        """Hand entries to the node's write-ahead log."""
        for watcher in self.watchers:
            watcher.appended(node, log, entries)
        self.log("append", node, extra={**_span(entries), "messages": _message_runs(entries)})
        owner = self._cluster.nodes[node]
        if self._filling is None:
            owner.wal.write(self.writer, entries, generation)
            owner.sync()
            return
        owner.wal.put(self.writer, entries)
        self._filling.append(partial(self.written, node, entries[-1].index, generation))

    def log(
        self, event: str, node: str, *, kind: str | None = None, extra: dict[str, Any] | None = None
    ) -> None:
        """A row about a replica; what is before the run is told by one row, if at all."""
        if self._filling is not None:
            return
        self._notes[node].note(event, kind, extra=extra)

    def _counters(self, node: str) -> dict[str, int]:
        machine = self.members[node].machine
        return {"queue_ready": machine.ready, "queue_unsettled": machine.unsettled}

    # -- inside -----------------------------------------------------------------------------

    def _live(self, node: str, log: RaftLog | None) -> Member:
        term, voted_for = self.persisted[node]
        replica = self._make_replica(node, self.nodes, log=log, term=term, voted_for=voted_for)
        member = self.members[node] = Member(self, node, replica)
        return member

    def _pump(self, begin: Callable[[], None]) -> None:
        """Do something and all that comes of it at once, as if network and disks took no time."""
        self._filling = deque()
        begin()
        while self._filling:
            self._filling.popleft()()
        self._filling = None


def _span(entries: tuple[Entry, ...]) -> dict[str, int]:
    """Entries in a row's words."""
    return {"first": entries[0].index, "last": entries[-1].index, "term": entries[-1].term}


def _message_runs(entries: tuple[Entry, ...]) -> list[list[int]]:
    """Which entries are messages: [first index, number of its message, how many in a row].

    A message keeps its number when it is sent again: two entries may then be the same one.
    """
    runs: list[list[int]] = []
    for entry in entries:
        number = entry.command.enqueue_seq if entry.command is not None else 0
        if not number:
            continue
        if runs:
            index, first, count = runs[-1]
            if (entry.index, number) == (index + count, first + count):
                runs[-1][2] += 1
                continue
        runs.append([entry.index, number, 1])
    return runs
