"""What a lesson asks before a step, it answers after that step and not before."""

import ast
import gzip
import json
from pathlib import Path

import nbformat
import pytest

from workbench.exercises.predict import PredictionView
from workbench.exercises.progress import Progress
from workbench.scenarios.run import step_of
from workbench.views.looked import Looked
from workbench.views.stage_widget import StageWidget

NOTEBOOKS = Path(__file__).resolve().parent.parent.parent / "notebooks"
QUICK = ("01_credit", "02_race", "03_drain")
LONG = ("04_windows", "05_publishers", "06_amqp091", "07_quorum", "08_alarms", "09_qpid")
LESSONS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)]


@pytest.fixture
def made(monkeypatch):
    """The predictions and the pictures of runs that were made since, in order."""
    found = {PredictionView: [], StageWidget: []}

    def noting(kind):
        make = kind.__init__

        def note(self, *args, **kwargs):
            if kind is PredictionView and len(args) < 2:
                kwargs["log"] = Progress()  # nothing was answered on an earlier day
            make(self, *args, **kwargs)
            if not kwargs.get("recalled_in"):
                found[kind].append(self)

        return note

    for kind in found:
        monkeypatch.setattr(kind, "__init__", noting(kind))
    return found


def run_cells(name: str) -> None:
    """Run the code cells of a lesson here, one after the other."""
    names: dict[str, object] = {}
    for cell in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            exec(compile(ast.parse(cell.source), cell.id, "exec"), names)


def shown(stage: StageWidget) -> dict:
    """The scene that a stage was sent."""
    return json.loads(gzip.decompress(stage.scene))


@pytest.mark.parametrize("name", LESSONS)
def test_compare_waits_for_the_step_and_the_lesson_shows_it(name, made, monkeypatch):
    """Nothing is compared before the run was stepped; at the step that is named, everything is.

    So no answer is given away, and nobody waits for a step that no picture of the lesson has.
    """
    monkeypatch.chdir(NOTEBOOKS)
    seen = Looked()
    monkeypatch.setattr("workbench.views.stage_widget.looked", seen)
    run_cells(name)
    waiting = []
    for view in made[PredictionView]:
        question, asked = view.prediction.question, view.prediction
        where = question.solve().seen
        if where is None:
            continue
        asked.commit(question.choices[0] if question.choices else question.minimum)
        told = asked.compare(lambda row: seen.at(row.run, row.seq))
        # Where the picture opens there is no step to go to: there one steps, or acts.
        words = f"step {step_of(where)} " if step_of(where) > 1 else "step or act"
        assert (told.right, words in told.text) == (None, True), question.name
        waiting.append((asked, where))
    assert waiting
    for asked, where in waiting:
        for stage in made[StageWidget]:
            first = stage.run.rows[0]
            step = where.seq - first.seq
            # A learner can only step on to what lies ahead of where the stage opens, or act there.
            if first.run == where.run and stage.cursor <= step < len(stage.run.rows):
                assert shown(stage)["first"] + step == step_of(where)  # one number for both
                stage.cursor = step - 1
                stage.cursor = step
        told = asked.compare(lambda row: seen.at(row.run, row.seq))
        assert told.right is not None, (asked.question.name, told.text)
