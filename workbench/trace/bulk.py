"""A capture read many packets at a time: the same rows in a fraction of the time.

What a busy connection mostly consists of (packets in order, whole transfers, flows and dispositions
in their usual encoding, counters that are all known) is read by columns. Anything else, down to the
single frame, goes the plain way of `packet`, `tcp`, `cutter` and `amqp.observer`, whose state is
brought up to it first. A test plays both side by side.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .bulk_lanes import Lanes
from .bulk_observer import Place
from .bulk_packets import Packets, packets_ahead
from .bulk_stretch import Stretch
from .capture_rows import RowMaker
from .conversation import AmqpConversation
from .pcap import CaptureReader, Packet
from .tcp import Reassembler

__all__ = ["Bulk"]

LEAST = 256
"""Packets that are looked at together at the least; their number grows while all goes well."""
MOST = 1 << 16
FEW = 32
"""Where no more than these could be read together, the next `LEAST` go the plain way at once."""


class Bulk:
    """Reads what comes next in a capture, as far as it can be read many packets at a time.

    Args:
        reader: of the capture.
        reassembler: of its connections.
        conversations: of the capture so far, in their order.
        maker: of the rows.
        plainly: reads one packet in the plain way.

    Attributes:
        packets: that were not read plainly.
    """

    def __init__(
        self,
        reader: CaptureReader,
        reassembler: Reassembler,
        conversations: list[AmqpConversation],
        maker: RowMaker,
        plainly: Callable[[Packet], None],
    ) -> None:
        self.packets = 0
        self._reader = reader
        self._maker = maker
        self._plainly = plainly
        self._places: list[Place] = []
        self._counts = array("q")
        self._lanes = Lanes(reassembler, conversations, self._places, self._counts)
        self._window = LEAST

    def read(self) -> Iterator[Any]:
        """Tables of rows of the packets that come next; the reader must be between two packets.

        The rows of what was read in the plain way meanwhile are with the maker: `seq` tells where
        they belong.
        """
        packets = packets_ahead(self._reader)
        if packets is None:
            return
        at = 0
        while at < packets.count:
            until = min(packets.count, at + self._window)
            stretch = Stretch(packets, at, until, self._reader.number, self._lanes)
            reached = stretch.read(self._maker, self._plain)
            self.packets += stretch.fast
            if stretch.rows:
                yield stretch.table(self._maker, self._places, self._counted())
            if reached == until:
                self._window = min(MOST, 2 * self._window)
            else:
                self._window = max(LEAST, self._window // 2)
                self._plain(packets, reached)
                reached += 1
            at = reached
            if stretch.fast < FEW:
                until = min(packets.count, at + LEAST)
                for place in range(at, until):
                    self._plain(packets, place)
                at = until
        self._reader.passed(int(packets.ends[-1]), packets.count, int(packets.t_us[-1]))

    def _counted(self) -> Any:
        counts = np.array(self._counts)
        del self._counts[:]
        return counts

    def _plain(self, packets: Packets, place: int) -> None:
        self._plainly(packets.packet(place, self._reader.number + place + 1))
