"""Whose counters stand where: slots, their cells, and the tables the stepper shows of them.

A *slot* is one end's ledger of one link, of one session, or of one actor inside the broker. Each
slot owns a run of *cells*, numbered through the whole document, so that a step is a short list of
`cell, value` pairs. Which cell of the sender is compared with which of the receiver is decided
here; the browser only compares.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.trace.fold import Scope
from workbench.trace.schema import CLIENT, LEDGER_GROUPS, OWN, WIRE_VANTAGE
from workbench.trace.words import spec_name, visible

BRAKE = "brake"

# The cells of a slot: the schema's counters, and what holds a link's sender.
CELLS = {
    group: (*names, BRAKE) if group == "link" else names for group, names in LEDGER_GROUPS.items()
}


@dataclass(slots=True, kw_only=True)
class Slot:
    """One end's ledger of one thing.

    Attributes:
        vantage: whose it is.
        scope: what it is about.
        base: number of its first cell.
        source: `own`, `shadow` or `observed`.
    """

    vantage: str
    scope: Scope
    base: int
    source: str

    @property
    def title(self) -> str:
        """Whose ledger of what, for the list of changes."""
        about = {
            "link": f"link {visible(self.scope.link)}",
            "session": f"session {self.scope.session}",
            "actor": visible(self.scope.queue or ""),
        }.get(self.scope.group, self.scope.group)
        return self.vantage if not about or about in self.vantage else f"{self.vantage} · {about}"

    def cell(self, name: str) -> int:
        """Number of the cell that holds `name`."""
        return self.base + CELLS[self.scope.group].index(name)


@dataclass(slots=True)
class Slots:
    """All ledgers met so far, in order of first appearance."""

    items: list[Slot] = field(default_factory=list)
    _by_key: dict[tuple[str, Scope], Slot] = field(default_factory=dict)
    cells: int = 0

    def of(self, vantage: str, scope: Scope, source: str | None = None) -> Slot:
        """That end's ledger; it is made when it is new."""
        slot = self._by_key.get((vantage, scope))
        if slot is None:
            slot = Slot(vantage=vantage, scope=scope, base=self.cells, source=source or OWN)
            self._by_key[vantage, scope] = slot
            self.items.append(slot)
            self.cells += len(CELLS[scope.group])
        elif source:
            slot.source = source
        return slot

    def get(self, vantage: str | None, scope: Scope) -> Slot | None:
        """That end's ledger, if it has appeared."""
        return self._by_key.get((vantage, scope)) if vantage else None

    def document(self) -> list[list[Any]]:
        """`[title, group, source, first cell, field, field, ...]` for each slot."""
        return [
            [slot.title, slot.scope.group, slot.source, slot.base]
            + [spec_name(name) for name in CELLS[slot.scope.group]]
            for slot in self.items
        ]


# What stands in the two big ledgers, and whether a difference between the ends is marked.
MAIN = ("delivery_count", "link_credit", "available", "drain")
MORE = (("unsettled", True), ("unconfirmed", False))
# One end's counter against the other's: my next id is what you expect, my window is what you
# remember of it. (label, sender's field, receiver's field)
WINDOWS = (
    ("sender → receiver: next id", "next_outgoing_id", "next_incoming_id"),
    ("receiver's incoming-window", "remote_incoming_window", "incoming_window"),
    ("sender's outgoing-window", "outgoing_window", "remote_outgoing_window"),
    ("receiver → sender: next id", "next_incoming_id", "next_outgoing_id"),
    ("sender's incoming-window", "incoming_window", "remote_incoming_window"),
    ("receiver's outgoing-window", "remote_outgoing_window", "outgoing_window"),
)


def link_tables(
    slots: Slots, link: Scope, client: str | None, broker: str | None
) -> dict[str, Any]:
    """The tables that the stepper shows of one link.

    Args:
        slots: every ledger of the document.
        link: which link.
        client: vantage of the client's end, None if nobody logged there.
        broker: vantage of the broker's end, None if nobody logged there.

    Returns:
        `sender` and `receiver` (`{who, source}`, or None), `one` (1 for a capture), `rows`, `more`
        and `window` (`[label, sender's cell, receiver's cell, compared]`, -1 for no cell) and
        `brake` (its cell, or -1).
    """
    sides = (client, broker) if link.link_sender == CLIENT else (broker, client)
    captured = slots.get(WIRE_VANTAGE, link)
    one = captured is not None and not any(slots.get(side, link) for side in sides)
    if one:
        sides = (WIRE_VANTAGE, None)
    ends = [slots.get(side, link) for side in sides]
    # A capture logs the windows of both ends at one vantage: here, the link's sender's.
    end = link.link_sender if one else None
    session = Scope("session", link.connection, link.session, link_sender=end)
    sessions = [slots.get(side, session) for side in sides]

    def row(label: str, pair: list[Slot | None], names: tuple[str, str], compared: bool) -> list:
        cells = [slot.cell(name) if slot else -1 for slot, name in zip(pair, names, strict=True)]
        return [label, *cells, int(compared and -1 not in cells)]

    plain = [(spec_name(name), name, name) for name in LEDGER_GROUPS["session"]]
    return {
        "sender": _end(ends[0], sides[0]),
        "receiver": _end(ends[1], sides[1]),
        "one": int(one),
        "rows": [row(spec_name(name), ends, (name, name), True) for name in MAIN],
        "more": [row(spec_name(name), ends, (name, name), same) for name, same in MORE],
        "window": [
            row(label, sessions, (left, right), True)
            for label, left, right in (plain if one else WINDOWS)
        ],
        "brake": ends[0].cell(BRAKE) if ends[0] else -1,
    }


def _end(slot: Slot | None, vantage: str | None) -> dict[str, Any] | None:
    if vantage is None:
        return None
    return {"who": vantage, "source": slot.source if slot else OWN}
