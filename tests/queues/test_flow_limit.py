"""Qpid C++'s watermarks: the cases of its QueueFlowLimitTest, and a book-keeper of our own.

The cases are those of `src/tests/QueueFlowLimitTest.cpp` and `queue_flow_limit_tests.py`, written
anew: thresholds by count, by size, by both, defaults, bad arguments, several senders, deletion.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.broker import CONFIRMED, UNROUTABLE, Broker, Refused
from workbench.queues import (
    Checkout,
    Confirm,
    Dispatch,
    Enqueue,
    FlowChanged,
    FlowThresholds,
    Held,
    Message,
    Origin,
    Prefetch,
    Purge,
    QpidQueueArguments,
    QueueArgumentError,
    QueueFlowLimit,
    Reject,
    Rejected,
    Release,
    Settle,
    make_queue,
)
from workbench.sim import VirtualClock

COUNT = {"qpid.flow_stop_count": 7, "qpid.flow_resume_count": 5}
SIZE = {"qpid.flow_stop_size": 700, "qpid.flow_resume_size": 460}
BOTH = {
    "qpid.flow_stop_count": 10, "qpid.flow_resume_count": 5,
    "qpid.flow_stop_size": 2000, "qpid.flow_resume_size": 1000,
}  # fmt: skip
RATIOS = {"stop_percent": 80, "resume_percent": 70}


class Flow:
    """A limit, and messages by size that went in and come out."""

    def __init__(self, arguments):
        self.limit = QueueFlowLimit(FlowThresholds.declared(arguments))
        self.there = []
        self.last = 0

    def put(self, *sizes):
        """Take messages in; tells for each whether the queue is stopped then."""
        found = []
        for size in sizes:
            self.last += 1
            self.there.append((self.last, size))
            self.limit.enqueued(self.last, size, self.last)
            found.append(self.limit.stopped)
        return found

    def take(self, *sizes):
        """Remove the oldest messages of these sizes; tells the same."""
        found = []
        for size in sizes:
            one = next(one for one in self.there if one[1] == size)
            self.there.remove(one)
            self.limit.dequeued(*one)
            found.append(self.limit.stopped)
        return found


def test_by_count_the_eighth_stops_and_four_left_go_on():
    """Both comparisons are strict."""
    flow = Flow(COUNT)
    assert flow.put(*[100] * 9) == [False] * 7 + [True] * 2
    assert flow.take(*[100] * 5) == [True] * 4 + [False]
    assert flow.limit.count == 4


def test_by_size_octets_decide():
    """700 do not stop it, 730 do; 490 keep it stopped, 450 do not."""
    flow = Flow(SIZE)
    assert flow.put(*[100] * 6, 50, 40, 40, 100) == [False] * 8 + [True] * 2
    assert (flow.limit.count, flow.limit.size) == (10, 830)
    assert flow.take(100, 100, 100, 40, 40) == [True] * 4 + [False]
    assert flow.take(50, 100, 100) == [False] * 3
    assert (flow.limit.count, flow.limit.size) == (2, 200)


def test_of_both_either_stops_and_both_must_be_below():
    """Three rounds: by count, by size, by both."""
    flow = Flow(BOTH)
    assert flow.put(*[100] * 10, 50) == [False] * 10 + [True]
    assert flow.take(*[100] * 6, 50) == [True] * 6 + [False]
    assert flow.take(*[100] * 4) == [False] * 4
    assert flow.put(1000, 500, 500, 50) == [False, False, False, True]
    assert flow.take(1000, 50, 500) == [True, True, False]
    assert flow.put(*[100] * 9, 50, 1000) == [False] * 9 + [True, True]
    assert flow.take(500, *[100] * 9, 50, 1000) == [True] * 11 + [False]
    assert flow.limit.stopped_count == 3


@pytest.mark.parametrize(
    ("arguments", "defaults", "found"),
    [
        ({}, {"default_max_size": 2950001, **RATIOS}, (0, 0, 2360001, 2065000)),
        ({"qpid.max_count": 1000}, RATIOS, (800, 700, 0, 0)),
        ({"qpid.max_count": 90}, RATIOS, (72, 62, 0, 0)),
        ({"qpid.policy_type": "never", "qpid.max_count": 10}, RATIOS, (8, 7, 0, 0)),
        ({"qpid.max_size": 10000}, RATIOS, (0, 0, 8000, 7000)),
        ({"qpid.flow_stop_count": 35000, "qpid.flow_resume_count": 30000}, RATIOS,
         (35000, 30000, 0, 0)),
        ({"qpid.flow_stop_size": 350000, "qpid.flow_resume_size": 300000}, RATIOS,
         (0, 0, 350000, 300000)),
        ({"qpid.flow_stop_count": 7}, {}, (7, 7, 0, 0)),
        ({"qpid.max_count": 10, "qpid.flow_stop_count": 0}, RATIOS, (0, 7, 0, 0)),
        ({"qpid.flow_stop_count": "30", "qpid.flow_resume_count": 21,
          "qpid.flow_stop_size": 0x2FFFFFFFF, "qpid.flow_resume_size": 0x1FFFFFFFF}, RATIOS,
         (30, 21, 0x2FFFFFFFF, 0x1FFFFFFFF)),
        ({"qpid.policy_type": "ring", "qpid.max_count": 10}, RATIOS, (0, 0, 0, 0)),
    ],
)  # fmt: skip
def test_thresholds_of_a_declaration(arguments, defaults, found):
    """Given ones, else 80 and 70 per cent of the maximum, rounded as Qpid C++ rounds; no ring's."""
    limits = FlowThresholds.declared(arguments, **defaults)
    assert (
        limits.stop_count, limits.resume_count, limits.stop_size, limits.resume_size
    ) == found  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        {"qpid.flow_stop_count": 5, "qpid.flow_resume_count": 6},
        {"qpid.flow_stop_size": 5, "qpid.flow_resume_size": 6},
        {"qpid.max_count": 5, "qpid.flow_stop_count": 6},
        {"qpid.max_size": 5, "qpid.flow_stop_size": 6},
        {"qpid.flow_stop_count": -1},
        {"qpid.flow_stop_count": True},
        {"qpid.flow_stop_count": "many"},
        {"qpid.policy_type": "self-destruct"},
    ],
)
def test_thresholds_that_cannot_be_are_refused_in_words(arguments):
    """Resume above stop, stop above the maximum, what is no number."""
    with pytest.raises(QueueArgumentError, match="legal"):
        FlowThresholds.declared(arguments)


# -- in a queue, and in a broker --------------------------------------------------------------


def queue_of(**arguments):
    """A queue with thresholds by Qpid's names, dots and prefix left out."""
    given_ = {f"qpid.{name}": value for name, value in arguments.items()}
    return make_queue("q", QpidQueueArguments.of(FlowThresholds.declared(given_)))


def put(queue, name, size=1):
    """Take a message in; gives the kinds of what comes of it."""
    _, effects = queue.apply(Enqueue(message=Message(payload=b"x" * size), publish=name))
    return effects


def confirmed(effects):
    """Whose messages are confirmed."""
    return [one.publish for one in effects if isinstance(one, Confirm)]


def filled(count, **arguments):
    """A queue with that many messages, all handed out to a consumer."""
    queue = queue_of(**arguments)
    for n in range(count):
        put(queue, n)
    queue.apply(Checkout(consumer="c", mode=Prefetch(count)))
    for _ in range(count):
        queue.apply(Dispatch())
    return queue


def test_the_eighth_message_is_held_and_not_the_seventh():
    """It is in the queue all the same; the burst of confirms comes when four are left."""
    queue = queue_of(flow_stop_count=7, flow_resume_count=5)
    assert [confirmed(put(queue, n)) for n in range(7)] == [[n] for n in range(7)]
    assert put(queue, 7) == [Held(publish=7), FlowChanged(stopped=True)]
    assert put(queue, 8) == [Held(publish=8)]
    assert (queue.ready, queue.overview()["held"]) == (9, 2)
    queue.apply(Checkout(consumer="c", mode=Prefetch(9)))
    for _ in range(9):
        _, effects = queue.apply(Dispatch())
        assert confirmed(effects) == []  # handed out is not removed
    told = [queue.apply(Settle(consumer="c", message_ids=(n,)))[1] for n in range(5)]
    assert told[:4] == [[]] * 4
    assert told[4] == [
        FlowChanged(stopped=False), Confirm(publish=7, held=True), Confirm(publish=8, held=True),
    ]  # fmt: skip


def test_a_held_message_that_leaves_is_confirmed_although_the_queue_is_stopped():
    """Only that one."""
    queue = filled(10, flow_stop_count=7, flow_resume_count=5)
    _, effects = queue.apply(Settle(consumer="c", message_ids=(9,)))
    assert effects == [Confirm(publish=9, held=True)]
    assert queue.flow.stopped
    _, effects = queue.apply(Reject(consumer="c", message_ids=(8,)))
    assert confirmed(effects) == [8]


def test_what_goes_back_still_counts():
    """A release removes nothing."""
    queue = filled(8, flow_stop_count=7, flow_resume_count=5)
    _, effects = queue.apply(Release(consumer="c", message_ids=tuple(range(8))))
    assert confirmed(effects) == []
    assert queue.flow.count == 8
    _, effects = queue.apply(Purge())
    assert confirmed(effects) == [7]
    assert not queue.flow.stopped


def test_beyond_the_maximum_a_message_is_refused():
    """Counted from taking in to removing, in messages and in octets."""
    queue = filled(3, max_count=3)
    assert put(queue, "no") == [Rejected(publish="no", reason="resource-limit-exceeded")]
    queue.apply(Settle(consumer="c", message_ids=(0,)))
    assert confirmed(put(queue, "yes")) == ["yes"]
    queue = queue_of(max_size=10)
    assert confirmed(put(queue, "a", 10)) == ["a"]
    assert confirmed(put(queue, "b", 1)) == []


def test_a_ring_refuses_what_is_larger_than_it():
    """Nothing is dropped for it."""
    queue = queue_of(max_size=10, policy_type="ring")
    assert confirmed(put(queue, "a", 10)) == ["a"]
    assert put(queue, "no", 11) == [Rejected(publish="no", reason="resource-limit-exceeded")]
    assert queue.ready == 1


def test_a_ring_drops_its_oldest_and_holds_nothing():
    """Its size is limited by design."""
    queue = queue_of(max_count=3, policy_type="ring")
    assert [confirmed(put(queue, n)) for n in range(5)] == [[n] for n in range(5)]
    assert (queue.ready, queue.flow.count, queue.flow.stopped) == (3, 3, False)


def broker_with(**queues):
    """A broker with queues, each with its stop and resume by count."""
    broker = Broker(VirtualClock(), presets.get("spec"))
    for name, (stop, resume) in queues.items():
        thresholds = FlowThresholds(stop_count=stop, resume_count=resume)
        broker.declare(name, QpidQueueArguments.of(thresholds))
    return broker


def publish(broker, names, told, what):
    """Publish one message to these queues."""
    queues = [broker.queues[name] for name in names]
    done = lambda outcome: told.append((what, outcome))  # noqa: E731
    broker.vhost.publish(queues, Message(payload=b"m"), Origin(), done)
    broker.clock.run_until_rest()


def test_a_message_for_two_queues_waits_for_both():
    """Its counter begins at one; each queue that holds it adds one."""
    broker, told = broker_with(a=(1, 1), b=(2, 1)), []
    for n in range(3):
        publish(broker, "ab", told, n)
    assert told == [(0, CONFIRMED)]
    for name in "ab":
        broker.queues[name].purge(lambda _: None)
        assert [what for what, _ in told] == ([0, 1] if name == "a" else [0, 1, 2])


def test_deleting_a_queue_lets_go_of_what_it_holds():
    """Blocked senders are unblocked; what another queue has confirmed is confirmed."""
    broker, told = broker_with(a=(1, 1), b=(9, 9)), []
    publish(broker, "a", told, "0")
    publish(broker, "a", told, "alone")
    publish(broker, "ab", told, "both")
    assert told == [("0", CONFIRMED)]
    broker.delete("a")
    assert told[1:] == [("alone", UNROUTABLE), ("both", CONFIRMED)]


def test_a_queue_at_its_maximum_refuses():
    """Which a front end makes an exception of."""
    broker, told = Broker(VirtualClock(), presets.get("spec")), []
    broker.declare("q", QpidQueueArguments.of(FlowThresholds(max_count=1)))
    publish(broker, "q", told, 0)
    publish(broker, "q", told, 1)
    assert told[1] == (1, Refused("resource-limit-exceeded", "q"))


@given(
    st.integers(0, 6), st.integers(0, 6), st.integers(0, 12), st.integers(0, 12),
    st.lists(st.tuples(st.sampled_from(["put", "put", "hand", "settle", "release", "purge"]),
                       st.integers(0, 4)), max_size=60),
)  # fmt: skip
@settings(max_examples=150)
def test_a_message_is_complete_exactly_if_no_queue_holds_it(stop, resume, octets, less, acts):
    """Random acts against a book that knows only what is in the queue, and since when it is full.

    The queue is stopped by more than `stop` and goes on below `resume`, and at no other time.
    """
    limits = FlowThresholds(
        stop_count=stop, resume_count=min(resume, stop) or stop,
        stop_size=octets, resume_size=min(less, octets) or octets,
    )  # fmt: skip
    queue = make_queue("q", QpidQueueArguments.of(limits))
    queue.apply(Checkout(consumer="c", mode=Prefetch(1000)))
    there, out, waits, done, full, number = {}, [], [], set(), False, 0
    for act, size in acts:
        before, was = set(done), full
        if act == "put":
            effects = put(queue, number, size)
            there[number] = size
            if 0 < stop < len(there) or 0 < octets < sum(there.values()):
                full = True
            if full:
                waits.append(number)
            else:
                done.add(number)
            number += 1
        elif act == "hand":
            reply = queue.apply(Dispatch())
            effects, out = reply[1], sorted({*out, *(m.message.message_id for m in reply[1]
                                                     if hasattr(m, "settled"))})  # fmt: skip
        elif act in ("settle", "release") and out:
            one = out.pop(size % len(out))
            kind = Settle if act == "settle" else Release
            effects = queue.apply(kind(consumer="c", message_ids=(one,)))[1]
            gone = [one] if act == "settle" else []
        elif act == "purge":
            gone = [n for n in there if n not in out]
            effects = queue.apply(Purge())[1]
        else:
            continue
        for one in gone if act in ("settle", "purge") else ():
            del there[one]
            done |= {one} & set(waits)
            waits = [n for n in waits if n != one]
            counts = not limits.resume_count or len(there) < limits.resume_count
            sizes = not limits.resume_size or sum(there.values()) < limits.resume_size
            if full and counts and sizes:
                full = False
                done |= set(waits)
                waits = []
        assert queue.flow.stopped is full
        assert [e.stopped for e in effects if isinstance(e, FlowChanged)] == (
            [full] if full is not was else []
        ) or act == "purge"
        assert set(confirmed(effects)) == done - before
        assert list(queue.flow.pending) == waits
        assert (queue.flow.count, queue.flow.size) == (len(there), sum(there.values()))
