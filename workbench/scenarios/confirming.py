"""Three ways to use publisher confirms, against one quorum queue, in virtual time.

One at a time: a message, its confirm, the next. Batches: N messages, then wait until all are
confirmed. Pipelined: never more than N unconfirmed, and each confirm makes room for one more, so
that the publisher brakes itself before the broker has to (RabbitMQ blog, 4 May 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.broker.quorum_client import ClientOwner, FifoClient
from workbench.broker.quorum_cluster import FRONT, QuorumCluster
from workbench.broker.quorum_node import SyncTime
from workbench.queues import Enqueue, Message
from workbench.queues.quorum_fifo import Logged, QuorumReply
from workbench.sim import Tap, VirtualClock

from .action import refusal
from .declare import Parameter, ParameterError

ONE_AT_A_TIME, BATCHES, PIPELINED = "one-at-a-time", "batches", "pipelined"
STRATEGIES = (ONE_AT_A_TIME, BATCHES, PIPELINED)
PAYLOAD = b"some payload"

N = Parameter(name="n", english="batch, or cap on unconfirmed", minimum=1, unit="messages")
SEND_US = Parameter(name="send_us", english="between two messages", minimum=0)
VIRTUAL_US = Parameter(name="virtual_us", english="how long they publish", minimum=1)
PUBLISHERS = Parameter(name="publishers", english="how many publish", minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """What came of a publisher's run.

    Attributes:
        messages: that were confirmed.
        seconds: of virtual time.
        latencies_us: from sending to confirm, one for each.
        confirmed_us: when each was confirmed.
        most_unconfirmed: at any time.
        blocks: how often the queue counted as slow.
    """

    messages: int
    seconds: float
    latencies_us: tuple[int, ...]
    confirmed_us: tuple[int, ...]
    most_unconfirmed: int
    blocks: int

    @property
    def rate(self) -> float:
        """Messages confirmed per second."""
        return self.messages / self.seconds

    @property
    def mean_latency_us(self) -> float:
        """Mean time from sending to confirm; 0 if nothing was confirmed."""
        return sum(self.latencies_us) / max(1, len(self.latencies_us))


class ConfirmingPublisher(ClientOwner):
    """A publisher with one of the strategies, until it is stopped.

    Args:
        clock: of the run.
        strategy: one of `STRATEGIES`.
        n: batch size, or the cap on unconfirmed.
        send_us: time that a message costs the publisher.

    Attributes:
        client: of the queue; made by `publish_for`, with this publisher as its owner.
    """

    def __init__(self, clock: VirtualClock, strategy: str, n: int, send_us: int) -> None:
        if strategy not in STRATEGIES:
            listed = ", ".join(STRATEGIES)
            raise ParameterError(refusal("name.strategy", name=repr(strategy), listed=listed))
        N.check(n)
        SEND_US.check(send_us)
        self.client: FifoClient | None = None
        self.unconfirmed: dict[int, int] = {}
        self.latencies_us: list[int] = []
        self.confirmed_us: list[int] = []
        self.most_unconfirmed = 0
        self.blocks = 0
        self._clock = clock
        self._strategy = strategy
        self._n = 1 if strategy == ONE_AT_A_TIME else n
        self._send_us = send_us
        self._batch_left = self._n
        self._sending = False

    def begin(self) -> None:
        """Send as the strategy allows."""
        if not self._sending and self._may():
            self._sending = True
            self._clock.call_later(self._send_us, self._send)

    def _may(self) -> bool:
        if self._strategy == BATCHES:
            if self._batch_left == 0 and not self.unconfirmed:
                self._batch_left = self._n
            return self._batch_left > 0
        return len(self.unconfirmed) < self._n

    def _send(self) -> None:
        self._sending = False
        assert self.client is not None
        self.unconfirmed[self.client.sent + 1] = self._clock.now_us
        self.most_unconfirmed = max(self.most_unconfirmed, len(self.unconfirmed))
        self._batch_left -= 1
        self.client.send(Enqueue(message=Message(payload=PAYLOAD)))
        self.begin()

    def replied(self, logged: Logged, reply: QuorumReply) -> None:
        """A confirm."""
        self.latencies_us.append(self._clock.now_us - self.unconfirmed.pop(logged.seq))
        self.confirmed_us.append(self._clock.now_us)
        self.begin()

    def slowed(self, slow: bool, pending: int) -> None:
        """Its own cap is what it heeds; how often the broker would have braked is counted."""
        self.blocks += slow


def publish_for(
    strategy: str,
    *,
    n: int = 100,
    publishers: int = 1,
    virtual_us: int = 1_000_000,
    fsync_us: int = 5_000,
    replicas: int = 3,
    latency_us: int = 200,
    send_us: int = 10,
    tap: Tap | None = None,
) -> list[Confirmed]:
    """Let publishers with the same strategy send to one queue for some virtual time.

    Raises:
        ParameterError, QueueError: if a number is not legal.
    """
    VIRTUAL_US.check(virtual_us)
    PUBLISHERS.check(publishers)
    clock = VirtualClock()
    cluster = QuorumCluster(
        clock, tap, nodes=replicas, fsync=SyncTime.constant(fsync_us), latency_us=latency_us
    )
    group = cluster.declare("q", replicas=replicas)
    racing = []
    for number in range(publishers):
        publisher = ConfirmingPublisher(clock, strategy, n, send_us)
        publisher.client = FifoClient(group, clock, f"p{number}", place=FRONT, owner=publisher)
        publisher.begin()
        racing.append(publisher)
    while clock.next_us is not None and clock.next_us <= virtual_us:
        clock.step()
    return [
        Confirmed(
            messages=len(each.latencies_us),
            seconds=virtual_us / 1_000_000,
            latencies_us=tuple(each.latencies_us),
            confirmed_us=tuple(each.confirmed_us),
            most_unconfirmed=each.most_unconfirmed,
            blocks=each.blocks,
        )
        for each in racing
    ]
