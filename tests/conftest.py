"""What all tests share: settings of Hypothesis, places, and a private Jupyter."""

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from workbench.languages import VARIABLE, language

REPO = Path(__file__).resolve().parent.parent
# Their tests share what is long to start, JupyterLab and Spark: with several processes each of
# these belongs to one of them, which begins with it. The walks through lessons 01 to 09 take so
# long that it pays to start JupyterLab twice.
SHARING = ("tests/analysis/", "tests/browser/test_lesson_0", "tests/browser/")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FIREFOX_NAMES = ("firefox-esr", "firefox")
# With it jsonschema, which nbformat imports, makes 38 parsers for the parts of an IRI: two seconds
# in each process, for a format that nothing here checks. Without it jsonschema leaves that out.
sys.modules["rfc3987_syntax"] = None

# The same examples on every machine and in every run: a red test can be run again.
settings.register_profile(
    "workbench",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("workbench")


def find_chromium() -> str | None:
    """Give the path of a Chromium: WORKBENCH_CHROMIUM, else the first usual name on PATH."""
    return _found("WORKBENCH_CHROMIUM", CHROMIUM_NAMES)


def find_firefox() -> str | None:
    """Give the path of a Firefox: WORKBENCH_FIREFOX, else the first usual name on PATH."""
    return _found("WORKBENCH_FIREFOX", FIREFOX_NAMES)


def _found(variable: str, names: tuple[str, ...]) -> str | None:
    named = os.environ.get(variable)
    if named:
        return named if os.access(named, os.X_OK) else None
    return next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout."""
    return REPO


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory) -> Path:
    """Where this process and all that it starts keep a learner's answers: never in `my/`."""
    place = tmp_path_factory.mktemp("home")
    os.environ["WORKBENCH_HOME"] = str(place)
    return place


@pytest.fixture
def speak(monkeypatch) -> Iterator[Callable[[str], None]]:
    """Makes a language the learner's, as it is in a process that begins with it."""

    def begin(wanted: str) -> None:
        monkeypatch.setenv(VARIABLE, wanted)
        language.cache_clear()

    yield begin
    language.cache_clear()


@pytest.fixture(scope="session")
def private_jupyter(tmp_path_factory) -> dict[str, str]:
    """Variables under which Jupyter sees the checkout's code and none of its user's settings."""
    home = tmp_path_factory.mktemp("jupyter")
    places = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "IPYTHONDIR": home / "ipython",
    }
    for place in places.values():
        place.mkdir()
    # The settings that wb.py and Binder put into the environment.
    shutil.copytree(REPO / "binder" / "jupyter", home / "config", dirs_exist_ok=True)
    variables = {name: str(place) for name, place in places.items()}
    return {**variables, "PYTHONPATH": str(REPO), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Keep the garbage collector from what stays: it took a quarter of the processor time.

    What pytest collects is 700,000 objects that are there until the end; and what tests make for
    their module was gone through ten times before it went.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give the tests of a file, or of a folder that shares something, to one process together."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return next(filter(nodeid.startswith, SHARING), nodeid.partition("::")[0])

    config.option.loadscopereorder = False  # the files stay in the order of the collection
    return ByFile(config, log)


def pytest_collection_modifyitems(config, items):
    """Put what is shared first for several processes; skip browser tests without a browser."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not item.nodeid.startswith(SHARING))
    if find_chromium() is not None:
        return
    skip = pytest.mark.skip(reason="no Chromium on PATH (or name one in WORKBENCH_CHROMIUM)")
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter, config):
    """Say in a line of its own that the browser was not tried: a skip is easily overlooked."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum("no Chromium" in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(
            f"The {count} browser tests were skipped: they need Chromium"
            " (Debian, Ubuntu: apt install chromium).",
            yellow=True,
        )
