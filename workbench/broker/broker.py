"""The broker: its queues and its connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from workbench.presets import Preset
from workbench.queues import ClassicQueue, QueueArguments
from workbench.sim import Actor, NoTap, Tap, VirtualClock

from .connection import BrokerConnection
from .queue_process import QueueProcess

QUEUES_PREFIX = "/queues/"
GUEST: Mapping[str, str] = {"guest": "guest"}


class Broker:
    """A broker on a virtual clock.

    Args:
        clock: the run's clock.
        preset: every default number.
        tap: observer of the queues.
        users: who may log in with PLAIN, name to password.
        anonymous: whether ANONYMOUS is let in too.

    Attributes:
        queues: by name, in order of declaration.
        connections: by name, in order of opening.
        alarms: resource alarms that are on, in order of beginning; `memory` and `disk` are usual.
        credit_rule: how links on which the broker sends work out their credit from a flow, in
            place of the specification's way; for showing what a wrong one leads to.
    """

    def __init__(
        self,
        clock: VirtualClock,
        preset: Preset,
        tap: Tap | None = None,
        users: Mapping[str, str] = GUEST,
        anonymous: bool = True,
    ) -> None:
        self.preset = preset
        self.queues: dict[str, QueueProcess] = {}
        self.connections: dict[str, BrokerConnection] = {}
        self.alarms: list[str] = []
        self.credit_rule: Callable[[int, int, int, int], int] | None = None
        self._clock = clock
        self._tap: Tap = tap if tap is not None else NoTap()
        self._users = dict(users)
        self._anonymous = anonymous

    def accept(self, name: str) -> BrokerConnection:
        """The broker's end for a new connection; connect it to a wire."""
        connection = BrokerConnection(self, name, self._users, self._anonymous)
        self.connections[name] = connection
        return connection

    def find(self, address: str) -> QueueProcess | None:
        """The queue that an address names, `q` or `/queues/q`, or None."""
        return self.queues.get(queue_name(address))

    def declare(
        self,
        address: str,
        arguments: QueueArguments | None = None,
        *,
        single_active_consumer: bool = False,
    ) -> QueueProcess:
        """The queue that an address names; made if there is none.

        Args:
            address: `q` or `/queues/q`.
            arguments: if it is made, what kind of queue it is.
            single_active_consumer: short for arguments that say just this.
        """
        name = queue_name(address)
        queue = self.queues.get(name)
        if queue is None:
            if arguments is None:
                arguments = QueueArguments(single_active_consumer=single_active_consumer)
            queue = self.queues[name] = QueueProcess(
                self._clock,
                ClassicQueue(name, arguments),
                enqueue_us=self.preset.queue_enqueue_us,
                deliver_us=self.preset.queue_deliver_us,
                tap=self._tap,
            )
        return queue

    def configure(self, **numbers: Any) -> None:
        """Change numbers of the preset by name, as an operator does who changes a setting.

        A session reads what concerns its publishers when it begins and keeps it: who is there
        already notices nothing (`rabbit_amqp_session.erl:init`).
        """
        self.preset = replace(self.preset, **numbers)

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function when what is due now has been done."""
        self._clock.call_soon(call)

    def actor(self, name: str, service_us: int) -> Actor[Callable[[], None]]:
        """A process of the broker's that does what is posted to it, each after so long."""
        return Actor(self._clock, name, service_us=service_us, handle=lambda task: task())

    def set_alarm(self, resource: str = "memory") -> None:
        """A resource runs short: with the first alarm every session's incoming-window closes.

        Nothing else does: connections, sessions and links may be opened, and consumers go on.
        """
        if resource in self.alarms:
            return
        self.alarms.append(resource)
        self._note_alarm("alarm-set", resource)
        if len(self.alarms) == 1:
            for connection in self.connections.values():
                connection.close_windows()

    def clear_alarm(self, resource: str = "memory") -> None:
        """The resource is there again: with the last alarm gone the windows open."""
        if resource not in self.alarms:
            return
        self.alarms.remove(resource)
        self._note_alarm("alarm-clear", resource)
        if not self.alarms:
            for connection in self.connections.values():
                connection.open_windows()

    def _note_alarm(self, event: str, resource: str) -> None:
        self._tap.internal(t_us=self._clock.now_us, event=event, vantage="broker", kind=resource)

    def note_link(self, kind: str, **columns: Any) -> None:
        """A row about a link on which the broker sends, for what no frame tells."""
        self._tap.internal(
            t_us=self._clock.now_us,
            event="note",
            kind=kind,
            vantage="broker",
            link_sender="broker",
            **columns,
        )

    def note_publisher(self, event: str, kind: str, **columns: Any) -> None:
        """A row about a link on which the broker receives: what confirms do, or their want."""
        self._tap.internal(
            t_us=self._clock.now_us,
            event=event,
            kind=kind,
            vantage="broker",
            link_sender="client",
            **columns,
        )

    def note_process(self, vantage: str, event: str, kind: str, **columns: Any) -> None:
        """A row about a process at work: what waits for it, or that it stops."""
        self._tap.internal(
            t_us=self._clock.now_us, event=event, kind=kind, vantage=vantage, **columns
        )

    def note_session(
        self, *, connection: str, session: int, buffered: int, credit: int, **link: Any
    ) -> None:
        """A row about a session at work: its credit to a queue, and what it holds for the link."""
        self._tap.internal(
            t_us=self._clock.now_us,
            event="grant",
            kind="queue-credit",
            vantage=f"session:{connection}/{session}",
            connection=connection,
            session=session,
            link_sender="broker",
            ledger={"mailbox": buffered},
            extra={"credit": credit},
            **link,
        )

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of every queue and connection."""
        picture: dict[str, int | bool | str] = {
            "preset": self.preset.name,
            "alarms": " ".join(self.alarms),
        }
        for queue in self.queues.values():
            for key, value in queue.overview().items():
                picture[f"queue:{queue.name}.{key}"] = value
        for connection in self.connections.values():
            for key, value in connection.overview().items():
                picture[f"{connection.name}.{key}"] = value
        return picture


def queue_name(address: str) -> str:
    """The queue's name in an address: the address itself, or what follows `/queues/`, decoded."""
    if address.startswith(QUEUES_PREFIX):
        return unquote(address[len(QUEUES_PREFIX) :])
    return address
