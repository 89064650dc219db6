"""The figure of a quorum queue and the lamps of its messages: what they show is in the rows."""

import json

import pytest

from workbench import panel, quorum_view, run
from workbench.trace.replicas import CONFIRMED, FSYNCED, LAMPS, Replicas
from workbench.views.lamps_doc import lamps_doc, lamps_words, window_at
from workbench.views.topology import LOOKS, Topology, height_for, positions
from workbench.views.topology_state import GLYPHS, LOG, TopologyState, picture_words


def act(played, name, **arguments):
    """Act when all is at rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


@pytest.fixture(scope="module")
def eventful():
    """Messages, a slow disk, a cut way, a dead node, a consumer."""
    played = run("quorum", "rmq4.3", {"replicas": "5", "messages": 12, "link_credit": 4})
    played = act(played, "slow_disk", node="n2", fsync_us=40_000)
    played = act(played, "cut", a="n1", b="n3")
    played = act(played, "crash", node="n5")
    return act(played, "publish", count=3)


@pytest.fixture(scope="module")
def state(eventful):
    """Its pictures."""
    return TopologyState(eventful.rows)


def place(picture, name):
    """A place of a picture by name."""
    return next(one for one in picture.places if one.name == name)


def test_every_place_and_way_of_the_run_is_there(state):
    """Clients, session, five replicas, each with its log."""
    names = [name for name, _ in state.places]
    assert names[:3] == ["publisher", "session", "consumer"]
    assert names[3:] == [part for n in range(1, 6) for part in (f"n{n}", f"log n{n}")]
    assert ("session", "n4") in state.ways
    assert ("n1", "n5") in state.ways


def test_depths_are_what_the_rows_say(state, eventful):
    """The session's unconfirmed and each log's mailbox, at every row that tells of one."""
    seen = set()
    for step, row in enumerate(eventful.rows, start=1):
        ledger = row.ledger or {}
        picture = state.at(step)
        if row.vantage.startswith("wal:") and "mailbox" in ledger:
            text = place(picture, f"log {row.vantage[4:]}").text
            assert f"{ledger['mailbox']} wait" in text
            seen.add("wal")
        if row.vantage == "broker" and row.link_sender == "client" and "unconfirmed" in ledger:
            assert place(picture, "session").depth == ledger["unconfirmed"]
            seen.add("session")
        publishes = row.link_sender == "client" and row.vantage.startswith("client")
        if publishes and "link_credit" in ledger:
            assert f"credit {ledger['link_credit']}," in place(picture, "publisher").text
            seen.add("publisher")
        assert all(one.depth <= one.most for one in picture.places)
    assert seen == {"wal", "session", "publisher"}


def test_the_row_of_a_step_is_marked_where_it_was_logged(state, eventful):
    """One place at most, and the one that its vantage names."""
    for step, row in enumerate(eventful.rows, start=1):
        marked = [one.name for one in state.at(step).places if one.here]
        kind, _, rest = row.vantage.partition(":")
        expected = {
            "wal": [f"log {rest}"],
            "node": [rest],
            "learner": [],
            "broker": ["session"],
            "session": ["session"],
            "client": ["consumer" if rest == "receiver" else rest],
        }.get(kind)
        if kind == "queue":
            expected = [rest.partition("@")[2] or "session"]
        assert marked == expected, row
    assert not any(one.here for one in state.at(0).places)


def test_roles_crashes_and_cuts_are_told_by_shape_and_word(state, eventful):
    """A glyph, a word, a dash, a hatch: colour says nothing that they do not."""
    words = picture_words(state.at(len(eventful.rows)))
    assert "★ n1 leader" in words
    assert "✕ n5 down" in words
    assert "✂ n1 - n3: cut" in words
    assert "log 0 in fsync, 0 wait (40 ms)" in words
    assert "down: n5; cut: n1-n3" in words.splitlines()[0]
    assert len(set(GLYPHS.values())) == len(GLYPHS)
    looks = [(width, dash, hatch) for _, width, dash, _, hatch in LOOKS.values()]
    assert len(set(looks)) == len(looks)


def test_the_figure_shows_the_picture_of_its_step(eventful):
    """Boxes with titles, texts, bars; lines with dashes and words; the title says the step."""
    figure = Topology(eventful.rows)
    for step in (0, 40, len(eventful.rows) // 2, len(eventful.rows)):
        figure.move(step)
        boxes = dict(figure._boxes.data)
        picture = figure.picture()
        assert boxes["name"] == [one.name for one in picture.places]
        assert boxes["text"] == [one.text for one in picture.places]
        assert figure.figure.title.text.startswith(f"Step {step}: ")
        for left, right, one, width in zip(
            boxes["bar"], boxes["bar_right"], picture.places, boxes["width"], strict=True
        ):
            share = one.depth / one.most if one.most else 0
            assert right - left == pytest.approx(width * share)
    lines = dict(figure._lines.data)
    cut = lines["text"].index("✂ cut")
    assert lines["dash"][cut] == "dashed"
    assert set(lines["dash"][:cut] + lines["dash"][cut + 1 :]) == {"solid"}
    down = boxes["name"].index("n5")
    assert (boxes["hatch"][down], boxes["dash"][down]) == ("diagonal_cross", "dashed")


def test_a_way_tells_what_the_leader_sends_over_it(eventful):
    """At the step of a `replicate` row, and only there."""
    figure = Topology(eventful.rows)
    row = next(row for row in eventful.rows if row.event == "replicate")
    figure.move(row.seq + 1)
    told = [text for text in figure._lines.data["text"] if "entr" in text]
    assert told == [f"entries {row.extra['first']} to {row.extra['last']} to {row.kind}"]


@pytest.mark.parametrize("replicas", ["1", "3", "5", "7"])
@pytest.mark.parametrize("consumer", [0, 5])
def test_no_two_places_lie_on_each_other(replicas, consumer):
    """For every number of replicas, with and without a consumer; and all within the figure."""
    played = run("quorum", "rmq4.3", {"replicas": replicas, "messages": 1, "link_credit": consumer})
    figure = Topology(played.rows)
    state = figure.state
    assert len(state.story.nodes) == int(replicas)
    at = positions(state)
    boxes = dict(figure._boxes.data)
    rectangles = [
        (x - width / 2, x + width / 2, y - height / 2, y + height / 2)
        for x, y, width, height in zip(
            boxes["x"], boxes["y"], boxes["width"], boxes["height"], strict=True
        )
    ]
    high = height_for(int(replicas))
    for number, (left, right, bottom, top) in enumerate(rectangles):
        assert left > 0
        assert right < 1000
        assert bottom > 0
        assert top < high
        for other in rectangles[:number]:
            apart = left >= other[1] or right <= other[0] or bottom >= other[3] or top <= other[2]
            assert apart, (boxes["name"][number], at)
    assert sum(kind == LOG for _, kind in state.places) == int(replicas)


def test_a_run_without_a_quorum_queue_is_told():
    """A figure of clients and session, and a sentence."""
    figure = Topology(run("credit").rows)
    assert "No row tells of a quorum queue." in str(figure)


# -- lamps ------------------------------------------------------------------------------------


def test_the_document_is_plain_json_and_says_what_the_fold_says(eventful):
    """Every lamp of every message at every step."""
    doc = lamps_doc(eventful.rows)
    assert json.loads(json.dumps(doc, allow_nan=False)) == doc
    story = Replicas(eventful.rows)
    for message in doc["messages"]:
        one = story.messages[message["number"]]
        for lamp, (steps, cells) in zip(LAMPS, message["lamps"], strict=True):
            assert steps == sorted(set(steps))
            for step in range(0, len(eventful.rows) + 1, 7):
                at = max(place for place, begin in enumerate(steps) if begin <= step)
                lit, nodes = story.lamp(one, lamp, step)
                glyph = "●" if lit else "◐" if nodes else "○"
                assert cells[at].split() == [glyph, *nodes]


def test_the_words_show_few_messages_and_say_how_many_there_are(eventful):
    """A window round the first that is not confirmed."""
    played = act(eventful, "publish", count=30)
    doc = lamps_doc(played.rows)
    story = Replicas(played.rows)
    assert lamps_words(doc, 0).splitlines()[0].endswith("in a log yet. A majority is 3 of 5.")
    for step in range(0, len(played.rows) + 1, 11):
        first, known, confirmed = window_at(doc, step)
        lines = lamps_words(doc, step).splitlines()
        assert len(lines) - 2 == min(doc["shown"], known - first)
        assert confirmed == sum(
            one.done.get(CONFIRMED, step + 1) <= step for one in story.messages.values()
        )
        waiting = [
            one.number
            for one in story.messages.values()
            if one.known(step) and one.done.get(CONFIRMED, step + 1) > step
        ]
        if waiting:
            shown = [int(line.split()[0]) for line in lines[2:]]
            assert min(waiting) in shown
    assert "45 of 45 messages are confirmed. Shown: 38 to 45." in lamps_words(doc, doc["steps"])


def test_figure_lamps_and_stepper_have_one_cursor(eventful):
    """They begin at the same step, and the figure goes where the stepper goes."""
    at = eventful.rows[-1].seq
    view = quorum_view(eventful, at=at)
    assert view.box.topology.step == view.box.lamps.cursor == view.stepper.cursor == at + 1
    view.stepper.cursor = 30
    assert view.box.topology.step == 30
    assert "▶" in view.box._words.value
    assert "Step 30 of" in view.still().splitlines()[0]
    assert view.stepper.still() in repr(view)
    plain = quorum_view(eventful, topology=False)
    assert plain.box.topology is None
    assert "message  written" in repr(plain)


def test_a_panel_s_figure_shows_the_branch_that_is_shown():
    """After an act figure and lamps have the new run, at the cursor's step."""
    desk = panel(run("quorum", "rmq4.3", {"messages": 1}), quorum=True, follow=True)
    before = desk.quorum.lamps.doc["steps"]
    desk.model.act("crash", node="leader")
    assert desk.quorum.lamps.doc["steps"] == len(desk.model.run.rows) > before
    assert desk.quorum.topology.step == desk.model.cursor == desk.quorum.lamps.cursor
    assert "✕ n1 down" in desk.still()
    assert panel(run("quorum")).quorum is None


def test_fsynced_is_lit_by_a_majority_and_not_before(eventful):
    """In part while fewer disks have it."""
    doc = lamps_doc(eventful.rows)
    place_ = LAMPS.index(FSYNCED)
    for message in doc["messages"]:
        for cell in message["lamps"][place_][1]:
            glyph, *nodes = cell.split()
            assert glyph == ("●" if len(nodes) >= 3 else "◐" if nodes else "○")
