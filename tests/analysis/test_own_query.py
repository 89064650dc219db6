"""A learner's query is judged on a small trace with a known answer; a wrong one learns why."""

import pytest
from pyspark.sql import functions as F

from workbench import folds
from workbench.analysis.reading import open_trace
from workbench.analysis.schemas import STALLS
from workbench.analysis.stalls import stalls
from workbench.exercises.progress import Progress
from workbench.exercises.spark_traces import small_trace
from workbench.lessons.lesson_10 import check
from workbench.trace import files


def lasted():
    """How long a stall lasts; made when there is a session."""
    return F.col("end_us") - F.col("start_us")


class Desk:
    """The part of a desk that the check uses, over the session of these tests."""

    why_not = ""

    def __init__(self, spark):
        rows = files.read(small_trace().path)
        self._table = spark.createDataFrame(folds.stalls(rows), STALLS).cache()
        self._spark = spark

    def session(self):
        return self._spark

    def stalls(self, path):
        assert path == small_trace().path
        return self._table


@pytest.fixture(scope="module")
def desk(spark):
    return Desk(spark)


def by(table, *names):
    return table.groupBy(*(names or ("run", "link", "brake")))


def test_the_right_query_is_right_in_whatever_way_it_is_written(desk):
    """Two ways; more columns and any order of rows do no harm."""
    log = Progress()

    def grouped(table):
        return by(table).agg(F.sum(lasted()).alias("lost_us"), F.count("*").alias("stalls"))

    def longhand(table):
        table.createOrReplaceTempView("learner_stalls")
        return table.sparkSession.sql(
            "select run, link, brake, sum(end_us - start_us) lost_us from learner_stalls"
            " group by run, link, brake order by lost_us"
        )

    for query in (grouped, longhand):
        verdict = check.query(query, desk, log=log)
        assert verdict.right is True, verdict.text
    assert {record.right for record in log.records} == {True}


@pytest.mark.parametrize(
    ("query", "belief", "words"),
    [
        (lambda t: by(t).agg(F.max(lasted()).alias("lost_us")), "the longest", "sum takes each"),
        (lambda t: by(t).agg(F.count("*").alias("lost_us")), "how often", "how long they were"),
        (lambda t: by(t).agg(F.avg(lasted()).alias("lost_us")), "the mean", "loses much"),
        (
            lambda t: by(t).agg((F.sum(lasted()) / 1000).alias("lost_us")),
            "in milliseconds", "microseconds",
        ),
        (lambda t: by(t).agg(F.sum(-lasted()).alias("lost_us")), "the wrong way round", "below 0"),
        (lambda t: by(t).agg(F.sum("end_us").alias("lost_us")), "when, not how long", "moments"),
        (
            lambda t: by(t).agg(F.sum("messages_waiting").alias("lost_us")),
            "messages, not time", "messages that waited",
        ),
        (lambda t: t.withColumn("lost_us", lasted()), "not summed up", "times"),
        (lambda t: by(t, "run", "link", "brake", "seq").agg(F.sum(lasted()).alias("lost_us")),
         "not summed up", "Group by these three"),
        (
            lambda t: by(t, "link", "brake").agg(F.sum(lasted()).alias("lost_us")),
            "the columns are not those asked for", "missing: run",
        ),
        (lambda t: by(t).agg(F.sum(lasted())), "the columns are not those asked for", "alias"),
        (
            lambda t: by(t.where("brake <> 'alarm'")).agg(F.sum(lasted()).alias("lost_us")),
            None, "filtered out",
        ),
        (
            lambda t: by(t.withColumn("brake", F.lit("tcp"))).agg(F.sum(lasted()).alias("lost_us")),
            None, "are not there",
        ),
        (
            lambda t: by(t).agg((F.sum(lasted()) + 1).alias("lost_us")),
            None, "were planted, and your query gives",
        ),
    ],
)  # fmt: skip
def test_a_wrong_query_is_told_what_it_computes(desk, query, belief, words):
    """The belief behind it where it is known, else the first row that differs."""
    verdict = check.query(query, desk, log=Progress())
    assert verdict.right is False
    assert verdict.belief == belief
    assert words in verdict.text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda _: ..., "in place of the ..."),
        (lambda _: None, "is `return` there?"),
        (lambda t: t.count(), "a DataFrame is wanted"),
        (lambda t: t.select("brakes"), "There is no column brakes; the stalls have run,"),
        (lambda t: by(t, F.col("brakes")).agg(lasted()), "There is no column brakes; the stalls"),
        (lambda t: by(t).agg(F.sum("lasted_us").alias("lost_us")), "There is no column lasted_us"),
        (lambda t: by(t).agg(G.sum("end_us")), "run it first"),  # noqa: F821
        (lambda t: t.groupBy("run").nothing(), "ended in AttributeError"),
        (lambda t: by(t).agg(F.sum(1 / 0)), "ended in ZeroDivisionError"),
    ],
)
def test_a_query_that_fails_is_answered_in_words_and_not_recorded(desk, query, words, capfd):
    """Spark's own errors are pages long: the learner gets a line, and no log above it."""
    log = Progress()
    capfd.readouterr()
    verdict = check.query(query, desk, log=log)
    assert capfd.readouterr().err == ""
    assert verdict.right is None
    assert words in verdict.text
    assert "\n" not in verdict.text
    assert len(verdict.text) < 400
    assert log.records == []


@pytest.mark.slow
def test_the_planted_answer_is_spark_s(spark):
    """What the check compares with is worked out from the acts, and Spark agrees."""
    trace = open_trace(spark, small_trace().path)
    found = stalls(chunks=trace.chunks)(trace.frame)
    rows = by(found).agg(F.sum(lasted()).alias("lost_us")).collect()
    assert {(row["run"], row["link"], row["brake"]): row["lost_us"] for row in rows} == (
        small_trace().lost
    )


def test_hints_lead_to_the_query(desk):
    """The last one is nearly the answer."""
    verdict = check.query(
        lambda t: by(t).agg(F.max(lasted()).alias("lost_us")), desk, log=Progress(), hints=3
    )
    assert "F.sum(" in verdict.hints[-1]
