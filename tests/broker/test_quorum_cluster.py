"""VirtualHost with disks: how long an fsync takes, what a crash leaves, what is refused."""

import pytest

from workbench.broker.quorum_client import FifoClient
from workbench.broker.quorum_cluster import FRONT, QuorumCluster
from workbench.broker.quorum_node import STEPS, SyncTime
from workbench.queues import Enqueue, Message, QueueError
from workbench.queues.draws import SeededDraws
from workbench.sim import VirtualClock
from workbench.trace.taps import Recorder


class Owner:
    """Counts confirms."""

    def __init__(self):
        self.confirmed = []

    def replied(self, logged, reply):
        self.confirmed.append(logged.command.message.payload)

    def handed(self, effect):
        pass

    def told(self, effect):
        pass

    def slowed(self, slow, pending):
        pass


def begun(nodes=3, queues=("q",), **numbers):
    """A cluster with queues, one client of each, and a recorder."""
    clock = VirtualClock()
    recorder = Recorder("test", now=lambda: clock.now_us)
    cluster = QuorumCluster(clock, recorder, nodes=nodes, **numbers)
    clients = []
    for name in queues:
        group = cluster.declare(name, replicas=nodes)
        owner = Owner()
        clients.append((FifoClient(group, clock, "p", place=FRONT, owner=owner), owner))
    return cluster, recorder, clients


def test_queues_of_a_node_share_its_log_and_its_fsyncs():
    """Ten queues, ten messages at once: one batch for the first, one for the other nine."""
    cluster, recorder, clients = begun(1, tuple(f"q{number}" for number in range(10)))
    for client, _ in clients:
        client.send(Enqueue(message=Message(payload=b"m")))
    cluster.clock.run_until_rest()
    batches = [row.extra["entries"] for row in recorder.rows if row.event == "fsync"]
    assert batches == [1, 9]
    assert all(owner.confirmed for _, owner in clients)


def test_an_fsync_takes_what_its_distribution_says():
    """A constant is a constant; between quantiles a straight line is drawn."""
    draws = SeededDraws(1)
    assert {SyncTime.constant(700).draw(draws) for _ in range(50)} == {700}
    times = [SyncTime.between(1_000, 3_000).draw(draws) for _ in range(2_000)]
    assert 1_000 <= min(times) < 1_050 and 2_950 < max(times) <= 3_000
    assert sum(times) / len(times) == pytest.approx(2_000, rel=0.03)
    tail = SyncTime(quantiles=((0, 100), (STEPS * 9 // 10, 200), (STEPS, 10_000)))
    times = [tail.draw(draws) for _ in range(2_000)]
    assert 0.07 < sum(time > 200 for time in times) / len(times) < 0.13


@pytest.mark.parametrize(
    "quantiles", [(), ((0, -1),), ((0, 5), (STEPS, 3)), ((5, 5), (0, 9)), ((STEPS + 1, 5),)]
)
def test_an_fsync_time_that_cannot_be_is_refused(quantiles):
    """Negative, falling, out of range, or nothing at all."""
    with pytest.raises(QueueError, match=r"legal|rise"):
        SyncTime(quantiles=quantiles)


@pytest.mark.parametrize(
    "numbers", [{"latency_us": -1}, {"client_latency_us": -5}, {"detect_us": -1}, {"nodes": 0}]
)
def test_a_negative_time_or_no_node_is_refused(numbers):
    """The text names the number and what is legal."""
    with pytest.raises(QueueError, match=r"legal: [01] or more"):
        QuorumCluster(VirtualClock(), **numbers)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda cluster: cluster.crash("n1", saved=-1), "saved is -1; legal: 0 or more"),
        (lambda cluster: cluster.crash("n9"), "no node 'n9'; nodes: n1, n2, n3"),
        (lambda cluster: cluster.set_latency("n1", "n2", -1), "latency_us is -1; legal: 0"),
        (lambda cluster: cluster.declare("r", command_us=-1), "command_us is -1; legal: 0"),
        (lambda cluster: cluster.isolate("n2"), "every way of n2 is cut already; legal now: heal"),
        (lambda cluster: cluster.cut("n1", "n2"), "n1-n2 is cut already; legal now: heal it"),
        (lambda cluster: cluster.stall("r"), "no queue 'r'; queues: q"),
        (
            lambda cluster: FifoClient(
                cluster.groups["q"], cluster.clock, "p", place="there", owner=Owner()
            ),
            "client p is at 'there'; legal: n1, n2, n3, front",
        ),
        (
            lambda cluster: FifoClient(
                cluster.groups["q"], cluster.clock, "p", place="n1", owner=Owner(), resend_us=-1
            ),
            "resend_us is -1; legal: 0 or more",
        ),
    ],
)
def test_what_a_cluster_cannot_do_is_refused_and_changes_nothing(wrong, why):
    """With what is legal, in words; `n2` is isolated."""
    cluster, _, _ = begun(3)
    cluster.isolate("n2")
    before = cluster.overview()
    with pytest.raises(QueueError, match=why):
        wrong(cluster)
    assert cluster.overview() == before


def test_more_replicas_than_nodes_are_refused():
    """A node holds one replica of a queue."""
    with pytest.raises(QueueError, match="5 replicas need 5 nodes, the cluster has 3"):
        QuorumCluster(VirtualClock(), nodes=3).declare("q", replicas=5)


def test_a_crash_between_write_and_fsync_loses_what_was_never_confirmed():
    """A lone replica dies in its fsync: the message is not there, and was not confirmed."""
    cluster, _, [(client, owner)] = begun(1)
    client.send(Enqueue(message=Message(payload=b"m")))
    while not cluster.nodes["n1"].wal.syncing:
        cluster.clock.step()
    assert cluster.crash("n1") == 1
    assert owner.confirmed == []
    cluster.restart("n1")
    cluster.clock.run_until_rest()
    assert owner.confirmed == [b"m"]  # the client sent it again to the leader that came back
    assert cluster.groups["q"].front().ready == 1


@pytest.mark.parametrize(
    ("replicas", "fsyncs_ms"),
    [
        (1, (7,)),
        (3, (9, 2, 5)),
        (3, (2, 9, 5)),
        (5, (3, 9, 1, 40, 7)),
        (5, (40, 9, 1, 3, 7)),  # the leader's disk is the slowest: its followers overtake it
        (5, (9, 40, 30, 20, 10)),
        (7, (1, 2, 3, 4, 5, 6, 7)),
        (7, (7, 6, 5, 4, 3, 2, 1)),
    ],
)
def test_a20_the_confirm_comes_when_the_leader_hears_of_the_majority_s_last_fsync(
    replicas, fsyncs_ms
):
    """The leader's own disk counts when it is done, a follower's when its word has come."""
    latency_us = 300
    cluster, _, [(client, owner)] = begun(replicas, latency_us=latency_us)
    for node, ms in zip(cluster.nodes, fsyncs_ms, strict=True):
        cluster.set_fsync(node, SyncTime.constant(ms * 1_000))
    heard = sorted([fsyncs_ms[0] * 1_000, *(ms * 1_000 + 2 * latency_us for ms in fsyncs_ms[1:])])
    client.send(Enqueue(message=Message(payload=b"m")))
    while not owner.confirmed:
        assert cluster.clock.step()
    assert cluster.clock.now_us == heard[replicas // 2]


@pytest.mark.parametrize("victims", [("n1",), ("n2",), ("n1", "n2"), ("n4", "n5"), ("n1", "n5")])
def test_messages_survive_the_crash_of_any_minority(victims):
    """100 messages in flight; a minority dies and stays dead: all are confirmed, once, in order."""
    cluster, _, [(client, owner)] = begun(5)
    payloads = [b"%d" % number for number in range(100)]
    for number, payload in enumerate(payloads):
        cluster.clock.call_at(number * 100, client.send, Enqueue(message=Message(payload=payload)))
    for number, victim in enumerate(victims):
        cluster.clock.call_at(4_000 + 3_000 * number, cluster.crash, victim)
    cluster.clock.run_until_rest()
    assert sorted(owner.confirmed, key=int) == payloads
    ready = [message.payload for message in cluster.groups["q"].front().ready_messages()]
    assert ready == payloads


def test_a_leader_without_a_majority_confirms_nothing_and_the_others_go_on():
    """Cut off with its clients' way to the rest intact: the new leader gets what is pending."""
    cluster, _, [(client, owner)] = begun(3)
    cluster.cut("n1", "n2")
    cluster.cut("n1", "n3")
    client.send(Enqueue(message=Message(payload=b"m")))
    cluster.clock.run_until_rest()
    group = cluster.groups["q"]
    assert group.leader in ("n2", "n3")
    assert owner.confirmed == [b"m"]
    cluster.heal("n1", "n2")
    cluster.heal("n1", "n3")
    cluster.clock.run_until_rest()
    logs = {member.replica.log.entries() for member in group.members.values()}
    assert len(logs) == 1


def test_the_seed_decides_who_is_elected_when():
    """The same draws, the same election; others, another time."""

    def elected(seed):
        cluster, recorder, _ = begun(5, draws=SeededDraws(seed))
        cluster.crash("n1")
        cluster.clock.run_until_rest()
        return [(row.t_us, row.vantage) for row in recorder.rows if row.event == "elect"]

    assert elected(1) == elected(1)
    assert len({tuple(elected(seed)) for seed in range(6)}) > 3


def test_an_election_time_out_is_100_ms_and_up_to_five_times_as_much_more():
    """`ra_server_proc.erl`: DEFAULT_BROADCAST_TIME, DEFAULT_ELECTION_MULT."""
    cluster, *_ = begun(draws=SeededDraws(1))
    drawn = [cluster.election_us() for _ in range(2_000)]
    assert 100_000 <= min(drawn) < 101_000
    assert 599_000 < max(drawn) < 600_000


def test_a_crash_is_seen_at_once_and_a_cut_after_a_second():
    """A monitor's message, and the poll of aten; then the same election."""

    def elected_us(act):
        cluster, recorder, _ = begun(draws=SeededDraws(1))
        act(cluster)
        cluster.clock.run_until_rest()
        return next(row.t_us for row in recorder.rows if row.event == "elect")

    def cut_off(cluster):
        for node in ("n2", "n3"):
            cluster.cut("n1", node)

    crashed, cut = elected_us(lambda cluster: cluster.crash("n1")), elected_us(cut_off)
    assert crashed < 602_000
    assert cut - crashed == pytest.approx(1_000_000, abs=1_000)
