"""What stands between a queue and a consumer of AMQP 0-9-1, or a basic.get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from workbench.broker import PlainConsumer, QueueProcess
from workbench.queues import CreditReply, Deliver


class Taker(Protocol):
    """A channel, as its consumers see it."""

    def takes(self, consumer: QueueConsumer) -> bool:
        """Whether a message can be delivered to it now."""

    def take(self, consumer: QueueConsumer, effect: Deliver) -> None:
        """Deliver a message when the channel comes to it."""

    def answer_get(self, getter: Getter) -> None:
        """A basic.get has got what it could."""


class QueueConsumer(PlainConsumer):
    """One consumer of a queue.

    Args:
        channel: on which it is.
        name: unique at the broker.
        tag: of the consumer on its channel.
        queue: that serves it.
        no_ack: its messages are settled as they leave.

    Attributes:
        coming: messages that the queue has handed out and the channel has not come to.
        freed: called when the queue has answered its cancel; None before there is one, and after.
    """

    freed: Callable[[], None] | None = None

    def __init__(
        self, channel: Taker, name: str, tag: str, queue: QueueProcess, *, no_ack: bool
    ) -> None:
        self.name = name
        self.tag = tag
        self.queue = queue
        self.no_ack = no_ack
        self.coming = 0
        self._channel = channel

    def can_take(self) -> bool:
        """False while the channel cannot: its shared prefetch is full, or too much is unsent."""
        return self._channel.takes(self)

    def deliver(self, effect: Deliver) -> None:
        """A message for it."""
        self._channel.take(self, effect)


class Getter(QueueConsumer):
    """A basic.get: a consumer of one message at most.

    Attributes:
        got: the message; None: there was none.
    """

    got: Deliver | None = None
    _channel: Taker

    def deliver(self, effect: Deliver) -> None:
        """The message."""
        self.got = effect

    def can_take(self) -> bool:
        """A client that asks for a message gets it."""
        return True

    def credit_replied(self, reply: CreditReply) -> None:
        """The queue has done what it could."""
        self._channel.answer_get(self)
