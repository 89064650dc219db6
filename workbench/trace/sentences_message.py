"""Sentences about messages: transfer frames on their way, and what becomes of the deliveries."""

from __future__ import annotations

from workbench import serial
from workbench.languages import capital

from .schema import OBSERVED, RECEIVED
from .sentences_link import author, messages, reader, still_flying
from .story import Moment
from .words import visible

# -- transfer -------------------------------------------------------------------------------------


def transfer(moment: Moment) -> str:
    """One sentence or two about a transfer frame."""
    frame = moment.frame
    if frame.get("aborted"):
        return _aborted(moment)
    if moment.first is False:
        return _continuation(moment)
    if moment.row.event == RECEIVED:
        return _message_arrives(moment)
    return _message_leaves(moment)


def _which(moment: Moment) -> str:
    delivery_id = moment.frame.get("delivery_id")
    return f"message {delivery_id}" if delivery_id is not None else "a message"


def _message_leaves(moment: Moment) -> str:
    sender, receiver = author(moment), reader(moment)
    observed = moment.row.event == OBSERVED
    if moment.frame.get("more"):
        text = (
            f"{sender} begins {_which(moment)}, which takes several frames: one credit for the"
            " whole, one place in the session window for each frame"
        )
    elif observed:
        text = f"{_which(moment)} passes and uses one credit"
    else:
        text = f"{sender} sends {_which(moment)} and uses one credit"
    left = moment.after.get("link_credit")
    if left is None:
        text += "; how much is left cannot be known" if moment.row.unknown else ""
    elif left == 0:
        text += ": none is left, it must wait for a grant"
        waiting = moment.after.get("available")
        if waiting:
            text += f" with {messages(waiting)} waiting"
    else:
        text += f": {left} left"
    text += "."
    if moment.frame.get("settled"):
        text += " It is sent settled: no acknowledgement will come."
    if observed:
        return text
    flying = moment.messages_flying
    if flying > 1:
        text += f" {flying} transfer frames are in flight,"
        return f"{text} of which {receiver} knows nothing yet."
    return f"{text} {capital(receiver)} does not know yet."


def _message_arrives(moment: Moment) -> str:
    receiver = reader(moment)
    was, left = moment.before.get("link_credit"), moment.after.get("link_credit")
    counted = moment.after.get("delivery_count")
    begins = "the first frame of " if moment.frame.get("more") else ""
    text = f"{begins}{_which(moment)} reaches {receiver}"
    if left is not None and counted is not None:
        skipped = counted == moment.before.get("delivery_count")
        verb = "does not count" if skipped else "counts"
        text += f", which {verb} it: delivery-count {counted}, link-credit {left}"
    text += "."
    if was is not None and was <= 0:
        text += (
            " By its own numbers it had granted nothing more: the message was sent before its last"
            " flow was heard, or against the rules."
        )
    if moment.agree_now():
        return text + " Now both ends have the same numbers."
    return text + still_flying(moment, receiver)


def _continuation(moment: Moment) -> str:
    goes_on = bool(moment.frame.get("more"))
    part = "the next frame" if goes_on else "the last frame"
    rule = "it uses a place in the session window, and no credit"
    if moment.row.event == RECEIVED:
        end = "" if goes_on else ", and the message is whole"
        return f"{part} of the message reaches {reader(moment)}{end}: {rule}."
    if moment.row.event == OBSERVED:
        return f"{part} of the message passes: {rule}."
    return f"{author(moment)} sends {part} of the message: {rule}."


def _aborted(moment: Moment) -> str:
    if moment.row.event == RECEIVED:
        return f"{reader(moment)} drops what came of the message: it was given up, and is settled."
    return f"{author(moment)} gives the message up: what came of it is dropped and settled."


# -- disposition ----------------------------------------------------------------------------------

_OUTCOMES = {
    "accepted": "accepts",
    "rejected": "rejects",
    "released": "hands back",
    "modified": "hands back, changed,",
    "received": "tells how much it has of",
}


def disposition(moment: Moment) -> str:
    """One sentence or two about a disposition."""
    frame, row = moment.frame, moment.row
    role = str(frame.get("role") or "peer")
    state = row.extra.get("state")
    outcome = state.get("type") if isinstance(state, dict) else None
    settled = bool(frame.get("settled"))
    verb = _OUTCOMES.get(str(outcome), f"states {visible(outcome)} for" if outcome else "")
    if verb:
        text = f"the {role} {verb} {_deliveries(moment)}"
        text += " and settles: it has forgotten it" if settled else ", not yet settled"
    elif settled:
        text = f"the {role} settles {_deliveries(moment)}: it has forgotten it"
    else:
        text = f"the {role} speaks of {_deliveries(moment)} and changes nothing"
    if settled and _how_many(moment) != 1:
        text = text.replace("forgotten it", "forgotten them")
    if outcome == "rejected" and isinstance(state, dict) and isinstance(state.get("error"), dict):
        text += f" ({visible(state['error'].get('condition', 'no condition'))})"
    if row.event == RECEIVED:
        other = "sender" if role == "receiver" else "receiver"
        text = f"the {other} learns it: {text}"
    text += "."
    if role == "receiver":
        text += " Credit does not change: an acknowledgement grants nothing."
    return text


def _how_many(moment: Moment) -> int | None:
    first = moment.frame.get("first")
    last = moment.frame.get("last", first)
    if first is None or last is None:
        return None
    try:
        return serial.diff(last, first) + 1
    except serial.SerialError:
        return None


def _deliveries(moment: Moment) -> str:
    first = moment.frame.get("first")
    number = _how_many(moment)
    if first is None:
        return "a message"
    if number == 1:
        return f"message {first}"
    last = moment.frame.get("last")
    if number is None or number < 1:
        return f"messages {first} to {last} (a range that runs backwards)"
    return f"messages {first} to {last} ({number})"
