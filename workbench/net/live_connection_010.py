"""A client that speaks AMQP 0-10: its socket, joined to a wire whose other end is the broker's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.amqp010.controls import ConnectionOpenOk
from workbench.amqp010.errors import CloseCode
from workbench.amqp010.frame import Frame, FrameReader, WireItem
from workbench.amqp010.observer import ConnectionObserver
from workbench.frontends.amqp010 import accept

from .live_connection import LiveConnection
from .protocols import AMQP_0_10
from .socket_end import SocketEnd

if TYPE_CHECKING:
    from .listener import Listener


class LiveConnection010(LiveConnection):
    """A client's connection from its first octets to the last."""

    protocol = AMQP_0_10

    def _make_end(self, listener: Listener) -> SocketEnd:
        return self._socket_end(
            listener, FrameReader(), partial(ConnectionObserver, end="client"), _opens
        )

    def _accept(self, listener: Listener) -> Any:
        return accept(listener.broker, self.name)

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


def _opens(item: WireItem) -> bool:
    return isinstance(item, Frame) and isinstance(item.content, ConnectionOpenOk)
