"""Sentences about messages: transfer frames on their way, and what becomes of the deliveries."""

from __future__ import annotations

from workbench import serial
from workbench.languages import Piece

from .schema import OBSERVED, RECEIVED
from .sentences_link import author, known, part, reader, role, say, still_flying, unheard
from .story import Moment
from .words import visible

# -- transfer -------------------------------------------------------------------------------------


def transfer(moment: Moment) -> str:
    """One sentence or two about a transfer frame."""
    frame = moment.frame
    arrives = moment.row.event == RECEIVED
    if frame.get("aborted"):
        return say(
            "transfer.aborted-arrives" if arrives else "transfer.aborted",
            sender=author(moment), receiver=reader(moment),
        )  # fmt: skip
    if moment.first is False:
        return _continuation(moment)
    return _message_arrives(moment) if arrives else _message_leaves(moment)


def _which(moment: Moment) -> Piece:
    delivery_id = moment.frame.get("delivery_id")
    return part("message.any" if delivery_id is None else "message.one", id=delivery_id)


def _message_leaves(moment: Moment) -> str:
    sender, receiver = author(moment), reader(moment)
    observed = moment.row.event == OBSERVED
    key = "begins" if moment.frame.get("more") else "passes" if observed else "sends"
    credit = moment.before.get("link_credit")
    if credit is not None and credit <= 0:
        text = f"{say(f'leaves.{key}-without', sender=sender, which=_which(moment))}."
    else:
        text = f"{say(f'leaves.{key}', sender=sender, which=_which(moment))}{_left(moment)}."
    if moment.frame.get("settled"):
        text += say("transfer.settled")
    flying = moment.messages_flying
    if flying > 1 and not observed:
        return text + say("transfer.flying", n=flying, receiver=receiver)
    return text + unheard(moment, receiver)


def _left(moment: Moment) -> str:
    """What credit the message leaves to the sender."""
    left = moment.after.get("link_credit")
    if left is None:
        return say("transfer.left-unknown") if moment.row.unknown else ""
    if left:
        return say("transfer.left", n=left)
    waiting = moment.after.get("available")
    return say("transfer.left-none-waiting" if waiting else "transfer.left-none", n=waiting)


def _message_arrives(moment: Moment) -> str:
    receiver = reader(moment)
    was, left = moment.before.get("link_credit"), moment.after.get("link_credit")
    counted = moment.after.get("delivery_count")
    text = say(
        "transfer.arrives-first" if moment.frame.get("more") else "transfer.arrives",
        which=_which(moment), receiver=receiver,
    )  # fmt: skip
    if left is not None and counted is not None:
        skipped = counted == moment.before.get("delivery_count")
        text += say(
            "transfer.counts-not" if skipped else "transfer.counts", count=counted, credit=left
        )
    text += "."
    if was is not None and was <= 0:
        text += say("transfer.too-many")
    return text + (say("link.agree") if moment.agree_now() else still_flying(moment, receiver))


def _continuation(moment: Moment) -> str:
    frame = "next" if moment.frame.get("more") else "last"
    way = {RECEIVED: "arrives", OBSERVED: "passes"}.get(moment.row.event, "leaves")
    return say(f"part.{frame}-{way}", sender=author(moment), receiver=reader(moment))


# -- disposition ----------------------------------------------------------------------------------


def disposition(moment: Moment) -> str:
    """One sentence or two about a disposition."""
    frame, row = moment.frame, moment.row
    end = frame.get("role")
    told_state = row.extra.get("state")
    state = told_state if isinstance(told_state, dict) else {}
    outcome, error = state.get("type"), state.get("error")
    told = {"author": role(end), "messages": _deliveries(moment)}
    settled = bool(frame.get("settled"))
    many = "-many" if _how_many(moment) != 1 else ""
    if outcome:
        text = say(
            f"outcome.{outcome}" if known(f"outcome.{outcome}") else "disposition.other",
            state=visible(outcome), **told,
        )  # fmt: skip
        text += say(f"disposition.and-settles{many}" if settled else "disposition.unsettled")
    else:
        text = say(f"disposition.settles{many}" if settled else "disposition.none", **told)
    if outcome == "rejected" and isinstance(error, dict):
        text += say(
            "disposition.condition" if "condition" in error else "disposition.no-condition",
            condition=visible(error.get("condition")),
        )
    if row.event == RECEIVED:
        other = role("sender" if end == "receiver" else "receiver")
        text = say("disposition.learns", reader=other, what=text)
    text += "."
    return text + say("disposition.no-credit") if end == "receiver" else text


def _how_many(moment: Moment) -> int | None:
    first = moment.frame.get("first")
    last = moment.frame.get("last", first)
    if first is None or last is None:
        return None
    try:
        return serial.diff(last, first) + 1
    except serial.SerialError:
        return None


def _deliveries(moment: Moment) -> Piece:
    first = moment.frame.get("first")
    number = _how_many(moment)
    if first is None:
        return part("message.any")
    if number == 1:
        return part("message.one", id=first)
    backwards = number is None or number < 1
    return part(
        "message.backwards" if backwards else "message.many",
        id=first, last=moment.frame.get("last"), n=number,
    )  # fmt: skip
