"""Queues with limits and priorities, and streams, as clients see them.

What is expected is read from RabbitMQ's sources: `rabbit_amqqueue_process.erl`,
`rabbit_queue_consumers.erl`, `rabbit_stream_queue.erl`, `rabbit_amqp_session.erl`. How a
conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import pytest

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.messaging import Accepted, Rejected, Source
from workbench.amqp10.performatives import Attach, Detach, Disposition, End
from workbench.amqp10.values import Described, Long, Symbol, Timestamp, UByte, ULong
from workbench.frontends.annotations import routed
from workbench.queues import QueueArguments

from .rig import RMQ40, RMQ43, SPEC, Rig, every_preset, rabbit
from .talk import OFFSET_SPEC, Talk, message, stream_from, text_of

ANY_PRESET = {
    "drop-head accepts every message and keeps the youngest": """
        queue q max_length=2; attach; send a b c d -> outcomes accepted*4
        receive; grant 9 -> holds c d""",
    # Ten at once through a queue of one: five are handed on, one stays, four find no room.
    "a consumer that waits with credit makes room": """
        queue q max_length=1 overflow=reject-publish; receive; grant 5
        attach; burst 10 -> r.holds 0 1 2 3 4 | ready 1 | refused 4""",
    # [3.2.1]
    "a message whose header's ttl is over is gone, and its neighbour is not": """
        attach; send short ttl=10; send long ttl=500; wait 15; receive; grant 9 -> holds long""",
    "two consumers read the same stream, and take nothing away": """
        queue q type=stream; attach; send a b c -> outcomes accepted*3
        receive one at=first; grant 9 -> holds a b c
        receive two at=first; grant 9 -> holds a b c | ready 3""",
    "a32: outcomes do not move a stream on, and bring nothing back": """
        queue q type=stream; attach; send a b c d e; receive at=first; grant 3
        settle accepted 0 + settle released 1 + settle rejected 2 -> holds -
        grant 2 -> holds d e | ready 5""",
}
RABBIT = {
    "messages expire on the virtual clock": """
        queue q message_ttl_ms=10; attach; send a b -> ready 2
        receive; wait 10 -> ready 0 | left expired=2
        grant 3; echo -> answers 3/0""",
    "messages that are there from the start grow old too, and find a limit": """
        queue q message_ttl_ms=10 max_length=3; ready 5 -> ready 3 | left dropped=2
        wait 10 -> left dropped=2 expired=3""",
    # The timer is idle: it does not keep the run awake.
    "a run rests while messages grow old": """
        queue q message_ttl_ms=60000; attach; send a -> ready 1
        wait 60000 -> ready 0""",
    "nothing expires in a process that hangs, and then at once": """
        queue q message_ttl_ms=10; attach; send a; stall; wait 30 -> ready 1
        resume -> ready 0 | left expired=1""",
    # x-expires counts consumers alone.
    "a queue that nobody consumes from is deleted and its publishers are told": """
        queue q expires_ms=20; attach; receive; wait 50 -> queues q
        close; s: send a; wait 20 -> queues - | detaches amqp:resource-deleted""",
    # Above the highest counts as that, none as 0; what comes back goes to its old place.
    "a classic queue with priorities hands out the highest first": """
        queue q max_priority=5; attach; send a; send b priority=0; send c priority=3
        send d priority=9; send e priority=5; send f priority=3
        receive first; grant 4 -> holds d e c f
        close; receive again; grant 9 -> holds d e c f a b""",
    "with a highest priority of 0 all are alike": """
        queue q max_priority=0; attach; send a; send b priority=9
        receive; grant 9 -> holds a b""",
    # The head is the oldest of the highest priority, as in `rabbit_priority_queue.erl`.
    "a limit drops the highest priority and a ttl looks at it alone": """
        queue q max_priority=5 max_length=2; attach
        send high priority=5; send low ttl=1; send middle priority=2; wait 10 -> ready 2
        receive; grant 9 -> holds middle""",
    # An estimate where the place was asked for by number.
    "a54: available is the difference of two offsets": """
        queue q type=stream; attach; send 10; receive at=first; echo -> answers 0/10
        grant 4; echo -> answers 0/10 0/6
        receive other at=0; echo -> answers 0/10 0/6 0/9""",
    "drain reads to the end of the stream and gives the rest back": """
        queue q type=stream; attach; send a b c; receive at=first
        drain 10 -> holds a b c | answers 0/0! | count 10""",
    "a stream can be deleted": """
        queue q type=stream; attach; send a b; receive at=first
        delete -> deleted 2 | queues - | detaches amqp:resource-deleted amqp:resource-deleted""",
    # A queue that takes nothing grants as one that takes all; the grants go on.
    **{
        f"a16: a rejected message counts until it is answered{how and ', settled too'}": f"""
        queue q max_length=0 overflow=reject-publish; attach; stall; {how}; send 255
        -> credit 0 | unconfirmed 255
        resume -> credit 170 | unconfirmed 0 | refused 255 | outcomes {told}"""
        for how, told in (("", "rejected*255"), ("presettled", "-"))
    },
    # `rabbitmq:priority` among the attach's properties; without it a consumer has 0.
    **{
        f"the consumer of a {kind} queue with the highest priority is served first": f"""
        queue q type={kind}; receive plain; receive high priority=5; receive low priority=-5
        low: grant 2 + plain: grant 2 + high: grant 2
        attach; send a b c d e f -> high.holds a b | plain.holds c d | low.holds e f"""
        for kind in ("classic", "quorum")
    },
}


@every_preset
@pytest.mark.parametrize("script", ANY_PRESET.values(), ids=ANY_PRESET)
def test_a_queue_under_any_preset(preset, script) -> None:
    """Limits, ages and streams."""
    Talk(preset).play(script)


@rabbit
@pytest.mark.parametrize("script", RABBIT.values(), ids=RABBIT)
def test_a_queue_of_rabbitmq(preset, script) -> None:
    """Limits, ages, priorities and streams."""
    Talk(preset).play(script)


def rig_of(preset, queue_type: str = "classic", **arguments) -> Rig:
    """A rig with one queue, `q`."""
    rig = Rig(preset)
    rig.broker.declare("q", QueueArguments(queue_type=queue_type, **arguments))
    return rig


def send(rig: Rig, link, *texts: str, **header) -> None:
    """Messages one after the other, each taken in before the next is sent."""
    for text in texts:
        link.send(message(text, **header))
        rig.rest()


def outcomes(client) -> list[object]:
    """States of the dispositions that came."""
    return [said.state for said in client.frames(Disposition)]


def got(link) -> list[str]:
    """Bodies of the messages that a receiver holds, oldest first."""
    return [text_of(delivery.payload) for delivery in link.unsettled.values()]


@every_preset
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
        assert second.error.description == "queue 'q' exceeded maximum length"
        # Keys and reason are symbols, the name is a string (`rabbit_amqp_session.erl:rejected`).
        kinds = [(type(key), type(value)) for key, value in second.error.info.items()]
        assert kinds == [(Symbol, str), (Symbol, Symbol)]
    if preset is RMQ40:
        assert second.error is None
    assert rig.queue().ready == 1


@rabbit
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


def filled(preset, count: int, **arguments) -> tuple[Rig, object, object]:
    """A stream of messages `0`, `1` ..., a client and a session of its."""
    rig = rig_of(preset, "stream", **arguments)
    client, session = rig.raw()
    send(rig, rig.sender(session), *(str(number) for number in range(count)))
    return rig, client, session


@every_preset
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
    link = rig.receiver(session, stream_from(place))
    assert client.frames(Attach)[-1].source.filter == {OFFSET_SPEC: Described(OFFSET_SPEC, place)}
    link.grant(9)
    rig.rest()
    send(rig, rig.sender(session, name="more"), "5")
    assert got(link) == [str(number) for number in range(first, 6)]


@every_preset
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
    link = rig.receiver(session, stream_from(Timestamp(began_ms + after_ms)))
    link.grant(9)
    rig.rest()
    assert got(link) == [str(number) for number in range(first, 6)]


@every_preset
def test_without_a_filter_a_stream_is_read_from_its_end(preset) -> None:
    """`next` is the default; a plain value, not described, is read by 4.0 and not by 4.3."""
    rig, client, session = filled(preset, 3)
    link = rig.receiver(session)
    assert client.frames(Attach)[-1].source.filter is None
    old = rig.receiver(session, Source(address="q", filter={OFFSET_SPEC: "first"}), name="old")
    for one in (link, old):
        one.grant(9)
    rig.rest()
    assert (got(link), got(old)) == ([], [] if preset is RMQ43 else ["0", "1", "2"])


@pytest.mark.parametrize("place", ["middle", "0s"])
@every_preset
def test_a_place_that_is_none_is_refused(preset, place) -> None:
    """4.0 ends the session, others refuse the link; the text says what is legal."""
    rig, client, session = filled(preset, 1)
    rig.receiver(session, stream_from(place))
    (said,) = client.frames(End if preset is RMQ40 else Detach)
    assert said.error.condition == (
        ErrorCondition.INTERNAL_ERROR if preset is RMQ40 else ErrorCondition.PRECONDITION_FAILED
    )
    assert "legal: first, last, next, an offset" in said.error.description


@pytest.mark.parametrize("place", [-1, 1.5, True, b"first", None])
@every_preset
def test_a_place_of_another_type_is_as_none_at_all(preset, place) -> None:
    """RabbitMQ reads over it; 4.0 gives it back all the same."""
    rig, client, session = filled(preset, 2)
    link = rig.receiver(session, stream_from(place))
    told = client.frames(Attach)[-1].source.filter
    given = {OFFSET_SPEC: Described(OFFSET_SPEC, place)}
    assert told == {SPEC: None, RMQ40: given, RMQ43: {}}[preset]
    link.grant(9)
    rig.rest()
    send(rig, rig.sender(session, name="more"), "2")
    assert got(link) == ["2"]


@every_preset
def test_a_classic_queue_heeds_no_filter_and_rabbitmq_gives_it_back(preset) -> None:
    """RabbitMQ looks at the filter set before it looks at the queue, and never asks that of it."""
    rig = rig_of(preset)
    client, session = rig.raw()
    send(rig, rig.sender(session), "0")
    for place in ("next", "nowhere"):
        link = rig.receiver(session, stream_from(place), name=place)
        given = {OFFSET_SPEC: Described(OFFSET_SPEC, place)}
        told = client.frames(Attach)[-1].source.filter
        assert told == (None if preset is SPEC else given)
    link.grant(1)
    rig.rest()
    assert got(link) == ["0"]


@rabbit
def test_a_stream_forgets_its_oldest_messages(preset) -> None:
    """x-max-length-bytes: a reader that was behind goes on with the oldest that is left."""
    size = len(routed(message("0"), "", "q"))
    rig = rig_of(preset, "stream", max_length_bytes=2 * size)
    _, session = rig.raw()
    link = rig.receiver(session, stream_from("first"))
    send(rig, rig.sender(session), *"01234")
    link.grant(9)
    rig.rest()
    assert got(link) == ["3", "4"]
