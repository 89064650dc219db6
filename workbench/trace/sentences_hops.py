"""Sentences about credit between processes: what each has spent, got, granted and kept back."""

from __future__ import annotations

from .brakes import CREDIT_FLOW
from .schema import Row
from .words import quoted, visible

_KINDS = {
    "reader": "the reader of {}",
    "channel": "channel {}",
    "queue": "queue {}",
    "mirror": "mirror {}",
}
_STORES = {"persistent": "the message store", "transient": "the store of transient messages"}


def process_words(name: str) -> str:
    """A process of the broker in words: `channel c1/1`, `queue “q”`, `the message store`."""
    kind, _, which = name.partition(":")
    if kind == "store":
        return _STORES.get(which, f"store {visible(which)}")
    if kind not in _KINDS:
        return visible(name)
    return _KINDS[kind].format(quoted(which) if kind == "queue" else visible(which))


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
    if (row.event, row.kind) == ("block", CREDIT_FLOW):
        stops = "stops reading the socket" if row.vantage.startswith("reader:") else "grants nobody"
        return f"{who} has spent its last credit with the next process, and {stops}"
    if (row.event, row.kind) == ("unblock", CREDIT_FLOW):
        goes = "reads the socket again" if row.vantage.startswith("reader:") else "may grant again"
        return f"{who} has credit again, and {goes}"
    if row.event == "grant" and row.kind is not None and ":" in row.kind and credit is not None:
        return f"{who} has handled {credit}, and grants {process_words(row.kind)} {credit} more"
    if row.event != "note":
        return None
    left = (row.ledger or {}).get("hop_credit")
    to = process_words(next_process(row) or "the next process")
    match row.kind:
        case "credit-spent":
            return f"{who} hands a message to {to}, for one credit; {left} left"
        case "credit-came":
            return f"{who} gets a grant from {to}; its credit there is {left} now"
        case "grant-kept":
            kept = process_words(str(row.extra.get("to")))
            return (
                f"{who} has handled {credit}, but is blocked itself: its grant of {credit} to"
                f" {kept} is deferred"
            )
        case "state" if row.vantage.startswith("reader:"):
            return f"an operator sees connection {visible(row.connection)} as {row.extra['state']}"
    return None
