"""Queues with limits, priorities and dead letters, and streams, as clients see them.

What is expected is read from RabbitMQ's sources: `rabbit_amqqueue_process.erl`,
`rabbit_queue_consumers.erl`, `rabbit_stream_queue.erl`, `rabbit_amqp_session.erl`.
"""

from __future__ import annotations

import pytest

from workbench import presets
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import (
    Accepted,
    Data,
    Header,
    MessageAnnotations,
    Modified,
    Rejected,
    Released,
    Source,
    decode_message,
    encode_message,
)
from workbench.amqp10.performatives import Attach, Detach, Disposition, End, Flow
from workbench.amqp10.values import Described, Int, Long, Symbol, Timestamp, UByte, ULong
from workbench.frontends.annotations import routed
from workbench.queues import QueueArguments

from .rig import Rig

SPEC, RMQ40, RMQ43 = (presets.get(name) for name in ("spec", "rmq4.0", "rmq4.3"))
BOTH = pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda p: p.name)
ALL = pytest.mark.parametrize("preset", [SPEC, RMQ40, RMQ43], ids=lambda p: p.name)
SPEC_KEY = Symbol("rabbitmq:stream-offset-spec")


def rig_of(preset, queue_type: str = "classic", **arguments) -> Rig:
    """A rig with one queue, `q`."""
    rig = Rig(preset)
    rig.broker.declare("q", QueueArguments(queue_type=queue_type, **arguments))
    return rig


def message(text: str, **header) -> bytes:
    """A message with a header where one is given."""
    sections = [Header(**header)] if header else []
    return encode_message([*sections, Data(text.encode())])


def wait(rig: Rig, ms: int) -> None:
    """Let so much time pass, and everything happen that is due by then."""
    until = rig.clock.now_us + ms * 1000
    rig.clock.call_at(until, lambda: None)
    while rig.clock.now_us < until:
        rig.clock.step()
    rig.rest()


def send(rig: Rig, link, *texts: str, settled: bool = False, **header) -> None:
    """Messages one after the other, each taken in before the next is sent."""
    for text in texts:
        link.send(message(text, **header), settled=settled)
        rig.rest()


def outcomes(client) -> list[object]:
    """States of the dispositions that came, one for each delivery."""
    found = []
    for said in client.frames(Disposition):
        last = said.first if said.last is None else said.last
        found += [said.state] * (last - said.first + 1)
    return found


def got(link) -> list[str]:
    """Bodies of the messages that a receiver holds, oldest first."""
    bodies = [decode_message(delivery.payload)[-1] for delivery in link.unsettled.values()]
    return [body.value.decode() for body in bodies]


def section(link, kind):
    """The section of that kind of the message that came last, or None."""
    payload = list(link.unsettled.values())[-1].payload
    return next((part for part in decode_message(payload) if isinstance(part, kind)), None)


def at(place) -> Source:
    """The stream's source with an offset spec, described as clients do it."""
    return Source(address="q", filter={SPEC_KEY: Described(SPEC_KEY, place)})


def asked(rig: Rig, client, link) -> tuple[int, int]:
    """(link-credit, available) of the answer to an echo."""
    link.flow(echo=True)
    rig.rest()
    answer = client.frames(Flow)[-1]
    return answer.link_credit, answer.available


# -- length ---------------------------------------------------------------------------------


@ALL
def test_a_message_that_finds_no_room_is_rejected(preset) -> None:
    """reject-publish: 4.3 names the queue and the reason maxlen, 4.0 does not."""
    rig = rig_of(preset, max_length=1, overflow="reject-publish")
    client, session = rig.raw()
    send(rig, rig.sender(session), "0", "1")
    first, second = outcomes(client)
    assert first == Accepted()
    assert isinstance(second, Rejected)
    if preset is RMQ43:
        assert second.error.condition == ErrorCondition.RESOURCE_LIMIT_EXCEEDED
        assert second.error.info == {"queue": "q", "reason": "maxlen"}
    if preset is RMQ40:
        assert second.error is None
    assert rig.queue().ready == 1


@BOTH
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
def test_a16_a_rejected_message_counts_as_unconfirmed_until_it_is_answered(preset, settled) -> None:
    """A queue that takes nothing grants as one that takes all; the grants go on."""
    rig = rig_of(preset, max_length=0, overflow="reject-publish")
    client, session = rig.raw()
    link = rig.sender(session)
    rig.broker.queues["q"].stall()
    send(rig, link, *("m" for _ in range(255)), settled=settled)
    assert (link.credit, rig.broker.overview()["c1.s.unconfirmed"]) == (0, 255)
    rig.broker.queues["q"].resume()
    rig.rest()
    assert (link.credit, rig.broker.overview()["c1.s.unconfirmed"]) == (170, 0)
    assert len(outcomes(client)) == (0 if settled else 255)
    assert rig.queue().refused == 255


@ALL
def test_drop_head_accepts_every_message_and_keeps_the_youngest(preset) -> None:
    """The publisher notices nothing; a consumer gets the last two."""
    rig = rig_of(preset, max_length=2)
    client, session = rig.raw()
    send(rig, rig.sender(session), "0", "1", "2", "3")
    assert outcomes(client) == [Accepted()] * 4
    link = rig.receiver(session)
    link.grant(9)
    rig.rest()
    assert got(link) == ["2", "3"]


@ALL
def test_a_consumer_that_waits_with_credit_makes_room(preset) -> None:
    """Ten at once through a queue of one: five are handed on, one stays, four find no room."""
    rig = rig_of(preset, max_length=1, overflow="reject-publish")
    client, session = rig.raw()
    link = rig.receiver(session)
    link.grant(5)
    rig.rest()
    sender = rig.sender(session)
    for number in range(10):
        sender.send(message(str(number)))
    rig.rest()
    assert got(link) == ["0", "1", "2", "3", "4"]
    assert [type(state) for state in outcomes(client)].count(Rejected) == 4
    assert rig.queue().ready == 1


# -- age ------------------------------------------------------------------------------------


@BOTH
def test_messages_expire_on_the_virtual_clock(preset) -> None:
    """After 10 ms an echo is told that nothing is left, and a drain gets nothing."""
    rig = rig_of(preset, message_ttl_ms=10)
    client, session = rig.raw()
    send(rig, rig.sender(session), "0", "1")
    link = rig.receiver(session)
    assert rig.queue().ready == 2
    wait(rig, 10)
    assert (rig.queue().ready, rig.queue().left) == (0, {"expired": 2})
    link.grant(3)
    assert asked(rig, client, link) == (3, 0)


@ALL
def test_the_headers_ttl_is_heeded(preset) -> None:
    """3.2.1: a message with ttl 10 is gone after 10 ms, its neighbour is not."""
    rig = rig_of(preset)
    _, session = rig.raw()
    sender = rig.sender(session)
    send(rig, sender, "short", ttl=10)
    send(rig, sender, "long", ttl=500)
    wait(rig, 15)
    link = rig.receiver(session)
    link.grant(9)
    rig.rest()
    assert got(link) == ["long"]


@BOTH
def test_messages_that_are_there_from_the_start_grow_old_too(preset) -> None:
    """`fill` puts them in before the run begins; the limit and the age hold for them."""
    rig = rig_of(preset, message_ttl_ms=10, max_length=3)
    rig.fill("q", 5)
    assert (rig.queue().ready, rig.queue().left) == (3, {"dropped": 2})
    wait(rig, 10)
    assert rig.queue().left == {"dropped": 2, "expired": 3}


@BOTH
def test_a_run_rests_while_messages_grow_old(preset) -> None:
    """The timer is idle: it does not keep the run awake, and fires when time passes."""
    rig = rig_of(preset, message_ttl_ms=60_000)
    _, session = rig.raw()
    send(rig, rig.sender(session), "0")
    assert (rig.clock.due, rig.queue().ready) == (0, 1)
    assert rig.clock.now_us < 1_000_000


@BOTH
def test_a_stalled_queue_looks_at_its_messages_when_it_goes_on(preset) -> None:
    """Nothing expires in a process that hangs."""
    rig = rig_of(preset, message_ttl_ms=10)
    _, session = rig.raw()
    send(rig, rig.sender(session), "0")
    rig.broker.queues["q"].stall()
    wait(rig, 30)
    assert rig.queue().ready == 1
    rig.broker.queues["q"].resume()
    assert (rig.queue().ready, rig.queue().left) == (0, {"expired": 1})


@BOTH
def test_a_queue_that_nobody_uses_is_deleted_and_its_publishers_are_told(preset) -> None:
    """x-expires counts consumers alone: the publisher's link ends with resource-deleted."""
    rig = rig_of(preset, expires_ms=20)
    client, session = rig.raw()
    sender = rig.sender(session)
    link = rig.receiver(session)
    wait(rig, 50)
    assert "q" in rig.broker.queues
    link.close()
    rig.rest()
    send(rig, sender, "0")
    wait(rig, 20)
    assert "q" not in rig.broker.queues
    conditions = [frame.error.condition for frame in client.frames(Detach) if frame.error]
    assert conditions == [ErrorCondition.RESOURCE_DELETED]


# -- dead letters and outcomes --------------------------------------------------------------


@BOTH
def test_what_leaves_unwanted_is_dead_lettered_with_its_reason(preset) -> None:
    """rejected, undeliverable-here, maxlen, expired: by the queue's exchange and key."""
    rig = rig_of(
        preset,
        max_length=2,
        message_ttl_ms=100,
        dead_letter_exchange="",
        dead_letter_routing_key="d",
    )
    dead = []
    rig.broker.queues["q"].dead_letter = dead.append
    _, session = rig.raw()
    sender = rig.sender(session)
    send(rig, sender, "rejected", "undeliverable")
    link = rig.receiver(session)
    link.grant(2)
    rig.rest()
    first, second = tuple(link.unsettled)
    link.settle(first, state=Rejected())
    link.settle(second, state=Modified(undeliverable_here=True))
    rig.rest()
    send(rig, sender, "maxlen", "expired", "expired")
    wait(rig, 100)
    assert [effect.reason for effect in dead] == [
        "rejected", "rejected", "maxlen", "expired", "expired",
    ]  # fmt: skip
    assert {(effect.exchange, effect.routing_keys) for effect in dead} == {("", ("d",))}
    bodies = [decode_message(effect.message.payload)[-1].value.decode() for effect in dead]
    assert bodies == ["rejected", "undeliverable", "maxlen", "expired", "expired"]
    assert rig.queue().left == {"dead_lettered": 5}


def test_the_specifications_queue_counts_what_failed() -> None:
    """3.4.5: delivery-failed moves the header's delivery-count on, and annotations are merged."""
    rig = rig_of(SPEC)
    _, session = rig.raw()
    send(rig, rig.sender(session), "0")
    link = rig.receiver(session)
    link.grant(2)
    rig.rest()
    state = Modified(delivery_failed=True, message_annotations={Symbol("x-why"): "busy"})
    link.settle(next(iter(link.unsettled)), state=state)
    rig.rest()
    assert section(link, Header).delivery_count == 1
    assert section(link, MessageAnnotations).value == {"x-why": "busy"}


# -- priorities -----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_the_consumer_with_the_higher_priority_is_served_until_its_credit_is_gone(
    preset, kind
) -> None:
    """`rabbitmq:priority` among the attach's properties; without it a consumer has 0."""
    rig = rig_of(preset, kind)
    _, session = rig.raw()
    plain = rig.receiver(session, name="plain")
    high = rig.receiver(session, name="high", properties={Symbol("rabbitmq:priority"): Int(5)})
    low = rig.receiver(session, name="low", properties={Symbol("rabbitmq:priority"): Int(-5)})
    for link in (low, plain, high):
        link.grant(2)
    rig.rest()
    send(rig, rig.sender(session), *"012345")
    assert [got(link) for link in (high, plain, low)] == [["0", "1"], ["2", "3"], ["4", "5"]]


@BOTH
@pytest.mark.parametrize("value", ["high", 5, Long(5), UByte(5), ULong(5), True, None])
def test_a_priority_that_is_no_int_is_not_heeded(preset, value) -> None:
    """RabbitMQ reads the type int alone; the link is served in its turn as any other."""
    rig = rig_of(preset)
    _, session = rig.raw()
    first = rig.receiver(session, name="first")
    other = rig.receiver(session, name="other", properties={Symbol("rabbitmq:priority"): value})
    first.grant(1)
    other.grant(1)
    rig.rest()
    send(rig, rig.sender(session), "0")
    assert (got(first), got(other)) == (["0"], [])


@pytest.mark.parametrize(
    ("preset", "kind", "order"),
    [
        (RMQ43, "quorum", "9 7 5 4 - 3 0"),
        (RMQ40, "quorum", "5 7 0 9 4 - 3"),  # two of high priority before an earlier one
        (RMQ43, "classic", "0 4 5 - 3 7 9"),
    ],
)
def test_a_quorum_queue_hands_out_the_highest_priority_first(preset, kind, order) -> None:
    """4.3 heeds each priority, 4.0 favours those above 4; a classic queue without priorities none.

    A message without a priority counts as one of 4.
    """
    rig = rig_of(preset, kind)
    _, session = rig.raw()
    sender = rig.sender(session)
    for priority in ("0", "4", "5", None, "3", "7", "9"):
        header = {} if priority is None else {"priority": int(priority)}
        send(rig, sender, priority or "-", **header)
    link = rig.receiver(session)
    link.grant(9)
    rig.rest()
    assert " ".join(got(link)) == order


# -- priorities -----------------------------------------------------------------------------


@BOTH
def test_a_classic_queue_with_priorities_hands_out_the_highest_first(preset) -> None:
    """Above the highest counts as that, none as 0; what comes back goes to its old place."""
    rig = rig_of(preset, "classic", max_priority=5)
    _, session = rig.raw()
    sender = rig.sender(session)
    for number, priority in enumerate((None, 0, 3, 9, 5, 3)):
        header = {} if priority is None else {"priority": priority}
        send(rig, sender, str(number), **header)
    link = rig.receiver(session, name="first")
    link.grant(4)
    rig.rest()
    assert got(link) == ["3", "4", "2", "5"]
    link.close()
    rig.rest()
    again = rig.receiver(session, name="again")
    again.grant(9)
    rig.rest()
    assert got(again) == ["3", "4", "2", "5", "0", "1"]


@BOTH
def test_a_limit_drops_the_highest_priority_and_a_ttl_looks_at_it_alone(preset) -> None:
    """The head is the oldest of the highest priority, as in `rabbit_priority_queue.erl`."""
    rig = rig_of(preset, "classic", max_priority=5, max_length=2)
    _, session = rig.raw()
    sender = rig.sender(session)
    send(rig, sender, "high", priority=5)
    send(rig, sender, "low", ttl=1)
    send(rig, sender, "middle", priority=2)
    wait(rig, 10)
    assert rig.queue().ready == 2
    link = rig.receiver(session)
    link.grant(9)
    rig.rest()
    assert got(link) == ["middle"]


# -- streams --------------------------------------------------------------------------------


def filled(preset, count: int, **arguments) -> tuple[Rig, object, object]:
    """A stream of messages `0`, `1` ..., a client and a session of its."""
    rig = rig_of(preset, "stream", **arguments)
    client, session = rig.raw()
    send(rig, rig.sender(session), *(str(number) for number in range(count)))
    return rig, client, session


@ALL
def test_two_consumers_read_the_same_stream(preset) -> None:
    """Reading takes nothing away; each is told the offset in the annotation x-stream-offset."""
    rig, client, session = filled(preset, 3)
    assert outcomes(client) == [Accepted()] * 3
    for name in ("a", "b"):
        link = rig.receiver(session, at("first"), name=name)
        link.grant(9)
        rig.rest()
        assert got(link) == ["0", "1", "2"]
        assert section(link, MessageAnnotations).value["x-stream-offset"] == 2
    assert rig.queue().ready == 3


@ALL
@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("first", 0),
        ("last", 4),
        ("next", 5),
        (2, 2),
        (Timestamp(0), 0),
        (Timestamp(3_600_000), 5),
        ("1h", 0),
    ],
)
def test_a_stream_is_read_from_where_the_filter_says(preset, place, first) -> None:
    """The filter comes back in the answer: it is in force."""
    rig, client, session = filled(preset, 5)
    link = rig.receiver(session, at(place))
    assert client.frames(Attach)[-1].source.filter == {SPEC_KEY: Described(SPEC_KEY, place)}
    link.grant(9)
    rig.rest()
    send(rig, rig.sender(session, name="more"), "5")
    assert got(link) == [str(number) for number in range(first, 6)]


@ALL
@pytest.mark.parametrize(
    ("after_ms", "first"), [(-10, 0), (0, 0), (500, 0), (1_000, 3), (2_000, 6)]
)
def test_a_timestamp_is_one_since_1970(preset, after_ms, first) -> None:
    """Three messages at the beginning of a run on a certain day, three a second later.

    Whole seconds count (`rabbit_amqp_session.erl:parse_filters`: `Ts div 1000`).
    """
    began_ms = 1_795_305_600_000
    rig, _, session = filled(preset, 3)
    rig.clock.epoch_us = began_ms * 1000
    rig.clock.call_at(1_000_000, lambda: None)
    rig.rest()
    send(rig, rig.sender(session, name="later"), "3", "4", "5")
    link = rig.receiver(session, at(Timestamp(began_ms + after_ms)))
    link.grant(9)
    rig.rest()
    assert got(link) == [str(number) for number in range(first, 6)]


@ALL
def test_without_a_filter_a_stream_is_read_from_its_end(preset) -> None:
    """`next` is the default; a plain value, not described, is read where RabbitMQ permits it."""
    rig, client, session = filled(preset, 3)
    link = rig.receiver(session)
    assert client.frames(Attach)[-1].source.filter is None
    old = rig.receiver(session, Source(address="q", filter={SPEC_KEY: "first"}), name="old")
    for one in (link, old):
        one.grant(9)
    rig.rest()
    assert (got(link), got(old)) == ([], ["0", "1", "2"] if preset.filter_set_bug else [])


@BOTH
def test_a54_available_is_the_difference_of_two_offsets(preset) -> None:
    """Told in the answer to an echo: ten behind it, then six; an estimate by number."""
    rig, client, session = filled(preset, 10)
    link = rig.receiver(session, at("first"))
    assert asked(rig, client, link) == (0, 10)
    link.grant(4)
    rig.rest()
    assert asked(rig, client, link) == (0, 6)
    other = rig.receiver(session, at(0), name="other")
    assert asked(rig, client, other) == (0, 9)


@ALL
def test_a32_outcomes_do_not_move_a_stream_on(preset) -> None:
    """Credit alone does: accepted, released or rejected, nothing comes and nothing returns."""
    rig, _, session = filled(preset, 5)
    link = rig.receiver(session, at("first"))
    link.grant(3)
    rig.rest()
    for delivery_id, state in zip(
        tuple(link.unsettled), [Accepted(), Released(), Rejected()], strict=True
    ):
        link.settle(delivery_id, state=state)
    rig.rest()
    assert got(link) == []
    link.grant(2)
    rig.rest()
    assert got(link) == ["3", "4"]
    assert rig.queue().ready == 5


@BOTH
def test_drain_reads_to_the_end_of_the_stream_and_gives_the_rest_back(preset) -> None:
    """Three there, credit 10: three transfers, then a flow with the delivery-count 10 further."""
    rig, client, session = filled(preset, 3)
    link = rig.receiver(session, at("first"))
    began = link.delivery_count
    link.grant(10, drain=True)
    rig.rest()
    answer = client.frames(Flow)[-1]
    assert got(link) == ["0", "1", "2"]
    assert (answer.link_credit, answer.drain, answer.available) == (0, True, 0)
    assert (answer.delivery_count - began) % 2**32 == 10


@pytest.mark.parametrize("place", ["middle", "0s"])
@ALL
def test_a_place_that_is_none_is_refused(preset, place) -> None:
    """4.0 ends the session, others refuse the link; the text says what is legal."""
    rig, client, session = filled(preset, 1)
    rig.receiver(session, at(place))
    (said,) = client.frames(End if preset is RMQ40 else Detach)
    assert said.error.condition == (
        ErrorCondition.INTERNAL_ERROR if preset is RMQ40 else ErrorCondition.PRECONDITION_FAILED
    )
    assert "legal: first, last, next, an offset" in said.error.description


@pytest.mark.parametrize("place", [-1, 1.5, True, b"first", None])
@ALL
def test_a_place_of_another_type_is_as_none_at_all(preset, place) -> None:
    """RabbitMQ reads over it; 4.0 gives it back all the same."""
    rig, client, session = filled(preset, 2)
    link = rig.receiver(session, at(place))
    told = client.frames(Attach)[-1].source.filter
    given = {SPEC_KEY: Described(SPEC_KEY, place)}
    assert told == {SPEC: None, RMQ40: given, RMQ43: {}}[preset]
    link.grant(9)
    rig.rest()
    send(rig, rig.sender(session, name="more"), "2")
    assert got(link) == ["2"]


@ALL
def test_a_classic_queue_heeds_no_filter_and_rabbitmq_gives_it_back(preset) -> None:
    """RabbitMQ looks at the filter set before it looks at the queue, and never asks that of it."""
    rig = rig_of(preset)
    client, session = rig.raw()
    send(rig, rig.sender(session), "0")
    for place in ("next", "nowhere"):
        link = rig.receiver(session, at(place), name=place)
        given = {SPEC_KEY: Described(SPEC_KEY, place)}
        told = client.frames(Attach)[-1].source.filter
        assert told == (None if preset is SPEC else given)
    link.grant(1)
    rig.rest()
    assert got(link) == ["0"]


@BOTH
def test_a_stream_can_be_deleted_and_not_purged(preset) -> None:
    """RabbitMQ: purge is not supported by streams."""
    rig, client, session = filled(preset, 2)
    rig.receiver(session, at("first"))
    assert rig.broker.delete("q") == 2
    rig.rest()
    assert {frame.error.condition for frame in client.frames(Detach)} == {
        ErrorCondition.RESOURCE_DELETED
    }


@BOTH
def test_a_stream_forgets_its_oldest_messages(preset) -> None:
    """x-max-length-bytes: a reader that was behind goes on with the oldest that is left."""
    size = len(routed(message("0"), "", "q"))
    rig = rig_of(preset, "stream", max_length_bytes=2 * size)
    _, session = rig.raw()
    link = rig.receiver(session, at("first"))
    send(rig, rig.sender(session), *"01234")
    link.grant(9)
    rig.rest()
    assert got(link) == ["3", "4"]
