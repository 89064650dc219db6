"""Mirrors of a classic queue: copies of it on other nodes, up to RabbitMQ 3.13.

A channel sends each message to the queue's process, the master, and to every mirror. The master
sends it to every mirror once more, when it has taken it in (in RabbitMQ by `gm`, around a ring).
So the channel spends two credits at each mirror, and the mirror acknowledges one for each way that
the message has come (`rabbit_amqqueue.erl:deliver`, `rabbit_mirror_queue_slave.erl`). A publisher's
confirm waits for the master and for all mirrors.

A node that is cut off is only seen to be so after a while (Erlang's `net_ticktime`). What is sent
there meanwhile waits; when it is seen, whoever counted credit with the mirror forgets it
(`credit_flow:peer_down`), and no confirm waits for it any more.

A mirror has what came since it joined. To be synchronised it drops that, and is sent all that the
queue holds, message by message, through a process that waits for credit of all mirrors it sends to;
the queue does nothing else meanwhile (`rabbit_mirror_queue_sync.erl`).

What is not modelled: the master's own end, and a mirror's disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from msgspec import Struct

from workbench.presets import Preset
from workbench.queues import QueueError
from workbench.sim import Actor, Clock, CreditFlow, Tap

from .hops import Hops
from .queue_mail import Mirrored, Publish
from .unconfirmed import CONFIRMED, UNROUTABLE, QueueAnswer, Unconfirmed, UnconfirmedMessage

MASTER_NODE = "n1"


class Copy(Struct, frozen=True):
    """In a mirror's mailbox: a message, by one of its two ways.

    Attributes:
        publish: as the master gets it; None for one that no channel has sent here.
        from_master: the second way; that is when a mirror takes it in.
    """

    publish: Publish | None
    from_master: bool = False


WHOLE = Copy(None, from_master=True)
"""After what is copied: that was all."""


class Mirror:
    """One mirror of a queue.

    Args:
        clock, preset, tap: of the broker.
        queue: its name.
        node: where the mirror is.
        flow: makes the counters of a process.

    Attributes:
        node: see above.
        process: its mailbox.
        taken: messages taken in so far, copied ones included.
        synchronised: it has all that the queue has.
        cut_off: its node cannot be reached.
    """

    def __init__(
        self,
        clock: Clock,
        preset: Preset,
        tap: Tap,
        queue: str,
        node: str,
        flow: Callable[[], CreditFlow],
    ) -> None:
        self.node = node
        self.taken = 0
        self.synchronised = False
        self.cut_off = False
        vantage = f"mirror:{queue}@{node}"
        self._notes = tap.bind(
            clock,
            vantage=vantage,
            queue=queue,
            ledger=lambda: {"queue_ready": self.taken, "mailbox": self.process.depth},
        )
        self.note = self._notes.note

        def process() -> Actor[Copy]:
            return Actor(
                clock,
                vantage,
                service_us=preset.queue_enqueue_us,
                handle=self._handle,
                flow=flow(),
                watch=Hops(tap, clock, vantage),
            )

        self._process = process
        self.process = process()
        self.copying: Actor[Copy] | None = None  # what it reads alone while it is synchronised

    @property
    def name(self) -> str:
        """The name of its process, as a trace has it."""
        return self.process.name

    def _handle(self, copy: Copy) -> None:
        if copy is WHOLE:
            self._end_copying()
            return
        if copy.publish is not None and not copy.from_master:
            return  # it waits for the master's word
        self.taken += 1
        self.note("enqueue")
        if copy.publish is not None and copy.publish.answered is not None:
            copy.publish.answered(self, CONFIRMED)

    def begin_copying(self) -> Actor[Copy]:
        """Read nothing but what is copied, as the process does in its own loop.

        It drops what it had.
        """
        self.taken = 0
        hangs = self.process.stalled
        self.process.stall()
        self.copying = self._process()
        if hangs:
            self.copying.stall()
        return self.copying

    def _end_copying(self) -> None:
        """It has all that the queue has; now it reads what came meanwhile."""
        self.copying = None
        self.synchronised = True
        self.note("note", "synchronised")
        self.process.resume()

    def stall(self) -> None:
        """Read nothing, as a process that hangs."""
        self.process.stall()
        if self.copying is not None:
            self.copying.stall()

    def resume(self) -> None:
        """Go on where it stopped."""
        if self.copying is not None:
            self.copying.resume()
        else:
            self.process.resume()

    def end(self) -> None:
        """It is gone: whoever counted credit with it hears of it."""
        if self.copying is not None:
            self.copying.end()
        self.process.end()


class Master(Protocol):
    """The process of the queue itself."""

    @property
    def name(self) -> str:
        """The queue's name."""

    @property
    def held(self) -> int:
        """Messages in the queue, ready or handed out."""

    @property
    def stalled(self) -> bool:
        """It takes nothing in and hands nothing out."""

    def stall(self) -> None:
        """Take nothing in and hand nothing out."""

    def resume(self) -> None:
        """Go on where it stopped."""


class Mirrors:
    """The mirrors of one queue.

    Args:
        clock, preset, tap: of the broker.
        master: the queue.
        flow: makes the counters of a process.

    Attributes:
        all: by node, in order of joining; one that is gone is left out.
    """

    def __init__(
        self,
        clock: Clock,
        preset: Preset,
        tap: Tap,
        master: Master,
        flow: Callable[[], CreditFlow],
    ) -> None:
        self.all: dict[str, Mirror] = {}
        self._clock = clock
        self._preset = preset
        self._tap = tap
        self._master = master
        self._flow = flow
        self._unconfirmed: Unconfirmed = {}
        self._deaths: dict[str, Any] = {}  # timers, by node
        self._sync: Synchronisation | None = None

    # -- who there is -----------------------------------------------------------------------

    def join(self, nodes: Iterable[str]) -> None:
        """Begin a mirror on each of these nodes.

        Raises:
            QueueError: on one of them is the queue itself, or a mirror; nothing has changed.
        """
        wanted = list(nodes)
        for number, node in enumerate(wanted):
            if node == MASTER_NODE:
                raise QueueError(
                    f"queue {self._master.name} is on {node} itself, and cannot be its own mirror;"
                    " legal: another node, such as n2"
                )
            if node in self.all or node in wanted[:number]:
                raise QueueError(
                    f"queue {self._master.name} has a mirror on {node} already; legal: another node"
                )
        for node in wanted:
            mirror = Mirror(
                self._clock, self._preset, self._tap, self._master.name, node, self._flow
            )
            mirror.synchronised = not self._master.held
            self.all[node] = mirror

    def on(self, node: str) -> Mirror:
        """The mirror on a node.

        Raises:
            QueueError: there is none; the text lists those there are.
        """
        if node not in self.all:
            listed = ", ".join(self.all) or "none"
            raise QueueError(
                f"queue {self._master.name} has no mirror on {node!r}; there are: {listed}"
            )
        return self.all[node]

    # -- messages ---------------------------------------------------------------------------

    def awaits(self, answered: QueueAnswer | None) -> QueueAnswer | None:
        """Who is to be told when the queue, or a mirror, has taken a message in."""
        if answered is None or not self.all:
            return answered
        master = self._master
        unconfirmed = UnconfirmedMessage(
            1 + len(self.all), lambda outcome: answered(master, outcome), self._unconfirmed
        )
        for mirror in self.all.values():
            self._unconfirmed.setdefault(mirror, {})[unconfirmed] = None
        return unconfirmed.answered

    def addressed(self, publish: Publish) -> None:
        """A channel has sent a message to the master: it sends it to each mirror as well."""
        for mirror in self.all.values():
            self._send(publish, mirror)
            if publish.via is not None:
                publish.via.spend(mirror.process)  # for the way over the master
                publish.via.spend(mirror.process)
                publish.via.tell(mirror.process)

    def broadcast(self, publish: Publish) -> None:
        """The master has taken a message in, or refused it, and tells the mirrors."""
        for mirror in publish.mirrors:
            self._send(publish, mirror, from_master=True)
        for mirror in self.all.values():
            if mirror not in publish.mirrors:  # it joined meanwhile, and no channel has paid for it
                self._post(mirror, None, Copy(None))

    def _send(self, publish: Publish, mirror: Mirrored, *, from_master: bool = False) -> None:
        self._post(mirror, publish.via, Copy(publish, from_master))

    def _post(self, mirror: Mirrored, via: Actor[Any] | None, copy: Copy) -> None:
        self._clock.call_later(self._preset.node_latency_us, mirror.process.take, via, copy)

    # -- what goes wrong --------------------------------------------------------------------

    def cut_off(self, node: str, seen_us: int) -> None:
        """Cut a mirror's node off; after so long it is seen to be down."""
        mirror = self.on(node)
        if mirror.cut_off:
            raise QueueError(f"{node} is cut off already; legal: the others, or to mend it")
        if seen_us < 0:
            raise QueueError(f"a death seen after {seen_us} us; legal: 0 or more")
        mirror.cut_off = True
        mirror.stall()
        mirror.note("note", "cut-off")
        self._deaths[node] = self._clock.call_later(seen_us, self._seen, node)

    def mend(self, node: str) -> None:
        """A node can be reached again: what was sent there has waited."""
        mirror = self.on(node)
        if not mirror.cut_off:
            raise QueueError(f"{node} is not cut off; legal: to cut it off")
        mirror.cut_off = False
        self._deaths.pop(node).cancel()
        mirror.note("note", "mended")
        mirror.resume()

    def _seen(self, node: str) -> None:
        """A node is down: nobody waits for its mirror."""
        mirror = self.all.pop(node)
        del self._deaths[node]
        mirror.note("note", "down")
        mirror.end()
        for unconfirmed in list(self._unconfirmed.pop(mirror, ())):
            unconfirmed.answered(mirror, UNROUTABLE)  # it counts no more, and the others do
        if self._sync is not None:
            self._sync.lost(mirror)

    def end(self) -> None:
        """The queue is deleted."""
        for timer in self._deaths.values():
            timer.cancel()
        for mirror in self.all.values():
            mirror.end()
        self.all.clear()
        if self._sync is not None:
            self._sync.end()
            self._sync = None

    # -- synchronisation --------------------------------------------------------------------

    @property
    def synchronising(self) -> bool:
        """The queue copies its messages, and does nothing else."""
        return self._sync is not None

    def synchronise(self) -> None:
        """Copy what is in the queue to the mirrors that have not all of it.

        Raises:
            QueueError: every one has all of it, the queue is at it, or it hangs.
        """
        wanting = [
            mirror
            for mirror in self.all.values()
            if not mirror.synchronised and mirror.copying is None
        ]
        if not wanting or self._sync is not None:
            why = "is being synchronised" if self._sync else "has no mirror that lacks messages"
            raise QueueError(f"queue {self._master.name} {why}; legal: to publish")
        if self._master.stalled:
            raise QueueError(f"queue {self._master.name} is stalled; legal: to resume it first")
        self._master.stall()
        self._sync = Synchronisation(
            self._clock, self._tap, self._master, wanting, self._flow(), self._synchronised
        )
        self._sync.go_on()

    def _synchronised(self) -> None:
        self._sync = None
        self._master.resume()


class Synchronisation:
    """Copies a queue's messages to mirrors: the process between the master and them (`syncer`).

    Args:
        clock, tap: of the broker.
        master: the queue, which does nothing else.
        mirrors: that get them.
        flow: the process's counters; it spends a credit for each message at each mirror.
        done: called at the end.
    """

    def __init__(
        self,
        clock: Clock,
        tap: Tap,
        master: Master,
        mirrors: list[Mirror],
        flow: CreditFlow,
        done: Callable[[], None],
    ) -> None:
        vantage = f"syncer:{master.name}"
        hops = Hops(tap, clock, vantage)
        self._clock = clock
        self._note = tap.bind(clock, vantage=vantage, queue=master.name).note
        self._left = master.held
        self._done = done
        self._process: Actor[Copy] = Actor(
            clock,
            vantage,
            service_us=0,
            handle=lambda _copy: None,
            flow=flow,
            blocking=self._blocking,
            watch=hops,
        )
        self._hops = hops
        self._over = False
        self._to = {mirror: mirror.begin_copying() for mirror in mirrors}
        self._note("note", "synchronising", extra={"count": self._left})

    def go_on(self) -> None:
        """Send what credit allows; at the end tell that this was all."""
        if self._over:
            return
        sent = False
        while self._left and self._to and not self._process.blocked:
            self._left -= 1
            sent = True
            for process in self._to.values():
                self._process.send(process, Copy(None), told=False)
        if sent:
            for process in self._to.values():
                self._process.tell(process)
        if not self._left or not self._to:
            for process in self._to.values():
                process.post(WHOLE)
            self.end()
            self._done()

    def end(self) -> None:
        """Nothing more is copied."""
        self._over = True
        self._process.end()

    def lost(self, mirror: Mirror) -> None:
        """A mirror is gone: the others get on."""
        if self._to.pop(mirror, None) is not None:
            self._clock.call_soon(self.go_on)

    def _blocking(self, on: bool) -> None:
        self._hops.blocking(on)
        if not on:
            self._clock.call_soon(self.go_on)
