"""`workbench lab`, which `python3 wb.py lab` hands over to: a server that opens the index."""

import sys
import urllib.request
from pathlib import Path

import pytest

from tests.browser.conftest import TOKEN, free_port, running

REPO = Path(__file__).resolve().parent.parent


@pytest.mark.slow
def test_lab_opens_the_map_of_the_lessons(private_jupyter, tmp_path):
    """The first page is the index, whatever folder the command is given in."""
    port = free_port()
    command = [
        sys.executable, "-m", "workbench", "lab", "--no-browser", "--port", str(port),
        "--", f"--IdentityProvider.token={TOKEN}",
    ]  # fmt: skip
    with running(command, port, tmp_path / "log", tmp_path, private_jupyter) as url:
        request = urllib.request.Request(url, headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(request, timeout=20) as page:
            assert page.url.split("?")[0] == f"{url}/lab/tree/notebooks/00_index.ipynb"


@pytest.mark.slow
def test_lab_listens_on_this_machine_only(private_jupyter, tmp_path):
    """Nobody else in the room reaches a learner's kernel."""
    port = free_port()
    command = [
        sys.executable, "-m", "workbench", "lab", "--no-browser", "--port", str(port),
        "--", f"--IdentityProvider.token={TOKEN}",
    ]  # fmt: skip
    log = tmp_path / "log"
    with running(command, port, log, tmp_path, private_jupyter):
        said = log.read_text(encoding="utf-8")
    assert f"http://localhost:{port}/" in said
    assert "0.0.0.0" not in said
