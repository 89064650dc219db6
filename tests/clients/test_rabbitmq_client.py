"""RabbitMQ's own Python client: it declares over the management node, and is told its version.

Publishing is one message at a time by the client's design: each call waits for the outcome.
"""

from datetime import timedelta

import pytest

from tests.clients.conftest import MESSAGES, PRESETS

pytest.importorskip("proton", reason="needs python-qpid-proton, which needs a compiler")
rabbit = pytest.importorskip(
    "rabbitmq_amqp_python_client", reason="needs rabbitmq-amqp-python-client"
)

from rabbitmq_amqp_python_client.qpid.proton.utils import SendException  # noqa: E402

CREDIT = 100


@pytest.fixture
def connect():
    """Open connections through the client's environment, which closes them after the test."""
    environments = []

    def make(broker):
        url = f"amqp://guest:guest@{broker.host}:{broker.port}/"
        recovery = rabbit.RecoveryConfiguration(back_off_reconnect_interval=timedelta(seconds=1))
        environments.append(rabbit.Environment(uri=url, recovery_configuration=recovery))
        connection = environments[-1].connection()
        connection.dial()
        return connection

    yield make
    for environment in environments:
        environment.close()


def address_of(queue):
    """The address that the client's helper writes."""
    return rabbit.AddressHelper.queue_address(queue)


def declare(connection, queue, **arguments):
    """Declare a classic queue over the management node."""
    management = connection.management()
    management.declare_queue(rabbit.ClassicQueueSpecification(name=queue, **arguments))
    return management


def publish(connection, queue, numbers):
    """Publish numbers; gives those that were accepted."""
    publisher = connection.publisher(address_of(queue))
    accepted = []
    for number in numbers:
        message = rabbit.Message(body=rabbit.Converter.string_to_bytes(str(number)))
        status = publisher.publish(message)
        if status.remote_state == rabbit.OutcomeState.ACCEPTED:
            accepted.append(number)
    publisher.close()
    return accepted


class EnoughError(Exception):
    """How a handler leaves `Consumer.run`, as in the client's own tests."""


class Taking(rabbit.AMQPMessagingHandler):
    """Accept messages until enough different ones have come."""

    def __init__(self, total):
        super().__init__()
        self.total = total
        self.bodies = []
        self.different = set()

    def on_amqp_message(self, event):
        self.bodies.append(int(rabbit.Converter.bytes_to_string(event.message.body)))
        self.different.add(self.bodies[-1])
        self.delivery_context.accept(event)
        if len(self.different) == self.total:
            raise EnoughError


def consume(connection, queue, total):
    """Consume until `total` different numbers have come; gives all that came."""
    handler = Taking(total)
    consumer = connection.consumer(address_of(queue), message_handler=handler, credit=CREDIT)
    with pytest.raises(EnoughError):
        consumer.run()
    connection.close()  # what was accepted last is written now
    return handler.bodies


@pytest.mark.slow
def test_rabbitmq_client_sends_and_receives_ten_thousand_messages_in_order(serve, connect):
    """Declared, sent one by one, received with credit topped up; none is left."""
    broker = serve("rmq4.3")
    connection = connect(broker)
    declare(connection, "orders")
    assert publish(connection, "orders", range(MESSAGES)) == list(range(MESSAGES))
    assert consume(connect(broker), "orders", MESSAGES) == list(range(MESSAGES))
    broker.wait_for("orders", "terminal", MESSAGES)


@pytest.mark.parametrize("preset", PRESETS)
def test_rabbitmq_client_declares_binds_asks_purges_and_deletes(serve, connect, preset):
    """All that its management offers, and a message goes where the binding says."""
    broker = serve(preset)
    connection = connect(broker)
    management = declare(connection, "bills")
    management.declare_exchange(rabbit.ExchangeSpecification(name="trade"))
    path = management.bind(
        rabbit.ExchangeToQueueBindingSpecification(
            source_exchange="trade", destination_queue="bills", binding_key="bill"
        )
    )
    publisher = connection.publisher(rabbit.AddressHelper.exchange_address("trade", "bill"))
    for number in range(5):
        publisher.publish(rabbit.Message(body=b"%d" % number))
    assert broker.count("bills") == 5
    info = management.queue_info("bills")
    assert (info.name, info.message_count) == ("bills", 5)
    assert management.purge_queue("bills") == 5
    management.unbind(path)
    with pytest.raises(SendException):
        publisher.publish(rabbit.Message(body=b"nowhere"))
    management.delete_queue("bills")
    management.delete_exchange("trade")
    assert "queue:bills.ready" not in broker.live.overview()


def test_rabbitmq_client_reconnects_and_no_accepted_message_is_lost(serve, connect):
    """Closed while it publishes: its recovery dials, and its publisher attaches anew.

    The client recovers from a close of the broker; a cut without a word it only reports.
    """
    broker = serve()
    connection = connect(broker)
    declare(connection, "orders")
    publisher = connection.publisher(address_of("orders"))
    waiting, accepted, closed = list(range(400)), [], 0
    while waiting:
        if len(waiting) == 200 and not closed:
            broker.close_all()
        try:
            publisher.publish(rabbit.Message(body=b"%d" % waiting[0]))
        except rabbit.ConnectionClosed:
            closed += 1  # by now it has connected again; whether the message arrived is not known
            continue
        accepted.append(waiting.pop(0))
    assert closed == 1
    assert set(consume(connect(broker), "orders", 400)) == set(accepted)
