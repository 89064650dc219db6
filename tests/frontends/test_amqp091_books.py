"""Credit between the broker's processes under random acts, against a second set of books.

Invariants 9 and 10 of flow control's facts: what a process may still send, what waits at the other
one, what that has handled and not granted for, and what it keeps back or has sent, are `initial`
together; and who is blocked grants nothing. The book is kept from rows, by addition alone, with
numbers of its own; mailboxes are counted.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workbench.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicConsume,
    BasicQos,
    QueueBind,
    QueueDeclare,
)
from workbench.sim import Actor

from .rig091 import PERSISTENT, RMQ43, Rig091

HOP, STORE = (6, 4), (5, 2)  # initial, and what each grant gives
QUEUES = ("a", "b", "c")
TARGETS = st.sampled_from(["a", "b", "c", "all"])


class Book:
    """What was sent, granted and kept for each pair of processes, by the rows."""

    def __init__(self) -> None:
        self.sent: dict[tuple[str, str], int] = defaultdict(int)
        self.granted: dict[tuple[str, str], int] = defaultdict(int)
        self.came: dict[tuple[str, str], int] = defaultdict(int)
        self.told: dict[tuple[str, str], int] = {}
        self.faults: list[str] = []

    def credit(self, pair: tuple[str, str]) -> int:
        initial = (STORE if pair[1].startswith("store") else HOP)[0]
        return initial - self.sent[pair] + self.came[pair]

    def enter(self, row: Any) -> None:
        who = row.vantage
        if row.event == "grant":
            pair = (row.kind, who)
            self.granted[pair] += row.extra["credit"]
            for hop in self.sent:
                if hop[0] == who and self.credit(hop) <= 0:
                    self.faults.append(f"10: {who} grants, and has nothing left for {hop[1]}")
        elif row.kind in ("credit-spent", "credit-came"):
            pair = (who, self.next_of(row))
            if row.kind == "credit-spent":
                self.sent[pair] += 1
            else:
                self.came[pair] += (STORE if pair[1].startswith("store") else HOP)[1]
            if row.ledger["hop_credit"] != self.credit(pair):
                self.faults.append(f"9: {pair} tells {row.ledger}, and has {self.credit(pair)}")

    @staticmethod
    def next_of(row: Any) -> str:
        if row.queue is None:
            return f"channel:{row.connection}/{row.session}"
        return row.queue if row.queue.startswith("store:") else f"queue:{row.queue}"


class AnyActs(RuleBasedStateMachine):
    """Two connections of two channels, three queues, two stores; whoever may hang, hangs."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = rig = Rig091(
            RMQ43,
            process_credit=HOP[0],
            process_regrant_after=HOP[1],
            store_credit=STORE[0],
            store_regrant_after=STORE[1],
            index_embeds_below=10,
            store_write_us=3,
            reader_us=1,
            channel_us=2,
        )
        self.book, self.seen = Book(), 0
        self.channels = []
        for name in ("c1", "c2"):
            client = rig.connect(name)
            self.channels += [rig.open(client), rig.open(client)]
        for name in QUEUES:
            self.channels[0].send(QueueDeclare(queue=name, durable=True))
            self.channels[0].send(QueueBind(queue=name, exchange="amq.fanout"))
        self.rig.rest()
        self.consuming: set[int] = set()

    @rule(at=st.integers(0, 3), to=TARGETS, count=st.integers(1, 15), large=st.booleans())
    def publish(self, at: int, to: str, count: int, large: bool) -> None:
        for _ in range(count):
            where = ("amq.fanout", "") if to == "all" else ("", to)
            self.channels[at].publish(*where, bytes(20 if large else 2), PERSISTENT)

    @rule(at=st.integers(0, 3), queue=st.sampled_from(QUEUES))
    def consume(self, at: int, queue: str) -> None:
        if at not in self.consuming:
            self.consuming.add(at)
            self.channels[at].send(BasicQos(prefetch_count=3))
            self.channels[at].send(BasicConsume(queue=queue, consumer_tag="t"))

    @precondition(lambda self: self.consuming)
    @rule(multiple=st.booleans(), cancel=st.booleans())
    def acknowledge(self, multiple: bool, cancel: bool) -> None:
        for at in sorted(self.consuming):
            channel = self.channels[at]
            tags = list(channel.counters.unacked)
            if tags:
                channel.send(BasicAck(delivery_tag=tags[-1 if multiple else 0], multiple=multiple))
            if cancel and "t" in channel.counters.consumers:
                channel.send(BasicCancel(consumer_tag="t", nowait=True))
                self.consuming.discard(at)

    @rule(queue=st.sampled_from(QUEUES), on=st.booleans())
    def hang(self, queue: str, on: bool) -> None:
        process = self.rig.broker.queues[queue]
        (process.stall if on else process.resume)()

    @rule(on=st.booleans())
    def hang_store(self, on: bool) -> None:
        store = self.rig.broker.stores.persistent
        (store.stall if on else store.resume)()

    @rule(on=st.booleans())
    def alarm(self, on: bool) -> None:
        (self.rig.broker.set_alarm if on else self.rig.broker.clear_alarm)()

    @rule(steps=st.integers(1, 200))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            if not self.rig.clock.step():
                break
            self.read()

    def read(self) -> None:
        rows = self.rig.recorder.rows
        for row in rows[self.seen :]:
            self.book.enter(row)
        self.seen = len(rows)

    def processes(self) -> dict[str, Actor[Any]]:
        broker = self.rig.broker
        found = [broker.stores.persistent.process, broker.stores.transient.process]
        found += [queue._actor for queue in broker.queues.values()]  # type: ignore[attr-defined]
        for end in self.rig.ends.values():
            found += [end.reader, *(one.process for one in end._channels.values())]
        return {one.name: one for one in found}

    @invariant()
    def credit_is_somewhere(self) -> None:
        self.read()
        assert self.book.faults == []
        there = self.processes()
        for pair, sent in self.book.sent.items():
            sender, receiver = there[pair[0]], there[pair[1]]
            waiting = sum(getattr(one, "sender", None) is sender for one in receiver._mailbox)
            more = (STORE if pair[1].startswith("store") else HOP)[1]
            kept = sum(one.credit for one in receiver.flow.kept if one.to == pair[0])
            decided = (sent - waiting) // more * more
            assert decided == self.book.granted[pair] + kept, f"9: {pair}"
            assert sender.flow.credit_from[pair[1]] == self.book.credit(pair), f"9: {pair}"
            if pair[0].startswith("reader"):
                assert self.book.credit(pair) >= 0

    def teardown(self) -> None:
        for name in QUEUES:
            self.hang(name, False)
        self.hang_store(False)
        self.alarm(False)
        self.rig.rest()
        self.credit_is_somewhere()
        for end in self.rig.ends.values():
            assert not end.throttle.blocked


AnyActs.TestCase.settings = settings(
    derandomize=True, max_examples=25, stateful_step_count=25, deadline=None
)
TestAnyActs = AnyActs.TestCase
