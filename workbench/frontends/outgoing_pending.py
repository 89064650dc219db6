"""What a session of RabbitMQ still has to say: one line for all its consumers.

Deliveries, and a queue's answers to credit, wait in one line per session and leave it in order. So
a flow never overtakes a transfer that came before it, and a delivery of which frames are still to
be sent holds everything behind it. The line moves while the client's window is open and the
transport takes octets (`rabbit_amqp_session.erl:send_pending`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from workbench.amqp10.sender import OutgoingDelivery, SenderLink
from workbench.amqp10.session import Session
from workbench.queues import Deliver

from .processes import Processes


class Host(Protocol):
    """A consumer's link, as the line sees it."""

    link: SenderLink

    def send(self, effect: Deliver) -> OutgoingDelivery:
        """Begin the delivery."""

    def sent(self) -> None:
        """The delivery begun last has left completely."""


@dataclass(slots=True)
class _Waiting:
    host: Host
    what: Deliver | Callable[[], None]
    delivery: OutgoingDelivery | None = None  # once it is begun

    @property
    def is_message(self) -> bool:
        return isinstance(self.what, Deliver)


class OutgoingPending:
    """The line of one session.

    Args:
        session: whose window is heeded.
        takes: whether transport and writer take a message of the session.
        processes: the session's own process is one of them.

    Attributes:
        name: of the session's process in a trace.
    """

    def __init__(
        self, session: Session, takes: Callable[[Session], bool], processes: Processes
    ) -> None:
        self.session = session
        self._takes = takes
        self._processes = processes
        self.name = processes.name_of(session)
        self._messages = 0  # in the line
        self._told = False  # that messages wait in it
        self._line: deque[_Waiting] = deque()
        self._pumping = False

    def __len__(self) -> int:
        return len(self._line)

    @property
    def held_octets(self) -> int:
        """Sizes of the messages that only this line holds: their queue has let go of them."""
        return sum(
            item.what.message.message.size
            for item in self._line
            if isinstance(item.what, Deliver) and item.what.settled
        )

    def push(self, host: Host, what: Deliver | Callable[[], None]) -> None:
        """Put a delivery, or what is to be done in its turn, at the end of the line."""
        self._processes.post(self.session, lambda: self._add(_Waiting(host, what)))

    def _add(self, item: _Waiting) -> None:
        self._line.append(item)
        self._messages += item.is_message
        self.pump()

    def forget(self, host: Host) -> None:
        """The consumer is gone, and what it was to get with it."""
        self._line = deque(item for item in self._line if item.host is not host)
        self._messages = sum(item.is_message for item in self._line)
        self._processes.waits(host.link, self._messages)

    def pump(self) -> None:
        """Send as far as window and transport go."""
        if self._pumping:  # what is sent may bring more into the line
            return
        self._pumping = True
        try:
            while self._line and self._advance(self._line[0]):
                pass
        finally:
            self._pumping = False
        # What leaves in the same moment has not waited, and is not told of.
        self._told = bool(self._messages)
        if self._told:
            self._processes.waits(self._line[-1].host.link, self._messages)

    def _advance(self, item: _Waiting) -> bool:
        """Do the first thing in the line; False if it has to wait."""
        if not self.session.can_emit():
            return False
        if not item.host.link.attached:
            self._line.popleft()
            self._messages -= item.is_message
            return True
        if not isinstance(item.what, Deliver):
            self._line.popleft()
            item.what()
            return True
        if not self._takes(self.session) or not self.session.counters.remote_incoming_window:
            return False
        if item.delivery is None:
            item.delivery = item.host.send(item.what)
        else:
            item.delivery.link.pump()
        if not item.delivery.complete:
            return False
        self._line.popleft()
        self._messages -= 1
        if self._told:
            self._processes.waits(item.host.link, self._messages)
        item.host.sent()
        return True
