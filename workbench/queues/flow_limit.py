"""Qpid C++'s queue: a limit that refuses, and two watermarks that hold completions back.

The rules are those of `broker/QueueFlowLimit.cpp` and `Queue::checkDepth`. What a queue holds is
counted from taking in to removing: a message that was handed out and not accepted counts.

* Above `stop` the queue is stopped (saturated); below `resume` it is no more. Both comparisons are
  strict: with stop 7 and resume 5 the eighth message stops it, and it goes on when four are left.
* Either of count and size stops it; both must be below to go on.
* While it is stopped a message that comes is taken in and its confirm is held. When the queue goes
  on, all that it holds are confirmed.
* A held message that leaves the queue is confirmed at once, although the queue is still stopped.
* A message with which the queue would hold more than its maximum is refused, and by a ring one
  that is larger than that alone (`LossyQueue.cpp`).

How a message waits for several queues is `broker.unconfirmed`: it counts from the routing on, and
each queue's confirm takes one off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .arguments import DROP_HEAD, QueueArgumentError, QueueArguments
from .base import (
    Command,
    Confirm,
    DeadLettered,
    Deliver,
    Dropped,
    Effect,
    Enqueue,
    FlowChanged,
    Held,
    Meta,
    Rejected,
    Reply,
    Settle,
    SetWatermarks,
)
from .classic import NO_META, ClassicQueue

MAX_COUNT, MAX_SIZE, POLICY = "qpid.max_count", "qpid.max_size", "qpid.policy_type"
STOP_COUNT, RESUME_COUNT = "qpid.flow_stop_count", "qpid.flow_resume_count"
STOP_SIZE, RESUME_SIZE = "qpid.flow_stop_size", "qpid.flow_resume_size"
RING, SELF_DESTRUCT = "ring", "self-destruct"
RESOURCE_LIMIT = "resource-limit-exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowThresholds:
    """The limits of one queue; 0 is none.

    Attributes:
        max_count, max_size: messages and octets that it may hold.
        stop_count, stop_size: above either it is stopped.
        resume_count, resume_size: below both it goes on.
        ring: at its maximum the oldest message goes, and completions are never held.
        holds: completions are held while it is stopped; otherwise it says only that it is.
    """

    max_count: int = 0
    max_size: int = 0
    stop_count: int = 0
    resume_count: int = 0
    stop_size: int = 0
    resume_size: int = 0
    ring: bool = False
    holds: bool = True

    @classmethod
    def by_session(cls, arguments: Mapping[str, Any], *, resume_percent: int) -> FlowThresholds:
        """The limits of a queue of Broker-J's with the policy PRODUCER_FLOW_CONTROL.

        Above its maximum whoever publishes is held, and nothing is refused; with so many per cent
        of it or fewer, rounded up, the queue goes on.

        Raises:
            QueueArgumentError: a value is no number.
        """
        count, size = (_number(arguments, name, 0) for name in (MAX_COUNT, MAX_SIZE))
        # Here the queue goes on *below* its resume mark.
        upto = [-(-most * resume_percent // 100) + 1 if most else 0 for most in (count, size)]
        return cls(
            stop_count=count,
            resume_count=upto[0],
            stop_size=size,
            resume_size=upto[1],
            holds=False,
        )

    @classmethod
    def declared(
        cls,
        arguments: Mapping[str, Any],
        *,
        default_max_size: int = 0,
        stop_percent: int = 0,
        resume_percent: int = 0,
    ) -> FlowThresholds:
        """The limits of a queue that is declared with these arguments.

        Args:
            arguments: by Qpid's names; others are read over.
            default_max_size: octets, where the queue names none (`default-queue-limit`).
            stop_percent: of the maximum, where the queue names no stop; 0: none.
            resume_percent: likewise.

        Raises:
            QueueArgumentError: a value is no number, or resume lies above stop, or stop above max,
                or the queue is to delete itself.
        """
        policy = arguments.get(POLICY)  # an unknown one is read over, as in `QueueSettings::handle`
        if policy == SELF_DESTRUCT:
            raise QueueArgumentError(f"{POLICY} {policy!r} is not offered; legal: none, {RING}")
        max_count = _number(arguments, MAX_COUNT, 0)
        max_size = _number(arguments, MAX_SIZE, default_max_size)
        if policy == RING:
            return cls(max_count=max_count, max_size=max_size, ring=True)
        stops, resumes = [], []
        for unit, most, stop_name, resume_name in (
            ("count", max_count, STOP_COUNT, RESUME_COUNT),
            ("size", max_size, STOP_SIZE, RESUME_SIZE),
        ):
            # As Qpid C++ rounds: stop to the nearest number, resume down, in its floating point:
            # of 90 it takes 70 per cent to be 62.
            stop = _number(arguments, stop_name, int(most * (stop_percent / 100) + 0.5))
            resume = _number(arguments, resume_name, int(most * (resume_percent / 100)))
            if stop and resume > stop:
                raise QueueArgumentError(
                    f"{resume_name} {resume} lies above {stop_name} {stop}; legal: 0 to {stop}"
                )
            if stop and most and stop > most:
                raise QueueArgumentError(
                    f"{stop_name} {stop} lies above qpid.max_{unit} {most}; legal: 0 to {most}"
                )
            stops.append(stop)
            resumes.append(resume or stop)
        return cls(
            max_count=max_count,
            max_size=max_size,
            stop_count=stops[0],
            resume_count=resumes[0],
            stop_size=stops[1],
            resume_size=resumes[1],
        )

    def full(self, count: int, size: int) -> bool:
        """Whether a queue may not hold so much."""
        return bool(self.max_count and count > self.max_count) or bool(
            self.max_size and size > self.max_size
        )


_DIGITS = 20
"""Of a number of 64 bits; Python refuses to read a text of thousands."""


def _number(arguments: Mapping[str, Any], name: str, default: int) -> int:
    value = arguments.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise QueueArgumentError(f"{name} is {value!r}; legal: a number, 0 or more")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class QpidQueueArguments(QueueArguments):
    """How a queue of Qpid C++ is declared.

    Attributes:
        thresholds: its limits.
    """

    thresholds: FlowThresholds = field(default_factory=FlowThresholds)

    def __post_init__(self) -> None:
        """Nothing: `FlowThresholds.declared` has checked."""

    def to_x(self) -> dict[str, Any]:
        """The limits by Qpid's names, as far as there are any."""
        limits = self.thresholds
        found = {
            MAX_COUNT: limits.max_count,
            MAX_SIZE: limits.max_size,
            STOP_COUNT: limits.stop_count,
            RESUME_COUNT: limits.resume_count,
            STOP_SIZE: limits.stop_size,
            RESUME_SIZE: limits.resume_size,
            POLICY: RING if limits.ring else 0,
        }
        return {name: value for name, value in found.items() if value}

    @classmethod
    def of(cls, thresholds: FlowThresholds) -> QpidQueueArguments:
        """A queue with these limits; at that of a ring the oldest message is dropped."""
        if not thresholds.ring:
            return cls(thresholds=thresholds)
        return cls(
            thresholds=thresholds,
            max_length=thresholds.max_count or None,
            max_length_bytes=thresholds.max_size or None,
            overflow=DROP_HEAD,
        )


@dataclass(slots=True)
class QueueFlowLimit:
    """The watermarks of one queue.

    Attributes:
        thresholds: the watermarks; Qpid C++ never changes them, though that was wanted of it.
        count, size: what the queue holds: messages, and their octets.
        stopped: confirms are held (`flowStopped`).
        stopped_count: how often it was stopped (`flowStoppedCount`).
        pending: whom to confirm to, by message, of those that are held.
    """

    thresholds: FlowThresholds
    count: int = 0
    size: int = 0
    stopped: bool = False
    stopped_count: int = 0
    pending: dict[int, Any] = field(default_factory=dict)

    def enqueued(self, message_id: int, size: int, publish: Any) -> list[Effect]:
        """A message is taken in: it is confirmed, or its confirm is held."""
        self.count += 1
        self.size += size
        effects = self._stop() if self.over and not self.stopped else []
        # While anything is held it is stopped: the one ends with the other.
        if self.stopped and self.thresholds.holds:
            self.pending[message_id] = publish
            return [Held(publish=publish), *effects]
        return [*effects, Confirm(publish=publish)]

    def dequeued(self, message_id: int, size: int) -> list[Effect]:
        """A message has left: it is confirmed, and perhaps all others that are held."""
        self.count -= 1
        self.size -= size
        effects = self._go_on()
        if self.stopped and message_id in self.pending:
            effects.append(Confirm(publish=self.pending.pop(message_id), held=True))
        return effects

    def change(self, thresholds: FlowThresholds) -> list[Effect]:
        """Other watermarks hold at once: the queue may stop, or go on."""
        self.thresholds = thresholds
        if self.stopped or not self.over:
            return self._go_on()
        return self._stop()

    @property
    def over(self) -> bool:
        """Whether the queue holds more than a high mark, stopped or not."""
        limits = self.thresholds
        return bool(limits.stop_count and self.count > limits.stop_count) or bool(
            limits.stop_size and self.size > limits.stop_size
        )

    def _stop(self) -> list[Effect]:
        self.stopped = True
        self.stopped_count += 1
        return [FlowChanged(stopped=True)]

    def _go_on(self) -> list[Effect]:
        """Confirm all that is held, if the queue is below its low marks."""
        limits = self.thresholds
        under = (not limits.resume_size or self.size < limits.resume_size) and (
            not limits.resume_count or self.count < limits.resume_count
        )
        if not (self.stopped and under):
            return []
        self.stopped = False
        released, self.pending = self.pending, {}
        confirms = [Confirm(publish=publish, held=True) for publish in released.values()]
        return [FlowChanged(stopped=False), *confirms]


class QpidQueue(ClassicQueue):
    """A classic queue under Qpid C++'s limits.

    Args:
        name: of the queue.
        arguments: how it was declared.
        created_us: when.

    Attributes:
        flow: its watermarks, and what they hold.
    """

    def __init__(self, name: str, arguments: QpidQueueArguments, created_us: int = 0) -> None:
        super().__init__(name, arguments, created_us)
        self.flow = QueueFlowLimit(arguments.thresholds)
        self._sizes: dict[int, int] = {}  # of what it holds, by message id

    def apply(self, command: Command, meta: Meta = NO_META) -> tuple[Reply, list[Effect]]:
        """Obey one command; see `ClassicQueue.apply`."""
        flow = self.flow
        if isinstance(command, SetWatermarks):
            return None, flow.change(
                replace(
                    flow.thresholds,
                    stop_count=command.stop_count,
                    resume_count=command.resume_count or command.stop_count,
                    stop_size=command.stop_size,
                    resume_size=command.resume_size or command.stop_size,
                )
            )
        if isinstance(command, Enqueue):
            size = command.message.size
            limits = flow.thresholds
            held = (0, 0) if limits.ring else (flow.count, flow.size)  # a ring makes room
            if limits.full(held[0] + 1, held[1] + size):
                return None, [Rejected(publish=command.publish, reason=RESOURCE_LIMIT)]
        reply, effects = super().apply(command, meta)
        if isinstance(command, Settle):
            for message_id in command.message_ids:
                effects += self._left(message_id)
        told: list[Effect] = []
        for effect in effects:
            match effect:
                case Confirm(publish=publish, held=False) if isinstance(command, Enqueue):
                    message_id = self.enqueued - 1
                    self._sizes[message_id] = command.message.size
                    told += flow.enqueued(message_id, command.message.size, publish)
                case Dropped(message=message) | DeadLettered(message=message):
                    told += [effect, *self._left(message.message_id)]
                case Deliver(message=message, settled=True):
                    told += [effect, *self._left(message.message_id)]
                case _:
                    told.append(effect)
        return reply, told

    def overview(self) -> dict[str, int | str]:
        """Flat picture: the queue's own, and `flow_stopped`, `flow_stopped_count`, `held`."""
        return {
            **super().overview(),
            "flow_stopped": int(self.flow.stopped),
            "flow_stopped_count": self.flow.stopped_count,
            "held": len(self.flow.pending),
        }

    def _left(self, message_id: int) -> list[Effect]:
        return self.flow.dequeued(message_id, self._sizes.pop(message_id))
