import struct

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10 import strategies as gen
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
from workbench.amqp10.messaging import AmqpValue, Data, Header, Source, encode_message
from workbench.amqp10.performatives import Attach, Flow, Role, SaslInit, Transfer
from workbench.amqp10.spans import field_spans
from workbench.amqp10.value_text import LONGEST, value_text
from workbench.amqp10.values import Described, Symbol, Timestamp, ULong


def leaves(raw, **options):
    return [span for span in field_spans(raw, **options) if span.leaf]


def tile(raw, spans):
    """The leaves cover every octet once, in order."""
    at = 0
    for span in spans:
        assert span.start == at < span.end
        at = span.end
    assert at == len(raw)


def by_path(raw, **options):
    spans = field_spans(raw, **options)
    paths = {span.path: span for span in spans}
    assert len(paths) == len(spans)
    return paths


@given(gen.frames | gen.headers)
@settings(derandomize=True, max_examples=300, deadline=None)
def test_every_octet_of_a_frame_belongs_to_exactly_one_leaf(item):
    """Leaves tile the frame, groups enclose what follows them, no path comes twice."""
    raw = encode_item(item)
    spans = field_spans(raw)
    tile(raw, [span for span in spans if span.leaf])
    assert not any(span.path == "undecodable" for span in spans)
    starts = [span.start for span in spans]
    assert starts == sorted(starts)
    by_path(raw)


@given(gen.frames, st.data())
@settings(derandomize=True, max_examples=200, deadline=None)
def test_octets_that_cannot_be_read_get_spans_too(frame, data):
    """Whatever the octets, the leaves tile them; the unreadable rest says why."""
    raw = bytearray(encode_item(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = bytes(raw[: data.draw(st.integers(1, len(raw)))])
    tile(raw, leaves(raw))


@given(gen.frames)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_every_field_that_is_present_has_a_span_with_its_text(frame):
    """Fields of the performative are found under `name.field`."""
    performative = frame.performative
    if performative is None:
        return
    name = performative.NAME.replace("-", "_")
    paths = by_path(encode_item(frame))
    for field in performative.present():
        assert f"{name}.{field}" in paths
    assert paths["frame.size"].value_text == str(len(encode_item(frame)))


def test_a_flow_is_shown_with_types_constructors_and_values():
    """The constructor octet is explained, absent fields say what their absence means."""
    flow = Flow(
        incoming_window=400, next_outgoing_id=0, outgoing_window=1, handle=0, link_credit=10
    )
    paths = by_path(encode_item(Frame(2, flow)))
    credit = paths["flow.link_credit"]
    assert (credit.type_name, credit.constructor, credit.value_text) == (
        "uint",
        "smalluint 0x52",
        "10",
    )
    assert credit.end - credit.start == 2
    assert paths["flow.next_outgoing_id"].type_name == "transfer-number"
    assert paths["flow.next_outgoing_id"].constructor == "uint0 0x43"
    assert paths["flow.next_incoming_id"].value_text == "absent"
    assert paths["flow.descriptor"].value_text == "0x13 flow"
    assert paths["flow.list"].value_text == "7 of 11 fields"
    assert paths["frame.channel"].value_text == "2"


def test_termini_maps_and_arrays_are_nested():
    """attach.source.address and the like; map entries by number, so that no key can clash."""
    attach = Attach(
        name="l",
        handle=0,
        role=Role.RECEIVER,
        source=Source(
            address="/queues/q",
            filter={"f": Described(ULong(0x468C00000004), "x")},
            outcomes=("amqp:accepted:list", "amqp:rejected:list"),
        ),
        properties={"k": [1, True]},
    )
    paths = by_path(encode_item(Frame(0, attach)))
    assert paths["attach.source.address"].value_text == "'/queues/q'"
    assert paths["attach.role"].value_text == "receiver (true)"
    assert paths["attach.snd_settle_mode"].value_text == "absent: mixed (2)"
    assert paths["attach.source.expiry_policy"].value_text == "absent: session-end"
    assert paths["attach.source.filter[0].key"].value_text == "f"
    assert paths["attach.source.filter[0].value.value"].value_text == "'x'"
    assert paths["attach.source.outcomes[1]"].value_text == "amqp:rejected:list"
    assert paths["attach.properties[0].value[1]"].value_text == "true"
    source = paths["attach.source"]
    assert not source.leaf
    assert source.start <= paths["attach.source.address"].start < source.end


MESSAGE = encode_message([Header(durable=True), Data(b"a"), Data(b"b")])


def test_sections_of_a_message_are_found_in_the_payload():
    """Sections by name; a second one of the same kind has a number."""
    raw = encode_item(Frame(0, Transfer(handle=0, delivery_id=0, delivery_tag=b"t"), MESSAGE))
    paths = by_path(raw)
    assert paths["transfer.payload.header.durable"].value_text == "true"
    assert paths["transfer.payload.data.value"].value_text == "'a' (1 octet)"
    assert paths["transfer.payload.data[1].value"].value_text == "'b' (1 octet)"
    assert paths["transfer.payload"].end == len(raw)


def test_the_payload_of_a_continuation_is_opaque():
    """A transfer without delivery-id goes on a message; its octets begin anywhere [2.6.14]."""
    raw = encode_item(Frame(0, Transfer(handle=0), MESSAGE))
    paths = by_path(raw)
    assert paths["transfer.payload"].leaf
    assert "transfer.payload.header" not in paths
    first = encode_item(Frame(0, Transfer(handle=0, delivery_id=0, delivery_tag=b""), MESSAGE))
    assert by_path(first, continuation=True)["transfer.payload"].leaf
    assert "transfer.payload.header" in by_path(raw, continuation=False)


def test_a_section_that_goes_on_in_the_next_transfer_is_the_rest():
    """Whole sections are read, what is cut is opaque."""
    cut = MESSAGE[:-1]
    transfer = Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True)
    raw = encode_item(Frame(0, transfer, cut))
    paths = by_path(raw)
    assert "transfer.payload.data.value" in paths
    assert "only 0 remain" in paths["transfer.payload.rest"].value_text
    tile(raw, leaves(raw))


def test_protocol_headers_and_sasl_frames_are_shown():
    """The eight octets of a header; SASL ignores its channel octets."""
    assert by_path(encode_item(ProtocolHeader(3)))["header.protocol_id"].value_text == "3 (SASL)"
    paths = by_path(encode_item(Frame(0, SaslInit(mechanism="PLAIN"))))
    assert paths["frame.ignored"].value_text == "0"
    assert paths["sasl_init.mechanism"].value_text == "PLAIN"


def test_what_cannot_be_read_says_why():
    """The reason of the decoder stands at the octets that it concerns."""
    raw = bytes.fromhex("00 00 00 0e 02 00 00 00 00 53 13 c0 02 05")
    paths = by_path(raw)
    assert "claims 5 elements in 1 octets" not in paths["undecodable"].value_text
    assert paths["undecodable"].start == 11
    lying = by_path(bytes.fromhex("00 00 00 09 02 00 00 00"))
    assert lying["frame.size"].value_text == "9, but 8 octets are here"


def test_text_of_values_is_short_and_safe():
    """Control characters are escaped, long values cut with their length told."""
    assert value_text("a\n\u202e<img>") == "'a\\n\\u202e<img>'"
    assert value_text(Symbol("a\tb")) == "a\\tb"
    assert value_text(b"\x00\xff") == "0x00ff (2 octets)"
    assert value_text(bytes(500)).endswith("… (500 octets)")
    assert len(value_text("x" * 10_000)) < LONGEST + 30
    assert len(value_text([["y" * 500] * 1000] * 1000)) < 20 * LONGEST
    assert value_text(Timestamp(0)) == "0 (1970-01-01T00:00:00.000Z)"
    assert value_text(Timestamp(2**62)) == f"{2**62} ms since 1970"
    assert value_text(AmqpValue).startswith("<class")
    assert value_text({Symbol("k"): [None, True, 1.5]}) == "{k: [null, true, 1.5]}"
    assert value_text(Source(address="q", dynamic=False)) == "source(address='q', dynamic=false)"
    assert value_text(Described(ULong(0x99), [None])) == "0x99([null])"
    assert value_text(Source(expiry_policy="never")) == "source(expiry-policy='never')"


@given(gen.values)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_any_value_has_a_text_of_one_printable_line(value):
    """Nothing that moves a cursor or a reading direction comes through."""
    assert value_text(value).isprintable()


def test_one_octet_is_not_called_octets():
    """A delivery-tag of one octet, as Proton sends it, reads as what it is."""
    assert value_text(b"\x02") == "0x02 (1 octet)"
    assert value_text(b"\x02\x03") == "0x0203 (2 octets)"


def test_sources_in_sources_end_in_a_leaf_that_is_undecodable():
    """As deep as a frame is long: an outcome may be described as a source, and hold one."""
    source = b"\x40"
    for _ in range(1_000):
        fields = 8 * b"\x40" + source
        source = b"\x00\x53\x28\xd0" + struct.pack(">II", len(fields) + 4, 9) + fields
    fields = b"\xa1\x01l\x43\x42\x40\x40" + source
    attach = b"\x00\x53\x12\xd0" + struct.pack(">II", len(fields) + 4, 6) + fields
    raw = struct.pack(">IBBH", len(attach) + 8, 2, 0, 0) + attach
    tile(raw, leaves(raw))
    assert leaves(raw)[-1].path == "undecodable"
