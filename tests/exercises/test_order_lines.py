"""The order-the-lines exercise: moved by buttons, judged by running what the lines make."""

from itertools import permutations

import pytest

from workbench.exercises.order_lines import OrderLines, compiled, on_flow_lines, order_lines
from workbench.exercises.progress import Progress
from workbench.exercises.trial import Trial

LINES = on_flow_lines()["lines"]
SETS = "state.link_credit = max(0, left)"
LEFT = "left = frame.link_credit - in_flight"
SERIAL = "in_flight = serial.diff(state.delivery_count, frame.delivery_count)"
NAIVE = "in_flight = state.delivery_count - frame.delivery_count"


def put(*lines, log=None):
    """The exercise with these lines put in, in this order."""
    exercise = order_lines(**on_flow_lines(), log=Progress() if log is None else log)
    exercise.reset.click()
    for line in lines:
        exercise.offered.index = list(exercise.offered.options).index(line)
        exercise.take.click()
    return exercise


def test_every_order_that_the_explorer_finds_nothing_wrong_with_is_right():
    """No text is compared: of all orders of three lines, and of four, those pass that reckon."""
    four = (SERIAL, LEFT, SETS, NAIVE)
    tried = [*permutations(LINES, 3), *permutations(four)]
    passing = {chosen for chosen in tried if put_together(chosen).passed}
    assert (SERIAL, LEFT, SETS) in passing
    assert (NAIVE, SERIAL, LEFT, SETS) in passing
    assert all(set(chosen) >= {SERIAL, LEFT, SETS} for chosen in passing)


def put_together(lines):
    """What the lines make, tried as the exercise tries it."""
    exercise = order_lines(**on_flow_lines(), messages=4, grants=(2, 3), log=Progress())
    exercise.used.options = lines
    return exercise.trial()


def test_naive_subtraction_fails_at_the_beginning_that_wraps():
    """At 0 nothing is wrong with it; the exercise tries both."""
    made = compiled(put(NAIVE, LEFT, SETS).source)
    assert Trial(made, messages=10, grants=[3, 6]).passed
    exercise = put(NAIVE, LEFT, SETS)
    exercise.check.click()
    begun, view = exercise.place.children
    assert str(on_flow_lines()["starts"][-1]) in begun.value
    assert not view.trial.passed


def test_lines_as_they_are_offered_do_not_work():
    """The exercise is one; the order is the same for everybody."""
    assert not put_together(LINES).passed
    assert on_flow_lines() == on_flow_lines()


def test_a_line_used_too_early_is_told_with_its_words():
    """The fault names the line, as in a cell."""
    told = put_together((LEFT, SERIAL, SETS)).text
    assert "on_flow raises UnboundLocalError" in told
    assert LEFT in told


def test_lines_are_moved_by_buttons():
    """In, out, up and down; the ends stay ends, and the moved line stays chosen."""
    exercise = put(LINES[0], LINES[1])
    assert list(exercise.used.options) == list(LINES[:2])
    exercise.used.index = 1
    exercise.up.click()
    assert list(exercise.used.options) == [LINES[1], LINES[0]]
    assert exercise.used.index == 0
    exercise.up.click()
    assert list(exercise.used.options) == [LINES[1], LINES[0]]
    exercise.down.click()
    assert exercise.used.index == 1
    exercise.used.index = 0
    exercise.drop.click()
    assert list(exercise.used.options) == [LINES[1]]
    assert set(exercise.offered.options) == set(LINES) - {LINES[1]}
    assert exercise.source.startswith("def on_flow(state, frame):\n    ")
    exercise.reset.click()
    assert exercise.used.options == ()
    assert exercise.offered.options == LINES


def test_the_outcome_is_kept():
    """Right and wrong, with the lines as they stood."""
    log = Progress()
    put(LINES[0], log=log).check.click()
    assert log.entries["02/order-lines"].right is False
    exercise = put(SERIAL, LEFT, SETS, log=log)
    exercise.check.click()
    entry = log.entries["02/order-lines"]
    assert entry.right
    assert SERIAL in entry.answers[-1]
    assert exercise.place.children[0].trial.passed


def test_the_lines_tried_last_are_there_on_another_day():
    """What was put in is, in its order; what was left out can be chosen."""
    log = Progress()
    put(SERIAL, LEFT, log=log).check.click()
    again = order_lines(**on_flow_lines(), log=log)
    assert again.used.options == (SERIAL, LEFT)
    assert set(again.offered.options) == set(LINES) - {SERIAL, LEFT}
    log.record("02/order-lines", "another line; " + SERIAL, False)
    assert order_lines(**on_flow_lines(), log=log).used.options == ()


def test_a_change_takes_the_old_verdict_away():
    """What is shown is about what stands there."""
    exercise = put(SERIAL, LEFT, SETS)
    exercise.check.click()
    assert exercise.place.children
    exercise.used.index = 0
    exercise.down.click()
    assert exercise.place.children == ()


def test_an_empty_function_is_not_judged():
    """Nobody has put a line in yet; nothing is kept."""
    log = Progress()
    exercise = OrderLines(["state.link_credit = 1"], messages=3, grants=(2,), log=log)
    exercise.check.click()
    assert "Put lines in first" in exercise.place.children[0].value
    assert log.records == []


@pytest.mark.parametrize("name", ["open", "__import__", "exec"])
def test_the_lines_can_reach_nothing_but_what_they_need(name):
    """Ours though they are."""
    trial = Trial(compiled(f"def on_flow(state, frame):\n    {name}"), messages=3, grants=[1])
    assert "NameError" in trial.text


def test_without_a_kernel_both_lists_stay():
    """As text."""
    bundle = put(SETS)._repr_mimebundle_()
    texts = bundle[0] if isinstance(bundle, tuple) else bundle
    assert f"def on_flow(state, frame):\n    {SETS}" in texts["text/plain"]
    assert LEFT in texts["text/plain"]


def test_a_list_is_redrawn_in_one_message(monkeypatch):
    """What somebody chooses between two would be lost."""
    exercise = put(SERIAL, LEFT)
    sent = []
    told = lambda self, key=None: sent.append(self)  # noqa: E731
    monkeypatch.setattr(type(exercise.used), "send_state", told)
    exercise.take.click()
    assert sent == [exercise.used, exercise.offered]
    exercise.up.click()
    assert sent[2:] == [exercise.used]
