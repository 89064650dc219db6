"""Checks of lesson 11: what a learner made happen on a live wire, read off its trace."""

from __future__ import annotations

from typing import Any

from workbench import serial
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row
from workbench.trace.words import count

from . import measure
from .checks import checks, not_yet, told
from .client_predict import LESSON
from .client_runs import flows, number_in, stop_rows
from .question import Verdict

NOTHING = "Nobody has received anything over this wire yet: run a client first."


@checks(
    LESSON,
    "crossed",
    hints=(
        "A flow that waits at the gate grows old while transfers go through the other one.",
        "Let the client's first flow through, so that the broker sends. Then let only the broker's"
        " attach through: what does the client say, while transfers wait at the other gate?",
    ),
)
def crossed(server: Any) -> Verdict:
    """Has a flow of the client reached the broker after the broker had sent more than it tells of?

    Args:
        server: a live broker.
    """
    rows = server.rows()
    arrived = flows(rows, RECEIVED)
    if not arrived:
        return not_yet(NOTHING)
    released = {row.extra.get("frame_id") for row in rows if row.event == "release"}
    by_hand = [row for row in arrived if row.frame_id in released]
    if not by_hand:
        text = f"{count(len(arrived), 'flow')} reached the broker, none of them through your hand."
        return told(arrived[-1].link, False, text)
    for row in by_hand:
        said = number_in(row, "delivery_count")
        sent = _sent_before(rows, row)
        behind = serial.diff(sent, said)
        if behind <= 0:
            continue
        granted = number_in(row, "link_credit")
        left = (row.ledger or {}).get("link_credit")
        text = (
            f"The flow of step {measure.step(row.seq)} tells of delivery-count {said} and grants"
            f" {granted}; the broker stood at {sent} already. It did not take {granted} but"
            f" {said} + {granted} − {sent} = {left} [2.6.7]: the race of lesson 02, by your"
            " own client."
        )
        return told(row.link, True, text)
    last = by_hand[-1]
    text = (
        f"You let {count(len(by_hand), 'flow')} through, the latest in step"
        f" {measure.step(last.seq)}, and each told the count at which the broker stood: nothing"
        " had crossed."
    )
    return told(last.link, False, text)


def _sent_before(rows: list[Row], flow: Row) -> int:
    """The broker's delivery-count when a flow reached it."""
    found = 0
    for row in rows:
        if row.seq >= flow.seq:
            break
        same = (row.connection, row.link) == (flow.connection, flow.link)
        if same and row.vantage == BROKER and row.link_sender == BROKER:
            found = int((row.ledger or {}).get("delivery_count", found))
    return found


@checks(
    LESSON,
    "stopped",
    hints=(
        "Type the condition into the field “stop at” of the frozen wire while a client is"
        " connected, and then let the frames run freely.",
        "The counters are the broker's: link_credit of the link over which it sends.",
    ),
)
def stopped(server: Any) -> Verdict:
    """Has a breakpoint on a counter stopped the wire, and did everything go on afterwards?

    Args:
        server: a live broker.
    """
    rows = server.rows()
    stops = [row for row in stop_rows(rows) if "_" in row.extra["breakpoint"]]
    if not stops:
        return not_yet("No breakpoint on a counter has been met on this wire yet.")
    stop = stops[-1]
    where = f"“{stop.extra['breakpoint']}” stopped the wire in step {measure.step(stop.seq)}"
    arrived = {row.frame_id for row in rows if row.event in (RECEIVED, OBSERVED)}
    waiting = [
        row
        for row in rows
        if row.event == SENT and row.frame_id not in arrived and row.connection == stop.connection
    ]
    if waiting:
        who = "the client" if waiting[0].from_peer == CLIENT else "the broker"
        text = f"{where}; {count(len(waiting), 'frame')} still wait, the first of {who}."
        return told(stop.connection, False, text)
    later = [row for row in rows if row.seq > stop.seq and row.event == RECEIVED]
    text = f"{where}, and {count(len(later), 'frame')} arrived after it: none was lost."
    return told(stop.connection, bool(later), text)


__all__ = ["crossed", "stopped"]
