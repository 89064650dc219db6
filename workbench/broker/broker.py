"""The broker: its queues and its connections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from workbench.presets import Preset
from workbench.queues import QueueArguments, QueueError, make_queue
from workbench.queues.arguments import CLASSIC, QUORUM
from workbench.sim import Clock, CreditFlow, NoTap, Tap

from .dead_letters import DeadLetters
from .memory import MemoryMonitor
from .message_store import Stores
from .mirrors import Mirrors
from .paging import DISK, PagingMonitor
from .queue_process import LocalQueueProcess, QueueProcess
from .system_memory import SystemMemory
from .virtual_host import VirtualHost

if TYPE_CHECKING:  # quorum queues are loaded with the first of them: a start is quicker without
    from .quorum_cluster import QuorumCluster
    from .quorum_process import QuorumProcess

GUEST: Mapping[str, str] = {"guest": "guest"}


class Connection(Protocol):
    """A client's connection, of whatever protocol, as the broker sees it.

    Attributes:
        name: `c1`, `c2`, ...
    """

    name: str

    def resource_alarm(self, on: bool) -> None:
        """The first resource alarm is set (True), or the last one is cleared (False)."""

    def queue_deleted(self, queue: QueueProcess) -> None:
        """A queue is no more: what leads to it ends."""

    @property
    def held_octets(self) -> int:
        """What the connection holds of the memory, about."""

    def overview(self) -> dict[str, int | bool | str]:
        """Flat picture of the connection."""


class Broker:
    """A broker on a virtual clock.

    Args:
        clock: the run's clock.
        preset: every default number.
        tap: observer of the queues.
        users: who may log in with PLAIN, name to password.
        anonymous: whether ANONYMOUS is let in too.

    Attributes:
        vhost: queues, exchanges and bindings.
        queues: by name, in order of declaration.
        connections: by name, in order of opening; a front end puts its own here.
        alarms: resource alarms that are on, in order of beginning; `memory` and `disk` are usual.
        stores: the message stores of its classic queues.
        memory: sets the memory alarm by itself; None: nobody looks.
        paging: lets classic queues page messages out when memory runs short; None: nobody does.
        cluster: nodes on which quorum queues have their replicas; None until one is declared.
        tap: observer of what happens inside.
        anonymous: whether ANONYMOUS is let in.
    """

    def __init__(
        self,
        clock: Clock,
        preset: Preset,
        tap: Tap | None = None,
        users: Mapping[str, str] = GUEST,
        anonymous: bool = True,
    ) -> None:
        self.preset = preset
        self.vhost = VirtualHost(
            self._make_queue, self._queue_deleted, deprecated=preset.deprecated_queues
        )
        self.queues = self.vhost.queues
        self.connections: dict[str, Connection] = {}
        self.alarms: list[str] = []
        self.cluster: QuorumCluster | None = None
        self._replicas: dict[str, int] = {}  # of quorum queues that are about to be made
        self.clock = clock
        self.tap: Tap = tap if tap is not None else NoTap()
        self.stores = Stores(clock, preset, self.tap)
        self.memory: MemoryMonitor | SystemMemory | None = None
        self.paging: PagingMonitor | None = None
        self._dead_letters = DeadLetters(self.vhost, clock, self.tap)
        self._notes = self.tap.bind(clock, vantage="broker")
        self._users = dict(users)
        self.anonymous = anonymous

    def login(self, user: str, password: str) -> bool:
        """Whether a user may log in with this password."""
        return self._users.get(user) == password

    def declare(
        self,
        name: str,
        arguments: QueueArguments | None = None,
        *,
        single_active_consumer: bool = False,
        replicas: int | None = None,
    ) -> QueueProcess:
        """The queue of that name; made if there is none.

        Args:
            name: of the queue.
            arguments: if it is made, what kind of queue it is.
            single_active_consumer: short for arguments that say just this.
            replicas: of a quorum queue: 1, 3, 5 or 7; None: 3, or 1 where there are fewer nodes.
        """
        if arguments is None:
            arguments = QueueArguments(single_active_consumer=single_active_consumer)
        if arguments.queue_type == QUORUM and replicas is not None:
            from .quorum_cluster import check_replicas

            check_replicas(replicas)
            self._replicas[name] = replicas
        return self.vhost.declare(name, arguments)

    def mirror(self, name: str, nodes: Iterable[str]) -> Mirrors:
        """Let a classic queue, which is on node n1, have mirrors on these nodes too.

        Raises:
            QueueError: the preset's queues have no mirrors, the queue is none that may have any,
                or a node is not another one.
        """
        queue = self.declare(name)
        if not self.preset.mirrors:
            raise QueueError(
                f"{self.preset.title} has no mirrored queues; legal: a preset of RabbitMQ 3.x"
            )
        if not isinstance(queue, LocalQueueProcess) or queue.arguments.queue_type != CLASSIC:
            raise QueueError(f"queue {name} is not a classic queue; legal: to mirror one that is")
        mirrors = queue.mirrors or Mirrors(
            self.clock, self.preset, self.tap, queue, self.credit_flow
        )
        mirrors.join(nodes)
        queue.mirrors = mirrors
        return mirrors

    def delete(self, name: str) -> int:
        """Delete a queue, and end the links to it; returns how many messages were ready.

        Raises:
            KeyError: there is none.
        """
        return self.vhost.delete(name)

    def process_flow(self) -> CreditFlow | None:
        """Counters of one more process; None: under the preset processes count no credit."""
        return self.credit_flow() if self.preset.process_credit else None

    def credit_flow(self) -> CreditFlow:
        """Counters of one more process, as the preset has them."""
        preset = self.preset
        return CreditFlow(initial=preset.process_credit, more_after=preset.process_regrant_after)

    def _make_queue(self, name: str, arguments: QueueArguments, durable: bool) -> QueueProcess:
        process: QueueProcess
        if arguments.queue_type == QUORUM:
            process = self._quorum(name, arguments)
        else:
            process = LocalQueueProcess(
                self.clock,
                make_queue(name, arguments, self.clock.now_us),
                enqueue_us=self.preset.queue_enqueue_us,
                deliver_us=self.preset.queue_deliver_us,
                tap=self.tap,
                flow=self.process_flow(),
                hands_on=self.preset.hands_on,
                stores=self.stores if arguments.queue_type == CLASSIC else None,
                durable=durable,
                counts_credit=self.preset.mirrors_spend_credit or not self.preset.mirrors,
            )
        process.dead_letter = lambda effect: self._dead_letters.publish(name, effect)
        process.gone = lambda: self.vhost.expired(process)
        self._watch_queue(process)
        return process

    def _queue_deleted(self, queue: QueueProcess) -> None:
        """Tell the connections: it comes to their sessions as a message, after what they are doing.

        So a session that has deleted a queue by a request answers the request first.
        """
        if self.paging is not None and isinstance(queue, LocalQueueProcess):
            self.paging.forget(queue)
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
        from .quorum_process import QuorumProcess

        replicas = self._replicas.pop(name, None)
        cluster = self.cluster or self.make_cluster(replicas or 1)
        if replicas is None:
            # RabbitMQ's x-quorum-initial-group-size is 3, as far as there are nodes.
            replicas = 3 if len(cluster.nodes) >= 3 else 1
        group = cluster.declare(
            name,
            arguments,
            replicas=replicas,
            command_us=self.preset.quorum_command_us,
            delivery_limit=self.preset.quorum_delivery_limit,
            limit_counts=self.preset.quorum_limit_counts,
            two_priorities=self.preset.quorum_two_priorities,
        )
        return QuorumProcess(
            self.clock,
            group,
            arguments,
            place=FRONT,
            soft_limit=self.preset.quorum_soft_limit,
            tap=self.tap,
        )

    def watch_memory(self, limit: int) -> None:
        """Set the memory alarm by itself whenever more is held than this, in octets.

        From half of it on classic queues page messages out, if the preset's do.
        """
        self.memory = MemoryMonitor(self, lambda: self.held_octets, limit, self.tap)
        self.watch_paging(lambda: self.held_octets, limit)

    def watch_paging(self, used: Callable[[], int], limit: int) -> None:
        """Let classic queues page messages out, if the preset's do, as memory runs short.

        Args:
            used: returns how many octets are used.
            limit: octets at which the memory alarm is set.
        """
        if self.preset.paging_ratio:
            self.paging = PagingMonitor(self.clock, self.preset, used, limit, self.alarms, self.tap)
            for queue in self.queues.values():
                self._watch_queue(queue)

    def _watch_queue(self, queue: QueueProcess) -> None:
        if self.paging is not None and isinstance(queue, LocalQueueProcess) and queue.book:
            self.paging.watch(queue)

    def watch_system(
        self,
        *,
        total: int,
        others: int,
        collected_us: int,
        reclaimed_us: int,
        exhausted: Callable[[], None],
        alarms: bool = True,
    ) -> SystemMemory:
        """Set the memory alarm by a model of the machine; see `SystemMemory`.

        The watermark, and what is compared with it, are the preset's.
        """
        self.memory = system = SystemMemory(
            self,
            lambda: self.held_octets,
            total=total,
            others=others,
            watermark=self.preset.memory_high_watermark,
            counts=self.preset.memory_counts,
            collected_us=collected_us,
            reclaimed_us=reclaimed_us,
            tap=self.tap,
            exhausted=exhausted,
            alarms=alarms,
        )
        return system

    def received(self, octets: int) -> None:
        """So many octets have come over a connection."""
        if self.memory is not None:
            self.memory.received(octets)

    def set_alarm(self, resource: str = "memory") -> None:
        """A resource runs short: with the first alarm every connection is told.

        How it holds its publishers is its front end's. Nothing else changes: connections, sessions
        and links may be opened, and consumers go on.
        """
        if resource in self.alarms:
            return
        self.alarms.append(resource)
        self._notes.note("alarm-set", resource)
        self._page_anew(resource)
        if len(self.alarms) == 1:
            for connection in self.connections.values():
                connection.resource_alarm(True)

    def clear_alarm(self, resource: str = "memory") -> None:
        """The resource is there again: with the last alarm gone every connection is told."""
        if resource not in self.alarms:
            return
        self.alarms.remove(resource)
        self._notes.note("alarm-clear", resource)
        self._page_anew(resource)
        if not self.alarms:
            for connection in self.connections.values():
                connection.resource_alarm(False)

    def _page_anew(self, resource: str) -> None:
        """Without room on the disk no queue pages, from now on."""
        if self.paging is not None and resource == DISK:
            self.paging.check()

    @property
    def held_octets(self) -> int:
        """What queues and connections hold of the memory, about."""
        return sum(queue.held_octets for queue in self.queues.values()) + sum(
            connection.held_octets for connection in self.connections.values()
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
