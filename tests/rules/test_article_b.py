"""Article B, quorum queues and flow control: each statement as a rule.

What concerns the chain from a quorum queue back to the socket is in `test_article_b_chain.py`.
"""

from dataclasses import replace

import pytest

from tests.broker.rig import Rig, data
from workbench import presets
from workbench.broker.quorum_client import FifoClient
from workbench.broker.quorum_cluster import FRONT, QuorumCluster
from workbench.broker.quorum_node import SyncTime
from workbench.queues import Checkout, Enqueue, Message, Prefetch, QueueArguments, Settle
from workbench.scenarios import run
from workbench.scenarios.confirming import BATCHES, ONE_AT_A_TIME, PIPELINED, publish_for
from workbench.sim import VirtualClock

RMQ43 = presets.get("rmq4.3")
QUORUM = QueueArguments(queue_type="quorum")


def act(played, name, **arguments):
    """Act when all is at rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


class Publisher:
    """Sends as fast as it may; heeds block, after what upstream credit it still holds."""

    def __init__(self, group, clock, name="p", *, heeds=True, upstream=0, limit=32, count=5000):
        self.clock, self.heeds, self.upstream, self.left = clock, heeds, upstream, count
        self.confirmed = 0
        self.slow = False
        self.credit = upstream
        self.client = FifoClient(group, clock, name, place=FRONT, owner=self, soft_limit=limit)
        clock.call_soon(self.go_on)

    def go_on(self):
        if not self.left or (self.slow and self.heeds and self.credit == 0):
            return
        self.credit -= self.slow
        self.left -= 1
        self.client.send(Enqueue(message=Message(payload=b"m")))
        self.clock.call_later(10, self.go_on)

    def slowed(self, slow, pending):
        self.slow = slow
        if not slow:
            stopped = self.credit == 0
            self.credit = self.upstream
            if stopped and self.heeds:
                self.clock.call_soon(self.go_on)

    def replied(self, logged, reply):
        self.confirmed += 1

    def handed(self, effect):
        pass

    def told(self, effect):
        pass


def small_cluster(fsync_us=5_000, replicas=3, command_us=0):
    """A clock and a queue on it."""
    clock = VirtualClock()
    cluster = QuorumCluster(clock, nodes=replicas, fsync=SyncTime.constant(fsync_us))
    return clock, cluster.declare("q", replicas=replicas, command_us=command_us)


def blocks(played):
    """How often a publisher's credit was withheld for want of confirms."""
    return len([row for row in played.rows if row.event == "block" and row.kind == "unconfirmed"])


def test_b1_a_burst_passes_and_an_overload_is_slowed():
    """100 messages are absorbed by credit; 1,000 at once are held, and all arrive in the end."""
    begun = run("quorum", "rmq4.3")
    assert blocks(act(begun, "publish", count=100)) == 0
    overloaded = act(begun, "publish", count=1000)
    assert blocks(overloaded) > 0
    assert len([row for row in overloaded.rows if row.event == "confirm"]) == 1000


def test_b1_the_same_bursts_stall_nobody_unless_they_come_faster_than_they_are_worked_off():
    """150 messages every 100 ms, or every 3 ms, into a queue that makes 20 ms for each batch."""

    def held(every_us):
        rig = Rig(replace(RMQ43, fsync_us=20_000), latency_us=100)
        rig.broker.declare("q", QUORUM, replicas=1)
        sender = rig.publisher("q")
        rig.rest()
        for burst in range(20):
            rig.clock.call_later(burst * every_us, sender.publish, [data(b"m")] * 150)
        rig.rest()
        assert sender.outcomes["accepted"] == 3_000
        rows = rig.recorder.rows
        return [row for row in rows if row.event == "block" and row.kind == "unconfirmed"]

    assert held(100_000) == []
    assert len(held(3_000)) > 10  # again and again, as long as it lasts


def test_b2_over_amqp_1_0_backpressure_runs_up_to_the_origin():
    """A slow disk: the queue is slow, credit is withheld, the client stops; an fsync ends it."""
    played = act(run("quorum", "rmq4.3"), "slow_disk", node="all", fsync_us=500_000)
    rows = act(played, "publish", count=400).rows
    busy = next(row.seq for row in rows if row.vantage == "wal:n1")
    slow = next(row.seq for row in rows if row.kind == "soft-limit")
    held = next(row.seq for row in rows if row.event == "block" and row.kind == "unconfirmed")
    stopped = next(
        row.seq for row in rows if row.vantage == "client:publisher" and row.brake == "unconfirmed"
    )
    synced = next(row.seq for row in rows if row.vantage == "wal:n1" and row.event == "fsync")
    goes_on = next(row.seq for row in rows if row.event == "unblock")
    assert busy < slow < held < stopped < synced < goes_on


def test_b3_two_publishers_with_half_the_cap_get_what_one_with_all_of_it_would():
    """Both go on, and together they are as fast."""
    one, other = publish_for(PIPELINED, n=50, publishers=2, virtual_us=300_000)
    (alone,) = publish_for(PIPELINED, n=100, virtual_us=300_000)
    assert min(one.rate, other.rate) > 0
    assert one.rate + other.rate == pytest.approx(alone.rate, rel=0.1)


def two_links(fsync_us, count=1_000):
    """Publishers of a quorum and of a classic queue, each with its own link; when each ended."""
    rig = Rig(replace(RMQ43, fsync_us=fsync_us, queue_enqueue_us=20), latency_us=100)
    rig.broker.declare("slow", QUORUM, replicas=1)
    rig.broker.declare("fast")
    told = {}
    for number, queue in enumerate(("slow", "fast")):
        sender = rig.publisher(queue, f"c{number + 1}")
        sender.publish([data(b"m")] * count)
        told[queue] = sender
    ended = {}
    while len(ended) < 2:
        assert rig.clock.step()
        for queue, sender in told.items():
            if queue not in ended and sender.outcomes.get("accepted") == count:
                ended[queue] = rig.clock.now_us
    return ended


def test_b6_a19_only_the_publishers_of_the_slow_queue_are_slowed():
    """The classic queue's publisher takes as long beside a fast disk as beside a slow one."""
    quick, slow = two_links(1_000), two_links(20_000)
    assert slow["slow"] > 5 * quick["slow"]
    assert slow["fast"] == pytest.approx(quick["fast"], rel=0.1)


def test_b12_an_alarm_stops_the_publishers_of_every_connection_and_queue():
    """Each window closes, whatever kind the queue is; afterwards all is sent and confirmed."""
    rig = Rig(RMQ43)
    rig.broker.declare("quorum", QUORUM, replicas=1)
    rig.broker.declare("classic")
    senders = {
        queue: rig.publisher(queue, f"c{number}")
        for number, queue in enumerate(("quorum", "classic"), start=1)
    }
    rig.rest()
    rig.broker.set_alarm()
    rig.rest()
    for sender in senders.values():
        sender.publish([data(b"m")] * 3)
    rig.rest()
    assert [rig.queue(name).ready for name in senders] == [0, 0]
    rig.broker.clear_alarm()
    rig.rest()
    assert [sender.outcomes.get("accepted") for sender in senders.values()] == [3, 3]
    assert [rig.queue(name).ready for name in senders] == [3, 3]


@pytest.mark.parametrize("replicas", [1, 3, 5])
@pytest.mark.parametrize("fsync_us", [200, 5_000, 20_000])
def test_b15_one_at_a_time_is_slowest_and_pipelining_fastest(fsync_us, replicas):
    """Throughput, where sending 100 messages takes as long as two fsyncs: nobody idles then."""
    single, batches, pipelined = (
        publish_for(
            way,
            n=100,
            send_us=fsync_us // 50,
            fsync_us=fsync_us,
            replicas=replicas,
            virtual_us=30_000 + 20 * fsync_us,
        )[0].rate
        for way in (ONE_AT_A_TIME, BATCHES, PIPELINED)
    )
    assert 3 * single < batches < 0.9 * pipelined


def test_b15_where_the_disk_alone_decides_batches_are_as_fast_as_pipelining():
    """Both have 100 messages in two fsyncs then: what differs is how long a message waits."""
    batches, pipelined = (
        publish_for(way, n=100, fsync_us=10_000, send_us=0, replicas=1)[0]
        for way in (BATCHES, PIPELINED)
    )
    assert batches.rate == pipelined.rate == pytest.approx(100 / 0.020, rel=0.02)


def test_b15_pipelining_has_the_steadiest_latency():
    """At the same in-flight limit no message waits for a whole batch before it."""
    batches, pipelined = (
        publish_for(way, n=200, virtual_us=300_000)[0] for way in (BATCHES, PIPELINED)
    )
    assert pipelined.rate > batches.rate
    assert max(pipelined.latencies_us) <= 2 * min(pipelined.latencies_us) + 5_000


@pytest.mark.parametrize("cap", [1, 7, 32, 300])
def test_b16_a_pipelining_publisher_puts_itself_in_flow(cap):
    """Never more unconfirmed than its cap; with a cap of 32 the broker need not brake at all."""
    (outcome,) = publish_for(PIPELINED, n=cap, virtual_us=200_000)
    assert outcome.most_unconfirmed == cap
    assert (outcome.blocks == 0) == (cap <= 32)


@pytest.mark.parametrize("links", [1, 4])
def test_b17_b18_link_credit_bounds_what_publishers_without_confirms_have_in_the_broker(links):
    """A stalled queue holds 255 messages of each link, however fast and many the publishers."""
    rig = Rig(RMQ43)
    rig.broker.declare("q", QUORUM, replicas=1)
    rig.broker.queues["q"].stall()
    for number in range(links):
        sender = rig.publisher("q", f"c{number + 1}", settled=True)
        sender.publish([data(b"m")] * 1_000)
    rig.rest()
    assert rig.broker.queues["q"].mailbox == 255 * links


def test_b19_prefetch_bounds_what_a_consumer_holds_and_auto_ack_does_not():
    """Unacknowledged never above the prefetch; settled as they leave, nothing stops them.

    Who settles what it gets, each message after 1 ms, gets all of them, and never holds more.
    """
    clock, group = small_cluster()
    got, most = {}, {}

    class Owner(Publisher):
        got = held = most = 0

        def handed(self, effect):
            self.got += 1
            self.held += 1
            self.most = max(self.most, self.held)
            if effect.deliver.consumer == "settles":
                clock.call_later(1_000, self.settle, effect.number)

        def settle(self, number):
            self.held -= 1
            self.client.send(Settle(consumer="settles", message_ids=(number,)))

    for name in ("manual", "settles", "auto"):
        clock, group = small_cluster()
        owner = Owner(group, clock, count=300, heeds=False)
        owner.client.consume(name)
        owner.client.send(Checkout(consumer=name, mode=Prefetch(20), settled=name == "auto"))
        clock.run_until_rest()
        got[name], most[name] = owner.got, owner.most
    assert got == {"manual": 20, "settles": 300, "auto": 300}
    assert most["manual"] == 20 >= most["settles"]
    assert most["auto"] == 300


@pytest.mark.parametrize("limit", [32, 256])
def test_b21_the_command_beyond_the_soft_limit_stops_the_grants(limit):
    """A heeding channel stands still with so many pending, plus what credit was out already."""
    for upstream in (0, 200):
        clock, group = small_cluster()
        publisher = Publisher(group, clock, limit=limit, upstream=upstream)
        clock.run_until_rest()
        assert publisher.confirmed == 5000
        assert publisher.client.most_pending == limit + 1 + upstream


def test_b22_the_lower_soft_limit_buffers_less_with_many_clients():
    """Since 3.8.4: 50 clients have fewer commands waiting in the broker.

    The leader is what bounds their rate here, 20 us for a command: so it costs no throughput.
    """
    waiting, took = {}, {}
    for limit in (32, 256):
        clock, group = small_cluster(replicas=1, command_us=20)
        clients = [
            Publisher(group, clock, f"p{number}", limit=limit, count=400) for number in range(50)
        ]
        clock.run_until_rest()
        waiting[limit] = sum(client.client.most_pending for client in clients)
        took[limit] = clock.now_us
    assert waiting[32] == 50 * 33
    assert waiting[256] == 50 * 257
    assert took[32] == pytest.approx(took[256], rel=0.05)


def test_a26_halving_the_fsync_about_doubles_the_rate_of_a_quorum_queue():
    """Throughput is what is in flight divided by the time of an fsync."""
    rates = {
        fsync_us: publish_for(PIPELINED, n=170, fsync_us=fsync_us, replicas=1, send_us=1)[0].rate
        for fsync_us in (20_000, 10_000, 5_000, 2_500)
    }
    for slower, quicker in ((20_000, 10_000), (10_000, 5_000), (5_000, 2_500)):
        assert rates[quicker] / rates[slower] == pytest.approx(2, rel=0.15)


def test_a26_an_unreplicated_quorum_queue_waits_for_its_disk_too():
    """One replica: the confirm comes one fsync later, not at once."""
    (outcome,) = publish_for(ONE_AT_A_TIME, fsync_us=7_000, replicas=1)
    assert set(outcome.latencies_us) == {7_000}


def test_a26_an_fsync_that_reaches_no_platter_costs_nothing():
    """As on macOS: with 0 ms only the network is left."""
    (outcome,) = publish_for(ONE_AT_A_TIME, fsync_us=0, replicas=3, latency_us=150)
    assert set(outcome.latencies_us) == {300}
