"""A broker's trace in which an application waits: who, for how long, on what, and what cures it.

A mystery is drawn by a seed: the same seed is the same mystery, for a whole class. What is wrong is
a number among the settings of `scenarios.office`; who was held, by what and for how long, comes out
of the run, as the plain folds read its trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from random import Random
from typing import Any

from workbench.folds.compare import compare
from workbench.folds.stalls import stalls
from workbench.scenarios.declare import ParameterError
from workbench.scenarios.office import BILLS, DEPOT, MAIL, ORDERS, PARCELS, STOCK, office
from workbench.scenarios.run import Run, run
from workbench.trace import files
from workbench.trace.fold import held_in
from workbench.trace.given import takes
from workbench.trace.schema import FRAME_EVENTS, RECEIVED, Row
from workbench.views.charts import Chart, time_chart

from .measure import milliseconds
from .progress import Progress, progress
from .spark_answers import Answer
from .spark_traces import LessonTrace, folder
from .table import Table, Tabled, say, table_of

PRESET = "rmq4.3"
MESSAGES = 300
PUBLISHES, CONSUMES = "publishes", "consumes"
DOES = {
    ORDERS: ("AMQP 1.0", PUBLISHES),
    STOCK: ("AMQP 1.0", CONSUMES),
    BILLS: ("AMQP 0-9-1", PUBLISHES),
    MAIL: ("AMQP 0-9-1", CONSUMES),
    PARCELS: ("AMQP 0-10", PUBLISHES),
    DEPOT: ("AMQP 0-10", CONSUMES),
}
APPLICATIONS = tuple(DOES)
PACED = APPLICATIONS[:-1]
"""Those that have a rate of their own."""
CARRIERS = ("transfer", "basic.publish", "basic.deliver", "message.transfer")
"""Frames that begin a message, or carry one."""
AHEAD = ("unsettled", "unacknowledged", "unconfirmed", "incomplete_transfers")
"""Counters of messages that wait for an answer, each of a protocol's sender."""
LEVELS = (1, 2, 3)
CLEAR = 3
"""The held application lost so many times the time of any other: no doubt who is meant."""
LEAST_US = 50_000
CURED = 5
"""A cure leaves at most one part in so many of the time that was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A number that somebody sets.

    Attributes:
        owner: whose it is.
        sound: range of it in a run in which nothing is wrong.
        ill: range of it where it holds its owner; None: never.
    """

    owner: str
    sound: tuple[int, int]
    ill: tuple[int, int] | None = None


SETTINGS = {
    "orders_queue_us": Setting(owner=ORDERS, sound=(40, 200), ill=(4_000, 7_000)),
    "orders_link_credit": Setting(owner=ORDERS, sound=(40, 170), ill=(2, 4)),
    "orders_socket": Setting(owner=ORDERS, sound=(20_000, 65_536), ill=(200, 350)),
    "stock_credit": Setting(owner=STOCK, sound=(60, 250), ill=(2, 4)),
    "stock_window": Setting(owner=STOCK, sound=(60, 250), ill=(2, 4)),
    "bills_queue_us": Setting(owner=BILLS, sound=(40, 200), ill=(4_000, 7_000)),
    "mail_prefetch": Setting(owner=MAIL, sound=(60, 250), ill=(1, 3)),
    "parcels_window": Setting(owner=PARCELS, sound=(40, 60), ill=(2, 4)),
    "parcels_stop": Setting(owner=PARCELS, sound=(270, 400), ill=(10, 30)),
    "depot_work_us": Setting(owner=PARCELS, sound=(3_000, 4_000)),
}
"""What may be changed, by the name of the scenario's parameter."""

PAIRS = (
    ("stock_credit", "stock_window"),
    ("orders_socket", "orders_link_credit"),
    ("parcels_window", "parcels_stop"),
)
"""Two settings of which each holds the same application, and the one hides the other."""


@dataclass(frozen=True, kw_only=True, repr=False)  # no slots: cached_property needs a place
class Mystery(Tabled):
    """One run of the six applications.

    Attributes:
        seed, level: by which it was drawn.
        run: what happened.
        changed: the settings that are not what they were, with their first values.
    """

    seed: int | str
    level: int
    run: Run = field(repr=False)
    changed: Mapping[str, int] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        """What each application did, and when its last frame passed."""
        lines = []
        for name, (protocol, does) in DOES.items():
            times = [row.t_us for row in self.of(name) if row.kind in CARRIERS]
            lines.append(
                (
                    name,
                    protocol,
                    say(f"mystery.does.{does}"),
                    str(MESSAGES),
                    f"{milliseconds(max(times)):,.0f}",
                )
            )
        return table_of("mystery", lines, seed=self.seed)

    @property
    def settings(self) -> Table:
        """What may be changed, and to what."""
        lines = []
        for parameter in office.parameters:
            if parameter.name in SETTINGS:
                value = self.run.parameters[parameter.name]
                lines.append((parameter.name, f"{value:,}", parameter.legal, parameter.doc))
        return table_of("settings", lines)

    def of(self, name: str) -> list[Row]:
        """The rows of an application's connection."""
        return [row for row in self.run.rows if row.connection == name]

    def most_queued(self, name: str) -> int:
        """The most messages in an application's queue, those included that nobody has settled."""
        queue = PARCELS if name == DEPOT else name
        return max((held_in(row) for row in self.run.rows if row.queue == queue), default=0)

    # -- what one can ask

    def chart(self) -> Chart:
        """The messages that each application has moved so far, over time."""
        moved: dict[str, list[tuple[int, int]]] = {name: [] for name in APPLICATIONS}
        for name, steps in moved.items():
            for row in self.of(name):
                if row.kind in CARRIERS and row.event == RECEIVED:
                    steps.append((row.t_us, len(steps) + 1))
        end_us = self.run.rows[-1].t_us
        return time_chart(
            moved, end_us=end_us, unit=say("mystery.unit"), title=say("mystery.moved")
        )

    @cached_property
    def trace(self) -> LessonTrace:
        """The trace on disk, to be asked by Spark."""
        done = "-".join(f"{name}-{self.run.parameters[name]}" for name in self.changed)
        name = "-".join(filter(None, ["mystery", str(self.seed), str(self.level), done]))
        path = folder() / f"{self.run.name}.parquet"  # a seed may be any text
        rows = files.write(path, self.run.rows, raw=False)
        sent = sum(row.event in FRAME_EVENTS and row.event != RECEIVED for row in self.run.rows)
        return LessonTrace(name=name, path=path, table=self.table, rows=rows, frames=sent)

    def stalls(self) -> Answer:
        """When a sender with something to send was held, the longest first; by the plain folds."""
        found = [one._asdict() for one in stalls(self.run.rows)]
        found.sort(key=lambda one: one["start_us"] - one["end_us"])
        return Answer(question="stalls", rows=found, path=self.trace.path, hidden=("brake", "run"))

    @cached_property
    def finding(self) -> Finding:
        """Who was held, by what and for how long; worked out from the rows."""
        lost: Counter[tuple[str, str]] = Counter()
        by_name: Counter[str] = Counter(dict.fromkeys(APPLICATIONS, 0))
        for one in stalls(self.run.rows):
            lost[str(one.connection), one.brake] += one.end_us - one.start_us
            by_name[str(one.connection)] += one.end_us - one.start_us
        (who, lost_us), *_ = by_name.most_common()
        return Finding(lost=lost, who=who, lost_us=lost_us)

    # -- what one can do

    def change(self, **setting: int) -> Mystery:
        """The same again with another number.

        Args:
            **setting: one of the settings, and its new value.

        Raises:
            ParameterError: it is not one, there is no such setting, or the value is not legal.
        """
        unknown = ", ".join(one for one in setting if one not in SETTINGS)
        if unknown:
            raise ParameterError(
                say("mystery.no-setting", names=unknown, listed=", ".join(SETTINGS))
            )
        if len(setting) != 1:
            raise ParameterError(say("mystery.one-at-a-time", listed=", ".join(SETTINGS)))
        (name,) = setting
        before: Any = self.run.parameters[name]
        if setting[name] == before:
            raise ParameterError(say("mystery.same", name=name, value=before))
        key = name, repr(setting[name])
        if key not in self._made:
            given = {**self.run.parameters, **setting}
            self._made[key] = replace(
                self,
                run=run(office, PRESET, given, seed=self.run.seed),
                changed={
                    one: was
                    for one, was in {name: before, **self.changed}.items()
                    if given[one] != was
                },
            )
        return self._made[key]

    @cached_property
    def _made(self) -> dict[tuple[str, str], Mystery]:
        """What was made of it: a question, `compare` and a check ask for the same run."""
        return {}

    @takes
    def compare(self, other: Mystery) -> Table:
        """Each measure of `compare`, of the held application's connection, before and after."""
        before, after = self.finding, other.finding
        who = before.who
        mine, yours = (one.of(who) for one in (self, other))
        measures: dict[str, tuple[float | None, float | None]] = {
            one["measure"]: (one["left"], one["right"])
            for one in compare(mine, yours)
            if one["left"] is not None or one["right"] is not None
        } | {
            "held_us": (before.lost_us, after.lost_by(who)),
            "most_ahead": (most_ahead(mine), most_ahead(yours)),
            "most_queued": (self.most_queued(who), other.most_queued(who)),
        }
        lines = [
            (say(f"mystery.measure.{name}"), *(_told(name, value) for value in values))
            for name, values in measures.items()
        ]
        return table_of("changed", lines, who=who)


def _told(measure: str, value: float | None) -> str:
    """A count, or a time in milliseconds."""
    if value is None:
        return "-"
    return f"{value / 1000:,.1f}" if measure.endswith("_us") else f"{value:,.0f}"


def most_ahead(rows: Iterable[Row]) -> int:
    """The most messages that a sender was ahead of the answers to them."""
    found = 0
    for row in rows:
        told = row.ledger or {}
        waits = [told.get(name) or 0 for name in AHEAD]
        if "confirmed" in told:
            waits.append(told["published"] - told["confirmed"])
        found = max(found, *waits)
    return found


# -- what is true of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the trace of a mystery says when it is asked everything.

    Attributes:
        lost: microseconds in which an application's sender was held, by its name and the brake.
        who: the application that lost most.
        lost_us: what it lost in all.
    """

    lost: Mapping[tuple[str, str], int]
    who: str
    lost_us: int

    @property
    def brake(self) -> str:
        """What held the application that lost most."""
        return self.brake_of(self.who)

    def lost_by(self, name: str) -> int:
        """What an application lost in all, microseconds."""
        return sum(us for (who, _), us in self.lost.items() if who == name)

    def brake_of(self, name: str) -> str:
        """What held an application for most of that time; `none` if nothing did."""
        brakes = {brake: us for (who, brake), us in self.lost.items() if who == name}
        return max(brakes, key=lambda brake: brakes[brake], default="none")


def ill(case: Mystery) -> list[str]:
    """The settings that hold their owner."""
    return [
        name
        for name, one in SETTINGS.items()
        if one.ill is not None and one.ill[0] <= case.run.parameters[name] <= one.ill[1]  # type: ignore[operator]
    ]


def cured(case: Mystery, name: str) -> Mystery:
    """The same with one setting put to the middle of where it holds nobody."""
    return case.change(**{name: sum(SETTINGS[name].sound) // 2})


# -- drawing


@takes
def mystery(seed: int | str = 1, level: int = 1) -> Mystery:
    """A mystery: the same for the same seed and level, on every machine.

    Args:
        seed: a number or a word; a trainer gives the room one.
        level: 1: one brake, AMQP 1.0; 2: one brake, any protocol; 3: two that hide each other.

    Raises:
        ParameterError: there is no such level.
    """
    if level not in LEVELS:
        listed = ", ".join(map(str, LEVELS))
        raise ParameterError(say("mystery.no-level", level=repr(level), listed=listed))
    chance = Random(f"{seed}/{level}")
    while True:
        drawn = Mystery(seed=seed, level=level, run=run(office, PRESET, _drawn(chance, level)))
        if _is_one(drawn):
            return drawn


def _drawn(chance: Random, level: int) -> dict[str, int]:
    given = {name: chance.randint(*one.sound) for name, one in SETTINGS.items()}
    single = [(name,) for name, one in SETTINGS.items() if one.ill is not None]
    if level == 1:
        single = [(name,) for (name,) in single if DOES[SETTINGS[name].owner][0] == "AMQP 1.0"]
    chosen: tuple[str, ...] = chance.choice(PAIRS if level == LEVELS[-1] else single)
    for name in chosen:
        given[name] = chance.randint(*(SETTINGS[name].ill or (0, 0)))
    rates = {f"{name}_rate": chance.randint(800, 1_500) for name in PACED}
    # Somebody else has little to do, and is the last to end: slow is not held.
    # The depot has what parcels sends, and nothing else.
    idle = chance.choice([name for name in PACED if name != SETTINGS[chosen[0]].owner])
    rates[f"{idle}_rate"] = chance.randint(90, 140)
    # Few enough that a queue that is slow stops the reader, and more than any other needs.
    credit = chance.randint(40, 80)
    processes = {"process_credit": credit, "process_regrant_after": credit // 2}
    return {
        **given,
        **rates,
        **processes,
        "messages": MESSAGES,
        "latency_us": chance.randint(3_000, 6_000),
    }


def _is_one(drawn: Mystery) -> bool:
    """Whether there is no doubt who is held, and by what; and no doubt that two things do."""
    found = drawn.finding
    if any(
        found.lost_us < CLEAR * max(found.lost_by(name), LEAST_US)
        for name in APPLICATIONS
        if name != found.who
    ):
        return False
    if drawn.level < LEVELS[-1]:
        return found.lost[found.who, found.brake] * CLEAR > 2 * found.lost_us
    return all(
        CURED * cured(drawn, name).finding.lost_by(found.who) > found.lost_us for name in ill(drawn)
    )


def points(log: Progress = progress) -> Table:
    """What the answers of the lesson were worth: ten each, less two a hint and one a wrong one."""
    lines = []
    for name, entry in log.of_lesson("12").items():
        wrong = sum(record.right is False for record in entry.tries)
        worth = max(0, 10 - 2 * entry.hints - wrong) if entry.right else 0
        lines.append((name, str(wrong), str(entry.hints), str(worth)))
    return table_of("points", lines or [(say("mystery.no-points"), "", "", "")])
