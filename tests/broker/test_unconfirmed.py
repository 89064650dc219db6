"""What becomes of a published message in the broker's words: confirmed, refused, unroutable."""

import pytest

from tests.test_layers import in_fresh_python
from workbench import presets
from workbench.broker import CONFIRMED, UNROUTABLE, Broker, Refused
from workbench.queues import Message, Origin, QueueArguments
from workbench.sim import VirtualClock

FULL = QueueArguments(max_length=0, overflow="reject-publish")
KINDS = {"open": QueueArguments(), "quorum": QueueArguments(queue_type="quorum"), "full": FULL}


def broker_with(*kinds):
    """A broker with a queue of each of these kinds, named after it."""
    broker = Broker(VirtualClock(), presets.get("rmq4.3"))
    for kind in kinds:
        broker.declare(kind, KINDS[kind])
    broker.clock.run_until_rest()
    return broker


def published(broker, *names, then=lambda: None):
    """Outcomes of one message for these queues, when all is at rest."""
    told = []
    queues = [broker.queues[name] for name in names]
    broker.vhost.publish(queues, Message(payload=b"m"), Origin(), told.append)
    then()
    broker.clock.run_until_rest()
    return told


@pytest.mark.parametrize(
    ("queues", "outcome"),
    [
        ("", UNROUTABLE),
        ("open", CONFIRMED),
        ("quorum", CONFIRMED),
        ("open quorum", CONFIRMED),
        ("full", Refused("maxlen", "full")),
        ("open full", Refused("maxlen", "full")),
        ("full quorum", Refused("maxlen", "full")),
    ],
)
def test_the_outcome_is_told_once(queues, outcome):
    """Every queue has to take it, and the first that does not decides."""
    names = queues.split()
    assert published(broker_with(*names), *names) == [outcome]


@pytest.mark.parametrize(
    ("queues", "deleted", "outcome"),
    [
        ("open", "open", UNROUTABLE),
        ("quorum", "quorum", UNROUTABLE),
        ("open quorum", "open", CONFIRMED),
        ("open quorum", "quorum", CONFIRMED),
        ("open quorum", "open quorum", UNROUTABLE),
    ],
)
def test_a_queue_that_is_deleted_meanwhile_is_not_waited_for(queues, deleted, outcome):
    """Others decide; with none left nobody has the message."""
    broker = broker_with(*queues.split())

    def delete():
        for name in deleted.split():
            broker.delete(name)

    assert published(broker, *queues.split(), then=delete) == [outcome]


class Connection:
    """A connection of no protocol at all."""

    name = "c1"
    held_octets = 7

    def __init__(self):
        self.told = []

    def resource_alarm(self, on):
        self.told.append(on)

    def queue_deleted(self, queue):
        self.told.append(queue.name)

    def overview(self):
        return {"state": "open"}


def test_a_connection_hears_of_alarms_and_deleted_queues():
    """The first alarm and the end of the last; what it does about them is its own."""
    broker = broker_with("open")
    connection = broker.connections["c1"] = Connection()
    for resource in ("memory", "disk"):
        broker.set_alarm(resource)
    broker.set_alarm("disk")
    broker.clear_alarm("memory")
    broker.delete("open")
    broker.clear_alarm("disk")
    broker.clear_alarm("disk")
    broker.clock.run_until_rest()
    assert connection.told == [True, False, "open"]
    assert (broker.held_octets, broker.overview()["c1.state"]) == (7, "open")


def test_the_broker_loads_no_protocol():
    """Queues, routing and dead letters run without an endpoint in memory."""
    loaded = in_fresh_python(
        "import sys, workbench.broker, workbench.broker.quorum_process;"
        "print(*[name for name in sys.modules if name.startswith('workbench.amqp10')])"
    )
    assert loaded.split() == []
