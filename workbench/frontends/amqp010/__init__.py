"""What Qpid C++ does for AMQP 0-10: sessions whose completions wait for the queues."""

from workbench.broker import Broker

from .connection import QpidConnection
from .session import declare_queue, set_watermarks, thresholds_of


def accept(broker: Broker, name: str) -> QpidConnection:
    """The broker's end for a new connection; connect it to a wire."""
    connection = QpidConnection(broker, name)
    broker.connections[name] = connection
    return connection


__all__ = ["QpidConnection", "accept", "declare_queue", "set_watermarks", "thresholds_of"]
