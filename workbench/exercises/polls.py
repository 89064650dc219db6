"""What a room has answered, read from pasted codes or from the CSV file of a poll.

Codes come from wherever a class writes: a chat, a shared page, slips of paper that were typed, a
poll. Each line may hold a name or a time, which is neither kept nor shown.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .codes import LENGTH, CodeError, Told, codes_in, mark_of, read_code
from .progress import SURE
from .question import AnswerError, Question, say

MOST_TOLD = 5
"""Of the lines that could not be read, so many are shown."""
_HEARD = ("answer", "response")
"""Columns of a poll that hold answers in plain words."""
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came of pasted lines.

    Attributes:
        told: the answers, in the order of the lines.
        unread: the lines in which no answer was found, each with the reason.
        repeated: how many lines were there before, word for word, and were not counted again.
    """

    told: list[Told] = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    repeated: int = 0

    @property
    def report(self) -> str:
        """In words, what was read and what was not."""
        said = [say("room.read", n=len(self.told))]
        if self.repeated:
            said.append(say("room.repeated", n=self.repeated))
        if self.unread:
            first = self.unread[:MOST_TOLD]
            # A reason may be a sentence; here it is a part of one.
            said_of = ((line[:60], why.removesuffix(".")) for line, why in first)
            shown = "; ".join(say("room.line", line=line, why=why) for line, why in said_of)
            more = len(self.unread) - len(first)
            told = {"n": len(self.unread), "shown": shown, "more": more}
            said.append(say("room.unread-more" if more else "room.unread", **told))
        return " ".join(said)


def heard(question: Question, lines: Iterable[str]) -> Heard:
    """Read the codes in lines.

    A line that is more than its code and stands there twice, word for word, counts once: it was
    pasted twice. Two lines with nothing but the same code are two learners with the same answer.
    """
    told: list[Told] = []
    unread: list[tuple[str, str]] = []
    seen: set[str] = set()
    repeated = 0
    for line in lines:
        text = " ".join(line.split())
        if not text:
            continue
        found, why = _first(question, text)
        if found is None:
            unread.append((text, why))
        elif _bare(text) or text not in seen:
            told.append(found)
        else:
            repeated += 1
        seen.add(text)
    return Heard(told=told, unread=unread, repeated=repeated)


def _first(question: Question, text: str) -> tuple[Told | None, str]:
    """The first code that can be read in a line, or why there is none."""
    why = ""
    for code in codes_in(text):
        try:
            return read_code(code, question), ""
        except CodeError as error:
            why = why or str(error)
    return None, why or say("room.no-code")


def _bare(text: str) -> bool:
    """Whether a line holds a code and nothing else."""
    return len(text.replace("-", "").replace(" ", "")) <= LENGTH


def poll_text(data: bytes) -> str:
    """The text of a poll's file: UTF-8 or UTF-16, or else in the letters of Western Windows."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def heard_in_poll(question: Question, text: str) -> Heard:
    """Read the CSV file of a poll: a code in any column, or else a column `answer` in plain words.

    A column `sure` may say how sure they were, in the words of the lesson. Every row counts.
    Columns part at a comma, a semicolon or a tab, at whichever the first row has most of: a
    spreadsheet writes what its country does.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    first = _QUOTED.sub("", lines[0]) if lines else ""
    between = max(",;\t", key=first.count)
    rows: list[list[str]] = []
    found = Heard()
    try:
        rows.extend(csv.reader(lines, delimiter=between, skipinitialspace=True))
    except csv.Error as error:  # a cell longer than it takes, as behind a quotation mark
        found.unread.append((lines[len(rows)], str(error)))
    head = [name.strip().lower() for name in rows[0]] if rows else []
    place = next((head.index(name) for name in _HEARD if name in head), None)
    sure = head.index("sure") if "sure" in head else None
    for number, row in enumerate(rows):
        line = ", ".join(cell.strip() for cell in row)
        if not line.strip(", "):
            continue
        told, why = _first(question, line)
        if told is None and place is not None and number:
            told, why = _in_words(question, _cell(row, place), _cell(row, sure))
        if told is not None:
            found.told.append(told)
        elif number or (place is None and not _is_head(line)):
            found.unread.append((line, why))
    return found


def _is_head(line: str) -> bool:
    """Whether a first row without a code names columns: no word of it has digits as a code has."""
    return not any(any(map(str.isdecimal, code)) for code in codes_in(line))


def _cell(row: Sequence[str], place: int | None) -> str:
    """A cell of a row; empty where the row ends before it."""
    return row[place] if place is not None and place < len(row) else ""


def _in_words(question: Question, answer: str, sure: str) -> tuple[Told | None, str]:
    try:
        read = question.read(answer.strip())
    except AnswerError as error:
        return None, str(error)
    confidence = SURE if sure.strip().lower() == SURE else None
    return Told(answer=read, mark=mark_of(question, read), confidence=confidence), ""


__all__ = ["Heard", "heard", "heard_in_poll", "poll_text"]
