"""Which octets of a frame are which field, so that bytes and fields can highlight each other.

The leaves tile the frame: every octet belongs to exactly one. Around them lie groups: a
performative, a terminus, a map, a section of the message in the payload.

Paths are names and indexes: `frame.size`, `flow.link_credit`, `attach.source.address`,
`open.properties[0].key`, `transfer.payload.properties.to`. The octets that begin a list, map or
array (constructor, size, count) are its leaf `list`, `map` or `array`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from workbench.amqp10.composite import BY_DESCRIPTOR, Composite
from workbench.amqp10.constructor import DESCRIBED, FORMAT_CODES, Category, describe_code
from workbench.amqp10.decoder import (
    MAX_DEPTH,
    check_array_count,
    check_count,
    check_end,
    cut_short,
    decode_value,
    read_bare,
    read_compound_header,
    read_element_constructor,
)
from workbench.amqp10.errors import DecodeError
from workbench.amqp10.fields import FieldSpec
from workbench.amqp10.frame import FRAME_HEADER_SIZE, MAGIC, PROTOCOL_HEADER_SIZE
from workbench.amqp10.messaging import SECTIONS
from workbench.amqp10.performatives import SASL_FRAME, Transfer, read_descriptor
from workbench.amqp10.restricted import CHOICES, primitive_of
from workbench.amqp10.value_text import bytes_text, descriptor_text, value_text
from workbench.amqp10.values import Symbol, ULong


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpan:
    """A run of octets with a meaning.

    Attributes:
        path: which field, see the module.
        start: offset of its first octet in the frame.
        end: offset behind its last.
        type_name: its type, for a field the grammar's, for example `transfer-number`.
        constructor: encoding and code of its constructor octet, for example `smalluint 0x52`;
            empty where the octets have none.
        value_text: its value for a human, safe to show.
        leaf: whether it has no parts. The leaves tile the frame; groups come before their parts.
    """

    path: str
    start: int
    end: int
    type_name: str
    constructor: str
    value_text: str
    leaf: bool = True


def field_spans(raw: bytes, *, continuation: bool | None = None) -> list[FieldSpan]:
    """Names every octet of a frame or protocol header.

    Args:
        raw: its octets. Where they cannot be read, the rest is one leaf `undecodable` that says
            why; so any octets give spans.
        continuation: whether a transfer's payload goes on a message that began in an earlier
            frame, and so is opaque here. By default a transfer without delivery-id is one.

    Returns:
        Groups and leaves, in order of their first octet.
    """
    raw = bytes(raw)
    walk = _Walk(raw)
    try:
        if raw[:4] == MAGIC and len(raw) == PROTOCOL_HEADER_SIZE:
            _protocol_header(walk)
        else:
            _frame(walk, continuation)
    except DecodeError as error:
        walk.give_up(error)
    return walk.spans


def _protocol_header(walk: "_Walk") -> None:
    walk.leaf("header.magic", 0, 4, "", "", "AMQP")
    names = {0: "0 (AMQP)", 2: "2 (TLS)", 3: "3 (SASL)"}
    protocol_id = walk.data[4]
    walk.leaf("header.protocol_id", 4, 5, "octet", "", names.get(protocol_id, str(protocol_id)))
    for at, name in enumerate(("major", "minor", "revision"), 5):
        walk.leaf(f"header.{name}", at, at + 1, "octet", "", str(walk.data[at]))


def _frame(walk: "_Walk", continuation: bool | None) -> None:
    data, end = walk.data, len(walk.data)
    if end < FRAME_HEADER_SIZE:
        raise cut_short("the header of a frame", FRAME_HEADER_SIZE, end, 0)
    frame_type, body = data[5], 4 * data[4]
    kinds = {0: "0 (AMQP)", 1: "1 (SASL)"}
    with walk.group("frame", 0, "frame header", ""):
        size = int.from_bytes(data[:4], "big")
        text = str(size) if size == end else f"{size}, but {end} octets are here"
        walk.leaf("frame.size", 0, 4, "4 octets", "", text)
        walk.leaf("frame.doff", 4, 5, "octet", "", f"{data[4]} (body at octet {body})")
        walk.leaf("frame.type", 5, 6, "octet", "", kinds.get(frame_type, str(frame_type)))
        channel = str(int.from_bytes(data[6:8], "big"))
        if frame_type == SASL_FRAME:
            walk.leaf("frame.ignored", 6, 8, "2 octets", "", channel)
        else:
            walk.leaf("frame.channel", 6, 8, "2 octets", "", channel)
        if body < FRAME_HEADER_SIZE or body > end:
            raise DecodeError(f"DOFF {data[4]} puts the body at octet {body} of {end}", 8)
        if body > FRAME_HEADER_SIZE:
            walk.leaf("frame.extended_header", 8, body, "octets", "", bytes_text(data[8:body]))
    if body == end:
        return
    descriptor, at = read_descriptor(data, body, end, "a performative")
    cls = BY_DESCRIPTOR.get(descriptor)
    if cls is None:
        raise DecodeError(f"descriptor {descriptor_text(descriptor)} names no performative", body)
    start = at
    at = walk.composite(cls.NAME.replace("-", "_"), cls, body, at, end)
    if at < end:
        if cls is not Transfer:
            raise DecodeError(f"only a transfer has payload, {cls.NAME} has none", at)
        if continuation is None:
            continuation = Transfer.decode_list(data, start, end)[0].delivery_id is None
        _payload(walk, at, continuation)


def _payload(walk: "_Walk", start: int, continuation: bool) -> None:
    data, end = walk.data, len(walk.data)
    path = "transfer.payload"
    if continuation:
        text = f"continues a message: {bytes_text(data[start:])}"
        walk.leaf(path, start, end, "octets", "", text)
        return
    seen: dict[str, int] = {}
    with walk.group(path, start, "message sections", ""):
        at = start
        while at < end:
            mark = len(walk.spans)
            try:
                at = _section(walk, path, at, end, seen)
            except DecodeError as error:
                del walk.spans[mark:]
                text = f"{bytes_text(data[at:])}: {error.reason}"
                walk.leaf(f"{path}.rest", at, end, "octets", "", text)
                return


def _section(walk: "_Walk", path: str, start: int, end: int, seen: dict[str, int]) -> int:
    descriptor, at = read_descriptor(walk.data, start, end, "a message section")
    cls = SECTIONS.get(descriptor)
    if cls is None:
        raise DecodeError(f"descriptor {descriptor_text(descriptor)} names no section", start)
    name = cls.NAME.replace("-", "_")
    number = seen.get(name, 0)
    seen[name] = number + 1
    inner = f"{path}.{name}" if number == 0 else f"{path}.{name}[{number}]"
    if issubclass(cls, Composite):
        return walk.composite(inner, cls, start, at, end)
    with walk.group(inner, start, cls.NAME, ""):
        walk.descriptor(inner, start, at, descriptor)
        return walk.value(f"{inner}.value", at, end, 0)


_MOST_AROUND = 4 * MAX_DEPTH  # more than the decoder takes; many more exhaust Python's stack


class _Walk:
    """Reads values as the decoder does, but keeps where each part lies."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.spans: list[FieldSpan] = []
        self._around = 0  # spans that are not whole yet

    def leaf(
        self, path: str, start: int, end: int, type_name: str, constructor: str, text: str
    ) -> None:
        if end > start:  # a value may take no octets, as an element of an array
            self.spans.append(
                FieldSpan(
                    path=path,
                    start=start,
                    end=end,
                    type_name=type_name,
                    constructor=constructor,
                    value_text=text,
                )
            )

    @contextmanager
    def group(self, path: str, start: int, type_name: str, constructor: str) -> Iterator[None]:
        """Puts a span before those made inside, and around them."""
        if self._around >= _MOST_AROUND:
            raise DecodeError(f"spans are nested deeper than {_MOST_AROUND}", start)
        place = len(self.spans)
        self._around += 1
        try:
            yield
        finally:
            self._around -= 1
            end = max((span.end for span in self.spans[place:]), default=start)
            inside = [span for span in self.spans[place:] if span.leaf]
            span = FieldSpan(
                path=path,
                start=start,
                end=end,
                type_name=type_name,
                constructor=constructor,
                value_text=f"{len(inside)} parts, {end - start} octets",
                leaf=False,
            )
            self.spans.insert(place, span)

    def give_up(self, error: DecodeError) -> None:
        """Makes one leaf of what is behind the last leaf."""
        at = max((span.end for span in self.spans if span.leaf), default=0)
        text = f"{error.reason} (octet {error.offset})"
        self.leaf("undecodable", at, len(self.data), "octets", "", text)

    def descriptor(self, path: str, start: int, end: int, descriptor: object) -> None:
        """The leaf for `0x00` and a descriptor."""
        text = descriptor_text(descriptor)
        if isinstance(descriptor, int):
            cls = BY_DESCRIPTOR.get(int(descriptor)) or SECTIONS.get(int(descriptor))
            if cls is not None:
                text += f" {cls.NAME}"
        known = FORMAT_CODES.get(self.data[start + 1])
        self.leaf(f"{path}.descriptor", start, end, "descriptor", str(known or ""), text)

    def composite(self, path: str, cls: type[Composite], start: int, at: int, end: int) -> int:
        """A described list whose descriptor ends at `at`; returns the offset behind it."""
        with self.group(path, start, cls.NAME, ""):
            descriptor, _ = decode_value(self.data, start + 1, end)
            self.descriptor(path, start, at, descriptor)
            if at >= end:
                raise cut_short(f"the list of {cls.NAME}", 1, 0, at)
            known = FORMAT_CODES.get(self.data[at])
            if known is None or known.type_name != "list":
                raise DecodeError(f"{cls.NAME} must be a list", at)
            count, first, stop = 0, at + 1, at + 1
            if known.width:
                count, first, stop = read_compound_header(
                    self.data, at + 1, end, known.width, cls.NAME
                )
                check_count(cls.NAME, count, first, stop, at)
            text = f"{count} of {len(cls.FIELDS)} fields"
            self.leaf(f"{path}.list", at, first, "list", str(known), text)
            at = first
            for index in range(count):
                spec = cls.FIELDS[index] if index < len(cls.FIELDS) else None
                inner = f"{path}.{spec.name}" if spec else f"{path}[{index}]"
                at = self.value(inner, at, stop, 0, spec)
            check_end(cls.NAME, at, stop)
        return stop

    def value(
        self, path: str, start: int, end: int, depth: int, spec: FieldSpec | None = None
    ) -> int:
        """A value with its constructor; returns the offset behind it."""
        data = self.data
        if start >= end:
            raise cut_short(path, 1, 0, start)
        if data[start] != DESCRIBED:
            return self.bare(path, data[start], start, start + 1, end, depth, spec)
        if depth >= MAX_DEPTH:
            raise DecodeError(f"values are nested deeper than {MAX_DEPTH}", start)
        descriptor, at = decode_value(data, start + 1, end, depth + 1)
        if isinstance(descriptor, ULong | Symbol):
            cls = BY_DESCRIPTOR.get(descriptor)
            if cls is not None and at < end and data[at] in (0x45, 0xC0, 0xD0):
                return self.composite(path, cls, start, at, end)
        with self.group(path, start, "described", ""):
            self.descriptor(path, start, at, descriptor)
            return self.value(f"{path}.value", at, end, depth + 1)

    def bare(
        self,
        path: str,
        code: int,
        begin: int,
        at: int,
        end: int,
        depth: int,
        spec: FieldSpec | None = None,
    ) -> int:
        """A value of format code `code` whose octets begin at `at`, its constructor at `begin`."""
        known = FORMAT_CODES.get(code)
        if known is None:
            raise DecodeError(f"{path} begins with {describe_code(code)}", begin)
        constructor = str(known)
        type_name = known.type_name if spec is None else spec.type
        if spec is not None and spec.type == "*":
            type_name = spec.requires if known.type_name == "null" else known.type_name
        if known.category in (Category.FIXED, Category.VARIABLE):
            value, stop = read_bare(code, self.data, at, end, depth)
            text = _field_text(value, spec)
            self.leaf(path, begin, stop, type_name, constructor, text)
            return stop
        if depth >= MAX_DEPTH:
            raise DecodeError(f"values are nested deeper than {MAX_DEPTH}", begin)
        count, first, stop = read_compound_header(self.data, at, end, known.width, constructor)
        with self.group(path, begin, type_name, constructor):
            if known.category is Category.ARRAY:
                at = self._array(path, constructor, count, begin, at, first, stop, depth + 1)
            else:
                check_count(constructor, count, first, stop, at)
                text = f"{count} elements, {stop - first} octets"
                self.leaf(f"{path}.{known.type_name}", begin, first, "", constructor, text)
                at = first
                for index in range(count):
                    inner = f"{path}[{index}]"
                    if known.type_name == "map":
                        inner = f"{path}[{index // 2}].{('key', 'value')[index % 2]}"
                    at = self.value(inner, at, stop, depth + 1)
            check_end(constructor, at, stop)
        return stop

    def _array(
        self,
        path: str,
        constructor: str,
        count: int,
        begin: int,
        at: int,
        first: int,
        stop: int,
        depth: int,
    ) -> int:
        _, element, elements_at = read_element_constructor(self.data, first, stop, depth)
        check_array_count(element, count, elements_at, stop, at)
        text = f"{count} elements, each {FORMAT_CODES[element]}"
        self.leaf(f"{path}.array", begin, elements_at, "", constructor, text)
        at = elements_at
        if FORMAT_CODES[element].width == 0:
            return at  # such elements take no octets
        for index in range(count):
            at = self.bare(f"{path}[{index}]", element, at, at, stop, depth)
        return at


def _field_text(value: object, spec: FieldSpec | None) -> str:
    if value is None and spec is not None:
        return "absent" if spec.default is None else f"absent: {value_text(spec.default)}"
    if spec is not None and spec.type in CHOICES:
        for member in CHOICES[spec.type]:
            if member.value == value:
                return value_text(member)
    if spec is not None and primitive_of(spec.type) == "symbol" and isinstance(value, str):
        return value_text(Symbol(value) if value.isascii() else value)
    return value_text(value)
