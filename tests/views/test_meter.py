"""The brake meter: what it shows at a step is what the fold says, in words and as a document."""

import json

import pytest

from workbench import brake_chart, brake_meter, panel, run
from workbench.capture.importer import import_capture
from workbench.trace.braking import held_by, links_of
from workbench.views import theme
from workbench.views.brake_chart import brake_words, counter_steps
from workbench.views.meter_doc import LINES, meter_doc, meter_words, sentence, state_at


def then(played, name, **arguments):
    """An act when the run has come to rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


@pytest.fixture(scope="module")
def stalled():
    """Two links, one of them to a stalled queue, and at last an alarm."""
    played = run("publishers", "rmq4.3", {"queues": 2, "max_link_credit": 20})
    played = then(then(played, "stall"), "publish", count=60)
    return then(played, "alarm")


def test_every_step_shows_what_the_fold_says(stalled):
    """Counters, brakes and sentence of each link, at the start and after each row."""
    doc = meter_doc(stalled.rows)
    assert [link["name"] for link in doc["links"]] == ["q1", "q2"]
    for number, link in enumerate(links_of(stalled.rows, sender="client")):
        held = held_by(stalled.rows, link)
        for step in range(1, len(stalled.rows) + 1):
            values, on, text, lit = state_at(doc, step, number)
            now = held[step - 1]
            assert (values[0], values[1], values[2], values[4]) == (
                now.available,
                now.unconfirmed,
                now.link_credit,
                now.window,
            )
            assert on == list(now.brakes)
            assert text == sentence(now)
            assert lit == [False, False, False, bool(now.alarms), False, now.full]
    assert state_at(doc, 0)[2] == "This link has not been heard of yet."


def test_one_brake_is_named_as_binding_and_the_others_are_listed(stalled):
    """The words hold everything that the picture does."""
    doc = meter_doc(stalled.rows)
    words = meter_words(doc, len(stalled.rows))
    assert words.splitlines()[0].startswith(f"Link q1, step {len(stalled.rows)} of ")
    assert "Held by unconfirmed: the receiver withholds credit" in words
    assert "Also on: link-credit, alarm, session-window." in words
    marks = [line[0] for line in words.splitlines()[1:]]
    assert marks == [" ", "▶", "•", "•", "•", " "]
    assert "▶ waiting for a confirm  30 of 30 messages        binding" in words
    assert words.count("binding") == 1


def test_the_document_is_plain_json_and_writes_a_state_once(stalled):
    """Strings, numbers, lists: nothing that a browser could not read."""
    doc = meter_doc(stalled.rows)
    assert json.loads(json.dumps(doc, allow_nan=False)) == doc
    link = doc["links"][0]
    assert len(link["steps"]) == len(link["states"]) < len(stalled.rows)
    assert link["steps"] == sorted(set(link["steps"]))
    texts = [json.dumps(one) for one in link["shown"]]
    assert len(texts) == len(set(texts))


def test_each_line_has_a_look_of_its_own_and_a_name():
    """Colour alone tells nothing: hatches differ, and every line has words."""
    looks = {
        (theme.BRAKE_STYLES[name].colour, theme.BRAKE_STYLES[name].hatch) for name, *_ in LINES
    }
    assert len(looks) == len(LINES)
    assert len({theme.BRAKE_STYLES[name].hatch for name, *_ in LINES}) == len(LINES)
    assert all(words for _, words, *_ in LINES)


def test_a_link_that_is_not_there_is_told_with_those_that_are(stalled):
    """By name; the text lists the names."""
    assert meter_doc(stalled.rows, link="q2")["link"] == 1
    with pytest.raises(ValueError, match=r"no link 'q9' sends in this run; there are: q1, q2"):
        brake_meter(stalled, link="q9")
    with pytest.raises(ValueError, match="there are: q1, q2"):
        brake_chart(stalled, "q9")


def test_rows_without_a_link_are_told():
    """An empty trace has no meter, and says so."""
    assert meter_words(meter_doc([]), 0) == "No link in these rows."
    with pytest.raises(ValueError, match="no link in these rows"):
        brake_chart([])


def test_a_broker_s_link_has_a_meter_too():
    """Where no client sends, the links over which the broker sends are looked at."""
    played = run("credit", parameters={"messages": 5})
    played = played.act(played.start_seq, "grant", link_credit=2)
    words = meter_words(meter_doc(played.rows), len(played.rows))
    assert "Held by link-credit: it has no link-credit." in words


def test_a_capture_has_a_meter():
    """One vantage point: the sender's entitlement there; what it has to send is not told."""
    rows = import_capture("data/captures/rmq43_f_memory_alarm.pcapng").rows
    doc = meter_doc(rows)
    assert any("session-window" in on for link in doc["links"] for _, on, *_ in link["shown"])
    assert "not told" in meter_words(doc, len(rows))


def test_the_meter_begins_where_the_stepper_does(stalled):
    """And the widget's text is both of them."""
    seq = stalled.rows[-1].seq
    view = brake_meter(stalled, at=seq, chart=True)
    assert view.meter.cursor == view.stepper.cursor == len(stalled.rows)
    assert "binding" in repr(view)
    assert "ms   the receiver withholds credit" in repr(view)
    assert view.stepper.still() in repr(view)
    view.stepper.cursor = 1
    assert view.chart._cursor.location == stalled.rows[0].t_us / 1000
    assert "step 1 of" in view.still().splitlines()[0]


def test_a_panel_s_meter_shows_the_branch_that_is_shown():
    """After an act the meter has the new run; the link stays the one that was looked at."""
    desk = panel(run("publishers", parameters={"queues": 2}), meter=True)
    desk.meter.link = 1
    before = desk.meter.doc["steps"]
    desk.model.act("publish", count=3)
    assert desk.meter.doc["steps"] == len(desk.model.run.rows) > before
    assert desk.meter.link == 1
    assert desk.meter.cursor == desk.model.cursor
    assert desk.still().startswith("Link q2, step")
    assert panel(run("publishers")).meter is None


# -- the chart ------------------------------------------------------------------------------------


def source(chart, name):
    """Column data of the glyph of that name."""
    return dict(next(item for item in chart.renderers if item.name == name).data_source.data)


def test_stalls_are_shaded_by_brake_and_idle_time_is_not(stalled):
    """To have nothing to send is no stall."""
    names = [item.name for item in brake_chart(stalled).renderers]
    assert "held: unconfirmed" in names
    assert "held: no-message" not in names
    shaded = source(brake_chart(stalled), "held: unconfirmed")
    assert shaded["right"][-1] == stalled.rows[-1].t_us / 1000
    assert "no-message" in brake_words(stalled)


def test_lines_are_the_counters_of_the_fold(stalled):
    """Credit at the sender, window of its session, unconfirmed at the receiver."""
    chart = brake_chart(stalled, "q1")
    held = held_by(stalled.rows, links_of(stalled.rows, sender="client")[0])
    for name, field in (
        ("link credit (sender)", "link_credit"),
        ("session window (frames)", "window"),
        ("unconfirmed (broker)", "unconfirmed"),
    ):
        data = source(chart, name)
        steps = counter_steps(stalled.rows, held, field)
        assert data["value"] == [*(value for _, value in steps), steps[-1][1]]
    lines = [item.glyph for item in chart.renderers if item.name.endswith(")")]
    assert len({str(glyph.line_dash) for glyph in lines}) == len(lines) == 3
