"""Mirrors of a classic queue: credit at each of them, a node that is cut off, synchronisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workbench import presets
from workbench.broker import CONFIRMED, Broker
from workbench.queues import Message, QueueArguments, QueueError
from workbench.sim import Actor, VirtualClock
from workbench.trace.taps import Recorder

RMQ355 = presets.get("rmq3.5.5")
NODES = ("n2", "n3")
S = 1_000_000


class Rig:
    """A queue with mirrors, and a channel's process that publishes to it."""

    def __init__(self, nodes: tuple[str, ...] = NODES, fill: int = 0, **numbers: Any) -> None:
        self.clock = VirtualClock()
        self.recorder = Recorder("test", now=lambda: self.clock.now_us)
        self.broker = Broker(self.clock, replace(RMQ355, **numbers), self.recorder)
        self.channel = Actor[None](
            self.clock, "channel:c1/1", service_us=0, handle=print, flow=self.broker.credit_flow()
        )
        self.queue: Any = self.broker.declare("q")
        self.queue.fill([Message(payload=b"m")] * fill)
        self.mirrors = self.broker.mirror("q", nodes)
        self.confirmed_us: list[int] = []

    def publish(self, count: int = 1) -> None:
        for _ in range(count):
            message = Message(payload=b"m", durable=False)
            self.queue.publish(message, self.answered, via=self.channel)

    def answered(self, queue: Any, outcome: Any) -> None:
        assert (queue, outcome) == (self.queue, CONFIRMED)
        self.confirmed_us.append(self.clock.now_us)

    def rest(self) -> None:
        self.clock.run_until_rest()

    @property
    def credit(self) -> dict[str, int]:
        return self.channel.flow.credit_from if self.channel.flow else {}

    @property
    def taken(self) -> list[int]:
        return [mirror.taken for mirror in self.mirrors.all.values()]


def test_e24_a_message_spends_credit_at_each_mirror() -> None:
    """One with the queue, and two at each mirror: one for each way that the message comes."""
    rig = Rig()
    rig.publish()
    assert rig.credit == {"queue:q": 199, "mirror:q@n2": 198, "mirror:q@n3": 198}
    rig.publish(24)
    rig.rest()
    # 25 messages come by two ways: 50 are acknowledged, which grants 50.
    assert rig.credit == {"queue:q": 175, "mirror:q@n2": 200, "mirror:q@n3": 200}
    assert rig.taken == [25, 25]


@pytest.mark.parametrize("node", NODES)
def test_e24_one_stalled_mirror_blocks_the_channel(node) -> None:
    """After 100 messages, when 200 credits are spent; the queue and the other mirror go on."""
    rig = Rig()
    rig.mirrors.on(node).stall()
    rig.publish(99)
    rig.rest()
    assert not rig.channel.blocked
    rig.publish(101)
    rig.rest()
    assert rig.channel.flow is not None
    assert rig.channel.flow.blocked_by == (f"mirror:q@{node}",)
    assert (rig.queue.queue.ready, sorted(rig.taken)) == (200, [0, 200])
    rig.mirrors.on(node).resume()
    rig.rest()
    assert (rig.channel.blocked, rig.taken) == (False, [200, 200])


def test_a_master_that_hangs_keeps_half_of_its_mirrors_credit() -> None:
    """What comes straight is acknowledged; what it would tell them is not."""
    rig = Rig()
    rig.queue.stall()
    rig.publish(60)
    rig.rest()
    assert rig.credit == {"queue:q": 140, "mirror:q@n2": 130, "mirror:q@n3": 130}


def test_confirms_wait_for_the_slowest_mirror() -> None:
    """Two hops of 200 us, and 50 us for each message in each process."""
    rig = Rig(queue_enqueue_us=50, node_latency_us=200)
    rig.publish()
    rig.rest()
    assert rig.confirmed_us == [50 + 200 + 50]
    rig.mirrors.on("n3").stall()
    rig.publish()
    rig.rest()
    assert len(rig.confirmed_us) == 1
    rig.mirrors.on("n3").resume()
    rig.rest()
    assert len(rig.confirmed_us) == 2


@pytest.mark.parametrize("seen_us", [0, 5 * S, 60 * S])
def test_e25_a_mirror_that_is_cut_off_blocks_until_its_death_is_seen(seen_us) -> None:
    """peer_down: its counters are dropped, what was deferred is granted, confirms go out."""
    rig = Rig()
    reader = Actor[str](
        rig.clock, "reader:c1", service_us=0, handle=print, flow=rig.broker.credit_flow()
    )
    rig.publish(150 if seen_us else 50)
    rig.rest()
    rig.mirrors.cut_off("n3", seen_us)
    start = rig.clock.now_us
    for _ in range(150):
        rig.publish()
    for _ in range(50):
        reader.send(rig.channel, "publish")  # handled: 50 to be granted, and deferred
    blocked = []
    rig.clock.call_at(start + seen_us - (1 if seen_us else 0), lambda: blocked.append(state(rig)))
    rig.rest()
    if seen_us:
        assert blocked == [(("mirror:q@n3",), 1)]
    assert state(rig) == ((), 0)
    assert rig.credit.keys() == {"queue:q", "mirror:q@n2"}
    assert reader.flow is not None
    assert reader.flow.credit_from == {"channel:c1/1": 200}
    assert (list(rig.mirrors.all), rig.clock.now_us >= start + seen_us) == (["n2"], True)
    assert len(rig.confirmed_us) == rig.queue.queue.ready


def state(rig: Rig) -> tuple[tuple[str, ...], int]:
    """Who blocks the channel, and how many grants it keeps back."""
    assert rig.channel.flow is not None
    return rig.channel.flow.blocked_by, len(rig.channel.flow.kept)


def test_a_cut_that_is_mended_before_it_is_seen_loses_nothing() -> None:
    """What was sent has waited."""
    rig = Rig()
    rig.mirrors.cut_off("n3", 60 * S)
    rig.publish(150)
    rig.clock.call_at(S, rig.mirrors.mend, "n3")
    rig.rest()
    assert (rig.taken, len(rig.confirmed_us)) == ([150, 150], 150)
    assert rig.clock.now_us < 60 * S


def test_e26_synchronisation_waits_for_credit_of_its_own() -> None:
    """200 messages go at once, then 50 for each grant; the channel's credit is untouched."""
    rig = Rig(fill=1_000)
    assert [mirror.synchronised for mirror in rig.mirrors.all.values()] == [False, False]
    rig.mirrors.on("n3").stall()
    rig.mirrors.synchronise()
    rig.rest()
    # One that hangs holds the other up, and the queue.
    assert rig.taken == [200, 0]
    assert rig.mirrors.synchronising
    rig.publish(10)
    rig.rest()
    assert rig.queue.queue.ready == 1_000
    rig.mirrors.on("n3").resume()
    rig.rest()
    assert (rig.taken, rig.queue.queue.ready) == ([1_010, 1_010], 1_010)
    assert [mirror.synchronised for mirror in rig.mirrors.all.values()] == [True, True]
    left = [
        row.ledger["hop_credit"]
        for row in rig.recorder.rows
        if row.vantage == "syncer:q" and row.kind == "credit-spent" and row.ledger
    ]
    assert (left[:2], min(left)) == ([0, 0], 0)


def test_e26_a_mirror_that_dies_lets_the_synchronisation_of_the_others_go_on() -> None:
    """peer_down, again."""
    rig = Rig(fill=1_000)
    rig.mirrors.synchronise()
    rig.mirrors.cut_off("n3", 5 * S)
    rig.rest()
    assert (rig.taken, rig.mirrors.synchronising) == ([1_000], False)


def test_mirroring_flow_control_switched_off_counts_no_credit_at_all() -> None:
    """Neither with mirrors nor with the queue: rabbit_channel.erl hands every message on."""
    rig = Rig(mirrors_spend_credit=False)
    rig.mirrors.on("n3").stall()
    rig.publish(1_000)
    rig.rest()
    assert (rig.credit, rig.channel.blocked, rig.taken) == ({}, False, [1_000, 0])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda rig: rig.broker.mirror("q", ["n1"]), "queue q is on n1 itself, and cannot be its"),
        (lambda rig: rig.broker.mirror("q", ["n2"]), "queue q has a mirror on n2 already"),
        (lambda rig: rig.broker.mirror("q", ["n4", "n4"]), "queue q has a mirror on n4 already"),
        (lambda rig: rig.mirrors.on("n9"), "queue q has no mirror on 'n9'; there are: n2, n3"),
        (lambda rig: rig.mirrors.cut_off("n2", -1), "a death seen after -1 us; legal: 0 or more"),
        (lambda rig: rig.mirrors.mend("n2"), "n2 is not cut off"),
        (lambda rig: rig.mirrors.synchronise(), "queue q has no mirror that lacks messages"),
        (lambda rig: stalled(rig), "queue s is stalled; legal: to resume it first"),
        (lambda rig: quorum(rig), "queue r is not a classic queue"),
        (
            lambda rig: Broker(rig.clock, presets.get("rmq4.3")).mirror("q", ["n2"]),
            "RabbitMQ 4.3 has no mirrored queues; legal: a preset of RabbitMQ 3.x",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(wrong, said) -> None:
    """And nothing changes."""
    rig = Rig()
    with pytest.raises(QueueError, match=f"^{said}") as told:
        wrong(rig)
    assert "\n" not in str(told.value)
    assert list(rig.mirrors.all) == list(NODES)


def stalled(rig: Rig) -> None:
    queue: Any = rig.broker.declare("s")
    queue.fill([Message(payload=b"m")])
    queue.stall()
    rig.broker.mirror("s", ["n2"]).synchronise()


def quorum(rig: Rig) -> None:
    rig.broker.declare("r", QueueArguments(queue_type="quorum"), replicas=1)
    rig.broker.mirror("r", ["n2"])


def test_a_mirror_that_had_some_messages_has_as_many_as_the_queue_when_it_is_synchronised() -> None:
    """It drops what it has, and gets all (`rabbit_mirror_queue_sync.erl`, `slave`)."""
    rig = Rig(fill=100)
    rig.publish(50)
    rig.rest()
    assert rig.taken == [50, 50]
    rig.mirrors.synchronise()
    rig.rest()
    assert rig.taken == [150, 150]


def test_a_mirror_that_joins_before_a_message_is_taken_in_gets_it_from_the_master() -> None:
    """It has what came since it joined: what waited in the queue's mailbox comes after that."""
    rig = Rig(nodes=("n2",))
    rig.publish(5)
    rig.broker.mirror("q", ["n3"])
    rig.publish(2)
    rig.rest()
    assert [mirror.synchronised for mirror in rig.mirrors.all.values()] == [True, True]
    assert rig.taken == [7, 7]
    assert rig.credit["mirror:q@n3"] == 200 - 2 * 2
    assert len(rig.confirmed_us) == 7


@pytest.mark.parametrize("wake", ["delete", "resume"])
def test_nothing_wakes_a_queue_that_copies_its_messages(wake) -> None:
    """Neither a hand nor, when it is deleted, the end of what is copied."""
    rig = Rig(fill=1_000)
    rig.mirrors.on("n3").stall()
    rig.mirrors.synchronise()
    rig.rest()
    if wake == "delete":
        rig.broker.delete("q")
    else:
        rig.queue.resume()
    rig.rest()
    assert rig.queue.stalled
    assert "resumed" not in [row.kind for row in rig.recorder.rows]
    assert rig.mirrors.synchronising == (wake == "resume")
