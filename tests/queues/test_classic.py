"""The classic queue as a state machine: what it does besides what all kinds do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from workbench.queues import (
    Activated,
    Checkout,
    ClassicQueue,
    Confirm,
    Credit,
    Credited,
    DeadLettered,
    Deliver,
    DetachConsumer,
    Dispatch,
    Drained,
    Dropped,
    Enqueue,
    Expire,
    Gone,
    Message,
    Meta,
    Modify,
    Origin,
    Purge,
    QueueArguments,
    QueueError,
    Reject,
    Rejected,
    Release,
    Requeued,
    Settle,
    Touch,
)
from workbench.queues.arguments import OVERFLOWS

from .talk import Talk

MS = 1000
WRAPPING = 4294967294


def queue_of(**arguments) -> ClassicQueue:
    return ClassicQueue("q", QueueArguments(**arguments))


def put(queue: ClassicQueue, payload: bytes = b"m", t_us: int = 0, **terms) -> list:
    """The effects of one message that comes."""
    origin = Origin(exchange="x", routing_keys=("k",))
    message = Message(payload=payload, ttl_ms=terms.pop("ttl_ms", None))
    command = Enqueue(message=message, publish=payload, origin=origin, **terms)
    return queue.apply(command, Meta(t_us=t_us))[1]


def queue_with(messages: int, credit: int | None = None) -> ClassicQueue:
    """A queue with messages, and with a consumer `a` that has this credit."""
    queue = queue_of()
    for _ in range(messages):
        put(queue)
    grant(queue, credit or 0)
    return queue


def grant(
    queue: ClassicQueue, credit: int, consumer: str = "a", *, drain: bool = False, **terms
) -> list:
    """Attach a consumer if it is not there, and give it credit."""
    if consumer not in queue.consumers():
        queue.apply(Checkout(consumer=consumer, **terms))
    count = queue.consumer(consumer).delivery_count
    command = Credit(consumer=consumer, delivery_count=count, link_credit=credit, drain=drain)
    return queue.apply(command)[1]


def out(queue: ClassicQueue, t_us: int = 0, **terms) -> list[tuple[str, int]]:
    """(consumer, message id) of everything that can be handed out now."""
    handed = []
    while queue.deliverable(**terms):
        effects = queue.apply(Dispatch(**terms), Meta(t_us=t_us))[1]
        handed += [(e.consumer, e.message.message_id) for e in effects if isinstance(e, Deliver)]
    return handed


def test_a_dispatch_hands_out_one_message_in_order() -> None:
    """One at a time, so that somebody may act between two deliveries."""
    queue = queue_with(3, credit=2)
    (effect,) = queue.apply(Dispatch())[1]
    assert isinstance(effect, Deliver)
    assert effect.message.message_id == 0
    assert effect.message.acquired_count == 1
    assert out(queue) == [("a", 1)]
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
    assert out(queue) == [("a", 0), ("a", 1)]


def test_undeliverable_here_bars_the_message_for_that_consumer_only() -> None:
    """Another consumer gets it; the one that refused is served younger ones [3.4.5]."""
    queue = queue_with(2)
    queue.apply(Checkout(consumer="b"))
    grant(queue, 1)
    out(queue)
    queue.apply(Modify(consumer="a", message_ids=(0,), undeliverable_here=True))
    grant(queue, 9)
    assert out(queue) == [("a", 1)]
    assert queue.ready == 1
    assert grant(queue, 5, drain=True) == [Drained(consumer="a", delivery_count=7, given_back=5)]
    grant(queue, 1, "b")
    assert out(queue) == [("b", 0)]


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
    out(queue)
    before = (queue.overview(), queue.consumer("a"), queue.unsettled_ids("a"))
    with pytest.raises(QueueError, match=message):
        queue.apply(command)
    assert (queue.overview(), queue.consumer("a"), queue.unsettled_ids("a")) == before


# -- limits, ages, priorities -----------------------------------------------------------------


TALKS = {
    # The publisher hears of it; the message never was in the queue.
    "reject-publish refuses what comes and keeps what is there": """
        with max_length=1 overflow=reject-publish dead_letter_exchange=dlx
        put a b -> told confirmed rejected:maxlen | gone - | ready 1
        put c -> enqueued 1 | terminal 0 | refused 2""",
    "reject-publish-dlx dead-letters what it refuses": """
        with max_length=1 overflow=reject-publish-dlx dead_letter_exchange=dlx
        put a b -> told confirmed rejected:maxlen | gone b:maxlen@dlx/k""",
    # x-max-length-bytes: 5 octets hold one message of 4, or the one of 2 that comes next.
    "octets are limited too, and the oldest dropped": """
        with max_length_bytes=5
        put aaaa bb; consume; grant 9 -> got bb | ready 0 | left dropped=1""",
    "octets are limited too, and the youngest refused": """
        with max_length_bytes=5 overflow=reject-publish
        put aaaa bb; consume; grant 9 -> got aaaa | ready 0""",
    # As in RabbitMQ, whose queue hands out in the turn in which it takes in.
    "what a consumer waits for with credit needs no room": """
        with max_length=0
        consume; grant 2; put a b c -> got a b | gone c:maxlen | unsettled 2""",
    "nor does it where a queue refuses": """
        with max_length=1 overflow=reject-publish
        consume; grant 2; put a b c d -> got a b | ready 1 | refused 1""",
    # A detach puts messages back, and the queue is as long as it may be.
    "what a consumer leaves behind may find no room": """
        with max_length=1
        consume; grant 1; put a b; detach -> gone a:maxlen | ready 1""",
    # It is about publishers: a queue may be longer than its limit after a requeue.
    "what comes back to a queue that refuses stays": """
        with max_length=1 overflow=reject-publish
        consume; grant 1; put a b; release 0 -> gone - | ready 2
        put c -> told confirmed confirmed rejected:maxlen""",
    # `Dispatch` looks itself, whether a timer fired or not.
    "nothing too old is handed out even if nobody looked": """
        with message_ttl_ms=5
        put a; consume; at 5; grant 1 -> got - | gone a:expired""",
    # A later one of higher priority does not take over before.
    "the highest priority becomes the single active consumer when the active one leaves": """
        with single_active_consumer=True
        consume x; consume y; consume z priority=9 -> active x
        x: detach -> active z""",
    # Whatever its credit; RabbitMQ's answer to credit tells how much is ready all the same.
    "nothing is available to who waits behind the active consumer": """
        with single_active_consumer=True
        put a b c; consume; consume b; grant 9 -> ready_told 3 | b.available 0 | a.available 3""",
}


@pytest.mark.parametrize("script", TALKS.values(), ids=TALKS)
def test_a_classic_queue_and_its_limits(script: str) -> None:
    """How a conversation is written: `tests.queues.talk`."""
    Talk("classic").play(script)


@pytest.mark.parametrize("command", [Expire(), Dispatch(unable=frozenset("a"))])
def test_what_expires_may_leave_nothing_for_who_drains(command) -> None:
    """Its window was shut, so the message waited; now the credit is given back."""
    queue = queue_of(message_ttl_ms=5)
    put(queue)
    queue.apply(Checkout(consumer="a"))
    queue.apply(Credit(consumer="a", delivery_count=0, link_credit=3, drain=True))
    effects = queue.apply(command, Meta(t_us=5 * MS))[1]
    assert [type(effect) for effect in effects] == [Dropped, Drained]


def test_age_0_means_now_or_never() -> None:
    """It is handed out if somebody waits with credit, and expires otherwise."""
    queue = queue_of(message_ttl_ms=0)
    assert [type(effect) for effect in put(queue)] == [Confirm, Dropped]
    grant(queue, 1)
    assert [type(effect) for effect in put(queue)] == [Confirm, Deliver]
    assert [type(effect) for effect in put(queue, unable=frozenset("a"))] == [Confirm, Dropped]


def test_a_queue_nobody_uses_is_to_be_deleted() -> None:
    """x-expires: so long without a consumer; attaching and declaring again put it off."""
    queue = ClassicQueue("q", QueueArguments(expires_ms=5), created_us=1 * MS)
    assert queue.deadline_us() == 6 * MS
    queue.apply(Touch(), Meta(t_us=3 * MS))
    assert queue.deadline_us() == 8 * MS
    queue.apply(Checkout(consumer="a"), Meta(t_us=4 * MS))
    assert queue.deadline_us() is None
    queue.apply(DetachConsumer(consumer="a"), Meta(t_us=20 * MS))
    assert queue.apply(Expire(), Meta(t_us=25 * MS - 1))[1] == []
    assert queue.apply(Expire(), Meta(t_us=25 * MS))[1] == [Gone(reason="expired")]


def test_a_classic_queue_has_no_delivery_limit() -> None:
    """A message that fails a hundred times comes a hundred and first time."""
    queue = queue_of()
    put(queue)
    for failed in range(100):
        grant(queue, 1)
        (effect,) = queue.apply(Dispatch())[1]
        assert effect.message.delivery_count == failed
        queue.apply(Modify(consumer="a", message_ids=(0,), delivery_failed=True))
    assert queue.ready == 1


def test_one_that_cannot_take_a_message_leaves_it_to_a_lower_one() -> None:
    """Its window is closed: it does not hold the others up."""
    queue = queue_of()
    grant(queue, 2, "high", priority=5)
    grant(queue, 2, "low")
    put(queue)
    assert out(queue, unable=frozenset({"high"})) == [("low", 0)]


# -- any acts -------------------------------------------------------------------------------

ARGUMENTS = st.fixed_dictionaries(
    {"overflow": st.sampled_from(["drop-head", "reject-publish", "reject-publish-dlx"])},
    optional={
        "max_length": st.integers(0, 4),
        "max_length_bytes": st.integers(0, 6),
        "message_ttl_ms": st.integers(0, 4),
        "dead_letter_exchange": st.just("dlx"),
        "expires_ms": st.integers(1, 5),
        "single_active_consumer": st.just(True),
    },
)
NAMES = st.sampled_from(["a1", "b1", "c2"])  # the digit is the priority
SHUT = st.just(frozenset()) | st.frozensets(NAMES, max_size=2)
TTL = st.none() | st.none() | st.integers(0, 4)


class ClassicModel(RuleBasedStateMachine):
    """Any acts at any time; every message is in one place, no limit and no credit is passed."""

    @initialize(arguments=ARGUMENTS)
    def begin(self, arguments) -> None:
        self.arguments = QueueArguments(**arguments)
        self.queue = ClassicQueue("q", self.arguments)
        self.now = 0
        self.place: dict[int, str] = {}  # message id -> ready, consumer, or how it left
        self.size: dict[int, int] = {}  # message id -> octets
        self.bars: dict[int, set[str]] = {}  # message id -> who declared it undeliverable-here
        self.line: list[str] = []  # consumers in order of attaching
        self.active: str | None = None  # where only one is
        self.refused = 0
        self.published = 0
        self.answers = 0
        for name in ("a1", "b1", "c2"):
            self.credit(name=name, credit=2, drain=False, settled=False)

    def do(self, command, dispatching: frozenset[str] | None = None) -> list:
        credit = {name: self.queue.consumer(name).link_credit for name in self.queue.consumers()}
        if isinstance(command, Credit):
            credit[command.consumer] = command.link_credit
        effects = self.queue.apply(command, Meta(t_us=self.now))[1]
        for effect in effects:
            match effect:
                case Confirm():
                    number = len(self.place)
                    self.place[number] = "ready"
                    self.size[number] = command.message.size
                    self.answers += 1
                case Rejected():
                    self.refused += 1
                    self.answers += 1
                case Deliver(consumer=name, message=message):
                    self.check_delivery(name, message, credit, dispatching or frozenset())
                    credit[name] -= 1
                    self.place[message.message_id] = "settled" if effect.settled else name
                case Drained(consumer=name, given_back=count):
                    assert count == credit[name] > 0
                    credit[name] = 0
                case Dropped(message=message, reason=reason):
                    assert self.arguments.dead_letter_exchange is None or reason == "purged"
                    self.leaves(message, reason if reason in ("expired", "purged") else "dropped")
                case DeadLettered(message=message, reason=reason):
                    assert effect.exchange == "dlx"
                    assert effect.routing_keys == ("k",)
                    if not (reason == "maxlen" and any(isinstance(e, Rejected) for e in effects)):
                        self.leaves(message, "dead_lettered")
        for name in self.queue.consumers():
            assert self.queue.consumer(name).link_credit == credit.get(name, 0)
        return effects

    def leaves(self, message, how: str) -> None:
        assert self.place[message.message_id] not in ("settled", "dropped", "expired", "purged")
        self.place[message.message_id] = how

    def check_delivery(self, name, message, credit, unable) -> None:
        """Rules 2, 3 and 5, and nothing too old."""
        assert credit[name] > 0
        assert name not in unable
        ready = {number for number, where in self.place.items() if where == "ready"}
        may = {one: {n for n in ready if one not in self.bars.get(n, ())} for one in credit}
        assert message.message_id == min(may[name])
        if self.arguments.single_active_consumer:
            assert name == self.active
        else:
            better = [one for one in credit if one[1] > name[1] and credit[one] > 0 and may[one]]
            assert all(one in unable for one in better)
        # Only the head is looked at, so an old one may come from behind one that is barred.
        young = message.expires_us is None or message.expires_us > self.now
        assert young or message.t_us == self.now or message.message_id > min(ready)

    @rule(sizes=st.lists(st.integers(0, 3), min_size=1, max_size=4), ttl=TTL, shut=SHUT)
    def enqueue(self, sizes: list[int], ttl: int | None, shut: frozenset[str]) -> None:
        for size in sizes:
            self.published += 1
            origin = Origin(routing_keys=("k",))
            self.do(
                Enqueue(
                    message=Message(payload=b"x" * size, ttl_ms=ttl), unable=shut, origin=origin
                ),
                shut,
            )

    @rule(name=NAMES, credit=st.integers(0, 4), drain=st.booleans(), settled=st.booleans())
    def credit(self, name: str, credit: int, drain: bool, settled: bool) -> None:
        if name not in self.queue.consumers():
            mode = Credited(WRAPPING if name == "c2" else 0)
            self.do(Checkout(consumer=name, settled=settled, priority=int(name[1]), mode=mode))
            self.line.append(name)
            self.choose()
        count = self.queue.consumer(name).delivery_count
        self.do(Credit(consumer=name, delivery_count=count, link_credit=credit, drain=drain))

    @rule(shut=SHUT, times=st.integers(1, 4))
    def dispatch(self, shut: frozenset[str], times: int) -> None:
        for _ in range(times):
            able = self.queue.deliverable(shut)
            late = self.queue.deadline_us() is not None and self.queue.deadline_us() <= self.now
            assert bool(self.do(Dispatch(unable=shut), shut)) == able or late

    def choose(self) -> None:
        """The longest attached of the highest priority is active, once nobody is."""
        if self.arguments.single_active_consumer and self.active is None and self.line:
            self.active = max(self.line, key=lambda name: name[1])

    @rule(name=NAMES, how=st.integers(0, 4), some=st.integers(1, 3))
    def settle(self, name: str, how: int, some: int) -> None:
        if name in self.line:
            ids = self.queue.unsettled_ids(name)[:some]
            kind = [Settle, Reject, Release, Modify, Modify][how]
            for number in ids:
                self.place[number] = ["settled", name, "ready", "ready", "ready"][how]
                if how == 4:
                    self.bars.setdefault(number, set()).add(name)
            more = {"undeliverable_here": True} if how == 4 else {}
            self.do(kind(consumer=name, message_ids=ids, **more))

    @rule(name=NAMES)
    def detach(self, name: str) -> None:
        """What it held goes back to its place first, and then the next one is active."""
        if name in self.line:
            held = self.queue.unsettled_ids(name)
            expected: list = [Requeued(consumer=name, count=len(held))] if held else []
            self.line.remove(name)
            for number in held:
                self.place[number] = "ready"
            if self.active == name:
                self.active = None
                self.choose()
                expected += [Activated(consumer=self.active)] if self.active else []
            effects = self.do(DetachConsumer(consumer=name))
            assert [one for one in effects if isinstance(one, Requeued | Activated)] == expected

    @rule(purge=st.integers(0, 9))
    def purge(self, purge: int) -> None:
        if purge == 9:
            self.do(Purge())

    @rule(ms=st.integers(1, 4))
    def wait(self, ms: int) -> None:
        """Time goes on to the next moment at which the queue asked to be looked at."""
        until = self.now + ms * MS
        for _ in range(50):
            due = self.queue.deadline_us()
            if due is None or due > until:
                break
            self.now = max(self.now, due)
            gone = Gone(reason="expired") in self.do(Expire())
            if gone:
                assert not self.queue.consumers()
                self.do(Touch())
        self.now = until

    @invariant()
    def every_message_is_in_exactly_one_place(self) -> None:
        queue, places = self.queue, list(self.place.values())
        assert queue.enqueued == len(places)
        assert queue.ready == places.count("ready")
        sizes = [self.size[number] for number, where in self.place.items() if where == "ready"]
        assert queue.ready_octets == sum(sizes)
        gone = ("settled", "dead_lettered", "dropped", "expired", "purged")
        held = [self.size[number] for number, where in self.place.items() if where not in gone]
        assert queue.octets == sum(held)
        assert queue.unsettled == sum(places.count(name) for name in ("a1", "b1", "c2"))
        for how in gone:
            assert queue.left.get(how, 0) == places.count(how)
        assert queue.ready + queue.unsettled + queue.terminal == queue.enqueued
        assert queue.refused == self.refused
        assert self.answers == self.published == queue.enqueued + self.refused

    @invariant()
    def who_is_active_stays_so(self) -> None:
        assert self.queue.active == self.active
        assert self.queue.consumers() == tuple(self.line)

    @invariant()
    def no_more_is_ready_than_may_be(self) -> None:
        limit = self.arguments.max_length
        if limit is not None and self.arguments.overflow == "drop-head":
            assert self.queue.ready <= limit
        limit = self.arguments.max_length_bytes
        if limit is not None and self.arguments.overflow == "drop-head":
            assert self.queue.ready_octets <= limit

    @invariant()
    def the_head_is_not_too_old(self) -> None:
        due = self.queue.deadline_us()
        if self.arguments.expires_ms is None:
            assert due is None or due > self.now


ClassicModel.TestCase.settings = settings(
    derandomize=True, max_examples=200, stateful_step_count=40, deadline=None
)
TestClassicModel = ClassicModel.TestCase


@pytest.mark.parametrize("seed", range(40))
def test_long_runs_of_any_acts_keep_every_rule(seed: int) -> None:
    """The same acts, drawn evenly: hypothesis prefers short runs in which little is handed out."""
    draw = Random(seed)
    kinds = {"max_length": 4, "max_length_bytes": 7, "message_ttl_ms": 4, "expires_ms": 5}
    given = {name: draw.randint(1, most) for name, most in kinds.items() if draw.random() < 0.4}
    if draw.random() < 0.5:
        given["dead_letter_exchange"] = "dlx"
    if draw.random() < 0.3:
        given["single_active_consumer"] = True
    model = ClassicModel()
    model.begin({"overflow": draw.choice(OVERFLOWS), **given})
    for _ in range(120):
        name = draw.choice(["a1", "b1", "c2"])
        shut = frozenset([name] if draw.random() < 0.2 else [])
        act = draw.choice("eeedddccssstx")
        if act == "e":
            ttl = draw.choice([None, None, None, 0, 2])
            model.enqueue(sizes=[draw.randint(0, 3)], ttl=ttl, shut=shut)
        elif act == "d":
            model.dispatch(shut=shut, times=2)
        elif act == "c":
            drain, settled = draw.random() < 0.2, draw.random() < 0.2
            model.credit(name=name, credit=draw.randint(0, 4), drain=drain, settled=settled)
        elif act == "s":
            model.settle(name=name, how=draw.randint(0, 4), some=draw.randint(1, 3))
        elif act == "t":
            model.wait(ms=draw.randint(1, 3))
        elif draw.random() < 0.5:
            model.detach(name=name)
        else:
            model.purge(purge=9)
        model.who_is_active_stays_so()
        model.every_message_is_in_exactly_one_place()
        model.no_more_is_ready_than_may_be()
        model.the_head_is_not_too_old()
