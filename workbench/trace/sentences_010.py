"""Frames of AMQP 0-10 in plain words: what the peer that sent one does by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.amqp010.commands import UNLIMITED
from workbench.languages import count

from .schema import Row
from .words import quoted, visible

__all__ = ["does_010"]

Fields = Mapping[str, Any]


def does_010(row: Row) -> str:
    """What the author of the frame does: `adds credit for ...`."""
    kind = row.kind or "a frame"
    told = _KINDS.get(kind)
    if told is None:
        return f"answers: {kind}" if kind.endswith("-ok") else f"sends {visible(kind)}"
    return told(row.fields, row.extra)


def _ranges(told: Any) -> str:
    pairs = told if isinstance(told, list) else []
    words = [f"{first}" if first == last else f"{first} to {last}" for first, last in pairs]
    if not words:
        return "none"
    noun = "command" if len(words) == 1 and " " not in words[0] else "commands"
    return f"{noun} {', '.join(words[:8])}{', …' if len(words) > 8 else ''}"


def _where(fields: Fields) -> str:
    return quoted(fields.get("destination", ""))


def _completed(fields: Fields, extra: Fields) -> str:
    what = _ranges(extra.get("commands"))
    text = "has completed nothing new" if what == "none" else f"has completed {what}"
    return f"{text}, and wants to hear that this is known" if fields.get("timely_reply") else text


def _flush(fields: Fields, extra: Fields) -> str:
    wanted = [name for name in ("expected", "confirmed", "completed") if fields.get(name)]
    return f"asks what is {' and '.join(wanted) or 'new'}"


def _flow(fields: Fields, extra: Fields) -> str:
    value = fields.get("value", 0)
    unit = "octet" if fields.get("unit") == 1 else "message"
    what = (
        f"unlimited credit in {unit}s" if value == UNLIMITED else f"credit for {count(value, unit)}"
    )
    return f"adds {what} to {_where(fields)}"


def _mode(fields: Fields, extra: Fields) -> str:
    window = fields.get("flow_mode") == 1
    how = "given back on completion (window)" if window else "used up (credit)"
    return f"wants credit of {_where(fields)} to be {how}"


def _exception(fields: Fields, extra: Fields) -> str:
    code, text = fields.get("error_code", "?"), quoted(fields.get("description", ""))
    number = fields.get("command_id")
    which = "" if number is None else f" for command {number}"
    return f"ends the session with error {code}{which}: {text}"


def _close(fields: Fields, extra: Fields) -> str:
    code = extra.get("reply_code", 200)
    if code == 200:
        return "closes the connection"
    return f"closes the connection with error {code}: {quoted(extra.get('reply_text', ''))}"


def _detached(fields: Fields, extra: Fields) -> str:
    code = fields.get("code", 0)
    text = f"says that session {quoted(fields.get('name', ''))} is not attached any more"
    return f"{text}, with code {code}" if code else text


def _transfer(fields: Fields, extra: Fields) -> str:
    return (
        f"sends a message to {_where(fields)}" if fields.get("destination") else "sends a message"
    )


def _ids(verb: str) -> Callable[[Fields, Fields], str]:
    return lambda fields, extra: f"{verb} {_ranges(extra.get('transfers'))}"


def _named(verb: str, name: str) -> Callable[[Fields, Fields], str]:
    return lambda fields, extra: f"{verb} {quoted(fields.get(name, extra.get(name, '')))}"


def _said(words: str) -> Callable[[Fields, Fields], str]:
    return lambda fields, extra: words


_KINDS: dict[str, Callable[[Fields, Fields], str]] = {
    "protocol-header": lambda fields, extra: (
        f"asks to speak AMQP {extra.get('major', '?')}-{extra.get('minor', '?')}"
    ),
    "connection.start": _said("begins the log-in"),
    "connection.tune": _said("proposes its limits"),
    "connection.open": _said("opens the connection"),
    "connection.heartbeat": _said("says that it is alive"),
    "connection.close": _close,
    "session.attach": _named("attaches session", "name"),
    "session.attached": _named("has attached session", "name"),
    "session.detach": _named("detaches session", "name"),
    "session.detached": _detached,
    "session.command-point": lambda fields, extra: (
        f"counts its commands from {fields.get('command_id', '?')}"
    ),
    "session.completed": _completed,
    "session.known-completed": lambda fields, extra: (
        f"knows the completion of {_ranges(extra.get('commands'))}"
    ),
    "session.flush": _flush,
    "execution.sync": _said("asks to be told when every command so far is complete"),
    "execution.result": lambda fields, extra: (
        f"gives the result of command {fields.get('command_id', '?')}"
    ),
    "execution.exception": _exception,
    "message.transfer": _transfer,
    "message.accept": _ids("accepts"),
    "message.reject": _ids("rejects"),
    "message.release": _ids("releases"),
    "message.subscribe": lambda fields, extra: (
        f"subscribes to queue {quoted(fields.get('queue', ''))} as {_where(fields)}"
    ),
    "message.cancel": _named("ends the subscription", "destination"),
    "message.set-flow-mode": _mode,
    "message.flow": _flow,
    "message.flush": lambda fields, extra: (
        f"wants what is there for {_where(fields)}; then its credit is 0"
    ),
    "message.stop": lambda fields, extra: f"takes all credit from {_where(fields)}",
    "queue.declare": _named("declares queue", "queue"),
    "queue.delete": _named("deletes queue", "queue"),
    "queue.query": _named("asks for queue", "queue"),
    "exchange.declare": _named("declares exchange", "exchange"),
    "exchange.query": _named("asks for exchange", "name"),
    "header": _said("sends the properties of the message"),
    "body": _said("sends octets of the message"),
}
