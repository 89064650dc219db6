"""Filters on the properties of messages: AMQP Filter Expressions 1.0 (working draft 9), section 4.

A stream of RabbitMQ since 4.1 hands a consumer only what passes its filters. What is read here and
what is not, and which types of a property are taken, is as in `rabbit_amqp_filter_prop.erl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.messaging import (
    ApplicationProperties,
    Properties,
    decode_head,
)
from workbench.amqp10.values import Described, Symbol, Timestamp, UInt, ULong

PROPERTIES, APPLICATION_PROPERTIES = "properties", "application-properties"
SECTION_OF: Mapping[object, str] = {
    "amqp:properties-filter": PROPERTIES,
    0x173: PROPERTIES,
    "amqp:application-properties-filter": APPLICATION_PROPERTIES,
    0x174: APPLICATION_PROPERTIES,
}
MOST_FIELDS = 16
SUFFIX, PREFIX, ESCAPE = "&s:", "&p:", "&&"

_ID = (ULong, UUID, bytes, str)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "message-id": _ID,
    "user-id": (bytes,),
    "to": (str,),
    "subject": (str,),
    "reply-to": (str,),
    "correlation-id": _ID,
    "content-type": (Symbol,),
    "content-encoding": (Symbol,),
    "absolute-expiry-time": (Timestamp,),
    "creation-time": (Timestamp,),
    "group-id": (str,),
    "group-sequence": (UInt,),
    "reply-to-group-id": (str,),
}

Test = Callable[[object], bool]


@dataclass(frozen=True, slots=True)
class PropertyFilter:
    """One filter: every field that it names has to match.

    Attributes:
        section: `properties` or `application-properties`.
        tests: what each field is asked.
    """

    section: str
    tests: Mapping[str, Test]

    def matches(self, sections: Mapping[str, Mapping[str, object]]) -> bool:
        """Whether a message passes.

        Args:
            sections: of the message, by name; a field that it does not have is not there.
        """
        fields = sections[self.section]
        if self.section == PROPERTIES:
            return all(test(fields.get(name)) for name, test in self.tests.items())
        return all(name in fields and test(fields[name]) for name, test in self.tests.items())


def property_filter(value: object) -> PropertyFilter | None:
    """The filter that a filter set's value describes; None: it is none that RabbitMQ takes."""
    if not isinstance(value, Described) or not isinstance(value.value, dict):
        return None
    descriptor, fields = value.descriptor, value.value
    known = isinstance(descriptor, Symbol | ULong)
    section = SECTION_OF.get(descriptor) if known else None
    if section is None or not 0 < len(fields) <= MOST_FIELDS:
        return None
    tests: dict[str, Test] = {}
    for name, reference in fields.items():
        if section == PROPERTIES:
            types = _TYPES.get(name) if type(name) is Symbol else None
            if types is None or type(reference) not in types:
                return None
        elif type(name) is not str:
            return None
        test = _test(reference)
        if test is None:
            return None
        tests[str(name)] = test
    return PropertyFilter(section, tests)


def sections_of(payload: bytes, bare_at: int) -> Mapping[str, Mapping[str, object]]:
    """Properties and application-properties of a message, by field.

    Args:
        payload: the message.
        bare_at: where the bare message begins.
    """
    found: dict[str, dict[str, object]] = {PROPERTIES: {}, APPLICATION_PROPERTIES: {}}
    try:
        for section in decode_head(payload, bare_at):
            if isinstance(section, Properties):
                found[PROPERTIES] = {
                    name: getattr(section, name.replace("-", "_")) for name in _TYPES
                }
            elif isinstance(section, ApplicationProperties):
                value = section.value if isinstance(section.value, dict) else {}
                found[APPLICATION_PROPERTIES] = {
                    str(name): one for name, one in value.items() if _is_simple(one)
                }
    except DecodeError:
        pass
    return found


def _test(reference: object) -> Test | None:
    """What a field is asked; None if the reference cannot be read."""
    if reference is None:
        return lambda value: True
    if type(reference) is str and reference.startswith("&"):
        text = reference[len(SUFFIX) :].encode()
        if reference.startswith(SUFFIX):
            return lambda value: isinstance(raw := _raw(value), bytes) and raw.endswith(text)
        if reference.startswith(PREFIX):
            return lambda value: isinstance(raw := _raw(value), bytes) and raw.startswith(text)
        if not reference.startswith(ESCAPE):
            return None
        reference = reference[1:]
    wanted = _raw(reference)
    truth = isinstance(wanted, bool)
    return lambda value: isinstance(value, bool) is truth and _raw(value) == wanted


def _raw(value: object) -> Any:
    """A value as RabbitMQ compares it: text, symbols and uuids are octets."""
    if isinstance(value, str):
        return value.encode()
    return value.bytes if isinstance(value, UUID) else value


def _is_simple(value: object) -> bool:
    return value is None or isinstance(value, str | bytes | UUID | int | float)
