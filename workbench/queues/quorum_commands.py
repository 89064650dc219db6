"""What goes into a quorum queue's log besides the commands of every queue, and what comes out.

A command in the log is the same on every replica, so it holds data alone: who sent it and with
which number, and the time that its sender's clock showed. The replicas' effects are the same too;
the leader's alone are carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .base import Checkout, Command, Credited, Deliver, Dropped, Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumCheckout(Checkout):
    """Attach a consumer; on a queue with a single active one a higher priority takes over.

    Attributes:
        prefetch: simple-prefetch: so many messages may be unsettled, and each settlement gives
            credit back; None: credited, by `Credit` alone, as an AMQP 1.0 link.
    """

    prefetch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDown:
    """A client's process is lost: what its consumers hold goes back as a failed attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """A consumer asks, under a new leader, for what it was handed and may not have got.

    Attributes:
        number: of the first delivery that it has not seen.
    """

    consumer: str
    number: int


QuorumCommand = Command | ClientDown | Resume


class Logged(NamedTuple):
    """A command as it stands in the log.

    Attributes:
        client: who sent it.
        seq: its number among that client's commands, from 1; the answer names it, and a command
            that comes a second time is known by it. 0: it is never sent again.
        enqueue_seq: its number among that client's messages, from 1; 0 if it is no message.
        t_us: when it was sent.
    """

    client: str
    seq: int
    enqueue_seq: int
    command: QuorumCommand
    t_us: int = 0


# -- replies --------------------------------------------------------------------------------


class OutOfOrder(NamedTuple):
    """An earlier command of this client is missing: this one was not obeyed; send all again."""

    expected: int


class Refused(NamedTuple):
    """The command cannot be obeyed; the text says why, and what is legal."""

    reason: str


QuorumReply = Reply | OutOfOrder | Refused

# -- effects --------------------------------------------------------------------------------


class Handed(NamedTuple):
    """A message goes to a consumer.

    Attributes:
        client: behind which the consumer is.
        number: of the delivery among this consumer's, from 0.
    """

    client: str
    number: int
    deliver: Deliver


class Answered(NamedTuple):
    """The answer to a consumer's credit; what it brought was handed out before.

    Attributes:
        seq: of the command that granted the credit, or took it.
        number: of the next delivery: whoever has not seen those before it is to wait for them.
    """

    client: str
    consumer: str
    seq: int
    number: int
    credited: Credited


class Active(NamedTuple):
    """On a queue with a single active consumer this one is it from now on, or no longer.

    Attributes:
        available: messages ready for it then, before it was handed any.
        active: it is; False: it has made way for one of a higher priority.
    """

    client: str
    consumer: str
    available: int
    active: bool = True


class Full(NamedTuple):
    """Overflow `reject-publish`: the queue is full, or no longer; told to every publisher."""

    full: bool


QuorumEffect = Handed | Answered | Active | Full | Dropped
