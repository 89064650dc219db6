"""The share code: what a run is a function of, as one short text.

    WB1.S<data><check>.N<data><check>.P<data><check>.A<data><check>.C<data><check>.H<data><check>

A prefix with the version of this coding, then six parts, each with a letter:

| part | holds |
|---|---|
| S | scenario, seed, row limit if it is not the usual one, names of learner's functions |
| N | preset by name, and the numbers of it that were changed |
| P | every parameter with its value |
| A | the acts: rows since the act before, name, arguments |
| C | cursor: the step that was looked at |
| H | trace hash, and the version of the model that made it |

`data` is deflated canonical JSON in base64url; `check` is the CRC-32 of letter and data, so that an
altered code says which part is damaged, and the others can still be used. All parts are always
there, so that a code that was cut off is noticed. A code is data: reading one executes nothing, and
what it unpacks to is bounded. A learner's own code is never in it.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert

from workbench.notebook import PlainError

VERSION = 1
BEGIN = f"WB{VERSION}."
LONGEST_CODE = 2000  # characters that are given out
LONGEST_READ = 20_000  # characters that are looked at
LARGEST_PART = 64_000  # octets that one part may unpack to
MOST_ACTS = 2000

PARTS: Mapping[str, str] = {
    "S": "scenario",
    "N": "preset",
    "P": "parameters",
    "A": "actions",
    "C": "cursor",
    "H": "trace hash",
}

_HEAD = re.compile(r"WB(\d{1,4})\.", re.ASCII)
_DATA = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_CHECK = 6  # characters of 32 bits in base64url
_BEHIND = ".,;:!?*~)]}>"
_QUOTES = "`\"'<>“”„‘’«»"

Value = int | bool | str | None
Act = tuple[int, str, dict[str, Value]]


class ShareCodeError(PlainError, ValueError):
    """A text of which nothing can be restored, or a run that has no short code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What a share code says. None stands for a part that could not be read.

    Attributes:
        scenario, seed, max_rows: of the run; `max_rows` None is the usual limit.
        own_code: names of functions of the learner's own that the run used; not the functions.
        preset, preset_changes: the preset's name, and its numbers that were changed.
        parameters: every parameter by name.
        acts: (after_seq, name, arguments) in order.
        cursor: the step that was looked at.
        trace_hash, model: of the rows, and the version of the model that made them.
        problems: one line for each part that could not be read.
    """

    scenario: str | None = None
    seed: int | None = None
    max_rows: int | None = None
    own_code: tuple[str, ...] = ()
    preset: str | None = None
    preset_changes: Mapping[str, Value] = field(default_factory=dict)
    parameters: Mapping[str, Value] | None = None
    acts: Sequence[Act] | None = None
    cursor: int | None = None
    trace_hash: str | None = None
    model: int | None = None
    problems: tuple[str, ...] = ()


def encode(shared: Shared) -> str:
    """The share code.

    Raises:
        ShareCodeError: if it would be too long; the text says what to do instead.
    """
    acts, before = [], 0
    for after_seq, name, arguments in shared.acts or ():
        acts.append([after_seq - before, name, dict(arguments)])
        before = after_seq
    values: dict[str, Any] = {
        "S": [shared.scenario, shared.seed, shared.max_rows, list(shared.own_code)],
        "N": [shared.preset, dict(shared.preset_changes)],
        "P": dict(shared.parameters or {}),
        "A": acts,
        "C": shared.cursor,
        "H": [shared.trace_hash, shared.model],
    }
    code = BEGIN + ".".join(_packed(tag, values[tag]) for tag in PARTS)
    if len(code) > LONGEST_CODE:
        raise ShareCodeError(
            f"with {len(acts)} actions the share code of this run has {len(code):,} characters,"
            f" more than {LONGEST_CODE:,}. Share an earlier branch, or the run itself: as a page"
            " (export) or as a trace file (workbench run ... -o)"
        )
    return code


def decode(text: object) -> Shared:
    """Read a share code, as far as it can be read.

    Blanks, line breaks and quotation marks that mails and chats put in do not matter, nor does
    what stands before the code, such as the rest of a link, or a sign of punctuation behind it.

    Raises:
        ShareCodeError: if nothing of it can be read; the text says why.
    """
    plain = _plain(text)
    head = _HEAD.search(plain)
    if head is None:
        raise ShareCodeError(f"this is no share code: one begins with {BEGIN}")
    if int(head[1]) != VERSION:
        raise ShareCodeError(
            f"a share code of version {int(head[1])}; this workbench reads version {VERSION}."
            " Either a newer workbench made it, or its first characters were altered"
        )
    shared, problems, found = Shared(), [], set()
    read: dict[str, str] = {}
    for piece in filter(None, plain[head.end() :].rstrip(_BEHIND).split(".")):
        tag = piece[:1]
        try:
            value = _unpacked(piece)
            if tag not in PARTS:
                problems.append(f"a part {tag!r} is unknown here: a newer workbench made this code")
                continue
            if tag in read:
                if read[tag] != piece:
                    problems.append(f"{PARTS[tag]}: there are two of it; the first one is taken")
                continue
            shared = replace(shared, **_told(tag, value))
            read[tag] = piece
            found.add(tag)
        except ShareCodeError as error:
            if tag in PARTS and tag not in found:
                problems.append(f"{PARTS[tag]}: {error}")
                found.add(tag)
            else:
                problems.append(f"a piece of {len(piece)} characters: {error}")
    problems += [
        f"{name}: this part is missing; the code was cut off or altered"
        for tag, name in PARTS.items()
        if tag not in found
    ]
    if shared == Shared():
        raise ShareCodeError("nothing of this share code can be read: " + "; ".join(problems))
    return replace(shared, problems=tuple(problems))


# -- inside -------------------------------------------------------------------------------------


def _plain(text: object) -> str:
    """The text without what a mail or a chat may have put between its characters.

    Raises:
        ShareCodeError: if it is no text, or much too long.
    """
    if not isinstance(text, str):
        raise ShareCodeError(f"a share code is a text, not {type(text).__name__}")
    if len(text) > LONGEST_READ:
        raise ShareCodeError(
            f"{len(text):,} characters are too many for a share code; legal: up to {LONGEST_READ:,}"
        )
    return "".join(
        character
        for character in text
        if character not in _QUOTES
        and not character.isspace()
        and unicodedata.category(character) not in ("Cf", "Cc", "Zs", "Zl", "Zp")
    )


def _packed(tag: str, value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    # Half of a pair of surrogates is no UTF-8; a text of a learner's may hold one.
    data = packer.compress(text.encode("utf-8", "surrogatepass")) + packer.flush()
    body = tag + _base64(data)
    return body + _check(body)


def _unpacked(piece: str) -> Any:
    """The value of one part.

    Raises:
        ShareCodeError: if the part is damaged; the text says how that shows.
    """
    body, check = piece[:-_CHECK], piece[-_CHECK:]
    if len(piece) <= _CHECK + 1 or not _DATA.fullmatch(piece):
        raise ShareCodeError("this part is damaged: characters are missing, or do not belong here")
    if _check(body) != check:
        raise ShareCodeError("this part is damaged: its checksum does not fit")
    try:
        data = base64.urlsafe_b64decode(body[1:] + "=" * (-(len(body) - 1) % 4))
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        octets = unpacker.decompress(data, LARGEST_PART)
        if unpacker.unconsumed_tail or not unpacker.eof or unpacker.unused_data:
            raise ShareCodeError(f"this part unpacks to more than {LARGEST_PART:,} octets")
        return json.loads(octets.decode("utf-8", "surrogatepass"), parse_constant=_no_constant)
    except ShareCodeError:
        raise
    except (ValueError, RecursionError, zlib.error):
        raise ShareCodeError("this part holds nothing that a workbench wrote") from None


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _check(body: str) -> str:
    return _base64(zlib.crc32(body.encode("ascii")).to_bytes(4, "big"))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _told(tag: str, value: Any) -> dict[str, Any]:
    """What a part says, by the fields of `Shared`.

    Raises:
        ShareCodeError: it is of another form.
    """
    names, form = _FORMS[tag]
    try:
        found = convert(value, form)
    except ValidationError:
        raise ShareCodeError("this part is not of the form that a workbench writes") from None
    if tag == "A":
        rows = accumulate(moved for moved, _, _ in found)
        found = tuple((row, *act[1:]) for row, act in zip(rows, found, strict=True))
    return dict(zip(names, found if len(names) > 1 else (found,), strict=True))


_Text = Annotated[str, Meta(max_length=1000)]
_Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Values = dict[_Text, bool | _Whole | _Text | None]
_Acts = Annotated[list[tuple[_Whole, _Text, _Values]], Meta(max_length=MOST_ACTS)]
_Hash = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]

_FORMS: Mapping[str, tuple[tuple[str, ...], Any]] = {
    "S": (
        ("scenario", "seed", "max_rows", "own_code"),
        tuple[_Text, _Whole, _Whole | None, tuple[_Text, ...]],
    ),
    "N": (("preset", "preset_changes"), tuple[_Text, _Values]),
    "P": (("parameters",), _Values),
    "A": (("acts",), _Acts),
    "C": (("cursor",), _Whole),
    "H": (("trace_hash", "model"), tuple[_Hash, _Whole]),
}
