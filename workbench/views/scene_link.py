"""What a scene shows of links: parties, wires, number lines of deliveries and transfer frames."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

from workbench import serial
from workbench.languages import phrase, piece
from workbench.scenarios.action import Value as ActValue
from workbench.scenarios.beliefs import Belief, belief_named
from workbench.scenarios.race import FlowPlan
from workbench.scenarios.run import step_of
from workbench.scenarios.window_beliefs import Heard, WindowBelief
from workbench.trace import brakes
from workbench.trace.braking import Held
from workbench.trace.fold import Scope, Value, link_scope
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, SHADOW, Row
from workbench.trace.words import queue_at, spec_name, value_text, visible

from .scene_walk import Flight, Walk, session_of

FAR = 1_000
"""A limit that is further from its count is left out of a line's range."""

MOST_CLIENTS = 3  # that a picture has room for, beside the broker
# Counters of a link that the table shows, and whether a difference between its ends is marked.
MAIN = ("delivery_count", "link_credit", "available", "drain")
MORE = (("unsettled", True), ("unconfirmed", False))
# One end's counter against the other's: my next id is what you expect, my window is what you
# remember of it. (what it is, sender's field, receiver's field)
WINDOWS = (
    ("there", "next_outgoing_id", "next_incoming_id"),
    ("receivers-incoming", "remote_incoming_window", "incoming_window"),
    ("senders-outgoing", "outgoing_window", "remote_outgoing_window"),
    ("back", "next_incoming_id", "next_outgoing_id"),
    ("senders-incoming", "incoming_window", "remote_incoming_window"),
    ("receivers-outgoing", "remote_outgoing_window", "outgoing_window"),
)

SENDER, RECEIVER = ROLES = ("sender", "receiver")
MAY_SEND, NO_MESSAGE = "may-send", "no-message"
say = partial(phrase, "scenes")
piece_of = partial(piece, "scenes")
Doc = dict[str, Any]


def blocked_words(held: Held) -> str | None:
    """What blocks a sender, for the pill beside it; None while it may send or has nothing to."""
    blocked = brakes.is_blocked(held.brake)
    return say("party.blocked", why=brakes.short(held.brake)) if blocked else None


def going(held: Held) -> str | None:
    """What a sender does that is not blocked: `MAY_SEND` or `NO_MESSAGE`."""
    if not held.known or brakes.is_blocked(held.brake):
        return None
    return NO_MESSAGE if held.brake == brakes.NO_MESSAGE else MAY_SEND


def parted(what: str, where: Row, now: Row, *, theirs: bool, **told: Any) -> str:
    """How two rules part, in words: at the row where they do, or at a later one.

    Args:
        what: they make: `credit` or `commit`.
        where: they part.
        now: the row that is shown.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
        told: the numbers there.
    """
    told["whose"] = piece_of("parted.theirs" if theirs else "parted.yours")
    if where.seq == now.seq:
        return say(f"parted.here-{what}", **told)
    step = step_of(where)
    when = piece_of("parted.in-step" if step > 0 else "parted.in-set-up", step=step)
    return say(f"parted.before-{what}", when=when, **told)


@dataclass(slots=True)
class _Range:
    low: int | None = None
    high: int | None = None

    def take(self, *numbers: int) -> None:
        for number in numbers:
            self.low = number if self.low is None else min(self.low, number)
            self.high = number if self.high is None else max(self.high, number)

    def document(self) -> Doc:
        return {} if self.low is None else {"range": [self.low, self.high]}


@dataclass(slots=True)
class Believed:
    """What a sender would have by a misconception, beside what it has."""

    belief: Belief | WindowBelief
    theirs: bool = False
    value: int = 0
    _parted: tuple[Row, Doc] | None = None

    def part(self, walk: Walk, own: int, counter: str) -> None:
        """Take note, once, of how the two rules differ; `own` is what the sender has."""
        if self.value != own and self._parted is None:
            told = walk.explanation.formulas if walk.explanation else ()
            rule = next((one.numbers for one in told if counter in one.symbolic), own)
            self._parted = walk.row, {"counter": counter, "yours": self.value, "rule": rule}

    def state(self, at: int, walk: Walk) -> Doc:
        """The band that belongs to it, from a count on."""
        differs = None
        if self._parted is not None:
            where, told = self._parted
            differs = parted("credit", where, walk.row, theirs=self.theirs, **told)
        return {"at": at, "limit": at + self.value, "differs": differs}


@dataclass(slots=True)
class BelievedCredit(Believed):
    """The link-credit that a sender would have."""

    belief: Belief

    def take(self, walk: Walk, link: Scope, row: Row, own_credit: int | None) -> None:
        """Take in a row; `own_credit` is the sender's after it."""
        if own_credit is None or row.kind not in ("transfer", "flow"):
            return
        sender, receiver = walk.vantages(link)
        frame, same = row.frame or {}, link_scope(row) == link
        size = row.body_bytes or 0
        if row.seq in walk.begins:
            if row.vantage == sender and row.event == SENT:
                on = self.belief.on_send if same else self.belief.on_other
                self.value = on(self.value, size)
            elif same and row.vantage == receiver and row.event == RECEIVED:
                self.value = self.belief.on_arrival(self.value, size)
        elif same and row.vantage == sender and row.event == RECEIVED and "link_credit" in frame:
            plan = FlowPlan(
                int(frame["link_credit"]),
                drain=bool(frame.get("drain")),
                echo=bool(frame.get("echo")),
            )
            on_flow = self.belief.on_flow
            self.value = own_credit if on_flow is None else on_flow(self.value, plan)
        self.part(walk, own_credit, "link-credit")


@dataclass(slots=True)
class BelievedWindow(Believed):
    """The window that a session's sender would have, in transfer frames."""

    belief: WindowBelief
    first: int | None = None

    def take(self, walk: Walk, link: Scope, row: Row, own_window: int | None) -> None:
        """Take in a row; `own_window` is the sender's after it."""
        sender, _ = walk.vantages(link)
        if own_window is None or row.connection != link.connection or row.vantage != sender:
            return
        frame, belief = row.frame or {}, self.belief
        told = row.event, row.kind, row.session == link.session
        if self.first is None:
            self.first = self.value = own_window
        elif told == (SENT, "transfer", True):
            self.value = belief.on_send(self.value, row.seq in walk.begins)
        elif told == (SENT, "transfer", False) and belief.on_other is not None:
            self.value = belief.on_other(self.value)
        elif told == (RECEIVED, "begin", False) and belief.on_begin is not None:
            self.value = belief.on_begin(self.value)
        elif told == (RECEIVED, "flow", True):
            window, credit = int(frame["incoming_window"]), frame.get("link_credit")
            heard = Heard(self.value, own_window, window, credit, self.first)
            self.value = belief.on_flow(heard)
        elif told == (SENT, "flow", True) and frame.get("incoming_window") == 0:
            self.value = self.value if belief.on_closed is None else belief.on_closed(self.value)
        self.part(walk, own_window, "remote-incoming-window")


def line_head(
    name: str, style: str, unit: str, extent: Doc, ends: Iterable[tuple[str | None, str, str, str]]
) -> Doc:
    """What does not change of a number line.

    Args:
        name: its id.
        style: how the stage draws it.
        unit: what is counted.
        extent: `range`, the least and the greatest number of it; empty if there is none.
        ends: who has a count there (None: nobody logs it), its role, what it is called, and what
            its limit is.
    """
    return {
        "id": name,
        "style": style,
        "unit": unit,
        "modulo": serial.MODULUS,
        **extent,
        "ends": [
            {"id": vantage, "name": called, "role": role, "word": word}
            for vantage, role, called, word in ends
            if vantage is not None
        ],
    }


@dataclass(slots=True)
class _Line:
    """A number line: where each end stands, and the limit up to which it may go.

    Attributes:
        id: of the line.
        walk: the run.
        link: whose sender's frames are counted.
        style: how the stage draws it.
        believed: misconceptions shown beside the rule.
    """

    id: str
    walk: Walk
    link: Scope
    style: str = "cells"
    believed: list[Any] = field(default_factory=list)
    _numbers: serial.Unwrapped = field(default_factory=serial.Unwrapped)
    _range: _Range = field(default_factory=_Range)
    _ends: dict[str, list[int]] = field(default_factory=dict)

    def state(self) -> Doc:
        """Of the line, after the row taken last."""
        state: Doc = {"ends": {name: list(end) for name, end in self._ends.items()}}
        if self.believed:
            at = self._ends.get(self.walk.vantages(self.link)[0] or "", [0])[0]
            state["rules"] = {one.belief.name: one.state(at, self.walk) for one in self.believed}
        return state

    def _head(self, unit: str, words: Sequence[str]) -> Doc:
        """What does not change, with a word for what the sender and the receiver have."""
        called = [say(f"role.{role}") for role in ROLES]
        ends = zip(self.walk.vantages(self.link), ROLES, called, words, strict=True)
        return line_head(self.id, self.style, unit, self._range.document(), ends)

    def _cell(self, flight: Flight) -> Doc:
        """What a transfer frame of the sender fills."""
        end = self._ends.get(self.walk.vantages(self.link)[0] or "")
        counted = end is not None and flight.begun >= 0
        return {"cell": {"line": self.id, "at": end[0] - 1}} if end and counted else {}


@dataclass(slots=True)
class LinkLine(_Line):
    """The number line of a link: each end's delivery-count, and the limit up to which it may go.

    It is of style `cells`, or `units` where a message takes several frames.

    Attributes:
        named: the link's name stands beside the line.
    """

    named: bool = False
    _voids: list[list[int]] = field(default_factory=list)
    _part: list[Any] | None = None
    _frames_of: dict[int, int] = field(default_factory=dict)
    _left: int = 0

    def __post_init__(self) -> None:
        delivery = -1
        unfinished = False
        for row in self.walk.rows:
            if self._sends(row):
                delivery += row.seq in self.walk.begins
                self._frames_of[delivery] = self._frames_of.get(delivery, 0) + 1
                unfinished = bool((row.frame or {}).get("more"))
        if any(frames > 1 for frames in self._frames_of.values()):
            self.style = "units"
        if unfinished:  # how many frames it takes is not told
            del self._frames_of[delivery]
        self._left = -1
        for who in self.vantages:
            self._count(who)

    def _sends(self, row: Row) -> bool:
        sent = row.event in (SENT, OBSERVED) and row.kind == "transfer"
        return sent and link_scope(row) == self.link

    @property
    def vantages(self) -> list[str]:
        """Of the ends that log, the sender's first."""
        return [vantage for vantage in self.walk.vantages(self.link) if vantage is not None]

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        sender = self.walk.vantages(self.link)[0]
        who = self.walk.told_by(row)
        if link_scope(row) == self.link and who in self.vantages and who is not None:
            self._count(who, row)
        if self._sends(row):
            self._sent(row)
        credit = self.walk.number(sender, self.link, "link_credit")
        for one in self.believed:
            one.take(self.walk, self.link, row, credit)

    def _count(self, who: str, row: Row | None = None) -> None:
        """Put an end where its counters are, after a row or before the first."""
        values = self.walk.counters(who, self.link)
        at, credit = values.get("delivery_count"), values.get("link_credit")
        if at is None or credit is None:
            return
        place = self._numbers.at(int(at))
        limit = place + int(credit)
        before = self._ends.get(who)
        sender = self.walk.vantages(self.link)[0]
        moved = row is not None and row.kind != "transfer"
        if who == sender and before is not None and moved and place > before[0]:
            self._voids.append([before[0], place])
        self._ends[who] = [place, limit]
        self._range.take(place, *([limit] if limit - place <= FAR else []))

    def _sent(self, row: Row) -> None:
        first = row.seq in self.walk.begins
        self._left += first
        whole = self._frames_of.get(self._left)
        gone = 1 if first or self._part is None else self._part[0] + 1
        more = (row.frame or {}).get("more")
        self._part = [gone, whole, say("line.frames")] if more else None

    def state(self) -> Doc:
        """Of the line, after the row taken last."""
        state = _Line.state(self)
        if self._voids:
            state["voids"] = [list(void) for void in self._voids]
        if self.style == "units":
            state["part"] = self._part
        receiver = self.walk.vantages(self.link)[1]
        waits = self.walk.number(receiver, self.link, "unconfirmed")
        if waits is not None and receiver in self._ends:
            to = self._ends[receiver][0]
            words = say("line.unconfirmed", n=waits)
            state["hatched"] = [to - waits, to, words] if waits else None
        return state

    def head(self) -> Doc:
        """Of the line: what does not change."""
        name = f"{visible(self.link.link)}: " if self.named else ""
        return self._head(f"{name}delivery-count", ["link-credit"] * 2)

    def of_frame(self, flight: Flight) -> Doc:
        """What a frame of this link does to the line."""
        row, frame = flight.row, flight.row.frame or {}
        sender, receiver = self.walk.vantages(self.link)
        if row.kind == "transfer":
            return self._cell(flight)
        stated, credit = frame.get("delivery_count"), frame.get("link_credit")
        # A capture tells a limit at the place where it saw the flow: it does not land after that.
        if row.kind != "flow" or self.walk.captured or stated is None or credit is None:
            return {}
        other = receiver if self.walk.author(row) == sender else sender
        if other is None:
            return {}
        at = self._numbers.at(int(stated))
        return {"aims": {"line": self.id, "end": other, "limit": at + int(credit)}}


@dataclass(slots=True)
class WindowLine(_Line):
    """The number line of a session in one direction: transfer-ids, and a window that slides.

    Attributes:
        unit: what is counted; it tells the line from another window's that is shown.
    """

    style: str = "brackets"
    unit: str = ""
    _base: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sender, receiver = self.walk.vantages(self.link)
        captured = bool(self.walk.rows) and self.walk.rows[0].event == OBSERVED
        for who in (sender, None if captured else receiver):
            if who is not None:
                self._count(who)

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        self._take(row)
        sender = self.walk.vantages(self.link)[0]
        window = self.walk.number(sender, session_of(self.link), "remote_incoming_window")
        for one in self.believed:
            one.take(self.walk, self.link, row, window)

    def _take(self, row: Row) -> None:
        session = session_of(self.link)
        if (row.connection, row.session) != (session.connection, session.session):
            return
        who = self.walk.told_by(row)
        # What a capture tells of a receiver's window is what it said last, not what has come since.
        told_only = row.event == OBSERVED and who != self.walk.vantages(self.link)[0]
        if who is not None and who in self.walk.vantages(self.link) and not told_only:
            self._count(who, row)

    def _count(self, who: str, row: Row | None = None) -> None:
        """Put an end's window where its counters are, after a row or before the first."""
        session = session_of(self.link)
        sender, receiver = self.walk.vantages(self.link)
        names = (
            ("next_outgoing_id", "remote_incoming_window")
            if who == sender
            else ("next_incoming_id", "incoming_window")
        )
        following, window = (self.walk.number(who, session, name) for name in names)
        if following is None or window is None:
            return
        place = self._numbers.at(following)
        # What its receiver says moves a window: where it is said, and where it is heard.
        speaks = row is not None and row.kind in ("begin", "flow")
        if row is not None and speaks and self.walk.author(row) == receiver:
            stated = (row.frame or {}).get("next_incoming_id")
            self._base[who] = place if stated is None else self._numbers.at(int(stated))
        begin = self._base.setdefault(who, place)
        self._ends[who] = [place, place + window, begin]
        self._range.take(begin, place, *([place + window] if window <= FAR else []))

    def head(self) -> Doc:
        """Of the line: what does not change."""
        words = [say(f"window.has-{role}") for role in ROLES]
        return self._head(self.unit, words) | {"limit": say("window.ends")}

    def of_frame(self, flight: Flight) -> Doc:
        """What a frame of this session does to the line."""
        row, frame = flight.row, flight.row.frame or {}
        sender, receiver = self.walk.vantages(self.link)
        author = self.walk.author(row)
        if row.kind == "transfer" and author == sender:
            return self._cell(flight)
        stated, window = frame.get("next_incoming_id"), frame.get("incoming_window")
        if row.kind != "flow" or self.walk.captured or author != receiver:
            return {}
        if stated is None or window is None:
            return {}
        at = self._numbers.at(int(stated))
        aims = {"line": self.id, "end": sender, "limit": at + int(window), "from": at}
        return {"aims": aims} if sender else {}


class LinkPicture:
    """Parties and the wires between them, one or two number lines below.

    Args:
        walk: the run.
        links: whose number lines are shown, at most two.
        windows: how many windows have lines at most: one stands above the link's own line, two of
            one session's directions or of two sessions stand alone.
        beliefs: misconceptions that are shown beside the rule, each on the line that it is about.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """

    layout = "link"
    idea: str | None = None  # where it is not the scenario's
    places: Mapping[str, str] = MappingProxyType({})  # of acts that no link tells the party of
    unused: Collection[str] = ()  # queues to which no act is offered

    def __init__(
        self,
        walk: Walk,
        links: Sequence[Scope],
        *,
        windows: int = 0,
        beliefs: Sequence[str] = (),
        theirs: bool = False,
    ) -> None:
        self.walk = walk
        ways: dict[tuple[Scope, str | None], Scope] = {}
        for link in links:
            ways.setdefault((session_of(link), link.link_sender), link)
        shown = list(ways.values())[:windows]
        self.links = shown or list(links[:2])
        self.lines: list[LinkLine | WindowLine] = [
            WindowLine(window_id(one), walk, one, unit=_window_unit(one, shown)) for one in shown
        ]
        if len(shown) < 2:
            several = len(self.links) > 1
            self.lines += [LinkLine(line_id(one), walk, one, named=several) for one in self.links]
        self.beliefs = [belief_named(name) for name in beliefs]
        credit = next((line for line in self.lines if isinstance(line, LinkLine)), None)
        for belief in self.beliefs:
            if isinstance(belief, WindowBelief):
                for line in self.lines:
                    if isinstance(line, WindowLine):
                        line.believed.append(BelievedWindow(belief, theirs))
            elif credit is not None:
                credit.believed.append(BelievedCredit(belief, theirs))
        self._received: dict[Scope, int] = {}
        # Queues that a client sees; a replica's own counters are another picture.
        told = [
            vantage for (vantage, _), one in walk.folding.ledgers.items() if "queue_ready" in one
        ]
        told += [row.vantage for row in walk.rows if "queue_ready" in (row.ledger or {})]
        queues = dict.fromkeys(name.partition(":")[2] for name in told if "@" not in name)
        attached = self._addresses()
        self._queues = [name for name in queues if name in attached]
        # Of several queues that a slice knows nobody can tell which its links are attached to, if
        # they were attached before it.
        if not self._queues and (walk.cut is None or len(queues) == 1):
            self._queues = list(queues)
        # Ends that show no counters: an endpoint that is fed the same frames computes them.
        self.inferred = {row.vantage for row in walk.rows if row.ledger_source == SHADOW}
        if walk.cut is not None:
            sources = walk.cut.earlier.sources.items()
            self.inferred |= {vantage for (vantage, _), source in sources if source == SHADOW}
        self._latency: dict[str, float] = {}
        for flight in walk.flights:
            if flight.ended is not None and flight.row.connection:
                took = under_way_us(walk, flight) / 1000
                self._latency.setdefault(flight.row.connection, took)

    # -- rows -------------------------------------------------------------------------------

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        link = link_scope(row)
        if row.event in (RECEIVED, OBSERVED) and row.kind == "transfer" and link is not None:
            frame = row.frame or {}
            whole = not frame.get("more") and not frame.get("aborted")
            self._received[link] = self._received.get(link, 0) + whole
        for line in self.lines:
            line.take(row)
        if row.event == "latency" and row.connection:
            self._latency[row.connection] = int(row.extra["latency_us"]) / 1000

    @property
    def things(self) -> set[str]:
        """What acts may name beside the links and queues that rows tell of."""
        return set()

    def node_about(self, act: str, given: Mapping[str, ActValue]) -> str | None:
        """The node that an act stands on, where it is not the one that does it."""
        return None

    def remark(self) -> str:
        """What is to be added to the sentence of the row taken last, which is then marked."""
        return ""

    def is_small(self, row: Row) -> bool:
        """Whether a row is too small a step for the buttons."""
        return False

    def of_frame(self, flight: Flight) -> Doc | None:
        """Where a frame flies and what it does to the lines; None for one that is not shown."""
        row = flight.row
        wire = row.connection
        if wire not in self.wires or self.is_small(row):
            return None
        found: Doc = {}
        for line in self.lines:
            mine = (
                link_scope(row) == line.link
                if isinstance(line, LinkLine)
                else (row.connection, row.session) == (line.link.connection, line.link.session)
            )
            if mine:
                found = {**line.of_frame(flight), **found}
        left, _ = self.wires[wire]
        way = "there" if self.walk.author(row) == left else "back"
        return {"link": wire, "way": way, **found}

    # -- what does not change ---------------------------------------------------------------

    @cached_property
    def clients(self) -> list[str]:
        """Vantages of clients, in order of appearance."""
        found = [name for (_, peer), name in self.walk.ends.items() if peer == CLIENT]
        return list(dict.fromkeys(found))

    @cached_property
    def nodes(self) -> list[str]:
        """Vantages from left to right: who sends, then who receives."""
        sends = {
            self.walk.vantages(link)[0] for link in self.walk.links if link.link_sender == CLIENT
        }
        mine = {name for link in self.links for name in self.walk.vantages(link)}
        most = sorted(self.clients, key=lambda name: name not in mine)[:MOST_CLIENTS]
        shown = [name for name in self.clients if name in most]
        if not self.walk.links:
            return [BROKER, *shown]
        left = [name for name in shown if name in sends]
        right = [name for name in shown if name not in sends]
        # Who has no link, as a client of another protocol, gets the room that is left.
        linked = {name for link in self.walk.links for name in self.walk.vantages(link)}
        right.sort(key=lambda name: name not in linked)
        if not left and len(right) > 1:
            left, right = right[:1], right[1:]
        return [*left, BROKER, *right]

    @property
    def left_out(self) -> int:
        """How many of a capture's clients there is no room for."""
        return len(set(self.clients) - set(self.nodes)) if self.walk.captured else 0

    @cached_property
    def wires(self) -> dict[str | None, tuple[str, str]]:
        """By connection, its ends from left to right."""
        order = {name: place for place, name in enumerate(self.nodes)}
        found: dict[str | None, tuple[str, str]] = {}
        for (connection, peer), name in self.walk.ends.items():
            if peer == CLIENT and name in order:
                ends = sorted((name, BROKER), key=order.__getitem__)
                found[connection] = (ends[0], ends[1])
        return found

    def role(self, node: str) -> str:
        """`sender`, `receiver`, or empty for a node that is both."""
        roles = {
            SENDER if self.walk.vantages(link)[0] == node else RECEIVER
            for link in self.walk.links
            if node in self.walk.vantages(link)
        }
        return roles.pop() if len(roles) == 1 else ""

    def head(self) -> Doc:
        """What does not change in the run."""
        head: Doc = {
            "layout": self.layout,
            "nodes": [self.node(name) for name in self.nodes],
            "links": [
                {"id": wire, "from": left, "to": right, "names": self._names(left, wire)}
                for wire, (left, right) in self.wires.items()
            ],
            "lines": [line.head() for line in self.lines],
            "counters": {"columns": self._columns(), "rows": self._counter_rows()},
        }
        if self.beliefs:
            head["rules"] = [{"id": one.name, "name": one.says} for one in self.beliefs]
        return head

    def node(self, name: str) -> Doc:
        """A party."""
        sub = name.partition(":")[2] or ""
        queues = self._addresses() if name == BROKER else []
        if len(queues) == 1:
            sub = say("party.queue", name=visible(queues[0]))
        title = say("party.broker" if name == BROKER else "party.client")
        if name in self.inferred:
            title, sub = visible(f"{title} {sub}".rstrip()), say("party.inferred")
        return {"id": name, "role": self.role(name), "name": title, "sub": visible(sub)}

    def _addresses(self) -> list[str]:
        """What links come from or go to at the broker, as their attach frames say."""
        found: dict[str, None] = {}
        for row in self.walk.rows:
            if row.kind == "attach":
                terminus = row.extra.get("source" if row.link_sender == BROKER else "target")
                address = terminus.get("address") if isinstance(terminus, dict) else None
                if isinstance(address, str) and (queue := queue_at(address)) is not None:
                    found[queue] = None
        return list(found)

    def _names(self, left: str, wire: str | None) -> list[str]:
        sends = {
            link.link_sender == (BROKER if left == BROKER else CLIENT)
            for link in self.walk.links
            if link.connection == wire
        }
        if len(sends) == 1:
            names = [say("wire.transfers"), say("wire.flows")]
            return names if sends == {True} else names[::-1]
        return self._from(left)

    @staticmethod
    def _from(left: str) -> list[str]:
        """Names of a wire's two ways where both ends send messages."""
        ends = [say("wire.from-broker"), say("wire.from-client")]
        return ends if left == BROKER else ends[::-1]

    def _columns(self) -> list[str]:
        """Heads of the table of counters; they say where the first link's are inferred."""
        ends = self.walk.vantages(self.links[0]) if self.links else (None, None)
        return [
            say(f"inferred.{role}" if name in self.inferred else f"role.{role}")
            for role, name in zip(ROLES, ends, strict=True)
        ]

    def _counter_rows(self) -> list[Doc]:
        rows: list[Doc] = []
        sessions: list[Scope] = []
        for link in self.links:
            group = say("counters.link", name=visible(link.link))
            names = [*((name, True) for name in MAIN), *MORE]
            rows += [
                {
                    "id": f"{line_id(link)} {name}",
                    "name": spec_name(name),
                    "group": group,
                    "compare": same and name != "available",
                }
                for name, same in names
            ]
            if session_of(link) not in sessions:
                sessions.append(session_of(link))
                rows += [
                    {
                        "id": f"{_session_id(link)} {which}",
                        "name": say(f"windows.{which}"),
                        "group": say("counters.session", number=link.session),
                        "compare": True,
                    }
                    for which, *_ in WINDOWS
                ]
        return rows

    # -- what is so now ---------------------------------------------------------------------

    def state(self) -> Doc:
        """Everything after the row taken last."""
        return {
            "nodes": {name: self.node_state(name) for name in self.nodes},
            "links": {
                wire: {"latency": value}
                for wire, value in self._latency.items()
                if wire in self.wires
            },
            "lines": {line.id: line.state() for line in self.lines},
            "counters": self._counters(),
        }

    def node_state(self, name: str) -> Doc:
        """A party's words."""
        sends = [link for link in self.walk.links if self.walk.vantages(link)[0] == name]
        takes = [link for link in self.walk.links if self.walk.vantages(link)[1] == name]
        state: Doc = {"facts": self._facts(name, sends, takes)}
        if sends:
            state |= self._brakes(sends)
        if name == BROKER and len(self._queues) == 1:
            state["items"] = next(iter(self._ready().values()), None)
        elif len(sends) == 1 and name != BROKER:
            state["items"] = self.walk.number(name, sends[0], "available")
        return state

    def _brakes(self, sends: Sequence[Scope]) -> Doc:
        """What blocks the links over which a node sends; the first of them that is blocked."""
        shown = [link for link in sends if link in self.links] or list(sends)
        for link in shown:
            words = blocked_words(self.walk.holding(link))
            if words:
                which = f" ({visible(link.link)})" if len(shown) > 1 else ""
                return {"blocked": f"{words}{which}", "going": None}
        found = {going(self.walk.holding(link)) for link in shown}
        best = next((one for one in (MAY_SEND, NO_MESSAGE) if one in found), None)
        return {"blocked": None, "going": best and say(f"going.{best}")}

    def _ready(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for (vantage, scope), counters in self.walk.folding.ledgers.items():
            value = counters.get("queue_ready")
            name = vantage.partition(":")[2]
            if scope.group == "actor" and value is not None and name in self._queues:
                found[name] = int(value)
        return found

    def _in_sessions(self) -> int:
        """Messages that have left their queue and wait in a session of the broker."""
        return sum(
            int(counters.get("mailbox") or 0)
            for (vantage, scope), counters in self.walk.folding.ledgers.items()
            if scope.group == "actor" and vantage.startswith("session:")
        )

    def _facts(self, name: str, sends: Sequence[Scope], takes: Sequence[Scope]) -> list[str]:
        facts: list[str] = []
        if name == BROKER:
            ready = self._ready()
            of = "" if len(self._queues) == 1 else "-in"
            facts += [say(f"fact.ready{of}", n=n, queue=visible(one)) for one, n in ready.items()]
            waits = self._in_sessions()
            facts += [say("fact.in-session", n=waits)] if waits else []
        for link in sends:
            number = self.walk.number(name, link, "available")
            if name != BROKER and number is not None:
                over = "" if len(sends) == 1 else "-over"
                facts.append(say(f"fact.to-send{over}", n=number, link=visible(link.link)))
        got = sum(self._received.get(link, 0) for link in takes)
        if takes and self.walk.from_start:
            facts.append(say("fact.received", n=got))
        # A capture tells of the sender's end alone.
        ends = sends if self.walk.captured else takes if name != BROKER else ()
        counters = [self.walk.counters(name, link) for link in ends]
        open_ = [one["unsettled"] for one in counters if "unsettled" in one]
        if open_ and None not in open_:
            facts.append(say("fact.unsettled", n=sum(map(int, open_))))
        return facts[:3]

    def _counters(self) -> Doc:
        found: Doc = {}
        sessions: set[Scope] = set()  # of two links of a session the first names its ends
        for link in self.links:
            ends = [self.walk.counters(name, link) for name in self.walk.vantages(link)]
            for name in (*MAIN, *(one for one, _ in MORE)):
                found[f"{line_id(link)} {name}"] = [shown(end, name) for end in ends]
            if session_of(link) in sessions:
                continue
            sessions.add(session_of(link))
            sides = [
                self.walk.counters(name, session_of(link)) for name in self.walk.vantages(link)
            ]
            for which, *names in WINDOWS:
                told = [shown(side, name) for side, name in zip(sides, names, strict=True)]
                found.setdefault(f"{_session_id(link)} {which}", told)
        return found

    def knob(self, act: str, link: Scope | None) -> int | None:
        """The amount at which a knob stands: what its end's counters say."""
        if link is None:
            return None
        receiver = self.walk.vantages(link)[1]
        if act == "grant":
            return self.walk.number(receiver, link, "link_credit")
        if act == "open_window":
            return self.walk.number(receiver, session_of(link), "incoming_window")
        return None

    def words(self) -> str:
        """The whole state in words."""
        parts: list[str] = []
        for link in self.links:
            some, name_of = ("-of" if len(self.links) > 1 else ""), visible(link.link)
            for role, name in zip(ROLES, self.walk.vantages(link), strict=True):
                values = self.walk.counters(name, link)
                told = [
                    f"{spec_name(field)} {value_text(values[field])}"
                    for field in ("delivery_count", "link_credit", "available")
                    if field in values
                ]
                if told:
                    parts.append(say(f"words.{role}{some}", link=name_of, told=", ".join(told)))
            held = self.walk.holding(link)
            if held.known:
                why = brakes.words(held.brake)
                parts.append(say(f"words.blocks{some}", link=name_of, why=why))
        for name in self.nodes:
            if name in self.inferred:
                parts.append(say("words.inferred", who=name))
        return " ".join([*parts, self.on_wire])

    @property
    def on_wire(self) -> str:
        """How many frames are on the wire, in words."""
        return say("words.wire", n=len(self.walk.folding.in_flight))


def under_way_us(walk: Walk, flight: Flight) -> int:
    """How long a frame was under way."""
    ended = max(0, flight.begun) if flight.ended is None else flight.ended
    return walk.rows[ended].t_us - flight.row.t_us


def shown(values: dict[str, Value], name: str) -> str | int | None:
    """A counter in the table of counters: None if nobody has told it, `?` if it is not known."""
    if name not in values:
        return None
    value = values[name]
    return value if isinstance(value, int) and not isinstance(value, bool) else value_text(value)


def line_id(link: Scope) -> str:
    """The id of a link's number line."""
    return f"link {link.connection}/{link.session}/{link.link}/{link.link_sender}/{link.attach_no}"


def window_id(link: Scope) -> str:
    """The id of the line of a session's window, in the direction in which a link sends."""
    return f"window {link.connection}/{link.session}/{link.link_sender}"


def _window_unit(link: Scope, shown: Sequence[Scope]) -> str:
    """What a window's line counts, told from the others that are shown."""
    if len({one.session for one in shown}) > 1:
        return say("window.of-session", number=link.session)
    return say(f"window.of-{link.link_sender}" if len(shown) > 1 else "window.unit")


def _session_id(link: Scope) -> str:
    return f"session {link.connection}/{link.session}"
