"""An actor: a mailbox and somebody who handles one message at a time.

Backpressure in the workbench is never scripted: it comes about because an actor needs its service
time for every message and its mailbox grows meanwhile. A process of the Erlang machine, a thread
behind a queue and a disk that syncs are all drawn this way.

Where processes count credit between each other (`credit_flow`), `send` takes one for each message,
and the receiver grants more when it has begun to handle enough of them. Grants overtake what is in
the mailbox (`gen_server2` puts `bump_credit` first).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from .clock import Clock, Priority, Timer
from .credit_flow import CreditFlow, Grant

MessageT = TypeVar("MessageT")
KindT = TypeVar("KindT")


class _Sent(NamedTuple):
    """In a mailbox: a message that a process has spent credit on."""

    sender: Actor[Any]
    message: Any


class Actor(Generic[MessageT]):
    """Handles the messages of its mailbox in order, each after its service time.

    Args:
        flow: credit between this process and others; None: it counts none.
        owns_socket: it serves nothing while it is blocked. Who owns no socket goes on with what it
            has, and keeps its grants to itself: that stops those before it.
        blocking: told when it is blocked, and when it is no longer.

    Attributes:
        name: who it is in a trace, such as `queue:q`.
        service_us: microseconds that one message takes; a function of the message may be given.
        depth: messages waiting or being served.
        stalled: nothing is served; the mailbox fills.
    """

    def __init__(
        self,
        clock: Clock,
        name: str,
        *,
        service_us: int | Callable[[MessageT], int],
        handle: Callable[[MessageT], None],
        flow: CreditFlow | None = None,
        owns_socket: bool = False,
        blocking: Callable[[bool], None] | None = None,
    ) -> None:
        self.name = name
        self.service_us = service_us
        self._clock = clock
        self._handle = handle
        self._mailbox: deque[MessageT | _Sent] = deque()
        self._timer: Timer | None = None
        self._handled = 0
        self._deepest = 0
        self.stalled = False
        self.flow = flow
        self._owns_socket = owns_socket
        self._blocking = blocking
        self._blocked = False  # as was told
        self._senders: dict[str, Actor[Any]] = {}

    @property
    def depth(self) -> int:
        """Messages in the mailbox, the one in service included."""
        return len(self._mailbox)

    def post(self, message: MessageT) -> None:
        """Put a message into the mailbox; it is handled after those before it."""
        self._mailbox.append(message)
        depth = len(self._mailbox)
        if depth > self._deepest:
            self._deepest = depth
        if self._timer is None and not self.stalled:
            self._serve()

    # -- credit between processes -----------------------------------------------------------

    def send(self, to: Actor[Any], message: Any) -> None:
        """Post a message to another process, for credit where both count it."""
        if self.flow is None or to.flow is None:
            to.post(message)
            return
        self.flow.send(to.name)
        to.post(_Sent(self, message))
        self._look()

    def block(self, by: str) -> None:
        """Something downstream is slow, such as a quorum queue: no grants until `unblock`."""
        if self.flow is not None:
            self.flow.block(by)
            self._look()

    def unblock(self, by: str) -> None:
        """It is no longer; what was kept back is granted, if nobody else is in the way."""
        if self.flow is not None:
            self._grant(self.flow.unblock(by))
            self._look()

    def _granted(self, grant: Grant, by: str) -> None:
        """More credit has come."""
        assert self.flow is not None
        self._grant(self.flow.granted(by, grant.credit))
        self._look()

    def _grant(self, grants: list[Grant]) -> None:
        for grant in grants:
            granted = self._senders[grant.to]._granted
            self._clock.call_soon(granted, grant, self.name, priority=Priority.REACT)

    def _look(self) -> None:
        """Stop or go on, as it is blocked now or not."""
        assert self.flow is not None
        if self.flow.blocked is self._blocked:
            return
        self._blocked = self.flow.blocked
        if self._owns_socket:
            (self.stall if self._blocked else self.resume)()
        if self._blocking is not None:
            self._blocking(self._blocked)

    # -- its mailbox ------------------------------------------------------------------------

    def waiting(self, kind: type[KindT]) -> list[KindT]:
        """The messages of a kind in the mailbox, oldest first."""
        there = map(_content, self._mailbox)
        return [message for message in there if isinstance(message, kind)]

    def stall(self) -> None:
        """Stop serving: what is in service waits with the rest, and begins anew at `resume`."""
        self.stalled = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def resume(self) -> None:
        """Serve again."""
        self.stalled = False
        if self._mailbox and self._timer is None:
            self._serve()

    def withdraw(self, unwanted: Callable[[MessageT], bool]) -> int:
        """Take out of the mailbox what nobody wants any more; returns how many went."""
        kept = deque(each for each in self._mailbox if not unwanted(_content(each)))
        gone = len(self._mailbox) - len(kept)
        if gone:
            self._mailbox = kept
            if not kept and self._timer is not None:
                self._timer.cancel()
                self._timer = None
        return gone

    def overview(self) -> dict[str, int | str]:
        """Flat picture: `name`, `depth` now, `deepest` ever, `handled` so far."""
        return {
            "name": self.name,
            "depth": self.depth,
            "deepest": self._deepest,
            "handled": self._handled,
        }

    def _serve(self) -> None:
        service = self.service_us
        delay = service(_content(self._mailbox[0])) if callable(service) else service
        priority = Priority.REACT if delay == 0 else Priority.NORMAL
        self._timer = self._clock.call_later(delay, self._finish, priority=priority)

    def _finish(self) -> None:
        self._timer = None
        message = self._mailbox.popleft()
        self._handled += 1
        # The next service begins before this message's consequences are worked out, so a handler
        # that posts to its own actor queues up like everybody else.
        if self._mailbox:
            self._serve()
        if type(message) is _Sent:
            self._begun(message.sender)
        self._handle(_content(message))

    def _begun(self, sender: Actor[Any]) -> None:
        """A message that cost credit is being handled: that counts towards a grant."""
        assert self.flow is not None
        self._senders[sender.name] = sender
        self._grant(self.flow.handled(sender.name))


def _content(message: Any) -> Any:
    return message.message if type(message) is _Sent else message
