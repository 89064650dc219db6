"""The Share button and the desk that a code opens."""

import pytest

from workbench import open_code, share_code
from workbench.exercises.checks import run_of
from workbench.scenarios import run
from workbench.trace.share import ShareCodeError
from workbench.views.panel_widget import panel


@pytest.fixture
def desk():
    """A panel with one act in it."""
    desk = panel(run("credit"))
    desk.model.act("grant", link_credit=3)
    return desk


def shown(desk) -> str:
    """The code in the field below the message line."""
    return desk.view.code.shown["text"]


def test_the_button_shows_the_code_of_branch_and_step(desk):
    """Ready to be copied, and told in the message line."""
    assert shown(desk) == ""
    desk.view.stepper.cursor = 30
    desk.view.share.click()
    assert shown(desk) == share_code(desk) == share_code(desk.model.run, 30)
    assert "branch 1 at step 30" in desk.view.line.value


def test_a_code_of_another_run_is_not_left_standing(desk):
    """Acting, undoing and picking take it away."""
    desk.view.share.click()
    desk.model.act("grant", link_credit=4)
    assert shown(desk) == ""


def test_a_run_too_long_for_a_code_is_told_in_the_message_line(desk, monkeypatch):
    """What to do instead is said there, and no code is shown."""

    def too_long(*_: object) -> str:
        raise ShareCodeError("with 999 acts the share code of this run has 9,999 characters")

    monkeypatch.setattr("workbench.views.panel_widget.share_code", too_long)
    desk.view.share.click()
    assert "999 acts" in desk.view.line.value
    assert shown(desk) == ""


def test_code_of_one_s_own_is_said_to_be_missing():
    """Whoever shares such a run has to send it along."""
    own = panel(run("race", parameters={"rule": "yours"}, code={"rule": lambda a, b, c, d: b}))
    own.view.share.click()
    assert own.view.code.shown["own"] == ["rule"]


def test_a_code_opens_a_desk_at_its_step(desk):
    """The same run at the same step; a check takes it as it takes a panel."""
    desk.view.stepper.cursor = 30
    opened = open_code(share_code(desk))
    assert opened.model.cursor == opened.panel.view.stepper.cursor == 30
    assert run_of(opened).identity() == desk.model.run.identity()
    assert "It is the run that was shared" in opened.children[0].value
    assert share_code(opened) == share_code(desk)
    assert opened.panel.still() in repr(opened)


def test_every_act_of_a_shared_run_can_be_undone(desk):
    """Each is a branch of its own, as it was where the run was made."""
    desk.model.act("grant", link_credit=1)
    opened = open_code(share_code(desk))
    assert len(opened.panel.view.branch.options) == 3
    assert not opened.panel.view.undo.disabled
    opened.panel.view.undo.click()
    assert len(opened.model.run.actions) == 1
    opened.panel.view.undo.click()
    assert opened.model.run.actions == ()
    assert opened.panel.view.undo.disabled


def test_a_damaged_code_opens_what_is_left_and_says_what_is_not(desk):
    """The list of problems stands above the desk, as text."""
    opened = open_code(share_code(desk)[:-5])
    assert "trace hash: this part is damaged" in opened.children[0].value
    assert opened.model.run.actions == desk.model.run.actions


def test_a_text_that_is_no_code_opens_no_desk():
    """It is told in words, also on a page without a kernel, and never becomes part of the page."""
    opened = open_code("<b>hello</b>")
    assert opened.panel is None
    assert len(opened.children) == 1
    bundle = opened._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "no share code" in data["text/plain"]
    assert "<b>" not in opened.children[0].value
    with pytest.raises(ValueError, match="there is no run"):
        opened.model  # noqa: B018


def test_only_a_run_or_a_panel_has_a_code():
    """A lesson's slip of the finger."""
    with pytest.raises(TypeError, match="a run, a stage or a panel is wanted here, not str"):
        share_code("credit")
