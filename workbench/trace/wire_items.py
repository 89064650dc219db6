"""What a trace asks of a frame as a value, whatever its protocol: fields, size, octets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.amqp010 import frame as amqp010
from workbench.amqp091 import frame as amqp091
from workbench.amqp10 import frame as amqp10

from .fields import FRAME_PROTOCOLS
from .flatten import frame_fields
from .flatten_010 import fields_010
from .flatten_091 import fields_091

__all__ = ["WireCodec", "codec_of"]

AMQP_1_0, AMQP_0_9_1, AMQP_0_10 = FRAME_PROTOCOLS


class WireCodec(NamedTuple):
    """How the frames of a protocol are told.

    Attributes:
        protocol: its name in the schema.
        fields: of a frame, its kind, and its fields as on the wire.
        size: octets of a frame.
        encode: a frame's octets.
        body: of a frame and its kind, octets of a message in it; None if it cannot carry any.
    """

    protocol: str
    fields: Callable[[Any], tuple[str, dict[str, Any]]]
    size: Callable[[Any], int]
    encode: Callable[[Any], bytes]
    body: Callable[[Any, str], int | None]


_ONE = WireCodec(
    AMQP_1_0,
    frame_fields,
    amqp10.item_size,
    amqp10.encode_item,
    lambda item, kind: len(item.payload) if kind == "transfer" else None,
)
_OLD = WireCodec(
    AMQP_0_9_1,
    fields_091,
    amqp091.item_size,
    amqp091.encode_item,
    lambda item, kind: len(item.payload) if kind == "content-body" else None,
)
_QPID = WireCodec(
    AMQP_0_10,
    fields_010,
    amqp010.item_size,
    amqp010.encode_item,
    lambda item, kind: len(item.content) if kind == "body" else None,
)
_CODECS: dict[type, WireCodec] = {
    amqp091.Frame: _OLD,
    amqp091.ProtocolHeader: _OLD,
    amqp010.Frame: _QPID,
    amqp010.ProtocolHeader: _QPID,
}


def codec_of(item: Any) -> WireCodec:
    """How a frame or protocol header is told."""
    return _CODECS.get(type(item), _ONE)
