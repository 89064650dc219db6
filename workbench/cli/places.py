"""Files that commands read and write: what is refused before any work is done."""

from __future__ import annotations

import os
import shlex
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .console import CommandError, UsageError

# The first octets of files that are often given by mistake for a trace.
_PCAP = (b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1")
_PCAPNG = b"\x0a\x0d\x0d\x0a"
_GZIP, _OF_GZIP = b"\x1f\x8b", 31
_SNIFFED = 512


def output_file(text: str, suffixes: Sequence[str], inputs: Iterable[str] = ()) -> Path:
    """The file to write, checked before the work begins.

    Args:
        text: its name.
        suffixes: one of which ends it.
        inputs: what is to be read; none of them may be written.

    Raises:
        CommandError: if its name does not end as it must, it is a folder or an input, or its folder
            is missing.
    """
    path = Path(text)
    if path.is_dir():
        raise CommandError(f"{text}: is a folder; give the name of a file in it")
    if path.suffix not in suffixes:
        from workbench.trace.words import alternatives

        wanted = alternatives(suffixes)
        raise UsageError(f"{text}: the name of the output must end in {wanted}")
    if not path.parent.is_dir():
        raise CommandError(f"{text}: there is no folder {path.parent}")
    for each in inputs:
        with suppress(OSError):  # one of them is not there
            if path.samefile(each):
                raise UsageError(f"{each}: is the output as well; give another name with -o")
    return path


def show_command(trace: str, run: str, seq: int) -> str:
    """The command that opens a row of a trace."""
    # Behind a space a name that begins with a hyphen would be an option.
    return as_typed("workbench", "show", trace, f"--run={run}", "--at", str(seq))


def as_typed(*words: str) -> str:
    """Words as a shell takes them; of a name that is no text, or moves a cursor, the octets."""
    return " ".join(shlex.quote(word) if word.isprintable() else _octets(word) for word in words)


def _octets(word: str) -> str:
    told = os.fsencode(word).decode("latin-1").encode("unicode_escape").decode("ascii")
    return "$'" + told.replace("'", r"\'") + "'"


@contextmanager
def reading(text: str) -> Iterator[None]:
    """Within it a trace is read; a row that is not in it is the command line's error.

    Raises:
        CommandError: it is a capture, and is told how to become a trace; or what was asked for is
            not in it.
    """
    from workbench.trace.cut import StepError

    refuse_capture(text)
    try:
        yield
    except StepError as error:
        raise UsageError(str(error)) from None


def refuse_capture(text: str) -> None:
    """Tell whoever gives a capture for a trace how it becomes one.

    Raises:
        CommandError: it is a capture.
    """
    if is_capture(Path(text), packed=True):
        trace = Path(text.removesuffix(".gz")).with_suffix(".parquet").name
        if Path(trace).exists() and Path(trace).samefile(text):
            trace = f"trace-{trace}"
        first = as_typed("workbench", "import", text, "-o", trace)
        raise CommandError(f"{text}: is a capture, not a trace; first: {first}")


def is_capture(path: Path, *, packed: bool = False) -> bool:
    """Whether a file begins as a pcap or pcapng capture does.

    Args:
        path: any file, or none.
        packed: whether it may be compressed.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        first = file.read(_SNIFFED)
    if packed and first.startswith(_GZIP):
        with suppress(zlib.error):
            first = zlib.decompressobj(wbits=_OF_GZIP).decompress(first, 4)
    return first[:4] == _PCAPNG or first[:4] in _PCAP
