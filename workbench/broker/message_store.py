"""What classic queues have on disk: small messages in their index, others in a message store.

A broker has two message stores, for persistent messages and for transient ones that were paged out,
and all its queues share them. A queue spends credit on each message that it hands to a store; the
store counts it when it comes to write it, and not only when it is safe. A message below
`queue_index_embed_msgs_below` is kept in the queue's own index and costs none
(`rabbit_variable_queue.erl`, `rabbit_msg_store.erl`).

A persistent message is confirmed when it is safe: written to the store, whose files are synced
every 25 ms while there is something to sync, or in the index, which its queue syncs 200 ms later.
One that was consumed and acknowledged before is confirmed at once, and is not written any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from workbench.presets import Preset
from workbench.queues import Message
from workbench.sim import Actor, Clock, CreditFlow, Tap, Timer

from .hops import Hops
from .queue_mail import Publish

PERSISTENT, TRANSIENT = "persistent", "transient"


class Write:
    """A message that a queue has handed to a store.

    Attributes:
        safe: called when it is synced.
        wanted: it has not left its queue.
    """

    __slots__ = ("safe", "wanted")

    def __init__(self, safe: Callable[[], None]) -> None:
        self.safe = safe
        self.wanted = True


class MessageStore:
    """One message store: a process, and files that are synced now and then.

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
        self._clock = clock
        self._flush_us = preset.store_flush_us
        self._note = tap.bind(
            clock, vantage=vantage, ledger=lambda: {"mailbox": self.process.depth}
        ).note
        self._unsynced: list[Write] = []

    def _write(self, write: Write) -> None:
        if not write.wanted:
            return
        self.written += 1
        if not self._unsynced:
            self._clock.call_later(self._flush_us, self._sync)
        self._unsynced.append(write)
        self._note("append")

    def _sync(self) -> None:
        synced, self._unsynced = self._unsynced, []
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
        sync_us: how long a message in an index waits to be synced; 0: nothing waits for a disk.
    """

    def __init__(self, clock: Clock, preset: Preset, tap: Tap) -> None:
        self.persistent = MessageStore(clock, PERSISTENT, preset, tap)
        self.transient = MessageStore(clock, TRANSIENT, preset, tap)
        self.embeds_below = preset.index_embeds_below
        self.sync_us = preset.queue_sync_us


class QueueDisk:
    """What one durable classic queue has on disk.

    Args:
        clock: of the run.
        stores: the broker's.
        process: the queue's, which spends credit with the stores.
        safe: called with a message that is to be confirmed.
    """

    def __init__(
        self,
        clock: Clock,
        stores: Stores,
        process: Actor[Any],
        safe: Callable[[Publish], None],
    ) -> None:
        self._clock = clock
        self._stores = stores
        self._process = process
        self._safe = safe
        self._writes: dict[int, Write] = {}
        self._paged: set[int] = set()  # transient ones that were paged out
        self._unsafe: dict[int, Publish] = {}  # whose publishers wait
        self._timer: Timer | None = None

    def takes(self, number: int, publish: Publish) -> bool:
        """A message was taken in: write it, if it is persistent; whether it is confirmed now.

        Args:
            number: of the message in its queue.
            publish: how it came.
        """
        if not publish.message.durable:
            return True
        self._write(number, publish.message, self._stores.persistent)
        if not self._stores.sync_us:
            return True
        self._unsafe[number] = publish
        if number not in self._writes and self._timer is None:
            self._timer = self._clock.call_later(self._stores.sync_us, self._sync_index)
        return False

    def pages(self, number: int, message: Message) -> bool:
        """A message is to leave the memory: write it, unless that was done; whether it was now."""
        if message.durable or number in self._paged:
            return False
        self._paged.add(number)
        self._write(number, message, self._stores.transient)
        return True

    def gone(self, numbers: Iterable[int]) -> None:
        """Messages have left the queue: what was not written need not be, and is confirmed."""
        if not (self._writes or self._unsafe or self._paged):
            return  # as with most queues, and quickly
        for number in numbers:
            self._paged.discard(number)
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
        if self._timer is not None:
            self._timer.cancel()

    def _write(self, number: int, message: Message, store: MessageStore) -> None:
        if message.size >= self._stores.embeds_below:
            write = self._writes[number] = Write(lambda: self._written(number))
            self._process.send(store.process, write)

    def _written(self, number: int) -> None:
        if self._writes.pop(number, None) is not None:
            self._confirm(number)

    def _sync_index(self) -> None:
        self._timer = None
        for number in [number for number in self._unsafe if number not in self._writes]:
            self._confirm(number)

    def _confirm(self, number: int) -> None:
        publish = self._unsafe.pop(number, None)
        if publish is not None:
            self._safe(publish)
