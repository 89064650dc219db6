"""An import by tasks of Spark, on the machines of a cluster or here.

One task for each capture; only names pass through the driver.
"""

from __future__ import annotations

import os
import sysconfig
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.aside import aside_until_exit

from .errors import UNSEEN
from .jobs import watched
from .parts import Order, Part, Progress, Take
from .reading import told
from .session import in_one_process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["by_tasks"]

STEPS = 20
"""An import is done in so many steps at most: what a step has done is safe from a stop."""
STEP_FILES = 16
"""The least captures in a step."""

PART = (
    "number long, run string, rows long, problem string, kept boolean, fatal boolean,"
    " missing boolean, remarks string, report string"
)
"""Of `Part`, and of which capture it came."""

_SHIPPED = "spark.workbench.shipped"


def by_tasks(
    spark: SparkSession,
    files: Sequence[str],
    order: Order,
    take: Take,
    progress: Progress | None,
) -> None:
    """Each capture is read and written by a task of its own.

    Args:
        spark: the session.
        files: captures.
        order: how they are to be read.
        take: told what came of each, by its number.
        progress: told, while a step is on its way, how many of how many are done.

    Raises:
        AnalysisError: Spark cannot work, or what `take` raises.
    """
    _give_to_workers(spark)
    step = max(STEP_FILES, -(-len(files) // STEPS))
    for start in range(0, len(files), step):
        some = dict(enumerate(files[start : start + step], start))
        with _told_of(spark, progress, start, len(some), len(files)), told():
            each = spark.range(start, start + len(some), numPartitions=len(some))
            done = each.mapInArrow(_task(some, order), PART).collect()
        for number, *part in sorted(done):
            take(number, _seen(files[number], Part(*part)))


def _told_of(
    spark: SparkSession, progress: Progress | None, start: int, most: int, total: int
) -> AbstractContextManager[object]:
    """Tells a step's tasks as captures; its last one is done when all is in its place."""
    if progress is None:
        return nullcontext()
    told_of = progress
    return watched(spark, lambda now: told_of(start + min(now.done, most - 1), total))


def _task(files: dict[int, str], order: Order) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a task does with the numbers of the captures it is given."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        from workbench.analysis.parts import write_part

        for batch in batches:
            for number in batch["id"].to_pylist():
                part = write_part(files[number], number, order)
                yield pa.RecordBatch.from_pylist([{"number": number} | part._asdict()])

    return work


def _seen(capture: str, part: Part) -> Part:
    """A capture that is there for this program and not for the task is not said to be missing."""
    if part.missing and Path(capture).exists():
        return part._replace(problem=f"{Path(capture).name}: {UNSEEN}")
    return part


def _give_to_workers(spark: SparkSession) -> None:
    """The machines of a cluster get this package; what it imports they must have themselves."""
    from pyspark.sql import is_remote

    if is_remote() or not in_one_process(spark.conf) or not _found_by_workers():
        _ship(spark)


def _found_by_workers() -> bool:
    """Whether another Python of this machine finds this package: installed, or named to it."""
    home = Path(__file__).parent.parent.parent
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    known = [*(name for name in named if name), os.getcwd(), sysconfig.get_path("purelib")]
    return any(Path(name).resolve() == home.resolve() for name in known) or _is_editable()


def _is_editable() -> bool:
    try:
        return bool(metadata.distribution("amqp-flow-workbench").read_text("direct_url.json"))
    except metadata.PackageNotFoundError:
        return False


def _ship(spark: SparkSession) -> None:
    """Give this package to every machine of a cluster, once for each session."""
    if spark.conf.get(_SHIPPED, ""):
        return
    package = Path(__file__).parent.parent
    # Executors fetch it when they begin, and one may begin late: it stays until this process ends.
    whole = f"{aside_until_exit()}/workbench.zip"
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(package.rglob("*.py")):
            packed.write(file, file.relative_to(package.parent))
    spark.addArtifacts(whole, pyfile=True)
    spark.conf.set(_SHIPPED, "true")
