"""A socket as the client's end of a wire: octets become frames on the way in, and octets again.

Behind this end stands a real client that shows no counters. An observer that sees the same frames
works them out while somebody records; its ledgers are marked `shadow`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .buffered_socket import BufferedSocket
from .limits import Limits
from .live_wire import LiveWire
from .protocols import WireProtocol


class SocketEnd(BufferedSocket):
    """The client's end of a live wire.

    Args:
        loop: on which it runs.
        name: of the client in a trace.
        limits: of the listener.
        protocol: of the frames.
        reader: cuts what comes into frames.
        observer: works out the client's counters; None: nobody wants them.
        opens: asked of each frame of the broker until one is its last word of the handshake.
        on_undecodable: told when octets have come that are no frame, after every frame before
            them.

    Attributes:
        wire: of which it is an end.
        told_open: the client has been sent the broker's last word of the handshake.
        dead: nothing more can be read.
    """

    from_peer = "client"
    ledger_source = "shadow"

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        name: str,
        limits: Limits,
        *,
        protocol: WireProtocol,
        reader: Any,
        observer: Any,
        opens: Callable[[Any], bool],
        on_undecodable: Callable[[Any], None],
    ) -> None:
        super().__init__(loop, limits)
        self.vantage = f"client:{name}"
        self.wire: LiveWire
        self.told_open = False
        self.dead = False
        self._encode = protocol.encode
        self._reader = reader
        self._observer = observer
        self._scope: Any = None
        self._opens = opens
        self._undecodable = protocol.undecodable
        self._on_undecodable = on_undecodable

    def receive(self, data: bytes) -> None:
        """Octets have come: put the frames they complete on the wire."""
        if self.dead:
            return
        self.octets_in += len(data)
        wire, observer = self.wire, self._observer
        error: Any = None
        try:
            items = self._reader.feed(data)
        except self._undecodable as broken:
            self.dead, error, items = True, broken, broken.completed
        for raw in items:
            if observer is not None:
                self._scope = observer.see(raw.item, from_client=True)
            wire.send(self, raw.item, raw.raw)
        if error is not None:
            self._on_undecodable(error)

    def apply(self, item: Any) -> list[Any]:
        """A frame of the broker: its octets go to the client with the next flush."""
        if self._observer is not None:
            self._scope = self._observer.see(item, from_client=False)
        if not self.told_open:
            self.told_open = self._opens(item)
        self.write(self._encode(item))
        return []

    def react(self, events: Any) -> None:
        """Nothing: the real client reacts on its own."""

    def scope(self, item: Any, outgoing: bool) -> Any:
        """What the observer knows right after this frame."""
        return self._scope
