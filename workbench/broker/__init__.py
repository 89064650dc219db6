"""The broker: its virtual host, queues at work, dead letters and alarms; it knows no protocol."""

from .broker import Broker, Connection
from .queue_mail import PlainConsumer
from .queue_process import QueueProcess
from .unconfirmed import CONFIRMED, UNROUTABLE, Confirmed, Outcome, Refused, Unroutable
from .virtual_host import VirtualHost

__all__ = [
    "CONFIRMED",
    "UNROUTABLE",
    "Broker",
    "Confirmed",
    "Connection",
    "Outcome",
    "PlainConsumer",
    "QueueProcess",
    "Refused",
    "Unroutable",
    "VirtualHost",
]
