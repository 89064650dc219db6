"""Questions of lesson 04 about frames, windows and what waits; answers are read off a run.

Those about alarms and second sessions are in `alarm_predict`; a lesson finds all of them here.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.scenarios.run import Run
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, Row
from workbench.trace.words import count

from .alarm_predict import WINDOW_STOPS_ALL, consumers, express, obeys, tolerated
from .measure import many, step
from .predict import asks
from .question import Belief, Question, Solution
from .windows_runs import (
    announced,
    at_start,
    field,
    halfway,
    heard,
    held_in_session,
    in_queue,
    ledger,
    rabbit_cut,
    session_flows,
    transfers,
    whole,
    window_before,
)

LESSON = "04"

COUNTS_MESSAGES = "the window counts messages"
CREDIT_OPENS = "credit opens the window"
WINDOW_IS_SET = "the window is what the flow says"


@asks
def stops_at(run: Run, link_credit: int) -> Question:
    """How many frames of a large message pass a small window?"""
    window = announced(run.rows, CLIENT)
    size, limit = run.parameters["message_bytes"], run.parameters["max_frame_size"]

    def solve() -> Solution:
        granted = at_start(run, "grant", link_credit=link_credit)
        sent = transfers(granted.rows)
        all_of_it = transfers(granted.then("open_window", frames=int(size or 0)).rows)
        return Solution(
            answer=len(sent),
            reason=(
                f"The message takes {count(len(all_of_it), 'frame')}, and each costs one of the"
                f" window. After {len(sent)} of them the window is used up, in the middle of the"
                f" message [2.5.6]. The credit was paid with the first frame: link-credit is"
                f" {ledger(sent[-1], 'link_credit')}."
            ),
            beliefs=(
                Belief(
                    name=COUNTS_MESSAGES,
                    answer=len(all_of_it),
                    because=(
                        f"a window of {window} lets {window} frames through, and this one message"
                        " has more."
                    ),
                ),
                Belief(
                    name="a message is a frame",
                    answer=1,
                    because=(
                        f"a frame may have {limit} octets at most, so the message is cut to"
                        " pieces [2.6.14]."
                    ),
                ),
                Belief(
                    name="all or nothing",
                    answer=0,
                    because="a message may stop in its middle; frames of other links may pass it.",
                ),
            ),
            seen=sent[-1],
        )

    return Question(
        name=f"{LESSON}/stops-at",
        text=(
            f"One message of {size} octets is ready. The client takes frames of at most {limit}"
            f" octets and has announced an incoming-window of {window}. It grants"
            f" link-credit {link_credit}. How many transfer frames does the broker send?"
        ),
        unit="frames",
        solve=solve,
        hints=(
            "Credit decides whether a message may begin. What decides whether a frame may leave?",
            "Each transfer frame costs one of the window, whatever message it belongs to.",
        ),
    )


@asks
def more_credit(run: Run, link_credit: int) -> Question:
    """Does credit help a message that has stopped at a window?"""
    at = run.last
    began = run.parent or run  # the panel in which it can be tried begins there
    stopped = len(transfers(run.rows))

    def solve() -> Solution:
        branch = run.then("grant", link_credit=link_credit)
        sent = len(transfers(branch.rows, after=at))
        flow = next(row for row in branch.rows if row.seq > at and row.kind == "flow")
        return Solution(
            answer=sent,
            reason=(
                f"The flow says link-credit {field(flow, 'link_credit')}, and it repeats the"
                f" window: {field(flow, 'incoming_window')}. So {count(sent, 'frame')} came. The"
                " two counters are two locks, and a frame needs both open."
            ),
            beliefs=(
                Belief(
                    name=CREDIT_OPENS,
                    answer=len(transfers(run.then("open_window", frames=stopped).rows, after=at)),
                    because="that is what the window would let through, if it were opened so far.",
                ),
                Belief(
                    name="credit counts frames",
                    answer=link_credit,
                    because="credit counts messages, and it is not what is missing here.",
                ),
            ),
            seen=began.rows[began.start_seq],
        )

    return Question(
        name=f"{LESSON}/more-credit",
        text=(
            f"{count(stopped, 'frame').capitalize()} came, and the message stands still. Now the"
            f" client grants link-credit {link_credit}. How many frames follow?"
        ),
        unit="frames",
        solve=solve,
        hints=("Every flow tells the window as well. What does this one say of it?",),
    )


@asks
def worked_out(run: Run, number: int, frames: int) -> Question:
    """What does a sender make of a window that was told while frames were under way?"""
    branch = halfway(run, number, frames)
    at = transfers(run.rows, BROKER, RECEIVED)[number - 1].seq
    flow = session_flows(branch.rows, CLIENT, after=at)[0]

    def solve() -> Solution:
        row = heard(branch, flow)
        own, base = ledger(row, "next_outgoing_id"), field(flow, "next_incoming_id")
        left = ledger(row, "remote_incoming_window")
        return Solution(
            answer=left,
            reason=(
                f"When the flow arrived (step {step(row.seq)}) the broker's next-outgoing-id was"
                f" {own}. The flow says next-incoming-id {base} and incoming-window {frames}: what"
                f" lies between {base} and {own} is on the wire and uses it up. That leaves {left}"
                " [2.5.6]."
            ),
            beliefs=(
                Belief(
                    name=WINDOW_IS_SET,
                    answer=frames,
                    because="then the frames on the wire would come on top of it.",
                ),
                Belief(
                    name="windows add up",
                    answer=frames + announced(run.rows, CLIENT),
                    because="a window is told anew each time; nothing is added to the old one.",
                ),
            ),
            seen=row,
        )

    sent = len([row for row in transfers(branch.rows) if row.seq < flow.seq])
    return Question(
        name=f"{LESSON}/worked-out",
        text=(
            f"The client has taken {count(number, 'frame')} when it sends"
            f" flow(next-incoming-id={field(flow, 'next_incoming_id')},"
            f" incoming-window={frames}). By then the broker has sent {sent}: its"
            f" next-outgoing-id is {ledger(transfers(branch.rows)[sent - 1], 'next_outgoing_id')}."
            " How many frames may it still send when the flow arrives?"
        ),
        unit="frames",
        solve=solve,
        hints=(
            "The client does not know what is on the wire; the broker does.",
            "next-incoming-id + incoming-window says up to which frame it may go.",
        ),
    )


@asks
def reopens_at(run: Run, publish: int) -> Question:
    """How much of its window has RabbitMQ left when it opens it again?"""
    window = announced(run.rows, BROKER)

    def solve() -> Solution:
        branch = at_start(run, "publish", count=publish)
        flow = session_flows(branch.rows, after=run.start_seq)[0]
        left = window_before(branch.rows, flow)
        came = transfers(branch.rows, CLIENT, RECEIVED)
        sent = sum(1 for row in came if row.seq < flow.seq)
        return Solution(
            answer=left,
            reason=(
                f"After {count(sent, 'frame')}, with {left} left, it sent a flow without a handle"
                f" (step {step(flow.seq)}): incoming-window {field(flow, 'incoming_window')}. Half"
                " a window is under way or on its way back, so a publisher need not wait."
            ),
            beliefs=(
                Belief(
                    name="waits until it is used up",
                    answer=0,
                    because="then every publisher on the session would stand still for a while.",
                ),
                Belief(
                    name="after every frame",
                    answer=window - 1,
                    because="that would be a flow for every transfer.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/reopens-at",
        text=(
            f"The broker announces an incoming-window of {window}. The client publishes"
            f" {many(publish)} of one frame each. How much of the window is left, as the broker"
            " counts, when it opens it again?"
        ),
        unit="frames",
        solve=solve,
        hints=("The same idea as with credit in lesson 01: early enough that nobody waits.",),
    )


@asks
def held(run: Run) -> Question:
    """How many messages leave the queue for a client that takes only a few?"""
    credit, window = run.parameters["link_credit"], announced(run.rows, CLIENT)
    ready = int(run.parameters["messages"] or 0)

    def solve() -> Solution:
        gone = ready - in_queue(run)
        sent = whole(transfers(run.rows))
        most = max(held_in_session(run.rows), default=0)
        batch = run.preset.max_queue_credit
        return Solution(
            answer=gone,
            reason=(
                f"{many(gone).capitalize()} left the queue: {sent} went to the client, and {most}"
                f" wait in the session. The session asks its queue for max_queue_credit, {batch},"
                " at a time, whatever the client has granted, and for more only when those have"
                " been sent."
            ),
            beliefs=(
                Belief(
                    name="nothing leaves that cannot be sent",
                    answer=sent,
                    because=(
                        "link credit goes on to the queue, the window does not: it stops the"
                        " session behind the queue."
                    ),
                ),
                Belief(
                    name="credit empties the queue",
                    answer=ready,
                    because=(
                        "then a client with huge credit would fill the session's memory; that is"
                        " why the session passes it on in small helpings."
                    ),
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/held",
        text=(
            f"{ready} messages are ready. The client has announced a window of {window} and does"
            f" not open it again; it grants link-credit {credit}. How many messages leave the"
            " queue?"
        ),
        solve=solve,
        hints=(
            "Queue, session, wire: the credit governs the first step, the window the second.",
            "A session asks a queue for a limited number at a time. RabbitMQ calls the setting"
            " max_queue_credit; the default is a power of two.",
        ),
    )


@asks
def real_split(rows: Sequence[Row]) -> Question:
    """Does a real broker go on with a message whose credit is taken away in its middle?"""
    request = rabbit_cut(rows)
    before = [row for row in transfers(rows, BROKER, OBSERVED) if row.seq < request.seq]

    def solve() -> Solution:
        following = transfers(rows, BROKER, OBSERVED, after=request.seq)
        return Solution(
            answer=len(following),
            reason=(
                f"{count(len(following), 'frame').capitalize()} followed, the last of them (step"
                f" {step(following[-1].seq)}) without more. Credit pays for a delivery when it"
                " begins; what is left of it needs the window alone [2.6.7]."
            ),
            beliefs=(
                Belief(
                    name="credit 0 stops a message",
                    answer=0,
                    because="the delivery had begun, and its credit was paid with the first frame.",
                ),
                Belief(
                    name="the window is used up",
                    answer=field(request, "incoming_window"),
                    because="the window is a limit; the message ended before it.",
                ),
            ),
            seen=following[-1],
        )

    return Question(
        name=f"{LESSON}/real-split",
        text=(
            f"RabbitMQ has sent {count(len(before), 'frame')} of a message and stands at a closed"
            f" window. In step {step(request.seq)} the client sends one flow with incoming-window"
            f" {field(request, 'incoming_window')} and link-credit"
            f" {field(request, 'link_credit')}. The whole message has {_octets(rows)} octets, and a"
            f" frame took {before[-1].body_bytes} of them. How many frames follow?"
        ),
        unit="frames",
        solve=solve,
        hints=(
            "When is a credit spent: with the first frame of a message, or with the last?",
            "How many octets are left, and how many frames do they need?",
        ),
    )


def _octets(rows: Sequence[Row]) -> int:
    """Octets of the message that a broker delivered in a capture."""
    return sum(row.body_bytes or 0 for row in transfers(rows, BROKER, OBSERVED))


__all__ = [
    "COUNTS_MESSAGES",
    "CREDIT_OPENS",
    "WINDOW_IS_SET",
    "WINDOW_STOPS_ALL",
    "consumers",
    "express",
    "held",
    "more_credit",
    "obeys",
    "real_split",
    "reopens_at",
    "stops_at",
    "tolerated",
    "worked_out",
]
