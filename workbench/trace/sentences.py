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
from functools import partial
from typing import Any

from workbench.languages import capital, has, phrase, piece

from .schema import AMQP_0_9_1, AMQP_0_10, RECEIVED, SENT, Row
from .sentences_010 import does_010
from .sentences_091 import does
from .sentences_hops import hop_sentence, process_words
from .sentences_link import flow, peers
from .sentences_message import disposition, transfer
from .sentences_paging import paging_sentence
from .sentences_quorum import quorum_sentence
from .story import Moment
from .words import in_words, spec_name, value_text, visible

say = partial(phrase, "steps")
part = partial(piece, "steps")
known = partial(has, "steps")


def sentence(moment: Moment) -> str:
    """The sentence of a row; it begins with a capital and ends with a full stop."""
    row = moment.row
    try:
        told = _frame(moment) if row.is_frame else _of_process(row)
    except (LookupError, TypeError, ValueError):
        told = plain(moment)
    return capital(told or _event(moment))


def plain(moment: Moment) -> str:
    """The sentence of a row of somebody else's making, without the details that its kind has."""
    return _relay(moment, _sends(moment)) if moment.row.is_frame else _event(moment)


def _frame(moment: Moment) -> str:
    row = moment.row
    if row.protocol == AMQP_0_9_1:
        what = does(row)
    elif row.protocol == AMQP_0_10:
        what = does_010(row)
    elif (tell := _LINK_KINDS.get(row.kind or "")) is not None:
        return tell(moment)
    else:
        what = _KINDS.get(row.kind or "", _sends)(moment)
    return _relay(moment, what)


def _relay(moment: Moment, what: str) -> str:
    """`what` the author of the frame does, told from where the row was logged."""
    author, reader = peers(moment.row.from_peer)
    key = {RECEIVED: "heard", SENT: "unheard"}.get(moment.row.event, "seen")
    return say(f"peer.{key}", author=author, reader=reader, what=what)


def _sends(moment: Moment) -> str:
    kind = moment.row.kind
    return say("does.sends" if kind else "does.sends-any", kind=visible(kind))


# -- connection and session -----------------------------------------------------------------------


def _header(moment: Moment) -> str:
    frame = moment.frame
    version = ".".join(str(frame.get(name, "?")) for name in ("major", "minor", "revision"))
    number = frame.get("protocol_id")
    key = f"{'agrees' if moment.answer else 'asks'}-{number}"
    return say(
        f"header.{key}" if known(f"header.{key}") else "header.unknown",
        version=version, id=value_text(number),
    )  # fmt: skip


def _open(moment: Moment) -> str:
    frame = moment.frame
    container = visible(frame.get("container_id", ""))
    text = say("open.too" if moment.answer else "open.first", container=container)
    size, channels = frame.get("max_frame_size"), frame.get("channel_max")
    if size is not None or channels is not None:
        text += say(
            "open.size" if channels is None else "open.channels" if size is None else "open.both",
            size=size, channels=channels,
        )  # fmt: skip
    if frame.get("idle_time_out"):
        text += say("open.time-out", ms=frame["idle_time_out"])
    return text


def _begin(moment: Moment) -> str:
    frame = moment.frame
    return say(
        "begin.too" if moment.answer else "begin.first",
        id=frame.get("next_outgoing_id", "?"), window=frame.get("incoming_window", 0),
    )  # fmt: skip


# -- links ----------------------------------------------------------------------------------------


def _attach(moment: Moment) -> str:
    row, frame = moment.row, moment.frame
    role = "receiver" if frame.get("role") == "receiver" else "sender"
    name = visible(frame.get("name", row.link or ""))
    terminus = "source" if role == "sender" else "target"
    if moment.answer and terminus not in row.extra:
        return say("attach.refuses", name=name, terminus=terminus)
    text = say(f"attach.{role}-too" if moment.answer else f"attach.{role}", name=name)
    far = row.extra.get("source" if role == "receiver" else "target")
    address = far.get("address") if isinstance(far, Mapping) else None
    if not moment.answer and isinstance(address, str):
        text += say("attach.from" if role == "receiver" else "attach.to", address=visible(address))
    if role == "sender" and "initial_delivery_count" in frame:
        text += say("attach.count", count=frame["initial_delivery_count"])
    return text + say("attach.no-credit") if moment.answer else text


def _ended(moment: Moment) -> str:
    """What ends a link, a session or the connection: detach, end, close."""
    row = moment.row
    what = "detach-closed" if row.kind == "detach" and moment.frame.get("closed") else row.kind
    link = part("ended.link" if row.link is None else "ended.link-named", name=visible(row.link))
    error = row.extra.get("error")
    if isinstance(error, Mapping):
        return say(f"ended.{what}-error", link=link, error=_error(error))
    return say(f"ended.{what}-too" if moment.answer else f"ended.{what}-first", link=link)


def _error(error: Mapping[str, Any]) -> str:
    description = error.get("description")
    return say(
        "error.described" if description else "error.condition",
        condition=visible(error.get("condition", "error")), description=visible(description),
    )  # fmt: skip


# -- SASL -----------------------------------------------------------------------------------------


def _mechanisms(moment: Moment) -> str:
    offered = moment.row.extra.get("sasl_server_mechanisms")
    names = [offered] if isinstance(offered, str) else offered
    if not isinstance(names, list) or not names:
        return say("sasl.offers-none")
    return say("sasl.offers", mechanisms=", ".join(visible(name) for name in names))


def _init(moment: Moment) -> str:
    mechanism = visible(moment.frame.get("mechanism", "?"))
    plain = mechanism == "PLAIN"
    return say("sasl.in-the-clear" if plain else "sasl.logs-in", mechanism=mechanism)


def _secret(moment: Moment) -> str:
    """A challenge, or the response to one: no more than its size is told."""
    asks = moment.row.kind == "sasl-challenge"
    octets = moment.frame.get("challenge" if asks else "response")
    size = len(octets) if isinstance(octets, bytes) else 0
    return say("sasl.challenge" if asks else "sasl.response", size=size)


def _outcome(moment: Moment) -> str:
    code = moment.frame.get("code")
    return say(f"sasl.code-{code}" if known(f"sasl.code-{code}") else "sasl.code", code=code)


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
    "detach": _ended,
    "end": _ended,
    "close": _ended,
    "heartbeat": lambda moment: say("does.heartbeat"),
    "sasl-mechanisms": _mechanisms,
    "sasl-init": _init,
    "sasl-challenge": _secret,
    "sasl-response": _secret,
    "sasl-outcome": _outcome,
}


# -- internal events ------------------------------------------------------------------------------

# How a queue names a link of a session: connection, session, link, attach.
_OF_LINK = re.compile(r"c\d+/\d+/(.+)/\d+")


def _of_process(row: Row) -> str | None:
    told = quorum_sentence(row) or paging_sentence(row) or hop_sentence(row)
    return None if told is None else f"{told}."


def _event(moment: Moment) -> str:
    row = moment.row
    who, number = process_words(row.vantage), row.extra.get("count", 1)
    what = "disconnect-closed" if moment.closed else row.event
    named = {
        "who": who,
        "queue": who if row.queue is None else process_words(f"queue:{row.queue}"),
        "n": number if isinstance(number, int) else 1,
        "mailbox": (row.ledger or {}).get("mailbox", 0),
    }
    text, counted = visible(row.event), False
    own = known(f"event-of.{row.event}.{row.kind}")
    if own or known(f"event.{what}"):
        event = part(f"event-of.{what}.{row.kind}" if own else f"event.{what}", **named)
        text, counted = format(event), "{n:" in str(event.text)
    details = _details(row, counted=counted)
    if row.event == "action":
        done = [visible(spec_name(row.kind or "?")).replace("-", " "), *details]
        text += f": {', '.join(done)}"
    else:
        link = _OF_LINK.fullmatch(row.kind or "")
        if link is not None:
            text += say("about.link", link=visible(link[1]))
        elif not own and row.kind is not None and row.kind != row.event:
            text += f": {visible(row.kind)}"
        if details:
            text += f" ({', '.join(details)})"
    return f"{text}{_queue_state(row)}."


def _details(row: Row, *, counted: bool) -> list[str]:
    """What else the row tells, as names with their values; not how many, if that is said."""
    extra = row.extra
    arguments = extra.get("arguments")
    if isinstance(arguments, Mapping):
        extra = arguments
    return [
        say(f"way.{value}")
        if name == "direction" and known(f"way.{value}")
        else say(f"detail.{name}", n=value)
        if known(f"detail.{name}") and isinstance(value, int)
        else " ".join(in_words(visible(str(name)), value)).lstrip()
        for name, value in extra.items()
        if value is not None and not (name == "count" and counted) and name != "ram"
    ]


def _queue_state(row: Row) -> str:
    ledger: Mapping[str, Any] = row.ledger or {}
    parts = [
        say(f"state.{name}", n=ledger[name])
        for name in ("queue_ready", "queue_unsettled", "mailbox")
        if name in ledger and (name != "mailbox" or (ledger[name] and row.kind != name))
    ]
    return f"; {', '.join(parts)}" if parts else ""
