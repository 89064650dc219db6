"""Where the fields of a frame lie in its octets: for views that show both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from workbench.amqp091.codec import argument_octets
from workbench.amqp091.errors import DecodeError
from workbench.amqp091.frame import EMPTY_FRAME_SIZE, ContentHeader, read_frame
from workbench.amqp091.methods import Method

__all__ = ["Span", "field_spans"]

_TYPES = {1: "method", 2: "content header", 3: "content body", 8: "heartbeat"}


class Span(NamedTuple):
    """Octets with a meaning, one behind the other.

    Attributes:
        path: which field, such as `basic.qos.prefetch-count`.
        type_name: its type in the specification.
        start: offset of its first octet in the frame.
        end: offset behind its last.
        text: its value for a person.
    """

    path: str
    type_name: str
    start: int
    end: int
    text: str


def field_spans(raw: bytes) -> list[Span]:
    """The fields of a frame or protocol header; octets that are neither are one field."""
    if raw[:4] == b"AMQP" and len(raw) == 8:
        names = ("protocol-id", "major", "minor", "revision")
        head = Span("header.magic", "", 0, 4, "AMQP")
        rest = (
            Span(f"header.{name}", "octet", at, at + 1, str(raw[at]))
            for at, name in enumerate(names, 4)
        )
        return [head, *rest]
    size = int.from_bytes(raw[3:7], "big")
    try:
        if size + EMPTY_FRAME_SIZE != len(raw):
            raise DecodeError("no frame", 0)
        payload = read_frame(raw, 0, len(raw)).payload
    except DecodeError:
        return [Span("octets", "", 0, len(raw), _hex(raw))]
    found = [
        Span("frame.type", "octet", 0, 1, f"{raw[0]} ({_TYPES[raw[0]]})"),
        Span("frame.channel", "short", 1, 3, str(int.from_bytes(raw[1:3], "big"))),
        Span("frame.size", "long", 3, 7, str(size)),
    ]
    at = 7
    for path, type_name, octets, text in _parts(payload, raw[7:-1]):
        if octets:
            found.append(Span(path, type_name, at, at + octets, text))
            at += octets
    if at != len(raw) - 1:  # written in another way than ours
        found = [*found[:3], Span("payload", "", 7, len(raw) - 1, _hex(raw[7:-1]))]
    return [*found, Span("frame.end", "octet", len(raw) - 1, len(raw), f"{raw[-1]:#x}")]


def _parts(payload: Any, octets: bytes) -> Iterator[tuple[str, str, int, str]]:
    """Path, type, size and value of what a payload consists of, in order."""
    if isinstance(payload, Method):
        yield f"{payload.NAME}.class-id", "short", 2, str(payload.numbers[0])
        yield f"{payload.NAME}.method-id", "short", 2, str(payload.numbers[1])
        for names, type_name, size, text in argument_octets(payload):
            yield f"{payload.NAME}.{names.replace('_', '-').strip('-')}", type_name, size, text
    elif isinstance(payload, ContentHeader):
        yield "header.class-id", "short", 2, str(payload.class_id)
        yield "header.weight", "short", 2, str(payload.weight)
        yield "header.body-size", "longlong", 8, str(payload.body_size)
        told = payload.properties
        named = {name: getattr(told, name) for name in told.__struct_fields__}
        words = ", ".join(f"{name}={value}" for name, value in named.items() if value is not None)
        yield "header.properties", "", len(octets) - 12, words or "none"
    elif isinstance(payload, bytes):
        yield "body", "", len(payload), _hex(payload)
    else:
        yield "payload", "", len(octets), _hex(octets)


def _hex(octets: bytes) -> str:
    return f"0x{octets.hex()} ({len(octets)} octets)"
