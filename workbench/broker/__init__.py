"""The broker: queues at work, connections, and its conduct on them."""

from .addresses import queue_name
from .broker import Broker
from .connection import BrokerConnection
from .consumer_link import ConsumerLink
from .publisher_link import PublisherLink
from .queue_process import QueueProcess

__all__ = [
    "Broker",
    "BrokerConnection",
    "ConsumerLink",
    "PublisherLink",
    "QueueProcess",
    "queue_name",
]
