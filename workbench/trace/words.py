"""Words and numbers for people: texts of peers made harmless to read, frames in one line.

What a peer or a capture says is text and stays text. A view escapes it for its own language; here
only what a reader could not see, or what would rearrange the line, is made visible.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import unquote

from workbench.amqp010.composite import COMMANDS, CONTROLS
from workbench.amqp091.methods import METHODS
from workbench.amqp10.performatives import PERFORMATIVES
from workbench.languages import digits, phrase

from .fields import DETAIL_FIELDS, EXTRA_JSON
from .flatten import revived
from .schema import Row
from .secret_fields import is_secret

say = partial(phrase, "steps")
LONGEST = 80
_OCTETS = re.compile("[\udc80-\udcff]+")  # as Python has them in names of files


def visible(text: object, longest: int = LONGEST) -> str:
    r"""The text with control and direction characters written out, and cut where it is too long.

    `visible("a\x1b[2J")` is `a\x1b[2J` with a backslash: nothing in it moves a cursor any more.
    """
    given = str(text)
    shown = given if len(given) <= longest else given[:longest]
    shown = written_out(shown)
    return shown if len(given) <= longest else say("text.cut", text=shown, n=len(given))


def written_out(text: str) -> str:
    r"""The text with each control or direction character as `\x1b`, however long it is."""
    return text if text.isprintable() else "".join(map(_written, text))


def _written(character: str) -> str:
    # Cc control, Cf format (among them the characters that turn the direction of a line), Cs lone
    # surrogates, Co and Cn characters that no font has, Zl and Zp line ends.
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return character.encode("unicode_escape").decode("ascii")
    return character


def encodable(name: str) -> str:
    """The name of a file, which may be octets that are no text, as text that can be written."""
    return _OCTETS.sub(
        lambda found: found[0].encode("utf-8", "surrogateescape").decode("utf-8", "replace"), name
    )


def spec_name(name: str) -> str:
    """`link_credit` as the specification writes it: `link-credit`."""
    return name.replace("_", "-")


def in_words(name: str, value: object) -> tuple[str, str]:
    """A value and what it is called, for a reader: of `latency_us`, 3000 `latency`, `3 ms`.

    What is called after its unit alone is called nothing: of `ms`, 1000 ``, `1000 ms`.
    """
    if name.endswith("_us") and isinstance(value, int):
        return spec_name(name.removesuffix("_us")), f"{value / 1000:g} ms"
    if name in ("ms", "milliseconds"):
        return "", f"{value} ms"
    return spec_name(name), value_text(value)


def times(count: int) -> str:
    """`once`, or `2 times`."""
    return "once" if count == 1 else f"{count:,} times"


def queue_at(address: str) -> str | None:
    """The queue that an address names to RabbitMQ; None if it names none, as that of an exchange.

    Addresses of version 2 are percent-encoded, those of version 1 may be the bare name.
    """
    for prefix in ("/queues/", "/amq/queue/", "/queue/"):
        if address.startswith(prefix):
            return unquote(address.removeprefix(prefix))
    return None if address.startswith("/") else address


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """`1 row`, or `2,000 rows`: with separators, as numbers on the command line have them."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def alternatives(names: Iterable[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def duration(time_us: int, step_us: int = 1) -> str:
    """A time in the unit in which it is read best: `35 µs`, `240 ms`, `2.4 s`, `5.0 min`.

    Args:
        time_us: the time.
        step_us: of the clock that told it; a digit that it cannot tell is left out.
    """
    for unit, size, least in (("min", 60_000_000, 2), ("s", 1_000_000, 1), ("ms", 1_000, 1)):
        if time_us >= size * least:
            value = time_us / size
            tenths = value < 10 and step_us < size
            return f"{value:.1f} {unit}" if tenths else f"{value:,.0f} {unit}"
    return f"{time_us} µs"


def value_text(value: Any) -> str:
    """A counter or a field in a line of text; `?` for what cannot be known."""
    if value is None:
        return "?"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return digits(value)
    if isinstance(value, bytes):
        return f"0x{value[:16].hex()}" + ("…" if len(value) > 16 else "")
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list):
        return "[" + ", ".join(value_text(item) for item in value[:4]) + "]"
    return visible(value)


def _object(value: Mapping[str, Any]) -> str:
    kind = value.get("type")
    inner = [(key, item) for key, item in value.items() if key != "type"]
    text = ", ".join(f"{visible(spec_name(key))}={value_text(item)}" for key, item in inner[:4])
    if len(inner) > 4:
        text += ", …"
    if isinstance(kind, str):
        return f"{visible(kind)}({text})" if inner else visible(kind)
    return "{" + text + "}"


# Fields are told in the order of the specification, whatever order a file keeps them in.
_SPEC_ORDER: dict[str, tuple[str, ...]] = (
    {kind.NAME: tuple(spec.name for spec in kind.FIELDS) for kind in PERFORMATIVES.values()}
    | {
        kind.NAME: tuple(name.rstrip("_") for name in kind.__struct_fields__)
        for kind in METHODS.values()
    }
    | {
        kind.NAME: tuple(name for name, _ in kind.FIELDS)
        for kind in (*CONTROLS.values(), *COMMANDS.values())
    }
)
_DETAILS: tuple[str, ...] = tuple(field.name for field in DETAIL_FIELDS)


def field_text(name: str, value: object) -> str:
    """The value of a frame's field, or how many octets a secret has: a line is read and pasted."""
    if not is_secret(name, value):
        return value_text(value)
    n = 0
    with suppress(TypeError, ValueError):  # a foreign trace may have anything in its place
        n = len(revived(value))
    return say("text.hidden", n=n)


def frame_text(row: Row) -> str:
    """A frame in one line: `flow(handle=0, delivery-count=20, link-credit=6)`.

    The channel and the session fields of a flow about a link are left out; they have views of
    their own.
    """
    fields = row.fields
    left_out = {"channel", EXTRA_JSON}
    if row.kind == "flow" and "handle" in fields:
        left_out |= {"next_incoming_id", "incoming_window", "next_outgoing_id", "outgoing_window"}
    parts = []
    found = {**fields, **row.extra}
    order = _SPEC_ORDER.get(row.kind or "", ()) if row.is_frame else _DETAILS
    ordered = [name for name in order if name in found]
    for name in [*ordered, *(name for name in found if name not in order)]:
        value = found[name]
        if name in left_out or value is None:
            continue
        parts.append(f"{visible(spec_name(name))}={field_text(name, value)}")
    return f"{visible(row.kind or row.event)}({', '.join(parts)})"
