"""One hot link does not make one hot task, read from Spark's own task metrics."""

import dataclasses
import importlib
import threading

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Window
from pyspark.sql import functions as F

from benchmarks.grown import tile
from workbench.analysis.chunks import (
    UNDEALT_ROWS,
    WHOLE_ROWS,
    Chunks,
    _check_sum,
    _task,
    dealt,
    unit,
)
from workbench.analysis.credit import credit
from workbench.analysis.reading import open_trace
from workbench.analysis.session import SCAN_TASKS
from workbench.scenarios.run import run
from workbench.trace import files

PARTS = 10


@pytest.fixture(scope="module")
def spark(spark):
    """Scans are cut as `session` sets it; the other tests ask for fewer, quicker tasks."""
    return as_ours(spark)


def as_ours(spark):
    """A session beside another, in the same Java: what is set in one does not hold in the other."""
    own = spark.newSession()
    own.conf.set("spark.sql.files.minPartitionNum", str(SCAN_TASKS))
    own.conf.set("spark.sql.adaptive.enabled", "true")
    return own


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trace of one busy link, in several files as a recorder leaves it."""
    rows = run(
        "credit",
        "rmq4.3",
        {"messages": 600, "policy": "one-at-a-time", "acknowledge": "auto"},
    ).rows
    place = tmp_path_factory.mktemp("hot")
    size = len(rows) // PARTS + 1
    for part, start in enumerate(range(0, len(rows), size)):
        slim = [dataclasses.replace(row, item=None, raw=None) for row in rows[start : start + size]]
        files.write(place / f"{part:02d}.parquet", slim)
    return place


@pytest.fixture(scope="module")
def hot(spark, folder):
    """That trace, opened."""
    return open_trace(spark, folder)


def tasks_of(spark, work):
    """The metrics of every task of a job; several threads may ask at once."""
    tracker = spark.sparkContext.statusTracker()
    group = f"balance {threading.get_ident()}"
    spark.sparkContext.setJobGroup(group, group)
    seen = set(tracker.getJobIdsForGroup(group))
    work()
    store = spark._jsparkSession.sparkContext().statusStore()
    stages = {
        stage
        for job in set(tracker.getJobIdsForGroup(group)) - seen
        for stage in tracker.getJobInfo(job).stageIds
    }
    for stage in stages:
        tasks = store.taskList(stage, 0, 100_000)
        for at in range(tasks.size()):
            metrics = tasks.apply(at).taskMetrics()
            if metrics.isDefined():
                yield metrics.get()
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def largest_task(spark, work):
    """The most rows that one task of a job has read, from files and from a shuffle together."""
    return max(
        one.inputMetrics().recordsRead() + one.shuffleReadMetrics().recordsRead()
        for one in tasks_of(spark, work)
    )


def done(df):
    """Work a DataFrame out and keep nothing."""
    df.write.format("noop").mode("overwrite").save()


@pytest.fixture
def not_joined(spark):
    """Spark joins parts that are small, and here all are: it is measured how rows are dealt."""
    name = "spark.sql.adaptive.coalescePartitions.enabled"
    spark.conf.set(name, "false")
    yield
    spark.conf.unset(name)


QUESTIONS = ("credit", "violations", "stalls", "throughput", "grants", "latency", "windows")
CUT = 256, 10
"""Chunks, and the tasks that they are dealt to."""


@pytest.mark.slow
@pytest.mark.usefixtures("not_joined")
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_task_has_more_than_an_eighth_of_the_rows(spark, hot, name):
    """Whatever the link, rows are dealt by chunk [one link here has them all]."""
    question = getattr(importlib.import_module(f"workbench.analysis.{name}"), name)
    chunks = Chunks(rows=hot.rows // CUT[0], tasks=CUT[1])
    assert 0 < largest_task(spark, lambda: done(question(chunks=chunks)(hot.frame))) <= hot.rows / 8


@pytest.mark.slow
@pytest.mark.usefixtures("not_joined")
def test_credit_deals_its_rows_once(spark, hot):
    """Both scans of the rows read one shuffle [a second one would write them all again]."""
    chunks = Chunks(rows=hot.rows // CUT[0], tasks=CUT[1])
    links = hot.frame.where("link is not null and event in ('sent', 'received')").count()
    dealt = sum(
        one.shuffleWriteMetrics().recordsWritten()
        for one in tasks_of(spark, lambda: done(credit(chunks=chunks)(hot.frame)))
    )
    assert links <= dealt < 1.5 * links


@settings(derandomize=True, max_examples=60, deadline=None)
@given(sizes=st.lists(st.integers(2_000, 60_000), min_size=1, max_size=60))
def test_connections_are_left_whole_only_if_they_can_be_dealt_evenly(sizes):
    """One that is long is cut, and all are if no number deals them evenly."""
    connections = {("a run", f"c{number}"): size for number, size in enumerate(sizes)}
    chunks = Chunks.of(sum(sizes), connections)
    if not chunks.deal:
        assert chunks.whole == (sum(sizes) <= WHOLE_ROWS)
        even = max(sizes) <= sum(sizes) / 16 and len(sizes) >= 40
        assert not even or sum(sizes) <= UNDEALT_ROWS
        return
    assert not chunks.whole
    assert max(sizes) <= sum(sizes) / 16
    loads = [0] * chunks.tasks
    for (run_name, connection), size in connections.items():
        loads[_task(_check_sum(run_name, connection), chunks.deal, chunks.tasks)] += size
    assert max(loads) <= sum(sizes) / 9


def test_a_trace_is_cut_only_above_the_rows_up_to_which_a_cut_does_not_pay():
    """Whatever is known of its connections, one of which is long."""
    for known in (None, {("a run", "c1"): WHOLE_ROWS}):
        assert Chunks.of(WHOLE_ROWS, known).uncut
        assert not Chunks.of(WHOLE_ROWS + 1, known).uncut


def test_rows_of_no_connection_do_not_keep_connections_from_being_whole():
    """Most rows may be work inside a broker: they are of no link."""
    connections = {("a run", f"c{number}"): 5_000 for number in range(60)}
    assert Chunks.of(700_000, connections | {("a run", None): 400_000}).deal
    assert not Chunks.of(700_000, {("a run", None): 700_000}).deal


@pytest.mark.slow
def test_spark_deals_connections_as_the_plan_says(spark):
    """Both work out the same task of a run's name and a connection's, whatever is in them."""
    names = [f"run {number}" for number in range(50)] + ["", "ß", "a" * 300]
    chunks = Chunks(tasks=16, deal=313)
    given_rows = [(name, f"c{place}") for place, name in enumerate(names)]
    rows = spark.createDataFrame(given_rows, "run string, connection string")
    found = rows.select("*", dealt(unit(), chunks).alias("task")).collect()
    assert {row[:2]: row.task for row in found} == {
        both: _task(_check_sum(*both), chunks.deal, chunks.tasks) for both in given_rows
    }


@pytest.mark.slow
@pytest.mark.usefixtures("not_joined")
def test_many_short_runs_are_balanced_without_a_cut(spark, tmp_path):
    """Forty links of as many runs: none is cut, and no task has more than an eighth."""
    busy = {"messages": 500, "policy": "one-at-a-time", "acknowledge": "auto"}
    rows = run("credit", "rmq4.3", busy).rows
    slim = [dataclasses.replace(row, item=None, raw=None) for row in rows]
    made, path = tmp_path / "made.parquet", tmp_path / "many.parquet"
    tile(made, [slim], 40 * len(slim))
    # A scan takes a row group as a whole; here each must be small beside the rows.
    pq.write_table(pq.read_table(made), path, row_group_size=4_096)
    trace = open_trace(spark, path)
    assert trace.rows > UNDEALT_ROWS
    assert trace.chunks.deal
    most = largest_task(spark, lambda: done(credit(chunks=trace.chunks)(trace.frame)))
    assert 0 < most <= trace.rows / 8


@pytest.mark.slow
@pytest.mark.usefixtures("not_joined")
def test_a_window_by_link_fails_this_test(spark, hot):
    """The plain way puts a whole link into one task: the measure can tell."""
    window = (
        Window.partitionBy("run", "connection", "session", "link", "link_sender", "attach_no")
        .orderBy("seq")
        .rowsBetween(Window.unboundedPreceding, 0)
    )
    links = hot.frame.where(F.col("link").isNotNull())
    plain = links.withColumn("n", F.count("*").over(window)).select("run", "seq", "n")
    assert largest_task(spark, lambda: done(plain)) > hot.rows / 8
