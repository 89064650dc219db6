"""What a channel in confirm mode tells its publisher, and when."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from workbench.amqp091.methods import BasicAck, BasicNack, Method
from workbench.broker import Outcome, Refused


class Confirms:
    """Messages that a channel owes its publisher a word about.

    Args:
        send: sends a method to the publisher.
        soon: calls a task when what happens in this moment is done.
    """

    def __init__(
        self, send: Callable[[Method], None], soon: Callable[[Callable[[], None]], object]
    ) -> None:
        self._send = send
        self._soon = soon
        self._unconfirmed: dict[int, None] = {}
        self._acks: list[int] = []
        self._nacks: list[int] = []

    def __len__(self) -> int:
        """How many messages nothing is known of yet."""
        return len(self._unconfirmed)

    def published(self, number: int) -> None:
        """A message has come, and must be confirmed or refused."""
        self._unconfirmed[number] = None

    def settled(self, number: int, outcome: Outcome) -> None:
        """What has become of a message: told soon, with others."""
        self._unconfirmed.pop(number, None)
        if not self._acks and not self._nacks:
            self._soon(self.tell)
        (self._nacks if type(outcome) is Refused else self._acks).append(number)

    def tell(self) -> None:
        """Tell what has been confirmed, then what was refused (`send_confirms_and_nacks`).

        A channel does so whenever it has obeyed a method (`next_state`).
        """
        acks, nacks = sorted(self._acks), sorted(self._nacks)
        self._acks, self._nacks = [], []
        if len(acks) == 1:  # of a nack alone RabbitMQ says `multiple`
            self._send(BasicAck(delivery_tag=acks[0]))
        else:
            self._tell_all(acks, nacks, BasicAck)
        self._tell_all(nacks, acks, BasicNack)

    def _tell_all(
        self, numbers: list[int], others: list[int], method: type[BasicAck | BasicNack]
    ) -> None:
        """Up to the first that is open, or among the others, in one method."""
        still = min([*islice(self._unconfirmed, 1), *others[:1]], default=None)  # both ascend
        below = [number for number in numbers if still is None or number < still]
        if below:
            self._send(method(delivery_tag=below[-1], multiple=True))
        for number in numbers[len(below) :]:
            self._send(method(delivery_tag=number))
