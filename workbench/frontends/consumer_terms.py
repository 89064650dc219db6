"""What a consumer asks of a queue in its attach: a priority, and filters.

The names are RabbitMQ's: the link property `rabbitmq:priority`, and in the source's filter set what
is described as `rabbitmq:stream-offset-spec`, `rabbitmq:stream-filter` and
`rabbitmq:stream-match-unfiltered`, or as a filter on properties
(`rabbit_amqp_session.erl:parse_attach_properties`, `parse_filters`;
`rabbit_stream_queue.erl:parse_offset_arg`, `filter_spec`). Every queue echoes the filters that can
be read; a stream alone heeds them. Where to begin in a stream is asked for over AMQP 0-9-1 with the
same values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.link import Link
from workbench.amqp10.messaging import MessageAnnotations, Source, decode_section
from workbench.amqp10.value_text import value_text
from workbench.amqp10.values import Described, Int, MapPairs, Symbol, Timestamp
from workbench.presets import RABBITMQ, Preset
from workbench.queues import Selection, Start, Stored
from workbench.queues.arguments import STREAM, age_ms
from workbench.queues.limits import US_PER_MS

from .annotations import front_of
from .property_filters import PropertyFilter, property_filter, sections_of

PRIORITY = "rabbitmq:priority"
OFFSET_SPEC, STREAM_FILTER = "rabbitmq:stream-offset-spec", "rabbitmq:stream-filter"
MATCH_UNFILTERED, FILTER_VALUE = "rabbitmq:stream-match-unfiltered", "x-stream-filter-value"
STREAM_FILTERS = (OFFSET_SPEC, STREAM_FILTER, MATCH_UNFILTERED)
PLACES = ("first", "last", "next")
US_PER_S = 1_000_000

_VALUE = FILTER_VALUE.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """A source's filters, as far as this broker reads them.

    Attributes:
        in_force: told in the answer; None: nothing is.
        offset: where to begin in a stream, as the client gave it.
        values: `x-stream-filter-value` of the messages that are wanted; None: any.
        unfiltered: messages without such a value are wanted too.
        properties: filters on properties; all of them have to match.
    """

    in_force: dict[object, object] | MapPairs | None = None
    offset: Any = None
    values: frozenset[str] | None = None
    unfiltered: bool = False
    properties: tuple[PropertyFilter, ...] = field(default=())

    def fault(self, queue_type: str) -> str | None:
        """Why a consumer of such a queue cannot be, in words; None: it can."""
        if queue_type != STREAM or self.offset is None or _is_place(self.offset):
            return None
        return (
            f"offset {value_text(self.offset)} is no place in a stream; legal:"
            f" {', '.join(PLACES)}, an offset of 0 or more, a timestamp, or an age such as 30s or"
            " 7D"
        )

    def start(self, epoch_us: int) -> Start | None:
        """Where to begin in a stream; None: with the next message.

        Args:
            epoch_us: when the run's clock began, since 1970.
        """
        offset = self.offset
        if offset is None:
            return None
        if isinstance(offset, Timestamp):  # RabbitMQ counts in seconds
            return Start(t_us=int(offset) // 1000 * US_PER_S - epoch_us)
        if isinstance(offset, int):
            return Start(offset=int(offset))
        if offset in PLACES:
            return Start(at=str(offset))
        age = age_ms(offset)
        assert age is not None, "refused by `fault`"
        return Start(age_us=age * US_PER_MS)

    def selection(self) -> Selection | None:
        """Which messages of a stream are wanted; None: all."""
        if self.values is None and not self.properties:
            return None
        return Selection(
            passes=None if self.values is None else self._passes,
            matches=self._matches if self.properties else None,
        )

    def _passes(self, message: Stored) -> bool:
        value = _filter_value(message.payload)
        return self.unfiltered if value is None else value in (self.values or ())

    def _matches(self, message: Stored) -> bool:
        front = front_of(message.payload)
        sections = sections_of(message.payload, 0 if front is None else front.size)
        return all(one.matches(sections) for one in self.properties)


NO_FILTERS = Filters()


def read_filters(source: object, queue_type: str, preset: Preset) -> Filters:
    """The filters of a source that can be read; the others are as if they were not there.

    Args:
        source: of a consumer's link.
        queue_type: of the queue that it names.
        preset: whether filters on properties are known, and values that are not described.
    """
    given = source.filter if isinstance(source, Source) else None
    if given is None or (preset.conduct != RABBITMQ and queue_type != STREAM):
        return NO_FILTERS
    kept: dict[object, object] = {}
    read: dict[str, Any] = {}
    properties: dict[str, PropertyFilter] = {}
    for name, value in reversed(tuple(given.items())):
        if not isinstance(name, str):  # a key of a filter-set is a symbol [3.5.8]
            continue
        plain = not isinstance(value, Described)
        if plain and preset.filter_set_bug and name in STREAM_FILTERS:
            value = Described(name, value)
        if not isinstance(value, Described):
            continue
        kind = str(value.descriptor) if isinstance(value.descriptor, Symbol) else None
        if kind in STREAM_FILTERS:
            understood = _stream_filter(kind, value.value)
            read.update(understood)
        else:
            found = property_filter(value) if preset.property_filters else None
            understood = {} if found is None or found.section in properties else {"": found}
            if found is not None and understood:
                properties[found.section] = found
        if understood:
            kept[name] = value
    if not preset.property_filters and preset.conduct == RABBITMQ:
        in_force: Any = given  # RabbitMQ 4.0 gives back what it got
    else:
        in_force = dict(reversed(kept.items())) if kept or preset.property_filters else None
    return Filters(
        in_force=in_force,
        properties=tuple(properties.values()),
        **read,
    )


def priority_of(link: Link) -> int:
    """The consumer's priority; 0 if it names none. An int is heeded alone, no long, no ubyte."""
    peer = link.remote_attach
    properties = peer.properties if peer is not None and peer.properties else None
    found = properties.get(Symbol(PRIORITY)) if isinstance(properties, dict) else None
    return int(found) if isinstance(found, Int) else 0


def _is_place(offset: object) -> bool:
    if isinstance(offset, str):
        return offset in PLACES or age_ms(offset) is not None
    return isinstance(offset, int) and not isinstance(offset, bool)


def _stream_filter(kind: str, value: object) -> dict[str, Any]:
    """What a filter of RabbitMQ's own says, by the attribute of `Filters`; nothing if it cannot."""
    truth = isinstance(value, bool)
    if kind == MATCH_UNFILTERED:
        return {"unfiltered": value} if truth else {}
    if kind == STREAM_FILTER:
        if type(value) is str:
            return {"values": frozenset([value])}
        if isinstance(value, list):
            return {"values": frozenset(one for one in value if type(one) is str)}
        return {}
    number = isinstance(value, int) and not truth and value >= 0
    return {"offset": value} if number or isinstance(value, str | Timestamp) else {}


def _filter_value(payload: bytes) -> str | None:
    """The string in a message's annotation `x-stream-filter-value`; None if there is none."""
    front = front_of(payload) if _VALUE in payload else None
    if front is None or not front.annotations:
        return None
    try:
        section = decode_section(front.annotations)[0]
    except DecodeError:
        return None
    told = section.value if isinstance(section, MessageAnnotations) else None
    value = told.get(Symbol(FILTER_VALUE)) if isinstance(told, dict) else None
    return value if type(value) is str else None
