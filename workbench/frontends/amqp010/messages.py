"""Messages of AMQP 0-10, as queues keep them and as they go out again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from workbench.amqp010.composite import Composite, UnknownStruct
from workbench.amqp010.events import CommandReceived
from workbench.amqp010.frame import Headers
from workbench.amqp010.structs import DeliveryProperties, MessageProperties
from workbench.queues import Message, Stored

PERSISTENT = 2  # domain delivery-mode


class Amqp010Message(Message, frozen=True, gc=False, kw_only=True):
    """A message that came over AMQP 0-10.

    Attributes:
        properties: its header segment.
        content_octets: of header and body segment: what credit and queues count, as in Qpid C++
            (`MessageTransfer::getRequiredCredit`).
    """

    properties: Headers
    content_octets: int

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


def message_of(event: CommandReceived) -> Amqp010Message:
    """The message that a transfer carries."""
    found: DeliveryProperties = _of(event.headers, DeliveryProperties) or DeliveryProperties()
    return Amqp010Message(
        payload=event.payload or b"",
        ttl_ms=found.ttl,
        priority=found.priority,
        durable=found.delivery_mode == PERSISTENT,
        properties=event.headers or Headers(),
        content_octets=event.content_octets,
    )


def sent_as(stored: Stored) -> tuple[Headers, int]:
    """The header segment to send for a message, and the octets that its transfer costs.

    A message that was handed out before says that it is redelivered.
    """
    message = stored.message
    headers = message.properties if isinstance(message, Amqp010Message) else Headers()
    if stored.acquired_count > 1:
        found = _of(headers, DeliveryProperties)
        again = replace(found or DeliveryProperties(), redelivered=True)
        rest = tuple(one for one in headers.structs if one is not found)
        headers = Headers((again, *rest))
    return headers, len(headers.encode()) + len(message.payload)
