"""AMQP values between this project's types and those of python-qpid-proton, node by node.

Proton's own `get_object` loses types (a uint key and a long key fall together in a dict), so its
tree is walked instead.
"""

from typing import Any

import proton
from proton import Data

from workbench.amqp10 import values as v

_SCALARS: dict[int, tuple[str, Any]] = {
    Data.BOOL: ("bool", bool),
    Data.UBYTE: ("ubyte", v.UByte),
    Data.USHORT: ("ushort", v.UShort),
    Data.UINT: ("uint", v.UInt),
    Data.ULONG: ("ulong", v.ULong),
    Data.BYTE: ("byte", v.Byte),
    Data.SHORT: ("short", v.Short),
    Data.INT: ("int", v.Int),
    Data.LONG: ("long", v.Long),
    Data.FLOAT: ("float", v.Float32),
    Data.DOUBLE: ("double", float),
    Data.DECIMAL32: ("decimal32", lambda n: v.Decimal32(int(n).to_bytes(4, "big"))),
    Data.DECIMAL64: ("decimal64", lambda n: v.Decimal64(int(n).to_bytes(8, "big"))),
    Data.DECIMAL128: ("decimal128", lambda octets: v.Decimal128(bytes(octets))),
    Data.CHAR: ("char", v.Char),
    Data.TIMESTAMP: ("timestamp", v.Timestamp),
    Data.UUID: ("uuid", lambda u: u),
    Data.BINARY: ("binary", bytes),
    Data.STRING: ("string", str),
    Data.SYMBOL: ("symbol", lambda s: v.Symbol(str(s))),
}
_NAMES = {
    Data.NULL: "null",
    Data.BOOL: "boolean",
    Data.LIST: "list",
    Data.MAP: "map",
    Data.ARRAY: "array",
} | {code: name for code, (name, _) in _SCALARS.items() if code != Data.BOOL}
_CODES = {name: code for code, name in _NAMES.items()}


def read(octets: bytes) -> tuple[object, int]:
    """Proton's reading of the first value in `octets`, and how many octets it took."""
    data = Data()
    taken = data.decode(octets)
    data.rewind()
    assert data.next() is not None
    return _value(data), taken


def _children(data: Data) -> list[object]:
    items = []
    data.enter()
    while data.next() is not None:
        items.append(_value(data))
    data.exit()
    return items


def _value(data: Data) -> object:
    kind = data.type()
    if kind == Data.NULL:
        return None
    if kind in _SCALARS:
        name, make = _SCALARS[kind]
        return make(getattr(data, f"get_{name}")())
    if kind == Data.DESCRIBED:
        descriptor, value = _children(data)
        return v.Described(descriptor, value)
    if kind == Data.LIST:
        return _children(data)
    if kind == Data.MAP:
        parts = _children(data)
        pairs = tuple(zip(parts[::2], parts[1::2], strict=True))
        try:
            as_dict = dict(pairs)
        except TypeError:
            return v.MapPairs(pairs)
        return as_dict if len(as_dict) == len(pairs) else v.MapPairs(pairs)
    _, described, element = data.get_array()
    items = _children(data)
    descriptors = (items.pop(0),) if described else ()
    return v.Array(_NAMES[element], tuple(items), descriptors)


def write(value: object) -> bytes:
    """Proton's octets for a value."""
    data = Data()
    _put(data, value)
    return data.encode()


_PUT = {type(None): "null", bool: "boolean", float: "double", bytes: "binary", str: "string"} | {
    getattr(v, name): name.lower()
    for name in (
        "UByte", "UShort", "UInt", "ULong", "Byte", "Short", "Int", "Long", "Decimal32",
        "Decimal64", "Decimal128", "Char", "Timestamp", "Symbol",
    )
}  # fmt: skip
_PUT[v.Float32] = "float"


def _put(data: Data, value: object) -> None:
    if isinstance(value, v.Described):
        data.put_described()
        _put_all(data, [value.descriptor, value.value])
    elif isinstance(value, list):
        data.put_list()
        _put_all(data, value)
    elif isinstance(value, dict | v.MapPairs):
        pairs = value.pairs if isinstance(value, v.MapPairs) else value.items()
        data.put_map()
        _put_all(data, [part for pair in pairs for part in pair])
    elif isinstance(value, v.Array):
        data.put_array(bool(value.descriptors), _CODES[value.type_name])
        _put_all(data, [*value.descriptors, *value.items])
    elif type(value) not in _PUT:
        data.put_uuid(value)
    else:
        _put_scalar(data, _PUT[type(value)], value)


def _put_scalar(data: Data, name: str, value: Any) -> None:
    if name == "null":
        data.put_null()
    elif name == "boolean":
        data.put_bool(value)
    elif name in ("decimal32", "decimal64"):
        make = getattr(proton, name)
        getattr(data, f"put_{name}")(make(int.from_bytes(value.octets, "big")))
    elif name == "decimal128":
        data.put_decimal128(proton.decimal128(value.octets))
    elif name == "char":
        data.put_char(proton.char(value))
    elif name == "symbol":
        data.put_symbol(proton.symbol(value))
    elif name == "string":
        data.put_string(str(value))
    elif name == "binary":
        data.put_binary(value)
    elif name in ("float", "double"):
        getattr(data, f"put_{name}")(float(value))
    else:
        getattr(data, f"put_{name}")(int(value))


def _put_all(data: Data, items: Any) -> None:
    data.enter()
    for item in items:
        _put(data, item)
    data.exit()
