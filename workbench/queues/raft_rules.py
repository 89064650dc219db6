"""The rules that make a replica safe, one switch for each, and the mutants that break them."""

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
    """

    follower_waits_for_disk: bool = True
    leader_waits_for_disk: bool = True
    needs_majority: bool = True
    own_term_only: bool = True


RIGHT = RaftRules()
RULES_BROKEN: dict[str, RaftRules] = {
    "commit-before-fsync": RaftRules(follower_waits_for_disk=False),
    "leader-counts-itself-early": RaftRules(leader_waits_for_disk=False),
    "confirm-before-majority": RaftRules(needs_majority=False),
    "commit-of-an-old-term": RaftRules(own_term_only=False),
}
