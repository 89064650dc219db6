"""`workbench lab`, which `python3 wb.py lab` hands over to: a server that opens the index."""

import shutil
import sys
import urllib.request

import pytest

from tests.browser.conftest import TOKEN, running
from tests.conftest import REPO
from tests.patience import TIMEOUT_S
from tests.ports import free_port


@pytest.fixture(scope="module")
def lab(private_jupyter, tmp_path_factory):
    """The address of a lab that was started below a folder with the lessons, and what it said."""
    folder, port = tmp_path_factory.mktemp("lab"), free_port()
    below = shutil.copytree(REPO / "notebooks", folder / "notebooks")
    command = [
        sys.executable, "-m", "workbench", "lab", "--no-browser", "--port", str(port),
        "--", f"--IdentityProvider.token={TOKEN}",
    ]  # fmt: skip
    with running(command, port, folder / "log", below, private_jupyter) as url:
        yield url, folder / "log"


def test_lab_opens_the_map_of_the_lessons(lab):
    """The first page is the index, whatever folder the command is given in."""
    url, _ = lab
    request = urllib.request.Request(url, headers={"Authorization": f"token {TOKEN}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as page:
        assert page.url.split("?")[0] == f"{url}/lab/tree/my/00_index.ipynb"


def test_lab_makes_a_copy_of_each_lesson(lab):
    """Before the first page is asked for."""
    folder = lab[1].parent
    lessons = {path.name for path in (folder / "notebooks").iterdir()}
    assert {path.name for path in (folder / "my").iterdir()} == lessons


def test_lab_listens_on_this_machine_only(lab):
    """Nobody else in the room reaches a learner's kernel."""
    url, log = lab
    said = log.read_text(encoding="utf-8")
    assert f"http://localhost:{url.rpartition(':')[2]}/" in said
    assert "0.0.0.0" not in said
