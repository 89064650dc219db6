"""A queue with a single active consumer, against a model written in this test."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workbench.queues import (
    Activated,
    Checkout,
    ClassicQueue,
    Credit,
    Deliver,
    DetachConsumer,
    Dispatch,
    Enqueue,
    Message,
    QueueArguments,
    Requeued,
    Settle,
)


def queue_with(messages, *consumers):
    """A queue with messages and consumers attached in that order."""
    queue = ClassicQueue("q", QueueArguments(single_active_consumer=True))
    for number in range(messages):
        queue.apply(Enqueue(message=Message(payload=b"%d" % number)))
    for name in consumers:
        queue.apply(Checkout(consumer=name))
    return queue


def deliveries(queue):
    """Dispatch until nothing more is handed out: (consumer, message id) in order."""
    handed = []
    while queue.deliverable():
        _, effects = queue.apply(Dispatch())
        handed += [
            (effect.consumer, effect.message.message_id)
            for effect in effects
            if isinstance(effect, Deliver)
        ]
    return handed


def test_nothing_is_available_to_who_waits():
    """Whatever its credit; RabbitMQ's answer to credit tells how much is ready all the same."""
    queue = queue_with(3, "a", "b")
    reply, _ = queue.apply(Credit(consumer="b", delivery_count=0, link_credit=10))
    assert (reply.available, queue.available_to("b")) == (3, 0)
    assert queue.available_to("a") == 3


def test_who_leaves_gives_its_messages_back_before_the_next_becomes_active():
    """Requeued in original order, then activated: so the next begins with the lowest."""
    queue = queue_with(5, "a", "b")
    queue.apply(Credit(consumer="b", delivery_count=0, link_credit=10))
    queue.apply(Credit(consumer="a", delivery_count=0, link_credit=3))
    deliveries(queue)
    queue.apply(Settle(consumer="a", message_ids=(0,)))
    _, effects = queue.apply(DetachConsumer(consumer="a"))
    assert effects == [Requeued(consumer="a", count=2), Activated(consumer="b")]
    assert deliveries(queue) == [("b", 1), ("b", 2), ("b", 3), ("b", 4)]


def test_who_leaves_with_nothing_unsettled_leaves_nothing_behind():
    """After stop, settle and detach the next one goes on where the first ended."""
    queue = queue_with(4, "a", "b")
    queue.apply(Credit(consumer="b", delivery_count=0, link_credit=10))
    queue.apply(Credit(consumer="a", delivery_count=0, link_credit=2))
    deliveries(queue)
    queue.apply(Settle(consumer="a", message_ids=(0, 1)))
    _, effects = queue.apply(DetachConsumer(consumer="a"))
    assert effects == [Activated(consumer="b")]
    assert deliveries(queue) == [("b", 2), ("b", 3)]


def test_a_waiting_consumer_that_leaves_changes_nothing_for_the_active_one():
    """The active one stays, and the order of those that wait is that of attaching."""
    queue = queue_with(1, "a", "b", "c")
    assert queue.apply(DetachConsumer(consumer="b"))[1] == []
    assert queue.active == "a"
    assert queue.apply(DetachConsumer(consumer="a"))[1] == [Activated(consumer="c")]


class SingleActive(RuleBasedStateMachine):
    """Random life of such a queue; the model is four plain lists."""

    def __init__(self):
        super().__init__()
        self.queue = ClassicQueue("q", QueueArguments(single_active_consumer=True))
        self.ready: list[int] = []
        self.line: list[str] = []
        self.held: dict[str, list[int]] = {}
        self.counts: dict[str, int] = {}
        self.credit: dict[str, int] = {}
        self.names = iter(range(10**6))
        self.numbers = iter(range(10**6))

    @rule()
    def publish(self):
        self.queue.apply(Enqueue(message=Message(payload=b"x")))
        self.ready.append(next(self.numbers))

    @rule()
    def attach(self):
        name = f"c{next(self.names)}"
        self.queue.apply(Checkout(consumer=name))
        self.line.append(name)
        self.held[name], self.counts[name], self.credit[name] = [], 0, 0

    @precondition(lambda self: self.line)
    @rule(data=st.data(), credit=st.integers(0, 5))
    def grant(self, data, credit):
        name = data.draw(st.sampled_from(self.line))
        self.queue.apply(
            Credit(consumer=name, delivery_count=self.counts[name], link_credit=credit)
        )
        self.credit[name] = credit

    @rule()
    def dispatch(self):
        _, effects = self.queue.apply(Dispatch())
        handed = [effect for effect in effects if isinstance(effect, Deliver)]
        active = self.line[0] if self.line else None
        if active is None or not self.ready or not self.credit[active]:
            assert handed == []
            return
        self.ready.sort()
        number = self.ready.pop(0)
        assert [(one.consumer, one.message.message_id) for one in handed] == [(active, number)]
        self.held[active].append(number)
        self.counts[active] += 1
        self.credit[active] -= 1

    @precondition(lambda self: any(self.held.values()))
    @rule(data=st.data())
    def settle(self, data):
        name = data.draw(st.sampled_from([one for one, held in self.held.items() if held]))
        number = data.draw(st.sampled_from(self.held[name]))
        self.queue.apply(Settle(consumer=name, message_ids=(number,)))
        self.held[name].remove(number)

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def detach(self, data):
        name = data.draw(st.sampled_from(self.line))
        self.queue.apply(DetachConsumer(consumer=name))
        self.line.remove(name)
        self.ready += self.held.pop(name)

    @invariant()
    def the_longest_attached_is_active(self):
        assert self.queue.active == (self.line[0] if self.line else None)

    @invariant()
    def counts_agree(self):
        assert self.queue.ready == len(self.ready)
        assert self.queue.unsettled == sum(map(len, self.held.values()))


TestSingleActive = SingleActive.TestCase
TestSingleActive.settings = settings(derandomize=True, max_examples=40, stateful_step_count=40)
