"""Work beside a run: in order, all of it or up to the first failure, and never for ever."""

import threading

import pytest

from workbench.trace.aside import MAY_WAIT, Aside


def test_jobs_are_done_in_order_and_all_of_them_before_it_is_left():
    """Whoever leaves it may look at what was made."""
    done = []
    with Aside() as aside:
        for number in range(50):
            aside.do(lambda number=number: done.append((number, threading.get_ident())))
    assert [number for number, _ in done] == list(range(50))
    assert {thread for _, thread in done}.isdisjoint({threading.get_ident()})


def test_a_run_waits_when_the_disk_is_behind():
    """So memory holds a bounded number of tables: one under way, and those that may wait."""
    begun, given, go = [], [], threading.Event()

    def job():
        begun.append(len(given))
        go.wait(30)

    def give():
        with Aside() as aside:
            for number in range(10):
                aside.do(job)
                given.append(number)
                if number == MAY_WAIT:
                    reached.set()

    reached = threading.Event()
    giver = threading.Thread(target=give)
    giver.start()
    assert reached.wait(30)
    assert len(given) <= MAY_WAIT + 1
    go.set()
    giver.join(30)
    assert not giver.is_alive()
    assert len(begun) == 10
    assert all(after - number <= MAY_WAIT + 1 for number, after in enumerate(begun))


@pytest.mark.parametrize("last", [True, False])
def test_what_a_job_raises_comes_out_once_and_later_jobs_are_not_done(last):
    """At the next job, or at the end if there is none; the thread ends too."""
    done = []

    def fail():
        raise OSError("no room")

    def play():
        with Aside() as aside:
            aside.do(lambda: done.append("before"))
            aside.do(fail)
            for _ in range(0 if last else 20):
                aside.do(lambda: done.append("after"))

    with pytest.raises(OSError, match="no room"):
        play()
    assert done == ["before"]
    assert "trace" not in {thread.name for thread in threading.enumerate()}


def test_an_exception_inside_takes_away_what_waits():
    """A run that is stopped does not write on."""
    done, under_way, go = [], threading.Event(), threading.Event()

    def first():
        under_way.set()
        go.wait(30)

    def play():
        with Aside() as aside:
            aside.do(first)
            assert under_way.wait(30)
            aside.do(lambda: done.append("waits"))
            aside._given_up = True  # as `__exit__` has it, before the first job is over
            go.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play()
    assert done == []
