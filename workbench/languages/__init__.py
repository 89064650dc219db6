"""The words of the workbench, a folder for each language: English is whole, others lie over it.

A file of a language has the name and the keys of the English one. Whatever it leaves out, files or
keys, is English.
Where English stands beside what it is about, as the prose of a notebook and what a scenario is
declared with, another language alone has a file: one for the notebook, and `declared.toml`.
The language is that of the variable WORKBENCH_LANGUAGE when the workbench is imported.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from workbench.notebook import PlainError

from .telling import MINUS, FactError, Piece, capital, digits, found, on_page, told

HERE = Path(__file__).resolve().parent
ENGLISH = "en"
VARIABLE = "WORKBENCH_LANGUAGE"


class LanguageError(PlainError):
    """There are no words of the language that is asked for."""


@cache
def languages() -> tuple[str, ...]:
    """The languages that there are, by the names of their folders."""
    return tuple(sorted({path.parent.name for path in HERE.glob("*/*.toml")}))


@cache
def language() -> str:
    """The learner's language; the same to the end of the process.

    Raises:
        LanguageError: if there are no words of it; the text lists the languages.
    """
    wanted = os.environ.get(VARIABLE) or ENGLISH
    if wanted not in languages():
        listed = ", ".join(languages())
        raise LanguageError(
            f"{VARIABLE} is {wanted!r:.40}, of which there are no words; set: {listed}"
        )
    return wanted


def words(name: str) -> dict[str, Any]:
    """A table in the learner's language.

    Args:
        name: of the file, without its ending: `stage`, `lesson_01`.

    Raises:
        FileNotFoundError: if there is no such table in English.
    """
    return words_in(language(), name)


def phrase(table: str, key: str, /, **named: Any) -> str:
    """A text of a table in the learner's language, with what it names.

    Args:
        table: as `words` takes it.
        key: with dots for a table in a table: `flow.stop`.
        **named: what the text names, as `telling` describes.
    """
    return format(piece(table, key, **named))


def piece(table: str, key: str, /, **named: Any) -> Piece:
    """A text for another text to name, which may ask for one of its forms.

    Raises:
        FactError: if the table has none under the key.
    """
    text = _text_in(language(), table, key)
    if text is None:
        raise FactError(f"{table}.toml has no {key}")
    return Piece(text, named)


def has(table: str, key: str) -> bool:
    """Whether there is a text under a key."""
    return _text_in(language(), table, key) is not None


@lru_cache(4096)  # peers may name kinds without end
def _text_in(wanted: str, table: str, key: str) -> Any:
    return found(words_in(wanted, table), key)


def prose(notebook: str) -> dict[str, str]:
    """The texts of a notebook in the learner's language, by the names of its cells.

    Args:
        notebook: its name without the ending. English prose stands in the notebook itself.
    """
    return _own(language(), notebook)


def declared(english: str) -> str:
    """What is declared in English, in the learner's language: a title, what a parameter means.

    English stands in the declaration, so that this is all there is of it; another language has a
    text for each such text of English in its `declared.toml`. So it is with the names of
    misconceptions: they are kept as they are, and shown in the learner's language.
    """
    texts: dict[str, str] = _own(language(), "declared")
    return texts.get(english, english)


@cache
def _own(wanted: str, name: str) -> dict[str, Any]:
    """What a language itself has in a table."""
    file = HERE / wanted / f"{name}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


@cache
def words_in(wanted: str, name: str) -> dict[str, Any]:
    """A table in a language; English where that has no words of its own."""
    english = tomllib.loads((HERE / ENGLISH / f"{name}.toml").read_text(encoding="utf-8"))
    return english if wanted == ENGLISH else _over(english, _own(wanted, name))


def _over(under: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """One table over another: what both have as tables is laid over key by key."""
    both = {
        key: _over(under[key], value)
        if isinstance(value, Mapping) and isinstance(under.get(key), Mapping)
        else value
        for key, value in own.items()
    }
    return {**under, **both}


__all__ = [
    "ENGLISH",
    "HERE",
    "MINUS",
    "VARIABLE",
    "FactError",
    "LanguageError",
    "Piece",
    "capital",
    "declared",
    "digits",
    "has",
    "language",
    "languages",
    "on_page",
    "phrase",
    "piece",
    "prose",
    "told",
    "words",
    "words_in",
]
