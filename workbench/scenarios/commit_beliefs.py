"""What people believe about when an entry of a quorum queue's log is committed.

Each belief says up to which entry the log is committed, from what the disks and the logs hold.
It is shown beside the rule in the run of a question; no schedule is searched for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Entries = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBelief:
    """A belief about commits.

    Attributes:
        name: of the misconception.
        says: the rule in words.
        because: why it is wrong.
        upto: the last committed entry by it, from the last entry on each disk and in each log; the
            leader's first.
    """

    name: str
    says: str
    because: str
    upto: Callable[[Entries, Entries], int]


_LISTED = (
    CommitBelief(
        name="memory is enough",
        says="an entry is committed when a majority has it in memory",
        because="memory does not survive a loss of power",
        upto=lambda disks, logs: sorted(logs, reverse=True)[len(logs) // 2],
    ),
    CommitBelief(
        name="the leader alone decides",
        says="an entry is committed when the leader has it on disk",
        because="nobody else need have it then",
        upto=lambda disks, logs: disks[0],
    ),
    CommitBelief(
        name="every replica must have it",
        says="an entry is committed when every replica has it on disk",
        because="a majority is enough: one slow node stops nothing",
        upto=lambda disks, logs: min(disks),
    ),
)
COMMIT_BELIEFS: Mapping[str, CommitBelief] = {one.name: one for one in _LISTED}
