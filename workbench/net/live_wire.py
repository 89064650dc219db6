"""The wire of a live connection: the simulator's wire, which costs nothing while nobody holds it.

Between the socket and the broker stands the same wire as in a virtual run, with the same gates. So
a frame of a real client can be held, counted and let through by hand. While both gates are open a
frame takes the short way: sent, applied and answered at once.

Empty frames pass a closed gate. They say nothing but that their sender lives [2.4.5], they change
no counter, and without them the client would give the connection up while a person thinks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.amqp.framing import Frame, item_size
from workbench.sim import Direction, Flight, NoTap, Wire, WireError

from .breakpoints import Breakpoint

STOPS_KEPT = 1_000

UNSEEN = Flight(
    frame_id=-1,
    item=None,
    direction=Direction.CLIENT_TO_BROKER,
    connection="",
    sent_us=0,
    arrives_us=0,
)
"""Stands for a frame of which nothing is kept: no tap, no breakpoint, and the gate open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A breakpoint that was met.

    Attributes:
        t_us: when.
        why: the breakpoint in words.
    """

    t_us: int
    why: str


def kind_of(item: Any) -> str:
    """The word for a frame: its performative's name, `heartbeat` or `protocol-header`."""
    if not isinstance(item, Frame):
        return str(getattr(item, "KIND", "protocol-header"))
    return "heartbeat" if item.performative is None else item.performative.NAME


class LiveWire(Wire):
    """A wire on the wall clock.

    Attributes:
        breakpoints: where the wire stops by itself; change it through the methods.
        stops: the breakpoints met, the latest thousand.
        octets_waiting: of the frames in flight, by direction.
        on_moved: called when a frame that had waited has arrived.
        on_mishap: told of an exception that an end lets escape when a frame arrives.
        on_change: called when what waits, or what makes it wait, is another than before.
        may_hear: whether an end may be sent an empty frame: it has had the other's open.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.breakpoints: list[Breakpoint] = []
        self.stops: list[Stop] = []
        self.octets_waiting = dict.fromkeys(Direction, 0)
        self._passed = [0, 0]  # frames that have arrived, to the broker and to the client
        self.on_moved: Callable[[], None] = _nothing
        self.on_mishap: Callable[[Exception], None] = _raise
        self.on_change: Callable[[], None] = _nothing
        self.may_hear: Callable[[Direction], bool] = _never
        self._unseen = type(self.tap) is NoTap

    @property
    def has_spoken(self) -> bool:
        """Whether the client has sent anything, held or arrived."""
        return bool(self._passed[0] or self.waiting(Direction.CLIENT_TO_BROKER))

    # -- carrying ---------------------------------------------------------------------------

    def send(self, end: Any, item: Any, octets: bytes | None = None) -> Flight:
        """Carry a frame: at once if nothing is in its way, else as in a virtual run.

        Returns:
            Its flight; `UNSEEN` for one that nobody watched and that has arrived.
        """
        lane = self._by_sender[id(end)]
        if self.breakpoints:
            self._look(lane.direction, end, item, outgoing=True)
        if lane.flights or lane.closed or lane.latency_us:
            heartbeat = isinstance(item, Frame) and item.performative is None
            if not heartbeat or not self.may_hear(lane.direction):
                self.octets_waiting[lane.direction] += _size(item, octets)
                waiting = super().send(end, item, octets)
                self.on_change()
                return waiting
        if self._unseen and not self.breakpoints:
            self._next_frame_id()
            self._passed[lane.direction is Direction.BROKER_TO_CLIENT] += 1
            receiver = lane.receiver
            try:
                events = receiver.apply(item)
                if events:
                    receiver.react(events)
            except Exception as error:
                self.on_mishap(error)
            return UNSEEN
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
        self._deliver(lane, flight)
        return flight

    def park(self, end: Any, item: Any) -> Flight:
        """A frame that the broker's writer has not come to yet; it counts as waiting."""
        self.octets_waiting[self._by_sender[id(end)].direction] += _size(item, None)
        return super().park(end, item)

    def _arrive(self, lane: Any) -> None:
        """The first frame that waited arrives; its answers follow before any later frame."""
        lane.timer = None
        flight = lane.flights.popleft()
        lane.held.discard(flight.frame_id)
        self.octets_waiting[lane.direction] -= _size(flight.item, flight.octets)
        if lane.closed:
            lane.passes -= 1
        lane.last_arrival_us = max(lane.last_arrival_us, self._clock.now_us)
        self._deliver(lane, flight)
        self._schedule(lane)
        self.on_moved()
        self.on_change()

    def _deliver(self, lane: Any, flight: Flight) -> None:
        self._passed[lane.direction is Direction.BROKER_TO_CLIENT] += 1
        intake = getattr(lane.receiver, "intake", None)
        try:
            if intake is None:
                self._take_in(lane, flight)
            else:
                intake(flight.item, lambda: self._taken_later(lane, flight))
        except Exception as error:
            self.on_mishap(error)

    def _taken_later(self, lane: Any, flight: Flight) -> None:
        try:
            self._take_in(lane, flight)
        except Exception as error:
            self.on_mishap(error)

    def _take_in(self, lane: Any, flight: Flight) -> None:
        receiver = lane.receiver
        events = receiver.apply(flight.item)
        self.tap.received(receiver, flight)
        if self.breakpoints:
            self._look(lane.direction, receiver, flight.item, outgoing=False)
        if events:
            receiver.react(events)

    def passed(self, direction: Direction) -> int:
        """How many frames have arrived that way."""
        return self._passed[direction is Direction.BROKER_TO_CLIENT]

    def waiting(self, direction: Direction) -> int:
        """How many frames are in flight that way."""
        return len(self._lanes[direction].flights)

    def free(self, direction: Direction) -> bool:
        """Whether frames that way take the short way."""
        lane = self._lanes[direction]
        return not (lane.flights or lane.closed or lane.latency_us)

    # -- gates ------------------------------------------------------------------------------

    def freeze(self, directions: tuple[Direction, ...] = tuple(Direction), why: str = "") -> None:
        """Close these gates, for a breakpoint or a person; one that is closed stays so."""
        for direction in directions:
            if not self.gate_closed(direction):
                self.hold_direction(direction)
                self._note("hold", direction, why=why)
        self.on_change()

    def thaw(self, directions: tuple[Direction, ...] = tuple(Direction)) -> int:
        """Open these gates; returns how many frames were let through."""
        freed = 0
        for direction in directions:
            lane = self._lanes[direction]
            if lane.closed or lane.held:
                freed += self.release_direction(direction)
                self._note("release", direction)
        self.on_change()
        return freed

    def step(self, frames: int = 1, directions: tuple[Direction, ...] = tuple(Direction)) -> int:
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

    def held(self) -> list[Flight]:
        """Every frame that waits for a hand, in order per direction."""
        found: list[Flight] = []
        for lane in self._lanes.values():
            stuck = False
            for place, flight in enumerate(lane.flights):
                stuck = stuck or flight.frame_id in lane.held
                stuck = stuck or (lane.closed and place >= lane.passes)
                if stuck:
                    found.append(flight)
        return found

    # -- inside -----------------------------------------------------------------------------

    def _look(self, direction: Direction, end: Any, item: Any, *, outgoing: bool) -> None:
        """Close both gates if a breakpoint is met."""
        kind = kind_of(item)
        scope = end.scope(item, outgoing) if self._counted(end, outgoing=outgoing) else None
        for point in self.breakpoints:
            by_kind = outgoing and point.stops_at_kind(kind, direction)
            if not by_kind and (scope is None or not point.stops_at_counter(scope, direction)):
                continue
            if len(self.stops) >= STOPS_KEPT:
                del self.stops[0]
            self.stops.append(Stop(t_us=self._clock.now_us, why=str(point)))
            self.freeze(why=str(point))

    def _counted(self, end: Any, *, outgoing: bool) -> bool:
        """Whether a breakpoint's counter is looked up at this end: the broker's are."""
        return bool(end.from_peer == "broker")

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


def _size(item: Any, octets: bytes | None) -> int:
    return item_size(item) if octets is None else len(octets)


def _nothing() -> None:
    pass


def _never(_direction: Direction) -> bool:
    return False


def _raise(error: Exception) -> None:
    raise error
