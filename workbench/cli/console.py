"""What commands share: saying things, failing with one line, showing that work goes on."""

from __future__ import annotations

import difflib
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from typing import TypeVar

DONE, BAD_INPUT, WRONG_USAGE, STOPPED = 0, 1, 2, 130

T = TypeVar("T")


class CommandError(Exception):
    """A command cannot do what was asked; the text is the one line that the person sees.

    Args:
        text: the line, without the program's name.
        code: exit code: `BAD_INPUT` if a file is bad or cannot be used, `WRONG_USAGE` if the
            command line itself is wrong, whatever the files hold.
    """

    def __init__(self, text: str, code: int = BAD_INPUT) -> None:
        super().__init__(text)
        self.code = code


def one_line(text: object) -> str:
    """The text on one line, with nothing in it that moves a cursor or hides what follows.

    File names and words of captures end up in messages; what is not printable is written out.
    """
    joined = " ".join(str(text).split())
    return "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn")
        else character
        for character in joined
    )


def say(text: object) -> None:
    """Tell on stderr what was done, so that stdout holds a command's own output only."""
    print(one_line(text), file=sys.stderr)


def suggestion(given: str, known: Iterable[str]) -> str:
    """`; did you mean credit?`, or a list of all there is if nothing is close."""
    names = list(known)
    close = difflib.get_close_matches(given, names, n=2)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; there are: {', '.join(names)}" if names else ""


class Progress:
    """One line on stderr that says how far the work is; nothing where nobody watches.

    Use it as a context manager: the line is gone at the end.

    Args:
        label: what is being done.
        total: how much there is to do, None if that is not known.
        unit: what is counted.
    """

    WIDTH = 24

    def __init__(self, label: str, total: int | None = None, unit: str = "rows") -> None:
        self.label = label
        self.total = total
        self.unit = unit
        self._shown = ""
        self._watched = sys.stderr.isatty()

    def __enter__(self) -> Progress:
        self._draw(self.label + " ...")
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._draw("")

    def at(self, done: int, total: int | None = None) -> None:
        """Say how far it is."""
        total = total or self.total
        if not total:
            self._draw(f"{self.label} {done:,} {self.unit}")
            return
        part = min(1.0, done / total)
        bar = "#" * round(part * self.WIDTH)
        self._draw(f"{self.label} [{bar:<{self.WIDTH}}] {part:4.0%} of {total:,} {self.unit}")

    def over(self, things: Iterable[T], every: int = 1000) -> Iterator[T]:
        """Pass things on and say now and then how many have gone by."""
        for number, thing in enumerate(things):
            if number % every == 0:
                self.at(number)
            yield thing

    def _draw(self, text: str) -> None:
        if self._watched and text != self._shown:
            # Erase by overwriting: that works on every terminal there is.
            print(f"\r{text:<{len(self._shown)}}", end="" if text else "\r", file=sys.stderr)
            sys.stderr.flush()
            self._shown = text
