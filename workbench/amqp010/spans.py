"""Where the fields of a frame lie in its octets: for views that show both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .composite import Command, Composite, Control, UnknownCommand, UnknownStruct
from .errors import DecodeError
from .frame import (
    FIRST_FRAME,
    FIRST_SEGMENT,
    FRAME_HEADER_SIZE,
    LAST_FRAME,
    LAST_SEGMENT,
    MAGIC,
    Frame,
    Headers,
    SegmentType,
    decode_frame,
)
from .generated import BIT
from .values import READERS, SequenceSet

__all__ = ["frame_parts"]

_FLAGS = {
    "first segment": FIRST_SEGMENT,
    "last segment": LAST_SEGMENT,
    "first frame": FIRST_FRAME,
    "last frame": LAST_FRAME,
}

Part = tuple[str, int, str]


def frame_parts(raw: bytes) -> Iterator[Part]:
    """What a frame or protocol header consists of; octets that are neither are one part.

    Returns:
        One behind the other: which field, such as `message.flow.value`, how many octets it takes,
        and its value for a person.
    """
    if raw[:4] == MAGIC and len(raw) == 8:
        yield "header.magic", 4, "AMQP"
        for at, name in enumerate(("class", "instance", "major", "minor"), 4):
            yield f"header.{name}", 1, str(raw[at])
        return
    try:
        frame = decode_frame(raw)
    except DecodeError as error:
        yield "octets", len(raw), f"{_text(raw)}: {error.reason}"
        return
    kind = SegmentType(frame.segment_type)
    flags = [name for name, bit in _FLAGS.items() if raw[0] & bit]
    yield "frame.flags", 1, ", ".join(flags) or "none"
    yield "frame.segment-type", 1, f"{kind} ({kind.name.lower()})"
    yield "frame.size", 2, str(len(raw))
    yield "frame.reserved", 1, "0"
    yield "frame.track", 1, str(raw[5])
    yield "frame.channel", 2, str(frame.channel)
    yield "frame.reserved", 4, "0"
    yield from _content(frame, raw[FRAME_HEADER_SIZE:])


def _content(frame: Frame, data: bytes) -> Iterator[Part]:
    said = frame.content
    if isinstance(said, Headers):
        at = 0
        for one in said.structs:
            size = 4 + int.from_bytes(data[at : at + 4], "big")
            yield from _struct(one, data[at : at + size])
            at += size
    elif isinstance(said, Control | Command):
        path = said.NAME.replace(" ", "-")
        yield from _code(path, data)
        begin = 2
        if isinstance(said, Command):
            yield f"{path}.session-header", 2, "sync" if said.sync else "no sync"
            begin = 4
        if isinstance(said, UnknownCommand):
            yield f"{path}.octets", len(said.octets), _text(said.octets)
        else:
            yield from _fields(path, said, data, begin)
    else:
        yield frame.kind, len(data), _text(data)


def _struct(said: Composite | UnknownStruct, data: bytes) -> Iterator[Part]:
    path = f"header.{said.NAME if isinstance(said, Composite) else 'unknown-struct'}"
    yield f"{path}.size", 4, str(len(data) - 4)
    yield from _code(path, data[4:])
    if isinstance(said, UnknownStruct):
        yield f"{path}.octets", len(said.octets), _text(said.octets)
    else:
        yield from _fields(path, said, data, 6)


def _code(path: str, data: bytes) -> Iterator[Part]:
    yield f"{path}.class-code", 1, f"{data[0]:#04x}"
    yield f"{path}.code", 1, f"{data[1]:#04x}"


def _fields(path: str, said: Composite, data: bytes, at: int) -> Iterator[Part]:
    """Packing flags, and each field that they say is there; that of a bit is its flag."""
    yield f"{path}.packing-flags", 2, ", ".join(map(_name, said.present())) or "none"
    at += 2
    for name, kind in said.FIELDS:
        value = getattr(said, name)
        if kind != BIT and value is not None:
            _, end = READERS[kind](data, at, len(data))
            yield f"{path}.{_name(name)}", end - at, _text(value)
            at = end


def _name(field: str) -> str:
    """As the specification writes it."""
    return field.strip("_").replace("_", "-")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()} ({len(value)} octets)"
    if isinstance(value, SequenceSet):
        return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in value.ranges) or "none"
    if isinstance(value, Composite):
        told = (f"{_name(name)}={_text(one)}" for name, one in value.present().items())
        return f"{value.NAME}({', '.join(told)})"
    return str(value)
