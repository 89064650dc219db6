"""Following what is still being written: `workbench analyze SOURCE stalls --follow`, `Follower`.

The source is the folder of a recorder that runs, or a capture that grows (`tcpdump -U -w`). A poll
reads the rows that have come since the last one and hands them to a fold, which gives the
answers that the whole trace would give so far. Where a checkpoint is named, the fold's state is
written into it as JSON after each batch, with the place up to which rows were read and answers
written: a file that is there whole or not at all. So nothing counts twice after a stop or a kill.

The checkpoint is a folder of its own, never among the data: what lies in a trace folder may come
from anybody, and nothing in it but Parquet files is read, and nothing written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from workbench.folds.live import LiveFold
from workbench.folds.stalls import Stall, unended
from workbench.folds.throughput import WINDOW_US
from workbench.folds.vantage import LinkKey
from workbench.trace import files
from workbench.trace.files import TraceFileError
from workbench.trace.given import Place, takes
from workbench.trace.schema import Row
from workbench.trace.words import duration

from .asking import PLAIN, SPARK
from .console import DONE, UsageError, as_json, one_line, say
from .places import is_capture, show_command

__all__ = ["Follower"]

QUESTIONS = {
    "stalls": "stalls", "throughput": "rates", "latency": "answers", "prefetch": "prefetch",
}  # fmt: skip
"""Questions that can be followed, and what the fold calls them; the latter two of channels."""
POLL_S = 0.3
"""The recorder writes as often."""
RECENT_US = 2_000_000
"""What is told is so old at most."""
BATCH_ROWS = 20_000
LEAST_OCTETS = 24
"""Of a capture's own header; until it is there nothing can be told."""
KNOWN_OCTETS = 4_096
"""By so many octets at its beginning a capture is known again."""
VERSION = 10
_NUMBERED = re.compile(r"(.*?)-(\d+)")
_Read = dict[str, list[int]]
_Place = tuple[Any, ...]


class Follower:
    """The answers over what has been written so far; `poll` takes in what is new.

    `answer("stalls")` gives the whole answer up to this moment, `now()` what goes on. Made anew it
    reads from the beginning; with a checkpoint it goes on where it was.

    Args:
        source: the folder where a recorder writes (`serve(trace=...)`), or a capture that grows.
        checkpoint: a folder elsewhere that keeps how far it is; None keeps that in memory.
        window_us: length of the windows in which rates are counted.

    Attributes:
        over: what the latest poll found to be over, such as `stalls`.
        window_us: as given.

    Raises:
        TraceFileError: no such folder or capture, or a checkpoint that cannot be used.
    """

    @takes
    def __init__(
        self,
        source: Place,
        checkpoint: Place | None = None,
        *,
        window_us: int = WINDOW_US,
    ) -> None:
        place = Path(source)
        if is_capture(place) or (place.is_file() and not place.stat().st_size):
            self._source: _Folder | _Capture = _Capture(place)
        elif place.is_dir():
            self._source = _Folder(place)
        elif place.exists():
            raise TraceFileError(
                f"{source}: cannot be followed; legal: the folder of a recorder, or a pcap or"
                " pcapng file that is not compressed"
            )
        else:
            raise TraceFileError(
                f"{source}: no such file or folder; `workbench serve --trace` or tcpdump makes it"
            )
        self.over: dict[str, list[dict[str, Any]]] = {}
        self.window_us = window_us
        self._fold = LiveFold(window_us)
        self._past: dict[str, list[dict[str, Any]]] = {name: [] for name in QUESTIONS.values()}
        self._kept = None if checkpoint is None else _Kept(Path(checkpoint), place)
        if self._kept is not None:
            self._source.begin(self._kept.restored(self._fold), self._fold.last_us())

    @property
    def rows(self) -> int:
        """Rows taken in since it first began."""
        return self._fold.rows

    def poll(self) -> int:
        """Take in what has come, at most a batch; returns the number of rows, 0 if all are in.

        Raises:
            TraceFileError: it is no trace or capture, or was begun anew; or the checkpoint takes
                nothing.
        """
        rows, read = self._source.new()
        self.over = self._fold.take(rows) if rows else {}
        if rows and self._kept is not None:
            self._kept.keep(self.over, read, self._fold)
        else:
            for name, its in self.over.items():
                self._past[name] += its
        return len(rows)

    def silent_us(self, run: str | None = None) -> int:
        """How long ago the latest row was written, of this run or of any."""
        written_s = self._source.written_s
        latest_s = max(written_s.values()) if run is None else written_s[run]
        return max(0, round((time.time() - latest_s) * 1e6))

    def clock_us(self, run: str) -> int:
        """The time in a run: that of its latest row, and what has passed since."""
        return self._fold.last_us()[run] + self.silent_us(run)

    def lasts(self, stall: Mapping[str, Any]) -> bool:
        """Whether nothing has ended a stall of `now`."""
        return unended(Stall(**stall), self._fold.last_us()[stall["run"]])

    def now(self) -> dict[str, list[dict[str, Any]]]:
        """What goes on: `stalls` that last, `rates` of the latest window of each link.

        Of protocols without links also `answers`: how each direction of a channel was answered so
        far; and `prefetch`: what each consumer has.
        """
        return self._fold.now()

    def answer(self, question: str) -> list[dict[str, Any]]:
        """The whole answer, such as `stalls`, when all has been taken in that is there now."""
        while self.poll():
            pass
        past = self._past[question] if self._kept is None else self._kept.past(question)
        return past + self.now()[question]


class _Folder:
    """A recorder's folder. Read so far: by recorder the number of its latest file, and its rows.

    `written_s` has by run when the latest of its rows that were given were written.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.written_s: dict[str, float] = {}
        self._read: _Read = {}

    def begin(self, read: _Read, runs: Iterable[str]) -> None:
        """Go on from there; of these runs rows were given."""
        written = [path.stat().st_mtime for _, _, path in _files(self.place)]
        self.written_s = dict.fromkeys(runs, max(written, default=time.time()))
        self._read = {name: [int(one) for one in at] for name, at in read.items()}

    def new(self) -> tuple[list[Row], _Read]:
        """Rows that were not given yet, at most a batch, and how far it is with them."""
        read = dict(self._read)
        rows: list[Row] = []
        for recorder, number, path in _files(self.place):
            file, done = read.get(recorder, (-1, 0))
            if number < file:
                continue
            done = done if number == file else 0
            with files.open_file(path) as parquet:
                there = int(parquet.metadata.num_rows)
            if there < done:
                raise TraceFileError(
                    f"{path}: has {there} rows, and {done} were read: a recorder was started anew"
                    " in this folder; follow it again, with another checkpoint if one was named"
                )
            if there > done:
                room = BATCH_ROWS - len(rows)
                new = list(islice(files.iter_rows(path, raw=False), done, min(there, done + room)))
                rows += new
                done += len(new)
                written_s = path.stat().st_mtime
                self.written_s.update(dict.fromkeys({row.run for row in new}, written_s))
            read[recorder] = [number, done]
            if len(rows) >= BATCH_ROWS or done < there:
                break
        self._read = read
        return rows, read


class _Capture:
    """A capture that grows. Read so far: by its digest the size of the file's beginning.

    After a stop all is read again, which gives the same rows; the fold passes over those it has.
    `written_s` is as of a folder.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.written_s: dict[str, float] = {}
        self._tables = self._capture().growing()
        self._last = 0

    def _capture(self) -> Any:
        from workbench.capture.importer import Capture, CaptureError

        try:
            return Capture(self.place, run=self.place.stem)
        except CaptureError as error:
            raise TraceFileError(str(error)) from None

    def begin(self, read: _Read, runs: Iterable[str]) -> None:
        """Go on; the file must begin as it did."""
        self.written_s = dict.fromkeys(runs, self.place.stat().st_mtime)
        for digest, (size,) in read.items():
            if self._digest(int(size)) != digest:
                raise TraceFileError(
                    f"{self.place}: is another capture than the checkpoint knows; begin with"
                    " another checkpoint"
                )

    def new(self) -> tuple[list[Row], _Read]:
        """Rows that were not given yet, at most a batch."""
        from workbench.capture.importer import CaptureError

        size = self.place.stat().st_size
        if size < self._last:
            raise TraceFileError(
                f"{self.place}: has {size} octets, and {self._last} were there: a capture was begun"
                " anew; follow it again, with another checkpoint if one was named"
            )
        self._last = size
        if size < LEAST_OCTETS:
            return [], {}
        try:
            rows = files.from_table(next(self._tables))
        except CaptureError as error:
            raise TraceFileError(str(error)) from None
        except StopIteration:
            raise TraceFileError(
                f"{self.place}: is damaged; nothing after that can be read"
            ) from None
        if rows:
            self.written_s[rows[-1].run] = self.place.stat().st_mtime
        known = min(size, KNOWN_OCTETS)
        return rows, {self._digest(known): [known]} if rows else {}

    def _digest(self, size: int) -> str:
        with self.place.open("rb") as file:
            return hashlib.sha256(file.read(size)).hexdigest()


class _Kept:
    """The checkpoint: `state.json`, and for each question a file of past answers, a line each."""

    def __init__(self, place: Path, source: Path) -> None:
        if place.resolve().is_relative_to(source.resolve()):
            raise TraceFileError(
                f"{place}: lies in the folder that is followed, among data that others may have"
                " written; name a checkpoint elsewhere"
            )
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TraceFileError(f"{place}: cannot write there: {error.strerror}") from None
        self._state = place / "state.json"
        self._answers = {name: place / f"{name}.jsonl" for name in QUESTIONS.values()}
        self._octets = dict.fromkeys(self._answers, 0)
        self._checks = dict.fromkeys(self._answers, 0)
        self._source = str(source.resolve())

    def restored(self, fold: LiveFold) -> _Read:
        """Bring the fold to where it was; returns how far the reading is."""
        if not self._state.exists():
            return {}
        try:
            state = json.loads(self._state.read_text(encoding="utf-8"))
            version, source = state["version"], state["source"]
            if (version, source) == (VERSION, self._source):
                if state.pop("check") != zlib.crc32(json.dumps(state).encode()):
                    raise ValueError("it was altered")
                fold.restore(state["fold"])
                self._octets, self._checks = state["octets"], state["checks"]
                if self._checks != {name: zlib.crc32(self._kept(name)) for name in self._answers}:
                    raise ValueError("answers are missing, or were altered")
                read: _Read = dict(state["read"])
        except (ValueError, TypeError, KeyError, AttributeError, OSError):
            raise TraceFileError(
                f"{self._state}: is damaged; begin with another checkpoint"
            ) from None
        if version != VERSION:
            raise TraceFileError(
                f"{self._state}: of version {version}, and this is version {VERSION}; begin with"
                " another checkpoint"
            )
        if source != self._source:
            raise TraceFileError(f"{self._state}: follows {source}; begin with another checkpoint")
        return read

    def keep(self, over: dict[str, list[dict[str, Any]]], read: _Read, fold: LiveFold) -> None:
        """What is over goes to its file; with the new state it counts, and not before."""
        part = self._state.with_name(".state.json.part")
        try:
            for name, rows in over.items():
                text = "".join(json.dumps(row) + "\n" for row in rows).encode()
                with self._answers[name].open("ab") as file:
                    file.truncate(self._octets[name])  # what a killed process had begun to write
                    file.write(text)
                self._octets[name] += len(text)
                self._checks[name] = zlib.crc32(text, self._checks[name])
            state = {
                "version": VERSION, "source": self._source, "read": read, "octets": self._octets,
                "checks": self._checks, "fold": fold.kept(),
            }  # fmt: skip
            told = json.dumps(state)
            check = zlib.crc32(told.encode())
            part.write_text(f'{told[:-1]}, "check": {check}}}', encoding="utf-8")
            part.replace(self._state)
        except OSError as error:
            raise TraceFileError(f"{self._state}: cannot write there: {error.strerror}") from None
        finally:
            part.unlink(missing_ok=True)

    def past(self, question: str) -> list[dict[str, Any]]:
        """The answers that were kept."""
        return [json.loads(line) for line in self._kept(question).splitlines()]

    def _kept(self, question: str) -> bytes:
        if not self._octets[question]:
            return b""
        with self._answers[question].open("rb") as file:
            return file.read(self._octets[question])


def _files(folder: Path) -> Iterator[tuple[str, int, Path]]:
    """(recorder, number, path) of the whole files in order; what has a temporary name is none."""
    found = []
    for path in folder.glob("*.parquet"):
        if path.name.startswith((".", "_")):
            continue
        match = _NUMBERED.fullmatch(path.stem)
        recorder, number = (match[1], int(match[2])) if match else (path.stem, 0)
        found.append((recorder, number, path))
    yield from sorted(found)


# -- the command ------------------------------------------------------------------------------


def follow_command(arguments: argparse.Namespace) -> int:
    """Tell what goes on, until Ctrl-C or a file that cannot be read."""
    name = QUESTIONS.get(arguments.question)
    if name is None:
        raise UsageError(
            f"--follow answers {', '.join(QUESTIONS)}; it does not answer {arguments.question}"
        )
    if arguments.engine == SPARK:
        raise UsageError("--follow is answered without Spark")
    window_us = WINDOW_US if arguments.window is None else round(arguments.window * 1_000_000)
    follower = Follower(arguments.trace, arguments.checkpoint, window_us=window_us)
    again = "begins anew; --checkpoint DIR makes it go on"
    if arguments.checkpoint is not None:
        again = "goes on from there"
    say(f"following {arguments.trace}; Ctrl-C ends it, and the same command {again}")
    if name == "stalls" and Path(arguments.trace).is_file():
        say("in a capture a stall may be known only when it is over, from the frames that follow")
    try:
        with _Screen(arguments, name, follower) as screen:
            while True:
                came = follower.poll()
                screen.show(fresh=bool(came))
                if not came:
                    time.sleep(POLL_S)
    except KeyboardInterrupt:
        say(f"{follower.rows:,} rows so far")
    return DONE


class _Screen:
    """What goes on, and each stall once more when it is over.

    A terminal is kept current. Elsewhere it is told when it has changed; what lasts has when its
    time has one binary digit more.
    """

    def __init__(self, arguments: argparse.Namespace, question: str, follower: Follower) -> None:
        self.arguments, self.question, self.follower = arguments, question, follower
        self._now: list[dict[str, Any]] | None = None
        self._last: list[dict[str, Any]] | None = None
        self._told: set[_Place] = set()  # as over, of those that the fold may yet tell of
        self._live: Any = None

    def __enter__(self) -> _Screen:
        if sys.stdout.isatty() and self.arguments.format == "table":
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=sys.stdout), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, *, fresh: bool) -> None:
        """After a poll, which gave rows or not."""
        if not fresh and not self.follower.rows:
            return
        if fresh or self._now is None:
            self._now = self.follower.now()[self.question]
            self._now.sort(key=lambda row: str(tuple(row.values())))
        now = self._now
        over: list[dict[str, Any]] = []
        if self.question == "rates":
            now = [row for row in now if row["frames"] and self._is_recent(row)]
        elif self.question == "stalls":
            over = [{**row, "lasts": False} for row in self._over(now, fresh=fresh)]
            now = [{**row, "lasts": True} for row in now if self.follower.lasts(row)]
        if self.arguments.format == "json":
            told = now
        else:
            now = [self._current(row) for row in now]
            told = [self._coarse(row) for row in now]
        changed, self._last = bool(over) or told != self._last, told
        if self._live is not None or changed:
            self._print(over, now)

    def _over(self, now: list[dict[str, Any]], *, fresh: bool) -> list[dict[str, Any]]:
        """Stalls that are over and were not told; of `now` those when nothing comes."""
        over = list(self.follower.over.get("stalls", ()))
        if not fresh:
            over += [row for row in now if not self.follower.lasts(row)]
        new = [row for row in over if _place(row) not in self._told]
        self._told = (self._told | {*map(_place, new)}) & {*map(_place, now)}
        return new

    def _is_recent(self, row: dict[str, Any]) -> bool:
        """Its window has just ended at most; an older rate is not that of now."""
        ended_us = row["window_start_us"] + self.follower.window_us
        return self.follower.clock_us(row["run"]) < ended_us + RECENT_US

    def _current(self, row: dict[str, Any]) -> dict[str, Any]:
        """What lasts has lasted up to now, and not only to the latest row, or its connection's."""
        if self.question == "stalls":
            return {**row, "end_us": self.follower.clock_us(row["run"])}
        clock = _CLOCKS.get(self.question, "")
        if row.get(clock) is None:
            return row
        return {**row, clock: row[clock] + self.follower.silent_us(row["run"])}

    def _coarse(self, row: dict[str, Any]) -> dict[str, Any]:
        """Of its time, how many binary digits it has."""
        clock = _CLOCKS.get(self.question, "")
        if row.get(clock) is None:
            return row
        return {**row, clock: (row[clock] - row.get("start_us", 0)).bit_length()}

    def _print(self, over: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
        if self.arguments.format == "json":
            rows = [{**row, "engine": PLAIN} for row in (*over, *now)]
            print(as_json(rows), flush=True)
            return
        ago = duration(self.follower.silent_us())
        head = f"-- {self.follower.rows:,} rows, the latest {ago} ago; {self.question} now:"
        ended, lines = self._lines(over), [f"{head} {len(now)}", *self._lines(now)]
        if self._live is None:
            print(*ended, *lines, sep="\n", flush=True)
            return
        from rich.text import Text

        for line in ended:
            self._live.console.print(Text(line))
        self._live.update(Text("\n".join(lines)), refresh=True)

    def _lines(self, rows: list[dict[str, Any]]) -> list[str]:
        """A line each, of as many as a table has."""
        shown = rows[: self.arguments.rows or None]
        lines = [_TOLD[self.question](row, self.arguments.trace) for row in shown]
        if len(rows) > len(shown):
            lines.append(f"... and {len(rows) - len(shown):,} more; --rows 0 shows all")
        return lines


def _place(row: dict[str, Any]) -> _Place:
    """By which a stall is known again."""
    return (*LinkKey.of(row), row["seq"], row["brake"])


def _name(row: dict[str, Any]) -> str:
    key = LinkKey.of(row)
    of = "" if key.link is None else f" of the {key.link_sender}"
    return one_line(f"{key.name}{of}")


def _stall(row: dict[str, Any], folder: str) -> str:
    opened = ""
    if Path(folder).is_dir():
        opened = f"  {show_command(folder, row['run'], row['seq'])}"
    lasted = duration(row["end_us"] - row["start_us"])
    over, wait = ("", "wait") if row["lasts"] else ("over: ", "waited")
    return (
        f"{over}{_name(row)}: {row['brake']} for {lasted}, {row['messages_waiting']:,} {wait}"
        f" ({row['evidence']}){opened}"
    )


def _rate(row: dict[str, Any], _folder: str) -> str:
    return (
        f"{_name(row)}: {row['rate']:,.0f} messages/s, {row['frames']:,} frames,"
        f" {row['body_bytes']:,} octets"
    )


def _answer(row: dict[str, Any], _folder: str) -> str:
    text = f"{_name(row)}: {row['measure']}: {row['count']:,} answered"
    if row["max_us"] is not None:
        text += f", the slowest after {row['max_us'] / 1e6:.3f} s"
    text += f"; {row['unanswered']:,} waiting"
    if row["waiting_us"] is not None:
        text += f", the oldest for {duration(row['waiting_us'])}"
    return text


def _consumer(row: dict[str, Any], _folder: str) -> str:
    most = f"{row['prefetch_count']:,}" if row["prefetch_count"] else "any number"
    full = ": it gets no more" if row["full"] else ""
    place = f"{row['connection']}/{row['session']} {row['consumer']}"
    return one_line(f"{place}: {row['unacknowledged']:,} of {most} unacknowledged{full}")


_CLOCKS = {"stalls": "end_us", "answers": "waiting_us"}
"""What of an answer grows while nothing comes."""
_TOLD = {"stalls": _stall, "rates": _rate, "answers": _answer, "prefetch": _consumer}
