"""The same program on a cluster: two executors, each a process of its own, and nothing else said.

Only the master's URL differs. Captures and trace lie at URLs, the executors have not this package
on their path, and what they read they fetch themselves.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import folds
from workbench.analysis.errors import UNSEEN, AnalysisError
from workbench.analysis.java import find_java
from workbench.capture.importer import import_capture
from workbench.trace import files

from .runs import CAPTURES

REPO = Path(__file__).resolve().parents[2]
NAMES = ("rmq40_c_drain.pcapng", "rmq43_c_drain.pcapng")
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from workbench.analysis.errors import AnalysisError
from workbench.analysis.ingest import ingest
from workbench.analysis.reading import open_trace, told
from workbench.analysis.session import get_spark
from workbench.analysis.windows import windows

spark = get_spark(say=lambda _: None, memory="512m", quick=True, more={
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
})
captures, target, hidden = json.loads(sys.argv[2]), sys.argv[3], sys.argv[4]
result = ingest(spark, captures, target)
trace = open_trace(spark, target)
rows = [row.asDict() for row in windows(chunks=trace.chunks)(trace.frame).collect()]
store = spark._jsparkSession.sparkContext().statusStore().executorList(False)
tasks = {store.apply(at).id(): store.apply(at).totalTasks() for at in range(store.size())}

def asked(work):
    try:
        with told():
            return f"no error: {work()}"
    except AnalysisError as error:
        return str(error)

unseen = [
    asked(lambda: open_trace(spark, f"{hidden}/trace").frame.agg({"seq": "max"}).collect()),
    asked(lambda: ingest(spark, captures, f"{hidden}/more")),
    asked(lambda: ingest(spark, f"{hidden}/captures", f"{target}-more".removeprefix("file://"))),
]
print("answer", json.dumps([result.files, result.rows, rows, tasks, unseen]))
spark.stop()
"""


JAVA = """#!/bin/sh
case "$*" in
*CoarseGrainedExecutorBackend*)
    exec unshare -m sh -c 'mount -t tmpfs none "$0" && exec "$@"' '{hidden}' '{java}' "$@" ;;
esac
exec '{java}' "$@"
"""
"""A Java whose executors find an empty folder where this program has data: as on other machines."""


def can_hide():
    """Whether this user may give a process a folder of its own."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What a program says on a cluster: files, rows, an answer, tasks, and what is not seen."""
    try:
        java = find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    import pyspark

    place = tmp_path_factory.mktemp("cluster")
    # The cluster keeps its executors' folders below Spark's home.
    spark_home = place / "spark"
    spark_home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (spark_home / part.name).symlink_to(part)
    captures, hidden = place / "captures", place / "hidden"
    for folder in (captures, hidden / "captures"):
        folder.mkdir(parents=True)
        for name in NAMES:
            shutil.copy(CAPTURES / name, folder)
    (hidden / "trace").mkdir()
    files.write(hidden / "trace" / "t.parquet", import_capture(CAPTURES / NAMES[0]).rows)
    home = java.home
    if can_hide():
        home = place / "java"
        (home / "bin").mkdir(parents=True)
        program = home / "bin" / "java"
        text = JAVA.format(hidden=hidden, java=java.home / "bin" / "java")
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(REPO), json.dumps([captures.as_uri()]),
         f"{place.as_uri()}/trace", str(hidden)],
        capture_output=True, text=True, check=False, cwd=place,
        env=variables | {
            "SPARK_HOME": str(spark_home), "WORKBENCH_SPARK_MASTER": "local-cluster[2,1,512]",
            "JAVA_HOME": str(home),
        },
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert answers, done.stderr[-3000:]
    return json.loads(answers[0].removeprefix("answer "))


@pytest.mark.slow
def test_a_master_s_url_is_all_that_a_cluster_needs(answer):
    """Import and question give what they give here, and the driver has run no task."""
    count, total, rows, tasks, _unseen = answer
    captured = import_capture([CAPTURES / name for name in NAMES]).rows
    wanted = sorted(
        folds.windows(captured),
        key=lambda row: (row["run"], row["connection"], row["session"], row["sender"]),
    )
    assert (count, total) == (2, len(captured))
    rows.sort(key=lambda row: (row["run"], row["connection"], row["session"], row["sender"]))
    assert rows == wanted
    assert tasks.pop("driver", 0) == 0
    assert sum(tasks.values()) > 0


@pytest.mark.slow
def test_what_executors_do_not_see_is_said_so(answer):
    """A trace, a folder to write into, captures: each is there, but on this machine alone."""
    if not can_hide():
        pytest.skip("no folder can be hidden from a process here")
    *_, unseen = answer
    for text in unseen:
        assert UNSEEN in text
        assert "\n" not in text
    trace, folder, captures = unseen
    assert "hidden/trace/t.parquet: " in trace
    assert "hidden/more: " in folder
    assert all(name in captures for name in NAMES)
