"""Who deals with a quorum group: ports of clients, observers; what it keeps per replica."""

from __future__ import annotations

from typing import Protocol

from workbench.queues.quorum_client import QuorumClient
from workbench.queues.quorum_commands import QuorumEffect, QuorumReply
from workbench.queues.quorum_fifo import QuorumFifo
from workbench.queues.raft import Replica
from workbench.queues.raft_log import Entry, RaftLog
from workbench.sim import Timer

from .quorum_intake import Intake

Answers = list[tuple[int, QuorumReply]]


class Port(Protocol):
    """A client's process, somewhere in the cluster."""

    client: QuorumClient
    place: str

    def heard(self, term: int, answers: Answers, effects: list[QuorumEffect]) -> None:
        """The leader of a term has applied commands: effects first, then the answers."""

    def leader_is(self, leader: str, term: int) -> None:
        """A replica tells that it leads."""

    def not_leader(self, replica: str) -> None:
        """A replica tells that it does not lead."""


class Watcher(Protocol):
    """An observer that checks what replicas do; it changes nothing."""

    def appended(self, node: str, log: RaftLog, entries: tuple[Entry, ...]) -> None:
        """Entries stand at the end of a replica's log."""

    def synced(self, node: str) -> None:
        """Entries of a node's replica have come to its disk; in a crash perhaps none."""

    def led(self, node: str, term: int, log: RaftLog) -> None:
        """A replica leads from now on; its log as it was before its own first entry."""

    def committed_up_to(self, node: str, log: RaftLog, term: int, index: int) -> None:
        """A replica takes everything up to this index for committed."""

    def applied(self, node: str, entry: Entry, machine: QuorumFifo) -> None:
        """A replica has applied an entry."""

    def answering(self, node: str, index: int) -> None:
        """The leader answers clients: all that it applied, up to this index."""


class Member:
    """A replica that lives: its Raft state, its copy of the queue, its mailbox, its timer."""

    __slots__ = ("applied", "intake", "looks", "machine", "replica", "timer", "vain")

    def __init__(self, replica: Replica, machine: QuorumFifo, intake: Intake) -> None:
        self.replica = replica
        self.machine = machine
        self.applied = 0
        self.timer: Timer | None = None
        self.vain = 0  # rounds of elections without a leader
        self.intake = intake
        # When it will look for messages that are too old, as the leader of which term.
        self.looks: tuple[int, int | None] = (0, None)


def message_runs(entries: tuple[Entry, ...]) -> list[list[int]]:
    """Which entries are messages: [first index, number of its message, how many in a row].

    A message keeps its number when it is sent again: two entries may then be the same one.
    """
    runs: list[list[int]] = []
    for entry in entries:
        number = entry.command.enqueue_seq if entry.command is not None else 0
        if not number:
            continue
        if runs:
            index, first, count = runs[-1]
            if (entry.index, number) == (index + count, first + count):
                runs[-1][2] += 1
                continue
        runs.append([entry.index, number, 1])
    return runs
