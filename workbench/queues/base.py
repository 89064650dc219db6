"""What every kind of queue has in common: commands go in, a reply and effects come out.

A queue is a state machine without clock, socket or tap: `apply(command, meta)` changes the queue
and nothing else, and says as data what should happen outside. Whoever owns the queue (an actor on
a virtual clock, a task behind a socket) carries the effects out. Credit is counted as on an AMQP
1.0 link, by delivery-count, because a count of messages alone cannot survive a race
[AMQP 1.0, 2.6.7].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


class QueueError(Exception):
    """A command that the queue cannot obey; nothing has changed. The text says what is legal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Circumstances of a command: when it is applied and who sent it."""

    t_us: int = 0
    sender: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How a message came to its queue.

    Attributes:
        exchange: that it was published to; `""` is the default exchange.
        routing_keys: that it was published with; a dead letter keeps them.
        deaths: what whoever routes dead letters wants to remember of earlier ones.
        delivery_count: attempts to deliver it that failed before it died.
    """

    exchange: str = ""
    routing_keys: tuple[str, ...] = ()
    deaths: tuple[Any, ...] = ()
    delivery_count: int = 0


NOWHERE = Origin()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message as the queue keeps it.

    Attributes:
        message_id: its place in the queue, from 0; requeued messages go back to this place.
        payload: the encoded message, as it came.
        delivery_count: failed attempts to deliver it [3.2.1]; not the link's delivery-count.
        acquired_count: how often it was handed to a consumer.
        annotations: message annotations that a modified outcome asked to merge [3.4.5].
        barred: consumers that said undeliverable-here.
        origin: how it came to the queue.
        t_us: when it was taken in.
        expires_us: when it is too old to be handed out; None is never.
    """

    message_id: int
    payload: bytes
    message_format: int = 0
    delivery_count: int = 0
    acquired_count: int = 0
    annotations: Mapping[Any, Any] = field(default_factory=dict)
    barred: frozenset[str] = frozenset()
    origin: Origin = NOWHERE
    t_us: int = 0
    expires_us: int | None = None

    def handed_out(self) -> Stored:
        """The message as it is after it was handed to a consumer once more."""
        return Stored(  # a third of the time of `replace`, and done for every message
            message_id=self.message_id,
            payload=self.payload,
            message_format=self.message_format,
            delivery_count=self.delivery_count,
            acquired_count=self.acquired_count + 1,
            annotations=self.annotations,
            barred=self.barred,
            origin=self.origin,
            t_us=self.t_us,
            expires_us=self.expires_us,
        )

    def failed(self) -> Stored:
        """The message after one more attempt to deliver it that failed."""
        return replace(self, delivery_count=self.delivery_count + 1)

    def rejected(self, command: Reject) -> Stored:
        """The message as it leaves a queue whose consumer has rejected it."""
        message = self.failed() if command.delivery_failed else self
        if not command.annotations:
            return message
        return replace(message, annotations={**message.annotations, **command.annotations})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which messages of a stream a consumer wants; None: whatever there is.

    Attributes:
        passes: whether a message is read at all.
        matches: whether one that is read is handed out.
    """

    passes: Callable[[Stored], bool] | None = None
    matches: Callable[[Stored], bool] | None = None


# -- commands -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueue:
    """Append a message; `publish` comes back in the `Confirm` effect, or in `Rejected`.

    Attributes:
        ttl_ms: how long the message may wait by its own header [3.2.1]; None: as the queue says.
        priority: of its header [3.2.1]; a quorum queue alone heeds it.
        unable: consumers that cannot take a message now, as in `Dispatch`; what others can take at
            once neither expires nor finds no room.
        origin: how it came to the queue; kept with the message.
    """

    payload: bytes
    message_format: int = 0
    publish: Any = None
    ttl_ms: int | None = None
    priority: int | None = None
    origin: Origin = NOWHERE
    unable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """Attach a consumer; it gets nothing until it has credit.

    Attributes:
        delivery_count: the link's initial-delivery-count, so that both count alike.
        settled: True if deliveries are settled as they leave (at most once).
        priority: consumers with a higher one are served first, as long as they have credit.
        start: where to begin in a stream; other queues begin with what is ready.
        selection: what of a stream it wants; None: all.
    """

    consumer: str
    delivery_count: int = 0
    settled: bool = False
    priority: int = 0
    start: Start | None = None
    selection: Selection | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What a flow says: credit is absolute, counted from `delivery_count` [2.6.7]."""

    consumer: str
    delivery_count: int
    link_credit: int
    drain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """Hand out at most one message, to the next consumer in turn that can take one.

    Attributes:
        unable: consumers that have credit but cannot take a message now (session window closed).
    """

    unable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settle:
    """Accepted: the messages are done with."""

    consumer: str
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """Rejected: the messages are invalid and leave the queue.

    Attributes:
        delivery_failed: that counts as a failed attempt, which a dead letter tells.
        annotations: that a modified outcome asked to merge [3.4.5], if it was one.
    """

    consumer: str
    message_ids: tuple[int, ...]
    delivery_failed: bool = False
    annotations: Mapping[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Released: back to their place, as if never sent; no failed attempt is counted."""

    consumer: str
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Modify:
    """Modified: back to their place, changed as said [3.4.5]."""

    consumer: str
    message_ids: tuple[int, ...]
    delivery_failed: bool = False
    undeliverable_here: bool = False
    annotations: Mapping[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachConsumer:
    """The consumer is gone; what it had not settled goes back to its place.

    Attributes:
        delivery_failed: that counts as a failed attempt to deliver it.
    """

    consumer: str
    delivery_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Drop every ready message; unsettled ones stay with their consumers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """Time has passed: whatever is too old by `Meta.t_us` goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """Somebody has declared the queue again: it is not unused."""


Command = (
    Enqueue
    | Checkout
    | Credit
    | Dispatch
    | Settle
    | Reject
    | Release
    | Modify
    | DetachConsumer
    | Purge
    | Expire
    | Touch
)


# -- replies --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Credited:
    """Answer to `Credit` and `Checkout`: the consumer's counters and how much is ready.

    Attributes:
        active: whether messages are for this consumer; None: this kind of queue does not tell.
    """

    delivery_count: int
    link_credit: int
    available: int
    drain: bool = False
    active: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many messages the command concerned."""

    count: int


Reply = Credited | Count | None


# -- effects --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Deliver:
    """Hand this message to the consumer; its credit has been used already."""

    consumer: str
    message: Stored
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """The queue has taken responsibility for the message of that `Enqueue`."""

    publish: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """Nothing is left for a draining consumer: its remaining credit is given back [2.6.7]."""

    consumer: str
    delivery_count: int
    given_back: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A message has left the queue undelivered or unwanted; `reason` says why."""

    message: Stored
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The queue does not take the message of that `Enqueue`; `reason` says why (`maxlen`)."""

    publish: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettered:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Activated:
    """On a queue with a single active consumer this one is it from now on."""

    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeued:
    """A consumer is gone, and so many of its messages are back in their places."""

    consumer: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The queue is to be deleted, with all that is in it; `reason` says why (`expired`)."""

    reason: str


Effect = (
    Deliver | Confirm | Rejected | Drained | Dropped | DeadLettered | Activated | Requeued | Gone
)
