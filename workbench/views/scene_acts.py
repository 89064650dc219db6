"""What a learner may do on the picture: a scenario's acts, each with its place and its kind.

The scenario declares its acts once, with range and meaning. Here stands on which mark each of them
is done; an act with a choice (which queue, which node) becomes one mark for each choice there is.
So are its parameters, for the form by which a run is begun anew.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from workbench.languages import has
from workbench.scenarios.action import ActionError, Value, refusal
from workbench.scenarios.declare import ActionSpec, Kind, Parameter, ParameterError
from workbench.scenarios.run import Run
from workbench.trace.fold import Scope
from workbench.trace.gates import SENDER_OF
from workbench.trace.schema import BROKER, CLIENT, Row
from workbench.trace.words import visible

from .scene_link import LinkLine, LinkPicture, WindowLine, say
from .scene_walk import KINDS

is_named = partial(has, "scenes")
Doc = dict[str, Any]
MOST_LATENCY_MS = 50
LEAST_TOP = 10  # of a knob
MOST_TOP = 500

# What undoes an act, so that the two are one mark that is on or off.
UNDONE_BY = {"stall": "resume", "alarm": "clear", "crash": "restart", "cut": "heal",
             "cut_off": "mend"}  # fmt: skip
# Acts on a frame that waits for a hand, by its kind.
ARRIVALS = {"transfer_arrives": "transfer", "flow_arrives": "flow"}
RECEIVERS = ("grant", "open_window", "drain", "echo", "stop", "acknowledge", "flow", "send_flow",
             "get", "take", "leave", "detach")  # fmt: skip
SENDERS = ("publish", "send_transfer", "send_other")
CLIENTS = ("ignore_window", "begin_session", "open_session")
# Done to no mark of the picture: buttons under it.
BELOW = ("set_policy", "alarm")
DISKS = ("stall", "slow", "slow_disk")

IN_MS = ("latency_us", "fsync_us")  # shown in ms
_MOST_US = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One mark of the picture and the act that it does.

    Attributes:
        id: of the mark.
        spec: the scenario's act.
        given: arguments that the mark stands for.
        amount: the argument that the hand sets, if there is one.
        undo: the act that a toggle does when it is on.
        doc: the mark as the scene describes it.
        link: whose counters say where a knob stands.
        about: the name that the act is done to, for a toggle.
    """

    id: str
    spec: ActionSpec
    given: Mapping[str, Value] = field(default_factory=dict)
    amount: str | None = None
    undo: ActionSpec | None = None
    doc: Doc
    link: Scope | None = None
    about: str = ""

    def act(self, value: Any) -> tuple[str, dict[str, Any]]:
        """The scenario's act and its arguments, for what the hand did.

        Raises:
            ActionError: the value is no amount.
        """
        if self.doc["kind"] == "toggle" and not value and self.undo is not None:
            known = {parameter.name for parameter in self.undo.parameters}
            return self.undo.name, {key: one for key, one in self.given.items() if key in known}
        if self.amount is None:
            return self.spec.name, dict(self.given)
        if self.doc["kind"] == "frame":
            return self.spec.name, {**self.given, self.amount: frame_number(value)}
        scale = _scale(self.amount)
        amount = amount_of(self.id, value, scale)
        parameter = next(one for one in self.spec.parameters if one.name == self.amount)
        try:
            parameter.check(amount)
        except ParameterError:
            # The scenario would tell the name in code, and microseconds where ms were typed.
            legal, unit = parameter.legal, ""
            if scale > 1:
                unit = " ms"
                legal = refusal("legal.range", low=0, high=self.doc["limit"], unit=unit)
            told = {"name": self.doc["name"], "value": f"{value}{unit}", "legal": legal}
            raise ActionError(refusal("value.illegal", **told)) from None
        return self.spec.name, {**self.given, self.amount: amount}


def amount_of(act: str, value: Any, scale: int = 1) -> int:
    """The amount that the hand set for an act, times `scale`.

    Raises:
        ActionError: it is no number, or not a whole one.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        given = say("cannot.nothing") if value is None else f"{value!r:.40}"
        raise ActionError(say("cannot.no-amount", act=act, value=given))
    amount = round(value * scale)
    if not math.isclose(amount, value * scale):
        raise ActionError(say("cannot.no-whole", act=act, value=value))
    return amount


def frame_number(value: Any) -> int:
    """The number of a frame, from its id.

    Raises:
        ActionError: it is no id of a frame.
    """
    try:
        return int(str(value))
    except ValueError:
        raise ActionError(say("cannot.no-frame", value=f"{value!r:.40}")) from None


class Deeds:
    """All marks of a picture, by id.

    Args:
        run: whose acts.
        picture: where they stand; it has gone over all rows.
        acts: names of the acts that are offered; all if None.
    """

    def __init__(self, run: Any, picture: LinkPicture, acts: Collection[str] | None = None) -> None:
        self.run = run
        self.picture = picture
        self._specs = {spec.name: spec for spec in run.scenario.actions}
        self._names = self._existing()
        self.items: dict[str, Deed] = {}
        self._stands: dict[str, float] = {}  # by mark, the amount that was set last
        for spec in run.scenario.actions:
            if acts is not None and spec.name not in acts:
                continue
            for deed in self._deeds(spec):
                self.items[deed.id] = deed

    def documents(self) -> list[Doc]:
        """The marks as the scene describes them."""
        return [deed.doc for deed in self.items.values()]

    def act(self, name: str, value: Any, step: int) -> tuple[str, dict[str, Any]]:
        """The scenario's act and its arguments, for what was done on the picture after a step.

        Raises:
            ActionError: there is no such mark, or the value is none for it; the text says why.
        """
        deed = self.items.get(name)
        if deed is None:
            listed = ", ".join(self.items) or say("cannot.none")
            raise ActionError(say("cannot.no-act", act=f"{name!r:.40}", listed=listed))
        if deed.spec.name in ARRIVALS:
            return self._arrival(frame_number(value), step), {}
        return deed.act(value)

    def _arrival(self, number: int, step: int) -> str:
        """The act by which a frame that waits arrives: the first of its way alone."""
        waiting = [
            flight.row
            for flight in self.picture.walk.flights
            if flight.begun <= step and (flight.ended is None or flight.ended > step)
        ]
        mine = next((row for row in waiting if row.frame_id == number), None)
        if mine is None:
            raise ActionError(say("cannot.not-in-flight"))
        first = next(row for row in waiting if row.from_peer == mine.from_peer)
        if first is not mine:
            raise ActionError(say("cannot.not-first", kind=first.kind))
        for act, kind in ARRIVALS.items():
            if kind == mine.kind:
                return act
        raise ActionError(say("cannot.by-itself", kind=mine.kind))

    def off(self, legal: Mapping[str, str | None]) -> dict[str, str | None]:
        """By mark, why it is not legal now, or None."""
        found: dict[str, str | None] = {}
        for deed in self.items.values():
            why = legal.get(deed.spec.name)
            if deed.undo is not None and why is not None:
                why = legal.get(deed.undo.name)
            found[deed.id] = why
        return found

    def take(self, row: Row) -> None:
        """Take note of the amount that an act has set."""
        if row.event != "action" or not _sets(str(row.kind)):
            return
        for deed in self.items.values():
            if (
                deed.spec.name == row.kind
                and deed.amount in row.extra
                and all(row.extra.get(name) in (one, "all") for name, one in deed.given.items())
            ):
                self._stands[deed.id] = _shown(deed.amount, int(row.extra[deed.amount]))

    def knobs(self) -> dict[str, dict[str, float]]:
        """By node, where its knobs stand: by a counter, else by what was set last."""
        found: dict[str, dict[str, float]] = {}
        for deed in self.items.values():
            if deed.doc["kind"] == "knob":
                value: float | None = self.picture.knob(deed.spec.name, deed.link)
                if value is None:
                    value = self._stands.get(deed.id, max(0, deed.doc["min"]))
                found.setdefault(deed.doc["on"], {})[deed.id] = value
        return found

    # -- inside -----------------------------------------------------------------------------

    def _existing(self) -> dict[str, set[str]]:
        """By argument, what there is in the picture."""
        walk = self.picture.walk
        links = {str(link.link) for link in walk.links}
        queues = {str(row.queue) for row in walk.rows if row.queue}
        nodes = set(self.picture.nodes)
        senders = {name.partition(":")[2] for name in nodes if self.picture.role(name) == "sender"}
        return ({"producer": senders} if len(senders) > 1 else {}) | {
            "queue": (queues | links | self.picture.things) - set(self.picture.unused),
            "link": links,
            "consumer": {name.partition(":")[2] for name in self.picture.clients},
            "node": nodes | self.picture.things,
            "a": nodes,
            "b": nodes,
            "resource": {"memory", "disk"},
        }

    def _deeds(self, spec: ActionSpec) -> Iterator[Deed]:
        if spec.name in UNDONE_BY.values():
            return
        if spec.name in ARRIVALS:
            yield self._deed(spec, {}, None, alone=True)
            return
        amount = _amount(spec)
        choices = list(self._choices(spec))
        for given in choices:
            yield self._deed(spec, given, amount, alone=len(choices) == 1)
        if spec.name == "hold":
            yield from self._gates(spec)

    def _gates(self, spec: ActionSpec) -> Iterator[Deed]:
        """Everything that goes one way, held or let go."""
        for wire in self.picture.wires:
            for direction, sender in SENDER_OF.items():
                given: dict[str, Value] = {"direction": direction, "connection": wire}
                doc = {
                    "id": f"hold:{wire}:{direction}",
                    "kind": "toggle",
                    "on": wire,
                    "name": say(f"way.hold-{sender}") + self._of(wire),
                    "undo": say(f"way.release-{sender}") + self._of(wire),
                }
                undo = self._specs["release"]
                yield Deed(id=str(doc["id"]), spec=spec, given=given, undo=undo, doc=doc)

    def _of(self, connection: Value) -> str:
        """Which connection an act is about, where there are several."""
        several = connection is not None and len(self.picture.wires) > 1
        return f" ({visible(str(connection))})" if several else ""

    def _choices(self, spec: ActionSpec) -> Iterator[dict[str, Value]]:
        """Arguments for each thing that the act can be done to."""
        lists: list[list[tuple[str, Value]]] = []
        for one in spec.parameters:
            if one.name == "connection" and spec.name == "set_latency":
                lists.append([("connection", wire) for wire in self.picture.wires])
            elif one.name in self._names and one.choices:
                there = [choice for choice in one.choices if choice in self._names[one.name]]
                lists.append([(one.name, choice) for choice in there])
            elif one.name in ("policy", "mode"):
                lists.append([(one.name, choice) for choice in one.choices])
        order = {name: place for place, name in enumerate(self.picture.nodes)}
        for combination in itertools.product(*lists):
            given = dict(combination)
            if "a" not in given or order[str(given["a"])] < order[str(given["b"])]:
                yield given

    def _deed(
        self, spec: ActionSpec, given: dict[str, Value], amount: Parameter | None, *, alone: bool
    ) -> Deed:
        undo = self._specs.get(UNDONE_BY.get(spec.name, ""))
        about = [str(value) for name, value in given.items() if name != "connection"]
        link = self._link(given, sends=spec.name in SENDERS)
        kind = self._kind(spec, amount, undo)
        doc: Doc = {"id": ":".join([spec.name, *map(str, given.values())]), "kind": kind}
        doc["on"] = self._place(spec, given, link, kind)
        if doc["on"].startswith("disk ") or doc["on"] == "queue":
            kind = doc["kind"] = kind if undo is not None else "knob" if amount else "button"
        which = [] if alone else about
        doc["name"] = _name(spec.name, which) + self._of(given.get("connection"))
        if undo is not None:
            doc["undo"] = _name(undo.name, which)
        if spec.name in ARRIVALS:
            doc["about"] = KINDS[ARRIVALS[spec.name]]
        elif kind == "frame":
            doc["while"] = "flying" if spec.name == "hold" else "held"
        if amount is not None and kind in ("knob", "handle"):
            doc |= {"min": amount.minimum or 0, "max": self._top(spec, amount)}
            if amount.maximum is not None:
                doc["limit"] = amount.maximum // _scale(amount.name)
            if amount.unit:
                doc["unit"] = "ms" if amount.name in IN_MS else amount.counts
            doc |= self._aims(spec, link)
            first = self._at_first(spec, amount)
            if first is not None and kind == "knob":
                self._stands[doc["id"]] = first
        return Deed(
            id=doc["id"],
            spec=spec,
            given=given,
            amount=amount.name if amount is not None and kind != "button" else None,
            undo=undo,
            doc=doc,
            link=link,
            about="-".join(about),
        )

    @staticmethod
    def _kind(spec: ActionSpec, amount: Parameter | None, undo: ActionSpec | None) -> str:
        if spec.name in ("hold", "release") or spec.name in ARRIVALS:
            return "frame"
        if spec.name in ("set_latency", "slow_way"):
            return "handle"
        if undo is not None:
            return "toggle"
        return "knob" if amount is not None and amount.required else "button"

    def _link(self, given: Mapping[str, Value], *, sends: bool) -> Scope | None:
        """The link that an act is about: the one that is named, or the first that is shown."""
        named = {str(given[name]) for name in ("queue", "link") if name in given}
        walk = self.picture.walk
        for link in walk.links:
            client = walk.ends.get((link.connection, "client"), "")
            if link.link in named or client.partition(":")[2] == given.get("consumer"):
                return link
        if named or "consumer" in given:
            return None
        ours = [one for one in walk.links if one.link_sender == (CLIENT if sends else BROKER)]
        shown = [one for one in self.picture.links if one in ours or sends] or ours
        return shown[0] if shown else None

    def _place(
        self, spec: ActionSpec, given: Mapping[str, Value], link: Scope | None, kind: str
    ) -> str:
        """The id of what the act is done to."""
        nodes, walk = self.picture.nodes, self.picture.walk
        if kind == "frame":
            return "frames"
        if "a" in given:
            return f"{given['a']}-{given['b']}"
        if kind == "handle":
            return str(given.get("connection", next(iter(self.picture.wires), nodes[0])))
        if spec.name in self.picture.places:
            return self.picture.places[spec.name]
        if spec.name in BELOW:
            return "stage"
        if given.get("node") in nodes:
            return str(given["node"])
        about = self.picture.node_about(spec.name, given)
        if about is not None:
            return about
        if spec.name in DISKS and self.picture.layout == "valves":
            return "queue"
        ends = walk.vantages(link) if link is not None else (None, None)
        wanted = ends[0] if spec.name in SENDERS else ends[1] if spec.name in RECEIVERS else BROKER
        if spec.name in CLIENTS and self.picture.clients:
            wanted = self.picture.clients[0]
        return str(wanted) if wanted in nodes else "stage"

    def _top(self, spec: ActionSpec, amount: Parameter) -> int:
        if amount.name == "latency_us":
            return MOST_LATENCY_MS
        given = [
            int(row.extra[amount.name])
            for row in self.picture.walk.rows
            if row.event == "action" and row.kind == spec.name and amount.name in row.extra
        ]
        first = round(2 * (self._at_first(spec, amount) or 0))
        top = max([LEAST_TOP, first, *(2 * number for number in given if number <= MOST_TOP)])
        if amount.unit == "us":
            top = _MOST_US // _scale(amount.name)
        return top if amount.maximum is None else min(top, amount.maximum)

    def _at_first(self, spec: ActionSpec, amount: Parameter) -> float | None:
        """Where the run's parameters put what an act sets; None if they say nothing of it."""
        if not _sets(spec.name):
            return None
        about = spec.name.removeprefix("set_")
        for name in (amount.name, about, f"{about}_{amount.name}"):
            value = str(self.run.parameters.get(name))  # of several queues it may be a list
            if value.isdecimal():
                return _shown(amount.name, int(value))
        return None

    def _aims(self, spec: ActionSpec, link: Scope | None) -> Doc:
        wanted = {"grant": LinkLine, "open_window": WindowLine}.get(spec.name)
        if wanted is None or link is None:
            return {}
        for line in self.picture.lines:
            receiver = self.picture.walk.vantages(link)[1]
            if isinstance(line, wanted) and line.link == link and receiver:
                return {"aims": {"line": line.id, "end": receiver}}
        return {}


def _sets(act: str) -> bool:
    """Whether an act sets an amount that stays; others do something so many times."""
    return act.startswith("set_") or act in DISKS


def _shown(amount: str, value: int) -> float:
    """An amount as the picture shows it."""
    scale = _scale(amount)
    return value / scale if value % scale else value // scale


def _scale(amount: str) -> int:
    return 1000 if amount in IN_MS else 1


PRESET = "preset"
"""By this name the form has the run's preset, before the parameters."""


def parameter_docs(run: Run, as_given: Run) -> list[Doc]:
    """The preset and the parameters of a run as the stage's form shows them.

    Args:
        run: that is shown.
        as_given: the run as given.
    """
    scenario, values, given = run.scenario, run.parameters, as_given.parameters
    preset: Doc = {
        "id": PRESET,
        "name": say("form.preset"),
        "doc": say("form.preset-is"),
        "value": run.preset.name,
        "given": as_given.preset.name,
        "choices": [*scenario.presets],
    }
    found = [preset]
    for one in scenario.parameters:
        doc: Doc = {
            "id": one.name,
            "name": one.label,
            "doc": one.doc,
            "value": values[one.name],
            "given": given[one.name],
        }
        if one.kind is Kind.WHOLE:
            doc |= {"min": one.minimum or 0, "unit": one.counts}
            if one.maximum is not None:
                doc |= {"max": one.maximum, "top": _end(one, given[one.name])}
            if one.default is None and one.preset_field is None:
                doc["free"] = True
        elif one.choices or one.kind is Kind.YES_NO:
            doc["choices"] = list(one.choices) or [True, False]
        found.append(doc)
    return found


def _end(parameter: Parameter, given: Value) -> int:
    """Where a slider ends: some way above what was given; a field beside it takes all there is."""
    least = _LEAST_END.get(parameter.unit, LEAST_TOP)
    return min(parameter.maximum or 0, max(least, 4 * int(given or 0)))


_LEAST_END = {"us": 10_000, "octets": 1_000}


def _name(act: str, about: Collection[str]) -> str:
    """What a mark is called; what has no words here, as an act of a learner's own, as in code.

    Args:
        act: name of the scenario's act.
        about: what it is done to, where there are several.
    """
    if about and is_named(f"act-on.{act}"):
        return say(f"act-on.{act}", about=" ".join(about))
    name = say(f"act.{act}") if is_named(f"act.{act}") else act.replace("_", " ")
    return " ".join([name, *about])


def _amount(spec: ActionSpec) -> Parameter | None:
    """The argument that a hand sets: the first whole number, a required one before others."""
    whole = [
        one
        for one in spec.parameters
        if one.kind is Kind.WHOLE and one.name != "session" and not one.choices
    ]
    if spec.name in ("hold", "release"):
        return next(one for one in whole if one.name == "frame_id")
    return next((one for one in whole if one.required), None)
