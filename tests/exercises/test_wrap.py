"""Naive subtraction beside serial arithmetic, flow by flow and over all schedules [RFC 1982]."""

from pathlib import Path

import pytest

from workbench.capture.importer import import_capture
from workbench.exercises.audit import audited_run
from workbench.exercises.question import judge
from workbench.lessons import lesson_02
from workbench.lessons.lesson_02 import subtractions, wrap_verdicts

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
STARTS = (0, 20, 2**31, 2**32 - 2)
# All credit is used just below the wrap-around, so the next transfer begins the count anew.
WRAPPING = {"link_credit": 4, "initial_delivery_count": 2**32 - 5}


def test_the_right_rule_cannot_tell_the_beginnings_apart():
    """Starts 0, 20, 2^31 and 2^32 − 2: the same states, none bad."""
    found = wrap_verdicts(STARTS, messages=10, grants=[3, 6]).found
    sizes = {(found[start, "spec"].states, found[start, "spec"].bad) for start in STARTS}
    assert len(sizes) == 1
    assert next(iter(sizes))[1] == 0


def test_naive_subtraction_is_right_until_one_count_has_wrapped():
    """Far from the wrap-around it passes every schedule; just below it some are bad."""
    verdicts = wrap_verdicts(STARTS, messages=10, grants=[3, 6])
    bad = {start: verdicts.found[start, "naive"].bad for start in STARTS}
    assert [start for start, number in bad.items() if number] == [2**32 - 2]
    assert "✘" in verdicts.verdict(2**32 - 2, "naive")
    assert "✘" not in verdicts.verdict(2**32 - 2, "spec")
    assert str(verdicts).count("none bad") == 7
    assert verdicts._repr_html_().count("<tr>") == len(STARTS) + 1


@pytest.mark.parametrize("start", [*STARTS, 2**32 - 5])
def test_serial_arithmetic_gives_what_the_sender_wrote_down(start):
    """At every flow of a run with drain and a crossing, whatever the beginning."""
    lines = subtractions(audited_run(4, initial_delivery_count=start)).lines
    assert len(lines) == 5
    assert [line.serial for line in lines] == [line.logged for line in lines]


def test_naive_subtraction_gives_more_than_everything():
    """Flow at 4294967295, own count 0: the sum is beyond any credit there is."""
    wrong = subtractions(audited_run(**WRAPPING)).wrong
    assert [line.naive_text for line in wrong] == ["4294967295 + 8 − 0 = 4294967303"]
    assert "≠ naive is wrong" in str(subtractions(audited_run(**WRAPPING)))


def test_a_real_broker_may_not_show_the_mistake():
    """RabbitMQ 4.0 wraps in this capture, but no flow crosses the wrap: naive passes by luck."""
    computed = subtractions(import_capture(CAPTURES / "rmq40_b_consumer_credit.pcapng"))
    assert len(computed.lines) == 5
    assert computed.wrong == []
    assert [line.serial for line in computed.lines] == [line.logged for line in computed.lines]


def test_the_question_is_answered_by_the_run():
    """Wrong at the wrap-around, or never where nothing wraps; both beliefs are recognised."""
    solution = lesson_02.predict.naive.question(audited_run(**WRAPPING)).solve()
    assert solution.answer == "when one of the two counts has wrapped and the other has not"
    assert "4294967303" in solution.reason
    assert judge("never", solution).belief == "differences always work"
    assert judge("from the first flow on", solution).belief == "large numbers are trouble"
    calm = lesson_02.predict.naive.question(audited_run(4)).solve()
    assert calm.answer == "never"


def test_where_the_paper_differs_is_read_off_the_run():
    """With a drain in it the answer is the drain; the other answers are beliefs."""
    solution = lesson_02.predict.atm.question(audited_run(3)).solve()
    assert "drained" in str(solution.answer)
    assert {belief.name for belief in solution.beliefs} == {
        "delivery-count counts deliveries",
        "crossing is the trouble",
    }


def test_what_a_reader_notices_is_counted_by_letting_it_read():
    """From 0 it notices the first of two, from 20 none; believing the screen is a belief."""
    asked = lesson_02.predict.noticed.question
    assert asked(audited_run(3), "counts from zero").solve().answer == 1
    solution = asked(audited_run(3, initial_delivery_count=20), "counts from zero").solve()
    assert solution.answer == 0
    assert judge(2, solution).belief == "a number on a screen is right"


def test_an_unknown_rule_is_told_before_anything_is_searched():
    """With the names that there are."""
    with pytest.raises(ValueError, match="there are: spec, set, add, naive"):
        wrap_verdicts([0], messages=3, grants=[2], rules=["clever"])
