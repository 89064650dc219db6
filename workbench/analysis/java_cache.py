"""Java's own cache of what Spark's start loads: made once on a machine, used at each start.

Half of Spark's start is Java at reading, checking and linking some 18,000 classes. A Java of
version 25 or newer keeps them in a file of about 210 MB [JEP 483, 515], with which Spark is there
after half the time, for 70 MB more of memory. `java_training` makes it.

One file serves every heap size, both collectors and both compilers that `session` chooses from;
this was measured. Whether it fits, Java itself checks, by the dates and sizes of Spark's jars too:
one that does not is passed over without a word.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from importlib import metadata
from pathlib import Path

from .java import Java

__all__ = ["CACHE_FROM", "QUIET", "VARIABLE", "folder", "options", "place"]

VARIABLE = "WORKBENCH_JAVA_CACHE"
"""Set to `none`: no cache is used and none is made."""
CACHE_FROM = 25
"""The oldest Java with which this was tried; the wheel's is no older."""
QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")
"""Java would warn on stdout, among an answer's rows, of every class that does not fit."""


def folder() -> Path:
    """Where caches lie: in the environment that Spark is installed in, and gone with it."""
    return Path(sys.prefix) / "share" / "amqp-flow-workbench"


def place(java: Java) -> Path | None:
    """The file that is this Java's cache, there or not; None if it can have none.

    Its name changes with Java's build and with Spark's version and place. Only the wheel's Java
    has one: of any other Spark's launcher asks for a module of Java's incubator, with which Java
    keeps nothing.
    """
    if os.environ.get(VARIABLE) == "none" or os.name == "nt":
        return None
    if not java.bundled or java.version < CACHE_FROM:
        return None
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.origin:
        return None
    made_for = (java.build, metadata.version("pyspark"), str(Path(found.origin).parent))
    key = hashlib.sha256("\n".join(made_for).encode()).hexdigest()[:16]
    return folder() / f"java-{key}.aot"


def options(java: Java) -> tuple[str, ...]:
    """What Java is to be told so that it uses its cache; nothing if there is none."""
    file = place(java)
    if file is None or not file.is_file():
        return ()
    return (*QUIET, f'"-XX:AOTCache={file}"')
