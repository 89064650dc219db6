"""What the owner of an endpoint may choose: settings of a connection, a session and a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.frame import MIN_MAX_FRAME_SIZE

__all__ = ["ConnectionSettings", "CreditOverrun", "SessionSettings"]

UINT_MAX = 4294967295
USHORT_MAX = 65535


def check_range(name: str, value: int, least: int, most: int) -> int:
    """The value, if it lies in its range.

    Raises:
        LocalProtocolError: it does not, or it is no whole number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise LocalProtocolError(f"{name} {value!r} is not legal: {least} to {most}")
    return value


class CreditOverrun(Enum):
    """What a receiver does with a delivery that comes when its credit is 0 [2.6.7].

    It need not be the sender's fault: after a cut, deliveries sent before it still arrive.
    """

    TAKE = "take"
    DETACH = "detach"  # with amqp:link:transfer-limit-exceeded


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """Of one end of a connection.

    Attributes:
        hostname: told in a client's open.
        max_frame_size: largest frame accepted, in octets, 512 or more [2.7.1].
        first_max_frame_size: the same before the peer's open has come; 512, if this end keeps to
            2.4.1.
        channel_max: highest channel number accepted.
        idle_time_out_ms: the longest silence this end wants to hear, in milliseconds; it gives up
            after twice as long [2.4.5]. None: no limit.
        pipeline_open: the client sends its open together with the header, without waiting for
            the peer's header.
        steals_links: an attach of a name that is attached already takes the link over, and the
            older attachment ends [2.6.1]. Without it the two stand side by side.
        measures: an attach above the peer's max-frame-size is not sent [2.7.1].
        properties: told in the open.
        offered_capabilities: told in the open.
        desired_capabilities: told in the open.
    """

    hostname: str | None = None
    max_frame_size: int = 32768
    first_max_frame_size: int = MIN_MAX_FRAME_SIZE
    channel_max: int = USHORT_MAX
    idle_time_out_ms: int | None = None
    pipeline_open: bool = True
    steals_links: bool = True
    measures: bool = True
    properties: Mapping[Any, Any] | None = None
    offered_capabilities: tuple[str, ...] | None = None
    desired_capabilities: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_range("max-frame-size", self.max_frame_size, MIN_MAX_FRAME_SIZE, UINT_MAX)
        check_range("channel-max", self.channel_max, 0, USHORT_MAX)
        if self.idle_time_out_ms is not None:
            check_range("idle-time-out", self.idle_time_out_ms, 0, UINT_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """Of one end of a session.

    Attributes:
        next_outgoing_id: of the first transfer frame; any serial number.
        delivery_id: of the first delivery; any serial number.
        incoming_window: transfer frames to take before saying more.
        outgoing_window: transfer frames that this end says it may send; it is told, and does not
            hold anything.
        regrant_at: `Connection.answer` opens the incoming-window again when no more than this is
            left; None: the owner does it.
        handle_max: highest handle accepted.
        errant_link_ends_session: input for a link that this end has detached with an error ends
            the session, as 2.6.5 says. False: such input, which may have been under way, is
            dropped.
        full_transfers: every transfer frame of a delivery tells its delivery-id, delivery-tag,
            message-format and settled, which the first alone has to [2.7.5]; RabbitMQ does so.
        write_more: the last transfer frame of a delivery has more=false written out.
        transfer_reserve: octets by which a transfer frame stays below max-frame-size if its
            message goes on, for fields written out as null.
        properties: told in the begin.
    """

    next_outgoing_id: int = 0
    delivery_id: int = 0
    incoming_window: int = 2147483647
    outgoing_window: int = 2147483647
    regrant_at: int | None = None
    handle_max: int = UINT_MAX
    errant_link_ends_session: bool = True
    full_transfers: bool = False
    write_more: bool = False
    transfer_reserve: int = 0
    properties: Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("next_outgoing_id", "delivery_id", "incoming_window", "outgoing_window"):
            check_range(name.replace("_", "-"), getattr(self, name), 0, UINT_MAX)
        check_range("handle-max", self.handle_max, 0, UINT_MAX)
