"""Branches on another day: played again from their acts, and never lost."""

import gzip
import json

import pytest

from workbench import run
from workbench.exercises import kept_branches
from workbench.exercises.kept_branches import BranchFile, Keeper
from workbench.exercises.lesson_pages import ResetView
from workbench.exercises.progress import Progress
from workbench.lessons.table import lesson_numbered
from workbench.scenarios.branches import grown
from workbench.scenarios.run import Run
from workbench.views.stage_widget import StageWidget

NAME = "01_credit/desk/x"


@pytest.fixture
def file(tmp_path):
    """A file that does not exist yet, in a folder that does not exist yet."""
    return tmp_path / "my" / "branches.json"


def credit(**parameters):
    """The run that a desk begins with."""
    return run("credit", seed=1, parameters={"messages": 20, **parameters})


def desk(file, begun=None, name=NAME) -> StageWidget:
    """A stage in a kernel that has just started."""
    stage = StageWidget(credit() if begun is None else begun)
    stage.send = lambda *_: None
    Keeper(stage, name, BranchFile(file))
    return stage


def grant(stage: StageWidget, link_credit: int, branch: int | None = None) -> None:
    """Grant on the picture, after the step that is shown."""
    here = stage.branch if branch is None else branch
    stage._answer({"act": "grant", "value": link_credit, "branch": here, "step": stage.cursor})


def shown(stage: StageWidget):
    """All that a learner sees of the branches."""
    acts = [[str(act) for act in one.actions] for one in stage.branches.runs]
    return acts, stage.branch, stage.cursor, stage.run.name


def test_a_stage_has_its_branches_again(file):
    """Branches of branches, the one that was chosen, the step it is made at, and row for row."""
    stage = desk(file)
    grant(stage, 3)
    grant(stage, 5, branch=0)
    stage.cursor += 4
    grant(stage, 7)
    stage.branch = 1
    again = desk(file)
    assert [one.rows for one in again.branches.runs] == [one.rows for one in stage.branches.runs]
    acts, branch, _, name = shown(stage)
    assert (shown(again)[0], again.branch, again.run.name) == (acts, branch, name)
    assert again.told == "3 branches of yours from before."
    assert len(json.loads(gzip.decompress(again.scene))["branches"]) == 4
    assert Run.shown_by(again) is again.run
    assert shown(desk(file)) == shown(again)  # and looking changed nothing
    again.begin({"messages": 9})
    grant(again, 2)
    later = desk(file)
    assert (later.tree, shown(later)[0]) == (1, shown(again)[0])
    later.begin({"messages": 20})
    assert shown(later)[0] == acts


def test_a_run_begun_under_another_preset_is_there_again(file):
    stage = desk(file)
    stage.begin({"preset": "rmq4.0"})
    grant(stage, 2)
    again = desk(file)
    assert (again.tree, again.run.preset.name) == (1, "rmq4.0")
    assert shown(again) == shown(stage)


def test_looking_makes_no_file(file):
    """Whoever does nothing leaves nothing behind."""
    desk(file)
    assert not file.parent.exists()


def test_a_shared_run_s_own_branches_are_there_once(file):
    """What a share code brought is not doubled; what was done on top of it is there again."""
    begun = credit()
    shared = begun.act(begun.start_seq, "grant", link_credit=3)
    model = desk(file, grown(shared))
    grant(model, 5)
    assert shown(desk(file, grown(shared))) == shown(model)


def test_desks_do_not_disturb_each_other(file):
    """Two that were open at once, with other names: both are there."""
    one, other = desk(file), desk(file, name="01_credit/few/x")
    grant(one, 3)
    grant(other, 9)
    assert shown(desk(file)) == shown(one)
    assert shown(desk(file, name="01_credit/few/x")) == shown(other)


def test_what_is_not_legal_any_more_is_told_and_kept(file):
    """The lesson's run is another one now: what still goes is there, all acts stay in the file."""
    grant(desk(file), 3)
    whole = json.loads(file.read_text(encoding="utf-8"))
    kept = whole["desks"][NAME]
    kept["trees"][0]["branches"] += [[1, 10**6, "grant", {"link_credit": 1}], [2, 30, "no", {}]]
    file.write_text(json.dumps(whole), encoding="utf-8")
    again = desk(file)
    assert len(again.branches.runs) == 2
    assert again.told == (
        "1 branch of yours from before. 2 branches could not be played again: the run now"
        " goes differently."
    )
    grant(again, 4)
    desks = json.loads(file.read_text(encoding="utf-8"))["desks"]
    assert desks[NAME + kept_branches.AS_IT_WAS] == kept
    assert len(desks[NAME]["trees"][0]["branches"]) == 2


@pytest.mark.parametrize(
    "desks",
    [
        None, [], 3, {"trees": 3}, {"trees": [3, None]}, {"trees": [{"branches": [3, []]}]},
        {"trees": [{"branches": [[None, 1, "grant", {}], [True, -9, 3, []]]}], "cursor": "x"},
        {"trees": [{}, {"preset": "rmq4.3", "parameters": {"no": 1}}], "tree": 1, "cursor": -5},
    ],
)  # fmt: skip
def test_a_damaged_desk_begins_as_it_would_have(file, desks):
    """Whatever stands under its name: the desk is there, and works."""
    file.parent.mkdir()
    whole = {"format": kept_branches.FORMAT, "version": 1, "desks": {NAME: desks}}
    file.write_text(json.dumps(whole), encoding="utf-8")
    model = desk(file)
    assert model.run.name == credit().name
    grant(model, 3)
    assert shown(desk(file))[-1] == model.run.name


@pytest.mark.parametrize("octets", [b"", b"\xff\x00", b"[]", b'{"format": "x", "version": 1}'])
def test_a_file_that_cannot_be_read_is_not_destroyed(file, octets):
    """It is kept aside, and said where."""
    file.parent.mkdir()
    file.write_bytes(octets)
    model = desk(file)
    assert "the file is kept as branches.damaged.json" in model.told
    grant(model, 3)
    assert (file.parent / "branches.damaged.json").read_bytes() == octets
    assert shown(desk(file)) == shown(model)


def test_a_folder_that_cannot_be_written_to_stops_nobody(file):
    """The act is done, and the line says that it is not kept."""
    file.parent.write_text("a file where the folder should be", encoding="utf-8")
    model = desk(file)
    grant(model, 3)
    assert "Your branches cannot be kept" in model.told
    assert len(model.branches.runs) == 2


def test_a_reset_forgets_the_branches_of_its_lesson_alone(file, monkeypatch):
    """And takes them back."""
    monkeypatch.setattr(kept_branches, "standard_file", lambda: BranchFile(file))
    mine = desk(file)
    grant(mine, 3)
    other = desk(file, name="03_drain/desk/x")
    grant(other, 4)
    reset = ResetView(lesson_numbered("01"), Progress())
    reset.forget.click()
    assert "and the branches of 1 picture" in reset.line.value
    assert len(desk(file).branches.runs) == 1
    assert shown(desk(file, name="03_drain/desk/x")) == shown(other)
    reset.undo.click()
    assert shown(desk(file)) == shown(mine)
