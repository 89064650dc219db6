"""What people believe about when an entry of a quorum queue's log is committed.

Each belief says up to which entry the log is committed, from what the disks and the logs hold.
It is shown beside the rule in the run of a question; no schedule is searched for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .misconception import Misconception

Entries = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBelief(Misconception):
    """A belief about commits.

    Attributes:
        upto: the last committed entry by it, from the last entry on each disk and in each log; the
            leader's first.
    """

    upto: Callable[[Entries, Entries], int]


_LISTED = (
    CommitBelief(
        name="memory is enough", upto=lambda disks, logs: sorted(logs, reverse=True)[len(logs) // 2]
    ),
    CommitBelief(name="the leader alone decides", upto=lambda disks, logs: disks[0]),
    CommitBelief(name="every replica must have it", upto=lambda disks, logs: min(disks)),
)
COMMIT_BELIEFS: Mapping[str, CommitBelief] = {one.name: one for one in _LISTED}
