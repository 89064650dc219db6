"""Which ends are the broker's, as all connections of a capture tell it together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from workbench.capture.connection import AmqpConnection
from workbench.capture.decoder import DecodedFrame, Found
from workbench.capture.packet import endpoint_text
from workbench.capture.tcp import Conversation
from workbench.trace.schema import CLIENT

__all__ = ["Brokers", "ConnectionAhead"]


class ConnectionAhead(AmqpConnection):
    """A connection of which only that is read which proves who is the client; it makes no rows."""

    def _emit(self, side: int, found: Iterable[Found]) -> None:
        for each in found:
            if self.client is not None:
                return
            if type(each) is DecodedFrame and self._decoder is not None:
                author = self._decoder.author(each)
                ends = [stream.direction.source for stream in self._streams]
                if author is not None:
                    self.client = ends[side if author == CLIENT else 1 - side]


class Brokers:
    """Who is the client of a connection that begins before the capture does.

    What a later frame of the connection proves counts first, then what another one to the same
    address and port does. Then more connections share the broker's port than a client's, which
    the system has picked among thousands.

    Args:
        connections: all of the capture.
    """

    def __init__(self, connections: Iterable[AmqpConnection]) -> None:
        self._clients: dict[int, bytes] = {}
        self._proved: set[bytes] = set()
        self._sharing: defaultdict[bytes, set[frozenset[bytes]]] = defaultdict(set)
        for one in connections:
            conversation = one.conversation
            for end in conversation.ends if one.protocol is not None else ():
                self._sharing[end[-2:]].add(frozenset(conversation.ends))
            if one.client is not None:
                self._clients[conversation.number] = one.client
                self._proved.add(_other(conversation, one.client))

    def client(self, conversation: Conversation) -> tuple[bytes, str] | None:
        """Its end, and why it is the client's; None where nothing tells."""
        first, second = conversation.ends
        if conversation.number in self._clients:
            return self._clients[conversation.number], "later frames of it show it"
        if (first in self._proved) != (second in self._proved):
            client = second if first in self._proved else first
            broker = endpoint_text(_other(conversation, client))
            return client, f"another connection shows that {broker} is the broker"
        mine, theirs = (len(self._sharing[end[-2:]]) for end in (first, second))
        if mine == theirs:
            return None
        client, most = (second, mine) if mine > theirs else (first, theirs)
        port = int.from_bytes(_other(conversation, client)[-2:], "big")
        return client, f"{most:,} connections share port {port}"


def _other(conversation: Conversation, end: bytes) -> bytes:
    first, second = conversation.ends
    return second if end == first else first
