"""The rules that make a replica safe, and its queue: a switch for each, and mutants without."""

from __future__ import annotations

from dataclasses import dataclass


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
