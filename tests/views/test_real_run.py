"""Views of a real virtual run: the export's size, and the desk over a real broker."""

from __future__ import annotations

import jsonschema
import pytest

from workbench.scenarios.run import run
from workbench.trace.fold import Fold
from workbench.views.panel_widget import panel
from workbench.views.reader import Reader
from workbench.views.static_html import page
from workbench.views.stepper_doc import build, schema

BUDGET = 500_000  # octets, for 1,000 frames seen from both ends


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


def first_frames(rows, count):
    """The rows up to and with the last row of the first `count` frames."""
    last = max(row.seq for row in rows if row.is_frame and row.frame_id < count)
    return rows[: last + 1]


def test_a_thousand_frames_from_both_ends_fit_in_half_a_megabyte(long_run):
    """Octets, transcript and module included, and the rows of the broker's inside as well."""
    rows = first_frames(long_run.rows, 1000)
    frames = [row for row in rows if row.frame_id is not None and row.is_frame]
    assert len({row.frame_id for row in frames}) >= 1000
    doc = build(rows, title="Credit")
    jsonschema.validate(doc, schema())
    size = len(page(doc).encode("utf-8"))
    assert size <= BUDGET, f"{size} octets for {len(rows)} rows"


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
