"""A client that speaks AMQP 0-9-1: its socket, joined to a wire whose other end is the broker's.

The broker's reader takes frames off the wire in its own time. While it is blocked, or has not come
to what was read, the socket is not read: TCP holds the client.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.amqp091.errors import ReplyCode
from workbench.amqp091.frame import Frame, FrameReader, WireItem
from workbench.amqp091.methods import ConnectionOpenOk
from workbench.amqp091.observer import ConnectionObserver
from workbench.amqp091.states import ConnectionState
from workbench.frontends import accept_091
from workbench.sim import Direction

from .live_connection import AFTER_HELD_FRAMES_US, LiveConnection
from .protocols import AMQP_0_9_1
from .socket_end import SocketEnd

if TYPE_CHECKING:
    from .listener import Listener

BACKLOG_LIMIT = 1_000
"""So many frames read, and not come to yet: then no more is read."""


class LiveConnection091(LiveConnection):
    """A client's connection from its first octets to the last."""

    protocol = AMQP_0_9_1

    def _make_end(self, listener: Listener) -> SocketEnd:
        preset = listener.broker.preset
        reader = FrameReader(preset.max_frame_size, first_frame_max=preset.frame_min_091)
        return self._socket_end(listener, reader, ConnectionObserver, _opens)

    def _accept(self, listener: Listener) -> Any:
        self._look_due = False
        end = accept_091(listener.broker, self.name)
        end.work = self._work
        return end

    def _work(self, work: Callable[..., None], *args: Any) -> None:
        """A process of the broker's end works; what follows for the socket is seen to after it."""
        self._guarded(work, *args)
        if not self._look_due:
            self._look_due = True
            self._clock.call_soon(self._guarded, self._look)

    def _look(self) -> None:
        self._look_due = False
        if not self.lost:
            self._moved()

    def _mind_reading(self) -> None:
        end = self.broker_end
        if end.throttle.blocked or end.backlog > BACKLOG_LIMIT:
            self.end.read_if(False)
        else:
            super()._mind_reading()

    def _undecodable(self, error: Any) -> None:
        """The reader comes to it after every frame that came before."""
        if self.lost:
            return
        if self.wire.in_flight(Direction.CLIENT_TO_BROKER):
            self._clock.call_later(AFTER_HELD_FRAMES_US, self._undecodable, error)
        else:
            self.broker_end.undecodable(error)

    @property
    def _broken(self) -> bool:
        return self.broker_end.amqp.error is not None

    def _watch(self) -> None:
        if self._broken and not self.wire.gate_closed(Direction.BROKER_TO_CLIENT):
            self._cut_later()  # a client that does not read keeps nothing here
            self._come_back()  # heartbeats go on until then
        amqp = self.broker_end.amqp
        if self._broken and self.end.dead:
            self._finish()  # no answer to the close can be read
        elif amqp.state is not ConnectionState.CLOSED:  # else TCP is the client's to end
            super()._watch()

    @property
    def _close_s(self) -> float:
        """No longer than between two heartbeats (`rabbit_reader.erl:close_connection`)."""
        return min(super()._close_s, self.broker_end.amqp.heartbeat_s or math.inf)

    @property
    def words(self) -> str:
        """Who it is: product, user, address."""
        end = self.broker_end
        product = (end.amqp.peer_properties or {}).get("product", "?")
        return f"AMQP 0-9-1, product {product!r}, user {end.user!r}, from {self.end.address}"

    def _why(self) -> str:
        amqp = self.broker_end.amqp
        error = amqp.error
        if error is None:
            return "" if amqp.ended else " without a close"
        return f": {error.reply_code}: {error.reply_text}" if error.reply_code != 200 else ""

    def farewell(self) -> None:
        """The broker stops: close with the code that says so, and then the socket."""
        amqp = self.broker_end.amqp
        if not self.lost and amqp.opened:
            amqp.close(
                ReplyCode.CONNECTION_FORCED,
                "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
            )
            self.end.flush()
        else:
            self.end.close()


def _opens(item: WireItem) -> bool:
    return isinstance(item, Frame) and isinstance(item.payload, ConnectionOpenOk)
