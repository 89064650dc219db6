"""A class that stays together: a lesson is open up to a section, until the trainer's next code.

The trainer makes a code (`section_code("01", 3)`) and writes it on the board. Whoever types it, in
the index, in a lesson's card or where a question is locked (`class_box`), can answer the questions
of the sections up to that one, and no others. The code of no section opens the whole lesson, and
with it what stands in sections without a number. It is kept beside the answers, so that every
notebook of the learner knows it. This is an agreement, not a guard: everything lies open in the
lesson's files.

A code has six characters: lesson 4 bits, section 5 bits (0: all), a check of 21 bits.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cache
from pathlib import Path

from workbench.lessons.table import lesson_numbered, words_of
from workbench.notebook import WrongValueError
from workbench.trace.whole import write_whole

from .codes import CodeError, grouped, number_of, spelled
from .headings import sections_of
from .question import say
from .shared_file import SharedFile, standard_folder
from .watchers import Watchers

LENGTH = 6
FILE_NAME = "class.json"
MOST_SECTION = 31
EXAMPLE = "ABC-123"
"""What a code looks like. Everybody reads it, so its check is wrong: it opens nothing."""
_CHECK = 21
_PREDICT = re.compile(r"\bpredict\.(\w+)\(")

_here: dict[str, int] = {}
"""The lessons that are locked where no folder can keep it, each with its last open section."""
watchers = Watchers()
"""Called when a code was typed in this kernel."""


def section_code(lesson: str, section: int = 0) -> str:
    """The trainer's code that opens a lesson up to a section; without one, the whole lesson.

    Args:
        lesson: its number, such as "01".
        section: the last one that is open; 0: all.

    Raises:
        WrongValueError: if there is no such lesson or section.
    """
    number = int(lesson_numbered(lesson).number)
    there = [one.number for one in sections_of(lesson)]
    if not isinstance(section, int) or section not in there:
        told = {"lesson": lesson, "section": repr(section), "last": there[-1]}
        raise WrongValueError(say("class-no-section", **told))
    bits = number << 5 | section
    return grouped(spelled(bits << _CHECK | _check(bits), LENGTH))


def class_code(code: str) -> str:
    """Type what the trainer has written on the board; says what is open now."""
    try:
        bits = number_of(str(code), LENGTH)  # a number, where the quotation marks were forgotten
    except CodeError:
        return say("class-no-code", code=f"{code!r:.40}", example=EXAMPLE)
    if _check(bits >> _CHECK) != bits & ((1 << _CHECK) - 1):
        return say("class-mistyped", code=f"{code!r:.40}")
    lesson, section = f"{bits >> _CHECK >> 5:02}", bits >> _CHECK & MOST_SECTION
    locks = _locks() | {lesson: section}
    _keep({name: upto for name, upto in locks.items() if upto})
    watchers.tell()
    return say("class-open-up-to" if section else "class-open", lesson=lesson, section=section)


def open_now() -> str:
    """What is open of each lesson that is locked, in words; empty if none is."""
    locks = sorted(_locks().items())
    return " ".join(say("class-open-up-to", lesson=one, section=upto) for one, upto in locks)


def obstacle(question: str) -> str | None:
    """Why a question cannot be answered yet; None if it can.

    Args:
        question: `lesson/question`.
    """
    lesson, _, name = question.partition("/")
    upto = _locks().get(lesson)
    if not upto:
        return None
    section = section_of(lesson, name)
    if not section:
        return say("class-locked-last", upto=upto, lesson=lesson)
    if section <= upto:
        return None
    return say("class-locked", upto=upto, lesson=lesson, section=section)


def unlock_all() -> None:
    """Forget every lock, for the next group."""
    _keep({})


@cache
def section_of(lesson: str, question: str) -> int:
    """The section in which a question is asked first; 0 if in none that has a number."""
    words = words_of(lesson)
    for section in sections_of(lesson):
        for source in section.cells:
            for function in _PREDICT.findall(source):
                key = function.replace("_", "-")
                kept = words.get(key, {}).get("kept_as", key)
                # A name with a fact in it, such as {rule}, stands for several.
                if question == kept or ("{" in kept and question.startswith(kept.split("{")[0])):
                    return section.number
    return 0


def _check(bits: int) -> int:
    return zlib.crc32(b"class %d" % bits) >> (32 - _CHECK)


def _file() -> Path | None:
    folder = standard_folder()
    return None if folder is None else folder / FILE_NAME


def _locks() -> dict[str, int]:
    """The lessons that are locked, each with its last open section."""
    file = _file()
    if file is None:
        return dict(_here)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): upto for name, upto in found.items() if isinstance(upto, int)}


def _keep(locks: dict[str, int]) -> None:
    file = _file()
    if file is None:
        _here.clear()
        _here.update(locks)
        return
    if not locks and not file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with SharedFile(file).locked():
        write_whole(file, json.dumps(locks, sort_keys=True) + "\n", private=True)


__all__ = [
    "EXAMPLE",
    "class_code",
    "obstacle",
    "open_now",
    "section_code",
    "section_of",
    "unlock_all",
    "watchers",
]
