import pytest
from hypothesis import given, settings

from tests.amqp10 import strategies as gen
from workbench.amqp10.errors import DecodeError, LocalProtocolError
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
    decode_head,
    decode_message,
    encode_message,
)
from workbench.amqp10.values import Symbol, ULong


def test_octets_are_those_of_another_implementation():
    """Header, properties and amqp-value "hi" as python-qpid-proton 0.40.0 writes them."""
    raw = bytes.fromhex("00 53 70 45 00 53 73 45 00 53 77 a1 02 68 69")
    message = [Header(), Properties(), AmqpValue("hi")]
    assert encode_message(message) == raw
    assert decode_message(raw) == message


@given(gen.sections)
@settings(derandomize=True, max_examples=300, deadline=None)
def test_a_message_is_read_back_as_it_was_written(sections):
    """decode(encode(x)) is x, and the size is known without the octets [3.2]."""
    raw = encode_message(sections)
    decoded = decode_message(raw)
    assert [type(section) for section in decoded] == [type(section) for section in sections]
    for ours, theirs in zip(sections, decoded, strict=True):
        for name in getattr(ours, "__slots__", ()):
            assert gen.same(getattr(theirs, name), getattr(ours, name))
    assert encode_message(decoded) == raw


@pytest.mark.parametrize(
    "sections",
    [
        [AmqpValue(1), Header()],
        [Header(), Header()],
        [AmqpValue(1), AmqpValue(2)],
        [Data(b""), AmqpValue(2)],
        [Data(b""), AmqpSequence([])],
        [Footer({}), Data(b"")],
        [MessageAnnotations({}), DeliveryAnnotations({})],
        [Properties(), Properties()],
    ],
)
def test_sections_out_of_order_are_refused(sections):
    """Each section at most once and in order; only data and amqp-sequence may repeat [3.2]."""
    with pytest.raises(LocalProtocolError, match="cannot follow"):
        encode_message(sections)
    raw = b"".join(section.encode() for section in sections)
    with pytest.raises(DecodeError, match="cannot follow") as caught:
        decode_message(raw)
    assert caught.value.offset == len(sections[0].encode())


def test_a_body_may_have_several_parts_and_an_empty_payload_has_none():
    """One or more data, one or more amqp-sequence [3.2.6, 3.2.7]."""
    for message in ([Data(b"a"), Data(b"b")], [AmqpSequence([1]), AmqpSequence([])]):
        assert decode_message(encode_message(message)) == message
    assert decode_message(b"") == []


@pytest.mark.parametrize(
    ("text", "offset", "part"),
    [
        ("00 53 79 45", 1, "descriptor 0x79 names no message section"),
        ("00 53 75 a1 00", 3, "data section must be binary (0xa0 or 0xb0); found a string"),
        ("00 53 74 45", 3, "application-properties section must be map"),
        ("00 53 70 c0 02 01 43", 6, "header.durable must be boolean"),
        ("00 53 73 c0 02 01 43", 6, "properties.message-id must be ulong, uuid, binary or string"),
        ("00 53 75", 3, "only 0 remain"),
        ("00 53 75 a0 05 61", 5, "only 1 remain"),
        ("41", 0, "begins with the octet 0x00"),
    ],
)
def test_what_is_no_message_is_refused_with_place_and_reason(text, offset, part):
    """Unknown sections, wrong types, cut values."""
    with pytest.raises(DecodeError) as caught:
        decode_message(bytes.fromhex(text))
    assert part in caught.value.message
    assert caught.value.offset == offset


def test_annotations_have_symbols_as_keys_and_application_properties_strings():
    """A plain str as key is sent as what the section demands [3.2.2, 3.2.5]."""
    raw = encode_message([MessageAnnotations({"x-opt": 1}), ApplicationProperties({"key": 1})])
    annotations, properties = decode_message(raw)
    assert type(next(iter(annotations.value))) is Symbol
    assert type(next(iter(properties.value))) is str


@pytest.mark.parametrize(
    "section",
    [Data("text"), AmqpSequence({}), Footer([]), ApplicationProperties(5), AmqpValue(object())],
)
def test_a_section_of_another_type_is_refused_here(section):
    """Misuse on this side is a LocalProtocolError."""
    with pytest.raises(LocalProtocolError):
        encode_message([section])


def test_a_plain_number_as_message_id_is_a_ulong():
    """message-id is ulong, uuid, binary or string [3.2.11]."""
    raw = encode_message([Properties(message_id=5, correlation_id="c")])
    (properties,) = decode_message(raw)
    assert gen.same(properties.message_id, ULong(5))
    assert properties.correlation_id == "c"
    with pytest.raises(LocalProtocolError, match=r"properties\.message-id"):
        Properties(message_id=-1).encode()
    with pytest.raises(LocalProtocolError, match=r"properties\.message-id"):
        Properties(message_id=Symbol("s")).encode()


def test_a_head_ends_before_the_body_whatever_that_is():
    """What cannot be read behind it does not matter, nor how large it is."""
    sections = [Header(durable=True), Properties(to="x"), ApplicationProperties({"a": 1})]
    raw = encode_message(sections)
    for body in (b"", b"\x00\x53\x77\xd0\xff\xff", encode_message([Data(b"x")])):
        assert list(decode_head(raw + body)) == sections
    with pytest.raises(DecodeError):
        list(decode_head(raw + b"\x00"))
