"""What RabbitMQ tells in every message: through which exchange it came, and with which key."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from workbench.amqp10.messaging import (
    AmqpValue,
    ApplicationProperties,
    Data,
    DeliveryAnnotations,
    Header,
    MessageAnnotations,
    Properties,
    decode_message,
    encode_message,
)
from workbench.amqp10.values import Symbol
from workbench.frontends.annotations import delivered, routed
from workbench.queues import Message, Stored

ADDED = {Symbol("x-routing-key"): "cap_c", Symbol("x-exchange"): ""}
SECTIONS = [
    st.sampled_from([Header(), Header(durable=True, ttl=9), Header(priority=4)]),
    st.just(DeliveryAnnotations({Symbol("x-d"): "d" * 300})),
    st.just(MessageAnnotations({Symbol("x-own"): 7, Symbol("x-exchange"): "forged"})),
    st.sampled_from([Properties(), Properties(subject="s" * 300)]),
    st.just(ApplicationProperties({"a": 1})),
]
BODIES = st.sampled_from([AmqpValue(None), AmqpValue("x"), Data(b"y" * 300)])


@given(st.tuples(*(st.none() | one for one in SECTIONS)), BODIES)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_a_routed_message_tells_its_exchange_and_key_and_keeps_the_bare_message(sections, body):
    """The annotations are right whoever wrote them before, delivery annotations are gone."""
    before = [section for section in sections if section is not None] + [body]
    after = decode_message(routed(encode_message(before), "", "cap_c"))
    own = next((one.value for one in before if isinstance(one, MessageAnnotations)), {})
    found = [one for one in after if isinstance(one, MessageAnnotations)]
    assert [one.value for one in found] == [{**own, **ADDED}]

    came = next((one for one in before if isinstance(one, Header)), Header(durable=False))
    assert after[0] == replace(came, first_acquirer=True, delivery_count=0)
    front = (Header, DeliveryAnnotations, MessageAnnotations)

    def rest(of):
        return encode_message([one for one in of if not isinstance(one, front)])

    assert rest(after) == rest(before)
    assert [type(one) for one in after] == sorted(
        (type(one) for one in after), key=lambda kind: kind.DESCRIPTOR
    )


def test_the_octets_are_those_of_rabbitmq_4_3():
    """The message of the capture rmq43_c_drain, from its header on."""
    header = bytes.fromhex("005370c0060542404041 43".replace(" ", ""))
    body = bytes.fromhex("005375a0026d30")
    annotations = (
        bytes.fromhex("005372c12504a30d") + b"x-routing-key" + b"\xa1\x05cap_c"
        b"\xa3\nx-exchange\xa1\x00"
    )
    assert routed(header + body, "", "cap_c") == header + annotations + body


@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_a_first_delivery_is_the_octets_that_the_queue_holds(kind):
    """The same object, so that a large message is not held twice."""
    kept = routed(encode_message([Data(b"y" * 300)]), "", "cap_c", durable=True)
    assert (
        delivered(Stored(message_id=0, message=Message(payload=kept), acquired_count=1), kind)
        is kept
    )


@given(st.binary(max_size=40) | st.binary(max_size=20).map(lambda tail: b"\x00\x53\x70\xc0" + tail))
@settings(derandomize=True, max_examples=300, deadline=None)
def test_octets_that_are_no_message_never_break_the_broker(octets):
    """What cannot be read goes on; the octets that came are all still there."""
    after = routed(octets, "", "k")
    assert len(after) >= len(octets)
