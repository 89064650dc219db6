"""A learner's `on_flow`: right ones work, and what is wrong with others is told in words."""

import sys
import threading

import pytest

from workbench import serial
from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.sandbox import MAX_PRINTED, LearnerCodeError, guarded
from workbench.sim.explorer import explore


def right(state, frame):
    """The rule of 2.6.7, as a learner writes it."""
    state.link_credit = max(
        0, frame.link_credit - serial.diff(state.delivery_count, frame.delivery_count)
    )


def test_a_right_function_gives_the_lattice_of_the_rule():
    """Through the explorer it counts what the built-in rule counts."""
    mine = explore(LinkModel(messages=10, grants=(3, 6), rule=guarded(right)))
    rule = explore(LinkModel(messages=10, grants=(3, 6)))
    assert (mine.states, mine.bad) == (rule.states, rule.bad)


def test_a_function_may_return_the_credit_or_set_it():
    """Both are understood; what is returned counts."""
    assert guarded(lambda state, frame: frame.link_credit)(0, 6, 1, 2) == 6

    def sets(state, frame):
        state.link_credit += frame.link_credit

    assert guarded(sets)(0, 6, 1, 2) == 8


def endless(state, frame):
    while True:
        pass


def endless_and_stubborn(state, frame):
    while True:
        try:
            state.link_credit += 0
        except Exception:
            continue


def recursive(state, frame):
    return recursive(state, frame)


def huge(state, frame):
    return sum([number for number in range(10**12)])  # noqa: C416


def raising(state, frame):
    return 1 // (state.link_credit - state.link_credit)


def misspelt(state, frame):
    return frame.credit


def misspelt_state(state, frame):
    return state.credit


def changing_the_frame(state, frame):
    frame.link_credit = 0


def changing_the_count(state, frame):
    state.delivery_count = frame.delivery_count


@pytest.mark.parametrize(
    ("on_flow", "words"),
    [
        (endless, "does not come to an end"),
        (endless_and_stubborn, "does not come to an end"),
        (recursive, "calls itself|does not come to an end"),
        (huge, "does not come to an end"),
        (raising, r"ZeroDivisionError.*return 1 // \(state"),
        (misspelt, "frame.credit; a frame has delivery_count and link_credit"),
        (misspelt_state, "state.credit; a state has"),
        (changing_the_frame, "tries to change the frame: the flow is the receiver's"),
        (changing_the_count, "delivery-count moves with each message"),
        (lambda state, frame: "six", "'six', which is no whole number"),
        (lambda state, frame: 2.0, "no whole number"),
        (lambda state, frame: True, "no whole number"),
        (lambda state, frame: -1, "legal: 0 to 4294967295"),
        (lambda state, frame: 2**32, "legal: 0 to 4294967295"),
    ],
)
def test_what_is_wrong_is_told_in_words_with_the_call(on_flow, words):
    """Raising, looping and nonsense end in one paragraph that names state and frame."""
    with pytest.raises(LearnerCodeError, match=words) as caught:
        guarded(on_flow)(20, 6, 21, 2)
    assert "delivery_count=21, link_credit=2" in str(caught.value)
    assert "delivery_count=20, link_credit=6" in str(caught.value)


@pytest.mark.parametrize("nonsense", [None, 5, lambda: 0, lambda state: 0, lambda a, b, c: 0])
def test_what_is_no_function_of_state_and_frame_is_refused_at_once(nonsense):
    """Before anything is explored."""
    with pytest.raises(LearnerCodeError, match="on_flow"):
        guarded(nonsense)


def test_methods_defaults_and_star_arguments_are_functions_of_two():
    """Any callable that can be called with two arguments will do."""

    class Mine:
        def on_flow(self, state, frame):
            return 4

    for on_flow in (Mine().on_flow, lambda *both: 4, lambda state, frame, more=1: 4):
        assert guarded(on_flow)(0, 6, 1, 2) == 4


def test_the_same_question_is_asked_once():
    """The explorer meets the same numbers often; the learner's code runs for each once."""
    calls = []

    def counting(state, frame):
        calls.append(frame)
        return frame.link_credit

    rule = guarded(counting)
    assert [rule(0, 6, 1, 2) for _ in range(5)] == [6] * 5
    assert len(calls) == 1


def test_prints_do_not_flood_the_page_and_their_beginning_is_kept(capsys):
    """A print in a loop of thousands of calls is caught."""

    def chatty(state, frame):
        print("credit", frame.link_credit)  # noqa: T201
        return frame.link_credit

    rule = guarded(chatty)
    for credit in range(1000):
        rule(0, credit, 0, 0)
    assert capsys.readouterr().out == ""
    assert rule.printed.startswith("credit 0\ncredit 1\n")
    assert len(rule.printed) <= MAX_PRINTED


def test_a_tracer_that_was_there_before_goes_on():
    """A debugger or a coverage tool is put back, also after a failure."""

    def tracer(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(LearnerCodeError):
            guarded(endless)(0, 1, 0, 0)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_it_stops_in_another_thread_too():
    """A widget's callback may run beside the main thread."""
    told = []

    def work():
        try:
            guarded(endless)(0, 1, 0, 0)
        except LearnerCodeError as error:
            told.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert "does not come to an end" in told[0]
