"""The consumers of a quorum queue: who is attached, who is served next, which one is active."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from .quorum_commands import Active, QuorumEffect
from .quorum_consumer import QuorumConsumer, next_active


class QuorumLine:
    """Consumers, and the line of those that may have a message now.

    Args:
        single_active: one consumer at a time gets messages.

    Attributes:
        active: the single active consumer; None if there is none, or every one is active.
        turn: names of those that may have a message, whose turn it is first.
    """

    def __init__(self, *, single_active: bool) -> None:
        self.single_active = single_active
        self.active: str | None = None
        self.turn: deque[str] = deque()
        self._known: dict[str, QuorumConsumer] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[QuorumConsumer]:
        return iter(tuple(self._known.values()))

    def names(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return tuple(self._known)

    def get(self, name: str) -> QuorumConsumer | None:
        """A consumer; None if it is not attached."""
        return self._known.get(name)

    def attach(self, consumer: QuorumConsumer, ready: int) -> list[QuorumEffect]:
        """A new consumer, while so many messages are ready."""
        self._known[consumer.name] = consumer
        effects = self.activate(ready)
        self.place(consumer)
        return effects

    def detach(self, name: str) -> QuorumConsumer | None:
        """Take a consumer out; returns it, or None if it is not attached."""
        consumer = self._known.pop(name, None)
        if consumer is not None:
            if consumer.waits:
                self.turn.remove(name)
            if name == self.active:
                self.active = None
        return consumer

    def serve_next(self) -> QuorumConsumer:
        """Whose turn it is; it leaves the line."""
        consumer = self._known[self.turn.popleft()]
        consumer.waits = False
        return consumer

    def place(self, consumer: QuorumConsumer) -> None:
        """Put a consumer in the line, or take it out, as it may have a message now or not."""
        may = consumer.link_credit > 0 and self.may_have(consumer.name)
        if may and not consumer.waits:
            consumer.waits = True
            self._line_up(consumer)
        elif consumer.waits and not may:
            consumer.waits = False
            self.turn.remove(consumer.name)

    def _line_up(self, consumer: QuorumConsumer) -> None:
        """Behind those of its priority and of higher ones."""
        turn, known, priority = self.turn, self._known, consumer.priority
        at = len(turn)
        while at and known[turn[at - 1]].priority < priority:
            at -= 1
        turn.insert(at, consumer.name)

    def is_active(self, consumer: str) -> bool:
        """Whether it is no consumer that waits for another one."""
        return not self.single_active or consumer == self.active

    def may_have(self, consumer: str) -> bool:
        """Whether messages are for this consumer, and it takes new ones."""
        return self.is_active(consumer) and not self._known[consumer].quiescing

    def activate(self, ready: int, *, told: bool = True) -> list[QuorumEffect]:
        """Choose the single active consumer: one with a higher priority takes over.

        Args:
            ready: so many messages are.
            told: one that makes way after it was quiescing is told.
        """
        if not self.single_active:
            return []
        before = self._known.get(self.active) if self.active is not None else None
        quiescing = before is not None and before.quiescing
        chosen, changed = next_active(self._known, self.active)
        effects: list[QuorumEffect] = []
        if chosen is not None and (chosen is not before or (changed and not chosen.quiescing)):
            self.active = chosen.name
            self.place(chosen)
            if chosen is not before:
                effects.append(Active(chosen.client, chosen.name, ready))
        for consumer in changed:
            self.place(consumer)  # nothing new for it
            if consumer is not chosen and (told or not quiescing):
                effects.append(Active(consumer.client, consumer.name, 0, active=False))
        return effects
