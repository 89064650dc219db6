"""Templates with what they name put in: numbers with their nouns, pieces in the form that is asked.

What a template of a table may say in braces:

- `{credit}` what it is told under this name, `{Credit}` the same with a capital first letter;
- `{credit:message}` a number with its noun: `3 messages`; `{n:entry/entries}` where the plural is
  another one; `{n:keine Kiste/eine Kiste/# Kisten}` for none, one and any other number;
- `{receiver:dative}` a piece, which is a text of a table itself, in one of its forms.

A name with a capital and a noun with one, `{late:Message}`, begin a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any


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


class _Words(Formatter):
    """Python's format strings, with what the module's text says."""

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """A fact by its name; one with a capital is made to begin with a capital."""
        if field_name in kwargs:
            return kwargs[field_name], field_name
        name = field_name[:1].lower() + field_name[1:]
        if name not in kwargs:
            given = ", ".join(sorted(kwargs))
            raise FactError(f"no fact {field_name!r}; there are: {given}")
        return _Capital(kwargs[name]), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        """A number with its noun, a piece in its form, or whatever Python makes of it."""
        if isinstance(value, _Capital):
            return capital(self.format_field(value.of, format_spec))
        if not isinstance(value, Piece):
            if "#" in format_spec:
                none, one, many = format_spec.split("/")
                return {0: none, 1: one}.get(value, many).replace("#", str(value))
            noun, _, plural = format_spec.partition("/")
            if len(noun) > 1 and noun.replace(" ", "").isalpha():
                text = count(value, noun[0].lower() + noun[1:], plural.lower() or None)
                return capital(text) if noun[0].isupper() else text
        return str(super().format_field(value, format_spec))


class _Capital:
    """A fact that begins a sentence."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of


def told(template: str, named: Mapping[str, Any]) -> str:
    """A template with its facts.

    Raises:
        FactError: if it names one that is not there.
    """
    return _WORDS.vformat(template, (), named)


_WORDS = _Words()


def capital(text: str) -> str:
    """The sentence with a capital first letter."""
    return text[:1].upper() + text[1:]


def count(value: int, one: str, many: str | None = None) -> str:
    """`1 message`, `3 messages`, `no messages`."""
    if value == 1:
        return f"1 {one}"
    return f"{value or 'no'} {many or one + 's'}"


def found(table: Mapping[str, Any], key: str) -> Any:
    """What a table has under a key: `flow.stop` is `stop` in its part `flow`; None if nothing."""
    text: Any = table
    for part in key.split("."):
        text = text.get(part) if isinstance(text, Mapping) else None
    return text
