"""AMQP 1.0 clients of a quorum queue: confirms, credit and settlements go through the log."""

from __future__ import annotations

import pytest

from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Accepted, Data, Header, Source, encode_message
from workbench.amqp10.performatives import Attach, Detach, Disposition, Role, Transfer
from workbench.frontends import message_of
from workbench.peers.client091 import Client091, Consumer091
from workbench.queues import Enqueue, QueueArguments, QueueError
from workbench.queues.quorum_fifo import Logged
from workbench.scenarios.world import World
from workbench.sim import Actor, VirtualClock

from .rig import RMQ43, SPEC, Rig, data
from .talk import Talk

QUORUM = QueueArguments(queue_type="quorum")
BOTH = pytest.mark.parametrize("preset", [RMQ43, SPEC], ids=lambda p: p.name)


def quorum_rig(preset=RMQ43, replicas: int = 3, arguments=QUORUM, **numbers) -> Rig:
    """A broker with a quorum queue `q`."""
    rig = Rig(preset)
    rig.broker.make_cluster(max(replicas, 1), **numbers)
    rig.broker.declare("q", arguments, replicas=replicas)
    return rig


def performative(item):
    """Of a frame; None for what is none."""
    return getattr(item, "performative", None)


def is_about_links(one) -> bool:
    """Whether a link begins or ends with it."""
    return isinstance(one, Attach | Detach)


def bodies(client) -> list[bytes]:
    """Payloads of the transfers that came."""
    return [
        item.payload
        for item in client.received
        if isinstance(getattr(item, "performative", None), Transfer)
    ]


TALKS = {
    "a consumer gets what was published in order, and what is accepted is gone": """
        queue q type=quorum; receive; grant 5; attach; burst 8 -> got 0 1 2 3 4
        r: settle; grant 10 -> got 0 1 2 3 4 5 6 7 | terminal 5 | unsettled 3""",
    "a released message comes again before the others": """
        queue q type=quorum; ready 3; receive; grant 1; settle released; grant 2 -> got m0 m0 m1""",
    # What there is comes first; then credit 0 and the delivery-count moved on [2.6.7].
    "drain is answered through the log": """
        queue q type=quorum; ready 3; receive; drain 10 -> sent 3 | answers 0/0! | count 10""",
    # Below 80 % publishers are let again.
    "a full queue with reject-publish refuses": """
        queue q type=quorum max_length=5 overflow=reject-publish; attach; send 10
        -> outcomes accepted*6 rejected*4
        receive; grant 3; s: send 1 -> outcomes accepted*6 rejected*4 accepted""",
    # As a suspended Ra process: publishes wait in its mailbox.
    "a stalled leader takes nothing and goes on with everything": """
        queue q type=quorum; attach; stall; burst 3 -> told - | mailbox 3
        resume -> outcomes accepted*3 | mailbox 0""",
}


@BOTH
@pytest.mark.parametrize("script", TALKS.values(), ids=TALKS)
def test_a_quorum_queue_serves_links_as_any_queue(preset, script) -> None:
    """How a conversation is written: `tests.broker.talk`."""
    Talk(preset).play(script)


@BOTH
@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_a_message_is_accepted_when_a_majority_has_it_on_disk(preset, replicas) -> None:
    """The disposition leaves the broker one fsync (and one round trip) after the transfer came."""
    rig = quorum_rig(preset, replicas)
    client, session = rig.raw()
    link = rig.sender(session)
    came = rig.clock.now_us + rig.latency_us
    link.send(data(b"m"))
    rig.rest()
    (outcome,) = client.frames(Disposition)
    assert isinstance(outcome.state, Accepted)
    sent = next(row.t_us for row in rig.recorder.rows if row.kind == "disposition")
    ways = 0 if replicas == 1 else 2 * preset.node_latency_us
    assert sent == came + preset.fsync_us + ways


def test_credit_of_a_consumer_costs_an_fsync() -> None:
    """No transfer before the credit command is committed."""
    rig = quorum_rig()
    rig.fill("q", 1)
    _, session = rig.raw()
    receiver = rig.receiver(session)
    asked = rig.clock.now_us
    receiver.grant(1)
    rig.rest()
    sent = next(row.t_us for row in rig.recorder.rows if row.kind == "transfer")
    assert sent - asked == rig.latency_us + RMQ43.fsync_us + 2 * RMQ43.node_latency_us


def test_without_a_majority_publishers_are_held_and_the_run_rests() -> None:
    """A stall with a name: unconfirmed. With a second node back everything is confirmed."""
    rig = quorum_rig()
    _, session = rig.raw()
    sender = rig.sender(session)
    cluster = rig.broker.cluster
    cluster.crash("n2")
    cluster.crash("n3")
    sent = 0
    while sent < 1000 and sender.can_send:
        sender.send(data(b"m"), settled=True)
        sent += 1
        rig.rest()
    assert sent == 255
    assert "held by unconfirmed" in cluster.stall("q")
    held = [row for row in rig.recorder.rows if row.kind == "unconfirmed"]
    assert held and held[-1].event == "block"
    assert any(row.kind == "no-majority" for row in rig.recorder.rows)
    cluster.restart("n2")
    rig.rest()
    assert cluster.stall("q") is None
    assert rig.queue().ready == 255
    assert sender.credit > 0


def message(body: bytes, ttl_ms: int | None = None) -> bytes:
    """An encoded message, with a time to live or without."""
    return encode_message([Header(ttl=ttl_ms), Data(body)])


def gone(rig: Rig) -> list[tuple[int, str]]:
    """When messages were dropped, in ms, and why."""
    rows = rig.recorder.rows
    return [(row.t_us // 1_000, row.extra["reason"]) for row in rows if row.event == "drop"]


@pytest.mark.parametrize(("ttl_ms", "at_ms"), [(None, 100), (30, 30), (300, 100)])
def test_a_message_that_waited_too_long_leaves_every_replica(ttl_ms, at_ms) -> None:
    """The leader's timer puts a command into the log: so it is the same moment for all copies."""
    arguments = QueueArguments(queue_type="quorum", message_ttl_ms=100)
    rig = quorum_rig(arguments=arguments)
    rig.broker.queues["q"].publish(message_of(message(b"a", ttl_ms)))
    rig.rest()  # nobody waits for a timer of this kind: the run rests
    assert rig.queue().ready == 1
    while rig.clock.now_us < 400_000 and rig.clock.step():
        pass
    ((when_ms, why),) = gone(rig)
    assert why == "expired"
    assert at_ms <= when_ms <= at_ms + 2 * (RMQ43.fsync_us + 2 * RMQ43.node_latency_us) // 1_000
    copies = rig.broker.cluster.groups["q"].members.values()
    assert {(copy.machine.ready, copy.machine.terminal) for copy in copies} == {(0, 1)}


def test_a_new_leader_sees_to_the_age_of_messages() -> None:
    """The old one dies before the time is up; the next one drops what is too old."""
    arguments = QueueArguments(queue_type="quorum", message_ttl_ms=100)
    rig = quorum_rig(arguments=arguments)
    rig.broker.queues["q"].publish(message_of(message(b"a")))
    rig.rest()
    rig.broker.cluster.crash("n1")
    while rig.clock.now_us < 3_000_000 and rig.clock.step():
        pass
    assert [why for _, why in gone(rig)] == ["expired"]
    assert rig.queue().ready == 0


def test_an_expired_message_goes_to_the_dead_letter_exchange() -> None:
    """As from a classic queue, and there it does not expire again."""
    arguments = QueueArguments(
        queue_type="quorum",
        message_ttl_ms=50,
        dead_letter_exchange="",
        dead_letter_routing_key="dead",
    )
    rig = quorum_rig(arguments=arguments)
    rig.broker.declare("dead")
    rig.broker.queues["q"].publish(message_of(message(b"a", 40)))
    while rig.clock.now_us < 1_000_000 and rig.clock.step():
        pass
    assert (rig.queue().ready, rig.queue("dead").ready) == (0, 1)


@pytest.mark.parametrize("declared_again", [False, True])
def test_a_queue_that_nobody_consumes_from_is_deleted_when_its_time_is_over(declared_again) -> None:
    """x-expires: a consumer holds it, and no declaration puts it off [`rabbit_fifo.erl`]."""
    arguments = QueueArguments(queue_type="quorum", expires_ms=100)
    rig = quorum_rig(arguments=arguments)
    _, session = rig.raw()
    receiver = rig.receiver(session)

    def until(t_us: int) -> bool:
        while rig.clock.next_us is not None and rig.clock.next_us <= t_us:
            rig.clock.step()
        return "q" in rig.broker.queues

    assert until(500_000)  # as long as it has a consumer
    receiver.detach()
    rig.rest()
    unused_us = rig.clock.now_us
    if declared_again:
        rig.clock.call_at(unused_us + 50_000, rig.broker.declare, "q", arguments)
    assert until(unused_us + 90_000)
    assert not until(unused_us + 110_000)
    assert rig.broker.cluster.groups == {}


@pytest.mark.parametrize(
    ("replicas", "why"),
    [(0, "at least one"), (2, "a majority of 2 is 2"), (4, "than 3 do"), (9, "every replica")],
)
def test_a_number_of_replicas_that_makes_no_sense_is_refused(replicas, why) -> None:
    """The text says why, and what is legal."""
    rig = Rig(RMQ43)
    with pytest.raises(QueueError, match=f"{why}.*legal: 1, 3, 5, 7"):
        rig.broker.declare("q", QUORUM, replicas=replicas)


@BOTH
def test_a_queue_deleted_during_an_fsync_is_gone_and_its_neighbour_goes_on(preset) -> None:
    """Entries of a deleted queue that are on their way to the disk harm nobody."""
    rig = quorum_rig(preset)
    rig.broker.declare("other", QUORUM)
    rig.fill("q", 3)
    rig.rest()
    _, session = rig.raw()
    for link in (rig.sender(session, "q", "s"), rig.sender(session, "other", "t")):
        for _ in range(3):
            link.send(b"\0Su\xa0\x01x")
    while not rig.broker.cluster.nodes["n1"].wal.syncing:
        rig.clock.step()
    rig.broker.delete("q")
    rig.rest()
    assert "q" not in rig.broker.queues
    assert rig.queue("other").ready == 3


def test_a_detach_is_answered_when_the_queue_has_back_what_the_link_held() -> None:
    """The command is in the log of a majority by then, and applied: an fsync and a round trip."""
    rig = quorum_rig()
    rig.fill("q", 5)
    client, session = rig.raw()
    link = rig.receiver(session)
    link.grant(3)
    rig.rest()
    machine = rig.queue()
    assert (machine.ready, machine.unsettled) == (2, 3)
    came = rig.clock.now_us + rig.latency_us
    link.detach()
    back = None
    while not client.frames(Detach):
        rig.clock.step()
        if back is None and (rig.queue().ready, rig.queue().unsettled) == (5, 0):
            back = rig.clock.now_us
    sent = rig.clock.now_us - rig.latency_us
    assert back is not None
    assert sent >= back >= came + RMQ43.fsync_us + RMQ43.node_latency_us


@pytest.mark.parametrize("name", ["r", "other"])
def test_what_follows_a_detach_is_answered_behind_it(name) -> None:
    """A client that does not wait: the same link again, or another one with its handle."""
    rig = quorum_rig()
    rig.fill("q", 3)
    client, session = rig.raw()
    link = rig.receiver(session, name="r")
    link.grant(2)
    rig.rest()
    assert client.wire is not None
    client.amqp.apply = lambda item: []  # it sends what its endpoint would not
    channel, handle = session.channel, link.handle
    again = Attach(name=name, handle=handle, role=Role.RECEIVER, source=Source(address="q"))
    for frame in (Detach(handle=handle, closed=True), again):
        client.wire.send(client, Frame(channel, frame))
    rig.rest()
    kinds = [one.NAME for one in map(performative, client.received) if is_about_links(one)]
    assert kinds == ["attach", "detach", "attach"]
    assert (rig.queue().ready, len(rig.queue().consumers())) == (3, 1)


def test_a_detach_is_answered_before_another_link_gets_what_it_held() -> None:
    """On the same connection; and a queue that is deleted meanwhile answers too."""
    rig = quorum_rig()
    rig.fill("q", 2)
    client, session = rig.raw()
    first, second = rig.receiver(session, name="a"), rig.receiver(session, name="b")
    first.grant(2)
    rig.rest()
    second.grant(5)
    rig.rest()
    first.detach()
    rig.rest()
    frames = map(performative, client.received)
    tail = [one.NAME for one in frames if isinstance(one, Detach | Transfer)][2:]
    assert tail == ["detach", "transfer", "transfer"]
    second.detach()
    rig.clock.step()
    rig.broker.delete("q")
    rig.rest()
    assert len(client.frames(Detach)) == 2


def test_the_soft_limit_blocks_a_channel_that_has_passed_it_and_no_session() -> None:
    """The 33rd pending command blocks; with fewer than 32 it unblocks; 1.0 goes on meanwhile."""
    rig = quorum_rig()
    queue = rig.broker.queues["q"]
    channel, other = (
        Actor(rig.clock, name, service_us=0, handle=print, flow=rig.broker.credit_flow())
        for name in ("channel:c8/1", "channel:c9/1")
    )
    _, session = rig.raw()
    link = rig.sender(session)
    queue.stall()
    for _ in range(40):
        link.send(data(b"m"))
    rig.rest()
    queue.publish(message_of(data(b"m")), via=other)
    for _ in range(32):
        queue.publish(message_of(data(b"m")), via=channel)
    assert not channel.blocked
    queue.publish(message_of(data(b"m")), via=channel)
    assert (channel.blocked, other.blocked, queue.mailbox) == (True, False, 74)
    queue.resume()
    rig.rest()
    assert (channel.blocked, queue.mailbox, queue.queue.ready) == (False, 0, 74)


def test_no_two_queues_write_under_one_name_whatever_they_are_called():
    """A queue that was declared again has another name in the log, which a queue may have, too."""
    rig = quorum_rig()
    names = ["q", "q#1", "q", "q#1", "q#2", "q"]
    writers = [rig.broker.cluster.groups["q"].writer]
    for name in names:
        if name in rig.broker.queues:
            rig.broker.delete(name)
        rig.broker.declare(name, QUORUM)
        writers.append(rig.broker.cluster.groups[name].writer)
    assert len(set(writers)) == len(writers)


def test_what_a_log_holds_stays_when_a_channel_goes_and_counts_what_was_put_in():
    """A log is kept whole: who sent a command is none of its concern."""
    rig = quorum_rig()
    queue = rig.broker.queues["q"]
    channel = Actor[None](rig.clock, "channel:c1/1", service_us=0, handle=print)
    for _ in range(5):
        queue.publish(message_of(b"m"), via=channel)
    rig.rest()
    held = queue.held_octets
    queue.left(channel)
    assert queue.held_octets == held
    queue.fill([message_of(b"m")] * 5)
    assert queue.held_octets == 2 * held


@pytest.mark.parametrize("behind", [0, 127])
def test_a_delivery_that_a_cut_had_kept_goes_back_if_its_consumer_was_cancelled(behind):
    """However many commands are sent again with the cancel: 128 go at once."""
    world = World(preset=RMQ43, parameters={"latency_us": 1000}, tap=None, clock=VirtualClock())
    cluster = world.broker.make_cluster(3, client_latency_us=500)
    queue = world.broker.declare("q", QUORUM, replicas=3)
    consumer = Consumer091("k", "q", prefetch=3, processing_us=None)
    world.connect(Client091(world.clock, [consumer]), "c1", peer="c1")
    world.clock.run_until_rest(10**6)
    cluster.cut("n1", "front")
    for number in range(2):
        command = Enqueue(message=message_of(b"m%d" % number))
        cluster.groups["q"]._propose(Logged("other", 0, 0, command))
    world.clock.run_until_rest(10**6)
    for _ in range(behind):
        queue.publish(message_of(b"p"), via=next(iter(queue._channels)))
    consumer.cancel()
    world.clock.run_until_rest(10**6)
    cluster.heal("n1", "front")
    world.clock.run_until_rest(10**6)
    held = queue.queue.unsettled
    assert held == consumer.received
    assert queue.queue.ready == behind + 2 - held
