"""Checks of lesson 10: a brake that is named, a query, and a credit that is large enough."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from workbench.trace.brakes import ORDER, WORDS

from . import measure
from .checks import UNANSWERED, checks, not_yet, told
from .question import Verdict
from .spark_answers import Answer
from .spark_predict import LESSON
from .spark_traces import small_trace
from .spark_ways import ARCHIVE, BATCH, HALF, LONGEST_LINE, archive_rate, known_ways

COLUMNS = ("run", "link", "brake", "lost_us")
Lost = dict[tuple[str, str, str], int]


# -- name the brake


@checks(
    LESSON,
    "brake",
    hints=(
        "“held by”, in the sender's ledger, names the brake; look at the step at which the stall"
        " begins, and at what `unsettled` and `unconfirmed` say.",
        "Two brakes may be on at once. The credit is 0 at the end; but who withholds it, and for"
        " what? The first brake in the order of the specification's words is the one that counts.",
    ),
)
def brake(answer: Any, stalls: Answer) -> Verdict:
    """Is that what held the sender in the longest stall?

    Args:
        answer: the brake's word; `...` if there is none yet.
        stalls: the stalls, the longest first.
    """
    if answer is ...:
        return not_yet(UNANSWERED)
    legal = [name for name in ORDER if name != "none"]
    word = str(answer).strip().lower().replace("_", "-").replace(" ", "-")
    if word not in legal:
        return not_yet(f"{answer!r} is no brake; legal: {', '.join(legal)}.")
    row = stalls.row(1)
    lasted = measure.milliseconds(row["end_us"] - row["start_us"])
    if word == row["brake"]:
        text = (
            f"{word}: {WORDS[word]}. It held {row['link']} of {row['run']} for {lasted:,.0f} ms"
            f" from row {row['seq']:,} on, while {row['messages_waiting']:,} messages waited at"
            " least."
        )
        return told(word, True, text)
    belief = "credit is 0, so credit is the brake" if word == "link-credit" else None
    because = (
        "The credit is used up, and the receiver gives none because it waits for something else."
        if belief
        else f"{word} is on when {WORDS[word]}."
    )
    return told(
        word, False, f"{because} Open the row again and read what the sender is held by.", belief
    )


# -- write a query

_PLACE = "Put your query in place of the ... and run both cells again."


@checks(
    LESSON,
    "query",
    hints=(
        "Three things name a line of the answer: run, link and brake. What they have in common is"
        " summed up: groupBy, then agg.",
        "A stall lasts end_us less start_us. F.sum(F.col(...) - F.col(...)).alias('lost_us') inside"
        " agg gives the column its name.",
        "stalls.groupBy('run', 'link', 'brake').agg(F.sum(F.col('end_us') - F.col('start_us'))"
        ".alias('lost_us'))",
    ),
)
def query(function: Callable[[Any], Any], desk: Any) -> Verdict:
    """Does the learner's query give the time lost by run, link and brake?

    It is run on a small trace whose stalls were planted by acts, so that the answer is known
    without any query.

    Args:
        function: gets the table of stalls, a DataFrame, and gives another.
        desk: the desk with Spark.
    """
    if desk.session() is None:
        return not_yet(f"A query needs Spark, and there is none here: {desk.why_not}")
    if _untouched(function):
        return not_yet(_PLACE)
    small = small_trace()
    table = desk.stalls(small.path)
    try:
        answer = function(table)
    except Exception as error:
        return _failed(error, table.columns)
    if answer is None:
        return not_yet("Your query gives nothing: is `return` there?")
    columns = getattr(answer, "columns", None)
    if columns is None or not hasattr(answer, "collect"):
        return not_yet(
            f"Your query gives a {type(answer).__name__}; a DataFrame is wanted. Leave collect(),"
            " show() and toPandas() to the desk."
        )
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        text = (
            f"The answer has the columns {', '.join(columns)}; missing: {', '.join(missing)}."
            " alias('...') names a column."
        )
        return told(", ".join(columns), False, text, "the columns are not those asked for")
    try:
        rows = [row.asDict() for row in answer.select(*COLUMNS).collect()]
        stalls = [row.asDict() for row in table.collect()]
    except Exception as error:
        return _failed(error, table.columns)
    return _judged(rows, stalls, small.lost)


def _untouched(function: Any) -> bool:
    """Nothing but `...` stands in it: Spark need not be asked."""
    code = getattr(function, "__code__", None)
    return code is not None and ... in code.co_consts and not code.co_names


def _judged(rows: list[dict[str, Any]], stalls: list[dict[str, Any]], wanted: Lost) -> Verdict:
    said = f"{len(rows)} rows"
    found: Lost = {}
    for row in rows:
        key = (row["run"], row["link"], row["brake"])
        if key in found:
            run_name, link, held = key
            text = (
                f"{run_name}, link {link}, {held} is there {_times(rows, key)} times: one row for"
                " each stall or link is not yet a sum. Group by these three, and by nothing else."
            )
            return told(said, False, text, "not summed up")
        found[key] = row["lost_us"]
    if found == wanted:
        total = sum(wanted.values())
        text = (
            f"{len(wanted)} rows, {measure.milliseconds(total):,.1f} ms in all: just what was"
            " planted. Now ask the large trace the same."
        )
        return told(said, True, text)
    for name, words, values in known_ways(stalls):
        if found == values:
            return told(said, False, words, name)
    return told(said, False, _first_difference(found, wanted))


def _times(rows: list[dict[str, Any]], key: tuple[str, str, str]) -> int:
    return sum((row["run"], row["link"], row["brake"]) == key for row in rows)


def _first_difference(found: Lost, wanted: Lost) -> str:
    missing = [key for key in wanted if key not in found]
    more = [key for key in found if key not in wanted]
    if missing:
        run_name, link, held = missing[0]
        return (
            f"{len(missing)} of {len(wanted)} rows are not there, for example {run_name}, link"
            f" {link}, {held}. Is something filtered out, or grouped together?"
        )
    if more:
        run_name, link, held = more[0]
        return (
            f"There is a row for {run_name}, link {link}, {held}, and no stall was planted there."
        )
    key = next(key for key in wanted if found[key] != wanted[key])
    run_name, link, held = key
    return (
        f"{run_name}, link {link}, {held}: {wanted[key]:,} µs were planted, and your query gives"
        f" {found[key]!r}."
    )


_COLUMN = re.compile(r"name [`'\"]?([\w`.]+?)[`'\"]? cannot be resolved", re.I)


def _failed(error: Exception, columns: list[str]) -> Verdict:
    """What Spark or Python said, in words; nothing is recorded."""
    text = str(error)
    column = _COLUMN.search(text)
    if column is not None:
        wanted = column[1].replace("`", "")
        return not_yet(f"There is no column {wanted}; the stalls have {', '.join(columns)}.")
    if isinstance(error, NameError):
        return not_yet(f"{error}: the cell with your query imports functions as F; run it first.")
    if "AGGREGATE" in text or "aggregat" in text.lower():
        return not_yet("A sum stands inside agg(...), behind groupBy(...).")
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return not_yet(f"Your query ended in {type(error).__name__}: {first[:LONGEST_LINE]}")


# -- change it


@checks(
    LESSON,
    "credit",
    hints=(
        lambda _answer, rate: (
            f"What is on its way fills the wire: rate times round trip. The wire here takes"
            f" {measure.milliseconds(ARCHIVE['latency_us']):g} ms each way, and {rate:,} a second"
            " are wanted."
        ),
        "A receiver that tops up at half has between half of its credit and all of it out. Begin"
        " with rate times round trip, look at what that gives, and go up or down.",
    ),
)
def credit(answer: Any, *, rate: int) -> Verdict:
    """Is that the smallest credit, topped up at half, with which the archive is fast enough?

    Args:
        answer: messages of credit; `...` if there is none yet.
        rate: messages a second that are wanted.
    """
    if answer is ...:
        return not_yet(UNANSWERED)
    if not isinstance(answer, int) or isinstance(answer, bool) or answer < 1:
        return not_yet("Credit is a whole number of messages from 1 on.")
    most = ARCHIVE["messages"]
    if answer > most:
        return not_yet(f"There are {most:,} messages in this run; try a smaller one.")
    reached = archive_rate(HALF, answer)
    if reached < rate:
        text = f"With {answer} it reaches {reached:,.0f} a second, fewer than {rate:,}."
        return told(answer, False, text)
    less = archive_rate(HALF, answer - 1) if answer > 1 else 0.0
    if less >= rate:
        text = (
            f"{reached:,.0f} a second with {answer}; but {answer - 1} gives {less:,.0f}: try a"
            " smaller one."
        )
        return told(answer, False, text)
    text = (
        f"{reached:,.0f} a second with {answer}, and {less:,.0f} with {answer - 1}. With"
        f" {BATCH} the same credit gives {archive_rate(BATCH, answer):,.0f}."
    )
    return told(answer, True, text)
