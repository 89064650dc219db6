"""One answer of a learner, and what several of them come to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

FILE_NAME = "progress.json"

SURE, THINK, GUESS = "sure", "I think so", "a guess"
CONFIDENCES = (SURE, THINK, GUESS)

LONGEST_ANSWER = 200
LONGEST_NAME = 80
MOST_RECORDS = 10_000
LARGEST_ORDER = 10**9
LESSON = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,19}", re.ASCII)


class ProgressError(ValueError):
    """A file that holds no progress; the text is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One answer that was compared with a run.

    Attributes:
        lesson: whose question it is, two digits.
        question: its name in that lesson.
        order: place among all records of this learner, from 1; a later answer has a larger one.
        answer: as text.
        confidence: one of `CONFIDENCES`, None if the learner did not say.
        belief: name of the belief behind a wrong answer, if one was recognised.
        right: whether the run agreed; None where an older file does not tell.
        hints: how many hints were looked at before.
        recalled_in: number of the later lesson that asked again in a fresh form; None in the
            lesson itself.
    """

    lesson: str
    question: str
    order: int = 0
    answer: str
    confidence: str | None = None
    belief: str | None = None
    right: bool | None
    hints: int = 0
    recalled_in: str | None = None

    @property
    def name(self) -> str:
        """`lesson/question`."""
        return f"{self.lesson}/{self.question}"

    @property
    def asked_in(self) -> str:
        """The lesson in which it was answered."""
        return self.recalled_in or self.lesson

    @property
    def sure_and_wrong(self) -> bool:
        """The mistake worth most: nobody looks twice at what they are sure of."""
        return self.confidence == SURE and self.right is False


@dataclass(slots=True, kw_only=True)
class Entry:
    """All records of one question, summed up.

    Attributes:
        answers: as text, in order.
        right: whether the last one was right.
        first_right: whether the first one was.
        belief: the belief behind the latest wrong answer, if one was recognised.
        hints: the most hints looked at.
        records: what it is the sum of.
    """

    answers: list[str] = field(default_factory=list)
    right: bool = False
    first_right: bool = False
    belief: str | None = None
    hints: int = 0
    records: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Take one more record in."""
        if not self.answers:
            self.first_right = bool(record.right)
        self.answers.append(record.answer)
        self.right = bool(record.right)
        if record.right is False:
            self.belief = record.belief
        self.hints = max(self.hints, record.hints)
        self.records.append(record)


def in_order(records: Iterable[Record]) -> list[Record]:
    """The records by their order; equal ones stay as they are given."""
    listed = sorted(records, key=lambda one: one.order)
    if listed and listed[-1].order > LARGEST_ORDER:  # nobody counted that far: count anew
        listed = [replace(record, order=0) for record in listed]
    return numbered(listed)


def numbered(records: Iterable[Record]) -> list[Record]:
    """The records as they are given, with orders that rise; at most the newest `MOST_RECORDS`."""
    listed: list[Record] = []
    last = 0
    for record in records:
        last = max(last + 1, record.order)
        listed.append(record if record.order == last else replace(record, order=last))
    return listed[-MOST_RECORDS:]


def with_taken(here: Sequence[Record], taken: Iterable[Record]) -> list[Record]:
    """The records that are here and those of another log that are not, in a sensible order.

    A record is here if one that is here says the same; what was answered twice is here twice. Two
    logs that began alike and then went apart are joined where they parted: what is taken up stands
    right behind the last record that both have, and so before what was answered here since.
    """
    joined = list(here)
    unused = Counter(map(content, here))
    place = 0
    for record in taken:
        said = content(record)
        if unused[said]:
            unused[said] -= 1
            later = (at for at in range(place, len(joined)) if content(joined[at]) == said)
            place = next(later, place - 1) + 1
        else:
            joined.insert(place, record)
            place += 1
    return numbered(joined)


def content(record: Record) -> Record:
    """What a record says, wherever it stands."""
    return replace(record, order=0)


def same_answer(one: Record, other: Record) -> bool:
    """Whether two records of a question are one answer, compared twice."""
    return (one.answer, one.right, one.recalled_in) == (
        other.answer,
        other.right,
        other.recalled_in,
    )


def shortened(answer: object) -> str:
    """An answer as text of a bounded length, without halves of surrogate pairs."""
    text = str(answer).encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= LONGEST_ANSWER else text[: LONGEST_ANSWER - 1] + "…"
