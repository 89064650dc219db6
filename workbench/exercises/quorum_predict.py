"""Questions of lesson 07 about disks and crashes; answers are read off a run.

Those about rates and limits are in `quorum_rate_predict`, and are offered here as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.scenarios.run import Run
from workbench.trace.replicas import COMMITTED, CONFIRMED, REPLICATED, Replicas

from . import measure
from .measure import about, link_rate, many
from .predict import asks
from .question import Belief, Question, Solution
from .quorum_rate_predict import (
    LESSON,
    best_way,
    credit_bound,
    overshoot,
    slower_sync,
    soft_limit,
)
from .quorum_runs import (
    arrivals,
    confirm_us,
    crashed,
    newest,
    on_disk_when,
    sent_again,
    slowed,
    took_over,
)

LEADERS_DISK = "it is on the leader's disk"
MEMORY = "a majority of the replicas has it in memory"
MAJORITY = "it is on the disks of a majority, and the leader has heard so"
EVERYBODY = "it is on the disk of every replica"

AS_BEFORE = "as soon as before"
AS_SLOW = "only after the slow disk's time"

PUBLISHER = "the publisher, which has heard no outcome"
SESSION = "the broker's session, which keeps what no queue has answered"
NEW_LEADER = "nobody: the new leader has them in its log"
NOBODY = "nobody: they are lost"

AS_FAST = "as fast as without the slow disk"
SHARED = "slower: the links share the session's window"
TOGETHER = "as slow as the quorum queue"


@asks
def trigger(run: Run) -> Question:
    """What has to be so before a message is confirmed?"""

    def solve() -> Solution:
        branch = run.then("publish", count=1)
        story = Replicas(branch.rows)
        message = newest(story)
        heard = on_disk_when(story, message)
        leader = story.leader.at(message.done[COMMITTED])
        answer = MAJORITY
        if len(heard) == len(story.nodes):
            answer = EVERYBODY
        elif len(heard) < story.majority:
            answer = LEADERS_DISK if leader in heard else MEMORY
        disks = ", ".join(heard)
        in_memory = next(
            step for step in message.logs.steps if story.lamp(message, REPLICATED, step)[0]
        )
        lag = branch.rows[message.done[COMMITTED] - 1].t_us - branch.rows[in_memory - 1].t_us
        return Solution(
            answer=answer,
            reason=(
                f"When the leader took the message for committed, {disks} had told of it:"
                f" {len(heard)} of {len(story.nodes)}, and {story.majority} are a majority. A"
                f" majority had it in memory {measure.milliseconds(lag):,.1f} ms earlier; that"
                " counts for nothing, for memory does not survive a loss of power."
            ),
            beliefs=(
                Belief(
                    name="the leader alone decides",
                    answer=LEADERS_DISK,
                    because="if its disk were lost, nobody else need have the message.",
                ),
                Belief(
                    name="memory is enough",
                    answer=MEMORY,
                    because="all nodes may lose their power at once.",
                ),
                Belief(
                    name="every replica must have it",
                    answer=EVERYBODY,
                    because="then one slow or dead node would stop the queue.",
                ),
            ),
            seen=branch.rows[message.done[COMMITTED] - 1],
        )

    return Question(
        name=f"{LESSON}/trigger",
        text=(
            "The five disks need different times for an fsync. One message is published. It is"
            " confirmed as soon as"
        ),
        choices=(LEADERS_DISK, MEMORY, MAJORITY, EVERYBODY),
        solve=solve,
        hints=(
            "Which crashes must a confirmed message survive?",
            "Two of five nodes may be lost for ever, whichever two.",
        ),
    )


@asks
def slow_disks(run: Run, nodes: Sequence[str], fsync_ms: int) -> Question:
    """When is a message confirmed if these disks are slow?"""
    names = ", ".join(nodes)
    story = Replicas(run.then("publish", count=1).rows)
    leads = story.leader.now in nodes
    kind = "majority" if len(nodes) >= story.majority else "leader" if leads else "follower"

    def solve() -> Solution:
        slow = slowed(run, nodes, fsync_ms).then("publish", count=1)
        took, before = confirm_us(slow), confirm_us(run.then("publish", count=1))
        assert took is not None
        assert before is not None
        story = Replicas(slow.rows)
        heard = on_disk_when(story, newest(story))
        return Solution(
            answer=AS_BEFORE if about(took, before) else AS_SLOW,
            reason=(
                f"The confirm came {measure.milliseconds(took):,.1f} ms after the message, and"
                f" {measure.milliseconds(before):,.1f} ms with equal disks. The leader then knew"
                f" of the disks of {', '.join(heard)}; {story.majority} are needed, and none of"
                " them has to be its own."
            ),
            beliefs=(
                Belief(
                    name="the slowest disk decides",
                    answer=AS_SLOW,
                    because="the fastest majority decides, not the slowest disk.",
                ),
                Belief(
                    name="one disk is like another",
                    answer=AS_BEFORE,
                    because="without these there is no majority of fast disks.",
                ),
            ),
        )

    whose = " (the leader is among them)" if len(nodes) > 1 else ", which leads,"
    return Question(
        name=f"{LESSON}/slow-{kind}",
        text=(
            f"On {names}{whose if leads else ''} an fsync now takes {fsync_ms} ms; the other disks"
            " are as they were. When is a message confirmed?"
        ),
        choices=(AS_BEFORE, AS_SLOW),
        solve=solve,
        hints=("How many disks must have it? How many fast ones are left?",),
    )


@asks
def who_resends(run: Run, pending: int) -> Question:
    """Who sends the pending messages again when the leader has crashed?"""

    def solve() -> Solution:
        branch = crashed(run, pending)
        crash = next(row for row in branch.rows if row.event == "crash")
        again = sent_again(branch)
        frames = arrivals(branch.rows, event="sent", after=crash.seq)
        told = sum(1 for each in Replicas(branch.rows).messages.values() if CONFIRMED in each.done)
        answer = NOBODY
        if frames:
            answer = PUBLISHER
        elif again:
            answer = SESSION
        elif told == pending:
            answer = NEW_LEADER
        elected = took_over(branch)
        return Solution(
            answer=answer,
            reason=(
                f"After the crash in step {measure.step(crash.seq)} the publisher sent"
                f" {many(len(frames))}. {elected.vantage.rpartition('@')[-1]} was elected in step"
                f" {measure.step(elected.seq)}, and the session sent it everything that no queue"
                f" had answered; {many(told)} are confirmed in the end. The publisher has seen"
                " nothing but a pause."
            ),
            beliefs=(
                Belief(
                    name="the publisher must send again",
                    answer=PUBLISHER,
                    because="its link and its session are as they were; it only waits longer.",
                ),
                Belief(
                    name="followers have everything",
                    answer=NEW_LEADER,
                    because="what the leader had just taken nobody else had yet.",
                ),
                Belief(
                    name="what is pending is lost",
                    answer=NOBODY,
                    because="whoever sent a command keeps it until the queue has answered.",
                ),
            ),
            seen=elected,
        )

    return Question(
        name=f"{LESSON}/who-resends",
        text=(
            f"{many(pending).capitalize()} have just come to the leader, and none is confirmed. The"
            " leader's node loses its power, and another replica is elected. Who sends these"
            " messages to the new leader?"
        ),
        choices=(PUBLISHER, SESSION, NEW_LEADER, NOBODY),
        solve=solve,
        hints=("Where does a message wait for its confirm, besides in the publisher?",),
    )


@asks
def twice(run: Run, pending: int) -> Question:
    """How many messages are in the queue when all were sent to a log that had them already?"""

    def solve() -> Solution:
        branch = crashed(run, pending, REPLICATED)
        again = sum(part[-1] for row in sent_again(branch) for part in row.extra["messages"])
        ready = next(
            int((row.ledger or {})["queue_ready"])
            for row in reversed(branch.rows)
            if row.event == "apply"
        )
        return Solution(
            answer=ready,
            reason=(
                f"{many(ready).capitalize()}. The session sent {again} again, and the new leader's"
                " log holds both copies; but each message carries its sender's number, and a queue"
                " that has applied a number passes over it the second time."
            ),
            beliefs=(
                Belief(
                    name="what is sent again is there twice",
                    answer=ready + again,
                    because="the log has two entries, the queue one message.",
                ),
                Belief(
                    name="what was not confirmed is gone",
                    answer=0,
                    because="entries in the logs of a majority survive this crash.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/twice",
        text=(
            f"{many(pending).capitalize()} are in the logs of a majority, but not yet on their"
            " disks. The leader crashes; the next one has them in its log, and the session sends"
            " all of them again. How many messages are in the queue in the end?"
        ),
        solve=solve,
        hints=("How could a queue know that it has a message already?",),
    )


@asks
def beside(fast: Run, slow: Run, link: str, slow_link: str) -> Question:
    """What becomes of the link to a classic queue beside a slow quorum queue?"""

    def solve() -> Solution:
        alone, now, crawl = link_rate(fast, link), link_rate(slow, link), link_rate(slow, slow_link)
        answer = TOGETHER if about(now, crawl) else SHARED
        if about(now, alone):
            answer = AS_FAST
        return Solution(
            answer=answer,
            reason=(
                f"{link} took {now:,.0f} messages a second beside the slow disk, and {alone:,.0f}"
                f" without it; {slow_link} took {crawl:,.0f}. Only the link whose own messages wait"
                " for a confirm gets no credit."
            ),
            beliefs=(
                Belief(
                    name="a stall holds the connection",
                    answer=TOGETHER,
                    because="so it is in AMQP 0-9-1, where only TCP can say stop.",
                ),
                Belief(
                    name="links share one credit",
                    answer=SHARED,
                    because="a frame is worked off, and the window opened, before the queue has"
                    " synced.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/beside",
        text=(
            f"One session publishes to a {link} and to a {slow_link} queue. The disk of the quorum"
            f" queue becomes many times slower. What becomes of the link to the {link} queue?"
        ),
        choices=(AS_FAST, SHARED, TOGETHER),
        solve=solve,
        hints=("From which link is credit withheld, and which counter decides that?",),
    )


__all__ = [
    "LESSON",
    "beside",
    "best_way",
    "credit_bound",
    "overshoot",
    "slow_disks",
    "slower_sync",
    "soft_limit",
    "trigger",
    "twice",
    "who_resends",
]
