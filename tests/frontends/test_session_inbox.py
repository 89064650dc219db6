"""A session's mailbox: frames take time, confirms take their turn, fractions add up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import RMQ43, Rig, data
from workbench.amqp10.performatives import Disposition
from workbench.frontends.session_inbox import SessionInbox
from workbench.sim import VirtualClock


class Told:
    """An inbox, and a log of what was done and told at what time."""

    def __init__(self, service_ns=1_000):
        self.clock = VirtualClock()
        self.log = []
        self.depths = []
        self.inbox = SessionInbox(
            self.clock,
            "session:c1/1",
            service_ns,
            note=lambda: self.depths.append(self.inbox.depth),
            rests=lambda: self.log.append((self.clock.now_us, "rests")),
        )
        self.inbox.tell = lambda heard: self.log.append((self.clock.now_us, tuple(heard)))

    def frame(self, name):
        """Post a frame that leaves a mark."""
        self.inbox.post(lambda: self.log.append((self.clock.now_us, name)))


def test_a_confirm_is_heard_in_its_turn_and_told_after_the_next_frame():
    """`noreply` after a frame tells what was heard before it; not what comes behind it."""
    told = Told()
    told.frame("a")
    told.inbox.confirm(1)
    told.inbox.confirm(2)
    told.frame("b")
    told.inbox.confirm(3)
    assert told.inbox.depth == 4, "confirms side by side are one"
    told.clock.run_until_rest()
    assert told.log == [(1, "a"), (2, "b"), (2, (1, 2)), (2, (3,)), (2, "rests")]


def test_an_idle_session_tells_at_once_and_all_that_comes_together():
    """`noreply_coalesce`: with nothing more in the mailbox the time-out is 0."""
    told = Told()
    for number in (1, 2, 3):
        told.clock.call_at(7, told.inbox.confirm, number)
    told.clock.run_until_rest()
    assert told.log == [(7, (1, 2, 3)), (7, "rests")]
    assert not told.inbox.busy


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ns=st.integers(0, 5_000), count=st.integers(1, 60), gap=st.integers(0, 9))
def test_parts_of_a_microsecond_add_up(ns, count, gap):
    """So many frames of so many ns take their sum, whatever came in between, to a microsecond."""
    told = Told(ns)
    for number in range(count):
        told.frame(number)
    told.clock.run_until_rest()
    assert told.clock.now_us == count * ns // 1_000
    told.clock.call_later(gap, told.frame, "later")
    told.clock.run_until_rest()
    assert told.clock.now_us - gap == (count + 1) * ns // 1_000


def test_a_mailbox_is_noted_as_it_grows_and_shrinks():
    """For each frame that comes, and for each whose turn it is."""
    told = Told()
    told.clock.call_soon(lambda: [told.frame(name) for name in "abc"])
    told.clock.run_until_rest()
    assert told.depths == [1, 2, 3, 2, 1, 0]


def test_what_is_gone_is_neither_done_nor_told():
    """The connection is lost with frames and confirms in the mailbox."""
    told = Told()
    told.frame("a")
    told.inbox.confirm(1)
    told.inbox.clear()
    told.clock.run_until_rest()
    assert told.log == []


def test_a_link_that_is_about_to_end_hears_all_that_was_decided():
    """A deleted queue's publisher gets its outcomes before the detach, mailbox or not."""
    told = Told()
    told.frame("a")
    told.inbox.confirm(1)
    told.frame("b")
    told.inbox.confirm(2)
    told.inbox.hear_all()
    assert told.log == [(0, (1, 2))]
    told.clock.run_until_rest()
    assert [what for _, what in told.log[1:]] == ["a", "b", "rests"]


def test_outcomes_wait_behind_the_transfers_that_came_first():
    """Three messages at once, 1 ms each: no outcome before the session has worked in the third."""
    rig = Rig(replace(RMQ43, session_us=1000, queue_enqueue_us=0))
    client, session = rig.raw()
    link = rig.sender(session)
    begun = rig.clock.now_us
    for _ in range(3):
        link.send(data(b"m"))
    rig.rest()
    first = next(
        row for row in rig.recorder.rows if row.kind == "disposition" and row.event == "sent"
    )
    assert first.t_us == begun + rig.latency_us + 3000
    assert [(one.first, one.last) for one in client.frames(Disposition)][-1][1] in (2, None)
