"""Past the largest number: naive subtraction beside serial arithmetic [RFC 1982]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.scenarios.link_model import LinkState
from workbench.scenarios.rules import rule_named
from workbench.serial import link_credit_snd
from workbench.sim.explorer import Exploration
from workbench.trace.schema import OBSERVED, Row
from workbench.trace.words import MINUS, count

from . import measure
from .race_runs import searched
from .table import Table, Tabled

COMPARED = ("spec", "naive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reckoned:
    """The formula at one flow, reckoned in two ways.

    Attributes:
        seq: the row.
        delivery_count: of the flow.
        link_credit: of the flow.
        own: the sender's delivery-count.
        naive: credit by subtraction of the numbers as they stand.
        serial: credit by serial arithmetic.
        logged: credit that the sender (or the observer) wrote down.
    """

    seq: int
    delivery_count: int
    link_credit: int
    own: int
    naive: int
    serial: int
    logged: int

    @property
    def naive_text(self) -> str:
        """The sum with its numbers."""
        return f"{self.delivery_count} + {self.link_credit} {MINUS} {self.own} = {self.naive}"


class Reckoning(Tabled):
    """The formula at every flow of a trace, in both ways.

    Args:
        lines: one a flow.
    """

    def __init__(self, lines: list[Reckoned]) -> None:
        self.lines = lines

    @property
    def start(self) -> int | None:
        """The sender's delivery-count at the first flow."""
        return self.lines[0].own if self.lines else None

    @property
    def wrong(self) -> list[Reckoned]:
        """The flows at which naive subtraction does not give what the ledger says."""
        return [line for line in self.lines if line.naive != line.logged]

    @property
    def table(self) -> Table:
        """A row a flow."""
        return Table(
            name="Naive subtraction and serial arithmetic at each flow",
            head=("step", "naive", "serial", "the ledger", ""),
            lines=[
                (
                    str(measure.step(line.seq)),
                    line.naive_text,
                    str(line.serial),
                    str(line.logged),
                    "=" if line.naive == line.logged else "≠ naive is wrong",
                )
                for line in self.lines
            ],
        )


def reckon(trace: Any) -> Reckoning:
    """Reckon the sender's credit at every flow of the receiver, naively and rightly.

    Args:
        trace: a run, a capture, or rows in order; of a run, the rows of the link's sender.
    """
    rows: Iterable[Row] = getattr(trace, "rows", trace)
    lines: list[Reckoned] = []
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
            mine = own.get(key, ledger["delivery_count"])
            lines.append(
                Reckoned(
                    seq=row.seq,
                    delivery_count=count_rcv,
                    link_credit=credit_rcv,
                    own=mine,
                    naive=count_rcv + credit_rcv - mine,
                    serial=link_credit_snd(count_rcv, credit_rcv, mine),
                    logged=ledger["link_credit"],
                )
            )
        own[key] = ledger["delivery_count"]
    return Reckoning(lines)


class Verdicts(Tabled):
    """What the explorer says about two ways to subtract, from several beginnings.

    Args:
        found: by initial delivery-count and rule.
    """

    def __init__(self, found: dict[tuple[int, str], Exploration[LinkState, str]]) -> None:
        self.found = found

    def verdict(self, start: int, rule: str) -> str:
        """In words: how many states, how many bad, how near the nearest."""
        one = self.found[start, rule]
        if not one.bad:
            return f"{count(one.states, 'state')}, none bad"
        moves = len(one.shortest or ())
        return f"{one.states:,} states, {one.bad:,} bad ✘ after {count(moves, 'move')}"

    @property
    def table(self) -> Table:
        """A row a beginning."""
        starts = list(dict.fromkeys(start for start, _ in self.found))
        rules = list(dict.fromkeys(rule for _, rule in self.found))
        names = {"spec": "serial arithmetic (spec)", "naive": "naive subtraction"}
        return Table(
            name="All schedules from several beginnings",
            head=("initial-delivery-count", *(names.get(rule, rule) for rule in rules)),
            lines=[
                (str(start), *(self.verdict(start, rule) for rule in rules)) for start in starts
            ],
        )


def wrap_verdicts(
    starts: Sequence[int],
    *,
    messages: int,
    grants: Sequence[int],
    rules: Sequence[str] = COMPARED,
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


__all__ = ["Reckoned", "Reckoning", "Verdicts", "reckon", "wrap_verdicts"]
