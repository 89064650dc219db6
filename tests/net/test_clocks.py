"""What both clocks, the virtual and the real one, promise to whatever runs on them."""

import pytest

from tests.conformance.broker_in_memory import TimelessLoop
from workbench.net.loop_clock import LoopClock
from workbench.sim import Clock, Priority, VirtualClock


class Virtual:
    """A virtual clock, and what lets it run."""

    def __init__(self):
        self.clock: Clock = VirtualClock()

    def run(self, until_us):
        self.clock.call_at(until_us, lambda: None)
        while self.clock.now_us < until_us:
            self.clock.step()

    def close(self):
        pass


class Live:
    """The clock of an event loop whose time jumps to what is due next."""

    def __init__(self):
        self.loop = TimelessLoop()
        self.failed = []
        self.clock: Clock = LoopClock(self.loop, self.failed.append)

    def run(self, until_us):
        self.loop.call_later((until_us - self.clock.now_us) / 1e6, self.loop.stop)
        self.loop.run_forever()

    def close(self):
        self.loop.close()


@pytest.fixture(params=[Virtual, Live])
def time(request):
    made = request.param()
    yield made
    made.close()


def test_what_is_due_runs_in_order_of_time_and_of_scheduling(time):
    """Whole microseconds, never backwards; each call at its time or later."""
    ran = []
    call = lambda name: ran.append((name, time.clock.now_us))  # noqa: E731
    time.clock.call_later(3_000, call, "third")
    time.clock.call_at(1_000, call, "first")
    time.clock.call_later(2_000, call, "second", idle=True)
    time.run(10_000)
    assert [name for name, _ in ran] == ["first", "second", "third"]
    assert all(t_us >= 1_000 * number for number, (_, t_us) in enumerate(ran, start=1))
    assert all(isinstance(t_us, int) for _, t_us in ran)


def test_a_reaction_comes_before_what_else_is_due_at_the_moment(time):
    """And what was scheduled first is first, also among what a call schedules."""
    ran = []

    def first():
        ran.append("first")
        time.clock.call_soon(ran.append, "soon")
        time.clock.call_soon(ran.append, "reaction", priority=Priority.REACT)
        time.clock.call_later(0, ran.append, "sooner or later")

    time.clock.call_soon(first)
    time.clock.call_soon(ran.append, "second")
    time.run(1_000)
    assert ran == ["first", "reaction", "second", "soon", "sooner or later"]


def test_a_call_that_is_taken_back_is_not_made(time):
    """Twice is harmless, also when it has run."""
    ran = []
    timers = [time.clock.call_later(delay, ran.append, delay) for delay in (0, 1_000, 2_000)]
    timers[0].cancel()
    timers[0].cancel()
    time.run(1_500)
    timers[1].cancel()
    timers[2].cancel()
    time.run(5_000)
    assert ran == [1_000]
    assert [timer.done for timer in timers] == [True] * 3


def test_a_call_that_fails_does_not_keep_a_live_clock_from_going_on():
    """It is told of; one connection's mishap must not stop the others."""
    time = Live()
    ran = []
    time.clock.call_soon(lambda: 1 / 0)
    time.clock.call_soon(ran.append, "next")
    time.run(1_000)
    time.close()
    assert ran == ["next"]
    assert [type(error) for error in time.failed] == [ZeroDivisionError]
