"""The performatives: what a frame says [2.7], and the SASL frames [5.3].

Fields have the specification's names, order, types and defaults. `None` is a field that is absent
on the wire. Each class declares its fields once; `FIELDS` and everything else comes from that.
"""

from typing import Any, ClassVar

from workbench.amqp10.composite import BY_DESCRIPTOR, Composite, composite
from workbench.amqp10.decoder import decode_value
from workbench.amqp10.errors import DecodeError, ErrorCondition
from workbench.amqp10.fields import FieldSpec, optional, required
from workbench.amqp10.outcome import DeliveryState, Error
from workbench.amqp10.restricted import (
    ReceiverSettleMode,
    Role,
    SaslCode,
    SenderSettleMode,
)
from workbench.amqp10.terminus import Source, Target
from workbench.amqp10.value_text import descriptor_text, value_text
from workbench.amqp10.values import Described, MapValue, Symbol, ULong

__all__ = [
    "AMQP_FRAME",
    "SASL_FRAME",
    "Attach",
    "Begin",
    "Close",
    "Detach",
    "Disposition",
    "End",
    "Error",
    "FieldSpec",
    "Flow",
    "Open",
    "Performative",
    "ReceiverSettleMode",
    "Role",
    "SaslChallenge",
    "SaslCode",
    "SaslInit",
    "SaslMechanisms",
    "SaslOutcome",
    "SaslResponse",
    "SenderSettleMode",
    "Transfer",
    "Undecodable",
    "decode_performative",
]

AMQP_FRAME = 0
"""TYPE of a frame that carries a performative [2.3]."""

SASL_FRAME = 1
"""TYPE of a frame that carries a step of SASL [5.3.1]."""


class Performative(Composite, frozen=True, gc=False):
    """What a frame may carry.

    Attributes:
        FRAME_TYPE: the TYPE octet of its frame.
    """

    FRAME_TYPE: ClassVar[int] = AMQP_FRAME


class SaslPerformative(Performative, frozen=True, gc=False):
    """What a SASL frame may carry."""

    FRAME_TYPE: ClassVar[int] = SASL_FRAME


@composite("open", 0x10, provides=("frame",))
class Open(Performative, frozen=True, gc=False):
    """Begins a connection and states its limits [2.7.1]."""

    container_id: str = required("string")
    hostname: str | None = optional("string")
    max_frame_size: int | None = optional("uint", default=4294967295)
    channel_max: int | None = optional("ushort", default=65535)
    idle_time_out: int | None = optional("milliseconds")
    outgoing_locales: tuple[str, ...] | None = optional("ietf-language-tag", multiple=True)
    incoming_locales: tuple[str, ...] | None = optional("ietf-language-tag", multiple=True)
    offered_capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)
    desired_capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)
    properties: MapValue | None = optional("fields")


@composite("begin", 0x11, provides=("frame",))
class Begin(Performative, frozen=True, gc=False):
    """Begins a session on a channel [2.7.2]."""

    remote_channel: int | None = optional("ushort")
    next_outgoing_id: int = required("transfer-number")
    incoming_window: int = required("uint")
    outgoing_window: int = required("uint")
    handle_max: int | None = optional("handle", default=4294967295)
    offered_capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)
    desired_capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)
    properties: MapValue | None = optional("fields")


@composite("attach", 0x12, provides=("frame",))
class Attach(Performative, frozen=True, gc=False):
    """Attaches a link to a session [2.7.3].

    `initial_delivery_count` must be there when `role` is sender, and is ignored otherwise.
    `max_message_size` 0 or absent means no limit.
    """

    name: str = required("string")
    handle: int = required("handle")
    role: Role = required("role")
    snd_settle_mode: SenderSettleMode | None = optional(
        "sender-settle-mode", default=SenderSettleMode.MIXED
    )
    rcv_settle_mode: ReceiverSettleMode | None = optional(
        "receiver-settle-mode", default=ReceiverSettleMode.FIRST
    )
    source: Source | Described | None = optional("*", requires="source")
    target: Target | Described | None = optional("*", requires="target")
    unsettled: MapValue | None = optional("map")
    incomplete_unsettled: bool | None = optional("boolean", default=False)
    initial_delivery_count: int | None = optional("sequence-no")
    max_message_size: int | None = optional("ulong")
    offered_capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)
    desired_capabilities: tuple[str, ...] | None = optional("symbol", multiple=True)
    properties: MapValue | None = optional("fields")


@composite("flow", 0x13, provides=("frame",))
class Flow(Performative, frozen=True, gc=False):
    """States the windows of a session and, with a handle, the credit of a link [2.7.4]."""

    next_incoming_id: int | None = optional("transfer-number")
    incoming_window: int = required("uint")
    next_outgoing_id: int = required("transfer-number")
    outgoing_window: int = required("uint")
    handle: int | None = optional("handle")
    delivery_count: int | None = optional("sequence-no")
    link_credit: int | None = optional("uint")
    available: int | None = optional("uint")
    drain: bool | None = optional("boolean", default=False)
    echo: bool | None = optional("boolean", default=False)
    properties: MapValue | None = optional("fields")


@composite("transfer", 0x14, provides=("frame",))
class Transfer(Performative, frozen=True, gc=False):
    """Carries a message or a part of one [2.7.5]; the frame's payload follows it."""

    handle: int = required("handle")
    delivery_id: int | None = optional("delivery-number")
    delivery_tag: bytes | None = optional("delivery-tag")
    message_format: int | None = optional("message-format")
    settled: bool | None = optional("boolean")
    more: bool | None = optional("boolean", default=False)
    rcv_settle_mode: ReceiverSettleMode | None = optional("receiver-settle-mode")
    state: DeliveryState | Described | None = optional("*", requires="delivery-state")
    resume: bool | None = optional("boolean", default=False)
    aborted: bool | None = optional("boolean", default=False)
    batchable: bool | None = optional("boolean", default=False)


@composite("disposition", 0x15, provides=("frame",))
class Disposition(Performative, frozen=True, gc=False):
    """States the outcome of a range of deliveries, or settles it [2.7.6]."""

    role: Role = required("role")
    first: int = required("delivery-number")
    last: int | None = optional("delivery-number")
    settled: bool | None = optional("boolean", default=False)
    state: DeliveryState | Described | None = optional("*", requires="delivery-state")
    batchable: bool | None = optional("boolean", default=False)

    def get(self, name: str) -> Any:
        """As in `Composite`; `last` is `first` where it is absent."""
        if name == "last" and self.last is None:
            return self.first
        return Performative.get(self, name)


@composite("detach", 0x16, provides=("frame",))
class Detach(Performative, frozen=True, gc=False):
    """Detaches a link, or closes it for good [2.7.7]."""

    handle: int = required("handle")
    closed: bool | None = optional("boolean", default=False)
    error: Error | None = optional("error")


@composite("end", 0x17, provides=("frame",))
class End(Performative, frozen=True, gc=False):
    """Ends a session [2.7.8]."""

    error: Error | None = optional("error")


@composite("close", 0x18, provides=("frame",))
class Close(Performative, frozen=True, gc=False):
    """Closes a connection [2.7.9]."""

    error: Error | None = optional("error")


@composite("sasl-mechanisms", 0x40, provides=("sasl-frame",))
class SaslMechanisms(SaslPerformative, frozen=True, gc=False):
    """The server's mechanisms, best first [5.3.3.1]."""

    sasl_server_mechanisms: tuple[str, ...] = required("symbol", multiple=True)


@composite("sasl-init", 0x41, provides=("sasl-frame",))
class SaslInit(SaslPerformative, frozen=True, gc=False):
    """The client's choice and first response [5.3.3.2]."""

    mechanism: str = required("symbol")
    initial_response: bytes | None = optional("binary")
    hostname: str | None = optional("string")


@composite("sasl-challenge", 0x42, provides=("sasl-frame",))
class SaslChallenge(SaslPerformative, frozen=True, gc=False):
    """The server asks for more [5.3.3.3]."""

    challenge: bytes = required("binary")


@composite("sasl-response", 0x43, provides=("sasl-frame",))
class SaslResponse(SaslPerformative, frozen=True, gc=False):
    """The client's answer to a challenge [5.3.3.4]."""

    response: bytes = required("binary")


@composite("sasl-outcome", 0x44, provides=("sasl-frame",))
class SaslOutcome(SaslPerformative, frozen=True, gc=False):
    """How the exchange ended [5.3.3.5]."""

    code: SaslCode = required("sasl-code")
    additional_data: bytes | None = optional("binary")


class Undecodable(Performative, frozen=True, gc=False):
    """Stands for the body of a frame that is no performative, or one with a fault in it.

    A `FrameReader` makes it if it is to go on behind such a frame, whose end its header tells.

    Attributes:
        octets: of the body, as they came.
        condition: the error condition for what is wrong with them.
        fault: what is wrong with them.
    """

    NAME: ClassVar[str] = "undecodable"

    octets: bytes
    condition: ErrorCondition
    fault: str

    def present(self) -> dict[str, object]:
        """No fields: nobody knows them."""
        return {}

    def encode(self) -> bytes:
        """The octets, as they came."""
        return self.octets


PERFORMATIVES: dict[object, type[Performative]] = {
    descriptor: cls for descriptor, cls in BY_DESCRIPTOR.items() if issubclass(cls, Performative)
}
"""All performatives, by descriptor code and by symbol."""

READERS = {
    bytes((0x00, 0x53, cls.DESCRIPTOR)): cls.decode_list for cls in set(PERFORMATIVES.values())
}
"""Their decoders by the octets with which nearly every performative begins."""


def read_descriptor(data: bytes, start: int, end: int, what: str) -> tuple[object, int]:
    """Reads `0x00` and a descriptor.

    Args:
        data: the octets.
        start: offset of the `0x00`.
        end: where the octets end.
        what: name of the described value, for error texts.

    Returns:
        The descriptor (a `ULong` or a `Symbol`) and the offset behind it.

    Raises:
        DecodeError: the octets are no described value, or its descriptor is of another type.
    """
    if start >= end or data[start] != 0x00:
        found = f"0x{data[start]:02x}" if start < end else "nothing"
        raise DecodeError(
            f"{what} begins with the octet 0x00 of a described value; found {found}", start
        )
    if start + 3 <= end and data[start + 1] == 0x53:
        return data[start + 2], start + 3
    descriptor, at = decode_value(data, start + 1, end)
    if not isinstance(descriptor, ULong | Symbol):
        raise DecodeError(
            f"the descriptor of {what} must be a ulong or a symbol; found {value_text(descriptor)}",
            start + 1,
        )
    return descriptor, at


def decode_performative(
    data: bytes, start: int = 0, end: int | None = None
) -> tuple[Performative, int]:
    """Reads the performative at the beginning of a frame's body.

    Args:
        data: the octets.
        start: offset of the body.
        end: where the body ends; by default where `data` ends.

    Returns:
        The performative and the offset behind it, where the payload begins.

    Raises:
        DecodeError: the octets are no performative.
    """
    if type(data) is not bytes:
        data = bytes(data)
    stop = len(data) if end is None else min(end, len(data))
    descriptor, at = read_descriptor(data, start, stop, "a performative")
    cls = PERFORMATIVES.get(descriptor)
    if cls is None:
        raise DecodeError(
            f"descriptor {descriptor_text(descriptor)} names no performative; legal are 0x10 open "
            "to 0x18 close, and 0x40 to 0x44 in a SASL frame",
            start + 1,
        )
    return cls.decode_list(data, at, stop)
