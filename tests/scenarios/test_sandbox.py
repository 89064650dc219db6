"""A learner's `on_flow`: right ones work, and what is wrong with others is told in words."""

import contextlib
import functools
import gc
import inspect
import re
import signal
import sys
import threading
import time

import pytest

from tests.patience import TIMEOUT_S
from workbench import serial
from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.sandbox import MAX_PRINTED, LearnerCodeError, SenderState, guarded
from workbench.scenarios.watch import TooLongError, Watch, _Alarm
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


def endless_on_one_line(state, frame):
    # fmt: off
    while True: pass  # noqa: E701
    # fmt: on


def endless_and_stubborn(state, frame):
    while True:
        try:
            state.link_credit += 0
        except Exception:
            continue


def endless_and_deaf(state, frame):
    while True:
        try:
            state.link_credit += 0
        except:  # noqa: E722
            continue


def endless_in_a_deaf_place(state, frame):
    try:
        while True:
            pass
    except BaseException:
        return 5


def short(state):
    return state.link_credit


def endless_with_short_calls_in_a_deaf_place(state, frame):
    try:
        while True:
            short(state)
    except BaseException:
        return 5


def endless_in_a_helper(state, frame):
    return endless(state, frame)


def recursive(state, frame):
    return recursive(state, frame)


def huge(state, frame):
    return sum([number for number in range(10**12)])  # noqa: C416


def raising(state, frame):
    return 1 // (state.link_credit - state.link_credit)


def leaving(state, frame):
    sys.exit(3)


class SilentError(Exception):
    def __str__(self):
        raise ValueError("not even this")


def raising_something_broken(state, frame):
    raise SilentError


def raising_at_length(state, frame):
    raise ValueError("line\n" * 10_000)


def deleting(state, frame):
    del state.link_credit


def returning_the_state(state, frame):
    return state


async def promising(state, frame):
    return 5


def yielding(state, frame):
    yield 5


class Unshowable:
    def __repr__(self):
        raise ValueError("no picture")


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
        (endless_on_one_line, r"after 20,000 lines it was stopped in line \d+: while True: pass"),
        (endless_and_stubborn, "does not come to an end"),
        (endless_and_deaf, "does not come to an end"),
        (endless_in_a_deaf_place, "does not come to an end"),
        (endless_with_short_calls_in_a_deaf_place, "does not come to an end"),
        (endless_in_a_helper, r"does not come to an end: .* stopped in line \d+: pass\. Look"),
        (recursive, "calls itself|does not come to an end"),
        (huge, "does not come to an end"),
        (raising, r"ZeroDivisionError.*return 1 // \(state"),
        (misspelt, r"frame\.credit in line \d+: .*\. A frame has delivery_count"),
        (misspelt_state, r"state\.credit in line \d+: .*\. A state has"),
        (
            changing_the_frame,
            r"tries to change the frame in line \d+: .*\. The flow is the receiver's",
        ),
        (changing_the_count, "delivery-count moves with each message"),
        (leaving, "ends the program"),
        (raising_something_broken, "raises SilentError in line"),
        (raising_at_length, r"ValueError \(line line .*\.\.\.\)"),
        (deleting, "deleted state.link_credit"),
        (returning_the_state, "returns the state itself"),
        (promising, "async def"),
        (yielding, "yield"),
        (
            lambda state, frame: Unshowable(),
            "returns <Unshowable instance at 0x[0-9a-f]*>, which is not a whole number",
        ),
        (lambda state, frame: 10**5000, "legal: 0 to 4294967295"),
        (lambda state, frame: list(range(100_000)), r"\[0, 1, 2, .*no whole number"),
        (lambda state, frame: "six", "'six', which is not a whole number"),
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
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    "on_flow",
    [
        endless,
        endless_and_stubborn,
        recursive,
        huge,
        raising,
        leaving,
        misspelt,
        deleting,
        returning_the_state,
        changing_the_count,
    ],
)
def test_the_line_of_the_learner_s_code_is_named(on_flow):
    """With its number and its text, also when it was stopped from outside."""
    with pytest.raises(LearnerCodeError) as caught:
        guarded(on_flow)(20, 6, 21, 2)
    first = on_flow.__code__.co_firstlineno
    number, text = re.search(r"in line (\d+): (.*?)\. ", str(caught.value)).groups()
    lines = inspect.getsource(on_flow).splitlines()
    assert text.split("  #")[0] in lines[int(number) - first]


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        5,
        lambda: 0,
        lambda state: 0,
        lambda a, b, c: 0,
        lambda a, b, *, c: 0,
        functools.partial(lambda a, b: 0, 1),
    ],
)
def test_what_is_no_function_of_state_and_frame_is_refused_at_once(nonsense):
    """Before anything is explored."""
    with pytest.raises(LearnerCodeError, match="on_flow"):
        guarded(nonsense)


def test_methods_defaults_and_star_arguments_are_functions_of_two():
    """Any callable that can be called with two arguments will do."""

    class Mine:
        def on_flow(self, state, frame):
            return 4

    class Callable:
        def __call__(self, state, frame):
            return 4

    for on_flow in (
        Mine().on_flow,
        Callable(),
        functools.partial(lambda one, state, frame: 4, 1),
        lambda *both: 4,
        lambda state, frame, more=1: 4,
    ):
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
        print("aside", file=sys.stderr)  # noqa: T201
        return frame.link_credit

    sys_streams = sys.stdout, sys.stderr
    rule = guarded(chatty)
    for credit in range(1000):
        rule(0, credit, 0, 0)
    assert (sys.stdout, sys.stderr) == sys_streams
    assert capsys.readouterr() == ("", "")
    assert rule.printed.startswith("credit 0\naside\ncredit 1\n")
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


@pytest.mark.parametrize(
    "on_flow",
    [
        endless,
        endless_on_one_line,
        endless_and_stubborn,
        endless_and_deaf,
        endless_in_a_deaf_place,
        endless_with_short_calls_in_a_deaf_place,
        huge,
    ],
)
def test_it_stops_in_another_thread_too(on_flow):
    """Where there is no alarm, the bound on lines still holds, wherever it is met."""
    told = []

    def work():
        for more in range(4):
            try:
                guarded(on_flow, max_lines=1000 + more)(0, 1, 0, 0)
            except LearnerCodeError as error:
                told.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(TIMEOUT_S)
    assert len(told) == 4
    assert all("does not come to an end" in each for each in told)


def waiting(state, frame):
    time.sleep(600)


def computing(state, frame):
    return 10**10**10


ALARM = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarm on this system")


@ALARM
@pytest.mark.parametrize("on_flow", [waiting, computing])
def test_what_runs_no_lines_is_stopped_by_the_clock(on_flow):
    """A wait or a huge number: the line bound would never see it."""
    with pytest.raises(LearnerCodeError, match=r"after 0\.1 s.*stopped.*something that waits"):
        guarded(on_flow, seconds=0.1)(20, 6, 21, 2)


@ALARM
def test_the_time_is_for_all_calls_together():
    """A function that is slow each time does not make an exploration endless."""
    begun = []

    def slow(state, frame):
        begun.append(frame)
        time.sleep(600)

    rule = guarded(slow, seconds=0.05)
    for credit in range(3):
        with pytest.raises(LearnerCodeError, match=r"0\.05 s, the time for all its calls"):
            rule(20, credit, 21, 2)
    assert len(begun) <= 1  # where the machine is busy the time may be over before it begins


@ALARM
def test_the_clock_stops_nothing_inside_a_callback_of_the_garbage_collector():
    """What is raised there is lost and warned about; the alarm rings again, outside of it."""
    rung = []

    def slow_callback(phase, info):
        if not rung:  # later it is quick
            rung.append(phase)
            time.sleep(0.3)

    def collecting(state, frame):
        gc.collect()
        time.sleep(60)

    gc.collect()  # whatever other tests have left: its finalizers are none of this
    gc.callbacks.append(slow_callback)
    try:
        with pytest.raises(LearnerCodeError, match=r"0\.1 s"):
            guarded(collecting, seconds=0.1)(20, 6, 21, 2)
    finally:
        gc.callbacks.remove(slow_callback)


@ALARM
def test_the_time_of_calls_that_end_well_counts_too():
    """Each takes a little of what there is."""
    watch = Watch(max_lines=1000, seconds=60)
    left = [watch.left_s]
    for _ in range(3):
        watch.call(sum, range(10_000))
        left.append(watch.left_s)
    assert left == sorted(set(left), reverse=True)


def deaf_around_a_helper(state, frame):
    while True:
        try:
            endless_and_deaf(state, frame)
        except BaseException:
            continue


@ALARM
def test_code_that_catches_every_stop_is_stopped_again_until_it_is_out():
    """Wherever the line bound is met, somebody catches it: the alarm goes on at once."""
    watch = Watch(max_lines=1000, seconds=60)
    with pytest.raises(TooLongError):
        watch.call(deaf_around_a_helper, SenderState(0, 0), None)
    assert watch.by == "lines"
    assert 0 < watch.left_s < 60


def test_the_alarm_does_not_disturb_what_puts_things_back():
    """It rings in the function that is watched, not in the code that watches."""
    alarm = _Alarm(Watch(max_lines=1000, seconds=1))
    own, theirs = Watch(max_lines=1000, seconds=60).call(
        lambda: (sys._getframe(1), sys._getframe(0))
    )
    alarm._ring(0, None)
    alarm._ring(0, own)
    alarm.silently(lambda frame: alarm._ring(0, frame), theirs)
    with pytest.raises(TooLongError):
        alarm._ring(0, theirs)


@ALARM
@pytest.mark.parametrize("on_flow", [right, endless, waiting])
def test_an_alarm_that_was_there_before_goes_on(on_flow):
    """Handler and timer of somebody else are put back."""

    def mine(number, frame):
        raise AssertionError("rings in ten minutes only")

    before = signal.signal(signal.SIGALRM, mine)
    signal.setitimer(signal.ITIMER_REAL, 600, 7)
    try:
        with contextlib.suppress(LearnerCodeError):
            guarded(on_flow, seconds=0.05)(20, 6, 21, 2)
        assert signal.getsignal(signal.SIGALRM) is mine
        delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
        assert 500 < delay <= 600
        assert interval == 7
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_the_interrupt_of_the_kernel_goes_through():
    """Who presses stop is not told that the function raised something."""

    def interrupted(state, frame):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded(interrupted)(20, 6, 21, 2)


def test_a_failing_function_ends_the_exploration_with_its_words():
    """Nothing is half explored: the caller gets the one paragraph."""
    with pytest.raises(LearnerCodeError, match="ZeroDivisionError"):
        explore(LinkModel(messages=10, grants=(3, 6), rule=guarded(raising)))


def test_a_whole_number_of_another_library_will_do():
    """What counts is that it is one; the rule gives a plain int."""
    numpy = pytest.importorskip("numpy")
    given = guarded(lambda state, frame: numpy.uint32(4))(0, 6, 1, 2)
    assert (given, type(given)) == (4, int)
