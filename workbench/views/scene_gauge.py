"""What a scene shows of AMQP 0-10: a producer's window, and the queue that holds completions back.

The producer's window is a row of places, one for each incomplete transfer, that slides as
transfers complete. The queue is a vessel with its two watermarks. A message whose completion is
held is amber in both: the broker has it, and does not say so.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.scenarios.action import Value
from workbench.serial import MODULUS
from workbench.trace import brakes
from workbench.trace.braking import PublishingBraking
from workbench.trace.consumers import Fullness
from workbench.trace.fold import Scope, held_in, link_scope
from workbench.trace.schema import (
    AMQP_0_10,
    BROKER,
    CLIENT,
    COMMANDS,
    OBSERVED,
    RECEIVED,
    SENT,
    Row,
)
from workbench.trace.words import visible

from .scene_link import LinkPicture, line_head, say
from .scene_walk import Flight, Walk, session_of

Doc = dict[str, Any]
MOST_ITEMS = 24
"""Of a queue that holds more its messages are a level, and no boxes; what is held is part of it."""
NO_LIMIT = MODULUS - 1  # of credit, as the trace has it
MOST_PRODUCERS = 2
MOST_PLACES = 10  # of a window; a larger one is a number

_STOP, _RESUME, _MOST = "qpid.flow_stop_count", "qpid.flow_resume_count", "qpid.max_count"
_SUBSCRIBED = ("credit_messages", "credit_octets", "incomplete_commands")
_COUNTERS = ("incomplete_commands", "incomplete_transfers", "transfer_window", "waiting_transfers")
# Parts of a message that fly with the transfer that begins it.
_PARTS = ("header", "body")


class Sent(NamedTuple):
    """A message by its producer: which connection, and which of its messages, from 1."""

    connection: str | None
    number: int


def sends_messages(row: Row, peer: str = CLIENT) -> bool:
    """Whether a peer sends a message of AMQP 0-10 with this frame, or a part of one."""
    told = row.protocol == AMQP_0_10 and row.from_peer == peer
    return told and row.kind in ("message.transfer", *_PARTS)


def _counter_rows(group: str, names: Sequence[str]) -> list[Doc]:
    about = {"group": say(f"counters.{group}")}
    return [{"id": f"session {name}", "name": say(f"counter.{name}"), **about} for name in names]


@dataclass(slots=True)
class Producer:
    """What a client that sends messages counts.

    Attributes:
        braking: what holds it.
        waiting: messages that it has still to send; None: no row has told.
        window: incomplete transfers that it allows itself; 0: any.
        incomplete: transfers that are not complete.
        ended: the error with which its session ended.
    """

    braking: PublishingBraking
    waiting: int | None = None
    window: int = 0
    incomplete: int = 0
    ended: str | None = None


def _keys(row: Row) -> list[str]:
    """The routing key of a message of AMQP 0-10, if the row has its properties."""
    structs = row.extra.get("structs") if row.is_frame and row.kind == "header" else None
    return [
        str(one["routing_key"])
        for one in (structs if isinstance(structs, list) else ())
        if isinstance(one, dict) and one.get("routing_key")
    ]


class GaugePicture(LinkPicture):
    """Producers, their wires, and the queue that they fill; of more than two the busiest.

    Args:
        walk: the run.
        connection: of the producer; the busiest ones' if None.
    """

    layout = "gauge"
    idea: str = "watermark"

    def __init__(self, walk: Walk, connection: str | None = None) -> None:
        super().__init__(walk, [])
        busy = Counter(row.connection for row in walk.rows if sends_messages(row))
        busiest = {name for name, _ in busy.most_common(MOST_PRODUCERS)}
        chosen = {connection} if connection else busiest or {next(iter(walk.ends))[0]}
        counts = {row.connection for row in walk.rows if "waiting_transfers" in (row.ledger or ())}
        self.producers = {
            name: Producer(PublishingBraking(name or ""), waiting=0 if name in counts else None)
            for name in dict.fromkeys(name for name, _ in walk.ends)
            if name in chosen
        }
        mine = [row for row in walk.rows if row.connection in chosen]
        keys = Counter(key for row in mine for key in _keys(row))
        filled = self._filled = Counter(row.queue for row in walk.rows if row.event == "enqueue")
        # Through the default exchange a key is a queue's name; else it may be that of a binding.
        bound = any(sends_messages(row) and row.fields.get("destination") for row in mine)
        own = Counter({key: filled[key] for key in keys if filled[key]}) if bound else keys
        told = [row.queue for row in walk.rows if row.kind == "watermarks"]
        self.queue = (
            next((name for name, _ in (own or filled).most_common(1)), (told or [""])[0]) or ""
        )
        self.marks: dict[str, int] = {}
        self.top = 8
        for row in walk.rows:
            if row.queue == self.queue and row.kind == "watermarks":
                self.marks = {name: int(value) for name, value in row.extra.items()
                              if isinstance(value, int)}  # fmt: skip
            self.top = max(self.top, held_in(row) if row.queue == self.queue else 0)
        self.top = max(self.top, *(self.marks.get(name, 0) for name in (_STOP, _MOST)))
        if any((row.kind, row.from_peer) == ("message.stop", BROKER) for row in walk.rows):
            self.idea = "by-session"
        # A capture tells of no queue, and of no producer what it has to send.
        self._depth_told = any(row.queue == self.queue and row.ledger for row in walk.rows)
        self.level = 0
        self.stopped = False
        self.items: deque[Sent] = deque()
        self._sent: Counter[str | None] = Counter()  # by connection, as its client counts
        self._arrived: Counter[str | None] = Counter()  # and as the broker does
        self._under_way: dict[str, deque[Sent]] = {}  # by queue, what it has not taken in yet
        self._held: dict[str, deque[Sent]] = {}  # by queue, whose completion it holds
        self._coming: dict[str | None, Sent] = {}
        self._told: dict[str, dict[str, int]] = {}
        self._known = list(dict.fromkeys(row.queue for row in walk.rows if row.queue))
        for row in walk.cut.earlier.blocking if walk.cut is not None else ():
            for each in self.producers.values():
                each.braking.apply(row)
            self.stopped |= (row.kind, row.queue) == ("queue-flow", self.queue)

    # -- rows -------------------------------------------------------------------------------

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        for each in self.producers.values():
            each.braking.apply(row)
        if row.protocol == AMQP_0_10 and row.from_peer == CLIENT:
            self._take_frame(row)
        if row.queue is not None:
            self._take_queue(row)
        one = self.producers.get(row.connection)
        if one is None:
            return
        if row.ledger and row.vantage:
            self._told[row.vantage] = self._told.get(row.vantage, {}) | row.ledger
            if row.vantage != BROKER:
                one.waiting = row.ledger.get("waiting_transfers", one.waiting)
                one.window = row.ledger.get("transfer_window", one.window)
                one.incomplete = row.ledger.get("incomplete_transfers", one.incomplete)
        if row.kind == "execution.exception" and row.event != SENT:
            one.ended = str(row.fields.get("error_code", "?"))

    def _take_frame(self, row: Row) -> None:
        if row.kind == "message.transfer":
            if row.event in (SENT, OBSERVED):
                self._sent[row.connection] += 1
            if row.event in (RECEIVED, OBSERVED):
                self._arrived[row.connection] += 1
                number = self._arrived[row.connection]
                self._coming[row.connection] = Sent(row.connection, number)
        elif row.kind == "header" and row.event in (RECEIVED, OBSERVED):
            sent = self._coming.pop(row.connection, None)
            if sent is not None:
                for queue in self._queues_of(row):
                    self._under_way.setdefault(queue, deque()).append(sent)

    def _queues_of(self, row: Row) -> list[str]:
        """Where a message goes: to the queue of its key's name, else to every one there is."""
        return [key for key in _keys(row) if key in self._known] or self._known

    def _take_queue(self, row: Row) -> None:
        queue = row.queue or ""
        held = self._held.setdefault(queue, deque())
        if row.event == "enqueue":
            waiting = self._under_way.get(queue) or deque([Sent(None, 0)])
            sent = waiting.popleft()
            if row.kind == "held":
                held.append(sent)
            if queue == self.queue:
                self.items.append(sent)
        elif row.kind == "queue-flow" and row.event == "unblock":
            held.clear()
        elif row.event == "confirm" and held:
            held.popleft()
        elif row.event == "note" and row.kind == "deleted":
            held.clear()
        if queue == self.queue:
            if row.kind == "queue-flow":
                self.stopped = row.event == "block"
            self.level = held_in(row) if row.ledger else self.level
            while len(self.items) > self.level:
                self.items.popleft()

    def of_frame(self, flight: Flight) -> Doc | None:
        """Where a frame flies; None for one that is not shown, as the rest of a message."""
        row = flight.row
        found = super().of_frame(flight)
        if found is not None and sends_messages(row) and self.walk.cut is None:
            number = self._sent[row.connection]
            found |= {"text": str(number)[-3:], "short": f"transfer {number}"}
        elif found is not None and sends_messages(row):  # nobody knows how many came before
            found |= {"text": "", "short": "transfer"}
        elif found is not None and row.kind == "session.completed":
            found |= dict.fromkeys(("short", "label"), say("frame.completed"))
        return found

    def is_small(self, row: Row) -> bool:
        """A message's properties and octets come with the frame that begins it."""
        return row.kind in _PARTS and row.protocol == AMQP_0_10

    # -- what does not change ---------------------------------------------------------------

    @property
    def unused(self) -> set[str]:
        """The other queues, if nothing has come to them."""
        return {name for name in self._known if name not in self._filled} - {self.queue}

    @property
    def named(self) -> dict[str, str | None]:
        """The vantages of the producers that are shown, each with its connection."""
        found = {self.walk.ends.get((name, CLIENT), ""): name for name in self.producers}
        return {vantage: name for vantage, name in found.items() if vantage}

    @property
    def nodes(self) -> list[str]:
        """The producers, then the broker."""
        return [*self.named, BROKER]

    @property
    def places(self) -> dict[str, str]:
        """On which party each act is done."""
        return {"accept": BROKER, "delete": BROKER}

    def node_about(self, act: str, given: Mapping[str, Value]) -> str | None:
        """The producer that publishes."""
        if act != "publish":
            return super().node_about(act, given)
        mine = [name for name in self.named if name.partition(":")[2] == given.get("producer")]
        return next(iter(mine or self.named), None)

    def role(self, node: str) -> str:
        """Who sends messages, and who gets them."""
        return "receiver" if node == BROKER else "sender"

    def _names(self, left: str, wire: str | None) -> list[str]:
        return [say("wire.transfers"), say("wire.completions")]

    def head(self) -> Doc:
        """What does not change in the run."""
        marks = [
            {"at": at, "text": say(f"mark.{which}", n=at), "kind": kind}
            for name, which, kind in (
                (_MOST, "limit", "high"),
                (_STOP, "stop", "high"),
                (_RESUME, "resume", "low"),
            )
            if (at := self.marks.get(name))
        ]
        rows = _counter_rows("commands", _COUNTERS)
        gauge = {"id": "queue", "on": BROKER, "name": say("gauge.queue"), "top": self.top}
        return super().head() | {
            "lines": [],
            "gauges": [gauge | {"marks": marks}],
            "counters": {"columns": self._columns(), "rows": rows},
        }

    def node(self, name: str) -> Doc:
        """The producer, or the queue."""
        node = super().node(name)
        if name == BROKER:
            title = say("gauge.queue-title", name=visible(self.queue)).rstrip()
        else:
            title = say("gauge.producer-title", name=visible(name.partition(":")[2]))
        return node | {"name": title, "sub": ""}

    # -- what is so now ---------------------------------------------------------------------

    def held_of(self, connection: str | None) -> set[int]:
        """Numbers of a producer's messages whose completion some queue holds."""
        return {
            sent.number
            for held in self._held.values()
            for sent in held
            if sent.connection == connection
        }

    def state(self) -> Doc:
        """Everything after the row taken last."""
        held = self._held.get(self.queue, ())
        text = None
        if self.stopped:
            text = say("gauge.held" if held else "gauge.above", n=len(held))
        gauge: Doc = {"stopped": self.stopped, "text": text, "level": self.level}
        if self.top <= MOST_ITEMS:
            gauge |= {
                "items": [self._label(one) for one in self.items],
                "held": [self._label(one) for one in held],
            }
        else:  # what it holds came last
            gauge["held"] = min(len(held), self.level)
        return super().state() | {"lines": {}, "gauges": {"queue": gauge}}

    def _columns(self) -> list[str]:
        """The producer and the broker, or several producers."""
        names = [visible(name.partition(":")[2]) for name in self.named]
        return names if len(names) > 1 else [say("role.producer"), say("role.broker")]

    def _label(self, sent: Sent) -> str:
        if sent.connection is None or [sent.connection] == [*self.producers]:
            return str(sent.number)
        name = self.walk.ends.get((sent.connection, CLIENT), "").partition(":")[2]
        return f"{visible(name)} {sent.number}"

    def node_state(self, name: str) -> Doc:
        """A party's words."""
        if name == BROKER:
            if not self._depth_told:
                return {"facts": [say("fact.depth-unknown")]}
            return {"facts": [say("fact.in-queue", n=self.level)]}
        one = self.producers[self.named[name]]
        drawn = 0 < one.window <= MOST_PLACES
        to_send = "" if one.waiting is None else say(
            f"fact.to-send{'-in-window' if drawn else ''}", n=one.waiting, window=one.window
        )  # fmt: skip
        state: Doc = {"sub": to_send, "blocked": None, "going": None}
        if one.window and not drawn:
            state |= {
                "sub": say("fact.out-of-window", out=one.incomplete, window=one.window),
                "facts": [to_send],
            }
        brake = one.braking.brake
        if brakes.is_blocked(brake) and one.waiting:
            # There is no link here: the credit is the session's, and the broker has taken it away.
            taken = brake == brakes.LINK_CREDIT
            why = say("gauge.stopped") if taken else brakes.short(brake)
            state["blocked"] = say("party.blocked", why=why)
        elif one.ended:
            state["blocked"] = say("gauge.ended", error=one.ended)
        elif one.waiting is not None:
            state["going"] = say("going.may-send" if one.waiting else "going.no-message")
        if drawn:
            state["items"] = self._window(self.named[name], one)
        return state

    def _window(self, connection: str | None, one: Producer) -> list[list[str]]:
        """A place of the window each: what is in it, and where that is."""
        last = self._sent[connection]
        held = self.held_of(connection)
        arrived = self._arrived[connection]
        found = []
        for number in range(last - one.incomplete + 1, last + 1):
            how = "held" if number in held else "full" if number <= arrived else "hollow"
            found.append([str(number), how])
        return [*found, *[["", "empty"]] * (one.window - len(found))]

    def _counters(self) -> Doc:
        names = [*self.named, BROKER][: len(self._columns())]
        ends = [self._told.get(name, {}) for name in names]
        return {f"session {name}": [end.get(name) for end in ends] for name in _COUNTERS}

    def words(self) -> str:
        """The whole state in words."""
        held = len(self._held.get(self.queue, ()))
        unknown = "" if self._depth_told else "-unknown"
        parts = [say(f"gauge-words.queue{unknown}", name=visible(self.queue), n=self.level)]
        if self.stopped:
            over = self.level > self.marks.get(_STOP, 0)
            parts.append(say("gauge-words.holds" if over else "gauge-words.holds-still", n=held))
        for name, connection in self.named.items():
            one, who = self.producers[connection], visible(name.partition(":")[2])
            if one.window:
                told = {"out": one.incomplete, "window": one.window}
                parts.append(say("gauge-words.producer", name=who, **told))
            if brakes.is_blocked(one.braking.brake):
                parts.append(say("gauge-words.blocks", why=brakes.words(one.braking.brake)))
            if one.ended:
                parts.append(say("gauge-words.ended", error=one.ended))
        return " ".join([*parts, self.on_wire])


class CreditLine:
    """The number line of a subscription: messages sent under it, and up to where credit goes."""

    def __init__(self, link: Scope, walk: Walk) -> None:
        self.link = link
        self.id = f"subscription {link.connection}/{link.session}/{link.link}"
        self.messages: int | None = None  # of credit; None: nobody has told
        self.octets: int | None = None  # likewise
        self.mode: str | None = None  # in which it is used: "window" or "credit"
        self._walk = walk
        self._made: Counter[str] = Counter()
        self._ends: dict[str, list[int]] = {}
        sent, self._furthest = 0, 0
        for row in walk.rows:
            if link_scope(row) == link and row.event != RECEIVED:
                sent += row.kind == "message.transfer"
            if link_scope(row) == link and (messages := self._messages(row)) is not None:
                self._furthest = max(self._furthest, sent + min(messages, MOST_ITEMS))

    @staticmethod
    def _messages(row: Row) -> int | None:
        return (row.ledger or {}).get("credit_messages")

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        if link_scope(row) != self.link:
            return
        self._made[row.vantage] += row.kind == "message.transfer"
        if row.kind == "message.subscribe":
            self.mode = "window"
        elif row.kind == "message.set-flow-mode":
            self.mode = "window" if row.fields.get("flow_mode") else "credit"
        messages = self._messages(row)
        if messages is not None:
            made = self._made[row.vantage]
            # No limit has no end to draw. Only a broker tells of credit, or a capture.
            self._ends[BROKER] = [made, made + (0 if messages == NO_LIMIT else messages)]
            self.messages, self.octets = messages, (row.ledger or {}).get("credit_octets")

    def head(self) -> Doc:
        """Of the line: what does not change."""
        unit = say("line.messages", to=visible(self.link.link))
        ends = [(BROKER, "sender", say("role.broker"), say("line.credit"))]
        return line_head(self.id, "cells", unit, {"range": [0, self._furthest]}, ends)

    def state(self) -> Doc:
        """Of the line, after the row taken last."""
        return {"ends": {name: list(end) for name, end in self._ends.items()}}

    def of_frame(self, flight: Flight) -> Doc:
        """What a frame does to the line: a message fills a cell."""
        row = flight.row
        if row.kind != "message.transfer" or link_scope(row) != self.link:
            return {}
        number = self._made[row.vantage]
        cell = {"cell": {"line": self.id, "at": max(0, number - 1)}}
        return cell | {"text": str(number)[-3:], "short": say("frame.message", number=number)}


class SubscriberPicture(LinkPicture):
    """A broker and a subscriber, and the credit of its subscription: messages, and octets.

    Args:
        walk: the run.
        links: its subscriptions; the first is drawn.
    """

    idea = "subscription"

    def __init__(self, walk: Walk, links: Sequence[Scope]) -> None:
        super().__init__(walk, [])
        self.credit = CreditLine(links[0], walk)
        # Of one that began before a slice nobody knows how many messages there were.
        self._whole = walk.cut is None or any(
            row.kind == "message.subscribe" and link_scope(row) == links[0] for row in walk.rows
        )
        self._fullness = Fullness()
        self._got = self._accepted = 0

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        self.credit.take(row)
        if row.connection != self.credit.link.connection:
            return
        if row.vantage == BROKER or row.event == OBSERVED:
            self._fullness.take(row)
        if row.event != SENT:
            self._got += row.kind == "message.transfer" and row.from_peer == BROKER
        if row.event != RECEIVED:
            self._accepted += row.kind == "message.accept"

    is_small = GaugePicture.is_small

    def of_frame(self, flight: Flight) -> Doc | None:
        """Where a frame flies; None for one that is not shown, as the rest of a message."""
        found = super().of_frame(flight)
        return found | self.credit.of_frame(flight) if found and self._whole else found

    @property
    def nodes(self) -> list[str]:
        """The broker, which sends, then the subscriber."""
        client = self.walk.ends.get((self.credit.link.connection, CLIENT))
        return [BROKER, *([client] if client else [])]

    @property
    def places(self) -> dict[str, str]:
        """On which party each act is done."""
        acts = ("flow", "set_flow_mode", "flush", "stop", "complete")
        return dict.fromkeys(acts, self.nodes[-1])

    def role(self, node: str) -> str:
        """Who sends messages, and who gets them."""
        return "sender" if node == BROKER else "receiver"

    def _names(self, left: str, wire: str | None) -> list[str]:
        return [say("wire.messages"), say("wire.credit")]

    def head(self) -> Doc:
        """What does not change in the run."""
        return super().head() | {
            "lines": [self.credit.head()] if self._whole else [],
            "counters": {
                "columns": [say("role.broker"), say("role.client")],
                "rows": _counter_rows("subscription", _SUBSCRIBED),
            },
        }

    def state(self) -> Doc:
        """Everything after the row taken last."""
        lines = {self.credit.id: self.credit.state()} if self._whole else {}
        return super().state() | {"lines": lines}

    def _counters(self) -> Doc:
        credit = [self.credit.messages, None], [self.credit.octets, None]  # the broker's alone
        session = session_of(self.credit.link)._replace(group=COMMANDS)
        commands = [
            self.walk.counters(name, session).get("incomplete_commands")
            for name in (BROKER, self.nodes[-1])
        ]
        told = zip(_SUBSCRIBED, (*credit, commands), strict=True)
        return {f"session {name}": ends for name, ends in told}

    def node_state(self, name: str) -> Doc:
        """A party's words."""
        if name != BROKER:
            got, accepted = (
                say("fact.received", n=self._got),
                say("fact.accepted", n=self._accepted),
            )
            state: Doc = {"facts": [got, accepted] if self._whole else []}
            if self.credit.mode:
                state["sub"] = say(f"fact.{self.credit.mode}-mode", name=self.node(name)["sub"])
            return state
        ready = next(iter(self._ready().values()), None)
        messages, octets = self.credit.messages, self.credit.octets
        some = "-unlimited" if octets == NO_LIMIT else "" if octets else "-none"
        facts = [] if ready is None else [say("fact.ready", n=ready)]
        if messages is not None and not self._whole:
            no_limit = "-unlimited" if messages == NO_LIMIT else ""
            facts.append(say(f"fact.credit{no_limit}", n=messages))
        facts += [] if octets is None else [say(f"fact.octets{some}", n=octets)]
        state = {"facts": facts, "items": ready}
        held = (self.credit.link.session, self.credit.link.link) in self._fullness.full
        if held and ready != 0:
            state["blocked"] = say("party.blocked", why=say("gauge.no-credit"))
        elif ready == 0:
            state["going"] = say("going.no-message")
        elif messages and octets:  # of what a completion has given back no row tells
            state["going"] = say("going.may-deliver")
        return state

    def words(self) -> str:
        """The whole state in words."""
        if not self._whole:
            facts = ", ".join(self.node_state(BROKER)["facts"])
            return f"{say('party.broker')}: {facts}. {self.on_wire}" if facts else self.on_wire
        octets = self.credit.octets
        some = "-unlimited" if octets == NO_LIMIT else ""
        parts = [
            say(f"subscription-words.broker{some}", n=made, more=limit - made, octets=octets or 0)
            for made, limit in self.credit.state()["ends"].values()
        ]
        if self.credit.mode:
            parts.append(say(f"subscription-words.{self.credit.mode}-mode"))
        told = say("subscription-words.subscriber", got=self._got, accepted=self._accepted)
        return " ".join([*parts, told])
