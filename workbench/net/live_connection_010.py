"""A client that speaks AMQP 0-10: its socket, joined to a wire whose other end is the broker's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.amqp010.controls import ConnectionOpenOk
from workbench.amqp010.errors import CloseCode, DecodeError
from workbench.amqp010.frame import Frame, FrameReader, WireItem, encode_item
from workbench.frontends.amqp010 import accept
from workbench.sim import Direction

from .buffered_socket import BufferedSocket
from .live_connection import AFTER_HELD_FRAMES_US, LiveConnection
from .live_wire import LiveWire
from .protocols import AMQP_0_10

if TYPE_CHECKING:
    from collections.abc import Callable

    from .listener import Listener


class SocketEnd010(BufferedSocket):
    """The client's end of a live wire: octets become frames, and octets again.

    Args:
        listener: whose client it is.
        name: of the client.
        on_undecodable: told why octets are no AMQP 0-10, after every frame before them.

    Attributes:
        wire: of which it is an end.
        told_open: the client has been sent open-ok.
    """

    from_peer = "client"
    ledger_source = "shadow"

    def __init__(
        self, listener: Listener, name: str, on_undecodable: Callable[[str], None]
    ) -> None:
        super().__init__(listener.loop, listener.limits)
        self.vantage = f"client:{name}"
        self.wire: LiveWire
        self.told_open = False
        self._reader = FrameReader()
        self._dead = False
        self._on_undecodable = on_undecodable

    def receive(self, data: bytes) -> None:
        """Octets have come: put the frames they complete on the wire."""
        if self._dead:
            return
        self.octets_in += len(data)
        why = None
        items: Any
        try:
            items = self._reader.feed(data)
        except DecodeError as error:
            self._dead, why, items = True, error.reason, error.completed
        for one in items:
            self.wire.send(self, one.item, one.raw)
        if why is not None:
            self._on_undecodable(why)

    def apply(self, item: WireItem) -> list[Any]:
        """A frame of the broker: its octets go to the client with the next flush."""
        if isinstance(item, Frame) and isinstance(item.content, ConnectionOpenOk):
            self.told_open = True
        self.write(encode_item(item))
        return []

    def react(self, events: Any) -> None:
        """Nothing: the real client reacts on its own."""

    def scope(self, item: WireItem, outgoing: bool) -> None:
        """Nothing is told of a frame's counters."""


class LiveConnection010(LiveConnection):
    """A client's connection from its first octets to the last."""

    protocol = AMQP_0_10

    def _make_end(self, listener: Listener) -> Any:
        return SocketEnd010(listener, self.name, self._unreadable)

    def _accept(self, listener: Listener) -> Any:
        return accept(listener.broker, self.name)

    def _unreadable(self, why: str) -> None:
        """No AMQP 0-10: close with framing-error, after every frame that came before."""
        if self.lost:
            return
        if self.wire.in_flight(Direction.CLIENT_TO_BROKER):
            self._clock.call_later(AFTER_HELD_FRAMES_US, self._unreadable, why)
            return
        self.broker_end.undecodable(why)
        self._finish()

    def _watch(self) -> None:
        """Let go of what has ended; nothing is due at a time, for there are no heartbeats."""
        amqp = self.broker_end.amqp
        if amqp.ended:
            self._finish()
        elif amqp.error is not None:
            self._cut_later()
        elif self._handshake is not None and amqp.opened:
            self._handshake.cancel()
            self._handshake = None
            self.server.news.append(f"{self.name} is open: {self.words}")

    @property
    def words(self) -> str:
        """Who it is: product, user, address."""
        amqp = self.broker_end.amqp
        product = amqp.properties.get("product", "?")
        return f"AMQP 0-10, product {product!r}, user {amqp.user!r}, from {self.end.address}"

    def _why(self) -> str:
        amqp = self.broker_end.amqp
        if amqp.error is None:
            return "" if amqp.ended else " without a close"
        return f": {int(amqp.error[0])}: {amqp.error[1]}"

    def farewell(self) -> None:
        """The broker stops: close with the code that says so, and then the socket."""
        amqp = self.broker_end.amqp
        if not self.lost and amqp.opened:
            why = "the broker is stopped; nothing is wrong with this connection"
            amqp.close(CloseCode.CONNECTION_FORCED, why)
            self.end.flush()
        else:
            self.end.close()
