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
    ROWS_OF_MB,
    UNDEALT_ROWS,
    Chunks,
    _check_sum,
    _task,
    dealt,
    unit,
)
from workbench.analysis.credit import credit
from workbench.analysis.reading import open_trace
from workbench.analysis.session import SCAN_TASKS, room_mb
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


ROOM_MB = 800
HELD = ROOM_MB * ROWS_OF_MB
"""The rows of the longest connections that there is room for."""


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(2_000, 60_000), min_size=1, max_size=60),
    room=st.sampled_from([60, ROOM_MB]),
)
def test_connections_are_left_whole_only_if_they_can_be_dealt_evenly_or_held(sizes, room):
    """One that is long is cut, and all are if no number deals them evenly."""
    connections = {("a run", f"c{number}"): size for number, size in enumerate(sizes)}
    chunks = Chunks.of(sum(sizes), connections, room_mb=room)
    if not chunks.deal:
        assert chunks.whole == (sum(sorted(sizes)[-4:]) <= room * ROWS_OF_MB)
        even = max(sizes) <= sum(sizes) / 16 and len(sizes) >= 40
        assert not even or sum(sizes) <= UNDEALT_ROWS
        return
    assert not chunks.whole
    assert max(sizes) <= sum(sizes) / 16
    loads = [0] * chunks.tasks
    for (run_name, connection), size in connections.items():
        loads[_task(_check_sum(run_name, connection), chunks.deal, chunks.tasks)] += size
    assert max(loads) <= sum(sizes) / 9


def test_a_trace_is_cut_only_if_its_longest_connections_do_not_fit_into_memory():
    """All of its rows count where nothing is known of its connections."""
    for rows in (HELD, HELD + 1):
        for known in (None, {("a run", "c1"): rows}, {("a run", None): rows}):
            assert Chunks.of(rows, known, room_mb=ROOM_MB).uncut == (rows <= HELD)
    for size in (HELD // 4, HELD // 4 + 1):
        alike = {("a run", f"c{number}"): size for number in range(6)}
        assert Chunks.of(6 * size, alike, room_mb=ROOM_MB).uncut == (4 * size <= HELD)


@pytest.mark.parametrize("whole", [(True, True), (True, False), (False, False)])
def test_two_traces_are_cut_if_one_is(whole):
    """As the longer one is; the deal of one says nothing of the other."""
    one, other = (
        Chunks.of(rows, {("a run", "c1"): rows}, room_mb=ROOM_MB * 9 if uncut else 0)
        for rows, uncut in zip((3_000_000, 2_000_000), whole, strict=True)
    )
    dealt_too = Chunks.of(3_000_000, {("a run", f"c{n}"): 3_000 for n in range(1_000)}, room_mb=0)
    assert dealt_too.deal
    for both in (one.beside(other), other.beside(one)):
        assert both == dataclasses.replace(one, whole=all(whole))
    assert dealt_too.beside(other).whole == other.whole
    assert not dealt_too.beside(other).deal


@pytest.mark.parametrize(
    ("settings", "megabytes"),
    [
        ({}, 724),
        ({"spark.driver.memory": "512m"}, 212),
        ({"spark.driver.memory": "2G"}, 1_748),
        ({"spark.driver.memory": "3000"}, 2_700),
        ({"spark.driver.memory": "2147483648b"}, 1_748),
        ({"spark.driver.memory": "4gb", "spark.executor.memory": "1g"}, 3_796),
        ({"spark.master": "spark://here:7077", "spark.driver.memory": "4g"}, 724),
        ({"spark.driver.memory": "200m"}, 0),
        ({"spark.driver.memory": "much"}, 0),
        ({"spark.master": "yarn", "spark.executor.memory": "3t"}, 3 * 2**20 - 300),
    ],
)
def test_memory_is_that_of_who_does_the_work(settings, megabytes):
    """The driver here, an executor on a cluster; in all of Spark's words for an amount."""
    assert room_mb({"spark.master": "local[2]"} | settings) == megabytes


def test_rows_of_no_connection_do_not_keep_connections_from_being_whole():
    """Most rows may be work inside a broker: they are of no link."""
    connections = {("a run", f"c{number}"): 5_000 for number in range(60)}
    assert Chunks.of(700_000, connections | {("a run", None): 400_000}, room_mb=ROOM_MB).deal
    assert not Chunks.of(700_000, {("a run", None): 700_000}, room_mb=ROOM_MB).deal


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
