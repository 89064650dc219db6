"""What a consumer asks of a queue in its attach: a priority, and where in a stream to begin.

The names are RabbitMQ's: the link property `rabbitmq:priority`, and in the source's filter set
`rabbitmq:stream-offset-spec` (`rabbit_amqp_session.erl:parse_attach_properties`, `parse_filter`;
`rabbit_stream_queue.erl:parse_offset_arg`).
"""

from __future__ import annotations

import re
from typing import Any

from workbench.amqp.errors import ErrorCondition
from workbench.amqp.link import Link
from workbench.amqp.messaging import Error, Source
from workbench.amqp.values import Described, Int, MapPairs, Symbol, Timestamp
from workbench.queues import QueueArguments, Start
from workbench.queues.arguments import MS_OF_UNIT, STREAM

PRIORITY, OFFSET_SPEC = "rabbitmq:priority", "rabbitmq:stream-offset-spec"
PLACES = ("first", "last", "next")
US_PER_MS = 1000

_AGE = re.compile(r"([0-9]+)([YMDhms])")


class OffsetSpecError(ValueError):
    """A stream cannot begin there; the text says what is legal."""


def filter_in_force(source: object, arguments: QueueArguments) -> dict[object, object] | None:
    """Of the filters that a client asked for those that the queue applies; told in the answer."""
    value = offset_spec(source) if arguments.queue_type == STREAM else None
    return None if value is None else {Symbol(OFFSET_SPEC): value}


def fault_in(source: object, arguments: QueueArguments) -> Error | None:
    """Why a consumer with this source is refused, or None."""
    try:
        start_of(source, arguments)
    except OffsetSpecError as error:
        return Error(condition=ErrorCondition.INVALID_FIELD, description=str(error))
    return None


def priority_of(link: Link) -> int:
    """The consumer's priority; 0 if it names none. An int is heeded alone, no long, no ubyte."""
    peer = link.remote_attach
    properties = peer.properties if peer is not None and peer.properties else None
    found = properties.get(Symbol(PRIORITY)) if isinstance(properties, dict) else None
    return int(found) if isinstance(found, Int) else 0


def offset_spec(source: object) -> Any:
    """The offset spec as the client gave it, described or not; None if it gave none."""
    filters = source.filter if isinstance(source, Source) else None
    pairs = filters.pairs if isinstance(filters, MapPairs) else (filters or {}).items()
    return next((value for name, value in pairs if name == OFFSET_SPEC), None)


def start_of(source: object, arguments: QueueArguments) -> Start | None:
    """Where a consumer with this source begins in a stream; None: with the next message.

    Args:
        source: of its link.
        arguments: of the queue; one that is no stream has no places.

    Raises:
        OffsetSpecError: the filter has another value than a place, an offset or a time.
    """
    if arguments.queue_type != STREAM:
        return None
    value = offset_spec(source)
    if isinstance(value, Described):
        value = value.value
    if value is None:
        return None
    if isinstance(value, Timestamp):
        return Start(t_us=int(value) * US_PER_MS)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Start(offset=int(value))
    if isinstance(value, str):
        if value in PLACES:
            return Start(at=str(value))
        age = _AGE.fullmatch(value)
        if age is not None and int(age[1]) > 0:
            return Start(age_us=int(age[1]) * MS_OF_UNIT[age[2]] * US_PER_MS)
    raise OffsetSpecError(
        f"{OFFSET_SPEC} {value!r} is no place in a stream; legal: {', '.join(PLACES)}, an offset of"
        " 0 or more, a timestamp, or an age such as 30s or 7D"
    )
