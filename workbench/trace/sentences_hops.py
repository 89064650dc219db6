"""Sentences about credit between processes: what each has spent, got, granted and kept back."""

from __future__ import annotations

from functools import partial

from workbench.languages import digits, has, phrase

from .brakes import CREDIT_FLOW
from .schema import Row
from .words import visible

say = partial(phrase, "steps_queue")


def process_words(name: str) -> str:
    """A process of the broker in words: `channel 1 of c1`, `queue “q”`, `the message store`."""
    kind, _, which = name.partition(":")
    if kind == "store" and which in ("persistent", "transient"):
        return say(f"process.{which}")
    known = kind and has("steps_queue", f"process.{kind}")
    connection, _, channel = map(visible, which.partition("/"))
    named = {"name": visible(which), "connection": connection, "number": channel}
    return say(f"process.{kind}", **named) if known else visible(name)


def next_process(row: Row) -> str | None:
    """The process towards which a row counts credit, as it is named in a trace."""
    if row.session is not None:
        return f"channel:{row.connection}/{row.session}"
    if row.queue is None:
        return None
    return row.queue if row.queue.startswith(("store:", "mirror:")) else f"queue:{row.queue}"


def hop_sentence(row: Row) -> str | None:
    """A row about credit between processes in words; None for any other row."""
    who, credit = process_words(row.vantage), row.extra.get("credit")
    reads = row.vantage.startswith("reader:")
    if (row.event, row.kind) == ("block", CREDIT_FLOW):
        return say("hop.reader-stops" if reads else "hop.stops", who=who)
    if (row.event, row.kind) == ("unblock", CREDIT_FLOW):
        return say("hop.reader-goes-on" if reads else "hop.goes-on", who=who)
    if row.event == "grant" and row.kind is not None and ":" in row.kind and credit is not None:
        return say("hop.grants", who=who, credit=credit, to=process_words(row.kind))
    if row.event != "note":
        return None
    counted, following = (row.ledger or {}).get("hop_credit"), next_process(row)
    left = None if counted is None else digits(counted)
    to = process_words(following) if following else say("process.next")
    match row.kind:
        case "credit-spent":
            return say("hop.spent", who=who, to=to, left=left)
        case "credit-came":
            return say("hop.came", who=who, to=to, left=left)
        case "grant-kept":
            kept = process_words(str(row.extra.get("to")))
            return say("hop.kept", who=who, credit=credit, to=kept)
        case "state" if reads:
            seen = row.extra["state"]
            return say("hop.state", connection=visible(row.connection), state=seen)
    return None
