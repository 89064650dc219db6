"""The stepper against a kernel that answers late: an echo of an older step never leads back."""

from __future__ import annotations

import json

import pytest
from tests.browser.test_stepper_static import _race

from workbench.views.static_html import asset
from workbench.views.stepper_doc import build

pytestmark = pytest.mark.browser

# What anywidget gives to `render`, with a kernel that the test plays: `save` tells what was sent,
# `kernel` lets a value come from there.
MODEL = """
class Model {
  constructor(state) { this.state = state; this.on_ = {}; this.saved = []; }
  get(name) { return this.state[name]; }
  set(name, value) {
    if (this.state[name] === value) return;
    this.state[name] = value;
    (this.on_[`change:${name}`] ?? []).forEach((call) => call());
  }
  on(name, call) { (this.on_[name] ??= []).push(call); }
  off() {}
  save_changes() { this.saved.push(this.state.cursor); }
}
window.model = new Model({ doc: DOC, cursor: 0, selected_link: 0 });
render({ model: window.model, el: document.getElementById("here") });
"""


@pytest.fixture
def page(static_page, tmp_path):
    """A page with the stepper as a notebook hosts it."""
    doc = json.dumps(build(_race().rows)).replace("</", "<\\/")
    script = asset("stepper.js") + MODEL.replace("DOC", doc)
    file = tmp_path / "hosted.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><style>{asset("stepper.css")}</style>'
        f'<div id="here"></div><script type="module">{script}</script>',
        encoding="utf-8",
    )
    static_page.page.goto(file.as_uri())
    static_page.page.wait_for_selector(".wbs")
    yield static_page.page
    static_page.assert_quiet()


def where(page) -> str:
    """The step that is shown."""
    return page.locator(".wbs-where").inner_text().split(" of ")[0]


# Steps forward so often, each followed by the kernel's echo of the step before; all in one turn of
# the page, so that nothing is sent in between, however slow the machine is.
STEPS_AND_ECHOES = """(steps) => {
  const stepper = document.querySelector(".wbs"), stood = [];
  for (const step of steps) {
    stepper.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    window.model.set("cursor", step - 1);
    stood.push(window.model.get("cursor"));
  }
  return stood;
}"""


def test_an_echo_of_a_step_that_was_left_meanwhile_changes_nothing(page):
    """Sent 1, stepped on to 2, the kernel echoes 1: the page stays at 2 and sends 2."""
    page.locator(".wbs").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => window.model.saved.includes(1)")
    assert page.evaluate(STEPS_AND_ECHOES, [2]) == [2]
    assert where(page) == "step 2"
    page.wait_for_function("() => window.model.saved.at(-1) === 2")
    assert where(page) == "step 2"


def test_an_echo_among_fast_steps_changes_nothing(page):
    """Several steps within one turn of sending: none of them comes back."""
    page.locator(".wbs").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(STEPS_AND_ECHOES, [2, 3, 4]) == [2, 3, 4]
    assert where(page) == "step 4"
    page.wait_for_function("() => window.model.saved.at(-1) === 4")
    assert where(page) == "step 4"


def test_a_step_that_the_kernel_sets_is_obeyed(page):
    """While nothing is to be sent, and also while something is, if it was no step of ours."""
    page.evaluate("() => window.model.set('cursor', 5)")
    assert where(page) == "step 5"
    page.locator(".wbs").focus()
    page.keyboard.press("ArrowLeft")
    page.evaluate("() => window.model.set('cursor', 7)")
    assert where(page) == "step 7"
    page.wait_for_function("() => window.model.saved.length")
    page.evaluate("() => window.model.set('cursor', 4)")
    assert where(page) == "step 4"
