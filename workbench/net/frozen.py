"""The frozen wire: a person's hand on the frames of a real client.

Every method may be called from any thread, such as a notebook's; what it asks for is done on the
broker's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.sim import Direction, Flight, WireError

from .breakpoints import Breakpoint
from .live_wire import LiveWire, Stop, kind_of

BOTH = tuple(Direction)
LOOK_AGAIN_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A frame that waits for a hand.

    Attributes:
        frame_id: its number in the trace.
        direction: `c2b` or `b2c`.
        kind: `transfer`, `flow`, ...
        item: the frame as a value.
    """

    frame_id: int
    direction: str
    kind: str
    item: Any


class FrozenWire:
    """The handle on one live connection's wire.

    Args:
        ask: runs a function on the broker's thread and gives its result.
        wire: the wire.
    """

    def __init__(self, ask: Callable[[Callable[[], Any]], Any], wire: LiveWire) -> None:
        self.connection = wire.connection
        self._ask = ask
        self._wire = wire

    # -- gates ------------------------------------------------------------------------------

    def hold(self, direction: str | None = None) -> None:
        """Close the gate of a direction, `c2b` or `b2c`, or of both: what comes waits.

        Heartbeats pass, so the client is patient as long as the person is.
        """
        self._ask(lambda: self._wire.freeze(_directions(direction)))

    def step(self, frames: int = 1, direction: str | None = None) -> int:
        """Let the frames through that have waited longest; the gates stay closed.

        Returns:
            How many there were.

        Raises:
            WireError: if `frames` is below 1.
        """
        passed: int = self._ask(lambda: self._wire.step(frames, _directions(direction)))
        return passed

    def release(self, frame_id: int) -> None:
        """Let one frame through.

        Raises:
            WireError: if it is not held, or is not the first of its direction: TCP keeps order.
        """
        self._ask(lambda: self._wire.step_to(frame_id))

    def free_run(self, direction: str | None = None) -> int:
        """Open the gates: what waits goes on, and what comes is not held, until a breakpoint.

        Returns:
            How many frames had waited.
        """
        freed: int = self._ask(lambda: self._wire.thaw(_directions(direction)))
        return freed

    # -- breakpoints ------------------------------------------------------------------------

    def break_on(
        self,
        kind: str | None = None,
        *,
        counter: str | None = None,
        value: int | None = None,
        direction: str | None = None,
        link: str | None = None,
    ) -> str:
        """Stop both ways at a kind of frame, or when a counter of the broker reaches a value.

        Args:
            kind: `transfer`, `flow`, `disposition`, ...: that frame is the first that is held.
            counter: `link_credit`, `delivery_count`, `incoming_window`, ... of the broker's end:
                what follows the frame that brought it there is held.
            value: which the counter reaches or passes.
            direction: only frames that way, `c2b` or `b2c`.
            link: only this link's counter, by name.

        Returns:
            The breakpoint in words.

        Raises:
            WireError: if there is no such kind, counter or direction.
        """
        point = Breakpoint(
            kind=kind,
            counter=counter,
            value=value,
            direction=None if direction is None else Direction.of(direction),
            link=link,
        )
        self._ask(lambda: self._wire.breakpoints.append(point))
        return str(point)

    def breakpoints(self) -> list[str]:
        """Every breakpoint in words."""
        words: list[str] = self._ask(lambda: [str(point) for point in self._wire.breakpoints])
        return words

    def clear_breakpoints(self) -> None:
        """Remove every breakpoint; gates stay as they are."""
        self._ask(self._wire.breakpoints.clear)

    def stops(self) -> list[Stop]:
        """The breakpoints met so far."""
        met: list[Stop] = self._ask(lambda: list(self._wire.stops))
        return met

    # -- looking ----------------------------------------------------------------------------

    def held(self, direction: str | None = None) -> list[Held]:
        """The frames that wait for a hand, in the order in which they came."""
        wanted = _directions(direction)
        flights: list[Flight] = self._ask(self._wire.held)
        flights = [flight for flight in flights if flight.direction in wanted]
        return [
            Held(
                frame_id=flight.frame_id,
                direction=flight.direction.value,
                kind=kind_of(flight.item),
                item=flight.item,
            )
            for flight in sorted(flights, key=lambda flight: flight.frame_id)
        ]

    def wait_held(
        self, frames: int = 1, *, direction: str | None = None, timeout_s: float = 10.0
    ) -> list[Held]:
        """Wait until so many frames are held, and give them all.

        Raises:
            WireError: if there are fewer when the time is up.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            held = self.held(direction)
            if len(held) >= frames:
                return held
            if time.monotonic() >= deadline:
                raise WireError(
                    f"{len(held)} of {frames} frames are held on {self.connection} after"
                    f" {timeout_s:g} s; legal: wait longer, or let the peer go on"
                )
            time.sleep(LOOK_AGAIN_S)

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: frames in flight and held, and gates, per direction."""
        picture: dict[str, int | bool | str] = self._ask(self._wire.overview)
        return picture


def _directions(direction: str | None) -> tuple[Direction, ...]:
    return BOTH if direction is None else (Direction.of(direction),)
