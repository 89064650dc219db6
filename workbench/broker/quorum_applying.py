"""What a replica knows to be committed is applied to its copy; the leader answers for it.

A leader carries out what comes of the entries of its own term, and of no other: an earlier leader
may have done so for its own. So nothing is done twice, and what was not done is asked for: clients
send again what was not answered, and say which deliveries they have not seen. (Ra's leader carries
out what it applies for the first time, whoever wrote it, and knows from its disk, more or less,
what it had applied before: `ra_server.erl:persist_last_applied`.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.queues import Expire
from workbench.queues.quorum_commands import Logged, QuorumEffect
from workbench.queues.raft_vote import LEADER
from workbench.sim import VirtualClock

from .queue_timer import QueueTimer
from .quorum_ports import Ports
from .quorum_roles import Answers, Member, Watcher

ITSELF = "itself"  # the queue as its own client: what its timer has to say


class Applying:
    """Applies entries of one queue's log, on whichever replica.

    Args:
        clock: of the run.
        ports: the queue's clients.
        watchers: who is told of every step.
        log: leaves a row.
        propose: puts a command into the log, if somebody leads.
    """

    def __init__(
        self,
        clock: VirtualClock,
        ports: Ports,
        watchers: list[Watcher],
        log: Callable[..., None],
        propose: Callable[[Logged], None],
    ) -> None:
        self._clock = clock
        self._ports = ports
        self._watchers = watchers
        self._log = log
        self._propose = propose
        self._timer = QueueTimer(clock, self._time_is_up)

    def up_to(self, node: str, member: Member, index: int) -> None:
        """Everything up to this index is committed, as the replica of a node knows."""
        replica, watchers = member.replica, self._watchers
        log = replica.log
        for watcher in watchers:
            watcher.committed_up_to(node, log, replica.term, index)
        self._log("commit", node, extra={"index": index, "term": replica.term})
        leads = replica.role == LEADER
        answers: dict[str, Answers] = {}
        effects: list[QuorumEffect] = []
        apply = member.machine.apply
        count = index - member.applied
        while member.applied < index:
            member.applied += 1
            entry = log[member.applied]
            logged: Any = entry.command
            own = leads and entry.term == replica.term
            if logged is not None:
                reply, caused = apply(logged)
                if own:
                    answers.setdefault(logged.client, []).append((logged.seq, reply))
                    effects += caused
            elif own:  # all before it is applied: what earlier leaders may not have told any more
                effects += member.machine.standing()
            for watcher in watchers:
                watcher.applied(node, entry, member.machine)
        self._log("apply", node, extra={"index": index, "count": count})
        if leads:
            for watcher in watchers:
                watcher.answering(node, index)
            self._ports.answer(node, replica.term, answers, effects)
            self._look_for_age(member)

    def stop(self) -> None:
        """The queue is deleted."""
        self._timer.stop()

    def _look_for_age(self, member: Member) -> None:
        """The leader sets its clock to when the first message is too old, once a term for each."""
        looks = (member.replica.term, member.machine.deadline_us())
        if looks != member.looks:
            member.looks = looks
            self._timer.set(looks[1])

    def _time_is_up(self) -> None:
        """What is too old leaves every copy at one place of the log."""
        self._propose(Logged(ITSELF, 0, 0, Expire(), self._clock.now_us))
