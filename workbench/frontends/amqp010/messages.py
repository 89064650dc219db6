"""Messages of AMQP 0-10, as queues keep them and as they go out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from workbench.amqp010.composite import Composite, UnknownStruct
from workbench.amqp010.events import CommandReceived
from workbench.amqp010.frame import Headers
from workbench.amqp010.structs import DeliveryProperties, MessageProperties
from workbench.presets import Preset
from workbench.presets.qpid import BrokerJ
from workbench.queues import Message, Stored

PERSISTENT = 2  # domain delivery-mode


class Amqp010Message(Message, frozen=True, gc=False, kw_only=True):
    """A message that came over AMQP 0-10.

    Attributes:
        properties: its header segment.
        content_octets: of header and body segment: what queues count.
        credit_octets: that a transfer of it costs: in Qpid C++ the same
            (`MessageTransfer::getRequiredCredit`), in Broker-J those of the body
            (`ConsumerTarget_0_10.allocateCredit`).
    """

    properties: Headers
    content_octets: int
    credit_octets: int

    @property
    def size(self) -> int:
        """Octets of header and body."""
        return self.content_octets

    @property
    def headers(self) -> Mapping[str, Any]:
        """The application-headers."""
        found = _of(self.properties, MessageProperties)
        return (found.application_headers if found is not None else None) or {}


def _of(headers: Headers | None, kind: type[Any]) -> Any:
    structs: tuple[Composite | UnknownStruct, ...] = headers.structs if headers else ()
    return next((one for one in structs if isinstance(one, kind)), None)


def routing_key(event: CommandReceived) -> str:
    """The key that a transfer's delivery-properties name; empty if they name none."""
    found: DeliveryProperties | None = _of(event.headers, DeliveryProperties)
    return (found.routing_key if found is not None else None) or ""


def message_of(event: CommandReceived, exchange: str, preset: Preset) -> Amqp010Message:
    """The message that a transfer carries; its header tells the exchange from now on.

    Qpid C++ writes that into every header, before it counts octets (`MessageBuilder.cpp`); Broker-J
    where none stands, unless it is the default exchange or has the name of the routing key
    (`ServerSessionDelegate.java`).
    """
    headers = event.headers or Headers()
    found: DeliveryProperties = _of(headers, DeliveryProperties) or DeliveryProperties()
    broker_j = isinstance(preset, BrokerJ)
    if broker_j:
        tells = exchange not in ("", found.routing_key) and found.exchange is None
    else:
        tells = event.headers is not None
    if tells:
        headers = headers.beginning_with(replace(found, exchange=exchange))
    payload = event.payload or b""
    octets = len(headers.encode()) + len(payload)
    return Amqp010Message(
        payload=payload,
        ttl_ms=found.ttl,
        priority=found.priority,
        durable=found.delivery_mode == PERSISTENT,
        properties=headers,
        content_octets=octets,
        credit_octets=len(payload) if broker_j else octets,
    )


def sent_as(stored: Stored) -> tuple[Headers, int]:
    """The header segment to send for a message, and the octets that its transfer costs.

    A message that was handed out before says that it is redelivered.
    """
    message = stored.message
    if isinstance(message, Amqp010Message):
        headers, octets = message.properties, message.credit_octets
    else:
        headers, octets = Headers(), len(message.payload)
    if stored.acquired_count > 1:
        found = _of(headers, DeliveryProperties) or DeliveryProperties()
        headers = headers.beginning_with(replace(found, redelivered=True))
    return headers, octets
