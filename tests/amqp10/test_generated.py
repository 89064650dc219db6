"""The generated codecs read, refuse and write what the plain loops over the fields do."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp10.composite import BY_DESCRIPTOR, read_list
from workbench.amqp10.encoder import encode_list_body
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.performatives import Transfer

from . import strategies as gen

TYPES = sorted(set(BY_DESCRIPTOR.values()), key=lambda kind: kind.DESCRIPTOR)
TELLING = [0x40, 0x41, 0x42, 0x43, 0x45, 0x52, 0x70, 0x80, 0xA0, 0xA1, 0xB0, 0xC0, 0xD0, 0, 1, 2]
"""Octets that mean something wherever a value may begin, or count."""


def outcome(read, *arguments):
    """What reading gives: a value and where it ends, or the words and the place of the fault."""
    try:
        return read(*arguments)
    except DecodeError as error:
        return error.reason, error.offset


def damaged(raw: bytes, chooser: random.Random) -> bytes:
    """Some octets behind the descriptor changed, perhaps cut short, perhaps with more behind."""
    octets = bytearray(raw)
    for _ in range(chooser.choice((0, 1, 1, 2, 3))):
        at = chooser.randrange(3, len(octets))
        octets[at] = chooser.choice(TELLING) if chooser.random() < 0.7 else chooser.randrange(256)
    if chooser.random() < 0.3:
        del octets[chooser.randrange(4, len(octets) + 1) :]
    return bytes(octets) + chooser.randbytes(chooser.choice((0, 0, 5)))


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.NAME)
@given(data=st.data())
@settings(derandomize=True, max_examples=25, deadline=None)
def test_a_generated_decoder_reads_and_refuses_as_the_plain_reader(kind, data):
    """The same value, or the same fault in the same words at the same octet, for every type."""
    raw = data.draw(gen.composites(kind)).encode()
    chooser = random.Random(data.draw(st.integers(0, 2**32)))
    for _ in range(40):
        octets = damaged(raw, chooser)
        end = len(octets) - chooser.choice((0, 0, 1)) * (len(octets) > 4)
        generated = outcome(kind.decode_list, octets, 3, end)
        plain = outcome(read_list, kind, octets, 3, end)
        assert gen.same(generated, plain), octets.hex()


def written_plainly(value) -> bytes:
    """Descriptor and list of a value, field by field."""
    parts = []
    for spec, encode in zip(value.FIELDS, value._encoders, strict=True):
        field = getattr(value, spec.name)
        parts.append(b"\x40" if field is None else encode(field))
    while parts and parts[-1] == b"\x40":
        del parts[-1]
    return bytes((0x00, 0x53, value.DESCRIPTOR)) + encode_list_body(len(parts), b"".join(parts))


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.NAME)
@given(data=st.data())
@settings(derandomize=True, max_examples=25, deadline=None)
def test_a_generated_encoder_writes_what_the_fields_give(kind, data):
    """Every type, every field present or absent; and its size is the number of its octets."""
    value = data.draw(gen.composites(kind))
    assert value.encode() == written_plainly(value)
    assert value.size() == len(value.encode())


def test_the_source_of_a_codec_can_be_read():
    """It names the type's fields, and is the code that runs."""
    assert "delivery_tag" in Transfer.SOURCE
    assert Transfer.SOURCE.startswith("def decode_list(data, start, end):")
    assert Transfer.encode.__code__.co_filename == "<codec of transfer>"
