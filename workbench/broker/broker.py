"""The broker: its queues and its connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.presets import Preset
from workbench.queues import QueueArguments, QueueError, make_queue
from workbench.sim import Actor, NoTap, Tap, VirtualClock

from .addresses import queue_name
from .connection import BrokerConnection
from .dead_letters import DeadLetters
from .nodes import Nodes
from .payload import priority_in
from .queue_process import QueueProcess

if TYPE_CHECKING:  # quorum queues are loaded with the first of them: a start is quicker without
    from .quorum_cluster import QuorumCluster
    from .quorum_process import QuorumProcess

QUORUM = "quorum"
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
        nodes: queues, exchanges and bindings.
        queues: by name, in order of declaration.
        connections: by name, in order of opening.
        alarms: resource alarms that are on, in order of beginning; `memory` and `disk` are usual.
        cluster: nodes on which quorum queues have their replicas; None until one is declared.
        tap: observer of what happens inside.
        unseen: nobody observes: rows need not be made.
        prompt: a queue that needs no time takes a message in the event in which it comes; set
            before queues are declared. See `workbench.sim.Wire`.
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
        self.nodes = Nodes(self._make_queue, self._queue_deleted)
        self.queues = self.nodes.queues
        self.connections: dict[str, BrokerConnection] = {}
        self.alarms: list[str] = []
        self.credit_rule: Callable[[int, int, int, int], int] | None = None
        self.cluster: QuorumCluster | None = None
        self._replicas: dict[str, int] = {}  # of quorum queues that are about to be made
        self.clock = clock
        self.tap: Tap = tap if tap is not None else NoTap()
        self.unseen = type(self.tap) is NoTap
        self.prompt = False
        self._dead_letters = DeadLetters(self.nodes, clock, self.tap)
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
        replicas: int | None = None,
    ) -> QueueProcess:
        """The queue that an address names; made if there is none.

        Args:
            address: `q` or `/queues/q`.
            arguments: if it is made, what kind of queue it is.
            single_active_consumer: short for arguments that say just this.
            replicas: of a quorum queue: 1, 3, 5 or 7; None: 3, or 1 where there are fewer nodes.
        """
        if arguments is None:
            arguments = QueueArguments(single_active_consumer=single_active_consumer)
        name = queue_name(address)
        if arguments.queue_type == QUORUM and replicas is not None:
            from .quorum_cluster import check_replicas

            check_replicas(replicas)
            self._replicas[name] = replicas
        return self.nodes.declare(name, arguments)

    def delete(self, address: str) -> int:
        """Delete a queue, and end the links to it; returns how many messages were ready.

        Raises:
            KeyError: there is none.
        """
        return self.nodes.delete(queue_name(address))

    def _make_queue(self, name: str, arguments: QueueArguments) -> QueueProcess:
        process: QueueProcess
        if arguments.queue_type == QUORUM:
            process = self._quorum(name, arguments)
        else:
            process = QueueProcess(
                self.clock,
                make_queue(name, arguments, self.clock.now_us, priority_in),
                enqueue_us=self.preset.queue_enqueue_us,
                deliver_us=self.preset.queue_deliver_us,
                tap=self.tap,
                prompt=self.prompt,
            )
        process.dead_letter = lambda effect: self._dead_letters.publish(name, effect)
        process.gone = lambda: self.nodes.expired(process)
        return process

    def _queue_deleted(self, queue: QueueProcess) -> None:
        """Tell the connections: it comes to their sessions as a message, after what they are doing.

        So a session that has deleted a queue by a request answers the request first.
        """
        for connection in list(self.connections.values()):
            self.soon(partial(connection.queue_deleted, queue))

    def configure(self, **numbers: Any) -> None:
        """Change numbers of the preset by name, as an operator does who changes a setting.

        A session reads what concerns its publishers when it begins and keeps it: who is there
        already notices nothing (`rabbit_amqp_session.erl:init`).
        """
        self.preset = replace(self.preset, **numbers)

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function when what is due now has been done."""
        self.clock.call_soon(call)

    def make_cluster(self, nodes: int, **numbers: Any) -> QuorumCluster:
        """The cluster for this broker's quorum queues, before the first of them is declared.

        Args:
            nodes: how many.
            numbers: of `QuorumCluster`; what is left out is the preset's.

        Raises:
            QueueError: if there is one already, or a number is not legal.
        """
        if self.cluster is not None:
            raise QueueError(
                f"the cluster has {len(self.cluster.nodes)} nodes already; legal now: declare"
                " queues on it"
            )
        from .quorum_cluster import QuorumCluster
        from .quorum_node import SyncTime

        preset = self.preset
        numbers = {
            "fsync": SyncTime.constant(preset.fsync_us),
            "latency_us": preset.node_latency_us,
            **numbers,
        }
        self.cluster = QuorumCluster(self.clock, self.tap, nodes=nodes, **numbers)
        return self.cluster

    def _quorum(self, name: str, arguments: QueueArguments) -> QuorumProcess:
        from .quorum_cluster import FRONT
        from .quorum_process import QuorumProcess, terms_of

        replicas = self._replicas.pop(name, None)
        cluster = self.cluster or self.make_cluster(replicas or 1)
        if replicas is None:
            # RabbitMQ's x-quorum-initial-group-size is 3, as far as there are nodes.
            replicas = 3 if len(cluster.nodes) >= 3 else 1
        group = cluster.declare(
            name,
            replicas=replicas,
            terms=terms_of(
                arguments,
                self.preset.quorum_limit_counts,
                two_priorities=self.preset.quorum_two_priorities,
            ),
            command_us=self.preset.quorum_command_us,
        )
        return QuorumProcess(
            self.clock,
            group,
            arguments,
            place=FRONT,
            soft_limit=self.preset.quorum_soft_limit,
            tap=self.tap,
        )

    def actor(self, name: str, service_us: int) -> Actor[Callable[[], None]]:
        """A process of the broker's that does what is posted to it, each after so long."""
        return Actor(self.clock, name, service_us=service_us, handle=lambda task: task())

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

    @property
    def held_octets(self) -> int:
        """What queues and connections hold of the memory, about."""
        return sum(queue.held_octets for queue in self.queues.values()) + sum(
            connection.held_octets for connection in self.connections.values()
        )

    def _note_alarm(self, event: str, resource: str) -> None:
        self.tap.internal(t_us=self.clock.now_us, event=event, vantage="broker", kind=resource)

    def note_link(self, kind: str, **columns: Any) -> None:
        """A row about a link on which the broker sends, for what no frame tells."""
        self.tap.internal(
            t_us=self.clock.now_us,
            event="note",
            kind=kind,
            vantage="broker",
            link_sender="broker",
            **columns,
        )

    def note_publisher(self, event: str, kind: str, **columns: Any) -> None:
        """A row about a link on which the broker receives: what confirms do, or their want."""
        self.tap.internal(
            t_us=self.clock.now_us,
            event=event,
            kind=kind,
            vantage="broker",
            link_sender="client",
            **columns,
        )

    def note_process(self, vantage: str, event: str, kind: str, **columns: Any) -> None:
        """A row about a process at work: what waits for it, or that it stops."""
        self.tap.internal(
            t_us=self.clock.now_us, event=event, kind=kind, vantage=vantage, **columns
        )

    def note_session(
        self, *, connection: str, session: int, buffered: int, credit: int, **link: Any
    ) -> None:
        """A row about a session at work: its credit to a queue, and what it holds for the link."""
        self.tap.internal(
            t_us=self.clock.now_us,
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
