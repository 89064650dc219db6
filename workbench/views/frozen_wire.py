"""The frozen wire: a live server on the stage, with a hand on the frames that wait at its gates.

Everything that changes comes from the server's own thread, so the picture stays true while a cell
of the notebook is busy. What a person asks for is handed to the server at once; what came of it is
seen with the next picture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from workbench.notebook import WrongValueError
from workbench.trace.cut import Following
from workbench.trace.gates import SENDER_OF
from workbench.trace.given import not_wanted

from .scene import SceneMaker, frame_doc, packed
from .scene_acts import amount_of
from .scene_live import AT_GATE, HeldFrame, Live, directed, idea_of, in_a_line, row_of, say, way_of
from .scene_walk import Flight
from .stage_widget import StageWidget

Doc = dict[str, Any]

MOST_FRAMES = 60
"""So many frames that wait are drawn of each direction; the rest are counted."""
MOST_ROWS = 400
"""The latest rows that are drawn."""
_PLACES = {"c2b": "there", "b2c": "back"}


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

    def see(self, connection: str | None = ..., *, after: int = ..., most: int = ...) -> Any:
        """One moment: the connections, the wire of one, and the trace so far."""

    def wire(self, connection: str) -> Any:
        """The hand on a wire."""

    def freeze_new(self, on: bool = ...) -> None:
        """Hold new connections from the first octet, or not."""

    def watch(self, look: Callable[[], None]) -> Any:
        """Call a function whenever there may be something new."""


class FrozenWire(StageWidget):
    """The stage over a live server: it grows, and stays at the latest step while it stands there.

    What waits at the gates of the shown wire is on it, with a hand to let it go.

    Args:
        server: a live broker or proxy: what `serve` has started.

    Raises:
        GivenError: if it is neither.

    Attributes:
        connection: the one that is shown; the latest if nobody chose.
    """

    def __init__(self, server: Server) -> None:
        self._watch: Any = None
        if not callable(getattr(server, "see", None)):
            raise not_wanted(Server, server)
        self.server = server
        self.connection: str | None = None
        self._said, self._over = "", ""
        self._following, self._seq = Following(), -1
        live, note = self._look()
        super().__init__(live, title=say("wire.title", url=server.url), note=note)
        self.cursor = len(self._maker.strip(0).steps) - 1
        self._watch = server.watch(self._draw) if server.running else None

    # -- showing --------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show what is so now."""
        if self._watch is not None:
            self._watch.look()
        else:
            self._draw()

    def _draw(self) -> None:
        rows = self._maker.strip(0).walk.rows
        follows, seq = self.cursor >= len(rows) - 1, self.seq
        live, note = self._look()
        self._maker = SceneMaker(live, note=note)
        scene = packed(self._doc())
        if scene == self.scene:
            return
        place = next((place for place, row in enumerate(live.rows) if row.seq == seq), 0)
        with self.hold_sync():
            self.cursor = max(0, len(live.rows) - 1) if follows else place
            self.scene = scene

    @property
    def seq(self) -> int:
        """`seq` of the row that is shown; -1 before the first."""
        rows = self._maker.strip(0).walk.rows
        return rows[self.cursor].seq if rows else -1

    def _look(self) -> tuple[Live, str]:
        """The server as it is now, and what there is to be said of it."""
        seen = self.server.see(self.connection, after=self._seq, most=MOST_FRAMES)
        wire, self._open = seen.wire, seen.connections
        for row in seen.rows:
            self._following.take(row)
            self._seq = row.seq
            while len(self._following) > MOST_ROWS:
                self._following.drop()
        over, self.connection = self.connection, None if wire is None else wire.connection
        if over not in (None, self.connection):
            self._over = over
            self._said = "" if wire is None else say("wire.next", name=over, other=self.connection)
        live = Live(cut=self._following.cut(), connection=self.connection, wire=wire)
        if not self.server.running:
            self._said, told = "", say("wire.stopped")
        elif wire is not None:
            told = idea_of(live)
        else:
            told = self._nobody
            told += "" if self._over else f" {say('wire.connects', url=self.server.url)}"
        return live, f"{self._said} {told}".strip()

    @property
    def _nobody(self) -> str:
        """That nobody is connected."""
        return say("wire.over" if self._over else "wire.nobody-yet", name=self._over)

    def _doc(self) -> Doc:
        """The scene, with the frames that wait and everything that can be done now."""
        doc = super()._doc()
        live: Live = self.branches.runs[0]
        branch, steps = doc["branches"][0], doc["branches"][0]["steps"]
        drawn = {frame["id"] for frame in branch["frames"]}
        for held in live.waiting:
            if str(held.frame_id) not in drawn:  # a proxy records what has passed
                branch["frames"].append(_waits(held, str(live.connection), steps[-1]["t"]))
        if live.waiting:
            steps[-1]["frame"] = str(live.waiting[0].frame_id)
        doc["acts"] = acts = list(self._marks(live))
        off = self._off(live)
        steps[0]["off"] = {act["id"]: off.get(act["id"]) for act in acts}
        gates = {} if live.wire is None else live.wire.gates
        on = {f"gate:{way}": gate.closed for way, gate in gates.items()}
        steps[0]["on"] = {**on, "new": self.server.running and self.server.freezes_new}
        return doc

    def _marks(self, live: Live) -> Any:
        def act(name: str, kind: str, on: str, words: str, **more: Any) -> Doc:
            return {"id": name, "kind": kind, "on": on, "name": words, **more}

        if live.connection is not None:
            yield act("step", "button", "stage", say("act.step"), key="f")
            yield act("run", "button", "stage", say("act.run"), key="g")
            yield act("hold", "button", "stage", say("act.freeze"), key="h")
            for way, place in _PLACES.items():
                gate = f"{live.connection} {place}"
                yield act(
                    f"gate:{way}", "toggle", gate, say("act.close", way=way_of(way)),
                    undo=say("act.open", way=way_of(way)),
                )  # fmt: skip
                party = f"{SENDER_OF[way]}:{live.connection}" if way == "c2b" else SENDER_OF[way]
                key = {"c2b": "c", "b2c": "b"}[way]
                yield act(f"step:{way}", "button", party, say("act.forward"), key=key)
            yield act("release", "frame", "frames", say("act.release"), **{"while": "held"})
            yield act("break", "text", "stage", say("act.break"), hint=say("act.break-hint"))
            points = live.wire.breakpoints
            if points:
                yield act("clear", "button", "stage", say("act.clear", points="; ".join(points)))
        # In order of weight: a narrow page shows the first of them.
        for name in self._open:
            if name != self.connection:
                yield act(f"show:{name}", "button", "stage", say("act.show", name=name))
        yield act("new", "toggle", "stage", say("act.hold-new"), undo=say("act.let-new"))
        if live.connection is not None:
            yield act("some", "knob", "stage", say("act.some"), min=1, max=1_000)

    def _off(self, live: Live) -> dict[str, str]:
        """By act, why it is not legal now."""
        if live.wire is None:
            return {} if self.server.running else {"new": say("off.stopped")}
        gates = live.wire.gates
        closed = [gate.closed for gate in gates.values()]
        found: dict[str, str] = {}
        for way in (None, *gates):
            waiting = [gates[one].waiting for one in gates if way in (None, one)]
            if not any(waiting):
                why = say("off.none-waits" if any(closed) else "off.none-held")
                for name in ("step", "some") if way is None else (f"step:{way}",):
                    found[name] = why
        if not any(closed):
            found["run"] = say("gates.open")
        if all(closed):
            found["hold"] = say("gates.closed")
        return found

    # -- acting ---------------------------------------------------------------------------------

    def reply(self, message: Doc) -> Doc:
        """Do what was pressed on the picture; what comes of it is seen in the next picture.

        Args:
            message: `{act, value, ...}`, as in `stage/types.ts`.

        Returns:
            `{"type": "done"}`, or `{"type": "illegal", "act": ..., "why": ...}`.
        """
        name = str(message.get("act"))
        try:
            self._said = self._perform(name, message.get("value"))
        except Exception as error:  # whatever it is, the person who pressed shall read it
            return {"type": "illegal", "act": name, "why": str(error)}
        if self._watch is not None:
            self._watch.now()
        else:
            self.refresh()
        return {"type": "done"}

    def _perform(self, name: str, value: Any) -> str:
        name, _, about = name.partition(":")
        if name == "show":
            self.connection = about
            return ""
        if name == "new":
            self.server.freeze_new(bool(value))
            return say("done.hold-new" if value else "done.let-new")
        if self.connection is None:
            raise WrongValueError(self._nobody)
        wire, way = self.server.wire(self.connection), about or None
        if name in ("step", "some"):
            return self._step(wire, amount_of(name, value) if name == "some" else 1, way)
        if name == "release":
            (frame,) = [one for one in wire.held() if one.frame_id == int(value)] or [None]
            wire.release(int(value))
            return say("done.through", frame=directed(frame)) if frame is not None else ""
        if name == "hold" or (name == "gate" and value):
            wire.hold(way)
            return say("gate.closed", way=way_of(way)) if way else say("gates.closed")
        if name in ("run", "gate"):
            freed = wire.free_run(way)
            if way is None:
                return say("done.freed", n=freed)
            return say("done.freed-way", n=freed, way=way_of(way))
        if name == "break":
            wire.break_when(str(value))
            return ""
        if name == "clear":
            wire.clear_breakpoints()
            return say("done.no-stops")
        raise WrongValueError(say("off.no-act", act=repr(name)))

    @staticmethod
    def _step(wire: Any, frames: int, way: str | None) -> str:
        waiting = wire.held(way)
        if not waiting:
            raise WrongValueError(say("off.none-there"))
        passed = wire.step(frames, way)
        first = directed(waiting[0])
        return say("done.through" if passed == 1 else "done.some-through", n=passed, frame=first)

    # -- the end --------------------------------------------------------------------------------

    def close(self) -> None:
        """Leave the page; the server goes on."""
        if self._watch is not None:
            self._watch.close()
        super().close()

    def still(self) -> str:
        """What is shown now, as text, and every frame that waits."""
        live: Live = self.branches.runs[0]
        lines = [self._maker.note]
        if live.wire is not None:
            wire = live.wire
            says = say("still.gone", says=wire.words) if wire.gone else wire.words
            lines.append(f"{live.connection}: {says}")
            for way, gate in wire.gates.items():
                told = {"way": way_of(way), "n": gate.waiting, "passed": gate.passed}
                lines.append(say("still.closed" if gate.closed else "still.open", **told))
                lines += [f"  {in_a_line(frame)}" for frame in gate.held]
            if wire.breakpoints:
                lines.append(say("still.stops", points="; ".join(wire.breakpoints)))
        return "\n".join([super().still(), "", *lines])


def _waits(held: HeldFrame, connection: str, t: float) -> Doc:
    """A frame that waits at its gate and that no row tells of yet."""
    place = {"link": connection, "way": _PLACES[held.direction]}
    path = [(t, AT_GATE), (t, AT_GATE)]
    row = row_of(held, connection)
    if row is not None:
        return frame_doc(Flight(row=row, path=path, begun=-1), place)
    name = in_a_line(held)
    return {
        "id": str(held.frame_id), **place, "kind": "write", "name": name, "path": path,
        "octets": {"hex": held.octets.hex(), "fields": []},
    }  # fmt: skip
