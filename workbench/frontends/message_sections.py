"""Whether a publisher's octets are a message [3.2], as RabbitMQ looks at them.

It reads the sections before the body. Of the body and the footer it looks only whether they are
there, in their order, each of its type and whole; before 4.2 not even that
(`amqp10_binary_parser.erl:validate_msg_sections`, `mc_amqp.erl:init`).
"""

from __future__ import annotations

from workbench.amqp10.constructor import DESCRIBED, FORMAT_CODES, Category, codes_of, describe_code
from workbench.amqp10.decoder import decode_value
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.messaging import (
    SECTIONS,
    AmqpSequence,
    AmqpValue,
    Data,
    DeliveryAnnotations,
    Footer,
    Header,
    MessageAnnotations,
    Properties,
)
from workbench.amqp10.performatives import read_descriptor
from workbench.amqp10.value_text import descriptor_text, value_text
from workbench.amqp10.values import MapPairs

DATA, SEQUENCE, VALUE = Data.DESCRIPTOR, AmqpSequence.DESCRIPTOR, AmqpValue.DESCRIPTOR
FOOTER = Footer.DESCRIPTOR
ANNOTATIONS = (DeliveryAnnotations.DESCRIPTOR, MessageAnnotations.DESCRIPTOR)
LISTS, MAPS, BINARIES = codes_of("list"), codes_of("map"), codes_of("binary")
VALUES_OF = {
    Header.DESCRIPTOR: LISTS,
    Properties.DESCRIPTOR: LISTS,
    SEQUENCE: LISTS,
    DATA: BINARIES,
    VALUE: (),  # any
}
"""Format codes of a section's value; of one that is not listed here it is a map."""

RESERVED_UNLESS = "x-"


def fault_of_message(payload: bytes, *, whole: bool) -> str | None:
    """What is wrong with a message, in words; None if nothing is.

    Args:
        payload: of all its transfer frames.
        whole: body and footer are looked at, too.
    """
    try:
        return _walk(payload, whole)
    except DecodeError as error:
        return error.message


def _walk(payload: bytes, whole: bool) -> str | None:
    at, end = 0, len(payload)
    least, body = Header.DESCRIPTOR, 0
    while at < end:
        descriptor, start = read_descriptor(payload, at, end, "a section of a message")
        section = SECTIONS.get(descriptor)
        if section is None:
            return f"at octet {at}: descriptor {descriptor_text(descriptor)} names no section"
        code = section.DESCRIPTOR
        if not _in_order(code, least, body):
            return f"at octet {at}: {section.NAME} cannot stand here"
        if DATA <= code < FOOTER:
            if not whole:
                return None
            body = code
        least = code + 1
        wanted = VALUES_OF.get(code, MAPS)
        if start >= end or (wanted and payload[start] not in wanted):
            found = describe_code(payload[start]) if start < end else "nothing"
            return f"at octet {start}: {section.NAME} cannot be {found}"
        if body:
            at = _behind(payload, start, end)
        else:
            value, at = decode_value(payload, start, end)
            if code in ANNOTATIONS:
                reserved = [key for key in _keys(value) if not _is_free(key)]
                if reserved:
                    key = value_text(reserved[0])
                    return f"{section.NAME} has the key {key}, which is reserved [3.2.10]"
    return None if body else "it has no body"


def user_of(payload: bytes) -> str | None:
    """Who a message says has sent it: user-id of its properties; None if it does not.

    Args:
        payload: of a message, which `fault_of_message` has found whole.
    """
    at, end = 0, len(payload)
    while at < end:
        descriptor, start = read_descriptor(payload, at, end, "a section of a message")
        code = SECTIONS[descriptor].DESCRIPTOR
        if code >= Properties.DESCRIPTOR:
            if code > Properties.DESCRIPTOR:
                return None
            fields, _ = decode_value(payload, start, end)
            user = fields[1] if isinstance(fields, list) and len(fields) > 1 else None
            return user.decode(errors="replace") if isinstance(user, bytes) else None
        at = _behind(payload, start, end)
    return None


def _in_order(code: int, least: int, body: int) -> bool:
    """Whether a section may follow: before the body each once, in the order of their codes."""
    if code == FOOTER:
        return bool(body) and least <= FOOTER
    if not body:
        return code >= least
    return code == body and code != VALUE and least <= FOOTER


def _behind(data: bytes, start: int, end: int) -> int:
    """The offset behind a value that is not read.

    Raises:
        DecodeError: it is not whole.
    """
    kind = FORMAT_CODES.get(data[start])
    if kind is None or data[start] == DESCRIBED:
        return decode_value(data, start, end)[1]
    after = start + 1 + kind.width
    if kind.category is not Category.FIXED:
        after += int.from_bytes(data[start + 1 : start + 1 + kind.width], "big")
    if after > end:
        raise DecodeError(f"{kind} needs {after - start} octets, {end - start} are left", start)
    return after


def _keys(value: object) -> list[object]:
    return [key for key, _ in value.items()] if isinstance(value, dict | MapPairs) else []


def _is_free(key: object) -> bool:
    return isinstance(key, str) and key.startswith(RESERVED_UNLESS)
