"""Sentences about flow: who may send what, who knows it, and what is still on the way."""

from __future__ import annotations

from functools import partial

from workbench import serial
from workbench.languages import Piece, has, phrase, piece
from workbench.serial import link_credit_snd

from .schema import BROKER, CLIENT, OBSERVED, RECEIVED
from .story import FlowWord, Moment
from .words import visible

say = partial(phrase, "steps_link")
part = partial(piece, "steps_link")
known = partial(has, "steps_link")
_ACTIVE = "rabbitmq:active"
"""A property of flows of RabbitMQ 4.3 (capture rmq43_h)."""
_OTHER = {CLIENT: BROKER, BROKER: CLIENT}
_NAMES = (*_OTHER, "sender", "receiver", "other-peer")


def role(name: str | None) -> Piece:
    """`the sender`, `the client`; `the peer` for whoever has no such name."""
    return part(f"role.{name}" if name in _NAMES else "role.peer")


def who(moment: Moment, peer: str | None, *, subject: bool) -> Piece:
    """`the sender`; where there are several links, `the sender of “q1”` for the sentence's subject.

    One name in a sentence is enough: the other end is that of the same link.
    """
    row = moment.row
    if row.link is None or row.link_sender is None:
        return role(peer or CLIENT)
    end = role("sender" if peer == row.link_sender else "receiver")
    named = subject and moment.many_links
    return part("link.of", role=end, link=visible(row.link)) if named else end


def author(moment: Moment) -> Piece:
    """Who sent this frame."""
    return who(moment, moment.row.from_peer, subject=moment.row.event != RECEIVED)


def reader(moment: Moment) -> Piece:
    """Who this frame is for."""
    other = _OTHER.get(moment.row.from_peer or "")
    return who(moment, other, subject=moment.row.event == RECEIVED)


def peers(peer: str | None) -> tuple[Piece, Piece]:
    """The two of a connection: one that sends a frame, and the one who reads it."""
    return role(peer), role(_OTHER.get(peer or "", "other-peer"))


def unheard(moment: Moment, end: Piece) -> str:
    """That the frame's reader does not know of it yet; nothing where a capture sees it pass."""
    return "" if moment.row.event == OBSERVED else say("link.unheard", reader=end)


def still_flying(moment: Moment, toward: Piece, *, differ: bool = False) -> str:
    """A sentence about the link's messages in flight, with a blank before it, or nothing.

    Args:
        moment: of which row.
        toward: who gets them.
        differ: say, too, that the ends differ for that.
    """
    flying = moment.messages_flying
    if not flying:
        return ""
    return say("link.flying-differ" if differ else "link.flying", n=flying, reader=toward)


# -- flow -----------------------------------------------------------------------------------------


def flow(moment: Moment) -> str:
    """One sentence or two about a flow."""
    if moment.flow is FlowWord.SESSION:
        return _session_flow(moment)
    if moment.from_sender:
        return _flow_of_sender(moment)
    if moment.row.event == RECEIVED:
        return _grant_arrives(moment)
    return _grant_leaves(moment)


def _grant_leaves(moment: Moment) -> str:
    """The receiver's flow where it is sent, or where it passes on the wire."""
    receiver, sender = author(moment), reader(moment)
    credit, had = moment.frame.get("link_credit"), moment.before.get("link_credit")
    observed = moment.row.event == OBSERVED
    word = moment.flow or FlowWord.GRANT
    if observed and word in (FlowWord.RAISE, FlowWord.LOWER):
        word = FlowWord.GRANT  # the numbers before are the sender's
    key = word.value
    if credit is None:
        key = "no-credit"
    elif word is FlowWord.REPEAT and not credit:
        key = "repeat-nothing"
    sums = (had or 0) + (credit or 0)
    text = say(
        f"grant.{key}", receiver=receiver, sender=sender, credit=credit, had=had, sum=sums
    ) + _echo(moment)
    if observed:
        return text + _entitlement(moment, sender)
    return text + still_flying(moment, receiver) + unheard(moment, sender)


def _echo(moment: Moment) -> str:
    return say("link.echo") if moment.frame.get("echo") else ""


def _entitlement(moment: Moment, sender: Piece) -> str:
    left = moment.after.get("link_credit")
    if left is None:
        return say("left.unknown")
    whole = left == moment.frame.get("link_credit")
    return say("left.all" if whole else "left.some", sender=sender, left=left)


def _grant_arrives(moment: Moment) -> str:
    """The receiver's flow where the sender reads it."""
    sender, receiver = reader(moment), author(moment)
    stated = moment.frame.get("link_credit")
    may = moment.after.get("link_credit")
    word = moment.flow or FlowWord.GRANT
    if stated is None or may is None:
        return say("arrives.unknown", sender=sender, receiver=receiver)
    drain = word is FlowWord.DRAIN_REQUEST
    right = _by_the_rule(moment, stated)
    if right is not None and right != may:
        text = say(
            "arrives.aside"
            if moment.aside
            else ("arrives.other-drain" if drain else "arrives.other-flow"),
            sender=sender, right=right, may=may,
        )  # fmt: skip
    else:
        key = word.value if known(f"arrives.{word.value}") else "grant"
        text = say(
            "arrives.drain-request-empty" if drain and not may else f"arrives.{key}",
            sender=sender, may=may,
        )  # fmt: skip
        text += f"{_already_sent(moment, stated, may)}."
    if moment.frame.get("echo"):
        text += say("link.echo-heard", author=receiver)
    return text + _agreement(moment, receiver)


def _by_the_rule(moment: Moment, stated: int) -> int | None:
    """What the sender may send after this flow, by the formula of 2.6.7; None if not known."""
    counted = moment.frame.get("delivery_count", moment.initial)
    own = moment.after.get("delivery_count")
    if not isinstance(counted, int) or not isinstance(own, int):
        return None
    try:
        return link_credit_snd(counted, stated, own)
    except serial.SerialError:
        return None


def _already_sent(moment: Moment, stated: int, may: int) -> str:
    """Why the sender's number is not the one in the flow."""
    if stated == may:
        return ""
    counted = moment.frame.get("delivery_count", moment.initial)
    own = moment.after.get("delivery_count")
    if counted is None or own is None:
        return ""
    try:
        since = serial.diff(own, counted)
    except serial.SerialError:
        return ""
    if since > stated >= 0 and may == 0:
        return say("arrives.sent-past", since=since, past=since - stated)
    return say("arrives.sent", stated=stated, since=since) if since > 0 else ""


def _agreement(moment: Moment, other: Piece) -> str:
    if moment.agree_now():
        return say("link.agree")
    return "" if moment.agree() is not False else still_flying(moment, other, differ=True)


def _flow_of_sender(moment: Moment) -> str:
    answers = moment.flow is FlowWord.DRAIN_ANSWER
    return (_drain_answer if answers else _state_told)(moment) + _turn(moment)


def _turn(moment: Moment) -> str:
    """Which consumer of the queue has its turn, as RabbitMQ tells of a single active one."""
    properties = moment.row.extra.get("properties")
    active = properties.get(_ACTIVE) if isinstance(properties, dict) else None
    if not isinstance(active, bool):
        return ""
    return say("state.active" if active else "state.waits-its-turn")


def _state_told(moment: Moment) -> str:
    sender, receiver = author(moment), reader(moment)
    frame = moment.frame
    count, credit = frame.get("delivery_count"), frame.get("link_credit")
    answers = moment.flow is FlowWord.ECHO_ANSWER
    waiting = ""
    if frame.get("available") is not None:
        waiting = say("state.available", n=frame["available"])
    if moment.row.event == RECEIVED:
        text = say("state.heard", receiver=receiver, sender=sender, count=count) + waiting
        was, now = moment.before.get("link_credit"), moment.after.get("link_credit")
        if was is not None and now is not None and was != now:
            text += say("state.moved", was=was, now=now)
        if answers and not credit:
            text += say("state.behind")
        return f"{text}.{_agreement(moment, receiver)}"
    text = say(
        "state.answers" if answers else "state.tells", sender=sender, count=count, credit=credit
    )
    return f"{text}{waiting}.{_echo(moment)}{unheard(moment, receiver)}"


def _drain_answer(moment: Moment) -> str:
    sender, receiver = author(moment), reader(moment)
    was, now = moment.before.get("link_credit"), moment.after.get("link_credit")
    if moment.row.event == RECEIVED:
        key = "heard"
        if was is not None and now is not None:
            key = "heard-moved" if was != now else "heard-empty"
        text = say(f"drained.{key}", receiver=receiver, was=was, now=now)
        return text + _agreement(moment, receiver)
    text = say(
        "drained.gives-back" if was else "drained.all-used",
        sender=sender, was=was, count=moment.frame.get("delivery_count"),
    )  # fmt: skip
    return text + unheard(moment, receiver)


def _session_flow(moment: Moment) -> str:
    window = moment.frame.get("incoming_window") or 0
    one, other = peers(moment.row.from_peer)
    if moment.row.event == RECEIVED:
        left = moment.session_after.get("remote_incoming_window")
        return say("session.hears", reader=other, n=window if left is None else left)
    key = ("states" if window else "closes") + ("-echo" if moment.frame.get("echo") else "")
    return say(f"session.{key}", author=one, n=window) + unheard(moment, other)
