"""What whoever serves a queue asks of it, whatever its kind."""

from __future__ import annotations

from typing import Protocol

from .arguments import QueueArguments
from .base import Command, Credited, Effect, Meta, Reply, Stored


class Queue(Protocol):
    """A queue of any kind.

    Attributes:
        name: of the queue.
        arguments: how it was declared.
        single_active: one consumer at a time gets messages.
    """

    name: str
    arguments: QueueArguments
    single_active: bool

    @property
    def ready(self) -> int:
        """Messages that wait for a consumer."""

    @property
    def unsettled(self) -> int:
        """Messages handed out and not yet settled."""

    @property
    def octets(self) -> int:
        """Sizes of the messages that it holds, ready or unsettled, added up."""

    @property
    def active(self) -> str | None:
        """The single active consumer; None if there is none, or every one is active."""

    def apply(self, command: Command, meta: Meta) -> tuple[Reply, list[Effect]]:
        """Obey a command; returns the reply and what should happen outside."""

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""

    def consumer(self, name: str) -> Credited:
        """Counters of one consumer."""

    def available_to(self, consumer: str) -> int:
        """Messages that a consumer could get."""

    def has_for(self, consumer: str) -> bool:
        """Whether a message is there that this consumer could get."""

    def next_out(self, unable: frozenset[str] = frozenset()) -> tuple[str, Stored] | None:
        """To whom a `Dispatch` with the same `unable` would hand which message."""

    def deliverable(self, unable: frozenset[str] = frozenset()) -> bool:
        """True if a `Dispatch` with the same `unable` would have an effect."""

    def deadline_us(self) -> int | None:
        """When an `Expire` would have an effect, if nothing happens before; None is never."""

    def overview(self) -> dict[str, int | str]:
        """Flat picture of the queue."""
