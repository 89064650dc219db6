"""The half of a replica that votes and stands for election.

A candidate first asks whether it would be voted for, which changes nobody's term (pre-vote). Who
follows a leader says no, so a replica that lost its way to the leader disturbs nobody; it asks no
more until something changes [Ongaro's thesis, 4.2.3 and 9.6].
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from .raft_log import RaftLog
from .raft_messages import (
    Became,
    Effect,
    ElectionTimer,
    Persist,
    PreVote,
    PreVoteReply,
    RequestVote,
    Send,
    VoteReply,
)
from .raft_rules import RIGHT, RaftRules

FOLLOWER, PRE_VOTE, CANDIDATE, LEADER = "follower", "pre-vote", "candidate", "leader"


class Voter:
    """A replica as far as elections go; see `raft.Replica`.

    Attributes:
        role: follower, pre-vote, candidate or leader.
        leader: whom it follows; its own name if it leads; None if it knows nobody.
        term: the latest that it has heard of.
        voted_for: to whom it gave its vote in that term.
        votes: who would vote, or has voted, for it.
        round: of pre-votes, so that late answers are known.
        down: peers that are reported lost.
        majority: how many replicas that is.
        rules: that it keeps.
    """

    __slots__ = (
        "_waits",
        "down",
        "leader",
        "log",
        "majority",
        "name",
        "peers",
        "role",
        "round",
        "rules",
        "term",
        "voted_for",
        "votes",
    )

    def __init__(
        self,
        name: str,
        members: Sequence[str],
        log: RaftLog,
        term: int,
        voted_for: str | None,
        rules: RaftRules = RIGHT,
    ) -> None:
        self.name = name
        self.rules = rules
        self.peers = tuple(member for member in members if member != name)
        self.majority = len(members) // 2 + 1
        self.log = log
        self.term = term
        self.voted_for = voted_for
        self.role = FOLLOWER
        self.leader: str | None = None
        self.votes: frozenset[str] = frozenset()
        self.round = 0
        self.down: frozenset[str] = frozenset()
        self._waits = False  # somebody follows a live leader: ask no more until something changes

    def timer_expired(self) -> list[Effect]:
        """The election timer ran out."""
        effects: list[Effect] = []
        if self.role == LEADER or self.leader is not None or self._waits:
            return effects
        if len(self.peers) - len(self.down) + 1 < self.majority:
            self._become(FOLLOWER, None, effects)  # no use: wait until somebody is back
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

    @abstractmethod
    def _lead(self, effects: list[Effect]) -> None:
        """Begin to lead: a majority has voted for this replica."""

    # -- inside -----------------------------------------------------------------------------

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
            self._waits = False  # somebody worse asks, and nobody leads: ask again oneself
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
        """Somebody is in a later term: follow nobody until its leader speaks."""
        self.term = term
        self.voted_for = None
        effects.append(Persist(term, None))
        self._waits = False
        self._become(FOLLOWER, None, effects)
        effects.append(ElectionTimer(True))

    def _become(self, role: str, leader: str | None, effects: list[Effect]) -> None:
        if (role, leader) != (self.role, self.leader):
            self.role, self.leader = role, leader
            effects.append(Became(role, leader))
        if leader is not None:
            self._waits = False
