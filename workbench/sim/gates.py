"""Gates: frames of a wire are held, one by one or a direction as a whole, and let through.

A held frame holds everything behind it in its direction, and nothing else. A wish that would let a
frame overtake an earlier one is refused with the reason, for no TCP connection could grant it.
"""

from __future__ import annotations

from .lanes import Direction, Flight, Lane, WireError


class Gates:
    """The hands on a wire; what is held does not arrive.

    Attributes:
        connection: name of the connection in a trace.
    """

    connection: str
    _lanes: dict[Direction, Lane]

    def in_flight(self, direction: Direction | str | None = None) -> list[Flight]:
        """Frames on their way, in the order in which they will arrive per direction."""
        if direction is not None:
            return list(self._lanes[Direction.of(direction)].flights)
        return [flight for lane in self._lanes.values() for flight in lane.flights]

    def _schedule(self, lane: Lane) -> None:
        """(Re)set the arrival of the first frame, according to holds and gate."""
        raise NotImplementedError

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
        found: list[Flight] = []
        for lane in self._lanes.values():
            stuck = False
            for place, flight in enumerate(lane.flights):
                stuck = stuck or flight.frame_id in lane.held
                stuck = stuck or (lane.closed and place >= lane.passes)
                if stuck:
                    found.append(flight)
        return found

    def gate_closed(self, direction: Direction | str) -> bool:
        """True if the direction as a whole is held."""
        return self._lanes[Direction.of(direction)].closed

    # -- inside -----------------------------------------------------------------------------

    def _find(self, frame_id: int) -> tuple[Lane, Flight]:
        for lane in self._lanes.values():
            for flight in lane.flights:
                if flight.frame_id == frame_id:
                    return lane, flight
        flying = [flight.frame_id for flight in self.in_flight()]
        now = f"in flight now: {', '.join(map(str, flying))}" if flying else "no frame is in flight"
        raise WireError(f"frame {frame_id} is not in flight on {self.connection}; {now}")

    def _refuse_overtaking(self, lane: Lane, flight: Flight) -> None:
        for place, earlier in enumerate(lane.flights):
            if earlier is flight:
                return
            if earlier.frame_id in lane.held or (lane.closed and place >= lane.passes):
                raise WireError(
                    f"frame {flight.frame_id} cannot arrive before frame {earlier.frame_id}, which"
                    f" was sent earlier {lane.direction.words} and is held: TCP keeps the order of"
                    f" one direction; legal now: release frame {earlier.frame_id} first"
                )
