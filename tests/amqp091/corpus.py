"""Frames of AMQP 0-9-1 in which every method, every property and every letter of a table occurs."""

from decimal import Decimal

from workbench.amqp091.frame import ContentHeader, Frame
from workbench.amqp091.methods import METHODS, Properties
from workbench.amqp091.values import (
    Byte,
    Float,
    Long,
    LongString,
    OtherLong,
    Short,
    Timestamp,
    UnsignedByte,
    UnsignedInt,
    UnsignedShort,
)

# A value, and its octets behind the letter: 4.2.5.5 of the specification with RabbitMQ's errata.
LETTERS = {
    "t": (True, "01"),
    "b": (Byte(-2), "fe"),
    "B": (UnsignedByte(254), "fe"),
    "s": (Short(-2), "fffe"),
    "u": (UnsignedShort(65534), "fffe"),
    "I": (-2, "fffffffe"),
    "i": (UnsignedInt(2**32 - 2), "fffffffe"),
    "l": (Long(3), "0000000000000003"),
    "l, large": (2**40, "0000010000000000"),
    "L": (OtherLong(3), "0000000000000003"),
    "f": (Float(0.5), "3f000000"),
    "d": (0.5, "3fe0000000000000"),
    "D": (Decimal("-1.25"), "02ffffff83"),
    "S": ("é", "00000002c3a9"),
    "S, octets": (LongString(b"\xff"), "00000001ff"),
    "x": (b"\x00\xff", "0000000200ff"),
    "T": (Timestamp(1_700_000_000), "000000006553f100"),
    "V": (None, ""),
    "A": ([1, "z"], "0000000b49000000015300000001" + "7a"),
    "F": ({"k": False, "a": None}, "00000007016b7400016156"),
}
TABLE = {name: value for name, (value, _) in LETTERS.items()}

# What other codecs read, too: pika takes a double as a whole number and knows no unsigned letters.
PLAIN_TABLE = {
    "x-max-length": 5, "x-queue-type": "quorum", "on": True, "large": 2**40,
    "price": Decimal("1.25"), "none": None, "list": [1, "z"], "map": {"b": 1, "a": 2},
    "octets": b"\x00\xff",
}  # fmt: skip


def filled(kind, table):
    """A method whose arguments are all other than their defaults, and no two alike."""
    fields = {}
    for at, name in enumerate(kind.__struct_fields__):
        usual = getattr(kind(), name)
        if isinstance(usual, bool):
            fields[name] = not usual
        elif isinstance(usual, int):
            fields[name] = 200 + at
        elif isinstance(usual, str):
            fields[name] = f"{name}-é"
        else:
            fields[name] = f"{name}".encode() if isinstance(usual, bytes) else table
    return kind(**fields)


def properties(table):
    return Properties(
        content_type="text/plain", content_encoding="gzip", headers=table, delivery_mode=2,
        priority=9, correlation_id="c", reply_to="r", expiration="60000", message_id="",
        timestamp=1_700_000_000, type="t", user_id="guest", app_id="a", cluster_id="x",
    )  # fmt: skip


def corpus(table=TABLE):
    """Frames, all different."""
    return [
        *(Frame(at + 1, kind()) for at, kind in enumerate(METHODS.values())),
        *(Frame(at + 1, filled(kind, table)) for at, kind in enumerate(METHODS.values())),
        Frame(1, ContentHeader(body_size=2**63, properties=properties(table))),
        Frame(1, ContentHeader(body_size=0)),
        Frame(1, b"body"),
        Frame(0),
    ]
