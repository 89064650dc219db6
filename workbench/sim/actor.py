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
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct

from .clock import REACT, Clock, Timer
from .credit_flow import CreditFlow, Grant

MessageT = TypeVar("MessageT")
KindT = TypeVar("KindT")


class _Sent(Struct, frozen=True):
    """In a mailbox: a message that a process has spent credit on."""

    sender: Actor[Any]
    message: Any


class CreditWatch(Protocol):
    """Told what becomes of a process's credit, right after it has counted."""

    def spent(self, to: str, left: int) -> None:
        """It has sent a message; so much credit is left for that process, perhaps below 0."""

    def came(self, by: str, left: int) -> None:
        """A grant has come, and so much credit is there now."""

    def granted(self, to: str, credit: int) -> None:
        """It grants so much more to a process that sends to it."""

    def kept(self, to: str, credit: int) -> None:
        """It would grant, and keeps it to itself: it is blocked."""


class Actor(Generic[MessageT]):
    """Handles the messages of its mailbox in order, each after its service time.

    Args:
        clock: of the run.
        name: who it is in a trace, such as `queue:q`.
        service_us: microseconds that one message takes; a function of the message may be given.
        handle: does what a message asks for.
        flow: credit between this process and others; None: it counts none.
        owns_socket: it serves nothing while it is blocked. Who owns no socket goes on with what it
            has, and keeps its grants to itself: that stops those before it.
        blocking: told when it is blocked, and when it is no longer.
        bumped: told when a grant has come, and was counted.
        watch: told what else becomes of its credit.
        penalty_ns: nanoseconds that it loses when it sends for no credit, for each message that
            waits at the receiver; what is below a microsecond is carried over.

    Attributes:
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
        bumped: Callable[[], None] | None = None,
        watch: CreditWatch | None = None,
        penalty_ns: int = 0,
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
        self._bumped = bumped
        self._watch = watch
        self._penalty_ns = penalty_ns
        self._lost_ns = 0
        self._blocked = False  # as was told
        self._ended = False
        self._peers: dict[str, Actor[Any]] = {}  # that it counts credit with, either way

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

    def send(self, to: Actor[Any], message: Any, *, told: bool = True) -> None:
        """Post a message to another process, for credit where both count it.

        What is sent to one that has ended is lost, and costs nothing.

        Args:
            to: the other process.
            message: what it gets.
            told: False for one of many; `tell` says at the end what they have come to.
        """
        if not to._ended and (self.flow is None or to.flow is None):
            self._lost_ns += self._penalty_ns * to.depth
        self.spend(to)
        to.take(self, message)
        if told:
            self.tell(to)

    def spend(self, to: Actor[Any]) -> None:
        """Take a credit for a message that another process gets later, by whatever way."""
        if to._ended or self.flow is None or to.flow is None:
            return
        if self._peers.get(to.name) is not to:
            self._peers[to.name], to._peers[self.name] = to, self
        self.flow.send(to.name, to.flow.initial)

    def take(self, sender: Actor[Any] | None, message: Any) -> None:
        """A message has come, for which its sender has spent a credit if both count it."""
        if self._ended:
            return
        if sender is not None and sender.flow is not None and self.flow is not None:
            message = _Sent(sender, message)
        self.post(message)

    def tell(self, to: Actor[Any]) -> None:
        """Say what is left of the credit with another process, and stop if that is nothing."""
        if self.flow is None or to.name not in self.flow.credit_from:
            return
        if self._watch is not None:
            self._watch.spent(to.name, self.flow.credit_from[to.name])
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

    def end(self) -> None:
        """The process is gone, with all in its mailbox: nobody waits for it (`peer_down`)."""
        self._ended = True
        self._mailbox.clear()
        self.stall()
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            peer._lost(self)

    def _lost(self, peer: Actor[Any]) -> None:
        assert self.flow is not None
        if self._peers.get(peer.name) is peer:
            del self._peers[peer.name]
            self._grant(self.flow.lost(peer.name))
            self._look()

    def _granted(self, grant: Grant, by: Actor[Any]) -> None:
        """More credit has come; of a process that is gone meanwhile it means nothing."""
        assert self.flow is not None
        if self._peers.get(by.name) is not by:
            return
        grants = self.flow.granted(by.name, grant.credit)
        if self._watch is not None:
            self._watch.came(by.name, self.flow.credit_from[by.name])
        self._grant(grants)
        self._look()
        if self._bumped is not None:
            self._bumped()

    def _grant(self, grants: list[Grant]) -> None:
        for grant in grants:
            if self._watch is not None:
                self._watch.granted(grant.to, grant.credit)
            granted = self._peers[grant.to]._granted
            self._clock.call_soon(granted, grant, self, priority=REACT)

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

    @property
    def blocked(self) -> bool:
        """Somebody downstream must go on first."""
        return self.flow is not None and self.flow.blocked

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
        if self._lost_ns:
            lost, self._lost_ns = divmod(self._lost_ns, 1000)
            delay += lost
        if delay:
            self._timer = self._clock.call_later(delay, self._finish)
        else:
            self._timer = self._clock.call_soon(self._finish, priority=REACT)

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
        if self._peers.get(sender.name) is not sender:
            return  # it is gone
        kept = len(self.flow.kept)
        self._grant(self.flow.handled(sender.name))
        if self._watch is not None and len(self.flow.kept) > kept:
            self._watch.kept(*self.flow.kept[-1])


def _content(message: Any) -> Any:
    return message.message if type(message) is _Sent else message
