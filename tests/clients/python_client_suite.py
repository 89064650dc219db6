"""Runs the own tests of rabbitmq-amqp-python-client against the live broker.

    python -m tests.clients.python_client_suite FOLDER

FOLDER is a checkout of the client's repository; what follows it goes to pytest. The tests are run
from a copy, as they are but for the port, with the client that is in the folder. Left out is what
needs TLS, OAuth, virtual hosts, or RabbitMQ's HTTP interface to cut connections with.
docs/clients.md says which of the others fail, and why.
"""

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from workbench.net import LiveBroker

NEEDED = {
    "proton": "python-qpid-proton",
    "pytest_asyncio": "pytest-asyncio",
    "jwt": "pyjwt",
    "pika": "pika",
    "requests": "requests",
}
PACKAGE = "rabbitmq_amqp_python_client"
LEFT_OUT = ("ssl", "oauth", "vhost", "reconnection")
WRITTEN_PORT = "localhost:5672"
LIMIT_S = 60  # only against a hang
REPO = Path(__file__).resolve().parents[2]


class HangError(BaseException):
    """A test takes too long; no handler for exceptions of the client catches this."""


def pytest_collection_modifyitems(config, items):
    """Leave out what cannot be run here: this module is also a plugin of pytest."""
    out = [item for item in items if any(word in item.name for word in LEFT_OUT)]
    items[:] = [item for item in items if item not in out]
    config.hook.pytest_deselected(items=out)


def pytest_runtest_setup():
    """Set the alarm."""

    def over(*_):
        raise HangError(f"no end after {LIMIT_S} s")

    signal.signal(signal.SIGALRM, over)
    signal.alarm(LIMIT_S)


def pytest_runtest_teardown():
    """Nothing hangs any more."""
    signal.alarm(0)


def copy_tests(folder, to, port):
    """Copy the client's tests, with the port of our broker."""
    for path in folder.rglob("*.py"):
        target = to / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8").replace(WRITTEN_PORT, f"127.0.0.1:{port}")
        target.write_text(text, encoding="utf-8")


def main(argv=None):
    """Run them; the exit status is pytest's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="rmq4.3")
    arguments, more = parser.parse_known_args(argv)
    tests = arguments.folder / "tests"
    if not (tests / "conftest.py").is_file():
        parser.error(f"{tests} has no conftest.py; wanted is a checkout of the client's repository")
    missing = [name for module, name in NEEDED.items() if not importlib.util.find_spec(module)]
    if missing:
        parser.error(f"not installed: {', '.join(missing)}; pip install {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as here, LiveBroker(arguments.preset) as broker:
        # Another name than tests, which are ours.
        copy_tests(tests, Path(here) / "client_tests", broker.port)
        (Path(here) / PACKAGE).symlink_to((arguments.folder / PACKAGE).resolve())
        command = [sys.executable, "-m", "pytest", "client_tests", "--rootdir", here]
        command += ["-q", "-p", "no:cacheprovider", "-p", "tests.clients.python_client_suite"]
        command += ["-o", "asyncio_mode=auto", "--tb=short"]
        command += more
        path = os.pathsep.join(filter(None, (str(REPO), os.environ.get("PYTHONPATH"))))
        status = subprocess.run(command, cwd=here, env=os.environ | {"PYTHONPATH": path}).returncode
        for failure in broker.listener.failures:
            print("the broker's code failed:", repr(failure))  # noqa: T201
    return status


if __name__ == "__main__":
    sys.exit(main())
