"""What lesson 05 asks and judges: read off runs of the model, and the same on a real capture."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lessons.asking import judged, solved, told
from workbench import presets
from workbench.capture.importer import import_capture
from workbench.exercises import measure
from workbench.exercises.progress import Progress
from workbench.frontends.incoming_link import IncomingLink
from workbench.lessons.lesson_05 import (
    check,
    predict,
    sent,
    stall_table,
    stalled,
    waiting,
)
from workbench.scenarios import run

DATA = Path(__file__).resolve().parent.parent.parent / "data/captures"


def publishers(preset="rmq4.3", **parameters):
    """Everything attached, nothing published."""
    return run("publishers", preset, parameters)


@pytest.fixture(scope="module")
def alone():
    """One publisher to one queue."""
    return publishers()


# -- predictions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("credit", "left"), [(170, 85), (10, 5), (7, 3)])
def test_the_broker_grants_again_at_half(credit, left):
    """At most half, rounded down: 85 of 170, not 84."""
    solution = solved(predict.regrant, publishers(max_link_credit=credit), 400)
    assert solution.answer == left
    assert told(solution, left - 1).startswith("below half")
    assert told(solution, 0).startswith("waits until it is used up")


def test_a_queue_that_hangs_takes_255(alone):
    """With the reason, in the run's own numbers."""
    solution = solved(predict.stall_takes, alone, 600)
    assert solution.answer == 255
    assert "with 85 unconfirmed it granted again; but with 170 it did not" in solution.reason
    assert told(solution, 170).startswith("the first grant is all")
    assert told(solution, 600).startswith("credit is granted whatever waits")


def test_one_confirmed_message_is_worth_a_grant(alone):
    """340, and who adds one is told why not."""
    solution = solved(predict.one_confirmed, alone, 600, 1)
    assert solution.answer == 340
    assert "with 84 and 169 unconfirmed it granted again; but with 254" in solution.reason
    assert told(solution, 256).startswith("one more confirmed, one more sent")
    assert told(solution, 255).startswith("confirmed ones do not matter")


def test_settled_messages_count_as_well():
    """The same number, and no disposition."""
    solution = solved(predict.settled_takes, publishers(settled=True), 600)
    assert solution.answer == 255
    assert "no dispositions came back" in solution.reason
    assert told(solution, 600).startswith("settled messages do not count")


def test_messages_confirmed_together_are_told_in_one_frame():
    """And one by one where the preset is the specification's."""
    assert solved(predict.told_in, waiting("rmq4.3", 40), 40).answer == 1
    assert solved(predict.told_in, waiting("spec", 40), 40).answer == 40


def test_the_neighbour_of_a_slow_target_is_as_fast_as_before():
    """Credit belongs to a link."""
    fair = publishers(queues=3).then("publish", count=600)
    slow = publishers(queues=3, service_us="50,50,2000").then("publish", count=600)
    solution = solved(predict.beside_slow, fair, slow, "q1", "q3")
    assert solution.answer == "as fast as before"
    assert told(solution, "as slow as the slow one").startswith("a stall holds the connection")
    other = solved(predict.beside_slow, fair, slow, "q3", "q3").answer
    assert other == "as slow as the slow one"


def test_a_stalled_publisher_still_consumes():
    """All that was granted comes."""
    two_way = stalled(publishers(consumer=True, ready=500), 600)
    solution = solved(predict.both_ways, two_way, 500)
    assert solution.answer == 500
    assert told(solution, 0).startswith("a stall holds the connection")


def test_a_changed_setting_is_for_sessions_to_come(alone):
    """The next grant says what it said before."""
    solution = solved(predict.changed_setting, alone, 10, 200)
    assert solution.answer == 170
    assert told(solution, 10).startswith("settings work at once")


@pytest.mark.parametrize("name", ["rmq43_a_publisher_grants", "rmq40_a_publisher_grants"])
def test_a_real_broker_grants_after_85(name):
    """As the model does."""
    rows = import_capture(DATA / f"{name}.pcapng").rows
    solution = solved(predict.real_regrant, rows)
    assert solution.answer == 85
    assert told(solution, 86).startswith("below half")


def test_the_specifications_broker_has_other_answers():
    """Nothing is written down: without the gate everything goes out."""
    plain = publishers("spec")
    assert solved(predict.stall_takes, plain, 600).answer == 600
    assert solved(predict.regrant, plain, 600).answer == 50


def test_another_gate_changes_everything_that_is_shown(monkeypatch, alone):
    """With a gate of one message the stalled queue takes one grant; the table follows."""
    assert stall_table((0,), preset="rmq4.3", publish=600).lines[0][1] == "255"
    monkeypatch.setattr(IncomingLink, "withheld", property(lambda self: self.unconfirmed >= 1))
    assert solved(predict.stall_takes, alone, 600).answer == 170
    assert stall_table((0,), preset="rmq4.3", publish=600).lines[0][1] == "170"


# -- tables ---------------------------------------------------------------------------------------


def test_the_table_of_stalls_shows_where_one_message_makes_the_difference():
    """A step at 1 and at 86 confirmed, and nowhere between."""
    table = stall_table((0, 1, 85, 86), preset="rmq4.3", publish=600)
    assert [line[1] for line in table.lines] == ["255", "340", "340", "425"]
    assert table.lines[1][4] == "0, 85, 170"
    assert str(table).splitlines()[1].startswith("no messages")


# -- checks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("credit", "right"), [(65, False), (66, True), (67, False)])
def test_the_largest_credit_is_found_by_trying(credit, right):
    """Both neighbours are told what is wrong with them."""
    assert judged(check.largest_credit, credit, limit=100, publish=300).right is right


@pytest.mark.parametrize("answer", [..., 0, -3, 2.5, "66", True, None])
def test_what_is_no_credit_is_not_judged(answer):
    """It is told what would be one, and nothing is recorded."""
    log = Progress()
    verdict = check.largest_credit(answer, limit=100, publish=300, log=log)
    assert verdict.right is None
    assert log.entries == {}


def test_what_blocked_longest_is_measured():
    """Right, wrong, no name of a brake at all, no answer yet."""
    played = publishers(latency_us=20000, rate=0).then("publish", count=900)
    longest = next(iter(measure.stalls_us(played, "q1")))
    assert judged(check.longest_brake, longest, played).right
    assert judged(check.longest_brake, "alarm", played).right is False
    for answer in (..., "credit", 3):
        assert judged(check.longest_brake, answer, played).right is None


def all_brakes():
    """A branch in which each brake binds once."""
    played = publishers(socket_octets=4000, rate=0, queues=2)
    for name, arguments in (
        ("stall", {}),
        ("publish", {"queue": "q1", "count": 400}),
        ("resume", {}),
        ("alarm", {}),
        ("publish", {"queue": "q2", "count": 1}),
        ("clear", {}),
        ("hold", {"direction": "c2b"}),
        ("publish", {"queue": "q2", "count": 100}),
    ):
        played = played.then(name, **arguments)
    return played


def test_a_branch_with_every_brake_is_recognised():
    """With the step at which each bound first."""
    log = Progress()
    verdict = check.collected(all_brakes(), log=log)
    assert verdict.right, verdict
    assert log.entries["05/collected"].right


def test_what_is_missing_is_named(alone):
    """And what is there already."""
    verdict = judged(check.collected, stalled(alone, 300))
    assert verdict.right is False
    assert "unconfirmed (step" in verdict.text
    assert "Not yet in this branch: link-credit, alarm, session-window, tcp." in verdict.text
    assert judged(check.collected, alone).right is None


@pytest.mark.parametrize("credit", [2, 3, 50, 171])
def test_every_credit_stops_at_what_the_rule_says(credit):
    """Closed form of the mechanism: c + c − ⌊c/2⌋ to a queue that never confirmed."""
    preset = replace(presets.get("rmq4.3"), publisher_credit=credit)
    played = stalled(run("publishers", preset), 4 * credit + 4)
    assert sent(played.rows) == 2 * credit - credit // 2
