"""The learner's desk without a browser: buttons are clicked, labels are read."""

from __future__ import annotations

import itertools

import pytest

from workbench import presets
from workbench.scenarios.action import Action, ActionError
from workbench.scenarios.declare import ActionSpec, Kind, Parameter, Scenario
from workbench.scenarios.run import run as play
from workbench.views.panel_widget import panel

GRANT = ActionSpec(
    name="grant",
    doc="the receiver says how much credit it gives",
    parameters=(
        Parameter(name="link_credit", required=True, minimum=0, maximum=2**32 - 1, doc="credit"),
        Parameter(name="drain", kind=Kind.YES_NO, default=False, doc="use it up"),
    ),
    apply=lambda world, **_: None,
)
HOLD = ActionSpec(
    name="hold",
    doc="keep a frame on the wire",
    parameters=(Parameter(name="frame_id", minimum=0, doc="one in flight"),),
    apply=lambda world, **_: None,
)
SCENARIO = Scenario(
    name="toy",
    title="A toy",
    doc="two ends",
    parameters=(Parameter(name="messages", default=10, minimum=0, maximum=99, doc="how many"),),
    actions=(GRANT, HOLD),
    build=lambda world: None,
)


class ToyRun:
    """A run in which every act makes an `action` row and a flow after the row it follows."""

    def __init__(self, make_race, actions=(), parent=None):
        self.scenario, self.preset, self.seed = SCENARIO, presets.get("spec"), 0
        self.parameters, self.note, self.start_seq = {"messages": 10}, "", 1
        self.actions, self.parent, self._make = actions, parent, make_race
        story = make_race()
        frame_ids = itertools.count(100)
        for action in actions:
            del story.rows[action.after_seq + 1 :]
            story.row("learner", "action", action.name)
            story.flow(next(frame_ids), "sent", action.arguments.get("link_credit", 0))
        self.rows = story.rows

    def act(self, after_seq, name, **arguments):
        checked = self.scenario.action(name).arguments(arguments, self.preset)
        if name == "grant" and checked["link_credit"] == 13:
            raise ActionError("13 is not granted here; legal: anything else")
        kept = tuple(action for action in self.actions if action.after_seq <= after_seq)
        action = Action(after_seq=after_seq, name=name, arguments=checked)
        return ToyRun(self._make, (*kept, action), self)


@pytest.fixture
def desk(make_race):
    return panel(ToyRun(make_race))


def act(desk, name):
    """The line of controls of an act."""
    return next(row for row in desk.view.acts if row.spec.name == name)


def grant(desk, text):
    row = act(desk, "grant")
    row.fields[0].widget.value = text
    row.button.click()


def test_the_controls_come_from_the_declaration(desk):
    """One button per act, one control per argument, its range in the tooltip."""
    assert [row.button.description for row in desk.view.acts] == ["grant", "hold"]
    credit = act(desk, "grant").fields[0].widget
    assert credit.description == "link credit"
    assert "0 to 4294967295" in credit.tooltip
    assert [field.widget.value for field in desk.view.parameters] == ["10"]


def test_acting_at_the_cursor_makes_a_branch_shown_at_the_fork(desk):
    """The rows up to the cursor stay; the stepper stands on the first row of the new branch."""
    before = desk.view.stepper.doc
    desk.view.stepper.cursor = 4
    grant(desk, "7")
    assert desk.model.branches.current == 1
    assert desk.model.run.actions[-1].after_seq == 3
    assert desk.view.stepper.cursor == 5
    assert desk.view.stepper.doc["rows"][:4] == before["rows"][:4]
    assert "grant(link_credit=7" in desk.view.line.value


def test_earlier_branches_stay_and_can_be_gone_back_to(desk):
    """Two acts at the same row make two branches; the picker goes to each of them."""
    root = desk.view.stepper.doc
    desk.view.stepper.cursor = 4
    grant(desk, "7")
    desk.view.branch.value = (0, 0)
    assert desk.view.stepper.doc == root
    desk.view.stepper.cursor = 4
    grant(desk, "8")
    assert len(desk.view.branch.options) == 3
    desk.view.branch.value = (0, 1)
    assert desk.model.run.actions[-1].arguments["link_credit"] == 7


def test_undo_goes_to_the_parent_at_the_fork(desk):
    """Undo shows the run the branch was made from, where the two part."""
    desk.view.stepper.cursor = 4
    grant(desk, "7")
    desk.view.undo.click()
    assert desk.model.branches.current == 0
    assert desk.view.stepper.cursor == 4
    assert len(desk.view.branch.options) == 2


def test_undo_of_the_first_run_says_that_there_is_nothing(desk):
    """The message line tells; nothing else changes."""
    desk.view.undo.click()
    assert "nothing to undo" in desk.view.line.value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("many", "legal: 0 to 4294967295"),
        ("-1", "legal: 0 to 4294967295"),
        ("4294967296", "legal: 0 to 4294967295"),
        ("", "grant needs link_credit"),
        ("13", "legal: anything else"),
    ],
)
def test_what_is_not_legal_is_one_line_and_changes_nothing(desk, text, words):
    """Bad input and acts refused by the run end in the message line."""
    doc, cursor = desk.view.stepper.doc, desk.view.stepper.cursor
    grant(desk, text)
    assert words in desk.view.line.value
    assert "✕" in desk.view.line.value
    assert desk.view.line.value.count("\n") == 0
    assert desk.view.stepper.doc == doc
    assert desk.view.stepper.cursor == cursor
    assert len(desk.view.branch.options) == 1


def test_a_message_is_text(desk):
    """Markup in an error is shown, not run."""
    grant(desk, "<img src=x onerror=alert(1)>")
    assert "<img" not in desk.view.line.value
    assert "&lt;img" in desk.view.line.value


def test_frames_in_flight_are_offered_to_hold(desk):
    """The choice follows the cursor: what is on the wire at this step."""
    frames = act(desk, "hold").fields[0].widget
    desk.view.stepper.cursor = 4
    assert [number for _, number in frames.options] == [None, 1, 2]
    desk.view.stepper.cursor = 2
    assert [number for _, number in frames.options] == [None]


@pytest.mark.parametrize("names", [["grant", "nosuch"], "grant"])
def test_an_act_that_the_scenario_does_not_have_is_not_left_out_in_silence(names):
    """The message lists those that it has."""
    with pytest.raises(ValueError, match=r"a list of names is wanted; legal: grant, "):
        panel(play("credit"), acts=names)


def test_a_panel_leaves_a_still_behind(desk):
    """A page without a kernel shows the text of the step."""
    bundle = desk._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "step 2 of 8" in data["text/plain"]


def test_a_desk_that_follows_shows_where_all_has_come_to_rest():
    """Where each frame waits for a hand, the next act can be made without stepping first."""
    race = play("race", parameters={"first_credit": 3, "grants": "6"})
    desk = panel(race, follow=True)
    for act in ("send_flow", "send_transfer", "flow_arrives", "transfer_arrives"):
        assert desk.model.act(act), desk.model.message
        assert desk.model.cursor == len(desk.model.run.rows)
    assert "◀ goes back" in desk.model.message
    desk.model.undo()
    assert [action.name for action in desk.model.run.actions] == [
        "send_flow",
        "send_transfer",
        "flow_arrives",
    ]
    assert not desk.model.failed
