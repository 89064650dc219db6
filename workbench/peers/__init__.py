"""Clients of a run: ours, for AMQP 1.0, 0-9-1 and 0-10, and the real python-qpid-proton."""

from .client import Client
from .client010 import Client010, Receiver010, Sender010, Task010
from .client091 import Client091, Consumer091, Publisher091, Task091
from .links import ClientLink, Consumer, Publisher
from .multicast091 import MulticastConsumer, MulticastProducer
from .sending import AtOnce, OneByOne, SendPolicy
from .writing091 import OneLock

__all__ = [
    "AtOnce",
    "Client",
    "Client010",
    "Client091",
    "ClientLink",
    "Consumer",
    "Consumer091",
    "MulticastConsumer",
    "MulticastProducer",
    "OneByOne",
    "OneLock",
    "Publisher",
    "Publisher091",
    "Receiver010",
    "SendPolicy",
    "Sender010",
    "Task010",
    "Task091",
]
