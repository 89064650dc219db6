"""Lesson 02: what runs and searches say about each of its questions, and its checks."""

from __future__ import annotations

import dis
from collections.abc import Callable, Sequence
from typing import Any

from workbench.exercises import measure
from workbench.exercises.atm import atm_counters
from workbench.exercises.audit import audit, audit_starts, audited_run
from workbench.exercises.checks import run_of
from workbench.exercises.levels import levels
from workbench.exercises.order_lines import on_flow_lines
from workbench.exercises.race_runs import CROSSING, ORDERS, RULES, orders, searched
from workbench.exercises.readers import source_of
from workbench.exercises.trial import Trial
from workbench.exercises.wrap import reckon, wrap_verdicts
from workbench.presets import UINT_MAX
from workbench.scenarios import beliefs
from workbench.scenarios.race import plans_of
from workbench.scenarios.rules import rule_named
from workbench.scenarios.run import Run, run
from workbench.trace.explain import explain
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT

from .declare import Case, Declared, Found, case, facts

__all__ = [
    "atm_counters",
    "audit",
    "audit_starts",
    "audited_run",
    "check",
    "levels",
    "on_flow_lines",
    "orders",
    "predict",
    "reckon",
    "source_of",
    "wrap_verdicts",
]

lesson = Declared("02")
predict, check = lesson.predict, lesson.check


def _race(form: int) -> Run:
    """A race whose grant, first credit and beginning differ from form to form."""
    given = {
        "initial_delivery_count": 7 * form,
        "first_credit": 2 + form % 5,
        "grants": str(8 + form),
    }
    return run("race", parameters=given)


# -- what is asked


@lesson.asks
def crossing(race: Run) -> Found:
    """How much credit does the sender hold after a flow and a transfer have crossed?"""
    held = int(measure.credit(race.rows, BROKER) or 0)
    yield {
        "held": held,
        "count": measure.counter(race.rows, BROKER, "delivery_count"),
        "grant": plans_of(str(race.parameters["grants"]))[0].link_credit,
    }
    played = orders(race)
    order = CROSSING[0]
    right = played.runs["spec", order]
    flow = measure.frames(right.rows, "flow", event=RECEIVED, from_peer=CLIENT)[-1]
    sender, receiver = played.credits["spec", order]
    return facts(
        int(sender or 0),
        formula=list(explain(right.rows))[flow.seq].formula,
        receiver=receiver,
        wrong={
            "adds": int(played.credits["add", order][0] or 0),
            "sets": int(played.credits["set", order][0] or 0),
            "the flow came too late": held - 1,
        },
        seen=race.rows[race.start_seq],
    )


crossing.again(lambda form: {"race": _race(form)})


@lesson.asks
def which_order(race: Run, rule: str) -> Found:
    """In which orders does a wrong rule leave the two ends in disagreement?"""
    yield {"doc": rule_named(rule).doc}
    played = orders(race)
    differing = len(played.differing(rule))
    held = {order: played.credits[rule, order] for order in ORDERS}
    return facts(
        "none" if not differing else "all" if differing == len(ORDERS) else "some",
        credits="; ".join(
            f"{order}: {sender} and {receiver}" for order, (sender, receiver) in held.items()
        ),
        differing=differing,
        orders=len(ORDERS),
        wrong={"sets": "none", "a wrong rule always shows": "all"},
    )


which_order.again(lambda form: {"race": _race(form), "rule": ("add", "set")[form % 2]})


@lesson.asks
def sentence() -> Found:
    """Which sentence about credit is true? A schedule contradicts each of the others."""
    said = {name: belief.says for name, belief in beliefs.BELIEFS.items()}
    said["truth"] = lesson.words["sentence"]["truth"]
    # In alphabetical order, so that the place of the right one gives nothing away.
    yield {"choices": dict(sorted(said.items(), key=lambda one: one[1]))}
    return facts(
        "truth",
        others=len(beliefs.BELIEFS),
        wrong={
            name: facts(name, because=belief.because) for name, belief in beliefs.BELIEFS.items()
        },
    )


@lesson.asks
def bad_states(messages: int, grants: Sequence[int], rule: str) -> Found:
    """How large a part of all states is bad under a rule?

    Raises:
        ValueError: the link is too large to be searched whole.
    """
    found = searched(messages=messages, grants=grants, rule=rule)
    yield {"doc": rule_named(rule).doc, "granted": " and then ".join(map(str, grants))}
    return facts(
        "none" if not found.bad else "few" if 2 * found.bad < found.states else "most",
        case="good" if found.shortest is None else "bad",
        states=found.states,
        bad=found.bad,
        part=found.bad / found.states,
        moves=len(found.shortest or ()),
        wrong={"a race is rare": "few", "sets": "none"},
    )


bad_states.again(
    lambda form: {
        "messages": 8 + form % 3,
        "grants": [2 + form % 3, 5 + form % 4],
        "rule": "set",
    },
    kept_as="bad-states-set",
)


@lesson.asks
def passing_rules(messages: int, grants: Sequence[int]) -> Found:
    """How many of the rules have no bad state with these grants?

    Raises:
        ValueError: the link is too large to be searched whole.
    """
    found = {rule: searched(messages=messages, grants=grants, rule=rule) for rule in RULES}
    yield {
        "flows": len(grants),
        "granted": " and ".join(map(str, grants)),
        "rules": ", ".join(RULES),
    }
    passing = sum(not one.bad for one in found.values())
    harmless = passing == len(RULES) and len(grants) == 1
    return facts(
        passing,
        case="one" if len(grants) == 1 else "several",
        found=", ".join(
            f"{rule}: {one.states} states, {one.bad} bad" for rule, one in found.items()
        ),
        wrong={
            "a test finds a wrong rule": 1,
            **({"only adding is harmless at first": passing - 1} if harmless else {}),
        },
    )


passing_rules.again(
    lambda form: {
        "messages": 8,
        "grants": [2 + form % 4] if form % 2 else [2 + form % 3, 5 + form % 3],
    }
)


@lesson.asks
def naive(trace: Any) -> Found:
    """When does naive subtraction part from serial arithmetic?"""
    reckoning = reckon(trace)
    yield {"start": reckoning.start}
    wrong = reckoning.wrong
    first = bool(wrong) and wrong[0] is reckoning.lines[0]
    return facts(
        "never" if not wrong else "forever" if first else "wrap",
        case="wrong" if wrong else "none",
        flows=len(reckoning.lines),
        number=len(wrong),
        found="; ".join(f"step {measure.step(one.seq)}: {one.naive_text}" for one in wrong),
        wrong={"large numbers are trouble": "forever", "differences always work": "never"},
    )


@naive.again
def _story(form: int) -> dict[str, Any]:
    used = 2 + form % 4
    start = UINT_MAX - used if form % 2 else 1000 * (1 + form)
    return {"trace": audited_run(used, initial_delivery_count=start)}


@lesson.asks
def atm(run: Run) -> Found:
    """Where do the paper's balance and the sender's credit part?"""
    yield {}
    balances = atm_counters(run)
    differing = balances.differing
    # A drain's answer is the sender's own flow; everything else is a grant or a transfer.
    drained = any(row.kind == "flow sent" for row in differing)
    return facts(
        "nowhere" if not differing else "drained" if drained else "crossed",
        case="drained" if drained else "else",
        summary=balances.summary,
        wrong={"delivery-count counts deliveries": "nowhere", "crossing is the trouble": "crossed"},
    )


@lesson.asks
def noticed(trace: Any, reader: str) -> Found:
    """How often does a faulty reader notice that credit is used up?"""
    yield {}
    audited = audit(trace)
    used_up = len(audited.stalls())
    return facts(
        audited.noticed(reader),
        all=used_up,
        score=audited.score(reader),
        wrong={"a number on a screen is right": used_up},
    )


# -- what is checked


def crosses(run: Run) -> bool:
    """Whether a flow and a transfer are on the wire at the same time, and both have landed."""
    flights = []
    for kind, by in (("flow", CLIENT), ("transfer", BROKER)):
        gone = measure.frames(run.rows, kind, event=SENT, from_peer=by, after=run.start_seq)
        came = {
            row.frame_id: row.seq
            for row in measure.frames(run.rows, kind, event=RECEIVED, from_peer=by)
        }
        flights.append([(row.seq, came[row.frame_id]) for row in gone if row.frame_id in came])
    flows, transfers = flights
    return any(
        left < other_landed and other_left < landed
        for left, landed in flows
        for other_left, other_landed in transfers
    )


@lesson.checks(scenarios=("race",))
def crossed(desk: Any) -> Case:
    """Has the learner made a flow and a transfer cross, and let both land?

    Args:
        desk: a panel on the race, or a run of it.
    """
    model = getattr(desk, "model", None)
    runs = [run for tree in model.trees for run in tree.runs] if model else [run_of(desk)]
    if not any(run.actions for run in runs):
        return case("untouched")
    made = [run for run in runs if crosses(run)]
    if not made:
        return case("never", branches=len(runs))
    last = made[-1]
    sender, receiver = (measure.credit(last.rows, end) for end in (BROKER, CLIENT))
    return case(
        "same" if sender == receiver else "different",
        about=last.name,
        crossed=len(made),
        rule=last.parameters["rule"],
        sender=sender,
        receiver=receiver,
    )


@lesson.checks()
def half_worked_sender(
    on_flow: Callable[..., Any], *, messages: int, grants: Sequence[int]
) -> Case:
    """Is the sender that was given in part right in every order?

    Args:
        on_flow: the learner's function of the sender's state and the flow.
        messages: that the sender has.
        grants: link-credit of each flow; none may take back what an earlier one gave.
    """
    return _judged(on_flow, messages, grants, starts=(0,))


@lesson.checks()
def sender(
    on_flow: Callable[..., Any],
    *,
    messages: int,
    grants: Sequence[int],
    starts: Sequence[int] = (0,),
) -> Case:
    """Is that sender never entitled to too much, and never content with too little?

    Args:
        on_flow: the learner's function of the sender's state and the flow.
        messages: that the sender has.
        grants: link-credit of each flow; none may take back what an earlier one gave.
        starts: initial delivery-counts to try.
    """
    return _judged(on_flow, messages, grants, starts)


def _judged(
    on_flow: Callable[..., Any], messages: int, grants: Sequence[int], starts: Sequence[int]
) -> Case:
    """What every order from every beginning says of a sender."""
    if _unanswered(on_flow):
        return case("unanswered")
    if not starts:
        return case("no-start")
    name = getattr(on_flow, "__name__", "on_flow")
    visited = 0
    for start in starts:
        trial = Trial(on_flow, messages=messages, grants=grants, initial_delivery_count=start)
        if not trial.passed:
            return case(
                "fault" if trial.fault else "bad",
                about=name,
                start=start,
                why=trial.text.removeprefix("✘ ").removeprefix("… "),
                name=name,
                granted=list(grants),
            )
        visited += trial.found.states if trial.found is not None else 0
    return case("right", about=name, visited=visited, tried=", ".join(map(str, starts)))


def _unanswered(on_flow: Callable[..., Any]) -> bool:
    """Whether a `...` still stands in the function."""
    code = getattr(on_flow, "__code__", None)
    if code is None:
        return False
    # A body that is only `...` is compiled to nothing at all; a loop leaves a jump behind.
    empty = code.co_consts == (None,) and not code.co_names
    jumps = any("JUMP" in step.opname for step in dis.get_instructions(code))
    return Ellipsis in code.co_consts or (empty and not jumps)
