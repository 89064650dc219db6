"""Makes Java's cache: starts Spark once, asks it a question, and has Java keep what that took.

More questions hardly make the cache better, since most of what they use the first one uses too, but
each adds seconds. What is kept are classes, not counts of calls. All takes 45 seconds on two cores
and 450 MB of disk, and leaves 200 MB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import AnalysisError
from .gateway import start_java
from .java import Java, find_java
from .java_cache import QUIET, place
from .session import JAVA_OPTIONS, Settings, get_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["make"]

NEEDED_BYTES = 600_000_000
"""What must be free: for what Java has seen, and for the cache that it makes of that."""
MEMORY = "1g"
NO_COUNTS = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTRecordTraining")
"""With the counts of a run by the quick compiler, the next Java would leave to that what pays for
the full one: the tasks of 10 million rows took half as long again."""
_WAIT_S = 300
_OLD_S = 3_600

Say = Callable[[str], None]


def make(trace: Path, more: Mapping[str, str], *, say: Say) -> Path | None:
    """Makes the cache of the Java that is found here, if it can have one and has none yet.

    Spark must not have been started in this process, for its Java is ended.

    Args:
        trace: a small trace, of which a question is asked.
        more: Spark's settings for it, as they are for a small trace.
        say: told what is being done.

    Returns:
        The cache; None if this Java can have none.

    Raises:
        AnalysisError: it could not be made; nothing half-made is left, and all works without.
    """
    java = find_java()
    target = place(java)
    if target is None or target.is_file():
        return target
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear(target.parent, ".java-*", older_s=_OLD_S)  # of one that was killed
        part.touch()
        free = shutil.disk_usage(target.parent).free
        if free < NEEDED_BYTES:
            raise AnalysisError(
                f"{target.parent}: {free // 10**6} MB are free, {NEEDED_BYTES // 10**6} are needed"
            )
        _train(java, trace, more, part, say)
        if not part.is_file() or not part.stat().st_size:
            raise AnalysisError("Java kept nothing")
        _clear(target.parent, "java-*.aot")  # of another version: nobody uses them any more
        part.replace(target)
    except OSError as error:
        raise AnalysisError(f"{target.parent}: {error.strerror or error}") from None
    finally:
        _clear(target.parent, f"{part.name}*")
    return target


def _train(java: Java, trace: Path, more: Mapping[str, str], part: Path, say: Say) -> None:
    """One run that Java watches, and then what it makes of what it has seen."""
    seen = part.with_name(f"{part.name}.seen")
    say("Java watches a start of Spark and a question: about 30 seconds, once")
    settings = Settings(memory=MEMORY, master="local[2]", quick=True).spark({})
    watch = (*QUIET, *NO_COUNTS, "-XX:AOTMode=record", f'"-XX:AOTConfiguration={seen}"')
    settings |= {**more, JAVA_OPTIONS: " ".join([settings[JAVA_OPTIONS], *watch])}
    process = start_java(settings, java.home)
    try:
        spark = get_spark(say=lambda _: None, memory=MEMORY, master="local[2]", more=settings)
        machine: Any = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
        class_path = str(machine.System.getProperty("java.class.path"))
        bean = machine.management.ManagementFactory.getRuntimeMXBean()
        given = [str(one) for one in bean.getInputArguments() if "-XX:AOT" not in str(one)]
        _ask(spark, trace, part.with_name(f"{part.name}.answer"))
        spark.stop()
        process.stdin.close()  # Java ends by itself, and writes what it has seen
        process.wait(_WAIT_S)
        say("Java makes its cache of that: about 15 seconds")
        make = [str(java.home / "bin" / "java"), *given, "-XX:AOTMode=create"]
        make += [f"-XX:AOTConfiguration={seen}", f"-XX:AOTCache={part}", "-cp", class_path]
        part.unlink()
        subprocess.run(make, check=True, capture_output=True, text=True, timeout=_WAIT_S)
    except subprocess.TimeoutExpired:
        raise AnalysisError(f"Java was not ready after {_WAIT_S} seconds") from None
    except subprocess.CalledProcessError as error:
        lines = str(error.stderr).strip().splitlines()
        raise AnalysisError(f"Java said: {lines[-1] if lines else 'nothing'}") from None
    finally:
        process.kill()
        process.wait()


def _ask(spark: SparkSession, trace: Path, answer: Path) -> None:
    """What users do: open a trace, ask, and have the answer written."""
    from .credit import credit
    from .reading import open_trace
    from .writing import write_answer

    opened = open_trace(spark, trace)
    try:
        write_answer(credit(chunks=opened.chunks)(opened.frame), answer)
    finally:
        shutil.rmtree(answer, ignore_errors=True)


def _clear(folder: Path, pattern: str, *, older_s: float = 0.0) -> None:
    for file in sorted(folder.glob(pattern)):
        if file.is_file() and file.stat().st_mtime <= time.time() - older_s:
            file.unlink(missing_ok=True)
