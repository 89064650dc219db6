"""A live connection as a scene: what it has said so far, and what waits at its gates now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import shorten
from typing import Any, Protocol

from workbench.languages import phrase
from workbench.trace.cut import Cut
from workbench.trace.fold import Scope
from workbench.trace.gates import SENDER_OF
from workbench.trace.schema import BROKER, CLIENT, Row
from workbench.trace.taps import frame_row

from .frames import summary
from .scene_link import LinkPicture
from .scene_walk import Walk

Doc = dict[str, Any]

say = partial(phrase, "live")
MOST_WORDS = 40
"""So much is said over the picture of what a frame carries: an open, begin or attach says more."""
AT_GATE = 0.5
"""Part of its way at which a frame waits: the gates stand in the middle."""


class HeldFrame(Protocol):
    """What a live server says of a frame that waits."""

    @property
    def frame_id(self) -> int:
        """Its number in the trace."""

    @property
    def direction(self) -> str:
        """`c2b` or `b2c`."""

    @property
    def kind(self) -> str:
        """`transfer`, `flow`, ..."""

    @property
    def item(self) -> Any:
        """The frame as a value."""

    @property
    def octets(self) -> bytes:
        """The frame as it is on the wire."""


def row_of(frame: HeldFrame, connection: str = "") -> Row | None:
    """The frame as a row of a trace, without counters; None for octets that nobody can read."""
    if hasattr(frame.item, "why"):
        return None
    return frame_row(
        frame.item,
        run="",
        seq=0,
        t_us=0,
        vantage="wire",
        event="observed",
        frame_id=frame.frame_id,
        from_peer=SENDER_OF[frame.direction],
        connection=connection,
        raw=frame.octets,
    )


def in_a_line(frame: HeldFrame, most: int = 1_000) -> str:
    """Kind, what it carries (or why it cannot be read) in at most so many characters, and size."""
    row = row_of(frame)
    words = shorten(str(frame.item.why) if row is None else summary(row), most, placeholder=" …")
    name = f"{frame.kind} ({words})" if words else frame.kind
    return say("frame.of", name=name, octets=len(frame.octets))


def way_of(direction: str) -> str:
    """`c2b` or `b2c` in words."""
    return say(f"way.{direction}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A live connection at one moment.

    Attributes:
        cut: the latest rows of the server's trace.
        connection: the one that is shown; None if there is none.
        wire: what its wire looks like now, as `FrozenWire.picture` gives it; None if there is none.
    """

    cut: Cut
    connection: str | None
    wire: Any

    @property
    def rows(self) -> Sequence[Row]:
        """The latest rows of the trace."""
        return self.cut.rows

    @property
    def waiting(self) -> list[HeldFrame]:
        """The frames that wait, in the order in which they came."""
        gates = () if self.wire is None else self.wire.gates.values()
        return sorted((one for gate in gates for one in gate.held), key=lambda one: one.frame_id)


class LivePicture(LinkPicture):
    """The client and the broker of a live connection, with the gates in the middle of the wire.

    Args:
        walk: the rows so far.
        links: those of the connection.
        live: the connection.
    """

    def __init__(self, walk: Walk, links: Sequence[Scope], live: Live) -> None:
        self.live = live
        self._client = f"{CLIENT}:{live.connection}"
        walk.links = [link for link in walk.links if link.connection == live.connection]
        for flight in walk.flights:  # what is held stands at its gate from the first moment on
            if len(flight.path) > 1 and flight.path[1][1] == AT_GATE:
                flight.path[:2] = [(flight.path[0][0], AT_GATE)] * 2
        walk.ends.setdefault((live.connection, CLIENT), self._client)
        walk.ends.setdefault((live.connection, BROKER), BROKER)
        super().__init__(walk, links)

    @property
    def clients(self) -> list[str]:
        """The one client."""
        return [] if self.live.connection is None else [self._client]

    @property
    def nodes(self) -> list[str]:
        """The client at the left, whatever it does."""
        return [*self.clients, BROKER]

    @property
    def wires(self) -> dict[str | None, tuple[str, str]]:
        """The one connection."""
        return {self.live.connection: (self._client, BROKER)} if self.clients else {}

    def node(self, name: str) -> Doc:
        """A party at its side; of the client who it says it is."""
        node = super().node(name) | {"place": [int(name == BROKER), 0]}
        if name == BROKER or self.live.wire is None:
            return node
        wire = self.live.wire
        says = say("client.gone", says=wire.words) if wire.gone else wire.words
        return node | {"sub": f"{self.live.connection}: {says}"}

    def state(self) -> Doc:
        """Everything after the row taken last, and the gates as they are now."""
        state = super().state()
        if self.live.wire is not None and self.live.connection is not None:
            gates = self.live.wire.gates
            wire = state["links"].setdefault(self.live.connection, {})
            wire.pop("latency", None)
            wire["gates"] = {
                place: {
                    "closed": gates[way].closed,
                    "text": say("gate.mark", n=gates[way].waiting, passed=gates[way].passed),
                }
                for place, way in (("there", "c2b"), ("back", "b2c"))
            }
        return state


def idea_of(live: Live) -> str:
    """Who is connected, and what waits."""
    if live.wire is None:
        return ""
    wire, told = live.wire, []
    if wire.stopped:
        told.append(say("idea.stopped", why=wire.stopped))
    waiting = sum(gate.waiting for gate in wire.gates.values())
    if waiting:
        told.append(say("idea.waits", n=waiting, next=directed(live.waiting[0])))
    else:
        closed = any(gate.closed for gate in wire.gates.values())
        told.append(say("idea.none-waits" if closed else "idea.open"))
    if wire.breakpoints and not wire.stopped:
        told.append(say("idea.will-stop", points="; ".join(wire.breakpoints)))
    return " ".join(told)


def directed(frame: HeldFrame) -> str:
    """A frame in half a line, with the way it goes."""
    return f"{in_a_line(frame, MOST_WORDS)}, {way_of(frame.direction)}"
