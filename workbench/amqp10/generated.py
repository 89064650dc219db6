"""The codec of a composite type, written from its fields when the class is made [1.4].

`dataclasses` and `attrs` make `__init__` in this way. A field gets a few lines that know the usual
encodings of its type; every other encoding goes to the field's own `decode` or `encode` (see
`fields`). A wide list, or a faulty one, goes to `composite.read_list`, which says what is wrong.
`print(Transfer.SOURCE)` shows the code.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from workbench.amqp10.encoder import NULL, SMALL_UINT, encode_list_body
from workbench.amqp10.errors import DecodeError, LocalProtocolError
from workbench.amqp10.fields import ENCODE_FAULTS, MAX_DELIVERY_TAG, FieldCodec, FieldSpec
from workbench.amqp10.restricted import CHOICES, Role, primitive_of

__all__ = ["make_codec"]

_NAMES: dict[str, object] = {
    "unpack_uint": struct.Struct(">I").unpack_from,
    "pack_uint": struct.Struct(">BI").pack,
    "NULL": NULL,
    "SMALL_UINT": SMALL_UINT,
    "TRUE": b"\x41",
    "FALSE": b"\x42",
    "BINARY": [bytes((0xA0, size)) for size in range(MAX_DELIVERY_TAG + 1)],
    "OCTET": [bytes((number,)) for number in range(256)],
    "SENDER": Role.SENDER,
    "RECEIVER": Role.RECEIVER,
    "list_body": encode_list_body,
    "READ_FAULTS": (IndexError, struct.error, DecodeError),
    "WRITE_FAULTS": (LocalProtocolError, *ENCODE_FAULTS),
}
"""What the generated code may name, beside its own class and its fields' codecs."""

_READ = {
    "uint": """\
code = data[at]
if code == 0x52:
    {f} = data[at + 1]
    at += 2
elif code == 0x43:
    {f} = 0
    at += 1
elif code == 0x70:
    ({f},) = unpack_uint(data, at + 1)
    at += 5
elif code == 0x40:
    at += 1
else:
    {f}, at = decode_{f}(data, at, stop)
""",
    "boolean": """\
code = data[at]
if code == 0x41:
    {f} = True
    at += 1
elif code == 0x42:
    {f} = False
    at += 1
elif code == 0x40:
    at += 1
else:
    {f}, at = decode_{f}(data, at, stop)
""",
    "role": """\
code = data[at]
if code == 0x41:
    {f} = RECEIVER
    at += 1
elif code == 0x42:
    {f} = SENDER
    at += 1
elif code == 0x40:
    at += 1
else:
    {f}, at = decode_{f}(data, at, stop)
""",
    "delivery-tag": """\
if data[at] == 0xA0 and data[at + 1] <= {longest}:
    begin = at + 2
    at = begin + data[at + 1]
    {f} = data[begin:at]
elif data[at] == 0x40:
    at += 1
else:
    {f}, at = decode_{f}(data, at, stop)
""",
    "state": """\
{f} = EMPTY.get(data[at : at + 4])
if {f} is not None:
    at += 4
elif data[at] == 0x40:
    at += 1
else:
    {f}, at = decode_{f}(data, at, stop)
""",
    "": """\
if data[at] == 0x40:
    at += 1
else:
    {f}, at = decode_{f}(data, at, stop)
""",
}
"""The lines that read a field, by `_kind`; `{f}` is its name, None until then."""

_WRITE = {
    "uint": "SMALL_UINT[x] if 0 <= x <= 255 else pack_uint(0x70, x)",
    "boolean": "TRUE if x is True else FALSE if x is False else encode_{f}(x)",
    "role": "TRUE if x is RECEIVER else FALSE if x is SENDER else encode_{f}(x)",
    "delivery-tag": "BINARY[len(x)] + x if len(x) <= {longest} else encode_{f}(x)",
    "state": "x.encode() if type(x) in STATES else encode_{f}(x)",
    "": "encode_{f}(x)",
}
"""The expression for the octets of a field's value `x`, likewise by `_kind`."""


def _kind(spec: FieldSpec) -> str:
    """Which lines are written for a field: a key of `_READ` and `_WRITE`."""
    if spec.multiple:
        return ""
    if spec.type in ("role", "delivery-tag"):
        return spec.type
    if spec.requires in ("delivery-state", "outcome"):
        return "state"
    if spec.type == "*" or spec.type in CHOICES:
        return ""
    primitive = primitive_of(spec.type)
    return primitive if primitive in ("uint", "boolean") else ""


def _lines(text: str, depth: int, spec: FieldSpec) -> str:
    filled = text.format(f=spec.name, longest=MAX_DELIVERY_TAG)
    return "".join("    " * depth + line + "\n" for line in filled.splitlines())


def _decoder_source(specs: Sequence[FieldSpec]) -> str:
    names = [spec.name for spec in specs]
    source = f"""\
def decode_list(data, start, end):
    try:
        if data[start] == 0xC0:
            stop, count, at = start + 2 + data[start + 1], data[start + 2], start + 3
        elif data[start] == 0x45:
            stop, count, at = start + 1, 0, start + 1
        else:
            return read_list(cls, data, start, end)
        if stop > end or count > {len(specs)}:
            return read_list(cls, data, start, end)
"""
    if names:
        source += f"        {' = '.join(names)} = None\n"
    for place, spec in enumerate(specs):
        source += _lines(f"if count > {place}:", 2 + place, spec)
        source += _lines(_READ[_kind(spec)], 3 + place, spec)
    wrong = ["at != stop", *(f"{spec.name} is None" for spec in specs if spec.mandatory)]
    return (
        source
        + f"""\
    except READ_FAULTS:
        return read_list(cls, data, start, end)
    if {" or ".join(wrong)}:
        return read_list(cls, data, start, end)
    return cls({", ".join(names)}), stop
"""
    )


def _encoder_source(code: int, specs: Sequence[FieldSpec]) -> str:
    prefix = bytes((0x00, 0x53, code))
    empty = f"return {prefix + b'E'!r}"
    if not specs:
        return f"def encode(self):\n    {empty}\n"
    least = max((place for place, spec in enumerate(specs, 1) if spec.mandatory), default=0)
    source = "def encode(self):\n    try:\n"
    for place in range(len(specs), least, -1):  # the list ends with the last field that is there
        word = "if" if place == len(specs) else "elif"
        source += _lines(
            f"{word} self.{{f}} is not None:\n    count = {place}", 2, specs[place - 1]
        )
    if least == len(specs):
        source += f"        count = {least}\n"
    elif least:
        source += f"        else:\n            count = {least}\n"
    else:
        source += f"        else:\n            {empty}\n"
    depth = 2
    for place, spec in enumerate(specs):
        if place >= max(least, 1):
            source += _lines(f"if count > {place}:", depth, spec)
            depth += 1
        source += _lines("x = self.{f}", depth, spec)
        octets = _WRITE[_kind(spec)]
        if not spec.mandatory:
            octets = f"NULL if x is None else {octets}"
        source += _lines(f"body {'+=' if place else '='} {octets}", depth, spec)
    return (
        source
        + f"""\
    except WRITE_FAULTS:
        raise self._misfit() from None
    if len(body) < 255:
        return {prefix + bytes((0xC0,))!r} + OCTET[len(body) + 1] + OCTET[count] + body
    return {prefix!r} + list_body(count, body)
"""
    )


def make_codec(
    cls: Any,
    codecs: Sequence[FieldCodec],
    read_list: Callable[..., Any],
    empty: dict[bytes, Any],
    states: set[type],
) -> tuple[str, Callable[..., Any], Callable[..., bytes]]:
    """Writes and compiles the codec of a composite type.

    Args:
        cls: the type; its `NAME`, `DESCRIPTOR` and `FIELDS` are there already.
        codecs: of its fields.
        read_list: reads any list of the type, or says what is wrong with it.
        empty: delivery states without a field by their octets; grows as they come.
        states: the delivery states; grows as they come.

    Returns:
        The source, `decode_list` and `encode`.
    """
    scope = {**_NAMES, "cls": cls, "read_list": read_list, "EMPTY": empty, "STATES": states}
    for spec, codec in zip(cls.FIELDS, codecs, strict=True):
        scope[f"decode_{spec.name}"], scope[f"encode_{spec.name}"] = codec.decode, codec.encode
    source = _decoder_source(cls.FIELDS) + "\n\n" + _encoder_source(cls.DESCRIPTOR, cls.FIELDS)
    exec(compile(source, f"<codec of {cls.NAME}>", "exec"), scope)
    return source, scope["decode_list"], scope["encode"]
