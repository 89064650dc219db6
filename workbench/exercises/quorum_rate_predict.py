"""Questions of lesson 07 about rates and limits; answers are read off runs."""

from __future__ import annotations

from collections.abc import Mapping

from workbench.scenarios.confirming import BATCHES, ONE_AT_A_TIME, PIPELINED, Confirmed
from workbench.scenarios.run import Run

from . import measure
from .measure import about, many
from .predict import asks
from .question import Belief, Question, Solution
from .quorum_runs import arrivals, most_pending, pipelined, slow_at, soft_limit_run

LESSON = "07"

HALF, SAME, QUARTER = "about half", "the same", "about a quarter"


@asks
def slower_sync(in_flight: int, fsync_us: int, times: int) -> Question:
    """What becomes of the rate if an fsync takes several times as long?"""

    def solve() -> Solution:
        fast, slow = pipelined(in_flight, fsync_us), pipelined(in_flight, fsync_us * times)
        answer = SAME
        if about(slow.rate * times, fast.rate):
            answer = HALF
        elif about(slow.rate * times * times, fast.rate):
            answer = QUARTER
        return Solution(
            answer=answer,
            reason=(
                f"{fast.rate:,.0f} messages a second before, {slow.rate:,.0f} now. Whatever is in"
                " flight is synced in one or two batches, and each batch is one fsync, large or"
                " small. So the rate is what is in flight, divided by the time of one to two"
                " fsyncs."
            ),
            beliefs=(
                Belief(
                    name="batches grow and make up for it",
                    answer=SAME,
                    because="a batch cannot hold more than is in flight.",
                ),
                Belief(
                    name="the leader's and the followers' times multiply",
                    answer=QUARTER,
                    because="all disks sync at the same time.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/slower-sync",
        text=(
            f"A publisher keeps {in_flight} messages in flight, and an fsync takes"
            f" {measure.milliseconds(fsync_us):g} ms. On a disk that takes"
            f" {measure.milliseconds(fsync_us * times):g} ms, the rate of confirms is"
        ),
        choices=(SAME, HALF, QUARTER),
        solve=solve,
        hints=("How many messages does one fsync make safe, at most?",),
    )


@asks
def credit_bound(run: Run, publish: int) -> Question:
    """How fast can a publisher be whose credit and round trip are given?"""
    credit = run.preset.publisher_credit
    trip_us = 2 * int(run.parameters["latency_us"])
    one, all_, double = (many * measure.MICROSECONDS // trip_us for many in (1, credit, 2 * credit))
    choices = tuple(f"about {rate:,} a second" for rate in (one, all_, double))

    def solve() -> Solution:
        seen = arrivals(run.then("publish", count=publish).rows)
        reached = (len(seen) - 1) * measure.MICROSECONDS / (seen[-1].t_us - seen[0].t_us)
        near = min(
            zip(choices, (one, all_, double), strict=True), key=lambda each: abs(each[1] - reached)
        )
        return Solution(
            answer=near[0],
            reason=(
                f"{reached:,.0f} messages a second arrived. {credit} credits last for one round"
                " trip; the disk needs no time here, so nothing else can be the brake."
            ),
            beliefs=(
                Belief(
                    name="one message for each round trip",
                    answer=choices[0],
                    because="a whole credit may be on its way at the same time.",
                ),
                Belief(
                    name="two grants are out at a time",
                    answer=choices[-1],
                    because="a grant sets credit and adds nothing (lesson 01).",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/credit-bound",
        text=(
            f"The broker is far away: a round trip takes {measure.milliseconds(trip_us):g} ms. It"
            f" grants {credit} credits, and again at half. The disk needs no time. How fast can one"
            " link publish?"
        ),
        choices=choices,
        solve=solve,
        hints=("What is in flight, divided by how long it is in flight.",),
    )


@asks
def best_way(results: Mapping[str, Confirmed], n: int) -> Question:
    """Which of three ways to confirm is the fastest?"""

    def solve() -> Solution:
        best = max(results, key=lambda way: results[way].rate)
        told = "; ".join(f"{way} {one.rate:,.0f} a second" for way, one in results.items())
        return Solution(
            answer=best,
            reason=(
                f"{told}. A batch is sent, and while it is synced nothing new comes; while the next"
                " one is being sent the disk has nothing to do. With a cap, sending and syncing go"
                " on at the same time."
            ),
            beliefs=(
                Belief(
                    name="batches use the disk best",
                    answer=BATCHES,
                    because="the disk makes its own batches out of whatever waits.",
                ),
                Belief(
                    name="fewer in flight, less to wait for",
                    answer=ONE_AT_A_TIME,
                    because="every message then pays for an fsync of its own.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/best-way",
        text=(
            f"Three publishers, each with a quorum queue of its own: one message and its confirm,"
            f" then the next; batches of {n}, and waiting for all of the batch; never more than {n}"
            " unconfirmed, and each confirm makes room for one more. Which is the fastest?"
        ),
        choices=(ONE_AT_A_TIME, BATCHES, PIPELINED),
        solve=solve,
        hints=("Look for moments at which the disk, or the publisher, has nothing to do.",),
    )


@asks
def soft_limit(limit: int, publish: int) -> Question:
    """How many commands are pending when a queue turns slow?"""

    def solve() -> Solution:
        branch = soft_limit_run(limit, publish)
        pending = slow_at(branch)
        assert pending is not None, "so many are published"
        return Solution(
            answer=pending,
            reason=(
                f"With {pending} pending: the client of the queue looks before it sends, and slow"
                f" is told if {limit} are pending already. So the limit may be reached, and the"
                " next one turns the queue slow."
            ),
            beliefs=(
                Belief(
                    name="at the limit",
                    answer=limit,
                    because="it looks before the command counts.",
                ),
                Belief(
                    name="when credit is used up",
                    answer=most_pending(branch),
                    because="that is another limit, and another process keeps it.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/soft-limit",
        text=(
            f"The session keeps every command that the queue has not answered. With a soft limit of"
            f" {limit}, how many are pending when the queue first counts as slow?"
        ),
        unit="commands",
        solve=solve,
        hints=("Is the limit looked at before or after the command is counted?",),
    )


@asks
def overshoot(limit: int, publish: int) -> Question:
    """And how many will be pending at most?"""

    def solve() -> Solution:
        branch = soft_limit_run(limit, publish)
        most = most_pending(branch)
        return Solution(
            answer=most,
            reason=(
                f"{most}. An AMQP 1.0 session does not heed the soft limit: its links stop when"
                " their credit is used up, and credit is withheld while too many are unconfirmed."
                " (In AMQP 0-9-1 the channel heeds it, and stops granting to the reader; what the"
                " reader may still push goes beyond the limit as well.)"
            ),
            beliefs=(
                Belief(
                    name="the soft limit stops the publisher",
                    answer=slow_at(branch) or 0,
                    because="it is told to the session, and this kind of session goes on.",
                ),
                Belief(
                    name="nothing stops it",
                    answer=publish,
                    because="credit does; lesson 05 is about how.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/overshoot",
        text=(
            f"The disk hangs, and the publisher has {many(publish)} for the queue over AMQP 1.0."
            " How many messages wait for their confirm at most?"
        ),
        solve=solve,
        hints=("What held a publisher to a queue that hangs, in lesson 05?",),
    )
