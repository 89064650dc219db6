"""Where a quorum queue's messages are at a step: places, ways between them, and what waits where.

Plain values out of rows; the figure draws them and the text twin says them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workbench.trace.replicas import (
    DOWN,
    FRONT,
    LEADER,
    Node,
    Replicas,
    Timeline,
    counter_line,
    of_consumer,
    of_publisher,
)
from workbench.trace.schema import BROKER, CLIENT, RECEIVED, SENT, Row

PUBLISHER, SESSION, CONSUMER, REPLICA, LOG = "publisher", "session", "consumer", "replica", "log"

# A role's glyph: a shape of its own, for whoever sees no colours.
GLYPHS = {
    LEADER: "★",
    "follower": "●",
    "candidate": "▲",
    "pre-vote": "△",
    DOWN: "✕",
    "not told yet": "○",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One box of the figure.

    Attributes:
        name: unique, such as `n1` or `log n1`.
        kind: publisher, session, consumer, replica or log.
        role: of a replica, else empty; `down` for its log as well.
        title, text: what stands in the box.
        depth, most: what waits there, and the most that waits at any step of the run.
        here: the row of this step was logged here.
    """

    name: str
    kind: str
    role: str = ""
    title: str
    text: str
    depth: int = 0
    most: int = 0
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A line between two places.

    Attributes:
        a, b: names of the places.
        cut: nothing passes.
        led: it is between the leader and a follower, or to the leader.
        text: what is on it now, in words; empty if nothing is told.
    """

    a: str
    b: str
    cut: bool = False
    led: bool = False
    text: str = ""

    @property
    def client(self) -> bool:
        """It is a client's connection."""
        return bool({self.a, self.b} & {PUBLISHER, CONSUMER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Everything at one step.

    Attributes:
        step, steps: where, and of how many.
        sentence: what the whole says: who leads, how much is confirmed, what is wrong.
    """

    step: int
    steps: int
    sentence: str
    places: tuple[Place, ...]
    ways: tuple[Way, ...]


class TopologyState:
    """Pictures of a run at any step.

    Args:
        rows: of one run, in order of `seq`.
        queue: a quorum queue; the first one if None.
    """

    def __init__(self, rows: Sequence[Row], queue: str | None = None) -> None:
        self.rows = rows
        self.story = Replicas(rows, queue)
        self.consumes = any(row.link_sender == BROKER for row in rows)
        self._credit = counter_line(rows, of_publisher(CLIENT), "link_credit")
        self._unsettled = counter_line(rows, of_publisher(CLIENT), "unsettled")
        self._unconfirmed = counter_line(rows, of_publisher(BROKER), "unconfirmed")
        self._consumer_credit = counter_line(rows, of_consumer(CLIENT), "link_credit")
        self._consumer_holds = counter_line(rows, of_consumer(CLIENT), "unsettled")
        self._flying = {
            (connection, sender): _flying(rows, connection, sender)
            for connection in sorted({row.connection for row in rows if row.connection})
            for sender in (CLIENT, BROKER)
        }
        self._connection = {
            PUBLISHER: _connection(rows, lambda row: row.link_sender == CLIENT),
            CONSUMER: _connection(rows, lambda row: row.link_sender == BROKER),
        }
        self._most_log = max(
            (
                waiting + syncing
                for node in self.story.nodes.values()
                for waiting, syncing in zip(
                    (node.waiting.at(step) for step in node.waiting.steps),
                    (node.syncing.at(step) for step in node.waiting.steps),
                    strict=True,
                )
            ),
            default=0,
        )

    @property
    def places(self) -> list[tuple[str, str]]:
        """(name, kind) of every place that this run has."""
        found = [(PUBLISHER, PUBLISHER), (SESSION, SESSION)]
        if self.consumes:
            found.append((CONSUMER, CONSUMER))
        for name in self.story.nodes:
            found += [(name, REPLICA), (log_of(name), LOG)]
        return found

    @property
    def ways(self) -> list[tuple[str, str]]:
        """Every way between two places: clients to session, session to replicas, all replicas."""
        names = list(self.story.nodes)
        found = [(PUBLISHER, SESSION)]
        if self.consumes:
            found.append((SESSION, CONSUMER))
        found += [(SESSION, name) for name in names]
        return found + [(a, b) for at, a in enumerate(names) for b in names[at + 1 :]]

    def at(self, step: int) -> Picture:
        """The picture at a step; step 0 is before the first row."""
        step = max(0, min(len(self.rows), step))
        row = self.rows[step - 1] if step else None
        here = self._place_of(row) if row is not None else ""
        places = [self._publisher(step), self._session(step)]
        if self.consumes:
            places.append(self._consumer(step))
        for node in self.story.nodes.values():
            places += [self._replica(node, step), self._log(node, step)]
        return Picture(
            step=step,
            steps=len(self.rows),
            sentence=self._sentence(step),
            places=tuple(replace(place, here=place.name == here) for place in places),
            ways=tuple(self._way(a, b, step, row) for a, b in self.ways),
        )

    # -- places -----------------------------------------------------------------------------

    def _publisher(self, step: int) -> Place:
        return Place(
            name=PUBLISHER,
            kind=PUBLISHER,
            title="▷ publisher",
            text=f"credit {self._credit.at(step)}, unsettled {self._unsettled.at(step)}",
        )

    def _session(self, step: int) -> Place:
        waits = self._unconfirmed.at(step)
        slow = ": queue slow" if self.story.slow.at(step) else ""
        return Place(
            name=SESSION,
            kind=SESSION,
            title=f"□ session{slow}",
            text=f"{waits} wait for a confirm",
            depth=waits,
            most=max(self._unconfirmed.values),
        )

    def _consumer(self, step: int) -> Place:
        credit, holds = self._consumer_credit.at(step), self._consumer_holds.at(step)
        text = f"credit {credit}, unsettled {holds}"
        return Place(name=CONSUMER, kind=CONSUMER, title="◁ consumer", text=text)

    def _replica(self, node: Node, step: int) -> Place:
        role = node.role.at(step)
        title = f"{GLYPHS[role]} {node.name} {role}"
        text = f"log to {node.last.at(step)}, commit {node.commit.at(step)}"
        if term := node.term.at(step):
            title += f", term {term}"
        if role == DOWN:
            title, text = f"{GLYPHS[DOWN]} {node.name} {DOWN}", "crashed"
        return Place(name=node.name, kind=REPLICA, role=role, title=title, text=text)

    def _log(self, node: Node, step: int) -> Place:
        role = node.role.at(step)
        waiting, syncing = node.waiting.at(step), node.syncing.at(step)
        text = f"log {syncing} in fsync, {waiting} wait"
        fsync_us = node.fsync_us.at(step)
        if fsync_us is not None:
            text += f" ({fsync_us / 1000:g} ms)"
        if role == DOWN:
            text = "log: what its disk has"
        return Place(
            name=log_of(node.name),
            kind=LOG,
            role=role if role == DOWN else "",
            title="",
            text=text,
            depth=waiting + syncing,
            most=self._most_log,
        )

    # -- ways -------------------------------------------------------------------------------

    def _way(self, a: str, b: str, step: int, row: Row | None) -> Way:
        client = next((name for name in (a, b) if name in self._connection), None)
        if client is not None:
            return Way(a=a, b=b, text=self._on_wire(client, step))
        ends = {FRONT if name == SESSION else name for name in (a, b)}
        cut = any(set(way) == ends for way in self.story.cuts.at(step))
        leader = self.story.leader.at(step)
        text = ""
        sends = row is not None and row.event == "replicate" and row.queue == self.story.queue
        if row is not None and sends and {row.vantage.rpartition("@")[2], row.kind} == {a, b}:
            text = f"entries {row.extra['first']} to {row.extra['last']} to {row.kind}"
        return Way(a=a, b=b, cut=cut, led=leader in (a, b), text=text)

    def _on_wire(self, client: str, step: int) -> str:
        connection = self._connection[client]
        if connection is None:
            return ""
        out, back = (self._flying[connection, sender].at(step) for sender in (CLIENT, BROKER))
        if not out and not back:
            return ""
        return f"{out} → ← {back} frames" if client == PUBLISHER else f"{back} → ← {out} frames"

    def _place_of(self, row: Row) -> str:
        kind, _, rest = row.vantage.partition(":")
        if kind == "wal":
            return log_of(rest)
        if kind == "node":
            return rest
        if kind == "queue":
            return rest.rpartition("@")[2] if "@" in rest else SESSION
        if kind == CLIENT:
            return CONSUMER if row.connection == self._connection[CONSUMER] else PUBLISHER
        return SESSION if kind in (BROKER, "session") else ""

    def _sentence(self, step: int) -> str:
        story = self.story
        if not story.nodes:
            return "No row tells of a quorum queue."
        leader = story.leader.at(step)
        words = [f"{leader} leads" if leader else "Nobody leads"]
        known = sum(1 for one in story.messages.values() if one.known(step))
        words.append(f"{story.confirmed.at(step)} of {known} messages in a log are confirmed")
        down = [name for name, node in story.nodes.items() if node.role.at(step) == DOWN]
        if down:
            words.append(f"down: {', '.join(down)}")
        cuts = story.cuts.at(step)
        if cuts:
            words.append("cut: " + ", ".join(f"{a}-{b}" for a, b in cuts))
        text = "; ".join(words) + "."
        stall = story.stall.at(step)
        return f"{text} No majority: {stall}." if stall else text


def log_of(node: str) -> str:
    """Name of a node's write-ahead log as a place."""
    return f"log {node}"


def _connection(rows: Sequence[Row], wanted: Callable[[Row], bool]) -> str | None:
    return next((row.connection for row in rows if row.connection and wanted(row)), None)


def _flying(rows: Sequence[Row], connection: str, sender: str) -> Timeline[int]:
    """Frames that one peer of a connection sent and that have not arrived, over the steps."""
    line = Timeline(0)
    for step, row in enumerate(rows, start=1):
        if row.connection == connection and row.from_peer == sender:
            line.put(step, line.now + (row.event == SENT) - (row.event == RECEIVED))
    return line


def picture_words(picture: Picture) -> str:
    """A picture as text: the sentence, a line for each place and each way that tells."""
    lines = [f"Step {picture.step} of {picture.steps}. {picture.sentence}"]
    for place in picture.places:
        mark = "▶" if place.here else " "
        indent = "    " if place.kind == LOG else ""
        words = ": ".join(part for part in (place.title, place.text) if part)
        lines.append(f"{mark} {indent}{words}")
    for way in picture.ways:
        if way.cut:
            lines.append(f"  ✂ {way.a} - {way.b}: cut")
        elif way.text:
            lines.append(f"  {way.a} - {way.b}: {way.text}")
    return "\n".join(lines)
