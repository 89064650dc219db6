"""AMQP 1.0 values to octets and back [1.1 to 1.6]: the codec's front.

`encode` takes the shortest encoding, `decode` every legal one. The types are in `values`, the
table of constructor octets in `constructor`, the work in `encoder` and `decoder`.
"""

from workbench.amqp.constructor import FORMAT_CODES, Category, FormatCode
from workbench.amqp.decoder import MAX_DEPTH, MAX_EMPTY_ELEMENTS, decode
from workbench.amqp.encoder import encode, size_value
from workbench.amqp.values import (
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

__all__ = [
    "FORMAT_CODES",
    "MAX_DEPTH",
    "MAX_EMPTY_ELEMENTS",
    "Array",
    "Byte",
    "Category",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Float32",
    "FormatCode",
    "Int",
    "Long",
    "MapPairs",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "decode",
    "encode",
    "size_value",
]
