"""A referee: watches every replica of a group and says which invariant is broken, at once.

It knows what no replica can know, all of them together. The invariants have the names of the Raft
paper (figure 3); the rest are what a publisher was promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .quorum_fifo import QuorumFifo
from .raft_log import Entry, RaftLog

ELECTION_SAFETY = "election safety"
LOG_MATCHING = "log matching"
LEADER_COMPLETENESS = "leader completeness"
STATE_MACHINE_SAFETY = "state machine safety"
CONFIRMED_IS_SAFE = "confirmed is on a majority's disks"
NOTHING_CONFIRMED_LOST = "no confirmed message is lost"
ORDER = "order is kept"
ONCE = "nothing is taken in twice"
COUNTS = "counts add up"

INVARIANTS: dict[str, str] = {
    ELECTION_SAFETY: "in one term at most one replica leads",
    LOG_MATCHING: "entries with the same index and term are the same, and all before them too",
    LEADER_COMPLETENESS: "whoever leads has every entry that was committed before",
    STATE_MACHINE_SAFETY: "no two replicas apply different entries at the same index",
    CONFIRMED_IS_SAFE: "what is answered is committed, and what is committed is on the disks of a"
    " majority",
    NOTHING_CONFIRMED_LOST: "a confirmed message is in the queue or was handed out",
    ORDER: "messages of one publisher are handed out in the order in which it sent them",
    ONCE: "a message that was sent again was taken in once",
    COUNTS: "ready + unsettled + terminal is what was enqueued",
}


class InvariantBrokenError(AssertionError):
    """An invariant does not hold.

    Attributes:
        invariant: its name, a key of `INVARIANTS`.
    """

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}; it says: {INVARIANTS[invariant]}")
        self.invariant = invariant


class Referee:
    """Watches one group.

    Args:
        nodes: that hold a replica.
        disk: what a node's disk holds of the group's log, whether it runs or not.
        report: told of a broken invariant; None: it is raised.
    """

    def __init__(
        self,
        nodes: Sequence[str],
        disk: Callable[[str], RaftLog | None],
        report: Callable[[InvariantBrokenError], None] | None = None,
    ) -> None:
        self._report = report
        self.leaders: dict[int, str] = {}
        self.leader_changes = 0
        self.answered = 0
        self._nodes = tuple(nodes)
        self._majority = len(nodes) // 2 + 1
        self._disk = disk
        self._known: dict[tuple[int, int], tuple[int, Entry]] = {}
        self._committed: list[Entry] = []
        self._committed_in: list[int] = []  # the term in which each was
        self._applied: dict[int, Entry] = {}

    @property
    def committed(self) -> int:
        """The last index that any replica took for committed."""
        return len(self._committed)

    def appended(self, node: str, log: RaftLog, entries: Sequence[Entry]) -> None:
        """Log matching, by induction: each entry with its predecessor's term is known or new."""
        if not entries:
            return
        before = log.term_at(entries[0].index - 1)
        assert before is not None, "a log has no gaps"
        for entry in entries:
            seen = self._known.setdefault((entry.index, entry.term), (before, entry))
            if seen[0] != before or seen[1] != entry:
                self._broken(
                    LOG_MATCHING,
                    f"{node} has at index {entry.index}, term {entry.term}, another entry or"
                    " another one before it than a replica had",
                )
            before = entry.term

    def led(self, node: str, term: int, log: RaftLog) -> None:
        """Election safety and leader completeness."""
        other = self.leaders.setdefault(term, node)
        if other != node:
            self._broken(ELECTION_SAFETY, f"{other} and {node} lead in term {term}")
        self.leader_changes += 1
        for entry, committed_in in zip(
            reversed(self._committed), reversed(self._committed_in), strict=True
        ):
            if committed_in >= term:
                continue  # a late winner of an old term: it is told at its first message
            if log.term_at(entry.index) != entry.term:
                self._broken(
                    LEADER_COMPLETENESS,
                    f"{node} leads in term {term} without the entry {entry.index} of term"
                    f" {entry.term}, which was committed",
                )
            break  # the others follow from it by log matching

    def committed_up_to(self, node: str, log: RaftLog, term: int, index: int) -> None:
        """State machine safety: whoever commits, commits the same."""
        for place in range(len(self._committed) + 1, index + 1):
            self._committed.append(log[place])
            self._committed_in.append(term)
        if log.term_at(index) != self._committed[index - 1].term:
            self._broken(
                STATE_MACHINE_SAFETY,
                f"{node} commits at index {index} the entry of term {log.term_at(index)}, another"
                f" committed that of term {self._committed[index - 1].term}",
            )

    def applied(self, node: str, entry: Entry, machine: QuorumFifo) -> None:
        """State machine safety, and the counts of the copy."""
        first = self._applied.setdefault(entry.index, entry)
        if first is not entry and first != entry:
            self._broken(
                STATE_MACHINE_SAFETY,
                f"{node} applies at index {entry.index} an entry of term {entry.term}, another"
                f" applied one of term {first.term}",
            )
        if machine.ready + machine.unsettled + machine.terminal != machine.enqueued:
            self._broken(
                COUNTS,
                f"{node} has {machine.ready} ready, {machine.unsettled} unsettled,"
                f" {machine.terminal} terminal of {machine.enqueued}",
            )

    def answering(self, node: str, index: int) -> None:
        """Confirmed, hence committed, hence on the disks of a majority."""
        self.answered = max(self.answered, index)
        entry = self._committed[index - 1]
        safe = [
            name
            for name in self._nodes
            if (disk := self._disk(name)) is not None and disk.term_at(index) == entry.term
        ]
        if len(safe) < self._majority:
            self._broken(
                CONFIRMED_IS_SAFE,
                f"{node} answers for entry {index}, which is on the disk of {len(safe)}"
                f" ({', '.join(safe) or 'nobody'}); a majority is {self._majority}",
            )

    def _broken(self, invariant: str, what: str) -> None:
        error = InvariantBrokenError(invariant, what)
        if self._report is None:
            raise error
        self._report(error)
