"""What classic queues have on disk: small messages in their index, others in a message store.

A broker has two message stores, for persistent messages and for transient ones that were paged out,
and all its queues share them. A queue spends credit on each message that it hands to a store; the
store counts it when it comes to write it, and not only when it is safe. A message below
`queue_index_embed_msgs_below` is kept in the queue's own index and costs none
(`rabbit_variable_queue.erl`, `rabbit_msg_store.erl`). Which messages are paged out when is in
`queues/variable_queue.py`; that a queue shall page any, in `paging.py`.

A persistent message is confirmed when it is safe: written to the store, or in the index of its
queue, and synced. Store and queue sync what waits for it as soon as their mailbox is empty, and
while it never is, the store after 25 ms and the queue after 200 ms (`next_state` of
`rabbit_msg_store.erl` and `rabbit_amqqueue_process.erl`: a time-out of 0 beside the timer). What
comes while a sync takes its time waits for the next. One for the store that was consumed and
acknowledged before is confirmed at once, and is not written any more (`remove` and `blind_confirm`
of `rabbit_msg_store.erl`); one in the index waits for its sync all the same, for there the
acknowledgement is one entry more (`ack` and `notify_sync` of `rabbit_queue_index.erl`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from workbench.presets import Preset
from workbench.queues import Message
from workbench.queues.variable_queue import Pass, VariableQueue
from workbench.sim import Actor, Clock, CreditFlow, Tap, Timer

from .hops import Hops
from .queue_mail import Publish

PERSISTENT, TRANSIENT = "persistent", "transient"


class Write:
    """A message that a queue has handed to a store.

    Attributes:
        safe: called when it is synced; in the transient store when it is written.
        wanted: it has not left its queue.
    """

    __slots__ = ("safe", "wanted")

    def __init__(self, safe: Callable[[], None]) -> None:
        self.safe = safe
        self.wanted = True


class Syncing:
    """When one process syncs its files: as soon as it has nothing else to do, or in time.

    Args:
        clock: of the run.
        process: whose files they are.
        within_us: so long after something waits for it, at the latest.
        fsync_us: how long it takes.
        wanted: whether anything waits for it.
        begin: called when it begins; gives what to call when it is done.
    """

    def __init__(
        self,
        clock: Clock,
        process: Actor[Any],
        *,
        within_us: int,
        fsync_us: int,
        wanted: Callable[[], bool],
        begin: Callable[[], Callable[[], None]],
    ) -> None:
        self._clock = clock
        self._process = process
        self._within_us = within_us
        self._fsync_us = fsync_us
        self._wanted = wanted
        self._begin = begin
        self._timer: Timer | None = None
        self._busy = False

    def look(self) -> None:
        """The process has handled something."""
        if self._busy or not self._wanted():
            return
        if not self._process.depth:
            self._start()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._within_us, self._start)

    def _start(self) -> None:
        self.stop()
        if not self._wanted():
            return
        self._busy = True
        self._clock.call_later(self._fsync_us, self._done, self._begin())

    def _done(self, safe: Callable[[], None]) -> None:
        self._busy = False
        safe()
        self.look()

    def stop(self) -> None:
        """Nothing is to be synced at a time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class MessageStore:
    """One message store: a process, and files that are synced now and then.

    What it writes one after the other is told in one row, when its mailbox is empty or a grant is
    due. The transient store syncs nothing: nobody waits for what is gone after a restart.

    Args:
        clock: of the run.
        name: `persistent` or `transient`.
        preset: its times, and its queues' credit.
        tap: observer of what happens inside.

    Attributes:
        process: to which queues send what is to be written.
        written: messages written so far.
    """

    def __init__(self, clock: Clock, name: str, preset: Preset, tap: Tap) -> None:
        vantage = f"store:{name}"
        self.written = 0
        self.process: Actor[Write] = Actor(
            clock,
            vantage,
            service_us=preset.store_write_us,
            handle=self._write,
            flow=CreditFlow(initial=preset.store_credit, more_after=preset.store_regrant_after),
            watch=Hops(tap, clock, vantage),
        )
        self._note = tap.bind(
            clock, vantage=vantage, ledger=lambda: {"mailbox": self.process.depth}
        ).note
        self._most_told = preset.store_regrant_after
        self._untold = 0
        self._syncs = name == PERSISTENT
        self._unsynced: list[Write] = []
        self._syncing = Syncing(
            clock,
            self.process,
            within_us=preset.store_flush_us,
            fsync_us=preset.fsync_us,
            wanted=lambda: bool(self._unsynced),
            begin=self._begin_sync,
        )

    def _write(self, write: Write) -> None:
        if write.wanted:
            self.written += 1
            self._untold += 1
            if self._syncs:
                self._unsynced.append(write)
            else:
                write.safe()
        if self._untold and (not self.process.depth or self._untold == self._most_told):
            count, self._untold = self._untold, 0
            self._note("append", extra={"count": count} if count > 1 else None)
        self._syncing.look()

    def _begin_sync(self) -> Callable[[], None]:
        synced, self._unsynced = self._unsynced, []
        return partial(self._synced, synced)

    def _synced(self, synced: list[Write]) -> None:
        self._note("fsync", extra={"entries": len(synced)})
        for write in synced:
            write.safe()

    def stall(self) -> None:
        """Write nothing, as a process that hangs on its disk."""
        self.process.stall()
        self._note("note", "stalled")

    def resume(self) -> None:
        """Go on where it stopped."""
        self.process.resume()
        self._note("note", "resumed")


class Stores:
    """A broker's two message stores.

    Args:
        clock, preset, tap: of the broker.

    Attributes:
        persistent: of messages that survive a restart.
        transient: of others that were paged out.
        embeds_below: octets; a smaller message goes to neither.
        sync_us: how long a message in an index waits to be synced, at most; 0: nothing waits for a
            disk.
        fsync_us: how long a sync takes.
        pages: queues page messages out when memory runs short.
    """

    def __init__(self, clock: Clock, preset: Preset, tap: Tap) -> None:
        self.persistent = MessageStore(clock, PERSISTENT, preset, tap)
        self.transient = MessageStore(clock, TRANSIENT, preset, tap)
        self.embeds_below = preset.index_embeds_below
        self.sync_us = preset.queue_sync_us
        self.fsync_us = preset.fsync_us
        self.pages = bool(preset.paging_ratio)
        self._io_batch = preset.store_io_batch
        self._most = preset.paging_most * preset.store_credit

    def book(self, disk: QueueDisk) -> VariableQueue:
        """What a queue that pages keeps of its messages."""
        return VariableQueue(disk, io_batch=self._io_batch, most=self._most)


class QueueDisk:
    """What one classic queue has on disk, and in RAM.

    Args:
        clock: of the run.
        stores: the broker's.
        process: the queue's, which spends credit with the stores.
        safe: called with a message that is to be confirmed.
        paged: told what a go of paging has done.
        durable: the queue is, and its persistent messages are written at once.

    Attributes:
        book: of what is where; None: the broker pages nothing.
    """

    def __init__(
        self,
        clock: Clock,
        stores: Stores,
        process: Actor[Any],
        safe: Callable[[Publish], None],
        paged: Callable[[Pass], None],
        *,
        durable: bool,
    ) -> None:
        self._clock = clock
        self._stores = stores
        self._process = process
        self._safe = safe
        self._paged = paged
        self._durable = durable
        self.book: VariableQueue | None = stores.book(self) if stores.pages else None
        self._writes: dict[int, Write] = {}
        self._unsafe: dict[int, Publish] = {}  # whose publishers wait
        self._embedded: dict[int, None] = {}  # of them, those that are in the index alone
        self._syncing = Syncing(
            clock,
            process,
            within_us=stores.sync_us,
            fsync_us=stores.fsync_us,
            wanted=lambda: bool(self._embedded),
            begin=self._begin_sync,
        )

    def takes(self, number: int, publish: Publish) -> bool:
        """A message that it holds was taken in just now; whether it is confirmed already.

        It is written, if it is persistent, and what is too much for the memory is paged out.

        Args:
            number: of the message in its queue.
            publish: how it came.
        """
        message = publish.message
        if self._persists(message) and not self._embeds(message):
            self._write(number, self._stores.persistent)
        if self.book is not None:
            self.reduce()
        if not self._persists(message) or not self._stores.sync_us:
            return True
        self._unsafe[number] = publish
        if number not in self._writes:
            self._embedded[number] = None
        return False

    def look(self) -> None:
        """The queue has handled something in its mailbox."""
        self._syncing.look()

    def holds(self, number: int, message: Message) -> None:
        """A message is in the queue; a persistent one is on disk, or on its way there."""
        if self.book is not None:
            self.book.published(
                number,
                message.size,
                self._clock.now_us,
                persistent=self._persists(message),
                embedded=self._embeds(message),
            )

    def handed_out(self, number: int, *, settled: bool) -> None:
        """A message went to a consumer, whose acknowledgement is pending unless it is settled."""
        if self.book is not None:
            (self.book.gone if settled else self.book.handed_out)(number, self._clock.now_us)

    def requeued(self, numbers: Iterable[int]) -> None:
        """Messages that were handed out are back in the queue."""
        if self.book is not None:
            self.book.requeued(numbers, self._clock.now_us)
            self.reduce()

    # -- paging -----------------------------------------------------------------------------

    @property
    def blocked(self) -> bool:
        """The queue's process is out of credit, with a store or with whom it sends to else."""
        return self._process.blocked

    def write(self, number: int) -> None:
        """A message leaves the memory for the transient store."""
        self._write(number, self._stores.transient, told=False)

    def reduce(self) -> None:
        """Page out what is to be paged out now."""
        made = None if self.book is None else self.book.reduce()
        if made is None or not (made.acks or made.messages or made.positions):
            return
        self._paged(made)
        self._process.tell(self._stores.transient.process)
        if made.limited:
            self._clock.call_soon(self.reduce)

    # -- what leaves ------------------------------------------------------------------------

    def gone(self, numbers: Iterable[int]) -> None:
        """Messages have left the queue: what a store has not written is confirmed without it."""
        if not (self._writes or self._unsafe or self.book):
            return  # as with most queues, and quickly
        for number in numbers:
            if self.book is not None:
                self.book.gone(number, self._clock.now_us)
            write = self._writes.pop(number, None)
            if write is not None:
                write.wanted = False
                self._confirm(number)

    def end(self) -> None:
        """The queue is deleted."""
        for write in self._writes.values():
            write.wanted = False
        self._writes.clear()
        self._unsafe.clear()
        self._embedded.clear()
        self._syncing.stop()

    def _persists(self, message: Message) -> bool:
        return self._durable and message.durable

    def _embeds(self, message: Message) -> bool:
        return message.size < self._stores.embeds_below

    def _write(self, number: int, store: MessageStore, *, told: bool = True) -> None:
        write = self._writes[number] = Write(lambda: self._written(number))
        self._process.send(store.process, write, told=told)

    def _written(self, number: int) -> None:
        if self._writes.pop(number, None) is not None:
            self._confirm(number)

    def _begin_sync(self) -> Callable[[], None]:
        synced, self._embedded = tuple(self._embedded), {}
        return partial(self._synced, synced)

    def _synced(self, synced: tuple[int, ...]) -> None:
        for number in synced:
            self._confirm(number)

    def _confirm(self, number: int) -> None:
        self._embedded.pop(number, None)
        publish = self._unsafe.pop(number, None)
        if publish is not None:
            self._safe(publish)
