"""Questions of lesson 02 about the race; answers and what beliefs lead to come from runs.

The questions about counting (wrap-around, ATM, audit) are in `count_predict`.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.scenarios import beliefs
from workbench.scenarios.race import plans_of
from workbench.scenarios.rules import rule_named
from workbench.scenarios.run import Run
from workbench.trace.explain import explain
from workbench.trace.schema import BROKER, CLIENT
from workbench.trace.words import count

from . import measure
from .count_predict import LESSON, atm, naive, noticed
from .predict import asks
from .question import Belief, Question, Solution
from .race_runs import CROSSING, ORDERS, RULES, orders, searched
from .show_me import asks_and_shows

NONE, SOME, ALL = "in no order", "only if the frames cross", "in every order"


@asks_and_shows
def crossing(race: Run) -> Question:
    """How much credit does the sender hold after a flow and a transfer have crossed?"""
    held = measure.credit(race.rows, BROKER)
    dc = measure.counter(race.rows, BROKER, "delivery_count")
    grant = plans_of(str(race.parameters["grants"]))[0].link_credit

    def solve() -> Solution:
        played = orders(race)
        order = CROSSING[0]
        sender, receiver = played.credits["spec", order]
        return Solution(
            answer=int(sender or 0),
            reason=(
                f"{_formula(played.runs['spec', order])}. The receiver counts down one for the"
                f" message that arrives after its flow and holds {receiver}, too."
            ),
            beliefs=(
                Belief(
                    name="adds",
                    answer=int(played.credits["add", order][0] or 0),
                    because=(
                        f"the flow does not bring {grant} more; it says how many, counted from its"
                        " own delivery-count."
                    ),
                ),
                Belief(
                    name="sets",
                    answer=int(played.credits["set", order][0] or 0),
                    because=(
                        "the receiver wrote that number before it knew of the message that is"
                        " under way; its own credit goes down when that message arrives."
                    ),
                ),
                Belief(
                    name="the flow came too late",
                    answer=int(held or 0) - 1,
                    because="a flow is never too late: it changes what the sender holds.",
                ),
            ),
            seen=race.rows[race.start_seq],
        )

    return Question(
        name=f"{LESSON}/crossing",
        text=(
            f"Both ends hold delivery-count {dc} and link-credit {held}. The receiver sends"
            f" flow(delivery-count={dc}, link-credit={grant}); meanwhile the sender sends one"
            " message. Both frames land. How much link-credit does the sender hold then?"
        ),
        unit="link-credit",
        solve=solve,
        hints=(
            "The flow was written when the receiver had counted so far; the sender has counted on.",
            "flow.delivery-count + flow.link-credit is the count at which the sender must stop."
            " How far is it from there?",
        ),
    )


def told_of(rule: str) -> str:
    """A rule in words, with its name."""
    return f"{rule_named(rule).doc} (rule “{rule}”)"


def _formula(played: Run) -> str:
    """The formula with its numbers, of the last flow that the sender took in."""
    flow = measure.frames(played.rows, "flow", event="received", from_peer=CLIENT)[-1]
    told = list(explain(played.rows))[flow.seq].formula
    return f"At the sender {told}"


@asks_and_shows
def which_order(race: Run, rule: str) -> Question:
    """In which orders does a wrong rule leave the two ends in disagreement?"""

    def solve() -> Solution:
        played = orders(race)
        differing = played.differing(rule)
        told = "; ".join(
            f"{order}: {played.credits[rule, order][0]} and {played.credits[rule, order][1]}"
            for order in ORDERS
        )
        answer = NONE if not differing else ALL if len(differing) == len(ORDERS) else SOME
        return Solution(
            answer=answer,
            reason=(
                f"Sender and receiver hold at the end: {told}. They differ in"
                f" {count(len(differing), 'order')} of {len(ORDERS)}."
            ),
            beliefs=(
                Belief(
                    name="sets",
                    answer=NONE,
                    because=(
                        "the number in the flow is right for what the receiver knew, and"
                        " the sender is further on."
                    ),
                ),
                Belief(
                    name="a wrong rule always shows",
                    answer=ALL,
                    because=(
                        "where nothing is in flight the two counts are equal, and the wrong rule"
                        " gives the right number."
                    ),
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/which-order",
        text=(
            f"The receiver sends a flow, the sender one message, and the sender {told_of(rule)}. In"
            " which order of the two frames do the ends disagree when everything has landed?"
        ),
        choices=(NONE, SOME, ALL),
        solve=solve,
    )


@asks_and_shows
def sentence() -> Question:
    """Which sentence about credit is true? Each of the others is a belief with a counterexample."""
    said = [belief.says for belief in beliefs.BELIEFS.values()]
    right = (
        "a flow's link-credit counts from the flow's delivery-count; what was sent since is taken"
        " off"
    )

    def solve() -> Solution:
        return Solution(
            answer=right,
            reason=(
                "That is the formula of [2.6.7] in words. The explorer finds a schedule that"
                f" contradicts each of the other {count(len(said), 'sentence')}."
            ),
            beliefs=tuple(
                Belief(
                    name=name,
                    answer=belief.says,
                    because=f"but {belief.because}.",
                )
                for name, belief in beliefs.BELIEFS.items()
            ),
        )

    return Question(
        name=f"{LESSON}/sentence",
        text="Which of these sentences is true in every schedule?",
        choices=tuple(sorted([*said, right])),  # so its place gives nothing away
        solve=solve,
    )


NOT_ONE, FEW, MOST = "none", "some, but fewer than half", "half of them or more"


@asks_and_shows
def bad_states(messages: int, grants: Sequence[int], rule: str) -> Question:
    """How large a part of all states is bad under a rule?

    Raises:
        ValueError: the link is too large to be searched whole.
    """
    searched(messages=messages, grants=grants, rule=rule)

    def solve() -> Solution:
        found = searched(messages=messages, grants=grants, rule=rule)
        part = found.bad / found.states
        answer = NOT_ONE if not found.bad else FEW if 2 * found.bad < found.states else MOST
        nearest = (
            f"the nearest is {count(len(found.shortest), 'move')} from the start"
            if found.shortest is not None
            else "so no schedule leads to one"
        )
        return Solution(
            answer=answer,
            reason=(
                f"Of {found.states:,} states that can be reached {found.bad:,} are bad"
                f" ({part:.0%}); {nearest}."
            ),
            beliefs=(
                Belief(
                    name="a race is rare",
                    answer=FEW,
                    because=(
                        "rare on a quiet network; but once the sender believes in too much, it goes"
                        " on believing, and nothing puts it right."
                    ),
                ),
                Belief(
                    name="sets",
                    answer=NOT_ONE,
                    because="taking the flow's number as it stands forgets what is in flight.",
                ),
            ),
        )

    granted = " and then ".join(map(str, grants))
    return Question(
        name=f"{LESSON}/bad-states-{rule}",
        text=(
            f"The sender has {count(messages, 'message')} and {told_of(rule)}; the receiver grants"
            f" {granted}. In how many of all states that can be reached may the sender send more"
            " than was ever granted?"
        ),
        choices=(NOT_ONE, FEW, MOST),
        solve=solve,
    )


@asks
def passing_rules(messages: int, grants: Sequence[int]) -> Question:
    """How many of the rules have no bad state with these grants?

    Raises:
        ValueError: the link is too large to be searched whole.
    """
    for each in RULES:
        searched(messages=messages, grants=grants, rule=each)

    def solve() -> Solution:
        found = {rule: searched(messages=messages, grants=grants, rule=rule) for rule in RULES}
        passing = [rule for rule, one in found.items() if not one.bad]
        told = ", ".join(
            f"{rule}: {one.states} states, {one.bad} bad" for rule, one in found.items()
        )
        wrong = len(passing) == len(RULES) and len(grants) == 1
        return Solution(
            answer=len(passing),
            reason=(
                f"{told}. With {count(len(grants), 'grant')} the flow finds nothing in flight, and"
                " the rules differ only in what they make of that."
                if len(grants) == 1
                else f"{told}."
            ),
            beliefs=(
                Belief(
                    name="a test finds a wrong rule",
                    answer=1,
                    because="a test finds only what its schedules can show.",
                ),
                *(
                    [
                        Belief(
                            name="only adding is harmless at first",
                            answer=len(passing) - 1,
                            because="from no credit at all, setting and adding are the same.",
                        )
                    ]
                    if wrong
                    else []
                ),
            ),
        )

    granted = count(len(grants), "flow")
    return Question(
        name=f"{LESSON}/passing-rules",
        text=(
            f"The receiver sends {granted} with link-credit {' and '.join(map(str, grants))}, and"
            f" every order is tried. With how many of the rules {', '.join(RULES)} is the sender"
            " never entitled to more than was granted?"
        ),
        unit="rules",
        solve=solve,
    )


__all__ = [
    "atm",
    "bad_states",
    "crossing",
    "naive",
    "noticed",
    "passing_rules",
    "sentence",
    "which_order",
]
