"""JupyterLab in a real Chromium, for the few tests that only a browser can answer.

A test takes `lab_page` and works on a copy of the lessons, never on the committed files:

    @pytest.mark.browser
    def test_the_stage_moves(lab_page):
        lab_page.open("01_credit.ipynb")
        lab_page.run_all()                      # raises where a cell ended in an error
        lab_page.page.get_by_role("button", name="Step").first.click()
        lab_page.assert_quiet()                 # no console error, page error, outside request

`static_page` is the same browser without a server, for files opened from disk.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from tests.conftest import REPO, find_chromium
from tests.patience import TIMEOUT_S
from tests.ports import free_port

TOKEN = "browser-test"
STEP_MS = TIMEOUT_S * 1000
# All of a lesson, with Spark, on one processor that others want too: ends what hangs, no more.
RUN_MS = 10 * STEP_MS
# No sandbox, because tests may run as root; nothing that looks for updates or hosts of its own.
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# anywidget gives up a widget that has not begun within two seconds: an error is reported, and the
# widget hears nothing of its kernel any more.
PATIENT = f"""AbortSignal.timeout = ((own) =>
    (ms) => own.call(AbortSignal, Math.max(ms, {STEP_MS})))(AbortSignal.timeout);"""
# What the browser itself complains of although nothing is wrong with the page.
HARMLESS_CONSOLE = ("favicon.ico",)


@dataclass  # no slots: Playwright marks the object whose methods it calls
class Page:
    """A browser page with everything that went wrong on it."""

    page: object
    console_errors: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list, repr=False)

    def watch(self) -> None:
        """Begin to collect errors, requests that leave this machine, and calls about kernels."""
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.page_errors.append(str(error)))
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)

    def _on_console(self, message) -> None:
        text = f"{message.text} ({message.location.get('url', '')})"
        if message.type == "error" and not any(word in text for word in HARMLESS_CONSOLE):
            self.console_errors.append(text)

    def _on_request(self, request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.outside.append(request.url)

    def _on_response(self, answer) -> None:
        path = urlsplit(answer.url).path
        if path.startswith(("/api/kernels", "/api/sessions")):
            self.calls.append(f"{time.time():.3f} {answer.request.method} {path} {answer.status}")

    def assert_quiet(self) -> None:
        """Fail where the console or the page reported an error, or a request went outside."""
        assert self.console_errors == []
        assert self.page_errors == []
        assert self.outside == []


@dataclass  # no slots: Playwright marks the object whose methods it calls
class LabPage(Page):
    """A page of a running JupyterLab, with the handful of things a learner does there."""

    url: str = ""
    root: Path = Path()

    def open(self, notebook: str, folder: str = "notebooks") -> None:
        """Open a lesson, by its name in a folder, and wait until its kernel is idle."""
        path = quote(f"{folder}/{notebook}")
        # `reset` forgets the layout that an earlier test left in the workspace.
        self.page.goto(f"{self.url}/lab/tree/{path}?reset&token={TOKEN}")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=STEP_MS)
        self.wait_idle()

    def set_theme(self, name: str) -> None:
        """`JupyterLab Light` or `JupyterLab Dark`; the server keeps it until the test is over."""
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            name,
        )

    def wait_idle(self) -> None:
        """Wait until the notebook in front has a kernel with nothing to do."""
        self.page.wait_for_function(
            """() => {
                const widget = window.jupyterapp?.shell.currentWidget;
                return widget?.sessionContext?.session?.kernel?.status === 'idle';
            }""",
            timeout=STEP_MS,
        )

    def run_all(self) -> None:
        """Run all cells to the end; fail with the names of those that ended in an error."""
        self.page.evaluate(
            """() => {
                window.__allRan = '';
                window.jupyterapp.commands.execute('notebook:run-all-cells').then(
                    () => { window.__allRan = 'done'; },
                    (error) => { window.__allRan = String(error); });
            }"""
        )
        self.page.wait_for_function("() => window.__allRan", timeout=RUN_MS)
        assert self.page.evaluate("() => window.__allRan") == "done"
        self.wait_idle()
        assert self.failed_cells() == {}

    def run_cells(self, *cell_ids: str) -> None:
        """Run some cells, one after the other; each must end well."""
        for cell_id in cell_ids:
            self.show_cell(cell_id)
            self.page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-cell')")
            self.page.wait_for_function(
                """(id) => {
                    const cells = window.jupyterapp.shell.currentWidget.content.widgets;
                    const cell = cells.find((cell) => cell.model.id === id);
                    return Boolean(cell.model.executionCount);
                }""",
                arg=cell_id,
                timeout=RUN_MS,
            )
            self.wait_idle()
        assert self.failed_cells() == {}

    def save(self) -> None:
        """Save the notebook in front."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")

    def failed_cells(self) -> dict[str, str]:
        """Give the error of each cell that has one, by the cell's id."""
        return self.page.evaluate(
            """() => {
                const found = {};
                for (const cell of window.jupyterapp.shell.currentWidget.content.widgets) {
                    const outputs = cell.model.outputs?.toJSON() ?? [];
                    for (const output of outputs) {
                        if (output.output_type === 'error') {
                            found[cell.model.id] = `${output.ename}: ${output.evalue}`;
                        }
                    }
                }
                return found;
            }"""
        )

    def show_cell(self, cell_id: str):
        """Scroll to a cell, named by its id, and give a locator of it."""
        index = self.page.evaluate(
            """async (id) => {
                const content = window.jupyterapp.shell.currentWidget.content;
                const index = content.widgets.findIndex((cell) => cell.model.id === id);
                if (index >= 0) {
                    content.activeCellIndex = index;
                    await content.scrollToItem(index, 'start');
                    // JupyterLab numbers its cells anew now and then, and has two of one number.
                    content.widgets[index].node.dataset.shownAs = id;
                }
                return index;
            }""",
            cell_id,
        )
        assert index >= 0, f"no cell {cell_id!r} in this notebook"
        cell = self.page.locator(f'.jp-Notebook .jp-Cell[data-shown-as="{cell_id}"]')
        self.wait_still(cell)
        return cell

    def wait_still(self, cell, looks: int = 4) -> None:
        """Wait until a cell has stood in one place for a while.

        JupyterLab measures cells as they come into view, moves the others, and takes out of the
        page what has left the window; whatever has the focus there loses it.
        """
        cell.evaluate(
            """(node, looks) => new Promise((resolve) => {
                let last = '', same = 0, tries = 0;
                const look = () => {
                    const box = node.getBoundingClientRect();
                    const here = `${node.isConnected} ${box.top} ${box.height}`;
                    same = here === last ? same + 1 : 0;
                    last = here;
                    tries += 1;
                    if (same >= looks || tries > 100) resolve();
                    else setTimeout(look, 50);
                };
                look();
            })""",
            looks,
        )


@pytest.fixture(scope="package")
def lab_root(tmp_path_factory) -> Path:
    """A folder that looks like the checkout to JupyterLab, with a copy of the lessons."""
    root = tmp_path_factory.mktemp("lab")
    if (REPO / "notebooks").is_dir():
        shutil.copytree(REPO / "notebooks", root / "notebooks")
    else:
        (root / "notebooks").mkdir()
    if (REPO / "data").is_dir():
        (root / "data").symlink_to(REPO / "data")
    return root


def wait_for_answer(url: str, process: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers; fail with the end of its log where it does not."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    pytest.fail("JupyterLab did not start:\n" + log.read_text(encoding="utf-8")[-2000:])


@contextmanager
def running(
    command: list[str], port: int, log: Path, cwd: Path, variables: dict[str, str], base: str = ""
):
    """Run a server until the block ends; it has answered, below `base`, when the block begins."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=cwd, env={**os.environ, **variables}
        )
        try:
            url = f"http://127.0.0.1:{port}{base}"
            wait_for_answer(f"{url}/api/status?token={TOKEN}", process, log)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def lab_command(port: int, root: Path) -> list[str]:
    """The command that runs JupyterLab on a loopback port."""
    return [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root",
        "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True",
    ]  # fmt: skip


@contextmanager
def running_lab(root: Path, variables: dict[str, str]) -> Iterator[str]:
    """Run JupyterLab on a free loopback port; give its address."""
    port = free_port()
    with running(lab_command(port, root), port, root / "jupyterlab.log", root, variables) as url:
        yield url


@pytest.fixture(scope="package")
def lab_url(lab_root, private_jupyter) -> Iterator[str]:
    """The address of a JupyterLab that serves `lab_root`."""
    with running_lab(lab_root, private_jupyter) as url:
        yield url


@pytest.fixture(scope="package")
def playwright():
    """What drives the browsers.

    It ends with this folder's tests, because its event loop would be in the way of others.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def chromium(playwright):
    """A Chromium under Playwright's control."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium on PATH (or name one in WORKBENCH_CHROMIUM)")
    browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_FLAGS)
    yield browser
    browser.close()


@contextmanager
def new_page(browser):
    """Open a page in a context of its own, so that no test sees another's storage."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    context.set_default_timeout(STEP_MS)
    context.add_init_script(PATIENT)
    try:
        yield context.new_page()
    finally:
        context.close()


@pytest.fixture
def lab_page(chromium, lab_url, lab_root, home, private_jupyter) -> Iterator[LabPage]:
    """JupyterLab in a browser page; the kernels it started are ended after the test.

    The learner has done nothing yet: what an earlier test kept is gone.
    """
    for name in ("progress.jsonl", "branches.json"):
        (home / name).unlink(missing_ok=True)
    with new_page(chromium) as page:
        lab = LabPage(page=page, url=lab_url, root=lab_root)
        lab.watch()
        yield lab
        # Of a test that fails, pytest shows this: whose fault it was, page, server or kernel.
        log = (lab_root / "jupyterlab.log").read_text(encoding="utf-8")
        told = [*lab.console_errors, *lab.page_errors, *lab.calls, log[-3000:]]
        sys.stdout.write("\n".join(told))
    end_sessions(lab_url)
    # A theme that the test chose is a setting of the server: the next test begins with light.
    settings = Path(private_jupyter["JUPYTER_CONFIG_DIR"]) / "lab" / "user-settings"
    shutil.rmtree(settings, ignore_errors=True)


@pytest.fixture
def static_page(chromium) -> Iterator[Page]:
    """A browser page without a server, for `file://` addresses."""
    with new_page(chromium) as page:
        static = Page(page=page)
        static.watch()
        yield static


def end_sessions(url: str) -> None:
    """End all kernels of the server, so that the next test begins with fresh ones."""
    headers = {"Authorization": f"token {TOKEN}"}
    listing = urllib.request.Request(f"{url}/api/sessions", headers=headers)
    with urllib.request.urlopen(listing, timeout=TIMEOUT_S) as answer:
        sessions = json.load(answer)
    for session in sessions:
        end = urllib.request.Request(
            f"{url}/api/sessions/{session['id']}", headers=headers, method="DELETE"
        )
        urllib.request.urlopen(end, timeout=TIMEOUT_S).close()
