"""Which octets of a publisher are a message: by their sections, and how far they are read."""

from __future__ import annotations

import pytest

from workbench.amqp10.encoder import encode_value
from workbench.amqp10.messaging import (
    AmqpSequence,
    AmqpValue,
    ApplicationProperties,
    Data,
    DeliveryAnnotations,
    Footer,
    Header,
    MessageAnnotations,
    Properties,
    encode_message,
)
from workbench.amqp10.values import Described, Symbol, ULong
from workbench.frontends.message_sections import fault_of_message

X = Symbol("x-a")
HEADER = Header(durable=True).encode()
NOTES = MessageAnnotations({X: 1}).encode()
PROPERTIES = Properties(message_id="i").encode()
DATA, LARGE = Data(b"m").encode(), Data(b"m" * 300).encode()
VALUE, SEQUENCE = AmqpValue("v").encode(), AmqpSequence([1]).encode()
FOOTER = Footer({X: 1}).encode()
EVERYTHING = encode_message(
    [
        Header(priority=4),
        DeliveryAnnotations({X: 1}),
        MessageAnnotations({X: 1}),
        Properties(subject="s"),
        ApplicationProperties({"k": 1}),
        Data(b"1"),
        Data(b"2"),
        Footer({X: 1}),
    ]
)


def by_symbol(name: str, value: object) -> bytes:
    return encode_value(Described(Symbol(name), value))


OCTETS = {
    # name: (octets, are they a message when read whole, and up to the body)
    "one short data section": (DATA, True, True),
    "an empty data section": (Data(b"").encode(), True, True),
    "one long data section": (LARGE, True, True),
    "every section": (EVERYTHING, True, True),
    "three sequences": (SEQUENCE * 3, True, True),
    "a value": (VALUE, True, True),
    "a described value": (AmqpValue(Described(ULong(9), [1])).encode(), True, True),
    "a section by its symbol": (by_symbol("amqp:data:binary", b"m"), True, True),
    "an empty list for a header": (b"\x00\x53\x70\x45" + DATA, True, True),
    "nothing": (b"", False, False),
    "a header alone": (HEADER, False, False),
    "no section": (b"\xff\xff\xff", False, False),
    "a descriptor alone": (b"\x00\x53\x75", False, True),
    "an unknown section": (encode_value(Described(ULong(0x79), [])), False, False),
    "a header of the wrong type": (encode_value(Described(ULong(0x70), {})) + DATA, False, False),
    "data that is text": (encode_value(Described(ULong(0x75), "m")), False, True),
    "a header that is cut short": (HEADER[:-1], False, False),
    "data that are cut short": (LARGE[:-1], False, True),
    "short data that are cut short": (DATA[:-1], False, True),
    "octets behind the body": (DATA + b"\xff", False, True),
    "properties before annotations": (PROPERTIES + NOTES + DATA, False, False),
    "two headers": (HEADER + HEADER + DATA, False, False),
    "two values": (VALUE + VALUE, False, True),
    "data and a value": (DATA + VALUE, False, True),
    "a header behind the body": (DATA + HEADER, False, True),
    "two footers": (DATA + FOOTER + FOOTER, False, True),
    "data behind the footer": (DATA + FOOTER + DATA, False, True),
    "a footer alone": (FOOTER, False, False),
    "reserved annotations": (MessageAnnotations({Symbol("a"): 1}).encode() + DATA, False, False),
    "an annotation by number": (MessageAnnotations({ULong(1): 1}).encode() + DATA, False, False),
}


@pytest.mark.parametrize(("octets", "whole", "head"), OCTETS.values(), ids=OCTETS.keys())
def test_a_message_has_its_sections_in_their_order_and_whole(octets, whole, head) -> None:
    """4.3 looks at all of it; 4.0 reads what is before the body and asks that there be one."""
    assert (fault_of_message(octets, whole=True) is None) is whole
    assert (fault_of_message(octets, whole=False) is None) is head


@pytest.mark.parametrize("octets", [EVERYTHING, HEADER + LARGE, VALUE, SEQUENCE * 2])
def test_a_message_is_none_without_its_last_octet(octets) -> None:
    """Wherever it is cut between two sections behind the body it is one, elsewhere it is not."""
    assert fault_of_message(octets, whole=True) is None
    assert fault_of_message(octets[:-1], whole=True) is not None
