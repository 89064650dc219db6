"""Spark's own programs, in processes of their own."""

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path


def spark_class():
    """The program that starts a class of Spark's."""
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-class")


def of_spark(java):
    """Its variables: on this machine alone, and with nothing of this process's search path."""
    variables = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    return variables | {"JAVA_HOME": str(java.home), "SPARK_LOCAL_IP": "127.0.0.1"}


def can_hide():
    """Whether this user may give a process a folder of its own."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def without(folder, command):
    """The command of a process that does not see what is in a folder, where that can be had."""
    if not can_hide():
        return command
    hiding = 'mount -t tmpfs none "$0" && exec "$@"'
    return ["unshare", "-m", "sh", "-c", hiding, str(folder), *command]


@contextmanager
def running(command, folder, variables):
    """A process, and those that it starts, until the block ends; gives its group."""
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
