import pickle

import pytest
from hypothesis import given, settings

from tests.amqp10 import strategies as gen
from workbench.amqp10.composite import BY_DESCRIPTOR
from workbench.amqp10.decoder import read_compound_header
from workbench.amqp10.encoder import encode_list_body, encode_value
from workbench.amqp10.errors import DecodeError, ErrorCondition, LocalProtocolError
from workbench.amqp10.messaging import (
    Accepted,
    DeleteOnClose,
    Modified,
    Received,
    Rejected,
    Source,
    Target,
)
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SenderSettleMode,
    Transfer,
    decode_performative,
)
from workbench.amqp10.values import Described, Symbol, ULong

WINDOW = 2147483647

# Bodies produced by another implementation (python-qpid-proton 0.40.0).
WINDOWS = {"incoming_window": WINDOW, "outgoing_window": WINDOW}
NOBODY = {"durable": 0, "timeout": 0, "dynamic": False}
GOLDEN = [
    (Open(container_id="c1", hostname="vhost:/", max_frame_size=32768, channel_max=32767),
     "00 53 10 c0 16 04 a1 02 63 31 a1 07 76 68 6f 73 74 3a 2f 70 00 00 80 00 60 7f ff"),
    (Begin(next_outgoing_id=0, handle_max=WINDOW, **WINDOWS),
     "00 53 11 c0 12 05 40 43 70 7f ff ff ff 70 7f ff ff ff 70 7f ff ff ff"),
    (Begin(remote_channel=0, next_outgoing_id=0, handle_max=WINDOW, **WINDOWS),
     "00 53 11 c0 14 05 60 00 00 43 70 7f ff ff ff 70 7f ff ff ff 70 7f ff ff ff"),
    (Attach(name="rl", handle=0, role=Role.RECEIVER, snd_settle_mode=SenderSettleMode.MIXED,
            rcv_settle_mode=ReceiverSettleMode.FIRST, source=Source(address="/queues/q", **NOBODY),
            target=Target(**NOBODY), initial_delivery_count=0, max_message_size=0),
     "00 53 12 c0 2f 0b a1 02 72 6c 43 41 50 02 50 00 00 53 28 c0 10 05 a1 09 2f 71 75 65 75 65 "
     "73 2f 71 43 40 43 42 00 53 29 c0 06 05 40 43 40 43 42 40 40 43 44"),
    (Flow(next_incoming_id=0, next_outgoing_id=0, handle=0, delivery_count=0, link_credit=2,
          drain=False, **WINDOWS),
     "00 53 13 c0 13 09 43 70 7f ff ff ff 43 70 7f ff ff ff 43 43 52 02 40 42"),
    (Transfer(handle=0, delivery_id=0, delivery_tag=b"\0", message_format=0),
     "00 53 14 c0 07 04 43 43 a0 01 00 43"),
    (Disposition(role=Role.RECEIVER, first=0, settled=True, state=Accepted()),
     "00 53 15 c0 09 05 41 43 40 41 00 53 24 45"),
    (Flow(next_incoming_id=1, next_outgoing_id=0, handle=0, delivery_count=1, link_credit=1,
          drain=True, **WINDOWS),
     "00 53 13 c0 15 09 52 01 70 7f ff ff ff 43 70 7f ff ff ff 43 52 01 52 01 40 41"),
    (Flow(next_incoming_id=0, next_outgoing_id=1, handle=0, delivery_count=2, link_credit=0,
          drain=True, **WINDOWS),
     "00 53 13 c0 14 09 43 70 7f ff ff ff 52 01 70 7f ff ff ff 43 52 02 43 40 41"),
    (Detach(handle=0, closed=True), "00 53 16 c0 03 02 43 41"),
    (End(), "00 53 17 45"),
    (Close(), "00 53 18 45"),
]  # fmt: skip

COMPOSITES = sorted(set(BY_DESCRIPTOR.values()), key=lambda cls: cls.DESCRIPTOR)
by_name = pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.NAME)


@pytest.mark.parametrize(("performative", "text"), GOLDEN, ids=lambda x: getattr(x, "NAME", ""))
def test_octets_are_those_of_another_implementation(performative, text):
    """Same fields, same octets, both ways [2.7]."""
    raw = bytes.fromhex(text)
    assert performative.encode() == raw
    assert performative.size() == len(raw)
    assert decode_performative(raw) == (performative, len(raw))


@by_name
def test_a_composite_is_read_back_as_it_was_written(cls):
    """decode(encode(x)) is x for every composite type, and its size is known without octets."""

    @given(gen.composites(cls))
    @settings(derandomize=True, max_examples=60, deadline=None)
    def check(value):
        raw = value.encode()
        assert value.size() == len(raw)
        decoded, end = cls.decode_list(raw, 3, len(raw))
        assert end == len(raw)
        assert gen.same(decoded, value)
        assert decoded == value
        assert decoded.encode() == raw

    check()


@by_name
def test_a_symbolic_descriptor_and_a_wide_list_mean_the_same(cls):
    """A descriptor may be a ulong of any width or the symbol; a list may be wide [1.2, 1.4]."""

    @given(gen.composites(cls))
    @settings(derandomize=True, max_examples=10, deadline=None)
    def check(value):
        raw = value.encode()
        for descriptor in (
            encode_value(cls.SYMBOL),
            b"\x80" + cls.DESCRIPTOR.to_bytes(8, "big"),
        ):
            wide = b"\x00" + descriptor + widened(raw[3:])
            if cls in (*gen.PERFORMATIVES, *gen.SASL):
                assert decode_performative(wide) == (value, len(wide))
            else:
                assert cls.decode_list(wide, 1 + len(descriptor), len(wide))[0] == value

    check()


def widened(listed: bytes) -> bytes:
    """The same list as list32."""
    if listed[0] == 0x45:
        return bytes.fromhex("d0 00000004 00000000")
    if listed[0] == 0xD0:
        return listed
    count, at, stop = read_compound_header(listed, 1, len(listed), 1, "list")
    return b"\xd0" + (stop - at + 4).to_bytes(4, "big") + count.to_bytes(4, "big") + listed[at:]


@by_name
def test_absent_fields_at_the_end_may_be_sent_as_nulls(cls):
    """A missing trailing field is a null field [1.4]."""

    @given(gen.composites(cls))
    @settings(derandomize=True, max_examples=10, deadline=None)
    def check(value):
        parts = [
            b"\x40" if part is None else encode(part)
            for part, encode in zip(
                (getattr(value, spec.name) for spec in cls.FIELDS), cls._encoders, strict=True
            )
        ]
        raw = encode_list_body(len(parts), b"".join(parts))
        assert cls.decode_list(raw, 0, len(raw))[0] == value

    check()


@by_name
def test_a_mandatory_field_must_be_given_and_must_come(cls):
    """Absent on this side it is a local error; from the peer, a decode-error [1.4]."""
    mandatory = [spec for spec in cls.FIELDS if spec.mandatory]
    if mandatory:
        with pytest.raises(LocalProtocolError, match=f"{cls.NAME}.{mandatory[0].spec_name} is"):
            cls()
        with pytest.raises(DecodeError, match=f"{cls.NAME}.{mandatory[0].spec_name} is mandatory"):
            cls.decode_list(b"\x45", 0, 1)
    else:
        assert cls.decode_list(b"\x45", 0, 1)[0] == cls()


@by_name
def test_a_list_with_more_fields_than_the_type_has_is_refused(cls):
    """One field too many is not quietly dropped [1.4]."""
    count = len(cls.FIELDS) + 1
    raw = encode_list_body(count, b"\x40" * count)
    with pytest.raises(DecodeError, match=f"has {count - 1} fields, the list holds {count}"):
        cls.decode_list(raw, 0, len(raw))


@by_name
def test_a_field_of_another_type_is_refused_by_name(cls):
    """The error names the field and what would be legal [2.8.15]."""
    for index, spec in enumerate(cls.FIELDS):
        raw = encode_list_body(index + 1, b"\x40" * index + b"\x72\x00\x00\x00\x00")
        with pytest.raises(
            DecodeError, match=f"^at octet {3 + index}: {cls.NAME}.{spec.spec_name}"
        ):
            cls.decode_list(raw, 0, len(raw))
        given_wrong = {
            s.name: object() if s is spec else "x" for s in cls.FIELDS if s.mandatory or s is spec
        }
        with pytest.raises(LocalProtocolError, match=cls.NAME):
            cls(**given_wrong).encode()


@by_name
def test_values_are_frozen_and_can_be_copied(cls):
    """A decoded value is in no way different from a constructed one: frozen, equal, picklable."""

    @given(gen.composites(cls))
    @settings(derandomize=True, max_examples=3, deadline=None)
    def check(value):
        raw = value.encode()
        decoded = cls.decode_list(raw, 3, len(raw))[0]
        assert type(decoded) is cls
        assert pickle.loads(pickle.dumps(decoded)) == value
        assert repr(decoded) == repr(value)
        for spec in cls.FIELDS[:1]:
            with pytest.raises(AttributeError):
                setattr(decoded, spec.name, None)

    check()


def test_absent_fields_have_the_specification_s_default_only_when_asked():
    """None is what was on the wire; get() gives what it means [1.4]."""
    flow = Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3)
    assert (flow.drain, flow.get("drain"), flow.get("link_credit")) == (None, False, None)
    assert flow.present() == {"incoming_window": 1, "next_outgoing_id": 2, "outgoing_window": 3}
    assert Disposition(role=Role.SENDER, first=7).get("last") == 7
    assert Attach(name="l", handle=0, role=Role.SENDER).get("snd_settle_mode") == (
        SenderSettleMode.MIXED
    )
    with pytest.raises(KeyError):
        flow.get("nonsense")


def test_a_field_of_several_values_is_null_one_value_or_an_array():
    """`multiple`: all three forms are read; one value is sent bare, more as an array [1.4]."""
    one = SaslMechanisms(sasl_server_mechanisms=("PLAIN",))
    two = SaslMechanisms(sasl_server_mechanisms=("PLAIN", "ANONYMOUS"))
    assert one.encode().hex(" ") == "00 53 40 c0 08 01 a3 05 50 4c 41 49 4e"
    assert two.encode()[6] == 0xE0
    as_array = bytes.fromhex("00 53 40 c0 0a 01 e0 07 01 a3 05 50 4c 41 49 4e")
    as_array = as_array[:4] + bytes((11,)) + as_array[5:7] + bytes((8,)) + as_array[8:]
    assert decode_performative(as_array)[0] == one
    assert decode_performative(two.encode())[0] == two
    of_text = bytes.fromhex("00 53 40 c0 07 01 e0 04 01 a1 01 50")
    with pytest.raises(DecodeError, match=r"symbol \(0xa3 or 0xb3\) or an array of it"):
        decode_performative(of_text)


def test_text_is_taken_where_a_symbol_is_meant():
    """A plain str, or an ErrorCondition, stands for a symbol in fields of that type."""
    error = Error(condition=ErrorCondition.NOT_FOUND, info={"address": "q"})
    assert decode_list(Error, error.encode()).info == {Symbol("address"): "q"}
    assert type(next(iter(decode_list(Error, error.encode()).info))) is Symbol
    assert decode_list(SaslInit, SaslInit(mechanism="PLAIN").encode()).mechanism == "PLAIN"
    with pytest.raises(LocalProtocolError, match=r"sasl-init\.mechanism"):
        SaslInit(mechanism="é").encode()


def decode_list(cls, raw):
    return cls.decode_list(raw, 3, len(raw))[0]


def test_a_delivery_tag_has_at_most_32_octets():
    """32 are legal, 33 are not, from either side [2.8.7]."""
    assert decode_performative(Transfer(handle=0, delivery_tag=bytes(32)).encode())
    with pytest.raises(LocalProtocolError, match="legal is up to 32"):
        Transfer(handle=0, delivery_tag=bytes(33)).encode()
    raw = bytes.fromhex("00 53 14 c0 26 03 43 43 a0 21") + bytes(33)
    with pytest.raises(DecodeError, match="has 33 octets; legal is up to 32"):
        decode_performative(raw)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (
            "00 53 12 c0 08 04 a1 01 6c 43 42 50 03",
            "attach.snd-settle-mode is 3; legal are 0 unset",
        ),
        ("00 53 12 c0 06 03 a1 01 6c 43 43", "attach.role must be boolean"),
        ("00 53 44 c0 03 01 50 09", "sasl-outcome.code is 9; legal are 0 ok"),
        ("00 53 99 45", "descriptor 0x99 names no performative"),
        ("00 53 24 45", "descriptor 0x24 names no performative"),
        ("00 a3 01 78 45", "descriptor x names no performative"),
        ("00 a1 01 78 45", "must be a ulong or a symbol"),
        ("45", "begins with the octet 0x00"),
        ("00 53 13 c1 01 00", "flow must be a list (0xc0, 0xd0 or 0x45); found a map"),
        (
            "00 53 15 c0 09 05 41 43 40 41 00 53 28 45",
            "disposition.state must be a delivery-state; found descriptor 0x28",
        ),
        ("00 53 17 c0 05 01 00 53 24 45", "end.error must be an error; found"),
    ],
)
def test_a_performative_that_cannot_be_is_refused(text, part):
    """Values outside of a choice, foreign descriptors, things in the wrong place."""
    with pytest.raises(DecodeError) as caught:
        decode_performative(bytes.fromhex(text))
    assert part in caught.value.message


def test_extensions_of_others_survive_unread():
    """Unknown descriptors in termini, states and filters are kept as they came [1.5]."""
    coordinator = Described(ULong(0x30), [Symbol("amqp:local-transactions")])
    filtered = Source(
        address="q",
        filter={"offset": Described(Symbol("rabbitmq:stream-offset-spec"), "first")},
    )
    attach = Attach(name="l", handle=0, role=Role.SENDER, source=filtered, target=coordinator)
    assert decode_performative(attach.encode())[0] == attach
    transactional = Described(ULong(0x34), [b"txn", Accepted()])
    disposition = Disposition(role=Role.RECEIVER, first=0, state=transactional)
    decoded = decode_performative(disposition.encode())[0]
    assert gen.same(decoded.state, Described(ULong(0x34), [b"txn", Described(ULong(0x24), [])]))


def test_states_in_maps_are_read_where_the_specification_puts_them():
    """attach.unsettled holds delivery states, dynamic-node-properties a lifetime policy."""
    attach = Attach(
        name="l",
        handle=1,
        role=Role.RECEIVER,
        unsettled={
            b"tag1": Received(section_number=1, section_offset=2),
            b"tag2": Rejected(error=Error(condition=Symbol("amqp:not-found"))),
            b"tag3": Modified(delivery_failed=True),
            b"tag4": None,
        },
        source=Source(dynamic=True, dynamic_node_properties={"lifetime-policy": DeleteOnClose()}),
    )
    assert gen.same(decode_performative(attach.encode())[0].unsettled, attach.unsettled)
    assert decode_performative(attach.encode())[0] == attach


def test_numbers_out_of_range_are_refused_before_anything_is_sent():
    """Credit above 2^32 - 1 or below 0 has no encoding [1.6.5]."""
    for wrong in (-1, 2**32, "10", 1.5):
        flow = Flow(incoming_window=1, next_outgoing_id=2, outgoing_window=3, link_credit=wrong)
        with pytest.raises(LocalProtocolError, match=r"flow.link-credit = .* legal is uint"):
            flow.encode()
    assert SaslOutcome(code=0).encode() == SaslOutcome(code=SaslCode.OK).encode()
