"""The chain of processes between a socket and the disk, and the credit on every hop of it.

AMQP 0-9-1 stands above: client, socket, reader, channels, queues, message store. Below it, where a
run has both, AMQP 1.0 carries the same over a link to each queue, at the same clock. What is full
or hangs spreads to the left because processes are blocked: every mark is read off the rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from workbench.languages import digits
from workbench.scenarios.action import Value
from workbench.scenarios.lanes import Lane
from workbench.trace import brakes
from workbench.trace.braking import PublishingBraking
from workbench.trace.fold import Scope
from workbench.trace.schema import AMQP_0_9_1, AMQP_1_0, BROKER, CLIENT, RECEIVED, SENT, Row
from workbench.trace.sentences_hops import next_process, process_words
from workbench.trace.words import visible

from .scene_link import RECEIVER, SENDER, LinkPicture, blocked_words, going, say
from .scene_walk import Flight, Walk

Doc = dict[str, Any]

STORE = "store:persistent"
MOST_DOTS = 4
"""A hop's credit is drawn as at most so many dots; the number stands beside them."""
MOST_WAITING = 8  # marks at the end of a socket
TONES = 3  # that the stage has
_IN_SOCKET = 0.98  # part of its way at which a frame waits for the reader
_INSIDE_MS = 0.001  # rows of one microsecond are drawn so close together
TITLES = {AMQP_0_9_1: "AMQP 0-9-1", AMQP_1_0: "AMQP 1.0"}
# Columns from 0: client, reader, channels, queues, message store.
_CLIENT, _READER, _CHANNEL, _QUEUE, _STORE = 0.0, 1.7, 2.95, 4.4, 5.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """The credit of one process, or link, for the next.

    Attributes:
        link: id of the way that it is drawn over.
        sender, to: the two processes, as a trace names them.
        initial: before anything was sent.
        name: in the table of counters.
    """

    link: str
    sender: str
    to: str
    initial: int
    name: str

    @property
    def dots(self) -> int:
        """How many dots stand for all of it."""
        return min(self.initial, MOST_DOTS)

    def state(self, credit: int) -> Doc:
        """So many dots, and the number."""
        lit = -(-max(0, credit) * self.dots // self.initial)
        return {"credit": min(lit, self.dots), "text": digits(credit)}


@dataclass(slots=True)
class Socket:
    """What has been sent towards a reader, in order, and when each frame came.

    Attributes:
        came_us: when each is in the socket.
        marks: text, tone and whether it is a message, in the same order.
        read: how many of them the reader has taken.
    """

    came_us: list[float] = field(default_factory=list)
    marks: list[tuple[str, int, bool]] = field(default_factory=list)
    read: int = 0

    def waiting(self, now_us: int) -> list[tuple[str, int, bool]]:
        """What is there and was not read, the oldest first."""
        return self.marks[self.read : max(self.read, bisect_right(self.came_us, now_us))]


class ChainPicture(LinkPicture):
    """Processes as boxes, with credit on every hop.

    Args:
        walk: the run.
        lanes: who publishes to which queue, and who consumes.
        initial: by protocol, the credit before anything was sent, and of the message store.
        stored: the message store is shown.
        mirrors: processes of the first queue's mirrors, as a trace names them.
    """

    layout = "chain"

    def __init__(
        self,
        walk: Walk,
        lanes: Sequence[Lane],
        initial: Mapping[str, int],
        *,
        stored: bool,
        mirrors: Sequence[str] = (),
    ) -> None:
        super().__init__(walk, [])
        self.idea = "mirrors" if mirrors else "chain"
        self.mirrors = mirrors
        self.lanes = lanes
        self.stored = stored
        self._initial = initial
        self._old = [one for one in lanes if one.protocol == AMQP_0_9_1]
        self._new = [one for one in lanes if one.protocol == AMQP_1_0]
        self._numbers = {
            queue: number
            for group in (self._old, self._new)
            for number, queue in enumerate(dict.fromkeys(one.queue for one in group))
        }
        self._ways = self._hops()
        # Before RabbitMQ 2.8 processes counted no credit: of a way there is nothing to show.
        self.hops = {hop.link: hop for hop in self._ways if hop.initial}
        self._credit = {(hop.sender, hop.to): hop.initial for hop in self._ways}
        self._on: dict[str, set[str]] = {}  # what blocks a process
        self._kept: Counter[str] = Counter()
        self._hung: set[str] = set()
        self._gone: dict[str, str | None] = {}  # mirrors whose nodes cannot be reached
        self._ready: dict[str, int] = {}
        self._published: Counter[str] = Counter()
        self._got: Counter[str] = Counter()
        self._sockets = {one.connection: Socket() for one in self._old}
        self._braking = {name: PublishingBraking(name) for name in self._sockets}
        self._waits: dict[int, float] = {}  # by frame, from when on it lies in a socket, ms
        self._arrive = self._straighten()

    def _hops(self) -> list[Hop]:
        found = []
        several = len({one.connection for one in self._old if one.publishes}) > 1
        for one in self._old:
            if not one.publishes:
                continue
            channel, queue = _channel(one), f"queue:{one.queue}"
            own = self._initial[AMQP_0_9_1]
            reader = f"reader:{one.connection}"
            who = say("box.channel", number=one.channel)
            who += f" ({one.connection})" if several else ""
            to = say("box.queue", name=visible(one.queue))
            pairs = [(reader, channel, own, f"{say('box.reader')} → {who}")]
            pairs.append((channel, queue, own, f"{who} → {to}"))
            pairs += [(channel, one, own, f"{who} → {process_words(one)}") for one in self.mirrors]
            if self.stored:
                name = f"{to} → {say('box.store')}"
                pairs.append((queue, STORE, self._initial[STORE], name))
            found += [
                Hop(link=_way(a, b), sender=a, to=b, initial=initial, name=name)
                for a, b, initial, name in pairs
            ]
        for one in self._new:
            if one.publishes:
                queue, name = f"queue:{one.queue}", say("counters.link", name=visible(one.link))
                initial = self._initial[AMQP_1_0]
                link = _way(one.client, queue)
                found.append(
                    Hop(link=link, sender=one.client, to=queue, initial=initial, name=name)
                )
        return found

    def _straighten(self) -> dict[int, float]:
        """Let frames arrive in the socket when they do, and wait there; gives when, by frame, µs.

        What is on its way to a reader that has stopped for good has no row of its own when it
        comes, and may come after the last one: with the last row it waits.
        """
        usual: dict[tuple[str | None, str | None], float] = {}
        for flight in self.walk.flights:
            way = flight.row.connection, flight.row.from_peer
            if flight.ended is not None and len(flight.path) == 2:
                took = flight.path[1][0] - flight.path[0][0]
                usual[way] = min(took, usual.get(way, took))
        found: dict[int, float] = {}
        stopped = self._stopped()
        for flight in self.walk.flights:
            way = flight.row.connection, flight.row.from_peer
            number = flight.row.frame_id
            if number is None or way not in usual or flight.row.connection not in self._sockets:
                continue
            begun, (end, part) = flight.path[0][0], flight.path[-1]
            came = flight.comes(begun + usual[way])
            if came == inf:  # a hand holds it
                found[number] = came
                continue
            unread = flight.ended is None and not flight.lost and way in stopped
            if unread:
                came = min(came, self.walk.times[-1])
            if unread or came + _INSIDE_MS < end:
                self._waits[number] = came
            if came + _INSIDE_MS < end:
                before = [point for point in flight.path[:-1] if point[0] <= came]
                last = _IN_SOCKET if flight.ended is None else part
                flight.path = [*before, (came, _IN_SOCKET), (end, last)]
            found[number] = int(1000 * came)
        return found

    def _stopped(self) -> set[tuple[str | None, str | None]]:
        """Ways to a reader that reads nothing at the end."""
        told = {row.vantage: row.event for row in self.walk.rows
                if row.event in ("block", "unblock")}  # fmt: skip
        return {(name, CLIENT) for name in self._sockets if told.get(f"reader:{name}") == "block"}

    # -- rows -------------------------------------------------------------------------------

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        who, ledger = row.vantage, row.ledger or {}
        for braking in self._braking.values():
            braking.apply(row)
        if "hop_credit" in ledger:
            to = next_process(row)
            if to is not None:
                self._credit[who, to] = int(ledger["hop_credit"])
        if "queue_ready" in ledger:
            self._ready[who] = int(ledger["queue_ready"])
        if row.event in ("block", "unblock") and row.kind is not None:
            on = self._on.setdefault(who, set())
            (on.add if row.event == "block" else on.discard)(row.kind)
            if row.event == "unblock":
                self._kept[who] = 0
        elif row.event == "note" and row.kind == "grant-kept":
            self._kept[who] += 1
        elif row.event == "note" and row.kind in ("cut-off", "down", "mended"):
            self._gone[who] = None if row.kind == "mended" else row.kind
        elif row.event == "note" and row.kind in ("stalled", "resumed"):
            (self._hung.add if row.kind == "stalled" else self._hung.discard)(who)
        elif row.is_frame:
            self._frame(row)

    def _frame(self, row: Row) -> None:
        """Count messages, and follow what lies in a socket."""
        said = row.event, row.kind
        if said in ((SENT, "basic.publish"), (SENT, "transfer")) and row.from_peer == CLIENT:
            self._published[row.vantage] += 1
        if (
            said in ((RECEIVED, "basic.deliver"), (RECEIVED, "transfer"))
            and row.from_peer == BROKER
        ):
            self._got[row.vantage] += 1
        socket = self._sockets.get(row.connection or "")
        if socket is None or row.from_peer != CLIENT or row.kind not in _MARKED:
            return
        if row.event == SENT and row.frame_id is not None:
            socket.came_us.append(self._arrive.get(row.frame_id, row.t_us))
            text, tone = self._mark(row)
            socket.marks.append((text, tone, row.kind == "basic.publish"))
        elif row.event == RECEIVED:
            socket.read += 1

    def _mark(self, row: Row) -> tuple[str, int]:
        """Text and tone of a frame: the number and colour of its queue, or that it acknowledges."""
        if row.kind in _ACKNOWLEDGES:
            return "✓", 0
        lane = self._lane(row)
        number = 0 if lane is None else self._numbers[lane.queue]
        return str(number + 1), number % TONES

    def _lane(self, row: Row) -> Lane | None:
        """The lane that a frame is on."""
        for one in self.lanes:
            if one.connection == row.connection and (
                one.link == row.link if one.link else one.channel == row.session
            ):
                return one
        return None

    def of_frame(self, flight: Flight) -> Doc | None:
        """Where a frame flies; None for one that is not shown."""
        row = flight.row
        text, tone = self._mark(row)
        marked: Doc = {"text": text, "tone": tone} if row.kind in _MESSAGES else {}
        way = "there" if row.from_peer == CLIENT else "back"
        if row.connection in self._sockets:
            if row.frame_id in self._waits:
                marked["waits"] = self._waits[row.frame_id]
            return {"link": row.connection, "way": way, **marked}
        lane = self._lane(row) if row.link else None
        if lane is None:
            return None
        return {"link": _way(lane.client, f"queue:{lane.queue}"), "way": way, **marked}

    # -- what does not change ---------------------------------------------------------------

    @property
    def wires(self) -> dict[str | None, tuple[str, str]]:
        """The sockets that are drawn."""
        return {one.connection: (one.client, f"reader:{one.connection}") for one in self._old}

    @property
    def nodes(self) -> list[str]:
        """Clients, processes and queues, as they stand from left to right."""
        found: dict[str, None] = {}
        for group in (self._old, self._new):
            found |= dict.fromkeys(one.client for one in group)
            if group is self._old:
                found |= dict.fromkeys(f"reader:{one.connection}" for one in group)
                found |= dict.fromkeys(_channel(one) for one in group if one.publishes)
            found |= dict.fromkeys(f"queue:{one.queue}" for one in group)
            if group is self._old:
                found |= dict.fromkeys(self.mirrors)
            if group is self._old and self.stored:
                found[STORE] = None
        return list(found)

    @property
    def things(self) -> set[str]:
        """What acts may name."""
        return (
            {one.queue for one in self._old}
            | ({STORE.partition(":")[0]} if self.stored else set())
            | {_node(one) for one in self.mirrors}
        )

    def node_about(self, act: str, given: Mapping[str, Value]) -> str | None:
        """The box that an act stands on."""
        for mirror in self.mirrors:
            if given.get("node") == _node(mirror):
                return mirror
            if act in ("publish", "synchronise"):
                return self._old[0].client if act == "publish" else f"queue:{self._old[0].queue}"
        queue = given.get("queue")
        if queue == STORE.partition(":")[0]:
            return STORE
        lanes = [one for one in self._old if one.queue == queue]
        if not lanes:
            return None
        return lanes[0].client if act == "publish" else f"queue:{queue}"

    def head(self) -> Doc:
        """What does not change in the run."""
        groups = [
            {
                "id": protocol,
                "title": TITLES[protocol],
                "sub": sub,
                "columns": self._columns(protocol),
            }
            for protocol, lanes, sub in (
                (AMQP_0_9_1, self._old, self._sub()),
                (AMQP_1_0, self._new, say("chain.links")),
            )
            if lanes
        ]
        return {
            "layout": self.layout,
            "groups": groups,
            "nodes": self._boxes(),
            "links": self._links(),
            "hops": [
                {"id": f"hop {hop.link}", "link": hop.link, "of": hop.dots}
                for hop in self.hops.values()
            ],
            "lines": [],
            "lifelines": self._lifelines(),
            "counters": {
                "columns": [say("chain.credit"), say("chain.at-first")],
                "rows": [{"id": f"hop {hop.link}", "name": hop.name} for hop in self.hops.values()],
            },
        }

    def _columns(self, protocol: str) -> list[list[float | str]]:
        """What stands in boxes that have a number instead of a name."""
        lanes = self._old if protocol == AMQP_0_9_1 else self._new
        found: list[list[float | str]] = []
        if protocol == AMQP_0_9_1 and sum(one.publishes for one in lanes) > 1:
            found.append([_CHANNEL, say("chain.channels")])
        what = "queues" if len({one.queue for one in lanes}) > 1 else "queue"
        if protocol == AMQP_0_9_1 and self.mirrors:
            what = "mirrored"
        return [*found, [_QUEUE, say(f"chain.{what}")]]

    def _sub(self) -> str:
        return say("chain.processes", credit=self._initial[AMQP_0_9_1])

    def _lifelines(self) -> list[str]:
        found: dict[str, None] = {}
        for one in self._old:
            found |= {one.client: None, f"reader:{one.connection}": None}
        for one in self._new:
            found |= {one.client: None, f"queue:{one.queue}": None}
        return list(found)

    def _boxes(self) -> list[Doc]:
        boxes: dict[str, Doc] = {}

        def box(name: str, group: str, place: tuple[float, float], /, **more: Any) -> None:
            boxes.setdefault(
                name, {"id": name, "role": "", "group": group, "place": list(place), **more}
            )

        for group, lanes in ((AMQP_0_9_1, self._old), (AMQP_1_0, self._new)):
            rows = _rows(lanes)
            for one in lanes:
                mine = [row for each, row in rows.items() if each.connection == one.connection]
                middle = sum(mine) / len(mine)
                sends = [each for each in rows if each.publishes and each.client == one.client]
                several = len(sends) > 1
                number = self._numbers[one.queue]
                tone = {"tone": number % TONES, "mark": str(number + 1)}
                does = "both" if self._both(one.client) else "publishes"
                title = say("party.client")
                if len({each.client for each in lanes}) > 1:
                    title = f"{title} {visible(one.client.partition(':')[2])}"
                name = {
                    "role": SENDER if sends else RECEIVER,
                    "name": title,
                    "sub": say(f"client.{does if sends else 'consumes'}"),
                }
                box(one.client, group, (_CLIENT, middle), **name)
                if group == AMQP_0_9_1:
                    box(
                        f"reader:{one.connection}", group, (_READER, middle), name=say("box.reader")
                    )
                    if one.publishes:
                        toned = {**tone, "mark": str(one.channel)} if several else {}
                        place = (_CHANNEL, rows[one] if several else middle)
                        alone = "" if several else "-alone"
                        title = say(f"box.channel{alone}", number=one.channel)
                        box(_channel(one), group, place, name=title, **toned)
                to = [each for each in rows if each.queue == one.queue]
                there = [rows[each] for each in to if each.publishes] or [rows[each] for each in to]
                title = say("box.queue", name=visible(one.queue))
                place = (_QUEUE, sum(there) / len(there) if there else middle)
                box(f"queue:{one.queue}", group, place, name=title, **tone)
            last = max(rows.values(), default=0.0)
            for number, mirror in enumerate(self.mirrors if group == AMQP_0_9_1 else ()):
                toned = {"tone": 1, "mark": _node(mirror)[-1]}
                name = {"name": say("box.mirror", node=visible(_node(mirror)))}
                box(mirror, group, (_QUEUE, last + 1 + number), **name, **toned)
            if group == AMQP_0_9_1 and lanes and self.stored:
                box(STORE, group, (_STORE, last / 2), name=say("box.store"))
        return [boxes[name] for name in self.nodes]

    def _shares(self, channel: str) -> bool:
        """Whether others publish over the same connection."""
        connection = channel.partition(":")[2].rpartition("/")[0]
        return sum(one.publishes for one in self._old if one.connection == connection) > 1

    def _both(self, client: str) -> bool:
        return len({one.publishes for one in self.lanes if one.client == client}) > 1

    def _links(self) -> list[Doc]:
        links: dict[str, Doc] = {}

        def link(name: str, ends: tuple[str, str], *names: str) -> None:
            links.setdefault(
                name, {"id": name, "from": ends[0], "to": ends[1], "names": list(names)}
            )

        for one in self._old:
            link(one.connection, (one.client, f"reader:{one.connection}"), say("chain.socket"))
        for one in self._new:
            queue = f"queue:{one.queue}"
            link(_way(one.client, queue), (one.client, queue), visible(one.link))
        for hop in self._ways:
            link(hop.link, (hop.sender, hop.to))
        publish = {one.connection for one in self._old if one.publishes}
        for one in self._old:
            if one.connection not in publish:  # what it consumes comes this way
                ends = (f"reader:{one.connection}", f"queue:{one.queue}")
                link(_way(*ends), ends)
        return list(links.values())

    # -- what is so now ---------------------------------------------------------------------

    def state(self) -> Doc:
        """Everything after the row taken last."""
        now_us = self.walk.row.t_us if self.walk.rows else 0
        waits = {name: socket.waiting(now_us) for name, socket in self._sockets.items()}
        credit = {link: self._credit_of(hop) for link, hop in self.hops.items()}
        return {
            "lines": {},
            "nodes": {name: self._node_state(name, waits) for name in self.nodes},
            "links": {
                name: {"waiting": [[text, tone] for text, tone, _ in found[:MOST_WAITING]]}
                for name, found in waits.items()
            },
            "hops": {f"hop {link}": self.hops[link].state(left) for link, left in credit.items()},
            "counters": {
                f"hop {link}": [left, self.hops[link].initial] for link, left in credit.items()
            },
        }

    def _credit_of(self, hop: Hop) -> int:
        """What a sender may still send, as it counts itself."""
        link = self._link_of(hop)
        if link is None:
            return self._credit[hop.sender, hop.to]
        return self.walk.number(hop.sender, link, "link_credit") or 0

    def _link_of(self, hop: Hop) -> Scope | None:
        """The link of AMQP 1.0 that a hop is, once it is attached."""
        lane = next((one for one in self._new if f"queue:{one.queue}" == hop.to), None)
        if lane is None:
            return None
        return next(
            (
                one
                for one in self.walk.links
                if (one.connection, one.link) == (lane.connection, lane.link)
            ),
            None,
        )

    def _node_state(self, name: str, waits: Mapping[str, list[tuple[str, int, bool]]]) -> Doc:
        kind, _, which = name.partition(":")
        if kind == "client":
            return self._client_state(name)
        if kind == "reader":
            messages = sum(1 for *_, message in waits[which] if message)
            acks = len(waits[which]) - messages
            waiting = say("box.wait-acks" if acks else "box.wait", n=messages, acks=acks)
            stopped = say("box.stopped") if self._on.get(name) else None
            return {
                "sub": stopped or say("box.reads"),
                "facts": [waiting] if waits[which] else [],
                "blocked": stopped,
            }
        blocked = bool(self._on.get(name))
        if kind == "channel":
            kept = self._kept[name]
            words = say("box.blocked") if blocked else None
            if kept:
                words = say("box.deferred", n=kept)
            told = words or say("box.routes")
            facts = [told] if self._shares(name) else []
            return {"sub": told, "facts": facts, "blocked": words}
        hangs = say("party.hangs") if name in self._hung else None
        if kind == "mirror":
            gone = self._gone.get(name)
            taken = say("box.taken", n=self._ready.get(name, 0))
            return {"facts": [taken], "blocked": say(f"mirror.{gone}") if gone else hangs}
        if kind == "store":
            return {"sub": hangs or say("box.writes"), "blocked": hangs}
        words = hangs or (say("box.blocked") if blocked else None)
        return {"facts": [say("fact.ready", n=self._ready.get(name, 0))], "blocked": words}

    def _client_state(self, name: str) -> Doc:
        gave, got = self._published[name], self._got[name]
        told = say("fact.received" if got else "fact.published", n=got or gave)
        if gave and got:
            told = say("fact.in-and-out", out=gave, n=got)
        state: Doc = {"sub": told, "blocked": None, "going": None}
        lanes = [one for one in self.lanes if one.client == name and one.publishes]
        braking = self._braking.get(lanes[0].connection) if lanes else None
        if braking is not None:
            if brakes.is_blocked(braking.brake):
                every = "-every" if len({one.channel for one in lanes}) > 1 else ""
                state["blocked"] = say(f"party.blocked{every}", why=brakes.short(braking.brake))
            else:
                state["going"] = say("going.may-publish")
            return state
        return state | self._links_state(lanes)

    def _links_state(self, lanes: Sequence[Lane]) -> Doc:
        """What blocks the links of an AMQP 1.0 client, each for itself."""
        held = {
            one.link: self.walk.holding(one)
            for one in self.walk.links
            if one.link_sender == CLIENT
            and any((lane.connection, lane.link) == (one.connection, one.link) for lane in lanes)
        }
        words = [
            f"{visible(link)} {found}"
            for link, one in held.items()
            if (found := blocked_words(one))
        ]
        if words:
            return {"blocked": ", ".join(words), "going": None}
        goes = any(going(one) for one in held.values())
        return {"blocked": None, "going": say("going.may-publish") if goes else None}

    def words(self) -> str:
        """The whole state in words."""
        parts = [
            say(
                "chain-words.hop",
                hop=hop.name,
                credit=digits(self._credit_of(hop)),
                most=hop.initial,
            )
            for hop in self.hops.values()
        ]
        for name in self.nodes:
            who, kept = process_words(name), self._kept[name]
            if kept:
                parts.append(say("chain-words.deferred", who=who, n=kept))
            if name in self._hung:
                parts.append(say("chain-words.hangs", who=who))
        for name, socket in self._sockets.items():
            found = socket.waiting(self.walk.row.t_us) if self.walk.rows else []
            messages = sum(message for *_, message in found)
            acks = len(found) - messages
            waits = say(
                "chain-words.wait-acks" if acks else "chain-words.wait", n=messages, acks=acks
            )
            does = "stopped" if self._on.get(f"reader:{name}") else "reads"
            parts.append(say(f"chain-words.{does}", connection=name, waits=waits))
        return " ".join(parts)


_MESSAGES = ("basic.publish", "content-header", "content-body", "transfer", "basic.deliver")
_ACKNOWLEDGES = ("basic.ack", "basic.nack", "basic.reject")
_MARKED = ("basic.publish", *_ACKNOWLEDGES)


def _node(mirror: str) -> str:
    """Where a mirror is."""
    return mirror.rpartition("@")[2]


def _rows(lanes: Sequence[Lane]) -> dict[Lane, float]:
    """Each lane's row: one for each that publishes, and for each client that only consumes."""
    publish = {one.connection for one in lanes if one.publishes}
    shown = [one for one in lanes if one.publishes or one.connection not in publish]
    return {one: float(row) for row, one in enumerate(shown)}


def _channel(lane: Lane) -> str:
    return f"channel:{lane.connection}/{lane.channel}"


def _way(sender: str, to: str) -> str:
    return f"{sender} to {to}"
