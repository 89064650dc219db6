"""The wire of a live connection: the simulator's wire, which costs nothing while nobody holds it.

Between the socket and the broker stands the same wire as in a virtual run, with the same gates. So
a frame of a real client can be held, counted and let through by hand. While both gates are open a
frame takes the short way: sent, applied and answered at once.
"""

from __future__ import annotations

from typing import Any

from workbench.sim import Flight, Wire


class LiveWire(Wire):
    """A wire on the wall clock.

    Attributes:
        open: whether frames take the short way; false while a gate is closed, a frame is held or
            the wire has a latency.
    """

    def send(self, end: Any, item: Any, octets: bytes | None = None) -> Flight:
        """Carry a frame: at once if nothing is in its way, else as in a virtual run."""
        lane = self._by_sender[id(end)]
        if lane.flights or lane.closed or lane.latency_us:
            return super().send(end, item, octets)
        now_us = self._clock.now_us
        flight = Flight(
            frame_id=self._next_frame_id(),
            item=item,
            direction=lane.direction,
            connection=self.connection,
            sent_us=now_us,
            arrives_us=now_us,
            octets=octets,
        )
        self.tap.sent(end, flight)
        receiver = lane.receiver
        events = receiver.apply(item)
        self.tap.received(receiver, flight)
        if events:
            receiver.react(events)
        return flight
