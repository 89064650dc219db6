"""A small quorum group as a model for the explorer: every order in which things can happen.

The replicas are the real ones (`workbench.queues.raft`), taken apart into tuples between moves. One
leads to begin with. A move is one of: a command is proposed, a message arrives, a disk has synced
what was written, an election timer runs out, a node crashes, a node comes back. Messages of one way
keep their order; those of different ways, disks and timers come in any order.

Bounds: so many commands, crashes, comings back and time-outs. Within them nothing is left out, save
that a disk syncs all that was written or, in a crash, nothing of it. States that differ only in
what nobody will heed are one: answers of an earlier term or round, numbers of earlier writes, and
what a message asks for (an entry is known by place and term).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.queues.raft import (
    CANDIDATE,
    ENTRIES_PER_APPEND,
    LEADER,
    PRE_VOTE,
    RIGHT,
    AppendEntries,
    AppendReply,
    Committed,
    Effect,
    Entry,
    Message,
    Persist,
    PreVoteReply,
    RaftLog,
    RaftRules,
    Replica,
    Send,
    VoteReply,
    Write,
)
from workbench.queues.raft_referee import (
    CONFIRMED_IS_SAFE,
    ELECTION_SAFETY,
    LEADER_COMPLETENESS,
    LOG_MATCHING,
)

Frozen = tuple[Any, ...]  # a replica's fields
ROUND = -2  # the place of `round` in them
Ways = tuple[tuple[Message, ...], ...]
Log = tuple[int, ...]  # of each entry its term: with one proposer per term that names the entry


class Node(NamedTuple):
    """One node: its replica's fields (None while it is down), its disk, what is not yet synced."""

    replica: tuple[Any, ...] | None
    disk: Log
    meta: tuple[int, str | None]
    written: int  # the last index handed to the disk and not synced; 0: nothing is


class Cluster(NamedTuple):
    """A state: nodes, ways (what is on each, in order), what is left to happen, what was answered.

    Attributes:
        answered: entries that a leader has taken for committed, as (index, term of the entry, term
            of the leader, whether a majority had it on disk then).
    """

    nodes: tuple[Node, ...]
    ways: Ways
    commands: int
    crashes: int
    timeouts: int
    answered: tuple[tuple[int, int, int, bool], ...]


Move = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumModel:
    """The model.

    Attributes:
        replicas: how many.
        commands, crashes, timeouts: how often each may happen.
        comes_back: who has crashed may come back, at any time.
        chunk: entries that a leader sends in one message at most.
        rules: that replicas keep.
    """

    replicas: int = 3
    commands: int = 2
    crashes: int = 1
    timeouts: int = 1
    comes_back: bool = True
    chunk: int = ENTRIES_PER_APPEND
    rules: RaftRules = RIGHT

    @property
    def names(self) -> tuple[str, ...]:
        """The nodes."""
        return tuple(f"n{number}" for number in range(1, self.replicas + 1))

    @property
    def initial(self) -> Cluster:
        """The first node leads in term 1; its first entry is on every disk, and committed."""
        nodes = []
        for name in self.names:
            replica = Replica(
                name,
                self.names,
                log=RaftLog([Entry(1, 1, None)]),
                term=1,
                voted_for=self.names[0],
                rules=self.rules,
                chunk=self.chunk,
            )
            replica.leader, replica.commit, replica.verified = self.names[0], 1, 1
            replica._told = 1
            if name == self.names[0]:
                replica.role = LEADER
                replica.match = dict.fromkeys(replica.peers, 1)
                replica.next = dict.fromkeys(replica.peers, 2)
            nodes.append(Node(_freeze(replica), (1,), (1, self.names[0]), 0))
        return Cluster(
            nodes=tuple(nodes),
            ways=((),) * (self.replicas * self.replicas),
            commands=self.commands,
            crashes=self.crashes,
            timeouts=self.timeouts,
            answered=(),
        )

    def successors(self, state: Cluster) -> Iterable[tuple[Move, Cluster]]:
        """Every move that is possible, in a fixed order."""
        names, size = self.names, self.replicas
        for at, node in enumerate(state.nodes):
            name = names[at]
            if node.replica is None:
                if self.comes_back:
                    yield ("restart", name), self._restart(state, at)
                continue
            role, leader = node.replica[0], node.replica[3]
            if role == LEADER and state.commands:
                left = state._replace(commands=state.commands - 1)
                yield ("propose", name), self._event(left, at, "propose", (state.commands,))
            if node.written:
                yield ("fsync", name), self._fsync(state, at)
            if leader is None and role != LEADER and state.timeouts:
                left = state._replace(timeouts=state.timeouts - 1)
                yield ("timeout", name), self._event(left, at, "timer_expired")
            if state.crashes:
                yield ("crash", name), self._crash(state, at)
        for way, messages in enumerate(state.ways):
            if messages:
                sender, to = divmod(way, size)
                ways = _put(state.ways, way, messages[1:])
                arrived = self._event(
                    state._replace(ways=ways), to, "receive", names[sender], messages[0]
                )
                yield ("arrive", names[sender], names[to]), arrived

    def bad(self, state: Cluster) -> bool:
        """Whether an invariant is broken."""
        return self.broken(state) is not None

    def broken(self, state: Cluster) -> str | None:
        """The name of an invariant that does not hold in this state; None if all do."""
        leaders: set[int] = set()
        for node in state.nodes:
            if node.replica is None or node.replica[0] != LEADER:
                continue
            term = node.replica[1]
            if term in leaders:
                return ELECTION_SAFETY
            leaders.add(term)
            log: Log = node.replica[4]
            for index, entry_term, led_in, _ in state.answered:
                if term > led_in and (len(log) < index or log[index - 1] != entry_term):
                    return LEADER_COMPLETENESS
        if not all(safe for *_, safe in state.answered):
            return CONFIRMED_IS_SAFE
        logs = [node.replica[4] for node in state.nodes if node.replica is not None]
        for at, one in enumerate(logs):
            for other in logs[at + 1 :]:
                if not _match(one, other):
                    return LOG_MATCHING
        return None

    # -- moves ------------------------------------------------------------------------------

    def _event(self, state: Cluster, at: int, event: str, *arguments: Any) -> Cluster:
        node = state.nodes[at]
        assert node.replica is not None or event == "receive"
        if node.replica is None:
            return state
        replica = self._thaw(at, node.replica)
        effects = getattr(replica, event)(*arguments)
        return self._carry(state, at, replica, effects)

    def _carry(self, state: Cluster, at: int, replica: Replica, effects: list[Effect]) -> Cluster:
        node, ways, answered = state.nodes[at], state.ways, state.answered
        written, meta = node.written, node.meta
        for effect in effects:
            if isinstance(effect, Send):
                to = self.names.index(effect.to)
                hears = state.nodes[to].replica
                if hears is not None and self._heeds(effect.message, hears):
                    way = at * self.replicas + to
                    ways = _put(ways, way, (*ways[way], _nameless(effect.message)))
            elif isinstance(effect, Write):
                written = effect.entries[-1].index
            elif isinstance(effect, Persist):
                meta = (effect.term, effect.voted_for)
            elif isinstance(effect, Committed) and replica.role == LEADER:
                answered = self._answer(state, at, replica, effect.index)
        frozen = _freeze(replica)
        node = node._replace(replica=frozen, meta=meta, written=written)
        return state._replace(
            nodes=_put(state.nodes, at, node),
            ways=self._heeded(ways, at, frozen),
            answered=answered,
        )

    def _heeded(self, ways: Ways, to: int, frozen: Frozen) -> Ways:
        """The ways without what this replica will not heed any more, whatever may happen."""
        for way in range(to, len(ways), self.replicas):
            messages = ways[way]
            if not all(self._heeds(message, frozen) for message in messages):
                kept = tuple(message for message in messages if self._heeds(message, frozen))
                ways = _put(ways, way, kept)
        return ways

    def _heeds(self, message: Message, frozen: Frozen) -> bool:
        """Whether a message may still matter to this replica."""
        return not _idle(message, frozen)

    def _answer(
        self, state: Cluster, at: int, replica: Replica, index: int
    ) -> tuple[tuple[int, int, int, bool], ...]:
        """The leader tells a client that the entry is committed."""
        term = replica.log.term_at(index)
        assert term is not None
        safe = sum(len(node.disk) >= index and node.disk[index - 1] == term for node in state.nodes)
        fact = (index, term, replica.term, safe > self.replicas // 2)
        return tuple(sorted({*state.answered, fact}))

    def _fsync(self, state: Cluster, at: int) -> Cluster:
        node = state.nodes[at]
        assert node.replica is not None
        replica = self._thaw(at, node.replica)
        synced = node._replace(disk=node.replica[4], written=0)
        state = state._replace(nodes=_put(state.nodes, at, synced))
        return self._carry(state, at, replica, replica.written_to(node.written, 0))

    def _crash(self, state: Cluster, at: int) -> Cluster:
        """What is not synced is lost, and what was on the node's ways; the others notice."""
        node = state.nodes[at]._replace(replica=None, written=0)
        size = self.replicas
        ways = tuple(
            () if at in divmod(way, size) else messages for way, messages in enumerate(state.ways)
        )
        state = state._replace(
            nodes=_put(state.nodes, at, node), ways=ways, crashes=state.crashes - 1
        )
        for other in range(size):
            if other != at and state.nodes[other].replica is not None:
                state = self._event(state, other, "peer_down", self.names[at])
        return state

    def _restart(self, state: Cluster, at: int) -> Cluster:
        """The replica knows what its disk knows; all have a connection to it again."""
        node = state.nodes[at]
        log = RaftLog(Entry(index, term, None) for index, term in enumerate(node.disk, 1))
        term, voted_for = node.meta
        replica = self._replica(at, log, term, voted_for)
        replica.down = frozenset(
            name
            for name, other in zip(self.names, state.nodes, strict=True)
            if other is not node and other.replica is None
        )
        back = node._replace(replica=_freeze(replica))
        state = state._replace(nodes=_put(state.nodes, at, back))
        for other in range(self.replicas):
            if other != at and state.nodes[other].replica is not None:
                state = self._event(state, other, "peer_up", self.names[at])
        return state

    def _replica(self, at: int, log: RaftLog, term: int, voted_for: str | None) -> Replica:
        """A replica that has just started with what its disk knows."""
        return Replica(
            self.names[at],
            self.names,
            log=log,
            term=term,
            voted_for=voted_for,
            rules=self.rules,
            chunk=self.chunk,
        )

    def _thaw(self, at: int, frozen: tuple[Any, ...]) -> Replica:
        """The replica that a tuple was made of."""
        (role, term, voted_for, leader, terms, written, commit, verified) = frozen[:8]
        match, following, probing, told, waits, votes, round_, down = frozen[8:]
        log = RaftLog(Entry(index, each, None) for index, each in enumerate(terms, 1))
        replica = self._replica(at, log, term, voted_for)
        replica.role, replica.leader = role, leader
        replica.written = written
        replica.commit, replica.verified = commit, verified
        replica.match, replica.next, replica.probing = dict(match), dict(following), dict(probing)
        replica._told, replica._waits = told, waits
        replica.votes, replica.round, replica.down = votes, round_, down
        return replica


def _freeze(replica: Replica) -> tuple[Any, ...]:
    stands = replica.role in (PRE_VOTE, CANDIDATE)
    return (
        replica.role,
        replica.term,
        replica.voted_for,
        replica.leader,
        tuple(entry.term for entry in replica.log.entries()),
        replica.written,
        replica.commit,
        replica.verified,
        tuple(sorted(replica.match.items())),
        tuple(sorted(replica.next.items())),
        tuple(sorted(replica.probing.items())),
        replica._told,
        replica._waits,
        replica.votes if stands else frozenset(),
        replica.round,
        replica.down,
    )


def _nameless(message: Message) -> Message:
    """The message with entries that are known by their terms alone, as logs are here."""
    if not isinstance(message, AppendEntries):
        return message
    entries = tuple(Entry(entry.index, entry.term, None) for entry in message.entries)
    return message._replace(entries=entries)


def _idle(message: Message, frozen: Frozen) -> bool:
    """Whether an answer comes too late for ever: terms and rounds never go back."""
    role: str = frozen[0]
    term: int = frozen[1]
    round_: int = frozen[ROUND]
    if message.term > term:
        return False
    late = message.term < term
    match message:
        case AppendReply():
            return late or role != LEADER
        case VoteReply():
            return late or role != CANDIDATE
        case PreVoteReply():
            return role != PRE_VOTE or message.round != round_
    return False


def _put(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])


def _match(one: Log, other: Log) -> bool:
    """Log matching: up to the last place where the terms agree, all agree."""
    for index in range(min(len(one), len(other)) - 1, -1, -1):
        if one[index] == other[index]:
            return one[:index] == other[:index]
    return True
