"""Real clients, unmodified, against the live broker: each gets a broker and its queues."""

import contextlib
import json
import os
import subprocess
import time

import pytest

from tests.patience import TIMEOUT_S
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.performatives import Error
from workbench.amqp10.states import ConnectionState
from workbench.net import LiveBroker

MESSAGES = 10_000
PRESETS = ("rmq4.3", "rmq4.0")


class Served:
    """A live broker as a test sees it.

    Attributes:
        live: the broker.
        host, port: where it listens.
        url: the same for a client.
    """

    def __init__(self, live):
        self.live = live
        self.host, self.port, self.url = live.host, live.port, live.url

    def declare(self, name):
        """Make a queue; gives the address that clients of RabbitMQ 4 write."""
        address = f"/queues/{name}"
        self.live.ask(lambda: self.live.listener.broker.declare(name))
        return address

    def count(self, queue, what="ready"):
        """A number of a queue's overview."""
        return self.live.overview()[f"queue:{queue}.{what}"]

    def wait_for(self, queue, what, number):
        """Wait until a number of a queue's overview is reached."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.count(queue, what) != number:
            assert time.monotonic() < deadline, f"{what} is {self.count(queue, what)}"
            time.sleep(0.01)

    def cut(self):
        """Cut every connection without a word; tells how many there were."""

        def drop():
            found = list(self.live.listener.connections.values())
            for connection in found:
                connection.drop()
            return len(found)

        return self.live.ask(drop)

    def close_all(self):
        """Close every connection with amqp:connection:forced, as an operator of RabbitMQ may."""
        error = Error(condition=ErrorCondition.CONNECTION_FORCED, description="by hand")

        def close():
            for connection in self.live.listener.connections.values():
                if connection.broker_end.amqp.state is ConnectionState.OPENED:
                    connection.broker_end.amqp.close(error)

        self.live.ask(close)


@pytest.fixture
def serve():
    """Start brokers; they are stopped after the test, and none of their code may have failed."""
    with contextlib.ExitStack() as stack:
        brokers = []

        def start(preset="rmq4.3", **more):
            brokers.append(stack.enter_context(LiveBroker(preset, **more)))
            return Served(brokers[-1])

        yield start
        for broker in brokers:
            assert broker.listener.failures == []


@pytest.fixture
def node(modules):
    """Start `client.js` of a folder by node; what is left of it ends with the test."""
    running = []

    def start(folder, broker, act, **options):
        options |= {"act": act, "port": broker.port}
        running.append(
            subprocess.Popen(
                ["node", str(folder / "client.js"), json.dumps(options)],
                env={**os.environ, "NODE_PATH": str(modules)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def result(process):
    """What a client of node says at its end."""
    out, complaints = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, complaints
    return json.loads(out)
