"""Types of parameters that several scenarios or acts share: range, unit and words."""

from __future__ import annotations

from typing import Annotated

from workbench.presets import UINT_MAX

from .declare import OneOf, Whole

MAX_LATENCY_US = 60_000_000
MAX_MESSAGES = 100_000

Count = Annotated[int, Whole(1, MAX_MESSAGES, "messages"), "how many messages"]
Credit = Annotated[int, Whole(0, UINT_MAX, "messages"), "how many more may come over it"]
Ready = Annotated[int, Whole(0, MAX_MESSAGES, "messages"), "ready in the queue"]
MessageBytes = Annotated[int, Whole(0, 1_048_576, "octets"), "size of each message's body"]
SmallMessageBytes = Annotated[int, Whole(0, 65_536, "octets"), "size of each message's body"]
Microseconds = Annotated[int, Whole(0, MAX_LATENCY_US, "us")]
Latency = Annotated[Microseconds, "how long a frame is under way, each direction"]
Processing = Annotated[Microseconds, "how long the receiver works on one message"]
InitialDeliveryCount = Annotated[
    int, Whole(0, UINT_MAX, "sequence-no"), "delivery-count with which the sender begins"
]
SocketOctets = Annotated[
    int,
    Whole(0, 100_000_000, "octets"),
    "what TCP takes in one direction before it is read; 0: no limit",
]
Acknowledge = Annotated[
    str,
    OneOf("manual", "auto"),
    "who settles deliveries: a person, or the receiver after processing",
]
Settled = Annotated[bool, "messages are sent settled: no disposition tells the client of them"]
