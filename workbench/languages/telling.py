"""Templates with what they name put in: numbers with their nouns, pieces in the form that is asked.

What a template of a table may say in braces:

- `{credit}` what it is told under this name, `{Credit}` the same with a capital first letter;
- `{credit:message}` a number with its noun: `3 messages`; `{n:entry/entries}` where the plural is
  another one; `{n:keine Kiste/eine Kiste/# Kisten}` for none, one and any other number;
- `{receiver:dative}` a piece, which is a text of a table itself, in one of its forms.

A name with a capital and a noun with one, `{late:Message}`, begin a sentence. A number has a proper
minus sign, and separators where it counts something: with its noun, and as `{n:,}`. The value of a
field and a serial number have no separators; what somebody typed is told as it was, `{seed!s}`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from string import Formatter
from typing import Any, NamedTuple

MINUS = "−"


class FactError(LookupError):
    """A template names a fact that it was not told."""


class Piece:
    """A text that other texts name: `the sender`, in German also `dem Sender`.

    Args:
        text: the template, or one for each form; `plain` is the one that is asked without a name.
        named: what the template names.
    """

    __slots__ = ("named", "text")

    def __init__(self, text: str | Mapping[str, str], named: Mapping[str, Any]) -> None:
        self.text = text
        self.named = named

    def __format__(self, form: str) -> str:
        """The piece in a form; in its plain one where it has no such form."""
        if isinstance(self.text, str):
            return told(self.text, self.named)
        return told(self.text.get(form or "plain", self.text["plain"]), self.named)

    def __str__(self) -> str:
        return format(self)


class _Blank(NamedTuple):
    """A place of a template: the text before it, and what is put in."""

    before: str
    name: str | None
    conversion: str | None
    form: str


@lru_cache(4096)
def _parsed(template: str) -> tuple[_Blank, ...]:
    return tuple(
        _Blank(before, name, conversion, form or "")
        for before, name, form, conversion in Formatter().parse(template)
    )


def told(template: str, named: Mapping[str, Any]) -> str:
    """A template with its facts.

    Raises:
        FactError: if it names one that is not there.
    """
    if "{" not in template:
        return template
    return "".join(
        [
            before if name is None else before + _said(named, name, conversion, form)
            for before, name, conversion, form in _parsed(template)
        ]
    )


def _said(named: Mapping[str, Any], name: str, conversion: str | None, form: str) -> str:
    """A fact as its place asks for it; a name with a capital makes it begin with a capital."""
    if name not in named:
        small = name[:1].lower() + name[1:]
        if small not in named:
            given = ", ".join(sorted(named))
            raise FactError(f"no fact {name!r}; there are: {given}")
        return capital(_said(named, small, conversion, form))
    value = named[name]
    if conversion is not None:
        value = Formatter().convert_field(value, conversion)
    number = _number(form) if form and not isinstance(value, Piece) else None
    if number is not None:
        return number(value)
    return digits(value, form) if isinstance(value, int | float) else format(value, form)


@cache
def _number(form: str) -> Callable[[int], str] | None:
    """How a form says a number with its noun; None if it is Python's."""
    if "#" in form:
        none, one, many = form.split("/")
        return lambda value: {0: none, 1: one}.get(value, many).replace("#", digits(value, ","))
    noun, _, plural = form.partition("/")
    if len(noun) < 2 or not noun.replace(" ", "").isalpha():
        return None
    small = noun[0].lower() + noun[1:]
    if noun[0].isupper():
        return lambda value: capital(count(value, small, plural.lower() or None))
    return lambda value: count(value, small, plural.lower() or None)


def on_page(text: str) -> str:
    """A text as HTML; what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def capital(text: str) -> str:
    """The sentence with a capital first letter."""
    return text[:1].upper() + text[1:]


def digits(value: float, form: str = "") -> str:
    """A number as a learner reads it, in a form of Python's: with a proper minus sign."""
    return format(value, form).replace("-", MINUS)


def count(value: int, one: str, many: str | None = None) -> str:
    """`1 message`, `3,000 messages`, `no messages`."""
    if value == 1:
        return f"1 {one}"
    return f"{digits(value, ',') if value else 'no'} {many or one + 's'}"


def found(table: Mapping[str, Any], key: str) -> Any:
    """What a table has under a key: `flow.stop` is `stop` in its part `flow`; None if nothing."""
    text: Any = table
    for part in key.split("."):
        text = text.get(part) if isinstance(text, Mapping) else None
    return text
