"""The codec of methods and properties, written at import from pamqp's tables [4.2.5, 1.8].

pamqp says which arguments a method has, in which order and of which types, and which flag a
property has. Its own reader and writer are not used: they take strings that are cut off, forget the
letters and the order of a table, drop empty properties, take a delivery-tag as signed, and refuse
what RabbitMQ takes (a reserved field that is set). `print(SOURCES["basic.publish"])` shows the code
that stands in their place.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pamqp.commands

from workbench.amqp091.errors import DecodeError, LocalProtocolError, ReplyCode
from workbench.amqp091.methods import METHODS, Method, Properties
from workbench.amqp091.values import read_table, short_string, write_table

__all__ = [
    "SOURCES", "argument_octets", "method_size", "properties_size", "read_method",
    "read_properties", "write_method", "write_properties",
]  # fmt: skip

_FORMS = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}

_READ = {
    "shortstr": """\
    size = data[at] + 1
    {f} = str(data[at + 1 : at + size], "utf-8")
    at += size
""",
    "longstr": """\
    (size,) = unpack_I(data, at)
    {f} = data[at + 4 : at + 4 + size]
    at += 4 + size
""",
    "table": """\
    {f}, at = read_table(data, at, end)
""",
}
_READ_NUMBER = """\
    ({f},) = unpack_{form}(data, at)
    at += {size}
"""
_WRITE = {
    "shortstr": "short_string({f})",
    "longstr": "pack_I(len({f})) + {f}",
    "table": "write_table({f})",
}
_SIZE = {
    "shortstr": "1 + len({f}.encode())",
    "longstr": "4 + len({f})",
    "table": "len(write_table({f}))",
}

SOURCES: dict[str, str] = {}
"""The generated code, by name of the method; `properties` for that of the properties."""


def _reading(type_: str, name: str) -> str:
    form = _FORMS.get(type_)
    if form is None:
        return _READ[type_].format(f=name)
    return _READ_NUMBER.format(f=name, form=form, size=struct.calcsize(form))


def _writing(type_: str, value: str) -> str:
    form = _FORMS.get(type_)
    return _WRITE[type_].format(f=value) if form is None else f"pack_{form}({value})"


def _sizing(type_: str, value: str) -> str:
    form = _FORMS.get(type_)
    return str(struct.calcsize(form)) if form else _SIZE[type_].format(f=value)


def _arguments(kind: type[Method]) -> list[tuple[str, str]]:
    """Names of a method's arguments, as ours has them, and their types, as pamqp has them."""
    theirs: Any = pamqp.commands.INDEX_MAPPING[kind.INDEX]
    types = [theirs.amqp_type(name) for name in theirs.attributes()]
    return list(zip(kind.__struct_fields__, types, strict=True))


def _method_source(kind: type[Method]) -> str:
    """Functions `read`, `write`, `size` of a method; up to eight bits in a row share an octet."""
    reads, parts, sizes, bits = "", [f"{kind.INDEX.to_bytes(4, 'big')!r}"], ["4"], 0
    arguments = _arguments(kind)
    for name, type_ in arguments:
        if type_ != "bit":
            bits = 0
            reads += _reading(type_, name)
            parts.append(_writing(type_, f"said.{name}"))
            sizes.append(_sizing(type_, f"said.{name}"))
            continue
        if bits % 8 == 0:
            reads += "    octet = data[at]\n    at += 1\n"
            parts.append("OCTETS[0]")
            sizes.append("1")
        reads += f"    {name} = octet & {1 << bits % 8} != 0\n"
        flag = f" | ({1 << bits % 8} if said.{name} else 0)]"
        parts[-1] = parts[-1][:-1] + flag
        bits += 1
    made = ", ".join(f"{name}={name}" for name, _ in arguments)
    return (
        f"def read(data, at, end):\n{reads}    return KIND({made}), at\n\n"
        f"def write(said):\n    return {' + '.join(parts)}\n\n"
        f"def size(said):\n    return {' + '.join(sizes)}\n"
    )


def _properties_source() -> str:
    theirs = pamqp.commands.Basic.Properties
    reads, writes, sizes, names = "", "", "", []
    for name, their_name in zip(Properties.__struct_fields__, theirs.attributes(), strict=True):
        flag, type_ = theirs.flags[their_name], theirs.amqp_type(their_name)
        names.append(f"{name}={name}_")
        lines = _reading(type_, f"{name}_").replace("\n    ", "\n        ")
        reads += f"    {name}_ = None\n    if flags & {flag}:\n    {lines}"
        writes += (
            f"    if said.{name} is not None:\n        flags |= {flag}\n"
            f"        octets += {_writing(type_, f'said.{name}')}\n"
        )
        sizes += (
            f"    if said.{name} is not None:\n        octets += {_sizing(type_, f'said.{name}')}\n"
        )
    return (
        "def read(data, at, end):\n    (flags,) = unpack_H(data, at)\n    at += 2\n"
        f"{reads}    return KIND({', '.join(names)}), at, flags\n\n"
        f"def write(said):\n    flags = 0\n    octets = b''\n{writes}"
        "    return pack_H(flags) + octets\n\n"
        f"def size(said):\n    octets = 2\n{sizes}    return octets\n"
    )


_Made = tuple[Callable[..., Any], Callable[..., bytes], Callable[..., int]]


def _made(name: str, kind: type, source: str) -> _Made:
    names: dict[str, Any] = {
        "KIND": kind,
        "OCTETS": [bytes((number,)) for number in range(256)],
        "read_table": read_table,
        "short_string": short_string,
        "write_table": write_table,
    }
    for form in set(_FORMS.values()):
        number = struct.Struct(f">{form}")
        names[f"unpack_{form}"], names[f"pack_{form}"] = number.unpack_from, number.pack
    SOURCES[name] = source
    exec(compile(source, f"<codec of {name}>", "exec"), names)
    return names["read"], names["write"], names["size"]


_CODECS = {kind: _made(kind.NAME, kind, _method_source(kind)) for kind in METHODS.values()}
_READERS = {kind.INDEX: read for kind, (read, _, _) in _CODECS.items()}
_WRITERS = {kind: write for kind, (_, write, _) in _CODECS.items()}
_SIZES = {kind: size for kind, (_, _, size) in _CODECS.items()}
_read_properties, _write_properties, properties_size = _made(
    "properties", Properties, _properties_source()
)
_unpack_index = struct.Struct(">I").unpack_from
_READ_FAULTS = (IndexError, struct.error, UnicodeDecodeError)
_WRITE_FAULTS = (struct.error, TypeError, AttributeError, UnicodeEncodeError)


def read_method(data: bytes, at: int, end: int) -> Method:
    """Reads a method frame's payload, `data[at:end]`.

    Raises:
        DecodeError: with `NOT_IMPLEMENTED` for an unknown class or method, else `SYNTAX_ERROR`.
    """
    if end - at < 4:
        raise DecodeError("a method has at least 4 octets: its class-id and method-id", at)
    (index,) = _unpack_index(data, at)
    read = _READERS.get(index)
    if read is None:
        class_id, method_id = index >> 16, index & 0xFFFF
        raise DecodeError(
            f"there is no method {method_id} of class {class_id}", at, ReplyCode.NOT_IMPLEMENTED
        )
    try:
        said, stop = read(data, at + 4, end)
    except _READ_FAULTS as fault:
        raise DecodeError(_words(METHODS[index].NAME, fault), at) from None
    if stop != end:
        raise DecodeError(_misfit(METHODS[index].NAME, stop - end), at)
    return said  # type: ignore[no-any-return]


def read_properties(data: bytes, at: int, end: int) -> Properties:
    """Reads the flags and properties in `data[at:end]`.

    Raises:
        DecodeError: with `SYNTAX_ERROR`.
    """
    try:
        said, stop, flags = _read_properties(data, at, end)
    except _READ_FAULTS as fault:
        raise DecodeError(_words("content header", fault), at) from None
    if flags & 0b11:
        raise DecodeError(f"the property flags are {flags:#06x}; the last two mean nothing", at)
    if stop != end:
        raise DecodeError(_misfit("content header", stop - end), at)
    return said  # type: ignore[no-any-return]


def argument_octets(said: Method) -> Iterator[tuple[str, int, str]]:
    """A method's arguments as they lie on the wire: name, size in octets, value in words.

    Bits in a row share an octet, and then a line.
    """
    bits: list[str] = []
    for name, type_ in [*_arguments(type(said)), ("", "")]:
        if type_ == "bit":
            bits.append(f"{name}={getattr(said, name)}")
            continue
        if bits:
            yield "bits", (len(bits) + 7) // 8, ", ".join(bits)
            bits = []
        if type_:
            value = getattr(said, name)
            form = _FORMS.get(type_)
            size = struct.calcsize(form) if form else len(_SIZED[type_](value))
            yield name, size, f"0x{value.hex()}" if type_ == "longstr" else str(value)


_SIZED: dict[str, Callable[[Any], bytes]] = {
    "shortstr": short_string,
    "longstr": lambda value: bytes(4) + value,
    "table": write_table,
}


def _words(what: str, fault: Exception) -> str:
    why = "a short string is no UTF-8" if isinstance(fault, UnicodeDecodeError) else "it is cut off"
    return f"{what} cannot be read: {why}"


def _misfit(what: str, over: int) -> str:
    if over > 0:
        return f"{what} cannot be read: it is cut off, {over} octets are missing"
    return f"{-over} octets follow the {what}"


def write_method(said: Method) -> bytes:
    """A method's octets: class-id, method-id and arguments.

    Raises:
        LocalProtocolError: an argument does not fit.
    """
    try:
        return _WRITERS[type(said)](said)
    except _WRITE_FAULTS as fault:
        raise LocalProtocolError(f"{said} does not fit: {fault}") from None


def method_size(said: Method) -> int:
    """The number of octets of `write_method(said)`, where its arguments fit."""
    return _SIZES[type(said)](said)


def write_properties(said: Properties) -> bytes:
    """The octets of flags and properties.

    Raises:
        LocalProtocolError: a property does not fit.
    """
    try:
        return _write_properties(said)
    except _WRITE_FAULTS as fault:
        raise LocalProtocolError(f"{said} does not fit: {fault}") from None
