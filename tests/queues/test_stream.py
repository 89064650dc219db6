"""A stream: reading takes nothing away, and everybody has a place of their own."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from workbench.queues import (
    Checkout,
    Confirm,
    Count,
    Credit,
    Deliver,
    DetachConsumer,
    Dispatch,
    Drained,
    Dropped,
    Enqueue,
    Message,
    Meta,
    Modify,
    Purge,
    QueueArgumentError,
    QueueArguments,
    QueueError,
    Reject,
    Release,
    Settle,
    Start,
    StreamQueue,
    make_queue,
)

MS = 1000
FIRST, LAST, NEXT = (Start(at=place) for place in ("first", "last", "next"))


def stream_of(count: int = 0, every_us: int = MS, **arguments) -> StreamQueue:
    """A stream with messages taken in at 0, 1, 2 ... ms."""
    stream = StreamQueue("s", QueueArguments(queue_type="stream", **arguments))
    for number in range(count):
        put(stream, number * every_us)
    return stream


def put(stream: StreamQueue, t_us: int = 0, payload: bytes = b"mmm") -> list:
    return stream.apply(Enqueue(message=Message(payload=payload), publish=t_us), Meta(t_us=t_us))[1]


def read(
    stream: StreamQueue, credit: int, consumer: str = "a", start: Start | None = None, t_us: int = 0
) -> list[int]:
    """Offsets that a consumer gets for a credit."""
    if consumer not in stream.consumers():
        stream.apply(Checkout(consumer=consumer, start=start), Meta(t_us=t_us))
    count = stream.consumer(consumer).delivery_count
    stream.apply(Credit(consumer=consumer, delivery_count=count, link_credit=credit))
    got = []
    while stream.deliverable():
        for effect in stream.apply(Dispatch())[1]:
            if isinstance(effect, Deliver):
                assert effect.consumer == consumer
                got.append(effect.message.message_id)
    return got


def test_reading_takes_nothing_away() -> None:
    """Two consumers get the same messages."""
    stream = stream_of(3)
    assert read(stream, 9, "a", FIRST) == [0, 1, 2]
    assert read(stream, 9, "b", FIRST) == [0, 1, 2]
    assert (stream.ready, stream.unsettled) == (3, 6)


def test_a_confirm_follows_at_once() -> None:
    """There are no replicas to wait for here."""
    assert put(stream_of(), 7) == [Confirm(publish=7)]


@pytest.mark.parametrize(
    ("start", "first"),
    [
        (None, 5), (NEXT, 5), (FIRST, 0), (LAST, 4), (Start(offset=2), 2), (Start(offset=0), 0),
        (Start(t_us=0), 0), (Start(t_us=3 * MS), 3), (Start(t_us=3 * MS - 1), 3),
        (Start(t_us=99 * MS), 5), (Start(age_us=7 * MS), 3), (Start(age_us=0), 5),
    ],
)  # fmt: skip
def test_a_consumer_begins_where_it_asked(start: Start | None, first: int) -> None:
    """first, last, next, an offset, a time, an age; without a word: next."""
    stream = stream_of(5)
    got = read(stream, 9, "a", start, t_us=10 * MS)
    put(stream, 20 * MS)
    assert got + read(stream, 9) == list(range(first, 6))


def test_an_offset_that_is_not_there_yet_is_waited_for() -> None:
    """Those before it are skipped when they come [rabbit_stream_queue.erl:stream_entries]."""
    stream = stream_of(2)
    assert read(stream, 9, "a", Start(offset=4)) == []
    for number in range(4):
        put(stream, number)
    assert read(stream, 9) == [4, 5]


def test_last_and_first_of_an_empty_stream_are_the_next_to_come() -> None:
    """There is nothing else to begin with."""
    for start in (FIRST, LAST, NEXT):
        stream = stream_of()
        assert read(stream, 1, "a", start) == []
        assert stream.available_to("a") == 0
        put(stream)
        assert read(stream, 1) == [0]


def test_readers_are_served_in_turn() -> None:
    """One after the other, as long as both have credit."""
    stream = stream_of(2)
    for name in "ab":
        stream.apply(Checkout(consumer=name, start=FIRST))
        stream.apply(Credit(consumer=name, delivery_count=0, link_credit=2))
    effects = [effect for _ in range(4) for effect in stream.apply(Dispatch())[1]]
    got = [(effect.consumer, effect.message.message_id) for effect in effects]
    assert got == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


@pytest.mark.parametrize("outcome", [Settle, Reject, Release, Modify])
def test_no_outcome_changes_the_log(outcome: type) -> None:
    """Rejected and released messages stay, and are not delivered again."""
    stream = stream_of(3)
    read(stream, 2, "a", FIRST)
    assert stream.apply(outcome(consumer="a", message_ids=(0, 1))) == (Count(count=2), [])
    assert (stream.ready, stream.unsettled) == (3, 0)
    assert read(stream, 9) == [2]


def test_who_detaches_gives_nothing_back() -> None:
    """Another consumer is not concerned, and the place is forgotten."""
    stream = stream_of(3)
    read(stream, 2, "a", FIRST)
    assert stream.apply(DetachConsumer(consumer="a")) == (Count(count=0), [])
    assert read(stream, 9, "a") == []
    assert stream.ready == 3


def test_a54_available_is_the_newest_offset_less_the_one_had_last() -> None:
    """max(0, difference): 10 for who begins at the first of ten; 0 for who waits at the end."""
    stream = stream_of(10)
    read(stream, 0, "a", FIRST)
    assert stream.available_to("a") == 10
    read(stream, 4)
    assert stream.available_to("a") == 6
    read(stream, 0, "b", NEXT)
    assert stream.available_to("b") == 0


def test_a54_available_is_an_estimate() -> None:
    """RabbitMQ counts an offset asked for by number as had: one too few until it was delivered."""
    stream = stream_of(10)
    read(stream, 0, "a", Start(offset=0))
    assert stream.available_to("a") == 9
    assert read(stream, 9) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert stream.available_to("a") == 1
    read(stream, 0, "b", Start(offset=99))
    assert stream.available_to("b") == 0


def test_a_message_tells_its_offset_and_is_never_called_delivered_before() -> None:
    """The annotation x-stream-offset; another reader is no earlier attempt."""
    stream = stream_of(2)
    read(stream, 9, "a", FIRST)
    stream.apply(Checkout(consumer="b", start=LAST))
    stream.apply(Credit(consumer="b", delivery_count=0, link_credit=1))
    (effect,) = stream.apply(Dispatch())[1]
    assert effect.message.annotations == {"x-stream-offset": 1}
    assert effect.message.acquired_count == 1


def test_too_many_octets_are_cut_off_at_the_old_end() -> None:
    """x-max-length-bytes: who was there goes on with the oldest that is left."""
    stream = stream_of(3, max_length_bytes=9)
    read(stream, 1, "a", FIRST)
    effects = put(stream) + put(stream)
    cut = [(e.message.message_id, e.reason) for e in effects if isinstance(e, Dropped)]
    assert cut == [(0, "maxlen"), (1, "maxlen")]
    assert read(stream, 9) == [2, 3, 4]
    assert (stream.ready, stream.truncated) == (3, 2)
    assert read(stream, 1, "b", Start(offset=0)) == [2]


def test_what_is_too_old_is_cut_off_when_something_comes() -> None:
    """x-max-age: nothing happens while nothing is appended, and the newest always stays."""
    stream = stream_of(3, max_age_ms=5)
    assert stream.deadline_us() is None
    effects = put(stream, 7 * MS)
    assert [e.message.message_id for e in effects if isinstance(e, Dropped)] == [0, 1]
    assert stream.ready == 2


def test_one_message_stays_however_large_it_is() -> None:
    """RabbitMQ never deletes the segment that it writes to."""
    stream = stream_of(1, max_length_bytes=1)
    assert stream.ready == 1


def test_a_stream_cannot_be_purged() -> None:
    """The text says what is legal."""
    with pytest.raises(QueueError, match="is a stream and cannot be purged; legal: let x-max-age"):
        stream_of(1).apply(Purge())


def test_the_type_decides_what_is_made() -> None:
    """x-queue-type."""
    assert isinstance(make_queue("s", QueueArguments(queue_type="stream")), StreamQueue)
    assert not isinstance(make_queue("q"), StreamQueue)
    with pytest.raises(QueueArgumentError, match="a quorum queue is no single machine; legal here"):
        make_queue("q", QueueArguments(queue_type="quorum"))


class StreamModel(RuleBasedStateMachine):
    """Any acts: everybody reads every message from their place on that is still there."""

    @initialize(most=st.none() | st.integers(1, 8), oldest=st.none() | st.integers(1, 6))
    def begin(self, most: int | None, oldest: int | None) -> None:
        self.stream = stream_of(max_length_bytes=most, max_age_ms=oldest)
        self.now = 0
        self.log: dict[int, int] = {}  # offset -> when it came, of those that are there
        self.next = 0
        self.credit: dict[str, int] = {}
        self.place: dict[str, int] = {}
        self.cut = 0

    def note(self, effects: list) -> None:
        for effect in effects:
            match effect:
                case Confirm():
                    self.log[self.next] = self.now
                    self.next += 1
                case Dropped(message=message):
                    assert message.message_id == min(self.log)
                    del self.log[message.message_id]
                    self.cut += 1
                    assert self.log
                case Deliver(consumer=name, message=message):
                    expected = min(number for number in self.log if number >= self.place[name])
                    assert message.message_id == expected
                    self.place[name] = expected + 1
                    self.credit[name] -= 1
                    assert self.credit[name] >= 0
                case Drained(consumer=name, given_back=count):
                    assert count == self.credit[name] > 0
                    assert not any(number >= self.place[name] for number in self.log)
                    self.credit[name] = 0

    @rule(size=st.integers(0, 4), passed=st.integers(0, 3))
    def append(self, size: int, passed: int) -> None:
        self.now += passed * MS
        self.note(put(self.stream, self.now, b"x" * size))

    @rule(
        name=st.sampled_from("ab"),
        start=st.sampled_from([None, FIRST, LAST, NEXT])
        | st.builds(Start, offset=st.integers(0, 9))
        | st.builds(Start, t_us=st.integers(0, 20_000)),
        settled=st.booleans(),
    )
    def attach(self, name: str, start: Start | None, settled: bool) -> None:
        if name in self.credit:
            return
        command = Checkout(consumer=name, start=start, settled=settled)
        self.stream.apply(command, Meta(t_us=self.now))
        self.credit[name] = 0
        start = start or NEXT
        if start.offset is not None:
            self.place[name] = start.offset
        elif start.t_us is not None:
            young = [number for number, came in self.log.items() if came >= start.t_us]
            self.place[name] = min(young, default=self.next)
        else:
            ends = {"first": min(self.log, default=0), "last": max(self.log, default=0)}
            self.place[name] = ends.get(start.at, self.next)

    @rule(name=st.sampled_from("ab"), credit=st.integers(0, 4), drain=st.booleans())
    def grant(self, name: str, credit: int, drain: bool) -> None:
        if name in self.credit:
            count = self.stream.consumer(name).delivery_count
            self.credit[name] = credit
            command = Credit(consumer=name, delivery_count=count, link_credit=credit, drain=drain)
            self.note(self.stream.apply(command)[1])

    @rule(unable=st.sets(st.sampled_from("ab")))
    def dispatch(self, unable: set[str]) -> None:
        able = self.stream.deliverable(frozenset(unable))
        effects = self.stream.apply(Dispatch(unable=frozenset(unable)))[1]
        assert bool(effects) == able
        assert not any(isinstance(e, Deliver) and e.consumer in unable for e in effects)
        self.note(effects)

    @rule(name=st.sampled_from("ab"), how=st.sampled_from([Settle, Reject, Release, Modify]))
    def settle(self, name: str, how: type) -> None:
        if name in self.credit:
            ids = self.stream.unsettled_ids(name)[:2]
            assert self.stream.apply(how(consumer=name, message_ids=ids)) == (
                Count(count=len(ids)),
                [],
            )

    @rule(name=st.sampled_from("ab"))
    def detach(self, name: str) -> None:
        if self.credit.pop(name, None) is not None:
            self.stream.apply(DetachConsumer(consumer=name))

    @invariant()
    def the_log_is_what_came_less_what_was_cut_off(self) -> None:
        stream = self.stream
        assert (stream.ready, stream.enqueued) == (len(self.log), self.next)
        assert stream.truncated == self.cut == self.next - len(self.log)
        for name, left in self.credit.items():
            assert stream.consumer(name).link_credit == left
            assert stream.available_to(name) >= 0


StreamModel.TestCase.settings = settings(
    derandomize=True, max_examples=120, stateful_step_count=40, deadline=None
)
TestStreamModel = StreamModel.TestCase


@pytest.mark.parametrize("seed", range(20))
def test_long_runs_of_any_acts_keep_every_rule(seed: int) -> None:
    """The same acts, drawn evenly: hypothesis prefers short runs in which little is handed out."""
    draw = Random(seed)
    model = StreamModel()
    model.begin(
        most=draw.choice([None, draw.randint(1, 12)]),
        oldest=draw.choice([None, draw.randint(1, 9)]),
    )
    starts = [None, FIRST, LAST, NEXT, Start(offset=3), Start(t_us=9 * MS)]
    for _ in range(120):
        name = draw.choice("ab")
        act = draw.choice("aaagggdddddssx")
        if act == "a":
            model.append(size=draw.randint(0, 4), passed=draw.randint(0, 2))
        elif act == "g":
            model.attach(name=name, start=draw.choice(starts), settled=draw.random() < 0.3)
            model.grant(name=name, credit=draw.randint(0, 5), drain=draw.random() < 0.2)
        elif act == "d":
            model.dispatch(unable=set(name) if draw.random() < 0.2 else set())
        elif act == "s":
            model.settle(name=name, how=draw.choice([Settle, Reject, Release, Modify]))
        elif draw.random() < 0.3:
            model.detach(name=name)
        model.the_log_is_what_came_less_what_was_cut_off()
