"""Restricted types: primitives under another name, some with a fixed choice of values [2.8].

Names are the specification's; members are its choices.
"""

from enum import Enum, IntEnum, StrEnum


class Role(Enum):
    """Which end of a link this endpoint is [2.8.1]; sent as a boolean."""

    SENDER = False
    RECEIVER = True


class SenderSettleMode(IntEnum):
    """Whether the sender sends deliveries unsettled, settled or both [2.8.2]."""

    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


class ReceiverSettleMode(IntEnum):
    """Whether the receiver settles at once, or only after the sender has [2.8.3]."""

    FIRST = 0
    SECOND = 1


class TerminusDurability(IntEnum):
    """What of a terminus survives a restart [3.5.5]."""

    NONE = 0
    CONFIGURATION = 1
    UNSETTLED_STATE = 2


class TerminusExpiryPolicy(StrEnum):
    """When the expiry timer of a terminus starts [3.5.6]."""

    LINK_DETACH = "link-detach"
    SESSION_END = "session-end"
    CONNECTION_CLOSE = "connection-close"
    NEVER = "never"


class DistributionMode(StrEnum):
    """Whether a source gives messages away or copies of them [3.5.7]."""

    MOVE = "move"
    COPY = "copy"


class SaslCode(IntEnum):
    """How a SASL exchange ended [5.3.3.6]."""

    OK = 0
    AUTH = 1
    SYS = 2
    SYS_PERM = 3
    SYS_TEMP = 4


RESTRICTED: dict[str, str] = {
    "role": "boolean",
    "sender-settle-mode": "ubyte",
    "receiver-settle-mode": "ubyte",
    "handle": "uint",
    "seconds": "uint",
    "milliseconds": "uint",
    "delivery-tag": "binary",
    "delivery-number": "sequence-no",
    "transfer-number": "sequence-no",
    "sequence-no": "uint",
    "message-format": "uint",
    "ietf-language-tag": "symbol",
    "fields": "map",
    "annotations": "map",
    "filter-set": "map",
    "node-properties": "fields",
    "terminus-durability": "uint",
    "terminus-expiry-policy": "symbol",
    "sasl-code": "ubyte",
}
"""Restricted type to the type it restricts."""

CHOICES: dict[str, type[Role] | type[IntEnum]] = {
    "role": Role,
    "sender-settle-mode": SenderSettleMode,
    "receiver-settle-mode": ReceiverSettleMode,
    "terminus-durability": TerminusDurability,
    "sasl-code": SaslCode,
}
"""Types whose fields hold a member of an enumeration, and no other value is legal. (The symbol
types have choices too, but an unknown symbol there may be an extension and is kept.)"""


def primitive_of(type_name: str) -> str:
    """The primitive type under a restricted one: `transfer-number` to `uint`."""
    while type_name in RESTRICTED:
        type_name = RESTRICTED[type_name]
    return type_name
