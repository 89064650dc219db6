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

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Protocol

from .clock import Priority, Timer, VirtualClock
from .tap import NoTap, Tap


class WireError(Exception):
    """A wish that the wire cannot fulfil; the text says why and what would be possible."""


class Direction(Enum):
    """Which way a frame travels."""

    CLIENT_TO_BROKER = "c2b"
    BROKER_TO_CLIENT = "b2c"

    @property
    def words(self) -> str:
        """The direction in words."""
        return "client to broker" if self is Direction.CLIENT_TO_BROKER else "broker to client"

    @classmethod
    def of(cls, value: Direction | str) -> Direction:
        """The direction meant by `c2b` or `b2c`.

        Raises:
            WireError: if it is neither.
        """
        try:
            return cls(value)
        except ValueError:
            raise WireError(
                f"no direction {value!r}: c2b is client to broker, b2c is broker to client"
            ) from None


class End(Protocol):
    """One end of a wire: a protocol endpoint, ours or a foreign one behind an adapter."""

    vantage: str
    from_peer: str  # "client" or "broker": what this end sends comes from that peer
    ledger_source: str  # "own", or "shadow" if the counters are an observer's

    def apply(self, item: Any) -> Any:
        """Bring the state up to date with an arriving frame; send nothing. Returns events."""

    def react(self, events: Any) -> None:
        """Do about those events what has to be done; here frames may be sent."""

    def scope(self, item: Any, outgoing: bool) -> Any:
        """The counters of the link and session that the frame concerns, as this end has them."""


@dataclass(slots=True, eq=False)
class Flight:
    """One frame on its way.

    Attributes:
        frame_id: the same in the `sent` and in the `received` row.
        item: the frame as a value.
        direction: which way it travels.
        connection: name of the wire's connection.
        sent_us: when it was sent.
        arrives_us: when it arrives if nobody holds it.
        octets: as a real peer wrote them; None where the frame never was octets.
        parked: its end has sent it, but has not written it to the socket yet.
    """

    frame_id: int
    item: Any
    direction: Direction
    connection: str
    sent_us: int
    arrives_us: int
    octets: bytes | None = None
    parked: bool = False


@dataclass(slots=True, eq=False)
class _Lane:
    """One direction: frames in order, and what keeps the first of them from arriving."""

    direction: Direction
    sender: End
    receiver: End
    latency_us: int
    flights: deque[Flight] = field(default_factory=deque)
    held: set[int] = field(default_factory=set)  # frame ids that wait for a hand
    closed: bool = False  # a gate: whatever comes waits
    passes: int = 0  # frames that a hand lets through the closed gate
    last_arrival_us: int = 0  # no later frame arrives before this
    timer: Timer | None = None  # arrival of the first frame
    octets: int = 0  # in flight
    full: bool = False  # the sender was told to wait
    intake: Any = None  # takes what has arrived, where it may have to wait for the receiver

    def __post_init__(self) -> None:
        self.intake = getattr(self.receiver, "intake", None)


class Wire:
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
        prompt: what is due at one instant arrives in one clock event, and an end reacts to a frame
            in the event in which it applies it. The same happens in the same order and at the same
            time, but nobody can look or act in between: for runs that are counted, not stepped.
    """

    def __init__(
        self,
        clock: VirtualClock,
        client_end: End,
        broker_end: End,
        *,
        latency_us: tuple[int, int],
        connection: str = "c1",
        tap: Tap | None = None,
        next_frame_id: Callable[[], int] | None = None,
        capacity: int | None = None,
        size: Callable[[Any], int] | None = None,
        prompt: bool = False,
    ) -> None:
        self.connection = connection
        self.prompt = prompt
        self.capacity = capacity
        self._size = size
        self.tap: Tap = tap if tap is not None else NoTap()
        self._clock = clock
        self._next_frame_id = next_frame_id or _counter()
        c2b, b2c = Direction.CLIENT_TO_BROKER, Direction.BROKER_TO_CLIENT
        self._lanes = {
            c2b: _Lane(c2b, client_end, broker_end, _checked_latency(latency_us[0])),
            b2c: _Lane(b2c, broker_end, client_end, _checked_latency(latency_us[1])),
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
        lane.flights.append(flight)
        self.tap.sent(end, flight)
        if self.capacity is not None:
            self._weigh(lane, flight, 1)
        if len(lane.flights) == 1:
            self._schedule(lane)
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
        lane.flights.append(flight)
        self.tap.sent(end, flight)
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

    def in_flight(self, direction: Direction | str | None = None) -> list[Flight]:
        """Frames on their way, in the order in which they will arrive per direction."""
        if direction is not None:
            return list(self._lanes[Direction.of(direction)].flights)
        return [flight for lane in self._lanes.values() for flight in lane.flights]

    # -- latency ----------------------------------------------------------------------------

    def latency_us(self, direction: Direction | str) -> int:
        """Latency in microseconds for frames that are sent from now on."""
        return self._lanes[Direction.of(direction)].latency_us

    def set_latency(self, direction: Direction | str, latency_us: int) -> None:
        """Change the latency of frames sent from now on; those in flight keep their arrival."""
        self._lanes[Direction.of(direction)].latency_us = _checked_latency(latency_us)

    # -- gates ------------------------------------------------------------------------------

    def hold(self, frame_id: int) -> Flight:
        """Hold one frame in flight, and with it every later one of its direction.

        Raises:
            WireError: if the frame is not in flight, or is held already.
        """
        lane, flight = self._find(frame_id)
        if frame_id in lane.held:
            raise WireError(f"frame {frame_id} is held already; legal now: release it")
        lane.held.add(frame_id)
        self._schedule(lane)
        return flight

    def hold_direction(self, direction: Direction | str) -> None:
        """Close a direction's gate: frames in it and frames to come wait.

        Raises:
            WireError: if the gate is closed already.
        """
        lane = self._lanes[Direction.of(direction)]
        if lane.closed:
            raise WireError(
                f"the gate {lane.direction.words} is closed already; legal now: release it"
            )
        lane.closed, lane.passes = True, 0
        self._schedule(lane)

    def release(self, frame_id: int) -> Flight:
        """Let one held frame through; frames behind it follow if nothing else holds them.

        Raises:
            WireError: if it is not held, or if an earlier frame of its direction is.
        """
        lane, flight = self._find(frame_id)
        if not self.is_held(flight):
            raise WireError(f"frame {frame_id} is not held; it arrives at {flight.arrives_us} us")
        self._refuse_overtaking(lane, flight)
        lane.held.discard(frame_id)
        if lane.closed:
            lane.passes = max(lane.passes, lane.flights.index(flight) + 1)
        self._schedule(lane)
        return flight

    def release_direction(self, direction: Direction | str, count: int | None = None) -> int:
        """Open a direction's gate, or let `count` frames through and keep it closed.

        Without a count every hold on a single frame of the direction is lifted as well.

        Returns:
            How many of the frames now in flight were let through.

        Raises:
            WireError: if nothing is held in this direction.
        """
        lane = self._lanes[Direction.of(direction)]
        if not lane.closed and not lane.held:
            raise WireError(
                f"nothing is held {lane.direction.words}; legal now: hold a frame or the direction"
            )
        if count is None:
            freed = len(lane.flights)
            lane.closed, lane.passes = False, 0
            lane.held.clear()
            self._schedule(lane)
            return freed
        if count < 1:
            raise WireError(f"cannot release {count} frames; legal: 1 or more")
        waiting = list(lane.flights)
        if not waiting:
            raise WireError(
                f"no frame waits {lane.direction.words}; legal now: open the gate, or wait"
            )
        chosen = waiting[:count]
        lane.held.difference_update(flight.frame_id for flight in chosen)
        if lane.closed:
            lane.passes = len(chosen)
        elif count < len(waiting):
            lane.held.add(waiting[count].frame_id)
        self._schedule(lane)
        return len(chosen)

    def is_held(self, flight: Flight) -> bool:
        """True if the frame waits for a hand: held itself, behind a held one, or at a gate."""
        lane = self._lanes[flight.direction]
        for place, other in enumerate(lane.flights):
            if other.frame_id in lane.held or (lane.closed and place >= lane.passes):
                return True
            if other is flight:
                return False
        return False

    def held(self) -> list[Flight]:
        """Every frame that waits for a hand, in order per direction."""
        return [flight for flight in self.in_flight() if self.is_held(flight)]

    def gate_closed(self, direction: Direction | str) -> bool:
        """True if the direction as a whole is held."""
        return self._lanes[Direction.of(direction)].closed

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

    def _find(self, frame_id: int) -> tuple[_Lane, Flight]:
        for lane in self._lanes.values():
            for flight in lane.flights:
                if flight.frame_id == frame_id:
                    return lane, flight
        flying = [flight.frame_id for flight in self.in_flight()]
        now = f"in flight now: {', '.join(map(str, flying))}" if flying else "no frame is in flight"
        raise WireError(f"frame {frame_id} is not in flight on {self.connection}; {now}")

    def _refuse_overtaking(self, lane: _Lane, flight: Flight) -> None:
        for place, earlier in enumerate(lane.flights):
            if earlier is flight:
                return
            if earlier.frame_id in lane.held or (lane.closed and place >= lane.passes):
                raise WireError(
                    f"frame {flight.frame_id} cannot arrive before frame {earlier.frame_id}, which"
                    f" was sent earlier {lane.direction.words} and is held: TCP keeps the order of"
                    f" one direction; legal now: release frame {earlier.frame_id} first"
                )

    def _schedule(self, lane: _Lane) -> None:
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

    def _arrive(self, lane: _Lane) -> None:
        lane.timer = None
        self._let_in(lane)
        flights = lane.flights
        while self.prompt and flights and not lane.closed and not lane.held:
            if flights[0].parked or flights[0].arrives_us > self._clock.now_us:
                break
            self._let_in(lane)
        if flights:
            self._schedule(lane)

    def _let_in(self, lane: _Lane) -> None:
        flight = lane.flights.popleft()
        if lane.closed:
            lane.passes -= 1
        now_us = self._clock.now_us
        if now_us > lane.last_arrival_us:
            lane.last_arrival_us = now_us
        if lane.intake is None:
            self._take_in(lane, flight)
        else:
            lane.intake(flight.item, partial(self._take_in, lane, flight))

    def _take_in(self, lane: _Lane, flight: Flight) -> None:
        """The receiver works the frame in; only now is it read."""
        end = lane.receiver
        events = end.apply(flight.item)
        self.tap.received(end, flight)
        if events and self.prompt:
            end.react(events)
        elif events:
            self._clock.call_soon(end.react, events, priority=Priority.REACT)
        if self.capacity is not None:
            self._weigh(lane, flight, -1)

    def _weigh(self, lane: _Lane, flight: Flight, sign: int) -> None:
        """Count a frame that came or went; tell the sender if that fills or frees the lane."""
        assert self._size is not None
        assert self.capacity is not None
        lane.octets += sign * self._size(flight.item)
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
