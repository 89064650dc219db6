"""Generated AMQP values and frames, made from the same field tables that the codec runs on."""

import math
import struct
from functools import cache

from hypothesis import strategies as st

from workbench.amqp10 import messaging as m
from workbench.amqp10 import performatives as p
from workbench.amqp10 import values as c
from workbench.amqp10.composite import Composite
from workbench.amqp10.encoder import SCALARS
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.fields import FieldSpec
from workbench.amqp10.frame import Frame, ProtocolHeader
from workbench.amqp10.restricted import CHOICES, primitive_of
from workbench.amqp10.terminus import LifetimePolicy


def _edges(low: int, high: int) -> st.SearchStrategy[int]:
    """Integers of a range, the places where an encoding changes among them."""
    places = [n for n in (0, 1, 127, 128, 255, 256, -128, -129, high, low) if low <= n <= high]
    return st.sampled_from(places) | st.integers(low, high)


floats = st.floats(allow_nan=False)
floats32 = st.floats(allow_nan=False, width=32)
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["", "é" * 200])
symbols = st.text(st.characters(codec="ascii"), max_size=12) | st.sampled_from(["", "s" * 300])
octets = st.binary(max_size=12) | st.sampled_from([b"", bytes(255), bytes(256)])
chars = st.characters(codec="utf-8")

PLAIN: dict[str, st.SearchStrategy] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "ubyte": _edges(0, 0xFF),
    "ushort": _edges(0, 0xFFFF),
    "uint": _edges(0, 0xFFFFFFFF),
    "ulong": _edges(0, 0xFFFFFFFFFFFFFFFF),
    "byte": _edges(-0x80, 0x7F),
    "short": _edges(-0x8000, 0x7FFF),
    "int": _edges(-0x80000000, 0x7FFFFFFF),
    "long": _edges(-(2**63), 2**63 - 1),
    "float": floats32,
    "double": floats,
    "decimal32": st.binary(min_size=4, max_size=4).map(c.Decimal32),
    "decimal64": st.binary(min_size=8, max_size=8).map(c.Decimal64),
    "decimal128": st.binary(min_size=16, max_size=16).map(c.Decimal128),
    "char": chars,
    "timestamp": _edges(-(2**63), 2**63 - 1),
    "uuid": st.uuids(),
    "binary": octets,
    "string": texts,
    "symbol": symbols,
}
"""Plain Python values of each scalar type."""

WRAPPERS = {
    "ubyte": c.UByte,
    "ushort": c.UShort,
    "uint": c.UInt,
    "ulong": c.ULong,
    "byte": c.Byte,
    "short": c.Short,
    "int": c.Int,
    "long": c.Long,
    "float": c.Float32,
    "char": c.Char,
    "timestamp": c.Timestamp,
    "symbol": c.Symbol,
}

SCALAR: dict[str, st.SearchStrategy] = {
    name: plain.map(WRAPPERS[name]) if name in WRAPPERS else plain for name, plain in PLAIN.items()
}
"""Values of each scalar type as `decode` gives them."""

assert set(SCALAR) == set(SCALARS)

scalars = st.one_of(*SCALAR.values())


_descriptors = st.lists(SCALAR["symbol"] | SCALAR["ulong"], max_size=1)


def arrays(deep: st.SearchStrategy | None = None):
    """An array of one type, sometimes with described elements."""
    elements = dict(SCALAR)
    if deep is not None:
        elements |= {"list": st.lists(deep, max_size=3), "map": maps(deep), "array": arrays()}
    items = {name: st.lists(element, max_size=4) for name, element in elements.items()}
    return _arrays(st.sampled_from([*items]), items)


@st.composite
def _arrays(draw, names, items):
    name = draw(names)
    return c.Array(name, tuple(draw(items[name])), tuple(draw(_descriptors)))


def maps(values: st.SearchStrategy, keys: st.SearchStrategy | None = None):
    """A map; `MapPairs` where Python cannot hold the keys apart, as `decode` does it."""
    keys = scalars if keys is None else keys
    pairs = st.lists(st.tuples(keys, values), max_size=4, unique_by=lambda pair: repr(pair[0]))
    return pairs.map(
        lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else c.MapPairs(tuple(pairs))
    )


# A descriptor outside of those that the specification defines, so that the value stays `Described`.
foreign_descriptors = st.integers(0x100, 2**64 - 1).map(c.ULong) | symbols.filter(
    lambda text: not text.startswith("amqp:")
).map(c.Symbol)

values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        maps(inner),
        arrays(inner),
        st.builds(c.Described, foreign_descriptors, inner),
    ),
    max_leaves=8,
)
"""Any AMQP value as `decode` gives it."""

symbol_keys = SCALAR["symbol"]
fields_maps = maps(values, symbol_keys)


@st.composite
def composites(draw, cls: type[Composite]):
    """Legal values of a composite type, any field that may be absent sometimes absent."""
    return draw(_builders(cls))


def _states() -> st.SearchStrategy:
    return st.one_of(*map(composites, (m.Received, *_OUTCOMES)))


_OUTCOMES = (m.Accepted, m.Rejected, m.Released, m.Modified)
_outcomes = st.deferred(lambda: st.one_of(*map(composites, _OUTCOMES)))
_foreign = st.builds(c.Described, foreign_descriptors, st.lists(scalars, max_size=2))
_policies = st.sampled_from([policy() for policy in LifetimePolicy.__args__])

REQUIRED = {
    "source": st.deferred(lambda: composites(m.Source)),
    "target": st.deferred(lambda: composites(m.Target)) | _foreign,
    "delivery-state": _states() | _foreign,
    "outcome": _outcomes,
    "address": texts,
    "message-id": st.one_of(*(SCALAR[name] for name in ("ulong", "uuid", "binary", "string"))),
}


def of_field(spec: FieldSpec) -> st.SearchStrategy:
    """Legal values of a field."""
    if spec.type == "*":
        return REQUIRED[spec.requires]
    if spec.type == "error":
        return composites(m.Error)
    if spec.type in CHOICES:
        return st.sampled_from(list(CHOICES[spec.type]))
    if spec.type == "delivery-tag":
        return st.binary(max_size=32)
    if spec.name == "unsettled":
        return maps(st.none() | _states(), SCALAR["binary"])
    if spec.name == "dynamic_node_properties":
        return maps(_policies | values, symbol_keys)
    primitive = primitive_of(spec.type)
    if primitive == "map":
        return fields_maps
    one = SCALAR["symbol"] if primitive == "symbol" else PLAIN[primitive]
    if spec.name == "condition":
        one = st.sampled_from(list(ErrorCondition)).map(lambda e: c.Symbol(e.value)) | one
    return st.lists(one, max_size=3).map(tuple) if spec.multiple else one


@cache
def _builders(cls: type[Composite]) -> st.SearchStrategy:
    return st.builds(
        cls,
        **{
            spec.name: of_field(spec) if spec.mandatory else st.none() | of_field(spec)
            for spec in cls.FIELDS
        },
    )


PERFORMATIVES = (
    p.Open, p.Begin, p.Attach, p.Flow, p.Transfer, p.Disposition, p.Detach, p.End, p.Close,
)  # fmt: skip
SASL = (p.SaslMechanisms, p.SaslInit, p.SaslChallenge, p.SaslResponse, p.SaslOutcome)

_parts = (
    st.none() | composites(m.Header),
    st.none() | st.builds(m.DeliveryAnnotations, fields_maps),
    st.none() | st.builds(m.MessageAnnotations, fields_maps),
    st.none() | composites(m.Properties),
    st.none() | st.builds(m.ApplicationProperties, maps(scalars, texts)),
    st.one_of(
        st.lists(st.builds(m.Data, octets), min_size=1, max_size=3),
        st.lists(st.builds(m.AmqpSequence, st.lists(values, max_size=3)), min_size=1, max_size=2),
        st.builds(m.AmqpValue, values).map(lambda section: [section]),
    ),
    st.none() | st.builds(m.Footer, fields_maps),
)


@st.composite
def _sections(draw):
    before, body, footer = [draw(part) for part in _parts[:5]], draw(_parts[5]), draw(_parts[6])
    return [section for section in (*before, *body, footer) if section is not None]


sections = _sections()
"""The sections of a message in order."""

payloads = st.binary(max_size=40) | sections.map(m.encode_message)


@st.composite
def _frame(draw, cls):
    performative = draw(composites(cls))
    payload = draw(payloads) if cls is p.Transfer else b""
    channel = 0 if cls in SASL else draw(PLAIN["ushort"])
    return Frame(channel, performative, payload)


frames = st.one_of(
    *map(_frame, PERFORMATIVES), *map(_frame, SASL), st.builds(Frame, PLAIN["ushort"])
)
"""Any frame, empty ones among them."""

_short = st.integers(0, 255)
headers = st.builds(ProtocolHeader, _short, _short, _short, _short)


def same(a: object, b: object) -> bool:
    """Equal in type and value, all the way down; `UInt(1)` is not `Long(1)` here."""
    if isinstance(a, Composite):
        return type(a) is type(b) and same(a.present(), b.present())
    if isinstance(a, dict):
        return type(b) is dict and same(list(a.items()), list(b.items()))
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, c.Described):
        return same(a.descriptor, b.descriptor) and same(a.value, b.value)
    if isinstance(a, c.Array):
        return a.type_name == b.type_name and same(
            [a.items, a.descriptors], [b.items, b.descriptors]
        )
    if isinstance(a, c.MapPairs):
        return same(a.pairs, b.pairs)
    return a == b
