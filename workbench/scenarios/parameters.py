"""Parameters that several scenarios share, declared once: the same range, unit and words."""

from __future__ import annotations

from workbench.presets import UINT_MAX

from .acts import MAX_LATENCY_US
from .declare import Parameter

MESSAGE_BYTES = Parameter(
    name="message_bytes",
    preset_field="message_bytes",
    minimum=0,
    maximum=1_048_576,
    unit="octets",
    doc="size of each message's body",
)
LATENCY_US = Parameter(
    name="latency_us",
    preset_field="wire_latency_us",
    minimum=0,
    maximum=MAX_LATENCY_US,
    unit="us",
    doc="how long a frame is under way, each direction",
)
PROCESSING_US = Parameter(
    name="processing_us",
    preset_field="processing_us",
    minimum=0,
    maximum=MAX_LATENCY_US,
    unit="us",
    doc="how long the receiver works on one message",
)
INITIAL_DELIVERY_COUNT = Parameter(
    name="initial_delivery_count",
    preset_field="initial_delivery_count",
    minimum=0,
    maximum=UINT_MAX,
    unit="sequence-no",
    doc="delivery-count with which the sender begins",
)
SOCKET_OCTETS = Parameter(
    name="socket_octets",
    default=0,
    minimum=0,
    maximum=100_000_000,
    unit="octets",
    doc="what TCP takes in one direction before it is read; 0: no limit",
)
