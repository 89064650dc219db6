"""One hot link does not make one hot task, read from Spark's own task metrics."""

import dataclasses
import importlib
import threading

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.analysis.chunks import ROWS_OF_MB, Chunks
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
    context = spark._jsparkSession.sparkContext()
    context.listenerBus().waitUntilEmpty()  # on a busy machine the last task is told later
    store = context.statusStore()
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


def test_a_trace_is_cut_only_if_its_longest_connections_do_not_fit_into_memory():
    """All of its rows count where nothing is known of its connections."""
    for rows in (HELD, HELD + 1):
        for known in (None, {("a run", "c1"): rows}, {("a run", None): rows}):
            assert Chunks.of(rows, known, room_mb=ROOM_MB).whole == (rows <= HELD)
    for size in (HELD // 4, HELD // 4 + 1):
        alike = {("a run", f"c{number}"): size for number in range(6)}
        assert Chunks.of(6 * size, alike, room_mb=ROOM_MB).whole == (4 * size <= HELD)


@pytest.mark.parametrize("whole", [(True, True), (True, False), (False, False)])
def test_two_traces_are_cut_if_one_is(whole):
    """As the longer one is."""
    one, other = (
        Chunks.of(rows, {("a run", "c1"): rows}, room_mb=ROOM_MB * 9 if fits else 0)
        for rows, fits in zip((3_000_000, 2_000_000), whole, strict=True)
    )
    for both in (one.beside(other), other.beside(one)):
        assert both == dataclasses.replace(one, whole=all(whole))


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
    much = {("a run", None): HELD}
    assert Chunks.of(HELD + 300_000, connections | much, room_mb=ROOM_MB).whole
    assert not Chunks.of(HELD + 300_000, much, room_mb=ROOM_MB).whole


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
