"""A connection over octets, for another engine's buffer or a socket, joined as `net` joins them."""

from __future__ import annotations

from workbench.amqp10.connection import Connection
from workbench.amqp10.errors import DecodeError, Scope
from workbench.amqp10.events import ProtocolViolation
from workbench.amqp10.frame import encode_item
from workbench.amqp10.framing import FrameReader


class ByteEndpoint:
    """Cuts incoming octets into frames for its connection, and collects what that sends.

    It neither reads a socket nor answers an event: both are its owner's.

    Args:
        on_received: called with each item that has come.
        **connection: of the endpoint.
    """

    def __init__(self, *, on_received=None, **connection):
        self.connection = Connection(emit=self._sent, **connection)
        self.dead = False  # octets came that are no AMQP; nothing further is read
        self._reader = FrameReader(self.connection.settings.max_frame_size, keeps_undecodable=True)
        self._chunks = []
        self._on_received = on_received

    def data_to_send(self):
        """The octets to be put on the transport since the last call."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data

    def receive_data(self, data):
        """Takes octets, in any pieces; gives what they mean, in order, for the owner to answer."""
        if self.dead:
            return []
        fault = None
        try:
            items = self._reader.feed(data)
        except DecodeError as error:
            self.dead, fault, items = True, error, error.completed
        events = []
        for raw in items:
            events += self.connection.apply(raw.item)
            if self._on_received is not None:
                self._on_received(raw.item)
        if fault is not None:
            events.append(
                ProtocolViolation(
                    scope=Scope.CONNECTION, condition=fault.condition, description=fault.message
                )
            )
        return events

    def _sent(self, item):
        self._chunks.append(encode_item(item))
