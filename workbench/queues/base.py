"""What every kind of queue has in common: commands go in, a reply and effects come out.

A queue is a state machine without clock, socket or tap: `apply(command, meta)` changes the queue
and nothing else, and says as data what should happen outside. Whoever owns the queue (an actor on
a virtual clock, a task behind a socket) carries the effects out. Credit is counted as on an AMQP
1.0 link, by delivery-count, because a count of messages alone cannot survive a race
[AMQP 1.0, 2.6.7].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .message import Message


class QueueError(Exception):
    """A command that the queue cannot obey; nothing has changed. The text says what is legal."""


class Meta(Struct, frozen=True, gc=False, kw_only=True):
    """Circumstances of a command: when it is applied and who sent it."""

    t_us: int = 0
    sender: str = ""


class Death(Struct, frozen=True, gc=False, kw_only=True):
    """What is remembered of the deaths of one message in one queue for one reason.

    Attributes:
        reason: `expired`, `maxlen`, `rejected` or `delivery_limit`.
        count: how often.
        exchange, routing_keys: how it had come to the queue.
        first_us, last_us: the first and the last time, since 1970 where the clock knows.
        ttl_ms: of its own header, when it died the first time.
    """

    queue: str
    reason: str
    count: int = 1
    exchange: str
    routing_keys: tuple[str, ...]
    first_us: int
    last_us: int
    ttl_ms: int | None = None


class Origin(Struct, frozen=True, gc=False, kw_only=True):
    """How a message came to its queue.

    Attributes:
        exchange: that it was published to; `""` is the default exchange.
        routing_keys: that it was published with; a dead letter keeps them.
        deaths: where and why it died before, the latest first.
        delivery_count: attempts to deliver it that failed before it died.
    """

    exchange: str = ""
    routing_keys: tuple[str, ...] = ()
    deaths: tuple[Death, ...] = ()
    delivery_count: int = 0


NOWHERE = Origin()


class Stored(Struct, frozen=True, gc=False, kw_only=True):
    """A message as the queue keeps it.

    Attributes:
        message_id: its place in the queue, from 0; requeued messages go back to this place.
        message: as it was published.
        delivery_count: failed attempts to deliver it [3.2.1]; not the link's delivery-count.
        acquired_count: how often it was handed to a consumer.
        annotations: message annotations that a modified outcome asked to merge [3.4.5].
        barred: consumers that said undeliverable-here.
        origin: how it came to the queue.
        t_us: when it was taken in.
        expires_us: when it is too old to be handed out; None is never.
    """

    message_id: int
    message: Message
    delivery_count: int = 0
    acquired_count: int = 0
    annotations: Mapping[Any, Any] = {}
    barred: frozenset[str] = frozenset()
    origin: Origin = NOWHERE
    t_us: int = 0
    expires_us: int | None = None

    @property
    def payload(self) -> bytes:
        """The message's octets."""
        return self.message.payload

    def handed_out(self) -> Stored:
        """The message as it is after it was handed to a consumer once more."""
        return Stored(  # a third of the time of `replace`, and done for every message
            message_id=self.message_id,
            message=self.message,
            delivery_count=self.delivery_count,
            acquired_count=self.acquired_count + 1,
            annotations=self.annotations,
            barred=self.barred,
            origin=self.origin,
            t_us=self.t_us,
            expires_us=self.expires_us,
        )

    def is_too_old(self, now_us: int) -> bool:
        """Whether it may not be handed out any more."""
        return self.expires_us is not None and self.expires_us <= now_us

    def failed(self) -> Stored:
        """The message after one more attempt to deliver it that failed."""
        return replace(self, delivery_count=self.delivery_count + 1)

    def rejected(self, command: Reject) -> Stored:
        """The message as it leaves a queue whose consumer has rejected it."""
        message = self.failed() if command.delivery_failed else self
        if not command.annotations:
            return message
        return replace(message, annotations={**message.annotations, **command.annotations})

    def modified(self, command: Modify) -> Stored:
        """The message as it goes back to a queue whose consumer has modified it [3.4.5]."""
        barred = {command.consumer} if command.undeliverable_here else frozenset()
        return replace(
            self,
            delivery_count=self.delivery_count + command.delivery_failed,
            annotations={**self.annotations, **command.annotations},
            barred=self.barred | barred,
        )


class Start(Struct, frozen=True, gc=False, kw_only=True):
    """Where a consumer begins in a stream; one of the four is given.

    Attributes:
        at: `first` message, `last` one, or `next` one to come.
        offset: this message, or the first after it.
        t_us: the first message taken in at this time or later.
        age_us: the first message that is no older than this.
    """

    at: str = ""
    offset: int | None = None
    t_us: int | None = None
    age_us: int | None = None


class Selection(Struct, frozen=True, kw_only=True):
    """Which messages of a stream a consumer wants; None: whatever there is.

    Attributes:
        passes: whether a message is read at all.
        matches: whether one that is read is handed out.
    """

    passes: Callable[[Stored], bool] | None = None
    matches: Callable[[Stored], bool] | None = None


# -- commands -------------------------------------------------------------------------------


class Enqueue(Struct, frozen=True, kw_only=True):
    """Append a message; `publish` comes back in the `Confirm` effect, or in `Rejected`.

    Attributes:
        unable: consumers that cannot take a message now, as in `Dispatch`; what others can take at
            once neither expires nor finds no room.
        origin: how it came to the queue; kept with the message.
    """

    message: Message
    publish: Any = None
    origin: Origin = NOWHERE
    unable: frozenset[str] = frozenset()

    def stored(self, message_id: int, t_us: int = 0, expires_us: int | None = None) -> Stored:
        """The message as the queue that takes it in keeps it."""
        return Stored(
            message_id=message_id,
            message=self.message,
            delivery_count=self.origin.delivery_count,
            origin=self.origin,
            t_us=t_us,
            expires_us=expires_us,
        )


class Credited(Struct, frozen=True, gc=False):
    """A consumer gets credit by `Credit` alone, and nothing before it, as on an AMQP 1.0 link.

    Attributes:
        delivery_count: the link's initial-delivery-count, so that both count alike.
    """

    delivery_count: int = 0


class Prefetch(Struct, frozen=True, gc=False):
    """A consumer has credit from the beginning, and each settlement gives it back.

    Attributes:
        count: so many messages may be unsettled.
    """

    count: int


CreditMode = Credited | Prefetch


class Checkout(Struct, frozen=True, kw_only=True):
    """Attach a consumer.

    Attributes:
        mode: how it gets credit.
        settled: True if deliveries are settled as they leave (at most once).
        priority: consumers with a higher one are served first, as long as they have credit.
        start: where to begin in a stream; other queues begin with what is ready.
        selection: what of a stream it wants; None: all.
    """

    consumer: str
    mode: CreditMode = Credited()
    settled: bool = False
    priority: int = 0
    start: Start | None = None
    selection: Selection | None = None


class Credit(Struct, frozen=True, gc=False, kw_only=True):
    """What a flow says: credit is absolute, counted from `delivery_count` [2.6.7]."""

    consumer: str
    delivery_count: int
    link_credit: int
    drain: bool = False


class Dispatch(Struct, frozen=True, gc=False, kw_only=True):
    """Hand out at most one message, to the next consumer in turn that can take one.

    Attributes:
        unable: consumers that have credit but cannot take a message now (session window closed).
    """

    unable: frozenset[str] = frozenset()


class Settle(Struct, frozen=True, gc=False, kw_only=True):
    """Accepted: the messages are done with."""

    consumer: str
    message_ids: tuple[int, ...]


class Reject(Struct, frozen=True, gc=False, kw_only=True):
    """Rejected: the messages are invalid and leave the queue.

    Attributes:
        delivery_failed: that counts as a failed attempt, which a dead letter tells.
        annotations: that a modified outcome asked to merge [3.4.5], if it was one.
    """

    consumer: str
    message_ids: tuple[int, ...]
    delivery_failed: bool = False
    annotations: Mapping[Any, Any] = {}


class Release(Struct, frozen=True, gc=False, kw_only=True):
    """Released: back to their place, as if never sent; no failed attempt is counted."""

    consumer: str
    message_ids: tuple[int, ...]


class Modify(Struct, frozen=True, gc=False, kw_only=True):
    """Modified: back to their place, changed as said [3.4.5]."""

    consumer: str
    message_ids: tuple[int, ...]
    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: Mapping[Any, Any] = {}


class Cancel(Struct, frozen=True, gc=False, kw_only=True):
    """The consumer gets nothing more; what it has not settled stays with it until it has."""

    consumer: str


class DetachConsumer(Struct, frozen=True, gc=False, kw_only=True):
    """The consumer is gone; what it had not settled goes back to its place.

    Attributes:
        delivery_failed: that counts as a failed attempt to deliver it.
    """

    consumer: str
    delivery_failed: bool = False


class Purge(Struct, frozen=True, gc=False, kw_only=True):
    """Drop every ready message; unsettled ones stay with their consumers."""


class Expire(Struct, frozen=True, gc=False, kw_only=True):
    """Time has passed: whatever is too old by `Meta.t_us` goes."""


class Touch(Struct, frozen=True, gc=False, kw_only=True):
    """Somebody has declared the queue again: it is not unused."""


class SetWatermarks(Struct, frozen=True, gc=False, kw_only=True):
    """A queue of Qpid's has other watermarks from now on; 0 is none.

    Attributes:
        stop_count, stop_size: above either it is stopped.
        resume_count, resume_size: below both it goes on.
    """

    stop_count: int = 0
    resume_count: int = 0
    stop_size: int = 0
    resume_size: int = 0


Settlement = Settle | Reject | Release | Modify
Command = (
    Enqueue
    | Checkout
    | Credit
    | Dispatch
    | Settlement
    | Cancel
    | DetachConsumer
    | Purge
    | Expire
    | Touch
    | SetWatermarks
)


# -- replies --------------------------------------------------------------------------------


class CreditReply(Struct, frozen=True, gc=False, kw_only=True):
    """Answer to `Credit` and `Checkout`: the consumer's counters and how much is ready.

    Attributes:
        active: whether messages are for this consumer; None: this kind of queue does not tell.
    """

    delivery_count: int
    link_credit: int
    available: int
    drain: bool = False
    active: bool | None = None


class Count(Struct, frozen=True, gc=False, kw_only=True):
    """How many messages the command concerned."""

    count: int


Reply = CreditReply | Count | None


# -- effects --------------------------------------------------------------------------------


class Deliver(Struct, frozen=True, gc=False, kw_only=True):
    """Hand this message to the consumer; its credit has been used already."""

    consumer: str
    message: Stored
    settled: bool


class Confirm(Struct, frozen=True, kw_only=True):
    """The queue has taken responsibility for the message of that `Enqueue`.

    Attributes:
        held: it was taken in before, and `Held` has told so.
    """

    publish: Any
    held: bool = False


class Held(Struct, frozen=True, kw_only=True):
    """The message of that `Enqueue` is taken in; its `Confirm` comes when less is in the queue."""

    publish: Any


class FlowChanged(Struct, frozen=True, gc=False, kw_only=True):
    """The queue holds confirms back from now on, or no longer."""

    stopped: bool


class Drained(Struct, frozen=True, gc=False, kw_only=True):
    """Nothing is left for a draining consumer: its remaining credit is given back [2.6.7]."""

    consumer: str
    delivery_count: int
    given_back: int


class Dropped(Struct, frozen=True, gc=False, kw_only=True):
    """A message has left the queue undelivered or unwanted; `reason` says why."""

    message: Stored
    reason: str


class Rejected(Struct, frozen=True, kw_only=True):
    """The queue does not take the message of that `Enqueue`; `reason` says why (`maxlen`)."""

    publish: Any
    reason: str


class DeadLettered(Struct, frozen=True, gc=False, kw_only=True):
    """A message has left the queue and is to be published again, to an exchange.

    Attributes:
        reason: `expired`, `maxlen`, `rejected` or `delivery_limit`.
        exchange: the queue's dead-letter exchange; `""` is the default exchange.
        routing_keys: with which keys: the queue's one, or those that the message came with.
    """

    message: Stored
    reason: str
    exchange: str
    routing_keys: tuple[str, ...]


class Activated(Struct, frozen=True, gc=False, kw_only=True):
    """On a queue with a single active consumer this one is it from now on."""

    consumer: str


class Requeued(Struct, frozen=True, gc=False, kw_only=True):
    """A consumer is gone, and so many of its messages are back in their places."""

    consumer: str
    count: int


class Gone(Struct, frozen=True, gc=False, kw_only=True):
    """The queue is to be deleted, with all that is in it; `reason` says why (`expired`)."""

    reason: str


Effect = (
    Deliver
    | Confirm
    | Held
    | FlowChanged
    | Rejected
    | Drained
    | Dropped
    | DeadLettered
    | Activated
    | Requeued
    | Gone
)
