"""What a server does for each protocol: here RabbitMQ's AMQP 1.0 sessions.

A front end stands between a protocol's endpoint and the broker, which knows none: it reads what is
published into messages, maps links onto queues and outcomes onto dispositions, and departs from the
specification where the real broker does. The plain reading of the specification is a policy too.
"""

from workbench.broker import Broker

from .addresses import queue_name
from .amqp091.connection import BrokerConnection091
from .connection import BrokerConnection
from .outgoing_link import CreditRule
from .payload import message_of


def accept_091(broker: Broker, name: str) -> BrokerConnection091:
    """The broker's end for a new AMQP 0-9-1 connection; connect it to a wire."""
    connection = BrokerConnection091(broker, name)
    broker.connections[name] = connection
    return connection


def accept(broker: Broker, name: str, credit_rule: CreditRule | None = None) -> BrokerConnection:
    """The broker's end for a new connection; connect it to a wire."""
    connection = BrokerConnection(broker, name, credit_rule)
    broker.connections[name] = connection
    return connection


__all__ = [
    "BrokerConnection",
    "BrokerConnection091",
    "CreditRule",
    "accept",
    "accept_091",
    "message_of",
    "queue_name",
]
