"""A connection whose channel heeds a slow quorum queue: the chain that article B draws.

Client, socket, reader, channel, quorum queue. The channel tells the reader nothing while the queue
is slow; so the reader runs out of credit, stops reading, and the socket fills: TCP holds the client
(`rabbit_reader.erl`, `rabbit_channel.erl`, `rabbit_fifo_client.erl`). There are no 0-9-1 frames
here: a message is as many octets as are said, and everything else is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from workbench.broker.quorum_client import SOFT_LIMIT, FifoClient
from workbench.broker.quorum_cluster import FRONT, QuorumCluster
from workbench.broker.quorum_node import SyncTime
from workbench.broker.raft_group import RaftGroup
from workbench.queues import Enqueue, Message
from workbench.queues.quorum_fifo import Handed, Logged, QuorumEffect, QuorumReply
from workbench.sim import Actor, NoTap, Tap, VirtualClock
from workbench.sim.credit_flow import INITIAL, MORE_AFTER, CreditFlow

from .declare import ParameterError

READER, CHANNEL, QUEUE = "reader", "channel", "queue"
SOCKET_OCTETS = 65_536
HANGS_US = 3_600_000_000  # an fsync that nobody waits for


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What things take.

    Attributes:
        octets: of a message on the wire.
        socket_octets: that the two sockets hold together.
        read_us, publish_us: service time of the reader and of the channel, for each message.
        pace_us: the client sends no oftener than this; 0: as often as TCP takes.
    """

    octets: int = 128
    socket_octets: int = SOCKET_OCTETS
    read_us: int = 2
    publish_us: int = 8
    pace_us: int = 0

    def __post_init__(self) -> None:
        least = {"octets": 1, "socket_octets": self.octets}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value < least.get(name, 0):
                raise ParameterError(f"{name} is {value}; legal: {least.get(name, 0)} or more")


def beside_a_hanging_disk(
    soft_limit: int, count: int, costs: Costs | None = None
) -> HeedingConnection:
    """A connection whose client has sent what it could, to a queue whose disk hangs."""
    clock = VirtualClock()
    cluster = QuorumCluster(clock, nodes=1, fsync=SyncTime.constant(HANGS_US))
    group = cluster.declare("q", replicas=1)
    connection = HeedingConnection(clock, group, count=count, soft_limit=soft_limit, costs=costs)
    while clock.next_us is not None and clock.next_us < HANGS_US:
        clock.step()
    return connection


class HeedingConnection:
    """One publisher and its connection.

    Args:
        clock, tap: of the run.
        group: the queue.
        name: of the connection.
        count: messages that its client has to send.
        costs: of messages and processes.
        soft_limit: pending commands at which the queue counts as slow.
        initial, more_after: credit between reader and channel.

    Attributes:
        left: messages that the client has not sent.
        read: messages that the reader has taken off the socket.
        confirmed: messages that the queue has confirmed.
        most_inside: the most messages that were ever read and not yet confirmed.
        slow_with: with how many pending commands the queue first counted as slow; None: never.
    """

    def __init__(
        self,
        clock: VirtualClock,
        group: RaftGroup,
        *,
        name: str = "c1",
        count: int,
        costs: Costs | None = None,
        soft_limit: int = SOFT_LIMIT,
        initial: int = INITIAL,
        more_after: int = MORE_AFTER,
        tap: Tap | None = None,
    ) -> None:
        self.name = name
        self.left = count
        self.read = 0
        self.confirmed = 0
        self.most_inside = 0
        self.slow_with: int | None = None
        self.costs = costs or Costs()
        self._clock = clock
        self._tap = tap or NoTap()
        self._sending = False
        self._held = False  # TCP takes no more
        self._sent = 0
        flow = partial(CreditFlow, initial=initial, more_after=more_after)
        # Its mailbox is the socket.
        self.reader: Actor[bytes] = Actor(
            clock,
            f"{READER}:{name}",
            service_us=self.costs.read_us,
            handle=self._read,
            flow=flow(),
            owns_socket=True,
            blocking=self._reader_blocked,
        )
        self.channel: Actor[bytes] = Actor(
            clock,
            f"{CHANNEL}:{name}",
            service_us=self.costs.publish_us,
            handle=self._publish,
            flow=flow(),
        )
        self.client = FifoClient(group, clock, name, place=FRONT, owner=self, soft_limit=soft_limit)
        clock.call_soon(self._send)

    @property
    def window(self) -> int:
        """Octets that TCP would still take."""
        return self.costs.socket_octets - self.reader.depth * self.costs.octets

    @property
    def inside(self) -> int:
        """Messages read and not yet confirmed: what the broker holds of this connection."""
        return self.read - self.confirmed

    @property
    def mailbox(self) -> int:
        """Messages that wait for the channel."""
        return self.channel.depth

    # -- the client, and its socket -----------------------------------------------------------

    def _send(self) -> None:
        self._sending = False
        while self.left:
            if self.window < self.costs.octets:
                if not self._held:
                    self._held = True
                    self._log("block", "client", "tcp")
                return
            self.left -= 1
            self._sent += 1
            self.reader.post(b"%s %d" % (self.name.encode(), self._sent))
            if self.costs.pace_us:
                self._sending = True
                self._clock.call_later(self.costs.pace_us, self._send)
                return

    # -- the reader -----------------------------------------------------------------------------

    def _read(self, message: bytes) -> None:
        self.read += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.reader.send(self.channel, message)
        if self._held:
            self._held = False
            self._log("unblock", "client", "tcp")
            if not self._sending:
                self._clock.call_soon(self._send)

    def _reader_blocked(self, blocked: bool) -> None:
        self._log("block" if blocked else "unblock", READER, "credit-flow")

    # -- the channel ----------------------------------------------------------------------------

    def _publish(self, message: bytes) -> None:
        self.client.send(Enqueue(message=Message(payload=message)))

    # -- said by the queue ------------------------------------------------------------------------

    def slowed(self, slow: bool, pending: int) -> None:
        """The soft limit: while the queue is slow the channel keeps its grants to itself."""
        self._log("block" if slow else "unblock", CHANNEL, "soft-limit", pending)
        if slow:
            if self.slow_with is None:
                self.slow_with = pending
            self.channel.block(QUEUE)
        else:
            self.channel.unblock(QUEUE)

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A message is confirmed."""
        self.confirmed += 1

    def handed(self, effect: Handed) -> None:
        """It consumes nothing."""

    def told(self, effect: QuorumEffect) -> None:
        """Nothing that it heeds."""

    def _log(self, event: str, who: str, kind: str, pending: int | None = None) -> None:
        self._tap.internal(
            t_us=self._clock.now_us,
            event=event,
            vantage=f"{who}:{self.name}",
            kind=kind,
            connection=self.name,
            extra=None if pending is None else {"pending": pending},
        )
