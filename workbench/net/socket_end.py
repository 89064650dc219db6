"""A socket as the client's end of a wire: octets become frames on the way in, and octets again.

Behind this end stands a real AMQP 1.0 client that shows no counters. An observer that sees the same
frames works them out while somebody records; its ledgers are marked `shadow`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from workbench.amqp10.errors import DecodeError
from workbench.amqp10.frame import Frame, WireItem
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.observer import ConnectionObserver, ObservedScope
from workbench.amqp10.performatives import Open

from .buffered_socket import BufferedSocket
from .limits import Limits
from .live_wire import LiveWire
from .protocols import AMQP_1_0


class SocketEnd(BufferedSocket):
    """The client's end of a live wire.

    Args:
        loop: on which it runs.
        name: of the client in a trace.
        limits: of the listener.
        first_max_frame_size: the largest frame that is read before the broker's open has gone.
        recording: whether counters are wanted.
        on_undecodable: told when octets have come that are no AMQP 1.0, after every frame before
            them.

    Attributes:
        wire: of which it is an end.
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
        super().__init__(loop, limits)
        self.vantage = f"client:{name}"
        self.wire: LiveWire
        self.told_open = False
        self._reader = FrameReader(first_max_frame_size, keeps_undecodable=True)
        self._observer = ConnectionObserver(end="client") if recording else None
        self._scope: ObservedScope | None = None
        self._dead = False
        self._on_undecodable = on_undecodable

    def receive(self, data: bytes) -> None:
        """Octets have come: put the frames they complete on the wire."""
        if self._dead:
            return
        self.octets_in += len(data)
        wire, observer = self.wire, self._observer
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

    def apply(self, item: WireItem) -> list[Any]:
        """A frame of the broker: its octets go to the client with the next flush."""
        if self._observer is not None:
            self._scope = self._observer.see(item, from_client=False)
        if isinstance(item, Frame) and type(item.performative) is Open:
            # From now on the client knows how large a frame may be.
            size = item.performative.max_frame_size
            self._reader.max_frame_size = 2**32 - 1 if size is None else size
            self.told_open = True
        self.write(AMQP_1_0.encode(item))
        return []

    def react(self, events: Any) -> None:
        """Nothing: the real client reacts on its own."""

    def scope(self, item: WireItem, outgoing: bool) -> ObservedScope | None:
        """What the observer knows right after this frame."""
        return self._scope
