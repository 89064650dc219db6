"""One client's connection with another broker, and the gate between the two.

Nothing is answered here and nothing is changed: what one side writes the other gets, octet for
octet, when the gate lets it. The only exceptions are empty frames while a gate is closed [2.4.5].
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from workbench.amqp091 import frame as frame091
from workbench.amqp091.methods import ConnectionOpenOk, ConnectionStartOk, ConnectionTuneOk
from workbench.amqp091.observer import ConnectionObserver as ConnectionObserver091
from workbench.amqp10.observer import ConnectionObserver
from workbench.amqp10.performatives import Open
from workbench.sim import Direction, Flight
from workbench.trace.files import reason

from .buffered_socket import BufferedSocket
from .client import Client
from .live_wire import LiveWire
from .loop_clock import US_PER_S, LoopTimer
from .passing import FORM_0_9_1, FrameSplitter, Opaque, Passed, StreamSegment
from .protocols import AMQP_1_0

if TYPE_CHECKING:
    from .forwarder import Forwarder

C2B, B2C = Direction.CLIENT_TO_BROKER, Direction.BROKER_TO_CLIENT
US_PER_MS, MS_PER_S = 1_000, 1_000


class ProxyWire(LiveWire):
    """A wire whose ends are sockets: what arrives is written as it came."""

    def _hand_over(self, receiver: ProxyEndpoint, flight: Flight) -> None:
        assert flight.octets is not None, "a proxy carries what it has read"
        receiver.pass_on(flight.item, flight.octets)

    def _reads_counters(self, _end: ProxyEndpoint, outgoing: bool) -> bool:
        """The counters are the wire's, and known when a frame has passed."""
        return not outgoing


class ProxyEndpoint(BufferedSocket, asyncio.Protocol):
    """The socket of one side, and the end of the wire behind which it stands.

    What the side writes is put on the wire; what arrives at this end is written to the side.

    Attributes:
        from_peer: who is at the other end of this socket, `client` or `broker`.
        gone: the socket is closed.
        heard: the side has been sent an open, so it may be sent empty frames.
        patience_ms: after so long a silence the side gives up; from its own open, or of AMQP 0-9-1
            the heartbeat on which both have agreed.
    """

    vantage = "wire"
    ledger_source = "observed"

    def __init__(self, connection: ProxyClient, from_peer: str) -> None:
        super().__init__(connection.server.loop, connection.server.limits)
        self.from_peer = from_peer
        self.gone = False
        self.heard = False
        self.patience_ms: int | None = None
        self._connection = connection
        self.splitter = FrameSplitter()
        self._within = False  # a frame that has been begun is not whole yet

    # -- what asyncio tells -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The side is connected."""
        self.take_transport(transport)
        self._connection.connected(self)

    def data_received(self, data: bytes) -> None:
        """Octets of the side."""
        self.octets_in += len(data)
        self._connection.take(self, self.splitter.feed(data))

    def pause_writing(self) -> None:
        """The side does not read: do not read the other."""
        self.writable = False
        self._connection.mind_reading()

    def resume_writing(self) -> None:
        """The side reads again."""
        self.writable = True
        self._connection.mind_reading()

    def connection_lost(self, error: Exception | None) -> None:
        """The side's socket is closed."""
        self._connection.take(self, self.splitter.rest())
        self.gone = True
        self._connection.side_gone(self)

    # -- an end of the wire -----------------------------------------------------------------

    def pass_on(self, item: Passed, octets: bytes) -> None:
        """A frame has come through the gate: write it to the side."""
        self._connection.see(item, from_client=self.from_peer != "client")
        if isinstance(item, Opaque):
            self._within = item.more
        else:
            self._connection.told(self, item)
        self.write(octets)

    def react(self, events: Any) -> None:
        """Nothing: the real peer reacts on its own."""

    def scope(self, item: Any, outgoing: bool) -> Any:
        """What is known on the wire right after this frame."""
        return self._connection.scope

    @property
    def may_hear(self) -> bool:
        """Whether an empty frame can be put in here: between frames, after the open."""
        return self.heard and not self._within


class ProxyClient(Client):
    """A client, the broker that it is joined to, and the wire between.

    Attributes:
        client, broker: the ends of the wire.
        scope: what is known on the wire right after the frame that has passed last.
    """

    vantage = "wire"
    server: Forwarder
    wire: LiveWire

    def __init__(self, forwarder: Forwarder) -> None:
        super().__init__(forwarder, "")
        self.scope: Any = None
        self.client = ProxyEndpoint(self, "client")
        self.broker = ProxyEndpoint(self, "broker")
        self._observer: ConnectionObserver | ConnectionObserver091 = ConnectionObserver()
        self._who = "not open yet"
        self._alive: LoopTimer | None = None
        self._told = {C2B: 0, B2C: 0}
        self._unread: set[str] = set()  # reasons told
        self._joining: asyncio.Task[None] | None = None  # kept here: a loop keeps its tasks weakly
        self._over = False

    # -- joining ----------------------------------------------------------------------------

    def connected(self, side: ProxyEndpoint) -> None:
        """A socket is there: the client's first, and then the broker's."""
        assert side.transport is not None
        if side is self.broker:
            self.mind_reading()
            return
        if not self.server.admits(side.transport):
            self._over = self.lost = True
            return
        self.name = self.server.next_name()
        wire = ProxyWire(
            self.server.clock,
            self.client,
            self.broker,
            protocol=AMQP_1_0,
            connection=self.name,
            tap=self.server.tap,
            next_frame_id=self.server.next_frame_id,
        )
        wire.on_moved = self._moved
        wire.on_mishap = self._mishap
        wire.may_hear = lambda direction: self._receiver(direction).may_hear
        self.open_wire(wire)
        self.server.welcome(self)
        # Not at once: CPython 3.11.2 begins to read after this, paused or not.
        self.server.loop.call_soon(self.mind_reading)
        self._joining = self.server.loop.create_task(self._join())

    async def _join(self) -> None:
        try:
            await self.server.connect(lambda: self.broker)
        except OSError as error:
            self.server.news.append(
                f"{self.name}: cannot reach {self.server.target}: {reason(error)}"
            )
            self.note("error", text=f"cannot reach {self.server.target}")
            self.drop()
            return
        self.server.news.append(f"{self.name} is joined to {self.server.target}")
        if self._over and self.broker.transport is not None:
            self.broker.transport.abort()

    # -- passing on -------------------------------------------------------------------------

    def take(self, side: ProxyEndpoint, pieces: list[StreamSegment]) -> None:
        """Put what a side has written on the wire."""
        if self._over:
            return
        end: Any = side  # is written to with the octets that came, not with the frame alone
        try:
            for octets, item in pieces:
                if isinstance(item, frame091.ProtocolHeader) and side is self.client:
                    self._speaks_0_9_1()
                self.wire.send(end, item, octets)
            self.mind_reading()
        except Exception as error:
            self._mishap(error)

    def _speaks_0_9_1(self) -> None:
        """The client has begun with the header of AMQP 0-9-1; the broker's answer has none."""
        self.wire.protocol = FORM_0_9_1.protocol
        self.broker.splitter.answers(FORM_0_9_1)
        self._observer = ConnectionObserver091()

    def _mishap(self, error: Exception) -> None:
        """A mistake of ours: it must cost this client alone."""
        self.server.failures.append(error)
        self.drop()

    def see(self, item: Passed, *, from_client: bool) -> None:
        """A frame passes: work out the counters."""
        if isinstance(item, frame091.ProtocolHeader) and not self._old:
            # A broker may say which protocol it speaks before the client has, or refuse 1.0 by it.
            self.scope = None
            return
        if not isinstance(item, Opaque):
            observer: Any = self._observer
            self.scope = observer.see(item, from_client=from_client)
            return
        self.scope = None
        self._observer.lost(from_client)
        if item.why not in self._unread:
            self._unread.add(item.why)
            who = "the client" if from_client else "the broker"
            self.server.news.append(f"{self.name}: passed on unread from {who}: {item.why}")

    @property
    def _old(self) -> bool:
        """The client speaks AMQP 0-9-1."""
        return isinstance(self._observer, ConnectionObserver091)

    def told(self, side: ProxyEndpoint, item: Any) -> None:
        """`side` is sent a frame, from which it may become known who the other is, and how patient.

        Since AMQP 1.0's open a side may be sent empty frames, and both since 0-9-1's open-ok.
        """
        other = self.client if side is self.broker else self.broker
        said = getattr(item, "performative", None) or getattr(item, "payload", None)
        match said:
            case Open():
                side.heard = True
                other.patience_ms = said.idle_time_out
                if other is self.client:
                    self._who = f"container {said.container_id!r}"
                    self.server.news.append(f"{self.name} is open: {self.words}")
            case ConnectionStartOk():
                self._who = f"AMQP 0-9-1, product {said.client_properties.get('product', '?')!r}"
                return
            case ConnectionTuneOk():
                self.client.patience_ms = self.broker.patience_ms = (
                    said.heartbeat * MS_PER_S or None
                )
                return
            case ConnectionOpenOk():
                self.client.heard = self.broker.heard = True
                self.server.news.append(f"{self.name} is open: {self.words}")
            case _:
                return
        if self._alive is None:
            self._live_on()

    def mind_reading(self) -> None:
        """Let TCP hold a side whose frames wait in too great a number, or are not taken."""
        joined = self.broker.transport is not None
        for side, other, direction in self._ways():
            side.read_if(joined and other.writable and not self.too_much(direction))

    def _moved(self) -> None:
        self.mind_reading()
        self._end_if_done()

    # -- while a gate is closed -------------------------------------------------------------

    def _live_on(self) -> None:
        patience = [side.patience_ms for side in (self.client, self.broker) if side.patience_ms]
        if patience and not self._over:
            # So often that a silence of half the time told is never overlooked.
            delay_us = max(US_PER_MS, min(patience) * US_PER_MS // 4)
            self._alive = self.server.clock.call_later(delay_us, self._keep_alive, idle=True)

    def _keep_alive(self) -> None:
        """Behind a closed gate a side hears nothing: an empty frame tells it that all is well."""
        for direction in Direction:
            side = self._receiver(direction)
            silent = side.octets_out == self._told[direction]
            if silent and side.may_hear and not side.gone and not self.wire.free(direction):
                side.write(self.wire.protocol.encode(self.wire.protocol.empty))
                side.flush()
            self._told[direction] = side.octets_out
        self._live_on()

    def _receiver(self, direction: Direction) -> ProxyEndpoint:
        return self.broker if direction is C2B else self.client

    # -- ends -------------------------------------------------------------------------------

    def side_gone(self, side: ProxyEndpoint) -> None:
        """A socket is closed: the other is, too, when it has got what was on its way."""
        if self._over:
            self.server.forget(self)
            return
        direction = C2B if side is self.client else B2C
        waiting = self.wire.waiting(direction)
        whose = "the client's" if side is self.client else "the broker's"
        held = f"; {waiting} of its frames still wait" if waiting else ""
        self.server.news.append(f"{self.name}: {whose} socket is closed{held}")
        self.lost = self.lost or side is self.client
        self.note("disconnect", side=side.from_peer)
        self._end_if_done()
        self.server.changed()

    def _end_if_done(self) -> None:
        """Close what is left when one side is gone and nothing of it waits."""
        for side, other, direction in self._ways():
            if side.gone and not self.wire.waiting(direction):
                self._finish(other)

    def _ways(self) -> tuple[tuple[ProxyEndpoint, ProxyEndpoint, Direction], ...]:
        """Each direction with the side that writes and the side that is written to."""
        return (self.client, self.broker, C2B), (self.broker, self.client, B2C)

    def _finish(self, other: ProxyEndpoint) -> None:
        if self._over:
            return
        self._over = True
        if self._alive is not None:
            self._alive.cancel()
        if other.gone or other.transport is None:
            self.server.forget(self)
            return
        other.close()  # it is forgotten when it has read what waits, or has not in time
        limit_us = int(self.server.limits.close_s * US_PER_S)
        self.server.clock.call_later(limit_us, other.abort, idle=True)

    @property
    def words(self) -> str:
        """Who it is: container or product, and address."""
        return f"{self._who}, from {self.client.address}"

    def farewell(self) -> None:
        """Nothing more is passed on; what has been is written."""
        for side in (self.client, self.broker):
            side.close()

    def drop(self) -> None:
        """Cut both sockets without a word."""
        for side in (self.client, self.broker):
            side.abort()
        if self.broker.transport is None:
            self._finish(self.broker)

    def overview(self) -> dict[str, Any]:
        """Flat picture: octets from and to both sides, and the wire's."""
        picture: dict[str, Any] = {}
        for side in (self.client, self.broker):
            picture[f"{side.from_peer}.octets_in"] = side.octets_in
            picture[f"{side.from_peer}.octets_out"] = side.octets_out
        return picture | {f"wire.{name}": value for name, value in self.wire.overview().items()}
