"""`python -m workbench.cli.java_cache`: makes Java's cache, if Spark can have one and has none.

A part of the installation: `wb.py` runs it, and Binder's image. What goes wrong is told in one
line, for all works without. WORKBENCH_JAVA_CACHE=none makes none.
"""

from __future__ import annotations

import logging
import signal
import sys
import tempfile
from pathlib import Path

from workbench import run
from workbench.analysis.errors import AnalysisError
from workbench.analysis.java_training import make
from workbench.trace import files

from .analyzing import SMALL
from .console import BAD_INPUT, DONE, STOPPED


def main() -> int:
    """Make it; the exit code is 1 if that failed, 130 if it was ended from outside."""
    logging.disable(logging.CRITICAL)  # what is interrupted amid a call logs where, in pages
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended so, it tidies up as well
    try:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.parquet"
            files.write(trace, run("credit").rows, raw=False)
            make(trace, SMALL, say=_say)
    except (AnalysisError, OSError) as error:
        _say(f"none was made, Spark starts as slowly as before: {error}")
        return BAD_INPUT
    except KeyboardInterrupt:
        return STOPPED
    return DONE


def _say(text: str) -> None:
    print(f"java cache: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
