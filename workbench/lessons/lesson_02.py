"""Lesson 02: what runs and searches say about each of its questions, and its checks."""

from __future__ import annotations

import dis
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from workbench.exercises import measure
from workbench.exercises.atm import atm_counters
from workbench.exercises.audit import audit, audit_starts, audited_run
from workbench.exercises.levels import BOUNDS, levels
from workbench.exercises.order_lines import on_flow_lines
from workbench.exercises.readers import source_of
from workbench.exercises.table import Table, Tabled, table_of, tables
from workbench.exercises.trial import RULES, Trial
from workbench.languages import MINUS
from workbench.notebook import WrongValueError
from workbench.presets import UINT_MAX
from workbench.scenarios import beliefs
from workbench.scenarios.beside import Measured, decided, followed
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
    LinkModel,
    LinkState,
)
from workbench.scenarios.race import ACT_OF_MOVE, plans_of
from workbench.scenarios.rules import rule_named
from workbench.scenarios.run import Run, run
from workbench.serial import link_credit_snd
from workbench.sim.explorer import Exploration, explore
from workbench.trace.explain import explain
from workbench.trace.given import rows_of, takes
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT

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
    "source_of",
    "subtractions",
    "tables",
    "wrap_verdicts",
]

# One flow and one message, in the orders in which they can be sent and can land.
ORDERS: Mapping[str, tuple[str, ...]] = {
    "apart": (SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES),
    "crossing-flow-first": (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES),
    "crossing-transfer-first": (
        SEND_FLOW,
        SEND_TRANSFER,
        TRANSFER_ARRIVES,
        FLOW_ARRIVES,
    ),
}
CROSSING = tuple(order for order in ORDERS if order.startswith("crossing"))

lesson = Declared("02")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off runs and searches


def acted(played: Run, moves: Sequence[str]) -> Run:
    """The run after some moves, each made when the one before has come to rest."""
    for move in moves:
        played = played.then(ACT_OF_MOVE[move])
    return played


@dataclass(frozen=True, repr=False, kw_only=True)  # no slots: cached_property needs a place
class Orders(Tabled):
    """One race under several rules, in every order.

    Attributes:
        runs: by rule and order.
    """

    runs: Mapping[tuple[str, str], Run]

    @cached_property
    def credits(self) -> dict[tuple[str, str], tuple[int | None, int | None]]:
        """What the sender and the receiver hold when the wire is empty, by rule and order."""
        return {
            key: (measure.credit(played.rows, BROKER), measure.credit(played.rows, CLIENT))
            for key, played in self.runs.items()
        }

    @property
    def table(self) -> Table:
        """A row for each rule and order: both ends' credit, and whether they agree."""
        return table_of(
            "orders",
            [
                (
                    rule,
                    say(f"order.{order}"),
                    str(sender),
                    str(receiver),
                    "=" if sender == receiver else say("ends-differ"),
                )
                for (rule, order), (sender, receiver) in self.credits.items()
            ],
        )

    def differing(self, rule: str) -> list[str]:
        """The orders in which the two ends disagree in the end under that rule."""
        return [
            order
            for (name, order), (sender, receiver) in self.credits.items()
            if name == rule and sender != receiver
        ]


@takes
def orders(race: Run, rules: Sequence[str] = RULES) -> Orders:
    """Play the race in every order under every rule.

    Args:
        race: the run as it began; its `rule` is replaced.
        rules: names of rules.
    """
    under = {
        rule: run(race.scenario, race.preset, {**race.parameters, "rule": rule}, seed=race.seed)
        for rule in rules
    }
    return Orders(
        runs={
            (rule, order): acted(played, moves)
            for rule, played in under.items()
            for order, moves in ORDERS.items()
        }
    )


def searched(
    *,
    messages: int,
    grants: Sequence[int],
    rule: str = "spec",
    initial_delivery_count: int = 0,
) -> Exploration[LinkState, str]:
    """Visit every state of a small link.

    Args:
        messages: that the sender has.
        grants: link-credit of each flow, in order.
        rule: name of a rule.
        initial_delivery_count: with which the sender begins.

    Raises:
        WrongValueError: the link is too large to be searched whole, so nothing could be said of it.
    """
    # What is told about all schedules is worked out from all of them, or not told.
    found = explore(
        LinkModel(
            messages=messages,
            grants=tuple(grants),
            rule=rule_named(rule).rule,
            initial_delivery_count=initial_delivery_count,
        ),
        BOUNDS,
    )
    if not found.complete:
        told = {"grants": ", ".join(map(str, grants)), "stopped": found.stopped}
        raise WrongValueError(say("too-many", messages=messages, **told))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtracted:
    """The formula at one flow, with both ways to subtract.

    Attributes:
        seq: the row.
        step: its number on the stage.
        delivery_count: of the flow.
        link_credit: of the flow.
        own: the sender's delivery-count.
        logged: credit that the sender (or the observer) wrote down.
    """

    seq: int
    step: str
    delivery_count: int
    link_credit: int
    own: int
    logged: int

    @property
    def naive(self) -> int:
        """Credit by subtraction of the numbers as they stand."""
        return self.delivery_count + self.link_credit - self.own

    @property
    def serial(self) -> int:
        """Credit by serial arithmetic."""
        return link_credit_snd(self.delivery_count, self.link_credit, self.own)

    @property
    def naive_text(self) -> str:
        """The sum with its numbers."""
        return f"{self.delivery_count} + {self.link_credit} {MINUS} {self.own} = {self.naive}"


@dataclass(frozen=True, repr=False)
class Subtractions(Tabled):
    """The formula at every flow of a trace, with both ways to subtract.

    Attributes:
        lines: one a flow.
    """

    lines: Sequence[Subtracted]

    @property
    def start(self) -> int | None:
        """The sender's delivery-count at the first flow."""
        return self.lines[0].own if self.lines else None

    @property
    def wrong(self) -> list[Subtracted]:
        """The flows at which naive subtraction does not give what the sender wrote down."""
        return [line for line in self.lines if line.naive != line.logged]

    @property
    def table(self) -> Table:
        """A row a flow."""
        return table_of(
            "subtractions",
            [
                (
                    line.step,
                    line.naive_text,
                    str(line.serial),
                    str(line.logged),
                    "=" if line.naive == line.logged else say("naive-wrong"),
                )
                for line in self.lines
            ],
        )


def subtractions(trace: Any) -> Subtractions:
    """The sender's credit at every flow of the receiver, computed naively and rightly.

    Args:
        trace: a run, a capture, or rows in order; of a run, the rows of the link's sender.
    """
    rows = rows_of(trace)
    lines: list[Subtracted] = []
    own: dict[Any, int] = {}
    for row in rows:
        ledger = row.ledger or {}
        if row.link is None or "delivery_count" not in ledger:
            continue
        if row.event != OBSERVED and row.vantage != row.link_sender:
            continue
        fields = row.frame or {}
        key = (row.connection, row.link, row.attach_no)
        count_rcv, credit_rcv = fields.get("delivery_count"), fields.get("link_credit")
        granted = row.kind == "flow" and row.from_peer != row.link_sender
        if granted and count_rcv is not None and credit_rcv is not None:
            lines.append(
                Subtracted(
                    seq=row.seq,
                    step=measure.step_words(row),
                    delivery_count=count_rcv,
                    link_credit=credit_rcv,
                    own=own.get(key, ledger["delivery_count"]),
                    logged=ledger["link_credit"],
                )
            )
        own[key] = ledger["delivery_count"]
    return Subtractions(lines)


@dataclass(frozen=True, repr=False)
class Verdicts(Tabled):
    """What the explorer says about two ways to subtract, from several beginnings.

    Attributes:
        found: by initial delivery-count and rule.
    """

    found: Mapping[tuple[int, str], Exploration[LinkState, str]]

    def verdict(self, start: int, rule: str) -> str:
        """In words: how many states, how many bad, how near the nearest."""
        one = self.found[start, rule]
        if not one.bad:
            return say("none-bad", n=one.states)
        return say("some-bad", states=one.states, bad=one.bad, n=len(one.shortest or ()))

    @property
    def table(self) -> Table:
        """A row a beginning."""
        starts = list(dict.fromkeys(start for start, _ in self.found))
        rules = list(dict.fromkeys(rule for _, rule in self.found))
        names = {"spec": say("by-serial"), "naive": say("by-naive")}
        lines = [(str(start), *(self.verdict(start, rule) for rule in rules)) for start in starts]
        return table_of("starts", lines, [names.get(rule, rule) for rule in rules])


@takes
def wrap_verdicts(
    starts: Sequence[int],
    *,
    messages: int,
    grants: Sequence[int],
    rules: Sequence[str] = ("spec", "naive"),
) -> Verdicts:
    """Search all schedules of one link from several initial delivery-counts.

    Args:
        starts: initial delivery-counts.
        messages: that the sender has.
        grants: link-credit of each flow.
        rules: names of rules.
    """
    for rule in rules:
        rule_named(rule)  # an unknown name is told before anything is searched
    return Verdicts(
        {
            (start, rule): searched(
                messages=messages, grants=grants, rule=rule, initial_delivery_count=start
            )
            for start in starts
            for rule in rules
        }
    )


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
        shown=right,
        beside=decided(right, say("credit"), flow),
    )


crossing.again(lambda form: {"race": _race(form)})


@lesson.asks
def which_order(race: Run, rule: str) -> Found:
    """In which orders does a wrong rule leave the two ends in disagreement?"""
    yield {"doc": rule_named(rule).doc}
    played = orders(race)
    parted = played.differing(rule)
    differing = len(parted)
    equal = next((played.runs[rule, order] for order in ORDERS if order not in parted), None)
    held = {order: played.credits[rule, order] for order in ORDERS}
    return facts(
        "none" if not differing else "all" if differing == len(ORDERS) else "some",
        credits="; ".join(
            say("held", order=say(f"order.{order}"), sender=sender, receiver=receiver)
            for order, (sender, receiver) in held.items()
        ),
        differing=differing,
        orders=len(ORDERS),
        wrong={
            **({"adds": "none"} if rule == "add" else {}),
            **({"sets": "none"} if rule == "set" else {}),
            **({"a wrong rule always shows": "all"} if rule != "spec" else {}),
        },
        shown=played.runs["spec", CROSSING[0]],
        beside={
            "a wrong rule always shows": followed(
                equal,
                say("same"),
                {equal.last: say("yes")},
                {"a wrong rule always shows": {equal.last: say("no")}},
            )
        }
        if equal and rule != "spec"
        else {},
    )


which_order.again(lambda form: {"race": _race(form), "rule": ("add", "set")[form % 2]})


@lesson.asks
def sentence() -> Found:
    """Which sentence about credit is true? A schedule contradicts each of the others."""
    words = lesson.words["sentence"]
    wrong = {name: beliefs.belief_named(name) for name in words["beliefs"]}
    said = {"truth": words["truth"]} | {name: belief.says for name, belief in wrong.items()}
    # In alphabetical order, so that the place of the right one gives nothing away.
    yield {"choices": dict(sorted(said.items(), key=lambda one: one[1]))}
    return facts(
        "truth",
        others=len(wrong),
        wrong={name: facts(name, because=belief.because) for name, belief in wrong.items()},
    )


@lesson.asks
def bad_states(messages: int, grants: Sequence[int], rule: str) -> Found:
    """How large a part of all states is bad under a rule?

    Raises:
        WrongValueError: the link is too large to be searched whole.
    """
    found = searched(messages=messages, grants=grants, rule=rule)
    yield {
        "doc": rule_named(rule).doc,
        "granted": lesson.joined("and-then", grants),
    }
    return facts(
        "none" if not found.bad else "few" if 2 * found.bad < found.states else "most",
        case="good" if found.shortest is None else "bad",
        states=found.states,
        bad=found.bad,
        part=found.bad / found.states,
        moves=len(found.shortest or ()),
        wrong={
            **({"a race is rare": "few"} if found.bad else {}),
            **({"adds": "none"} if found.bad and rule == "add" else {}),
            **({"sets": "none"} if found.bad and rule == "set" else {}),
        },
        beside={
            "a race is rare": Measured(
                unit=say("states"),
                heights={say("all"): found.states, say("bad"): found.bad},
                yours={"a race is rare": (say("bad"), found.states // 2)},
            )
        },
    )


bad_states.again(
    lambda form: {
        "messages": 8 + form % 3,
        "grants": [2 + form % 3, 5 + form % 4],
        "rule": "set",
    },
    kept_as="bad-states-set",
)


def _unnoticed(found: Mapping[str, Any]) -> str:
    """A wrong rule without a bad state."""
    return next((rule for rule, one in found.items() if rule != "spec" and not one.bad), "spec")


@lesson.asks
def passing_rules(messages: int, grants: Sequence[int]) -> Found:
    """How many of the rules have no bad state with these grants?

    Raises:
        WrongValueError: the link is too large to be searched whole.
    """
    found = {rule: searched(messages=messages, grants=grants, rule=rule) for rule in RULES}
    yield {
        "flows": len(grants),
        "granted": lesson.joined("and", grants),
        "rules": ", ".join(RULES),
    }
    passing = sum(not one.bad for one in found.values())
    harmless = passing == len(RULES) and len(grants) == 1
    return facts(
        passing,
        case="one" if len(grants) == 1 else "several",
        found=", ".join(
            say("found", rule=rule, states=one.states, bad=one.bad) for rule, one in found.items()
        ),
        wrong={
            "a test finds a wrong rule": 1,
            **({"only adding is harmless at first": passing - 1} if harmless else {}),
        },
        beside=Measured(
            unit=say("bad"),
            heights={rule: one.bad for rule, one in found.items()},
            yours={
                "a test finds a wrong rule": (_unnoticed(found), 1),
                "only adding is harmless at first": ("set", 1),
            },
        ),
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
    computed = subtractions(trace)
    yield {"start": computed.start}
    wrong = computed.wrong
    first = bool(wrong) and wrong[0] is computed.lines[0]
    return facts(
        "never" if not wrong else "forever" if first else "wrap",
        case="wrong" if wrong else "none",
        flows=len(computed.lines),
        number=len(wrong),
        found="; ".join(say("at-step", step=one.step, sum=one.naive_text) for one in wrong),
        wrong={"large numbers are trouble": "forever", "differences always work": "never"},
        beside=followed(
            trace,
            say("naive"),
            {one.seq: say("wrong") if one in wrong else say("right") for one in computed.lines},
            {
                "large numbers are trouble": {one.seq: say("wrong") for one in computed.lines},
                "differences always work": {one.seq: say("right") for one in computed.lines},
            },
        ),
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
        beside={
            "delivery-count counts deliveries": followed(
                run,
                say("credit"),
                {row.seq: row.link_credit for row in balances.rows},
                {
                    "delivery-count counts deliveries": {
                        row.seq: row.crd_bal for row in balances.rows
                    }
                },
            ),
            "crossing is the trouble": decided(
                run,
                say("differ"),
                next((run.rows[row.seq] for row in differing), None),
            ),
        },
    )


@lesson.asks
def noticed(trace: Any, reader: str) -> Found:
    """How often does a faulty reader notice that credit is used up?"""
    audited = audit(trace)
    yield {}
    all_seqs, seen = audited.stalls(), audited.stalls(reader)
    return facts(
        audited.noticed(reader),
        all=len(all_seqs),
        score=audited.score(reader),
        wrong={"a number on a screen is right": len(all_seqs)},
        beside=followed(
            trace,
            say("used"),
            {at: sum(seq <= at for seq in seen) for at in all_seqs},
            {"a number on a screen is right": {at: n for n, at in enumerate(all_seqs, 1)}},
        ),
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


def _on_the_wire(run: Run) -> bool:
    """Whether something has been sent and has not arrived: the ends cannot agree yet."""
    sent, came = (
        {row.frame_id for row in run.rows if row.is_frame and row.event == event}
        for event in (SENT, RECEIVED)
    )
    return sent != came


@lesson.checks(scenarios=("race",))
def crossed(desk: Any) -> Case:
    """Has the learner made a flow and a transfer cross, and let both land?

    Args:
        desk: a stage with a race, or a run of it.
    """
    branches = getattr(desk, "branches", None)
    runs = [Run.shown_by(desk)] if branches is None else branches.runs
    if not any(run.actions for run in runs):
        return case("untouched")
    made = [run for run in runs if crosses(run)]
    if not made:
        return case("never")
    landed = [run for run in made if not _on_the_wire(run)]
    if not landed:
        return case("on-the-wire")
    last = landed[-1]
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
    if _unanswered(on_flow):
        return case("unanswered")
    if not starts:
        return case("no-start")
    if any(other < one for one, other in pairwise(grants)):
        return case("falls")
    name = getattr(on_flow, "__name__", "on_flow")
    visited = 0
    for start in starts:
        trial = Trial(on_flow, messages=messages, grants=grants, initial_delivery_count=start)
        if trial.found is not None and not trial.found.bad and not trial.found.complete:
            return case("unfinished", messages=messages)
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
