"""A Spark session that fits the machine: small heap, no web page, nothing but loopback.

Whoever has a session already passes it on, and every question works with it as it is. What a user
has configured for Spark stays as it is, too (see `configured`): what stands here is for the rest.
Nothing is needed on a cluster but its master URL, nor of a Spark Connect server but its own.

The numbers are from measurements with PySpark 4.3 on two cores: below 450 MB of heap Spark refuses
to start, so 512 MB is the least, which fits Binder's 2 GB together with everything else; up to
about a million rows the quick compiler of Java (C1) and the serial collector answer sooner, above
it the full compiler is three times faster.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.aside import aside_until_exit
from workbench.notebook import kernel_shell

from .configured import configured
from .errors import ENDED, AnalysisError
from .java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .java import Java

__all__ = [
    "MEMORY", "QUICK_ROWS", "SMALL", "SMALL_ROWS", "Settings", "get_spark", "left_open", "room_mb",
]  # fmt: skip

MEMORY = "2g"
MEMORY_VARIABLE = "WORKBENCH_SPARK_MEMORY"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
MASTER_VARIABLE = "WORKBENCH_SPARK_MASTER"
REMOTE_VARIABLE = "SPARK_REMOTE"
"""Spark's own variable for the URL of a Spark Connect server."""
REMOTE = "sc://"
ANSWER_S = 10.0
"""How long a Spark Connect server may take to answer."""
SOCKETS = "spark.python.unix.domain.socket"
LONGEST_FOLDER = 60
"""Octets in the name of a folder for Spark's sockets; 43 more are a socket's own, and 103 fit."""
MEMORY_NAME, MASTER_NAME = "spark.driver.memory", "spark.master"
OF_EXECUTORS = "spark.executor.memory"
LEAST_MB = 512
"""Spark refuses a heap below 450 MB; Java counts a little less than it was given."""
RESERVED_MB = 300
"""Of each heap Spark keeps so much for itself (`UnifiedMemoryManager`)."""
QUICK_ROWS = 1_000_000
"""Rows up to which Java's quick compiler answers sooner."""
SMALL_ROWS = 100_000
SMALL = {
    # Of a small trace the rows cost little, and compiling each step for them costs most.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""What suits a question of a trace of up to `SMALL_ROWS`."""
SCAN_TASKS = 12
"""A scan is cut into at least so many tasks where the file allows it, so that none reads more than
an eighth of the rows. Not more: each reads the whole index of a large file, 3 MB of 10 million
rows."""

# Processor seconds of `credit` and of `stalls` over 600,000 rows: 10.2 and 13.2 with the quick
# compiler alone, 18.1 and 18.6 with both.
_QUICK_JAVA = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    # This compiler alone gets 48 MB for its code, which `compare` fills: then it compiles no more.
    "-XX:ReservedCodeCacheSize=128m",
)
# Processor seconds of `credit` and `stalls` over a million rows with both compilers: 106 with this
# collector, 114 with the one that Java takes by itself.
_JAVA = ("-XX:+UseParallelGC",)
# Without the first, a thread of Spark's that finds the heap full dies alone, and what waits for it
# waits for ever; without the second, Java says so on stdout, where answers go.
_ENDS = ("-XX:+ExitOnOutOfMemoryError", "-XX:+DisplayVMOutputToStderr")
_LOGGING = Path(__file__).with_name("log4j2.properties")

Say = Callable[[str], None]
_MEMORY_TEXT = re.compile(r"\d+[mgMG]")
# Spark takes more words for an amount of memory than are legal here.
_AMOUNT = re.compile(r"\s*(\d+)\s*([bkmgtp]?)")
_UNITS_MB = {"b": 2**-20, "k": 2**-10, "": 1, "m": 1, "g": 2**10, "t": 2**20, "p": 2**30}
_TICK_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How Spark is to be started.

    Attributes:
        memory: heap of the driver, in Java's words: `512m`, `2g`.
        master: where it runs: `local[2]`, or the URL of a cluster or of a Spark Connect server.
        quick: compile for a quick answer, not for a long run: right below about a million rows.
        more: any other Spark setting, by name; it wins.
        suited: what suits the question best, by name; what a user has configured wins.
    """

    memory: str = ""
    master: str = ""
    quick: bool = False
    more: Mapping[str, str] = field(default_factory=dict)
    suited: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def found(cls, **given: Any) -> Settings:
        """Settings with heap and master taken from the environment where they are not given."""
        settings = cls(**given)
        return replace(
            settings,
            memory=settings.memory or os.environ.get(MEMORY_VARIABLE, ""),
            master=settings.master
            or os.environ.get(MASTER_VARIABLE, "")
            or os.environ.get(REMOTE_VARIABLE, ""),
        )

    def java(self) -> Java | None:
        """The Java to start Spark on; None where a Spark Connect server has started it.

        Raises:
            AnalysisError: there is none that is new enough.
        """
        return None if self.master.startswith(REMOTE) else find_java()

    def spark(self, theirs: Mapping[str, str]) -> dict[str, str]:
        """The Spark settings to start with, by name; the rest is as the user has configured it.

        Args:
            theirs: what that is.

        Raises:
            AnalysisError: the heap is no amount, or below what Spark starts with.
        """
        asked = dict(self.more)
        if self.memory:
            self._check_memory()
            asked.setdefault(MEMORY_NAME, self.memory)
        if self.master:
            asked.setdefault(MASTER_NAME, self.master)
        best = self._best(theirs | asked)
        return {name: text for name, text in best.items() if name not in theirs} | asked

    def _check_memory(self) -> None:
        if _MEMORY_TEXT.fullmatch(self.memory) is None:
            raise AnalysisError(f"heap {self.memory!r} is no amount; legal: 512m, 2g, ...")
        if _megabytes(self.memory) < LEAST_MB:
            raise AnalysisError(
                f"heap {self.memory} is too small: Spark starts with {LEAST_MB}m or more"
            )

    def _best(self, said: dict[str, str]) -> dict[str, str]:
        """What is right where nobody says otherwise."""
        java = _QUICK_JAVA if self.quick else _JAVA
        room = room_mb({MASTER_NAME: "local", MEMORY_NAME: MEMORY} | said)
        settings = {
            "spark.app.name": "workbench",
            MASTER_NAME: f"local[{min(4, os.cpu_count() or 1)}]",
            MEMORY_NAME: MEMORY,
            JAVA_OPTIONS: " ".join([*_logging(), *_ENDS, *java]),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Nobody looks at the plans of what was asked before, up to half a megabyte each.
            "spark.sql.ui.retainedExecutions": "10",
            "spark.sql.session.timeZone": "UTC",
            # Of a million rows `stalls` takes 19 s with 4 parts and 27 s with 16.
            "spark.sql.shuffle.partitions": "4" if self.quick else "16",
            # Small steps of a scan: no task may hold most of the rows.
            "spark.sql.files.minPartitionNum": str(SCAN_TASKS),
            "spark.sql.files.openCostInBytes": "65536",
            "spark.sql.files.maxPartitionBytes": "16m",
            "spark.sql.execution.arrow.pyspark.enabled": "true",
            # An answer of a million rows, with its names in each, does not fit into a heap of 512
            # MB beside the question; this makes a few megabytes of it, and takes no longer.
            "spark.sql.execution.arrow.compression.codec": "zstd",
            "spark.sql.parquet.compression.codec": "zstd",
            # Else a window takes all the memory there is for a long link's rows, and gives none of
            # it back when the next window needs some. Nor may the size be small: each part that was
            # written to disk takes a megabyte to read, and two more where Spark reads ahead.
            "spark.sql.windowExec.buffer.spill.size.threshold": f"{max(1, room // 24)}m",
            "spark.unsafe.sorter.spill.read.ahead.enabled": "false",
            # Java leaves a longer method uncompiled, and Spark writes a whole step as one. Of a
            # million rows of captures `violations` takes 46 processor seconds so, and 62 without.
            "spark.sql.codegen.hugeMethodLimit": "8000",
            # What must be true of a row is worked out from what made it, for each of hundreds of
            # columns: of no use here, and a tenth of the planning.
            "spark.sql.constraintPropagation.enabled": "false",
            # Else each call of a column's function asks Java five things more, to tell its line.
            "spark.python.sql.dataFrameDebugging.enabled": "false",
        }
        if said.get(MASTER_NAME, "local").startswith("local"):
            settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        return settings | dict(self.suited)


def _logging() -> tuple[str, ...]:
    if not _LOGGING.is_file():  # in a zip: Java cannot read it there
        return ()
    return (f'"-Dlog4j2.configurationFile={_LOGGING}"',)


def get_spark(
    session: SparkSession | None = None, *, say: Say | None = None, **settings: Any
) -> SparkSession:
    """The session to ask questions with; started if there is none.

    Args:
        session: one that is there already: it is given back as it is.
        say: told how long the start takes, before, meanwhile and after; None prints.
        **settings: fields of `Settings`.

    Raises:
        AnalysisError: no Java, or it has ended; a heap too small; Spark did not start; or no Spark
            Connect server answers.
    """
    if session is not None:
        return session
    from pyspark.sql import SparkSession

    try:
        active = SparkSession.getActiveSession()
    except ConnectionRefusedError:
        raise AnalysisError(ENDED) from None
    if active is not None:
        return active
    tell = say or _print
    chosen = Settings.found(**settings)
    java = chosen.java()
    if java is None:
        tell(f"Spark is asked at {chosen.master}")
        return _connected(chosen.master)
    theirs = configured()
    options = chosen.spark(theirs)
    all_of_it = theirs | options
    os.environ.setdefault("PYSPARK_PYTHON", all_of_it.get("spark.pyspark.python", sys.executable))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if all_of_it[MASTER_NAME].startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        more = _sockets().items()
        options |= {name: text for name, text in more if name not in all_of_it}
    heap = all_of_it.get(MEMORY_NAME, "of Spark's own")
    where = f"Java {java.version}{', bundled' if java.bundled else ''}, heap {heap}"
    tell(f"Spark starts ({where}): about 10 seconds")
    # PySpark logs a mistake in a query, with its plan and Java's stack, before the error tells it.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    with _Watch(tell) as watch:
        try:
            with _java_home(java.home), _interrupts_kept():
                spark = builder.getOrCreate()
        except Exception as error:
            text = str(error).strip().splitlines()
            raise AnalysisError(
                f"Spark did not start: {text[0] if text else type(error).__name__}"
            ) from None
    tell(f"Spark {spark.version} is ready after {watch.seconds():.1f} s")
    return spark


def _sockets() -> dict[str, str]:
    """Settings by which answers come through sockets in a folder, and not through ports.

    Such a port takes one caller, and Jupyter calls ports that its kernels have not opened yet: now
    and then one of them was Spark's, and an answer was lost.
    """
    folder = str(aside_until_exit()) if os.name == "posix" else ""
    if not 0 < len(os.fsencode(folder)) <= LONGEST_FOLDER:
        return {}
    return {f"{SOCKETS}.enabled": "true", f"{SOCKETS}.dir": folder}


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Leave Ctrl-C to the program: PySpark would ask Java to end its jobs, in the middle of a call.

    In a notebook it is PySpark's, because the kernel goes on.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        here = threading.current_thread() is threading.main_thread()
        if here and before is not None and kernel_shell() is None:
            signal.signal(signal.SIGINT, before)


def _connected(url: str) -> SparkSession:
    """A session of a Spark Connect server, which is as its owner has configured it."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        import grpc
        from pyspark.sql.connect.client import DefaultChannelBuilder

        # A session tries for ten minutes to reach a server that is not there.
        with DefaultChannelBuilder(url).toChannel() as channel:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_S)
        return SparkSession.builder.remote(url).getOrCreate()
    except ImportError:
        raise AnalysisError(
            "Spark Connect needs some packages more: `pip install 'pyspark[connect]'`"
        ) from None
    except grpc.FutureTimeoutError:
        raise AnalysisError(
            f"{url}: no Spark Connect server answers there within {ANSWER_S:g} s"
        ) from None
    except (PySparkException, ValueError) as error:
        raise AnalysisError(f"{url}: {error}") from None


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


def in_one_process(settings: Any) -> bool:
    """Whether tasks run in the process that Spark was started in, and not on a cluster.

    Args:
        settings: Spark's, whose `get` takes a name and a default: a dict, or `spark.conf`.
    """
    here: bool = settings.get(MASTER_NAME, "").partition("[")[0] == "local"
    return here


def room_mb(settings: Any) -> int:
    """The memory that tasks work in, in megabytes: of the driver's heap, or of an executor's.

    Args:
        settings: as of `in_one_process`.
    """
    name = MEMORY_NAME if in_one_process(settings) else OF_EXECUTORS
    return max(0, _megabytes(settings.get(name, "1g")) - RESERVED_MB)


def _megabytes(amount: str) -> int:
    """An amount of memory as Spark reads it; 0 of a text that is none: Spark will refuse it."""
    match = _AMOUNT.match(amount.lower())
    return int(int(match[1]) * _UNITS_MB[match[2]]) if match else 0


def left_open(settings: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
    """Of what suits a question best what nobody has asked for otherwise, nor configured."""
    said = {*configured(), *asked}
    return {name: text for name, text in settings.items() if name not in said}


def _print(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


class _Watch:
    """Says every two seconds that the start goes on."""

    def __init__(self, tell: Say) -> None:
        self._tell = tell
        self._over = threading.Event()
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def _run(self) -> None:
        while not self._over.wait(_TICK_S):
            self._tell(f"  ... {self.seconds():.0f} s")
