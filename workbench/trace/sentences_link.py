"""Sentences about flow: who may send what, who knows it, and what is still on the way."""

from __future__ import annotations

from workbench import serial
from workbench.languages import capital, count
from workbench.serial import link_credit_snd

from .schema import BROKER, CLIENT, OBSERVED, RECEIVED
from .story import FlowWord, Moment
from .words import peer_role, quoted


def who(moment: Moment, peer: str | None, *, subject: bool) -> str:
    """`the sender`; where there are several links, `the sender of “q1”` for the sentence's subject.

    One name in a sentence is enough: the other end is that of the same link.
    """
    row = moment.row
    role = f"the {peer_role(row, peer)}"
    if subject and moment.many_links and row.link is not None and row.link_sender is not None:
        return f"{role} of {quoted(row.link)}"
    return role


def author(moment: Moment) -> str:
    """Who sent this frame."""
    return who(moment, moment.row.from_peer, subject=moment.row.event != RECEIVED)


def reader(moment: Moment) -> str:
    """Who this frame is for."""
    peer = moment.row.from_peer
    other = {CLIENT: BROKER, BROKER: CLIENT}.get(peer or "")
    return who(moment, other, subject=moment.row.event == RECEIVED)


def messages(number: int) -> str:
    """`3 messages`."""
    return count(number, "message")


def still_flying(moment: Moment, toward: str) -> str:
    """A sentence about the link's messages in flight, with a blank before it, or nothing."""
    flying = moment.messages_flying
    if not flying:
        return ""
    verb = "is" if flying == 1 else "are"
    return f" {messages(flying)} {verb} still on the way to {toward}."


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
    credit = moment.frame.get("link_credit")
    had = moment.before.get("link_credit")
    observed = moment.row.event == OBSERVED
    word = moment.flow
    if credit is None:
        text = f"{receiver} sends its state of the link without a link-credit"
    elif word is FlowWord.DRAIN_REQUEST:
        text = (
            f"{receiver} asks for a drain: {sender} shall send what it has, at most"
            f" {messages(credit)}, and give the rest of the credit back"
        )
    elif word is FlowWord.STOP:
        text = f"{receiver} stops the link: with link-credit 0 no new message may be sent"
    elif word is FlowWord.ECHO_ANSWER:
        text = f"{receiver} answers with its state: link-credit {credit}"
    elif word is FlowWord.REPEAT and credit:
        text = (
            f"{receiver} states its credit again, {credit}: the number is absolute, so saying it"
            " twice adds nothing"
        )
    elif word is FlowWord.REPEAT:
        text = f"{receiver} grants nothing: link-credit stays 0"
    elif word is FlowWord.RAISE and not observed:
        text = (
            f"{receiver} raises its credit from {had} to {credit}: the new number takes the place"
            f" of the old one, so {messages(credit)} may come, not {_sum(had, credit)}"
        )
    elif word is FlowWord.LOWER and not observed:
        text = (
            f"{receiver} lowers its credit from {had} to {credit}; what was sent before"
            f" {sender} hears of it may still come"
        )
    else:
        text = f"{receiver} grants {credit}: it may receive {messages(credit)} more"
    text += "."
    if moment.frame.get("echo"):
        text += " It asks for an answer (echo)."
    if observed:
        return text + _entitlement(moment)
    text += still_flying(moment, receiver)
    return f"{text} {capital(sender)} does not know yet."


def _sum(had: object, credit: int) -> int | str:
    return had + credit if isinstance(had, int) else "more"


def _entitlement(moment: Moment) -> str:
    left = moment.after.get("link_credit")
    if left is None:
        return " How much of it is left at this point cannot be known."
    if left == moment.frame.get("link_credit"):
        return f" At this point {reader(moment)} may send {messages(left)}."
    return (
        f" {capital(reader(moment))} has sent some of it already: at this point it may send"
        f" {messages(left)} more."
    )


def _grant_arrives(moment: Moment) -> str:
    """The receiver's flow where the sender reads it."""
    sender, receiver = reader(moment), author(moment)
    stated = moment.frame.get("link_credit")
    may = moment.after.get("link_credit")
    word = moment.flow
    if stated is None or may is None:
        return f"{sender} reads the state of {receiver}; what it may send is not known here."
    right = _by_the_rule(moment, stated)
    if right is not None and right != may:
        what = "drain request" if word is FlowWord.DRAIN_REQUEST else "flow"
        return (
            f"the {what} reaches {sender}. By 2.6.7 it may now send {messages(right)}; this one"
            f" takes {may}, so its rule is another.{_wants(moment)}{_agreement(moment, receiver)}"
        )
    if word is FlowWord.DRAIN_REQUEST:
        text = (
            f"the drain request reaches {sender}: it may send {messages(may)} at once, then it"
            " must give back what is left"
            if may
            else f"the drain request reaches {sender}: it has no credit to give back"
        )
    elif word is FlowWord.STOP:
        text = f"the stop reaches {sender}: it sends nothing more until it is granted credit again"
    elif word is FlowWord.ECHO_ANSWER:
        text = f"the answer reaches {sender}: it may send {messages(may)} more"
    elif word is FlowWord.REPEAT:
        text = f"the flow reaches {sender} and changes nothing: it may send {messages(may)} more"
    elif word is FlowWord.LOWER:
        text = f"the lower credit reaches {sender}: it may send {messages(may)} more"
    else:
        text = f"the grant reaches {sender}: it may send {messages(may)} more"
    text += f"{_already_sent(moment, stated, may)}."
    return text + _wants(moment) + _agreement(moment, receiver)


def _wants(moment: Moment) -> str:
    """That the flow asks for an answer, with a blank before it, or nothing."""
    return f" {capital(author(moment))} wants an answer." if moment.frame.get("echo") else ""


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
        return f", for it has sent {since} since, {since - stated} more than this grant allows"
    if since > 0:
        return f", not {stated}, for it has sent {since} that the flow does not count"
    return ""


def _agreement(moment: Moment, other: str) -> str:
    if moment.agree_now():
        return " Now both ends have the same numbers."
    if moment.agree() is False and moment.messages_flying:
        return still_flying(moment, other).removesuffix(".") + ", so the ends differ."
    return ""


def _flow_of_sender(moment: Moment) -> str:
    sender, receiver = author(moment), reader(moment)
    arrives = moment.row.event == RECEIVED
    frame, before, after = moment.frame, moment.before, moment.after
    available = frame.get("available")
    waiting = f", {messages(available)} available" if available is not None else ""
    if moment.flow is FlowWord.DRAIN_ANSWER:
        return _drain_answer(moment)
    if arrives:
        text = (
            f"{receiver} hears the state of {sender}: delivery-count {frame.get('delivery_count')}"
        )
        text += waiting
        was, now = before.get("link_credit"), after.get("link_credit")
        if was is not None and now is not None and was != now:
            text += f"; its own credit goes from {was} to {now}"
        if moment.flow is FlowWord.ECHO_ANSWER and not frame.get("link_credit"):
            text += ". Nothing more is on the way before it"
        return text + "." + _agreement(moment, receiver)
    verb = "answers" if moment.flow is FlowWord.ECHO_ANSWER else "tells its state"
    text = (
        f"{sender} {verb}: delivery-count {frame.get('delivery_count')}, link-credit"
        f" {frame.get('link_credit')}{waiting}."
    )
    if frame.get("echo"):
        text += " It asks for an answer (echo)."
    return (
        text if moment.row.event == OBSERVED else f"{text} {capital(receiver)} does not know yet."
    )


def _drain_answer(moment: Moment) -> str:
    sender, receiver = author(moment), reader(moment)
    was, now = moment.before.get("link_credit"), moment.after.get("link_credit")
    counted = moment.frame.get("delivery_count")
    if moment.row.event == RECEIVED:
        text = f"the answer to the drain reaches {receiver}"
        if was is not None and now is not None:
            text += (
                f": its credit goes from {was} to {now}" if was != now else ": no credit is left"
            )
        return f"{text}. Whatever was sent has arrived before it.{_agreement(moment, receiver)}"
    if was:
        text = (
            f"{sender} gives back its unused credit of {was}: its delivery-count moves on to"
            f" {counted} as if it had sent that many, and its credit is 0."
        )
    else:
        text = f"{sender} answers the drain: all credit is used, link-credit 0."
    return (
        text if moment.row.event == OBSERVED else f"{text} {capital(receiver)} does not know yet."
    )


def _session_flow(moment: Moment) -> str:
    row = moment.row
    window = moment.frame.get("incoming_window")
    frames = count(window or 0, "transfer frame")
    peer = row.from_peer or "peer"
    other = {"client": "broker", "broker": "client"}.get(peer, "other peer")
    if row.event == RECEIVED:
        left = moment.session_after.get("remote_incoming_window")
        may = count(left, "transfer frame") if left is not None else frames
        return f"the {other} hears the session's windows: it may send {may} on this session."
    text = (
        f"the {peer} states its session window: it takes {frames} from now on"
        if window
        else f"the {peer} closes its session window: no transfer frame of any link may come"
    )
    text += ", and asks for an answer (echo)." if moment.frame.get("echo") else "."
    return text if row.event == OBSERVED else f"{text} The {other} does not know yet."
