"""What a consumer asks for beside its queue: which arguments a queue takes, and their values.

`rabbit_amqqueue.erl:check_consume_arguments`: first the values of those that the queue's type
takes, then whether one is there that another type alone does. One that no type knows is read over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.amqp091.errors import ReplyCode
from workbench.broker import QueueProcess
from workbench.frontends.consumer_terms import Filters
from workbench.presets import Preset
from workbench.queues.arguments import INTEGERS, type_name
from workbench.queues.stream import OFFSET

from .content import asked_offset
from .faults import RefusedError

PRIORITY = "x-priority"


def read_arguments(
    arguments: Mapping[str, Any], queue: QueueProcess, preset: Preset
) -> tuple[int, Filters]:
    """A consumer's priority, and where it begins in a stream.

    Args:
        arguments: of basic.consume.
        queue: that it names.
        preset: which arguments are known, and what becomes of a place that is none.

    Raises:
        RefusedError: a value has the wrong type or is none, or an argument is for another type of
            queue.
    """
    kind = queue.arguments.queue_type
    invalid = f"for queue '{queue.name}' in vhost '/'"
    taken = dict(preset.consumer_arguments)
    for name, check in _CHECKS.items():
        if name in arguments and kind in taken.get(name, ()):
            fault = check(arguments[name])
            if fault:
                text = f"invalid arg '{name}' {invalid}: {fault}"
                raise RefusedError(ReplyCode.PRECONDITION_FAILED, text)
    filters = Filters(offset=asked_offset(arguments))
    no_place = filters.fault(kind)
    if no_place is not None:
        told = preset.refuses_links  # else the channel crashes over it
        raise RefusedError(
            ReplyCode.PRECONDITION_FAILED if told else ReplyCode.INTERNAL_ERROR,
            f"invalid arg '{OFFSET}' {invalid}: {no_place}",
        )
    for name in arguments:
        if kind not in taken.get(name, (kind,)):
            text = f"invalid arg '{name}' {invalid} of queue type rabbit_{kind}_queue"
            raise RefusedError(ReplyCode.PRECONDITION_FAILED, text)
    return arguments.get(PRIORITY, 0), filters


def _no_integer(value: object) -> str:
    found = type_name(value)
    return "" if found in INTEGERS else f'"expected integer, got {found}"'


def _negative(value: Any) -> str:
    return _no_integer(value) or (f"{{value_negative,{value:d}}}" if value < 0 else "")


def _no_truth(value: object) -> str:
    return "" if isinstance(value, bool) else f"{{unacceptable_type,{type_name(value)}}}"


_CHECKS: dict[str, Callable[[Any], str]] = {
    PRIORITY: _no_integer,
    "x-consumer-timeout": _negative,
    "x-cancel-on-ha-failover": _no_truth,
}
"""What is wrong with a value, in RabbitMQ's words; empty: nothing."""
