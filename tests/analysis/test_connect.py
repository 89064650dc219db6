"""The same questions through Spark Connect, where nothing is there but a server's URL.

Python has no way to Java there, and no step without columns.
"""

import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.patience import until
from tests.ports import free_port
from workbench import folds
from workbench.analysis import session
from workbench.analysis.errors import UNSEEN, AnalysisError
from workbench.analysis.java import find_java
from workbench.capture.importer import import_capture
from workbench.trace import files

from .processes import can_hide, of_spark, running, spark_class, without
from .runs import CAPTURES
from .test_questions import CONNECTED, CUT, same

REPO = Path(__file__).resolve().parents[2]
NAMES = ("rmq40_c_drain.pcapng", "rmq43_c_drain.pcapng")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}
PROGRAM = """
import importlib, json, sys
given = json.loads(sys.argv[1])
sys.path.insert(0, given["repo"])
from workbench.analysis.chunks import Chunks
from workbench.analysis.errors import AnalysisError
from workbench.analysis.ingest import ingest
from workbench.analysis.jobs import watched
from workbench.analysis.reading import open_trace, told
from workbench.analysis.starting import Starting

spark = Starting().session()
trace = open_trace(spark, given["trace"])
rows, tasks = given["chunks"]
chunks = Chunks(rows=rows, tasks=tasks)
answers, seen = {}, []
for name in given["questions"]:
    question = getattr(importlib.import_module(f"workbench.analysis.{name}"), name)
    with watched(spark, seen.append):
        answer = question(chunks=chunks)(trace.frame)
        answers[name] = answer.columns, [row.asDict(recursive=True) for row in answer.collect()]
result = ingest(spark, given["captures"], given["target"])
try:
    with told():
        open_trace(spark, given["hidden"]).frame.collect()
except AnalysisError as error:
    unseen = str(error)
tasks = max(now.done for now in seen if now.over)
print("answer", json.dumps([answers, result.files, result.rows, tasks, unseen]))
"""


def answers_at(port):
    """Whether somebody listens there."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@pytest.fixture(scope="module")
def answer(tmp_path_factory, rows):
    """What a program says that knows no more of Spark than the URL of a server."""
    pytest.importorskip("grpc")
    try:
        java = find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    place = tmp_path_factory.mktemp("connect")
    files.write(place / "trace.parquet", rows)
    (place / "hidden").mkdir()
    files.write(place / "hidden" / "trace.parquet", rows[:1])
    port = free_port()
    settings = SMALL | {"spark.connect.grpc.binding.port": str(port)}
    command = [
        spark_class(), "org.apache.spark.deploy.SparkSubmit", "--class", SERVER,
        "--master", "local[2]", "--driver-memory", "1g",
        *(word for pair in settings.items() for word in ("--conf", "=".join(pair))),
        "spark-internal",
    ]  # fmt: skip
    given = {
        "repo": str(REPO), "trace": str(place / "trace.parquet"), "questions": CONNECTED,
        "chunks": [CUT.rows, CUT.tasks], "hidden": str(place / "hidden" / "trace.parquet"),
        "captures": [str(CAPTURES / name) for name in NAMES], "target": str(place / "imported"),
    }  # fmt: skip
    variables = of_spark(java) | {"PYSPARK_PYTHON": sys.executable}
    with running(without(place / "hidden", command), place, variables):
        until(lambda: answers_at(port))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, json.dumps(given)],
            capture_output=True, text=True, check=False, cwd=place,
            env=os.environ | {"SPARK_REMOTE": f"sc://127.0.0.1:{port}", "WORKBENCH_JAVA": "none"},
        )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert answers, done.stderr[-3000:]
    return json.loads(answers[0].removeprefix("answer "))


@pytest.mark.slow
@pytest.mark.parametrize("name", CONNECTED)
def test_a_question_is_the_fold_s(answer, rows, name):
    """Cut into chunks, as every large trace is."""
    same(answer[0][name], folds.QUESTIONS[name].answer(rows))


@pytest.mark.slow
def test_captures_are_imported_where_spark_is(answer):
    """The server has not this package: it is sent there."""
    _, count, total, *_ = answer
    assert (count, total) == (2, len(import_capture([CAPTURES / name for name in NAMES]).rows))


@pytest.mark.slow
def test_how_far_it_is_is_told(answer):
    """As of a Spark on this machine: tasks that are done."""
    *_, tasks, _unseen = answer
    assert tasks > 0


@pytest.mark.slow
def test_what_the_server_does_not_see_is_said_so(answer):
    """The trace is there, but on this machine alone."""
    if not can_hide():
        pytest.skip("no folder can be hidden from a process here")
    assert answer[-1].endswith(f"hidden/trace.parquet: {UNSEEN}")


@pytest.mark.parametrize(
    ("server", "text"),
    [
        ("127.0.0.1:{closed}", "no Spark Connect server answers there within 0.2 s"),
        ("", "Invalid URL for Spark Connect"),
        ("127.0.0.1:x", "Port could not be cast"),
    ],
)
def test_a_server_that_does_not_answer_is_named(monkeypatch, server, text):
    """Soon: Spark's own client would try for ten minutes."""
    pytest.importorskip("grpc")
    url = f"sc://{server.format(closed=free_port())}"
    monkeypatch.setenv("SPARK_REMOTE", url)
    monkeypatch.setattr(session, "ANSWER_S", 0.2)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    with pytest.raises(AnalysisError, match=f"^{url}: .*{text}"):
        session.get_spark(say=lambda _: None)
