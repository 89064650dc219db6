"""The brakes of RabbitMQ 1.5.0, 1.8.0 and 2.0.0, and what these releases do with what clients ask.

Read in the sources of the three releases; a raw client says what it likes.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frontends.rig091 import RMQ355, Rig091, said
from workbench import presets
from workbench.amqp091.frame import Frame
from workbench.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicDeliver,
    BasicPublish,
    BasicQos,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ConnectionBlocked,
    ConnectionClose,
    Properties,
    QueueDeclare,
    QueueDeclareOk,
    TxCommit,
    TxCommitOk,
    TxSelect,
)

RMQ15, RMQ18, RMQ20 = (presets.get(name) for name in ("rmq1.5", "rmq1.8", "rmq2.0"))
EACH = pytest.mark.parametrize("preset", [RMQ15, RMQ18, RMQ20, RMQ355], ids=lambda one: one.name)
TEN_SECONDS = 10_000_000


def flows(client: Any) -> list[tuple[str, bool]]:
    """channel.flow and flow-ok that came, in order."""
    return [(method.NAME, method.active) for method in client.methods(ChannelFlow, ChannelFlowOk)]


def closes(client: Any) -> list[tuple[str, int, str]]:
    return [
        (method.NAME, method.reply_code, method.reply_text)
        for method in client.methods(ChannelClose, ConnectionClose)
    ]


def publish(channel: Any, body: bytes = b"m", **flags: Any) -> None:
    """Without looking at what the broker has asked for."""
    method = BasicPublish(exchange="", routing_key="q", **flags)
    channel.send_content(method, body, Properties())


class Mute:
    """Lets a client leave channel.flow unanswered."""

    def __init__(self, client: Any) -> None:
        self.asked: list[Any] = []
        answer = client.amqp.answer

        def selective(event: Any) -> None:
            if isinstance(getattr(event, "method", None), ChannelFlow):
                self.asked.append(event)
            else:
                answer(event)

        client.amqp.answer = selective


# -- to every channel -------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [RMQ15, RMQ18], ids=lambda one: one.name)
def test_d6_d8_every_channel_is_asked_to_stop_and_to_go_on(preset) -> None:
    """Of publishers and consumers alike, on each connection; a second alarm asks nobody again."""
    rig = Rig091(preset)
    first, _ = rig.channel("c1")
    rig.open(first)
    second, _ = rig.channel("c2")
    rig.broker.set_alarm("memory")
    rig.broker.set_alarm("disk")
    rig.rest()
    assert [flows(client) for client in (first, second)] == [
        [("channel.flow", False)] * 2,
        [("channel.flow", False)],
    ]
    rig.broker.clear_alarm("memory")
    rig.rest()
    assert ("channel.flow", True) not in flows(second)
    rig.broker.clear_alarm("disk")
    rig.rest()
    assert flows(second) == [("channel.flow", False), ("channel.flow", True)]
    assert flows(first)[2:] == [("channel.flow", True)] * 2


def test_d6_a_channel_that_opens_during_the_alarm_is_asked_in_1_5() -> None:
    """Right after its open-ok; and with the others to go on."""
    rig = Rig091(RMQ15)
    client = rig.connect()
    rig.broker.set_alarm()
    rig.open(client)
    assert flows(client) == [("channel.flow", False)]
    rig.broker.clear_alarm()
    rig.rest()
    assert flows(client)[1:] == [("channel.flow", True)]
    rig.open(client)
    assert len(flows(client)) == 2


def test_a_channel_that_opens_during_the_alarm_waits_in_1_8() -> None:
    """For its open-ok, until the alarm is over; nobody asks it to stop then."""
    rig = Rig091(RMQ18)
    client = rig.connect()
    rig.broker.set_alarm()
    channel = client.amqp.open_channel()
    rig.rest()
    assert not channel.opened
    rig.broker.clear_alarm()
    rig.rest()
    assert channel.opened and flows(client) == []


def test_the_alarm_jumps_the_queue_of_what_waits_for_the_channel() -> None:
    """Messages that have been read are taken all the same, after flow has gone out."""
    rig = Rig091(RMQ15, channel_us=100)
    client, channel = rig.channel()
    rig.broker.declare("q")
    for _ in range(5):
        publish(channel)
    rig.clock.step()
    rig.broker.set_alarm()
    while not flows(client):
        rig.clock.step()
    assert rig.queue().ready < 5
    rig.rest()
    assert rig.queue().ready == 5


# -- who does not stop ------------------------------------------------------------------------


def test_d7_whoever_goes_on_publishing_is_served_in_1_5() -> None:
    """With flow-ok or without it: nobody looks."""
    rig = Rig091(RMQ15)
    rig.broker.declare("q")
    client, channel = rig.channel()
    mute, silent = rig.channel("c2")
    Mute(mute)
    rig.broker.set_alarm()
    rig.rest()
    for one in (channel, silent):
        publish(one)
    rig.clock.call_later(3 * TEN_SECONDS, lambda: None)
    rig.rest()
    assert rig.queue().ready == 2
    assert closes(client) == closes(mute) == []


def test_whoever_publishes_after_its_flow_ok_loses_the_connection_in_1_8() -> None:
    """command-invalid, which is the connection's; before its flow-ok it is served."""
    rig = Rig091(RMQ18, latency_us=1_000)
    rig.broker.declare("q")
    client, channel = rig.channel()
    rig.broker.set_alarm()
    publish(channel)  # it crosses the broker's question
    rig.rest()
    assert rig.queue().ready == 1 and closes(client) == []
    publish(channel)
    rig.rest()
    text = "COMMAND_INVALID - basic.publish received after channel.flow_ok{active=false}"
    assert closes(client) == [("connection.close", 503, text)]
    assert rig.queue().ready == 1


def test_whoever_does_not_answer_for_ten_seconds_loses_the_channel_in_1_8() -> None:
    """precondition-failed; until then what it publishes is taken."""
    rig = Rig091(RMQ18, queue_enqueue_us=0)
    rig.broker.declare("q")
    client, channel = rig.channel()
    Mute(client)
    rig.broker.set_alarm()
    rig.clock.call_later(TEN_SECONDS - 1, publish, channel)
    rig.clock.call_later(TEN_SECONDS - 1, lambda: closed_before.extend(closes(client)))
    closed_before: list[Any] = []
    rig.rest()
    assert closed_before == [] and rig.queue().ready == 1
    text = "PRECONDITION_FAILED - timeout waiting for channel.flow_ok{active=false}"
    assert closes(client) == [("channel.close", 406, text)]
    assert rig.clock.now_us == TEN_SECONDS


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ([False, False], "unsolicited channel.flow_ok"),
        ([True], "received channel.flow_ok{active=true} has incorrect polarity"),
    ],
)
def test_an_answer_that_nobody_asked_for_closes_the_connection_in_1_8(answers, text) -> None:
    """1.5 looks at none."""
    for preset, closed in ((RMQ15, []), (RMQ18, [text])):
        rig = Rig091(preset)
        client, channel = rig.channel()
        Mute(client)
        rig.broker.set_alarm()
        rig.rest() if preset is RMQ15 else None
        for active in answers:
            channel.send(ChannelFlowOk(active=active))
        rig.rest()
        assert [told.partition(" - ")[2] for _, _, told in closes(client)] == closed


def test_an_alarm_that_is_over_before_the_answer_is_told_after_it_in_1_8() -> None:
    """One question at a time: as many of false as of true, and the client may publish."""
    rig = Rig091(RMQ18, latency_us=1_000)
    rig.broker.declare("q")
    client, channel = rig.channel()
    rig.broker.set_alarm()
    rig.broker.clear_alarm()
    rig.rest()
    assert flows(client) == [("channel.flow", False), ("channel.flow", True)]
    publish(channel)
    rig.rest()
    assert rig.queue().ready == 1 and closes(client) == []


def test_2_0_stops_the_reader_and_tells_nobody() -> None:
    """As later ones do, which tell by connection.blocked whoever understands it."""
    for preset, told in ((RMQ20, 0), (RMQ355, 1)):
        rig = Rig091(preset)
        rig.broker.declare("q")
        client, channel = rig.channel()
        rig.broker.set_alarm()
        publish(channel)
        publish(channel)
        rig.rest()
        assert rig.queue().ready == 0
        assert rig.ends["c1"].throttle.state == "blocked"
        assert flows(client) == [] and len(client.methods(ConnectionBlocked)) == told
        rig.broker.clear_alarm()
        rig.rest()
        assert rig.queue().ready == 2


# -- what clients ask for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "answers", "comes"),
    [
        (RMQ15, [True, True], 3),
        (RMQ18, [False, True], 1),
        (RMQ20, [False, True], 1),
        (RMQ355, [540], 1),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_d3_a_client_s_own_channel_flow_by_release(preset, answers, comes) -> None:
    """1.5 answers true and goes on; 1.8 to 3.2 stop deliveries; from 3.3 on that is refused."""
    rig = Rig091(preset)
    queue = rig.broker.declare("q")
    client, channel = rig.channel()
    channel.send(BasicConsume(queue="q", consumer_tag="c"))
    rig.rest()
    _, publisher = rig.channel("c2")
    publish(publisher)
    rig.rest()
    channel.send(ChannelFlow(active=False))
    rig.rest()
    publish(publisher)
    publish(publisher)
    rig.rest()
    assert len(client.messages()) == comes
    if answers == [540]:
        assert [code for _, code, _ in closes(client)] == answers
        return
    channel.send(ChannelFlow(active=True))
    rig.rest()
    assert flows(client) == [("channel.flow-ok", active) for active in answers]
    assert len(client.messages()) == 3 and queue.queue.ready == 0


@pytest.mark.parametrize(
    ("preset", "limit"),
    [(RMQ15, (5, 5)), (RMQ18, (2, 0)), (RMQ20, (2, 0)), (RMQ355, (2, 2))],
    ids=lambda one: getattr(one, "name", ""),
)
def test_d13_basic_qos_by_release(preset, limit) -> None:
    """1.5 answers and limits nothing; up to 3.2 it limits the channel, then each consumer."""
    rig = Rig091(preset)
    for name in ("q", "r"):
        rig.broker.declare(name)
    client, channel = rig.channel()
    channel.send(BasicQos(prefetch_count=2))
    channel.send(BasicConsume(queue="q", consumer_tag="q"))
    channel.send(BasicConsume(queue="r", consumer_tag="r"))
    rig.rest()
    _, publisher = rig.channel("c2")
    for queue in ("q", "r"):
        for _ in range(5):
            publisher.publish("", queue, b"m")
        rig.rest()
    tags = [method.consumer_tag for method in client.methods(BasicDeliver)]
    assert (tags.count("q"), tags.count("r")) == limit


@EACH
def test_d14_an_immediate_message_is_returned_with_313_where_no_consumer_takes_it(preset) -> None:
    """It is in no queue then; one that a consumer takes is delivered. From 3.0 on it is refused."""
    rig = Rig091(preset)
    rig.broker.declare("q")
    client, channel = rig.channel()
    publish(channel, immediate=True)
    rig.rest()
    if preset is RMQ355:
        assert [code for _, code, _ in closes(client)] == [540]
        return
    assert [method.reply_code for method in client.methods(BasicReturn)] == [313]
    assert rig.queue().ready == 0
    consumer, consuming = rig.channel("c2")
    consuming.send(BasicConsume(queue="q", consumer_tag="c"))
    rig.rest()
    publish(channel, b"taken", immediate=True)
    rig.rest()
    assert consumer.bodies == [b"taken"]
    assert len(client.methods(BasicReturn)) == 1


def test_d14_an_immediate_message_comes_back_only_if_none_of_its_queues_delivers_it() -> None:
    """And with 313 if it is routed to none at all; mandatory comes first, with 312."""
    rig = Rig091(RMQ15)
    for name in ("q", "r"):
        rig.broker.declare(name)
        rig.broker.vhost.bind("amq.fanout", name)
    client, channel = rig.channel()
    _, consuming = rig.channel("c2")
    consuming.send(BasicConsume(queue="r", consumer_tag="c"))
    rig.rest()
    both = BasicPublish(exchange="amq.fanout", immediate=True)
    channel.send_content(both, b"m", Properties())
    rig.rest()
    assert client.methods(BasicReturn) == []
    for flags in ({}, {"mandatory": True}):
        nowhere = BasicPublish(exchange="", routing_key="none", immediate=True, **flags)
        channel.send_content(nowhere, b"m", Properties())
        rig.rest()
    assert [method.reply_code for method in client.methods(BasicReturn)] == [313, 312]


@pytest.mark.parametrize(
    ("preset", "old_ones", "too_many"),
    [(RMQ15, 1, 3), (RMQ20, 1, 3), (RMQ355, 0, 2)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_d16_d17_ages_and_lengths_are_not_in_1_5_and_came_later(preset, old_ones, too_many) -> None:
    """An expiration is not looked at, nor is a queue's greatest length."""
    rig = Rig091(preset)
    client, channel = rig.channel()
    for name, arguments in (("q", {}), ("short", {"x-max-length": 2})):
        channel.send(QueueDeclare(queue=name, arguments=arguments))
    rig.rest()
    assert len(client.methods(QueueDeclareOk)) == 2
    channel.publish("", "q", b"m", Properties(expiration="1000"))
    for _ in range(3):
        channel.publish("", "short", b"m")
    rig.clock.call_later(2_000_000, lambda: None)
    rig.rest()
    assert (rig.queue().ready, rig.queue("short").ready) == (old_ones, too_many)


def test_d17_a_last_image_is_what_a_queue_of_length_one_keeps_since_3_1() -> None:
    """A newer message throws the older one away; no release has more of last-image caching."""
    rig = Rig091(RMQ355)
    client, channel = rig.channel()
    channel.send(QueueDeclare(queue="q", arguments={"x-max-length": 1}))
    for body in (b"first", b"second", b"third"):
        channel.publish("", "q", body)
    rig.rest()
    channel.send(BasicConsume(queue="q", consumer_tag="c"))
    rig.rest()
    assert client.bodies == [b"third"]


@settings(max_examples=40, deadline=None)
@given(
    preset=st.sampled_from([RMQ15, RMQ18]),
    latency_us=st.sampled_from([0, 1_500]),
    steps=st.lists(st.sampled_from(["set", "clear", "open", "wait"]), max_size=14),
)
def test_each_channel_is_told_to_go_on_as_often_as_it_was_told_to_stop(
    preset, latency_us, steps
) -> None:
    """Over any alarms, whenever it opened, and wherever its answers are: it may publish again."""
    rig = Rig091(preset, latency_us=latency_us)
    client = rig.connect()
    channels = []
    for step in [*steps, "clear"]:
        if step == "set":
            rig.broker.set_alarm()
        elif step == "clear":
            rig.broker.clear_alarm()
        elif step == "open":
            channels.append(client.amqp.open_channel())
        else:
            rig.clock.call_later(1_000, lambda: None)
            rig.clock.step()
    rig.rest()
    told = [
        (event.channel, event.method.active)
        for event in client.events
        if isinstance(getattr(event, "method", None), ChannelFlow)
    ]
    for channel in channels:
        mine = [active for one, active in told if one is channel]
        assert mine == [False, True] * (len(mine) // 2)
        assert channel.opened and channel.counters.publishing
    assert closes(client) == []


# -- between processes ------------------------------------------------------------------------


def test_processes_of_1_5_count_no_credit() -> None:
    """A queue that hangs has everything in its mailbox, and no reader stops."""
    for preset, most in ((RMQ15, 900), (RMQ355, 400)):
        rig = Rig091(preset)
        queue = rig.broker.declare("q")
        queue.stall()
        _, channel = rig.channel()
        for _ in range(900):
            publish(channel)
        rig.rest()
        assert queue.mailbox == most


def test_a_commit_waits_behind_what_was_published_before_in_1_5() -> None:
    """There an acknowledgement is a message in the queue's mailbox like any other."""
    for preset, waits in ((RMQ15, 20 * 1_000), (RMQ355, 0)):
        rig = Rig091(preset, queue_enqueue_us=1_000, queue_deliver_us=0)
        queue = rig.broker.declare("q")
        _, publisher = rig.channel("c2")
        client, channel = rig.channel()
        publish(publisher)
        rig.rest()
        channel.send(BasicConsume(queue="q", consumer_tag="c"))
        channel.send(TxSelect())
        rig.rest()
        for _ in range(20):
            publish(publisher)
        while queue.mailbox < 20:
            rig.clock.step()
        began = rig.clock.now_us
        channel.send(BasicAck(delivery_tag=1))
        channel.send(TxCommit())
        while not client.methods(TxCommitOk):
            rig.clock.step()
        assert rig.clock.now_us - began == waits


CLOSE, CLOSE_OK = Frame(1, ChannelClose()), Frame(1, ChannelCloseOk())
OPEN, WRONG = Frame(1, ChannelOpen()), Frame(1, BasicAck(delivery_tag=9))


@pytest.mark.parametrize("preset", [RMQ15, RMQ18, RMQ20], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("frames", "answers"),
    [
        ([CLOSE, CLOSE], ["channel.close-ok", "connection.close 504"]),
        ([CLOSE, CLOSE_OK], ["channel.close-ok", "connection.close 504"]),
        ([CLOSE, Frame(1, BasicQos())], ["channel.close-ok", "connection.close 504"]),
        ([CLOSE, OPEN], ["channel.close-ok", "channel.open-ok"]),
        ([WRONG, CLOSE], ["channel.close 406"]),
    ],
    ids=["a close", "a close-ok", "a method", "an open", "an error before"],
)
def test_before_2_4_a_number_is_free_as_soon_as_its_close_is_read(preset, frames, answers) -> None:
    """What comes then is a new channel's; a close that meets the broker's own has no answer.

    `rabbit_reader.erl:handle_frame`, 1.5.0 (`check_for_close`), 1.8.0 and 2.0.0.
    """
    rig = Rig091(preset, channel_us=10)
    client, _ = rig.channel()
    before = len(said(rig))
    for frame in frames:
        client.wire.send(client, frame)
    client.writable = False  # it answers nothing
    rig.rest()
    assert said(rig)[before:] == answers


@pytest.mark.parametrize("preset", [RMQ15, RMQ18, RMQ20], ids=lambda one: one.name)
def test_before_2_4_a_close_that_meets_the_broker_s_own_has_no_answer(preset) -> None:
    """Its channel waits for close-ok alone, whichever was read first; 2.0.0 means to answer it."""
    rig = Rig091(preset, channel_us=10)
    client, _ = rig.channel()
    before = len(said(rig))
    for frame in (WRONG, CLOSE):
        client.wire.send(client, frame)
    client.writable = False
    rig.rest()
    for frame in (CLOSE, CLOSE_OK, OPEN):
        client.wire.send(client, frame)
    rig.rest()
    assert said(rig)[before:] == ["channel.close 406", "channel.open-ok"]
