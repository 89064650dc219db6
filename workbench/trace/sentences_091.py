"""Frames of AMQP 0-9-1 in plain words: what the peer that sent one does by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.languages import count

from .schema import BROKER, Row
from .words import quoted, value_text, visible

__all__ = ["does"]

Fields = Mapping[str, Any]


def does(row: Row) -> str:
    """What the author of the frame does: `publishes a message to ...`."""
    kind = row.kind or "a frame"
    told = _KINDS.get(kind)
    if told is None:
        return f"answers: {kind}" if kind.endswith("-ok") else f"sends {visible(kind)}"
    return told(row, row.fields) + _limit(row)


def _limit(row: Row) -> str:
    """What the delivery does to the consumer's prefetch."""
    ledger = row.ledger or {}
    limit = ledger.get("prefetch_count")
    if row.kind != "basic.deliver" or not limit or row.consumer is None:
        return ""
    held = ledger.get("unacknowledged", 0)
    text = f"; {held} of {limit} are unacknowledged"
    return f"{text}, so no more are delivered to it for now" if held >= limit else text


def _where(fields: Fields) -> str:
    exchange, key = fields.get("exchange"), quoted(fields.get("routing_key", ""))
    return f"to exchange {quoted(exchange)} with key {key}" if exchange else f"to queue {key}"


def _queue(fields: Fields) -> str:
    name = fields.get("queue")
    return f"queue {quoted(name)}" if name else "a queue that the broker shall name"


def _tags(fields: Fields) -> str:
    tag = fields.get("delivery_tag", 0)
    if not fields.get("multiple"):
        return f"delivery {tag}"
    return f"all deliveries up to {tag}" if tag else "all deliveries so far"


def _numbers(fields: Fields) -> str:
    tag = fields.get("delivery_tag", 0)
    if not fields.get("multiple"):
        return f"message {tag}"
    return f"all messages up to {tag}" if tag else "all messages so far"


def _header(row: Row, fields: Fields) -> str:
    version = "-".join(str(fields.get(part, "?")) for part in ("major", "minor", "revision"))
    return f"asks to speak AMQP {version}"


def _tune(row: Row, fields: Fields) -> str:
    verb = "proposes" if row.kind == "connection.tune" else "settles for"
    channels = fields.get("channel_max")
    size = fields.get("frame_max")
    beat = fields.get("heartbeat")
    return (
        f"{verb} {count(channels, 'channel') if channels else 'any number of channels'}, frames of "
        f"{f'up to {size} octets' if size else 'any size'}, "
        f"{f'a heartbeat every {beat} s' if beat else 'no heartbeats'}"
    )


def _close(row: Row, fields: Fields) -> str:
    what = "the connection" if (row.kind or "").startswith("connection") else "the channel"
    code = fields.get("reply_code", 200)
    text = f"closes {what}"
    if code == 200:
        return text
    return f"{text} with error {code}: {quoted(fields.get('reply_text', ''))}"


def _flow(row: Row, fields: Fields) -> str:
    return "asks for messages again" if fields.get("active") else "asks for no more messages"


def _declare(row: Row, fields: Fields) -> str:
    if fields.get("passive"):
        return f"asks whether {_queue(fields)} exists"
    return f"declares {_queue(fields)}"


def _declare_ok(row: Row, fields: Fields) -> str:
    ready = count(fields.get("message_count", 0), "message")
    return (
        f"has {_queue(fields)}, with {ready} ready and "
        f"{count(fields.get('consumer_count', 0), 'consumer')}"
    )


def _qos(row: Row, fields: Fields) -> str:
    limit = fields.get("prefetch_count", 0)
    most = f"{count(limit, 'delivery', 'deliveries')} unacknowledged" if limit else "any number"
    whom = (
        "on the channel as a whole" if fields.get("global")
        else "for each consumer that starts from now on"
    )  # fmt: skip
    return f"allows {most} {whom}"


def _consume(row: Row, fields: Fields) -> str:
    text = f"starts a consumer of {_queue(fields)}"
    if fields.get("consumer_tag"):
        text += f", {quoted(fields['consumer_tag'])}"
    return f"{text}, which acknowledges nothing" if fields.get("no_ack") else text


def _cancel(row: Row, fields: Fields) -> str:
    return f"ends the consumer {quoted(fields.get('consumer_tag', ''))}"


def _publish(row: Row, fields: Fields) -> str:
    number = (row.ledger or {}).get("published")
    what = f"message {number}" if number else "a message"
    return f"publishes {what} {_where(fields)}"


def _return(row: Row, fields: Fields) -> str:
    return f"returns a message: {quoted(fields.get('reply_text', ''))}"


def _deliver(row: Row, fields: Fields) -> str:
    again = " once more" if fields.get("redelivered") else ""
    return (
        f"delivers message {fields.get('delivery_tag', '?')} to consumer "
        f"{quoted(fields.get('consumer_tag', ''))}{again}"
    )


def _get_ok(row: Row, fields: Fields) -> str:
    left = count(fields.get("message_count", 0), "message")
    return f"hands out message {fields.get('delivery_tag', '?')}, with {left} left in the queue"


def _ack(row: Row, fields: Fields) -> str:
    if row.from_peer == BROKER:
        return f"confirms {_numbers(fields)}"
    return f"acknowledges {_tags(fields)}"


def _nack(row: Row, fields: Fields) -> str:
    if row.from_peer == BROKER:
        return f"refuses {_numbers(fields)}"
    return f"gives {_tags(fields)} back, {_requeued(fields)}"


def _requeued(fields: Fields) -> str:
    return "into the queue" if fields.get("requeue") else "for good"


def _content_header(row: Row, fields: Fields) -> str:
    return f"announces a body of {count(fields.get('body_size', 0), 'octet')}"


def _undecodable(row: Row, fields: Fields) -> str:
    return f"sends a frame that cannot be read: {visible(row.extra.get('fault', ''))}"


_KINDS: dict[str, Callable[[Row, Fields], str]] = {
    "protocol-header": _header,
    "heartbeat": lambda row, fields: "sends a heartbeat: it is alive",
    "content-header": _content_header,
    "content-body": lambda row, fields: f"sends {count(row.body_bytes or 0, 'octet')} of the body",
    "undecodable": _undecodable,
    "connection.start": lambda row, fields: (
        f"offers to log in by {value_text(fields.get('mechanisms', ''))}"
    ),
    "connection.start-ok": lambda row, fields: (
        f"logs in by {value_text(fields.get('mechanism', ''))}"
    ),
    "connection.tune": _tune,
    "connection.tune-ok": _tune,
    "connection.open": lambda row, fields: (
        f"opens virtual host {quoted(fields.get('virtual_host', ''))}"
    ),
    "connection.open-ok": lambda row, fields: "has opened the connection",
    "connection.close": _close,
    "connection.close-ok": lambda row, fields: "agrees that the connection is closed",
    "connection.blocked": lambda row, fields: (
        f"takes no more messages: {quoted(fields.get('reason', ''))}"
    ),
    "connection.unblocked": lambda row, fields: "takes messages again",
    "channel.open": lambda row, fields: f"opens channel {fields.get('channel')}",
    "channel.open-ok": lambda row, fields: f"has opened channel {fields.get('channel')}",
    "channel.close": _close,
    "channel.close-ok": lambda row, fields: "agrees that the channel is closed",
    "channel.flow": _flow,
    "queue.declare": _declare,
    "queue.declare-ok": _declare_ok,
    "queue.purge-ok": lambda row, fields: (
        f"has thrown away {count(fields.get('message_count', 0), 'message')}"
    ),
    "basic.qos": _qos,
    "basic.qos-ok": lambda row, fields: "has noted the limit",
    "basic.consume": _consume,
    "basic.consume-ok": lambda row, fields: (
        f"has started the consumer {quoted(fields.get('consumer_tag', ''))}"
    ),
    "basic.cancel": _cancel,
    "basic.cancel-ok": lambda row, fields: (
        f"has ended the consumer {quoted(fields.get('consumer_tag', ''))}"
    ),
    "basic.publish": _publish,
    "basic.return": _return,
    "basic.deliver": _deliver,
    "basic.get": lambda row, fields: f"asks for one message of {_queue(fields)}",
    "basic.get-ok": _get_ok,
    "basic.get-empty": lambda row, fields: "has no message in that queue",
    "basic.ack": _ack,
    "basic.nack": _nack,
    "basic.reject": lambda row, fields: f"gives {_tags(fields)} back, {_requeued(fields)}",
    "basic.recover": lambda row, fields: "wants all that is unacknowledged delivered again",
    "confirm.select": lambda row, fields: "wants every message confirmed from now on",
    "confirm.select-ok": lambda row, fields: "will confirm every message from now on",
}
