"""Follow a recorder that is running: its stalls and rates, as they are now.

The stream (`analysis.live`) knows no fold and the fold (`folds.live`) no stream; they are joined
here, as a server and its trace are in `live`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.analysis.live import Follower

__all__ = ["follow"]

SMALL = {
    # A batch has few rows: compiling each step for them would cost most.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}


def follow(
    folder: str | os.PathLike[str],
    *,
    spark: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    told: Callable[[Follower], object] | None = None,
    say: Callable[[str], None] | None = None,
) -> Follower:
    """Follow the folder of a running recorder (`serve(trace=...)`) until `stop()`.

    `now()` gives what goes on: the stalls that last, and the rates of the latest window;
    `answer("stalls")` the whole answer so far. Stopped and started again, it reads the folder from
    its beginning; with a checkpoint it goes on where it was, and nothing counts twice.

    Args:
        folder: where the recorder writes.
        spark: a session; one that fits this machine is started if there is none.
        checkpoint: a folder outside `folder` in which it is remembered how far the stream is.
        told: called with the follower after each batch, in a thread of Spark's.
        say: told how long the start of Spark takes.

    Raises:
        AnalysisError: no such folder, no Java, or a checkpoint that cannot be used.
    """
    from workbench.analysis.errors import AnalysisError
    from workbench.analysis.live import Follower
    from workbench.analysis.session import get_spark
    from workbench.folds.live import LiveFold
    from workbench.trace.files import from_table

    place = Path(folder)
    if not place.is_dir():
        raise AnalysisError(f"{folder}: no such folder; a recorder that runs has made one")
    return Follower(
        get_spark(spark, say=say, quick=True, suited=SMALL),
        place,
        checkpoint,
        begin=LiveFold,
        rows_of=from_table,
        told=told,
    )
