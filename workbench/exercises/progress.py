"""What a learner has predicted and checked: kept in memory, and in a file when they ask for it.

No names, no times: only which question got which answers and whether the run agreed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1
FILE_NAME = "progress.json"
FORMAT = "amqp-flow-workbench/progress"
LARGEST_FILE = 1_000_000


class ProgressError(ValueError):
    """A file that holds no progress; the text is one line for a person."""


@dataclass(slots=True, kw_only=True)
class Entry:
    """One question or check.

    Attributes:
        answers: the answers that were compared with a run, as text, in order.
        right: whether the last one was right.
        first_right: whether the first one was.
        belief: the belief behind the latest wrong answer, if one was recognised.
    """

    answers: list[str] = field(default_factory=list)
    right: bool = False
    first_right: bool = False
    belief: str | None = None


class Progress:
    """The log of one learner over all lessons.

    Attributes:
        entries: by `lesson/question`.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def record(self, name: str, answer: object, right: bool, belief: str | None = None) -> None:
        """Take note of a comparison. The same answer twice in a row counts once."""
        entry = self.entries.setdefault(name, Entry())
        text = str(answer)
        if not entry.answers:
            entry.first_right = right
        if not entry.answers or entry.answers[-1] != text:
            entry.answers.append(text)
        entry.right = right
        if not right:
            entry.belief = belief

    def of_lesson(self, lesson: str) -> dict[str, Entry]:
        """The entries of one lesson, by the question's name without the lesson's."""
        start = f"{lesson}/"
        return {
            name.removeprefix(start): entry
            for name, entry in self.entries.items()
            if name.startswith(start)
        }

    def summary(self, lesson: str) -> str:
        """Such as `3 answered, 2 right`; empty if nothing was answered yet."""
        entries = self.of_lesson(lesson).values()
        if not entries:
            return ""
        return f"{len(entries)} answered, {sum(entry.right for entry in entries)} right"

    def lines(self) -> Iterator[str]:
        """The log in words, one line a question."""
        if not self.entries:
            yield "Nothing predicted or checked yet."
        for name, entry in self.entries.items():
            told = " → ".join(entry.answers)
            mark = "✔" if entry.right else "✘"
            note = "at the first try" if entry.first_right else ""
            if not entry.right and entry.belief:
                note = f"belief “{entry.belief}”"
            yield f"{mark} {name}: {told}" + (f" ({note})" if note else "")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    # -- files ------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The log as a small JSON text."""
        entries = {
            name: {
                "answers": entry.answers,
                "right": entry.right,
                "first_right": entry.first_right,
                "belief": entry.belief,
            }
            for name, entry in self.entries.items()
        }
        whole = {"format": FORMAT, "version": VERSION, "entries": entries}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"

    def restore(self, text: str) -> int:
        """Take over the entries of a saved log; returns how many. Answers given since then stay.

        Raises:
            ProgressError: if the text is no saved log; nothing is changed then.
        """
        try:
            whole = json.loads(text)
        except (ValueError, RecursionError):
            raise ProgressError("not a saved progress: no JSON in it") from None
        if not isinstance(whole, dict) or whole.get("format") != FORMAT:
            raise ProgressError("not a saved progress of the workbench")
        if whole.get("version") != VERSION:
            raise ProgressError(
                f"a progress of version {str(whole.get('version'))[:20]}; this is version {VERSION}"
            )
        entries = whole.get("entries")
        if not isinstance(entries, dict):
            raise ProgressError("not a saved progress: its entries are missing")
        restored = {str(name): _entry(str(name), value) for name, value in entries.items()}
        self.entries = {**restored, **self.entries}
        return len(restored)

    def save(self, path: str | os.PathLike[str] = FILE_NAME) -> Path:
        """Write the log, whole or not at all; a file of that name is replaced.

        Raises:
            ProgressError: if it cannot be written there.
        """
        target = Path(path)
        try:
            handle, part = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(self.to_json())
                os.replace(part, target)
            except BaseException:
                Path(part).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise ProgressError(f"{target}: cannot write there: {error.strerror}") from error
        return target

    def load(self, path: str | os.PathLike[str] = FILE_NAME) -> int:
        """Take over a saved log; returns how many entries, 0 if there is no such file.

        Raises:
            ProgressError: if the file holds no saved log.
        """
        source = Path(path)
        if not source.is_file():
            return 0
        try:
            if source.stat().st_size > LARGEST_FILE:
                raise ProgressError(f"{source}: too large to be a saved progress")
            return self.restore(source.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise ProgressError(f"{source}: not a saved progress: no text in it") from None
        except OSError as error:
            raise ProgressError(f"{source}: cannot be read: {error.strerror}") from error


def _entry(name: str, value: Any) -> Entry:
    if not isinstance(value, dict) or not isinstance(value.get("answers"), list):
        raise ProgressError(f"not a saved progress: entry {name[:60]!r} has no answers")
    belief = value.get("belief")
    return Entry(
        answers=[str(answer) for answer in value["answers"]],
        right=value.get("right") is True,
        first_right=value.get("first_right") is True,
        belief=None if belief is None else str(belief),
    )


# The log of this kernel; the lesson's widgets and checks write to it.
progress = Progress()
