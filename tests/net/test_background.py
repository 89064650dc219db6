"""A client in the background: its cell is over at once, and what became of it is told."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.patience import TIMEOUT_S
from workbench.net.background import NO_PROTON, background


def test_the_caller_goes_on_and_the_result_comes_later():
    """While it runs it says so; afterwards it has the result."""
    go = threading.Event()

    def work(number):
        go.wait(20)
        return number + 1

    job = background(work, 41)
    assert not job.done
    assert str(job) == "work runs in the background"
    with pytest.raises(TimeoutError, match="still runs"):
        job.wait(0.01)
    go.set()
    assert job.wait(20) == 42
    assert str(job) == "work has ended; result: 42"


def test_what_ends_it_is_told_and_raised_by_wait():
    """An exception of the client ends the client, not the notebook."""

    def work():
        raise ValueError("no such queue")

    job = background(work, settle_s=20)
    assert str(job) == "work has ended with ValueError: no such queue"
    with pytest.raises(ValueError, match="no such queue"):
        job.wait()


def test_a_client_that_leaves_by_sys_exit_has_not_ended_well():
    """Its thread ends without a word; the job has one."""
    job = background(sys.exit, "no such queue", settle_s=20)
    assert str(job) == "exit has ended with SystemExit: no such queue"


def test_a_client_of_which_nothing_has_run_is_told():
    """To call an async function, or one with a yield, runs nothing of it."""

    async def later():
        raise AssertionError

    def pieces():
        yield

    for work in (later, pieces):
        job = background(work, settle_s=20)
        assert f"TypeError: nothing in {work.__name__} has run" in str(job)
        assert f"asyncio.run({work.__name__}(url))" in str(job)


def test_a_client_whose_library_is_missing_is_skipped_in_words(monkeypatch):
    """Without Proton the cell says what to do instead; any other missing module is an error."""

    def client():
        from proton.utils import BlockingConnection  # noqa: F401

    def without_other():
        raise ModuleNotFoundError("No module named 'other'", name="other")

    pytest.importorskip("proton", reason="needs python-qpid-proton")
    assert "ModuleNotFoundError" in str(background(without_other, settle_s=20))
    monkeypatch.setitem(sys.modules, "proton", None)
    monkeypatch.delitem(sys.modules, "proton.utils", raising=False)
    job = background(client, settle_s=20)
    assert job.skipped == NO_PROTON
    assert NO_PROTON in str(job)


WAITS = """
import time
from workbench import background, serve

def client(url):
    from proton.utils import BlockingConnection  # when the server is there already
    BlockingConnection(url).create_receiver("q", credit=1).receive(timeout=None)

server = serve(queues=["q"])
server.freeze_new(HELD)
job = background(client, server.url)
while not (
    server.connections() if HELD
    else any(row.kind == "flow" and row.link for row in server.rows())
):
    time.sleep(0.01)
print(job)
"""


@pytest.mark.parametrize("held", [False, True], ids=["for a message", "at a gate"])
def test_a_program_may_end_while_its_client_waits(held):
    """The server stops first, so that the client has ended before Proton gives up its memory."""
    pytest.importorskip("proton", reason="needs python-qpid-proton")
    repo = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", WAITS.replace("HELD", str(held))],
        env={**os.environ, "PYTHONPATH": str(repo)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.stderr == ""
    assert (done.returncode, done.stdout) == (0, "client runs in the background\n")
