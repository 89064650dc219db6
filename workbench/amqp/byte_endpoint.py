"""A connection over octets: what a socket, or another engine's buffer, is joined to.

`ByteEndpoint` cuts incoming octets into frames for its connection, and collects what the connection
sends. It neither reads a socket nor answers an event: both are its owner's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.amqp.connection import Connection
from workbench.amqp.errors import DecodeError, ErrorCondition, Scope
from workbench.amqp.events import Event, ProtocolViolation
from workbench.amqp.fast import encode_quickly, encode_settled_batch, take_transfers
from workbench.amqp.frame import (
    FRAME_HEADER_SIZE,
    MIN_MAX_FRAME_SIZE,
    Frame,
    WireItem,
    encode_item,
)
from workbench.amqp.framing import FrameReader, RawItem
from workbench.amqp.performatives import AMQP_FRAME, Open
from workbench.amqp.sasl import SaslClient, SaslServer
from workbench.amqp.sender import SenderLink
from workbench.amqp.settings import ConnectionSettings, SessionSettings

__all__ = ["ByteEndpoint"]

TYPE_OFFSET = 5  # of the TYPE octet in a frame


class ByteEndpoint:
    """Joins a `Connection` to octets.

    Args:
        container_id: of this end.
        is_client: this end speaks first.
        settings: of this end.
        session_settings: of the sessions that this end begins or accepts without others.
        sasl: how a client makes itself known, or whom a server lets in.
        on_sent: called with each item sent and its octets; for an observer.
        on_received: called with each item and its octets when it has been applied, with its
            events; for an observer.
        fast: transfers and settled batches may take the short cut of `fast`, which gives the same
            octets, events and counters. With an observer it is not taken.

    Attributes:
        connection: the endpoint.
        dead: octets came that are no AMQP; nothing further is read.
    """

    def __init__(
        self,
        *,
        container_id: str,
        is_client: bool,
        settings: ConnectionSettings | None = None,
        session_settings: SessionSettings | None = None,
        sasl: SaslClient | SaslServer | None = None,
        on_sent: Callable[[WireItem, bytes], None] | None = None,
        on_received: Callable[[RawItem, list[Event]], None] | None = None,
        fast: bool = True,
    ) -> None:
        self.connection = Connection(
            container_id=container_id,
            is_client=is_client,
            emit=self._sent,
            settings=settings,
            session_settings=session_settings,
            sasl=sasl,
        )
        self.dead = False
        self._reader = FrameReader(MIN_MAX_FRAME_SIZE)
        self._tail = b""  # of a frame that is not complete; the reader has none then
        self._chunks: list[bytes] = []
        self._on_sent = on_sent
        self._on_received = on_received
        self._fast = fast and on_sent is None and on_received is None
        if self._fast:
            self.connection.batch_encoder = self._encode_batch

    def start(self) -> None:
        """Begins, as `Connection.start`."""
        self.connection.start()

    def data_to_send(self) -> bytes:
        """The octets to be put on the transport since the last call."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data

    def receive_data(self, data: bytes) -> list[Event]:
        """Takes octets from the transport, in any pieces.

        Args:
            data: the next octets.

        Returns:
            What they mean, in order; the owner answers. Octets that are no AMQP 1.0 give a
            `ProtocolViolation` of the connection, and after it nothing more.
        """
        if self.dead:
            return []
        events: list[Event] = []
        try:
            if self._hurried():
                self._receive_fast(data, events)
            else:
                self._receive(data, events)
        except DecodeError as error:
            for raw in error.completed:
                self._apply(raw, events)
            self.dead = True
            events.append(
                ProtocolViolation(
                    scope=Scope.CONNECTION, condition=error.condition, description=error.message
                )
            )
        return events

    def _receive(self, data: bytes, events: list[Event]) -> None:
        if self._tail:
            data, self._tail = self._tail + data, b""
        for raw in self._reader.feed(data):
            self._apply(raw, events)

    def _apply(self, raw: RawItem, events: list[Event]) -> None:
        connection = self.connection
        if connection.remote_open is None and len(raw.raw) > MIN_MAX_FRAME_SIZE:
            text = (
                f"a frame of {len(raw.raw)} octets came; before both opens are exchanged the "
                f"largest is {MIN_MAX_FRAME_SIZE} [2.4.1]"
            )
            new: list[Event] = [connection.violated(ErrorCondition.FRAMING_ERROR, text)]
        else:
            new = connection.apply(raw.item)
        events.extend(new)
        if self._on_received is not None:
            self._on_received(raw, new)

    # -- the short way --------------------------------------------------------------------------

    def _hurried(self) -> bool:
        """Whether frames may go the short way: after the opens, between two frames."""
        return (
            self._fast and self.connection.opened and (bool(self._tail) or not self._reader.pending)
        )

    def _receive_fast(self, data: bytes, events: list[Event]) -> None:
        """Cuts frames here, and gives the reader only those that are not plain."""
        reader = self._reader
        if self._tail:
            data, self._tail = self._tail + data, b""
        at, end = 0, len(data)
        while True:
            after = take_transfers(self.connection, data, at, events)
            reader.offset += after - at
            at = after
            if end - at < FRAME_HEADER_SIZE:
                break
            size = int.from_bytes(data[at : at + 4], "big")
            legal = FRAME_HEADER_SIZE <= size <= reader.max_frame_size
            if legal and size > end - at and data[at + TYPE_OFFSET] == AMQP_FRAME:
                break
            self._receive(data[at : at + max(size, FRAME_HEADER_SIZE)], events)
            at += size
        self._tail = data[at:]

    def _encode_batch(self, link: SenderLink, payloads: Sequence[bytes]) -> int:
        return encode_settled_batch(link, payloads, self._chunks)

    def _sent(self, item: WireItem) -> None:
        octets = encode_quickly(item) if self._fast else encode_item(item)
        self._chunks.append(octets)
        if isinstance(item, Frame) and type(item.performative) is Open:
            # From now on the peer may know the limit of this end, and use it.
            assert item.performative.max_frame_size is not None
            self._reader.max_frame_size = item.performative.max_frame_size
        if self._on_sent is not None:
            self._on_sent(item, octets)
