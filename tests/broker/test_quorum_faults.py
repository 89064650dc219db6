"""What becomes of links, dead letters and purges of a quorum queue when leaders and ways fail."""

from __future__ import annotations

import pytest

from workbench.amqp10.messaging import Accepted, Data, Rejected, encode_message
from workbench.amqp10.performatives import Flow, SenderSettleMode, Transfer
from workbench.amqp10.values import Int, Symbol
from workbench.broker.quorum_cluster import FRONT
from workbench.frontends import message_of
from workbench.queues import QueueArguments

from .rig import RMQ43, Rig

SECOND_US = 1_000_000
PRIORITY = Symbol("rabbitmq:priority")


def quorum_rig(replicas: int = 3, **arguments) -> Rig:
    """A broker of 4.3 with a quorum queue `q` and a classic one, `dead`."""
    rig = Rig(RMQ43)
    rig.broker.make_cluster(replicas)
    rig.broker.declare("q", QueueArguments(queue_type="quorum", **arguments), replicas=replicas)
    rig.broker.declare("dead")
    return rig


def publish(rig: Rig, *bodies: bytes) -> list[str]:
    """Publish at the queue's door and rest; returns what became of each."""
    told: list[str] = []
    for body in bodies:
        rig.broker.queues["q"].publish(
            message_of(encode_message([Data(body)])),
            lambda _queue, outcome: told.append(getattr(outcome, "reason", "confirmed")),
        )
    rig.rest()
    return told


def restart_all(rig: Rig) -> None:
    """Every node loses its power at once, and has it again."""
    cluster = rig.broker.cluster
    for node in cluster.nodes:
        cluster.crash(node)
    for node in cluster.nodes:
        cluster.restart(node)
    rig.rest()


def change_leader(rig: Rig) -> None:
    """The leader dies, the others choose another one, and it comes back."""
    cluster = rig.broker.cluster
    leader = cluster.groups["q"].leader
    cluster.crash(leader)
    rig.rest()
    cluster.restart(leader)
    rig.rest()


def cut_off(rig: Rig, lasting_us: int = 3 * SECOND_US, then=lambda: None) -> None:
    """The clients' side and the leader lose their way to each other, and find it again."""
    cluster = rig.broker.cluster
    leader = cluster.groups["q"].leader
    cluster.cut(FRONT, leader)
    then()
    until = rig.clock.now_us + lasting_us
    rig.clock.call_at(until, lambda: None)  # so that time goes on though nothing is due
    while rig.clock.now_us < until:
        rig.clock.step()
    cluster.heal(FRONT, leader)
    rig.rest()


FAULTS = {
    "restart of one": (1, restart_all),
    "restart of all": (3, restart_all),
    "change of leader": (3, change_leader),
    "cut and heal": (3, cut_off),
}
each_fault = pytest.mark.parametrize(("replicas", "fault"), FAULTS.values(), ids=FAULTS)


def count(client, kind) -> int:
    """How many performatives of one kind came."""
    return len(client.frames(kind))


@each_fault
def test_a_consumer_with_credit_is_served_after_a_fault(replicas, fault) -> None:
    """What earlier leaders wrote into the log is no answer to this consumer's credit now."""
    rig = quorum_rig(replicas)
    client, session = rig.raw()
    rig.receiver(session).grant(1000)
    rig.rest()
    publish(rig, *[b"m"] * 100)
    fault(rig)
    publish(rig, *[b"m"] * 900)
    assert (count(client, Transfer), rig.queue().ready) == (1000, 0)


@each_fault
@pytest.mark.parametrize("mode", [SenderSettleMode.UNSETTLED, SenderSettleMode.SETTLED])
def test_no_delivery_is_lost_or_doubled_by_a_fault(replicas, fault, mode) -> None:
    """Deliveries and the answer to credit are on their way to the link when it happens."""
    rig = quorum_rig(replicas)
    rig.fill("q", 400)
    client, session = rig.raw()
    receiver = rig.receiver(session, snd_settle_mode=mode)
    receiver.grant(300)
    for _ in range(3):  # at different moments of a batch
        for _ in range(25):
            rig.clock.step()
        fault(rig)
    bodies = [item.payload for item in client.received if _is_transfer(item)]
    assert [int(body[body.rindex(b"m") + 1 :]) for body in bodies] == list(range(300))
    assert (rig.queue().ready, receiver.credit) == (100, 0)
    assert rig.queue().unsettled == (300 if mode is SenderSettleMode.UNSETTLED else 0)


def _is_transfer(item) -> bool:
    return isinstance(getattr(item, "performative", None), Transfer)


@each_fault
@pytest.mark.parametrize("moment", range(0, 60, 3))
def test_a_drain_under_way_is_answered_once_with_all_deliveries_before(
    replicas, fault, moment
) -> None:
    """Whenever the fault comes, some of the messages having come to the queue just before."""
    rig = quorum_rig(replicas)
    rig.fill("q", 2)
    client, session = rig.raw()
    receiver = rig.receiver(session)
    receiver.grant(1)
    rig.rest()
    rig.broker.queues["q"].publish(message_of(encode_message([Data(b"m")])))
    receiver.grant(10, drain=True)
    for _ in range(moment):
        rig.clock.step()
    fault(rig)
    came = [item.performative for item in client.received if hasattr(item, "performative")]
    kinds = [type(one) for one in came if isinstance(one, Transfer) or _drained(one)]
    assert kinds == [Transfer] * 3 + [Flow]
    assert receiver.credit == 0


def _drained(performative) -> bool:
    return isinstance(performative, Flow) and performative.drain


@each_fault
def test_a_dead_letter_is_published_once_whatever_befalls_the_leader(replicas, fault) -> None:
    """Three are rejected, then the nodes fail twice: three dead letters, not six."""
    rig = quorum_rig(replicas, dead_letter_exchange="", dead_letter_routing_key="dead")
    publish(rig, b"a", b"b", b"c")
    _, session = rig.raw()
    receiver = rig.receiver(session)
    receiver.grant(3)
    rig.rest()
    for delivery in tuple(receiver.unsettled.values()):
        receiver.settle(delivery.delivery_id, state=Rejected())
    rig.rest()
    assert rig.queue("dead").ready == 3
    fault(rig)
    fault(rig)
    assert rig.queue("dead").ready == 3


def test_a_purge_takes_effect_once_when_it_is_sent_again() -> None:
    """What was published and confirmed after it stays, though its answer was lost on the way."""
    rig = quorum_rig()
    publish(rig, *[b"before"] * 5)

    def purge_and_publish() -> None:
        queue = rig.broker.queues["q"]
        queue.purge(lambda count: None)
        for _ in range(5):
            queue.publish(message_of(encode_message([Data(b"after")])), lambda *_: told.append(1))

    told: list[int] = []
    # The commands reach the leader; its answers, and then the way, are lost.
    purge_and_publish()
    for _ in range(2):
        rig.clock.step()
    cut_off(rig)
    assert (len(told), rig.queue().ready) == (5, 5)


def test_a_purge_before_a_restart_is_not_done_again_after_it() -> None:
    """Sent again to the next leader, it finds that it was obeyed."""
    rig = quorum_rig()
    publish(rig, *[b"before"] * 5)
    queue = rig.broker.queues["q"]
    queue.purge(lambda count: None)
    told: list[int] = []
    for _ in range(5):
        queue.publish(message_of(encode_message([Data(b"after")])), lambda *_: told.append(1))
    while rig.queue().terminal == 0:
        rig.clock.step()
    rig.broker.cluster.crash(rig.broker.cluster.groups["q"].leader)
    rig.rest()
    assert (len(told), rig.queue().ready) == (5, 5)


@each_fault
def test_publishers_learn_that_a_queue_is_no_longer_full_though_the_word_was_lost(
    replicas, fault
) -> None:
    """A leader tells how things stand, to whoever may have missed it."""
    rig = quorum_rig(replicas, max_length=5, overflow="reject-publish")
    told = [outcome for _ in range(7) for outcome in publish(rig, b"m")]
    assert told == ["confirmed"] * 6 + ["maxlen"]
    queue = rig.broker.queues["q"]
    queue.purge(lambda count: None)
    while rig.queue().terminal == 0:
        rig.clock.step()
    fault(rig)
    assert publish(rig, b"m") == ["confirmed"]


def depose(rig: Rig) -> str:
    """The leader is cut off, the others choose another one; returns who does not know of it."""
    cluster = rig.broker.cluster
    leader = cluster.groups["q"].leader
    cluster.isolate(leader)
    rig.rest()
    assert cluster.groups["q"].leader != leader
    return leader


def test_publishers_do_not_heed_a_leader_that_does_not_know_of_its_successor() -> None:
    """Its way to the clients is mended, and it takes the queue for full, which it is no more."""
    rig = quorum_rig(max_length=5, overflow="reject-publish")
    publish(rig, *[b"m"] * 6)
    deposed = depose(rig)
    rig.broker.queues["q"].purge(lambda count: None)
    rig.rest()
    rig.broker.cluster.heal(FRONT, deposed)
    rig.rest()
    assert publish(rig, b"m") == ["confirmed"]


def test_consumers_do_not_heed_a_leader_that_does_not_know_of_its_successor() -> None:
    """The first one has made way for one of a higher priority, and is not told to be active."""
    rig = quorum_rig(single_active_consumer=True)
    client, session = rig.raw()
    rig.receiver(session, name="first").grant(5)
    rig.rest()
    deposed = depose(rig)
    rig.receiver(session, name="second", properties={PRIORITY: Int(9)}).grant(5)
    rig.rest()
    rig.broker.cluster.heal(FRONT, deposed)
    rig.rest()
    told = [(flow.handle, flow.properties) for flow in client.frames(Flow) if flow.properties]
    assert [active["rabbitmq:active"] for handle, active in told if handle == 0] == [True, False]


def test_a_replica_that_comes_back_is_no_reason_to_tell_clients_how_a_queue_stands() -> None:
    """The consumer became active once; the leader's way to it was never lost."""
    rig = quorum_rig(single_active_consumer=True)
    _, session = rig.raw()
    rig.receiver(session).grant(1)
    rig.rest()
    cluster = rig.broker.cluster
    follower = next(node for node in cluster.nodes if node != cluster.groups["q"].leader)
    cluster.crash(follower)
    cluster.restart(follower)
    rig.rest()
    assert sum(row.event == "activate" for row in rig.recorder.rows) == 1


@each_fault
def test_a_consumer_learns_that_it_is_active_though_the_word_was_lost(replicas, fault) -> None:
    """The one before it detaches, and the leader fails before it can tell."""
    rig = quorum_rig(replicas, single_active_consumer=True)
    client, session = rig.raw()
    first, second = (rig.receiver(session, name=name) for name in ("first", "second"))
    for link in (first, second):
        link.grant(5)
        rig.rest()
    first.close()
    while rig.queue().active.count("first"):
        rig.clock.step()
    fault(rig)
    told = [flow.properties for flow in client.frames(Flow) if flow.properties]
    assert [properties["rabbitmq:active"] for properties in told] == [True, False, True]


def test_accepted_messages_stay_settled_when_the_link_goes_while_the_queue_is_slow() -> None:
    """Settlements that wait for a slow queue go before the detach that comes after them."""
    rig = quorum_rig()
    publish(rig, b"a", b"b")
    _, session = rig.raw()
    receiver = rig.receiver(session)
    receiver.grant(2)
    rig.rest()
    queue = rig.broker.queues["q"]
    for _ in range(40):  # above the soft limit
        queue.publish(message_of(encode_message([Data(b"more")])))
    for delivery in tuple(receiver.unsettled.values()):
        receiver.settle(delivery.delivery_id, state=Accepted())
    receiver.close()
    rig.rest()
    assert (rig.queue().ready, rig.queue().unsettled) == (40, 0)


@each_fault
def test_a_consumer_learns_that_it_has_made_way_though_the_word_was_lost(replicas, fault) -> None:
    """One of a higher priority attaches, and the leader fails before it can tell the first."""
    rig = quorum_rig(replicas, single_active_consumer=True)
    client, session = rig.raw()
    rig.receiver(session, name="first").grant(5)
    rig.rest()
    session.attach_receiver("second", "q", properties={PRIORITY: Int(9)})
    while rig.queue().active.count("first"):
        rig.clock.step()
    fault(rig)
    told = [(flow.handle, flow.properties) for flow in client.frames(Flow) if flow.properties]
    assert [active["rabbitmq:active"] for handle, active in told if handle == 0] == [True, False]
