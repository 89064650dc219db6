"""pika, the client of RabbitMQ's tutorials, speaks AMQP 0-9-1 to the live broker."""

import threading

import pytest

from tests.clients.conftest import MESSAGES, PRESETS
from tests.patience import TIMEOUT_S, held_on, until
from workbench.net.serve import serve as serve_live

pika = pytest.importorskip("pika", reason="needs pika")

from pika.exceptions import (  # noqa: E402  (only where the library is)
    ChannelClosedByBroker,
    ConnectionClosed,
    NackError,
    ProbableAuthenticationError,
    StreamLostError,
    UnroutableError,
)

PREFETCH = 100


@pytest.fixture
def connect():
    """Connect; whatever is left open is closed after the test."""
    opened = []

    def make(broker, **more):
        parameters = pika.ConnectionParameters(
            broker.host, broker.port, socket_timeout=TIMEOUT_S, **more
        )
        opened.append(pika.BlockingConnection(parameters))
        return opened[-1]

    yield make
    for connection in opened:
        if connection.is_open:
            connection.close()


def consume(channel, queue, total):
    """Consume and acknowledge so many messages."""
    bodies = []
    for method, _properties, body in channel.consume(queue, inactivity_timeout=TIMEOUT_S):
        assert method is not None, f"after {len(bodies)} nothing has come for {TIMEOUT_S} s"
        bodies.append(body)
        channel.basic_ack(method.delivery_tag)
        if len(bodies) == total:
            break
    channel.cancel()
    return bodies


@pytest.mark.parametrize(
    ("preset", "total"),
    [
        (PRESETS[0], 1_000),
        *(pytest.param(preset, MESSAGES, marks=pytest.mark.slow) for preset in PRESETS),
    ],
)
def test_pika_publishes_and_consumes_with_prefetch_in_order(serve, connect, preset, total):
    """Each is confirmed, acknowledged, and none is left."""
    broker = serve(preset)
    channel = connect(broker).channel()
    channel.queue_declare("q", durable=True)
    confirmed = []
    channel.confirm_delivery()
    channel.add_on_return_callback(confirmed.append)
    for number in range(total):
        channel.basic_publish("", "q", b"%d" % number, mandatory=True)
    channel.basic_qos(prefetch_count=PREFETCH)
    assert consume(channel, "q", total) == [b"%d" % number for number in range(total)]
    assert confirmed == []
    broker.wait_for("q", "terminal", total)


def test_a_prefetch_limits_what_pika_has(serve, connect):
    """What is not acknowledged counts, an ack of multiple frees all, and a nack brings back."""
    broker = serve()
    channel = connect(broker).channel()
    channel.queue_declare("q", durable=True)
    for number in range(10):
        channel.basic_publish("", "q", b"%d" % number)
    channel.basic_qos(prefetch_count=3)
    got = []
    channel.basic_consume(
        "q", lambda _channel, method, _properties, body: got.append((method, body))
    )
    while len(got) < 3:
        channel.connection.process_data_events(TIMEOUT_S)
    broker.wait_for("q", "unsettled", 3)
    channel.basic_nack(got[2][0].delivery_tag)
    channel.basic_ack(got[1][0].delivery_tag, multiple=True)
    while len(got) < 6:
        channel.connection.process_data_events(TIMEOUT_S)
    assert [body for _, body in got] == [b"0", b"1", b"2", b"2", b"3", b"4"]
    assert [method.redelivered for method, _ in got] == [False] * 3 + [True] + [False] * 2


def test_what_has_no_queue_comes_back_to_pika(serve, connect):
    """mandatory: returned, with 312; a queue that rejects nacks."""
    channel = connect(serve()).channel()
    channel.confirm_delivery()
    with pytest.raises(UnroutableError) as caught:
        channel.basic_publish("", "nowhere", b"x", mandatory=True)
    (returned,) = caught.value.messages
    assert (returned.method.reply_code, returned.method.reply_text, returned.body) == (
        312, "NO_ROUTE", b"x",
    )  # fmt: skip
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    channel.queue_declare("full", durable=True, arguments=full)
    channel.basic_publish("", "full", b"x")
    with pytest.raises(NackError):
        channel.basic_publish("", "full", b"x")


def test_pika_declares_binds_gets_purges_and_deletes(serve, connect):
    """Exchanges route; a channel that asks for what is not there is closed, and no other."""
    connection = connect(serve())
    channel = connection.channel()
    channel.exchange_declare("trade", "topic")
    name = channel.queue_declare("", exclusive=True).method.queue
    assert name.startswith("amq.gen-")
    channel.queue_bind(name, "trade", "bill.#")
    for key in ("bill.a", "order.b", "bill.c.d"):
        properties = pika.BasicProperties(headers={"n": 7, "t": "é", "l": [1, True, None]})
        channel.basic_publish("trade", key, key.encode() * 50_000, properties)
    method, properties, body = channel.basic_get(name, auto_ack=True)
    assert (method.routing_key, method.message_count, body) == ("bill.a", 1, b"bill.a" * 50_000)
    assert properties.headers == {"n": 7, "t": "é", "l": [1, True, None]}
    other = connection.channel()
    with pytest.raises(ChannelClosedByBroker) as caught:
        other.queue_declare("nowhere", passive=True)
    assert caught.value.reply_code == 404
    assert channel.queue_purge(name).method.message_count == 1
    channel.queue_delete(name)
    channel.exchange_delete("trade")


def test_pika_is_told_that_its_consumer_is_cancelled(serve, connect):
    """The queue is deleted by another: basic.cancel comes, and the channel lives."""
    broker = serve()
    channel = connect(broker).channel()
    channel.queue_declare("q", durable=True)
    cancelled = []
    channel.add_on_cancel_callback(cancelled.append)
    channel.basic_consume("q", lambda *_: None, consumer_tag="mine")
    connect(broker).channel().queue_delete("q")
    while not cancelled:
        channel.connection.process_data_events(TIMEOUT_S)
    assert cancelled[0].method.consumer_tag == "mine"
    assert channel.is_open


def test_pika_hears_that_it_is_blocked_by_an_alarm(serve, connect):
    """At its first publish, not before; it goes on when the alarm is over."""
    broker = serve()
    inside = broker.live.listener.broker
    broker.live.ask(inside.set_alarm)
    connection = connect(broker)
    heard = []
    connection.add_on_connection_blocked_callback(
        lambda _, frame: heard.append(frame.method.reason)
    )
    connection.add_on_connection_unblocked_callback(lambda _, __: heard.append("over"))
    channel = connection.channel()
    channel.queue_declare("q", durable=True)
    assert heard == []
    channel.basic_publish("", "q", b"x" * 100_000)
    while not heard:
        connection.process_data_events(TIMEOUT_S)
    assert broker.count("q") == 0
    broker.live.ask(inside.clear_alarm)
    while len(heard) < 2:
        connection.process_data_events(TIMEOUT_S)
    broker.wait_for("q", "ready", 1)
    assert heard == ["low on memory", "over"]


def test_pika_reconnects_and_no_confirmed_message_is_lost(serve, connect):
    """Cut without a word while it publishes; whether the one on its way arrived is not known."""
    broker = serve()
    channel = connect(broker).channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    waiting, confirmed, lost = list(range(200)), [], 0
    while waiting:
        if len(waiting) == 100 and not lost:
            broker.cut()
        try:
            channel.basic_publish("", "q", b"%d" % waiting[0])
        except (StreamLostError, ConnectionClosed):
            lost += 1
            channel = connect(broker).channel()
            channel.confirm_delivery()
            continue
        confirmed.append(waiting.pop(0))
    assert lost == 1
    total = broker.count("q")
    bodies = consume(connect(broker).channel(), "q", total)
    assert {int(body) for body in bodies} == set(confirmed)
    assert total - len(confirmed) in (0, 1)


def test_pika_is_let_in_with_its_password_alone(serve, connect):
    """403, as a connection.close that names it."""
    broker = serve(users={"ann": "secret"})
    with pytest.raises(ProbableAuthenticationError):
        connect(broker)
    credentials = pika.PlainCredentials("ann", "secret")
    assert connect(broker, credentials=credentials).is_open


@pytest.mark.slow
def test_pika_in_many_threads_is_served(serve, connect):
    """Ten connections publish and consume at once; each gets what it has sent."""
    broker = serve()
    failed = []

    def work(name):
        try:
            channel = connect(broker).channel()
            channel.queue_declare(name, durable=True)
            for number in range(500):
                channel.basic_publish("", name, b"%d" % number)
            channel.basic_qos(prefetch_count=10)
            assert consume(channel, name, 500) == [b"%d" % number for number in range(500)]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(f"q{n}",)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert failed == []


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_message_crosses_from_pika_to_proton_and_back(serve, connect, kind):
    """Published over one protocol, consumed over the other, with its properties."""
    proton = pytest.importorskip("proton", reason="needs python-qpid-proton")
    from proton.utils import BlockingConnection

    broker = serve()
    channel = connect(broker).channel()
    channel.queue_declare("q", durable=True, arguments={"x-queue-type": kind})
    there = BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
    receiver = there.create_receiver("/queues/q", credit=1)
    properties = pika.BasicProperties(
        content_type="text/plain", correlation_id="c7", headers={"n": 7}, delivery_mode=2
    )
    channel.basic_publish("", "q", b"hello", properties)
    message = receiver.receive(timeout=TIMEOUT_S)
    receiver.accept()
    assert bytes(message.body) == b"hello"
    assert (message.content_type, message.correlation_id) == ("text/plain", "c7")
    assert (message.properties["n"], message.durable) == (7, True)
    receiver.close()
    sender = there.create_sender("/queues/q")
    sender.send(
        proton.Message(body=b"back", inferred=True, properties={"m": "x"}, reply_to="/queues/r")
    )
    (method, found, body) = channel.basic_get("q")
    channel.basic_ack(method.delivery_tag)
    assert (body, found.headers["m"]) == (b"back", "x")
    there.close()


def test_pika_goes_through_a_proxy_that_reads_and_holds_its_frames(serve, connect):
    """Each frame is observed once; a publish waits at the gate until it is let go."""
    behind = serve()
    with serve_live(forward=f"127.0.0.1:{behind.port}") as proxy:
        channel = connect(proxy).channel()
        channel.queue_declare("q", durable=True)
        wire = proxy.wire()
        wire.hold()
        channel.basic_publish("", "q", b"held")
        assert [frame.kind for frame in held_on(wire, 3)] == [
            "basic.publish", "content-header", "content-body",
        ]  # fmt: skip
        assert behind.count("q") == 0
        wire.free_run()
        channel.confirm_delivery()
        assert consume(channel, "q", 1) == [b"held"]
        channel.connection.close()
        until(lambda: not proxy.connections())
        frames = [row for row in proxy.rows() if row.frame_id is not None]
    assert len({row.frame_id for row in frames}) == len(frames)
    assert [row.kind for row in frames if row.kind.startswith("basic.")] == [
        "basic.publish", "basic.consume", "basic.consume-ok", "basic.deliver", "basic.ack",
        "basic.cancel", "basic.cancel-ok",
    ]  # fmt: skip
    joined, opened, *gone = proxy.news()
    assert joined.startswith("c1 is joined to amqp://127.0.0.1")
    assert opened.startswith("c1 is open: AMQP 0-9-1, product 'Pika")
    assert [line.partition(" socket")[2] for line in gone] == [" is closed"]
