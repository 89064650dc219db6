"""What a queue of any kind answers to the commands that all of them know.

`Rig` gives the three kinds one face: a classic queue and a stream are told to dispatch until they
have nothing to hand out; a quorum queue hands out by itself, and numbers what is sent to it.
"""

import pytest

from workbench.queues import (
    Checkout,
    Count,
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
    Message,
    Meta,
    Modify,
    Origin,
    Prefetch,
    Purge,
    QueueArguments,
    Reject,
    Release,
    Settle,
    Start,
    make_queue,
)
from workbench.queues.quorum_fifo import Answered, Handed, Logged, QuorumFifo

MS = 1000
WRAPPING = 4294967294
ANY = pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
TAKEN = pytest.mark.parametrize("kind", ["classic", "quorum"])  # a message is for one consumer


class Rig:
    """A queue and what it has handed out.

    Attributes:
        got: payloads by consumer, in order.
        order: whose each delivery was.
        held: how each consumer's deliveries are named in settlements.
        gone: payload and reason of what has left, and exchange and keys of a dead letter.
        given_back: delivery-counts after credit was drained.
        last: the message that was handed out last.
    """

    def __init__(self, kind, *payloads, **arguments):
        declared = QueueArguments(queue_type=kind, **arguments)
        self.kind = kind
        self.queue = QuorumFifo("q", declared) if kind == "quorum" else make_queue("q", declared)
        self.seq = 0
        self.got, self.held, self.order, self.gone, self.given_back = {}, {}, [], [], []
        self.publish(*payloads)

    def publish(self, *payloads, t_us=0, **fields):
        for payload in payloads:
            origin = Origin(exchange="x", routing_keys=("k",))
            self.do(Enqueue(message=Message(payload=payload, **fields), origin=origin), t_us)

    def consume(self, name="a", credit=None, at=0, mode=None, **terms):
        start = Start(at="first") if self.kind == "stream" else None
        self.got[name], self.held[name] = [], []
        given = mode or Credited(at)
        self.do(Checkout(consumer=name, mode=given, start=start, **terms))
        return self.got[name] if credit is None else self.grant(credit, name)

    def grant(self, credit, name="a", at=None, drain=False):
        """Grant credit, counted from where the queue is unless told; returns what that brings."""
        before = len(self.got[name])
        count = self.counters(name)[0] if at is None else at
        self.do(Credit(consumer=name, delivery_count=count, link_credit=credit, drain=drain))
        return self.got[name][before:]

    def outcome(self, kind, *which, name="a", t_us=0, **fields):
        """Settle deliveries of a consumer by their places; returns what was handed out then."""
        before = {one: len(payloads) for one, payloads in self.got.items()}
        ids = tuple(self.held[name][place] for place in which)
        assert self.do(kind(consumer=name, message_ids=ids, **fields), t_us) == Count(
            count=len(which)
        )
        return [each for one, payloads in self.got.items() for each in payloads[before[one] :]]

    def counters(self, name="a"):
        found = self.queue.consumer(name)
        return found.delivery_count, found.link_credit

    def do(self, command, t_us=0):
        reply, effects = self._apply(command, t_us)
        self._take(effects)
        while self.kind != "quorum" and self.queue.deliverable():
            self._take(self._apply(Dispatch(), t_us)[1])
        return reply

    def _apply(self, command, t_us):
        if self.kind != "quorum":
            return self.queue.apply(command, Meta(t_us=t_us))
        self.seq += 1
        return self.queue.apply(Logged("c", self.seq, 0, command, t_us))

    def _take(self, effects):
        for effect in effects:
            match effect:
                case Deliver() | Handed():
                    handed = effect.deliver if isinstance(effect, Handed) else effect
                    name, message = handed.consumer, handed.message
                    named = effect.number if isinstance(effect, Handed) else message.message_id
                    self.order.append(name)
                    self.got[name].append(message.payload)
                    self.held[name].append(named)
                    self.last = message
                case Dropped(message=message, reason=reason):
                    self.gone.append((message.payload, reason))
                case DeadLettered(message=message, reason=reason, exchange=to, routing_keys=keys):
                    self.gone.append((message.payload, reason, to, keys))
                case Drained(delivery_count=count):
                    self.given_back.append(count)
                case Answered(credited=credited) if credited.drain:
                    self.given_back.append(credited.delivery_count)


# -- credit ---------------------------------------------------------------------------------


@ANY
def test_nothing_is_handed_out_without_credit(kind):
    """And with credit, oldest first, as many as it is; each uses one [AMQP 1.0, 2.6.7]."""
    rig = Rig(kind, b"0", b"1", b"2")
    assert rig.consume() == []
    assert rig.grant(2) == [b"0", b"1"]
    assert rig.counters() == (2, 0)
    assert rig.last.acquired_count == 1
    assert rig.queue.unsettled == 2


@ANY
@pytest.mark.parametrize("start", [0, 10, 2147483640, 4294967290, WRAPPING])
def test_credit_is_absolute_and_counts_from_the_delivery_count_it_names(kind, start):
    """50 twice is 50; 6 counted from before 3 deliveries is 3; less than was sent is none."""
    rig = Rig(kind)
    rig.consume(at=start)
    rig.grant(50)
    rig.grant(50)
    assert rig.counters()[1] == 50
    rig.grant(3)
    rig.publish(*[b"m"] * 9)
    assert len(rig.got["a"]) == 3
    assert rig.grant(2, at=start) == []
    assert rig.grant(6, at=start) == [b"m"] * 3
    assert rig.counters() == ((start + 6) % 2**32, 0)


@ANY
@pytest.mark.parametrize("credit", [5, 2147483648, 4294967293, WRAPPING, 4294967295])
def test_drain_hands_out_what_is_there_and_gives_the_rest_back(kind, credit):
    """delivery-count moves on by all of it, however far round that is [2.6.7]; a uint is legal."""
    rig = Rig(kind, b"0", b"1")
    rig.consume(at=WRAPPING)
    assert rig.grant(credit, drain=True) == [b"0", b"1"]
    assert rig.counters() == ((WRAPPING + credit) % 2**32, 0)
    assert rig.given_back == [rig.counters()[0]]
    assert rig.grant(credit, drain=True) == []
    assert rig.given_back[1:] == [(WRAPPING + 2 * credit) % 2**32]


@ANY
def test_drain_with_more_messages_than_credit_uses_it_up(kind):
    """There is nothing to give back."""
    rig = Rig(kind, b"0", b"1", b"2")
    rig.consume()
    assert rig.grant(2, drain=True) == [b"0", b"1"]
    assert rig.counters() == (2, 0)


@ANY
@pytest.mark.parametrize("outcome", [Settle, Reject, Release, Modify])
def test_no_outcome_brings_credit(kind, outcome):
    """Only the next grant does."""
    rig = Rig(kind, b"0", b"1", b"2")
    rig.consume(credit=2)
    assert rig.outcome(outcome, 0, 1) == []
    assert rig.counters() == (2, 0)
    assert rig.queue.unsettled == 0


@ANY
@pytest.mark.parametrize("outcome", [Settle, Reject])
def test_a_prefetching_consumer_gets_credit_back_with_each_settlement(kind, outcome):
    """Never more than its prefetch unsettled, and no credit command at all."""
    rig = Rig(kind, b"0", b"1", b"2", b"3")
    assert rig.consume(mode=Prefetch(2)) == [b"0", b"1"]
    assert rig.outcome(outcome, 0) == [b"2"]
    assert rig.queue.unsettled == 2
    rig.publish(b"4")
    assert rig.outcome(outcome, 1, 2) == [b"3", b"4"]


# -- whose turn it is -----------------------------------------------------------------------


@TAKEN
def test_the_highest_priority_with_credit_is_served_first_and_equals_in_turn(kind):
    """Its credit runs out first; then the next lower ones get messages."""
    rig = Rig(kind)
    for name, priority in (("low", -1), ("a", 0), ("b", 0), ("high", 5)):
        rig.consume(name, credit=2, priority=priority)
    rig.publish(*[b"m"] * 8)
    assert rig.order == ["high", "high", "a", "b", "a", "b", "low", "low"]


@TAKEN
def test_with_a_single_active_consumer_the_others_wait_with_their_credit(kind):
    """When it leaves, what it held comes first, and the next one is active."""
    rig = Rig(kind, b"0", b"1", b"2", single_active_consumer=True)
    rig.consume("a", credit=2)
    assert rig.consume("b", credit=9) == []
    assert (rig.queue.active, rig.queue.available_to("b")) == ("a", 0)
    rig.outcome(Settle, 0)
    rig.do(DetachConsumer(consumer="a"))
    assert rig.queue.active == "b"
    assert rig.got["b"] == [b"1", b"2"]


@TAKEN
def test_a_waiting_consumer_that_drains_gives_all_its_credit_back(kind):
    """There is nothing it could get, however much is ready."""
    rig = Rig(kind, b"0", single_active_consumer=True)
    rig.consume("a")
    rig.consume("b", at=5)
    assert rig.grant(10, "b", drain=True) == []
    assert rig.counters("b") == (15, 0)
    assert rig.given_back == [15]


# -- what comes back, and what leaves -------------------------------------------------------


@TAKEN
def test_what_comes_back_goes_out_before_what_was_never_out(kind):
    """Released is as if never sent, but for the count of handing out."""
    rig = Rig(kind, b"0", b"1")
    rig.consume(credit=1)
    rig.outcome(Release, 0)
    assert rig.grant(1) == [b"0"]
    assert (rig.last.acquired_count, rig.last.delivery_count) == (2, 0)
    assert rig.grant(1) == [b"1"]


@TAKEN
def test_modified_counts_the_failure_and_merges_annotations(kind):
    """delivery-failed counts up the header's delivery-count [3.4.5]."""
    rig = Rig(kind, b"0")
    rig.consume(credit=1)
    rig.outcome(Modify, 0, delivery_failed=True, annotations={"x-why": "busy"})
    rig.grant(1)
    assert (rig.last.delivery_count, rig.last.annotations) == (1, {"x-why": "busy"})


@TAKEN
@pytest.mark.parametrize("failed", [False, True])
def test_detaching_gives_back_what_was_not_settled(kind, failed):
    """Oldest first; a lost client counts as a failed attempt, a detached one does not."""
    rig = Rig(kind, b"0", b"1", b"2", b"3")
    rig.consume(credit=3)
    rig.outcome(Settle, 1)
    assert rig.do(DetachConsumer(consumer="a", delivery_failed=failed)) == Count(count=2)
    assert rig.consume("b", credit=1) == [b"0"]
    assert rig.last.delivery_count == failed
    assert rig.grant(9, "b") == [b"2", b"3"]


@TAKEN
def test_reject_and_purge_take_messages_out_with_the_reason(kind):
    """A purge leaves what consumers hold [3.4.3]."""
    rig = Rig(kind, b"0", b"1", b"2")
    rig.consume(credit=2)
    rig.outcome(Reject, 0)
    assert rig.do(Purge()) == Count(count=1)
    assert rig.gone == [(b"0", "rejected"), (b"2", "purged")]
    assert (rig.queue.ready, rig.queue.unsettled, rig.queue.terminal) == (0, 1, 2)


# -- limits ---------------------------------------------------------------------------------


@TAKEN
@pytest.mark.parametrize("limit", ["max_length", "max_length_bytes"])
def test_drop_head_drops_the_oldest_that_is_ready(kind, limit):
    """The limit itself is legal, the newest is always taken; what consumers hold needs no room."""
    rig = Rig(kind, b"0", b"1", **{limit: 2})
    assert rig.gone == []
    rig.publish(b"2")
    assert rig.gone == [(b"0", "maxlen")]
    assert rig.consume(credit=1) == [b"1"]
    rig.publish(b"3")
    assert (rig.gone[1:], rig.queue.ready, rig.queue.ready_octets) == ([], 2, 2)
    rig.outcome(Release, 0)  # it is the oldest again
    assert rig.gone[1:] == [(b"1", "maxlen")]


@TAKEN
@pytest.mark.parametrize(("own", "age"), [(None, 5), (3, 3), (9, 5)])
def test_a_message_expires_at_the_shorter_of_two_ages_and_not_before(kind, own, age):
    """The queue's and its own, in ms; the queue says when to look again."""
    rig = Rig(kind, message_ttl_ms=5)
    rig.publish(b"0", ttl_ms=own, t_us=2 * MS)
    due = (2 + age) * MS
    assert rig.queue.deadline_us() == due
    rig.do(Expire(), due - 1)
    assert rig.gone == []
    rig.do(Expire(), due)
    assert rig.gone == [(b"0", "expired")]
    assert (rig.queue.ready, rig.queue.terminal, rig.queue.deadline_us()) == (0, 1, None)


@TAKEN
def test_messages_expire_from_the_head_alone(kind):
    """Behind one without an age an old one waits; at the head it goes and is not handed out."""
    rig = Rig(kind, b"0")
    rig.publish(b"1", ttl_ms=5)
    rig.publish(b"2")
    rig.do(Expire(), 9 * MS)
    assert (rig.queue.deadline_us(), rig.queue.ready) == (None, 3)
    rig.consume()
    rig.do(Credit(consumer="a", delivery_count=0, link_credit=9), 9 * MS)
    assert rig.got["a"] == [b"0", b"2"]
    assert rig.gone == [(b"1", "expired")]


@TAKEN
def test_what_is_released_too_old_expires(kind):
    """Its time runs while a consumer has it, and nothing happens to it there."""
    rig = Rig(kind, b"0", message_ttl_ms=5)
    rig.consume(credit=1)
    rig.do(Expire(), 9 * MS)
    assert rig.gone == []
    rig.outcome(Release, 0, t_us=9 * MS)
    assert rig.gone == [(b"0", "expired")]


@TAKEN
@pytest.mark.parametrize(
    ("exchange", "own_key", "keys"), [("dlx", None, ("k",)), ("", "dead", ("dead",))]
)
def test_what_leaves_unwanted_is_dead_lettered_unless_it_is_purged(kind, exchange, own_key, keys):
    """With the keys that it came with, or the queue's own; `""` is the default exchange."""
    rig = Rig(
        kind,
        dead_letter_exchange=exchange,
        dead_letter_routing_key=own_key,
        max_length=1,
        message_ttl_ms=5,
    )
    rig.publish(b"0", b"1")
    rig.consume(credit=1)
    rig.outcome(Reject, 0)
    rig.publish(b"2")
    rig.do(Expire(), 5 * MS)
    rig.publish(b"3", t_us=5 * MS)
    rig.do(Purge(), 5 * MS)
    assert rig.gone == [
        (b"0", "maxlen", exchange, keys),
        (b"1", "rejected", exchange, keys),
        (b"2", "expired", exchange, keys),
        (b"3", "purged"),
    ]
