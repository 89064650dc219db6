"""A real client against the live broker under RabbitMQ's presets."""

import time

import pytest

from tests.patience import TIMEOUT_S
from workbench.net import LiveBroker

proton = pytest.importorskip("proton", reason="needs python-qpid-proton")

from proton import Message, symbol  # noqa: E402  (only where the library is)
from proton.handlers import MessagingHandler  # noqa: E402
from proton.reactor import Container  # noqa: E402
from proton.utils import BlockingConnection  # noqa: E402


@pytest.fixture(params=["rmq4.0", "rmq4.3", "blog2024"])  # the last: sessions with mailboxes
def broker(request):
    with LiveBroker(request.param, queues=["q"]) as live:
        yield live


class Shuttle(MessagingHandler):
    """Sends as credit allows, receives with credit topped up, stops when all is back."""

    def __init__(self, url, count, **options):
        super().__init__(**options)
        self.url, self.count = url, count
        self.sent = self.confirmed = 0
        self.bodies = []
        self.most_credit = 0

    def on_start(self, event):
        connection = event.container.connect(self.url, allowed_mechs="ANONYMOUS")
        self.sender = event.container.create_sender(connection, "/queues/q")
        event.container.create_receiver(connection, "/queues/q")
        self.timer = event.container.schedule(TIMEOUT_S, self)

    def on_timer_task(self, event):
        event.container.stop()

    def on_sendable(self, event):
        self.most_credit = max(self.most_credit, event.sender.credit)
        while event.sender.credit and self.sent < self.count:
            event.sender.send(Message(body=self.sent))
            self.sent += 1

    def on_accepted(self, event):
        self.confirmed += 1
        self._maybe_stop(event)

    def on_message(self, event):
        self.bodies.append(event.message.body)
        self._maybe_stop(event)

    def _maybe_stop(self, event):
        if self.confirmed == self.count == len(self.bodies):
            self.timer.cancel()
            event.connection.close()


@pytest.mark.parametrize("prefetch", [10, pytest.param(1000, marks=pytest.mark.slow)])
def test_proton_sends_and_receives_2000_messages(broker, prefetch):
    """Both ways on one connection, credit topped up, over several grants and windows."""
    shuttle = Shuttle(broker.url, 2000, prefetch=prefetch)
    Container(shuttle).run()
    assert shuttle.bodies == list(range(2000))
    assert shuttle.confirmed == 2000
    assert shuttle.most_credit == 170
    assert broker.listener.failures == []


def test_proton_drains(broker):
    """drain on an empty queue gives the credit back."""
    connection = BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
    receiver = connection.create_receiver("/queues/q", credit=5)
    link = receiver.link
    link.drain(0)
    connection.wait(lambda: not link.draining(), msg="draining")
    assert link.credit == 0
    connection.close()


def test_an_alarm_holds_a_proton_sender_until_it_is_over(broker):
    """The message stays with the client, and goes out when the window opens."""
    live = broker.listener.broker
    broker.ask(lambda: live.set_alarm("memory"))
    connection = BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
    sender = connection.create_sender("/queues/q")
    assert sender.link.remote_properties is None
    assert connection.conn.remote_properties[symbol("product")] == "RabbitMQ"
    delivery = sender.link.send(Message(body="held"))
    with pytest.raises(Exception, match="timed out"):
        connection.wait(lambda: delivery.settled, timeout=0.3)
    assert broker.ask(lambda: live.queues["q"].queue.enqueued) == 0
    broker.ask(lambda: live.clear_alarm("memory"))
    connection.wait(lambda: delivery.settled, timeout=TIMEOUT_S)
    connection.close()


def test_a_stalled_queue_takes_255_messages_of_proton(broker):
    """On a socket as on the virtual wire."""
    live = broker.listener.broker
    broker.ask(lambda: live.declare("q").stall())
    connection = BlockingConnection(broker.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
    link = connection.create_sender("/queues/q").link
    deadline = time.monotonic() + TIMEOUT_S
    sent = 0
    while sent < 255 and time.monotonic() < deadline:
        connection.wait(lambda: link.credit > 0, timeout=TIMEOUT_S)
        while link.credit:
            link.send(Message(body=sent))
            sent += 1
    with pytest.raises(Exception, match="timed out"):
        connection.wait(lambda: link.credit > 0, timeout=0.3)
    assert sent == 255
    connection.conn.free()
