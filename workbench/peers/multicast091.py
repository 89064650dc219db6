"""Producer and consumer of MulticastMain, a program that came with RabbitMQ's Java client in 2008.

The producer publishes as fast as its socket takes it, and writes the time into each message. The
consumer has a QueueingConsumer: whatever comes goes into a buffer in the client's memory, from
which the program takes one message after the other. So its socket is always read, TCP never holds
the broker, and what the program has not come to fills the client's heap, until that is full. Both
tell their rates about once a second, in the program's own words.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from workbench.amqp091.events import Event, MessageReceived, MethodReceived
from workbench.amqp091.methods import (
    BasicAck,
    BasicConsume,
    BasicDeliver,
    BasicQos,
    TxCommit,
    TxCommitOk,
    TxSelect,
)

from .client091 import Overview, Publisher091, Task091

STAMP_OCTETS = 8
TELL_US = 1_000_000
HEAP_OCTETS = 512 * 2**20  # java -Xmx512m


@dataclass(frozen=True, slots=True)
class Rate:
    """A line that the program has written.

    Attributes:
        since_us, t_us: the time that it is about.
        messages: sent or received in it.
        latency_us: least, average and largest time from publishing to the program; None: sent.
    """

    since_us: int
    t_us: int
    messages: int
    latency_us: tuple[int, int, int] | None = None

    @property
    def per_second(self) -> float:
        """Messages a second."""
        return self.messages * 1_000_000 / (self.t_us - self.since_us)

    def __str__(self) -> str:
        """As MulticastMain writes it."""
        rate = f"{self.per_second:.0f} msg/s"
        if self.latency_us is None:
            return f"sending rate: {rate}"
        least, average, most = self.latency_us
        return f"recving rate: {rate}, min/avg/max latency: {least}/{average}/{most} microseconds"


class MulticastProducer(Publisher091):
    """Publishes messages that begin with the time; see `Publisher091` for the arguments.

    Attributes:
        rates: what it has told.
    """

    rates: list[Rate]

    def begin(self) -> None:
        """Begins to count."""
        self.rates = []
        self._since_us = self.client.clock.now_us
        self._sent = 0
        super().begin()

    def body(self) -> bytes:
        """The time, and as much more as was asked for."""
        now_us = self.client.clock.now_us
        if now_us - self._since_us >= TELL_US and self._sent:
            self.rates.append(Rate(self._since_us, now_us, self._sent))
            self._since_us, self._sent = now_us, 0
        self._sent += 1
        return now_us.to_bytes(STAMP_OCTETS, "big") + self._body[STAMP_OCTETS:]


class MulticastConsumer(Task091):
    """Takes messages out of its buffer one by one, and acknowledges each.

    Args:
        name: of the task; its consumer-tag.
        queue: from which.
        processing_us: how long the program works on one message.
        transactional: each acknowledgement is a transaction, for whose end the program waits.
        prefetch: what it asks for by basic.qos; 0: it does not ask.
        heap_octets: what its buffer may hold.
        on_heap_full: called once, when more has come.

    Attributes:
        received: messages that have come.
        processed: those that the program is done with.
        buffered_octets: of messages that wait in the buffer.
        most_octets: that ever waited there.
        most_latency_us: from publishing to the program, the largest.
        rates: what it has told.
        heap_full: it has ended for want of memory.
    """

    def __init__(
        self,
        name: str,
        queue: str,
        *,
        processing_us: int = 0,
        transactional: bool = False,
        prefetch: int = 0,
        heap_octets: int = HEAP_OCTETS,
        on_heap_full: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name)
        self.received = self.processed = self.buffered_octets = self.most_octets = 0
        self.most_latency_us = 0
        self.rates: list[Rate] = []
        self.heap_full = False
        self._queue = queue
        self._processing_us = processing_us
        self._transactional = transactional
        self._prefetch = prefetch
        self._heap_octets = heap_octets
        self._on_heap_full = on_heap_full
        self._buffer: deque[tuple[int, int, bytes]] = deque()  # tag, came at, body
        self._busy = False
        self._since_us: int | None = None
        self._latencies: list[int] = []

    def begin(self) -> None:
        """Consumes; with a prefetch and in transactions if it was asked to."""
        if self._transactional:
            self.open.send(TxSelect())
        if self._prefetch:
            self.open.send(BasicQos(prefetch_count=self._prefetch))
        self.open.send(BasicConsume(queue=self._queue, consumer_tag=self.name))

    def handle(self, event: Event) -> None:
        """Keeps a delivery; goes on when a transaction is over."""
        if isinstance(event, MethodReceived) and isinstance(event.method, TxCommitOk):
            self._next()
        elif isinstance(event, MessageReceived) and isinstance(event.method, BasicDeliver):
            self._take(event.method.delivery_tag, event.body)

    def _take(self, tag: int, body: bytes) -> None:
        if self.heap_full:
            return
        self.received += 1
        self.buffered_octets += len(body)
        self.most_octets = max(self.most_octets, self.buffered_octets)
        if self.buffered_octets > self._heap_octets:
            self.heap_full = True
            self.client.note("crash", "heap", self.open)
            self._on_heap_full()
            return
        self._buffer.append((tag, self.client.clock.now_us, body))
        if not self._busy:
            self._next()

    def _next(self) -> None:
        """Take the oldest message out of the buffer."""
        self._busy = bool(self._buffer) and not self.heap_full
        if not self._busy:
            return
        tag, came_us, body = self._buffer.popleft()
        self.buffered_octets -= len(body)
        self._count(came_us, body)
        self.client.clock.call_later(self._processing_us, self._done, tag)

    def _done(self, tag: int) -> None:
        if self.heap_full or self.amqp is None or not self.amqp.usable:
            return
        self.processed += 1
        self.amqp.send(BasicAck(delivery_tag=tag))
        if self._transactional:
            self.amqp.send(TxCommit())  # the program waits for its end
        else:
            self._next()

    def _count(self, came_us: int, body: bytes) -> None:
        now_us = self.client.clock.now_us
        if self._since_us is None:
            self._since_us = now_us
        if now_us - self._since_us >= TELL_US and self._latencies:
            told = self._latencies
            latency = min(told), round(sum(told) / len(told)), max(told)
            self.rates.append(Rate(self._since_us, now_us, len(told), latency))
            self._since_us, self._latencies = now_us, []
        stamped = len(body) >= STAMP_OCTETS
        latency_us = now_us - (int.from_bytes(body[:STAMP_OCTETS], "big") if stamped else came_us)
        self._latencies.append(latency_us)
        self.most_latency_us = max(self.most_latency_us, latency_us)

    def overview(self) -> Overview:
        """Flat picture: what came, what the program is done with, and what waits in the heap."""
        return {
            "received": self.received,
            "processed": self.processed,
            "buffered": len(self._buffer),
            "buffered_octets": self.buffered_octets,
            "heap_full": self.heap_full,
        }
