"""Repetition taken out of a StepperDoc, so that a run of 1,000 frames stays a small page.

Three tables do it, each undone by a line of JavaScript that knows nothing of AMQP:

- texts: a sentence is a template (its words) plus the whole numbers in it;
- layouts: where a frame's fields lie in its octets, shared by all frames encoded alike, each
  frame giving only the values in which it differs from the first of its layout;
- octets: a frame given as patches to an earlier frame of the same length.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

# Canonical whole numbers that a JavaScript number holds exactly; "007" or a number of 20 digits
# stays part of the words.
_NUMBER = re.compile(r"(?<![0-9])(?:0|[1-9][0-9]{0,14})(?![0-9])")

TextRef = list[int]


class Table:
    """Distinct values in order of first use; `index` gives a value's place."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[Hashable, int] = {}

    def index(self, key: Hashable, item: Any = None) -> int:
        """The place of `key`, which is stored as `item` (or as itself) when it is new."""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.items)
            self.items.append(key if item is None else item)
        return place


class Texts:
    """Sentences as templates and numbers. A template is the list of pieces between numbers."""

    def __init__(self) -> None:
        self._table = Table()

    @property
    def templates(self) -> list[list[str]]:
        """What goes into the document."""
        return self._table.items

    def ref(self, text: str) -> TextRef:
        """`[template, number, number, ...]`; `expand` gives the text back."""
        pieces = _NUMBER.split(text)
        numbers = [int(found) for found in _NUMBER.findall(text)]
        return [self._table.index(tuple(pieces), pieces), *numbers]


def expand(templates: Sequence[Sequence[str]], ref: Sequence[int]) -> str:
    """The text that a reference stands for; the mirror of `text()` in stepper.js."""
    pieces = templates[ref[0]]
    return pieces[0] + "".join(
        f"{number}{piece}" for number, piece in zip(ref[1:], pieces[1:], strict=True)
    )


class Octets:
    """Frames' octets: base64 when nothing like them came before, else `[frame, offset, hex, ...]`.

    A patched frame always refers to one that is stored whole, so no chain has to be followed.
    """

    def __init__(self) -> None:
        self._whole: dict[tuple[Hashable, int], list[tuple[int, bytes]]] = {}

    def store(self, place: int, raw: bytes, kind: Hashable) -> str | list[int | str]:
        """The stored form of `raw`, the octets of frame number `place`."""
        plain = base64.b64encode(raw).decode("ascii")
        alike = self._whole.setdefault((kind, len(raw)), [])
        best: list[int | str] | None = None
        for earlier, octets in alike[-4:]:
            patches = patch(octets, raw)
            size = sum(len(part) + 3 if isinstance(part, str) else 4 for part in patches)
            if size < len(plain) // 2 and (best is None or len(patches) < len(best)):
                best = [earlier, *patches]
        if best is None:
            alike.append((place, raw))
            return plain
        return best


def patch(old: bytes, new: bytes) -> list[int | str]:
    """`[offset, hex, offset, hex, ...]` that turns `old` into `new`, which is as long."""
    patches: list[int | str] = []
    start = None
    same = 0
    for at in range(len(new) + 1):
        differs = at < len(new) and old[at] != new[at]
        if differs:
            start = at if start is None else start
            same = 0
        elif start is not None:
            same += 1
            if same > 3 or at == len(new):  # a run of few equal octets is cheaper to repeat
                patches += [start, new[start : at + 1 - same].hex()]
                start = None
    return patches


def unpatch(stored: str | Sequence[int | str], frames: Sequence[Any]) -> bytes:
    """The octets that `Octets.store` put away; `frames` holds what was stored for each frame."""
    if isinstance(stored, str):
        return base64.b64decode(stored)
    octets = bytearray(base64.b64decode(frames[int(stored[0])]))
    for offset, text in zip(stored[1::2], stored[2::2], strict=True):
        new = bytes.fromhex(str(text))
        octets[int(offset) : int(offset) + len(new)] = new
    return bytes(octets)


def differences(first: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """`[place, value, ...]` where `values` departs from `first`."""
    flat: list[Any] = []
    for place, (before, value) in enumerate(zip(first, values, strict=True)):
        if before != value:
            flat += [place, value]
    return flat


def trimmed(row: Iterable[Any]) -> list[Any]:
    """The row without empty columns at its end (0, None, empty lists)."""
    cells = list(row)
    while cells and (cells[-1] is None or cells[-1] == 0 or cells[-1] == []):
        cells.pop()
    return cells
