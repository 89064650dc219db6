"""A misconception in step with a run: where the two part, and what the stage says there."""

import json

import pytest

from workbench.exercises.question import Belief
from workbench.exercises.show_me import contradiction, in_step
from workbench.scenarios.beside import Measured, counted, decided, followed
from workbench.scenarios.run import run
from workbench.trace.schema import BROKER, SENT
from workbench.views.scene import resolved


@pytest.fixture(scope="module")
def granted():
    """Five of eight messages are sent."""
    queue = run("credit", parameters={"messages": 8})
    return queue.act(queue.start_seq, "grant", link_credit=5)


@pytest.fixture(scope="module")
def sent(granted):
    """The row of each."""
    rows = granted.rows
    return [one for one in rows if (one.kind, one.event, one.vantage) == ("transfer", SENT, BROKER)]


def test_who_expects_less_parts_from_the_run_at_the_first_row_too_many(granted, sent):
    """Up to there both count alike."""
    found = counted(granted, "Messages sent", sent).beside("a few", 2, 5)
    assert found.parts == sent[2].seq
    assert found.told(sent[1].seq) == "Messages sent: 2, by your rule too."
    assert found.differs(sent[1].seq) is None
    assert found.differs(sent[2].seq) == "Here they part. Messages sent: 3; by your rule 2."
    assert found.differs(sent[3].seq) == "They have parted. Messages sent: 3; by your rule 2."


def test_who_expects_more_parts_from_the_run_where_it_has_come_to_rest(granted, sent):
    """Only then it is certain that no more comes; or at the row that decides."""
    steps = counted(granted, "Messages sent", sent)
    assert steps.beside("all", 8, 5).parts == granted.last
    assert steps.beside("all", 8, 5).differs(granted.last).endswith("5; by your rule 8.")
    decides = granted.rows[granted.last - 1]
    assert counted(granted, "", sent, end=decides).beside("all", 8, 5).parts == decides.seq


def test_what_is_used_up_is_counted_down(granted, sent):
    """From what there was to what is left."""
    steps = counted(granted, "Credit", sent, full=9)
    assert steps.beside("renewed soon", 7, 4).parts == sent[2].seq
    assert steps.beside("renewed soon", 7, 4).told(sent[2].seq) == "Credit: 6; by your rule 7."
    assert steps.beside("used up first", 0, 4).parts == granted.last


def test_a_course_that_is_the_run_s_own_parts_nowhere(granted, sent):
    """There is nothing to show then; so with an answer that is right."""
    assert counted(granted, "", sent).beside("right", 5, 5) is None
    course = {one.seq: one.seq for one in sent}
    assert followed(granted, "", course, {"x": course}).beside("x", 1, 2) is None
    assert Measured(unit="", heights={"a": 2}, yours={"x": ("a", 2)}).beside("x", "a", "b") is None


def test_an_answer_that_one_row_decides_parts_there(granted, sent):
    """Words stand in quotation marks."""
    found = decided(granted, "First", sent[0]).beside("x", "a flow", "a transfer")
    assert found.parts == sent[0].seq
    assert found.differs(granted.last).endswith("First: “a transfer”; by your rule “a flow”.")


def test_what_is_picked_as_the_highest_stands_as_high_as_the_highest():
    """Where no course can be drawn, bars say it."""
    measured = Measured(unit="a second", heights={"slow": 10, "quick": 90})
    found = measured.beside("x", "slow", "quick")
    assert (found.which, found.yours) == ("slow", 90)
    drawn = in_step(Belief(name="x", answer="slow", because="", beside=found)).value
    assert drawn.index("slow<") < drawn.index("slow, by your rule") < drawn.index("quick")
    assert drawn.count("width:80.0%") == 2


def test_bars_are_told_in_the_words_of_their_unit_and_say_whose_rule_it_is():
    """The unit keeps its capitals; a trainer reads of the room's rule."""
    measured = Measured(unit="time in Q (ms)", heights={"slow": 10, "quick": 90})
    wrong = Belief(name="x", answer="slow", because="", beside=measured.beside("x", "slow", "z"))
    assert ">Time in Q (ms)<" in in_step(wrong).value
    text, drawn = contradiction(wrong, None, theirs=True)
    assert text.startswith("Their rule: x.")
    assert "slow, by their rule<" in drawn.value


def test_the_stage_begins_shortly_before_and_says_where_they_part(granted, sent):
    """It stops at the first step whose rule differs, as for every other misconception."""
    found = counted(granted, "Messages sent", sent).beside("a few", 4, 5)
    view = in_step(Belief(name="a few", answer=4, because="", beside=found))
    scene = view._doc()
    assert scene["rule"] == "a few"
    states = list(resolved(scene))
    differs = [state["lines"]["beside"]["rules"]["a few"]["differs"] for state in states]
    first = next(place for place, words in enumerate(differs) if words)
    assert first == sent[4].seq
    assert granted.start_seq <= view.seq < sent[2].seq
    assert (
        "Messages sent: 4, by your rule too."
        in scene["branches"][0]["steps"][sent[3].seq]["sentence"]
    )


def test_a_trainer_reads_of_the_rooms_rule_in_every_step(granted, sent):
    """The stage's own words ask the scene whose it is."""
    found = counted(granted, "Messages sent", sent).beside("a few", 4, 5)
    wrong = Belief(name="a few", answer=4, because="", beside=found)
    yours, theirs = in_step(wrong)._doc(), contradiction(wrong, None, theirs=True)[1]._doc()
    assert (yours.get("theirs"), theirs["theirs"]) == (None, True)
    one, other = (json.dumps(doc | {"theirs": True}, sort_keys=True) for doc in (yours, theirs))
    assert "your rule" in one
    assert other == one.replace("your rule", "their rule")
