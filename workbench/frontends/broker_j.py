"""How Qpid's Java broker holds whoever publishes to a queue above its maximum, over AMQP 1.0.

A publisher has credit for so many messages less those that are not settled, and is granted again
when half of what it was told is used (`AbstractReceivingLinkEndpoint`, `AbstractLinkEndpoint`), or
when no more is left than a number of the preset's.
When a message has made a queue hold more than its maximum, every link of its session to that queue
is told link-credit 0 with drain; when the queue has room, the credit that is left
(`Session_1_0.doBlock`, `doUnblock`). Other links of the session go on; so do links of other
sessions, until a message of theirs finds the queue too full.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.session import Session
from workbench.amqp10.settings import CreditOverrun
from workbench.broker.queue_process import LocalQueueProcess, QueueProcess
from workbench.presets import Preset
from workbench.queues import QpidQueue

from .incoming_link import IncomingLink
from .session_policy import Host, SessionPolicy


def overfull(queue: QueueProcess | None) -> TypeGuard[LocalQueueProcess]:
    """Whether a queue holds more than its maximum, and stops those who publish to it."""
    state = queue.queue if isinstance(queue, LocalQueueProcess) else None
    return isinstance(state, QpidQueue) and not state.flow.thresholds.holds and state.flow.over


class BrokerJLink(IncomingLink):
    """One publisher to a queue; see the module.

    Args:
        blocks: told of a queue that holds more than its maximum.
        **given: as of `IncomingLink`.

    Attributes:
        stopped: its credit is taken away until the queue has room.
    """

    def __init__(self, blocks: Callable[[LocalQueueProcess], None], **given: Any) -> None:
        super().__init__(**given)
        self.stopped = False
        self._blocks = blocks
        self._again = given["preset"].publisher_credit_regrant_at

    def attach(self) -> None:
        """Let the publisher begin, and stop it if the queue is too full already."""
        super().attach()
        self._look()

    def maybe_grant(self) -> None:
        """Nothing: only what is settled gives credit back."""

    def stop(self) -> None:
        """Take the credit away."""
        self.stopped = True
        if self.link.attached:
            self.link.grant(0, drain=True)

    def go_on(self) -> None:
        """Give back what is left of it."""
        self.stopped = False
        if self.link.attached:
            self.link.grant(self._left)

    @property
    def _left(self) -> int:
        return max(0, self._credit - self.unconfirmed)

    def _taken(self) -> None:
        """A message is settled: its credit comes back, and is told when little is left."""
        told = self.link.credit
        if not self.stopped and told <= (self._left // 2 if self._again is None else self._again):
            self.link.grant(self._left)
        self._look()

    def _look(self) -> None:
        queue = self.destination.queue
        if overfull(queue):
            self._blocks(queue)


class BrokerJPolicy(SessionPolicy):
    """The plain reading of the specification, and sessions that full queues block."""

    # What was under way when credit was cut is taken.
    credit_overrun = CreditOverrun.TAKE

    def __init__(self, owner: Host, preset: Preset) -> None:
        super().__init__(owner, preset)
        self._blocked: set[tuple[Session, str]] = set()  # with the queue that blocks it

    def publisher(self, link: ReceiverLink, **given: Any) -> IncomingLink:
        """A publisher that a full queue stops."""
        return BrokerJLink(partial(self._block, link.session), link=link, **given)

    def _block(self, session: Session, queue: LocalQueueProcess) -> None:
        """Stop the links that are there.

        One that is attached later is not stopped before the queue has had room.
        """
        if (session, queue.name) in self._blocked:
            return
        self._blocked.add((session, queue.name))
        for host in self._links(session, queue):
            host.stop()
        queue.when_room(partial(self._room, session, queue))

    def _room(self, session: Session, queue: QueueProcess) -> None:
        self._blocked.discard((session, queue.name))
        for host in self._links(session, queue):
            host.go_on()

    def _links(self, session: Session, queue: QueueProcess) -> list[BrokerJLink]:
        return [
            host
            for link, host in self.owner.hosts.items()
            if isinstance(host, BrokerJLink)
            and link.session is session
            and host.destination.queue is queue
        ]
