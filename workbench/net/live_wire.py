"""The wire of a live connection: the simulator's wire, on which nothing waits without a reason.

Between the socket and the broker stands the same wire as in a virtual run, with the same gates. So
a frame of a real client can be held, counted and let through by hand. While nothing is in its way a
frame is sent, applied and answered at once.

Empty frames pass a closed gate. They say nothing but that their sender lives [2.4.5], they change
no counter, and without them the client would give the connection up while a person thinks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.sim import Direction, Flight, Wire, WireError
from workbench.sim.lanes import Lane

from .breakpoints import Breakpoint
from .protocols import HEARTBEAT, WireProtocol

BOTH = tuple(Direction)
STOPS_KEPT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A breakpoint that was met.

    Attributes:
        t_us: when.
        why: the breakpoint in words.
    """

    t_us: int
    why: str


class LiveWire(Wire):
    """A wire on the wall clock.

    Attributes:
        protocol: of the frames that it carries.
        breakpoints: where the wire stops by itself; change it through the methods.
        stops: the breakpoints met, the latest thousand.
        stopped: the breakpoint, in words, that closed the gates as they are; else empty.
        passed: how many frames have arrived, by direction.
        octets_waiting: of the frames in flight, by direction.
        on_moved: called when a frame that had waited has arrived.
        on_mishap: told of an exception that an end lets escape when a frame arrives.
        on_change: called when what waits, or what makes it wait, is another than before.
        may_hear: whether an end may be sent an empty frame: it has had the other's open.
    """

    def __init__(self, *args: Any, protocol: WireProtocol, **more: Any) -> None:
        super().__init__(*args, latency_us=(0, 0), **more)
        self.protocol = protocol
        self.breakpoints: list[Breakpoint] = []
        self.stops: deque[Stop] = deque(maxlen=STOPS_KEPT)
        self.stopped = ""
        self.passed = dict.fromkeys(Direction, 0)
        self.octets_waiting = dict.fromkeys(Direction, 0)
        self.on_moved: Callable[[], None] = _nothing
        self.on_mishap: Callable[[Exception], None] = _raise
        self.on_change: Callable[[], None] = _nothing
        self.may_hear: Callable[[Direction], bool] = _never

    @property
    def has_spoken(self) -> bool:
        """Whether the client has sent anything, held or arrived."""
        c2b = Direction.CLIENT_TO_BROKER
        return bool(self.passed[c2b] or self.waiting(c2b))

    def waiting(self, direction: Direction) -> int:
        """How many frames are in flight that way."""
        return len(self._lanes[direction].flights)

    def free(self, direction: Direction) -> bool:
        """Whether nothing is in the way of a frame that way."""
        lane = self._lanes[direction]
        return not (lane.flights or lane.closed or lane.latency_us)

    # -- carrying: what differs from a virtual wire -------------------------------------------

    def _carry(self, lane: Lane, flight: Flight) -> None:
        """Let a frame in at once if nothing is in its way."""
        if self.breakpoints:
            self._look(lane, flight, outgoing=True)
        if lane.flights or lane.closed or lane.latency_us or flight.parked:
            heartbeat = self.protocol.kind_of(flight.item) == HEARTBEAT
            if not heartbeat or not self.may_hear(lane.direction):
                self.octets_waiting[lane.direction] += self._octets(flight)
                super()._carry(lane, flight)
                self.on_change()
                return
        self._let_in(lane, flight)

    def _arrive(self, lane: Lane) -> None:
        """The first frame that waited arrives."""
        self.octets_waiting[lane.direction] -= self._octets(lane.flights[0])
        super()._arrive(lane)
        self.on_moved()
        self.on_change()

    def _take_in(self, lane: Lane, flight: Flight) -> None:
        """The receiver works the frame in and reacts at once."""
        self.passed[lane.direction] += 1
        try:
            events = self._hand_over(lane.receiver, flight)
            self.tap.received(lane.receiver, flight)
            if self.breakpoints:
                self._look(lane, flight, outgoing=False)
            if events:
                lane.receiver.react(events)
        except Exception as error:
            self.on_mishap(error)

    def _hand_over(self, receiver: Any, flight: Flight) -> Any:
        return receiver.apply(flight.item)

    # -- gates ------------------------------------------------------------------------------

    def freeze(self, directions: tuple[Direction, ...] = BOTH, why: str = "") -> None:
        """Close these gates, for a breakpoint or a person; one that is closed stays so."""
        for direction in directions:
            if not self.gate_closed(direction):
                self.hold_direction(direction)
                self.stopped = why
                self._note("hold", direction, why=why)
        self.on_change()

    def thaw(self, directions: tuple[Direction, ...] = BOTH) -> int:
        """Open these gates; returns how many frames were let through."""
        freed = 0
        for direction in directions:
            lane = self._lanes[direction]
            if lane.closed or lane.held:
                freed += self.release_direction(direction)
                self.stopped = ""
                self._note("release", direction)
        self.on_change()
        return freed

    def step(self, frames: int = 1, directions: tuple[Direction, ...] = BOTH) -> int:
        """Let the frames through that have waited longest; the gates stay closed.

        Returns:
            How many there were.

        Raises:
            WireError: if `frames` is below 1.
        """
        if frames < 1:
            raise WireError(f"cannot let {frames} frames through; legal: 1 or more")
        waiting = [flight for flight in self.held() if flight.direction in directions]
        waiting.sort(key=lambda flight: flight.frame_id)
        for flight in waiting[:frames]:
            self.step_to(flight.frame_id)
        return len(waiting[:frames])

    def step_to(self, frame_id: int) -> None:
        """Let one frame through.

        Raises:
            WireError: if it is not held, or if an earlier frame of its direction is.
        """
        flight = self.release(frame_id)
        self._note("release", flight.direction, frame_id)

    # -- inside -----------------------------------------------------------------------------

    def _octets(self, flight: Flight) -> int:
        octets = flight.octets
        return self.protocol.size_of(flight.item) if octets is None else len(octets)

    def _reads_counters(self, end: Any, outgoing: bool) -> bool:
        """Whether breakpoints look at counters here: at those of the broker's end."""
        return bool(end.from_peer == "broker")

    def _look(self, lane: Lane, flight: Flight, *, outgoing: bool) -> None:
        """Close both gates if a breakpoint is met."""
        kind = self.protocol.kind_of(flight.item)
        end: Any = lane.sender if outgoing else lane.receiver
        scope = end.scope(flight.item, outgoing) if self._reads_counters(end, outgoing) else None
        for point in self.breakpoints:
            by_kind = outgoing and point.stops_at_kind(kind, lane.direction)
            if not by_kind and (scope is None or not point.stops_at_counter(scope, lane.direction)):
                continue
            self.stops.append(Stop(t_us=self._clock.now_us, why=str(point)))
            self.freeze(why=str(point))

    def _note(
        self, event: str, direction: Direction, frame_id: int | None = None, why: str = ""
    ) -> None:
        extra: dict[str, Any] = {"direction": direction.value}
        if why:
            extra["breakpoint"] = why
        if frame_id is not None:
            extra["frame_id"] = frame_id
        self.tap.internal(
            t_us=self._clock.now_us,
            event=event,
            vantage="wire",
            connection=self.connection,
            extra=extra,
        )


def _nothing() -> None:
    pass


def _never(_direction: Direction) -> bool:
    return False


def _raise(error: Exception) -> None:
    raise error
