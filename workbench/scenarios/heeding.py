"""A connection whose channel heeds a slow quorum queue: the chain that article B draws.

Client, socket, reader, channel, quorum queue. The channel tells the reader nothing while the queue
is slow; so the reader runs out of credit, stops reading, and the socket fills: TCP holds the client
(`rabbit_reader.erl`, `rabbit_channel.erl`, `rabbit_fifo_client.erl`). There are no 0-9-1 frames
here: a message is as many octets as are said, and everything else is left out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from workbench.broker.credit_flow import INITIAL, MORE_AFTER, CreditFlow, Grant
from workbench.broker.quorum_cluster import FRONT
from workbench.broker.quorum_group import QuorumGroup
from workbench.broker.quorum_port import QueuePort
from workbench.queues import Enqueue
from workbench.queues.quorum_client import SOFT_LIMIT
from workbench.queues.quorum_commands import Handed, Logged, QuorumEffect, QuorumReply
from workbench.sim import Actor, NoTap, Tap, VirtualClock

from .declare import ParameterError

READER, CHANNEL, QUEUE = "reader", "channel", "queue"
SOCKET_OCTETS = 65_536


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
    """

    def __init__(
        self,
        clock: VirtualClock,
        group: QuorumGroup,
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
        self.costs = costs or Costs()
        self.reader = CreditFlow(initial=initial, more_after=more_after)
        self.channel = CreditFlow(initial=initial, more_after=more_after)
        self._clock = clock
        self._tap = tap or NoTap()
        self._socket: deque[bytes] = deque()
        self._reading = False
        self._sending = False
        self._held = False  # TCP takes no more
        self._sent = 0
        self._work: Actor[bytes] = Actor(
            clock, f"{CHANNEL}:{name}", service_us=self.costs.publish_us, handle=self._publish
        )
        self.port = QueuePort(group, clock, name, place=FRONT, owner=self, soft_limit=soft_limit)
        clock.call_soon(self._send)

    @property
    def window(self) -> int:
        """Octets that TCP would still take."""
        return self.costs.socket_octets - len(self._socket) * self.costs.octets

    @property
    def inside(self) -> int:
        """Messages read and not yet confirmed: what the broker holds of this connection."""
        return self.read - self.confirmed

    @property
    def mailbox(self) -> int:
        """Messages that wait for the channel."""
        return self._work.depth

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
            self._socket.append(b"%s %d" % (self.name.encode(), self._sent))
            self._read_on()
            if self.costs.pace_us:
                self._sending = True
                self._clock.call_later(self.costs.pace_us, self._send)
                return

    # -- the reader -----------------------------------------------------------------------------

    def _read_on(self) -> None:
        """Read the next message, if nothing is in the way."""
        if self._socket and not self._reading and not self.reader.blocked:
            self._reading = True
            self._clock.call_later(self.costs.read_us, self._take)

    def _take(self) -> None:
        self._reading = False
        message = self._socket.popleft()
        self.read += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.reader.send(CHANNEL)
        if self.reader.blocked:
            self._log("block", READER, "credit-flow")
        self._work.post(message)
        if self._held:
            self._held = False
            self._log("unblock", "client", "tcp")
            if not self._sending:
                self._clock.call_soon(self._send)
        self._read_on()

    # -- the channel ----------------------------------------------------------------------------

    def _publish(self, message: bytes) -> None:
        self._grant(self.channel.handled(READER))
        self.port.send(Enqueue(payload=message))

    def _grant(self, grants: list[Grant]) -> None:
        for grant in grants:
            was = self.reader.blocked
            self.reader.granted(CHANNEL, grant.credit)
            if was and not self.reader.blocked:
                self._log("unblock", READER, "credit-flow")
            self._read_on()

    # -- said by the queue ------------------------------------------------------------------------

    def slowed(self, slow: bool, pending: int) -> None:
        """The soft limit: while the queue is slow the channel keeps its grants to itself."""
        self._log("block" if slow else "unblock", CHANNEL, "soft-limit", pending)
        if slow:
            self.channel.block(QUEUE)
        else:
            self._grant(self.channel.unblock(QUEUE))

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
