"""What a scene shows of AMQP 0-9-1: parties, wires, and a line of deliveries for each consumer.

A prefetch is drawn as what it is for the one that delivers: a limit on a line of deliveries. It
moves on with every acknowledgement, and with nothing else; where link credit is given ahead, it is
given back.
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any, NamedTuple

from workbench.trace import brakes
from workbench.trace.braking import Outside
from workbench.trace.consumers import SUBSCRIBE
from workbench.trace.schema import (
    AMQP_0_9_1,
    BLOCKED,
    BROKER,
    CLIENT,
    OBSERVED,
    RECEIVED,
    SENT,
    UNBLOCKED,
    WIRE_VANTAGE,
    Row,
    peer_of,
)
from workbench.trace.words import visible

from .scene_link import MOST_CLIENTS, ROLES, LinkPicture, line_head, say, shown
from .scene_walk import Flight, Walk

Doc = dict[str, Any]

_COUNTERS = ("prefetch_count", "unacknowledged", "published", "confirmed")
_CANCELS = ("basic.cancel", "basic.cancel-ok")
_NAMES = {name: name.replace("_", "-") for name in _COUNTERS}


class Consumer(NamedTuple):
    """Which consumer: a tag is a name on a channel only."""

    connection: str | None
    session: int | None
    tag: str

    @property
    def id(self) -> str:
        """Of its line."""
        return f"consumer {self.connection}/{self.session}/{self.tag}"


def consumer_of(row: Row) -> Consumer | None:
    """The consumer that a row of AMQP 0-9-1 concerns."""
    if row.consumer is None or row.protocol != AMQP_0_9_1:
        return None
    return Consumer(row.connection, row.session, row.consumer)


class PrefetchLine:
    """The number line of a consumer: deliveries made to it, and the limit up to which it may go.

    A limit that the consumers of a channel share moves with what any of them has: then each row of
    the channel counts, and of two limits the one that leaves the consumer less. One that was
    cancelled gets no more, whatever room there is.
    """

    def __init__(self, consumer: Consumer, walk: Walk) -> None:
        self.consumer = consumer
        self.id = consumer.id
        self._walk = walk
        self._begin()
        self._furthest = 0
        for row in walk.rows:
            self.take(row)
            self._furthest = max([self._furthest, *(limit for _, limit in self._ends.values())])
        self._begin()

    def _begin(self) -> None:
        self.held = False  # by its prefetch
        self._made: Counter[str] = Counter()
        self._ends: dict[str, list[int]] = {}
        # By end, room in the limit of its own; inf: the shared one is tighter.
        self._own: dict[str, float] = {}
        self._gone: set[str] = set()  # ends at which it was cancelled

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        here = self.consumer
        if (row.connection, row.session) != (here.connection, here.session):
            return
        who = row.vantage
        if row.event == OBSERVED:
            who = self._walk.ends.get((row.connection, BROKER), BROKER)
        ledger = row.ledger or {}
        shared = ledger.get("shared_room")
        if consumer_of(row) == here:
            self._made[who] += row.kind == "basic.deliver"
            if row.kind in _CANCELS:
                self._gone.add(who)
            elif row.kind in SUBSCRIBE:
                self._gone.discard(who)
            gone = who in self._gone
            if "prefetch_count" in ledger:
                room = 0 if gone else _room(row)
                self._own[who] = inf if room == shared and not gone else room
                self._goes_to(who, room)
            if row.brake is not None:
                self.held = row.brake == brakes.PREFETCH and not gone
        elif shared is not None and who in self._own:
            room = int(min(shared, self._own[who]))
            self._goes_to(who, room)
            if row.vantage in (BROKER, WIRE_VANTAGE):
                self.held = not room and who not in self._gone

    def _goes_to(self, who: str, room: int) -> None:
        self._ends[who] = [self._made[who], self._made[who] + room]

    def head(self) -> Doc:
        """Of the line: what does not change."""
        who = [self._walk.ends.get((self.consumer.connection, peer)) for peer in (BROKER, CLIENT)]
        ends = zip(who, ROLES, _ends(), [say("line.prefetch")] * 2, strict=True)
        unit = say("line.deliveries", tag=visible(self.consumer.tag))
        return line_head(self.id, "cells", unit, {"range": [0, self._furthest]}, ends)

    def state(self) -> Doc:
        """Of the line, after the row taken last."""
        return {"ends": {name: list(end) for name, end in self._ends.items()}}

    def of_frame(self, flight: Flight) -> Doc:
        """What a frame does to the line: a delivery fills a cell."""
        row = flight.row
        if row.kind != "basic.deliver" or consumer_of(row) != self.consumer:
            return {}
        who = self._walk.ends.get((row.connection, BROKER), BROKER)
        return {"cell": {"line": self.id, "at": max(0, self._made[who] - 1)}}


def _ends() -> list[str]:
    """What the two ends are called."""
    return [say("role.broker"), say("role.client")]


def _room(row: Row) -> int:
    """Deliveries that the prefetch leaves room for; 0 without a limit, which has no end to draw."""
    ledger = row.ledger or {}
    return max(0, ledger.get("prefetch_count", 0) - ledger.get("unacknowledged", 0))


class ChannelPicture(LinkPicture):
    """Parties and wires, and below them the lines of the busiest consumers, at most two."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk, [])
        begun = {consumer_of(row) for row in walk.rows if row.kind == "basic.consume"}
        busy = Counter(
            found
            for row in walk.rows
            if row.kind == "basic.deliver"
            and (row.ledger or {}).get("prefetch_count")
            and (found := consumer_of(row)) is not None
        )
        # Nobody knows how many deliveries there were before a cut.
        counted = [one for one, _ in busy.most_common() if walk.cut is None or one in begun]
        self.consumers = [PrefetchLine(one, walk) for one in counted[:2]]
        kinds = {row.kind for row in walk.rows}
        freely = "basic.deliver" in kinds and "basic.publish" not in kinds
        self._delivers = bool(busy) or freely
        self.idea = "no-prefetch" if freely else "no-credit"
        if busy:
            self.idea = "prefetch" if self.consumers else "prefetch-cut"
        # There is room for few clients: that of the opened row, and those whose lines are drawn.
        opened = [] if walk.cut is None else [walk.cut.row.connection]
        wanted = [*opened, *(line.consumer.connection for line in self.consumers)]
        first = [walk.ends.get((connection, CLIENT)) for connection in wanted]
        most = [one for one in dict.fromkeys([*first, *self.clients]) if one in self.clients]
        self._drawn = set(most[:MOST_CLIENTS])
        earlier = () if walk.cut is None else walk.cut.earlier.blocking
        # Connections that an alarm holds.
        self._blocked = {row.connection for row in earlier if row.kind == BLOCKED}
        self._outside = Outside()
        for row in earlier:
            self._outside.take(row)
        self._delivered: Counter[str | None] = Counter()
        self._published: Counter[str | None] = Counter()
        self._last: dict[tuple[str | None, int | None], Doc] = {}
        self._channels = list(
            dict.fromkeys(
                (row.connection, row.session)
                for row in walk.rows
                if row.session is not None and row.connection in self.wires
            )
        )[:4]

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        for line in self.consumers:
            line.take(row)
        if row.kind == "basic.deliver" and row.event in (RECEIVED, OBSERVED):
            self._delivered[row.connection] += 1
        if row.kind == "basic.publish" and row.event in (SENT, OBSERVED):
            self._published[row.connection] += 1
        if row.kind == BLOCKED and row.event != SENT:
            self._blocked.add(row.connection)
        if row.kind == UNBLOCKED and row.event != SENT:
            self._blocked.discard(row.connection)
        self._outside.take(row)
        if row.session is not None and row.ledger:
            told = self._last.setdefault((row.connection, row.session), {})
            told[row.vantage] = told.get(row.vantage, {}) | row.ledger

    def of_frame(self, flight: Flight) -> Doc | None:
        """Where a frame flies and what it does to the lines; None for one that is not shown."""
        found = super().of_frame(flight)
        if found is not None:
            for line in self.consumers:
                found |= line.of_frame(flight)
        return found

    @property
    def nodes(self) -> list[str]:
        """Who sends messages stands left: the broker, unless nobody consumes by a prefetch."""
        drawn = [name for name in self.clients if name in self._drawn]
        return [BROKER, *drawn] if self._delivers else [*drawn, BROKER]

    def role(self, node: str) -> str:
        """Who sends messages and who gets them."""
        return "sender" if (node == BROKER) == self._delivers else "receiver"

    def _addresses(self) -> list[str]:
        consumed = (row.fields.get("queue") for row in self.walk.rows if row.kind in SUBSCRIBE)
        return list(dict.fromkeys(filter(None, consumed)))

    def _names(self, left: str, wire: str | None) -> list[str]:
        return self._from(left)

    def head(self) -> Doc:
        """What does not change in the run."""
        rows = [
            {
                "id": f"channel {connection}/{session} {name}",
                "name": _NAMES[name],
                "group": say("counters.channel", connection=connection, number=session),
                "compare": True,
            }
            for connection, session in self._channels
            for name in _COUNTERS
        ]
        return super().head() | {
            "lines": [line.head() for line in self.consumers],
            "counters": {"columns": _ends(), "rows": rows},
        }

    def state(self) -> Doc:
        """Everything after the row taken last."""
        return super().state() | {"lines": {line.id: line.state() for line in self.consumers}}

    def node_state(self, name: str) -> Doc:
        """A party's words."""
        wires = {wire for wire, ends in self.wires.items() if name in ends}
        state = super().node_state(name)
        full = any((wire, peer_of(name)) in self._outside.full for wire in wires)
        state["blocked"] = say("party.blocked", why=brakes.short(brakes.TCP)) if full else None
        if name != BROKER:
            from_start = self.walk.from_start
            state["facts"] = self._moved(wires) if from_start else self._unacknowledged(wires)
            if not self._blocked.isdisjoint(wires):
                state["blocked"] = say("party.blocked", why=brakes.short(brakes.ALARM))
        if name == BROKER and self.consumers:
            held = [line for line in self.consumers if line.held]
            words = say("party.blocked", why=brakes.short(brakes.PREFETCH))
            some = 0 < len(held) < len(self.consumers)
            which = f" ({visible(held[0].consumer.tag)})" if some else ""
            if held:
                state["blocked"] = words + which
            state["going"] = None if state["blocked"] else say("going.may-deliver")
        return state

    def _moved(self, wires: set[str]) -> list[str]:
        """How many messages a client has published and been delivered."""
        got = sum(self._delivered[wire] for wire in wires)
        gave = sum(self._published[wire] for wire in wires)
        published = [say("fact.published", n=gave)] if gave else []
        return published + ([say("fact.delivered", n=got)] if got or not gave else [])

    def _unacknowledged(self, wires: set[str]) -> list[str]:
        """How full the prefetch of a client's fullest channel is: known in a slice, too."""
        told = [self._of_broker(channel) for channel in self._last if channel[0] in wires]
        rooms = [
            (one["unacknowledged"], one["prefetch_count"])
            for one in told
            if one.get("prefetch_count") and "unacknowledged" in one
        ]
        n, limit = max(rooms, key=lambda room: room[0] / room[1], default=(0, 0))
        return [say("fact.unacknowledged", n=n, limit=limit)] if rooms else []

    def _of_broker(self, channel: tuple[str | None, int | None]) -> Doc:
        """A channel's counters as the broker has them, or as a capture shows them."""
        told = self._last.get(channel, {})
        return told.get(BROKER) or told.get(WIRE_VANTAGE) or {}

    def _counters(self) -> Doc:
        found: Doc = {}
        for connection, session in self._channels:
            told = self._last.get((connection, session), {})
            broker = self._of_broker((connection, session))
            client = next((told[name] for name in told if name.startswith("client:")), {})
            for name in _COUNTERS:
                ends = [shown(end, name) for end in (broker, client)]
                found[f"channel {connection}/{session} {name}"] = ends
        return found

    def words(self) -> str:
        """The whole state in words."""
        parts = []
        for line in self.consumers:
            tag = visible(line.consumer.tag)
            for name, (made, limit) in line.state()["ends"].items():
                end = "broker" if name == BROKER else "client"
                parts.append(say(f"channel-words.{end}", tag=tag, n=made, more=limit - made))
            if line.held:
                why = brakes.words(brakes.PREFETCH)
                parts.append(say("channel-words.held", tag=tag, why=why))
        why = brakes.words(brakes.ALARM)
        parts += [
            say("channel-words.blocked", connection=wire, why=why)
            for wire in self.wires
            if wire in self._blocked
        ]
        why = brakes.words(brakes.TCP)
        parts += [
            say(f"channel-words.full-{peer}", connection=wire, why=why)
            for wire, peer in sorted(self._outside.full, key=str)
            if wire in self.wires
        ]
        return " ".join([*parts, self.on_wire])
