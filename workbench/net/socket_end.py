"""A socket as the client's end of a wire: octets become frames on the way in, and octets again.

Behind this end stands a real client that shows no counters. An observer that sees the same frames
works them out while somebody records; its ledgers are marked `shadow`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from workbench.amqp.errors import DecodeError
from workbench.amqp.fast import encode_quickly
from workbench.amqp.frame import Frame, WireItem
from workbench.amqp.framing import FrameReader
from workbench.amqp.observer import ConnectionObserver, ObservedScope
from workbench.amqp.performatives import Open
from workbench.sim import Direction

from .limits import Limits
from .live_wire import LiveWire

UNREAD_LIMIT = 4
"""So many times `write_octets` wait for a client that does not read: then it is not read either."""


class SocketEnd:
    """The client's end of a live wire.

    Args:
        loop: on which it runs; what is sent within one turn of it leaves as one piece.
        name: of the client in a trace.
        limits: of the listener.
        first_max_frame_size: the largest frame that is read before the broker's open has gone.
        recording: whether counters are wanted.
        on_undecodable: told when octets have come that are no AMQP 1.0, after every frame before
            them.

    Attributes:
        octets_in: octets read from the socket.
        octets_out: octets handed to the socket.
        writable: the client reads what it is sent; false while too much waits for it.
        told_open: the client has been sent the broker's open.
    """

    from_peer = "client"
    ledger_source = "shadow"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        limits: Limits,
        *,
        first_max_frame_size: int,
        recording: bool,
        on_undecodable: Callable[[DecodeError], None],
    ) -> None:
        self.vantage = f"client:{name}"
        self.wire: LiveWire | None = None
        self.octets_in = 0
        self.octets_out = 0
        self.writable = True
        self.told_open = False
        self._loop = loop
        self._limits = limits
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(first_max_frame_size, keeps_undecodable=True)
        self._observer = ConnectionObserver(end="client") if recording else None
        self._scope: ObservedScope | None = None
        self._chunks: list[bytes] = []
        self._waiting = 0  # octets in chunks
        self._dead = False
        self._on_undecodable = on_undecodable

    def take_transport(self, transport: asyncio.Transport) -> None:
        """The socket is connected."""
        self._transport = transport
        transport.set_write_buffer_limits(high=self._limits.write_octets)

    def connect(self, wire: LiveWire) -> None:
        """Take the wire; the client talks when it likes."""
        self.wire = wire

    # -- from the socket --------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Octets have come: put the frames they complete on the wire."""
        if self._dead:
            return
        self.octets_in += len(data)
        wire, observer = self.wire, self._observer
        assert wire is not None, "connect the end to a wire first"
        error: DecodeError | None = None
        try:
            items = self._reader.feed(data)
        except DecodeError as broken:
            self._dead, error, items = True, broken, list(broken.completed)
        for raw in items:
            if observer is not None:
                self._scope = observer.see(raw.item, from_client=True)
            wire.send(self, raw.item, raw.raw)
        if error is not None:
            self._on_undecodable(error)
        self.mind_the_gate()

    def mind_the_gate(self) -> None:
        """Too many frames wait at the gate: let TCP hold the client, until they are fewer."""
        transport, wire = self._transport, self.wire
        if transport is None or wire is None or transport.is_closing():
            return
        unread = transport.get_write_buffer_size() > UNREAD_LIMIT * self._limits.write_octets
        if unread or any(self.too_much(direction) for direction in Direction):
            transport.pause_reading()
        elif not transport.is_reading():
            transport.resume_reading()

    def too_much(self, direction: Direction) -> bool:
        """Whether more waits at the gate that way than the limits allow."""
        wire, limits = self.wire, self._limits
        assert wire is not None, "connect the end to a wire first"
        return (
            wire.waiting(direction) > limits.held_frames
            or wire.octets_waiting[direction] > limits.held_octets
        )

    # -- to the socket ----------------------------------------------------------------------

    def apply(self, item: WireItem) -> list[Any]:
        """A frame of the broker: its octets go to the client with the next flush."""
        if self._observer is not None:
            self._scope = self._observer.see(item, from_client=False)
        octets = encode_quickly(item)
        if isinstance(item, Frame) and type(item.performative) is Open:
            # From now on the client knows how large a frame may be.
            size = item.performative.max_frame_size
            self._reader.max_frame_size = 2**32 - 1 if size is None else size
            self.told_open = True
        if not self._chunks:
            self._loop.call_soon(self.flush)
        self._chunks.append(octets)
        self._waiting += len(octets)
        if self._waiting >= self._limits.flush_octets:
            self.flush()
        return []

    def flush(self) -> None:
        """Hand what was collected to the socket."""
        if not self._chunks:
            return
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._waiting = 0
        if self._transport is not None and not self._transport.is_closing():
            self.octets_out += len(data)
            self._transport.write(data)

    def react(self, events: Any) -> None:
        """Nothing: the real client reacts on its own."""

    def scope(self, item: WireItem, outgoing: bool) -> ObservedScope | None:
        """What the observer knows right after this frame."""
        return self._scope
