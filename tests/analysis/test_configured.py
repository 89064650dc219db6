"""What a user has configured for Spark wins over what we think best."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.analysis import session
from workbench.analysis.configured import configured
from workbench.analysis.errors import AnalysisError
from workbench.analysis.java import Java, find_java
from workbench.analysis.reading import told

DEFAULTS = """
# a comment
spark.master            spark://host:7077
spark.sql.shuffle.partitions=7
spark.driver.memory:    3g
spark.sql.files.maxPartitionBytes \\
    4m
  spark.pyspark.python  /opt/python
"""


@pytest.fixture
def folder(tmp_path):
    """A folder of settings."""
    (tmp_path / "spark-defaults.conf").write_text(DEFAULTS, encoding="utf-8")
    return tmp_path


def test_settings_are_found_where_spark_looks_for_them(folder, tmp_path):
    """The file of defaults, then what `spark-submit` would be called with, which weighs more."""
    variables = {"SPARK_CONF_DIR": str(folder)}
    assert configured(variables) == {
        "spark.master": "spark://host:7077",
        "spark.sql.shuffle.partitions": "7",
        "spark.driver.memory": "3g",
        "spark.sql.files.maxPartitionBytes": "4m",
        "spark.pyspark.python": "/opt/python",
    }
    absent = {"SPARK_CONF_DIR": str(tmp_path / "absent")}
    assert configured(absent) == {}
    assert configured(absent | {"SPARK_MASTER": "local[7]"}) == {"spark.master": "local[7]"}
    assert configured(variables | {"SPARK_MASTER": "local[7]"}) == configured(variables)
    called = "--master local[3] -c spark.sql.shuffle.partitions=9 --jars x.jar --verbose"
    found = configured(variables | {"PYSPARK_SUBMIT_ARGS": f"{called} pyspark-shell"})
    assert (found["spark.master"], found["spark.sql.shuffle.partitions"]) == ("local[3]", "9")
    assert found["spark.driver.memory"] == "3g"
    other = tmp_path / "other.conf"
    other.write_text("spark.ui.enabled true", encoding="utf-8")
    instead = {"PYSPARK_SUBMIT_ARGS": f"--properties-file {other} pyspark-shell"}
    assert configured(variables | instead) == {"spark.ui.enabled": "true"}
    with pytest.raises(AnalysisError, match="PYSPARK_SUBMIT_ARGS: No closing quotation"):
        configured({"PYSPARK_SUBMIT_ARGS": "--conf 'spark.a=b"})


@pytest.fixture
def started(monkeypatch):
    """Starts a session as far as Java's call: the settings it is called with, and the variables."""

    def start(variables, **settings):
        given = {}

        class Builder:
            def config(self, name, value):
                given[name] = value
                return self

            def getOrCreate(self):  # noqa: N802 (Spark's name)
                raise RuntimeError("not started")

        monkeypatch.setattr(os, "environ", dict(variables))
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
        monkeypatch.setattr(
            session, "find_java", lambda: Java(home=Path("x"), version=21, bundled=False)
        )
        monkeypatch.setattr("pyspark.sql.SparkSession.builder", Builder())
        with pytest.raises(AnalysisError, match="not started"):
            session.get_spark(say=lambda _: None, **settings)
        return given, os.environ

    return start


def test_what_is_configured_is_left_alone(started, folder):
    """Neither a setting of ours nor what suits a question takes its place."""
    variables = {"SPARK_CONF_DIR": str(folder)}
    suited = {"spark.sql.shuffle.partitions": "4", "spark.sql.codegen.wholeStage": "false"}
    options, after = started(variables, quick=True, suited=suited)
    assert not set(options) & set(configured(variables))
    assert options["spark.sql.codegen.wholeStage"] == "false"
    assert "spark.driver.host" not in options  # that of this machine alone would cut a cluster off
    assert after["PYSPARK_PYTHON"] == "/opt/python"
    _, after = started({**variables, "PYSPARK_PYTHON": "/usr/bin/python3"})
    assert after["PYSPARK_PYTHON"] == "/usr/bin/python3"


def test_what_is_asked_for_here_weighs_most(started, folder):
    """An argument, or a variable of the workbench's own, is the user's latest word."""
    variables = {"SPARK_CONF_DIR": str(folder), "WORKBENCH_SPARK_MEMORY": "512m"}
    options, _ = started(variables, master="local[2]", more={"spark.sql.shuffle.partitions": "5"})
    assert options["spark.driver.memory"] == "512m"
    assert options["spark.master"] == "local[2]"
    assert options["spark.sql.shuffle.partitions"] == "5"
    assert options["spark.driver.host"] == "127.0.0.1"


def test_where_nothing_is_configured_it_is_what_fits_the_machine(started, tmp_path):
    """A small heap, this machine alone, and this Python."""
    options, after = started({"SPARK_CONF_DIR": str(tmp_path)})
    assert options["spark.driver.memory"] == session.MEMORY
    assert options["spark.master"].startswith("local[")
    assert options["spark.sql.shuffle.partitions"] == "16"
    assert after["PYSPARK_PYTHON"] == sys.executable


@pytest.mark.parametrize(("heap", "size"), [("512m", "8m"), ("", "72m"), ("8g", "328m")])
def test_a_window_leaves_room_for_others_in_any_heap(started, tmp_path, heap, size):
    """What it holds of a long link beyond that goes to disk; else it takes all the memory."""
    options, _ = started({"SPARK_CONF_DIR": str(tmp_path), "WORKBENCH_SPARK_MEMORY": heap})
    assert options["spark.sql.windowExec.buffer.spill.size.threshold"] == size


def test_settings_of_a_question_spare_what_was_configured_or_asked_for(folder, monkeypatch):
    """A small trace's settings, which a lesson makes for each question."""
    monkeypatch.setattr(os, "environ", {"SPARK_CONF_DIR": str(folder)})
    suited = {"spark.sql.shuffle.partitions": "4", "a": "1", "b": "2"}
    assert session.left_open(suited, {"a": "3"}) == {"b": "2"}


def test_a_file_that_executors_do_not_see_is_told_from_one_that_is_gone(tmp_path):
    """This program still sees it, whatever its name."""
    for name in ("t.parquet", "a trace.parquet", "trace"):
        file = tmp_path / name
        text = f"java.io.FileNotFoundException: File {file.as_uri()} does not exist"
        with pytest.raises(AnalysisError, match=f"{name}: was deleted or moved"), told():
            raise RuntimeError(text)
        file.touch()
        with pytest.raises(AnalysisError, match=f"{name}: this program sees it and Spar"), told():
            raise RuntimeError(text)
    with pytest.raises(AnalysisError, match="executors have no /opt/py; PYSPARK_PYTHON"), told():
        raise RuntimeError('java.io.IOException: Cannot run program "/opt/py": error=2, No such')


PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from workbench.analysis.session import get_spark

spark = get_spark(say=lambda _: None, quick=True, suited={"spark.sql.shuffle.partitions": "4"})
names = "spark.sql.shuffle.partitions", "spark.sql.files.minPartitionNum", "spark.ui.enabled"
print("answer", json.dumps([spark.sparkContext.master, *map(spark.conf.get, names)]))
spark.stop()
"""


@pytest.mark.slow
def test_a_program_run_by_spark_submit_has_its_master_and_settings(repo, tmp_path):
    """Of the command, and of the file of defaults; what nobody has set is ours."""
    try:
        java = find_java()
    except AnalysisError as error:
        pytest.skip(str(error))
    import pyspark

    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.sql.shuffle.partitions 7\nspark.driver.host 127.0.0.1\n", encoding="utf-8"
    )
    done = subprocess.run(
        [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[1]",
         "--conf", "spark.sql.files.minPartitionNum=3", str(tmp_path / "program.py"), str(repo)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {
            "JAVA_HOME": str(java.home), "SPARK_CONF_DIR": str(tmp_path),
            "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )  # fmt: skip
    answers = [line for line in done.stdout.splitlines() if line.startswith("answer ")]
    assert answers, done.stderr[-3000:]
    assert json.loads(answers[0].removeprefix("answer ")) == ["local[1]", "7", "3", "false"]


def test_no_answer_comes_through_a_port_that_somebody_else_may_call(spark, monkeypatch):
    """Jupyter calls ports that its kernels have not opened yet, and Spark takes one caller."""
    if not session._sockets():
        pytest.skip("no sockets in a folder on this system, or its name is too long")
    called, connect = [], socket.socket.connect

    def noted(self, address):
        called.append(self.family)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", noted)
    assert [row.id for row in spark.range(3).collect()] == [0, 1, 2]
    assert spark.range(3).toArrow().num_rows == 3
    assert spark.createDataFrame([(7,)], "a int").collect()[0].a == 7
    assert set(called) == {socket.AF_UNIX}


@pytest.mark.parametrize(
    ("length", "told"), [(session.LONGEST_FOLDER, 2), (session.LONGEST_FOLDER + 1, 0)]
)
def test_a_folder_with_too_long_a_name_holds_no_sockets(monkeypatch, length, told):
    """A system takes 103 octets, as macOS, or a few more."""
    monkeypatch.setattr(session, "aside_until_exit", lambda: Path("/" + "x" * (length - 1)))
    assert len(session._sockets()) == told
