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
    Expire,
    Message,
    Modify,
    Purge,
    QueueArguments,
    Reject,
    Release,
    Settle,
)
from workbench.queues.quorum_fifo import (
    Active,
    Answered,
    Handed,
    Logged,
    OutOfOrder,
    QuorumFifo,
    Resume,
)

from .talk import Talk


def fifo(*, limit_counts="failed", two_priorities=False, **arguments):
    """A queue that is declared so."""
    declared = QueueArguments(queue_type="quorum", **arguments)
    return QuorumFifo("q", declared, limit_counts=limit_counts, two_priorities=two_priorities)


class Driver:
    """Applies commands with the numbers that a client would give them."""

    def __init__(self, **terms):
        self.queue = fifo(**terms)
        self.seq = {}
        self.enqueue_seq = {}

    def logged(self, command, client="c", t_us=0):
        self.seq[client] = self.seq.get(client, 0) + 1
        number = 0
        if isinstance(command, Enqueue):
            number = self.enqueue_seq[client] = self.enqueue_seq.get(client, 0) + 1
        return Logged(client, self.seq[client], number, command, t_us)

    def apply(self, command, client="c", t_us=0):
        return self.queue.apply(self.logged(command, client, t_us))

    def publish(self, *payloads, client="p", ttl_ms=None, t_us=0):
        sent = [Enqueue(message=Message(payload=payload, ttl_ms=ttl_ms)) for payload in payloads]
        return [effect for one in sent for effect in self.apply(one, client, t_us)[1]]

    def consume(self, name="x", credit=None, **terms):
        effects = self.apply(Checkout(consumer=name, **terms))[1]
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
    logged = Logged("p", 1, 1, Enqueue(message=Message(payload=b"m")))
    assert queue.apply(logged) == (None, [])
    assert queue.apply(logged) == (None, [])
    assert queue.ready == 1


def test_a_command_sent_again_takes_effect_once():
    """Each was answered, and its answer lost: what was done since stays as it is."""
    driver = Driver()
    driver.publish(b"a")
    purge = driver.logged(Purge())
    assert driver.queue.apply(purge)[0] == Count(count=1)
    driver.publish(b"b")
    assert driver.queue.apply(purge) == (None, [])
    assert driver.queue.ready == 1
    driver.consume()
    drain = driver.logged(Credit(consumer="x", delivery_count=0, link_credit=5, drain=True))
    driver.queue.apply(drain)
    driver.credit("x", 3, at=5)
    (answer,) = driver.queue.apply(drain)[1]
    assert (answer.seq, answer.number) == (drain.seq, 1)
    assert (answer.credited.delivery_count, answer.credited.link_credit) == (5, 3)
    assert driver.queue.consumer("x").link_credit == 3


def test_a_command_whose_predecessor_is_missing_is_not_obeyed():
    """A purge does not overtake a message that was sent before it and was lost."""
    driver = Driver()
    driver.publish(b"a", client="c")
    lost = driver.logged(Enqueue(message=Message(payload=b"b")))
    purge = driver.logged(Purge())
    assert driver.queue.apply(purge)[0] == OutOfOrder(2)
    driver.queue.apply(lost)
    assert driver.queue.apply(purge)[0] == Count(count=2)


def test_a_message_whose_predecessor_is_missing_is_not_taken_in():
    """Order is kept: the publisher is told which one is expected."""
    queue = QuorumFifo("q")
    assert queue.apply(Logged("p", 3, 3, Enqueue(message=Message(payload=b"3"))))[0] == OutOfOrder(
        1
    )
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


TALKS = {
    "what comes back goes out before what was never out, in the order in which it came back": """
        put a b c d; consume; grant 3; release 2; release 0; grant 3 -> got a b c c a d""",
    # The limit itself is still borne.
    **{
        f"of a delivery-limit of {limit} one failed attempt more drops the message": f"""
        with delivery_limit={limit}
        put a; consume; grant 100; {"; ".join(f"fail {at}" for at in range(limit))} -> terminal 0
        fail {limit} -> terminal 1"""
        for limit in (0, 3, 20)
    },
    # A message is handed out in an entry of its own, not in that which takes it in.
    "a ttl of 0 means within one millisecond": """
        with message_ttl_ms=0
        at 2; put a -> deadline 3.0""",
    # A message that is sent again says when it was sent first.
    "a command that tells an earlier time turns no clock back": """
        with message_ttl_ms=5
        at 10; expire; at 2; put a -> deadline 15.0""",
    # It takes what is under way; rabbit_fifo.erl:is_below, 80 of 100 is little enough.
    **{
        f"reject-publish with {limit} tells when it is full and when 80 % is left": f"""
        with {limit}=100 overflow=reject-publish
        consume; put {" m" * 102} -> told full | ready 102
        grant 21 -> told full | full True
        grant 1 -> told full room | full False"""
        for limit in ("max_length", "max_length_bytes")
    },
    # `rabbit_quorum_queue.erl:overflow` warns and takes the default.
    "reject-publish-dlx is not known and taken for drop-head": """
        with max_length=1 overflow=reject-publish-dlx
        put a b -> gone a:maxlen | full False""",
    # Quiescing: nothing new for the old one, nothing yet for the new one.
    "a higher priority takes over when the active one has settled": """
        with single_active_consumer=True
        put a b; consume x; grant 1; consume y priority=1; grant 5
        x: grant 5 -> got a | active x
        settle 0 -> active y | y.got b""",
    # The one with a higher priority has left before the active one had settled.
    "a consumer that need not make way any more goes on": """
        with single_active_consumer=True
        put a b; consume x; grant 1; consume y priority=1; detach; x: grant 1 -> got a
        settle 0 -> got a b""",
    # Among equal priorities; with equal credit it is who attached first.
    "of those who wait the one with more credit is next": """
        with single_active_consumer=True
        consume x; grant 1; consume a; grant 2; consume b; grant 5; consume c; grant 5
        x: detach -> active b""",
}


@pytest.mark.parametrize("script", TALKS.values(), ids=TALKS)
def test_a_quorum_queue_and_its_consumers(script):
    """How a conversation is written: `tests.queues.talk`."""
    Talk("quorum").play(script)


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


def test_a_lost_client_s_messages_come_back_as_failed_attempts():
    """A crash counts as an attempt, a detach does not."""
    for failed, count in ((True, 1), (False, 0)):
        driver = Driver()
        driver.publish(b"a")
        driver.consume(credit=1)
        driver.apply(DetachConsumer(consumer="x", delivery_failed=failed))
        (message,) = driver.queue.ready_messages()
        assert message.delivery_count == count


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (Settle(consumer="x", message_ids=(0,)), True),
        (Reject(consumer="x", message_ids=(0,)), True),
        (Modify(consumer="x", message_ids=(0,), undeliverable_here=True), True),
        (Release(consumer="x", message_ids=(0,)), False),
        (Modify(consumer="x", message_ids=(0,)), False),
    ],
)
def test_who_makes_way_is_told_if_it_settles_and_not_if_it_gives_back(command, told):
    """In `rabbit_fifo.erl` it is `complete_and_checkout` that tells, `return` does not."""
    driver = Driver(single_active_consumer=True)
    driver.publish(b"a", b"b")
    driver.consume("x", credit=1)
    driver.consume("y", priority=1)
    effects = driver.apply(command)[1]
    assert Active("c", "y", driver.queue.ready) in effects
    assert (Active("c", "x", 0, active=False) in effects) is told
    assert driver.queue.active == "y"


def test_who_makes_way_at_once_is_told_behind_the_one_that_takes_over():
    """It holds nothing when one of a higher priority attaches."""
    driver = Driver(single_active_consumer=True)
    driver.publish(b"a")
    driver.consume("x")
    effects = driver.consume("y", priority=1)
    assert effects == [Active("c", "y", 1), Active("c", "x", 0, active=False)]
    answer = driver.credit("x", 3)[-1].credited
    assert (answer.active, answer.available) == (False, 0)
    answer = driver.credit("y", 0)[-1].credited
    assert (answer.active, answer.available) == (True, 1)


def test_what_is_too_old_goes_from_the_head_of_every_priority():
    """When the first of all is, the highest priority first; 4.0 looks at the first alone."""
    for two, left in ((False, [b"young"]), (True, [b"young", b"old 0"])):
        driver = Driver(two_priorities=two)
        for payload, priority, ttl_ms in (
            (b"old 9", 9, 1),
            (b"young", 9, None),
            (b"old 0", 0, 1),
        ):
            driver.apply(
                Enqueue(message=Message(payload=payload, priority=priority, ttl_ms=ttl_ms)), "p"
            )
        effects = driver.apply(Expire(), t_us=2000)[1]
        assert [one.payload for one in driver.queue.ready_messages()] == left
        gone = [one.message.payload for one in effects]
        assert gone == ([b"old 9"] if two else [b"old 9", b"old 0"])
        assert driver.queue.ready_octets == sum(map(len, left))


def test_resume_brings_again_what_was_handed_and_not_settled():
    """Deliveries that a dead leader may have lost, from a number on, in order."""
    driver = Driver()
    driver.publish(b"a", b"b", b"c")
    driver.consume(credit=3)
    driver.apply(Settle(consumer="x", message_ids=(1,)))
    effects = driver.apply(Resume(consumer="x", number=1))[1]
    assert (numbers(effects), payloads(effects)) == ([2], [b"c"])


def standing(queue):
    """All that a command may change."""
    consumers = {name: queue.consumer(name) for name in queue.consumers()}
    held = {name: queue.unsettled_ids(name) for name in consumers}
    return queue.overview(), queue.ready_messages(), consumers, held, queue.standing()


class AnyCommands(RuleBasedStateMachine):
    """Two copies apply the same commands, resent ones among them; a book counts."""

    terms = MappingProxyType(
        {"delivery_limit": 3, "max_length": 12, "max_length_bytes": 40, "message_ttl_ms": 20}
    )

    def __init__(self):
        super().__init__()
        self.driver = Driver(**self.terms)
        self.copy = fifo(**self.terms)
        self.held = {"x": set(), "y": set()}
        self.log = []
        self.now_us = 0

    def do(self, command, client="c"):
        logged = self.driver.logged(command, client, self.now_us)
        reply, effects = self.driver.queue.apply(logged)
        self.log.append(logged)
        assert self.copy.apply(logged) == (reply, effects)
        for effect in effects:
            if isinstance(effect, Handed):
                self.held.setdefault(effect.deliver.consumer, set()).add(effect.number)
                expires_us = effect.deliver.message.expires_us
                assert expires_us is None or expires_us > self.now_us

    @rule(
        count=st.integers(1, 4),
        size=st.integers(0, 9),
        ttl_ms=st.one_of(st.none(), st.integers(0, 30)),
    )
    def publish(self, count, size, ttl_ms):
        for _ in range(count):
            self.do(Enqueue(message=Message(payload=b"m" * size, ttl_ms=ttl_ms)), "p")

    @rule(ms=st.integers(0, 15))
    def let_time_pass(self, ms):
        self.now_us += ms * 1_000
        self.do(Expire())

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

    @rule(name=st.sampled_from("xy"), failed=st.booleans())
    def detach(self, name, failed):
        self.do(DetachConsumer(consumer=name, delivery_failed=failed))

    @rule()
    def purge(self):
        self.do(Purge())

    @rule(which=st.integers(0, 100))
    def resend(self, which):
        if self.log:
            again = self.log[which % len(self.log)]
            before = standing(self.driver.queue)
            reply, effects = self.driver.queue.apply(again)
            assert (reply, effects) == self.copy.apply(again)
            assert standing(self.driver.queue) == before
            assert all(isinstance(effect, Answered) for effect in effects)

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
        queue = self.driver.queue
        ready = queue.ready_messages()
        assert queue.ready == len(ready) <= self.terms["max_length"]
        octets = sum(len(message.payload) for message in ready)
        assert queue.ready_octets == octets <= self.terms["max_length_bytes"]

    @invariant()
    def the_first_is_not_too_old(self):
        deadline_us = self.driver.queue.deadline_us()
        assert deadline_us is None or deadline_us > self.now_us


AnyCommands.TestCase.settings = settings(
    derandomize=True, max_examples=60, stateful_step_count=30, deadline=None
)
TestAnyCommands = AnyCommands.TestCase
