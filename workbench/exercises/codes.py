"""A learner's answer as eight characters, to be read from the second row and typed by a trainer.

A code says which question was asked, what was committed, how sure the learner was, and holds a
check. It says nothing about the person: the same answer gives the same code, whoever gave it.

Forty bits, five a character, in an alphabet without I, L, O and U (a typed I, L or O is taken for
what it looks like):

    lesson 4 | question 10 | how sure 2 | answer 17 | check 7

The question is a hash of its name. The answer is a number below 2**16, the place of a choice, or,
behind a flag, a hash of the answer's text. The check covers the question's text as well, so that an
answer to the same question about other numbers is not taken for one about these.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from workbench.notebook import PlainError

from .progress import CONFIDENCES
from .question import Answer, Question, say

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 8
_BITS = {"lesson": 4, "question": 10, "sure": 2, "answer": 17, "check": 7}
_HASHED = 1 << 16  # the flag of an answer that is told by its hash
_LOOKS_LIKE = str.maketrans("ILO", "110")
_WORD = re.compile(r"[0-9A-Za-z]+")

asked: dict[str, Question] = {}
"""The questions that were asked in this kernel, each as it was asked last, by `lesson/question`."""


class CodeError(PlainError, ValueError):
    """What was pasted is no code, or none of this question; the text says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a code says.

    Attributes:
        answer: what was committed, as the question reads it; None if it is told by its hash alone.
        mark: the answer's 17 bits, by which an answer that is known here is recognised.
        confidence: one of `CONFIDENCES`; None if the learner did not say.
    """

    answer: Answer | None
    mark: int
    confidence: str | None


def code_of(question: Question, answer: Answer, confidence: str | None = None) -> str | None:
    """The code of an answer, such as `0T4C-81ZK`; None for a question of no numbered lesson."""
    lesson = _lesson(question)
    if lesson is None:
        return None
    sure = 0 if confidence is None else 1 + CONFIDENCES.index(confidence)
    fields = {
        "lesson": lesson,
        "question": _hash(question.name, 10),
        "sure": sure,
        "answer": mark_of(question, answer),
    }
    fields["check"] = _check(question, fields)
    bits = 0
    for name, size in _BITS.items():
        bits = bits << size | fields[name]
    return grouped(spelled(bits, LENGTH))


def mark_of(question: Question, answer: Answer) -> int:
    """The 17 bits of an answer: equal for equal answers."""
    if question.choices:
        number = question.choices.index(str(answer)) if answer in question.choices else None
    else:
        number = answer if isinstance(answer, int) else None
    if number is not None and 0 <= number < _HASHED:
        return number
    return _HASHED | _hash(str(answer), 16)


def read_code(code: str, question: Question) -> Told:
    """What a code says about a question.

    Args:
        code: eight characters; a hyphen, blanks and case do not matter.
        question: the one that it should be about, with its numbers.

    Raises:
        CodeError: if it is no code, or one of another question; the text says which.
    """
    bits = number_of(code, LENGTH)
    fields = {}
    for name in reversed(_BITS):
        fields[name] = bits & ((1 << _BITS[name]) - 1)
        bits >>= _BITS[name]
    if (fields["lesson"], fields["question"]) != (_lesson(question), _hash(question.name, 10)):
        raise CodeError(say("code-of-another", name=question.name))
    if fields["check"] != _check(question, fields):
        raise CodeError(say("code-check"))
    mark = fields["answer"]
    answer: Answer | None = None
    if mark < _HASHED:
        if mark >= len(question.choices) > 0:
            raise CodeError(say("code-no-choice"))
        answer = question.choices[mark] if question.choices else mark
    confidence = CONFIDENCES[fields["sure"] - 1] if fields["sure"] else None
    return Told(answer=answer, mark=mark, confidence=confidence)


def codes_in(line: str) -> Iterator[str]:
    """What may be a code in a line with a name, a time or rubbish around it, the likeliest first.

    Words of that many characters, words that a hyphen or a blank has cut in two, and then the parts
    of longer words.
    """
    words = _WORD.findall(line)
    yield from (word for word in words if len(word) == LENGTH)
    yield from (a + b for a, b in pairwise(words) if len(a) == len(b) == LENGTH // 2)
    for word in words:
        yield from (word[at : at + LENGTH] for at in range(len(word) - LENGTH + 1))


def spelled(bits: int, length: int) -> str:
    """A number in so many characters of the alphabet."""
    return "".join(ALPHABET[bits >> 5 * place & 31] for place in reversed(range(length)))


def grouped(code: str) -> str:
    """With a hyphen in the middle, as it is read aloud."""
    half = len(code) // 2
    return f"{code[:half]}-{code[half:]}"


def number_of(code: str, length: int) -> int:
    """The number that characters of the alphabet spell.

    Raises:
        CodeError: if they are not so many, or not of the alphabet.
    """
    letters = re.sub(r"[\W_]", "", code).upper().translate(_LOOKS_LIKE)
    if len(letters) != length or not set(letters) <= set(ALPHABET):
        raise CodeError(say("code-length", length=length, alphabet=ALPHABET))
    bits = 0
    for letter in letters:
        bits = bits << 5 | ALPHABET.index(letter)
    return bits


def _lesson(question: Question) -> int | None:
    number = question.name.partition("/")[0]
    return int(number) if number.isdecimal() and int(number) < 1 << _BITS["lesson"] else None


def _check(question: Question, fields: dict[str, int]) -> int:
    covered = [fields[name] for name in ("lesson", "question", "sure", "answer")]
    return _hash(f"{covered} {question.text} {question.choices}", _BITS["check"])


def _hash(text: str, bits: int) -> int:
    return zlib.crc32(text.encode()) >> (32 - bits)
