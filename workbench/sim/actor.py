"""An actor: a mailbox and somebody who handles one message at a time.

Backpressure in the workbench is never scripted: it comes about because an actor needs its service
time for every message and its mailbox grows meanwhile. A process of the Erlang machine, a thread
behind a queue and a disk that syncs are all drawn this way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from .clock import Priority, Timer, VirtualClock

MessageT = TypeVar("MessageT")
KindT = TypeVar("KindT")


class Actor(Generic[MessageT]):
    """Handles the messages of its mailbox in order, each after its service time.

    Args:
        prompt: what takes no time is done within the event that brings it; see `Wire`.

    Attributes:
        name: who it is in a trace, such as `queue:q`.
        service_us: microseconds that one message takes; a function of the message may be given.
        depth: messages waiting or being served.
        stalled: nothing is served; the mailbox fills.
    """

    def __init__(
        self,
        clock: VirtualClock,
        name: str,
        *,
        service_us: int | Callable[[MessageT], int],
        handle: Callable[[MessageT], None],
        prompt: bool = False,
    ) -> None:
        self.name = name
        self.service_us = service_us
        self._clock = clock
        self._handle = handle
        self._mailbox: deque[MessageT] = deque()
        self._timer: Timer | None = None
        self._handled = 0
        self._deepest = 0
        self.stalled = False
        self._prompt = prompt
        self._promised = False  # to be served at the end of this event

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
        if self._timer is None and not self._promised and not self.stalled:
            self._serve()

    def waiting(self, kind: type[KindT]) -> list[KindT]:
        """The messages of a kind in the mailbox, oldest first."""
        return [message for message in self._mailbox if isinstance(message, kind)]

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
        kept = deque(message for message in self._mailbox if not unwanted(message))
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
        delay = service(self._mailbox[0]) if callable(service) else service
        if delay == 0 and self._prompt:
            if not self._promised:
                self._promised = True
                self._clock.at_once(self._serve_now)
            return
        priority = Priority.REACT if delay == 0 else Priority.NORMAL
        self._timer = self._clock.call_later(delay, self._finish, priority=priority)

    def _serve_now(self) -> None:
        self._promised = False
        if self._mailbox and not self.stalled:
            self._finish()

    def _finish(self) -> None:
        self._timer = None
        message = self._mailbox.popleft()
        self._handled += 1
        # The next service begins before this message's consequences are worked out, so a handler
        # that posts to its own actor queues up like everybody else.
        if self._mailbox:
            self._serve()
        self._handle(message)
