"""What a watcher of a connection knows: the books of its channels, by the frames that pass.

A capture may begin in the middle and may lose frames: the counters of the channels that were open
then are unknown until the channel is opened anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.amqp091.counters import ChannelCounters
from workbench.amqp091.frame import Frame, WireItem
from workbench.amqp091.methods import CONTENT, ChannelCloseOk, ChannelOpen, Method
from workbench.amqp091.scope import NOWHERE, ItemScope

__all__ = ["ConnectionObserver"]

PREFETCH = ("prefetch_count", "unacknowledged")


@dataclass(slots=True, eq=False)
class ObservedChannel:
    """A channel.

    Attributes:
        ordinal: in order of first appearance, from 1.
        known: its channel.open was seen, and all since.
        counters: its book.
        under_way: the consumer of the message under way, by who sends it.
    """

    ordinal: int
    known: bool
    counters: ChannelCounters = field(default_factory=ChannelCounters)
    under_way: dict[bool, str | None] = field(default_factory=dict)

    def see(self, frame: Frame, from_client: bool) -> str | None:
        """Counts a frame; returns the consumer that it concerns."""
        said = frame.payload
        if not isinstance(said, Method):
            return self.under_way.get(from_client)
        consumer = self.counters.consumer_of(said)
        self.counters.see(said, from_client)
        if type(said) in CONTENT:
            self.under_way[from_client] = consumer
        return consumer


class ConnectionObserver:
    """Follows one AMQP 0-9-1 connection.

    Attributes:
        assumptions: what was supposed about channels that were opened before the capture.
    """

    def __init__(self) -> None:
        self.assumptions: list[str] = []
        self._channels: dict[int, ObservedChannel] = {}
        self._ordinal = 0
        self._partial = False  # the beginning was not seen, or something since was not

    def see(self, item: WireItem, from_client: bool) -> ItemScope:
        """Takes in one frame or protocol header and returns what it concerns."""
        if not isinstance(item, Frame) or item.channel == 0:
            return NOWHERE
        number, said = item.channel, item.payload
        channel = self._channels.get(number)
        opens = isinstance(said, ChannelOpen)
        if channel is None and not opens and not self._partial:
            return NOWHERE  # it was never opened
        if channel is None or opens:
            self._ordinal += 1
            channel = self._channels[number] = ObservedChannel(self._ordinal, known=opens)
            if not opens:
                self.assumptions.append(
                    f"channel {number} was opened before its first frame here; its counters are "
                    "not known"
                )
        consumer = channel.see(item, from_client)
        if isinstance(said, ChannelCloseOk):
            del self._channels[number]
        if not channel.known:
            return ItemScope(channel.ordinal, consumer, None, PREFETCH)
        return ItemScope(channel.ordinal, consumer, channel.counters.ledger(consumer))

    def lost(self, from_client: bool) -> None:
        """Octets of either direction are missing here: what they may have changed is unknown.

        Args:
            from_client: whose they were; a channel's book needs both.
        """
        self._partial = True
        for channel in self._channels.values():
            channel.known = False
            channel.under_way.clear()
            channel.counters.lost()
