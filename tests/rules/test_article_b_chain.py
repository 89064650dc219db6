"""Article B, rows B2 to B8, B17, B20 and B21: the chain from a slow quorum queue back to TCP.

Over AMQP 0-9-1: client, socket, reader, channel, quorum queue.
"""

from dataclasses import dataclass, field, replace

import pytest

from tests.broker.rig import Rig
from workbench import presets
from workbench.amqp091.frame import item_size
from workbench.broker import Broker
from workbench.frontends import accept_091
from workbench.peers import Client091, Consumer091, Publisher091
from workbench.queues import QueueArguments
from workbench.sim import VirtualClock, Wire
from workbench.trace.taps import Recorder

QUORUM = QueueArguments(queue_type="quorum")
NEVER_US = 10**9  # an fsync that does not end within any of these runs
PACE_US = 20  # slower than reader and channel
SOCKET_OCTETS = 10_000
ANY = 10**9


@dataclass
class World:
    """A cluster with queues, and connections to them."""

    fsync_us: int = 5_000
    replicas: int = 3
    latency_us: int = 200
    command_us: int = 0
    limit: int = 32
    credit: tuple = (400, 200)
    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self):
        self.recorder = Recorder("test", now=lambda: self.clock.now_us)
        initial, more_after = self.credit
        preset = replace(
            presets.get("rmq4.3"),
            reader_us=1,
            channel_us=8,
            fsync_us=self.fsync_us,
            quorum_soft_limit=self.limit,
            quorum_command_us=self.command_us,
            process_credit=initial,
            process_regrant_after=more_after,
        )
        self.broker = Broker(self.clock, preset, self.recorder)
        self.broker.make_cluster(self.replicas, latency_us=self.latency_us)

    def queue(self, name="q"):
        return self.broker.declare(name, QUORUM, replicas=self.replicas)

    def connection(self, name="c1", queue="q", count=1_000, pause_us=0):
        self.queue(queue)
        return Connection(self, name, queue, count, pause_us)

    def connect(self, client, name, capacity=SOCKET_OCTETS):
        end = accept_091(self.broker, name)
        wire = Wire(
            self.clock, client, end, latency_us=(0, 0), connection=name, tap=self.recorder,
            capacity=capacity, size=item_size,
        )  # fmt: skip
        end.connect(wire)
        client.connect(wire)
        return end

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


class Connection:
    """A publisher that asks for confirms, and its connection as the broker has it."""

    def __init__(self, world, name, queue, count, pause_us):
        self.publisher = Publisher091(
            "p", queue, body=b"m" * 20, pause_us=pause_us, most_unconfirmed=ANY
        )
        self.publisher.publish(count)
        self.client = Client091(world.clock, [self.publisher], name=name)
        self.end = world.connect(self.client, name)
        self.queue = world.broker.queues[queue]

    @property
    def confirmed(self):
        return self.publisher.confirmed

    @property
    def read(self):
        """Messages that the reader has taken off the socket."""
        return self.end.amqp.channels[1].counters.published

    @property
    def process(self):
        """The channel's."""
        (channel,) = self.end._channels.values()
        return channel.process


CHAIN = [
    ("queue", "soft-limit"),
    ("channel", "credit-flow"),
    ("reader", "credit-flow"),
    ("client", "tcp"),
]


def test_b2_brakes_come_on_from_the_disk_back_to_the_client_and_go_off_in_the_same_order():
    """The disk is busy, the queue slow, the channel and the reader blocked, TCP full; and back."""
    world = World(fsync_us=25_000)
    connection = world.connection(pause_us=PACE_US)
    world.until(49_000)
    rows = world.recorder.rows
    busy = next(row.seq for row in rows if row.vantage == "wal:n1")
    first = next(row.seq for row in rows if row.event == "block")
    assert busy < first
    assert world.brakes() == [("block", *brake) for brake in CHAIN]
    seen = len(world.brakes())
    world.until(60_000)
    assert world.brakes()[seen : seen + 4] == [("unblock", *brake) for brake in CHAIN]
    world.clock.run_until_rest()
    assert connection.confirmed == 1_000


def test_b2_the_longer_the_chain_stands_still_the_less_gets_in():
    """A burst that the buffers hold puts no brake on at all; one message more than they do does."""
    for count, brakes in ((32, 0), (33, 2), (399, 2), (400, 3), (450, 3), (600, 4)):
        world = World(fsync_us=NEVER_US)
        world.connection(count=count, pause_us=PACE_US)
        world.until(1_000_000)
        assert len(world.brakes()) == brakes, count


def test_b3_a_slow_sender_gets_all_it_wants_beside_a_greedy_one():
    """Both rates are above 0, and together they are what the queue can take."""

    def rates(**publishers):
        world = World(fsync_us=2_000, replicas=1, command_us=100)
        connections = {
            name: world.connection(name, count=10**6, pause_us=pause_us)
            for name, pause_us in publishers.items()
        }
        world.until(150_000)
        return {name: connection.confirmed for name, connection in connections.items()}

    capacity = pytest.approx(150_000 / 100, rel=0.15)  # of the leader, 100 us for each message
    assert sum(rates(greedy=0).values()) == capacity
    shared = rates(greedy=0, slow=1_500)
    assert shared["slow"] > 75  # of 100 that it sends; the others are on their way
    assert shared["greedy"] > 0
    assert sum(shared.values()) == capacity
    one, other = rates(one=0, other=0).values()
    assert min(one, other) > 0
    assert one + other == capacity


@pytest.mark.parametrize(("replicas", "latency_us"), [(1, 300), (3, 0), (5, 5_000)])
def test_b4_actors_on_one_node_or_over_the_network_do_the_same(replicas, latency_us):
    """Only the time of a confirm changes, by a round trip; not what is confirmed, nor its order."""
    world = World(replicas=replicas, latency_us=latency_us)
    connection = world.connection(count=1)
    world.clock.run_until_rest()
    network_us = 0 if replicas == 1 else 2 * latency_us
    assert connection.confirmed == 1
    asked_us = next(row.t_us for row in world.recorder.rows if row.event == "append")
    committed = [row for row in world.recorder.rows if row.event == "commit"]
    leads = next(row for row in committed if row.vantage.endswith("@n1"))
    assert leads.t_us - asked_us == world.fsync_us + network_us
    many = World(replicas=replicas, latency_us=latency_us)
    many.connection(count=100)
    many.clock.run_until_rest()
    for member in many.queue().group.members.values():
        assert [one.message_id for one in member.machine.ready_messages()] == list(range(100))


def test_b5_credit_flow_alone_can_stall():
    """No alarm, no cap, no consumer: the reader is out of credit and reads no more."""
    world = World(fsync_us=NEVER_US)
    connection = world.connection()
    world.until(5_000_000)
    assert (connection.read, connection.confirmed) == (400, 0)
    assert connection.end.throttle.blocked


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
    publisher = Publisher091("p", "q", most_unconfirmed=20)
    publisher.publish(100)
    world.queue()
    world.connect(Client091(world.clock, [publisher]), "c1")
    world.until(5_000_000)
    assert (publisher.published, publisher.left, world.brakes()) == (20, 80, [])


def test_b5_want_of_acks_alone_can_stall():
    """The prefetch is full: messages are ready, published and confirmed, and none comes."""
    world = World()
    connection = world.connection(count=200)
    taker = Consumer091("t", "q", prefetch=20, processing_us=None)
    world.connect(Client091(world.clock, [taker], name="taker"), "c2")
    world.clock.run_until_rest()
    assert connection.confirmed == 200
    assert (taker.received, world.queue().queue.ready) == (20, 180)


def test_b6_the_connection_to_a_healthy_queue_never_notices():
    """Two queues on one cluster, one of them stalled: the other's connection has no brake on."""
    world = World(replicas=1)
    world.queue("slow").stall()
    slow = world.connection("c1", "slow")
    healthy = world.connection("c2", "healthy", count=500, pause_us=500)
    world.until(5_000_000)
    assert slow.confirmed == 0 and slow.end.throttle.blocked
    assert healthy.confirmed == 500
    told = [row for row in world.recorder.rows if row.event == "block"]
    assert {row.connection or row.queue for row in told} == {"c1", "slow"}


@pytest.mark.parametrize(("initial", "more_after"), [(400, 200), (200, 50), (200, 100)])
def test_b7_b10_credit_is_given_first_and_then_as_work_passes_on(initial, more_after):
    """Initial, then a grant for each so many handled: 200, 0, 50 of figures 3 and 4."""
    world = World(fsync_us=NEVER_US, limit=10**6, credit=(initial, more_after))
    connection = world.connection(count=3 * initial)
    world.until(1_000_000)
    rows = [row for row in world.recorder.rows if row.vantage == "reader:c1" and row.ledger]
    spent = [row.ledger["hop_credit"] for row in rows if row.kind == "credit-spent"]
    came = [row.ledger["hop_credit"] for row in rows if row.kind == "credit-came"]
    assert connection.read == 3 * initial  # nothing is in the way: the queue is never slow
    assert spent[0] == initial - 1 and min(spent) >= 0
    assert len(came) == 3 * initial // more_after
    grants = [row.extra["credit"] for row in world.recorder.rows if row.event == "grant"]
    assert set(grants) == {more_after}


def test_b7_a_blocked_channel_grants_nothing_and_gives_all_of_it_when_it_goes_on():
    """The inner process handles what it has; it is the reader that stops."""
    world = World(fsync_us=50_000)
    connection = world.connection()
    world.until(40_000)
    process = connection.process
    assert connection.read == 400 and process.depth == 0  # all handled, none granted for
    assert [grant.credit for grant in process.flow.kept] == [200, 200]
    assert connection.end.reader.flow.credit_from == {"channel:c1/1": 0}
    world.clock.run_until_rest()
    assert connection.confirmed == 1_000 and process.flow.kept == []


def test_b8_the_chain_ends_in_tcp_whose_window_closes():
    """The reader does not read: the sockets fill, the client cannot send, and later it can."""
    world = World(fsync_us=1_000_000)
    connection = world.connection()
    world.until(999_999)
    assert not connection.client.writable
    assert connection.publisher.left == 1_000 - connection.publisher.published > 300
    assert world.brakes()[-1] in [("block", "client", "tcp"), ("block", "reader", "credit-flow")]
    world.clock.run_until_rest()
    assert connection.client.writable
    assert (connection.publisher.left, connection.confirmed) == (0, 1_000)


@pytest.mark.parametrize("connections", [1, 3])
def test_b17_without_confirms_each_connection_has_its_400_messages_in_the_broker(connections):
    """Only TCP holds who does not wait for confirms: many publishers fill the broker together."""
    world = World(fsync_us=NEVER_US, replicas=1)
    for number in range(connections):
        world.connection(f"c{number}", count=600)
    world.until(5_000_000)
    assert world.queue().mailbox == 400 * connections


def test_b20_the_credit_chain_ends_at_the_channel():
    """Between channel and leader there is no credit: all that the channel sends is in the log."""
    world = World(fsync_us=NEVER_US)
    connection = world.connection()
    world.until(5_000_000)
    group = world.queue().group
    leader = group.members["n1"].replica
    messages = [entry for entry in leader.log.entries() if entry.command is not None]
    assert len(messages) == connection.read == 400
    # It has never counted what it sent to the queue.
    assert connection.process.flow.credit_from == {}
    for node in ("n2", "n3"):
        log = group.members[node].replica.log
        assert log.entries() == leader.log.entries()  # nor does anything hold the followers
    nodes = world.broker.cluster.nodes.values()
    assert [node.wal.waiting + node.wal.syncing for node in nodes] == [400] * 3


@pytest.mark.parametrize("limit", [32, 256])
def test_b21_the_pending_command_beyond_the_limit_blocks_and_the_reader_s_credit_overshoots(limit):
    """The 33rd (257th) turns the queue slow; what the reader may still push is 400 in all."""
    world = World(fsync_us=NEVER_US, limit=limit)
    world.connection()
    world.until(5_000_000)
    pending = [row.extra["pending"] for row in world.recorder.rows if row.kind == "soft-limit"]
    assert pending == [limit + 1]
    # With 256 the reader has had one more grant by then: 200 were handled before the block.
    granted = 200 * (limit // 200)
    assert world.queue().mailbox == 400 + granted <= limit + 400
