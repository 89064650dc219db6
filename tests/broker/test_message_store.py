"""Classic queues and their disk: message stores, embedded messages, and what is confirmed when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench import presets
from workbench.broker import CONFIRMED, Broker
from workbench.broker.virtual_host import Terms
from workbench.queues import Deliver, Message, Prefetch, QueueError, Settle
from workbench.sim import Actor, VirtualClock
from workbench.trace.taps import Recorder

RMQ355, RMQ384, RMQ43 = (presets.get(name) for name in ("rmq3.5.5", "rmq3.8.4", "rmq4.3"))
SMALL, LARGE = 4_095, 4_096  # octets: below queue_index_embed_msgs_below, and not
MS = 1_000


class Rig:
    """A broker, its clock, and a channel's process that publishes."""

    def __init__(self, preset: presets.Preset = RMQ384, **numbers: int) -> None:
        self.clock = VirtualClock()
        self.recorder = Recorder("test", now=lambda: self.clock.now_us)
        self.broker = Broker(self.clock, replace(preset, **numbers), self.recorder)
        self.channel = Actor[None](
            self.clock,
            "channel:c1/1",
            service_us=0,
            handle=print,
            flow=self.broker.credit_flow(),
        )
        self.confirmed_us: list[int] = []

    def publish(self, size: int = LARGE, count: int = 1, *, durable: bool = True) -> None:
        queue = self.broker.declare("q")
        for _ in range(count):
            message = Message(payload=bytes(size), durable=durable)
            queue.publish(message, self.answered, via=self.channel)

    def answered(self, queue: Any, outcome: Any) -> None:
        assert outcome is CONFIRMED
        self.confirmed_us.append(self.clock.now_us)

    def fill(self, count: int, *, size: int = LARGE) -> None:
        """Transient messages that were there before."""
        self.queue.fill([Message(payload=bytes(size), durable=False)] * count)

    def paged(self, name: str) -> list[Any]:
        """What rows tell of each go of paging."""
        return [row.extra[name] for row in self.recorder.rows if row.kind == "paged"]

    @property
    def queue(self) -> Any:
        return self.broker.declare("q")

    @property
    def credit(self) -> dict[str, int]:
        """Of the queue, with the stores."""
        return self.flow.credit_from

    @property
    def flow(self) -> Any:
        return self.queue._actor.flow


class Taker:
    """A consumer that acknowledges at once, or never."""

    def __init__(self, queue: Any, *, settled: bool = False) -> None:
        self.queue, self.settled = queue, settled

    def deliver(self, effect: Deliver) -> None:
        if not self.settled:
            self.queue.command(Settle(consumer="t", message_ids=(effect.message.message_id,)))

    def can_take(self) -> bool:
        return True

    def limits_size(self) -> bool:
        return False

    def available(self, count: int) -> None:
        """Nothing."""

    def noticed(self) -> None:
        """Nothing."""


def test_e3_e4_a_persistent_message_costs_credit_with_the_store_and_a_grant_gives_it_back() -> None:
    """{2000, 500} in 3.5.5: the 500th write is what grants 500."""
    rig = Rig(RMQ355, store_write_us=10)
    rig.publish(count=499)
    rig.clock.run_until_rest()
    assert rig.credit == {"store:persistent": 2_000 - 499}
    rig.publish()
    rig.clock.run_until_rest()
    assert rig.credit == {"store:persistent": 2_000}


def test_e4_since_3_6_7_the_store_gives_4000_and_800() -> None:
    """The other pair, from the preset."""
    rig = Rig(RMQ43)
    rig.broker.stores.persistent.stall()
    rig.publish(count=5_000)
    rig.clock.run_until_rest()
    assert rig.credit == {"store:persistent": -1_000}


def test_e20_a_small_message_is_embedded_in_the_index_and_uses_no_credit() -> None:
    """4095 octets and 4096: one is kept in the queue's index, the other goes to the store."""
    rig = Rig()
    rig.publish(SMALL, count=10)
    rig.clock.run_until_rest()
    assert (rig.credit, rig.broker.stores.persistent.written) == ({}, 0)
    rig.publish(LARGE)
    rig.clock.run_until_rest()
    assert rig.broker.stores.persistent.written == 1


def test_e21_e28_a_paged_out_message_uses_credit_with_the_transient_store() -> None:
    """A transient one is written when it is paged out, once; the two stores are separate."""
    rig = Rig()
    rig.publish(durable=False, count=3)
    rig.publish(durable=True)
    rig.clock.run_until_rest()
    assert rig.credit == {"store:persistent": 3_999}
    for target in (1, 0, None, 0):
        rig.queue.set_ram_target(target)
        rig.clock.run_until_rest()
    assert rig.credit == {"store:persistent": 3_999, "store:transient": 3_997}
    stores = rig.broker.stores
    assert (stores.persistent.written, stores.transient.written) == (1, 3)
    assert rig.paged("messages") == [3, 1]


def test_e19_paging_stops_where_the_store_takes_no_more_and_goes_on_with_each_grant() -> None:
    """Of 12,000 to be paged out 2,000 are; for each 500 written there is a grant of 500."""
    rig = Rig(RMQ355, store_write_us=10)
    rig.fill(20_000)
    rig.broker.stores.transient.stall()
    rig.queue.set_ram_target(8_000)
    rig.clock.run_until_rest()
    assert (rig.paged("quota"), rig.paged("messages"), rig.paged("positions")) == (
        [12_000],
        [2_000],
        [0],
    )
    assert rig.flow.blocked_by == ("store:transient",)
    rig.broker.stores.transient.resume()
    rig.clock.run_until_rest()
    assert rig.paged("messages") == [2_000] + 20 * [500]
    assert rig.paged("quota") == [12_000, *range(10_000, 0, -500)]
    assert rig.broker.stores.transient.written == 12_000
    assert not rig.flow.blocked


@pytest.mark.parametrize(
    ("preset", "paged", "positions"),
    [(RMQ355, [20_000], [3_616]), (RMQ384, [8_000, 8_000, 4_000], [0, 0, 0])],
)
def test_small_messages_are_paged_without_credit_as_many_as_one_go_may(
    preset, paged, positions
) -> None:
    """In 3.8 twice 4,000; and 3,616 positions beyond 16,384 are less than its batch of 4,096."""
    rig = Rig(preset)
    rig.fill(20_000, size=SMALL)
    rig.queue.set_ram_target(0)
    rig.clock.run_until_rest()
    assert (rig.paged("messages"), rig.paged("positions")) == (paged, positions)
    assert "store:transient" not in rig.credit


@pytest.mark.parametrize(
    ("preset", "target", "said"),
    [
        (RMQ43, 0, "no message is paged out here; legal: a preset from before RabbitMQ 4"),
        (RMQ355, -1, "target_ram_count is -1; legal: 0 or more messages"),
    ],
)
def test_a_target_that_cannot_be_is_refused_in_one_line(preset, target, said) -> None:
    """4.x pages nothing, and no quota is below 0."""
    with pytest.raises(QueueError, match=f"^{said}$"):
        Rig(preset).queue.set_ram_target(target)


def test_paging_frees_the_memory_that_the_broker_counts() -> None:
    """A large message's content; what is left is its position in the queue."""
    rig = Rig(RMQ355)
    rig.fill(1_000, size=10_000)
    before = rig.broker.held_octets
    rig.queue.set_ram_target(0)
    rig.clock.run_until_rest()
    assert before - rig.broker.held_octets == 1_000 * 10_000


def test_b11_credit_flow_does_not_bound_memory() -> None:
    """Every hop has credit whenever the queue rests, and the queue is as long as one likes."""
    rig = Rig(RMQ355)
    sizes = []
    for _ in range(5):
        rig.publish(durable=False, count=150, size=1_000)
        rig.clock.run_until_rest()
        assert not (rig.channel.blocked or rig.flow.blocked)
        assert rig.channel.flow.credit_from["queue:q"] > 0
        sizes.append(rig.broker.held_octets)
    assert sizes == [150 * 1_400 * count for count in range(1, 6)]


def test_e7_a_store_that_hangs_blocks_the_queue_and_the_queue_the_channel() -> None:
    """The grants go on in the same order when it goes on."""
    rig = Rig()
    rig.broker.stores.persistent.stall()
    rig.publish(count=4_000 + 400)
    rig.clock.run_until_rest()
    assert (rig.flow.blocked, rig.channel.blocked) == (True, True)
    rig.broker.stores.persistent.resume()
    rig.clock.run_until_rest()
    assert (rig.flow.blocked, rig.channel.blocked) == (False, False)
    told = [
        (row.event, row.vantage)
        for row in rig.recorder.rows
        if row.event in ("block", "unblock") and row.kind == "credit-flow"
    ]
    assert told == [("block", "queue:q"), ("unblock", "queue:q")]  # the channel here has no watch


@pytest.mark.parametrize("size", [LARGE, SMALL])
def test_whoever_has_nothing_else_to_do_syncs_at_once(size) -> None:
    """A publisher that waits for each confirm waits for one fsync, not for a tick."""
    rig = Rig(queue_enqueue_us=0, store_write_us=0, fsync_us=3 * MS)
    for _ in range(2):
        rig.publish(size, count=3)
        rig.clock.run_until_rest()
    assert rig.confirmed_us == [3 * MS] * 3 + [6 * MS] * 3


def test_what_comes_during_a_sync_waits_for_the_next() -> None:
    """So a sync is of a batch."""
    rig = Rig(queue_enqueue_us=MS, fsync_us=3 * MS)
    rig.publish(SMALL)
    rig.clock.call_later(2 * MS, rig.publish, SMALL, 2)
    rig.clock.run_until_rest()
    assert rig.confirmed_us == [4 * MS, 7 * MS, 7 * MS]


@pytest.mark.parametrize(
    ("size", "busy", "tick_us"),
    [(LARGE, "store_write_us", 25 * MS), (SMALL, "queue_enqueue_us", 200 * MS)],
)
def test_e29_whoever_is_never_idle_syncs_at_its_tick(size, busy, tick_us) -> None:
    """The store's is 25 ms, that of a queue's index 200 ms, for all that came meanwhile."""
    rig = Rig(**{"queue_enqueue_us": 0, "store_write_us": 0, busy: MS}, fsync_us=5 * MS)
    rig.publish(size, count=300)
    rig.clock.run_until_rest()
    first = tick_us + MS + 5 * MS
    assert rig.confirmed_us[0] == first
    assert rig.confirmed_us.count(first) == tick_us // MS


def test_a_transient_message_is_confirmed_when_it_is_taken_in() -> None:
    """And so is every one where the preset waits for no disk, or the queue is not durable."""
    for numbers, durable in (({}, False), ({"queue_sync_us": 0}, True)):
        rig = Rig(queue_enqueue_us=0, **numbers)
        rig.publish(durable=durable)
        rig.clock.run_until_rest()
        assert rig.confirmed_us == [0]
    rig = Rig(queue_enqueue_us=0)
    rig.broker.vhost.declare("q", terms=Terms(durable=False))
    rig.publish()
    rig.clock.run_until_rest()
    assert (rig.confirmed_us, rig.credit) == ([0], {})


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize(("size", "confirmed_us"), [(LARGE, 100), (SMALL, 100 + 3 * MS)])
def test_a21_what_is_consumed_and_acknowledged_at_once_is_confirmed_without_a_store(
    size, confirmed_us, settled
) -> None:
    """Before the next sync; what the store has not come to is not written.

    In the index it waits for the sync all the same: an acknowledgement is one more entry there.
    """
    rig = Rig(queue_enqueue_us=0, queue_deliver_us=100, store_write_us=5 * MS, fsync_us=3 * MS)
    queue: Any = rig.broker.declare("q")
    queue.attach("t", Taker(queue, settled=settled), mode=Prefetch(10), settled=settled)
    rig.publish(size)
    rig.clock.run_until_rest()
    assert rig.confirmed_us == [confirmed_us]
    assert rig.broker.stores.persistent.written == 0


def test_a_deleted_queue_waits_for_no_disk() -> None:
    """Nothing is confirmed later, and the channel is not held up."""
    rig = Rig()
    queue: Any = rig.broker.declare("q")
    queue.stall()
    rig.publish(count=500)
    rig.clock.run_until_rest()
    assert rig.channel.blocked
    rig.broker.delete("q")
    assert not rig.channel.blocked
    rig.clock.run_until_rest()
    assert rig.confirmed_us == []
