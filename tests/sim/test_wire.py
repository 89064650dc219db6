"""The wire: latency, gates, and the order that TCP keeps."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.sim import Direction, Flight, VirtualClock, Wire, WireError


class Recorded:
    """An end that writes down what arrives and when, and reacts only if told to."""

    ledger_source = "own"

    def __init__(self, clock: VirtualClock, from_peer: str) -> None:
        self.clock = clock
        self.from_peer = from_peer
        self.vantage = from_peer
        self.arrived: list[tuple[int, Any]] = []
        self.reacted: list[tuple[int, Any]] = []

    def apply(self, item: Any) -> list[Any]:
        self.arrived.append((self.clock.now_us, item))
        return [item]

    def react(self, events: list[Any]) -> None:
        self.reacted.append((self.clock.now_us, events[0]))

    def scope(self, item: Any, outgoing: bool) -> None:
        return None


class Net:
    """Two recorded ends and the wire between them."""

    def __init__(self, latency_us: tuple[int, int] = (1000, 2000)) -> None:
        self.clock = VirtualClock()
        self.client = Recorded(self.clock, "client")
        self.broker = Recorded(self.clock, "broker")
        self.wire = Wire(self.clock, self.client, self.broker, latency_us=latency_us)

    def send(self, *items: Any) -> list[Flight]:
        return [self.wire.send(self.client, item) for item in items]

    @property
    def arrived(self) -> list[Any]:
        return [item for _, item in self.broker.arrived]


def test_each_direction_has_its_own_latency() -> None:
    """Client to broker 1000 us, broker to client 2000 us."""
    net = Net()
    net.wire.send(net.client, "up")
    net.wire.send(net.broker, "down")
    net.clock.run_until_rest()
    assert net.broker.arrived == [(1000, "up")]
    assert net.client.arrived == [(2000, "down")]


def test_a_frame_never_overtakes_an_earlier_one_when_latency_falls() -> None:
    """A frame sent later over a shorter latency arrives behind the earlier one (TCP)."""
    net = Net()
    net.send("slow")
    net.wire.set_latency("c2b", 10)
    (fast,) = net.send("fast")
    assert fast.arrives_us == 1000
    net.clock.run_until_rest()
    assert net.broker.arrived == [(1000, "slow"), (1000, "fast")]


def test_latency_changes_only_frames_sent_afterwards() -> None:
    """A frame in flight keeps the arrival it was sent with."""
    net = Net()
    net.send("before")
    net.wire.set_latency(Direction.CLIENT_TO_BROKER, 5000)
    net.send("after")
    net.clock.run_until_rest()
    assert net.broker.arrived == [(1000, "before"), (5000, "after")]


def test_reacting_is_an_event_of_its_own_before_the_next_frame_arrives() -> None:
    """Between applying a frame and answering it a tap can record the counters."""
    net = Net()
    net.send("a", "b")
    net.clock.step()
    assert net.arrived == ["a"]
    assert net.broker.reacted == []
    net.clock.step()
    assert net.broker.reacted == [(1000, "a")]
    assert net.arrived == ["a"]
    net.clock.step()
    assert net.arrived == ["a", "b"]


def test_a_held_frame_holds_those_behind_it_but_not_the_clock() -> None:
    """The other direction and other events go on; the run rests with the frame in flight."""
    net = Net()
    first, second = net.send("a", "b")
    net.wire.hold(first.frame_id)
    net.wire.send(net.broker, "down")
    net.clock.run_until_rest()
    assert net.arrived == []
    assert net.client.arrived == [(2000, "down")]
    assert net.clock.due == 0
    assert [f.frame_id for f in net.wire.held()] == [first.frame_id, second.frame_id]
    net.wire.release(first.frame_id)
    net.clock.run_until_rest()
    assert net.broker.arrived == [(2000, "a"), (2000, "b")]


def test_letting_a_later_frame_pass_an_earlier_one_is_refused_with_the_reason() -> None:
    """No TCP connection could do it, so the wire does not either."""
    net = Net()
    first, second = net.send("a", "b")
    net.wire.hold(first.frame_id)
    with pytest.raises(WireError, match=r"frame 1 cannot arrive before frame 0.*TCP keeps"):
        net.wire.release(second.frame_id)
    net.wire.release(first.frame_id)
    net.wire.hold_direction("c2b")
    with pytest.raises(WireError, match=r"frame 1 cannot arrive before frame 0"):
        net.wire.release(second.frame_id)


def test_a_gate_lets_through_only_as_many_frames_as_the_hand_says() -> None:
    """Releasing two of four frames keeps the gate closed for the others and for later ones."""
    net = Net()
    net.wire.hold_direction("c2b")
    net.send("a", "b", "c", "d")
    assert net.wire.release_direction("c2b", count=2) == 2
    net.clock.run_until_rest()
    assert net.arrived == ["a", "b"]
    net.send("e")
    net.clock.run_until_rest()
    assert net.arrived == ["a", "b"]
    assert net.wire.gate_closed("c2b")
    assert net.wire.release_direction("c2b") == 3
    net.clock.run_until_rest()
    assert net.arrived == ["a", "b", "c", "d", "e"]


def test_frames_behind_a_gate_can_be_let_through_one_by_one_in_order() -> None:
    """Each release names the frame that is first in its direction."""
    net = Net()
    net.wire.hold_direction("c2b")
    first, second = net.send("a", "b")
    net.wire.release(first.frame_id)
    net.wire.release(second.frame_id)
    with pytest.raises(WireError, match="frame 1 is not held"):
        net.wire.release(second.frame_id)
    net.clock.run_until_rest()
    assert net.arrived == ["a", "b"]
    assert net.wire.gate_closed("c2b")


def test_holding_and_releasing_say_what_is_possible_now() -> None:
    """Each refusal names the frame and what would be legal."""
    net = Net()
    with pytest.raises(WireError, match="frame 7 is not in flight on c1; no frame is in flight"):
        net.wire.hold(7)
    with pytest.raises(WireError, match="nothing is held client to broker; legal now: hold"):
        net.wire.release_direction("c2b")
    net.wire.hold_direction("c2b")
    with pytest.raises(WireError, match="closed already; legal now: release it"):
        net.wire.hold_direction("c2b")
    with pytest.raises(WireError, match="no frame waits client to broker"):
        net.wire.release_direction("c2b", count=1)
    with pytest.raises(WireError, match="no direction 'up': c2b is client to broker"):
        net.wire.hold_direction("up")
    with pytest.raises(WireError, match="latency -1 us is below 0"):
        net.wire.set_latency("c2b", -1)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("sslhgrnt"), st.integers(0, 12)), max_size=40))
def test_no_sequence_of_holds_and_latencies_reorders_a_direction(
    plan: list[tuple[str, int]],
) -> None:
    """Whatever the hand does, frames arrive in the order sent, none twice, none lost."""
    net = Net()
    sent = 0
    for act, number in plan:
        try:
            match act:
                case "s":
                    net.send(sent)
                    sent += 1
                case "l":
                    net.wire.set_latency("c2b", number * 100)
                case "h":
                    net.wire.hold(number)
                case "g":
                    net.wire.hold_direction("c2b")
                case "r":
                    net.wire.release(number)
                case "n":
                    net.wire.release_direction("c2b", count=number or None)
                case _:
                    net.clock.step()
        except WireError:
            pass
        assert net.arrived == list(range(len(net.arrived)))
        waiting = len(net.wire.in_flight("c2b"))
        assert len(net.arrived) + waiting == sent
    if net.wire.held():
        net.wire.release_direction("c2b")
    net.clock.run_until_rest()
    assert net.arrived == list(range(sent))
