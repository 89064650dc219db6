"""Questions of lesson 01. Each answer, and each wrong one that is known, is read off a run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from workbench.scenarios.run import Run
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, Row
from workbench.trace.words import count

from . import measure
from .compare import Comparison
from .predict import asks
from .question import Belief, Question, Solution

LESSON = "01"


def many(number: int) -> str:
    """`1 message`, `no messages`, and so on."""
    return count(number, "message")


@asks
def before_any_flow(run: Run) -> Question:
    """How many messages come before the receiver has granted anything?"""
    ready = run.parameters["messages"]

    def solve() -> Solution:
        sent = measure.messages(run.rows)
        credits = [measure.credit(run.rows, end) for end in (BROKER, CLIENT)]
        rest = "The run is at rest: nothing is due any more" if run.rested else run.note
        return Solution(
            answer=sent,
            reason=(
                f"The queue sent {many(sent)}. link-credit is {credits[0]} at the sender and"
                f" {credits[1]} at the receiver. {rest} (step {measure.step(run.last)} is the"
                " last). A sender may begin a delivery only while its link-credit is above zero,"
                " and only the receiver's flow raises it [2.6.7]."
            ),
            beliefs=(
                Belief(
                    name="the queue pushes",
                    answer=int(ready or 0),
                    because=(
                        f"{many(int(ready or 0))} are ready, but a link that is attached is no"
                        " permission to send."
                    ),
                ),
                Belief(
                    name="one comes on trial",
                    answer=1,
                    because="no message goes ahead of the first flow, not even one.",
                ),
            ),
            seen=run.rows[run.start_seq],
        )

    return Question(
        name=f"{LESSON}/before-any-flow",
        text=(
            f"{many(int(ready or 0))} are ready in the queue. The receiver has attached its link"
            " and sends no flow. How many messages does the queue send, however long we wait?"
        ),
        solve=solve,
    )


@asks
def after_grant(run: Run, link_credit: int) -> Question:
    """How many transfers follow one flow?"""
    start = run.start_seq

    def solve() -> Solution:
        branch = run.act(start, "grant", link_credit=link_credit)
        sent = measure.messages(branch.rows, after=start)
        left = measure.credit(branch.rows, BROKER)
        ready = measure.counter(branch.rows, BROKER, "available")
        return Solution(
            answer=sent,
            reason=(
                f"The flow carries link-credit {measure.grants(branch.rows)[-1]} and each transfer"
                f" uses one, so the queue sends {many(sent)} and stops with link-credit {left};"
                f" {many(ready or 0)} stay in the queue."
            ),
            beliefs=(
                Belief(
                    name="a flow opens the tap",
                    answer=sent + (ready or 0),
                    because="a flow is not a switch; it names how many.",
                ),
                Belief(
                    name="one flow, one message",
                    answer=1,
                    because="that is a flow with link-credit 1; the number in it counts messages.",
                ),
            ),
            seen=measure.last_frame(branch.rows, "transfer"),
        )

    return Question(
        name=f"{LESSON}/after-grant",
        text=(
            f"Now the receiver sends one flow(link-credit={link_credit}). How many transfers follow"
            " it?"
        ),
        solve=solve,
    )


def granted_again(run: Run, grants: Sequence[int], publish: int) -> Run:
    """The run in which the receiver grants several times before there is anything to send."""
    for link_credit in grants:
        run = run.then("grant", link_credit=link_credit)
    return run.then("publish", count=publish)


@asks
def granted_twice(run: Run, link_credit: int, publish: int) -> Question:
    """Do two grants add up?"""
    grants = (link_credit, link_credit)

    def solve() -> Solution:
        branch = granted_again(run, grants, publish)
        sent = measure.messages(branch.rows)
        held = [
            measure.credit(branch.rows, BROKER, upto=row.seq)
            for row in measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=CLIENT)
        ]
        return Solution(
            answer=sent,
            reason=(
                f"After the flows the sender's link-credit was {', then '.join(map(str, held))}:"
                " a flow sets credit relative to the delivery-count that it carries, and both"
                f" carried the same. So {many(sent)} came and {publish - sent} wait."
            ),
            beliefs=(
                Belief(
                    name="adds",
                    answer=sum(grants),
                    because=f"flow(link-credit={link_credit}) twice is the same sentence twice.",
                ),
                Belief(
                    name="everything published",
                    answer=publish,
                    because="what is published does not matter once credit is used up.",
                ),
            ),
            seen=measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=CLIENT)[-1],
        )

    return Question(
        name=f"{LESSON}/granted-twice",
        text=(
            f"The queue is empty. The receiver sends flow(link-credit={link_credit}), and then once"
            f" more flow(link-credit={link_credit}). After that {many(publish)} are published. How"
            " many of them come?"
        ),
        solve=solve,
    )


@asks
def after_stop(run: Run, at: int) -> Question:
    """How many messages still arrive after the receiver has set its credit to zero?"""

    def solve() -> Solution:
        branch = run.act(at, "grant", link_credit=0)
        late = measure.messages(branch.rows, event=RECEIVED, after=at)
        flying = measure.in_flight(branch.rows, "transfer", at)
        flow = measure.frames(branch.rows, "flow", event=RECEIVED, from_peer=CLIENT, after=at)
        more = late - flying
        granted = max(measure.grants(run.rows))
        return Solution(
            answer=late,
            reason=(
                f"{many(flying)} were on the wire when the flow left, and the queue sent"
                f" {count(more, 'more', 'more')} before the flow reached it (step"
                f" {measure.step(flow[-1].seq)})."
                " Nothing on a wire can be called back; the receiver must take what still comes."
            ),
            beliefs=(
                Belief(
                    name="takes back",
                    answer=0,
                    because=(
                        "the receiver's own ledger shows no credit at once, but the sender learns"
                        " of it one latency later."
                    ),
                ),
                Belief(
                    name="only what is in flight",
                    answer=flying,
                    because="the flow travels too, and until it arrives the sender goes on.",
                ),
                Belief(
                    name="a grant stands",
                    answer=granted - measure.messages(branch.rows, event=RECEIVED, upto=at),
                    because="a later flow lowers credit as well as it raises it.",
                ),
            ),
            seen=measure.last_frame(branch.rows, "transfer", event=RECEIVED),
        )

    arrived = measure.messages(run.rows, event=RECEIVED, upto=at)
    return Question(
        name=f"{LESSON}/after-stop",
        text=(
            f"{many(arrived)} have arrived when the receiver changes its mind and sends"
            " flow(link-credit=0). How many messages arrive after that?"
        ),
        solve=solve,
    )


@asks
def after_acknowledging(run: Run) -> Question:
    """Does acknowledging bring more messages?"""
    at = run.last
    unsettled = measure.messages(run.rows, event=RECEIVED)

    def solve() -> Solution:
        branch = run.act(at, "acknowledge")
        sent = measure.messages(branch.rows, after=at)
        settled = measure.frames(branch.rows, "disposition", event=RECEIVED, after=at)
        before = measure.credit(branch.rows, BROKER, upto=at)
        after = measure.credit(branch.rows, BROKER)
        return Solution(
            answer=sent,
            reason=(
                f"{count(len(settled), 'disposition')} reached the sender, and its link-credit was"
                f" {before} before and {after} after: a disposition settles deliveries and says"
                f" nothing about credit. {count(sent, 'transfer').capitalize()} followed."
            ),
            beliefs=(
                Belief(
                    name="acknowledging grants",
                    answer=unsettled,
                    because="in AMQP 0-9-1 an ack makes room in the prefetch; here it does not.",
                ),
                Belief(
                    name="acknowledging renews one",
                    answer=1,
                    because="no credit comes of it, not even one.",
                ),
            ),
            seen=settled[-1],
        )

    return Question(
        name=f"{LESSON}/after-acknowledging",
        text=(
            f"{many(unsettled)} have arrived, credit is used up, and more messages are ready. The"
            " receiver acknowledges all that has arrived and grants nothing. How many transfers"
            " follow?"
        ),
        solve=solve,
    )


@asks
def fastest_rule(comparison: Comparison) -> Question:
    """Which rule fetches messages fastest?"""

    def solve() -> Solution:
        ranked = sorted(comparison.results, key=lambda one: one.rate, reverse=True)
        best, worst = ranked[0], ranked[-1]
        order = " > ".join(f"{one.rule} {one.rate:,.0f}/s" for one in ranked)
        reason = (
            f"{order}. {worst.rule} leaves the sender held by link-credit {worst.held:.0%} of the"
            f" time, {best.rule} {best.held:.0%}: what counts is that the next grant arrives before"
            " the last credit is used."
        )
        wrong = [
            Belief(
                name="waiting costs nothing",
                answer=one.rule,
                because=(
                    f"with {one.rule} the sender runs out of credit and is held {one.held:.0%} of"
                    " the time while a flow is on its way."
                ),
            )
            for one in ranked[1:]
        ]
        return Solution(answer=best.rule, reason=reason, beliefs=tuple(wrong))

    return Question(
        name=f"{LESSON}/fastest-rule",
        text="Which rule brings the most messages a second over this wire?",
        choices=tuple(comparison.runs),
        solve=solve,
    )


@asks
def proton_again(run: Run, count_each: int) -> Question:
    """What does a real Proton receiver send when `receiver.flow(n)` is called twice?"""

    def solve() -> Solution:
        once = run.act(run.start_seq, "flow", count=count_each)
        flow = measure.seq_of(once.rows, "flow", event="sent")
        branch = once.act(flow, "flow", count=count_each)
        carried = measure.grants(branch.rows)
        return Solution(
            answer=carried[-1],
            reason=(
                f"The frames carry link-credit {' and '.join(map(str, carried))}. On the wire"
                " credit is absolute, as always; but Proton's flow(n) adds n to what it has granted"
                " and sends the sum. The rule belongs to the library, not to AMQP."
            ),
            beliefs=(
                Belief(
                    name="sets",
                    answer=count_each,
                    because="that is what the frame means, not what this function does.",
                ),
            ),
            seen=once.rows[flow],
        )

    return Question(
        name=f"{LESSON}/proton-again",
        text=(
            f"A program calls Proton's receiver.flow({count_each}) twice in a row, before anything"
            " has arrived. Which link-credit does the second flow frame carry?"
        ),
        unit="link-credit",
        solve=solve,
    )


@asks
def rabbit_flows(rows: Sequence[Row]) -> Question:
    """What did a real broker do about two equal flows?"""
    pair = same_flows(rows)

    def solve() -> Solution:
        following = _until_next_grant(rows, pair[-1])
        carried = [measure.numbers(row, "link_credit")["link_credit"] for row in pair]
        base = measure.numbers(pair[0], "delivery_count")["delivery_count"]
        sent = measure.messages(following, event=OBSERVED)
        return Solution(
            answer=sent,
            reason=(
                f"{count(sent, 'transfer')} follow steps {first} and {second}, which"
                f" both say delivery-count {base}, link-credit {carried[0]}. A real RabbitMQ sets,"
                " as the specification says."
            ),
            beliefs=(
                Belief(
                    name="adds",
                    answer=sum(carried),
                    because=f"{' + '.join(map(str, carried))} is no sum on the wire.",
                ),
            ),
            seen=following[-1],
        )

    first, second = measure.step(pair[0].seq), measure.step(pair[-1].seq)
    credit = (pair[0].frame or {})["link_credit"]
    return Question(
        name=f"{LESSON}/rabbit-flows",
        text=(
            f"In this capture the client sends flow(link-credit={credit}) twice, steps {first}"
            f" and {second}, with nothing between them. How many transfers follow?"
        ),
        solve=solve,
    )


def same_flows(rows: Sequence[Row]) -> tuple[Row, Row]:
    """The first two grants of a capture that follow each other and say the same.

    Raises:
        ValueError: if there are none.
    """
    grants = measure.observed_grants(rows)
    for first, second in pairwise(grants):
        same = _said(first) == _said(second)
        if same and not measure.messages(rows, event=OBSERVED, after=first.seq, upto=second.seq):
            return first, second
    raise ValueError("no two equal flows follow each other in this trace")


def _said(row: Row) -> dict[str, Any]:
    return measure.numbers(row, "handle", "delivery_count", "link_credit")


def _until_next_grant(rows: Sequence[Row], grant: Row) -> list[Row]:
    later = [row.seq for row in measure.observed_grants(rows) if row.seq > grant.seq]
    end = later[0] if later else rows[-1].seq
    return [row for row in rows if grant.seq < row.seq <= end]
