"""A quorum queue's state machine: one log, one state, whoever applies it."""

from types import MappingProxyType

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from workbench.queues import (
    Checkout,
    Count,
    Credit,
    DetachConsumer,
    Dropped,
    Enqueue,
    Modify,
    Purge,
    QueueError,
    Reject,
    Release,
    Settle,
)
from workbench.queues.quorum_commands import (
    Active,
    Answered,
    ClientDown,
    Full,
    Handed,
    Logged,
    OutOfOrder,
    QuorumCheckout,
    Resume,
)
from workbench.queues.quorum_fifo import QuorumFifo
from workbench.queues.quorum_terms import QuorumTerms


class Driver:
    """Applies commands with the numbers that a client would give them."""

    def __init__(self, **terms):
        self.queue = QuorumFifo("q", QuorumTerms(**terms))
        self.seq = 0
        self.enqueue_seq = {}

    def apply(self, command, client="c"):
        self.seq += 1
        number = 0
        if isinstance(command, Enqueue):
            number = self.enqueue_seq[client] = self.enqueue_seq.get(client, 0) + 1
        return self.queue.apply(Logged(client, self.seq, number, command))

    def publish(self, *payloads, client="p"):
        return [e for payload in payloads for e in self.apply(Enqueue(payload=payload), client)[1]]

    def consume(self, name="x", credit=None, **terms):
        effects = self.apply(QuorumCheckout(consumer=name, **terms))[1]
        if credit is not None:
            effects += self.credit(name, credit)
        return effects

    def credit(self, name, credit, at=0, drain=False):
        command = Credit(consumer=name, delivery_count=at, link_credit=credit, drain=drain)
        return self.apply(command)[1]


def payloads(effects):
    """What was handed out, in order."""
    return [e.deliver.message.payload for e in effects if isinstance(e, Handed)]


def numbers(effects):
    """The deliveries' numbers."""
    return [e.number for e in effects if isinstance(e, Handed)]


def test_a_message_sent_again_is_taken_in_once():
    """The publisher's own number tells; the answer confirms it once more."""
    queue = QuorumFifo("q")
    logged = Logged("p", 1, 1, Enqueue(payload=b"m"))
    assert queue.apply(logged) == (None, [])
    assert queue.apply(logged) == (None, [])
    assert queue.ready == 1


def test_a_message_whose_predecessor_is_missing_is_not_taken_in():
    """Order is kept: the publisher is told which one is expected."""
    queue = QuorumFifo("q")
    assert queue.apply(Logged("p", 3, 3, Enqueue(payload=b"3")))[0] == OutOfOrder(1)
    assert queue.ready == 0


def test_credit_is_absolute_and_hands_out_before_it_answers():
    """Deliveries first, then the answer with what is left and what is available."""
    driver = Driver()
    driver.publish(b"a", b"b", b"c")
    effects = driver.consume(credit=2)
    assert payloads(effects) == [b"a", b"b"]
    answer = effects[-1]
    assert isinstance(answer, Answered)
    assert (answer.credited.delivery_count, answer.credited.link_credit) == (2, 0)
    assert answer.credited.available == 1
    assert payloads(driver.credit("x", 2, at=1)) == [b"c"]  # counted from 1: one more


def test_drain_gives_the_rest_of_the_credit_back():
    """delivery-count moves on by what was not used [AMQP 1.0, 2.6.7]."""
    driver = Driver()
    driver.publish(b"a")
    driver.consume()
    answer = driver.credit("x", 10, drain=True)[-1]
    assert (answer.credited.delivery_count, answer.credited.link_credit) == (10, 0)
    assert answer.credited.drain


def test_a_prefetching_consumer_gets_credit_back_with_each_settlement():
    """Simple-prefetch: never more than so many unsettled, and no credit command at all."""
    driver = Driver()
    driver.publish(b"a", b"b", b"c", b"d")
    effects = driver.consume(prefetch=2)
    assert payloads(effects) == [b"a", b"b"]
    reply, effects = driver.apply(Settle(consumer="x", message_ids=(0,)))
    assert (reply, payloads(effects)) == (Count(count=1), [b"c"])
    assert driver.queue.unsettled == 2


def test_what_comes_back_goes_out_before_what_was_never_out():
    """In the order in which it came back."""
    driver = Driver()
    driver.publish(b"a", b"b", b"c", b"d")
    driver.consume(credit=3)
    driver.apply(Release(consumer="x", message_ids=(2,)))
    driver.apply(Release(consumer="x", message_ids=(0,)))
    assert payloads(driver.credit("x", 3, at=3)) == [b"c", b"a", b"d"]


def test_a_settlement_that_comes_twice_touches_nothing_else():
    """A delivery has a number of its own: the same message's next delivery has another."""
    driver = Driver()
    driver.publish(b"a")
    driver.consume(credit=2)
    release = Release(consumer="x", message_ids=(0,))
    assert numbers(driver.apply(release)[1]) == [1]
    reply, effects = driver.apply(release)
    assert (reply, effects) == (Count(count=0), [])
    assert driver.queue.unsettled == 1


@pytest.mark.parametrize(("counts", "dropped"), [("acquired", True), ("failed", False)])
def test_the_delivery_limit_counts_releases_or_not_by_version(counts, dropped):
    """4.0 to 4.2: every return counts; 4.3: only failed attempts do."""
    driver = Driver(delivery_limit=3, limit_counts=counts)
    driver.publish(b"a")
    driver.consume(credit=50)
    gone = []
    for number in range(5):
        effects = driver.apply(Release(consumer="x", message_ids=(number,)))[1]
        gone += [e.reason for e in effects if isinstance(e, Dropped)]
    assert gone == (["delivery_limit"] if dropped else [])


@pytest.mark.parametrize("limit", [0, 3, 20])
def test_one_failed_attempt_more_than_the_limit_drops_the_message(limit):
    """The limit itself is still borne."""
    driver = Driver(delivery_limit=limit)
    driver.publish(b"a")
    driver.consume(credit=100)
    for number in range(limit + 1):
        assert driver.queue.terminal == 0
        driver.apply(Modify(consumer="x", message_ids=(number,), delivery_failed=True))
    assert driver.queue.terminal == 1


def test_a_lost_client_s_messages_come_back_as_failed_attempts():
    """A crash counts as an attempt, a detach does not."""
    for command, count in ((ClientDown(), 1), (DetachConsumer(consumer="x"), 0)):
        driver = Driver()
        driver.publish(b"a")
        driver.consume(credit=1)
        driver.apply(command)
        (message,) = driver.queue.ready_messages()
        assert message.delivery_count == count


def test_drop_head_drops_the_oldest():
    """The newest message is always taken."""
    driver = Driver(max_length=2)
    effects = driver.publish(b"a", b"b", b"c")
    assert [e.message.payload for e in effects] == [b"a"]
    assert [message.payload for message in driver.queue.ready_messages()] == [b"b", b"c"]


def test_reject_publish_tells_when_it_is_full_and_when_below_80_percent():
    """The state machine takes what is under way; publishers are told to stop."""
    driver = Driver(max_length=10, overflow="reject-publish")
    driver.consume()
    effects = driver.publish(*[b"m"] * 12)
    assert effects == [Full(True)]
    assert driver.queue.ready == 12
    driver.credit("x", 12)
    effects = driver.apply(Settle(consumer="x", message_ids=tuple(range(12))))[1]
    assert Full(False) in effects


def test_with_a_single_active_consumer_the_others_wait_with_their_credit():
    """Nothing is available to them; when the active one goes, its messages come first."""
    driver = Driver(single_active=True)
    driver.publish(b"a", b"b", b"c")
    assert driver.consume("x", credit=1)[0] == Active("c", "x", 3)
    answer = driver.consume("y", credit=5)[-1]
    assert (answer.credited.available, answer.credited.link_credit) == (0, 5)
    effects = driver.apply(DetachConsumer(consumer="x"))[1]
    assert effects[0] == Active("c", "y", 3)
    assert payloads(effects) == [b"a", b"b", b"c"]


def test_a_higher_priority_takes_over_when_the_active_one_has_settled():
    """Quiescing: nothing new for the old one, nothing yet for the new one."""
    driver = Driver(single_active=True)
    driver.publish(b"a", b"b")
    driver.consume("x", credit=1)
    driver.consume("y", credit=5, priority=1)
    assert payloads(driver.credit("x", 5, at=1)) == []
    assert driver.queue.active == "x"
    effects = driver.apply(Settle(consumer="x", message_ids=(0,)))[1]
    assert Active("c", "y", 1) in effects
    assert payloads(effects) == [b"b"]


def test_an_inactive_consumer_that_drains_gives_all_its_credit_back():
    """There is nothing for it, so the answer is at once."""
    driver = Driver(single_active=True)
    driver.publish(b"a")
    driver.consume("x")
    driver.consume("y")
    answer = driver.credit("y", 7, drain=True)[-1].credited
    assert (answer.delivery_count, answer.link_credit, answer.available) == (7, 0, 0)


def test_resume_brings_again_what_was_handed_and_not_settled():
    """Deliveries that a dead leader may have lost, from a number on, in order."""
    driver = Driver()
    driver.publish(b"a", b"b", b"c")
    driver.consume(credit=3)
    driver.apply(Settle(consumer="x", message_ids=(1,)))
    effects = driver.apply(Resume(consumer="x", number=1))[1]
    assert (numbers(effects), payloads(effects)) == ([2], [b"c"])


def test_reject_and_purge_take_messages_out():
    """Both are told as dropped, each with its reason."""
    driver = Driver()
    driver.publish(b"a", b"b", b"c")
    driver.consume(credit=1)
    rejected = driver.apply(Reject(consumer="x", message_ids=(0,)))[1]
    reply, purged = driver.apply(Purge())
    assert [e.reason for e in (*rejected, *purged)] == ["rejected", "purged", "purged"]
    assert (reply, driver.queue.terminal) == (Count(count=2), 3)


@pytest.mark.parametrize("terms", [{"overflow": "reject-publish-dlx"}, {"max_length": -1}])
def test_terms_that_cannot_be_are_refused_in_words(terms):
    """The text names what is legal."""
    with pytest.raises(QueueError, match=r"legal|knows"):
        QuorumTerms(**terms)


class AnyCommands(RuleBasedStateMachine):
    """Two copies apply the same commands, resent ones among them; a book counts."""

    terms = MappingProxyType({"delivery_limit": 3, "max_length": 12})

    def __init__(self):
        super().__init__()
        self.driver = Driver(**self.terms)
        self.copy = QuorumFifo("q", QuorumTerms(**self.terms))
        self.held = {"x": set(), "y": set()}
        self.log = []

    def do(self, command, client="c"):
        driver = self.driver
        reply, effects = driver.apply(command, client)
        number = driver.enqueue_seq.get(client, 0) if isinstance(command, Enqueue) else 0
        logged = Logged(client, driver.seq, number, command)
        self.log.append(logged)
        assert self.copy.apply(logged) == (reply, effects)
        for effect in effects:
            if isinstance(effect, Handed):
                self.held.setdefault(effect.deliver.consumer, set()).add(effect.number)

    @rule(count=st.integers(1, 4))
    def publish(self, count):
        for _ in range(count):
            self.do(Enqueue(payload=b"m"), "p")

    @rule(name=st.sampled_from("xy"), settled=st.booleans())
    def attach(self, name, settled):
        self.do(Checkout(consumer=name, settled=settled))

    @rule(name=st.sampled_from("xy"), credit=st.integers(0, 5), drain=st.booleans())
    def grant(self, name, credit, drain):
        if name in self.driver.queue.consumers():
            at = self.driver.queue.consumer(name).delivery_count
            self.do(Credit(consumer=name, delivery_count=at, link_credit=credit, drain=drain))

    @rule(
        name=st.sampled_from("xy"),
        kind=st.sampled_from([Settle, Release, Reject, Modify]),
        which=st.integers(0, 20),
    )
    def give_back_or_settle(self, name, kind, which):
        more = {"delivery_failed": True} if kind is Modify else {}
        self.do(kind(consumer=name, message_ids=(which,), **more))

    @rule(name=st.sampled_from("xy"))
    def detach(self, name):
        self.do(DetachConsumer(consumer=name))

    @rule()
    def lose_the_client(self):
        self.do(ClientDown())

    @rule(which=st.integers(0, 100))
    def resend(self, which):
        if self.log:
            again = self.log[which % len(self.log)]
            if isinstance(again.command, Enqueue | Settle | Release | Reject | Modify):
                before = self.driver.queue.enqueued
                assert self.driver.queue.apply(again) == self.copy.apply(again)
                assert self.driver.queue.enqueued == before

    @invariant()
    def a_message_is_in_one_place(self):
        queue = self.driver.queue
        assert queue.ready + queue.unsettled + queue.terminal == queue.enqueued
        held = sum(len(queue.unsettled_ids(name)) for name in queue.consumers())
        assert held == queue.unsettled

    @invariant()
    def nobody_has_less_than_no_credit(self):
        queue = self.driver.queue
        assert all(queue.consumer(name).link_credit >= 0 for name in queue.consumers())

    @invariant()
    def nothing_waits_while_somebody_may_have_it(self):
        queue = self.driver.queue
        if queue.ready:
            assert all(queue.consumer(name).link_credit == 0 for name in queue.consumers())

    @invariant()
    def no_more_is_ready_than_may_be(self):
        assert self.driver.queue.ready <= self.terms["max_length"]


AnyCommands.TestCase.settings = settings(
    derandomize=True, max_examples=60, stateful_step_count=30, deadline=None
)
TestAnyCommands = AnyCommands.TestCase
