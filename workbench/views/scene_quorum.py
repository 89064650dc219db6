"""A quorum queue as a scene: a publisher, replicas with their disks, each log as a bar."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.languages import declared
from workbench.scenarios.commit_beliefs import COMMIT_BELIEFS, CommitBelief
from workbench.trace.replicas import DOWN, LEADER, Node, Replicas
from workbench.trace.schema import CLIENT, Row
from workbench.trace.words import duration

from .scene_link import LinkPicture, parted, piece_of, say
from .scene_walk import Flight, Path, Walk

Doc = dict[str, Any]
BARS = "log"
_AT_ONCE_MS = 0.01


class QuorumPicture(LinkPicture):
    """A publisher, a cluster, and how far each replica's log is, in memory and on disk.

    Args:
        walk: the run.
        nodes: of the cluster, those that no row has told of yet among them.
        leader: who leads first, where no row tells.
        rules: misconceptions that are shown beside the rule.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """

    layout = "quorum"

    def __init__(
        self,
        walk: Walk,
        nodes: Iterable[str] = (),
        leader: str = "",
        rules: Iterable[str] = (),
        *,
        theirs: bool = False,
    ) -> None:
        publishes = [link for link in walk.links if link.link_sender == CLIENT]
        super().__init__(walk, publishes[:1])
        self.story = Replicas(walk.rows, nodes=nodes, leader=leader)
        self.lines = []
        self._fsyncs = self._syncs()
        self._sent = 0
        self._rules = {name: Doc(at=self.story.before, limit=self.story.before) for name in rules}
        self._theirs = theirs
        self._parted: dict[str, tuple[Row, Doc]] = {}  # by misconception, where and how

    @property
    def step(self) -> int:
        """As `Replicas` counts: 0 is before the first row."""
        return self.walk.place + 1

    @property
    def nodes(self) -> list[str]:
        """The publisher, then the replicas."""
        found = [self.walk.vantages(link)[0] for link in self.links]
        return [*(name for name in found if name), *self.story.nodes]

    @property
    def wires(self) -> dict[str | None, tuple[str, str]]:
        """The publisher's connection, which goes to the replica that led first."""
        first = self.story.leader.at(0) or next(iter(self.story.nodes), None)
        if first is None:
            return {}
        return {link.connection: (self.nodes[0], first) for link in self.links}

    def on_disks(self, step: int) -> int:
        """The last entry that a majority of disks has at a step."""
        saved = sorted((node.saved.at(step) for node in self.story.nodes.values()), reverse=True)
        return saved[self.story.majority - 1]

    def remark(self) -> str:
        """With which fsync a majority of disks has an entry, and whether the leader knows that."""
        story, step, row = self.story, self.step, self.walk.row
        entry = self.on_disks(step) if row.vantage.startswith("wal:") else 0
        if entry <= self.on_disks(step - 1) or entry <= story.before:
            return ""
        leader, here = story.leader.at(step), row.vantage.partition(":")[2]
        have = sum(node.saved.at(step) >= entry for node in story.nodes.values())
        words = say("quorum.majority", have=have, all=len(story.nodes), entry=entry)
        if not leader or here == leader:
            return words
        return f"{words} {say('quorum.reply-comes', leader=leader, node=here)}"

    # -- rows -------------------------------------------------------------------------------

    def take(self, row: Row) -> None:
        """Take in the row that the walk took last."""
        super().take(row)
        if row.event == "sent" and row.kind == "transfer" and row.vantage == self.nodes[0]:
            self._sent += not (row.frame or {}).get("more")
        for name, shown in self._rules.items():
            self._compare(COMMIT_BELIEFS[name], shown)

    def _compare(self, belief: CommitBelief, shown: Doc) -> None:
        """Up to which entry the log would be committed by a misconception."""
        step, story = self.step, self.story
        leader = story.leader.at(step)
        nodes = sorted(story.nodes.values(), key=lambda node: node.name != leader)
        disks = [node.saved.at(step) for node in nodes]
        logs = [max(node.saved.at(step), node.last.at(step)) for node in nodes]
        shown["at"] = commit = self._commit(step)
        shown["limit"] = upto = max(shown["limit"], belief.upto(disks, logs))
        if upto != commit:
            told = {"yours": upto, "rule": commit, "because": belief.because}
            self._parted.setdefault(belief.name, (self.walk.row, told))

    def _believed(self, name: str) -> Doc:
        """What a misconception has, and how it and the rule have parted."""
        differs = None
        if name in self._parted:
            where, told = self._parted[name]
            differs = parted("commit", where, self.walk.row, theirs=self._theirs, **told)
        return self._rules[name] | {"differs": differs}

    def _commit(self, step: int) -> int:
        """The last entry that some replica knows to be committed."""
        known = (node.commit.at(step) for node in self.story.nodes.values())
        return max(self.story.before, *known)

    def of_frame(self, flight: Flight) -> Doc | None:
        """Where a frame flies; None for one that is not shown."""
        found = super().of_frame(flight)
        if found is None:
            return None
        out = flight.row.from_peer == CLIENT
        place: Doc = {"link": found["link"], "way": "there" if out else "back"}
        number = (flight.row.frame or {}).get("delivery_id")
        if flight.row.kind == "transfer" and number is not None:
            place["text"] = str(number)[-3:]  # as the sentence; the log has the sender's number
        return place

    def writes(self) -> list[tuple[int, Doc]]:
        """Entries on their way from a leader to a replica, with the place of the row that sent."""
        found: list[tuple[int, Doc]] = []
        open_: dict[tuple[str, int], list[tuple[int, Doc]]] = {}
        rows, times = self.walk.rows, self.walk.times
        lost: list[tuple[int, Doc, float]] = []
        took: dict[str, float] = {}  # by line
        for place, row in enumerate(rows):
            if row.queue != self.story.queue or "@" not in row.vantage:
                continue
            here = row.vantage.rpartition("@")[2]
            if row.event == "replicate" and row.kind in self.story.nodes:
                doc = self._write(row, here, f"w{row.seq}", [(times[place], 0.0)])
                found.append((place, doc))
                if part := self._nowhere(place, str(doc["link"]), row.kind):
                    lost.append((place, doc, part))
                else:
                    key = (row.kind, int(row.extra["last"]))
                    open_.setdefault(key, []).append((place, doc))
            elif row.event == "append":
                for begun, doc in open_.pop((here, int(row.extra["last"])), []):
                    doc["path"].append([times[place], 1.0])
                    took[str(doc["link"])] = times[place] - times[begun]
        usual = min(took.values(), default=0.0)
        for place, doc, part in lost:
            end = times[place] + part * took.get(str(doc["link"]), usual)
            doc["path"].append([round(end, 5), part])
            doc["lost"] = True
        for waiting in open_.values():
            for place, doc in waiting:
                fault = self._fault(place, str(doc["link"]))
                t = times[-1 if fault is None else fault]
                part = 0.5 if t - times[place] > _AT_ONCE_MS else 0.05
                doc["path"].append([t, part])
                if fault is not None:
                    doc["lost"] = True
        return found

    def _nowhere(self, place: int, pair: str, to: str) -> float:
        """At which part of its way is lost what sets out on a line that is cut, or to a node down.

        0 where there is no such fault: a leader does not know of one when it sends.
        """
        step = place + 1
        if self.story.nodes[to].role.at(step) == DOWN:
            return 1.0
        return 0.5 if tuple(pair.split("-")) in self.story.cuts.at(step) else 0.0

    def _fault(self, place: int, pair: str) -> int | None:
        """Place of the first later row that cuts a line between two nodes, or crashes one."""
        ends = pair.split("-")
        for later in range(place + 1, len(self.walk.rows)):
            row = self.walk.rows[later]
            node = row.vantage.partition(":")[2]
            if row.event == "crash" and node in ends:
                return later
            if row.event == "cut" and {node, row.extra["to"]} == set(ends):
                return later
        return None

    def replies(self) -> list[tuple[int, Doc]]:
        """What followers tell the leader of their disks, with the place of the row of the fsync.

        A follower replies when its fsync is over. The reply takes as long as the last entries took
        from the leader to it: both ways between two nodes are equally long. What becomes of one on
        a line that is cut is not known.
        """
        found: list[tuple[int, Doc]] = []
        sent: dict[tuple[str, int], float] = {}
        takes: dict[str, float] = {}
        story, times = self.story, self.walk.times
        for place, row in enumerate(self.walk.rows):
            kind, _, here = row.vantage.rpartition("@")[2].rpartition(":")
            if row.queue == story.queue and row.event == "replicate":
                sent[str(row.kind), int(row.extra["last"])] = times[place]
            elif row.queue == story.queue and row.event == "append":
                begun = sent.pop((here, int(row.extra.get("last", 0))), None)
                takes[here] = takes.get(here, 0.0) if begun is None else times[place] - begun
            elif (kind, row.event) == ("wal", "fsync") and here in takes:
                doc = self._reply(place, here, takes[here])
                found += [(place, doc)] if doc else []
        return found

    def _reply(self, place: int, here: str, takes: float) -> Doc | None:
        story, t = self.story, self.walk.times[place]
        leader, upto = story.leader.at(place + 1), story.nodes[here].saved.at(place + 1)
        if leader in ("", here) or upto == story.nodes[here].saved.at(place):
            return None
        a, b = self._pair(here, leader)
        fault = self._fault(place, f"{a}-{b}")
        end = t + takes
        if (a, b) in story.cuts.at(place + 1) or (fault and self.walk.times[fault] <= end):
            return None
        words = say("quorum.replied", entry=upto)
        return {
            "id": f"k{self.walk.rows[place].seq}",
            "link": f"{a}-{b}",
            "way": "there" if here == a else "back",
            "kind": "acknowledgement",
            "name": say("quorum.reply", node=here, leader=leader, entry=upto),
            "inside": True,
            "short": words,
            "path": [[t, 0.0], [round(end, 5), 1.0]],
        }

    def _write(self, row: Row, here: str, number: str, path: Path) -> Doc:
        first, last = int(row.extra["first"]), int(row.extra["last"])
        words = piece_of(
            "quorum.entry" if first == last else "quorum.entries", first=first, last=last
        )
        a, b = self._pair(here, str(row.kind))
        return {
            "id": number,
            "link": f"{a}-{b}",
            "way": "there" if here == a else "back",
            "kind": "write",
            "text": str(last)[-3:],
            "name": say("quorum.write", entries=words, node=here, to=row.kind),
            "inside": True,
            "short": str(words),
            "path": [list(point) for point in path],
        }

    def _pair(self, one: str, other: str) -> tuple[str, str]:
        names = list(self.story.nodes)
        return (one, other) if names.index(one) < names.index(other) else (other, one)

    def _syncs(self) -> dict[str, list[tuple[int, float, float]]]:
        """By node: place of the row that begins an fsync, when it begins, and when it ends."""
        found: dict[str, list[tuple[int, float, float]]] = {}
        open_: dict[str, int] = {}
        times = self.walk.times
        for place, row in enumerate(self.walk.rows):
            kind, _, node = row.vantage.partition(":")
            if kind == "wal" and row.event == "append":
                open_[node] = place
            elif node in open_ and (row.event == "crash" or (kind, row.event) == ("wal", "fsync")):
                began = open_.pop(node)
                found.setdefault(node, []).append((began, times[began], times[place]))
        for node, began in open_.items():
            found.setdefault(node, []).append((began, times[began], times[-1]))
        return found

    # -- what does not change ---------------------------------------------------------------

    def head(self) -> Doc:
        """What does not change in the run."""
        names = list(self.story.nodes)
        most = max((max(node.last.values) for node in self.story.nodes.values()), default=0)
        between = [
            {"id": f"{a}-{b}", "from": a, "to": b, "names": [f"{a} – {b}"]}
            for place, a in enumerate(names)
            for b in names[place + 1 :]
        ]
        head = super().head()
        return head | {
            "links": [*head["links"], *between],
            "lines": [
                {
                    "id": BARS,
                    "style": "bars",
                    "unit": say("quorum.log"),
                    "range": [self.story.before + 1, max(self.story.before + 1, most) + 1],
                    "majority": self.story.majority,
                    "ends": [{"id": name, "name": name, "role": ""} for name in names],
                }
            ],
            "disks": [
                {"id": f"disk {name}", "on": name, "name": say("quorum.disk", node=name)}
                for name in names
            ],
            "legend": [
                {"mark": "memory", "text": say("quorum.in-memory")},
                {"mark": "disk", "text": say("quorum.on-disk")},
            ],
            "counters": {
                "columns": names,
                "rows": [{"id": name, "name": say(f"quorum-counter.{name}")} for name in _COUNTERS],
            },
            "rules": [{"id": name, "name": declared(name)} for name in self._rules],
        }

    def node(self, name: str) -> Doc:
        """The publisher, or a replica."""
        if name in self.story.nodes:
            return {"id": name, "role": "", "name": name}
        return super().node(name) | {"name": say("quorum.publisher"), "sub": ""}

    # -- what is so now ---------------------------------------------------------------------

    def state(self) -> Doc:
        """Everything after the row taken last."""
        state = super().state()
        story, step = self.story, self.step
        cuts = {f"{a}-{b}" for a, b in story.cuts.at(step)}
        links = {
            f"{a}-{b}": {"cut": f"{a}-{b}" in cuts}
            for place, a in enumerate(story.nodes)
            for b in list(story.nodes)[place + 1 :]
        }
        return state | {
            "links": state["links"] | links,
            "lines": {
                BARS: {
                    "ends": {
                        name: [
                            node.saved.at(step),
                            max(node.saved.at(step), node.last.at(step)),
                        ]
                        for name, node in story.nodes.items()
                    },
                    "commit": self._commit(step),
                    "rules": {name: self._believed(name) for name in self._rules},
                }
            },
            "disks": {f"disk {name}": self._disk(node) for name, node in story.nodes.items()},
            "counters": {
                name: [get(node, step) for node in story.nodes.values()]
                for name, get in _COUNTERS.items()
            },
        }

    def node_state(self, name: str) -> Doc:
        """A party's words."""
        node = self.story.nodes.get(name)
        step = self.step
        if node is None:
            state = super().node_state(name)
            done = self.story.confirmed.at(step)
            facts = [say("fact.sent", n=self._sent), say("fact.confirmed", n=done)]
            return state | {"facts": facts}
        role, term = node.role.at(step), node.term.at(step)
        stall = self.story.stall.at(step)
        return {
            "sub": say("quorum.role", role=role, term=term) if term and role != DOWN else role,
            "down": role == DOWN,
            "leads": role == LEADER and self.story.leader.at(step) == name,
            "blocked": say("quorum.stalled", why=stall) if stall and role == LEADER else None,
        }

    def _disk(self, node: Node) -> Doc:
        step = self.step
        saved = node.saved.at(step)
        state: Doc = {"from": saved, "to": saved, "t0": None, "t1": None}
        fsync_us = node.fsync_us.at(step)
        if fsync_us is not None:
            state["text"] = duration(fsync_us)
        if node.syncing.at(step):
            begun = [one for one in self._fsyncs.get(node.name, ()) if one[0] < step]
            if begun:
                _, t0, t1 = begun[-1]
                state |= {"to": saved + node.syncing.at(step), "t0": t0, "t1": t1}
        return state

    def words(self) -> str:
        """The whole state in words."""
        step = self.step
        parts = []
        for name, node in self.story.nodes.items():
            told = {key: get(node, step) for key, get in _COUNTERS.items()}
            parts.append(say("quorum-words.node", node=name, **told))
        parts.append(say("quorum-words.confirmed", n=self.story.confirmed.at(step)))
        if stall := self.story.stall.at(step):
            parts.append(say("quorum-words.stalled", why=stall))
        return f"{' '.join(parts)} {super().words()}"


_COUNTERS = {
    "role": lambda node, step: node.role.at(step),
    "term": lambda node, step: node.term.at(step),
    "log": lambda node, step: node.last.at(step),
    "disk": lambda node, step: node.saved.at(step),
    "commit": lambda node, step: node.commit.at(step),
    "applied": lambda node, step: node.applied.at(step),
    "fsync": lambda node, step: node.syncing.at(step),
    "waiting": lambda node, step: node.waiting.at(step),
}
