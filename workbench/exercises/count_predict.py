"""Questions of lesson 02 about counting: past the largest number, in the ATM paper, in a tool."""

from __future__ import annotations

from typing import Any

from workbench.scenarios.run import Run
from workbench.trace.words import count

from . import measure
from .atm import atm_counters
from .audit import LEDGERS, audit
from .predict import asks
from .question import Belief, Question, Solution
from .wrap import reckon

LESSON = "02"

FOREVER, AT_WRAP, NEVER = (
    "from the first flow on",
    "when one of the two counts has wrapped and the other has not",
    "never",
)


@asks
def naive(trace: Any) -> Question:
    """When does naive subtraction part from serial arithmetic?"""

    def solve() -> Solution:
        reckoning = reckon(trace)
        wrong = reckoning.wrong
        if not wrong:
            answer = NEVER
        elif wrong[0] is reckoning.lines[0]:
            answer = FOREVER
        else:
            answer = AT_WRAP
        told = "; ".join(f"step {measure.step(one.seq)}: {one.naive_text}" for one in wrong)
        return Solution(
            answer=answer,
            reason=(
                f"Of {count(len(reckoning.lines), 'flow')} it gets {len(wrong)} wrong"
                + (f" ({told})" if told else "")
                + ". Far from the wrap-around, a difference is a difference."
            ),
            beliefs=(
                Belief(
                    name="large numbers are trouble",
                    answer=FOREVER,
                    because="a large number alone does no harm: both counts are large.",
                ),
                Belief(
                    name="differences always work",
                    answer=NEVER,
                    because="one count can have begun again at 0 while the other is still large.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/naive",
        text=(
            f"A sender begins at delivery-count {reckon(trace).start}. At each flow it takes"
            " flow.delivery-count + flow.link-credit − its own delivery-count, and"
            " gives no thought to wrapping. When does its credit go wrong?"
        ),
        choices=(FOREVER, AT_WRAP, NEVER),
        solve=solve,
    )


@asks
def atm(run: Run) -> Question:
    """Where do the paper's balance and the sender's credit part?"""
    nowhere, crossed, drained = (
        "nowhere: it is the same formula",
        "where the flow crosses a transfer",
        "where credit is drained",
    )

    def solve() -> Solution:
        balances = atm_counters(run)
        differing = balances.differing
        # A drain's answer is the sender's own flow; everything else is a grant or a transfer.
        at_drain = [row for row in differing if row.kind == "flow sent"]
        answer = nowhere if not differing else drained if at_drain else crossed
        return Solution(
            answer=answer,
            reason=balances.summary
            + (
                " There the sender gives credit back: its delivery-count moves on without a"
                " message, and no cell was sent that Tx_Cnt could count."
                if at_drain
                else ""
            ),
            beliefs=(
                Belief(
                    name="delivery-count counts deliveries",
                    answer=nowhere,
                    because="mostly it does, but a drain advances it without one.",
                ),
                Belief(
                    name="crossing is the trouble",
                    answer=crossed,
                    because="that is the very case that both formulas were made for.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/atm",
        text="Where in this run does Crd_Bal differ from the sender's link-credit?",
        choices=(nowhere, crossed, drained),
        solve=solve,
    )


@asks
def noticed(trace: Any, reader: str) -> Question:
    """How often does a faulty reader notice that credit is used up?"""

    def solve() -> Solution:
        audited = audit(trace)
        all_of_them = len(audited.stalls())
        return Solution(
            answer=audited.noticed(reader),
            reason=(
                f"By {LEDGERS}, credit was used up {count(all_of_them, 'time')};"
                f" “{reader}” {audited.score(reader)}."
            ),
            beliefs=(
                Belief(
                    name="a number on a screen is right",
                    answer=all_of_them,
                    because="the tool reckons, and its reckoning starts from a wrong number.",
                ),
            ),
        )

    return Question(
        name=f"{LESSON}/noticed",
        text=(
            f"How many of the moments at which credit is used up does the reader “{reader}” notice"
            " in this run?"
        ),
        unit="times",
        solve=solve,
    )
