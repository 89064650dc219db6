"""The Share button and the stage that a code opens."""

import pytest

from workbench import open_code, share_code
from workbench.scenarios import run
from workbench.scenarios.run import Run
from workbench.trace.share import ShareCodeError
from workbench.views.stage_widget import StageWidget


@pytest.fixture
def desk():
    """A stage with one act in its run."""
    return StageWidget(run("credit").then("grant", link_credit=3))


def pressed(desk, step):
    """What the kernel answers to the button at a step."""
    return desk.reply({"act": "share", "value": None, "t": 0, "branch": desk.branch, "step": step})


def test_the_button_is_answered_with_the_code_of_branch_and_step(desk):
    """Ready to be copied; the numbers of the code count rows that have passed."""
    code = share_code(desk.run, 30)
    assert pressed(desk, 29) == {"type": "code", "text": code, "own": []}


def test_a_run_too_long_for_a_code_is_told_in_the_picture(desk, monkeypatch):
    """What to do instead is said there, and no code is shown."""

    def too_long(*_: object) -> str:
        raise ShareCodeError("with 999 actions the share code of this run has 9,999 characters")

    monkeypatch.setattr("workbench.views.stage_widget.code_of", too_long)
    told = pressed(desk, 29)
    assert told["type"] == "illegal"
    assert "999 actions" in told["why"]


def test_code_of_one_s_own_is_said_to_be_missing():
    """Whoever shares such a run has to send it along."""
    own = StageWidget(
        run("race", parameters={"rule": "yours"}, code={"rule": lambda a, b, c, d: b})
    )
    assert pressed(own, 3)["own"] == ["rule"]


def test_a_code_opens_a_stage_at_its_step(desk):
    """The same run at the same step; a check takes it as it takes a stage."""
    desk.cursor = 29
    opened = open_code(share_code(desk))
    assert opened.stage.cursor == 29
    assert Run.shown_by(opened).identity() == desk.run.identity()
    assert "It is the run that was shared" in opened.children[0].value
    assert share_code(opened) == share_code(desk)
    assert opened.stage.still() in repr(opened)


def test_every_act_of_a_shared_run_is_a_branch(desk):
    """As it was where the run was made: each can be gone back on."""
    more = desk.run.then("grant", link_credit=1)
    opened = open_code(share_code(more))
    branches = opened.stage.branches
    assert [len(one.actions) for one in branches.runs] == [0, 1, 2]
    assert branches.current == opened.stage.branch == 2


def test_acts_at_one_row_are_a_branch_each():
    """Each on top of the one before, as they were shared."""
    shared = run("credit")
    for credit in (3, 5):
        shared = shared.act(shared.start_seq, "grant", link_credit=credit)
    opened = open_code(share_code(shared)).stage
    assert opened.branches.path(opened.branch) == (0, 1, 2)
    assert opened.run.identity() == shared.identity()


def test_a_damaged_code_opens_what_is_left_and_says_what_is_not(desk):
    """The list of problems stands above the picture, as text."""
    opened = open_code(share_code(desk)[:-5])
    assert "trace hash: this part is damaged" in opened.children[0].value
    assert opened.run.actions == desk.run.actions


def test_a_text_that_is_no_code_opens_nothing():
    """It is told in words, also on a page without a kernel, and never becomes part of the page."""
    opened = open_code("<b>hello</b>")
    assert opened.stage is None
    assert len(opened.children) == 1
    bundle = opened._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "no share code" in data["text/plain"]
    assert "<b>" not in opened.children[0].value
    with pytest.raises(ValueError, match="there is no run"):
        opened.run  # noqa: B018


def test_only_a_run_or_a_stage_has_a_code():
    """A lesson's slip of the finger."""
    with pytest.raises(TypeError, match="a run or a stage is wanted here, not str"):
        share_code("credit")
    with pytest.raises(TypeError, match="a run or a stage is wanted here, not list"):
        share_code(StageWidget(run("credit").rows))
