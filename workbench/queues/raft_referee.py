"""A referee: watches every replica of a group and says which invariant is broken, at once.

It knows what no replica can know, all of them together. The invariants have the names of the Raft
paper (figure 3); the rest are what clients were promised, who check them and tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .quorum_fifo import QuorumFifo
from .raft import Entry, RaftLog

ELECTION_SAFETY = "election safety"
LOG_MATCHING = "log matching"
LEADER_COMPLETENESS = "leader completeness"
STATE_MACHINE_SAFETY = "state machine safety"
STAYS_ON_DISK = "what was reported stays on disk"
CONFIRMED_IS_SAFE = "confirmed is on a majority's disks"
NOTHING_CONFIRMED_LOST = "no confirmed message is lost"
ORDER = "order is kept"
ONCE = "nothing is taken in twice"
RETURNS = "what comes back keeps its order"
CREDIT = "credit is spent or known"
STANDING = "clients know how the queue stands"
DEAD_LETTERS = "a death makes one dead letter at most"
COUNTS = "counts add up"

INVARIANTS: dict[str, str] = {
    ELECTION_SAFETY: "in one term at most one replica leads",
    LOG_MATCHING: "entries with the same index and term are the same, and all before them too",
    LEADER_COMPLETENESS: "whoever leads has every entry that was committed before",
    STATE_MACHINE_SAFETY: "no two replicas apply different entries at the same index",
    STAYS_ON_DISK: "an entry that is committed stays on each disk that has had it",
    CONFIRMED_IS_SAFE: "what is answered is committed, and what is committed is on the disks of a"
    " majority",
    NOTHING_CONFIRMED_LOST: "a confirmed message is in the queue, or was handed out or purged after"
    " it was sent",
    ORDER: "messages of one publisher are handed out in the order in which it sent them",
    ONCE: "a message is taken in once, and does not come again when it was accepted",
    RETURNS: "what consumers give back is handed out in the order in which it came back",
    CREDIT: "when all is quiet both ends of each link, and the queue, know the same credit, and no"
    " message waits beside it",
    STANDING: "when all is quiet publishers know whether the queue is full, and consumers which of"
    " them is active",
    DEAD_LETTERS: "a message that has died once is published once to the dead-letter exchange, if"
    " at all",
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
        self._kept: dict[str, list[int]] = {node: [] for node in nodes}  # terms on each disk

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
                self.broken(
                    LOG_MATCHING,
                    f"{node} has at index {entry.index}, term {entry.term}, another entry or"
                    " another one before it than a replica had",
                )
            before = entry.term

    def synced(self, node: str) -> None:
        """What was on this disk, and is committed, is there still."""
        disk, kept = self._disk(node), self._kept[node]
        if disk is None:
            return  # nothing was ever written
        index = min(len(kept), len(self._committed))
        while index and kept[index - 1] != self._committed[index - 1].term:
            index -= 1
        # The entries before it follow from it by log matching.
        if index and disk.term_at(index) != kept[index - 1]:
            self.broken(
                STAYS_ON_DISK,
                f"{node} had the entry {index} of term {kept[index - 1]} on its disk, which is"
                f" committed; now its disk ends with entry {disk.last_index}",
            )
        last = disk.last_index
        del kept[last:]
        same = len(kept)
        while same and kept[same - 1] != disk.term_at(same):
            same -= 1
        kept[same:] = [entry.term for entry in disk.after(same, last - same)]

    def led(self, node: str, term: int, log: RaftLog) -> None:
        """Election safety and leader completeness."""
        other = self.leaders.setdefault(term, node)
        if other != node:
            self.broken(ELECTION_SAFETY, f"{other} and {node} lead in term {term}")
        self.leader_changes += 1
        for entry, committed_in in zip(
            reversed(self._committed), reversed(self._committed_in), strict=True
        ):
            if committed_in >= term:
                continue  # a late winner of an old term: it is told at its first message
            if log.term_at(entry.index) != entry.term:
                self.broken(
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
            self.broken(
                STATE_MACHINE_SAFETY,
                f"{node} commits at index {index} the entry of term {log.term_at(index)}, another"
                f" committed that of term {self._committed[index - 1].term}",
            )

    def applied(self, node: str, entry: Entry, machine: QuorumFifo) -> None:
        """State machine safety, and the counts of the copy."""
        first = self._applied.setdefault(entry.index, entry)
        if first is not entry and first != entry:
            self.broken(
                STATE_MACHINE_SAFETY,
                f"{node} applies at index {entry.index} an entry of term {entry.term}, another"
                f" applied one of term {first.term}",
            )
        if machine.ready + machine.unsettled + machine.terminal != machine.enqueued:
            self.broken(
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
            self.broken(
                CONFIRMED_IS_SAFE,
                f"{node} answers for entry {index}, which is on the disk of {len(safe)}"
                f" ({', '.join(safe) or 'nobody'}); a majority is {self._majority}",
            )

    def broken(self, invariant: str, what: str) -> None:
        """An invariant does not hold.

        Raises:
            InvariantBrokenError: unless there is somebody else to be told.
        """
        error = InvariantBrokenError(invariant, what)
        if self._report is None:
            raise error
        self._report(error)
