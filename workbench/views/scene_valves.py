"""The chain of valves between an application and a queue: everything that can hold its sender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.trace import brakes
from workbench.trace.braking import Held, held_by
from workbench.trace.fold import Scope
from workbench.trace.schema import BROKER, Row
from workbench.trace.words import visible

from .scene_link import LinkPicture
from .scene_walk import Walk

Doc = dict[str, Any]

# The valves in the order of `brakes.ORDER`: brake and name. A sender without a message is held by
# nothing: what it has to send stands in its node.
VALVES: tuple[tuple[str, str], ...] = (
    (brakes.UNCONFIRMED, "unconfirmed"),
    (brakes.LINK_CREDIT, "link credit"),
    (brakes.ALARM, "alarm"),
    (brakes.SESSION_WINDOW, "session window"),
    (brakes.TCP, "TCP"),
)


def counters(held: Held) -> dict[str, int | str | None]:
    """What is read at each valve: a number, a text, or None where it is not known."""
    return {
        brakes.UNCONFIRMED: held.unconfirmed,
        brakes.LINK_CREDIT: held.link_credit,
        brakes.ALARM: " and ".join(held.alarms) if held.alarms else "none",
        brakes.SESSION_WINDOW: held.window,
        brakes.TCP: "takes no more" if held.full else "takes octets",
    }


class ValvesPicture(LinkPicture):
    """A publisher, the valves on its way, and the queue that it publishes to.

    Args:
        walk: the run.
        link: over which it publishes.
    """

    layout = "valves"

    def __init__(self, walk: Walk, link: Scope) -> None:
        super().__init__(walk, [link])
        self.link = link
        self.queue = next(
            (row.queue for row in walk.rows if row.queue == link.link), link.link or ""
        )
        self._queues = [name for name in self._queues if name == self.queue]
        held = held_by(walk.rows, link)
        told = [counters(one) for one in held]
        self._most = {
            brake: max((n for one in told if isinstance(n := one[brake], int)), default=0)
            for brake, _ in VALVES
        }
        self._hung = False

    @property
    def nodes(self) -> list[str]:
        """The application and the broker."""
        return [name for name in self.walk.vantages(self.link) if name is not None]

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        if row.event == "note" and row.queue == self.queue and row.kind in ("stalled", "resumed"):
            self._hung = row.kind == "stalled"

    def _facts(self, name: str, sends: Sequence[Scope], takes: Sequence[Scope]) -> list[str]:
        """Of the other links over which it publishes this picture tells nothing."""

        def mine(links: Sequence[Scope]) -> list[Scope]:
            return [one for one in links if one == self.link or one.link_sender == BROKER]

        return super()._facts(name, mine(sends), mine(takes))

    def head(self) -> Doc:
        """What does not change in the run."""
        return super().head() | {
            "valves": [{"id": f"valve {brake}", "name": name} for brake, name in VALVES],
            "disks": [{"id": "queue", "on": BROKER, "name": "queue"}],
        }

    def node(self, name: str) -> Doc:
        """The application, or the queue."""
        node = super().node(name)
        if name == BROKER:
            return node | {"name": "Queue", "sub": f"broker, “{visible(self.queue)}”"}
        return node | {"name": "Application"}

    def state(self) -> Doc:
        """Everything after the row taken last."""
        held = self.walk.holding(self.link)
        return super().state() | {
            "valves": self._valves(held),
            "disks": {"queue": {"hung": self._hung, "text": "hangs" if self._hung else ""}},
        }

    def _valves(self, held: Held) -> Doc:
        found: Doc = {}
        values = counters(held)
        blocked = brakes.is_blocked(held.brake)
        for brake, _ in VALVES:
            value, most, closed = values[brake], self._most[brake], brake in held.brakes
            read = "not told" if value is None else str(value)
            state: Doc = {
                "closed": closed,
                "limiting": blocked and held.brake == brake,
                "read": f"{value} of {most}" if isinstance(value, int) else read,
            }
            if isinstance(value, int) and most:
                state |= {"left": value, "of": most}
            found[f"valve {brake}"] = state
        return found
