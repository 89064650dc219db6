"""What RabbitMQ writes into the messages that it hands out, for each kind of queue and outcome.

What is expected is read from `mc_amqp.erl`, `mc.erl`, `rabbit_fifo_client.erl` and
`rabbit_variable_queue.erl` of 4.0.5 and 4.3, and was seen on a 4.3.6.
"""

from __future__ import annotations

import pytest

from tests.broker.rig import RMQ40, RMQ43, Rig
from workbench import presets
from workbench.amqp10.messaging import (
    Data,
    DeliveryAnnotations,
    Header,
    MessageAnnotations,
    Modified,
    Rejected,
    Released,
    decode_message,
    encode_message,
)
from workbench.amqp10.values import Long, MapPairs, Symbol, UInt, ULong
from workbench.presets import UINT_MAX
from workbench.queues import QueueArguments

ROUTE = {"x-exchange": "", "x-routing-key": "q"}
FAILED, HERE = {"delivery_failed": True}, {"undeliverable_here": True}


def rig_of(preset, queue_type: str, **arguments) -> Rig:
    rig = Rig(preset)
    rig.broker.declare("q", QueueArguments(queue_type=queue_type, **arguments))
    return rig


def publish(rig: Rig, *sections, name: str = "c1") -> None:
    _, session = rig.raw(name)
    rig.sender(session).send(encode_message([*sections, Data(b"x")]), settled=True)
    rig.rest()


def last(link) -> tuple[Header, dict]:
    """Header and message annotations of the message that came last."""
    sections = decode_message(list(link.unsettled.values())[-1].payload)
    assert not any(isinstance(one, DeliveryAnnotations) for one in sections)
    (header,) = (one for one in sections if isinstance(one, Header))
    (told,) = (one.value for one in sections if isinstance(one, MessageAnnotations))
    return header, told


def full(first: bool, failed: int, **fields) -> Header:
    return Header(**{"durable": False, **fields}, first_acquirer=first, delivery_count=failed)


def consumer(rig: Rig, name: str, address: str = "q"):
    _, session = rig.raw(name)
    link = rig.receiver(session, address)
    link.grant(1)
    rig.rest()
    return link


@pytest.mark.parametrize(
    ("preset", "queue_type", "came", "goes"),
    [
        (RMQ43, "classic", None, full(True, 0)),
        (RMQ43, "quorum", None, full(True, 0)),
        (RMQ40, "classic", None, full(True, 0, durable=True)),
        (RMQ43, "classic", Header(), full(True, 0)),
        (RMQ43, "quorum", Header(), full(True, 0)),
        (RMQ40, "quorum", Header(), full(True, 0, durable=True)),
        (
            RMQ43,
            "classic",
            Header(durable=True, priority=9, ttl=60_000, first_acquirer=False, delivery_count=7),
            full(True, 0, durable=True, priority=9, ttl=60_000),
        ),
    ],
)
def test_a_first_delivery_has_a_full_header(preset, queue_type, came, goes) -> None:
    """Whoever publishes says durable, priority and ttl; the rest is the broker's to say."""
    rig = rig_of(preset, queue_type)
    publish(rig, *([] if came is None else [came]), DeliveryAnnotations({Symbol("x-d"): 1}))
    assert last(consumer(rig, "c2")) == (goes, ROUTE)


@pytest.mark.parametrize(
    ("preset", "queue_type", "outcome", "failed", "told"),
    [
        (RMQ43, "classic", Released(), 0, {}),
        (RMQ43, "classic", Modified(), 0, {}),
        (RMQ43, "classic", Modified(**FAILED), 1, {}),
        (RMQ43, "classic", Modified(**FAILED, message_annotations={Symbol("x-w"): 1}), 1, {}),
        (RMQ43, "classic", "detach", 1, {}),
        (RMQ43, "classic", "end", 1, {}),
        (RMQ40, "classic", Modified(**FAILED), 0, {}),
        (RMQ40, "classic", "detach", 0, {}),
        (RMQ43, "quorum", Released(), 0, {"x-acquired-count": 1}),
        (RMQ43, "quorum", "detach", 0, {"x-acquired-count": 1}),
        (RMQ43, "quorum", "end", 1, {"x-acquired-count": 1, "x-delivery-count": 1}),
        (RMQ43, "quorum", Modified(**FAILED), 1, {"x-acquired-count": 1, "x-delivery-count": 1}),
        (
            RMQ43,
            "quorum",
            Modified(message_annotations={Symbol("x-w"): UInt(7), Symbol("x-s"): Symbol("y")}),
            0,
            {"x-acquired-count": 1, "x-w": 7, "x-s": "y"},
        ),
        (RMQ40, "quorum", Modified(**FAILED), 1, {"x-delivery-count": 1}),
        (RMQ40, "quorum", Released(), 0, {"x-delivery-count": 1}),
    ],
)
def test_a_second_delivery_tells_what_became_of_the_first(
    preset, queue_type, outcome, failed, told
) -> None:
    """First-acquirer is false; failures are counted, and a quorum queue annotates more."""
    rig = rig_of(preset, queue_type)
    publish(rig)
    link = consumer(rig, "c2")
    if outcome == "detach":
        link.detach()
    elif outcome == "end":
        link.session.end()
    else:
        link.settle(next(iter(link.unsettled)), state=outcome)
    rig.rest()
    header, annotations = last(consumer(rig, "c3"))
    assert header == full(False, failed, durable=preset.durable_unless_said)
    assert annotations == {**ROUTE, **told}
    # A number keeps no type of its own on its way through a quorum queue.
    assert all(type(value) in (Long, str) for value in annotations.values())


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
@pytest.mark.parametrize(
    ("outcome", "failed"),
    [(Rejected(), 1), (Modified(**HERE), 0), (Modified(**HERE, **FAILED), 1)],
)
@pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda preset: preset.name)
def test_a_dead_letter_tells_its_new_route_its_ttl_and_its_failures(
    preset, queue_type, outcome, failed
) -> None:
    """What it was annotated with by a modified outcome stays, where a queue keeps such at all."""
    if isinstance(outcome, Modified):
        outcome = Modified(
            delivery_failed=outcome.delivery_failed,
            undeliverable_here=True,
            message_annotations={Symbol("x-why"): "broken"},
        )
    rig = rig_of(preset, queue_type, dead_letter_exchange="", dead_letter_routing_key="dead")
    rig.broker.declare("dead")
    publish(rig, Header(ttl=60_000, durable=True))
    link = consumer(rig, "c2")
    link.settle(next(iter(link.unsettled)), state=outcome)
    rig.rest()
    header, told = last(consumer(rig, "c3", "dead"))
    counts = queue_type == "quorum" or preset is RMQ43
    assert header == full(False, failed if counts else 0, durable=True)
    assert (told["x-exchange"], told["x-routing-key"]) == ("", "dead")
    (death,) = told["x-opt-deaths"].items
    assert (death["ttl"], type(death["ttl"])) == (60_000, UInt)
    assert death["routing-keys"].items == ("q",)
    kept = queue_type == "quorum" and isinstance(outcome, Modified)
    assert told.get("x-why") == ("broken" if kept else None)


def test_a_dead_letter_brings_its_failures_into_a_quorum_queue() -> None:
    """They count towards the limit there, and as if it had been handed out so often."""
    rig = rig_of(RMQ43, "quorum", dead_letter_exchange="", dead_letter_routing_key="dead")
    rig.broker.declare("dead", QueueArguments(queue_type="quorum", delivery_limit=1))
    publish(rig)
    link = consumer(rig, "c2")
    link.settle(next(iter(link.unsettled)), state=Rejected())
    rig.rest()
    link = consumer(rig, "c3", "dead")
    header, told = last(link)
    assert header == full(False, 1)
    assert (told["x-acquired-count"], told["x-delivery-count"]) == (1, 1)
    link.settle(next(iter(link.unsettled)), state=Modified(**FAILED))
    rig.rest()
    assert rig.broker.queues["dead"].queue.ready == 0


def test_the_time_of_a_death_is_that_of_the_clock_since_1970() -> None:
    """A live broker's clock knows when it began; in a run virtual time begins in 1970."""
    rig = rig_of(RMQ43, "classic", dead_letter_exchange="", dead_letter_routing_key="dead")
    rig.broker.declare("dead")
    rig.clock.epoch_us = 1_700_000_000_000_000
    publish(rig)
    link = consumer(rig, "c2")
    link.settle(next(iter(link.unsettled)), state=Rejected())
    died_us = rig.clock.now_us + rig.latency_us
    rig.rest()
    (death,) = last(consumer(rig, "c3", "dead"))[1]["x-opt-deaths"].items
    assert death["first-time"] == death["last-time"] == 1_700_000_000_000 + died_us // 1000


def test_a_live_clock_counts_from_1970() -> None:
    """Its beginning and what has passed since give the time of day."""
    import asyncio
    import time

    from workbench.net.loop_clock import LoopClock

    async def moment() -> tuple[int, int, int]:
        before = time.time_ns() // 1000
        clock = LoopClock(asyncio.get_running_loop())
        return before, clock.epoch_us, time.time_ns() // 1000

    before, epoch_us, after = asyncio.run(moment())
    assert before <= epoch_us <= after


ODD_KEYS = MapPairs(((ULong(1), "a"), (Long(1), "b"), (Symbol("x-opt"), "old")))


@pytest.mark.parametrize("preset", ["spec", "broker-j"])
@pytest.mark.parametrize(
    "sections",
    [
        [Header(delivery_count=UINT_MAX)],
        [MessageAnnotations(ODD_KEYS)],
        [MessageAnnotations(MapPairs((([1], "a"),)))],
    ],
    ids=["count", "keys", "a list for a key"],
)
def test_whatever_a_message_has_told_before_it_can_be_handed_out_again(preset, sections):
    """A count stays at the most there is; what annotations a dict cannot hold are merged, too."""
    rig = rig_of(presets.get(preset), "classic")
    publish(rig, *sections)
    link = consumer(rig, "c2")
    state = Modified(delivery_failed=True, message_annotations={Symbol("x-opt"): "new"})
    link.settle(next(iter(link.unsettled)), state=state)
    link.grant(1)
    rig.rest()
    header, told = last(link)
    assert header.delivery_count == (UINT_MAX if sections[0].NAME == "header" else 1)
    assert (Symbol("x-opt"), "new") in told.items()
    assert "old" not in dict(told.items() if isinstance(told, dict) else told.pairs[-1:]).values()
