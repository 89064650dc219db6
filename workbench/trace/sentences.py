"""One row in plain words, for a learner, a screen reader and a test: what happened, who knows it.

Each kind of frame and each internal event has its sentence; those about links are in
`sentences_link` and `sentences_message`, those about quorum queues in `sentences_quorum`, about
paging and mirrors of classic queues in `sentences_paging`, frames of AMQP 0-9-1 and 0-10 in
`sentences_091` and `sentences_010`. Texts of peers appear as text, with what cannot be seen written
out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from workbench.languages import capital, count

from .schema import AMQP_0_9_1, AMQP_0_10, INTERNAL_EVENTS, RECEIVED, SENT, Row
from .sentences_010 import does_010
from .sentences_091 import does
from .sentences_hops import hop_sentence
from .sentences_link import flow
from .sentences_message import disposition, transfer
from .sentences_paging import paging_sentence
from .sentences_quorum import quorum_sentence
from .story import Moment
from .words import quoted, spec_name, value_text, visible

_OTHER = {"client": "broker", "broker": "client"}


def sentence(moment: Moment) -> str:
    """The sentence of a row; it begins with a capital and ends with a full stop."""
    row = moment.row
    if not row.is_frame:
        return capital(_internal(row))
    if row.protocol == AMQP_0_9_1:
        return capital(_relay(row, does(row)))
    if row.protocol == AMQP_0_10:
        return capital(_relay(row, does_010(row)))
    tell = _LINK_KINDS.get(row.kind or "")
    if tell is not None:
        return capital(tell(moment))
    told = _KINDS.get(row.kind or "")
    what = told(moment) if told is not None else f"sends {visible(row.kind or 'a frame')}"
    return capital(_relay(row, what))


def _relay(row: Row, what: str) -> str:
    """`what` the author of the frame does, told from where the row was logged."""
    peer = row.from_peer or "peer"
    other = _OTHER.get(peer, "other peer")
    if row.event == RECEIVED:
        return f"the {other} learns that the {peer} {what}."
    text = f"the {peer} {what}."
    return f"{text} The {other} does not know yet." if row.event == SENT else text


# -- connection and session -----------------------------------------------------------------------

_PROTOCOL_IDS = {
    0: "speak AMQP {version}",
    2: "change to TLS first",
    3: "log in with SASL first",
}


def _header(moment: Moment) -> str:
    frame = moment.frame
    version = ".".join(str(frame.get(part, "?")) for part in ("major", "minor", "revision"))
    protocol_id = frame.get("protocol_id")
    wish = _PROTOCOL_IDS.get(protocol_id if isinstance(protocol_id, int) else -1)
    if wish is None:
        return f"sends a protocol header with the unknown protocol id {value_text(protocol_id)}"
    wish = wish.format(version=version)
    return f"agrees to {wish}" if moment.answer else f"asks to {wish}"


def _open(moment: Moment) -> str:
    frame = moment.frame
    verb = "opens its side of the connection too" if moment.answer else "opens the connection"
    text = f"{verb}, as container {quoted(frame.get('container_id', ''))}"
    limits = []
    if "max_frame_size" in frame:
        limits.append(f"frames up to {count(frame['max_frame_size'], 'octet')}")
    if "channel_max" in frame:
        limits.append(f"channels up to {frame['channel_max']}")
    if limits:
        text += f"; it takes {' and '.join(limits)}"
    if frame.get("idle_time_out"):
        text += f"; it wants to hear something every {frame['idle_time_out']} ms"
    return text


def _begin(moment: Moment) -> str:
    frame = moment.frame
    verb = "begins its side of the session too" if moment.answer else "begins a session"
    return (
        f"{verb}: its first transfer frame will have the id {frame.get('next_outgoing_id', '?')},"
        f" and it takes {count(frame.get('incoming_window', 0), 'transfer frame')}"
    )


def _error_text(row: Row) -> str:
    error = row.extra.get("error")
    if not isinstance(error, Mapping):
        return ""
    text = f": {visible(error.get('condition', 'error'))}"
    description = error.get("description")
    return f"{text}, {quoted(description)}" if description else text


def _end(moment: Moment) -> str:
    error = _error_text(moment.row)
    if error:
        return f"ends the session with an error{error}"
    return "ends its side of the session too" if moment.answer else "ends the session"


def _close(moment: Moment) -> str:
    error = _error_text(moment.row)
    if error:
        return f"closes the connection with an error{error}"
    return "closes its side of the connection too" if moment.answer else "closes the connection"


def _heartbeat(moment: Moment) -> str:
    return "sends an empty frame: it says no more than that it is alive"


# -- links ----------------------------------------------------------------------------------------


def _attach(moment: Moment) -> str:
    row, frame = moment.row, moment.frame
    role = frame.get("role")
    name = quoted(frame.get("name", row.link or ""))
    if moment.answer:
        terminus = "source" if role == "sender" else "target"
        if terminus not in row.extra:
            return (
                f"refuses the link {name}: its attach names no {terminus}, and a detach with the"
                " reason follows"
            )
        text = f"attaches its end of the link {name}, as {role}"
    else:
        text = f"attaches a link {name} as {role}"
    address = _address(row, "source") if role == "receiver" else _address(row, "target")
    if not moment.answer and address is not None:
        text += f" {'from' if role == 'receiver' else 'to'} {quoted(address)}"
    if role == "sender" and "initial_delivery_count" in frame:
        text += f"; its delivery-count begins at {frame['initial_delivery_count']}"
    if moment.answer:
        text += "; with no credit yet, no message may be sent"
    return text


def _address(row: Row, terminus: str) -> str | None:
    found = row.extra.get(terminus)
    if isinstance(found, Mapping) and isinstance(found.get("address"), str):
        return str(found["address"])
    return None


def _detach(moment: Moment) -> str:
    row = moment.row
    name = f"the link {quoted(row.link)}" if row.link is not None else "the link"
    error = _error_text(row)
    closed = bool(moment.frame.get("closed"))
    if error:
        return f"{'closes' if closed else 'detaches'} {name} with an error{error}"
    if moment.answer:
        return f"{'closes' if closed else 'detaches'} its end of {name} too"
    return f"closes {name} for good" if closed else f"detaches {name}, which may be attached again"


# -- SASL -----------------------------------------------------------------------------------------

_CODES = {
    0: "lets the client in",
    1: "refuses the client: name or password is wrong (code 1)",
    2: "cannot log the client in: a system error (code 2)",
    3: "cannot log the client in: a system error that will last (code 3)",
    4: "cannot log the client in: a system error that may pass (code 4)",
}


def _mechanisms(moment: Moment) -> str:
    offered = moment.row.extra.get("sasl_server_mechanisms")
    names = [offered] if isinstance(offered, str) else offered
    if not isinstance(names, list) or not names:
        return "offers no SASL mechanism"
    return "offers to log in by " + ", ".join(visible(name) for name in names)


def _init(moment: Moment) -> str:
    mechanism = visible(moment.frame.get("mechanism", "?"))
    text = f"logs in by {mechanism}"
    return f"{text}, with name and password in the clear" if mechanism == "PLAIN" else text


def _challenge(moment: Moment) -> str:
    return f"asks for more: a challenge of {_size(moment, 'challenge')}"


def _response(moment: Moment) -> str:
    return f"answers the challenge with {_size(moment, 'response')}"


def _size(moment: Moment, name: str) -> str:
    value = moment.frame.get(name)
    return count(len(value) if isinstance(value, bytes) else 0, "octet")


def _outcome(moment: Moment) -> str:
    code = moment.frame.get("code")
    return _CODES.get(code if isinstance(code, int) else -1, f"answers with the code {code}")


_LINK_KINDS: dict[str, Callable[[Moment], str]] = {
    "flow": flow,
    "transfer": transfer,
    "disposition": disposition,
}
_KINDS: dict[str, Callable[[Moment], str]] = {
    "protocol-header": _header,
    "open": _open,
    "begin": _begin,
    "attach": _attach,
    "detach": _detach,
    "end": _end,
    "close": _close,
    "heartbeat": _heartbeat,
    "sasl-mechanisms": _mechanisms,
    "sasl-init": _init,
    "sasl-challenge": _challenge,
    "sasl-response": _response,
    "sasl-outcome": _outcome,
}


# -- internal events ------------------------------------------------------------------------------

# {who} is the vantage, {queue} the queue, {messages} how many; counters and details follow.
_EVENTS: dict[str, str] = {
    "enqueue": "{queue} takes {messages}",
    "deliver": "{queue} hands {messages} to a consumer's link",
    "settle": "{queue} is rid of {messages}",
    "requeue": "{queue} takes {messages} back",
    "activate": "{queue} has a new single active consumer",
    "deactivate": "{queue} has its single active consumer make way for another one",
    "drop": "{queue} throws {messages} away",
    "confirm": "{queue} confirms a message",
    "append": "{who} writes an entry to its log, not yet safe",
    "fsync": "{who} forces its log to disk",
    "commit": "{who} knows that a majority has the entry",
    "apply": "{who} carries out a committed command",
    "grant": "{who} grants credit inside the broker",
    "block": "{who} is out of credit and stops",
    "unblock": "{who} goes on",
    "alarm-set": "{who} raises an alarm",
    "alarm-clear": "{who} ends the alarm",
    "publish": "the application of {who} has a message to send",
    "process": "the application of {who} is done with a message",
    "drained": "{who} gives its credit back",
    "timeout": "a timer of {who} runs out",
    "crash": "{who} dies",
    "restart": "{who} is back",
    "connect": "{who} is connected",
    "disconnect": "{who} has lost the connection",
    "gap": "octets are missing here: what they said cannot be known",
    "error": "{who} reports an error",
    "hold": "a hand holds what is on the wire; nothing behind it in its direction can pass",
    "release": "a hand lets go of what was held on the wire",
    "latency": "the latency of the wire changes",
    "action": "you act",
    "note": "{who} notes",
}

# How a queue names a link of a session: connection, session, link, attach.
_OF_LINK = re.compile(r"c\d+/\d+/(.+)/\d+")

# Those of some kinds have a sentence of their own.
_EVENTS_OF_KIND: dict[tuple[str, str], str] = {
    (
        "block",
        "unconfirmed",
    ): "{who} grants the publisher no more credit while so many messages wait"
    " for their queue's confirm",
    ("unblock", "unconfirmed"): "{who} grants the publisher credit again",
    (
        "confirm",
        "confirmed",
    ): "the queue has taken {messages} of this link: so many fewer wait for their confirm",
    ("block", "alarm"): "{who} stops, because a resource alarm is on",
    ("unblock", "alarm"): "{who} goes on, for the alarm is over",
    ("note", "memory"): "{who} looks how much memory is in use",
    ("crash", "memory"): "{who} dies: the machine has no memory left",
    ("crash", "heap"): "{who} dies: its heap is full",
    ("block", "tcp"): "TCP takes no more octets of {who}: the peer does not read",
    ("unblock", "tcp"): "TCP takes octets of {who} again",
    (
        "grant",
        "queue-credit",
    ): "{who} asks the queue for messages, as far as the client's credit and its own limit go",
    ("note", "mailbox"): "{who} has work waiting",
    ("note", "buffer"): "{who} keeps messages that it cannot send yet",
    ("note", "stalled"): "{queue} stalls: it takes nothing in and hands nothing out",
    ("note", "resumed"): "{queue} goes on",
    ("enqueue", "held"): "{queue} takes {messages}, and holds the completion back",
    ("block", "queue-flow"): "{queue} is above its high watermark: it completes nothing more",
    ("unblock", "queue-flow"): "{queue} is below its low watermark: all that it held completes",
    ("block", "qpid-window"): "{who} has a full window: it sends nothing until all is complete",
    ("unblock", "qpid-window"): "{who} hears that all is complete, and may send again",
    ("block", "link-credit"): "{who} is stopped by the broker: it has no credit to send",
    ("unblock", "link-credit"): "{who} has credit again",
    ("note", "watermarks"): "{queue} has its limits",
}


def _internal(row: Row) -> str:
    told = quorum_sentence(row) or paging_sentence(row) or hop_sentence(row)
    if told is not None:
        return f"{told}."
    who = visible(row.vantage)
    queue = f"queue {quoted(row.queue)}" if row.queue is not None else who
    own = _EVENTS_OF_KIND.get((row.event, row.kind or ""))
    template = own or _EVENTS.get(row.event) or INTERNAL_EVENTS.get(row.event)
    number = row.extra.get("count", 1)
    messages = count(number, "message") if isinstance(number, int) and number != 1 else "a message"
    text = visible(row.event)
    if template is not None:
        text = template.format(who=who, queue=queue, messages=messages)
    if row.event == "action":
        done = [visible(spec_name(row.kind or "?")).replace("-", " "), *_details(row)]
        text += f": {', '.join(done)}"
    else:
        link = _OF_LINK.fullmatch(row.kind or "")
        if link is not None:
            text += f": {quoted(link[1])}"
        elif own is None and row.kind is not None and row.kind != row.event:
            text += f": {visible(row.kind)}"
        details = _details(row)
        if details:
            text += f" ({', '.join(details)})"
    state = _queue_state(row)
    return f"{text}{state}."


_WAYS = {"c2b": "from client to broker", "b2c": "from broker to client"}


def _details(row: Row) -> list[str]:
    """What else the row tells, as names with their values."""
    extra = row.extra
    # The sentence may have said how many.
    told = _EVENTS_OF_KIND.get((row.event, row.kind or "")) or _EVENTS.get(row.event, "")
    counted = "{messages}" in told
    arguments = extra.get("arguments")
    if isinstance(arguments, Mapping):
        extra = arguments
    return [
        _WAYS[str(value)]
        if name == "direction" and value in _WAYS
        else f"{visible(spec_name(str(name)))} {value_text(value)}"
        for name, value in extra.items()
        if value is not None and not (name == "count" and counted) and name != "ram"
    ]


def _queue_state(row: Row) -> str:
    ledger: Mapping[str, Any] = row.ledger or {}
    words = {
        "queue_ready": "ready",
        "queue_unsettled": "delivered and not settled",
        "mailbox": "in the mailbox",
    }
    parts = [
        f"{ledger[name]} {word}"
        for name, word in words.items()
        if name in ledger and (ledger[name] or name != "mailbox")
    ]
    return f"; {', '.join(parts)}" if parts else ""
