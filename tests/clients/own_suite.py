"""Runs a client's own tests, out of a checkout of its repository, against the live broker.

    python -m tests.clients.own_suite FOLDER

FOLDER is a checkout of rabbitmq-amqp-python-client or of pika; what follows it goes to pytest. The
tests are run from a copy, as they are but for the port and the name of their folder, with the
client that is in FOLDER. docs/clients.md says what is left out, which of the others fail, and why.
"""

import argparse
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from workbench.net import LiveBroker

LIMIT_S = 60  # only against a hang
REPO = Path(__file__).resolve().parents[2]
COPY = "client_tests"
"""The folder of the copied tests: another name than `tests`, which are ours."""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A client's own tests.

    Attributes:
        package: the client, as a folder of its checkout.
        tests: those that are run, in the folder `tests`.
        needed: what must be installed, by the name that is imported.
        left_out: words in the names of tests that cannot be run here.
        written: how the tests write the broker's address, and how it is written instead.
        options: of pytest.
    """

    package: str
    tests: tuple[str, ...] = ("",)
    needed: dict[str, str]
    left_out: tuple[str, ...]
    written: tuple[str, str]
    options: tuple[str, ...]


SUITES = (
    Suite(
        package="rabbitmq_amqp_python_client",
        needed={
            "proton": "python-qpid-proton",
            "pytest_asyncio": "pytest-asyncio",
            "jwt": "pyjwt",
            "pika": "pika",
            "requests": "requests",
        },
        left_out=("ssl", "oauth", "vhost", "reconnection"),
        written=("localhost:5672", "127.0.0.1:{port}"),
        options=("-o", "asyncio_mode=auto"),
    ),
    Suite(
        package="pika",
        tests=tuple(
            f"acceptance/{name}.py"
            for name in (
                "blocking_adapter_test",
                "async_adapter_tests",
                "enforce_one_basicget_test",
                "thread_safe_connection_test",
                "thread_safe_bounded_queue_test",
            )
        ),
        needed={"tornado": "tornado"},
        left_out=("gevent",),
        written=(r"\b5672\b", "{port}"),
        options=(),
    ),
)


class HangError(BaseException):
    """A test takes too long; no handler for exceptions of the client catches this."""


def pytest_addoption(parser):
    """This module is also a plugin of pytest."""
    parser.addoption("--left-out", default="", help="words, with commas between")


def pytest_collection_modifyitems(config, items):
    """Leave out what cannot be run here."""
    words = list(filter(None, config.getoption("--left-out").split(",")))
    out = [item for item in items if any(word in item.name for word in words)]
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


def suite_in(folder):
    """The suite that a checkout holds; None if it is the checkout of neither client."""
    for suite in SUITES:
        if (folder / suite.package).is_dir() and (folder / "tests" / "conftest.py").is_file():
            return suite
    return None


def copy_tests(folder, to, suite, port):
    """Copy the client's tests, with the port of our broker and the name of the copy's folder."""
    pattern, address = suite.written
    for path in folder.rglob("*.py"):
        target = to / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = re.sub(pattern, address.format(port=port), path.read_text(encoding="utf-8"))
        text = re.sub(r"^( *)(from|import) tests\b", rf"\1\2 {COPY}", text, flags=re.MULTILINE)
        target.write_text(text, encoding="utf-8")


def main(argv=None):
    """Run them; the exit status is pytest's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--preset", default="rmq4.3")
    arguments, more = parser.parse_known_args(argv)
    folder = arguments.folder.resolve()
    suite = suite_in(folder)
    if suite is None:
        clients = " or ".join(suite.package for suite in SUITES)
        parser.error(f"{folder} is no checkout of {clients}, with its tests/conftest.py")
    missing = [
        name for module, name in suite.needed.items() if not importlib.util.find_spec(module)
    ]
    if missing:
        parser.error(f"not installed: {', '.join(missing)}; pip install {' '.join(missing)}")
    with tempfile.TemporaryDirectory() as here, LiveBroker(arguments.preset) as broker:
        copy_tests(folder / "tests", Path(here) / COPY, suite, broker.port)
        (Path(here) / suite.package).symlink_to(folder / suite.package)
        command = [sys.executable, "-m", "pytest", "--rootdir", here]
        command += [f"{COPY}/{tests}" for tests in suite.tests]
        command += ["-q", "-p", "no:cacheprovider", "-p", "tests.clients.own_suite"]
        command += ["--left-out", ",".join(suite.left_out), "--tb=short", *suite.options, *more]
        path = os.pathsep.join(filter(None, (here, str(REPO), os.environ.get("PYTHONPATH"))))
        status = subprocess.run(command, cwd=here, env=os.environ | {"PYTHONPATH": path}).returncode
        for failure in broker.listener.failures:
            print("the broker's code failed:", repr(failure))  # noqa: T201
    return status


if __name__ == "__main__":
    sys.exit(main())
