"""The frozen wire: a person's hand on the frames of a real client.

Every method may be called from any thread, such as a notebook's; what it asks for is done on the
broker's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.sim import Direction, Flight

from .breakpoints import Breakpoint
from .client import Client
from .live_wire import BOTH, LiveWire, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A frame that waits for a hand.

    Attributes:
        frame_id: its number in the trace.
        direction: `c2b` or `b2c`.
        kind: `transfer`, `flow`, ...
        item: the frame as a value.
        octets: the frame as it was, or will be, written to the socket.
    """

    frame_id: int
    direction: str
    kind: str
    item: Any
    octets: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePicture:
    """One direction of a wire.

    Attributes:
        closed: whether what comes waits.
        waiting: frames that wait.
        held: the first of them.
        passed: frames that have arrived.
    """

    closed: bool
    waiting: int
    held: tuple[Held, ...]
    passed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WirePicture:
    """What a wire looks like at one moment; plain values, to be shown by somebody else.

    Attributes:
        connection: its name.
        words: who is connected.
        gone: the client's socket is closed; what it sent may still wait.
        gates: by direction, `c2b` and `b2c`.
        breakpoints: in words, in order.
        stopped: the one that closed the gates as they are, in words; else empty.
    """

    connection: str
    words: str
    gone: bool
    gates: dict[str, GatePicture]
    breakpoints: tuple[str, ...]
    stopped: str


class FrozenWire:
    """The handle on one live connection's wire.

    Args:
        ask: runs a function on the broker's thread and gives its result.
        client: whose wire it is.
    """

    def __init__(self, ask: Callable[[Callable[[], Any]], Any], client: Client) -> None:
        assert client.wire is not None, "a client that has said what it speaks"
        self.connection: str = client.name
        self._ask = ask
        self._client = client
        self._wire: LiveWire = client.wire

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

    def break_when(self, words: str, *, link: str | None = None) -> str:
        """Stop at what the words say: `transfer`, `flow c2b`, `link_credit <= 3`.

        Args:
            words: a kind of frame, or a counter, a sign (`<=`, `>=`, `=`) and a value; then, if
                only frames that way are meant, a direction.
            link: only this link's counter, by name.

        Returns:
            The breakpoint in words.

        Raises:
            WireError: if the words are no breakpoint; the text says what would be one.
        """
        point = Breakpoint.of(words, self._wire.protocol.kinds, link)

        def add() -> None:
            if point not in self._wire.breakpoints:
                self._wire.breakpoints.append(point)
                self._wire.on_change()

        self._ask(add)
        return str(point)

    def breakpoints(self) -> list[str]:
        """Every breakpoint in words."""
        words: list[str] = self._ask(lambda: [str(point) for point in self._wire.breakpoints])
        return words

    def clear_breakpoints(self) -> None:
        """Remove every breakpoint; gates stay as they are."""

        def clear() -> None:
            self._wire.breakpoints.clear()
            self._wire.on_change()

        self._ask(clear)

    def stops(self) -> list[Stop]:
        """The breakpoints met so far."""
        met: list[Stop] = self._ask(lambda: list(self._wire.stops))
        return met

    # -- looking ----------------------------------------------------------------------------

    def held(self, direction: str | None = None) -> list[Held]:
        """The frames that wait for a hand, in the order in which they came."""
        wanted = _directions(direction)
        found: list[Held] = self._ask(lambda: self._held(wanted))
        return found

    def picture(self, most: int = 100) -> WirePicture:
        """What it looks like now.

        Args:
            most: so many of the frames that wait are listed, per direction.
        """
        shown: WirePicture = self._ask(lambda: self._picture(most))
        return shown

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture: frames in flight and held, and gates, per direction."""
        picture: dict[str, int | bool | str] = self._ask(self._wire.overview)
        return picture

    # -- on the broker's thread -------------------------------------------------------------

    def _held(self, wanted: tuple[Direction, ...]) -> list[Held]:
        flights = [flight for flight in self._wire.held() if flight.direction in wanted]
        return [
            self._shown(flight) for flight in sorted(flights, key=lambda flight: flight.frame_id)
        ]

    def _picture(self, most: int) -> WirePicture:
        wire, held = self._wire, self._wire.held()
        gates = {}
        for direction in Direction:
            waiting = [flight for flight in held if flight.direction is direction]
            gates[direction.value] = GatePicture(
                closed=wire.gate_closed(direction),
                waiting=len(waiting),
                held=tuple(self._shown(flight) for flight in waiting[:most]),
                passed=wire.passed[direction],
            )
        return WirePicture(
            connection=self.connection,
            words=self._client.words,
            gone=self._client.lost,
            gates=gates,
            breakpoints=tuple(str(point) for point in wire.breakpoints),
            stopped=wire.stopped,
        )

    def _shown(self, flight: Flight) -> Held:
        protocol = self._wire.protocol
        octets = flight.octets
        return Held(
            frame_id=flight.frame_id,
            direction=flight.direction.value,
            kind=protocol.kind_of(flight.item),
            item=flight.item,
            octets=protocol.encode(flight.item) if octets is None else octets,
        )


def _directions(direction: str | None) -> tuple[Direction, ...]:
    return BOTH if direction is None else (Direction.of(direction),)
