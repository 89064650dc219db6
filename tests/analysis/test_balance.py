"""One hot link does not make one hot task, read from Spark's own task metrics."""

import dataclasses
import importlib

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

from workbench.analysis.chunks import Chunks
from workbench.analysis.credit import credit
from workbench.analysis.reading import open_trace
from workbench.analysis.session import SCAN_TASKS
from workbench.scenarios.run import run
from workbench.trace import files

PARTS = 10


@pytest.fixture(autouse=True)
def as_a_session_of_ours(spark):
    """Scans are cut as `session` sets it; the other tests ask for fewer, quicker tasks."""
    ours = {
        "spark.sql.files.minPartitionNum": str(SCAN_TASKS),
        "spark.sql.adaptive.enabled": "true",
    }
    before = {name: spark.conf.get(name) for name in ours}
    for name, text in ours.items():
        spark.conf.set(name, text)
    yield
    for name, text in before.items():
        spark.conf.set(name, text)


@pytest.fixture(scope="module")
def hot(spark, tmp_path_factory):
    """A trace of one busy link, in several files as a recorder leaves it."""
    rows = run(
        "credit",
        "rmq4.3",
        {"messages": 600, "policy": "one-at-a-time", "acknowledge": "auto"},
    ).rows
    folder = tmp_path_factory.mktemp("hot")
    size = len(rows) // PARTS + 1
    for part, start in enumerate(range(0, len(rows), size)):
        slim = [dataclasses.replace(row, item=None, raw=None) for row in rows[start : start + size]]
        files.write(folder / f"{part:02d}.parquet", slim)
    return open_trace(spark, folder)


def tasks_of(spark, work):
    """The metrics of every task of a job."""
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("balance", "balance")
    seen = set(tracker.getJobIdsForGroup("balance"))
    work()
    store = spark._jsparkSession.sparkContext().statusStore()
    stages = {
        stage
        for job in set(tracker.getJobIdsForGroup("balance")) - seen
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


ASKED = ("credit", "stalls", "windows", "grants", "latency", "throughput", "violations")
CUT = 256, 10
"""Chunks, and the tasks that they are dealt to."""


@pytest.mark.parametrize("name", ASKED)
def test_no_task_has_more_than_an_eighth_of_the_rows(spark, hot, name):
    """Whatever the link, rows are dealt by chunk [one link here has them all]."""
    question = getattr(importlib.import_module(f"workbench.analysis.{name}"), name)
    chunks = Chunks(rows=hot.rows // CUT[0], tasks=CUT[1])
    most = largest_task(spark, lambda: done(question(chunks=chunks)(hot.frame)))
    assert 0 < most <= hot.rows / 8


def test_credit_deals_its_rows_once(spark, hot):
    """Both passes over the rows read one shuffle [a second one would write them all again]."""
    chunks = Chunks(rows=hot.rows // CUT[0], tasks=CUT[1])
    work = credit(chunks=chunks)(hot.frame)
    links = hot.frame.where("link is not null and event in ('sent', 'received')").count()
    dealt = sum(
        one.shuffleWriteMetrics().recordsWritten() for one in tasks_of(spark, lambda: done(work))
    )
    assert links <= dealt < 1.5 * links


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
