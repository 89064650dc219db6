"""A stream: a log to which messages are appended, and from which reading takes nothing away.

Every message has an offset, counted from 0. Every consumer has a place in the log of its own, and
gets what lies behind it as far as its credit goes. Rules, checked by a property test:

1. A consumer gets every message from its place on, in order of offsets, each once.
2. It gets no more than its credit. An outcome says nothing about credit, and changes nothing in the
   log: rejected and released messages are neither dropped nor delivered again.
3. `available` is the difference of two offsets, of the newest message and of the one that the
   consumer had last; what is really left may be other [`rabbit_stream_queue.erl`].
4. What is too old, or too much, is cut off at the old end, but never the newest message.
5. A consumer that wants some messages only gets those, and reads over the others while it has
   credit. What it does not read at all it has not had.

RabbitMQ writes messages in chunks and cuts off whole segments; here each message is both.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque

from msgspec.structs import replace

from .arguments import STREAM, QueueArguments
from .base import (
    Cancel,
    Checkout,
    Command,
    Confirm,
    Count,
    Credit,
    CreditReply,
    Deliver,
    DetachConsumer,
    Dispatch,
    Dropped,
    Effect,
    Enqueue,
    Expire,
    Meta,
    Modify,
    Purge,
    QueueError,
    Reject,
    Release,
    Reply,
    Selection,
    Settle,
    Settlement,
    SetWatermarks,
    Start,
    Stored,
    Touch,
)
from .consumers import Consumer, Consumers
from .limits import US_PER_MS

NO_META = Meta()
PLAIN_STREAM = QueueArguments(queue_type=STREAM)
NEXT = Start(at="next")
OFFSET = "x-stream-offset"


class StreamQueue:
    """Commands in, effects out; see `workbench.queues.base` for both.

    Args:
        name: of the stream.
        arguments: how it was declared.
        created_us: when.
    """

    single_active = False
    active: str | None = None

    def __init__(
        self, name: str, arguments: QueueArguments = PLAIN_STREAM, created_us: int = 0
    ) -> None:
        self.name = name
        self.arguments = arguments
        self._log: deque[Stored] = deque()
        self._octets = 0
        self._next = 0  # the offset of the message that comes next
        self._truncated = 0
        self._consumers = Consumers(name)
        self._place: dict[str, int] = {}  # the offset that each consumer gets next
        self._had: dict[str, int] = {}  # the offset that each had last, for `available`
        self._selections: dict[str, Selection] = {}  # of those who do not want everything

    # -- reading ----------------------------------------------------------------------------

    @property
    def ready(self) -> int:
        """Messages in the log."""
        return len(self._log)

    @property
    def unsettled(self) -> int:
        """Messages that consumers have not settled; all of them are in the log, or were."""
        return self._consumers.unsettled

    @property
    def octets(self) -> int:
        """Sizes of the messages in the log, added up."""
        return self._octets

    @property
    def enqueued(self) -> int:
        """Messages ever appended."""
        return self._next

    @property
    def truncated(self) -> int:
        """Messages that were cut off at the old end: the offset of the oldest that is left."""
        return self._truncated

    def available_to(self, consumer: str) -> int:
        """Newest offset less the one that the consumer had last, and never below 0."""
        return max(0, self._next - 1 - self._had[consumer]) if consumer in self._had else 0

    def consumers(self) -> tuple[str, ...]:
        """Names of the attached consumers, in order of attaching."""
        return self._consumers.names()

    def consumer(self, name: str) -> CreditReply:
        """Counters of one consumer."""
        return self._credited(self._consumers.known(name))

    def place_of(self, consumer: str) -> int:
        """The offset that the consumer gets next, if it is still there."""
        return max(self._place[consumer], self._truncated)

    def knows(self, consumer: str) -> bool:
        """Whether it is attached, or holds messages although it was cancelled."""
        return consumer in self._consumers

    def unsettled_ids(self, consumer: str) -> tuple[int, ...]:
        """Offsets that the consumer has not settled, in order of delivery."""
        return tuple(self._consumers.known(consumer).unsettled)

    def has_for(self, consumer: str) -> bool:
        """Whether a message lies behind the consumer's place."""
        return self.place_of(consumer) < self._next

    def next_out(self, unable: frozenset[str] = frozenset()) -> tuple[str, Stored] | None:
        """The consumer to whom a `Dispatch` would hand a message, and the message as it would go.

        Args:
            unable: consumers that cannot take one now, as in `Dispatch`.
        """
        for consumer in self._consumers.in_turn():
            name = consumer.name
            if consumer.link_credit and name not in unable and self.has_for(name):
                message = self._log[self.place_of(name) - self._truncated]
                return name, replace(
                    message, acquired_count=1, annotations={OFFSET: message.message_id}
                )
        return None

    def deliverable(self, unable: frozenset[str] = frozenset()) -> bool:
        """True if a `Dispatch` would hand out a message or give credit back."""
        for consumer in self._consumers:
            has = self.has_for(consumer.name)
            if consumer.link_credit and (
                (has and consumer.name not in unable) or (consumer.drain and not has)
            ):
                return True
        return False

    def deadline_us(self) -> int | None:
        """Never: age is looked at when a message comes."""
        return None

    def overview(self) -> dict[str, int | str]:
        """Flat picture: `name`, `ready`, `unsettled`, `terminal`, `enqueued`, `consumers`."""
        return {
            "name": self.name,
            "ready": self.ready,
            "unsettled": self.unsettled,
            "terminal": self._truncated,
            "enqueued": self._next,
            "consumers": len(self._consumers),
        }

    # -- commands ---------------------------------------------------------------------------

    def apply(self, command: Command, meta: Meta = NO_META) -> tuple[Reply, list[Effect]]:
        """Obey one command.

        Returns:
            The reply to whoever commanded, and the effects to be carried out in order.

        Raises:
            QueueError: if the command cannot be obeyed; the stream is as it was.
        """
        match command:
            case Enqueue():
                return None, self._append(command, meta.t_us)
            case Dispatch():
                return None, self._dispatch(command.unable)
            case Credit():
                return self._credit(command)
            case Settle() | Reject() | Release() | Modify():
                return self._settle(command)
            case Checkout():
                return self._checkout(command, meta.t_us)
            case Cancel():
                self._consumers.cancel(command.consumer)
                return self._gone(command.consumer)
            case DetachConsumer():
                self._consumers.detach(command.consumer)
                return self._gone(command.consumer)
            case Purge():
                raise QueueError(
                    f"{self.name} is a stream and cannot be purged; legal: let x-max-age or"
                    " x-max-length-bytes cut it, or delete it"
                )
            case SetWatermarks():
                raise QueueError(f"stream {self.name} has no watermarks; legal: a queue of Qpid's")
            case Expire() | Touch():
                return None, []

    def _append(self, command: Enqueue, now_us: int) -> list[Effect]:
        self._log.append(
            Stored(
                message_id=self._next,
                message=command.message,
                origin=command.origin,
                t_us=now_us,
            )
        )
        self._next += 1
        self._octets += command.message.size
        for name in self._selections:
            self._read_over(name)
        return [Confirm(publish=command.publish), *self._truncate(now_us)]

    def _truncate(self, now_us: int) -> list[Effect]:
        """Cut off at the old end what is too much or too old; one message always stays."""
        effects: list[Effect] = []
        most, oldest = self.arguments.max_length_bytes, self.arguments.max_age_ms
        while len(self._log) > 1:
            head = self._log[0]
            if most is not None and self._octets > most:
                reason = "maxlen"
            elif oldest is not None and now_us - head.t_us > oldest * US_PER_MS:
                reason = "expired"
            else:
                break
            self._log.popleft()
            self._octets -= head.message.size
            self._truncated += 1
            effects.append(Dropped(message=head, reason=reason))
        return effects

    def _checkout(self, command: Checkout, now_us: int) -> tuple[Reply, list[Effect]]:
        consumer = self._consumers.attach(command)
        place = self._begin(command.start or NEXT, now_us)
        self._place[consumer.name] = place
        # An offset that was asked for by number counts in RabbitMQ as if it had been had.
        asked = None if command.start is None else command.start.offset
        self._had[consumer.name] = place - 1 if asked is None else asked
        if command.selection is not None:
            self._selections[consumer.name] = command.selection
        return self._credited(consumer), []

    def _begin(self, start: Start, now_us: int) -> int:
        """The offset with which a consumer begins, or the first after it that is left."""
        if start.offset is not None:
            return start.offset
        since = start.t_us
        if start.age_us is not None:
            since = now_us - start.age_us
        if since is not None:
            times = [message.t_us for message in self._log]
            return self._truncated + bisect_left(times, since)
        if start.at == "first":
            return self._truncated
        if start.at == "last":
            return max(self._next - 1, 0)
        return self._next

    def _credit(self, command: Credit) -> tuple[Reply, list[Effect]]:
        consumer = self._consumers.known(command.consumer)
        consumer.grant(command)
        self._read_over(consumer.name)
        effects: list[Effect] = []
        if consumer.drain and not self.has_for(consumer.name):
            effects += consumer.give_back()
        return self._credited(consumer), effects

    def _dispatch(self, unable: frozenset[str]) -> list[Effect]:
        found = self.next_out(unable)
        effects: list[Effect] = []
        if found is not None:
            name, message = found
            consumer = self._consumers.known(name)
            self._consumers.served(consumer)
            self._place[name] = message.message_id + 1
            self._had[name] = message.message_id
            consumer.count_delivery()
            if not consumer.settled:
                consumer.unsettled[message.message_id] = message
            self._read_over(name)
            effects.append(Deliver(consumer=name, message=message, settled=consumer.settled))
        for consumer in self._consumers:
            if consumer.drain and consumer.link_credit and not self.has_for(consumer.name):
                effects += consumer.give_back()
        return effects

    def _read_over(self, name: str) -> None:
        """A consumer with credit moves on to the next message that it wants."""
        wanted = self._selections.get(name)
        if wanted is None or not self._consumers.known(name).link_credit:
            return
        place = self.place_of(name)
        while place < self._next:
            message = self._log[place - self._truncated]
            if wanted.passes is None or wanted.passes(message):
                if wanted.matches is None or wanted.matches(message):
                    break
                self._had[name] = place
            place += 1
        self._place[name] = place

    def _settle(self, command: Settlement) -> tuple[Reply, list[Effect]]:
        """Whatever the outcome: the consumer has done with them, and the log stays as it is."""
        consumer = self._consumers.known(command.consumer)
        count = len(consumer.held(command.message_ids))
        for number in command.message_ids:
            del consumer.unsettled[number]
        consumer.count_settled(count)
        self._consumers.settled(consumer)
        return Count(count=count), []

    def _gone(self, name: str) -> tuple[Reply, list[Effect]]:
        """A consumer reads no further; there is nothing to give back."""
        for kept in (self._place, self._had, self._selections):
            kept.pop(name, None)
        return Count(count=0), []

    def _credited(self, consumer: Consumer) -> CreditReply:
        return CreditReply(
            delivery_count=consumer.delivery_count,
            link_credit=consumer.link_credit,
            available=self.available_to(consumer.name),
            drain=consumer.drain,
        )
