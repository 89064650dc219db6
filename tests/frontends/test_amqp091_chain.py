"""The chain of credit from a queue back to the socket: reader, channel, queue, message store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicQos,
    ConfirmSelect,
    ConnectionBlocked,
    ConnectionUnblocked,
    QueueBind,
    QueueDeclare,
    QueueDeclareOk,
)
from workbench.frontends.amqp091.throttle import Throttle
from workbench.sim import VirtualClock
from workbench.trace.braking import PublishingBraking

from .rig091 import PERSISTENT, RMQ43, RMQ355, RMQ383, RMQ384, Rig091

QUORUM = {"x-queue-type": "quorum"}


def flood(channel: Any, count: int, queue: str = "q", body: bytes = b"m") -> None:
    for _ in range(count):
        channel.publish("", queue, body)


def declared(rig: Rig091, channel: Any, name: str = "q", **arguments: Any) -> Any:
    channel.send(QueueDeclare(queue=name, durable=True, arguments=arguments.get("arguments", {})))
    rig.rest()
    return rig.broker.queues[name]


def credit(rig: Rig091, name: str = "c1") -> Any:
    """Credit of the reader, and of its first channel."""
    end = rig.ends[name]
    (channel, *_) = end._channels.values()
    return end.reader.flow.credit_from, channel.process.flow


@pytest.mark.parametrize(
    ("preset", "initial", "kept"),
    [(RMQ355, 200, [50] * 4), (RMQ384, 400, [200] * 2), (RMQ43, 400, [200] * 2)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_a_suspended_classic_queue_lets_two_credits_of_publishes_in(preset, initial, kept) -> None:
    """800 at {400, 200}, measured: reader at 0, channel at -400, the grants kept back."""
    rig = Rig091(preset)
    _, channel = rig.channel()
    queue = declared(rig, channel)
    queue.stall()
    flood(channel, 900)
    rig.rest()
    reader, process = credit(rig)
    assert queue.mailbox == 2 * initial
    assert reader == {"channel:c1/1": 0}
    assert process.credit_from == {"queue:q": -initial}
    assert [grant.credit for grant in process.kept] == kept
    queue.resume()
    rig.rest()
    assert queue.queue.ready == 900
    assert not process.blocked


@pytest.mark.parametrize("preset", [RMQ384, RMQ43], ids=lambda one: one.name)
def test_a_suspended_quorum_queue_lets_400_in_and_not_32(preset) -> None:
    """Measured: the soft limit only keeps grants back; the 400 already granted all pass."""
    rig = Rig091(preset)
    _, channel = rig.channel()
    queue = declared(rig, channel, arguments=QUORUM)
    queue.stall()
    flood(channel, 900)
    rig.rest()
    assert queue.mailbox == 400
    assert credit(rig)[0] == {"channel:c1/1": 0}
    queue.resume()
    rig.rest()
    assert queue.queue.ready == 900


@pytest.mark.parametrize(("preset", "initial"), [(RMQ355, 200), (RMQ43, 400)])
def test_e5_the_reader_reads_so_many_publishes_and_no_more(preset, initial) -> None:
    """Of a channel that handles nothing: exactly its credit, and the 201st stays in the socket."""
    rig = Rig091(preset)
    _, channel = rig.channel()
    declared(rig, channel)
    (process,) = [one.process for one in rig.ends["c1"]._channels.values()]
    process.stall()
    flood(channel, initial + 50)
    rig.rest()
    assert process.depth == initial
    assert rig.ends["c1"].throttle.blocked


@pytest.mark.parametrize("initial", [10, 50])
def test_e2_e6_e12_the_setting_is_what_a_mailbox_holds_and_what_is_kept_back(initial) -> None:
    """Twice the credit reaches a queue that hangs, and no grant leaves whoever is blocked."""
    rig = Rig091(RMQ43, process_credit=initial, process_regrant_after=initial // 2)
    _, channel = rig.channel()
    queue = declared(rig, channel)
    queue.stall()
    flood(channel, 5 * initial)
    rig.rest()
    assert queue.mailbox == 2 * initial
    grants = [row.extra["credit"] for row in rig.recorder.rows if row.event == "grant"]
    kept = [row for row in rig.recorder.rows if row.kind == "grant-kept"]
    # A message counts when the channel begins with it: the last credit is spent after the grant.
    assert grants == [initial // 2] * 2
    assert len(kept) == 2


def test_b21_with_the_limit_of_3_8_3_one_grant_more_has_passed() -> None:
    """256: of the first 400, 200 were handled before the queue was slow."""
    rig = Rig091(RMQ383)
    _, channel = rig.channel()
    queue = declared(rig, channel, arguments=QUORUM)
    queue.stall()
    flood(channel, 900)
    rig.rest()
    assert queue.mailbox == 600


def test_e3_publishes_alone_cost_credit() -> None:
    """Declarations, acknowledgements and consumers are free."""
    rig = Rig091()
    _, channel = rig.channel()
    declared(rig, channel)
    channel.send(ConfirmSelect())
    channel.send(BasicQos(prefetch_count=10))
    channel.send(BasicConsume(queue="q", consumer_tag="t"))
    flood(channel, 5)
    rig.rest()
    channel.send(BasicAck(delivery_tag=5, multiple=True))
    rig.rest()
    reader, process = credit(rig)
    assert (reader, process.credit_from) == ({"channel:c1/1": 395}, {"queue:q": 395})


def test_e27_a_message_to_three_queues_costs_the_channel_three_credits() -> None:
    """One with the reader, one with each queue."""
    rig = Rig091()
    _, channel = rig.channel()
    for name in ("a", "b", "c"):
        declared(rig, channel, name)
        channel.send(QueueBind(queue=name, exchange="amq.fanout", routing_key=""))
    channel.publish("amq.fanout", "", b"m")
    rig.rest()
    reader, process = credit(rig)
    assert reader == {"channel:c1/1": 399}
    assert process.credit_from == {"queue:a": 399, "queue:b": 399, "queue:c": 399}


def test_e9_a22_one_blocked_queue_holds_every_channel_of_its_connection_and_no_other() -> None:
    """The reader cannot know the channel before it reads; a second connection goes on."""
    rig = Rig091()
    client, first = rig.channel()
    second = rig.open(client)
    _, other = rig.channel("c2")
    slow = declared(rig, first, "slow")
    declared(rig, second, "fast")
    slow.stall()
    flood(first, 1_000, "slow")
    flood(second, 10, "fast")
    flood(other, 10, "fast")
    rig.rest()
    assert rig.queue("fast").ready == 10  # of the other connection
    assert rig.ends["c1"].throttle.blocked and not rig.ends["c2"].throttle.blocked
    slow.resume()
    rig.rest()
    assert rig.queue("fast").ready == 20


def test_b8_the_wire_fills_and_the_client_s_writes_block() -> None:
    """TCP is the last brake: what the sockets hold, and no more, leaves the client."""
    rig = Rig091(capacity=10_000)
    client, channel = rig.channel()
    queue = declared(rig, channel)
    queue.stall()
    flood(channel, 1_000, body=bytes(100))
    rig.rest()
    assert queue.mailbox == 800
    assert not client.writable and client.waiting
    told = [
        (row.event, row.vantage, row.kind)
        for row in rig.recorder.rows
        if row.event in ("block", "unblock")
    ]
    assert [one for one in told if one[2] == "credit-flow"][-2:] == [
        ("block", "channel:c1/1", "credit-flow"),
        ("block", "reader:c1", "credit-flow"),
    ]
    assert [one[:2] for one in told if one[2] == "tcp"][-1] == ("block", "client:raw")
    held = PublishingBraking("c1")
    assert "credit-flow" in {held.apply(row) for row in rig.recorder.rows}
    assert held.brakes == ("credit-flow", "tcp")
    queue.resume()
    rig.rest()
    assert (client.waiting, queue.queue.ready) == ([], 1_000)
    later = PublishingBraking("c1")
    assert [later.apply(row) for row in rig.recorder.rows][-1] == "none"


def test_e7_e8_from_a_full_store_brakes_go_on_up_to_the_reader() -> None:
    """Store, queue, channel, reader; and the grants of 3.5.5's pairs come the same way.

    Whoever is blocked has kept each of them, and lets all go when it is not blocked any more.
    """
    rig = Rig091(RMQ355)
    _, channel = rig.channel()
    queue = declared(rig, channel)
    rig.broker.stores.persistent.stall()
    for _ in range(2_500):
        channel.publish("", "q", bytes(4_096), PERSISTENT)
    rig.rest()
    assert rig.broker.stores.persistent.process.depth == 2_000 + 200 + 200
    blocks = [
        row.vantage
        for row in rig.recorder.rows
        if (row.event, row.kind) == ("block", "credit-flow")
    ]
    assert blocks[-3:] == ["queue:q", "channel:c1/1", "reader:c1"]
    blocked_until = len(rig.recorder.rows)
    rig.broker.stores.persistent.resume()
    rig.rest()
    told = [(row.event, row.vantage) for row in rig.recorder.rows[blocked_until:]]
    assert [one for one in told if one[0] in ("grant", "unblock")][:16] == [
        ("grant", "store:persistent"),
        *[("grant", "queue:q")] * 8,
        ("unblock", "queue:q"),
        *[("grant", "channel:c1/1")] * 4,
        ("unblock", "channel:c1/1"),
        ("unblock", "reader:c1"),
    ]
    assert queue.queue.ready == 2_500


def test_e13_each_channel_brings_its_own_credit_to_a_queue() -> None:
    """Three connections: three times 800."""
    rig = Rig091()
    channels = [rig.channel(f"c{number}")[1] for number in range(3)]
    queue = declared(rig, channels[0])
    queue.stall()
    for channel in channels:
        flood(channel, 850)
    rig.rest()
    assert queue.mailbox == 3 * 800


def test_a_deleted_queue_holds_no_reader_up() -> None:
    """`peer_down`: the channel goes on, and so does everything behind it."""
    rig = Rig091()
    client, channel = rig.channel()
    queue = declared(rig, channel)
    queue.stall()
    flood(channel, 1_000)
    rig.rest()
    assert rig.ends["c1"].throttle.blocked
    rig.broker.delete("q")
    channel.send(QueueDeclare(queue="p", durable=True))
    rig.rest()
    assert not rig.ends["c1"].throttle.blocked
    assert client.methods(QueueDeclareOk)[-1].queue == "p"


@pytest.mark.parametrize(
    ("preset", "later"),
    [(RMQ355, "flow"), (RMQ383, "running"), (RMQ384, "running"), (RMQ43, "running")],
)
def test_b9_a_connection_that_credit_has_stopped_is_shown_in_flow(preset, later) -> None:
    """In 3.5.5 for five seconds from when it is stopped; 4.3.6 shows `running` at once, measured.

    So does 3.8 by its source (`rabbit_reader.erl:is_blocked_by_flow`).
    """
    rig = Rig091(preset)
    _, channel = rig.channel()
    throttle = rig.ends["c1"].throttle
    assert throttle.state == "running"
    queue = declared(rig, channel)
    queue.stall()
    flood(channel, 1_000)
    rig.rest()
    assert throttle.state == "flow"
    queue.resume()
    rig.rest()
    assert (throttle.state, throttle.blocked) == (later, False)
    rig.clock.call_later(5_000_000, lambda: None)
    rig.rest()
    assert throttle.state == "running"


def test_the_five_seconds_in_flow_begin_when_the_reader_stops() -> None:
    """`last_blocked_at` of 3.5.5; an alarm that comes while it is stopped is the cause then."""
    clock = VirtualClock()
    owner = SimpleNamespace(
        reading=lambda on: None, tell_blocked=lambda reason: None, tell_unblocked=lambda: None
    )
    throttle = Throttle(owner, lambda: clock.now_us, 5)

    def after(us: int) -> str:
        clock.call_later(us, lambda: None)
        clock.run_until_rest()
        return throttle.state

    throttle.credit(True)
    throttle.published()
    assert after(4) == "flow"
    throttle.credit(False)
    assert (after(0), after(1)) == ("flow", "running")
    throttle.credit(True)
    throttle.published()
    throttle.alarms(["memory"])
    throttle.alarms([])
    throttle.credit(False)
    assert after(0) == "running"


# -- alarms ---------------------------------------------------------------------------------


def test_b14_a71_an_alarm_blocks_a_connection_at_its_first_publish() -> None:
    """Measured: nothing when it comes; blocked is told then, and that publish itself waits."""
    rig = Rig091()
    client, channel = rig.channel()
    declared(rig, channel)
    rig.broker.set_alarm("memory")
    rig.rest()
    throttle = rig.ends["c1"].throttle
    assert (client.methods(ConnectionBlocked), throttle.state) == ([], "blocking")
    flood(channel, 1)
    channel.send(QueueDeclare(queue="p", durable=True))
    rig.rest()
    assert [method.reason for method in client.methods(ConnectionBlocked)] == ["low on memory"]
    assert (throttle.state, rig.queue().ready, "p" in rig.broker.queues) == ("blocked", 0, False)
    held = PublishingBraking("c1")
    assert [held.apply(row) for row in rig.recorder.rows][-1] == "alarm"
    rig.broker.set_alarm("disk")
    rig.broker.clear_alarm("memory")
    rig.rest()
    assert len(client.methods(ConnectionBlocked)) == 1
    assert client.methods(ConnectionUnblocked) == []
    rig.broker.clear_alarm("disk")
    rig.rest()
    assert len(client.methods(ConnectionUnblocked)) == 1
    assert (throttle.state, rig.queue().ready, "p" in rig.broker.queues) == ("running", 1, True)


def test_a71_connections_can_be_opened_under_an_alarm_and_consumers_go_on() -> None:
    """Erratum 4; both alarms are told of in one text."""
    rig = Rig091()
    consumer, channel = rig.channel()
    declared(rig, channel)
    flood(channel, 3)
    channel.send(BasicQos(prefetch_count=1))
    channel.send(BasicConsume(queue="q", consumer_tag="t"))
    rig.rest()
    rig.broker.set_alarm("memory")
    rig.broker.set_alarm("disk")
    for tag in (1, 2, 3):
        channel.send(BasicAck(delivery_tag=tag))
        rig.rest()
    assert len(consumer.bodies) == 3
    publisher, other = rig.channel("c2")
    flood(other, 1)
    rig.rest()
    assert [m.reason for m in publisher.methods(ConnectionBlocked)] == ["low on disk & memory"]
    silent, third = rig.channel("c3", properties={})
    flood(third, 1)
    rig.rest()
    assert silent.methods(ConnectionBlocked) == []
    assert rig.ends["c3"].throttle.blocked


def test_b11_b12_memory_that_queues_hold_sets_the_alarm_for_every_connection() -> None:
    """From accounting: no switch was thrown; it ends when the queue is purged."""
    rig = Rig091()
    client, channel = rig.channel()
    declared(rig, channel)
    rig.broker.watch_memory(1_000_000)
    for _ in range(300):
        channel.publish("", "q", bytes(10_000))
    rig.rest()
    assert rig.broker.alarms == ["memory"]
    assert len(client.methods(ConnectionBlocked)) == 1
    assert rig.broker.held_octets > 1_000_000
    ready = rig.queue().ready
    assert 80 < ready < 130
    _, other = rig.channel("c2")
    flood(other, 1)
    rig.rest()
    assert rig.ends["c2"].throttle.blocked
