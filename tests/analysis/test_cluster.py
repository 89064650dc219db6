"""The same program on a cluster: two workers in processes of their own, and nothing else said.

Only the master's URL differs. Captures and trace lie at URLs, the executors have not this package
on their path, and what they read they fetch themselves.
"""

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from workbench import folds
from workbench.analysis.errors import UNSEEN, AnalysisError
from workbench.analysis.java import find_java
from workbench.capture.importer import import_capture
from workbench.trace import files

from .processes import can_hide, of_spark, running, spark_class, without
from .runs import CAPTURES

REPO = Path(__file__).resolve().parents[2]
NAMES = ("rmq40_c_drain.pcapng", "rmq43_c_drain.pcapng")
PROGRAM = """
import json, os, signal, sys
given = json.loads(sys.argv[1])
sys.path.insert(0, given["repo"])
from workbench.analysis.chunks import Chunks
from workbench.analysis.errors import AnalysisError
from workbench.analysis.grants import grants
from workbench.analysis.ingest import ingest
from workbench.analysis.reading import open_trace, told
from workbench.analysis.session import get_spark
from workbench.analysis.windows import windows

spark = get_spark(say=lambda _: None, memory="512m", quick=True, more={
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.scheduler.minRegisteredResourcesRatio": "1",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
})
captures, target, hidden = given["captures"], given["target"], given["hidden"]
result = ingest(spark, captures, target)
trace = open_trace(spark, target)
rows = [row.asDict() for row in windows(chunks=trace.chunks)(trace.frame).collect()]

def tasks():
    store = spark._jsparkSession.sparkContext().statusStore().executorList(False)
    return {store.apply(at).id(): store.apply(at).totalTasks() for at in range(store.size())}

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
there = tasks()
answer = grants(chunks=Chunks(rows=20, tasks=4))(trace.frame)  # half of the work is done by now
os.killpg(given["victim"], signal.SIGKILL)
broken = [row.asDict() for row in answer.collect()]
print("answer", json.dumps([result.files, result.rows, rows, there, unseen, broken]))
spark.stop()
"""


@contextmanager
def cluster(place, hidden, java):
    """A master's URL, and the process groups of its two workers, which do not see a folder."""
    program, variables, port = spark_class(), of_spark(java), free_port()
    here = ["--host", "127.0.0.1", "--webui-port", "0"]
    master = [program, "org.apache.spark.deploy.master.Master", *here, "--port", str(port)]
    worker = [program, "org.apache.spark.deploy.worker.Worker", *here, "-c", "1", "-m", "512m"]
    worker = without(hidden, worker)
    with ExitStack() as processes:
        workers = []
        for name in ("master", "one", "two"):
            folder = place / name
            folder.mkdir()
            more = ["-d", str(folder), f"spark://127.0.0.1:{port}"]
            command = master if name == "master" else worker + more
            group = processes.enter_context(running(command, folder, variables))
            workers += [] if name == "master" else [group]
        yield f"spark://127.0.0.1:{port}", workers


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What a program says on a cluster, of which it ends one worker in the middle of an answer."""
    try:
        java = find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    place = tmp_path_factory.mktemp("cluster")
    captures, hidden = place / "captures", place / "hidden"
    for folder in (captures, hidden / "captures"):
        folder.mkdir(parents=True)
        for name in NAMES:
            shutil.copy(CAPTURES / name, folder)
    (hidden / "trace").mkdir()
    files.write(hidden / "trace" / "a trace.parquet", import_capture(CAPTURES / NAMES[0]).rows)
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with cluster(place, hidden, java) as (url, workers):
        given = {
            "repo": str(REPO), "captures": [captures.as_uri()], "target": f"{place.as_uri()}/trace",
            "hidden": str(hidden), "victim": workers[0],
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(given)],
            capture_output=True, text=True, check=False, cwd=place,
            env=variables | {"WORKBENCH_SPARK_MASTER": url},
        )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert answers, done.stderr[-3000:]
    return json.loads(answers[0].removeprefix("answer "))


def in_order(rows):
    return sorted(rows, key=lambda row: [str(row.get(name)) for name in ORDER])


ORDER = ("run", "connection", "session", "link", "link_sender", "attach_no", "sender")


@pytest.mark.slow
def test_a_master_s_url_is_all_that_a_cluster_needs(answer):
    """Import and question give what they give here, and the driver has run no task."""
    count, total, rows, tasks, *_ = answer
    captured = import_capture([CAPTURES / name for name in NAMES]).rows
    assert (count, total) == (2, len(captured))
    assert in_order(rows) == in_order(folds.windows(captured))
    assert tasks.pop("driver", 0) == 0
    assert len([each for each in tasks.values() if each]) == 2


@pytest.mark.slow
def test_an_executor_that_is_lost_in_the_middle_does_not_spoil_an_answer(answer):
    """What it had worked out is worked out again by the other one."""
    *_, broken = answer
    captured = import_capture([CAPTURES / name for name in NAMES]).rows
    assert in_order(broken) == in_order(folds.grants(captured))


@pytest.mark.slow
def test_what_executors_do_not_see_is_said_so(answer):
    """A trace, a folder to write into, captures: each is there, but on this machine alone."""
    if not can_hide():
        pytest.skip("no folder can be hidden from a process here")
    *_, unseen, _broken = answer
    for text in unseen:
        assert UNSEEN in text
        assert "\n" not in text
    trace, folder, captures = unseen
    assert "hidden/trace/a trace.parquet: " in trace
    assert "hidden/more: " in folder
    assert all(name in captures for name in NAMES)
