"""What a scene shows of paging: a vessel of messages in RAM that sinks, and the store they go to.

The level is what a quota counts: messages in RAM, ready or handed out. Rows of the queue tell it;
what lies on disk is told by the same rows, and what a store has still to write by its own.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from workbench.trace.fold import held_in
from workbench.trace.schema import BROKER, Row
from workbench.trace.sentences_paging import in_ram
from workbench.trace.words import visible

from .scene_link import LinkPicture, say
from .scene_walk import Flight, Walk

Doc = dict[str, Any]

STORE, RAM, WAY = "store:transient", "ram", "writes"
MOST_MARKS = 2
_COUNTERS = ("ram_messages", "ram_acks", "disk_acks", "index_acks", "q4", "q3", "delta", "q2", "q1")
_ACTS = ("stall", "wait", "set_target", "lift_target", "publish", "consume", "acknowledge", "alarm")
_MORE = ("quota", "left", "credit", "to-write")


class PagingPicture(LinkPicture):
    """A queue's messages in RAM, and the message store that takes what is paged out."""

    layout = "gauge"
    places = MappingProxyType(dict.fromkeys(_ACTS, BROKER))

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk, [])
        rows = walk.rows
        self._queue = next(row.queue or "" for row in rows if in_ram(row))
        self._ram: dict[str, int | None] = {}
        self._quota = self._left = self._waiting = 0
        self._credit: int | None = None
        self._blocked = self._hung = False
        told = [in_ram(row) for row in rows if in_ram(row)]
        first = next((row for row in rows if self._ready(row)), None)
        self._start = 0 if first is None else self._ready(first)
        self._top = max(self._start, *(one["ram_messages"] + one["ram_acks"] for one in told), 1)
        targets = dict.fromkeys(one["target"] for one in told if one["target"] is not None)
        self._targets = [target for target in targets if target <= self._top][:MOST_MARKS]

    def _ready(self, row: Row) -> int:
        """What is in the queue, ready or handed out, as a row tells; 0 if it does not."""
        return held_in(row) if row.queue == self._queue else 0

    # -- rows -------------------------------------------------------------------------------

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        ram = in_ram(row)
        if row.queue == self._queue and ram:
            self._ram = dict(ram)
        if row.kind == "paged":
            self._quota, self._left = row.extra["quota"], row.extra["left"]
            self._blocked = bool(row.extra["stopped"])
        mine = row.vantage == f"queue:{self._queue}"
        if mine and row.queue == STORE and row.ledger:
            self._credit = row.ledger.get("hop_credit")
        if mine and row.event in ("block", "unblock"):
            self._blocked = row.event == "block"
        if row.vantage == STORE:
            self._waiting = (row.ledger or {}).get("mailbox", self._waiting)
            if row.kind in ("stalled", "resumed"):
                self._hung = row.kind == "stalled"

    def of_frame(self, flight: Flight) -> Doc | None:
        """Frames of the client are no part of the picture."""
        return None

    def writes(self) -> list[tuple[int, Doc]]:
        """What each go pages out, on its way until the store begins to write it."""
        rows, times = self.walk.rows, self.walk.times
        found: list[tuple[int, Doc]] = []
        for place, row in enumerate(rows):
            paged = row.extra["messages"] + row.extra["acks"] if row.kind == "paged" else 0
            if not paged:
                continue
            later = range(place + 1, len(rows))
            begun = (at for at in later if (rows[at].event, rows[at].vantage) == ("append", STORE))
            end = next(begun, None)
            path = [[times[place], 0.0], [times[-1 if end is None else end], 1.0]]
            if end is None:
                path[-1][1] = 0.5
            words = say("paging.frame", n=paged)
            doc = {"id": f"p{row.seq}", "link": WAY, "way": "back", "kind": "write", "path": path}
            short = f"{paged // 1000}k" if paged >= 1000 else str(paged)
            found.append((place, doc | {"text": short, "name": words, "short": words}))
        return found

    # -- what does not change ---------------------------------------------------------------

    @property
    def nodes(self) -> list[str]:
        """The store, and the queue whose messages are in RAM."""
        return [STORE, BROKER]

    @property
    def wires(self) -> dict[str | None, tuple[str, str]]:
        """None is shown."""
        return {}

    def role(self, node: str) -> str:
        """Messages go from the queue to the store."""
        return "sender" if node == BROKER else "receiver"

    def head(self) -> Doc:
        """What does not change in the run."""
        marks = [
            {"at": target, "text": say("paging.target", n=target), "kind": "low"}
            for target in self._targets
        ]
        names = [say("paging.grants"), say("paging.to-disk")]
        first = {"at": self._start, "text": say("paging.at-first"), "kind": "high"}
        return {
            "layout": self.layout,
            "nodes": [self.node(name) for name in self.nodes],
            "links": [{"id": WAY, "from": STORE, "to": BROKER, "names": names}],
            "lines": [],
            "gauges": [
                {
                    "id": RAM,
                    "on": BROKER,
                    "name": say("paging.in-ram"),
                    "top": self._top,
                    "marks": [*marks, first],
                }
            ],
            "counters": {
                "columns": [say("paging.now")],
                "rows": [
                    {"id": name, "name": say(f"paging-counter.{name}")}
                    for name in (*_MORE, *_COUNTERS)
                ],
            },
        }

    def node(self, name: str) -> Doc:
        """The store or the queue."""
        if name == BROKER:
            title, sub = say("paging.ram", queue=visible(self._queue)), ""
        else:
            title, sub = say("paging.store"), say("paging.transient")
        return {"id": name, "role": self.role(name), "name": title, "sub": sub}

    # -- what is so now ---------------------------------------------------------------------

    @property
    def _level(self) -> int:
        if not self._ram:
            return self._start
        return int(self._ram["ram_messages"] or 0) + int(self._ram["ram_acks"] or 0)

    @property
    def _paged_out(self) -> int:
        """Contents that are not in RAM; the store may have to write them yet."""
        ram = self._ram
        ready = sum(int(ram.get(name) or 0) for name in ("q1", "q2", "delta", "q3", "q4"))
        in_ram_now = int(ram.get("ram_messages") or 0)
        return ready - in_ram_now + int(ram.get("disk_acks") or 0)

    @property
    def _stopped(self) -> bool:
        return self._blocked and self._left > 0

    def state(self) -> Doc:
        """Everything after the row taken last."""
        text = ""
        if self._quota:
            stops = "-blocked" if self._stopped else ""
            text = say(f"paging.quota{stops}", quota=self._quota, left=self._left)
        gauge: Doc = {"level": self._level, "stopped": self._stopped, "text": text or None}
        return {
            "nodes": {name: self.node_state(name) for name in self.nodes},
            "links": {},
            "lines": {},
            "gauges": {RAM: gauge},
            "counters": self._counters(),
        }

    def node_state(self, name: str) -> Doc:
        """A party's words."""
        if name == BROKER:
            in_ram = say("fact.in-ram", n=self._level)
            return {"facts": [in_ram, say("fact.paged-out", n=self._paged_out)]}
        has_credit, waits = self._credit is not None, bool(self._waiting)
        sub = say("paging.credit", n=self._credit or 0) if has_credit else ""
        blocked = going = None
        if self._hung:
            blocked = say("paging.hangs" if waits else "party.hangs", n=self._waiting)
        elif waits:
            going = say("paging.waits", n=self._waiting)
        return {"sub": sub, "blocked": blocked, "going": going, "facts": []}

    def _counters(self) -> Doc:
        found: Doc = {name: [self._ram.get(name)] for name in _COUNTERS}
        values = (self._quota, self._left, self._credit, self._waiting)
        return found | {name: [value] for name, value in zip(_MORE, values, strict=True)}

    def knob(self, act: str, link: Any) -> int | None:
        """The target stands where the queue was told."""
        return (self._ram.get("target") or 0) if act == "set_target" else None

    def words(self) -> str:
        """The whole state in words."""
        told = [say("paging-words.ram", n=self._level, out=self._paged_out)]
        if self._ram.get("target") is not None:
            told.append(say("paging-words.target", n=self._ram["target"]))
        if self._quota:
            told.append(say("paging-words.quota", quota=self._quota, left=self._left))
        if self._credit is not None:
            told.append(say("paging-words.credit", n=self._credit))
        if self._stopped:
            told.append(say("paging-words.blocked"))
        if self._waiting:
            told.append(say("paging-words.to-write", n=self._waiting))
        return " ".join(told)
