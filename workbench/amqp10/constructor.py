"""The format codes of AMQP 1.0 [1.6]: which octet begins which encoding of which type.

A value on the wire is a constructor and its octets. The constructor is one format code, or
`0x00`, a descriptor and another constructor. The table below is the only list of the codes: the
decoder's error texts, the field spans and the grammar test read it.
"""

from dataclasses import dataclass
from enum import StrEnum


class Category(StrEnum):
    """How the length of a value follows from its format code [1.2]."""

    FIXED = "fixed"  # `width` octets
    VARIABLE = "variable"  # a size of `width` octets, then as many octets
    COMPOUND = "compound"  # size and count of `width` octets each, then values
    ARRAY = "array"  # size and count of `width` octets each, one constructor, bare elements


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCode:
    """One encoding of one primitive type.

    Attributes:
        code: the constructor octet.
        type_name: the primitive type, for example `uint`.
        name: the specification's name of the encoding, for example `smalluint`.
        category: how long the value is.
        width: in octets: of the value (fixed), of size and count (the others).
    """

    code: int
    type_name: str
    name: str
    category: Category
    width: int

    def __str__(self) -> str:
        return f"{self.name} 0x{self.code:02x}"


def _table(*rows: tuple[int, str, str, Category, int]) -> dict[int, FormatCode]:
    return {
        code: FormatCode(code=code, type_name=type_name, name=name, category=category, width=width)
        for code, type_name, name, category, width in rows
    }


FORMAT_CODES: dict[int, FormatCode] = _table(
    (0x40, "null", "null", Category.FIXED, 0),
    (0x56, "boolean", "boolean", Category.FIXED, 1),
    (0x41, "boolean", "true", Category.FIXED, 0),
    (0x42, "boolean", "false", Category.FIXED, 0),
    (0x50, "ubyte", "ubyte", Category.FIXED, 1),
    (0x60, "ushort", "ushort", Category.FIXED, 2),
    (0x70, "uint", "uint", Category.FIXED, 4),
    (0x52, "uint", "smalluint", Category.FIXED, 1),
    (0x43, "uint", "uint0", Category.FIXED, 0),
    (0x80, "ulong", "ulong", Category.FIXED, 8),
    (0x53, "ulong", "smallulong", Category.FIXED, 1),
    (0x44, "ulong", "ulong0", Category.FIXED, 0),
    (0x51, "byte", "byte", Category.FIXED, 1),
    (0x61, "short", "short", Category.FIXED, 2),
    (0x71, "int", "int", Category.FIXED, 4),
    (0x54, "int", "smallint", Category.FIXED, 1),
    (0x81, "long", "long", Category.FIXED, 8),
    (0x55, "long", "smalllong", Category.FIXED, 1),
    (0x72, "float", "float", Category.FIXED, 4),
    (0x82, "double", "double", Category.FIXED, 8),
    (0x74, "decimal32", "decimal32", Category.FIXED, 4),
    (0x84, "decimal64", "decimal64", Category.FIXED, 8),
    (0x94, "decimal128", "decimal128", Category.FIXED, 16),
    (0x73, "char", "char", Category.FIXED, 4),
    (0x83, "timestamp", "timestamp", Category.FIXED, 8),
    (0x98, "uuid", "uuid", Category.FIXED, 16),
    (0xA0, "binary", "vbin8", Category.VARIABLE, 1),
    (0xB0, "binary", "vbin32", Category.VARIABLE, 4),
    (0xA1, "string", "str8-utf8", Category.VARIABLE, 1),
    (0xB1, "string", "str32-utf8", Category.VARIABLE, 4),
    (0xA3, "symbol", "sym8", Category.VARIABLE, 1),
    (0xB3, "symbol", "sym32", Category.VARIABLE, 4),
    (0x45, "list", "list0", Category.FIXED, 0),
    (0xC0, "list", "list8", Category.COMPOUND, 1),
    (0xD0, "list", "list32", Category.COMPOUND, 4),
    (0xC1, "map", "map8", Category.COMPOUND, 1),
    (0xD1, "map", "map32", Category.COMPOUND, 4),
    (0xE0, "array", "array8", Category.ARRAY, 1),
    (0xF0, "array", "array32", Category.ARRAY, 4),
)

DESCRIBED = 0x00
"""The octet that begins a described value: descriptor and value follow [1.1.2]."""

TYPE_NAMES: tuple[str, ...] = tuple(dict.fromkeys(f.type_name for f in FORMAT_CODES.values()))
"""The primitive types."""


def codes_of(type_name: str) -> tuple[int, ...]:
    """The constructor octets with which a value of this primitive type may begin."""
    return tuple(code for code, f in FORMAT_CODES.items() if f.type_name == type_name)


def describe_code(code: int) -> str:
    """What a constructor octet means, for error texts: `a string (str8-utf8 0xa1)`."""
    if code == DESCRIBED:
        return "a described value (0x00)"
    known = FORMAT_CODES.get(code)
    if known is None:
        return f"0x{code:02x}, which is no format code of AMQP 1.0"
    article = "an" if known.type_name[0] in "ai" else "a"  # an array or an int, but a uint
    return f"{article} {known.type_name} ({known})"


def describe_type(type_name: str) -> str:
    """Type and legal constructors, for error texts: `uint (0x70, 0x52 or 0x43)`."""
    codes = [f"0x{code:02x}" for code in codes_of(type_name)]
    if len(codes) > 1:
        codes[-2:] = [f"{codes[-2]} or {codes[-1]}"]
    return f"{type_name} ({', '.join(codes)})"
