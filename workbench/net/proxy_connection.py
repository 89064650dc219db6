"""One client's connection with another broker, and the gate between the two.

Nothing is answered here and nothing is changed: what one side writes the other gets, octet for
octet, when the gate lets it. The one exception are empty frames while a gate is closed [2.4.5].
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from workbench.amqp.frame import Frame, WireItem, encode_item
from workbench.amqp.observer import ConnectionObserver, ObservedScope
from workbench.amqp.performatives import Open
from workbench.sim import Direction

from .live_wire import LiveWire
from .loop_clock import LoopTimer
from .passing import Opaque, PassingCutter

if TYPE_CHECKING:
    from .forwarder import Forwarder

C2B, B2C = Direction.CLIENT_TO_BROKER, Direction.BROKER_TO_CLIENT
EMPTY_FRAME = encode_item(Frame(0))
US_PER_MS = 1_000


class ProxyWire(LiveWire):
    """A wire whose ends are sockets: what arrives is written, and then counted.

    The counters of a breakpoint are those of the wire, as far as the frames that passed tell.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._unseen = False  # every frame has octets to be passed on

    def _deliver(self, lane: Any, flight: Any) -> None:
        self._passed[lane.direction is B2C] += 1
        lane.receiver.pass_on(flight.item, flight.octets)
        self.tap.received(lane.receiver, flight)
        if self.breakpoints:
            self._look(lane.direction, lane.receiver, flight.item, outgoing=False)

    def _counted(self, end: Any, *, outgoing: bool) -> bool:
        return not outgoing


class Side(asyncio.Protocol):
    """The socket of one side, and the end of the wire behind which it stands.

    What the side writes is put on the wire; what arrives at this end is written to the side.

    Attributes:
        from_peer: who is at the other end of this socket, `client` or `broker`.
        transport: None before it is connected.
        gone: the socket is closed.
        heard: the side has been sent an open, so it may be sent empty frames.
        patience_ms: after so long a silence the side gives up; from its own open.
    """

    vantage = "wire"
    ledger_source = "observed"

    def __init__(self, connection: ProxyConnection, from_peer: str) -> None:
        self.from_peer = from_peer
        self.transport: asyncio.Transport | None = None
        self.gone = False
        self.heard = False
        self.patience_ms: int | None = None
        self.octets_in = 0
        self.octets_out = 0
        self.blocked = False  # the side does not read what it is sent
        self._connection = connection
        self._cutter = PassingCutter()
        self._chunks: list[bytes] = []
        self._within = False  # a frame that has been begun is not whole yet

    # -- what asyncio tells -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The side is connected."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=self._connection.limits.write_octets)
        self._connection.connected(self)

    def data_received(self, data: bytes) -> None:
        """Octets of the side."""
        self.octets_in += len(data)
        self._connection.take(self, self._cutter.feed(data))

    def pause_writing(self) -> None:
        """The side does not read: do not read the other."""
        self.blocked = True
        self._connection.mind_reading()

    def resume_writing(self) -> None:
        """The side reads again."""
        self.blocked = False
        self._connection.mind_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """The side's socket is closed."""
        self._connection.take(self, self._cutter.rest())
        self.gone = True
        self._connection.side_gone(self)

    # -- an end of the wire -----------------------------------------------------------------

    def pass_on(self, item: WireItem | Opaque, octets: bytes) -> None:
        """A frame has come through the gate: write it to the side."""
        self._connection.see(item, from_client=self.from_peer != "client")
        if isinstance(item, Opaque):
            self._within = item.more
        elif isinstance(item, Frame) and isinstance(item.performative, Open):
            self.heard = True
            self._connection.opened_by_other(self, item.performative)
        self.write(octets)

    def write(self, octets: bytes) -> None:
        """Collect octets, to be written with the loop's next turn."""
        if not self._chunks:
            self._connection.loop.call_soon(self.flush)
        self._chunks.append(octets)

    def flush(self) -> None:
        """Hand what was collected to the socket; what comes before there is one waits for it."""
        if self.transport is None:
            return
        data = b"".join(self._chunks)
        self._chunks.clear()
        if data and not self.transport.is_closing():
            self.octets_out += len(data)
            self.transport.write(data)

    def react(self, events: Any) -> None:
        """Nothing: the real peer reacts on its own."""

    def scope(self, item: Any, outgoing: bool) -> ObservedScope | None:
        """What is known on the wire right after this frame."""
        return self._connection.scope

    @property
    def may_hear(self) -> bool:
        """Whether an empty frame can be put in here: between frames, after the open."""
        return self.heard and not self._within


class ProxyConnection:
    """A client, the broker that it is joined to, and the wire between.

    Attributes:
        name: `c1`, `c2`, ... in order of opening.
        wire: with the gates.
        lost: the client's socket is closed.
    """

    def __init__(self, door: Forwarder) -> None:
        self.name = ""
        self.loop = door.loop
        self.limits = door.limits
        self.lost = False
        self.scope: ObservedScope | None = None
        self.client = Side(self, "client")
        self.broker = Side(self, "broker")
        self.wire: LiveWire
        self._door = door
        self._observer = ConnectionObserver()
        self._container = "?"
        self._alive: LoopTimer | None = None
        self._told = {C2B: 0, B2C: 0}
        self._unread: set[str] = set()  # reasons told
        self._joining: asyncio.Task[None] | None = None
        self._over = False

    # -- joining ----------------------------------------------------------------------------

    def connected(self, side: Side) -> None:
        """A socket is there: the client's first, and then the broker's."""
        assert side.transport is not None
        if side is self.broker:
            side.flush()
            self.mind_reading()
            return
        if not self._door.admits(side.transport):
            self._over = self.lost = True
            return
        self.name = self._door.next_name()
        self.wire = ProxyWire(
            self._door.clock,
            self.client,
            self.broker,
            latency_us=(0, 0),
            connection=self.name,
            tap=self._door.tap,
            next_frame_id=self._door.next_frame_id,
        )
        self.wire.on_moved = self._moved
        self.wire.on_change = self._door.changed
        self.wire.may_hear = lambda direction: self._receiver(direction).may_hear
        if self._door.freeze_new:
            self.wire.freeze()
        self._note("connect")
        self._door.connections[self.name] = self
        self._door.changed()
        # Not at once: CPython 3.11.2 begins to read after this, paused or not.
        self.loop.call_soon(self.mind_reading)
        self._joining = self.loop.create_task(self._join())

    async def _join(self) -> None:
        try:
            await self._door.connect(lambda: self.broker)
        except OSError as error:
            self._door.news.append(
                f"{self.name}: cannot reach {self._door.target}: {error.strerror or error}"
            )
            self._note("error", text=f"cannot reach {self._door.target}")
            self.drop()
            return
        self._door.news.append(f"{self.name} is joined to {self._door.target}: {self.words}")
        if self._over and self.broker.transport is not None:
            self.broker.transport.abort()

    # -- passing on -------------------------------------------------------------------------

    def take(self, side: Side, pieces: list[Any]) -> None:
        """Put what a side has written on the wire."""
        if self._over:
            return
        try:
            for octets, item in pieces:
                self.wire.send(side, item, octets)
            self.mind_reading()
        except Exception as error:  # a mistake of ours: it must cost this client alone
            self._door.failures.append(error)
            self.drop()

    def see(self, item: WireItem | Opaque, *, from_client: bool) -> None:
        """A frame passes: work out the counters."""
        if not isinstance(item, Opaque):
            self.scope = self._observer.see(item, from_client=from_client)
            return
        self.scope = None
        self._observer.lost(from_client)
        if item.why not in self._unread:
            self._unread.add(item.why)
            who = "the client" if from_client else "the broker"
            self._door.news.append(f"{self.name}: passed on unread from {who}: {item.why}")

    def opened_by_other(self, side: Side, performative: Open) -> None:
        """`side` is sent the other's open: from now on it is known how patient the other is."""
        other = self.client if side is self.broker else self.broker
        other.patience_ms = performative.idle_time_out
        if other is self.client:
            self._container = performative.container_id
        if self._alive is None:
            self._live_on()

    def mind_reading(self) -> None:
        """Let TCP hold a side whose frames wait in too great a number, or are not taken."""
        for side, other, direction in (
            (self.client, self.broker, C2B),
            (self.broker, self.client, B2C),
        ):
            transport = side.transport
            if transport is None or transport.is_closing():
                continue
            joined = self.broker.transport is not None
            if not joined or other.blocked or self._too_much(direction):
                transport.pause_reading()
            elif not transport.is_reading():
                transport.resume_reading()

    def _too_much(self, direction: Direction) -> bool:
        return (
            self.wire.waiting(direction) > self.limits.held_frames
            or self.wire.octets_waiting[direction] > self.limits.held_octets
        )

    def _moved(self) -> None:
        self.mind_reading()
        self._end_if_done()

    # -- while a gate is closed -------------------------------------------------------------

    def _live_on(self) -> None:
        patience = [side.patience_ms for side in (self.client, self.broker) if side.patience_ms]
        if patience and not self._over:
            # So often that a silence of half the time told is never overlooked.
            delay_us = max(US_PER_MS, min(patience) * US_PER_MS // 4)
            self._alive = self._door.clock.call_later(delay_us, self._keep_alive, idle=True)

    def _keep_alive(self) -> None:
        """Behind a closed gate a side hears nothing: an empty frame tells it that all is well."""
        for direction in Direction:
            side = self._receiver(direction)
            silent = side.octets_out == self._told[direction]
            if silent and side.may_hear and not side.gone and not self.wire.free(direction):
                side.write(EMPTY_FRAME)
                side.flush()
            self._told[direction] = side.octets_out
        self._live_on()

    def _receiver(self, direction: Direction) -> Side:
        return self.broker if direction is C2B else self.client

    # -- ends -------------------------------------------------------------------------------

    def side_gone(self, side: Side) -> None:
        """A socket is closed: the other is, too, when it has got what was on its way."""
        if self._over:
            return
        direction = C2B if side is self.client else B2C
        waiting = self.wire.waiting(direction)
        who = "the client" if side is self.client else "the broker"
        held = f"; {waiting} of its frames still wait" if waiting else ""
        self._door.news.append(f"{self.name}: {who} is gone{held}")
        self.lost = self.lost or side is self.client
        self._note("disconnect", side=side.from_peer)
        self._end_if_done()
        self._door.changed()

    def _end_if_done(self) -> None:
        """Close what is left when one side is gone and nothing of it waits."""
        for side, other, direction in (
            (self.client, self.broker, C2B),
            (self.broker, self.client, B2C),
        ):
            if side.gone and not self.wire.waiting(direction):
                self._finish(other)

    def _finish(self, other: Side) -> None:
        if self._over:
            return
        self._over = True
        other.flush()
        if other.transport is not None:
            other.transport.close()
        if self._alive is not None:
            self._alive.cancel()
        self._door.forget(self)
        self._door.changed()

    @property
    def words(self) -> str:
        """Who it is: container and address."""
        transport = self.client.transport
        where = "?" if transport is None else transport.get_extra_info("peername")
        place = f"{where[0]} port {where[1]}" if isinstance(where, tuple) else str(where)
        return f"container {self._container!r}, from {place}"

    def farewell(self) -> None:
        """Nothing more is passed on; what has been is written."""
        for side in (self.client, self.broker):
            side.flush()
            if side.transport is not None:
                side.transport.close()

    def drop(self) -> None:
        """Cut both sockets without a word."""
        for side in (self.client, self.broker):
            if side.transport is not None:
                side.transport.abort()
        if self.broker.transport is None:
            self._finish(self.broker)

    def _note(self, event: str, **extra: Any) -> None:
        self._door.tap.internal(
            t_us=self._door.clock.now_us,
            event=event,
            vantage="wire",
            connection=self.name,
            extra=extra or None,
        )

    def overview(self) -> dict[str, Any]:
        """Flat picture: octets from and to both sides, and the wire's."""
        picture: dict[str, Any] = {}
        for side in (self.client, self.broker):
            picture[f"{side.from_peer}.octets_in"] = side.octets_in
            picture[f"{side.from_peer}.octets_out"] = side.octets_out
        return picture | {f"wire.{name}": value for name, value in self.wire.overview().items()}
