"""Clients of a run: ours, made of links and a send policy, and the real python-qpid-proton."""

from .client import Client
from .links import ClientLink, Consumer, Publisher
from .sending import AtOnce, OneByOne, SendPolicy

__all__ = [
    "AtOnce",
    "Client",
    "ClientLink",
    "Consumer",
    "OneByOne",
    "Publisher",
    "SendPolicy",
]
