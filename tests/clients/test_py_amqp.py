"""py-amqp, Kombu's and so Celery's client, speaks AMQP 0-9-1 to the live broker."""

import pytest

from tests.clients.conftest import MESSAGES
from tests.patience import TIMEOUT_S

amqp = pytest.importorskip("amqp", reason="needs py-amqp")

PREFETCH = 100


@pytest.fixture
def connect():
    """Connect; whatever is left open is closed after the test."""
    opened = []

    def make(broker, **more):
        connection = amqp.Connection(f"{broker.host}:{broker.port}", read_timeout=TIMEOUT_S, **more)
        connection.connect()
        opened.append(connection)
        return connection

    yield make
    for connection in opened:
        connection.collect()


def consume(channel, queue, total):
    """Consume and acknowledge so many messages."""
    bodies = []

    def take(message):
        channel.basic_ack(message.delivery_tag)
        bodies.append(message.body)

    tag = channel.basic_consume(queue, callback=take)
    while len(bodies) < total:
        channel.connection.drain_events(timeout=TIMEOUT_S)
    channel.basic_cancel(tag)
    return bodies


@pytest.mark.parametrize("total", [300, pytest.param(MESSAGES, marks=pytest.mark.slow)])
def test_py_amqp_publishes_and_consumes_with_prefetch_in_order(serve, connect, total):
    """Each is confirmed, acknowledged, and none is left; it logs in with AMQPLAIN."""
    broker = serve()
    channel = connect(broker, confirm_publish=True).channel()
    channel.queue_declare("q", durable=True, auto_delete=False)
    for number in range(total):
        channel.basic_publish(amqp.Message(str(number)), routing_key="q")
    channel.basic_qos(0, PREFETCH, False)
    assert consume(channel, "q", total) == [str(number) for number in range(total)]
    broker.wait_for("q", "terminal", total)


def test_py_amqp_is_told_what_went_wrong(serve, connect):
    """Returned, refused, not there, not let in."""
    broker = serve(users={"ann": "secret"})
    with pytest.raises(amqp.AccessRefused):
        connect(broker)
    connection = connect(broker, userid="ann", password="secret", confirm_publish=True)
    channel = connection.channel()
    returned = []
    channel.events["basic_return"].add(lambda *what: returned.append(what))
    channel.basic_publish(amqp.Message("x"), routing_key="nowhere", mandatory=True)
    assert [what[0].reply_code for what in returned] == [312]
    with pytest.raises(amqp.NotFound):
        channel.queue_declare("nowhere", passive=True)
    assert connection.channel().queue_declare("", exclusive=True).queue.startswith("amq.gen-")


def test_py_amqp_hears_that_it_is_blocked(serve, connect):
    """At its first publish under an alarm, in words of its own; and of the end of it."""
    broker = serve()
    inside = broker.live.listener.broker
    heard = []
    connection = connect(broker, on_blocked=heard.append, on_unblocked=lambda: heard.append("over"))
    channel = connection.channel()
    channel.queue_declare("q", durable=True, auto_delete=False)
    broker.live.ask(inside.set_alarm)
    channel.basic_publish(amqp.Message("x"), routing_key="q")
    while not heard:
        connection.drain_events(timeout=TIMEOUT_S)
    broker.live.ask(inside.clear_alarm)
    while len(heard) < 2:
        connection.drain_events(timeout=TIMEOUT_S)
    assert heard[1:] == ["over"]
    broker.wait_for("q", "ready", 1)


def test_py_amqp_hears_of_cancels_and_connects_again(serve, connect):
    """Its consumer is told that the queue is deleted; when it is cut it gets an error."""
    broker = serve()
    connection = connect(broker)
    channel = connection.channel()
    channel.queue_declare("q", durable=True, auto_delete=False)
    cancelled = []
    channel.basic_consume("q", consumer_tag="mine", on_cancel=cancelled.append)
    connect(broker).channel().queue_delete("q")
    while not cancelled:
        connection.drain_events(timeout=TIMEOUT_S)
    assert cancelled == ["mine"]
    broker.cut()
    with pytest.raises(connection.recoverable_connection_errors):
        connection.drain_events(timeout=TIMEOUT_S)
    assert connect(broker).channel().queue_declare("q", durable=True).message_count == 0
