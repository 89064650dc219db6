"""The protocols that the listener tells apart, and what the gate asks of each about its frames."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from workbench.amqp010 import errors as errors010
from workbench.amqp010 import frame as frame010
from workbench.amqp010.composite import COMMANDS, CONTROLS
from workbench.amqp010.controls import ConnectionHeartbeat
from workbench.amqp091 import errors as errors091
from workbench.amqp091 import frame as frame091
from workbench.amqp091.methods import METHODS
from workbench.amqp10 import errors
from workbench.amqp10.composite import BY_DESCRIPTOR
from workbench.amqp10.frame import Frame, encode_item, item_size
from workbench.amqp10.performatives import Performative

HEARTBEAT = "heartbeat"
HEADER_OCTETS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class WireProtocol:
    """A protocol as a listener and a wire see it.

    Attributes:
        headers: the eight octets with which a client may begin.
        kinds: of frames that a breakpoint may name, in alphabetical order.
        kind_of: the word for a frame: its performative's or method's name, `heartbeat`, ...
        size_of: a frame's octets on the wire, counted.
        encode: a frame's octets on the wire.
        empty: a frame that says only that its sender lives.
        undecodable: raised for octets that are no frame; has the frames before them.
    """

    headers: tuple[bytes, ...]
    kinds: tuple[str, ...]
    kind_of: Callable[[Any], str]
    size_of: Callable[[Any], int]
    encode: Callable[[Any], bytes]
    empty: Any
    undecodable: type[Any]


def _names(contents: Iterable[Any]) -> tuple[str, ...]:
    return tuple(sorted({one.NAME for one in contents}))


def _kind_of(item: Any) -> str:
    if not isinstance(item, Frame):
        return str(getattr(item, "KIND", "protocol-header"))
    return HEARTBEAT if item.performative is None else item.performative.NAME


AMQP_1_0 = WireProtocol(
    headers=(
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",  # SASL first
        b"AMQP\x02\x01\x00\x00",  # TLS inside, which is refused: there is a port with TLS for it
    ),
    kinds=_names(one for one in BY_DESCRIPTOR.values() if issubclass(one, Performative)),
    kind_of=_kind_of,
    size_of=item_size,
    encode=encode_item,
    empty=Frame(0),
    undecodable=errors.DecodeError,
)


def _kind_of_010(item: Any) -> str:
    if not isinstance(item, frame010.Frame):
        return str(getattr(item, "KIND", "protocol-header"))
    return HEARTBEAT if isinstance(item.content, ConnectionHeartbeat) else item.kind


AMQP_0_10 = WireProtocol(
    headers=(b"AMQP\x01\x01\x00\x0a",),
    kinds=_names([*CONTROLS.values(), *COMMANDS.values()]),
    kind_of=_kind_of_010,
    size_of=frame010.item_size,
    encode=frame010.encode_item,
    empty=frame010.control_frame(0, ConnectionHeartbeat()),
    undecodable=errors010.DecodeError,
)

AMQP_0_9_1 = WireProtocol(
    headers=(b"AMQP\x00\x00\x09\x01",),
    kinds=_names(METHODS.values()),
    kind_of=frame091.kind_of,
    size_of=frame091.item_size,
    encode=frame091.encode_item,
    empty=frame091.Frame(0),
    undecodable=errors091.DecodeError,
)
