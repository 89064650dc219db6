"""The chain of valves between an application and a queue: everything that can hold its sender."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.trace import brakes
from workbench.trace.braking import Held, held_by
from workbench.trace.fold import Scope
from workbench.trace.schema import BROKER, Row
from workbench.trace.words import visible

from .scene_link import LinkPicture, say
from .scene_walk import Walk

Doc = dict[str, Any]

# The brakes that are valves, in the order of `brakes.ORDER`. A sender without a message is held by
# nothing: what it has to send stands in its node.
VALVES = (
    brakes.UNCONFIRMED,
    brakes.LINK_CREDIT,
    brakes.ALARM,
    brakes.SESSION_WINDOW,
    brakes.TCP,
)

STOCKS = (brakes.LINK_CREDIT, brakes.SESSION_WINDOW)
"""Valves that close when something is used up; how much was there at most is their whole bar."""


def counters(held: Held) -> dict[str, int | str | None]:
    """What is read at each valve: a number, a text, or None where it is not known."""
    return {
        brakes.UNCONFIRMED: held.unconfirmed,
        brakes.LINK_CREDIT: held.link_credit,
        brakes.ALARM: say("valves.and").join(held.alarms) or say("valves.no-alarm"),
        brakes.SESSION_WINDOW: held.window,
        brakes.TCP: say("valves.full" if held.full else "valves.flows"),
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
            for brake in STOCKS
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
            "valves": [{"id": f"valve {brake}", "name": say(f"valve.{brake}")} for brake in VALVES],
            "disks": [{"id": "queue", "on": BROKER, "name": say("valves.disk")}],
        }

    def node(self, name: str) -> Doc:
        """The application, or the queue."""
        node = super().node(name)
        if name == BROKER:
            sub = say("valves.at-broker", queue=visible(self.queue))
            return node | {"name": say("valves.queue"), "sub": sub}
        return node | {"name": say("valves.application")}

    def state(self) -> Doc:
        """Everything after the row taken last."""
        held = self.walk.holding(self.link)
        hangs = say("party.hangs") if self._hung else ""
        return super().state() | {
            "valves": self._valves(held),
            "disks": {"queue": {"hung": self._hung, "text": hangs}},
        }

    def _valves(self, held: Held) -> Doc:
        found: Doc = {}
        values = counters(held)
        blocked = brakes.is_blocked(held.brake)
        for brake in VALVES:
            value, most = values[brake], self._most.get(brake)
            told = say("valves.not-told") if value is None else str(value)
            amount: Doc = {"read": told}
            if isinstance(value, int) and most:
                amount = {"read": say("valves.of", n=value, most=most), "left": value, "of": most}
            limiting = blocked and held.brake == brake
            closed = brake in held.brakes
            found[f"valve {brake}"] = {"closed": closed, "limiting": limiting, **amount}
        return found
