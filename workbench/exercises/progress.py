"""What a learner has predicted and checked, in the order in which they answered.

No names and no times: which question got which answer, how sure the learner was, whether the run
agreed, and which misconception is behind a wrong answer. Nothing that is read is ever executed.

The log keeps itself in `progress.jsonl`: one line of JSON for each answer (`Record`), in order, and
one that lists what was forgotten:

    {"id":"5c1f09d2a3b47e68","order":1,"lesson":"01","question":"after-grant","answer":"10",...}
    {"forgets":["90ab3c61f7d2e845"]}

A line is known by its id, so two logs are merged as sets are: in whatever order and however often,
and what one of them has forgotten is in neither. Every write takes a lock, merges with the file as
it is by then, and puts the whole file in place in one step. A line that cannot be read is moved to
`progress.unreadable.jsonl`. Fields that are not known are ignored.

Before, the log was one JSON document, `progress.json`, with a record on each line and no ids; it is
read where there is no newer file, and stays as it is.
"""

from __future__ import annotations

import hashlib
import os
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from workbench.languages import declared, words
from workbench.trace.whole import write_whole

from .shared_file import (
    HOME_VARIABLE,
    ProgressError,
    SharedFile,
    folders,
    say,
    standard_folder,
)
from .watchers import Watchers

FILE_NAME, OLDER_NAME = "progress.jsonl", "progress.json"

SURE, THINK, GUESS = "sure", "I think so", "a guess"
CONFIDENCES = (SURE, THINK, GUESS)

LARGEST_ORDER = 2**53 - 1  # a whole number that every JSON reader keeps
LARGEST_FILE = 4_000_000  # octets: MOST_RECORDS records of the usual length, and some
MOST_RECORDS = 10_000
LONGEST_ANSWER = 200
LONGEST_NAME = 80
_RUN = re.compile(r"\w+-[0-9a-f]{8}")
"""A run's name, which a check of runs keeps as the answer; it tells a reader nothing."""
LESSON = r"^[0-9A-Za-z][0-9A-Za-z_-]{0,19}\Z"

_Lesson = Annotated[str, Meta(pattern=LESSON)]
_Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that was compared with a run.

    Attributes:
        id: unlike that of every other answer, of whatever learner.
        order: place among the records of this learner; a later answer has a larger one.
        lesson: whose question it is, two digits.
        question: its name in that lesson.
        answer: as text.
        confidence: one of `CONFIDENCES`, None if the learner did not say.
        belief: name of the misconception behind a wrong answer, if one was recognised.
        right: whether the run agreed; None where an older file does not tell.
        hints: how many hints were looked at before.
        recalled_in: number of the later lesson that asked again in a fresh form; None in the
            lesson itself.
        asked: which text was asked, as `fingerprint` has it: with other numbers, or of another
            broker, it is another question. Unset where nobody tells.
    """

    id: _Name
    order: Annotated[int, Meta(ge=0, le=LARGEST_ORDER)]
    lesson: _Lesson
    question: _Name
    answer: Annotated[str, Meta(max_length=LONGEST_ANSWER)]
    confidence: Annotated[str, Meta(pattern=f"^({'|'.join(CONFIDENCES)})$")] | None = None
    belief: _Name | None = None
    right: bool | None
    hints: Annotated[int, Meta(ge=0, le=1000)] = 0
    recalled_in: _Lesson | None = None
    asked: _Name | UnsetType = UNSET

    @property
    def name(self) -> str:
        """`lesson/question`."""
        return f"{self.lesson}/{self.question}"

    @property
    def asked_in(self) -> str:
        """The lesson in which it was answered."""
        return self.recalled_in or self.lesson

    def is_of(self, text: str) -> bool:
        """Whether it answers this text, as far as it tells."""
        return self.asked in (UNSET, fingerprint(text))

    @property
    def sure_and_wrong(self) -> bool:
        """The mistake worth most: nobody looks twice at what they are sure of."""
        return self.confidence == SURE and self.right is False


class Forgotten(msgspec.Struct, frozen=True):
    """The records that were forgotten, by their ids; another log must not bring them back."""

    forgets: list[_Name]


@dataclass(frozen=True, slots=True)
class Entry:
    """All records of one question, in order."""

    records: list[Record] = field(default_factory=list)

    @property
    def answers(self) -> list[str]:
        """As text, in order."""
        return [one.answer for one in self.records]

    @property
    def tries(self) -> list[Record]:
        """The records up to the first right one: what is tried after it takes nothing back."""
        first = next((n for n, one in enumerate(self.records, start=1) if one.right), None)
        return self.records[:first]

    @property
    def right(self) -> bool:
        """Whether one was right."""
        return bool(self.tries[-1].right)

    @property
    def first_right(self) -> bool:
        """Whether the first one was."""
        return bool(self.records[0].right)

    @property
    def belief(self) -> str | None:
        """The misconception behind the latest wrong answer, if one was recognised."""
        wrong = [one.belief for one in self.records if one.right is False]
        return wrong[-1] if wrong else None

    @property
    def hints(self) -> int:
        """The most hints looked at."""
        return max(one.hints for one in self.records)


# -- lines --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Lines:
    """What a log holds.

    Attributes:
        records: by their ids.
        forgotten: ids of what was forgotten.
        unreadable: lines that could not be read.
    """

    records: dict[str, Record] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    unreadable: list[bytes] = field(default_factory=list)

    def merge(self, other: Lines) -> None:
        """Take in what another log holds and this one does not."""
        self.forgotten |= other.forgotten
        merged = {**other.records, **self.records}
        kept = sorted(
            (one for one in merged.values() if one.id not in self.forgotten),
            key=lambda one: (one.order, one.id),
        )
        self.records = {one.id: one for one in kept[-MOST_RECORDS:]}

    def text(self) -> str:
        """The lines as a file has them; equal logs have equal texts."""
        lines: list[Any] = list(self.records.values())
        if self.forgotten:
            lines.append(Forgotten(sorted(self.forgotten)))
        return "".join(f"{msgspec.json.encode(line).decode()}\n" for line in lines)


def read(data: bytes) -> Lines:
    """Read a log line by line, as far as it can be read; also one of the older form."""
    found = Lines()
    for line in data.removeprefix(BOM_UTF8).split(b"\n"):
        bare = line.strip().removesuffix(b",")
        if not bare or bare == b"]}" or bare.startswith(b'{"format"'):
            continue
        try:
            value = msgspec.json.decode(bare)
            if isinstance(value, dict) and "forgets" in value:
                found.forgotten.update(msgspec.convert(value, Forgotten).forgets)
                continue
            if isinstance(value, dict) and "id" not in value:
                value["id"] = hashlib.sha256(bare).hexdigest()[:16]
            record = msgspec.convert(value, Record)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            found.unreadable.append(line)
        else:
            found.records[record.id] = record
    ordered = Lines(unreadable=found.unreadable)
    ordered.merge(found)
    return ordered


def fingerprint(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def shortened(answer: object) -> str:
    """An answer as text of a bounded length, without halves of surrogate pairs."""
    text = str(answer).encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= LONGEST_ANSWER else text[: LONGEST_ANSWER - 1] + "…"


# -- the log ------------------------------------------------------------------------------------


class Progress:
    """The log of one learner over all lessons.

    Args:
        find_file: gives the file in which the log is kept, when it is first looked at; None from
            it, or no function at all, keeps the log in memory only.
    """

    def __init__(self, find_file: Callable[[], Path | None] | None = None) -> None:
        self._find_file = find_file
        self._file: Path | None = None
        self._lines = Lines()
        self._watchers = Watchers()
        self._unread: list[str] = []  # what could not be read, ever
        self._failure = ""  # why the latest reading or writing did not work

    # -- writing down -----------------------------------------------------------------------

    def record(
        self,
        name: str,
        answer: object,
        right: bool,
        belief: str | None = None,
        *,
        confidence: str | None = None,
        hints: int = 0,
        recalled_in: str | None = None,
        asked: str | None = None,
    ) -> None:
        """Take note of a comparison. The same answer twice in a row counts once.

        Args:
            name: `lesson/question`.
            answer: what the learner said.
            right: whether the run agreed.
            belief: name of the misconception behind a wrong answer.
            confidence: one of `CONFIDENCES`.
            hints: how many hints were looked at before.
            recalled_in: the later lesson that asked again.
            asked: the text of the question.

        Raises:
            ValueError: if the name has no lesson in it, or the confidence is none of the three.
        """
        lesson, _, question = name.partition("/")
        if not (re.match(LESSON, lesson) and question):
            raise ValueError(f"{name!r} is no lesson/question")
        if confidence is not None and confidence not in CONFIDENCES:
            raise ValueError(f"no confidence {confidence!r}; legal: {', '.join(CONFIDENCES)}")

        def add() -> None:
            here = list(self._lines.records.values())
            record = Record(
                id=os.urandom(8).hex(),
                order=min(here[-1].order + 1, LARGEST_ORDER) if here else 1,
                lesson=lesson,
                question=question[:LONGEST_NAME],
                answer=shortened(answer),
                confidence=confidence,
                belief=None if right or belief is None else belief[:LONGEST_NAME],
                right=right,
                hints=hints,
                recalled_in=recalled_in,
                asked=UNSET if asked is None else fingerprint(asked),
            )
            last = next((one for one in reversed(here) if one.name == record.name), None)
            if last is None or _said(last) != _said(record):
                self._lines.merge(Lines({record.id: record}))

        self._keep(add)

    def forget(self, lesson: str) -> tuple[Record, ...]:
        """Forget what was answered in a lesson; gives it, for `put_back`."""
        gone: list[Record] = []

        def drop() -> None:
            gone.extend(one for one in self._lines.records.values() if one.asked_in == lesson)
            self._lines.merge(Lines(forgotten={one.id for one in gone}))

        self._keep(drop)
        return tuple(gone)

    def put_back(self, records: Iterable[Record]) -> int:
        """Take records up, as far as they are not here; gives how many were new.

        One that was forgotten comes back under an id of its own.
        """
        before = len(self.records)

        def add() -> None:
            found: dict[str, Record] = {}
            for record in records:
                name, number = record.id, 1
                while name in self._lines.forgotten:
                    number += 1
                    name = f"{record.id.partition('+')[0]}+{number}"
                found.setdefault(name, replace(record, id=name))
            self._lines.merge(Lines(found))  # once: each merging puts all in order

        self._keep(add)
        return len(self.records) - before

    def take_up(self, data: bytes) -> tuple[int, int]:
        """Take over the records of a saved log that are not here yet.

        Returns:
            How many records it held, and how many of its lines could not be read.

        Raises:
            ProgressError: if nothing in it is a saved log; nothing is changed then.
        """
        if len(data) > LARGEST_FILE:
            raise ProgressError(say("too-large", most=LARGEST_FILE))
        found = read(data)
        if not found.records:
            raise ProgressError(say("no-log"))
        self.put_back(found.records.values())
        return len(found.records), len(found.unreadable)

    def merge(self, data: bytes) -> None:
        """Merge with a copy of this log that lies elsewhere; what was forgotten stays forgotten."""
        self._keep(lambda: self._lines.merge(read(data)))

    def watch(self, method: Callable[[], None]) -> None:
        """Call a bound method, as long as its object is there, when the log has changed."""
        self._watchers.add(method)

    # -- looking at it ----------------------------------------------------------------------

    @property
    def records(self) -> list[Record]:
        """Every record, in order."""
        self._load()
        return list(self._lines.records.values())

    @property
    def entries(self) -> dict[str, Entry]:
        """The records of each question, by `lesson/question`; what was asked again is not in."""
        found: dict[str, Entry] = {}
        for record in self.records:
            if record.recalled_in is None:
                found.setdefault(record.name, Entry()).records.append(record)
        return found

    def of_lesson(self, lesson: str) -> dict[str, Entry]:
        """The entries of one lesson, by the question's name without the lesson's."""
        start = f"{lesson}/"
        return {
            name.removeprefix(start): entry
            for name, entry in self.entries.items()
            if name.startswith(start)
        }

    def sure_and_wrong(self, lesson: str | None = None) -> list[Record]:
        """The answers of which the learner was sure and which the run contradicted."""
        return [one for one in self.records if one.sure_and_wrong and lesson in (None, one.lesson)]

    def summary(self, lesson: str) -> str:
        """Such as `3 answered, 2 right`; empty if nothing was answered yet."""
        entries = self.of_lesson(lesson).values()
        if not entries:
            return ""
        right = sum(entry.right for entry in entries)
        surprises = len({one.name for one in self.sure_and_wrong(lesson)})
        told = {"n": len(entries), "right": right, "surprises": surprises}
        return say("summary-surprised" if surprises else "summary", **told)

    def lines(self) -> Iterator[str]:
        """The log in words, one line a question."""
        if not self.records:
            yield say("nothing")
        for name, entry in self.entries.items():
            yield _line(name, entry)
        for one in self.records:
            if one.recalled_in is not None:
                told = {"name": one.name, "lesson": one.recalled_in, "answer": one.answer}
                yield f"{'✔' if one.right else '✘'} {say('again', **told)}"
        for one in self.sure_and_wrong():
            belief = declared(one.belief or "")
            told = {"name": one.name, "answer": one.answer, "belief": belief}
            yield say("surprised-by" if belief else "surprised", **told)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def text(self) -> str:
        """The log as the text of its file."""
        self._load()
        return self._lines.text()

    @property
    def where(self) -> Path | None:
        """The file in which the log keeps itself, None if it is in memory only."""
        self._load()
        return self._file

    @property
    def problem(self) -> str:
        """What could not be read, and why the log is not kept; empty if all is well."""
        self._load()
        return "; ".join(filter(None, [*self._unread, self._failure]))

    def refresh(self) -> None:
        """Look at the file again: another notebook may have written to it."""
        self._load()
        self._keep(None)

    # -- the file ---------------------------------------------------------------------------

    def _load(self) -> None:
        if self._find_file is not None:
            self._file, self._find_file = self._find_file(), None
            if self._file is None:
                tried = ", ".join(map(str, folders()))
                told = {"tried": tried, "variable": HOME_VARIABLE}
                self._unread.append(say("in-memory" if tried else "in-memory-at-once", **told))
            self._keep(None)

    def _keep(self, change: Callable[[], None] | None) -> None:
        """Merge with the file, change what is here, and write the file if it says less."""
        self._load()
        before, file = self._lines.text(), self._file
        try:
            if file is not None and (change is not None or before):
                file.parent.mkdir(parents=True, exist_ok=True)
            with nullcontext() if file is None else SharedFile(file).locked():
                there = None if file is None else self._read(file)
                if change is not None:
                    change()
                    change = None
                if file is not None and self._lines.text() != there:
                    write_whole(file, self._lines.text(), private=True)
            self._failure = ""
        except (OSError, ProgressError) as error:
            if change is not None:
                change()
            reason = getattr(error, "strerror", None) or str(error)
            self._failure = say("not-kept", file=file, reason=reason)
        if self._lines.text() != before:
            self._watchers.tell()

    def _read(self, file: Path) -> str:
        """Take in what the file holds; gives its readable text, for whoever writes it anew."""
        data = file.read_bytes() if file.exists() else b""
        found = read(data)
        if found.unreadable:
            aside = file.with_name("progress.unreadable.jsonl")
            with aside.open("ab") as kept:
                kept.write(b"".join(line + b"\n" for line in found.unreadable))
            told = {"file": file, "n": len(found.unreadable), "aside": aside.name}
            self._unread.append(say("unreadable-aside", **told))
        older = file.with_name(OLDER_NAME)
        if not file.exists() and older.is_file():
            found = read(older.read_bytes())
            if found.unreadable:
                self._unread.append(say("unreadable", file=older, n=len(found.unreadable)))
        self._lines.merge(found)
        return data.decode("utf-8", "replace")


def _said(record: Record) -> tuple[Any, ...]:
    return record.answer, record.right, record.recalled_in, record.asked


def _line(name: str, entry: Entry) -> str:
    answers = [one.answer for one in entry.tries]
    runs = all(map(_RUN.fullmatch, answers))
    told = say("runs", n=len(answers)) if runs else " → ".join(answers)
    notes = []
    if entry.first_right:
        notes.append(say("note.first"))
    if not entry.right and entry.belief:
        notes.append(say("note.belief", belief=declared(entry.belief)))
    sure = entry.tries[-1].confidence
    if sure is not None:
        said = words("asking")["confidence"][sure]
        notes.append(say("note.sure" if sure == SURE else "note.unsure", said=said))
    if entry.hints:
        notes.append(say("note.hints", n=entry.hints))
    mark = "✔" if entry.right else "✘"
    return f"{mark} {name}: {told}" + (f" ({', '.join(notes)})" if notes else "")


def standard_file() -> Path | None:
    """Where this kernel's learner keeps the log; None if there is no folder for it."""
    folder = standard_folder()
    return None if folder is None else folder / FILE_NAME


# The log of whoever works in this kernel; it keeps itself in a file.
progress = Progress(standard_file)

__all__ = [
    "CONFIDENCES",
    "FILE_NAME",
    "GUESS",
    "SURE",
    "THINK",
    "Progress",
    "ProgressError",
    "Record",
    "progress",
    "shortened",
    "standard_file",
]
