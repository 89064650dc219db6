"""Scene: what the stage draws of a run, as plain JSON; made from rows, by Python alone.

The stage interpolates and draws; it knows no rule of a protocol. What it is given is described in
`scene.schema.json`, and beside the stage's source in `stage/types.ts`. One row is one step, and a
step holds what its row changed; `resolved` gives whole states back.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from workbench import serial
from workbench.languages import declared
from workbench.notebook import WrongValueError
from workbench.scenarios.beliefs import BELIEFS
from workbench.scenarios.beside import Beside
from workbench.scenarios.branches import Branches
from workbench.scenarios.lanes import lanes_of
from workbench.scenarios.mirrors import mirrored
from workbench.scenarios.run import step_of
from workbench.trace.braking import links_of
from workbench.trace.cut import Cut
from workbench.trace.explain import AGREE, DISAGREE, Explanation
from workbench.trace.fold import Scope, link_scope
from workbench.trace.formulas import Formula
from workbench.trace.gates import SENDER_OF
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, AMQP_1_0, BROKER, CLIENT, Row
from workbench.trace.sentences_hops import process_words
from workbench.trace.sentences_paging import RAM_TARGET
from workbench.trace.words import encodable, in_words, visible

from . import theme
from .frames import fields_of, summary
from .scene_acts import Deed, Deeds
from .scene_chain import STORE, ChainPicture
from .scene_channel import ChannelPicture
from .scene_gauge import GaugePicture, SubscriberPicture, sends_messages
from .scene_link import LinkLine, LinkPicture, say
from .scene_live import AT_GATE, Live, LivePicture, way_of
from .scene_paging import PagingPicture
from .scene_quorum import QuorumPicture
from .scene_valves import ValvesPicture
from .scene_walk import KINDS, Flight, Walk

FORMAT = "amqp-flow-workbench/stage"
VERSION = 1
MOST_ROWS = 5_000
"""Of a longer run the first so many rows are drawn, and the picture says so."""

PLAY_MS = 30_000
"""A run that lasts long is played faster, so that it ends in about this time."""
BESIDE = "beside"
"""The line, drawn nowhere, that says where a misconception and the run part."""
_SLOWED = 120  # how many times slower than in the run time goes by, unless that lasts too long

Doc = dict[str, Any]
_STATE = ("nodes", "links", "lines", "valves", "gauges", "disks", "hops", "counters", "on", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What a scenario's scene shows.

    Attributes:
        name: `link`, `valves`, `quorum`, `chain` or `gauge`.
        idea: the one idea of the picture, by its name in the table of words.
        windows: how many windows of sessions have lines.
        beliefs: misconceptions beside the rule.
    """

    name: str = "link"
    idea: str = "link"
    windows: int = 0
    beliefs: tuple[str, ...] = ()


PLAIN = Layout()
LAYOUTS: Mapping[str, Layout] = {
    "race": Layout(
        idea="race",
        beliefs=tuple(name for name, one in BELIEFS.items() if not one.other_link),
    ),
    "windows": Layout(idea="windows", windows=2),
    "publishers": Layout(name="valves", idea="valves"),
    "chain": Layout(name="chain"),
    "mirrors": Layout(name="chain"),
    "memory": Layout(name="chain"),
    "qpid": Layout(name="gauge"),
    "quorum": Layout(name="quorum", idea="quorum"),
    "paging": Layout(idea="paging"),
    "quorum_chaos": Layout(name="quorum", idea="chaos"),
}


def schema() -> Doc:
    """The JSON Schema of a scene."""
    text = resources.files(__package__).joinpath("scene.schema.json").read_text("utf-8")
    found: Doc = json.loads(text)
    return found


def picture_of(
    run: Any,
    link: Scope | str | None = None,
    rules: Collection[str] | None = None,
    *,
    theirs: bool = False,
) -> LinkPicture:
    """The picture of a run at its beginning.

    Args:
        run: a run, a part of one, or rows in order of `seq`.
        link: the link whose number line comes first, or its name; the busiest if None.
        rules: names of misconceptions beside the rule; those of the scenario if None.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """
    if isinstance(run, Live):
        walk = Walk(run.rows, run.cut, AT_GATE)
        here = [one for one in walk.links if one.connection == run.connection]
        return LivePicture(walk, here[::-1], run)
    walk = Walk(_rows(run), run if isinstance(run, Cut) else None)
    layout = layout_of(run)
    if layout.name == "chain":
        preset = run.world.preset
        initial = {
            AMQP_0_9_1: preset.process_credit,
            AMQP_1_0: preset.publisher_credit,
            STORE: preset.store_credit,
        }
        stored = bool(run.parameters.get("persistent"))
        # One that has died during the run stood there at its beginning.
        mirrors = dict.fromkeys(f"mirror:{name}" for name in mirrored(run.world))
        return ChainPicture(
            walk, lanes_of(run.world), initial, stored=stored, mirrors=tuple(mirrors)
        )
    # Of a trace of several protocols that is drawn which the opened row is about.
    about = run.row.connection if isinstance(run, Cut) else None
    near = [row for row in walk.rows if about in (None, row.connection)]
    if isinstance(run, Cut) and run.row.protocol == AMQP_0_10:
        opened = link_scope(run.row)
        if opened is not None:
            return SubscriberPicture(walk, _chosen(walk, opened))
    if any(sends_messages(row) for row in near) or layout.name == "gauge":
        return GaugePicture(walk, about)
    links = _chosen(walk, link)
    if any(row.kind == RAM_TARGET for row in walk.rows):
        return PagingPicture(walk)
    if links and any(
        row.kind == "message.subscribe" or sends_messages(row, BROKER) for row in near
    ):
        return SubscriberPicture(walk, links)
    if (about or not links) and any(row.protocol == AMQP_0_9_1 for row in near):
        return ChannelPicture(walk)
    if layout.name == "quorum":
        cluster = run.world.broker.cluster
        groups = () if cluster is None else tuple(cluster.groups.values())
        leader = groups[0].first_leader if groups else None
        nodes = () if cluster is None else cluster.nodes
        return QuorumPicture(walk, nodes, leader or "", rules or (), theirs=theirs)
    publishes = [one for one in links if one.link_sender == CLIENT]
    if layout.name == "valves" and publishes:
        return ValvesPicture(walk, publishes[0])
    beliefs = layout.beliefs if rules is None else rules
    if getattr(run, "parameters", {}).get("rule", "spec") != "spec":
        beliefs = ()  # this sender has a rule of its own: the right one is not in the rows
    beliefs = tuple(beliefs)
    return LinkPicture(walk, links, windows=layout.windows, beliefs=beliefs, theirs=theirs)


def layout_of(run: Any) -> Layout:
    """What is drawn of a run, or of rows."""
    scenario = getattr(getattr(run, "scenario", None), "name", "")
    # Where a window of recorded rows was used up, it is what they are about.
    if not scenario and any(
        (r.ledger or {}).get("remote_incoming_window") == 0 for r in _rows(run)
    ):
        return replace(LAYOUTS["windows"], windows=1)
    return LAYOUTS.get(scenario, PLAIN)


def _rows(run: Any) -> Sequence[Row]:
    """The rows that are drawn."""
    rows: Sequence[Row] = list(getattr(run, "rows", run))
    return rows[:MOST_ROWS]


def _chosen(walk: Walk, wanted: Scope | str | None) -> list[Scope]:
    """Links in the order in which their lines are shown."""
    links = list(dict.fromkeys([*links_of(walk.rows), *walk.links]))
    if wanted is None:
        return links
    first = [one for one in links if wanted in (one, one.link)]
    if not first:
        listed = ", ".join(str(one.link) for one in links) or say("cannot.none")
        raise WrongValueError(say("cannot.no-link", link=repr(wanted), listed=listed))
    return first + [one for one in links if one not in first]


class Strip:
    """The steps and frames of one run: every branch of a scene is made from one.

    Args:
        run: a run, a part of one, or rows in order of `seq`.
        link: the link whose number line comes first.
        octets: whether frames carry their octets.
        acts: names of the acts that are offered; all if None.
        rules: names of misconceptions beside the rule; those of the scenario if None.
        beside: a misconception that is no rule of the picture's lines, beside what the rows make.
        theirs: the rule shown is the room's, and whoever looks is its trainer.
    """

    def __init__(
        self,
        run: Any,
        *,
        link: Scope | str | None = None,
        octets: bool = True,
        acts: Collection[str] | None = None,
        rules: Collection[str] | None = None,
        beside: Beside | None = None,
        theirs: bool = False,
    ) -> None:
        self.run = run
        self.beside, self.theirs = beside, theirs
        # What is opened in a trace is told by its rows, what is played or live by its steps.
        self._is_slice = isinstance(run, Cut)
        self._flown: list[Doc] = []  # what set out at the row taken last
        self.picture = picture = picture_of(run, link, rules, theirs=theirs)
        self.walk = walk = picture.walk
        rows = walk.rows
        self.deeds = Deeds(run, picture, acts) if hasattr(run, "scenario") else None
        legal = run.legal_each(len(rows)) if self.deeds else []
        self.frames: list[tuple[int, Doc]] = []
        self.steps: list[Doc] = []
        self.states: list[Doc] = []
        by_begin: dict[int, list[Flight]] = {}
        for flight in walk.flights:
            by_begin.setdefault(flight.begun, []).append(flight)
        self._on: set[tuple[str, str]] = set()
        for flight in by_begin.get(-1, ()):
            self._fly(flight, octets=octets)
        before: Doc = {}
        dead: set[str] = set()
        for row in walk:
            picture.take(row)
            self._switch(row)
            if self.deeds is not None:
                self.deeds.take(row)
            if row.is_death:
                dead.add(row.vantage)
            begun = len(self.frames)
            for flight in by_begin.get(walk.place, ()):
                self._fly(flight, octets=octets)
            self._flown = [doc for _, doc in self.frames[begun:]]
            state = picture.state()
            for name in dead & state["nodes"].keys():
                state["nodes"][name] |= {
                    "down": True, "sub": say("party.died"), "facts": [], "items": None,
                    "blocked": None, "going": None,
                }  # fmt: skip
            if self.deeds is not None:
                self._acts(state, legal[walk.place] if walk.place < len(legal) else {})
            if beside is not None:
                rule = {"differs": beside.differs(row.seq, theirs=theirs)}
                state["lines"] = {**state["lines"], BESIDE: {"rules": {beside.name: rule}}}
            self.steps.append(self._step(row, changes(before, state)))
            self.states.append(state)
            before = state
        for place in _turns([row.t_us for row in rows], self.steps, self.states):
            self.steps[place]["mark"] = True
        if isinstance(picture, QuorumPicture | PagingPicture):
            self.frames += picture.writes()
            if isinstance(picture, QuorumPicture):
                self.frames += picture.replies()
            self.frames.sort(key=lambda one: one[1]["path"][0][0])
        nodes = picture.head()["nodes"]
        often = Counter(str(node["name"]) for node in nodes)
        # Of two boxes of one name it is told whose each is: the reader of c1.
        named = {one["id"]: str(one["name"]) for one in nodes if often[one["name"]] == 1}
        for step, row in zip(self.steps, rows, strict=True):
            step["who"] = named.get(row.vantage) or process_words(row.vantage)
        self._complete = {flight.row.frame_id: flight.ended for flight in walk.flights}
        if not rows:  # there is a picture all the same
            self.states.append(picture.state())
            self.steps.append({"t": 0.0, "sentence": say("scene.empty"), **picture.state()})

    def _fly(self, flight: Flight, *, octets: bool) -> None:
        """Draw a frame, if its wire is shown."""
        place = self.picture.of_frame(flight)
        if place is not None:
            self.frames.append((flight.begun, frame_doc(flight, place, octets=octets)))

    def _on_disc(self, row: Row) -> str:
        """What a disc that sets out at a row shows, where the sentence calls it by another number.

        A sentence has the delivery-id, which is in the frame; a link's line has delivery-counts. Of
        a trace nothing is said: which lines are drawn depends on where its slice begins, and the
        words do not.
        """
        if self.deeds is None:
            return ""
        delivery = (row.frame or {}).get("delivery_id")
        counts = {line.id for line in self.picture.lines if isinstance(line, LinkLine)}
        cells = [doc["cell"] for doc in self._flown if doc.get("cell", {}).get("line") in counts]
        if row.kind != "transfer" or delivery is None or not cells:
            return ""
        number = serial.advanced(0, cells[0]["at"])
        return "" if number == delivery else say("frame.on-line", number=near_seam(str(number)))

    def _acts(self, state: Doc, legal: Mapping[str, str | None]) -> None:
        assert self.deeds is not None
        state["off"] = self.deeds.off(legal)
        for place, knobs in self.deeds.knobs().items():
            node = state["nodes"].get(place, state["nodes"].get(BROKER))  # the broker has the disks
            if node is not None:
                node["knobs"] = node.get("knobs", {}) | knobs
        state["on"] = {
            deed.id: on
            for deed in self.deeds.items.values()
            if deed.undo is not None
            for on in [self._is_on(deed, state)]
        }

    def _is_on(self, deed: Deed, state: Doc) -> bool:
        if deed.spec.name == "crash":
            return bool(state["nodes"].get(deed.about, {}).get("down"))
        if deed.spec.name == "cut":
            return bool(state["links"].get(deed.about, {}).get("cut"))
        if deed.spec.name == "hold":
            sender = SENDER_OF[str(deed.given["direction"])]
            return (deed.given["connection"], sender) in self.walk.gates.closed
        return (deed.spec.name, deed.about) in self._on

    def _switch(self, row: Row) -> None:
        """Take note of what is on or off after a row, by act and what it is done to."""
        act, names, on = _switched(row)
        for about in names:
            if on:
                self._on.add((act, about))
            else:
                self._on.discard((act, about))

    def _step(self, row: Row, state: Doc) -> Doc:
        told = self.walk.explanation
        assert told is not None
        remark = self.picture.remark()
        number = self._on_disc(row)
        if self.beside is not None:
            remark = f"{remark} {self.beside.told(row.seq, theirs=self.theirs)}".strip()
        sentence = told.sentence or row.event
        if "frame_id" in row.extra:  # of a hand that holds a frame or lets it go
            sentence = self.by_name(sentence)
        sentence = " ".join(filter(None, [sentence, number, remark]))
        step: Doc = {"t": self.walk.times[self.walk.place]}
        if self._is_slice:
            step["row"] = row.seq
        if not self.picture.is_small(row):
            step["sentence"] = sentence
        if is_marked(told) or remark or _commits(state):
            step["mark"] = True
        step["in_words"] = self.picture.words()
        if told.formulas:
            step["formula"] = formula(told.formulas[0], told)
        elif self.walk.place:
            step["formula"] = None
        if row.is_frame and row.frame_id is not None:
            step["frame"] = str(row.frame_id)
        if row.event == "action":
            step["mine"] = True
        return step | state

    def by_name(self, text: str) -> str:
        """A text in which frames are called as in the picture, which shows no id."""
        names = {doc["id"]: doc.get("short", doc["name"]) for _, doc in self.frames}
        return re.sub(r"(?i)\bframe (\d+)", lambda found: names.get(found[1], found[0]), text)

    def parted(self, keeps: int) -> list[Doc]:
        """Frames that a branch has for itself which shares so many steps with its parent."""
        return [
            doc
            for place, doc in self.frames
            if place >= keeps or (doc["path"][-1][1] < 1 or self._ends(place, doc) >= keeps)
        ]

    def _ends(self, place: int, doc: Doc) -> int:
        if not doc["id"].isdecimal():
            return place if doc["path"][-1][0] < self.walk.times[place] else len(self.steps)
        ended = self._complete.get(int(doc["id"]))
        return len(self.steps) if ended is None else ended

    @property
    def ends(self) -> float:
        """When the last thing happens, ms."""
        last = self.walk.times[-1:] or [0.0]
        return max([*last, *(doc["path"][-1][0] for _, doc in self.frames)])


def _switched(row: Row) -> tuple[str, tuple[str, ...], bool]:
    """What a row switches on or off: the act, what it is done to, and whether it is on now.

    An act calls a message store `store`, or does not name it where it can be done to nothing else.
    """
    if row.event in ("alarm-set", "alarm-clear"):
        return "alarm", (row.kind or "",), row.event == "alarm-set"
    about = (row.vantage.rpartition("@")[2] if "@" in row.vantage else row.queue or "",)
    if row.vantage.startswith("store:"):
        about = ("", "store")
    if row.event == "note" and row.kind in ("stalled", "resumed"):
        return "stall", about, row.kind == "stalled"
    if row.event == "note" and row.kind in ("cut-off", "mended", "down"):
        return "cut_off", about, row.kind == "cut-off"
    return "", (), False


def is_marked(told: Explanation) -> bool:
    """Whether a step is worth stopping at. That ends differ while a frame flies is no news."""
    return any(reason not in (AGREE, DISAGREE) for reason in told.reasons)


def _commits(state: Doc) -> bool:
    """Whether a step's changes commit an entry."""
    return any("commit" in line for line in state.get("lines", {}).values())


def _turns(times_us: Sequence[int], steps: Sequence[Doc], states: Sequence[Doc]) -> set[int]:
    """Steps that block somebody or let him go; what is over in the same moment blocked nobody."""
    # By party and moment: as what it was blocked before, the last turn, and as what it is then.
    found: dict[tuple[str, int], tuple[Any, int, Any]] = {}
    for place, (t_us, step) in enumerate(zip(times_us, steps, strict=True)):
        for name, node in step.get("nodes", {}).items():
            if "blocked" in node:
                before = states[place - 1]["nodes"].get(name, {}).get("blocked") if place else ...
                first, *_ = found.get((name, t_us), (before,))
                found[name, t_us] = first, place, node["blocked"]
    return {place for before, place, now in found.values() if before != now}


def formula(rule: Formula, told: Explanation) -> Doc:
    """A formula with its numbers, the rule in words, and its clause."""
    rules = [part.strip() for part in rule.symbolic.split(";")]
    numbers = [part.strip() for part in rule.numbers.split(";")]
    found: Doc = {"text": rule.numbers, "note": rule.symbolic}
    if len(rules) == len(numbers):  # the last of several is the one that the step is about
        name, _, right = rules[-1].partition(" := ")
        name = name.removesuffix("_snd").removesuffix("_rcv")
        found = {"text": f"{name} := {numbers[-1]}", "note": right}
    found["text"] = near_seam(found["text"])
    if told.clause:
        found["clause"] = told.clause
        if theme.clause_title(told.clause):
            found["clause"] += f" {theme.clause_title(told.clause)}"
    return found


def frame_doc(flight: Flight, place: Doc, *, octets: bool = True) -> Doc:
    """A frame on its way, where `place` says."""
    row = flight.row
    frame = row.frame or {}
    words = summary(row)
    doc: Doc = {
        "id": str(row.frame_id),
        **place,
        "kind": KINDS.get(row.kind or "", "write"),
        "name": visible(": ".join(filter(None, [row.kind or say("frame.unnamed"), words])), 200),
        "path": [list(point) for point in flight.path],
    }
    if flight.lost:
        doc["lost"] = True
    if row.kind == "transfer" and "cell" in place:
        number = str(serial.advanced(0, place["cell"]["at"]))
        told = near_seam(number)
        # What the axis writes by its distance from the seam has no room in the mark.
        doc |= {"text": number[-3:]} if told == number else {"label": told}
        doc["short"] = f"transfer {told}"
    if row.kind == "basic.deliver":
        number = str(row.fields.get("delivery_tag", ""))
        doc |= {"text": number[-3:], "short": say("frame.delivery", number=number)}
    if row.kind in ("basic.ack", "basic.nack", "basic.reject"):
        up_to = "≤ " if row.fields.get("multiple") else ""
        doc["label"] = f"{up_to}{row.fields.get('delivery_tag', '')}"
        doc["short"] = f"{(row.kind or '').removeprefix('basic.')} {doc['label']}"
    if row.kind == "flow":
        doc["label"] = _label(frame)
        doc["short"] = f"flow {doc['label']}"
    elif row.kind and row.kind not in KINDS:
        doc["label"] = doc["short"] = row.kind
    if octets and row.raw:
        fields = fields_of(row)
        doc["octets"] = {"hex": row.raw.hex(), "fields": fields}
    return doc


def _label(frame: Mapping[str, Any]) -> str:
    """What a flow says of a link, or of a session, in a few characters."""
    if frame.get("link_credit") is None:
        words = f"session: {frame.get('next_incoming_id', '–')} + {frame.get('incoming_window')}"
    else:
        drain = " drain" if frame.get("drain") else ""
        words = f"{frame.get('delivery_count', '–')} + {frame['link_credit']}{drain}"
    return near_seam(words)


_SEAM = "2³²"


def near_seam(text: str) -> str:
    """A text whose numbers just below 2^32 are written by their distance from it, as on an axis."""
    return re.sub(r"\b429496\d{4}\b", _from_seam, text)


def _from_seam(number: re.Match[str]) -> str:
    below = serial.MODULUS - int(number[0])
    return f"{_SEAM}−{below}" if 0 < below <= 1000 else number[0]


# -- changes ----------------------------------------------------------------------------------


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Doc:
    """What has to be merged into `before` to make it `after`; what is gone becomes None."""
    found: Doc = {}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            inner = changes(old, value)
            if inner:
                found[key] = inner
        elif key not in before or old != value or type(old) is not type(value):
            found[key] = value
    for key in before:
        if key not in after:
            found[key] = None
    return found


def merged(before: Mapping[str, Any], step: Mapping[str, Any]) -> Doc:
    """`before` with a step's changes in it, as the stage merges them."""
    found = dict(before)
    for key, value in step.items():
        old = found.get(key)
        both = isinstance(value, dict) and isinstance(old, dict)
        found[key] = merged(old, value) if both else value
    return found


def resolved(scene: Doc, branch: int = 0) -> Iterator[Doc]:
    """The whole state at each step of a branch; the reference reader of a scene."""
    by_id = {one["id"]: one for one in scene["branches"]}
    state: Doc = {}
    for step in steps_of(by_id, branch):
        state = merged(state, {key: step[key] for key in _STATE if key in step})
        yield state


def steps_of(branches: Mapping[int, Doc], branch: int) -> list[Doc]:
    """All steps of a branch, those that it shares with its parent first."""
    one = branches[branch]
    if one["parent"] is None:
        return list(one["steps"])
    return steps_of(branches, one["parent"])[: one["keeps"]] + one["steps"]


def parts_at(run: Any, rule: str, link: Scope | str | None = None) -> int | None:
    """Place of the first step at which a misconception and the rule give different credit.

    Args:
        run: a run, or rows in order of `seq`.
        rule: name of the misconception.
        link: the link that it is about, or its name; the busiest if None.
    """
    states = Strip(run, link=link, octets=False, rules=[rule]).states
    for place, state in enumerate(states):
        for line in state["lines"].values():
            if line.get("rules", {}).get(rule, {}).get("differs"):
                return place
    return None


# -- the whole --------------------------------------------------------------------------------


class SceneMaker:
    """Makes the scene of a tree of runs, and of each branch once.

    Args:
        branches: the runs; a run, a part of one, or rows, alone are a tree of one.
        note: what is to be said of the rows instead of the one idea.
        rule: the misconception that is shown at first.
        **drawn: as of `Strip`; where there is one `beside`, no other rule is shown.
    """

    def __init__(self, branches: Any, *, note: str = "", rule: str = "", **drawn: Any) -> None:
        self.note = note
        self.branches = branches if isinstance(branches, Branches) else Branches(branches)
        self._beside: Beside | None = drawn.get("beside")
        if self._beside is not None:
            drawn["rules"], rule = (), self._beside.name
        self._drawn, self._rule = drawn, rule
        self._strips: dict[int, Strip] = {}

    def strip(self, number: int) -> Strip:
        """The steps of a branch's run."""
        if number not in self._strips:
            run = self.branches.runs[number]
            self._strips[number] = Strip(run, **self._drawn)
        return self._strips[number]

    @property
    def begin(self) -> int:
        """Place of the step at which the lesson begins: after the set-up."""
        start = getattr(self.branches.runs[0], "start_seq", 0)
        return max(0, min(int(start), len(self.strip(0).steps) - 1))

    def scene(self, title: str = "") -> Doc:
        """Everything, with all branches made so far."""
        branches = [self.branch(number) for number in range(len(self.branches.runs))]
        return self.head(title) | {"branches": branches}

    def head(self, title: str = "") -> Doc:
        """A scene without its branches."""
        root = self.strip(0)
        # What an act brought, a session or a party, is drawn where that branch is shown.
        now = self.strip(self.branches.current)
        run = self.branches.runs[0]
        scenario = getattr(run, "scenario", None)
        begin = self.begin
        ends = root.ends
        played = ends - (root.walk.times[begin] if root.walk.times else 0.0)
        idea = self.note or say(f"idea.{root.picture.idea or layout_of(run).idea}")
        rows = getattr(run, "rows", run)
        if len(rows) > MOST_ROWS:
            idea += f" {say('scene.first', drawn=MOST_ROWS, all=len(rows))}"
        if left_out := now.picture.left_out:
            idea += f" {say('scene.left-out', n=left_out)}"
        name, first = (visible(rows[0].run, 200), step_of(rows[0])) if len(rows) else ("", 1)
        found: Doc = {
            "format": FORMAT,
            "version": VERSION,
            "title": encodable(title)
            or getattr(scenario, "title", "")
            or name
            or say("scene.untitled"),
            "idea": idea,
            **now.picture.head(),
            "ends": ends,
            "first": first,
        }
        if self._beside is not None:
            found["rules"] = [{"id": self._beside.name, "name": declared(self._beside.name)}]
        if self._rule:
            found["rule"] = self._rule
        if self._drawn.get("theirs"):
            found["theirs"] = True
        if now.deeds is not None:
            found |= {"acts": now.deeds.documents(), "shares": True}
        if begin:
            sent = sum(1 for place, _ in root.frames if place <= begin)
            found |= {"begin": begin, "set_up": say("scene.set-up", n=sent)}
        if not all(row.timed for row in root.walk.rows):
            found["untimed"] = True
        if played * _SLOWED > PLAY_MS:
            found["pace"] = played / PLAY_MS
        return found

    def branch(self, number: int) -> Doc:
        """A branch: what it does not share with its parent."""
        strip = self.strip(number)
        parent = self.branches.parent(number)
        fork = self.branches.fork(number) if parent is not None else None
        keeps = 0 if fork is None else fork + 1
        first = strip.steps[keeps:]
        if parent is not None and first:
            # The page goes on from what the parent shows, which knows nothing of this branch.
            last = self.strip(self.branches.owner(parent, keeps - 1)) if keeps else strip
            before = last.states[keeps - 1] if keeps else {}
            state = changes(before, strip.states[keeps])
            told = {key: value for key, value in first[0].items() if key not in _STATE}
            first = [told | state, *first[1:]]
        rows = strip.walk.rows
        acts = [
            {"t": strip.walk.times[place], "label": strip.by_name(act_words(row))}
            for place, row in enumerate(rows)
            if row.event == "action" and place >= keeps
        ]
        label = say("scene.as-given") if parent is None else acts[0]["label"]
        return {
            "id": number,
            "parent": parent,
            "keeps": keeps,
            "at": strip.walk.times[keeps - 1] if keeps else 0,
            "label": label,
            "acts": acts,
            "frames": strip.parted(keeps),
            "steps": first,
            "ends": strip.ends,
        }


def act_words(row: Row) -> str:
    """An act of the learner's in a few words: `grant 4`, `accept 1, queue q1`, `hold frame 14`."""
    done = str(row.kind or "").replace("_", " ")
    if (frame := row.extra.get("frame_id")) is not None:
        return f"{done} frame {frame}"
    (_, first), *rest = [
        ("direction", way_of(value)) if name == "direction" and value else in_words(name, value)
        for place, (name, value) in enumerate(row.extra.items())
        if not place or value not in (0, None, "")
    ] or [("", "")]
    # Names of one letter are those of two ends, which their values tell.
    more = [f"{name if len(name) > 1 else ''} {value}".lstrip() for name, value in rest]
    return visible(", ".join([f"{done} {first}".rstrip(), *more]), 60)


def scene(
    run: Any,
    *,
    title: str = "",
    link: Scope | str | None = None,
    octets: bool = True,
    note: str = "",
) -> Doc:
    """The scene of a run, of a part of one, of a tree of runs, or of rows.

    Args:
        run: a run, a `Cut`, `Branches`, or rows in order of `seq`.
        title: what the picture is called; the scenario's title or the run's name if empty.
        link: the link whose number line comes first, or its name.
        octets: whether frames carry their octets.
        note: what is to be said of the rows instead of the one idea.
    """
    return SceneMaker(run, link=link, octets=octets, note=note).scene(title)


def packed(doc: Mapping[str, Any]) -> bytes:
    """A scene, or a reply, as gzipped JSON: what the stage is sent."""
    text = json.dumps(doc, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return gzip.compress(text.encode(), mtime=0)
