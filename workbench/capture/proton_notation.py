"""The notation in which Proton logs AMQP values, read back.

    @attach(18) [name="q", handle=0x0, role=true, source=@source(40) [address="a"], ...]

Values come out as `flatten.plain` makes them: octets as `{"binary": hex}`, composites with their
`type`, described values with `descriptor` and `value`. Proton tells unsigned from signed numbers
(hexadecimal against decimal) and symbols from strings, but not their widths.
"""

from __future__ import annotations

import re
from typing import Any

from workbench.trace.flatten import plain

__all__ = ["CutShortError", "NotationError", "parse_composite"]

MAX_DEPTH = 64


class NotationError(ValueError):
    """This is not Proton's notation."""


class CutShortError(NotationError):
    """The text ends before the value does."""


_NUMBER = re.compile(r"0x[0-9a-fA-F]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[^\s,=\[\]{}\"]*")
_FIELD = re.compile(r"([a-z][a-z0-9-]*)=")
_COMPOSITE = re.compile(r"@([a-z][a-z0-9-]*)\((\d+)\) \[")
_ARRAY = re.compile(r"@<[^>]*>\[")
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}


def parse_composite(text: str) -> tuple[str, dict[str, Any], int, bool]:
    """Reads a performative.

    Args:
        text: begins with `@`.

    Returns:
        Its name, the fields that are whole (names in snake_case), where it ends in the text,
        and whether the text was cut before that.

    Raises:
        NotationError: it is no performative.
    """
    match = _COMPOSITE.match(text)
    if match is None:
        raise NotationError("no performative")
    reader = _Reader(text)
    fields: dict[str, Any] = {}
    reader.at = match.end()
    try:
        reader.fields(fields, 1)
    except CutShortError:
        return match[1], fields, len(text), True
    return match[1], fields, reader.at, False


class _Reader:
    """Reads values from `text`, from `at` on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fields(self, fields: dict[str, Any], depth: int) -> None:
        """Named fields up to the closing bracket; those read before a cut stay in `fields`."""
        while not self._take("]"):
            match = _FIELD.match(self.text, self.at)
            if match is None:
                self._fail()
            assert match is not None
            self.at = match.end()
            value = self._value(depth)
            if self.at >= len(self.text):
                raise CutShortError  # the value may go on behind the cut
            fields[match[1].replace("-", "_")] = value
            self._separator("]")

    def _fail(self) -> None:
        if self.at >= len(self.text) - 32 and "=" not in self.text[self.at :]:
            raise CutShortError
        raise NotationError(f"cannot be read from character {self.at} on")

    def _take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def _separator(self, closing: str) -> None:
        if not self._take(", ") and not self.text.startswith(closing, self.at):
            self._fail()

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise NotationError(f"nested more than {MAX_DEPTH} deep")
        text, at = self.text, self.at
        if at >= len(text):
            raise CutShortError
        first = text[at]
        if first == '"':
            return self._quoted().decode("utf-8", "replace")
        if first == "b" and text.startswith('b"', at):
            self.at += 1
            return {"binary": self._quoted().hex()}
        if first == ":":
            self.at += 1
            quoted = text.startswith('"', self.at)
            return self._quoted().decode("latin-1") if quoted else self._word()
        if first == "@":
            return self._described(depth)
        if first == "[":
            self.at += 1
            return self._list(depth)
        if first == "{":
            self.at += 1
            return self._map(depth)
        match = _NUMBER.match(text, at)
        if match is not None:
            self.at = match.end()
            return _number(match[0])
        word = self._word()
        return _WORDS.get(word, word)

    def _word(self) -> str:
        match = _WORD.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match[0]

    def _quoted(self) -> bytes:
        start = self.at + 1
        end = self.text.find('"', start)
        if end < 0:
            raise CutShortError
        self.at = end + 1
        octets = self.text[start:end].encode("utf-8", "surrogateescape")
        return _ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else m[2], octets)

    def _described(self, depth: int) -> Any:
        match = _COMPOSITE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            fields: dict[str, Any] = {"type": match[1]}
            self.fields(fields, depth + 1)
            return fields
        match = _ARRAY.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
            return self._list(depth)
        self.at += 1
        descriptor = self._value(depth + 1)
        if not self._take(" "):
            raise CutShortError
        return {"descriptor": descriptor, "value": self._value(depth + 1)}

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._take("]"):
            items.append(self._value(depth + 1))
            self._separator("]")
        return items

    def _map(self, depth: int) -> Any:
        pairs: list[tuple[Any, Any]] = []
        while not self._take("}"):
            key = self._value(depth + 1)
            if not self._take("="):
                raise CutShortError
            pairs.append((key, self._value(depth + 1)))
            self._separator("}")
        if all(isinstance(key, str) for key, _ in pairs) and len(dict(pairs)) == len(pairs):
            return dict(pairs)
        return {"map": [[key, value] for key, value in pairs]}


def _number(text: str) -> Any:
    if text.startswith("0x"):
        return int(text, 16)
    if text.lstrip("-").isdigit():
        return int(text)
    return plain(float(text))
