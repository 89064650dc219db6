"""What a learner has predicted and checked, in the order in which they answered.

No names and no times: which question got which answer, how sure the learner was, which belief is
behind a wrong answer, and whether the run agreed. `progress_file` holds the format of the file,
`progress_place` where it lies and how several kernels share it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from .progress_file import as_text, read_bytes, read_text
from .progress_place import Place, standard_place, write_whole
from .progress_record import (
    CONFIDENCES,
    FILE_NAME,
    GUESS,
    LESSON,
    LONGEST_NAME,
    SURE,
    THINK,
    Entry,
    ProgressError,
    Record,
    numbered,
    same_answer,
    shortened,
    with_taken,
)


class Progress:
    """The log of one learner over all lessons.

    Args:
        find_place: gives the place where the log is kept, when it is first looked at; without it
            the log lives in memory only.
    """

    def __init__(self, find_place: Callable[[], Place] | None = None) -> None:
        self._find_place = find_place
        self._place: Place | None = None
        self._kept: list[Record] = []  # as they stand in the file, if there is one
        # What the file does not have yet: after a write that did not work, until one does.
        self._new: list[Record] = []
        self._taken: list[Record] = []
        self._without: set[str] = set()
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
    ) -> None:
        """Take note of a comparison. The same answer twice in a row counts once.

        Args:
            name: `lesson/question`.
            answer: what the learner said.
            right: whether the run agreed.
            belief: name of the belief behind a wrong answer.
            confidence: one of `CONFIDENCES`.
            hints: how many hints were looked at before.
            recalled_in: the later lesson that asked again.

        Raises:
            ValueError: if the name has no lesson in it, or the confidence is none of the three.
        """
        lesson, slash, question = name.partition("/")
        if not (slash and LESSON.fullmatch(lesson) and question):
            raise ValueError(f"{name!r} is no lesson/question")
        if confidence is not None and confidence not in CONFIDENCES:
            raise ValueError(f"no confidence {confidence!r}; legal: {', '.join(CONFIDENCES)}")
        record = Record(
            lesson=lesson,
            question=question[:LONGEST_NAME],
            order=self._next_order(),
            answer=shortened(answer),
            confidence=confidence,
            belief=None if right or belief is None else belief[:LONGEST_NAME],
            right=right,
            hints=hints,
            recalled_in=recalled_in,
        )
        last = next((one for one in reversed(self.records) if one.name == record.name), None)
        if last is not None and same_answer(last, record):
            return
        self._new.append(record)
        self._keep()

    def forget(self, lesson: str) -> tuple[Record, ...]:
        """Forget what was answered in a lesson; gives it, for `put_back`."""
        gone = tuple(one for one in self.records if one.asked_in == lesson)
        for records in (self._kept, self._new, self._taken):
            records[:] = [one for one in records if one.asked_in != lesson]
        self._without.add(lesson)
        self._keep()
        return gone

    def put_back(self, records: Iterable[Record]) -> int:
        """Take records of another log up, as far as they are not here; gives how many were new."""
        before = len(self.records)
        self._taken += records
        new = len(self.records) - before
        self._keep()
        return new

    # -- looking at it ----------------------------------------------------------------------

    @property
    def records(self) -> list[Record]:
        """Every record, in order."""
        self._load()
        here = numbered([*self._kept, *self._new])
        return with_taken(here, self._taken) if self._taken else here

    @property
    def entries(self) -> dict[str, Entry]:
        """The records of each question, by `lesson/question`; what was asked again is not in."""
        found: dict[str, Entry] = {}
        for record in self.records:
            if record.recalled_in is None:
                found.setdefault(record.name, Entry()).add(record)
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
        text = f"{len(entries)} answered, {sum(entry.right for entry in entries)} right"
        surprises = len({one.name for one in self.sure_and_wrong(lesson)})
        return f"{text}, {surprises} sure and wrong" if surprises else text

    def lines(self) -> Iterator[str]:
        """The log in words, one line a question."""
        entries = self.entries
        if not self.records:
            yield "Nothing predicted or checked yet."
        for name, entry in entries.items():
            yield _line(name, entry)
        again = [one for one in self.records if one.recalled_in is not None]
        for one in again:
            mark = "✔" if one.right else "✘"
            yield f"{mark} {one.name}, asked again in lesson {one.recalled_in}: {one.answer}"
        for one in self.sure_and_wrong():
            belief = f"; the misconception “{one.belief}”" if one.belief else ""
            yield f"You were sure and wrong here: {one.name}, {one.answer}{belief}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    # -- files ------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The log as the text of a file."""
        return as_text(self.records)

    def take_up(self, text: str) -> tuple[int, tuple[str, ...]]:
        """Take over the records of a saved log that are not here yet.

        Returns:
            How many records the text held, and one line for each that could not be read.

        Raises:
            ProgressError: if nothing in the text is a saved log; nothing is changed then.
        """
        found = read_text(text)
        if found.failed:
            raise ProgressError(found.problems[0])
        self.put_back(found.records)
        return len(found.records), found.problems

    def save(self, path: str | os.PathLike[str] = FILE_NAME) -> Path:
        """Write a copy of the log, whole or not at all; a file of that name is replaced.

        Raises:
            ProgressError: if it cannot be written there.
        """
        target = Path(path)
        try:
            write_whole(target, self.to_json())
        except OSError as error:
            raise ProgressError(f"{target}: cannot write there: {error.strerror}") from error
        return target

    def load(self, path: str | os.PathLike[str] = FILE_NAME) -> tuple[int, tuple[str, ...]]:
        """Take over a saved log, as `take_up`; there is nothing in a file that does not exist.

        Raises:
            ProgressError: if the file holds no saved log.
        """
        source = Path(path)
        if not source.is_file():
            return 0, ()
        try:
            return self.take_up(read_bytes(source))
        except ProgressError as error:
            raise ProgressError(f"{source}: {error}") from None
        except OSError as error:
            raise ProgressError(f"{source}: cannot be read: {error.strerror}") from error

    @property
    def where(self) -> Path | None:
        """The file in which the log keeps itself, None if it is in memory only."""
        self._load()
        return None if self._place is None else self._place.file

    @property
    def problem(self) -> str:
        """What could not be read, and why the log is not kept; empty if all is well."""
        self._load()
        return "; ".join(filter(None, [*self._unread, self._failure]))

    def refresh(self) -> None:
        """Look at the file again: another notebook may have written to it."""
        self._load()
        if self._place is None:
            return
        if self._new or self._taken or self._without:  # an earlier write did not work
            self._keep()
        else:
            self._take(self._place.read())

    # -- inside -----------------------------------------------------------------------------

    def _load(self) -> None:
        if self._place is None and self._find_place is not None:
            self._place = self._find_place()
            self._take(self._place.read())

    def _next_order(self) -> int:
        records = self.records
        return records[-1].order + 1 if records else 1

    def _keep(self) -> None:
        if self._place is None:
            self._new, self._taken, self._without = self.records, [], set()
            return
        self._take(
            self._place.merge(
                self._kept, self._new, without=frozenset(self._without), taken=self._taken
            )
        )

    def _take(self, found: tuple[Sequence[Record] | None, bool, str]) -> None:
        """What a place said: the records of its file, whether ours are among them, a problem."""
        records, written, problem = found
        if records is not None:
            self._kept = list(records)
        if written:
            self._new, self._taken, self._without = [], [], set()
        self._failure = "" if written or records is not None else problem
        if problem and not self._failure:
            self._unread.append(problem)


def _line(name: str, entry: Entry) -> str:
    told = " → ".join(entry.answers)
    notes = []
    if entry.first_right:
        notes.append("at the first try")
    if not entry.right and entry.belief:
        notes.append(f"misconception “{entry.belief}”")
    sure = entry.records[-1].confidence
    if sure is not None:
        notes.append(f"you were {sure}" if sure == SURE else f"you said: {sure}")
    if entry.hints:
        notes.append(f"with {entry.hints} hint{'s' if entry.hints > 1 else ''}")
    mark = "✔" if entry.right else "✘"
    return f"{mark} {name}: {told}" + (f" ({', '.join(notes)})" if notes else "")


# The log of whoever works in this kernel; it keeps itself in a file (`progress_place`).
progress = Progress(standard_place)

__all__ = [
    "CONFIDENCES",
    "FILE_NAME",
    "GUESS",
    "SURE",
    "THINK",
    "Entry",
    "Progress",
    "ProgressError",
    "Record",
    "progress",
    "shortened",
]
