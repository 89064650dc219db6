"""Questions of lesson 11 about a client on a live wire. Each answer is read off the trace so far.

What has not happened yet cannot be compared: the learner is told what has to happen first.
"""

from __future__ import annotations

from typing import Any

from workbench.trace.schema import BROKER, CLIENT, OBSERVED, OWN, SENT, SHADOW, Row
from workbench.trace.words import count

from . import measure
from .client_runs import (
    HEARTBEAT,
    brought_by,
    consumer_rows,
    flows,
    number_in,
    sent_by,
    stop_rows,
)
from .predict import asks
from .question import Belief, NotYetError, Question, Solution

LESSON = "11"
KINDS = ("protocol-header", "sasl-init", "open", "begin", "attach", "flow")
STOPPED_AT = ("transfer", "flow", "disposition")
ASKED, SEEN, TOLD = (
    "Proton shows its counters to the broker",
    "an observer on this side, from the frames",
    "the broker, which knows both ends",
)
_SOURCES = {OWN: ASKED, SHADOW: SEEN}


def _step(row: Row) -> str:
    return f"step {measure.step(row.seq)}"


@asks
def first_frame(server: Any) -> Question:
    """What does a client send first?"""

    def solve() -> Solution:
        sent = sent_by(consumer_rows(server), CLIENT)
        if not sent:
            raise NotYetError("The client has not said a word yet.")
        first = sent[0]
        said = ", ".join(dict.fromkeys(str(row.kind) for row in sent))
        return Solution(
            answer=str(first.kind),
            reason=(
                f"In {_step(first)} the client sends {first.kind}; up to now it has sent {said},"
                " in this order. Each peer first says which protocol it speaks [2.2]."
            ),
            beliefs=(
                Belief(
                    name="begins with open",
                    answer="open",
                    because="a peer must know which protocol the octets are before it reads any.",
                ),
                Belief(
                    name="begins with who I am",
                    answer="sasl-init",
                    because="the server offers its mechanisms before a client can choose one.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/first-frame",
        text="The client below connects. What is the first thing that waits at the gate?",
        choices=KINDS,
        solve=solve,
        hints=("Could the broker read an open if it did not know what protocol comes?",),
    )


@asks
def before_attach(server: Any) -> Question:
    """How many frames cross before a client names the queue?"""

    def solve() -> Solution:
        rows = [row for row in consumer_rows(server) if row.event == SENT and row.kind]
        rows = [row for row in rows if row.kind != HEARTBEAT]
        attach = next((row for row in rows if row.kind == "attach"), None)
        if attach is None:
            raise NotYetError("No attach has been sent yet: forward frames until one waits.")
        before = rows[: rows.index(attach)]
        by_client = sum(row.from_peer == CLIENT for row in before)
        return Solution(
            answer=len(before),
            reason=(
                f"{len(before)} come before the attach of {_step(attach)}: {by_client} of the"
                f" client and {len(before) - by_client} of the broker. Headers, SASL, headers"
                " again, opens, and the session. A client that does not wait for every answer"
                " gets there sooner, not with fewer frames."
            ),
            beliefs=(
                Belief(
                    name="the queue is named at once",
                    answer=1,
                    because="protocol, login, connection and session come first.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/before-attach",
        text=(
            "How many frames of both ways, protocol headers included, go before the first frame"
            " that names the queue?"
        ),
        unit="frames",
        solve=solve,
        hints=("Count what each of these takes: protocol, login, connection, session.",),
    )


@asks
def first_credit(server: Any, credit: int) -> Question:
    """Which link-credit does the client's first flow carry?"""

    def solve() -> Solution:
        found = flows(consumer_rows(server))
        if not found:
            raise NotYetError("The client has sent no flow yet: forward frames until one waits.")
        first = found[0]
        told, base = number_in(first, "link_credit"), number_in(first, "delivery_count")
        return Solution(
            answer=told,
            reason=(
                f"The flow of {_step(first)} says delivery-count {base}, link-credit {told}: the"
                f" broker may send up to delivery-count {base + told}."
            ),
            beliefs=(
                Belief(
                    name="one at a time",
                    answer=1,
                    because="a client asks one by one only if it is told to.",
                ),
                Belief(
                    name="nothing before receive",
                    answer=0,
                    because="this client grants when it attaches, before anybody asks for more.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/first-credit",
        text=(
            f"The program says create_receiver(..., credit={credit}). Which link-credit stands in"
            " the client's first flow?"
        ),
        unit="link-credit",
        solve=solve,
        hints=("Nobody has promised that a library does what its argument says. Look.",),
    )


@asks
def brought(server: Any) -> Question:
    """How many transfers wait at the gate after the first flow, and nothing else, went through?"""

    def solve() -> Solution:
        rows = consumer_rows(server)
        found = flows(rows)
        number = brought_by(rows, found[0]) if found else None
        if number is None:
            raise NotYetError("The first flow has not reached the broker yet: let it through.")
        granted = number_in(found[0], "link_credit")
        return Solution(
            answer=number,
            reason=(
                f"The flow of {_step(found[0])} granted {granted}, and {number} transfers were sent"
                " before the broker heard anything else. It did not wait for the first to arrive:"
                " credit is a permission to send ahead."
            ),
            beliefs=(
                Belief(
                    name="one, and then an answer",
                    answer=1,
                    because="no transfer waits for another to be acknowledged.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/brought",
        text=(
            "Let the client's first flow through, and nothing of the broker. How many transfers"
            " wait then at the broker's gate?"
        ),
        unit="transfers",
        solve=solve,
        hints=("What does the broker need, beyond credit, before it sends the second one?",),
    )


@asks
def next_credit(server: Any) -> Question:
    """Which link-credit does the client's second flow carry?"""

    def solve() -> Solution:
        rows = consumer_rows(server)
        found = flows(rows)
        if len(found) <= 1:
            raise NotYetError("The client has sent no second flow yet: let the attach through.")
        first, second = found[0], found[1]
        told, base = number_in(second, "link_credit"), number_in(second, "delivery_count")
        asked = number_in(first, "link_credit")
        before = [row for row in rows if row.seq < second.seq and row.kind == "transfer"]
        sent = sum(row.event == SENT and row.from_peer == BROKER for row in before)
        got = sum(row.event != SENT and row.from_peer == BROKER for row in before)
        return Solution(
            answer=told,
            reason=(
                f"In {_step(second)} the flow says delivery-count {base}, link-credit {told}: the"
                f" broker may now send up to delivery-count {base + told}, and the first flow had"
                f" said {number_in(first, 'delivery_count') + asked}."
                f" {count(sent, 'transfer').capitalize()} had left the broker by then, {got} had"
                " arrived. Two parts of the library have asked, one when it attached and one when"
                " the attach was answered, and the interface adds what the wire then carries as"
                " one number."
            ),
            beliefs=(
                Belief(
                    name="asks for what it was told",
                    answer=asked,
                    because="that is what the first flow had asked for already.",
                ),
                Belief(
                    name="has asked enough",
                    answer=0,
                    because="a flow with no credit would stop the link.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/next-credit",
        text=(
            "Let only the broker's attach through, no transfer. The client has not seen a message"
            " yet. Which link-credit stands in its next flow?"
        ),
        unit="link-credit",
        solve=solve,
        hints=(
            "The program has asked once. Has the library?",
            "One part of it asks when a link is opened, another when the open is answered.",
        ),
    )


@asks
def stopped_at(server: Any) -> Question:
    """Which frame is the first that a breakpoint on the credit holds?"""

    def solve() -> Solution:
        rows = [row for row in server.rows() if row.connection is not None]
        stops = stop_rows(rows)
        if not stops:
            raise NotYetError("No breakpoint has been met yet.")
        after = [
            row
            for row in rows
            if row.seq > stops[0].seq and row.event == SENT and row.kind != HEARTBEAT
        ]
        if not after:
            raise NotYetError("The wire has stopped, and nobody has sent anything since.")
        held = after[0]
        return Solution(
            answer=str(held.kind),
            reason=(
                f"“{stops[0].extra['breakpoint']}” came true when the broker used its credit for"
                f" the {held.kind} of {_step(held)}: its counter had moved, and the frame itself"
                " is the first that waits."
            ),
        )

    return Question(
        name=f"{LESSON}/stopped-at",
        text=(
            "The breakpoint is on a counter of the broker, link-credit. Which kind of frame will"
            " be the first that waits when the wire stops?"
        ),
        choices=STOPPED_AT,
        solve=solve,
        hints=("Which frame makes a sender's link-credit smaller?",),
    )


@asks
def whose_ledger(server: Any) -> Question:
    """Where do the numbers of the client's end come from?"""

    def solve() -> Solution:
        rows = [row for row in consumer_rows(server) if row.ledger and row.from_peer]
        theirs = [row for row in rows if row.vantage.startswith(CLIENT)]
        if not theirs:
            raise NotYetError("No frame with counters has been sent yet.")
        row = theirs[0]
        return Solution(
            answer=_SOURCES.get(str(row.ledger_source), TOLD),
            reason=(
                f"The rows of {row.vantage} say ledger_source={row.ledger_source!r}. Proton shows"
                " no counters, and none travel beside the frames. An endpoint that is fed the same"
                " frames works out what a client must know that obeys the specification. If the"
                " real one counts otherwise, the shadow does not show it: then look for the frame"
                " that contradicts it."
            ),
            beliefs=(
                Belief(
                    name="the broker knows both ends",
                    answer=TOLD,
                    because="a broker knows of the client what its frames tell, and nothing else.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/whose-ledger",
        text="The stepper shows counters of the client's end. Who has worked them out?",
        choices=(ASKED, SEEN, TOLD),
        solve=solve,
        hints=("Is there anything on the wire but frames?",),
    )


@asks
def rows_per_frame(proxy: Any) -> Question:
    """In how many rows is a frame, in the trace of a proxy?"""

    def solve() -> Solution:
        frames = [row for row in proxy.rows() if row.frame_id is not None]
        if not frames:
            raise NotYetError("Nothing has gone through the proxy yet: run the client's cell.")
        seen = len({row.frame_id for row in frames})
        each = len(frames) // seen
        observed = sum(row.event == OBSERVED for row in frames)
        return Solution(
            answer=each,
            reason=(
                f"{len(frames)} rows for {seen} frames, {observed} of them observed. A proxy stands"
                " in one place and is neither end: it sees a frame pass once. What the two ends"
                " know of it, and when, it can only reckon."
            ),
            beliefs=(
                Belief(
                    name="both ends report",
                    answer=2,
                    because="the ends are programs of somebody else, and they report nothing.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/rows-per-frame",
        text="In how many rows of the proxy's trace does each frame appear?",
        unit="rows",
        solve=solve,
        hints=("A row is somebody who saw the frame. Who stands in the middle?",),
    )
