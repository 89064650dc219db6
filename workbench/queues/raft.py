"""One replica of a Raft group, as a state machine: events in, effects out.

It asks no clock and draws no random number: its owner tells it that its election timer has run out,
that a peer is lost or back, and that entries are on disk. Four rules make it safe, and each has a
mutant in `RULES_BROKEN` that breaks it:

1. A follower reports an entry only when it is on its own disk.
2. The leader counts itself only as far as its own disk has got.
3. The leader commits what a majority has on disk, that is, the median of what they report.
4. Only an entry of the leader's own term is committed by counting; earlier ones follow from it.

A candidate first asks whether it would be voted for, which changes no replica's term (pre-vote). A
replica that follows a leader says no, so one that has lost its way to the leader does not disturb
the others; it asks no more until something changes.

Like RabbitMQ's Ra and unlike the paper there is no heartbeat. A leader is followed until its node
is reported lost (`peer_down`); an idle group is silent (`ra_server.erl`).

Sources: Ongaro and Ousterhout, In Search of an Understandable Consensus Algorithm (2014), figure 2;
Ongaro's thesis (2014), 4.2.3 and 9.6 for pre-vote, 10.2 for pipelines and parallel disk writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import Struct

ENTRIES_PER_APPEND = 128  # ra_server.hrl: AER_CHUNK_SIZE
MOST_UNACKNOWLEDGED = 4096  # ra_server.hrl: DEFAULT_MAX_PIPELINE_COUNT

FOLLOWER, PRE_VOTE, CANDIDATE, LEADER = "follower", "pre-vote", "candidate", "leader"

# -- rules ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftRules:
    """The rules that a replica keeps; every default is the right one.

    Attributes:
        follower_waits_for_disk: rule 1.
        leader_waits_for_disk: rule 2.
        needs_majority: rule 3.
        own_term_only: rule 4.
        vote_is_kept: a vote is on disk before the candidate hears of it.
        cuts_what_differs: of the entries that come, those that the log has already take nothing
            away: an older AppendEntries may come after a newer one.
        returns_in_order: what consumers give back to the queue is handed out in the order in which
            it came back.
    """

    follower_waits_for_disk: bool = True
    leader_waits_for_disk: bool = True
    needs_majority: bool = True
    own_term_only: bool = True
    vote_is_kept: bool = True
    cuts_what_differs: bool = True
    returns_in_order: bool = True


RIGHT = RaftRules()
RULES_BROKEN: dict[str, RaftRules] = {
    "commit-before-fsync": RaftRules(follower_waits_for_disk=False),
    "leader-counts-itself-early": RaftRules(leader_waits_for_disk=False),
    "confirm-before-majority": RaftRules(needs_majority=False),
    "commit-of-an-old-term": RaftRules(own_term_only=False),
    "vote-not-persisted": RaftRules(vote_is_kept=False),
    "old-entries-cut-the-log": RaftRules(cuts_what_differs=False),
    "returns-in-reverse": RaftRules(returns_in_order=False),
}

# -- the log --------------------------------------------------------------------------------


class Entry(Struct, frozen=True):
    """One place of a log; replicas share it.

    Attributes:
        index: its place, from 1.
        term: of the leader that wrote it.
        command: what it asks of the state machine; None for a leader's first entry, which asks
            nothing.
    """

    index: int
    term: int
    command: Any


class RaftLog:
    """A replica's log: entries 1 to `last_index`, without gaps, in the order in which they apply.

    Index 0 with term 0 is there in every log and holds nothing, so that the first entry has
    something before it, as every other has.

    Args:
        entries: to begin with, from index 1.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = list(entries)

    @property
    def last_index(self) -> int:
        """Index of the last entry; 0 if there is none."""
        return len(self._entries)

    @property
    def last_term(self) -> int:
        """Term of the last entry; 0 if there is none."""
        return self._entries[-1].term if self._entries else 0

    def term_at(self, index: int) -> int | None:
        """Term of the entry at an index, 0 at index 0, None beyond the end."""
        if index == 0:
            return 0
        if 0 < index <= len(self._entries):
            return self._entries[index - 1].term
        return None

    def __getitem__(self, index: int) -> Entry:
        if not 0 < index <= len(self._entries):
            raise IndexError(f"no entry {index}; the log has 1 to {len(self._entries)}")
        return self._entries[index - 1]

    def after(self, index: int, most: int) -> tuple[Entry, ...]:
        """The entries that follow an index, at most so many."""
        return tuple(self._entries[index : index + most])

    def entries(self) -> tuple[Entry, ...]:
        """Every entry."""
        return tuple(self._entries)

    def append(self, entries: Iterable[Entry]) -> None:
        """Put entries at the end; the first of them follows the last one."""
        self._entries.extend(entries)

    def cut_from(self, index: int) -> int:
        """Take the entry at an index away and all behind it; returns how many went."""
        gone = len(self._entries) - index + 1
        if gone > 0:
            del self._entries[index - 1 :]
        return max(0, gone)

    def overwrite(self, entries: Sequence[Entry]) -> None:
        """Put entries, one behind the other, at their places; what stood there or behind goes."""
        first = entries[0].index
        self.cut_from(first)
        assert first == len(self._entries) + 1, "a log has no gaps"
        self._entries.extend(entries)


# Most messages and effects are tuples with names: there are very many, and explored states are made
# of them.

# -- between replicas -----------------------------------------------------------------------


class PreVote(NamedTuple):
    """Would you vote for me? No term changes for it."""

    term: int
    last_index: int
    last_term: int
    round: int  # so that a late answer to an earlier question is known as such


class PreVoteReply(NamedTuple):
    """Yes or no, and whether the answerer follows a leader that is alive."""

    term: int
    granted: bool
    follows: bool
    round: int


class RequestVote(NamedTuple):
    """Vote for me in this term."""

    term: int
    last_index: int
    last_term: int


class VoteReply(NamedTuple):
    """A replica has one vote in each term."""

    term: int
    granted: bool


class AppendEntries(NamedTuple):
    """The leader's entries behind `prev_index`, and how far it has committed."""

    term: int
    prev_index: int
    prev_term: int
    entries: tuple[Entry, ...]
    commit: int


class AppendReply(NamedTuple):
    """How far a follower's log is the leader's *and* on its disk; or where it is not.

    Attributes:
        prev_index: of the AppendEntries refused; 0 when it was taken.
        match: taken: the last index that agrees with the leader's log and is on disk. Refused: the
            index behind which the leader may try again.
    """

    term: int
    success: bool
    prev_index: int
    match: int


Message = PreVote | PreVoteReply | RequestVote | VoteReply | AppendEntries | AppendReply

# -- effects --------------------------------------------------------------------------------


class Send(NamedTuple):
    """Send this message to that replica."""

    to: str
    message: Message


class Write(NamedTuple):
    """Hand these entries to the write-ahead log, which tells `Replica.written_to` when it has."""

    entries: tuple[Entry, ...]
    generation: int


class Persist(NamedTuple):
    """Term and vote have changed and must be on disk before anything else leaves."""

    term: int
    voted_for: str | None


class Became(NamedTuple):
    """The replica's role has changed, or the leader that it follows."""

    role: str
    leader: str | None


class Committed(Struct, frozen=True, gc=False):
    """Entries up to this index may be applied."""

    index: int


class ElectionTimer(NamedTuple):
    """Start the election timer anew, or stop it."""

    on: bool


Effect = Send | Write | Persist | Became | Committed | ElectionTimer

# -- the replica ------------------------------------------------------------------------------


class NotLeaderError(Exception):
    """A command came to a replica that does not lead; `leader` is the one it follows, or None."""

    def __init__(self, name: str, leader: str | None) -> None:
        super().__init__(f"{name} does not lead; it follows {leader or 'nobody'}")
        self.leader = leader


class Replica:
    """One member of a group.

    Args:
        name: of this replica.
        members: every member, this one too.
        log: what its disk holds, after a restart; None: nothing.
        term, voted_for: as its disk holds them.
        rules: that it keeps.
        chunk: entries in one AppendEntries at most.

    Attributes:
        role: follower, pre-vote, candidate or leader.
        leader: the replica that it follows, itself if it leads; None: it knows of no leader.
        term: the latest that it has heard of.
        voted_for: the replica that has its vote in that term.
        votes: replicas that would vote, or have voted, for it.
        round: of pre-votes, so that late answers are known.
        down: peers that are reported lost.
        majority: how many replicas make one.
        written: the last index that is on its disk.
        generation: how often its log was cut; what the disk tells of earlier writes is not heeded,
            for the same entry may have been overwritten and come back meanwhile.
        commit: the last index that it knows to be committed.
        verified: follower: the last index that agrees with the leader's log.
        match: leader: what each peer has reported.
        next: leader: the first index that each peer has not been sent.
        probing: leader: peers whose log did not fit, with the index behind which it tries now.
    """

    __slots__ = (
        "_told", "_waits", "chunk", "commit", "down", "generation", "leader", "log", "majority",
        "match", "name", "next", "peers", "probing", "role", "round", "rules", "term", "verified",
        "voted_for", "votes", "written",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        members: Sequence[str],
        *,
        log: RaftLog | None = None,
        term: int = 0,
        voted_for: str | None = None,
        rules: RaftRules = RIGHT,
        chunk: int = ENTRIES_PER_APPEND,
    ) -> None:
        self.name = name
        self.rules = rules
        self.chunk = chunk
        self.peers = tuple(member for member in members if member != name)
        self.majority = len(members) // 2 + 1
        self.log = log if log is not None else RaftLog()
        self.term = term
        self.voted_for = voted_for
        self.role = FOLLOWER
        self.leader: str | None = None
        self.votes: frozenset[str] = frozenset()
        self.round = 0
        self.down: frozenset[str] = frozenset()
        self._waits = False  # a peer follows a live leader: ask no more until something changes
        self.written = self.log.last_index
        self.generation = 0
        self.commit = 0
        self.verified = 0
        self.match: dict[str, int] = {}
        self.next: dict[str, int] = {}
        self.probing: dict[str, int] = {}
        self._told = -1  # what the leader has heard from this follower

    # -- events -----------------------------------------------------------------------------

    def start(self) -> list[Effect]:
        """Begin, or begin again after a restart, without a leader."""
        return [ElectionTimer(True)]

    def timer_expired(self) -> list[Effect]:
        """The election timer ran out."""
        effects: list[Effect] = []
        if self.role == LEADER or self.leader is not None or self._waits:
            return effects
        if len(self.peers) - len(self.down) + 1 < self.majority:
            self._become(FOLLOWER, None, effects)  # no use: wait until a peer is back
            return effects
        self.round += 1
        self.votes = frozenset((self.name,))
        self._become(PRE_VOTE, None, effects)
        if self.majority == 1:
            self._stand(effects)
            return effects
        question = PreVote(self.term, self.log.last_index, self.log.last_term, self.round)
        self._ask_all(question, effects)
        effects.append(ElectionTimer(True))
        return effects

    def propose(self, commands: Iterable[Any]) -> list[Effect]:
        """Put commands into the log, for the leader.

        Raises:
            NotLeaderError: if it is none.
        """
        if self.role != LEADER:
            raise NotLeaderError(self.name, self.leader)
        index = self.log.last_index
        entries = tuple(
            Entry(place, self.term, command) for place, command in enumerate(commands, index + 1)
        )
        self.log.append(entries)
        # Disk and followers at the same time: the leader does not wait for its own disk.
        effects: list[Effect] = [Write(entries, self.generation)]
        for peer in self.peers:
            self._replicate(peer, effects)
        self._advance(effects)
        return effects

    def receive(self, sender: str, message: Message) -> list[Effect]:
        """A message from a peer."""
        effects: list[Effect] = []
        # A pre-vote changes no term, and its answer only if it is ahead.
        if message.term > self.term and not isinstance(message, PreVote):
            self._step_down(message.term, effects)
        match message:
            case AppendEntries():
                self._append_entries(sender, message, effects)
            case AppendReply():
                self._append_reply(sender, message, effects)
            case PreVote():
                self._pre_vote(sender, message, effects)
            case PreVoteReply():
                self._pre_vote_reply(sender, message, effects)
            case RequestVote():
                self._request_vote(sender, message, effects)
            case VoteReply():
                self._vote_reply(sender, message, effects)
        return effects

    def written_to(self, index: int, generation: int) -> list[Effect]:
        """The disk holds the entry of a `Write` with this index, and all before it."""
        effects: list[Effect] = []
        if generation != self.generation:
            return effects  # the log was cut since; the write of what stands there will follow
        self.written = max(self.written, index)
        if self.role == LEADER:
            self._advance(effects)
        else:
            self._report(effects)
        return effects

    def peer_down(self, peer: str) -> list[Effect]:
        """The peer, or the way to it, is reported lost."""
        effects: list[Effect] = []
        self.down |= {peer}
        if self.role == LEADER:
            return effects
        if self.leader == peer:
            self._become(FOLLOWER, None, effects)
        if self.leader is None:
            self._waits = False
            effects.append(ElectionTimer(True))
        return effects

    def peer_up(self, peer: str) -> list[Effect]:
        """The peer is back: what was sent to it before may be lost."""
        effects: list[Effect] = []
        self.down -= {peer}
        if self.role == LEADER:
            # What it has reported is on its disk and in its log: begin right behind that.
            self.next[peer] = self.match[peer] + 1
            self.probing.pop(peer, None)
            self._replicate(peer, effects, always=True)
        elif self.leader is None:
            self._waits = False
            effects.append(ElectionTimer(True))
        elif self.leader == peer:
            self._told = -1
        return effects

    # -- replication ------------------------------------------------------------------------

    def _replicate(self, peer: str, effects: list[Effect], *, always: bool = False) -> None:
        """Send what the peer lacks, as far as the pipeline allows."""
        if peer in self.down or (peer in self.probing and not always):
            return
        log = self.log
        last = log.last_index
        first = self.next[peer]
        if first > last and not always:
            return
        while first - self.match[peer] <= MOST_UNACKNOWLEDGED:
            entries = log.after(first - 1, self.chunk)
            before = log.term_at(first - 1)
            assert before is not None
            effects.append(
                Send(peer, AppendEntries(self.term, first - 1, before, entries, self.commit))
            )
            first += len(entries)
            if first > last or peer in self.probing:
                break
        self.next[peer] = first

    def _append_entries(self, sender: str, message: AppendEntries, effects: list[Effect]) -> None:
        if message.term < self.term:
            effects.append(Send(sender, AppendReply(self.term, False, message.prev_index, 0)))
            return
        if self.leader != sender or self.role != FOLLOWER:
            self._told = -1
            self.verified = 0
            self._become(FOLLOWER, sender, effects)
            effects.append(ElectionTimer(False))
        log, prev = self.log, message.prev_index
        if log.term_at(prev) != message.prev_term:
            # Behind the end: try from there. Another's entry stands there: what is committed is
            # the same everywhere, so behind that it will fit.
            again = log.last_index if prev > log.last_index else self.commit
            effects.append(Send(sender, AppendReply(self.term, False, prev, again)))
            return
        fresh = self._unlike(message.entries)
        if fresh:
            if log.cut_from(fresh[0].index):
                self.generation += 1
                self.written = min(self.written, fresh[0].index - 1)
            log.append(fresh)
            effects.append(Write(fresh, self.generation))
        self.verified = max(self.verified, prev + len(message.entries))
        commit = min(message.commit, self.verified)
        if commit > self.commit:
            self.commit = commit
            effects.append(Committed(commit))
        self._report(effects)

    def _unlike(self, entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """The entries from the first on that the log does not have."""
        log = self.log
        if not entries or entries[0].index > log.last_index or not self.rules.cuts_what_differs:
            return entries
        for at, entry in enumerate(entries):
            if log.term_at(entry.index) != entry.term:
                return entries[at:]
        return ()

    def _report(self, effects: list[Effect]) -> None:
        """Tell the leader how far this replica has its entries on disk, if that is news."""
        if self.leader is None or self.role != FOLLOWER:
            return
        have = self.written if self.rules.follower_waits_for_disk else self.log.last_index
        match = min(have, self.verified)
        if match != self._told:
            self._told = match
            effects.append(Send(self.leader, AppendReply(self.term, True, 0, match)))

    def _append_reply(self, sender: str, message: AppendReply, effects: list[Effect]) -> None:
        if self.role != LEADER or message.term < self.term:
            return
        if not message.success:
            tried = self.probing.get(sender)
            if tried is not None and tried != message.prev_index:
                return  # an answer to something sent before that
            again = message.match
            if tried == again:
                return  # it fits nowhere: only with a broken rule
            self.probing[sender] = again
            self.next[sender] = again + 1
            self._replicate(sender, effects, always=True)
            return
        self.probing.pop(sender, None)
        self.next[sender] = max(self.next[sender], message.match + 1)
        if message.match > self.match[sender]:
            self.match[sender] = message.match
            self._advance(effects)
        self._replicate(sender, effects)

    def _advance(self, effects: list[Effect]) -> None:
        """Commit what a majority has on disk: the median of what they report."""
        rules = self.rules
        own = self.written if rules.leader_waits_for_disk else self.log.last_index
        reported = sorted((own, *self.match.values()), reverse=True)
        index = reported[self.majority - 1] if rules.needs_majority else own
        if index <= self.commit:
            return
        if rules.own_term_only and self.log.term_at(index) != self.term:
            return  # it could still be overwritten [the paper's figure 8]
        self.commit = index
        effects.append(Committed(index))
        for peer in self.peers:
            self._replicate(peer, effects, always=peer not in self.probing)

    # -- elections ----------------------------------------------------------------------------

    def _ask_all(self, question: PreVote | RequestVote, effects: list[Effect]) -> None:
        effects.extend(Send(peer, question) for peer in self.peers if peer not in self.down)

    def _stand(self, effects: list[Effect]) -> None:
        """A majority would vote for this replica: ask them to, in a new term."""
        self.term += 1
        self.voted_for = self.name
        self._keep_vote(effects)
        self.votes = frozenset((self.name,))
        self._become(CANDIDATE, None, effects)
        self._ask_all(RequestVote(self.term, self.log.last_index, self.log.last_term), effects)
        effects.append(ElectionTimer(True))
        if self.majority == 1:
            self._lead(effects)

    def _up_to_date(self, last_index: int, last_term: int) -> bool:
        """Whether a log that ends so has all that this one has [5.4.1 of the paper]."""
        return (last_term, last_index) >= (self.log.last_term, self.log.last_index)

    def _pre_vote(self, sender: str, message: PreVote, effects: list[Effect]) -> None:
        follows = self.leader is not None
        granted = (
            not follows
            and message.term >= self.term
            and self._up_to_date(message.last_index, message.last_term)
        )
        effects.append(Send(sender, PreVoteReply(self.term, granted, follows, message.round)))
        if not granted and not follows and self._waits:
            self._waits = False  # a replica behind this one asks, and none leads: ask again
            effects.append(ElectionTimer(True))

    def _pre_vote_reply(self, sender: str, message: PreVoteReply, effects: list[Effect]) -> None:
        if self.role != PRE_VOTE or message.round != self.round:
            return
        if message.granted:
            self.votes |= {sender}
            if len(self.votes) >= self.majority:
                self._stand(effects)
        elif message.follows:
            self._waits = True
            effects.append(ElectionTimer(False))

    def _request_vote(self, sender: str, message: RequestVote, effects: list[Effect]) -> None:
        granted = (
            message.term == self.term
            and self.voted_for in (None, sender)
            and self._up_to_date(message.last_index, message.last_term)
        )
        if granted:
            self.voted_for = sender
            self._keep_vote(effects)
        effects.append(Send(sender, VoteReply(self.term, granted)))

    def _vote_reply(self, sender: str, message: VoteReply, effects: list[Effect]) -> None:
        if self.role != CANDIDATE or message.term != self.term or not message.granted:
            return
        self.votes |= {sender}
        if len(self.votes) >= self.majority:
            self._lead(effects)

    def _keep_vote(self, effects: list[Effect]) -> None:
        effects.append(Persist(self.term, self.voted_for if self.rules.vote_is_kept else None))

    def _step_down(self, term: int, effects: list[Effect]) -> None:
        """A peer is in a later term: follow no leader until that term's speaks."""
        self.term = term
        self.voted_for = None
        effects.append(Persist(term, None))
        self._waits = False
        self._become(FOLLOWER, None, effects)
        effects.append(ElectionTimer(True))

    def _lead(self, effects: list[Effect]) -> None:
        self._become(LEADER, self.name, effects)
        effects.append(ElectionTimer(False))
        last = self.log.last_index
        self.match = dict.fromkeys(self.peers, 0)
        self.next = dict.fromkeys(self.peers, last + 1)
        self.probing = {}
        # An entry of its own term, so that what earlier leaders left can be committed.
        effects += self.propose((None,))

    def _become(self, role: str, leader: str | None, effects: list[Effect]) -> None:
        if (role, leader) != (self.role, self.leader):
            self.role, self.leader = role, leader
            effects.append(Became(role, leader))
        if leader is not None:
            self._waits = False
        if role != LEADER:
            self.match, self.next, self.probing = {}, {}, {}
