"""What an answer leaves in Spark's heap, and how a heap that is full ends."""

import subprocess
import sys

import pytest

from workbench import ask_trace
from workbench.scenarios.run import run
from workbench.trace import files


def remembered(spark):
    """The queries whose jobs Spark still remembers; it forgets finished ones a little later."""
    spark.range(1).count()
    return {*spark.sparkContext._jsc.sc().dagScheduler().activeQueryToJobs().keySet()}


@pytest.mark.slow
def test_an_answer_that_was_given_leaves_nothing_behind(spark, tmp_path):
    """Neither what the question kept, nor the answer [as after Spark's `toLocalIterator`]."""
    trace = tmp_path / "trace.parquet"
    files.write(trace, run("credit").rows)
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = {*kept()}
    for question in ("stalls", "credit"):
        answer = ask_trace(trace, question, engine="spark")
        assert list(answer) == list(ask_trace(trace, question, engine="plain"))
    assert {*kept()} == before
    assert not remembered(spark) & remembered(spark)


FULL = """
from workbench.analysis.errors import AnalysisError
from workbench.analysis.reading import told
from workbench.analysis.session import get_spark

spark = get_spark(say=lambda _: None, memory="512m")
try:
    with told():
        spark.sql("select length(repeat('x', 600000000))").collect()
except AnalysisError as error:
    print(error)
try:
    get_spark(say=print)
except AnalysisError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_full_heap_ends_in_one_line_and_not_in_waiting_for_ever(spark):
    """Of Spark's threads one that finds it full only vanishes: so Java is told to end."""
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == second
    assert "its heap was full; start this program or notebook again with more" in first
