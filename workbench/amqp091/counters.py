"""What a channel counts: consumers, prefetch, deliveries that wait, messages to be confirmed.

Both ends count the same from the same methods, so one book serves client, server and a watcher;
they differ only in when a method comes by.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from workbench.amqp091.methods import (
    METHODS,
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicRecover,
    BasicRecoverAsync,
    BasicReject,
    ChannelFlow,
    ConfirmSelect,
    Method,
    TxCommit,
    TxRollback,
    TxSelect,
)

__all__ = ["BEHIND_GETS", "MADE_UP", "ChannelCounters", "Consumer", "Ledger"]

MADE_UP = "amq.ctag-"
"""How a tag begins that the broker has made up (`rabbit_channel.erl`)."""

Ledger: TypeAlias = dict[str, int | bool]


@dataclass(slots=True)
class Consumer:
    """A consumer on a channel.

    Attributes:
        tag: its name on the channel.
        queue: that it consumes from.
        no_ack: its deliveries need no acknowledgement, and no prefetch holds them.
        prefetch_count: the limit that qos had set, for consumers started afterwards, when it
            started; 0: none.
        unacked: deliveries to it that are not acknowledged, or only in a transaction that is open:
            RabbitMQ tells its queues, and who counts for the prefetch, when that is committed.
    """

    tag: str
    queue: str
    no_ack: bool
    prefetch_count: int
    unacked: int = 0


class ChannelCounters:
    """The book of one channel.

    Attributes:
        prefetch_count: of the last qos with global false: for consumers that start from here on,
            in RabbitMQ's reading. 0: no limit.
        prefetch_shared: of the last qos with global true: for the channel as a whole.
        publishing: the client may publish, by the broker's last channel.flow.
        delivering: the broker may deliver, by the client's last channel.flow.
        consumers: by tag.
        delivered: the delivery-tag given last.
        unacked: consumer's tag by delivery-tag, of deliveries not acknowledged; None: a get.
        confirming: confirm.select has passed.
        transactional: tx.select has passed.
        published: messages published since confirm.select, or without it since the start.
        confirmed: those that were confirmed, or refused.
        unconfirmed: numbers of those that were not, in order; of a channel in confirm mode.
    """

    def __init__(self) -> None:
        self.prefetch_count = 0
        self.prefetch_shared = 0
        self.publishing = True
        self.delivering = True
        self.consumers: dict[str, Consumer] = {}
        self.delivered = 0
        self.unacked: dict[int, str | None] = {}
        self.confirming = False
        self.transactional = False
        self.published = 0
        self.confirmed = 0
        self.unconfirmed: dict[int, None] = {}
        # Consumes and cancels without answer so far, and those that want none behind them.
        self._asked: deque[BasicConsume | BasicCancel] = deque()
        # Gets without answer so far, and what is counted behind their answers; a get comes first.
        self._getting: deque[Method] = deque()
        self._acked: dict[int, str | None] = {}  # in a transaction
        self._nameless: deque[Consumer] = deque()  # consume had no tag and wanted no answer
        self._held: dict[str, Consumer] = {}  # gone, with unacknowledged deliveries
        # Everything up to these numbers is acknowledged, or confirmed.
        self._acked_to = 0
        self._confirmed_to = 0

    def see(self, method: Method, from_client: bool) -> tuple[int, ...]:
        """Counts a method that was sent or received; behind a get, perhaps when that is answered.

        Args:
            method: any of a channel.
            from_client: the client sent it.

        Returns:
            The tags or numbers that it concerns; see `events.MethodReceived.tags`.
        """
        if from_client and self._getting and type(method) in BEHIND_GETS:
            self._getting.append(method)
            return ()
        return self.count(method, from_client)

    def count(self, method: Method, from_client: bool) -> tuple[int, ...]:
        """As `see`, by whoever knows that its turn has come."""
        handler = _SEEN.get(type(method))
        return () if handler is None else handler(self, method, from_client) or ()

    def lost(self) -> None:
        """Methods have been missed: no answer is waited for any more."""
        self._asked.clear()
        while self._getting:
            self._getting.popleft()
            self._catch_up()

    def named(self, tag: str) -> None:
        """The broker has made up a tag for the oldest consumer that has none.

        The client of a consume that wants no answer hears it with the first delivery.
        """
        if self._nameless:
            consumer = self._nameless.popleft()
            consumer.tag = tag
            self.consumers[tag] = consumer

    @property
    def getting(self) -> bool:
        """A basic.get has not been answered: it may bring a delivery, which the client may name."""
        return bool(self._getting)

    def knows(self, method: BasicAck | BasicNack | BasicReject) -> bool:
        """Whether the client may settle the delivery with this tag."""
        tag = method.delivery_tag
        everything = tag == 0 and not isinstance(method, BasicReject) and method.multiple
        return everything or tag in self.unacked

    def ledger(self, consumer: str | None = None) -> Ledger:
        """The counters, of one consumer if it is named.

        Returns:
            `prefetch_count` and `unacknowledged`: the consumer's limit and its deliveries, or the
            channel's: the shared limit, or the one for the next consumer. Of a consumer that both
            hold, the one that leaves it less. `shared_room`: deliveries left by a limit that the
            channel's consumers share. `published` and `confirmed` of a channel in confirm mode.
        """
        found = self._consumer(consumer)
        if found is not None:
            limit, unacked = found.prefetch_count, found.unacked
        else:  # one that begins, or is gone, has nothing, whatever its channel has
            limit, unacked = self.prefetch_count, self._counted if consumer is None else 0
        shared = self.prefetch_shared
        own = limit and found is not None and limit - unacked < shared - self._counted
        ledger: Ledger = {
            "prefetch_count": limit if own else shared or limit,
            "unacknowledged": self._counted if shared and not own else unacked,
        }
        if shared:
            ledger["shared_room"] = max(0, shared - self._counted)
        if self.confirming:
            ledger["published"] = self.published
            ledger["confirmed"] = self.confirmed
        return ledger

    def consumer_of(self, method: Method) -> str | None:
        """The consumer that a method concerns; of an ack only before it is counted."""
        said: Any = method
        if type(method) in _TAGGED:
            return said.consumer_tag or None
        return self.unacked.get(said.delivery_tag) if type(method) in _SETTLING else None

    @property
    def _counted(self) -> int:
        """Deliveries of the channel that count, whoever has them."""
        return len(self.unacked) + len(self._acked)

    def _consumer(self, tag: str | None) -> Consumer | None:
        if tag is None:
            return None
        return self.consumers.get(tag) or self._held.get(tag)

    # -- by method ------------------------------------------------------------------------------

    def _qos(self, method: BasicQos, from_client: bool) -> None:
        if method.global_:
            self.prefetch_shared = method.prefetch_count
        else:  # which ends a shared one, too: RabbitMQ since 3.6.11
            self.prefetch_count, self.prefetch_shared = method.prefetch_count, 0

    def _consume(self, method: BasicConsume, from_client: bool) -> None:
        self._asked.append(method)
        self._go_through()

    def _consume_ok(self, method: BasicConsumeOk, from_client: bool) -> None:
        asked = self._answered(BasicConsume, method.consumer_tag)
        if isinstance(asked, BasicConsume):
            self._started(asked, method.consumer_tag)
            self._go_through()

    def _started(self, method: BasicConsume, tag: str) -> None:
        before = self._held.pop(tag, None)  # what that one has not acknowledged bears this tag
        consumer = Consumer(
            tag,
            method.queue,
            method.no_ack,
            self.prefetch_count,
            0 if before is None else before.unacked,
        )
        if tag:
            self.consumers[tag] = consumer
        else:
            self._nameless.append(consumer)

    def _cancel(self, method: BasicCancel, from_client: bool) -> None:
        if from_client:
            self._asked.append(method)
            self._go_through()
        else:
            self._stopped(method.consumer_tag)

    def _cancel_ok(self, method: BasicCancelOk, from_client: bool) -> None:
        self._answered(BasicCancel, method.consumer_tag)
        self._stopped(method.consumer_tag)
        self._go_through()

    def _answered(
        self, kind: type[BasicConsume | BasicCancel], tag: str
    ) -> BasicConsume | BasicCancel | None:
        """What an answer is for; None if that was not seen."""
        for asked in self._asked:
            if type(asked) is kind and not asked.nowait and asked.consumer_tag in ("", tag):
                self._asked.remove(asked)
                return asked
        return None

    def _go_through(self) -> None:
        """Counts what wants no answer, but for what stands behind an unanswered one of its tag."""
        waiting: set[str] = set()
        for asked in tuple(self._asked):
            if not asked.nowait or asked.consumer_tag in waiting:
                waiting.add(asked.consumer_tag)
                continue
            self._asked.remove(asked)
            if isinstance(asked, BasicConsume):
                self._started(asked, asked.consumer_tag)
            else:
                self._stopped(asked.consumer_tag)

    def _stopped(self, tag: str) -> None:
        consumer = self.consumers.pop(tag, None)
        if consumer is not None and consumer.unacked:
            self._held[tag] = consumer

    def _deliver(self, method: BasicDeliver, from_client: bool) -> None:
        self.delivered = method.delivery_tag
        tag = method.consumer_tag
        if tag not in self.consumers and tag.startswith(MADE_UP):
            self.named(tag)
        consumer = self.consumers.get(method.consumer_tag)
        if consumer is not None and consumer.no_ack:
            return
        self.unacked[method.delivery_tag] = method.consumer_tag
        if consumer is not None:
            consumer.unacked += 1

    def _get(self, method: BasicGet, from_client: bool) -> None:
        self._getting.append(method)

    def _get_ok(self, method: BasicGetOk, from_client: bool) -> None:
        self.delivered = method.delivery_tag
        asked = self._getting.popleft() if self._getting else None
        if not isinstance(asked, BasicGet) or not asked.no_ack:
            self.unacked[method.delivery_tag] = None
        self._catch_up()

    def _get_empty(self, method: BasicGetEmpty, from_client: bool) -> None:
        if self._getting:
            self._getting.popleft()
        self._catch_up()

    def _catch_up(self) -> None:
        """Counts what waited for the answer of a get, up to the next one."""
        while self._getting and not isinstance(self._getting[0], BasicGet):
            self.count(self._getting.popleft(), from_client=True)

    def _ack(self, method: BasicAck | BasicNack, from_client: bool) -> tuple[int, ...]:
        tag, multiple = method.delivery_tag, method.multiple
        if from_client:
            return self._settle(self._up_to(tag) if multiple else (tag,))
        if not multiple:
            numbers: tuple[int, ...] = (tag,) if tag in self.unconfirmed else ()
        elif tag == 0:
            numbers = tuple(self.unconfirmed)
        else:
            last = min(tag, self.published)
            numbers = tuple(
                one for one in range(self._confirmed_to + 1, last + 1) if one in self.unconfirmed
            )
            self._confirmed_to = max(self._confirmed_to, last)
        for number in numbers:
            del self.unconfirmed[number]
        self.confirmed += len(numbers)
        return numbers

    def _up_to(self, tag: int) -> tuple[int, ...]:
        """Unacknowledged deliveries up to a tag; each number is looked at once."""
        if tag == 0:
            return tuple(sorted(self.unacked))
        last = min(tag, self.delivered)
        found = tuple(one for one in range(self._acked_to + 1, last + 1) if one in self.unacked)
        self._acked_to = max(self._acked_to, last)
        return found

    def _reject(self, method: BasicReject, from_client: bool) -> tuple[int, ...]:
        return self._settle((method.delivery_tag,))

    def _settle(self, tags: tuple[int, ...]) -> tuple[int, ...]:
        found = []
        for tag in tags:
            if tag not in self.unacked:
                continue
            name = self.unacked.pop(tag)
            found.append(tag)
            if self.transactional:
                self._acked[tag] = name
            else:
                self._count_off(name)
        return tuple(found)

    def _count_off(self, name: str | None) -> None:
        consumer = self._consumer(name)
        if consumer is not None:
            consumer.unacked -= 1
            if not consumer.unacked:
                self._held.pop(consumer.tag, None)

    def _recover(
        self, method: BasicRecover | BasicRecoverAsync, from_client: bool
    ) -> tuple[int, ...]:
        tags = self._settle(tuple(sorted(self.unacked)))
        for tag in tags:
            if tag in self._acked:
                self._count_off(self._acked.pop(tag))
        return tags

    def _publish(self, method: BasicPublish, from_client: bool) -> None:
        self.published += 1
        if self.confirming:
            self.unconfirmed[self.published] = None

    def _flow(self, method: ChannelFlow, from_client: bool) -> None:
        if from_client:
            self.delivering = method.active
        else:
            self.publishing = method.active

    def _confirm_select(self, method: ConfirmSelect, from_client: bool) -> None:
        if not self.confirming:
            self.confirming = True
            self.published = 0

    def _tx_select(self, method: TxSelect, from_client: bool) -> None:
        self.transactional = True

    def _commit(self, method: TxCommit, from_client: bool) -> None:
        for name in self._acked.values():
            self._count_off(name)
        self._acked.clear()

    def _rollback(self, method: TxRollback, from_client: bool) -> tuple[int, ...]:
        tags = tuple(sorted(self._acked))
        self.unacked.update((tag, self._acked[tag]) for tag in tags)
        self._acked.clear()
        self._acked_to = min(self._acked_to, tags[0] - 1) if tags else self._acked_to
        return tags


_TAGGED: frozenset[type[Method]] = frozenset(
    kind for kind in METHODS.values() if "consumer_tag" in kind.__struct_fields__
)
_SETTLING: frozenset[type[Method]] = frozenset((BasicAck, BasicNack, BasicReject))

BEHIND_GETS: frozenset[type[Method]] = _SETTLING | {
    BasicRecover, BasicRecoverAsync, TxSelect, TxCommit, TxRollback,
}  # fmt: skip
"""What can be counted only when the gets before it have been answered: it may concern what they
bring. A channel is sequential, so a client may send it at once [4.7]."""

_SEEN: dict[type[Method], Callable[..., tuple[int, ...] | None]] = {
    BasicQos: ChannelCounters._qos,
    BasicConsume: ChannelCounters._consume,
    BasicConsumeOk: ChannelCounters._consume_ok,
    BasicCancel: ChannelCounters._cancel,
    BasicCancelOk: ChannelCounters._cancel_ok,
    BasicDeliver: ChannelCounters._deliver,
    BasicGet: ChannelCounters._get,
    BasicGetOk: ChannelCounters._get_ok,
    BasicGetEmpty: ChannelCounters._get_empty,
    BasicAck: ChannelCounters._ack,
    BasicNack: ChannelCounters._ack,
    BasicReject: ChannelCounters._reject,
    BasicRecover: ChannelCounters._recover,
    BasicRecoverAsync: ChannelCounters._recover,
    BasicPublish: ChannelCounters._publish,
    ChannelFlow: ChannelCounters._flow,
    ConfirmSelect: ChannelCounters._confirm_select,
    TxSelect: ChannelCounters._tx_select,
    TxCommit: ChannelCounters._commit,
    TxRollback: ChannelCounters._rollback,
}
"""What is counted at a method; at those that are not listed, nothing."""
