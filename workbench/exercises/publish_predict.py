"""Questions of lesson 05 about publishers; answers are read off a run."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.scenarios.run import Run
from workbench.trace.schema import Row
from workbench.trace.words import count

from . import measure
from .measure import many
from .predict import asks
from .publish_runs import (
    FIRST,
    about,
    blocks,
    consumed,
    counter_before,
    dispositions,
    first_link,
    granted,
    grants,
    rate,
    sent,
    stalled,
)
from .question import Belief, Question, Solution

LESSON = "05"

WAITS_FOR_ZERO = "waits until it is used up"
ONLY_UNSETTLED = "settled messages do not count"
WHOLE_CONNECTION = "a stall holds the connection"

AS_FAST = "as fast as before"
SHARED = "slower: the links share what is left"
AS_SLOW = "as slow as the slow one"


@asks
def regrant(run: Run, publish: int) -> Question:
    """How much credit is left when the broker grants again?"""
    first = granted(grants(run.rows)[0])

    def solve() -> Solution:
        branch = run.then("publish", queue=FIRST, count=publish)
        again = grants(branch.rows)[1]
        left = counter_before(branch.rows, again.seq, "link_credit")
        return Solution(
            answer=left,
            reason=(
                f"The flow of step {measure.step(again.seq)} comes when {left} of {first} are left:"
                " at half, not below it. The grant travels while the other half is being used, so"
                " the publisher does not run dry."
            ),
            beliefs=(
                Belief(
                    name=WAITS_FOR_ZERO,
                    answer=0,
                    because="then the publisher would stand still for a round trip each time.",
                ),
                Belief(
                    name="below half",
                    answer=first // 2 - 1,
                    because=f"at most half is the rule: {left} are enough.",
                ),
                Belief(
                    name="after every message",
                    answer=first - 1,
                    because="a flow for each message would double the frames.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/regrant",
        text=(
            f"The broker has granted {first}. The application publishes steadily, and the queue"
            " confirms at once. How much credit is left, as the broker counts, when it grants"
            " again?"
        ),
        unit="link-credit",
        solve=solve,
        hints=("Lesson 01 had a rule for consumers that looks the same.",),
    )


def _stop_reason(run: Run) -> str:
    """Why a publisher to a stalled queue stops where it does."""
    flows, block = grants(run.rows), blocks(run.rows)
    gate = granted(flows[0])
    steps = [
        f"with {counter_before(run.rows, flow.seq, 'unconfirmed')} unconfirmed it granted again"
        for flow in flows[1:]
    ]
    words = "; then ".join(steps)
    if not block:
        return f"At each half the broker looked: {words}."
    unconfirmed = (block[0].ledger or {})["unconfirmed"]
    return (
        f"At each half the broker looked: {words}; but with {unconfirmed} it did not, for fewer"
        f" than {gate} must wait. What was granted already may still be used."
    )


@asks
def stall_takes(run: Run, publish: int) -> Question:
    """How many messages go out to a queue that never confirmed any?"""
    first = granted(grants(run.rows)[0])

    def solve() -> Solution:
        branch = stalled(run, publish)
        took = sent(branch.rows)
        return Solution(
            answer=took,
            reason=f"{many(took).capitalize()} went out. {_stop_reason(branch)}",
            beliefs=(
                Belief(
                    name="the first grant is all",
                    answer=first,
                    because="when half of it was used, not enough messages waited to refuse more.",
                ),
                Belief(
                    name="nothing goes to a queue that stalls",
                    answer=0,
                    because="the broker does not know that the queue stalls; it only counts.",
                ),
                Belief(
                    name="credit is granted whatever waits",
                    answer=publish,
                    because="then a queue that hangs would fill the broker's memory.",
                ),
            ),
            seen=measure.last_frame(branch.rows, "transfer"),
        )

    return Question(
        name=f"{LESSON}/stall-takes",
        text=(
            f"The queue hangs from the beginning: it confirms nothing. The application wants to"
            f" publish {many(publish)}. The broker grants {first} at first, again when half is"
            f" used, and only while fewer than {first} messages wait for a confirm. How many"
            " messages go out?"
        ),
        solve=solve,
        hints=(
            "When half of the first grant is used, how many wait for a confirm? Few enough?",
            "And when half of the second grant is used? The other half may still be used.",
        ),
    )


@asks
def one_confirmed(run: Run, publish: int, confirmed: int) -> Question:
    """And if the queue had confirmed one before it hung?"""

    def solve() -> Solution:
        branch = stalled(run, publish, confirmed=confirmed)
        took, without = sent(branch.rows), sent(stalled(run, publish).rows)
        return Solution(
            answer=took,
            reason=(
                f"{many(took).capitalize()} in all. {_stop_reason(branch)} One message fewer"
                " waited at the decisive moment, and that was worth a whole grant."
            ),
            beliefs=(
                Belief(
                    name="one more confirmed, one more sent",
                    answer=without + confirmed,
                    because="the gate is looked at only at half; there it is open or shut.",
                ),
                Belief(
                    name="confirmed ones do not matter",
                    answer=without,
                    because="they wait no longer, and waiting is what is counted.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/one-confirmed",
        text=(
            f"The same again, but the queue confirms {many(confirmed)} and only then hangs. How"
            " many messages go out in all, the confirmed included?"
        ),
        solve=solve,
        hints=("Go to the second half again: how many wait now? Compare it with the limit.",),
    )


@asks
def settled_takes(run: Run, publish: int) -> Question:
    """How many settled messages go out to a queue that hangs?"""
    first = granted(grants(run.rows)[0])

    def solve() -> Solution:
        branch = stalled(run, publish)
        took = sent(branch.rows)
        told = len(dispositions(branch.rows))
        return Solution(
            answer=took,
            reason=(
                f"{many(took).capitalize()} went out, and {count(told, 'disposition')} came back."
                " Inside the broker the queue confirms every message, whether or not the client"
                " wants to hear of it; the broker counts them all."
            ),
            beliefs=(
                Belief(
                    name=ONLY_UNSETTLED,
                    answer=publish,
                    because="a publisher that does not want confirms could then flood a queue.",
                ),
                Belief(
                    name="the first grant is all",
                    answer=first,
                    because="it is the same rule as for unsettled messages.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/settled-takes",
        text=(
            f"The queue hangs from the beginning, and the client sends its {many(publish)} settled:"
            " it wants no outcome. How many go out?"
        ),
        solve=solve,
        hints=("What does the broker count: dispositions that it owes, or messages that wait?",),
    )


@asks
def told_in(run: Run, messages: int) -> Question:
    """How many dispositions tell of messages that are confirmed together?"""

    def solve() -> Solution:
        frames = len(dispositions(run.rows))
        return Solution(
            answer=frames,
            reason=(
                f"{count(frames, 'disposition')} for {many(messages)}: the session had gathered"
                " what came in one moment and told the whole range of delivery-ids, first to last"
                " [2.7.6]."
            ),
            beliefs=(
                Belief(
                    name="one frame a message",
                    answer=messages,
                    because="a disposition names a range of delivery-ids, and a range may be long.",
                ),
                Belief(
                    name="confirms are silent",
                    answer=0,
                    because="they were not sent settled, so the client is told.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/told-in",
        text=(
            f"{many(messages).capitalize()} wait for their confirm. Then the queue takes all of"
            " them in one moment. How many dispositions does the client get?"
        ),
        unit="dispositions",
        solve=solve,
        hints=("Which fields does a disposition have besides `first`?",),
    )


@asks
def beside_slow(fair: Run, slow: Run, link: str, slow_link: str) -> Question:
    """How fast is a link whose neighbour's target is slow?"""

    def solve() -> Solution:
        alone, beside = rate(fair, link), rate(slow, link)
        crawl = rate(slow, slow_link)
        answer = AS_SLOW if about(beside, crawl) else SHARED
        if about(beside, alone):
            answer = AS_FAST
        return Solution(
            answer=answer,
            reason=(
                f"{link} took {beside:,.0f} messages a second beside the slow target, and"
                f" {alone:,.0f} without it; {slow_link} took {crawl:,.0f}. Each link has credit of"
                " its own, and it is withheld from the link whose queue does not confirm."
            ),
            beliefs=(
                Belief(
                    name=WHOLE_CONNECTION,
                    answer=AS_SLOW,
                    because="so it is in AMQP 0-9-1 (lesson 06), where only TCP can say stop.",
                ),
                Belief(
                    name="links share one credit",
                    answer=SHARED,
                    because="credit belongs to a link; nothing is taken from the others.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/beside-slow",
        text=(
            f"The client publishes to three queues over one session. The queue of {slow_link} is"
            f" now many times slower than before. What becomes of {link}?"
        ),
        choices=(AS_FAST, SHARED, AS_SLOW),
        solve=solve,
        hints=("From which link is credit withheld, and which counter decides that?",),
    )


@asks
def both_ways(run: Run, link_credit: int) -> Question:
    """How many messages does a client get whose publishing is stopped?"""
    at = run.last

    def solve() -> Solution:
        branch = run.then("grant", link_credit=link_credit)
        came = consumed(branch, after=at)
        return Solution(
            answer=came,
            reason=(
                f"{many(came).capitalize()} came over the receiving link, while the sending link"
                " stood still. What stops a sender is the receiver's credit for *its* link; the"
                " other direction, and every acknowledgement, goes on."
            ),
            beliefs=(
                Belief(
                    name=WHOLE_CONNECTION,
                    answer=0,
                    because="the broker goes on reading this connection; only transfers of one link"
                    " are missing.",
                ),
            ),
            seen=measure.last_frame(branch.rows, "transfer"),
        )

    return Question(
        name=f"{LESSON}/both-ways",
        text=(
            "The client's link to the stalled queue stands still. On the same connection it has a"
            f" receiving link, and grants {link_credit} there; so many are ready. How many come?"
        ),
        solve=solve,
        hints=("Does a stalled queue close the session's window?",),
    )


@asks
def changed_setting(run: Run, link_credit: int, publish: int) -> Question:
    """What does the next grant say when max_link_credit was changed meanwhile?"""
    at = run.last

    def solve() -> Solution:
        branch = run.then("set_max_link_credit", link_credit=link_credit).then(
            "publish", count=publish
        )
        next_grant = grants(branch.rows, after=at)[0]
        return Solution(
            answer=granted(next_grant),
            reason=(
                f"The flow of step {measure.step(next_grant.seq)} grants {granted(next_grant)}."
                " RabbitMQ's session reads the setting when it begins, and keeps it. A new session"
                " gets the new number; who is connected already notices nothing."
            ),
            beliefs=(
                Belief(
                    name="settings work at once",
                    answer=link_credit,
                    because="only sessions that begin later read it.",
                ),
                Belief(
                    name="credit is taken back",
                    answer=0,
                    because="the broker never lowers a publisher's credit here.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/changed-setting",
        text=(
            f"The operator sets max_link_credit to {link_credit} while the publisher's link is"
            " attached. What does the next grant on that link say?"
        ),
        unit="link-credit",
        solve=solve,
        hints=("Who remembers the number: the broker, the connection, the session or the link?",),
    )


@asks
def real_regrant(rows: Sequence[Row]) -> Question:
    """After how many messages does a real broker grant again?"""
    flows = first_link(rows)

    def solve() -> Solution:
        after = int((flows[1].frame or {})["delivery_count"])
        first = granted(flows[0])
        return Solution(
            answer=after,
            reason=(
                f"The flow of step {measure.step(flows[1].seq)} carries delivery-count {after} and"
                f" link-credit {granted(flows[1])}: {first - after} were left. Your section 1, on a"
                " real wire."
            ),
            beliefs=(
                Belief(
                    name="below half",
                    answer=first - first // 2 + 1,
                    because="the article says below half; the wire says at half.",
                ),
                Belief(
                    name=WAITS_FOR_ZERO,
                    answer=first,
                    because="it does not wait so long.",
                ),
            ),
            seen=flows[1],
        )

    return Question(
        name=f"{LESSON}/real-regrant",
        text=(
            f"This capture begins with a grant of {granted(flows[0])} (step"
            f" {measure.step(flows[0].seq)}). After how many messages does RabbitMQ grant again on"
            " this link?"
        ),
        solve=solve,
        hints=("It is the rule of section 1.",),
    )


__all__ = [
    "beside_slow",
    "both_ways",
    "changed_setting",
    "one_confirmed",
    "real_regrant",
    "regrant",
    "settled_takes",
    "stall_takes",
    "told_in",
]
