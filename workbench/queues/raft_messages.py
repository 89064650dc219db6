"""What replicas say to each other, and what a replica asks its surroundings to do.

Most are tuples with names: there are very many, and explored states are made of them.
Sources: Ongaro and Ousterhout, In Search of an Understandable Consensus Algorithm (2014), figure 2;
Ongaro's thesis (2014), 9.6 for pre-vote and 10.2 for pipelines and parallel disk writes; `ra.hrl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .raft_log import Entry

# -- between replicas -----------------------------------------------------------------------


class PreVote(NamedTuple):
    """Would you vote for me? Nobody's term changes for it."""

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


@dataclass(frozen=True, slots=True)
class Committed:
    """Entries up to this index may be applied."""

    index: int


class ElectionTimer(NamedTuple):
    """Start the election timer anew, or stop it."""

    on: bool


Effect = Send | Write | Persist | Became | Committed | ElectionTimer
