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

from .talk import Talk

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


TALKS = {
    "reading takes nothing away": """
        put a b c; consume; grant 9 -> got a b c | told confirmed confirmed confirmed
        consume b; grant 9 -> got a b c | ready 3 | unsettled 6""",
    # Those before it are skipped when they come [rabbit_stream_queue.erl:stream_entries].
    "an offset that is not there yet is waited for": """
        put a b; consume offset=4; grant 9 -> got -
        put c d e f -> got e f""",
    **{
        f"the {place} of an empty stream is the next to come": f"""
        consume first={place}; grant 1 -> got - | available 0
        put a -> got a"""
        for place in ("first", "last", "next")
    },
    # As long as both have credit.
    "readers are served in turn": """
        consume; grant 2; consume b; grant 2; put m n -> order a b a b""",
    # Rejected and released messages stay, and are not delivered again.
    **{
        f"{outcome} changes nothing in the log": f"""
        put a b c; consume; grant 2; {outcome} 0 1 -> ready 3 | unsettled 0
        grant 9 -> got a b c"""
        for outcome in ("settle", "reject", "release", "modify")
    },
    "who detaches gives nothing back, and its place is forgotten": """
        put a b c; consume; grant 2; detach -> replied 0
        consume first=next; grant 9 -> got - | ready 3""",
    "a54: available is the newest offset less the one had last": """
        put a b c d e f g h i j; consume -> available 10
        grant 4 -> available 6
        consume b first=next -> available 0""",
    # RabbitMQ counts an offset asked for by number as had, until it was delivered.
    "a54: available is an estimate": """
        put a b c d e f g h i j; consume offset=0 -> available 9
        grant 9 -> got a b c d e f g h i | available 1
        consume b offset=99 -> available 0""",
    # Another reader is no earlier attempt.
    "a message tells its offset and is never called delivered before": """
        put a b; consume; grant 9
        consume b first=last; grant 1 -> annotations x-stream-offset=1 | acquired 1""",
    # Who was there goes on with the oldest that is left.
    "too many octets are cut off at the old end": """
        with max_length_bytes=9
        put aaa bbb ccc; consume; grant 1; put ddd eee -> gone aaa:maxlen bbb:maxlen
        grant 9 -> got aaa ccc ddd eee | ready 3 | truncated 2
        consume b offset=0; grant 1 -> got ccc""",
    # Nothing happens while nothing is appended, and the newest always stays.
    "what is too old is cut off when something comes": """
        with max_age_ms=5
        put a; at 1; put b; at 2; put c -> deadline None
        at 7; put d -> gone a:expired b:expired | ready 2""",
    # RabbitMQ never deletes the segment that it writes to.
    "one message stays however large it is": """
        with max_length_bytes=1
        put aaa -> ready 1""",
}


@pytest.mark.parametrize("script", TALKS.values(), ids=TALKS)
def test_a_stream_and_its_readers(script: str) -> None:
    """How a conversation is written: `tests.queues.talk`."""
    Talk("stream").play(script)


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


class Counted(Message, frozen=True, gc=False, kw_only=True):
    """Whose octets are others than those that are stored, as of AMQP 0-10's."""

    size: int


def test_what_is_cut_off_is_counted_as_it_was_taken_in() -> None:
    """Else the stream would be cut shorter and shorter."""
    stream = stream_of(max_length_bytes=10)
    for number in range(9):
        stream.apply(Enqueue(message=Counted(payload=b"mmm", size=5), publish=number))
    assert (stream.ready, stream.octets) == (2, 10)


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
