"""What the live broker may hold: the memory alarm, and the bound on unfinished deliveries."""

import dataclasses

import pytest

from tests.net.still import StillServer
from workbench import presets
from workbench.amqp10.frame import Frame, encode_item
from workbench.amqp10.performatives import Flow, Transfer
from workbench.net import LiveBroker
from workbench.queues import Message, QueueArguments

MB = 1_000_000
HEAD = b"\x00\x53\x75\xb0"  # of a data section, before its size of four octets
LIMIT = 64 * MB
FRAME = 131_072


def message(size):
    """An encoded message of so many octets."""
    return HEAD + (size - 8).to_bytes(4, "big") + bytes(size - 8)


def windows(client):
    """The incoming-windows that the broker's flows have told, in order."""
    performatives = (getattr(item, "performative", None) for item in client.received)
    return [each.incoming_window for each in performatives if isinstance(each, Flow)]


def publish_until_alarm(broker, client, link, settled):
    """Publish messages of 1 MB as fast as credit and window allow; returns how many were begun."""
    payload, begun = message(MB), 0
    closed = lambda: windows(client)[-1] == 0  # noqa: E731
    while not closed():
        assert begun < 200, "no alarm"
        delivery = link.send(payload, settled=settled)
        begun += 1
        client.pump(lambda: closed() or (delivery.complete and link.obstacle is None))  # noqa: B023
    return begun


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_what_queues_hold_stays_near_the_watermark_until_it_leaves(raw_client, kind, settled):
    """64 MB are held and the windows close; the alarm is over when the queue is deleted."""
    numbers = {"vm_memory_high_watermark": LIMIT}
    preset = presets.configured(presets.get("rmq4.3"), numbers)
    with StillServer(preset, record=False) as broker:
        arguments = QueueArguments(queue_type=kind)
        broker.ask(lambda: broker.listener.broker.declare("q", arguments))
        client = raw_client(broker, max_frame_size=FRAME).open()
        session = client.session()
        begun = publish_until_alarm(broker, client, client.sender(session, "/queues/q"), settled)
        seen = broker.overview()
        assert seen["alarms"] == "memory"
        # What had left the client before it heard of the alarm still comes: 400 frames at most.
        assert LIMIT < seen["memory.held"] <= LIMIT + LIMIT // 32 + 400 * FRAME
        assert begun >= 60
        assert any("memory alarm: " in line for line in broker.news())
        broker.ask(lambda: broker.listener.broker.delete("q"))
        client.pump(lambda: broker.overview()["alarms"] == "" or client.closed)
        assert broker.overview()["alarms"] == ""
        assert broker.overview()["memory.held"] < 2 * MB
        assert broker.listener.failures == []


def test_the_news_of_an_alarm_are_true_of_every_protocol():
    """Only AMQP 1.0 has windows that close; of 0-9-1 the connections that publish are not read."""
    preset = presets.configured(presets.get("rmq3.8.4"), {"vm_memory_high_watermark": LIMIT})
    with LiveBroker(preset) as broker:
        listener = broker.listener

        def fill():
            listener.broker.declare("q").publish(Message(payload=bytes(2 * LIMIT)))
            listener.memory.check()

        broker.ask(fill)
        (line,) = broker.news()
    assert line.startswith("memory alarm: ")
    assert line.endswith(": publishers of AMQP 1.0 and 0-9-1 are held until messages have left")


def test_an_alarm_that_a_person_has_set_is_not_cleared_by_the_monitor():
    """Memory is there, and yet the alarm stays until the person clears it."""
    with LiveBroker("rmq4.3") as broker:
        listener = broker.listener
        broker.ask(lambda: listener.broker.set_alarm("memory"))
        broker.ask(listener.memory.check)
        assert broker.overview()["alarms"] == "memory"


def test_unfinished_deliveries_of_a_connection_are_bounded(raw_client):
    """Many messages are begun and none is finished: the session ends, and nothing is kept."""
    preset = dataclasses.replace(presets.get("rmq4.3"), unfinished_octets=2 * MB)
    with LiveBroker(preset, queues=["q"]) as broker:
        client = raw_client(broker, max_frame_size=FRAME).open()
        session = client.session()
        links = [client.sender(session, "/queues/q", name=f"l{i}") for i in range(40)]
        for link in links:
            if client.errors():
                break
            first = message(MB)[:100_000]
            _begin_delivery(client, link, first)
            assert broker.overview()["memory.held"] <= 2 * MB + 200_000
        client.pump(lambda: client.errors())
        assert client.errors() == ["amqp:resource-limit-exceeded"]
        assert broker.overview()["memory.held"] < MB


def _begin_delivery(client, link, payload):
    """Send the first frame of a message, and leave the others out."""
    frame = Transfer(
        handle=link.handle, delivery_id=link.handle, delivery_tag=b"t", message_format=0, more=True
    )
    client.socket.sendall(encode_item(Frame(link.session.channel, frame, payload)))
    client.pump(lambda: True, strict=False)
