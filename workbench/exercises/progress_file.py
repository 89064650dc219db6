"""The file of a learner's progress: a fixed, versioned format, and reading it with suspicion.

Version 2 is JSON with one record on each line, so that a damaged file still gives its whole lines:

    {"format": "amqp-flow-workbench/progress", "version": 2, "records": [
    {"lesson": "01", "question": "after-grant", "order": 1, "answer": "10", "confidence": "sure",
     "belief": "a flow opens the tap", "right": false, "hints": 0, "recalled_in": null},
    ...
    ]}

(each record on one line). `progress.schema.json` beside this module is the same as a JSON Schema;
`progress_record.Record` says what each field means. A reader ignores fields that it does not know.
There is nobody's name in it and no time, and nothing in it is ever executed.

Version 1 held the answers of each question without their order among the questions, and no
confidence; it is still read. What it does not tell is null.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .progress_record import (
    CONFIDENCES,
    LESSON,
    LONGEST_ANSWER,
    LONGEST_NAME,
    ProgressError,
    Record,
    in_order,
    shortened,
)

FORMAT = "amqp-flow-workbench/progress"
VERSION = 2
LARGEST_FILE = 4_000_000  # octets: MOST_RECORDS records of the usual length, and some
MOST_PROBLEMS = 20
MOST_HINTS = 1000
MAX_ORDER = 2**53 - 1  # a whole number that every JSON reader keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a text held.

    Attributes:
        records: those that could be read, in order.
        problems: one line for each thing that could not; at most `MOST_PROBLEMS`.
        failed: True if nothing in it is a saved progress.
    """

    records: tuple[Record, ...] = ()
    problems: tuple[str, ...] = ()
    failed: bool = False


def as_text(records: Iterable[Record]) -> str:
    """The records as the text of a file, in the newest version."""
    lines = ",\n".join(
        json.dumps(
            {
                "lesson": one.lesson,
                "question": one.question,
                "order": one.order,
                "answer": one.answer,
                "confidence": one.confidence,
                "belief": one.belief,
                "right": one.right,
                "hints": one.hints,
                "recalled_in": one.recalled_in,
            },
            ensure_ascii=False,
        )
        for one in records
    )
    head = f'{{"format": "{FORMAT}", "version": {VERSION}, "records": ['
    return f"{head}\n{lines}\n]}}\n" if lines else f"{head}]}}\n"


def read_bytes(source: Path) -> str:
    """The text of a file that may be a saved progress.

    Raises:
        ProgressError: if it is too large, or no text.
        OSError: if it cannot be read.
    """
    with source.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    return decoded(data)


def decoded(data: bytes) -> str:
    """Octets as text.

    Raises:
        ProgressError: if they are too many, or no text.
    """
    if len(data) > LARGEST_FILE:
        raise ProgressError(f"too large to be a saved progress: more than {LARGEST_FILE:,} octets")
    with contextlib.suppress(UnicodeDecodeError):
        return data.decode("utf-8-sig")
    # One damaged octet costs one line: whoever reads on finds that line unreadable, and no other.
    text = "\n".join(map(_line, data.split(b"\n")))
    if FORMAT not in text[:200]:
        raise ProgressError("not a saved progress: no text in it")
    return text


def _line(octets: bytes) -> str:
    try:
        return octets.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "{damaged"


def read_text(text: str) -> Found:
    """Read a saved progress of any version, as far as it can be read."""
    try:
        whole = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _salvaged(text)
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        return _nothing("not a saved progress of the workbench")
    version = whole.get("version")
    if isinstance(version, bool) or version not in (1, VERSION):
        return _nothing(
            f"a progress of version {_short(version)}; this workbench reads versions 1 and"
            f" {VERSION}"
        )
    if version == 1:
        return _version_1(whole)
    records = whole.get("records")
    if not isinstance(records, list):
        return _nothing("not a saved progress: its records are missing")
    return _collected(enumerate(records, start=1), [])


def record_of(value: Any) -> Record:
    """One record of the file.

    Raises:
        ProgressError: if it is none; the text says which field is wrong.
    """
    if not isinstance(value, dict):
        raise ProgressError("is no object")
    return Record(
        lesson=_lesson(value.get("lesson"), "lesson"),
        question=_text(value.get("question"), "question", LONGEST_NAME),
        order=_number(value.get("order"), "order", MAX_ORDER),
        answer=_text(value.get("answer"), "answer", LONGEST_ANSWER, least=0),
        confidence=_one_of(value.get("confidence"), "confidence", CONFIDENCES),
        belief=_optional(value.get("belief"), "belief"),
        right=_one_of(value.get("right"), "right", (True, False)),
        hints=_number(value.get("hints", 0), "hints", MOST_HINTS),
        recalled_in=(
            None
            if value.get("recalled_in") is None
            else _lesson(value["recalled_in"], "recalled_in")
        ),
    )


# -- inside -------------------------------------------------------------------------------------


def _collected(numbered: Iterable[tuple[int, Any]], problems: list[str]) -> Found:
    records, wrong = [], 0
    for number, value in numbered:
        try:
            records.append(record_of(value))
        except ProgressError as error:
            wrong += 1
            if len(problems) < MOST_PROBLEMS:
                problems.append(f"record {number} left out: {error}")
    if wrong > MOST_PROBLEMS:
        problems.append(f"{wrong} records were left out in all")
    return Found(records=tuple(in_order(records)), problems=tuple(problems))


def _salvaged(text: str) -> Found:
    """What the whole lines of a damaged file still say."""
    if FORMAT not in text[:200]:
        return _nothing("not a saved progress: no JSON in it")
    numbered, broken = [], 0
    for number, line in enumerate(text.splitlines()):
        bare = line.strip().removesuffix(",")
        if not bare.startswith("{") or bare.startswith('{"format"'):
            continue
        try:
            numbered.append((number, json.loads(bare, parse_constant=_no_constant)))
        except (ValueError, RecursionError):
            broken += 1
    problems = [f"damaged: {broken} of its lines cannot be read" if broken else "damaged"]
    found = _collected(numbered, problems)
    if not found.records:
        return _nothing("damaged: no record in it can be read")
    return found


def _version_1(whole: dict[str, Any]) -> Found:
    entries = whole.get("entries")
    if not isinstance(entries, dict):
        return _nothing("not a saved progress: its entries are missing")
    records: list[Record] = []
    problems = []
    for name, value in entries.items():
        try:
            records += _of_entry(name, value, len(records))
        except ProgressError as error:
            if len(problems) < MOST_PROBLEMS:
                problems.append(f"entry {_short(name)} left out: {error}")
    return Found(records=tuple(in_order(records)), problems=tuple(problems))


def _of_entry(name: str, value: Any, before: int) -> list[Record]:
    lesson, _, question = name.partition("/")
    if not isinstance(value, dict) or not isinstance(value.get("answers"), list):
        raise ProgressError("has no answers")
    answers = [shortened(answer) for answer in value["answers"] if isinstance(answer, str | int)]
    right, first = value.get("right") is True, value.get("first_right") is True
    belief = _optional(value.get("belief"), "belief")
    records = []
    for place, answer in enumerate(answers):
        last = place == len(answers) - 1
        known = right if last else (first if place == 0 else None)
        # Version 1 kept the belief behind the latest wrong answer: the last one, or before it.
        wrong_place = len(answers) - 1 if not right else len(answers) - 2
        records.append(
            Record(
                lesson=_lesson(lesson, "lesson"),
                question=_text(question, "question", LONGEST_NAME),
                order=before + place + 1,
                answer=answer,
                belief=belief if place == wrong_place and not known else None,
                right=known,
            )
        )
    return records


def _nothing(problem: str) -> Found:
    return Found(problems=(problem,), failed=True)


def _text(value: Any, field: str, longest: int, *, least: int = 1) -> str:
    if not isinstance(value, str) or not least <= len(value) <= longest:
        raise ProgressError(f"{field} is {_short(value)}; legal: a text of up to {longest}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # half of a pair of surrogates cannot be written again
        raise ProgressError(f"{field} is {_short(value)}; legal: a text") from None
    return value


def _optional(value: Any, field: str) -> str | None:
    return None if value is None else _text(value, field, LONGEST_NAME)


def _lesson(value: Any, field: str) -> str:
    if not isinstance(value, str) or not LESSON.fullmatch(value):
        raise ProgressError(f"{field} is {_short(value)}; legal: the number of a lesson")
    return value


def _number(value: Any, field: str, largest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ProgressError(f"{field} is {_short(value)}; legal: a whole number")
    return value


def _one_of(value: Any, field: str, legal: tuple[Any, ...]) -> Any:
    # `1 in (True, False)` holds, so the type is compared too.
    if value is None or any(value is one or (value == one and type(value) is str) for one in legal):
        return value
    listed = ", ".join(map(str, legal))
    raise ProgressError(f"{field} is {_short(value)}; legal: {listed} or null")


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")
