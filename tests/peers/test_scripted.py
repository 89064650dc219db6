"""Scripted clients: a receiver with a policy, a sender that respects credit."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from workbench import presets
from workbench.amqp.credit import BatchThenWait, OneAtATime, TopUpAtHalf
from workbench.amqp.errors import LocalProtocolError
from workbench.broker import Broker
from workbench.peers import ScriptedReceiver, ScriptedSender
from workbench.sim import VirtualClock, Wire
from workbench.trace.taps import Recorder


class Net:
    """A broker and wires on one clock."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.tap = Recorder("test", now=lambda: self.clock.now_us)
        self.broker = Broker(self.clock, presets.get("spec"), self.tap)
        self._ids = itertools.count()

    def connect(self, client: Any, name: str = "c1") -> Any:
        end = self.broker.accept(name)
        wire = Wire(
            self.clock,
            client,
            end,
            latency_us=(1000, 1000),
            connection=name,
            tap=self.tap,
            next_frame_id=lambda: next(self._ids),
        )
        end.connect(wire)
        client.connect(wire)
        return client

    def rest(self) -> None:
        self.clock.run_until_rest(100_000)
        assert self.clock.due == 0

    def kinds(self, kind: str, event: str = "sent") -> list[Any]:
        return [row for row in self.tap.rows if row.kind == kind and row.event == event]


def test_a_sender_stops_at_its_credit_and_goes_on_with_the_next() -> None:
    """250 messages over grants of 100: never more sent than granted."""
    net = Net()
    sender = net.connect(ScriptedSender(net.clock))
    sender.publish([b"x"] * 250)
    net.rest()
    assert sender.sent == 250
    assert sender.outcomes == {"accepted": 250}
    assert net.broker.queues["q"].queue.ready == 250
    credits = [r.ledger["link_credit"] for r in net.kinds("transfer") if r.vantage != "broker"]
    assert min(credits) >= 0


def test_the_sender_tells_how_much_it_has() -> None:
    """Its available is its backlog, on every transfer's row."""
    net = Net()
    sender = net.connect(ScriptedSender(net.clock))
    sender.publish([b"x"] * 3)
    net.rest()
    available = [row.ledger["available"] for row in net.kinds("transfer")]
    assert available == [2, 1, 0]


def test_a_sender_may_send_settled() -> None:
    """Nobody confirms then."""
    net = Net()
    sender = net.connect(ScriptedSender(net.clock, settled=True))
    sender.publish([b"x"])
    net.rest()
    assert sender.outcomes == {}
    assert net.broker.queues["q"].queue.ready == 1


@pytest.mark.parametrize(
    ("policy", "grants"),
    [(OneAtATime(), [1] * 9), (BatchThenWait(4), [4] * 3), (TopUpAtHalf(4), [4] * 5)],
)
def test_each_policy_grants_when_it_should(policy: Any, grants: list[int]) -> None:
    """Eight messages: the flows are the policy's and nothing else's."""
    net = Net()
    net.broker.declare("q").fill([b"x"] * 8)
    receiver = net.connect(ScriptedReceiver(net.clock, policy=policy, auto_settle=True))
    net.rest()
    assert receiver.received == 8
    assert receiver.unsettled == 0
    assert [row.frame["link_credit"] for row in net.kinds("flow")] == grants


def test_a_slow_receiver_works_on_one_message_at_a_time() -> None:
    """Dispositions follow one another at the processing time."""
    net = Net()
    net.broker.declare("q").fill([b"x"] * 3)
    receiver = ScriptedReceiver(
        net.clock, policy=TopUpAtHalf(10), processing_us=7000, auto_settle=True
    )
    net.connect(receiver)
    net.rest()
    times = [row.t_us for row in net.kinds("disposition")]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [7000, 7000]


def test_batch_then_wait_waits_until_all_are_done_with() -> None:
    """A batch that has arrived is not yet done with: each flow follows the fourth message."""
    net = Net()
    net.broker.declare("q").fill([b"x"] * 12)
    receiver = ScriptedReceiver(
        net.clock, policy=BatchThenWait(4), processing_us=5000, auto_settle=True
    )
    net.connect(receiver)
    net.rest()
    done, before = 0, []
    for row in net.tap.rows:
        if row.event == "sent" and row.vantage == receiver.vantage:
            done += row.kind == "disposition"
            if row.kind == "flow":
                before.append(done)
    assert before == [0, 4, 8, 12]


def test_acknowledging_uses_one_disposition_per_run_of_ids() -> None:
    """Two of five settled by hand, then the rest: two ranges [2.7.6]."""
    net = Net()
    net.broker.declare("q").fill([b"x"] * 5)
    receiver = net.connect(ScriptedReceiver(net.clock))
    net.rest()
    receiver.grant(5)
    net.rest()
    receiver.link.settle(2)
    assert receiver.acknowledge() == 4
    net.rest()
    ranges = [(row.frame["first"], row.frame.get("last")) for row in net.kinds("disposition")]
    assert ranges == [(2, None), (0, 1), (3, 4)]


def test_granting_before_the_link_is_attached_is_refused() -> None:
    """The text says what to wait for."""
    net = Net()
    receiver = ScriptedReceiver(net.clock)
    with pytest.raises(LocalProtocolError, match="not attached yet; legal now: wait"):
        receiver.grant(1)
    net.connect(receiver)
    net.rest()
    receiver.detach()
    with pytest.raises(LocalProtocolError, match="DETACH_SENT; legal now: wait"):
        receiver.grant(1)


def test_after_close_the_clients_messages_are_back_in_the_queue() -> None:
    """A clean end on both sides."""
    net = Net()
    net.broker.declare("q").fill([b"x"] * 2)
    receiver = net.connect(ScriptedReceiver(net.clock, policy=OneAtATime()))
    net.rest()
    receiver.close()
    net.rest()
    assert receiver.amqp.ended
    assert net.broker.connections["c1"].amqp.ended
    assert net.broker.queues["q"].queue.ready == 2
