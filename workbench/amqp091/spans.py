"""Where the fields of a frame lie in its octets: for views that show both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.amqp091.codec import argument_octets
from workbench.amqp091.errors import DecodeError
from workbench.amqp091.frame import EMPTY_FRAME_SIZE, ContentHeader, read_frame
from workbench.amqp091.methods import Method

__all__ = ["frame_parts"]

_TYPES = {1: "method", 2: "content header", 3: "content body", 8: "heartbeat"}

Part = tuple[str, int, str]


def frame_parts(raw: bytes) -> Iterator[Part]:
    """What a frame or protocol header consists of; octets that are neither are one part.

    Returns:
        One behind the other: which field, such as `basic.qos.prefetch-count`, how many octets it
        takes, and its value for a person.
    """
    if raw[:4] == b"AMQP" and len(raw) == 8:
        yield "header.magic", 4, "AMQP"
        for at, name in enumerate(("protocol-id", "major", "minor", "revision"), 4):
            yield f"header.{name}", 1, str(raw[at])
        return
    size = int.from_bytes(raw[3:7], "big")
    try:
        if size + EMPTY_FRAME_SIZE != len(raw):
            raise DecodeError("no frame", 0)
        payload = read_frame(raw, 0, len(raw)).payload
    except DecodeError:
        yield "octets", len(raw), _hex(raw)
        return
    yield "frame.type", 1, f"{raw[0]} ({_TYPES[raw[0]]})"
    yield "frame.channel", 2, str(int.from_bytes(raw[1:3], "big"))
    yield "frame.size", 4, str(size)
    inside = list(_payload(payload, raw[7:-1]))
    if sum(octets for _, octets, _ in inside) == size:
        yield from inside
    else:  # written in another way than ours
        yield "payload", size, _hex(raw[7:-1])
    yield "frame.end", 1, f"{raw[-1]:#x}"


def _payload(payload: Any, octets: bytes) -> Iterator[Part]:
    if isinstance(payload, Method):
        yield f"{payload.NAME}.class-id", 2, str(payload.numbers[0])
        yield f"{payload.NAME}.method-id", 2, str(payload.numbers[1])
        for names, size, text in argument_octets(payload):
            yield f"{payload.NAME}.{names.replace('_', '-').strip('-')}", size, text
    elif isinstance(payload, ContentHeader):
        yield "header.class-id", 2, str(payload.class_id)
        yield "header.weight", 2, str(payload.weight)
        yield "header.body-size", 8, str(payload.body_size)
        told = payload.properties
        named = {name: getattr(told, name) for name in told.__struct_fields__}
        words = ", ".join(f"{name}={value}" for name, value in named.items() if value is not None)
        yield "header.properties", len(octets) - 12, words or "none"
    elif isinstance(payload, bytes):
        yield "body", len(payload), _hex(payload)
    else:
        yield "payload", len(octets), _hex(octets)


def _hex(octets: bytes) -> str:
    return f"0x{octets.hex()} ({len(octets)} octets)"
