"""A client that is not ours, pumped in memory: python-qpid-proton's engine on a wire.

Unlike `workbench.peers.ProtonPeer` a test decides which links there are, and looks at Proton's own
objects. The conversation with the management node is as RabbitMQ's official clients have it.
"""

from __future__ import annotations

from typing import Any

import pytest

from workbench.amqp10.frame import encode_item
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.scope import NOWHERE

proton = pytest.importorskip("proton", reason="needs python-qpid-proton")

ANY_SIZE = 2**30
NULL_BODY = b"\x00\x53\x77\x40"


class ProtonClient:
    """A connection with one session."""

    vantage = "client:proton"
    from_peer = "client"
    ledger_source = "shadow"

    def __init__(self) -> None:
        self.wire: Any = None
        self.reader = FrameReader(ANY_SIZE)
        self.transport = proton.Transport()
        self.connection = proton.Connection()
        self.connection.container = "proton"
        self.connection.hostname = "vhost:/"
        self.transport.sasl().allowed_mechs("ANONYMOUS")
        self.transport.bind(self.connection)
        self.connection.open()
        self.session = self.connection.session()
        self.session.open()
        self._number = 0

    def connect(self, wire: Any) -> None:
        self.wire = wire
        self.pump()

    def apply(self, item: Any) -> list[Any]:
        octets = encode_item(item)
        while octets:
            room = self.transport.capacity()
            self.transport.push(octets[:room])
            octets = octets[room:]
        return [item]  # so that `react` is called

    def react(self, events: list[Any]) -> None:
        self.pump()

    def scope(self, item: Any, outgoing: bool) -> Any:
        return NOWHERE

    def pump(self) -> None:
        """Put what Proton wants to say on the wire."""
        while (pending := self.transport.pending()) > 0:
            octets = self.transport.peek(pending)
            self.transport.pop(len(octets))
            for item in self.reader.feed(octets):
                self.wire.send(self, item.item)

    # -- links --------------------------------------------------------------------------------

    def sender(self, name: str, address: str | None, **more: Any) -> Any:
        """A sender; `settled` for a link whose messages all are."""
        link = self.session.sender(name)
        link.target.address = address
        return self._opened(link, address, **more)

    def receiver(self, name: str, address: str, **more: Any) -> Any:
        """A receiver."""
        link = self.session.receiver(name)
        link.source.address = address
        return self._opened(link, address, **more)

    def _opened(
        self, link: Any, address: str | None, *, paired: bool = False, settled: bool = False
    ) -> Any:
        if settled:
            link.snd_settle_mode = proton.Link.SND_SETTLED
        if paired:
            link.source.address = link.target.address = address
            link.properties = proton.PropertyDict({proton.symbol("paired"): True})
        link.open()
        self.pump()
        return link

    def pair(self, name: str = "management-link-pair") -> tuple[Any, Any]:
        """The two links to the management node."""
        sender = self.sender(name, "/management", paired=True, settled=True)
        receiver = self.receiver(name, "/management", paired=True, settled=True)
        receiver.flow(100)
        self.pump()
        return sender, receiver

    def send(self, link: Any, message: Any, *, settled: bool = False) -> Any:
        """Send one message, or its octets."""
        self._number += 1
        delivery = link.delivery(b"%d" % self._number)
        link.stream(message if isinstance(message, bytes) else message.encode())
        link.advance()
        if settled:
            delivery.settle()
        self.pump()
        return delivery

    def request(self, link: Any, method: str, path: str, body: Any = None) -> int:
        """Ask the management node; returns the message-id."""
        message = proton.Message(body=body, subject=method, address=path)
        message.id = self._number + 1
        message.reply_to = "$me"
        message.inferred = False
        encoded = bytes(message.encode())
        if body is None:
            encoded += NULL_BODY  # Proton leaves it out, and then it is no request
        self.send(link, encoded, settled=True)
        return self._number

    @staticmethod
    def take(link: Any) -> list[Any]:
        """Messages that have come on a link; each is settled."""
        found = []
        while (delivery := link.current) is not None and not delivery.partial:
            message = proton.Message()
            message.decode(link.recv(delivery.pending))
            link.advance()
            delivery.settle()
            found.append(message)
        return found
