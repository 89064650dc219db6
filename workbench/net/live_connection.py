"""One accepted socket: joins it to a wire whose other end is the broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.amqp.errors import DecodeError, ErrorCondition
from workbench.amqp.framing import Frame
from workbench.amqp.performatives import Error
from workbench.sim import Direction

from .live_wire import LiveWire
from .loop_clock import US_PER_S, LoopTimer
from .socket_end import SocketEnd

if TYPE_CHECKING:
    from .listener import Listener

AFTER_HELD_FRAMES_US = 10_000


class LiveConnection(asyncio.BufferedProtocol):
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
        self._life: LoopTimer | None = None
        self._closing: LoopTimer | None = None
        self._octets_told = 0  # octets_out when the client's idle timer was last thought of
        self.lost = False  # the socket is gone
        self.forgotten = False  # and nothing of it waits any more

    # -- what asyncio tells -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected: build wire and ends, or turn it away if there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        listener = self._listener
        if not listener.admits(transport):
            self.lost = self.forgotten = True
            return
        self.name = listener.next_name()
        self.end = SocketEnd(
            listener.loop,
            self.name,
            listener.limits,
            first_max_frame_size=listener.broker.preset.first_max_frame_size,
            recording=listener.recording,
            on_undecodable=self._undecodable,
        )
        self.end.take_transport(transport)
        self.broker_end = listener.broker.accept(self.name)
        self.wire = LiveWire(
            self._clock,
            self.end,
            self.broker_end,
            latency_us=(0, 0),
            connection=self.name,
            tap=listener.tap,
            next_frame_id=listener.next_frame_id,
        )
        self.end.connect(self.wire)
        self.wire.on_moved = lambda: self._guarded(self._moved)
        self.wire.on_mishap = self._mishap
        self.wire.on_change = listener.changed
        self.wire.may_hear = self._may_hear
        if listener.freeze_new:
            self.wire.freeze()
        listener.tap.internal(
            t_us=self._clock.now_us, event="connect", vantage=self.end.vantage, connection=self.name
        )
        self.broker_end.connect(self.wire)
        listener.connections[self.name] = self
        listener.changed()
        self._await_handshake()

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Where the next octets go: so many are read in one turn, and the others come next."""
        return self._listener.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Octets of the client."""
        if not self.lost:
            self._guarded(self._received, bytes(self._listener.read_buffer[:nbytes]))

    def _received(self, data: bytes) -> None:
        self.end.receive(data)
        self._listener.memory.received(len(data))
        self._watch()
        self._mind_writing()

    def pause_writing(self) -> None:
        """The client does not read: send it no further message."""
        if not self.lost:
            self.end.writable = False
            self._guarded(self._mind_writing)

    def resume_writing(self) -> None:
        """The client reads again."""
        if not self.lost:
            self.end.writable = True
            self._guarded(self._mind_writing)
            self.end.mind_the_gate()

    def eof_received(self) -> bool:
        """The client will say nothing more: so the connection is over."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone, by whoever's wish."""
        if self.lost:
            return
        self.lost = True
        for timer in (self._idle, self._handshake, self._life, self._closing):
            if timer is not None:
                timer.cancel()
        self._listener.tap.internal(
            t_us=self._clock.now_us,
            event="disconnect",
            vantage=self.end.vantage,
            connection=self.name,
        )
        waiting = self.wire.waiting(Direction.CLIENT_TO_BROKER)
        if waiting:
            self.end.writable = False  # and is sent no further message
            self._mind_writing()
        held = f"; {waiting} of its frames still wait" if waiting else ""
        self._listener.news.append(f"{self.name} is gone{self._why()}{held}")
        self._forget_unless_waiting()

    def _forget_unless_waiting(self) -> None:
        """What a client sent before it went reaches the broker before its end does, as with TCP."""
        if self.forgotten or self.wire.waiting(Direction.CLIENT_TO_BROKER):
            self.wire.on_change()
            return
        self.forgotten = True
        self.broker_end.lost()
        self._listener.forget(self)
        self.wire.on_change()

    # -- the gate ---------------------------------------------------------------------------

    def _moved(self) -> None:
        """A frame that had waited has arrived."""
        if self.lost:
            self._forget_unless_waiting()
            return
        self.end.mind_the_gate()
        self._watch()
        self._mind_writing()

    def _mind_writing(self) -> None:
        """No further message while the socket takes none, or too much waits at the gate."""
        writable = self.end.writable and not self.end.too_much(Direction.BROKER_TO_CLIENT)
        if writable is not self.broker_end.writable:
            self.broker_end.writable = writable
            if writable:
                self.broker_end.kick()

    def _may_hear(self, direction: Direction) -> bool:
        if direction is Direction.BROKER_TO_CLIENT:
            return self.end.told_open
        return self.broker_end.amqp.opened

    def _keep_alive(self) -> None:
        """While frames to the client are held, empty ones tell it that the broker lives [2.4.5]."""
        if self.lost:
            return
        direction = Direction.BROKER_TO_CLIENT
        silent = self.end.octets_out == self._octets_told
        if silent and not self.wire.free(direction) and self._may_hear(direction):
            self.wire.send(self.broker_end, Frame(0))
            self.end.flush()
        self._octets_told = self.end.octets_out
        self._live_on()

    def _live_on(self) -> None:
        within_us = self.broker_end.amqp.idle.speak_within_us
        if within_us is not None:
            # Asked so often that a silence of half the time told is never overlooked.
            self._life = self._clock.call_later(
                within_us // 2, self._guarded, self._keep_alive, idle=True
            )

    # -- mistakes of ours -------------------------------------------------------------------

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        """Do something; a mistake of ours in it costs this client alone."""
        try:
            work(*args)
        except Exception as error:
            self._mishap(error)

    def _mishap(self, error: Exception) -> None:
        """Close with internal-error, as RabbitMQ's reader does; if that fails too, cut."""
        self._listener.failures.append(error)
        if self.lost:
            return
        try:
            self.broker_end.failed(error)
            self._watch()
        except Exception as another:
            self._listener.failures.append(another)
            self.drop()

    # -- time -------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Come back when the protocol wants it; and let go of what has ended."""
        amqp = self.broker_end.amqp
        if amqp.ended:
            self._finish()
            return
        if amqp.failed:
            self._cut_later()
        if self._handshake is not None and amqp.opened:
            self._handshake.cancel()
            self._handshake = None
            self._listener.news.append(f"{self.name} is open: {self.words}")
        if self._life is None:
            self._live_on()
        deadline = amqp.next_deadline(self._clock.now_us)
        if deadline is None or (self._idle_at_us is not None and self._idle_at_us <= deadline):
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle_at_us = deadline
        self._idle = self._clock.call_at(deadline, self._guarded, self._deadline, idle=True)

    def _deadline(self) -> None:
        self._idle_at_us = None
        may_speak = self.end.told_open and self.wire.free(Direction.CLIENT_TO_BROKER)
        if self.broker_end.amqp.opened and not may_speak:
            # Whoever holds the client's frames, or the open that names the idle time-out, cannot
            # blame the client for silence.
            self.broker_end.amqp.apply(Frame(0))
        events = self.broker_end.amqp.on_deadline(self._clock.now_us)
        if events:
            self.broker_end.react(events)
        self._watch()

    def _await_handshake(self) -> None:
        limit_us = int(self._listener.limits.handshake_s * US_PER_S)
        self._handshake = self._clock.call_later(limit_us, self._handshake_over)

    def _handshake_over(self) -> None:
        self._handshake = None
        if not all(self.wire.free(direction) for direction in Direction):
            self._await_handshake()  # a person holds it up, not the client
        elif not self.broker_end.amqp.opened:
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
        self._cut_later()
        if self._transport is not None:
            self._transport.close()

    def _cut_later(self) -> None:
        """Give the client some time to answer and to read, and no more."""
        if self._closing is None:
            limit_us = int(self._listener.limits.close_s * US_PER_S)
            self._closing = self._clock.call_later(limit_us, self.drop)

    @property
    def words(self) -> str:
        """Who it is: container, user, address."""
        amqp = self.broker_end.amqp
        name = "?" if amqp.remote_open is None else amqp.remote_open.container_id
        where = "?" if self._transport is None else self._transport.get_extra_info("peername")
        place = f"{where[0]} port {where[1]}" if isinstance(where, tuple) else str(where)
        return f"container {name!r}, user {amqp.user!r}, from {place}"

    def _why(self) -> str:
        error = self.broker_end.amqp.error
        if error is None:
            return "" if self.broker_end.amqp.ended else " without a close"
        condition = getattr(error.condition, "value", error.condition)
        return f": {condition}: {error.description}"

    def farewell(self) -> None:
        """The broker stops: close with the condition that says so, and then the socket."""
        amqp = self.broker_end.amqp
        if not self.lost and amqp.opened and amqp.can_emit():
            why = "the broker is stopped; nothing is wrong with this connection"
            amqp.close(Error(condition=ErrorCondition.CONNECTION_FORCED, description=why))
            self.end.flush()
        elif self._transport is not None:
            self._transport.close()

    def drop(self) -> None:
        """Cut the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def held_octets(self) -> int:
        """Octets that wait at the gates, and for the client to read them."""
        unread = 0 if self._transport is None else self._transport.get_write_buffer_size()
        return unread + sum(self.wire.octets_waiting.values())

    def overview(self) -> dict[str, Any]:
        """Flat picture: octets both ways, the wire's, and the broker's end."""
        return {
            "octets_in": self.end.octets_in,
            "octets_out": self.end.octets_out,
            **{f"wire.{name}": value for name, value in self.wire.overview().items()},
            **self.broker_end.overview(),
        }
