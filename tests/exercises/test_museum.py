"""The bug museum: each mistake hurts, each cure heals, and the label comes after the guess."""

import re
from string import Formatter

import pytest

from workbench.exercises.museum import (
    PIECES,
    Museum,
    PieceView,
    guesses,
    piece,
    question,
    stage_of,
    told,
    words,
)
from workbench.exercises.progress import Progress
from workbench.trace.hash import trace_hash
from workbench.trace.schema import BROKER
from workbench.views.scene import resolved


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_hurts_with_its_mistake_and_not_without_it(name):
    """The same measure, taken of both runs: above nothing, and nothing."""
    found = piece(name)
    assert found.wrong.figure > 0
    assert found.right.figure == 0
    assert not found.wrong.run.world.tap.problems


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_is_drawn_wrong_and_right(name):
    """A rule beside the right one keeps its name to itself."""
    found = piece(name)
    stage = stage_of(found.wrong, "Piece")
    doc = stage._doc()
    assert all(rule["name"] == "the rule in this piece" for rule in doc.get("rules", ()))
    assert doc.get("rules") is None or doc["theirs"]  # nobody looks at a mistake of one's own
    label = words()[name]["label"]
    assert label not in str(stage)
    assert label not in told(name, "looks")
    assert stage_of(found.right, "Right") is not stage


@pytest.mark.parametrize("name", PIECES)
def test_a_piece_names_who_made_it_and_what_mended_it(name):
    """Project, version and an address for each source; every number in the words is the run's."""
    about = words()[name]
    assert set(about) == {"label", "looks", "hurts", "cure", "sources"}
    for source in about["sources"]:
        assert set(source) == {"project", "version", "url"}
        assert source["url"].startswith("https://github.com/")
    named = {field for text in about.values() if isinstance(text, str)
             for _, field, _, _ in Formatter().parse(text) if field}  # fmt: skip
    assert named <= {*piece(name).facts, "figure"}
    for text in ("looks", "hurts", "cure"):
        assert "{" not in told(name, text)


def test_the_words_are_those_of_the_pieces():
    """None without words, and no words without a piece; the labels differ."""
    assert list(words()) == list(PIECES)
    assert len({about["label"] for about in words().values()}) == len(PIECES)
    assert len(PIECES) >= 10


def test_four_are_guessed_among_and_the_right_one_has_no_place_of_its_own():
    """Otherwise the first would do."""
    places = [guesses(name).index(words()[name]["label"]) for name in PIECES]
    assert set(places) == {0, 1, 2, 3}
    assert all(len(set(guesses(name))) == 4 for name in PIECES)


# What some of them show, in numbers that were worked out by hand from the rules.
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("adds", "never allowed more than 6 messages; this sender has credit for 3 beyond"),
        ("never-used-up", r"believes in (\d+) more where (\d+) are allowed"),
        ("signed", "grants 4294967295; this sender has link-credit 0"),
        (
            "blocked-ignored",
            "counts 9 messages as published; the broker has read 0 of them whole, and 8 lie",
        ),
        ("prefetch-shared", "6 deliveries are unacknowledged .* expected 3"),
        ("huge-prefetch", "holds 12 deliveries; .* got 0 of 12"),
        ("cancel-order", "gets 2, 3, 4, 5, 0, 1"),
        ("alarm-unheard", "has a memory alarm on, .* told nothing"),
    ],
)
def test_what_a_piece_says_is_what_its_run_shows(name, text):
    """Two and two of credit, one too many, and messages in the order in which they came."""
    assert re.search(text, told(name, "hurts"))


@pytest.mark.parametrize("which", ["wrong", "right"])
def test_the_queue_that_is_said_to_be_empty_is_drawn(which):
    """Piece 16: beside what its consumers have; what stands above the picture is about them."""
    doc = stage_of(getattr(piece("huge-prefetch"), which), "Piece")._doc()
    broker = next(node for node in doc["nodes"] if node["name"] == "Broker")
    assert broker["sub"] == "queue “q”"
    drawn = [state["nodes"]["broker"] for state in resolved(doc)]
    assert ([drawn[0]["items"], drawn[0]["facts"]], drawn[-1]["facts"]) == (
        [12, ["12 ready"]],
        ["0 ready"],
    )
    assert "prefetch" in doc["idea"]


def test_what_a_publisher_keeps_that_heeds_the_broker_is_said():
    """Piece 13: its right run does not end with the act as if that had published something."""
    told = stage_of(piece("blocked-ignored").right, "Right")._doc()["branches"][0]["steps"]
    assert told[-1]["sentence"] == "The application of client c1 has 8 messages to send."


def test_a_wrong_sender_runs_on_the_brokers_own_link():
    """Both runs make the same moves; only the rule differs, and the frames with it."""
    found = piece("adds")
    acts = [[row.kind for row in one.run.rows if row.event == "action"]
            for one in (found.wrong, found.right)]  # fmt: skip
    assert acts[0] == acts[1] == ["send_flow", "send_flow", "flow_arrives", "flow_arrives"]
    credits = [
        [row.ledger["link_credit"] for row in one.run.rows if row.vantage == BROKER
         and row.ledger and "link_credit" in row.ledger][-1]
        for one in (found.wrong, found.right)
    ]  # fmt: skip
    assert credits == [9, 6]
    assert trace_hash(found.wrong.run.rows) != trace_hash(found.right.run.rows)


def test_the_label_comes_after_the_guess():
    """Before it neither label nor source is anywhere; then both, and the right rule by a button."""
    log = Progress()
    view = PieceView("prefetch-shared", log)
    label = words()["prefetch-shared"]["label"]
    view.asked.compare.click()
    assert view.label.value == ""
    view.asked.field.value = next(one for one in guesses("prefetch-shared") if one != label)
    view.asked.commit.click()
    assert view.label.value == ""
    view.asked.compare.click()
    assert label in view.label.value
    assert "ruby-amqp/bunny" in view.label.value
    hurts = "6 deliveries are unacknowledged"  # said once, by the verdict above it
    assert [hurts in text for text in (view.asked.line.value, view.label.value)] == [True, False]
    assert [one.right for one in log.records] == [False]
    view.cure.click()
    assert "without the mistake" in view.place.children[1]._doc()["title"]


def test_the_museum_goes_from_piece_to_piece():
    """One at a time, and round."""
    shown = Museum(Progress())
    assert shown.shown.name == "adds"
    shown.next.click()
    assert shown.shown.name == "never-used-up"
    shown.choose.value = list(PIECES)[-1]
    shown.next.click()
    assert shown.shown.name == "adds"
    assert question("adds").name == "11/museum-adds"
