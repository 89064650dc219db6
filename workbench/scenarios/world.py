"""Everything of one run that moves: clock, wires, broker, peers, and the tap that records them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from workbench.amqp010.frame import item_size as item_size_010
from workbench.amqp091.frame import item_size as item_size_091
from workbench.amqp10.frame import item_size
from workbench.amqp10.messaging import Data, encode_message
from workbench.broker import Broker
from workbench.frontends import (
    BrokerConnection,
    BrokerConnection091,
    CreditRule,
    accept,
    accept_091,
    message_of,
)
from workbench.frontends.amqp010 import QpidConnection
from workbench.frontends.amqp010 import accept as accept_010
from workbench.peers import Client010, Client091
from workbench.presets import Preset
from workbench.sim import Direction, End, NoTap, Tap, VirtualClock, Wire, WireError

from .action import Action, Value, refusal

LEARNER = "learner"
_NUMBERED = re.compile(rb"message (\d+)")


class ClientEnd(End, Protocol):
    """A client that can be put on a wire."""

    def connect(self, wire: Wire) -> None:
        """Remember the wire and begin to talk over it."""


def after_all(names: Iterable[Hashable], then: Callable[[], None]) -> Callable[[Hashable], None]:
    """What is told of each of some things that it is ready, and does something after the last.

    Args:
        names: of the things.
        then: what is done, once.
    """
    missing = set(names)

    def ready(name: Hashable) -> None:
        if name in missing:
            missing.remove(name)
            if not missing:
                then()

    return ready


class World:
    """One run in motion.

    Attributes:
        preset: every default number, those that a parameter takes the place of included.
        parameters: the scenario's parameters, complete.
        tap: observer of every wire and of the broker's inside.
        clock: virtual time.
        broker: the broker under test.
        wires: by connection name.
        peers: clients by role, as the scenario names them.
        credit_rule: how the broker works out credit from a flow; None: as the specification says.
        start_seq: the last row of the set-up, once the scenario has marked it.
        start_us: from when stages and charts count time: that row's; 0 as long as there is none.
        done: names of the acts so far, in order.
        code: functions of a learner that the run uses, by name.
        fault: what went wrong in such a function, in words; the run ends there.
    """

    def __init__(
        self,
        *,
        preset: Preset,
        parameters: Mapping[str, Value],
        tap: Tap | None = None,
        clock: VirtualClock | None = None,
        code: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self.preset = preset
        self.parameters = dict(parameters)
        self.tap = tap if tap is not None else NoTap()
        self.clock = clock if clock is not None else VirtualClock()
        # Scenarios name queues plainly, which RabbitMQ 4.3 takes if it is configured so.
        self.broker = Broker(self.clock, replace(preset, addresses_v1=True), self.tap)
        self.wires: dict[str, Wire] = {}
        self.peers: dict[str, Any] = {}
        self.credit_rule: CreditRule | None = None
        self.start_seq: int | None = None
        self.start_us = 0
        self.done: list[str] = []
        self.code = dict(code or {})
        self.fault = ""
        self._frame_ids = itertools.count()
        self._messages = itertools.count()

    def number(self, name: str) -> int:
        """A parameter that is a whole number."""
        value = self.parameters[name]
        assert isinstance(value, int), f"{name} is {value!r}"
        return value

    def text(self, name: str) -> str:
        """A parameter that is a text."""
        value = self.parameters[name]
        assert isinstance(value, str), f"{name} is {value!r}"
        return value

    def message(self, size: int) -> bytes:
        """The next message, encoded: one data section whose octets name it, `size` long."""
        text = b"message %d " % next(self._messages)
        return encode_message([Data(text.ljust(size, b".")[:size])])

    @staticmethod
    def number_of(payload: bytes) -> int | None:
        """Which of the run's messages that is, by its first octets; None if it is none of them."""
        found = _NUMBERED.search(payload)
        return None if found is None else int(found[1])

    def payloads(self, count: int, size: int | None = None) -> list[bytes]:
        """The next messages, encoded; each is `size` long, or else `message_bytes`."""
        octets = self.number("message_bytes") if size is None else size
        return [self.message(octets) for _ in range(count)]

    def put_messages(self, queue: str, count: int = 1) -> None:
        """The next messages come into a queue from nowhere."""
        for payload in self.payloads(count):
            self.broker.declare(queue).publish(message_of(payload))

    def fill(self, queue: str, count: int, size: int | None = None) -> None:
        """The next messages are ready in a queue when all begins."""
        messages = [message_of(payload) for payload in self.payloads(count, size)]
        self.clock.call_soon(self.broker.declare(queue).fill, messages)

    def connect(
        self, client: ClientEnd, name: str, socket_octets: int = 0, *, peer: str | None = None
    ) -> None:
        """Put a client and the broker on the two ends of a new wire; the client begins to talk.

        A frame is under way for the run's `latency_us`, in each direction.

        Args:
            client: the end that opens the connection.
            name: of the connection.
            socket_octets: in flight that the wire takes in one direction; 0 is no limit.
            peer: the role by which `peers` has the client; None: it is not looked for there.
        """
        if peer is not None:
            self.peers[peer] = client
        end: BrokerConnection | BrokerConnection091 | QpidConnection
        size: Callable[[Any], int]
        if isinstance(client, Client091):
            end, size = accept_091(self.broker, name), item_size_091
        elif isinstance(client, Client010):
            end, size = accept_010(self.broker, name), item_size_010
        else:
            end, size = accept(self.broker, name, self.credit_rule), item_size
        latency_us = self.number("latency_us")
        wire = Wire(
            self.clock,
            client,
            end,
            latency_us=(latency_us, latency_us),
            connection=name,
            tap=self.tap,
            next_frame_id=self._frame_ids.__next__,
            capacity=socket_octets or None,
            size=size,
        )
        self.wires[name] = wire
        end.connect(wire)
        # Nothing happens while a world is built: an act may come before the first row.
        self.clock.call_soon(client.connect, wire)

    def mark_start(self) -> None:
        """The set-up ends with the row made last, if it has not ended before.

        A lesson sets its cursor there.
        An act right after that row happens before the client reacts to it, at the same time. It is
        no part of the set-up, so that a branch begins where the run begins that it is a branch of.
        """
        if self.start_seq is not None:
            return
        rows = getattr(self.tap, "rows", ())
        self.start_seq = len(rows) - 1
        for seq in range(len(rows) - 1, -1, -1):
            if rows[seq].t_us != self.clock.now_us:
                break
            if rows[seq].event == "action":
                self.start_seq = seq - 1
        if rows:
            self.start_us = rows[self.start_seq].t_us

    def wire_of(self, frame_id: int) -> Wire:
        """The wire on which a frame is in flight.

        Raises:
            WireError: if it is in flight on none; the text lists what is.
        """
        flying = [
            (flight.frame_id, wire) for wire in self.wires.values() for flight in wire.in_flight()
        ]
        for number, wire in flying:
            if number == frame_id:
                return wire
        listed = ", ".join(str(number) for number, _ in flying)
        told = {"frame": frame_id, "listed": listed}
        raise WireError(refusal("wire.not-flying" if listed else "wire.nothing-flies", **told))

    def record(self, event: str, vantage: str, **more: Any) -> None:
        """A row of what happens now inside the broker or to a peer; more as of `Tap.internal`."""
        self.tap.internal(t_us=self.clock.now_us, event=event, vantage=vantage, **more)

    def record_action(self, action: Action) -> None:
        """The row that tells of a learner's act; what it causes comes in later rows."""
        given = {name: value for name, value in action.arguments.items() if value is not None}
        self.record("action", LEARNER, kind=action.name, extra=given or None)

    def record_wire(
        self,
        event: str,
        wire: Wire,
        *,
        direction: Direction | str,
        frame_id: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """A row that tells of a hold, a release or a change of latency."""
        facts = {**(extra or {}), "direction": Direction.of(direction).value}
        if frame_id is not None:
            facts["frame_id"] = frame_id
        self.record(event, "wire", connection=wire.connection, extra=facts)
