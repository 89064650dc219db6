"""Frames of AMQP 0-9-1 in plain words: what the peer that sent one does by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from workbench.languages import Piece, has, phrase, piece

from .schema import BROKER, Row
from .words import value_text, visible

__all__ = ["does", "does_unknown", "facts"]

Facts = Mapping[str, Any]

say = partial(phrase, "steps_091")
part = partial(piece, "steps_091")
known = partial(has, "steps_091")


def does(row: Row) -> str:
    """What the author of the frame does: `publishes a message to ...`."""
    told = facts(row, _LEFT_OUT)
    queue = told["queue"]
    told["queue"] = part("queue.named" if queue else "queue.unnamed", queue=queue)
    tell = _KINDS.get(row.kind or "")
    if tell is not None:
        return tell(row, told)
    name = (row.kind or "").replace(".", "-")
    if known(f"frame.{name}"):
        return say(f"frame.{name}", **told)
    return does_unknown(row)


def does_unknown(row: Row) -> str:
    """The same for a frame of a kind that has no words of its own."""
    if row.kind is None:
        return say("unknown.none")
    answers = row.kind.endswith("-ok")
    return say("unknown.answer" if answers else "unknown.other", kind=visible(row.kind))


def facts(row: Row, left_out: Facts) -> dict[str, Any]:
    """What a template may say of a frame: its fields, texts of the peer's made harmless.

    Args:
        row: of a frame.
        left_out: what is told of a field that the frame has not.
    """
    found = {**row.extra, **row.fields}
    told = {
        name: value if isinstance(value, int) else value_text(value)
        for name, value in found.items()
        if value is not None
    }
    return {**left_out, "body_bytes": row.body_bytes or 0, **told}


def _tags(told: Facts) -> str:
    """Which of the three texts on deliveries, and on messages."""
    if not told.get("multiple"):
        return "one"
    return "all" if told["delivery_tag"] in (0, "?") else "up-to"


def _messages(told: Facts) -> Piece:
    return part(f"messages.{_tags(told)}", **told)


def _deliveries(told: Facts) -> Piece:
    return part(f"deliveries.{_tags(told)}", **told)


def _close(row: Row, told: Facts) -> str:
    what = (row.kind or "").partition(".")[0]
    return say(f"close.{what}" if told["reply_code"] == 200 else f"close.{what}-error", **told)


def _flow(row: Row, told: Facts) -> str:
    return say("flow.on" if told.get("active") else "flow.off")


def _declare(row: Row, told: Facts) -> str:
    return say("declare.passive" if told.get("passive") else "declare.new", **told)


def _qos(row: Row, told: Facts) -> str:
    return say("qos.channel" if told.get("global") else "qos.consumer", **told)


def _consume(row: Row, told: Facts) -> str:
    text = say("consume.starts", **told)
    if told["consumer_tag"]:
        text += say("consume.tag", **told)
    return text + say("consume.no-ack") if told.get("no_ack") else text


def _publish(row: Row, told: Facts) -> str:
    number = (row.ledger or {}).get("published")
    where = part("where.exchange" if told["exchange"] else "where.queue", **told)
    return say("publish.numbered" if number else "publish.bare", published=number, where=where)


def _deliver(row: Row, told: Facts) -> str:
    """With what it does to the consumer's prefetch."""
    text = say("deliver.again" if told.get("redelivered") else "deliver.first", **told)
    ledger = row.ledger or {}
    limit, held = ledger.get("prefetch_count"), ledger.get("unacknowledged", 0)
    if limit and row.consumer is not None:
        text += say("deliver.held", held=held, limit=limit)
        if held >= limit:
            text += say("deliver.full")
    return text


def _ack(row: Row, told: Facts) -> str:
    if row.from_peer == BROKER:
        return say("settle.confirms", messages=_messages(told))
    return say("settle.acknowledges", deliveries=_deliveries(told))


def _nack(row: Row, told: Facts) -> str:
    if row.kind == "basic.nack" and row.from_peer == BROKER:
        return say("settle.refuses", messages=_messages(told))
    requeues = told.get("requeue")
    return say("settle.requeues" if requeues else "settle.discards", deliveries=_deliveries(told))


_LEFT_OUT: Facts = {
    **dict.fromkeys(("major", "minor", "revision", "channel", "delivery_tag"), "?"),
    **dict.fromkeys(("channel_max", "frame_max", "heartbeat", "prefetch_count"), 0),
    **dict.fromkeys(("message_count", "consumer_count", "body_size"), 0),
    **dict.fromkeys(("exchange", "routing_key", "queue", "consumer_tag", "virtual_host"), ""),
    **dict.fromkeys(("reply_text", "reason", "mechanisms", "mechanism", "fault"), ""),
    "reply_code": 200,
}
_KINDS: dict[str, Callable[[Row, Facts], str]] = {
    "connection.close": _close,
    "channel.close": _close,
    "channel.flow": _flow,
    "queue.declare": _declare,
    "basic.qos": _qos,
    "basic.consume": _consume,
    "basic.publish": _publish,
    "basic.deliver": _deliver,
    "basic.ack": _ack,
    "basic.nack": _nack,
    "basic.reject": _nack,
}
