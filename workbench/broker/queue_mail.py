"""What a queue at work and those around it say to each other.

`Consumer` is whoever stands between the queue and a link. `Publish` and `HAND_OUT` are what waits
in the queue's mailbox.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from workbench.queues import CreditReply, Deliver, Drained, Enqueue, Message, Origin, Stored
from workbench.sim import Actor

from .unconfirmed import QueueAnswer


class Consumer(Protocol):
    """What the queue asks of whoever stands between it and a link."""

    def can_take(self) -> bool:
        """False while a message could not be sent on at once (session window closed)."""

    def gives_up(self) -> bool:
        """Whether what it has requested is over although messages and credit are left."""

    def limits_size(self) -> bool:
        """Whether the receiver has said how large a message may be."""

    def too_large(self, message: Stored) -> bool:
        """True if the receiver takes no message of this size; as it would be sent now."""

    def refuse(self, message: Stored) -> None:
        """The link cannot go on, for this message would be next: end it."""

    def deliver(self, effect: Deliver) -> None:
        """Send this message."""

    def drained(self, effect: Drained) -> None:
        """The credit that is left was given back."""

    def credit_replied(self, reply: CreditReply) -> None:
        """The answer to a `request`: what it asked for has been handed out as far as it goes."""

    def activated(self, active: bool = True) -> None:
        """It is the queue's single active consumer from now on, or no longer."""

    def available(self, count: int) -> None:
        """So many messages are ready now."""

    def noticed(self) -> None:
        """Messages came or went otherwise than to a consumer; `available` was told before."""


class PlainConsumer:
    """A consumer that takes messages of any size, and whose protocol has no word for the rest.

    What it does with a message, and whether it takes one, it says itself.
    """

    def gives_up(self) -> bool:
        """It takes all that its credit can bring."""
        return False

    def limits_size(self) -> bool:
        """It does not."""
        return False

    def too_large(self, message: Stored) -> bool:
        """None is."""
        return False

    def refuse(self, message: Stored) -> None:
        """Never asked for."""

    def drained(self, effect: Drained) -> None:
        """Nobody is to be told."""

    def credit_replied(self, reply: CreditReply) -> None:
        """Nobody waits for it."""

    def activated(self, active: bool = True) -> None:
        """Nobody is to be told."""

    def available(self, count: int) -> None:
        """Nobody is to be told."""

    def noticed(self) -> None:
        """Nobody is to be told."""


class Mirrored(Protocol):
    """A mirror of the queue, as far as a message goes.

    Attributes:
        process: its mailbox.
    """

    process: Actor[Any]


class Publish(Struct, frozen=True):
    """In the mailbox: a message to be taken in, and whom to tell what has become of it.

    Attributes:
        at_once: it is taken only if a consumer takes it now.
    """

    message: Message
    origin: Origin
    answered: QueueAnswer | None
    at_once: bool = False
    via: Actor[Any] | None = None  # a channel that spends a credit at each mirror
    mirrors: tuple[Mirrored, ...] = ()  # to which it went as well

    def command(self, unable: frozenset[str]) -> Enqueue:
        """What the queue is told; this object comes back in what it says of the message."""
        return Enqueue(message=self.message, publish=self, origin=self.origin, unable=unable)


class HandOut:
    """In the mailbox: hand one message out."""


HAND_OUT = HandOut()

Mail: TypeAlias = Publish | HandOut | Callable[[], None]
"""What waits in a queue's mailbox; a call is answered in its turn."""
