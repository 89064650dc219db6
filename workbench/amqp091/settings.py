"""What the owner of an endpoint may choose."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from workbench.amqp091.errors import LocalProtocolError
from workbench.amqp091.frame import FRAME_MIN_SIZE, ProtocolHeader
from workbench.amqp091.methods import Table

__all__ = ["BLOCKED_CAPABILITY", "CLIENT_CAPABILITIES", "ConnectionSettings"]

BLOCKED_CAPABILITY: Final = "connection.blocked"

CLIENT_CAPABILITIES: Final[Table] = MappingProxyType(
    {
        "authentication_failure_close": True,
        "basic.nack": True,
        "connection.blocked": True,
        "consumer_cancel_notify": True,
        "exchange_exchange_bindings": True,
        "publisher_confirms": True,
    }
)
"""What a client says it understands, in its properties' `capabilities`; pika's list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Of one end of a connection.

    Attributes:
        channel_max: most channels; a server proposes it, a client lowers it. 0: no limit.
        frame_max: largest frame, in octets, likewise; 0: no limit.
        least_frame_max: a server refuses a smaller one; it is the largest frame, too, until both
            have agreed. RabbitMQ 4.3 has 8192 here.
        heartbeat_s: seconds between heartbeats, likewise; 0: none. A peer is given up after twice
            as long.
        max_message_size: a server refuses a longer message with 406, in octets; None: no limit.
        properties: told in start or start-ok; a client's has its `capabilities`.
        mechanisms: a server's, offered in start.
        mechanism: a client's.
        response: a client's first response: for PLAIN NUL, user, NUL, password.
        virtual_host: a client's.
        offered: what a server answers a header with that it does not know; RabbitMQ 4 offers AMQP
            1.0 with SASL.
        terse: a method or content header that cannot be read, and an error before the connection
            is open, end the transport without a connection.close, as RabbitMQ does, to whom a
            close is an error then.
        tells_opening: an error between tune-ok and open-ok is told nevertheless.
        close_frees: a channel's number is free as soon as the peer's close is read, so that what
            comes behind it is for another channel; and a close that crosses one of this end's has
            no answer. RabbitMQ before 2.4.0.
    """

    channel_max: int = 2047
    frame_max: int = 131072
    least_frame_max: int = FRAME_MIN_SIZE
    heartbeat_s: int = 0
    max_message_size: int | None = None
    properties: Table = field(default_factory=dict)
    mechanisms: str = "PLAIN AMQPLAIN"
    mechanism: str = "PLAIN"
    response: bytes = b"\0guest\0guest"
    virtual_host: str = "/"
    offered: ProtocolHeader = field(default=ProtocolHeader())
    terse: bool = False
    tells_opening: bool = True
    close_frees: bool = False

    def __post_init__(self) -> None:
        _check("channel-max", self.channel_max, 0, 65535)
        _check("heartbeat", self.heartbeat_s, 0, 65535)
        if self.frame_max:
            _check("frame-max", self.frame_max, FRAME_MIN_SIZE, 4294967295)


def _check(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LocalProtocolError(f"{name} {value!r} is not legal: {least} to {most}")
