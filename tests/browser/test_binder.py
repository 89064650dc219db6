"""The workbench on Binder, as far as a machine without Binder can play it.

A user with an empty home, `binder/start`, a base path, one processor, and a server that ends and
comes back with an empty folder: only the browser is the same.
"""

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.ports import free_port

from .conftest import REPO, LabPage, lab_command, new_page, running
from .test_lesson_01 import picture, where

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="Binder runs Linux"),
]

LESSON = "01_credit.ipynb"
ASKED = ("imports", "queue", "before-predict", "before-step")
# Binder gives 2 GB.
OCTETS = 2 << 30
# What lesson 10 adds with Spark is 1.2 GB.
MOST_OCTETS = 800 << 20
NOTE = "#amqp-flow-workbench-idle"


@contextmanager
def launched(folder: Path, port: int, session: str):
    """A session on Binder, with nobody's files in it: its address, of the path it lies below."""
    root, base = folder / "checkout", f"/user/{session}"
    shutil.copytree(REPO / "notebooks", root / "notebooks")
    (folder / "home").mkdir()
    variables = {
        "HOME": folder / "home",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": REPO,
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "JUPYTER_CONFIG_PATH": REPO / "binder" / "jupyter",
    }
    command = [
        "taskset", "--cpu-list", str(min(os.sched_getaffinity(0))),
        "env", "--ignore-environment", *(f"{name}={value}" for name, value in variables.items()),
        str(REPO / "binder" / "start"), *lab_command(port, root), f"--ServerApp.base_url={base}/",
    ]  # fmt: skip
    with running(command, port, folder / "log", root, {}, base) as url:
        yield url


def octets_of(url: str) -> int:
    """Memory of a session's server and of all that it has started; what is shared counts once."""
    port = f"--ServerApp.port={url.split(':')[2].split('/')[0]}"
    (server,) = (one for one in psutil.Process().children() if port in one.cmdline())
    return sum(one.memory_full_info().pss for one in (server, *server.children(recursive=True)))


def idle(lab, minutes: int) -> str:
    """What the page says when nobody has done anything for some minutes, of the page's clock."""
    lab.page.clock.fast_forward(minutes * 60_000)
    return lab.page.locator(NOTE).inner_text()


def test_a_session_that_was_lost_gives_the_answers_back(chromium, tmp_path_factory):
    """Index and lesson by their addresses; a warning when idle; the answer after a new launch."""
    folder, port = tmp_path_factory.mktemp("binder"), free_port()
    (folder / "first").mkdir()
    (folder / "second").mkdir()
    with new_page(chromium) as page:
        page.clock.install()
        lab = LabPage(page=page)
        lab.watch()
        with launched(folder / "first", port, "x-123") as lab.url:
            page.goto(f"{lab.url}/?token=browser-test")
            page.wait_for_url(f"{lab.url}/lab/tree/my/00_index.ipynb**")
            lab.open("00_index.ipynb", folder="my")
            lab.run_cells("imports", "first-steps")
            root = picture(lab, "first-steps")
            page.keyboard.press("ArrowRight")
            assert where(root) == 4

            lab.open(LESSON, folder="my")
            lab.run_cells(*ASKED)
            asked = lab.show_cell("before-predict")
            field = asked.get_by_role("textbox", name="messages")
            field.fill("10")
            field.press("Enter")
            picture(lab, "before-step")
            page.keyboard.press("End")
            lab.show_cell("before-predict").get_by_role("button", name="Compare").click()
            asked.get_by_text("You said: 10").wait_for()
            assert octets_of(lab.url) < MOST_OCTETS
            assert page.locator(NOTE).count() == 0
            assert "Binder ends a session after 10" in idle(lab, 8)
            # JupyterLab sets the title, too, now and then; ours is there again at the next look.
            page.wait_for_function("() => document.title.includes('Idle')")
            page.screenshot(path=folder / "idle.png")
            page.keyboard.press("Shift")
            page.locator(NOTE).wait_for(state="detached")
            assert "Idle" not in page.title()
            lab.assert_quiet()
            page.goto("about:blank")

        with launched(folder / "second", port, "y-456") as lab.url:
            assert not list((folder / "second").rglob("progress*"))
            lab.open(LESSON, folder="my")
            lab.run_cells(*ASKED[:3])
            asked = lab.show_cell("before-predict")
            asked.get_by_text("You said before: 10.").wait_for()
            lab.assert_quiet()
        idle(lab, 8)
        page.keyboard.press("Shift")
        page.locator(NOTE, has_text="Binder has ended this session").wait_for()
        page.screenshot(path=folder / "ended.png")
        # What has ended is not said to stay.
        assert "Binder has ended this session" in idle(lab, 8)


def test_lesson_10_with_spark_stays_within_the_memory(chromium, tmp_path):
    """All its cells, one after the other, on one processor."""
    with launched(tmp_path, free_port(), "z-789") as url, new_page(chromium) as page:
        lab = LabPage(page=page, url=url)
        lab.watch()
        lab.open("10_million.ipynb", folder="my")
        lab.run_all()
        assert octets_of(url) < OCTETS
