"""A wire between two ends: latency, gates, and the order that TCP keeps.

Frames travel as values. Within one direction no frame ever overtakes an earlier one: not when the
latency falls during the run, not when a hand lets frames through one by one. A wish that would
break this order is refused with the reason, for no TCP connection could grant it.

A held frame holds everything behind it in its direction, and nothing else: the clock goes on, the
other direction goes on.

A wire may have a capacity, as TCP has: what the socket buffers and the receiver's window hold. It
loses nothing that is sent beyond; it tells the end that sends to wait, and when there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .clock import REACT, Clock
from .gates import Gates
from .lanes import Direction, End, Flight, Lane, WireError
from .tap import NoTap, Tap


class Wire(Gates):
    """Carries frames between a client's end and a broker's end.

    Args:
        clock: the run's clock.
        client_end: the end that opened the connection.
        broker_end: the end that accepted it.
        latency_us: microseconds from client to broker and from broker to client.
        connection: name of the connection in a trace.
        tap: observer of both ends.
        next_frame_id: source of frame ids, shared by all wires of a run.
        capacity: octets in flight in one direction from which on its sender is told to wait; None
            is no limit. The ends then need `writable` and `kick`.
        size: octets of a frame; wanted with a capacity.
    """

    def __init__(
        self,
        clock: Clock,
        client_end: End,
        broker_end: End,
        *,
        latency_us: tuple[int, int],
        connection: str = "c1",
        tap: Tap | None = None,
        next_frame_id: Callable[[], int] | None = None,
        capacity: int | None = None,
        size: Callable[[Any], int] | None = None,
    ) -> None:
        self.connection = connection
        self.capacity = capacity
        self._size = size
        self.tap: Tap = tap if tap is not None else NoTap()
        self._clock = clock
        self._next_frame_id = next_frame_id or _counter()
        c2b, b2c = Direction.CLIENT_TO_BROKER, Direction.BROKER_TO_CLIENT
        self._lanes = {
            c2b: Lane(c2b, client_end, broker_end, _checked_latency(latency_us[0])),
            b2c: Lane(b2c, broker_end, client_end, _checked_latency(latency_us[1])),
        }
        self._by_sender = {
            id(client_end): self._lanes[c2b],
            id(broker_end): self._lanes[b2c],
        }

    # -- carrying ---------------------------------------------------------------------------

    def send(self, end: End, item: Any, octets: bytes | None = None) -> Flight:
        """Put a frame of `end` on the wire; it arrives after the latency, behind earlier ones.

        Args:
            end: who sends it.
            item: the frame as a value.
            octets: the frame as its peer wrote it, where that is known.
        """
        lane = self._by_sender[id(end)]
        now_us = self._clock.now_us
        arrives_us = now_us + lane.latency_us
        if arrives_us > lane.last_arrival_us:
            lane.last_arrival_us = arrives_us
        flight = Flight(  # by place: quicker, and there is one for each frame
            self._next_frame_id(),
            item,
            lane.direction,
            self.connection,
            now_us,
            lane.last_arrival_us,
            octets,
        )
        self.tap.sent(end, flight)
        self._carry(lane, flight)
        return flight

    def park(self, end: End, item: Any) -> Flight:
        """Send a frame that waits in its end, behind earlier ones, until `depart` lets it go."""
        lane = self._by_sender[id(end)]
        now_us = self._clock.now_us
        flight = Flight(
            frame_id=self._next_frame_id(),
            item=item,
            direction=lane.direction,
            connection=self.connection,
            sent_us=now_us,
            arrives_us=now_us + lane.latency_us,
            parked=True,
        )
        self.tap.sent(end, flight)
        self._carry(lane, flight)
        return flight

    def depart(self, flight: Flight) -> None:
        """Put a parked frame on the wire: it arrives after the latency, behind earlier ones."""
        lane = self._lanes[flight.direction]
        flight.parked = False
        arrives_us = self._clock.now_us + lane.latency_us
        flight.arrives_us = lane.last_arrival_us = max(lane.last_arrival_us, arrives_us)
        if self.capacity is not None:
            self._weigh(lane, flight, 1)
        if lane.flights[0] is flight:
            self._schedule(lane)

    def take_in(self, flight: Flight) -> None:
        """Let the receiver work in a frame that it was handed by `intake`, and that has waited."""
        self._take_in(self._lanes[flight.direction], flight)

    # -- latency ----------------------------------------------------------------------------

    def latency_us(self, direction: Direction | str) -> int:
        """Latency in microseconds for frames that are sent from now on."""
        return self._lanes[Direction.of(direction)].latency_us

    def set_latency(self, direction: Direction | str, latency_us: int) -> None:
        """Change the latency of frames sent from now on; those in flight keep their arrival."""
        self._lanes[Direction.of(direction)].latency_us = _checked_latency(latency_us)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: latency, frames in flight and held, and gates, per direction."""
        picture: dict[str, int | bool | str] = {"connection": self.connection}
        for direction, lane in self._lanes.items():
            name = direction.value
            picture[f"{name}_latency_us"] = lane.latency_us
            picture[f"{name}_in_flight"] = len(lane.flights)
            picture[f"{name}_held"] = sum(1 for flight in lane.flights if self.is_held(flight))
            picture[f"{name}_gate_closed"] = lane.closed
            if self.capacity is not None:
                picture[f"{name}_octets"] = lane.octets
        return picture

    # -- inside -----------------------------------------------------------------------------

    def _carry(self, lane: Lane, flight: Flight) -> None:
        """Put a frame behind those that are on their way."""
        lane.flights.append(flight)
        if self.capacity is not None and not flight.parked:
            self._weigh(lane, flight, 1)
        if len(lane.flights) == 1:
            self._schedule(lane)

    def _schedule(self, lane: Lane) -> None:
        """(Re)set the arrival of the first frame, according to holds and gate."""
        if lane.timer is not None:
            lane.timer.cancel()
            lane.timer = None
        if not lane.flights:
            return
        first = lane.flights[0]
        if first.parked:
            return
        if first.frame_id in lane.held or (lane.closed and lane.passes == 0):
            return
        arrives_us = max(first.arrives_us, self._clock.now_us)
        lane.timer = self._clock.call_at(arrives_us, self._arrive, lane)

    def _arrive(self, lane: Lane) -> None:
        lane.timer = None
        flight = lane.flights.popleft()
        if lane.closed:
            lane.passes -= 1
        now_us = self._clock.now_us
        if now_us > lane.last_arrival_us:
            lane.last_arrival_us = now_us
        self._let_in(lane, flight)
        if lane.flights:
            self._schedule(lane)

    def _let_in(self, lane: Lane, flight: Flight) -> None:
        if lane.intake is None:
            self._take_in(lane, flight)
        else:
            lane.intake(flight)

    def _take_in(self, lane: Lane, flight: Flight) -> None:
        """The receiver works the frame in; only now is it read."""
        end = lane.receiver
        events = end.apply(flight.item)
        self.tap.received(end, flight)
        if events:
            self._clock.call_soon(end.react, events, priority=REACT)
        if self.capacity is not None:
            self._weigh(lane, flight, -1)

    def _weigh(self, lane: Lane, flight: Flight, sign: int) -> None:
        """Count a frame that came or went; tell the sender if that fills or frees the lane."""
        assert self._size is not None
        assert self.capacity is not None
        size = flight.size = flight.size or self._size(flight.item)
        lane.octets += sign * size
        full = lane.octets >= self.capacity
        if full is lane.full:
            return
        lane.full = full
        sender: Any = lane.sender
        sender.writable = not full
        self.tap.internal(
            t_us=self._clock.now_us,
            event="block" if full else "unblock",
            kind="tcp",
            vantage=sender.vantage,
            connection=self.connection,
            extra={"octets": lane.octets},
        )
        if not full:
            sender.kick()


def _checked_latency(latency_us: int) -> int:
    if latency_us < 0:
        raise WireError(f"latency {latency_us} us is below 0; legal: 0 or more microseconds")
    return latency_us


def _counter() -> Callable[[], int]:
    return iter(range(2**63)).__next__
