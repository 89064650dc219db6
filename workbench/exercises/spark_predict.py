"""Questions of lesson 10; answers are read off what was asked of the traces."""

from __future__ import annotations

from collections import Counter
from typing import Any

from workbench.trace.unknowns import UnknownReport

from . import measure
from .predict import asks
from .question import Belief, NotYetError, Question, Solution
from .spark_answers import ROWS_SHOWN, Answer
from .spark_dips import dips_of, held_in, named, peak_after

LESSON = "10"

TOLD = "the sender says so: its flows carry `available`"
FOLLOWS = "nobody says so; but a message follows as soon as the brake is off"
DEPTH = "the broker tells the queue's depth with every grant"
NOBODY = "in none of them: whoever was slow was slow by itself"

_EVIDENCE = {"available": TOLD, "later-frames": FOLLOWS, "internal": DEPTH}

YES_GRANTS = "yes: the broker granted again, so it had taken them"
YES_SETTLED = "yes: each transfer was answered by a disposition"
NO_SETTLED = "no: they were sent settled, and nothing in the capture answers that"


@asks
def evidence(stalls: Answer) -> Question:
    """How is it known, in a capture, that a sender had something to send?"""

    def solve() -> Solution:
        counts = Counter(str(row["evidence"]) for row in stalls.rows)
        most, _ = counts.most_common(1)[0]
        listed = ", ".join(f"{name} {number}" for name, number in counts.most_common())
        return Solution(
            answer=_EVIDENCE[most],
            reason=(
                f"In these captures the evidence is, counted: {listed}. RabbitMQ tells `available`"
                " when it is asked to (echo, drain), and seldom otherwise. A queue's depth is in"
                " no frame at all."
            ),
            beliefs=(
                Belief(
                    name="the depth travels",
                    answer=DEPTH,
                    because="no field of a flow holds it; `available` is nearest, and optional.",
                ),
                Belief(
                    name="available is always told",
                    answer=TOLD,
                    because="it may be left out, and mostly is.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/evidence",
        text=(
            "A stall needs something to send. A capture holds frames and nothing else. How is it"
            " known, for most stalls in these captures, that the sender had something?"
        ),
        choices=(TOLD, FOLLOWS, DEPTH),
        solve=solve,
        hints=("Think of the sender's flows in lesson 03: when did they come, and who asked?",),
    )


@asks
def longest(rates: Answer, asked: Any = None) -> Question:
    """In which dip was a sender held the longest?

    Args:
        rates: the throughput.
        asked: where the stalls are found when they have been asked for; a dict with `stalls`.
    """
    found = dips_of(rates)
    names = {dip.name: named(dip) for dip in found}

    def solve() -> Solution:
        stalls = _asked(asked)
        held = held_in(found, stalls)
        most = max(held, key=lambda name: held[name])
        deepest = min(found, key=lambda dip: dip.rate)
        widest = max(found, key=lambda dip: dip.seconds)
        reason = "; ".join(
            f"{name}: {measure.milliseconds(us):,.0f} ms" for name, us in sorted(held.items())
        )
        return Solution(
            answer=names[most],
            reason=(
                f"The longest that one sender was held: {reason}. The sum of all links shows how"
                " many are slow, not how long one of them waits, nor whether it wants to send."
            ),
            beliefs=(
                Belief(
                    name="the deepest dip is the worst",
                    answer=names[deepest.name],
                    because="it is deep because many links are held at once, each not for long.",
                ),
                Belief(
                    name="the widest dip is the worst",
                    answer=names[widest.name],
                    because="it lasts long, and whoever has nothing to send is not held.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/longest",
        text=(
            "The chart is all you have. Somewhere a sender had messages and was not allowed to send"
            " them. In which dip was one sender held the longest?"
        ),
        choices=tuple(names.values()),
        solve=solve,
        hints=(
            "Throughput is a sum over all links. Does a deep dip mean long, or many?",
            "What is the rate right after a dip, if messages have waited in it?",
        ),
    )


@asks
def nobody(rates: Answer, asked: Any = None) -> Question:
    """In which dip was nobody held?

    Args:
        rates: the throughput.
        asked: as for `longest`.
    """
    found = dips_of(rates)
    names = {dip.name: named(dip) for dip in found}

    def solve() -> Solution:
        held = held_in(found, _asked(asked))
        least = min(held, key=lambda name: held[name])
        words = [f"{dip.name}: up to {peak_after(dip, rates):,.0f}" for dip in found]
        return Solution(
            answer=names[least],
            reason=(
                f"Messages a second right after each dip: {'; '.join(words)}, where"
                f" {found[0].usual:,.0f} are usual. What has waited comes at once when the brake is"
                f" off. After {least} nothing more came than usual: nothing had waited."
            ),
            beliefs=tuple(
                Belief(
                    name="less is sent, so somebody is held",
                    answer=names[dip.name],
                    because="here somebody was; look at what follows each dip.",
                )
                for dip in found
                if dip.name != least
            )[:1],
        )

    return Question(
        name=f"{LESSON}/nobody",
        text="In one of the dips no sender was held: there was nothing to send. In which?",
        choices=tuple(names.values()),
        solve=solve,
        hints=("Compare what comes right after each dip with the usual rate.",),
    )


def _asked(asked: Any) -> Answer:
    stalls = None if asked is None else asked.get("stalls")
    if stalls is None:
        raise NotYetError("Nobody has asked for the stalls yet: run the cell that does, below.")
    answer: Answer = stalls
    return answer


@asks
def most_lost(stalls: Answer, asked: Any = None) -> Question:
    """Which link lost the most time in all?

    Args:
        stalls: the longest stalls, the longest first.
        asked: where the sums are found when they have been asked for; a dict with `lost`.
    """
    first = stalls.row(1)
    worst = _place(first)
    other = next((_place(row) for row in stalls.rows if row["brake"] != first["brake"]), worst)
    never = "a link that is not among the ten longest stalls"

    def solve() -> Solution:
        found = None if asked is None else asked.get("lost")
        if found is None:
            raise NotYetError("Nobody has summed up yet: run the cell that asks for `lost`, below.")
        top = found.rows[0]
        listed = {_place(row) for row in stalls.rows[:ROWS_SHOWN]}
        answer = _place(top) if _place(top) in {worst, other} else never
        inside = "among" if _place(top) in listed else "not among"
        mine = next(row for row in found.rows if _place(row) == worst)
        return Solution(
            answer=answer,
            reason=(
                f"{_place(top)} lost {top['lost_us'] / measure.MICROSECONDS:,.1f} s in all, and is"
                f" {inside} the ten longest; {worst} lost"
                f" {mine['lost_us'] / measure.MICROSECONDS:,.1f} s. Many short stalls in a row are"
                " a link that is always slow, and nobody notices it by its longest one."
            ),
            beliefs=(
                Belief(
                    name="the longest stall is the largest loss",
                    answer=worst,
                    because="it happened once.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/most-lost",
        text=(
            "The table shows the longest stalls. Which link lost the most time in all, every stall"
            " of it counted?"
        ),
        choices=tuple(dict.fromkeys((worst, other, never))),
        solve=solve,
        hints=("A link may be held a thousand times a minute, each time for a moment.",),
    )


def _place(row: Any) -> str:
    return f"{row['run']}, link {row['link']}"


@asks
def claim(report: UnknownReport) -> Question:
    """Can a capture show that a queue has taken what was sent settled?"""

    def solve() -> Solution:
        found = [one for one in report if one.what == "confirmed"]
        listed = "; ".join(f"{one.unknown}: {one.why}" for one in found[:1])
        return Solution(
            answer=NO_SETTLED if found else YES_SETTLED,
            reason=(
                f"{listed}. A grant tells that the broker takes more, which it does from half of"
                " its credit on, and not that a queue has the messages."
                if found
                else "Every message was answered."
            ),
            beliefs=(
                Belief(
                    name="a grant is a confirm",
                    answer=YES_GRANTS,
                    because="credit is about what may come, a disposition about what has come.",
                ),
                Belief(
                    name="every transfer is answered",
                    answer=YES_SETTLED,
                    because="only one that is not settled is.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/claim",
        text=(
            "A colleague reads the capture of this publisher and says: by the end, the queues had"
            " taken all of its messages. Does the capture show that?"
        ),
        choices=(YES_GRANTS, YES_SETTLED, NO_SETTLED),
        solve=solve,
        hints=("What comes back for a transfer with settled=true?",),
    )
