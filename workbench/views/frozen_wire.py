"""The frozen wire for a person: what waits at a live server's gates, and buttons for it.

Everything that changes comes from the server's own thread, so the picture stays true while a cell
of the notebook is busy. What a person asks for is handed to the server at once; what came of it is
seen with the next picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.trace.words import count

from . import theme
from .held_frames import WAYS, HeldFrame, carries, fields, in_a_line
from .static_html import asset
from .stepper_doc import build
from .stepper_widget import StepperWidget, window
from .stills import Still

MOST_FRAMES = 60
"""So many frames of a direction are listed; the rest are counted."""
MOST_OCTETS = 512
"""So many octets of a frame are shown."""
MOST_ROWS = 2_000
"""The stepper beside it shows so many rows, the latest."""
FOLLOWED_ROWS = 600
"""A trace of up to so many rows is followed by the stepper as it grows."""


class Server(Protocol):
    """What this view is given: a live broker or proxy."""

    @property
    def url(self) -> str:
        """What a client connects to."""

    @property
    def running(self) -> bool:
        """Whether it listens."""

    @property
    def freezes_new(self) -> bool:
        """Whether new connections find their gates closed."""

    @property
    def recording(self) -> Any:
        """What keeps the trace, or None."""

    def connections(self) -> list[str]:
        """Names of those that are open."""

    def picture(self, connection: str, most: int = ...) -> Any:
        """What a wire looks like now, or None."""

    def wire(self, connection: str) -> Any:
        """The hand on a wire."""

    def freeze_new(self, on: bool = ...) -> None:
        """Hold new connections from the first octet, or not."""

    def watch(self, look: Callable[[], None]) -> Any:
        """Call a function whenever there may be something new."""

    def rows(self) -> list[Any]:
        """The trace so far."""


class FrozenWireWidget(anywidget.AnyWidget):
    """Draws a picture of the gates in the browser, and passes on what a person presses.

    Attributes:
        picture: plain values, as `picture_of` makes them.
    """

    _esm = asset("frozen_wire.js")
    _css = asset("frozen_wire.css")

    picture = traitlets.Dict().tag(sync=True)

    def __repr__(self) -> str:
        return "FrozenWireWidget()"


def frame_picture(frame: HeldFrame) -> dict[str, Any]:
    """A frame that waits, for the browser."""
    style = theme.frame_style(frame.kind)
    return {
        "id": frame.frame_id,
        "kind": frame.kind,
        "style": style.name,
        "glyph": style.glyph,
        "carries": carries(frame),
        "size": len(frame.octets),
        "octets": frame.octets[:MOST_OCTETS].hex(),
        "fields": fields(frame, MOST_OCTETS),
    }


NOBODY_YET = "Nobody is connected yet."


def picture_of(
    server: Server,
    connection: str | None,
    said: str,
    failed: bool,
    nobody: str = NOBODY_YET,
) -> dict[str, Any]:
    """Everything that is shown, as plain values.

    Args:
        server: the live server.
        connection: the one that is shown, or None.
        said: what came of the latest act, in words.
        failed: whether it was refused.
        nobody: what to say where no connection is shown.
    """
    running = server.running
    names = server.connections() if running else []
    wire = None if connection is None or not running else server.picture(connection, MOST_FRAMES)
    gates = []
    for way, words in WAYS.items():
        gate = None if wire is None else wire.gates[way]
        gates.append(
            {
                "way": way,
                "words": words,
                "closed": bool(gate and gate.closed),
                "waiting": gate.waiting if gate else 0,
                "passed": gate.passed if gate else 0,
                "frames": [frame_picture(frame) for frame in gate.held] if gate else [],
            }
        )
    recording = server.recording
    return {
        "url": server.url,
        "running": running,
        "connections": names,
        "connection": connection if wire is not None else None,
        "words": nobody if wire is None else wire.words,
        "gone": bool(wire and wire.gone),
        "freezes_new": running and server.freezes_new,
        "gates": gates,
        "breakpoints": [] if wire is None else list(wire.breakpoints),
        "stops": [] if wire is None else list(wire.stops),
        "said": said,
        "failed": failed,
        "rows": None if recording is None else recording.overview()["rows"],
    }


def picture_text(picture: dict[str, Any]) -> str:
    """The picture as text: what a page without a kernel keeps, and what can be printed."""
    state = "" if picture["running"] else " (stopped)"
    lines = [f"Frozen wire of {picture['url']}{state}"]
    if picture["connection"] is None:
        return "\n".join([*lines, picture["words"]])
    gone = "; the client is gone" if picture["gone"] else ""
    lines.append(f"{picture['connection']}: {picture['words']}{gone}")
    for gate in picture["gates"]:
        state = "closed" if gate["closed"] else "open"
        lines.append(
            f"{gate['words']}: gate {state}, {count(gate['waiting'], 'frame')} waiting,"
            f" {gate['passed']} passed"
        )
        lines += [
            f"  {frame['glyph']} {frame['kind']} ({frame['carries']}), {frame['size']} octets"
            if frame["carries"]
            else f"  {frame['glyph']} {frame['kind']}, {frame['size']} octets"
            for frame in gate["frames"]
        ]
    if picture["breakpoints"]:
        lines.append(f"Stops at: {'; '.join(picture['breakpoints'])}")
    if picture["stops"]:
        lines.append(f"Stopped: {picture['stops'][-1]}")
    return "\n".join([*lines, *([picture["said"]] if picture["said"] else [])])


class FrozenWireDesk(Still, widgets.VBox):
    """The gates, and on request the stepper over the trace so far.

    Args:
        server: a live broker or proxy.

    Attributes:
        widget: the gates as they are drawn.
        stepper: over the trace, once it was opened.
        connection: the one that is shown; the latest if nobody chose.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection: str | None = None
        self.stepper: StepperWidget | None = None
        self._said, self._failed = "", False
        self._nobody = NOBODY_YET
        self._rows = 0  # in the stepper
        self.widget = FrozenWireWidget()
        self.place = widgets.VBox()
        super().__init__(children=[self.widget, self.place])
        self.widget.on_msg(lambda _widget, message, _buffers: self.act(message))
        self.refresh()
        self._watch = server.watch(self.refresh) if server.running else None

    # -- showing --------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show what is so now."""
        try:
            self._choose_one()
            picture = picture_of(
                self.server, self.connection, self._said, self._failed, self._nobody
            )
        except Exception:
            if self.server.running:
                raise
            # It has been stopped in this very moment.
            picture = picture_of(self.server, None, "", False)
        if picture != self.widget.picture:
            self.widget.picture = picture
        self._follow(picture["rows"] or 0)

    def _choose_one(self) -> None:
        names = self.server.connections() if self.server.running else []
        if self.connection in names:
            return
        over, self.connection = self.connection, names[-1] if names else None
        if over is not None:
            self._nobody = f"{over} is over; nobody else is connected."
            now = f"{over} is over; this is {self.connection}."
            self._said, self._failed = now if names else self._nobody, False

    def _follow(self, rows: int) -> None:
        """A stepper that stands at the end stays there, as long as the trace is short."""
        shown = self.stepper
        if shown is None or rows == self._rows or rows > FOLLOWED_ROWS:
            return
        if shown.cursor >= len(shown.doc["rows"]):
            self._open()

    # -- acting ---------------------------------------------------------------------------------

    def act(self, message: dict[str, Any]) -> None:
        """Do what the browser says was pressed; a refusal is told in words."""
        try:
            self._said, self._failed = self._do(message), False
        except Exception as error:  # whatever it is, the person who pressed shall read it
            self._said, self._failed = str(error), True
        if self._watch is not None:
            self._watch.now()
        else:
            self.refresh()

    def _do(self, message: dict[str, Any]) -> str:
        name, way = message.get("act"), message.get("way")
        if name == "choose":
            self.connection = str(message["connection"])
            return ""
        if name == "freeze-new":
            self.server.freeze_new(bool(message["on"]))
            return (
                "New connections find both gates closed."
                if message["on"]
                else "New connections run freely."
            )
        if name == "trace":
            self._open()
            return f"The trace so far, {count(self._rows, 'row')}, is open below."
        if self.connection is None:
            return self._nobody
        wire = self.server.wire(self.connection)
        if name == "step":
            return self._step(wire, int(message.get("frames", 1)), way)
        if name == "hold":
            wire.hold(way)
            return f"The gate {WAYS[way]} is closed." if way else "Both gates are closed."
        if name == "run":
            freed = wire.free_run(way)
            which = f"the gate {WAYS[way]} is" if way else "both gates are"
            return f"{count(freed, 'frame').capitalize()} let through; {which} open."
        if name == "break":
            return f"It will stop at: {wire.break_when(str(message['words']))}."
        if name == "clear":
            wire.clear_breakpoints()
            return "No breakpoints."
        raise ValueError(f"no act {name!r}")

    def _step(self, wire: Any, frames: int, way: str | None) -> str:
        waiting = wire.held(way)
        if not waiting:
            open_gates = not any(gate.closed for gate in wire.picture(0).gates.values())
            return (
                "Nothing is held: both gates are open. Freeze closes them."
                if open_gates
                else "No frame waits. The peers have nothing to say, or wait for each other."
            )
        passed = wire.step(frames, way)
        first = f"{in_a_line(waiting[0])}, {WAYS[waiting[0].direction]}"
        return f"Let through: {first}." if passed == 1 else f"{passed} let through, first {first}."

    def _open(self) -> None:
        """Open the trace so far in the stepper, at its end."""
        rows = self.server.rows()
        self._rows = len(rows)
        last = rows[-1].seq if rows else None
        part, start, cut = window(rows, last, MOST_ROWS)
        doc = build(part, start=start, title=f"Live trace of {self.server.url}", note=cut)
        if self.stepper is None:
            self.stepper = StepperWidget(doc, cursor=len(part))
            self.place.children = (self.stepper,)
        else:
            self.stepper.show(doc, len(part))

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the page; the server goes on."""
        if self._watch is not None:
            self._watch.close()
        super().close()

    def __repr__(self) -> str:
        return picture_text(self.widget.picture)


def frozen_wire(server: Server) -> FrozenWireDesk:
    """The gates of a live broker or proxy: what waits, and a hand to let it go.

    Args:
        server: what `serve` has started.
    """
    return FrozenWireDesk(server)
