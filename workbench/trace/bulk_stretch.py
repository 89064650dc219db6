"""Some packets that stand behind each other in a capture, as far as they can be read together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .bulk_frames import COUNTED_OF, read_frames
from .bulk_lanes import Lane, Lanes
from .bulk_observer import COUNTED, Place
from .bulk_packets import Packets, Segments, segments, u32
from .bulk_table import table_of
from .capture_rows import RowMaker
from .packet import Segment, segment_of
from .tcp import Piece

__all__ = ["Stretch"]

_SMALLEST_FRAME = 8
_NO_LANE = -1

Plainly = Callable[[Packets, int], None]


class Stretch:
    """Packets that are read together, up to the first that does not follow the others in order.

    Args:
        packets: of which these are some.
        first: the first of them.
        last: behind the last.
        number: how many packets the capture has before `packets`.
        lanes: which directions can be read.

    Attributes:
        fast: packets that were read together.
    """

    def __init__(self, packets: Packets, first: int, last: int, number: int, lanes: Lanes) -> None:
        self.fast = 0
        self._packets = packets
        self._first = first
        self._number = number
        self._t_us = packets.t_us[first:last]
        found = segments(packets, first, last)
        self._payload = found.payload
        self._can_be_read = lanes.pair
        self._lanes: list[Lane] = []
        self._by_ends: dict[bytes, int] = {}
        self._lane = self._find_lanes(found, lanes)
        self._size = np.where(self._lane == _NO_LANE, 0, found.size)
        self._stop = last - first
        self._stop_where_out_of_order(found)
        self._cut_frames()
        self._noted: list[Any] = [np.zeros(0, np.int64)]
        self._counted = self._noted[0]
        self._numbers: dict[str, list[Any]] = {"seq": [], "frame_id": [], "t_us": []}

    # -- what can be read together --------------------------------------------------------------

    def _find_lanes(self, found: Segments, lanes: Lanes) -> Any:
        """For each packet its lane, as a place in `_lanes`."""
        width = found.width
        count = len(found.plain)
        keys = [found.keys[at : at + width] for at in range(0, count * width, width)]
        known = dict.fromkeys(keys, _NO_LANE)
        address = width // 2 - 2
        for key in tuple(known):
            if known[key] != _NO_LANE:
                continue
            source = key[:address] + key[-4:-2]
            destination = key[address:-4] + key[-2:]
            pair = lanes.pair(source, destination)
            if pair is None:
                continue
            back = key[address:-4] + key[:address] + key[-2:] + key[-4:-2]
            for each, ends in ((key, source + destination), (back, destination + source)):
                known[each] = self._by_ends[ends] = len(self._by_ends)
            self._lanes.extend(pair)
        lane = np.array([known[key] for key in keys], np.int64)
        lane[~found.plain] = _NO_LANE
        return lane

    def _stop_where_out_of_order(self, found: Segments) -> None:
        """Each packet must bring its direction's next octets and acknowledge none to come."""
        which = np.flatnonzero(self._lane != _NO_LANE)
        if not len(which):
            return
        lane, size = self._lane[which], self._size[which]
        order = np.argsort(lane >> 1, kind="stable")
        pair, second = lane[order] >> 1, (lane[order] & 1).astype(bool)
        begins = np.flatnonzero(np.append(True, pair[1:] != pair[:-1]))
        runs = np.diff(np.append(begins, len(order)))
        # Octets of either direction up to each packet, it included.
        sums = []
        for mine in (~second, second):
            octets = np.where(mine, size[order], 0)
            total = np.cumsum(octets)
            sums.append(total - np.repeat((total - octets)[begins], runs))
        own = np.where(second, sums[1], sums[0]) - size[order]
        other = np.where(second, sums[0], sums[1])
        start = np.array([each.start for each in self._lanes], np.int64)
        expected = (start[lane[order]] + own).astype(np.uint32)
        reached = (start[lane[order] ^ 1] + other).astype(np.uint32)
        wrong = (size[order] > 0) & (found.seq[which][order] != expected)
        wrong |= (found.ack[which][order] - reached).view(np.int32) > 0
        if wrong.any():
            self._stop = int(which[order[wrong]].min())

    def _cut_frames(self) -> None:
        """Finds the frames of packets of whole frames; stops at the first other packet."""
        octets = self._packets.octets
        place = np.flatnonzero(self._size[: self._stop] > 0)
        at, left = self._payload[place], self._size[place]
        places, ats, sizes = [place[:0]], [at[:0]], [left[:0]]
        while len(place):
            size = u32(octets, at).astype(np.int64)
            whole = (left >= _SMALLEST_FRAME) & (size >= _SMALLEST_FRAME) & (size <= left)
            if not whole.all():
                self._stop = min(self._stop, int(place[~whole].min()))
                place, at, left, size = place[whole], at[whole], left[whole], size[whole]
            places.append(place)
            ats.append(at)
            sizes.append(size)
            at, left = at + size, left - size
            more = left > 0
            place, at, left = place[more], at[more], left[more]
        place = np.concatenate(places)
        order = np.argsort(place, kind="stable")
        order = order[place[order] < self._stop]
        self._place = place[order]
        self._frames = read_frames(octets, np.concatenate(ats)[order], np.concatenate(sizes)[order])

    @property
    def rows(self) -> int:
        """Rows of frames that were read together."""
        return len(self._counted)

    # -- reading ----------------------------------------------------------------------------------

    def read(self, maker: RowMaker, plainly: Plainly) -> int:
        """Reads them; what cannot be read together goes the plain way in its turn.

        Args:
            maker: of the rows.
            plainly: reads one packet in the plain way.

        Returns:
            The first of `packets` that was not read.
        """
        self._begin()
        frame = 0
        reached = self._stop
        for place in [*np.flatnonzero(self._lane[: self._stop] == _NO_LANE).tolist(), self._stop]:
            until = int(np.searchsorted(self._place, place))
            frame, disturbed = self._count(frame, until, maker)
            if disturbed is not None:
                reached = disturbed
                break
            if place == self._stop:
                break
            if not self._one(place, plainly):
                reached = place + 1
                break
        self._end(reached)
        return self._first + reached

    def _begin(self) -> None:
        """Puts down what is to be counted of each frame."""
        frames = self._frames
        self._kinds = frames.kind.tolist()
        self._of = self._lane[self._place].tolist()
        self._arguments: list[Any] = [None] * len(self._kinds)
        known = {"channel": frames.channel} | frames.numbers | frames.flags
        for kind, names in COUNTED_OF.items():
            some = np.flatnonzero(frames.kind == kind)
            rows = np.stack([known[name][some] for name in names], axis=1).tolist()
            for frame, row in zip(some.tolist(), rows, strict=True):
                self._arguments[frame] = row

    def _count(self, frame: int, until: int, maker: RowMaker) -> tuple[int, int | None]:
        """Counts frames from one on; gives the next one, and where it must end, if it must."""
        lanes, kinds, of, arguments = self._lanes, self._kinds, self._of, self._arguments
        began = frame
        while frame < until:
            lane = lanes[of[frame]]
            count = lane.counts[kinds[frame]]
            if count is not None and count(lane.from_client, *arguments[frame]):
                frame += 1
                continue
            self._note(began, frame, maker)
            place = int(self._place[frame])
            undisturbed = self._rest(place, frame)
            frame = began = int(np.searchsorted(self._place, place + 1))
            if not undisturbed:
                return frame, place + 1
        self._note(began, frame, maker)
        return frame, None

    def _note(self, first: int, last: int, maker: RowMaker) -> None:
        """These frames are counted, and their rows come next."""
        if first == last:
            return
        passed = self._t_us[self._place[first:last]] - maker.start_us
        t_us = np.maximum.accumulate(np.maximum(passed, maker.t_us))
        seq, frame_id = maker.elsewhere(last - first, int(t_us[-1]))
        each = np.arange(last - first)
        self._noted.append(np.arange(first, last))
        for name, values in (("seq", seq + each), ("frame_id", frame_id + each), ("t_us", t_us)):
            self._numbers[name].append(values)

    def _rest(self, place: int, frame: int) -> bool:
        """Reads a packet plainly from one of its frames on; True if all can go on as it was."""
        number = int(self._lane[place])
        lane, other = self._lanes[number], self._lanes[number ^ 1]
        packet = self._number + self._first + place
        before, size = self._octets(number, place), int(self._size[place])
        at, begins = int(self._frames.at[frame]), int(self._payload[place])
        lane.catch_up(before + size, before + at - begins, packet + 1)
        there = self._octets(number ^ 1, place)
        other.catch_up(there, there, packet)
        rest = self._packets.data[at : begins + size]
        lane.conversation.take(Piece(lane.direction, int(self._t_us[place]), rest, 0, packet + 1))
        lane.cut = lane.in_order
        lane.counter.forget()
        return lane.undisturbed and other.undisturbed

    def _one(self, place: int, plainly: Plainly) -> bool:
        """Reads a whole packet plainly; True if all can go on as it was."""
        packet = self._packets.packet(self._first + place, 0)
        segment = segment_of(packet)
        number = None
        if isinstance(segment, Segment):
            number = self._by_ends.get(segment.source + segment.destination)
        pair = []
        if number is not None:
            for each in (number, number ^ 1):
                octets = self._octets(each, place)
                lane = self._lanes[each]
                lane.catch_up(octets, octets, self._number + self._first + place)
                lane.counter.forget()
                pair.append(lane)
        plainly(self._packets, self._first + place)
        if isinstance(segment, Segment) and not pair:
            # What follows of a connection that this packet made readable is worth a new beginning.
            return self._can_be_read(segment.source, segment.destination) is None
        return all(lane.undisturbed for lane in pair)

    def _octets(self, lane: int, place: int) -> int:
        """Octets of a lane before a packet."""
        return int(self._size[:place][self._lane[:place] == lane].sum())

    def _end(self, reached: int) -> None:
        """Bring all lanes to the first packet that was not read."""
        self._counted = np.concatenate(self._noted)
        lane, size = self._lane[:reached], self._size[:reached]
        read = lane != _NO_LANE
        self.fast = int(read.sum())
        if not self.fast:
            return
        lane, times = lane[read], self._t_us[:reached][read]
        many = len(self._lanes)
        octets = np.bincount(lane, size[read], many).astype(np.int64).tolist()
        packets = np.bincount(lane, minlength=many).tolist()
        latest = np.zeros(many, np.int64)
        np.maximum.at(latest, lane, times)
        frames = np.bincount(self._lane[self._place[self._counted]], minlength=many).tolist()
        for each, one in enumerate(self._lanes):
            one.catch_up(octets[each], octets[each], self._number + self._first + reached)
            one.side.frames += frames[each]
            one.direction.conversation.seen(packets[each], int(latest[each]))

    def table(self, maker: RowMaker, places: list[Place], counts: Any) -> Any:
        """The rows of the frames that were read together.

        Args:
            maker: of the rows.
            places: what they concern.
            counts: what was counted of them, in their order.
        """
        numbers = {name: np.concatenate(each) for name, each in self._numbers.items()}
        numbers["t_raw_us"] = self._t_us[self._place[self._counted]]
        return table_of(
            maker, self._packets.data, self._frames, self._counted,
            counts.reshape(-1, len(COUNTED)), places, numbers,
        )  # fmt: skip
