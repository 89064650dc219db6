"""Views of a real virtual run: the export's size, and the desk over a real broker."""

from __future__ import annotations

import pytest

from workbench.scenarios.run import run
from workbench.trace.fold import Fold
from workbench.views.panel_widget import panel
from workbench.views.reader import Reader
from workbench.views.stepper_doc import build


@pytest.fixture(scope="module")
def long_run():
    """A consumer with acknowledgement, topped up at half: transfers, flows and dispositions."""
    return run(
        "credit",
        parameters={
            "messages": 900,
            "policy": "top-up-at-half",
            "n": 40,
            "acknowledge": "auto",
            "message_bytes": 100,
        },
    )


def test_every_octet_and_every_counter_of_a_real_run_come_back(long_run):
    """What the page holds is what was on the wire, and what the fold says at the end."""
    rows = long_run.rows[:600]
    reader = Reader(build(rows)).go(len(rows))
    folding = Fold()
    frames: dict[int, bytes] = {}
    for row in rows:
        folding.apply(row)
        if row.is_frame and row.frame_id is not None:
            frames.setdefault(row.frame_id, row.raw)
    assert [reader.octets(place) for place in range(len(frames))] == list(frames.values())
    assert len(reader.flights) == len(folding.in_flight)


def test_granting_at_the_desk_moves_messages():
    """A button, a real broker: three granted, three transfers follow."""
    desk = panel(run("credit", parameters={"messages": 10}))
    row = next(row for row in desk.view.acts if row.spec.name == "grant")
    row.fields[0].widget.value = "3"
    row.button.click()
    assert "grant(link_credit=3)" in desk.view.line.value
    transfers = [
        row for row in desk.model.run.rows if row.kind == "transfer" and row.event == "received"
    ]
    assert len(transfers) == 3


def test_an_act_that_is_not_legal_says_what_would_be():
    """Nothing has arrived, so nothing can be acknowledged: one line, no branch."""
    desk = panel(run("credit", parameters={"messages": 10}))
    row = next(row for row in desk.view.acts if row.spec.name == "acknowledge")
    row.button.click()
    assert "legal" in desk.view.line.value
    assert len(desk.view.branch.options) == 1


def test_a_held_direction_keeps_the_grant_on_the_wire():
    """Hold client to broker, grant: the flow stays in flight with a held mark, nothing moves."""
    desk = panel(run("credit", parameters={"messages": 10}))
    acts = {row.spec.name: row for row in desk.view.acts}
    direction = next(field for field in acts["hold"].fields if field.parameter.name == "direction")
    assert [value for _, value in direction.widget.options] == [None, "c2b", "b2c"]
    direction.widget.value = "c2b"
    acts["hold"].button.click()
    acts["grant"].fields[0].widget.value = "3"
    acts["grant"].button.click()
    doc = desk.view.stepper.doc
    reader = Reader(doc).go(len(doc["rows"]))
    assert [(reader.frame_words(place), held) for place, held in reader.flights.items()] == [
        ("flow (delivery-count 0 · link-credit 3) client:receiver → broker", True)
    ]
    assert not any(row.kind == "transfer" for row in desk.model.run.rows)


def test_other_parameters_make_another_run_and_the_first_stays():
    """The parameters' controls begin a new tree; the branch picker holds both."""
    desk = panel(run("credit", parameters={"messages": 10}))
    field = next(field for field in desk.view.parameters if field.parameter.name == "messages")
    field.widget.value = "4"
    desk.view.again.click()
    assert desk.model.run.parameters["messages"] == 4
    assert "messages=4" in desk.view.branch.options[1][0]
    desk.view.branch.value = (0, 0)
    assert desk.model.run.parameters["messages"] == 10
    field.widget.value = "-1"
    desk.view.again.click()
    assert "legal: 0 to" in desk.view.line.value
