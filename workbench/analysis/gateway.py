"""Java for Spark, started so that what it says of itself does not land in a notebook or a table.

Its launcher and its logging write a few lines to stderr at every start, none of which is about the
question. They go to a file; if Java does not come up, the file's last line says why. What Java
would print on stdout goes there too: it would stand among the rows of an answer.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import AnalysisError

__all__ = ["start_java"]


def start_java(options: Mapping[str, str], home: Path) -> Any:
    """Starts the Java that the next session uses; nothing if one runs already.

    Args:
        options: Spark's settings: those that Java itself must know (heap, its own options).
        home: the Java, as JAVA_HOME names it.

    Returns:
        The process, a `Popen`.

    Raises:
        AnalysisError: it did not come up; the text has the last thing it said.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway.proc  # type: ignore[attr-defined]
    conf = SparkConf(loadDefaults=False).setAll(list(options.items()))
    with tempfile.TemporaryFile() as said:
        try:
            # The process holds the file open for as long as it lives.
            with _java_home(home):
                gateway = launch_gateway(conf, {"stdout": said, "stderr": said})
        except PySparkRuntimeError:
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
            why = lines[-1] if lines else "it said nothing"
            raise AnalysisError(f"Spark did not start, Java ended: {why}") from None
    SparkContext._gateway = gateway
    SparkContext._jvm = gateway.jvm
    return gateway.proc


@contextmanager
def _java_home(home: Path) -> Iterator[None]:
    """JAVA_HOME for Spark's launcher alone.

    What the wheel's Java has for a home is gone with this process: no other is to find it.
    """
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
