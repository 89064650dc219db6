"""A small table that is HTML on a page and aligned text everywhere else."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from workbench.languages import phrase, told, words

say = partial(phrase, "desks")

_LEFT = ' style="text-align:left"'
_ABOVE = ' style="caption-side:top;text-align:left;padding:0 8px 6px"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Words in rows and columns.

    Attributes:
        name: what it shows, and in which unit; it stands above the columns.
        head: of the columns.
        lines: one a row, each as long as the head; the first cell names the row.
    """

    name: str
    head: tuple[str, ...]
    lines: Sequence[tuple[str, ...]]

    def __str__(self) -> str:
        whole = [self.head, *self.lines]
        widths = [max(len(line[column]) for line in whole) for column in range(len(self.head))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in whole
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        columns = [[line[place] for line in self.lines] for place in range(1, len(self.head))]
        sides = [_LEFT, *map(_side, columns)]
        top = "".join(
            f'<th scope="col"{side}>{_breakable(cell)}</th>'
            for cell, side in zip(self.head, sides, strict=True)
        )
        body = "".join(
            "<tr>"
            + f'<th scope="row"{_LEFT}>{_breakable(line[0])}</th>'
            + "".join(
                f"<td{side}>{_breakable(cell)}</td>"
                for cell, side in zip(line[1:], sides[1:], strict=True)
            )
            + "</tr>"
            for line in self.lines
        )
        return (
            f"<table><caption{_ABOVE}>{html.escape(self.name)}</caption>"
            f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
        )


def table_of(
    key: str, lines: Sequence[tuple[str, ...]], /, more: Sequence[str] = (), **named: Any
) -> Table:
    """A table whose name and head are told in the learner's language.

    Args:
        key: of the texts in `tables.toml`.
        lines: one a row.
        more: heads of further columns.
        **named: what name and head name.
    """
    texts = words("tables")[key]
    head = (*(told(one, named) for one in texts["head"]), *more)
    return Table(name=told(texts["name"], named), head=head, lines=lines)


class Tabled:
    """A result that is shown as its `table`, and below it its `summary`, where it has one."""

    summary = ""

    @property
    def table(self) -> Table:
        """What is shown."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(filter(None, [str(self.table), self.summary]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        below = f'<p style="max-width:60em">{html.escape(self.summary)}</p>' if self.summary else ""
        return self.table._repr_html_() + below


@dataclass(frozen=True, slots=True)
class Tables:
    """Several tables, one under the other."""

    tables: Sequence[Table | Tabled]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables)


def tables(*several: Table | Tabled) -> Tables:
    """Tables for the end of a cell."""
    return Tables(several)


_UNIT = r" (?=(?:µs|ms|s|min)\b)"


def _breakable(cell: str) -> str:
    """As HTML: a name may part after dot, underscore or equals sign, a time or protocol never."""
    told = re.sub(r"(?<=[a-z])[._=](?=[a-zA-Z])", r"\g<0><wbr>", html.escape(cell))
    told = re.sub(rf"(?<=\d){_UNIT}", "&nbsp;", told)
    in_one = r'<span style="white-space:nowrap">\g<0></span>'
    return re.sub(r"\bAMQP (?:0-9-1|0-10|1\.0)", in_one, told)


def _side(column: Iterable[str]) -> str:
    """Numbers and times stand on the right, as in any notebook, columns of words on the left."""
    return "" if any(map(_is_number, column)) else _LEFT


def _is_number(cell: str) -> bool:
    number = re.split(_UNIT, cell)[0]
    return any(map(str.isdigit, number)) and not any(map(str.isalpha, number))
