"""Article B, rows B2 to B8, B17, B20 and B21: the chain from a slow quorum queue back to TCP."""

from dataclasses import dataclass, field

import pytest

from tests.broker.rig import Rig
from workbench import presets
from workbench.broker.quorum_client import FifoClient
from workbench.broker.quorum_cluster import FRONT, QuorumCluster
from workbench.broker.quorum_node import SyncTime
from workbench.queues import Checkout, Prefetch, QueueArguments, Settle
from workbench.scenarios import ParameterError
from workbench.scenarios.confirming import PIPELINED, ConfirmingPublisher
from workbench.scenarios.heeding import Costs, HeedingConnection
from workbench.sim import VirtualClock
from workbench.trace.taps import Recorder

QUORUM = QueueArguments(queue_type="quorum")
NEVER_US = 10**9  # an fsync that does not end within any of these runs
SMALL = Costs(octets=100, socket_octets=10_000)
PACED = Costs(octets=100, socket_octets=10_000, pace_us=20)  # slower than reader and channel


@dataclass
class World:
    """A cluster with queues, and connections to them."""

    fsync_us: int = 5_000
    replicas: int = 3
    latency_us: int = 200
    command_us: int = 0
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self):
        self.recorder = Recorder("test", now=lambda: self.clock.now_us)
        self.cluster = QuorumCluster(
            self.clock,
            self.recorder,
            nodes=self.replicas,
            fsync=SyncTime.constant(self.fsync_us),
            latency_us=self.latency_us,
        )

    def queue(self, name="q"):
        return self.cluster.declare(name, replicas=self.replicas, command_us=self.command_us)

    def connection(self, name="c1", queue="q", count=2_000, costs=SMALL, **more):
        return HeedingConnection(
            self.clock,
            self.queue(queue),
            name=name,
            count=count,
            costs=costs,
            tap=self.recorder,
            **more,
        )

    def until(self, t_us):
        while self.clock.next_us is not None and self.clock.next_us <= t_us:
            self.clock.step()

    def brakes(self):
        """What blocked and unblocked, in order: (block or not, who, why)."""
        return [
            (row.event, row.vantage.split(":")[0], row.kind)
            for row in self.recorder.rows
            if row.event in ("block", "unblock")
        ]


CHAIN = [("channel", "soft-limit"), ("reader", "credit-flow"), ("client", "tcp")]


def test_b2_brakes_come_on_from_the_disk_back_to_the_client_and_go_off_in_the_same_order():
    """The disk is busy, the channel blocked, the reader out of credit, TCP full; then backwards."""
    world = World(fsync_us=20_000)
    connection = world.connection(costs=PACED)
    world.until(39_000)
    rows = world.recorder.rows
    busy = next(row.seq for row in rows if row.vantage == "wal:n1")
    first = next(row.seq for row in rows if row.event == "block")
    assert busy < first
    assert world.brakes() == [("block", *brake) for brake in CHAIN]
    seen = len(world.brakes())
    world.until(50_000)
    assert world.brakes()[seen : seen + 3] == [("unblock", *brake) for brake in CHAIN]
    world.clock.run_until_rest()
    assert connection.confirmed == 2_000


def test_b2_the_longer_the_chain_stands_still_the_less_gets_in():
    """A burst that the buffers hold puts no brake on at all; one message more than they do does."""
    for count, brakes in ((32, 0), (33, 1), (399, 1), (400, 2), (500, 2), (501, 3)):
        world = World(fsync_us=NEVER_US)
        world.connection(count=count, costs=PACED)
        world.until(1_000_000)
        assert len(world.brakes()) == brakes, count


def test_b3_a_slow_sender_gets_all_it_wants_beside_a_greedy_one():
    """Both rates are above 0, and together they are what the queue can take."""

    def rates(**publishers):
        world = World(fsync_us=2_000, replicas=1, command_us=50)
        connections = {
            name: world.connection(name, count=10**6, costs=Costs(pace_us=pace_us))
            for name, pace_us in publishers.items()
        }
        world.until(500_000)
        return {name: connection.confirmed for name, connection in connections.items()}

    capacity = pytest.approx(500_000 / 50, rel=0.1)  # of the leader, 50 us for each message
    assert sum(rates(greedy=0).values()) == capacity
    shared = rates(greedy=0, slow=1_000)
    assert shared["slow"] == pytest.approx(500, rel=0.05)  # as many as it sends
    assert shared["greedy"] > 0
    assert sum(shared.values()) == capacity
    one, other = rates(one=0, other=0).values()
    assert min(one, other) > 0
    assert one + other == capacity


@pytest.mark.parametrize("replicas", [1, 3, 5])
@pytest.mark.parametrize("latency_us", [0, 300, 5_000])
def test_b4_actors_on_one_node_or_over_the_network_do_the_same(replicas, latency_us):
    """Only the time of a confirm changes, by a round trip; not what is confirmed, nor its order."""
    world = World(replicas=replicas, latency_us=latency_us)
    connection = world.connection(count=1)
    world.clock.run_until_rest()
    confirm_us = world.clock.now_us - SMALL.read_us - SMALL.publish_us
    network_us = 0 if replicas == 1 else 2 * latency_us
    assert connection.confirmed == 1
    fsynced_us = next(row.t_us for row in world.recorder.rows if row.event == "fsync")
    asked_us = next(row.t_us for row in world.recorder.rows if row.event == "append")
    assert fsynced_us - asked_us == world.fsync_us
    committed = [row for row in world.recorder.rows if row.event == "commit"]
    leads = next(row for row in committed if row.vantage.endswith("@n1"))
    assert leads.t_us - asked_us == world.fsync_us + network_us
    assert confirm_us >= world.fsync_us + network_us
    many = World(replicas=replicas, latency_us=latency_us)
    many.connection(count=300)
    many.clock.run_until_rest()
    for member in many.queue().members.values():
        ready = [message.payload for message in member.machine.ready_messages()]
        assert ready == [b"c1 %d" % number for number in range(1, 301)]


class Taker:
    """A consumer: with a prefetch, which settles or not."""

    def __init__(self, world, *, prefetch, settles):
        self.held = self.most = self.got = 0
        self.settles = settles
        self.clock = world.clock
        self.client = FifoClient(world.queue(), world.clock, "taker", place=FRONT, owner=self)
        self.client.consume("t")
        self.client.send(Checkout(consumer="t", mode=Prefetch(prefetch)))

    def handed(self, effect):
        self.got += 1
        self.held += 1
        self.most = max(self.most, self.held)
        if self.settles:
            self.clock.call_later(1_000, self.settle, effect.number)

    def settle(self, number):
        self.held -= 1
        self.client.send(Settle(consumer="t", message_ids=(number,)))

    def replied(self, logged, reply):
        pass

    def told(self, effect):
        pass

    def slowed(self, slow, pending):
        pass


def test_b5_credit_flow_alone_can_stall():
    """No alarm, no cap, no consumer: the reader is out of credit and reads no more."""
    world = World(fsync_us=NEVER_US)
    connection = world.connection()
    world.until(10_000_000)
    assert (connection.read, connection.confirmed) == (400, 0)
    assert connection.reader.flow.blocked


def test_b5_a_memory_alarm_alone_can_stall():
    """No message is in the broker and credit is there: the window is closed."""
    rig = Rig(presets.get("rmq4.3"))
    rig.broker.declare("q", QUORUM, replicas=1)
    _, session = rig.raw()
    sender = rig.sender(session)
    rig.broker.set_alarm()
    rig.rest()
    assert sender.credit == 170 and not sender.can_send
    assert rig.broker.queues["q"].mailbox == 0
    rig.broker.clear_alarm()
    rig.rest()
    assert sender.can_send


def test_b5_want_of_confirms_alone_can_stall():
    """The publisher's own cap: the queue is not slow, and nobody else brakes."""
    world = World(fsync_us=NEVER_US)
    publisher = ConfirmingPublisher(world.clock, PIPELINED, 20, 1)
    publisher.client = FifoClient(world.queue(), world.clock, "p", place=FRONT, owner=publisher)
    publisher.begin()
    world.until(10_000_000)
    assert len(publisher.unconfirmed) == 20
    assert publisher.blocks == 0 and world.brakes() == []


def test_b5_want_of_acks_alone_can_stall():
    """The prefetch is full: messages are ready, published and confirmed, and none comes."""
    world = World()
    taker = Taker(world, prefetch=20, settles=False)
    connection = world.connection(count=200)
    world.clock.run_until_rest()
    assert connection.confirmed == 200
    assert (taker.got, world.queue().front().ready) == (20, 180)


def test_b6_the_connection_to_a_healthy_queue_never_notices():
    """Two queues on one cluster, one of them stalled: the other's connection has no brake on."""
    world = World(replicas=1)
    world.queue("slow").suspend()
    slow = world.connection("c1", "slow")
    costs = Costs(octets=100, socket_octets=10_000, pace_us=500)
    healthy = world.connection("c2", "healthy", count=1_000, costs=costs)
    world.until(5_000_000)
    assert slow.confirmed == 0 and slow.reader.flow.blocked
    assert healthy.confirmed == 1_000
    assert {row.connection for row in world.recorder.rows if row.event == "block"} == {"c1"}


@pytest.mark.parametrize(("initial", "more_after"), [(400, 200), (200, 50), (200, 100)])
def test_b7_credit_is_given_first_and_then_as_work_passes_on(initial, more_after):
    """Initial, then a grant for each so many handled; a channel without credit stops the reader."""
    world = World(fsync_us=NEVER_US)
    connection = world.connection(
        soft_limit=10**6, initial=initial, more_after=more_after, count=10 * initial
    )
    lowest, grants = initial, 0
    before = initial
    while world.clock.next_us is not None and world.clock.next_us < 10_000_000:
        world.clock.step()
        credit = connection.reader.flow.credit_from.get("channel:c1", initial)
        if credit > before:
            assert credit - before == more_after
            grants += 1
        lowest, before = min(lowest, credit), credit
        handled = connection.read - connection.mailbox
        assert handled // more_after - grants in (0, 1)  # one may be on its way
    assert connection.read == 10 * initial  # nothing is in the way: the queue is never slow
    assert 0 <= lowest < initial
    assert grants == 10 * initial // more_after


def test_b7_a_blocked_channel_grants_nothing_and_gives_all_of_it_when_it_goes_on():
    """The inner process handles what it has; it is the reader that stops."""
    world = World(fsync_us=50_000)
    connection = world.connection(costs=Costs(octets=100, socket_octets=100_000))
    world.until(40_000)
    assert connection.read == 400 and connection.mailbox == 0  # all handled, none granted for
    assert [grant.credit for grant in connection.channel.flow.kept] == [200, 200]
    assert connection.reader.flow.credit_from == {"channel:c1": 0}
    world.clock.run_until_rest()
    assert connection.confirmed == 2_000 and connection.channel.flow.kept == []


def test_b8_the_chain_ends_in_tcp_whose_window_closes():
    """The reader does not read: the sockets fill, the client cannot send, and later it can."""
    world = World(fsync_us=1_000_000)
    connection = world.connection()
    world.until(999_999)
    assert connection.window == 0
    assert connection.left == 2_000 - connection.read - 10_000 // 100
    assert world.brakes()[-1] == ("block", "client", "tcp")
    world.clock.run_until_rest()
    assert (connection.left, connection.window, connection.confirmed) == (0, 10_000, 2_000)


@pytest.mark.parametrize("connections", [1, 10, 40])
def test_b17_without_confirms_each_connection_has_its_400_messages_in_the_broker(connections):
    """Only TCP holds who does not wait for confirms: many publishers fill the broker together."""
    world = World(fsync_us=NEVER_US, replicas=1)
    inside = [world.connection(f"c{number}") for number in range(connections)]
    world.until(5_000_000)
    assert sum(connection.inside for connection in inside) == 400 * connections


def test_b20_the_credit_chain_ends_at_the_channel():
    """Between channel and leader there is no credit: all that the channel sends is in the log."""
    world = World(fsync_us=NEVER_US)
    connection = world.connection()
    world.until(5_000_000)
    leader = world.queue().members["n1"].replica
    messages = [entry for entry in leader.log.entries() if entry.command is not None]
    assert len(messages) == connection.read == 400
    # It has never counted what it sent to the queue.
    assert connection.channel.flow.credit_from == {}
    for node in ("n2", "n3"):
        log = world.queue().members[node].replica.log
        assert log.entries() == leader.log.entries()  # nor does anything hold the followers
    assert [node.wal.waiting + node.wal.syncing for node in world.cluster.nodes.values()] == [
        400
    ] * 3


@pytest.mark.parametrize("limit", [32, 256])
def test_b21_the_pending_command_beyond_the_limit_blocks_and_the_reader_s_credit_overshoots(limit):
    """The 33rd (257th) turns the queue slow; what the reader may still push is 400 in all."""
    world = World(fsync_us=NEVER_US)
    connection = world.connection(soft_limit=limit)
    world.until(5_000_000)
    pending = [row.extra["pending"] for row in world.recorder.rows if row.kind == "soft-limit"]
    assert pending == [limit + 1]
    # With 256 the reader has had one more grant by then: 200 were handled before the block.
    granted = 200 * (limit // 200)
    assert connection.client.most_pending == 400 + granted <= limit + 400


@pytest.mark.parametrize(
    "numbers",
    [{"octets": 0}, {"socket_octets": 5}, {"read_us": -1}, {"publish_us": -1}, {"pace_us": -1}],
)
def test_costs_that_cannot_be_are_refused(numbers):
    """A negative time, a message of nothing, sockets that hold no message."""
    with pytest.raises(ParameterError, match=r"legal: \d+ or more"):
        Costs(**numbers)
