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
from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import find_java
from workbench.trace.importer import import_capture

from .runs import CAPTURES

NAMES = ("rmq40_c_drain.pcapng", "rmq43_c_drain.pcapng")
PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from workbench.analysis.ingest import ingest
from workbench.analysis.reading import open_trace
from workbench.analysis.session import get_spark
from workbench.analysis.windows import windows

spark = get_spark(say=lambda _: None, memory="512m", quick=True, more={
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
})
result = ingest(spark, json.loads(sys.argv[2]), sys.argv[3])
trace = open_trace(spark, sys.argv[3])
rows = [row.asDict() for row in windows(chunks=trace.chunks)(trace.frame).collect()]
store = spark._jsparkSession.sparkContext().statusStore().executorList(False)
tasks = {store.apply(at).id(): store.apply(at).totalTasks() for at in range(store.size())}
print("answer", json.dumps([result.files, result.rows, rows, tasks]))
spark.stop()
"""


@pytest.mark.slow
def test_a_master_s_url_is_all_that_a_cluster_needs(repo, tmp_path):
    """Import and question give what they give here, and the driver has run no task."""
    try:
        find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    import pyspark

    # The cluster keeps its executors' folders below Spark's home.
    spark_home = tmp_path / "spark"
    spark_home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        (spark_home / part.name).symlink_to(part)
    captures = tmp_path / "captures"
    captures.mkdir()
    for name in NAMES:
        shutil.copy(CAPTURES / name, captures)
    wanted = sorted(
        folds.windows(import_capture([captures / name for name in NAMES]).rows),
        key=lambda row: (row["run"], row["connection"], row["session"], row["sender"]),
    )
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(repo), json.dumps([captures.as_uri()]),
         f"{tmp_path.as_uri()}/trace"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=variables | {
            "SPARK_HOME": str(spark_home), "WORKBENCH_SPARK_MASTER": "local-cluster[2,1,512]"
        },
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert answers, done.stderr[-3000:]
    files, count, rows, tasks = json.loads(answers[0].removeprefix("answer "))
    assert (files, count) == (2, len(import_capture([captures / name for name in NAMES]).rows))
    rows.sort(key=lambda row: (row["run"], row["connection"], row["session"], row["sender"]))
    assert rows == wanted
    assert tasks.pop("driver", 0) == 0
    assert sum(tasks.values()) > 0
