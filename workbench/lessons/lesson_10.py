"""Lesson 10: what answers about large traces say about each of its questions, and its checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.measure import MICROSECONDS
from workbench.exercises.predict import questions
from workbench.exercises.spark_answers import ROWS_SHOWN, Answer
from workbench.exercises.spark_desk import WINDOW_US, start_spark
from workbench.exercises.spark_shows import (
    ARCHIVE,
    ARCHIVE_BROKER,
    BATCH,
    HALF,
    archive_chart,
    archive_rate,
    dip_table,
    dips_of,
    drawn,
    held_over_time,
    rate_over_time,
)
from workbench.exercises.spark_traces import (
    big_trace,
    cannot_tell,
    real_captures,
    small_trace,
)
from workbench.folds.stalls import stalls as folded
from workbench.notebook import GivenError
from workbench.presets import get as preset_named
from workbench.scenarios.beside import Measured, decided
from workbench.scenarios.run import Run, run
from workbench.trace import brakes
from workbench.trace.schema import CLIENT
from workbench.trace.unknowns import UnknownReport
from workbench.views.trace_charts import Dip

from .declare import Case, Declared, Facts, Found, case, facts

__all__ = [
    "archive_chart",
    "big_trace",
    "cannot_tell",
    "check",
    "dip_table",
    "drawn",
    "held_over_time",
    "predict",
    "questions",
    "rate_over_time",
    "real_captures",
    "start_spark",
]

lesson = Declared("10")
predict, check, say = lesson.predict, lesson.check, lesson.say

# What the learner has asked Spark so far, by the question's name; None where nobody can have.
Asked = Mapping[str, Answer] | None


# -- what is asked


@lesson.asks
def evidence(stalls: Answer) -> Facts:
    """How is it known, in a capture, that a sender had something to send?"""
    counts = Counter(str(row["evidence"]) for row in stalls.rows).most_common()
    return facts(
        counts[0][0],
        counted=", ".join(f"{name} {number}" for name, number in counts),
        wrong={"the depth travels": "internal", "available is always told": "available"},
        beside=Measured(
            unit=say("stalls"),
            heights={_told_by(name): number for name, number in counts},
            yours={
                "the depth travels": (_told_by("internal"), len(stalls.rows)),
                "available is always told": (_told_by("available"), len(stalls.rows)),
            },
        ),
    )


def _told_by(evidence: str) -> str:
    return say("by", evidence=evidence)


@lesson.asks
def longest(rates: Answer, asked: Asked = None) -> Found:
    """In which dip was a sender held the longest?

    Args:
        rates: the throughput.
        asked: where the stalls are found when they have been asked for.
    """
    dips = dips_of(rates)
    yield {"choices": _by_letter(dips)}
    if not asked or "stalls" not in asked:
        return None
    held = held_in(dips, asked["stalls"])
    return facts(
        max(held, key=lambda name: held[name]),
        held="; ".join(
            f"{name}: {measure.milliseconds(us):,.0f} ms" for name, us in sorted(held.items())
        ),
        wrong={
            "the deepest dip is the worst": min(dips, key=lambda dip: dip.rate).name,
            "the widest dip is the worst": max(dips, key=lambda dip: dip.seconds).name,
        },
        beside=Measured(unit=say("held"), heights=_held_ms(dips, held)),
    )


@lesson.asks
def nobody(rates: Answer, asked: Asked = None) -> Found:
    """In which dip was nobody held?

    Args:
        rates: the throughput.
        asked: as for `longest`.
    """
    dips = dips_of(rates)
    yield {"choices": _by_letter(dips)}
    if not asked or "stalls" not in asked:
        return None
    held = held_in(dips, asked["stalls"])
    least = min(held, key=lambda name: held[name])
    return facts(
        least,
        least=least,
        peaks="; ".join(say("peak", dip=dip.name, rate=peak_after(dip, rates)) for dip in dips),
        usual=dips[0].usual,
        wrong={
            "less is sent, so somebody is held": next(
                (dip.name for dip in dips if dip.name != least), least
            )
        },
        beside=Measured(
            unit=say("held"),
            heights=_held_ms(dips, held),
            yours={
                "less is sent, so somebody is held": (
                    _by_letter(dips)[least],
                    measure.milliseconds(max(held.values())),
                )
            },
        ),
    )


@lesson.asks
def was_held(rate: int, *, alarm: bool) -> Found:
    """Was a publisher held that sent nothing for a second, or had it nothing to send?

    Args:
        rate: messages a second.
        alarm: an alarm holds it; else nothing is published meanwhile.
    """
    played = _paused(rate, alarm=alarm)
    times = [
        row.t_us
        for row in measure.frames(played.rows, "transfer", from_peer=CLIENT)
        if row.link == "q1"
    ]
    back = next(
        after for before, after in pairwise(times) if after - before > MICROSECONDS // 2
    )  # fmt: skip
    yield {"at_once": sum(back <= time < back + MICROSECONDS // 10 for time in times)}
    held = [one for one in folded(played.rows) if one.link == "q1"]
    long = [one.brake for one in held if one.end_us - one.start_us > MICROSECONDS // 2]
    return facts(
        "held" if long else "idle",
        case="held" if long else "idle",
        usual=rate / 10,
        brake=next(iter(long), None),
        wrong={"nothing is sent, so it is held": "held"},
        beside=decided(
            played,
            say("had"),
            next(
                row
                for row in measure.frames(played.rows, "transfer", from_peer=CLIENT)
                if (row.link, row.t_us) == ("q1", back)
            ),
        ),
    )


was_held.again(lambda form: {"rate": 20 + form, "alarm": form % 2 == 0})


@lesson.asks
def most_lost(stalls: Answer, asked: Asked = None) -> Found:
    """Which link lost the most time in all?

    Args:
        stalls: the longest stalls, the longest first.
        asked: where the sums are found when they have been asked for, as `lost`.
    """
    first = stalls.row(1)
    worst = _place(first)
    other = next((_place(row) for row in stalls.rows if row["brake"] != first["brake"]), worst)
    choices = {worst: worst, other: other, "never": lesson.words["most-lost"]["never"]}
    yield {"choices": choices}
    if not asked or "lost" not in asked:
        return None
    sums = asked["lost"].rows
    lost_s = {_place(row): row["lost_us"] / MICROSECONDS for row in reversed(sums)}
    top = _place(sums[0])
    inside = top in [_place(row) for row in stalls.rows[:ROWS_SHOWN]]
    return facts(
        top if top in choices else "never",
        case="among" if inside else "outside",
        top=top,
        top_s=sums[0]["lost_us"] / MICROSECONDS,
        worst=worst,
        worst_s=lost_s[worst],
        wrong={"the longest stall is the largest loss": worst},
        beside=Measured(unit=say("lost"), heights={name: lost_s[name] for name in (top, worst)}),
    )


@lesson.asks
def twice_the_credit(link_credit: int) -> Facts:
    """What becomes of the rate over a long wire when a batch is twice as large?"""
    once, twice = (archive_rate(BATCH, n * link_credit) for n in (1, 2))
    return facts(
        "doubles" if twice > 1.5 * once else "stays" if twice < 1.1 * once else "grows",
        once=once,
        twice=twice,
        double=2 * link_credit,
        wrong={"a long wire costs what it costs": "stays"},
        beside=Measured(
            unit=say("rate"),
            heights={say("credit", n=link_credit): once, say("credit", n=2 * link_credit): twice},
            yours={"a long wire costs what it costs": (say("credit", n=2 * link_credit), once)},
        ),
    )


twice_the_credit.again(lambda form: {"link_credit": 10 + 5 * form})


@lesson.asks
def claim(report: UnknownReport) -> Facts:
    """Can a capture show that a queue has taken what was sent settled?"""
    found = next((one for one in report if one.what == "confirmed"), None)
    return facts(
        "nothing" if found else "settled",
        case="nothing" if found else "settled",
        unknown=found and found.unknown,
        why=found and found.why,
        wrong={"a grant is a confirm": "grants", "every transfer is answered": "settled"},
    )


def _by_letter(dips: Sequence[Dip]) -> dict[str, str]:
    """The dips as choices: the letter of each and when it begins."""
    return {dip.name: say("dip", dip=dip.name, at=dip.start_us / MICROSECONDS) for dip in dips}


def _held_ms(dips: Sequence[Dip], held: Mapping[str, int]) -> dict[str, float]:
    """By choice the longest time that one sender was held."""
    return {text: measure.milliseconds(held[name]) for name, text in _by_letter(dips).items()}


def _place(row: Any) -> str:
    return say("place", run=row["run"], link=row["link"])


def held_in(dips: Sequence[Dip], stalls: Answer) -> dict[str, int]:
    """For each dip the longest stall that belongs to it, microseconds, from its begin to its end.

    A stall that is there all the time belongs to no dip: only those do that are no shorter in it
    than outside of it.
    """

    def lasted(dip: Dip, row: Mapping[str, Any]) -> int:
        inside = min(dip.end_us, row["end_us"]) - max(dip.start_us, row["start_us"])
        whole: int = row["end_us"] - row["start_us"]
        return whole if 2 * inside >= whole else 0

    return {dip.name: max((lasted(dip, row) for row in stalls.rows), default=0) for dip in dips}


def peak_after(dip: Dip, rates: Answer) -> float:
    """The highest rate in the two windows right after a dip, messages a second."""
    after: list[int] = [
        row["messages"]
        for row in rates.rows
        if dip.end_us <= row["window_start_us"] < dip.end_us + 2 * WINDOW_US
    ]
    return max(after, default=0) * MICROSECONDS / WINDOW_US


def _paused(rate: int, *, alarm: bool) -> Run:
    """A publisher whose rate is 0 for a second: an alarm holds it, or nothing is published.

    A second link goes on publishing all the time, so that time goes by.
    """
    begun = run("publishers", "rmq4.3", {"queues": 2, "rate": rate, "service_us": "100"})
    both, other = ({"queue": queue, "count": rate} for queue in ("all", "q2"))
    if not alarm:
        return begun.act_each([("publish", both), ("publish", other), ("publish", both)])
    return begun.act_each(
        [("publish", both), ("alarm", {}), ("publish", both), ("clear", {}), ("publish", both)]
    )


# -- what is checked: a brake that is named


@lesson.checks()
def brake(answer: Any, stalls: Answer) -> Case:
    """Is that what held the sender in the longest stall?

    Args:
        answer: the brake's word; `...` if there is none yet.
        stalls: the stalls, the longest first.
    """
    legal = [name for name in brakes.ORDER if name != "none"]
    word = str(answer).strip().lower().replace("_", "-").replace(" ", "-")
    if word not in legal:
        return case("no-brake", given=repr(answer), legal=", ".join(legal))
    row = stalls.row(1)
    if word == row["brake"]:
        lasted = measure.milliseconds(row["end_us"] - row["start_us"])
        return case(
            "right", about=word, word=word, meaning=brakes.words(word), link=row["link"],
            run=row["run"], ms=lasted, seq=row["seq"], waiting=row["messages_waiting"],
        )  # fmt: skip
    if word == "link-credit":
        return case("credit", about=word, belief="credit is 0, so credit is the brake")
    return case("another", about=word, word=word, meaning=brakes.words(word))


# -- a query

COLUMNS = ("run", "link", "brake", "lost_us")
LONGEST_LINE = 200
"""Characters of an error that a learner is shown."""
Lost = dict[tuple[str, str, str], int]


@lesson.checks()
def query(function: Callable[[Any], Any], desk: Any) -> Case:
    """Does the learner's query give the time lost by run, link and brake?

    It is run on a small trace whose stalls were planted by acts, so that the answer is known
    without any query.

    Args:
        function: gets the table of stalls, a DataFrame, and gives another.
        desk: the desk with Spark.

    Raises:
        GivenError: if the desk is none.
    """
    if not callable(getattr(desk, "session", None)):
        raise GivenError(say("no-desk", kind=type(desk).__name__))
    if desk.session() is None:
        return case("no-spark", why=desk.why_not)
    if _untouched(function):
        return case("empty")
    small = small_trace()
    table = desk.stalls(small.path)
    try:
        answer = function(table)
    except Exception as error:
        return _failed(error, table.columns)
    if answer is None:
        return case("nothing")
    columns = getattr(answer, "columns", None)
    if columns is None or not hasattr(answer, "collect"):
        return case("no-table", kind=type(answer).__name__)
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        return case(
            "columns", about=", ".join(columns), belief="the columns are not those asked for",
            columns=", ".join(columns), missing=", ".join(missing),
        )  # fmt: skip
    try:
        rows = [row.asDict() for row in answer.select(*COLUMNS).collect()]
        stalls = [row.asDict() for row in table.collect()]
    except Exception as error:
        return _failed(error, table.columns)
    return replace(_compared(rows, stalls, small.lost), about=f"{len(rows)} rows")


def _untouched(function: Any) -> bool:
    """Nothing but `...` stands in it: Spark need not be asked."""
    code = getattr(function, "__code__", None)
    return code is not None and ... in code.co_consts and not code.co_names


def _compared(rows: list[dict[str, Any]], stalls: list[dict[str, Any]], wanted: Lost) -> Case:
    found: Lost = {}
    for row in rows:
        key = (row["run"], row["link"], row["brake"])
        if key in found:
            times = sum((row["run"], row["link"], row["brake"]) == key for row in rows)
            return case("not-summed", belief="not summed up", line=_named(key), times=times)
        found[key] = row["lost_us"]
    if found == wanted:
        in_all = measure.milliseconds(sum(wanted.values()))
        return case("right", planted=len(wanted), ms=in_all)
    known = (one for one, values in _known_ways(stalls) if found == values)
    return next(known, None) or _first_difference(found, wanted)


def _named(key: tuple[str, str, str]) -> str:
    return say("line", run=key[0], link=key[1], brake=key[2])


def _known_ways(stalls: list[dict[str, Any]]) -> Iterator[tuple[Case, Mapping[Any, Any]]]:
    """What comes of each known way to go wrong, worked out from the same stalls."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in stalls:
        groups.setdefault((row["run"], row["link"], row["brake"]), []).append(row)

    def each(way: Callable[[list[int]], float], *, of: Callable[[Any], int]) -> Mapping[Any, float]:
        return {key: way([of(row) for row in rows]) for key, rows in groups.items()}

    def time(row: Any) -> int:
        lasted: int = row["end_us"] - row["start_us"]
        return lasted

    yield case("longest", belief="the longest"), each(max, of=time)
    yield case("how-often", belief="how often"), each(len, of=time)
    yield (
        case("mean", belief="the mean"),
        each(lambda times: sum(times) / len(times), of=time),
    )
    yield (
        case("milliseconds", belief="in milliseconds"),
        each(lambda times: sum(times) / 1000, of=time),
    )
    yield (
        case("wrong-way-round", belief="the wrong way round"),
        each(lambda times: -sum(times), of=time),
    )
    yield case("when", belief="when, not how long"), each(sum, of=lambda row: row["end_us"])
    yield (
        case("messages", belief="messages, not time"),
        each(sum, of=lambda row: row["messages_waiting"]),
    )


def _first_difference(found: Lost, wanted: Lost) -> Case:
    missing = [key for key in wanted if key not in found]
    more = [key for key in found if key not in wanted]
    if missing:
        return case("missing", missing=len(missing), planted=len(wanted), line=_named(missing[0]))
    if more:
        return case("more", line=_named(more[0]))
    key = next(key for key in wanted if found[key] != wanted[key])
    return case("other", line=_named(key), planted=wanted[key], found=repr(found[key]))


_COLUMN = re.compile(r"name [`'\"]?([\w`.]+?)[`'\"]? cannot be resolved", re.I)


def _failed(error: Exception, columns: list[str]) -> Case:
    """What Spark or Python said, in words; nothing is recorded."""
    text = str(error)
    column = _COLUMN.search(text)
    if column is not None:
        wanted = column[1].replace("`", "")
        return case("no-column", wanted=wanted, columns=", ".join(columns))
    if isinstance(error, NameError):
        return case("no-name", error=error)
    if "aggregat" in text.lower():
        return case("no-agg")
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return case("ended", kind=type(error).__name__, line=first[:LONGEST_LINE])


# -- a credit that is large enough


def _wire(_answer: Any, rate: int) -> Case:
    """A hint: what is on its way, and how fast the queue is."""
    ms = f"{measure.milliseconds(ARCHIVE['latency_us']):g}"
    return case("wire", ms=ms, us=preset_named(ARCHIVE_BROKER).queue_deliver_us)


MOST_CREDIT = 1_200
"""Messages of credit; with more a run takes longer than a learner wants to wait."""


@lesson.checks(hints=(_wire,))
def credit(answer: Any, *, rate: int) -> Case:
    """Is that the smallest credit, topped up at half, with which the archive is fast enough?

    Args:
        answer: messages of credit; `...` if there is none yet.
        rate: messages a second that are wanted.
    """
    if not is_whole(answer):
        return case("no-number")
    if answer > MOST_CREDIT:
        return case("too-many", most=MOST_CREDIT)
    reached = archive_rate(HALF, answer)
    if reached < rate:
        return case("slow", reached=reached)
    # An odd credit has no two equal halves, and is slower than the even ones beside it.
    below = [one for one in (answer - 1, answer - 2) if one > 0]
    less, smaller = max(((archive_rate(HALF, one), one) for one in below), default=(0.0, 0))
    if less >= rate:
        return case("larger", reached=reached, smaller=smaller, less=less)
    in_batches = archive_rate(BATCH, answer)
    return case(
        "right", reached=reached, smaller=smaller, less=less, batch=BATCH, in_batches=in_batches
    )
