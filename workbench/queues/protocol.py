"""What those who serve a queue, or look at it, ask of it, whatever its kind."""

from __future__ import annotations

from typing import Protocol

from .arguments import QueueArguments
from .base import Command, CreditReply, Effect, Meta, Reply, Stored


class QueueState(Protocol):
    """What can be read of a queue of any kind.

    Attributes:
        name: of the queue.
    """

    name: str

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""

    @property
    def unsettled(self) -> int:
        """Messages handed out and not yet settled."""

    @property
    def enqueued(self) -> int:
        """Messages ever taken in."""

    @property
    def active(self) -> str | None:
        """The single active consumer; None if there is none, or every one is active."""

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""

    def consumer(self, name: str) -> CreditReply:
        """Counters of one consumer."""

    def available_to(self, consumer: str) -> int:
        """Messages that a consumer could get."""

    def has_for(self, consumer: str) -> bool:
        """Whether a message is there that this consumer could get."""

    def deadline_us(self) -> int | None:
        """When an `Expire` would have an effect, if nothing happens before; None is never."""

    def overview(self) -> dict[str, int | str]:
        """Flat picture of the queue."""


class Queue(QueueState, Protocol):
    """A queue that is one state machine: a classic queue or a stream.

    Attributes:
        arguments: how it was declared.
        single_active: one consumer at a time gets messages.
    """

    arguments: QueueArguments
    single_active: bool

    @property
    def octets(self) -> int:
        """Sizes of the messages that it holds, ready or unsettled, added up."""

    def knows(self, consumer: str) -> bool:
        """Whether it is attached, or holds messages although it was cancelled."""

    def apply(self, command: Command, meta: Meta) -> tuple[Reply, list[Effect]]:
        """Obey a command; returns the reply and what should happen outside."""

    def next_out(self, unable: frozenset[str] = frozenset()) -> tuple[str, Stored] | None:
        """To whom a `Dispatch` with the same `unable` would hand which message."""

    def deliverable(self, unable: frozenset[str] = frozenset()) -> bool:
        """True if a `Dispatch` with the same `unable` would have an effect."""
