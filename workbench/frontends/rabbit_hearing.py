"""Which fields of a client's frames RabbitMQ looks at.

What it passes over is taken out before the endpoint sees the frame, so that no rule of the
specification about such a field is asked (`rabbit_amqp_session.erl:incoming_link_transfer`,
`handle_frame` for a flow).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec.structs import replace

from workbench.amqp10.connection import Connection
from workbench.amqp10.decoder import decode_value
from workbench.amqp10.encoder import encode_value
from workbench.amqp10.errors import AmqpError, ErrorCondition
from workbench.amqp10.events import ProtocolViolation
from workbench.amqp10.fields import MAX_DELIVERY_TAG
from workbench.amqp10.frame import Frame, WireItem
from workbench.amqp10.performatives import Flow, Transfer, Undecodable, decode_performative
from workbench.amqp10.receiver import ReceiverLink
from workbench.amqp10.value_text import value_text
from workbench.amqp10.values import Described

Heard: TypeAlias = tuple[WireItem, ProtocolViolation | None]
"""A frame as the endpoint is to see it, and what the broker alone has against it."""

TRANSFER, TAG = (Transfer.DESCRIPTOR, Transfer.SYMBOL), 2
OF_LINKS = ("delivery_count", "link_credit", "available", "drain", "properties")


def heard(item: WireItem, amqp: Connection) -> Heard:
    """The frame without what RabbitMQ does not look at.

    Of a transfer these are state, resume, aborted and batchable, the message-format, which is 0
    whatever it says, the delivery-tag, which may be absent or of any length, and of a settled one
    rcv-settle-mode. Of a flow without a handle these are the fields of a link, and of one for a
    publisher's link echo as well.

    Args:
        item: as it came.
        amqp: the connection's endpoint, before it has applied the frame.

    Returns:
        The frame, and what is wrong with it that the specification allows.
    """
    if type(item) is not Frame:
        return item, None
    performative = item.performative
    if type(performative) is Transfer:
        return _transfer(item, performative, amqp)
    if type(performative) is Flow:
        unread = OF_LINKS if performative.handle is None else _of_publisher(item, amqp)
        return _without(item, [name for name in unread if getattr(performative, name) is not None])
    if type(performative) is Undecodable:
        return _with_short_tag(item, performative), None
    return item, None


def _of_publisher(frame: Frame, amqp: Connection) -> tuple[str, ...]:
    """What is not read of a flow for a link over which a client sends."""
    session = amqp.remote_channels.get(frame.channel)
    flow: Any = frame.performative
    link = None if session is None else session.remote_handles.get(flow.handle)
    return (*OF_LINKS, "echo") if type(link) is ReceiverLink else ()


def _without(frame: Frame, names: list[str]) -> Heard:
    if not names:
        return frame, None
    performative = replace(frame.performative, **dict.fromkeys(names))  # type: ignore[type-var]
    return replace(frame, performative=performative), None


def _with_short_tag(frame: Frame, body: Undecodable) -> Frame:
    """The transfer that a frame would be if its delivery-tag were not too long."""
    try:
        value, behind = decode_value(body.octets, 0, len(body.octets))
        if not isinstance(value, Described) or value.descriptor not in TRANSFER:
            return frame
        fields = list(value.value)  # type: ignore[call-overload]
        fields[TAG] = fields[TAG][:MAX_DELIVERY_TAG]
        transfer, _ = decode_performative(encode_value(Described(value.descriptor, fields)))
    except (AmqpError, TypeError, IndexError):
        return frame
    return Frame(frame.channel, transfer, body.octets[behind:])


def _transfer(frame: Frame, transfer: Transfer, amqp: Connection) -> Heard:
    session = amqp.remote_channels.get(frame.channel)
    link = None if session is None else session.remote_handles.get(transfer.handle)
    begun = link.receiving if type(link) is ReceiverLink else None
    usual = begun is None and transfer.delivery_tag is not None and not transfer.message_format
    if usual and _is_plain(transfer):
        return frame, None  # what nearly all are
    changes: dict[str, Any] = {}
    if not _is_plain(transfer):
        changes = {"aborted": None, "resume": None, "state": None}
        if transfer.settled:
            changes["rcv_settle_mode"] = None
    fault = None
    if begun is not None:
        changes |= {"delivery_tag": None, "message_format": None}
        if transfer.settled not in (None, begun.remote_settled):
            fault = link.violated(  # type: ignore[union-attr]
                ErrorCondition.INVALID_FIELD,
                f"delivery {begun.delivery_id} began with settled"
                f" {value_text(begun.remote_settled)} and goes on with"
                f" {value_text(transfer.settled)}; legal here: the same, or left out",
            )
    else:
        changes["message_format"] = 0 if transfer.message_format else transfer.message_format
        if transfer.delivery_tag is None:
            changes["delivery_tag"] = b""
    return replace(frame, performative=replace(transfer, **changes)), fault


def _is_plain(transfer: Transfer) -> bool:
    """Whether a transfer has none of the fields that are passed over."""
    return (
        transfer.state is None
        and not transfer.aborted
        and not transfer.resume
        and transfer.rcv_settle_mode is None
    )
