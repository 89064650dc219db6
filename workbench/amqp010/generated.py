"""The codec of a struct, written from its fields when the class is made.

`dataclasses` and `attrs` make `__init__` in this way. Each field gets a few lines; those of the
usual types are written out, the others call their reader or writer in `values`.
`print(MessageTransfer.SOURCE)` shows the code.
"""

import struct
from collections.abc import Callable
from typing import Any

from .errors import DecodeError, LocalProtocolError
from .values import READ_FAULTS, READERS, WRITE_FAULTS, WRITERS

__all__ = ["BIT", "make_codec"]

BIT = "bit"
"""The type of a field whose flag is its value."""

_NAMES: dict[str, object] = {
    "DecodeError": DecodeError,
    "LocalProtocolError": LocalProtocolError,
    "READ_FAULTS": READ_FAULTS,
    "WRITE_FAULTS": WRITE_FAULTS,
    "OCTET": [bytes((number,)) for number in range(256)],
    "FLAGS": [number.to_bytes(2, "little") for number in range(1 << 16)],
    **{f"unpack_{n}": struct.Struct(f">{c}").unpack_from for n, c in ((16, "H"), (32, "I"))},
    **{f"pack_{n}": struct.Struct(f">{c}").pack for n, c in ((16, "H"), (32, "I"))},
}
"""What the generated code may name, beside its own class and readers and writers of its fields."""

_NUMBER = "({f},) = unpack_{n}(data, at)\nat += {w}\n"
_SIZED = "begin = at + {w}\nat = begin + unpack_{n}(data, at)[0]\n{f} = data[begin:at]{text}\n"
_SHORT = "begin = at + 1\nat = begin + data[at]\n{f} = data[begin:at]{text}\n"
_READ = {
    "uint8": "{f} = data[at]\nat += 1\n",
    "uint16": _NUMBER.replace("{n}", "16").replace("{w}", "2"),
    "uint32": _NUMBER.replace("{n}", "32").replace("{w}", "4"),
    "sequence-no": _NUMBER.replace("{n}", "32").replace("{w}", "4"),
    "str8": _SHORT.replace("{text}", ".decode()"),
    "vbin16": _SIZED.replace("{n}", "16").replace("{w}", "2").replace("{text}", ""),
    "vbin32": _SIZED.replace("{n}", "32").replace("{w}", "4").replace("{text}", ""),
}
"""The lines that read a field, by its type; `{f}` is its name."""

_WRITE = {
    "uint8": "OCTET[x] if x >= 0 else OCTET[256]",
    "uint16": "pack_16(x)",
    "uint32": "pack_32(x)",
    "sequence-no": "pack_32(x)",
    "vbin16": "pack_16(len(x)) + x",
    "vbin32": "pack_32(len(x)) + x",
}
"""The expression for the octets of a field's value `x`, likewise."""


def _lines(text: str, depth: int) -> str:
    return "".join("    " * depth + line + "\n" for line in text.splitlines())


def _decoder_source(name: str, fields: tuple[tuple[str, str], ...], sync: bool) -> str:
    known = (1 << len(fields)) - 1
    source = f"def decode_fields(data, at, stop{', sync' if sync else ''}):\n    try:\n"
    source += _lines(
        "flags = data[at] | data[at + 1] << 8\n"
        f"if flags & ~{known}:\n"
        f"    raise DecodeError(f'{name} has {len(fields)} fields, its packing flags are"
        " {flags:#06x}', at)\n"
        "at += 2",
        2,
    )
    for place, (field, kind) in enumerate(fields):
        flag = 1 << place
        if kind == BIT:
            source += _lines(f"{field} = flags & {flag} != 0", 2)
            continue
        source += _lines(f"if flags & {flag}:", 2)
        lines = _READ.get(kind, f"{{f}}, at = read_{field}(data, at, stop)")
        source += _lines(lines.replace("{f}", field), 3)
        source += _lines(f"else:\n    {field} = None", 2)
    arguments = [field for field, _ in fields] + (["sync=sync"] if sync else [])
    return (
        source
        + f"""\
    except READ_FAULTS as fault:
        raise DecodeError(f'{name} cannot be read: {{fault}}', at) from None
    if at > stop:
        raise DecodeError(f'{name} ends {{at - stop}} octets behind what encloses it', at)
    return cls({", ".join(arguments)}), at
"""
    )


def _encoder_source(name: str, fields: tuple[tuple[str, str], ...]) -> str:
    source = "def encode_fields(self):\n    flags = 0\n    body = b''\n    try:\n"
    for place, (field, kind) in enumerate(fields):
        flag = 1 << place
        if kind == BIT:
            source += _lines(f"if self.{field}:\n    flags |= {flag}", 2)
            continue
        octets = _WRITE.get(kind, f"write_{field}(x)")
        source += _lines(
            f"x = self.{field}\nif x is not None:\n    flags |= {flag}\n    body += {octets}", 2
        )
    return (
        source
        + f"""\
        return FLAGS[flags] + body
    except WRITE_FAULTS as fault:
        raise LocalProtocolError(f'{{self!r}} does not fit {name}: {{fault}}') from None
"""
    )


def make_codec(
    cls: Any, name: str, fields: tuple[tuple[str, str], ...], *, sync: bool
) -> tuple[str, Callable[..., Any], Callable[[Any], bytes]]:
    """Writes and compiles the codec of a struct.

    Args:
        cls: the class.
        name: the specification's, for texts.
        fields: the name and the type of each.
        sync: it is a command, whose session header comes before its fields.

    Returns:
        The source, `decode_fields` and `encode_fields`.
    """
    scope = {**_NAMES, "cls": cls}
    for field, kind in fields:
        if kind != BIT:
            scope[f"read_{field}"], scope[f"write_{field}"] = READERS[kind], WRITERS[kind]
    source = f"{_decoder_source(name, fields, sync)}\n\n{_encoder_source(name, fields)}"
    exec(compile(source, f"<codec of {name}>", "exec"), scope)
    return source, scope["decode_fields"], scope["encode_fields"]
