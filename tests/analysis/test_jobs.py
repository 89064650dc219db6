"""How far Spark is, and how long its start takes: told while it goes on, and remembered."""

import json
from types import SimpleNamespace

import pytest

from workbench.analysis.errors import AnalysisError
from workbench.analysis.jobs import Progress, watched
from workbench.analysis.starting import Starting, last_start


def test_tasks_are_counted_while_spark_works_and_at_the_end(spark):
    """Every job and task of the work, none of those before it."""
    spark.range(10, numPartitions=7).count()
    told = []
    with watched(spark, told.append, tick_s=0.01):
        spark.sparkContext.parallelize(range(6), 6).map(lambda n: n * n).count()
        spark.range(1_000, numPartitions=3).rdd.getNumPartitions()
    last = told[-1]
    assert last.over
    assert (last.jobs, last.done, last.tasks) == (1, 6, 6)
    assert all(not one.over for one in told[:-1])
    assert [one.done for one in told] == sorted(one.done for one in told)
    assert "done in" in str(last)


def test_what_spark_connect_reports_is_told():
    """It has no tracker: it calls a handler, which is taken off again."""
    handlers, told = [], []
    session = SimpleNamespace(
        registerProgressHandler=handlers.append, removeProgressHandler=handlers.remove
    )

    def stage(number, done, tasks):
        return SimpleNamespace(stage_id=number, num_completed_tasks=done, num_tasks=tasks)

    with watched(session, told.append):
        handlers[0](None, 0, "one", False)
        handlers[0]([stage(1, 2, 4)], 2, "one", False)
        handlers[0]([stage(1, 4, 4), stage(2, 1, 1)], 0, "one", True)
    assert not handlers
    last = told[-1]
    assert (last.jobs, last.done, last.tasks, last.over) == (1, 5, 5, True)


def test_the_end_is_told_when_the_work_fails(spark):
    """And the error is the work's own."""
    told = []
    with pytest.raises(ZeroDivisionError), watched(spark, told.append):
        raise ZeroDivisionError
    assert told[-1].over


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(seconds=2.0), "2 s: Spark plans"),
        (Progress(jobs=1, done=3, tasks=8, seconds=4.4), "4 s: 3 of 8 tasks done, 1 job so far"),
        (Progress(jobs=2, done=8, tasks=8, seconds=4.44, over=True), "done in 4.4 s: 2 jobs, 8"),
    ],
)
def test_a_progress_in_words(progress, text):
    """What stands beside the bar."""
    assert str(progress).startswith(text)


def test_the_middle_of_the_last_starts_is_expected(tmp_path):
    """Nobody knows before the first; a file that is damaged is as good as none."""
    file = tmp_path / "spark_start.json"
    assert last_start(None) is None
    assert last_start(file) is None
    file.write_text(json.dumps({"seconds": [30.0, 8.0, 9.0]}))
    assert last_start(file) == 9.0
    for damaged in ("", "{", "[]", '{"seconds": "x"}', '{"seconds": [[]]}'):
        file.write_text(damaged)
        assert last_start(file) is None


def test_a_start_is_told_and_remembered(spark, tmp_path):
    """A session that is there already is taken; the time is kept for the next start."""
    file = tmp_path / "my" / "spark_start.json"
    told = []
    starting = Starting(memory_of=file, tell=told.append)
    assert starting.session() is not None
    assert starting.over
    assert starting.problem == ""
    assert last_start(file) == pytest.approx(starting.seconds, abs=0.1)


def test_without_java_there_is_no_start(monkeypatch):
    """One line that says what to do."""
    monkeypatch.setenv("WORKBENCH_JAVA", "none")
    with pytest.raises(AnalysisError, match="WORKBENCH_JAVA=none"):
        Starting()
