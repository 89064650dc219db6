"""One accepted socket: joins it to a wire whose other end is the broker's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from workbench.amqp.errors import DecodeError
from workbench.sim import Direction

from .live_wire import LiveWire
from .loop_clock import US_PER_S, LoopTimer
from .socket_end import SocketEnd

if TYPE_CHECKING:
    from .listener import Listener

AFTER_HELD_FRAMES_US = 10_000


class LiveConnection(asyncio.Protocol):
    """A client's connection from the first octet to the last.

    Attributes:
        name: `c1`, `c2`, ... in order of opening.
        wire: with the gates.
        end: the client's end of it.
        broker_end: the broker's end of it.
    """

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._clock = listener.clock
        self._transport: asyncio.Transport | None = None
        self._idle: LoopTimer | None = None
        self._idle_at_us: int | None = None
        self._handshake: LoopTimer | None = None
        self.lost = False

    # -- what asyncio tells -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: build wire and ends, or turn it away if there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        listener = self._listener
        if len(listener.connections) >= listener.limits.connections:
            self.lost = True
            listener.turned_away += 1
            transport.abort()
            return
        self.name = listener.next_name()
        self.end = SocketEnd(
            listener.loop,
            self.name,
            listener.limits,
            recording=listener.recording,
            on_undecodable=self._undecodable,
        )
        self.end.take_transport(transport)
        self.broker_end = listener.broker.accept(self.name)
        self.wire = LiveWire(
            self._clock,  # type: ignore[arg-type]  # a clock with the same face
            self.end,
            self.broker_end,
            latency_us=(0, 0),
            connection=self.name,
            tap=listener.tap,
            next_frame_id=listener.next_frame_id,
        )
        self.end.connect(self.wire)
        self.broker_end.connect(self.wire)
        listener.connections[self.name] = self
        limit_us = int(listener.limits.handshake_s * US_PER_S)
        self._handshake = self._clock.call_later(limit_us, self._handshake_over)

    def data_received(self, data: bytes) -> None:
        """Octets of the client."""
        if self.lost:
            return
        self.end.receive(data)
        self._watch()

    def pause_writing(self) -> None:
        """The client does not read: send it no further message."""
        if not self.lost:
            self.end.writable = False
            self.broker_end.writable = False

    def resume_writing(self) -> None:
        """The client reads again."""
        if not self.lost:
            self.end.writable = True
            self.broker_end.writable = True
            self.broker_end.kick()

    def eof_received(self) -> bool:
        """The client will say nothing more: so the connection is over."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone, by whoever's wish."""
        if self.lost:
            return
        self.lost = True
        for timer in (self._idle, self._handshake):
            if timer is not None:
                timer.cancel()
        self.broker_end.lost()
        self._listener.forget(self)

    # -- time -------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Come back when the protocol wants it; and let go of what has ended."""
        amqp = self.broker_end.amqp
        if amqp.ended:
            self._finish()
            return
        if self._handshake is not None and amqp.opened:
            self._handshake.cancel()
            self._handshake = None
        deadline = amqp.next_deadline(self._clock.now_us)
        if deadline is None or (self._idle_at_us is not None and self._idle_at_us <= deadline):
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle_at_us = deadline
        self._idle = self._clock.call_at(deadline, self._deadline, idle=True)

    def _deadline(self) -> None:
        self._idle_at_us = None
        events = self.broker_end.amqp.on_deadline(self._clock.now_us)
        if events:
            self.broker_end.react(events)
        self._watch()

    def _handshake_over(self) -> None:
        self._handshake = None
        if not self.broker_end.amqp.opened:
            self.drop()

    # -- ends -------------------------------------------------------------------------------

    def _undecodable(self, error: DecodeError) -> None:
        """No AMQP 1.0: close with the condition, after every frame that came before."""
        if self.lost:
            return
        if self.wire.in_flight(Direction.CLIENT_TO_BROKER):
            self._clock.call_later(AFTER_HELD_FRAMES_US, self._undecodable, error)
            return
        self.broker_end.undecodable(error)
        self._finish()

    def _finish(self) -> None:
        """Nothing more will be said: write what waits, then close the socket."""
        if self.wire.in_flight(Direction.BROKER_TO_CLIENT):
            self._clock.call_later(AFTER_HELD_FRAMES_US, self._finish)
            return
        self.end.flush()
        if self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Cut the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    def overview(self) -> dict[str, Any]:
        """Flat picture: octets both ways, the wire's, and the broker's end."""
        return {
            "octets_in": self.end.octets_in,
            "octets_out": self.end.octets_out,
            **{f"wire.{name}": value for name, value in self.wire.overview().items()},
            **self.broker_end.overview(),
        }
