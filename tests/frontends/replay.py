"""Plays the client's side of a capture to our broker and compares what the broker says.

A frame of the client is fed only when every broker frame before it in the capture was looked for.
What the broker says is compared by kind, in order per link (or session, or connection), with its
flow-control fields. Not compared: names and numbers that only identify, times, how dispositions are
batched, and what a message contains.

A manifest beside the capture (`NAME.manifest.json`) tells what AMQP 1.0 does not show:

* `preset`: whose rules the broker follows; else it follows from the version in the broker's open;
* `queues`: by name, `ready`: messages in it before the first frame, `single_active`;
* `events`: what happened outside, each just before frame `before` of the capture (counted from 0
  over all frames but protocol headers and heartbeats): `set_alarm`, `clear_alarm`; `publish` a
  number of messages to a `queue`; `stall` it, let it `resume`, `purge` or `delete` it;
* `differences`: those that are known, each a pattern and the reason; they are listed in
  `docs/fidelity.md`.

A capture without a manifest is played with what its frames tell of queues (`inferring.py`); a
window told as 0, and opened again, stands for an alarm.

Our broker answers at once; the real one needs its time, in which the client may go on. So our
broker works only until it has said what the real one had said by then. It works on to its rest
where the capture was quiet for QUIET_US: the real one was at rest too. A client's frame may have
been on its way while the broker sent more: what the broker says before its answer to a flow with
echo or drain is waited for, as far as it comes without that flow. A frame of ours may come some
frames early, by up to EARLY_US on the capture's clock.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench import presets
from workbench.amqp10.frame import Frame, ProtocolHeader, decode_frame
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    SaslMechanisms,
    SaslOutcome,
    Transfer,
)
from workbench.amqp10.scope import NOWHERE
from workbench.broker import Broker
from workbench.capture.importer import import_capture
from workbench.frontends import accept, message_of
from workbench.queues import QueueArguments
from workbench.sim import VirtualClock, Wire
from workbench.trace.taps import Recorder

from .inferring import Inference

SKIPPED = ("heartbeat",)
EARLY_US = 100_000
QUIET_US = 50_000
EVENTS = ("set_alarm", "clear_alarm", "publish", "stall", "resume", "purge", "delete")
PRESETS = {"rmq4.0": ("4.0.", "4.1."), "rmq4.3": ("4.",)}
COMPARED: dict[type, tuple[str, ...]] = {
    SaslOutcome: ("code",),
    Open: ("max_frame_size", "channel_max", "idle_time_out", "offered_capabilities"),
    Begin: ("remote_channel", "next_outgoing_id", "incoming_window", "outgoing_window",
            "handle_max"),
    Attach: ("name", "handle", "role", "snd_settle_mode", "rcv_settle_mode", "source", "target",
             "initial_delivery_count", "max_message_size"),
    Flow: ("next_incoming_id", "incoming_window", "next_outgoing_id", "outgoing_window", "handle",
           "delivery_count", "link_credit", "available", "drain", "echo", "properties"),
    Transfer: ("handle", "delivery_id", "delivery_tag", "message_format", "settled", "more"),
    Detach: ("handle", "closed", "error"),
    End: ("error",),
    Close: ("error",),
}  # fmt: skip


class Puppet:
    """The client's end of a wire: says what it is told and keeps what it hears."""

    vantage = "client:capture"
    from_peer = "client"
    ledger_source = "own"

    def __init__(self) -> None:
        self.heard: deque[Any] = deque()

    def apply(self, item: Any) -> list[Any]:
        self.heard.append(item)
        return []

    def react(self, events: list[Any]) -> None:
        pass

    def scope(self, item: Any, outgoing: bool) -> Any:
        return NOWHERE


@dataclass(slots=True)
class Said:
    """What one side said about one link, session or connection, not yet compared."""

    frames: deque[tuple[int, int, Frame]] = field(default_factory=deque)  # place, time, frame
    outcomes: dict[int, tuple[str, bool]] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """Outcome of a replay.

    Attributes:
        compared: broker frames of the capture that were compared, by kind.
        differences: in words, in order.
    """

    compared: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    differences: list[str] = field(default_factory=list)


def manifest_of(capture: Path) -> dict[str, Any]:
    """The manifest beside a capture; empty if there is none."""
    path = capture.with_name(capture.stem + ".manifest.json")
    return json.loads(path.read_text()) if path.exists() else {}


def preset_of(version: str) -> str:
    """The preset for a broker of that version.

    Raises:
        ValueError: there is none.
    """
    for preset, versions in PRESETS.items():
        if version.startswith(versions):
            return preset
    raise ValueError(
        f"no preset for a broker of version {version!r}; legal: RabbitMQ 4.x, or `preset` in a"
        " manifest beside the capture"
    )


class Replay:
    """One capture against one broker.

    Args:
        capture: the file.
        preset: other rules than the manifest's, to see that they are noticed.
    """

    def __init__(self, capture: Path, preset: presets.Preset | None = None) -> None:
        self.manifest = manifest_of(capture)
        self.rows = [
            row
            for row in import_capture(capture).rows
            if row.event == "observed"
            and row.kind not in SKIPPED
            and row.raw
            and row.protocol == "amqp-1.0"
        ]
        self.items = [_item(row) for row in self.rows]
        self.clock = VirtualClock()
        self.recorder = Recorder("replay", now=lambda: self.clock.now_us)
        self.preset = preset or presets.get(self.manifest.get("preset") or self._version())
        self.broker = Broker(self.clock, self.preset, self.recorder)
        self.wires: dict[str, Wire] = {}
        self.puppets: dict[str, Puppet] = {}
        self.result = Result()
        self.real: dict[tuple[str, str], Said] = defaultdict(Said)
        self.ours: dict[tuple[str, str], Said] = defaultdict(Said)
        self._now_us = 0  # on the capture's clock
        self._seen = Inference(
            (row.connection, row.from_peer == "broker", item)
            for row, item in zip(self.rows, self.items, strict=True)
        )
        events = self.manifest.get("events", ()) if self.manifest else self._happened()
        self._events = deque(events)

    def run(self) -> Result:
        """Play the whole capture."""
        self._declare()
        at = -1  # protocol headers have no place of their own
        for number, (row, item) in enumerate(zip(self.rows, self.items, strict=True)):
            at += not isinstance(item, ProtocolHeader)
            while self._events and self._events[0]["before"] <= at:
                self._settle()
                self._compare()
                self._now_us = row.t_us
                self._happen(self._events.popleft())
            if row.from_peer == "client":
                if number and row.t_us - self.rows[number - 1].t_us >= QUIET_US:
                    self._settle()
                else:
                    self._now_us = row.t_us
                    self._catch_up(self._on_its_way(number))
                self._compare()
                self._now_us = row.t_us
                self._feed(row.connection, item)
            else:
                self._note(self.real, row.connection, item, at, row.t_us)
        self._settle()
        self._compare()
        self._compare_rest()
        return self.result

    # -- the broker's side --------------------------------------------------------------------

    def _declare(self) -> None:
        declared = self.manifest.get("queues", {}) if self.manifest else self._seen.declared()
        for name, terms in declared.items():
            arguments = QueueArguments(
                queue_type=terms.get("type", "classic"),
                single_active_consumer=terms.get("single_active", False),
            )
            queue = self.broker.declare(name, arguments)
            queue.fill(
                map(
                    message_of,
                    [b"\0Su\xa0\x04%04d" % number for number in range(terms.get("ready", 0))],
                )
            )

    def _happened(self) -> list[dict[str, Any]]:
        """What happened outside, as far as the frames tell of it."""
        return sorted([*self._alarms(), *self._seen.events()], key=lambda event: event["before"])

    def _alarms(self) -> list[dict[str, Any]]:
        """Alarms, as the windows tell of them."""
        found: list[dict[str, Any]] = []
        on, at = False, -1
        for row, item in zip(self.rows, self.items, strict=True):
            at += not isinstance(item, ProtocolHeader)
            said = getattr(item, "performative", None)
            if row.from_peer == "client" or not isinstance(said, Flow) or said.handle is not None:
                continue
            if on is (said.incoming_window > 0):
                on = not on
                found.append({"before": at, "what": "set_alarm" if on else "clear_alarm"})
        return found

    def _version(self) -> str:
        for row, item in zip(self.rows, self.items, strict=True):
            said = getattr(item, "performative", None)
            if row.from_peer == "broker" and isinstance(said, Open):
                return preset_of(str((said.properties or {}).get("version", "")))
        return preset_of("")

    def _feed(self, connection: str, item: Any) -> None:
        if connection not in self.wires:
            self._connect(connection)
        self.wires[connection].send(self.puppets[connection], item)

    def _connect(self, connection: str) -> None:
        puppet, end = Puppet(), accept(self.broker, connection)
        wire = Wire(
            self.clock, puppet, end, latency_us=(0, 0), connection=connection, tap=self.recorder
        )
        self.wires[connection], self.puppets[connection] = wire, puppet
        end.connect(wire)

    def _settle(self) -> None:
        """Let the broker work until nothing is due any more."""
        self.clock.run_until_rest()
        self._listen()

    def _catch_up(self, more: dict[tuple[str, str], int]) -> None:
        """Let the broker work until it has said what the real one has said, and so much more."""
        while self.clock.due and self._behind(more):
            self.clock.step()
            self._listen()

    def _behind(self, more: dict[tuple[str, str], int]) -> bool:
        for place in {*self.real, *more}:
            real, ours = self.real[place], self.ours[place]
            if len(ours.frames) < len(real.frames) + more.get(place, 0):
                return True
            if len(ours.outcomes) < len(real.outcomes):
                return True
        return False

    def _on_its_way(self, number: int) -> dict[tuple[str, str], int]:
        """What the real broker says on a link before it answers this flow, if it asks for one."""
        item, connection = self.items[number], self.rows[number].connection
        said = getattr(item, "performative", None)
        if not isinstance(said, Flow) or not (said.echo or said.drain):
            return {}
        place, count = _place(item), 0
        for row, later in zip(self.rows[number + 1 :], self.items[number + 1 :], strict=True):
            if isinstance(later, ProtocolHeader) or row.connection != connection:
                continue
            if row.from_peer == "client" or _place(later) != place:
                continue
            if not isinstance(later.performative, Transfer):
                # All but the last: with the last one the broker would have asked for more.
                return {(connection, place): count - 1}
            count += 1
        return {}

    def _listen(self) -> None:
        for connection, puppet in self.puppets.items():
            while puppet.heard:
                self._note(self.ours, connection, puppet.heard.popleft(), -1, self._now_us)

    def _happen(self, event: dict[str, Any]) -> None:
        broker, queue = self.broker, event.get("queue", "")
        resource = event.get("resource", "memory")
        match event["what"]:
            case "set_alarm":
                broker.set_alarm(resource)
            case "clear_alarm":
                broker.clear_alarm(resource)
            case "publish":
                for number in range(event["count"]):
                    broker.declare(queue).publish(message_of(b"\0Su\xa0\x04%04d" % number))
            case "stall":
                broker.declare(queue).stall()
            case "resume":
                broker.declare(queue).resume()
            case "purge":
                broker.vhost.purge(queue)
            case "delete":
                broker.delete(queue)
            case what:
                raise ValueError(f"no event {what!r}; legal: {', '.join(EVENTS)}")
        self._settle()

    # -- comparing ----------------------------------------------------------------------------

    def _note(
        self, side: dict[tuple[str, str], Said], connection: str, item: Any, at: int, t_us: int
    ) -> None:
        if isinstance(item, ProtocolHeader):
            return
        said = item.performative
        if said is None or isinstance(said, SaslMechanisms):
            return
        if isinstance(said, Disposition):
            outcomes = side[connection, f"session {item.channel}"].outcomes
            last = said.first if said.last is None else said.last
            span = range(said.first, said.first + (last - said.first) % 2**32 + 1)
            state = type(said.state).__name__
            outcomes.update((number % 2**32, (state, bool(said.settled))) for number in span)
            return
        side[connection, _place(item)].frames.append((at, t_us, item))

    def _compare(self) -> None:
        """Look for every frame that the real broker has said by now."""
        for place, real in self.real.items():
            ours = self.ours[place]
            while real.frames:
                number, t_us, wanted = real.frames.popleft()
                kind = _kind(wanted)
                self.result.compared[kind] += 1
                where = f"frame {number}, {' '.join(place)}: {kind}"
                if not ours.frames or _kind(ours.frames[0][2]) != kind:
                    instead = _kind(ours.frames[0][2]) if ours.frames else "nothing"
                    self._differ(f"{where} did not come; instead: {instead}")
                    continue
                _, heard_us, got = ours.frames.popleft()
                if t_us - heard_us > EARLY_US:
                    self._differ(f"{where} came {(t_us - heard_us) // 1000} ms early")
                self._compare_fields(where, wanted, got)

    def _compare_fields(self, where: str, real: Frame, own: Frame) -> None:
        wanted, got = real.performative, own.performative
        for name in COMPARED[type(wanted)]:
            theirs, ours = _plain(getattr(wanted, name)), _plain(getattr(got, name))
            if theirs != ours:
                self._differ(f"{where}.{name}: {theirs!r}, ours {ours!r}")
        if isinstance(wanted, Transfer) and wanted.more and len(real.payload) != len(own.payload):
            self._differ(f"{where}: {len(real.payload)} octets, ours {len(own.payload)}")

    def _compare_rest(self) -> None:
        for place in sorted({*self.real, *self.ours}):
            for _, _, extra in self.ours[place].frames:
                self._differ(f"{' '.join(place)}: {_kind(extra)} that was not in the capture")
            theirs, ours = self.real[place].outcomes, self.ours[place].outcomes
            self.result.compared["outcome"] += len(theirs)
            if theirs != ours:
                wrong = sorted(n for n in {*theirs, *ours} if theirs.get(n) != ours.get(n))
                self._differ(f"{' '.join(place)}: outcomes of deliveries {wrong[:5]} ...")

    def _differ(self, text: str) -> None:
        self.result.differences.append(text)

    # -- what is known ------------------------------------------------------------------------

    def unexplained(self) -> list[str]:
        """Differences for which the manifest gives no reason."""
        known = [re.compile(item["pattern"]) for item in self.manifest.get("differences", ())]
        return [
            text
            for text in self.result.differences
            if not any(pattern.search(text) for pattern in known)
        ]

    def unused(self) -> list[str]:
        """Reasons of the manifest that explain nothing (any more)."""
        return [
            item["pattern"]
            for item in self.manifest.get("differences", ())
            if not any(re.search(item["pattern"], text) for text in self.result.differences)
        ]


def _item(row: Any) -> Any:
    if row.kind == "protocol-header":
        return ProtocolHeader(*row.raw[4:8])
    return decode_frame(row.raw)


def _place(item: Frame) -> str:
    """What a frame is about: order is compared within it."""
    said = item.performative
    handle = getattr(said, "handle", None)
    if handle is not None:
        return f"link {item.channel}/{handle}"
    return f"session {item.channel}" if isinstance(said, Begin | Flow | End) else "connection"


def _kind(item: Frame) -> str:
    return type(item.performative).__name__.lower()


def _plain(value: Any) -> Any:
    """A field for comparing: an error by its condition alone."""
    condition = getattr(value, "condition", None)
    return str(getattr(condition, "value", condition)) if condition is not None else value


__all__ = ["Replay", "Result", "manifest_of", "preset_of"]
