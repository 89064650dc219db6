"""One replica of a Raft group, as a state machine: events in, effects out.

It asks no clock and draws no random number: somebody tells it that its election timer ran out, that
a peer is lost or back, and that entries are on disk. Four rules make it safe, and each has a mutant
in `raft_rules.RULES_BROKEN` that breaks it:

1. A follower reports an entry only when it is on its own disk.
2. The leader counts itself only as far as its own disk has got.
3. The leader commits what a majority has on disk, that is, the median of what they report.
4. Only an entry of the leader's own term is committed by counting; earlier ones follow from it.

Like RabbitMQ's Ra and unlike the paper there is no heartbeat. A leader is followed until its node
is reported lost (`peer_down`); an idle group is silent (`ra_server.erl`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .raft_log import Entry, RaftLog
from .raft_messages import (
    AppendEntries,
    AppendReply,
    Committed,
    Effect,
    ElectionTimer,
    Message,
    PreVote,
    PreVoteReply,
    RequestVote,
    Send,
    VoteReply,
    Write,
)
from .raft_rules import RIGHT, RaftRules
from .raft_vote import FOLLOWER, LEADER, Voter

ENTRIES_PER_APPEND = 128  # ra_server.hrl: AER_CHUNK_SIZE
MOST_UNACKNOWLEDGED = 4096  # ra_server.hrl: DEFAULT_MAX_PIPELINE_COUNT


class NotLeaderError(Exception):
    """A command came to a replica that does not lead; `leader` is whom it follows, if anybody."""

    def __init__(self, name: str, leader: str | None) -> None:
        super().__init__(f"{name} does not lead; it follows {leader or 'nobody'}")
        self.leader = leader


class Replica(Voter):
    """One member of a group.

    Args:
        name: of this replica.
        members: every member, this one too.
        log: what its disk holds, after a restart; None: nothing.
        term, voted_for: what its disk holds of them.
        rules: to keep.
        chunk: entries in one AppendEntries at most.

    Attributes:
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
        "_told",
        "chunk",
        "commit",
        "generation",
        "match",
        "next",
        "probing",
        "verified",
        "written",
    )

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
        kept = log if log is not None else RaftLog()
        super().__init__(name, members, kept, term, voted_for, rules)
        self.chunk = chunk
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
        """Begin, or begin again after a restart: nobody is followed yet."""
        return [ElectionTimer(True)]

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
        # A question before an election changes nobody's term, and its answer only if it is ahead.
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

    # -- leading ----------------------------------------------------------------------------

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
        super()._become(role, leader, effects)
        if role != LEADER:
            self.match, self.next, self.probing = {}, {}, {}
