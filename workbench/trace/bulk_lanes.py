"""The directions of connections that can be read many packets at a time, and how far each is.

A direction can be read so while nothing about it is open: no hole in it or in the other one, no
frame of which only a part has come, both ends' protocol known. Reassembly and cutter keep their
state meanwhile; `catch_up` brings them to where the reading is, before anything is left to them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from workbench import serial

from .bulk_observer import BulkObserver, Place
from .conversation import AmqpConversation, Side
from .tcp import Direction, Reassembler

__all__ = ["Lane", "Lanes"]


@dataclass(slots=True, eq=False)
class Lane:
    """A direction that is read.

    Attributes:
        direction: of the connection.
        side: its cutter.
        conversation: whose it is.
        from_client: the client sends here.
        counter: counts the connection's frames.
        counts: by kind of frame (`bulk_frames`) the method that does it.
        start: sequence number at which the reading began.
        in_order: octets since then that are in order.
        cut: octets since then that are cut into frames.
    """

    direction: Direction
    side: Side
    conversation: AmqpConversation
    from_client: bool
    counter: BulkObserver
    start: int
    in_order: int = 0
    cut: int = 0
    counts: tuple[Callable[..., bool] | None, ...] = ()

    def __post_init__(self) -> None:
        counter = self.counter
        self.counts = (None, counter.transfer, counter.flow, counter.disposition)

    def catch_up(self, in_order: int, cut: int, packet: int) -> None:
        """All octets up to these have been read; none lies behind `packet`."""
        if in_order != self.in_order:
            self.direction.passed(in_order - self.in_order, packet)
        if cut != self.cut:
            self.side.passed(cut - self.cut)
        self.in_order, self.cut = in_order, cut

    @property
    def undisturbed(self) -> bool:
        """What came since by other means has not moved it, and it can still be read."""
        wanted = serial.add(self.start, self.in_order)
        return self.direction.next_seq == wanted and is_ready(self.direction, self.side)


def is_ready(direction: Direction, side: Side) -> bool:
    """Whether nothing is open about a direction; of the other one its octets count too."""
    other = direction.conversation.other(direction)
    return (
        direction.next_seq is not None
        and other.next_seq is not None
        and not direction.finished
        and not other.finished
        and not direction.conversation.incomplete
        and not direction.conversation.held
        and side.is_between_frames
    )


class Lanes:
    """Which directions can be read.

    Args:
        reassembler: knows the connections.
        conversations: of the capture so far, in their order.
        places: of all that is counted.
        counts: of all that is counted.
    """

    def __init__(
        self,
        reassembler: Reassembler,
        conversations: list[AmqpConversation],
        places: list[Place],
        counts: array[int],
    ) -> None:
        self._reassembler = reassembler
        self._conversations = conversations
        self._places = places
        self._counts = counts
        self._counters: dict[AmqpConversation, BulkObserver] = {}

    def pair(self, source: bytes, destination: bytes) -> tuple[Lane, Lane] | None:
        """Both directions between two ends, the source's first; None if one cannot be read."""
        direction = self._reassembler.direction(source, destination)
        if direction is None:
            return None
        number = direction.conversation.number
        if number > len(self._conversations):
            return None
        conversation = self._conversations[number - 1]
        observer = conversation.observer
        if observer is None or conversation.client is None:
            return None
        counter = self._counters.get(conversation)
        if counter is None:
            counter = self._counters[conversation] = BulkObserver(
                observer, conversation.name, self._places, self._counts
            )
        counter.forget()  # packets may have been read plainly meanwhile
        lanes = []
        for each in (direction, direction.conversation.other(direction)):
            side = conversation.side_of(each)
            if not is_ready(each, side) or side.first_kind is None:
                return None
            assert each.next_seq is not None
            from_client = each.source == conversation.client
            lanes.append(Lane(each, side, conversation, from_client, counter, each.next_seq))
        return lanes[0], lanes[1]
