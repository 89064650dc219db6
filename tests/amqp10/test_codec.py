import struct
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.amqp10 import strategies as gen
from workbench.amqp10.constructor import FORMAT_CODES
from workbench.amqp10.decoder import MAX_DEPTH, MAX_EMPTY_ELEMENTS, decode
from workbench.amqp10.encoder import encode
from workbench.amqp10.errors import DecodeError, ErrorCondition, LocalProtocolError, Scope
from workbench.amqp10.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float32,
    Int,
    Long,
    MapPairs,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

EXAMPLES = [  # (octets of the shortest encoding, value) [1.6]
    ("40", None),
    ("41", True),
    ("42", False),
    ("50 ff", UByte(255)),
    ("60 01 00", UShort(256)),
    ("43", UInt(0)),
    ("52 ff", UInt(255)),
    ("70 00 00 01 00", UInt(256)),
    ("44", ULong(0)),
    ("53 ff", ULong(255)),
    ("80 00 00 00 00 00 00 01 00", ULong(256)),
    ("51 80", Byte(-128)),
    ("61 ff fe", Short(-2)),
    ("54 80", Int(-128)),
    ("71 ff ff ff 7f", Int(-129)),
    ("55 7f", Long(127)),
    ("81 00 00 00 00 00 00 00 80", Long(128)),
    ("72 3f 80 00 00", Float32(1.0)),
    ("82 3f f0 00 00 00 00 00 00", 1.0),
    ("74 00 00 00 01", Decimal32(b"\0\0\0\1")),
    ("84 00 00 00 00 00 00 00 01", Decimal64(bytes(7) + b"\1")),
    ("94" + " 00" * 15 + " 01", Decimal128(bytes(15) + b"\1")),
    ("73 00 01 f6 00", Char("\U0001f600")),
    ("83 ff ff ff ff ff ff ff ff", Timestamp(-1)),
    ("98" + " 00" * 15 + " 07", uuid.UUID(int=7)),
    ("a0 02 68 69", b"hi"),
    ("a1 02 c3 a9", "é"),
    ("a3 02 68 69", Symbol("hi")),
    ("45", []),
    ("c0 04 02 41 a1 00", [True, ""]),
    ("c1 01 00", {}),
    ("c1 06 02 a3 01 6b 52 05", {Symbol("k"): UInt(5)}),
    ("e0 05 02 a3 01 61 00", Array("symbol", (Symbol("a"), Symbol("")))),
    ("e0 04 02 52 00 05", Array("uint", (UInt(0), UInt(5)))),
    ("e0 0a 02 70 00 00 00 00 00 00 01 00", Array("uint", (UInt(0), UInt(256)))),
    ("e0 04 02 56 01 00", Array("boolean", (True, False))),
    ("e0 08 02 c0 01 00 03 02 41 42", Array("list", ([], [True, False]))),
    ("00 53 77 a1 00", Described(ULong(0x77), "")),
    ("00 a3 01 78 45", Described(Symbol("x"), [])),
]


WIDER = [  # other legal encodings of the same values
    ("56 01", True),
    ("56 00", False),
    ("52 00", UInt(0)),
    ("70 00 00 00 00", UInt(0)),
    ("70 00 00 00 05", UInt(5)),
    ("53 00", ULong(0)),
    ("80 00 00 00 00 00 00 00 05", ULong(5)),
    ("71 ff ff ff ff", Int(-1)),
    ("81 ff ff ff ff ff ff ff ff", Long(-1)),
    ("b0 00 00 00 01 61", b"a"),
    ("b1 00 00 00 01 61", "a"),
    ("b3 00 00 00 01 61", Symbol("a")),
    ("c0 01 00", []),
    ("d0 00 00 00 04 00 00 00 00", []),
    ("d0 00 00 00 06 00 00 00 02 41 42", [True, False]),
    ("d1 00 00 00 04 00 00 00 00", {}),
    ("d1 00 00 00 06 00 00 00 02 43 41", {UInt(0): True}),
    ("f0 00 00 00 07 00 00 00 02 52 00 05", Array("uint", (UInt(0), UInt(5)))),
    ("e0 02 03 41", Array("boolean", (True, True, True))),
    ("e0 02 02 45", Array("list", ([], []))),
    ("00 80 00 00 00 00 00 00 00 77 40", Described(ULong(0x77), None)),
    ("e0 07 01 00 a3 01 78 52 05", Array("uint", (UInt(5),), (Symbol("x"),))),
]


def octets(text: str) -> bytes:
    return bytes.fromhex(text)


@pytest.mark.parametrize(("text", "value"), EXAMPLES)
def test_each_type_is_written_in_its_shortest_encoding_and_read_back(text, value):
    """Every type of the specification both ways, with its octets written down [1.6]."""
    assert encode(value) == octets(text)
    decoded, end = decode(octets(text))
    assert gen.same(decoded, value)
    assert end == len(octets(text))


@pytest.mark.parametrize(("text", "value"), WIDER)
def test_every_wider_encoding_is_read(text, value):
    """A decoder takes any legal encoding, not only the one it would choose [1.2]."""
    decoded, end = decode(octets(text))
    assert gen.same(decoded, value)
    assert end == len(octets(text))


def test_examples_cover_every_format_code():
    """No constructor octet of the table is without an example above."""
    seen = {octets(text)[0] for text, _ in (*EXAMPLES, *WIDER)} - {0}
    assert seen == set(FORMAT_CODES)


@given(gen.values)
@settings(derandomize=True, max_examples=400, deadline=None)
def test_what_is_encoded_is_decoded_to_the_same_types_and_values(value):
    """decode(encode(x)) is x, in type and value [1.2]."""
    raw = encode(value)
    decoded, end = decode(raw)
    assert gen.same(decoded, value)
    assert end == len(raw)


@given(gen.values, st.binary(max_size=3), st.binary(max_size=3))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_value_is_read_where_it_lies(value, before, after):
    """decode reads one value at an offset and says where it ends."""
    raw = encode(value)
    decoded, end = decode(before + raw + after, len(before))
    assert gen.same(decoded, value)
    assert end == len(before) + len(raw)


@given(gen.values)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_no_proper_prefix_of_a_value_is_a_value(value):
    """A value that is cut anywhere is refused: nothing is guessed."""
    raw = encode(value)
    for end in range(len(raw)):
        with pytest.raises(DecodeError):
            decode(raw[:end])


REFUSED = [  # (octets, offset of the fault, part of the text)
    ("", 0, "a value takes 1 octet, only 0 remain"),
    ("ff", 0, "0xff, which is no format code of AMQP 1.0"),
    ("56 02", 1, "legal is 00 (false) or 01 (true)"),
    ("70 00 00 00", 1, "uint 0x70 takes 4 octets, only 3 remain"),
    ("73 00 00 d8 00", 1, "no Unicode character"),
    ("73 00 11 00 00", 1, "no Unicode character"),
    ("a1 02 c3 28", 2, "not UTF-8"),
    ("a1 03 ed a0 80", 2, "not UTF-8"),
    ("a3 01 e9", 2, "not ASCII: octet 0xe9"),
    ("a0 05 61", 2, "vbin8 0xa0 of size 5 takes 5 octets, only 1 remain"),
    ("b0 ff ff ff ff 61", 5, "takes 4294967295 octets, only 1 remain"),
    ("c0 03 03 41 41", 1, "claims 3 elements in 2 octets"),
    ("c0 00 00", 1, "does not even cover its count"),
    ("c0 09 01 41", 1, "takes 9 octets, only 2 remain"),
    ("c0 03 01 41 41", 4, "end at octet 4, its size says octet 5"),
    ("c0 03 02 52 05 41", 5, "only 0 remain"),
    ("d0 00 00 00 04 ff ff ff ff", 1, "claims 4294967295 elements in 0 octets"),
    ("c1 02 01 41", 1, "count 1; it counts keys and values, so it must be even"),
    ("c1 09 04 a3 01 6b 41 a3 01 6b 42", 1, "has the key k twice"),
    ("c1 0a 04 52 05 41 70 00 00 00 05 42", 1, "has the key 5 twice"),
    ("e0 02 41 41", 1, f"takes no octets; legal here is up to {MAX_EMPTY_ELEMENTS}"),
    ("f0 00 00 00 05 ff ff ff ff 41", 1, "claims 4294967295 elements of true"),
    ("f0 00 00 00 05 ff ff ff ff 52", 1, "at least 4294967295 octets; it has 0"),
    ("e0 01 01", 3, "element constructor"),
    ("e0 02 01 99", 3, "0x99, which is no format code"),
    ("e0 04 01 52 05 06", 5, "end at octet 5"),
    ("00", 1, "a value takes 1 octet"),
]


@pytest.mark.parametrize(("text", "offset", "part"), REFUSED)
def test_what_is_no_value_is_refused_with_place_and_reason(text, offset, part):
    """Bad octets end the connection with decode-error, and the text teaches [2.8.15]."""
    with pytest.raises(DecodeError) as caught:
        decode(octets(text))
    assert part in caught.value.message
    assert (caught.value.offset, caught.value.condition, caught.value.scope) == (
        offset,
        ErrorCondition.DECODE_ERROR,
        Scope.CONNECTION,
    )


@pytest.mark.parametrize(
    "wrap",
    [
        lambda raw: b"\xc0" + bytes((len(raw) + 1, 1)) + raw,
        lambda raw: b"\x00\x40" + raw,
        lambda raw: b"\xe0" + bytes((len(raw) + 1, 1)) + raw,
        lambda raw: b"\xc1" + bytes((len(raw) + 2, 2)) + b"\x40" + raw,
    ],
    ids=["list", "described", "array", "map"],
)
def test_nesting_ends_at_a_documented_depth(wrap):
    """Values nest MAX_DEPTH deep and no deeper, in whatever they are nested."""
    raw = b"\xc0\x01\x00"
    for _ in range(MAX_DEPTH - 1):
        raw = wrap(raw)
    decode(raw)
    with pytest.raises(DecodeError, match=f"deeper than {MAX_DEPTH}"):
        decode(wrap(raw))


def test_descriptors_without_end_do_not_exhaust_the_stack():
    """A descriptor may itself be described; a megabyte of 0x00 is refused, not followed."""
    with pytest.raises(DecodeError, match="nested deeper"):
        decode(bytes(1_000_000))
    with pytest.raises(DecodeError, match="nested deeper"):
        decode(b"\xf0" + struct.pack(">II", 4 + 100_000, 1) + bytes(100_000))


def test_what_is_encoded_nests_no_deeper_than_what_is_decoded():
    """The limit of the decoder holds for the encoder too."""
    value: object = []
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    assert decode(encode(value))[0] == value
    with pytest.raises(LocalProtocolError, match="nested deeper"):
        encode([value])


def test_keys_that_python_confuses_are_kept_apart():
    """uint 1, long 1, true and double 1.0 are four keys; a list can be a key [1.6.23]."""
    pairs = ((UInt(1), "a"), (Long(1), "b"), (True, "c"), (1.0, "d"), ([Symbol("x")], "e"))
    raw = encode(MapPairs(pairs))
    assert gen.same(decode(raw)[0], MapPairs(pairs))


def test_a_plain_int_is_a_long_and_above_its_range_a_ulong():
    """An int without a type goes as long where it fits."""
    assert gen.same(
        decode(encode([5, -(2**63), 2**63]))[0], [Long(5), Long(-(2**63)), ULong(2**63)]
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: UInt(2**32),
        lambda: UByte(-1),
        lambda: Symbol("é"),
        lambda: Char("ab"),
        lambda: Decimal32(b"123"),
        lambda: Float32(1e300),
        lambda: Array("nonsense"),
        lambda: encode(object()),
        lambda: encode(2**64),
        lambda: encode("\ud800"),
        lambda: encode(Array("uint", (2**32,))),
        lambda: encode(Array("uint", ("text",))),
        lambda: encode(Array("string", (b"octets",))),
        lambda: encode(Array("list", ("text",))),
        lambda: encode(Array("null", (None,) * (MAX_EMPTY_ELEMENTS + 1))),
    ],
)
def test_a_value_that_amqp_cannot_hold_is_refused_here(make):
    """Misuse on this side is a LocalProtocolError, before anything is sent."""
    with pytest.raises(LocalProtocolError):
        make()


def test_lists_grow_from_list8_to_list32_where_the_size_octet_ends():
    """254 octets of elements fit a list8 (its size counts the count), 255 do not [1.6.22]."""
    assert encode([b"x" * 252])[0] == 0xC0
    assert encode([b"x" * 253])[0] == 0xD0
    assert encode([None] * 254)[0] == 0xC0
    assert encode([None] * 255)[0] == 0xD0


def test_wrapped_values_compare_and_print_as_plain_ones():
    """A uint is a number, a symbol a string, wherever Python wants one."""
    assert UInt(5) == 5
    assert f"{UInt(5)} {Symbol('a')} {Timestamp(7):03d}" == "5 a 007"
    assert (repr(UInt(5)), repr(Symbol("a"))) == ("UInt(5)", "Symbol('a')")


@pytest.mark.parametrize("wrap", [lambda key: key, lambda key: Described(Symbol("d"), key)])
def test_keys_that_python_cannot_hash_apart_cost_no_more_than_others(monkeypatch, wrap):
    """A peer may choose UUIDs that all have one hash: a dict would compare each with each."""
    compared = 0

    def equal(one, other):
        nonlocal compared
        compared += 1
        return one.int == other.int

    keys = [uuid.UUID(int=number * (2**61 - 1)) for number in range(1, 301)]
    assert len({hash(key) for key in keys}) == 1
    raw = encode(MapPairs(tuple((wrap(key), None) for key in keys)))
    monkeypatch.setattr(uuid.UUID, "__eq__", equal)
    assert len(decode(raw)[0].items()) == 300
    assert compared < 2 * 300
    twice = encode(MapPairs(((wrap(keys[0]), 1), *((wrap(key), None) for key in keys))))
    with pytest.raises(DecodeError, match="twice"):
        decode(twice)
