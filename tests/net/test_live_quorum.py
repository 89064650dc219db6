"""Quorum queues on the wall clock, with a real client."""

import pytest

from tests.patience import TIMEOUT_S
from workbench.net import LiveBroker
from workbench.queues import QueueArguments

proton = pytest.importorskip("proton", reason="needs python-qpid-proton")

from proton import Message  # noqa: E402  (only where the library is)
from proton.utils import BlockingConnection  # noqa: E402

QUORUM = QueueArguments(queue_type="quorum")


@pytest.fixture
def live():
    with LiveBroker("rmq4.3") as broker:
        yield broker


def declare(live, replicas=3, fsync_us=1_000):
    """A quorum queue `q` on the broker's own thread; returns its cluster."""

    def make():
        live.listener.broker.configure(fsync_us=fsync_us)
        live.listener.broker.make_cluster(replicas)
        live.listener.broker.declare("q", QUORUM, replicas=replicas)
        return live.listener.broker.cluster

    return live.ask(make)


def test_a_real_client_publishes_and_consumes(live):
    """Twenty messages into three replicas and out again, in order, with a crash in between."""
    cluster = declare(live)
    connection = BlockingConnection(live.url, timeout=TIMEOUT_S, allowed_mechs="ANONYMOUS")
    sender = connection.create_sender("/queues/q")
    for number in range(10):
        sender.send(Message(body=number))
    live.ask(lambda: cluster.crash("n1"))
    for number in range(10, 20):
        sender.send(Message(body=number))
    receiver = connection.create_receiver("/queues/q", credit=20)
    bodies = []
    for _ in range(20):
        bodies.append(receiver.receive(timeout=TIMEOUT_S).body)
        receiver.accept()
    connection.close()
    assert bodies == list(range(20))
    assert live.ask(lambda: cluster.groups["q"].leader) in ("n2", "n3")
