"""A lesson on another day: saved, its kernel gone, opened again, run again."""

import shutil
import subprocess

import pytest

from .conftest import REPO, end_sessions
from .test_lesson_01 import picture, send

pytestmark = pytest.mark.browser

LESSON = "01_credit.ipynb"
LOST = "Error displaying widget"
WIDGET_CELLS = ("before-step", "grant-predict", "desk", "progress", "reset")


@pytest.fixture
def checkout(lab_root):
    """The lab's folder as a fresh checkout: all is committed, and there are no copies yet."""
    shutil.rmtree(lab_root / "my", ignore_errors=True)
    shutil.copy(REPO / ".gitignore", lab_root)
    git(lab_root, "init", "--quiet")
    (lab_root / ".git" / "info" / "exclude").write_text("jupyterlab.log\n", encoding="utf-8")
    git(lab_root, "add", "--all")
    git(
        lab_root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet",
        "--allow-empty", "--message", "all",
    )  # fmt: skip
    yield lab_root
    shutil.rmtree(lab_root / ".git")


def git(folder, *arguments: str) -> str:
    """What git says."""
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def from_the_map(lab, path: str) -> None:
    """Open a lesson by the link of the map."""
    lab.open("00_index.ipynb")
    lab.run_all()
    lab.show_cell("map").get_by_role("link", name="Grant credit by hand").click()
    lab.page.wait_for_function(
        "(path) => window.jupyterapp.shell.currentWidget?.context?.path === path", arg=path
    )
    lab.wait_idle()


def texts(lab) -> dict[str, str]:
    """What each cell with an output shows, by its id; every cell is brought into view once."""
    return lab.page.evaluate(
        """async () => {
            const content = window.jupyterapp.shell.currentWidget.content;
            const found = {};
            for (const [index, cell] of content.widgets.entries()) {
                if (!cell.model.outputs?.length) continue;
                await content.scrollToItem(index);
                await cell.ready;
                await new Promise((drawn) => setTimeout(drawn, 50));
                found[cell.model.id] = cell.outputArea.node.innerText;
            }
            return found;
        }"""
    )


@pytest.mark.slow
def test_a_saved_lesson_opens_again(lab_page, lab_url, checkout, tmp_path_factory):
    """Without its kernel it shows stills; after Run All answers and branches are there again.

    All that happens in the learner's copy: the lesson's own file stays as it is.
    """
    lab, pictures = lab_page, tmp_path_factory.mktemp("reopen")
    from_the_map(lab, f"my/{LESSON}")
    lab.run_all()

    asked = lab.show_cell("grant-predict")
    asked.get_by_role("textbox", name="messages").fill("10")
    asked.get_by_role("textbox", name="messages").press("Enter")
    asked.get_by_role("radio", name="sure", exact=True).check()
    picture(lab, "grant-step")  # Compare waits until the step was looked at
    lab.page.keyboard.press("End")
    asked = lab.show_cell("grant-predict")
    asked.get_by_role("button", name="Compare").click()
    asked.get_by_text("a flow opens the tap").wait_for()
    root = picture(lab, "desk")
    send(root, 5)
    root.get_by_text("Branch 1").first.wait_for()
    lab.save()
    end_sessions(lab_url)

    lab.page.goto("about:blank")
    for told in (lab.console_errors, lab.page_errors):
        told.clear()  # a page may complain when its kernel goes; the next one must not
    lab.open(LESSON, folder="my")
    shown = texts(lab)
    assert [cell for cell, text in shown.items() if LOST in text] == []
    assert [cell for cell in WIDGET_CELLS if "A still" not in shown[cell]] == []
    lab.show_cell("before-step").screenshot(path=pictures / "still.png")
    lab.assert_quiet()

    lab.run_all()
    asked = lab.show_cell("grant-predict")
    asked.get_by_text("You said before: 10. ✘ Not quite.").wait_for()
    assert asked.get_by_role("textbox", name="messages").input_value() == "10"
    assert asked.get_by_role("radio", name="sure", exact=True).is_checked()
    lab.show_cell("desk").get_by_text("1 branch of yours from before.").wait_for()
    root = picture(lab, "desk")
    root.get_by_role("button", name="branch 1: grant 5", pressed=True).wait_for(state="attached")
    root.screenshot(path=pictures / "desk.png")
    assert git(checkout, "status", "--porcelain") == ""
