"""A connected socket: what is written within one turn of the loop leaves as one piece."""

from __future__ import annotations

import asyncio

from .limits import Limits


class BufferedSocket:
    """The octets of one socket, both ways.

    Args:
        loop: on which it runs.
        limits: of the server.

    Attributes:
        transport: None before the socket is connected; what is written waits for it.
        octets_in: octets read.
        octets_out: octets handed to the transport.
        writable: the peer reads what it is sent; false while too much waits for it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        self.loop = loop
        self.limits = limits
        self.transport: asyncio.Transport | None = None
        self.octets_in = 0
        self.octets_out = 0
        self.writable = True
        self._chunks: list[bytes] = []
        self._collected = 0  # octets in chunks

    def take_transport(self, transport: asyncio.BaseTransport) -> None:
        """The socket is connected."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=self.limits.write_octets)
        self.flush()

    @property
    def address(self) -> str:
        """Where the peer is, in words."""
        return "?" if self.transport is None else words_of(self.transport)

    @property
    def unread(self) -> int:
        """Octets that the peer has not read yet, as far as the transport knows."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def read_if(self, wanted: bool) -> None:
        """Reads on, or lets TCP hold the peer."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if not wanted:
            transport.pause_reading()
        elif not transport.is_reading():
            transport.resume_reading()

    def write(self, octets: bytes) -> None:
        """Collects octets, to be written with the loop's next turn."""
        if not self._chunks:
            self.loop.call_soon(self.flush)
        self._chunks.append(octets)
        self._collected += len(octets)
        if self._collected >= self.limits.flush_octets:
            self.flush()

    def flush(self) -> None:
        """Hands what was collected to the transport."""
        if not self._chunks or self.transport is None:
            return
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._collected = 0
        if not self.transport.is_closing():
            self.octets_out += len(data)
            self.transport.write(data)

    def close(self) -> None:
        """Writes what was collected, and closes."""
        self.flush()
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Cuts the connection."""
        if self.transport is not None:
            self.transport.abort()


def words_of(transport: asyncio.BaseTransport) -> str:
    """Where the peer of a transport is, in words."""
    where = transport.get_extra_info("peername")
    return f"{where[0]} port {where[1]}" if isinstance(where, tuple) else str(where)
