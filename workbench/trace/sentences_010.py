"""Frames of AMQP 0-10 in plain words: what the peer that sent one does by it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from workbench.amqp010.commands import UNLIMITED
from workbench.languages import Piece, has, phrase, piece

from .schema import Row
from .sentences_091 import Facts, does_unknown, facts

__all__ = ["does_010"]

MOST_RANGES = 8

say = partial(phrase, "steps_010")
part = partial(piece, "steps_010")
known = partial(has, "steps_010")


def does_010(row: Row) -> str:
    """What the author of the frame does: `adds credit for ...`."""
    kind, told = row.kind or "", facts(row, _LEFT_OUT)
    if kind in _RANGES:
        told[_RANGES[kind]] = _commands(row.extra.get(_RANGES[kind]))
    tell = _KINDS.get(kind)
    if tell is not None:
        return tell(row, told)
    name = kind.replace(".", "-")
    return say(f"frame.{name}", **told) if known(f"frame.{name}") else does_unknown(row)


def _commands(ranges: Any) -> Piece:
    """`command 7`, `commands 1 to 4, 7`."""
    pairs = ranges if isinstance(ranges, list) else []
    runs = [
        str(first) if first == last else say("commands.run", first=first, last=last)
        for first, last in pairs
    ]
    which = ", ".join(runs[:MOST_RANGES]) + (", …" if len(runs) > MOST_RANGES else "")
    if not pairs:
        return part("commands.none")
    one = len(pairs) == 1 and pairs[0][0] == pairs[0][1]
    return part("commands.one" if one else "commands.many", which=which)


def _completed(row: Row, told: Facts) -> str:
    text = say("completed.some" if row.extra.get("commands") else "completed.none", **told)
    return text + say("completed.timely-reply") if told.get("timely_reply") else text


def _flush(row: Row, told: Facts) -> str:
    wanted = [name for name in ("expected", "confirmed", "completed") if told.get(name)]
    return say(f"flush.{'-'.join(wanted) or 'new'}")


def _flow(row: Row, told: Facts) -> str:
    unit = "octets" if told.get("unit") == 1 else "messages"
    unlimited = told["value"] == UNLIMITED
    return say(f"flow.{unit}-unlimited" if unlimited else f"flow.{unit}", **told)


def _mode(row: Row, told: Facts) -> str:
    return say("mode.window" if told.get("flow_mode") == 1 else "mode.credit", **told)


def _exception(row: Row, told: Facts) -> str:
    of_command = told["command_id"] != "?"
    return say("exception.command" if of_command else "exception.session", **told)


def _close(row: Row, told: Facts) -> str:
    return say("close.bare" if told["reply_code"] == 200 else "close.error", **told)


def _detached(row: Row, told: Facts) -> str:
    text = say("detached.bare", **told)
    return text + say("detached.code", **told) if told["code"] else text


def _transfer(row: Row, told: Facts) -> str:
    return say("transfer.to" if told["destination"] else "transfer.bare", **told)


_LEFT_OUT: Facts = {
    **dict.fromkeys(("major", "minor", "command_id", "error_code"), "?"),
    **dict.fromkeys(("name", "queue", "exchange", "destination", "description", "reply_text"), ""),
    **dict.fromkeys(("value", "code"), 0),
    "reply_code": 200,
}
# Kinds that tell ranges of commands, and in which field.
_RANGES = {
    "session.completed": "commands",
    "session.known-completed": "commands",
    "message.accept": "transfers",
    "message.reject": "transfers",
    "message.release": "transfers",
}
_KINDS: dict[str, Callable[[Row, Facts], str]] = {
    "connection.close": _close,
    "session.completed": _completed,
    "session.detached": _detached,
    "session.flush": _flush,
    "execution.exception": _exception,
    "message.transfer": _transfer,
    "message.set-flow-mode": _mode,
    "message.flow": _flow,
}
