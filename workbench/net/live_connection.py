"""A client that speaks AMQP 1.0: its socket, joined to a wire whose other end is the broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.frame import Frame, WireItem
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.observer import ConnectionObserver
from workbench.amqp10.performatives import Error, Open, SaslCode
from workbench.frontends import accept
from workbench.sim import Direction

from .client import Client
from .live_wire import LiveWire
from .loop_clock import US_PER_S, LoopTimer
from .protocols import AMQP_1_0
from .socket_end import SocketEnd

if TYPE_CHECKING:
    from .greeting import Greeting
    from .listener import Listener

AFTER_HELD_FRAMES_US = 10_000
UNREAD_LIMIT = 4
"""So many times `write_octets` wait for a client that does not read: then it is not read either."""


class LiveConnection(Client, asyncio.BufferedProtocol):
    """A client's connection from its first octets to the last.

    Args:
        greeting: that has met the client.

    Attributes:
        protocol: that it speaks.
        wire: with the gates.
        end: the client's end of it.
        broker_end: the broker's end of it.
    """

    protocol = AMQP_1_0
    wire: LiveWire

    def __init__(self, greeting: Greeting) -> None:
        listener = greeting.server
        super().__init__(listener, greeting.name)
        self._clock = listener.clock
        self._memory = listener.memory
        self._read_buffer = listener.read_buffer
        self._idle: LoopTimer | None = None
        self._idle_at_us: int | None = None
        self._handshake: LoopTimer | None = None
        self._life: LoopTimer | None = None
        self._closing: LoopTimer | None = None
        self._octets_told = 0  # octets_out when the client's idle timer was last thought of
        self._forgotten = False  # the socket is gone, and nothing of it waits any more
        self.end = self._make_end(listener)
        assert greeting.socket.transport is not None
        self.end.take_transport(greeting.socket.transport)
        self.broker_end = self._accept(listener)
        self.end.wire = wire = LiveWire(
            self._clock,
            self.end,
            self.broker_end,
            protocol=self.protocol,
            connection=self.name,
            tap=listener.tap,
            next_frame_id=listener.next_frame_id,
        )
        wire.on_moved = lambda: self._guarded(self._moved)
        wire.on_mishap = self._mishap
        wire.may_hear = self._may_hear
        self.open_wire(wire)
        self.broker_end.connect(wire)
        self._await_handshake(greeting.connected_us)

    def _make_end(self, listener: Listener) -> SocketEnd:
        """The client's end of the wire."""
        preset = listener.broker.preset
        reader = FrameReader(
            preset.max_frame_size,
            first_max_frame_size=preset.first_max_frame_size,
            keeps_undecodable=True,
        )
        return self._socket_end(listener, reader, partial(ConnectionObserver, end="client"), _opens)

    def _socket_end(
        self,
        listener: Listener,
        reader: Any,
        make_observer: Callable[[], Any],
        opens: Callable[[Any], bool],
    ) -> SocketEnd:
        return SocketEnd(
            listener.loop,
            self.name,
            listener.limits,
            protocol=self.protocol,
            reader=reader,
            observer=make_observer() if listener.recording else None,
            opens=opens,
            on_undecodable=self._undecodable,
        )

    def _accept(self, listener: Listener) -> Any:
        """The broker's end of the wire."""
        return accept(listener.broker, self.name)

    # -- what asyncio tells -----------------------------------------------------------------

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Where the next octets go: so many are read in one turn, and the others come next."""
        return self._read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Octets of the client."""
        self.receive(bytes(self._read_buffer[:nbytes]))

    def receive(self, data: bytes) -> None:
        """Octets of the client."""
        if not self.lost:
            self._guarded(self._received, data)

    def _received(self, data: bytes) -> None:
        self.end.receive(data)
        self._mind_reading()
        self._memory.received(len(data))
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
            self._mind_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone, by whoever's wish."""
        if self.lost:
            return
        self.lost = True
        for timer in (self._idle, self._handshake, self._life, self._closing):
            if timer is not None:
                timer.cancel()
        self.note("disconnect")
        waiting = self.wire.waiting(Direction.CLIENT_TO_BROKER)
        if waiting:
            self.end.writable = False  # and is sent no further message
            self._mind_writing()
        held = f"; {waiting} of its frames still wait" if waiting else ""
        self.server.news.append(f"{self.name} is gone{self._why()}{held}")
        self._forget_unless_waiting()

    def _forget_unless_waiting(self) -> None:
        """What a client sent before it went reaches the broker before its end does, as with TCP."""
        if self._forgotten or self.wire.waiting(Direction.CLIENT_TO_BROKER):
            self.server.changed()
            return
        self._forgotten = True
        self.broker_end.lost()
        self.server.forget(self)

    # -- the gate ---------------------------------------------------------------------------

    def _moved(self) -> None:
        """A frame that had waited has arrived."""
        if self.lost:
            self._forget_unless_waiting()
            return
        self._mind_reading()
        self._watch()
        self._mind_writing()

    def _mind_reading(self) -> None:
        """Too much waits at a gate, or unread: let TCP hold the client until it is less."""
        unread = self.end.unread > UNREAD_LIMIT * self.server.limits.write_octets
        self.end.read_if(not unread and not any(map(self.too_much, Direction)))

    def _mind_writing(self) -> None:
        """No further message while the socket takes none, or too much waits at the gate."""
        writable = self.end.writable and not self.too_much(Direction.BROKER_TO_CLIENT)
        if writable is not self.broker_end.writable:
            self.broker_end.writable = writable
            if writable:
                self.broker_end.kick()

    def _may_hear(self, direction: Direction) -> bool:
        if direction is Direction.BROKER_TO_CLIENT:
            return self.end.told_open
        return bool(self.broker_end.amqp.opened)

    def _keep_alive(self) -> None:
        """While frames to the client are held, empty ones tell it that the broker lives [2.4.5]."""
        if self.lost:
            return
        direction = Direction.BROKER_TO_CLIENT
        silent = self.end.octets_out == self._octets_told
        if silent and not self.wire.free(direction) and self._may_hear(direction):
            self.wire.send(self.broker_end, self.protocol.empty)
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
        self.server.failures.append(error)
        if self.lost:
            return
        try:
            self.broker_end.failed(error)
            self._watch()
        except Exception as another:
            self.server.failures.append(another)
            self.drop()

    # -- time -------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Come back when the protocol wants it; and let go of what has ended."""
        amqp = self.broker_end.amqp
        if amqp.ended:
            self._finish()
            return
        if self._broken or (self._handshake is None and not amqp.opened):
            self._cut_later()  # the close is sent: there is nothing more to say or to wait for
            return
        if self._handshake is not None and amqp.opened:
            self._handshake.cancel()
            self._handshake = None
            self.server.news.append(f"{self.name} is open: {self.words}")
        if self._life is None:
            self._live_on()
        self._come_back()

    def _come_back(self) -> None:
        amqp = self.broker_end.amqp
        deadline = amqp.next_deadline(self._clock.now_us)
        if deadline is None or (self._idle_at_us is not None and self._idle_at_us <= deadline):
            return
        if self._idle is not None:
            self._idle.cancel()
        self._idle_at_us = deadline
        self._idle = self._clock.call_at(deadline, self._guarded, self._deadline, idle=True)

    @property
    def _broken(self) -> bool:
        """Whether a close that tells of an error is sent or received."""
        return bool(self.broker_end.amqp.failed)

    def _deadline(self) -> None:
        self._idle_at_us = None
        may_speak = self.end.told_open and self.wire.free(Direction.CLIENT_TO_BROKER)
        if self.broker_end.amqp.opened and not may_speak:
            # Whoever holds the client's frames, or the open that names the idle time-out, cannot
            # blame the client for silence.
            self.broker_end.amqp.apply(self.protocol.empty)
        events = self.broker_end.amqp.on_deadline(self._clock.now_us)
        if events:
            self.broker_end.react(events)
        self._watch()

    def _await_handshake(self, since_us: int) -> None:
        limit_us = int(self.server.limits.handshake_s * US_PER_S)
        self._handshake = self._clock.call_at(since_us + limit_us, self._handshake_over)

    def _handshake_over(self) -> None:
        self._handshake = None
        if not all(self.wire.free(direction) for direction in Direction):
            self._await_handshake(self._clock.now_us)  # a person holds it up, not the client
        elif not self.broker_end.amqp.opened:
            self.drop()

    # -- ends -------------------------------------------------------------------------------

    def _undecodable(self, error: Any) -> None:
        """No frame of the protocol: close with why, after every frame that came before."""
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
        self._cut_later()
        self.end.close()

    def _cut_later(self) -> None:
        """Give the client some time to answer and to read, and no more."""
        if self._closing is None:
            limit_us = int(self._close_s * US_PER_S)
            self._closing = self._clock.call_later(limit_us, self.drop)

    @property
    def _close_s(self) -> float:
        return self.server.limits.close_s

    @property
    def vantage(self) -> str:
        """Who tells of it."""
        return self.end.vantage

    @property
    def words(self) -> str:
        """Who it is: container, user, address; as far as they are known."""
        amqp = self.broker_end.amqp
        said = amqp.remote_open
        who = "not open yet" if said is None else f"container {said.container_id!r}"
        user = "" if amqp.user is None else f", user {amqp.user!r}"
        return f"{who}{user}" + (f", from {self.end.address}" if self.end.address else "")

    def _why(self) -> str:
        amqp = self.broker_end.amqp
        error = amqp.error
        if error is None and amqp.sasl is not None and amqp.sasl.code == SaslCode.AUTH:
            return ": wrong user or password"
        if error is None:
            return "" if amqp.ended else " without a close"
        condition = getattr(error.condition, "value", error.condition)
        return f": {condition}: {error.description}"

    def farewell(self) -> None:
        """The broker stops: close with the condition that says so, and then the socket."""
        amqp = self.broker_end.amqp
        if not self.lost and amqp.opened and amqp.can_emit():
            why = "the broker is stopped; nothing is wrong with this connection"
            amqp.close(Error(condition=ErrorCondition.CONNECTION_FORCED, description=why))
            self.end.flush()
        else:
            self.end.close()

    def drop(self) -> None:
        """Cut the connection without a word."""
        self.end.abort()

    @property
    def held_octets(self) -> int:
        """Octets that wait at the gates, and for the client to read them."""
        return self.end.unread + super().held_octets

    def overview(self) -> dict[str, Any]:
        """Flat picture: octets both ways, the wire's, and the broker's end."""
        return {
            "octets_in": self.end.octets_in,
            "octets_out": self.end.octets_out,
            **{f"wire.{name}": value for name, value in self.wire.overview().items()},
            **self.broker_end.overview(),
        }


def _opens(item: WireItem) -> bool:
    return isinstance(item, Frame) and type(item.performative) is Open
