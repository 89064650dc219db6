"""What commands share: saying things, failing with one line, showing that work goes on."""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, TypeVar

DONE, BAD_INPUT, WRONG_USAGE, STOPPED = 0, 1, 2, 130

OPEN = "open it with"
ENDLESS = 100_000
"""Width of a file in which a table is one line a row."""
_DRAWN = "\x1b"
"""In a line that was drawn for this terminal, and fits it."""
FORMATS = ("table", "json", "csv")

T = TypeVar("T")
Part = TypeVar("Part", bound=Sized)


def place(text: str) -> str:
    """The name of a file or folder; an empty one would be that of the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the name is empty")
    return text


def add_trace(parser: argparse.ArgumentParser, takes: Callable[[str], str] = place) -> None:
    """The argument TRACE; `takes` refuses what can be none."""
    about = "a Parquet file, or a folder of them"
    parser.add_argument("trace", metavar="TRACE", type=takes, help=about)


def add_run(parser: argparse.ArgumentParser) -> None:
    """The option that chooses a run of a trace."""
    parser.add_argument("--run", metavar="NAME", help="which run, where the trace holds several")


def add_many(
    parser: argparse.ArgumentParser, option: str, value: str, about: str, dest: str | None = None
) -> None:
    """An option that may be given several times.

    Args:
        parser: takes it.
        option: its name, `--queue`.
        value: what stands for its value in the help.
        about: what it is for.
        dest: the attribute that has the list, if it is not the option's name.
    """
    parser.add_argument(
        option, action="append", default=[], metavar=value, dest=dest or option.strip("-"),
        help=f"{about}; may be given several times",
    )  # fmt: skip


def add_output(
    parser: argparse.ArgumentParser, value: str, about: str, *, required: bool = False
) -> None:
    """The option that names what is written; arguments as of `add_many`."""
    parser.add_argument("-o", "--output", required=required, metavar=value, help=about)


def add_port(parser: argparse.ArgumentParser, about: str) -> None:
    """The option that names a TCP port."""
    parser.add_argument("--port", type=_port, metavar="N", help=about)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text} is no port; legal: 1 to 65535")
    return int(text)


def add_format(parser: argparse.ArgumentParser, formats: Sequence[str] = ("text", "json")) -> None:
    """The option that chooses for whom the output is, people first."""
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help="for people or for programs"
    )


class CommandError(Exception):
    """A command cannot do what was asked; the text is the one line that the person sees.

    Attributes:
        code: exit code.
    """

    code = BAD_INPUT


class UsageError(CommandError):
    """The command line itself is wrong, whatever the files hold."""

    code = WRONG_USAGE


def one_line(text: object) -> str:
    """The text on one line, with nothing in it that moves a cursor or hides what follows.

    File names and words of captures end up in messages; what is not printable is written out.
    """
    joined = " ".join(str(text).split())
    if joined.isprintable():
        return joined
    from workbench.trace.words import encodable, written_out

    return written_out(encodable(joined))


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


def as_json(value: object, indent: int | None = None) -> str:
    """JSON for standard output, in ASCII where that takes no UTF-8: it has no other encoding."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(value, indent=indent, ensure_ascii=plain)


def tell(lines: Iterable[str]) -> None:
    """Print prose; on a terminal it is wrapped between words, and lines that go on are set in."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in lines:
        if width is None or _DRAWN in line:
            print(line)
            continue
        inset = len(line) - len(line.lstrip()) + 2
        print(*_wrapped(line, width, inset), sep="\n")


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    opened: Sequence[str | None] = (),
) -> None:
    """Print rows under their names; arguments as of `table_lines`."""
    for line in table_lines(names, rows, caption=caption, opened=opened):
        print(line)


def table_lines(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    opened: Sequence[str | None] = (),
) -> list[str]:
    """Rows under their names, for standard output.

    A terminal gets no wider lines than it has room for: a column that says the same in every row
    becomes a line of its own there, the commands stand below the table, and where that is too wide
    still each row is a paragraph. Elsewhere every row is one line with everything in it.

    Args:
        names: of the columns.
        rows: a value for each of them, shown as `cell` has it.
        caption: a last line.
        opened: for each row the command that opens it; None for one that has none.
    """
    from rich.console import Console

    watched = sys.stdout.isatty()
    console = Console(file=sys.stdout, width=None if watched else ENDLESS)
    cells = [[one_line(cell(value)) for value in row] for row in rows]
    below: list[str] = []
    if watched:
        names, cells, same = _narrowed(names, cells)
        if same:
            below = _wrapped(f"in every row: {', '.join(same)}", console.width, 4)
        below += [f"#{number}: {command}" for number, command in enumerate(opened, 1) if command]
    elif opened:
        names = [*names, OPEN]
        cells = [[*row, command or "-"] for row, command in zip(cells, opened, strict=True)]
    below += [caption] if caption else []
    drawn = _table(names, cells)
    wanted = console.measure(drawn, options=console.options.update(width=ENDLESS)).maximum
    if wanted > console.width:
        return [*_paragraphs(names, cells, console.width), *below]
    with console.capture() as captured:
        console.print(drawn)
    return [line.rstrip() for line in (*captured.get().splitlines(), *below)]


def cell(value: object) -> str:
    """A value in a table: `-` for None; of a fraction four digits, or as many as are whole."""
    if isinstance(value, float):
        whole = value.is_integer() or abs(value) >= 1000
        return f"{value:.0f}" if whole else f"{value:.4g}"
    return "-" if value is None else str(value)


def _narrowed(
    names: Sequence[str], cells: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]], list[str]]:
    """For a terminal: numbered rows without what all of them say, and that by itself."""
    columns = list(zip(names, *cells, strict=True))
    alike = [len(cells) > 1 and len(set(column[1:])) == 1 for column in columns]
    same = [_told(*column[:2]) for column, one in zip(columns, alike, strict=True) if one]
    left = [column for column, one in zip(columns, alike, strict=True) if not one]
    numbers = ("", *(f"#{number}" for number in range(1, len(cells) + 1)))
    head, *rows = map(list, zip(numbers, *left, strict=True))
    return head, rows, same


def _paragraphs(names: Sequence[str], cells: Iterable[Sequence[str]], width: int) -> Iterator[str]:
    """Rows as texts, each value after its name; what is not there is left out."""
    for number, *values in cells:
        told = [_told(*one) for one in zip(names[1:], values, strict=True) if one[1] != "-"]
        yield from _wrapped(f"{number}  {', '.join(told)}", width, 4)


def _told(name: str, value: str) -> str:
    """Both with a space that stays on a line."""
    return f"{name}\xa0{value}"


def _wrapped(text: str, width: int, inset: int) -> list[str]:
    """Lines no wider than that, with no word on two of them."""
    lines = textwrap.wrap(
        text, width, subsequent_indent=" " * inset, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace("\xa0", " ") for line in lines] or [""]


def _table(names: Sequence[str], cells: Iterable[Sequence[str]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        drawn.add_column(Text(name), overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    return drawn


class Progress:
    """One line on stderr that says how far the work is; nothing where nobody watches.

    Use it as a context manager: the line is gone at the end.

    Args:
        label: what is being done.
        total: how much there is to do, None if that is not known.
        unit: what is counted.
    """

    def __init__(self, label: str = "", total: int | None = None, unit: str = "rows") -> None:
        self.label = label
        self.total = total
        self.unit = unit
        self._bar: Any = None

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("{task.description}"),
                BarColumn(24),
                TextColumn("{task.fields[told]}"),
            )
            self._bar = Bar(*columns, console=Console(file=sys.stderr), transient=True)
            self._task = self._bar.add_task(self.label, total=self.total, told="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def at(self, done: int, total: int | None = None) -> None:
        """Say how far it is."""
        total = total or self.total
        told = f"{done:,} {self.unit}"
        if total:
            told = f"{min(1.0, done / total):.0%} of {total:,} {self.unit}"
        self.show(told, done, total)

    def show(self, told: str, done: int, total: int | None) -> None:
        """Show it; another place than a terminal does that in its own way."""
        if self._bar is not None:
            self._bar.update(
                self._task, description=self.label, completed=done, total=total, told=told
            )

    def turn(self, label: str, total: int | None, unit: str) -> None:
        """Go on to something else; arguments as at first."""
        self.label, self.total, self.unit = label, total, unit
        self.at(0)

    def past(self, parts: Iterable[Part]) -> Iterator[Part]:
        """Pass parts on and say how many things have gone by in those that are done with."""
        done = 0
        for part in parts:
            yield part
            done += len(part)
            self.at(done)

    def over(self, things: Iterable[T], every: int = 1000) -> Iterator[T]:
        """Pass things on and say now and then how many have gone by."""
        for number, thing in enumerate(things):
            if number % every == 0:
                self.at(number)
            yield thing
