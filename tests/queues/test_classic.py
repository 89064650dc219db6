"""The classic queue as a state machine."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from workbench.queues import (
    Checkout,
    ClassicQueue,
    Confirm,
    Count,
    Credit,
    Credited,
    Deliver,
    DetachConsumer,
    Dispatch,
    Drained,
    Dropped,
    Enqueue,
    Message,
    Modify,
    Prefetch,
    Purge,
    QueueError,
    Reject,
    Release,
    Requeued,
    Settle,
)

WRAPPING = 4294967294


def queue_with(messages: int, consumer: str | None = "a", delivery_count: int = 0) -> ClassicQueue:
    queue = ClassicQueue("q")
    for number in range(messages):
        queue.apply(Enqueue(message=Message(payload=b"m%d" % number), publish=number))
    if consumer:
        queue.apply(Checkout(consumer=consumer, mode=Credited(delivery_count)))
    return queue


def grant(queue: ClassicQueue, credit: int, consumer: str = "a", *, drain: bool = False) -> list:
    count = queue.consumer(consumer).delivery_count
    command = Credit(consumer=consumer, delivery_count=count, link_credit=credit, drain=drain)
    return queue.apply(command)[1]


def delivered(queue: ClassicQueue) -> list[int]:
    """Dispatch until nothing can be handed out; the message ids in order."""
    ids = []
    while queue.deliverable():
        for effect in queue.apply(Dispatch())[1]:
            if isinstance(effect, Deliver):
                ids.append(effect.message.message_id)
    return ids


def test_a_dispatch_hands_out_one_message_in_order() -> None:
    """One at a time, so that somebody may act between two deliveries."""
    queue = queue_with(3)
    grant(queue, 2)
    (effect,) = queue.apply(Dispatch())[1]
    assert isinstance(effect, Deliver)
    assert effect.message.message_id == 0
    assert effect.message.acquired_count == 1
    assert delivered(queue) == [1]
    assert queue.consumer("a").link_credit == 0
    assert queue.unsettled == 2


def test_what_would_go_out_next_is_told_without_handing_it_out() -> None:
    """Whose turn it is, and the message with its acquired-count as it would be sent."""
    queue = queue_with(2)
    assert queue.next_out() is None
    grant(queue, 5)
    name, message = queue.next_out() or ("", None)
    assert name == "a"
    assert message is not None
    assert (message.message_id, message.acquired_count) == (0, 1)
    assert (queue.ready, queue.unsettled) == (2, 0)
    assert queue.next_out(frozenset({"a"})) is None
    (effect,) = queue.apply(Dispatch())[1]
    assert isinstance(effect, Deliver)
    assert effect.message == message


def test_a_consumer_that_cannot_take_now_keeps_its_credit() -> None:
    """A closed session window stops the hand-out without touching link credit."""
    queue = queue_with(2)
    grant(queue, 2)
    assert not queue.deliverable(frozenset({"a"}))
    assert queue.apply(Dispatch(unable=frozenset({"a"})))[1] == []
    assert queue.consumer("a").link_credit == 2
    assert delivered(queue) == [0, 1]


def test_released_messages_go_back_to_their_place() -> None:
    """They are delivered again before younger ones; no failed attempt is counted."""
    queue = queue_with(4)
    grant(queue, 3)
    delivered(queue)
    queue.apply(Release(consumer="a", message_ids=(2, 0)))
    grant(queue, 9)
    (effect,) = queue.apply(Dispatch())[1]
    assert (effect.message.message_id, effect.message.delivery_count) == (0, 0)
    assert effect.message.acquired_count == 2
    assert delivered(queue) == [2, 3]


def test_undeliverable_here_bars_the_message_for_that_consumer_only() -> None:
    """Another consumer gets it; the one that refused is served younger ones [3.4.5]."""
    queue = queue_with(2)
    queue.apply(Checkout(consumer="b"))
    grant(queue, 1)
    delivered(queue)
    queue.apply(Modify(consumer="a", message_ids=(0,), undeliverable_here=True))
    grant(queue, 9)
    assert delivered(queue) == [1]
    assert queue.ready == 1
    assert grant(queue, 5, drain=True) == [Drained(consumer="a", delivery_count=7, given_back=5)]
    grant(queue, 1, "b")
    assert delivered(queue) == [0]


def test_detaching_requeues_in_original_order() -> None:
    """What was unsettled is delivered to the next consumer, oldest first."""
    queue = queue_with(5)
    grant(queue, 3)
    delivered(queue)
    queue.apply(Settle(consumer="a", message_ids=(1,)))
    requeued = Requeued(consumer="a", count=2)
    assert queue.apply(DetachConsumer(consumer="a")) == (Count(count=2), [requeued])
    queue.apply(Checkout(consumer="b"))
    grant(queue, 9, "b")
    assert delivered(queue) == [0, 2, 3, 4]


def test_settled_deliveries_leave_at_once() -> None:
    """snd-settle-mode settled: nothing is left to requeue."""
    queue = queue_with(2, consumer=None)
    queue.apply(Checkout(consumer="a", settled=True))
    grant(queue, 2)
    assert delivered(queue) == [0, 1]
    assert (queue.unsettled, queue.terminal) == (0, 2)


def test_enqueue_confirms_to_the_publisher() -> None:
    """The effect carries the publish it answers."""
    queue = ClassicQueue("q")
    assert queue.apply(Enqueue(message=Message(payload=b""), publish="p1"))[1] == [
        Confirm(publish="p1")
    ]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Settle(consumer="a", message_ids=(7,)), "a cannot settle 7: it holds 1 unsettled"),
        (Settle(consumer="a", message_ids=(0, 0)), "a cannot settle one of them twice"),
        (Release(consumer="z", message_ids=(0,)), "no consumer z on queue q; attached now: a"),
        (Credit(consumer="z", delivery_count=0, link_credit=1), "no consumer z"),
        (DetachConsumer(consumer="z"), "no consumer z"),
        (Checkout(consumer="a"), "consumer a is attached to queue q already; legal now: detach"),
    ],
)
def test_a_refused_command_changes_nothing(command, message: str) -> None:  # type: ignore[no-untyped-def]
    """The text says what is legal, and every counter is as it was."""
    queue = queue_with(2)
    grant(queue, 1)
    delivered(queue)
    before = (queue.overview(), queue.consumer("a"), queue.unsettled_ids("a"))
    with pytest.raises(QueueError, match=message):
        queue.apply(command)
    assert (queue.overview(), queue.consumer("a"), queue.unsettled_ids("a")) == before


class QueueModel(RuleBasedStateMachine):
    """Any commands in any order, against a model that keeps each message in one named place."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = ClassicQueue("q")
        self.place: dict[int, str] = {}  # message id -> "ready", "gone" or its consumer
        self.limit: dict[str, int] = {}  # credit left per consumer
        self.bars: dict[int, set[str]] = {}  # who declared a message undeliverable-here

    def attached(self, which: int) -> str | None:
        names = sorted(self.limit)
        return names[which % len(names)] if names else None

    def note(self, effects: list) -> None:
        for effect in effects:
            match effect:
                case Deliver():
                    oldest = min(
                        number
                        for number, where in self.place.items()
                        if where == "ready" and effect.consumer not in self.bars.get(number, ())
                    )
                    assert effect.message.message_id == oldest
                    self.place[oldest] = "gone" if effect.settled else effect.consumer
                    self.limit[effect.consumer] -= 1
                    assert self.limit[effect.consumer] >= 0
                case Drained():
                    assert self.limit[effect.consumer] == effect.given_back > 0
                    self.limit[effect.consumer] = 0
                case Dropped():
                    self.place[effect.message.message_id] = "gone"
                case Confirm():
                    self.place[len(self.place)] = "ready"

    @rule(count=st.integers(1, 4))
    def enqueue(self, count: int) -> None:
        for _ in range(count):
            self.note(self.queue.apply(Enqueue(message=Message(payload=b"")))[1])

    @rule(which=st.sampled_from("abc"), settled=st.booleans(), start=st.sampled_from([0, WRAPPING]))
    def checkout(self, which: str, settled: bool, start: int) -> None:
        if which not in self.limit:
            self.queue.apply(Checkout(consumer=which, settled=settled, mode=Credited(start)))
            self.limit[which] = 0

    @rule(which=st.integers(0, 2), credit=st.integers(0, 5), drain=st.booleans())
    def credit(self, which: int, credit: int, drain: bool) -> None:
        if name := self.attached(which):
            count = self.queue.consumer(name).delivery_count
            self.limit[name] = credit
            command = Credit(consumer=name, delivery_count=count, link_credit=credit, drain=drain)
            self.note(self.queue.apply(command)[1])

    @rule(unable=st.sets(st.sampled_from("abc")))
    def dispatch(self, unable: set[str]) -> None:
        able = self.queue.deliverable(frozenset(unable))
        effects = self.queue.apply(Dispatch(unable=frozenset(unable)))[1]
        assert bool(effects) == able
        self.note(effects)

    @rule(which=st.integers(0, 2), how=st.integers(0, 4), some=st.integers(1, 3))
    def settle(self, which: int, how: int, some: int) -> None:
        if name := self.attached(which):
            ids = self.queue.unsettled_ids(name)[:some]
            command = [
                Settle(consumer=name, message_ids=ids),
                Reject(consumer=name, message_ids=ids),
                Release(consumer=name, message_ids=ids),
                Modify(consumer=name, message_ids=ids, delivery_failed=True),
                Modify(consumer=name, message_ids=ids, undeliverable_here=True),
            ][how]
            for number in ids:
                self.place[number] = "gone" if how < 2 else "ready"
                if how == 4:
                    self.bars.setdefault(number, set()).add(name)
            self.note(self.queue.apply(command)[1])

    @rule(which=st.integers(0, 2))
    def detach(self, which: int) -> None:
        if name := self.attached(which):
            for number in self.queue.unsettled_ids(name):
                self.place[number] = "ready"
            del self.limit[name]
            self.note(self.queue.apply(DetachConsumer(consumer=name))[1])

    @rule()
    def purge(self) -> None:
        self.note(self.queue.apply(Purge())[1])

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        queue = self.queue
        assert queue.ready + queue.unsettled + queue.terminal == queue.enqueued
        places = list(self.place.values())
        assert queue.enqueued == len(places)
        assert queue.ready == places.count("ready")
        assert queue.terminal == places.count("gone")
        for name, left in self.limit.items():
            assert queue.consumer(name).link_credit == left
            assert len(queue.unsettled_ids(name)) == places.count(name)


QueueModel.TestCase.settings = settings(
    derandomize=True, max_examples=120, stateful_step_count=40, deadline=None
)
TestQueueModel = QueueModel.TestCase


def test_a_prefetching_consumer_has_credit_until_so_many_are_unsettled() -> None:
    """Each settlement gives credit back, without a word about credit."""
    queue = ClassicQueue("q")
    for _ in range(5):
        queue.apply(Enqueue(message=Message(payload=b"")))
    queue.apply(Checkout(consumer="c", mode=Prefetch(2)))

    def handed() -> list[int]:
        effects = [effect for _ in range(5) for effect in queue.apply(Dispatch())[1]]
        return [one.message.message_id for one in effects if isinstance(one, Deliver)]

    assert handed() == [0, 1]
    queue.apply(Settle(consumer="c", message_ids=(0,)))
    assert handed() == [2]
    queue.apply(Release(consumer="c", message_ids=(1, 2)))
    assert handed() == [1, 2]
