"""A receiver that gets: one message or nothing, and never both or neither."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.peers import net
from tests.peers.net import LATENCY_US
from workbench.amqp10.errors import LocalProtocolError
from workbench.frontends import message_of
from workbench.peers.getter import Ending, Getter


class Net(net.Net):
    """A broker and one getter on a wire, attached."""

    def __init__(self) -> None:
        super().__init__()
        self.getter = Getter()
        self.client(self.getter)
        self.wire = self.wires["c1"]

    def publish(self) -> None:
        self.broker.queues["q"].publish(message_of(b"x"))

    @property
    def sender_credit(self) -> int:
        """The credit that the broker's end has left."""
        (session,) = self.broker.connections["c1"].amqp.sessions
        return sum(link.credit for link in session.links)


def test_drain_by_hand_ends_a_get_that_would_wait_for_ever() -> None:
    """The answer gives the credit back: nothing; a message in between would have been late."""
    net = Net()
    asked = net.getter.get()
    net.rest()
    assert asked.ending is None
    net.getter.drain()
    net.rest()
    assert asked.ending is Ending.NOTHING
    assert asked.drained_us is not None


def test_a_drain_by_hand_before_the_time_is_over_is_the_only_one() -> None:
    """The time-out finds that drain was set already."""
    net = Net()
    net.wire.hold_direction("b2c")
    asked = net.getter.get(50_000)
    net.getter.drain()
    net.rest()
    net.until(net.clock.now_us + 60_000)
    flows = net.rows("flow", from_peer="client")
    assert sum(bool(row.frame.get("drain")) for row in flows) == 1
    net.wire.release_direction("b2c")
    net.rest()
    assert asked.ending is Ending.NOTHING


def test_a_message_that_crosses_the_drain_is_late_and_not_lost() -> None:
    """The third ending of figure 2.44."""
    net = Net()
    asked = net.getter.get(3 * LATENCY_US)
    net.until(net.clock.now_us + 2 * LATENCY_US + LATENCY_US // 2)
    net.publish()
    net.rest()
    assert asked.ending is Ending.LATE_MESSAGE
    assert net.getter.received == 1
    assert net.getter.link_credit == net.sender_credit == 0


def test_the_answer_to_an_earlier_echo_does_not_end_a_get_that_was_stopped() -> None:
    """It left before the message, the answer to the stop after it: the get has its message."""
    net = Net()
    net.publish()
    net.rest()
    net.getter.echo()
    asked = net.getter.get()
    net.getter.stop()
    net.rest()
    assert asked.ending is Ending.NOTHING  # credit came and went before the queue's turn
    assert net.getter.received == 0
    net.getter.echo()
    asked = net.getter.get()
    net.until(net.clock.now_us + LATENCY_US // 2)
    net.getter.stop()
    net.rest()
    assert asked.ending is Ending.MESSAGE
    assert net.getter.received == 1


def test_the_answer_to_a_drain_is_not_taken_for_that_to_a_stop() -> None:
    """Drain, then stop, then another get and another stop: each waits for its own last word."""
    net = Net()
    net.wire.hold_direction("b2c")
    first = net.getter.get()
    net.getter.drain()
    net.getter.stop()
    net.rest()
    net.wire.release_direction("b2c", 1)  # the answer to the drain
    net.rest()
    assert first.ending is Ending.NOTHING
    second = net.getter.get()
    net.publish()
    net.rest()
    net.getter.stop()
    net.rest()
    net.wire.release_direction("b2c", 1)  # the answer to the first stop
    net.rest()
    assert second.ending is None
    net.wire.release_direction("b2c")
    net.rest()
    assert second.ending is Ending.MESSAGE
    assert net.getter.received == 1


def test_the_end_of_the_link_ends_a_get() -> None:
    """By this end, or with the connection."""
    net = Net()
    asked = net.getter.get()
    net.getter.detach()
    assert asked.ending is Ending.NOTHING
    net = Net()
    asked = net.getter.get(10_000_000)
    net.broker.connections["c1"].amqp.close()
    net.rest()
    assert asked.ending is Ending.NOTHING
    assert net.clock.now_us < 10_000_000  # its timer is gone


def test_a_second_get_is_refused_while_one_waits() -> None:
    """And so is one beside credit that was granted by hand."""
    net = Net()
    net.getter.get()
    with pytest.raises(LocalProtocolError, match="a get is waiting"):
        net.getter.get()
    net = Net()
    net.getter.grant(4)
    with pytest.raises(LocalProtocolError, match="link-credit 4"):
        net.getter.get()


ACTS = st.sampled_from(["get", "timed", "drain", "echo", "stop", "publish"])
PAUSES = st.sampled_from([0, 1, 100, 900, 1000, 1050, 1100, 2000, 2100, 5000])


@given(steps=st.lists(st.tuples(ACTS, PAUSES), max_size=25))
@settings(derandomize=True, max_examples=250, deadline=None)
def test_as_many_messages_come_as_gets_end_with_one_whatever_a_hand_does(
    steps: list[tuple[str, int]],
) -> None:
    """However acts fall in time: a get that ends with nothing is never followed by its message."""
    net = Net()
    getter = net.getter
    for act, pause_us in steps:
        if act == "publish":
            net.publish()
        elif act in ("get", "timed"):
            if getter.waiting is None and not getter.link_credit:
                getter.get(3000 if act == "timed" else None)
        else:
            getattr(getter, act)()
        net.until(net.clock.now_us + pause_us)
        _agrees(getter)
    net.rest()
    _agrees(getter)
    waiting = getter.waiting
    assert getter.link_credit == net.sender_credit == (0 if waiting is None else 1)
    if waiting is not None:
        assert waiting.timeout_us is None
        assert net.broker.queues["q"].queue.ready == 0


def _agrees(getter: Any) -> None:
    """Messages that arrived are those of the gets that have ended with one."""
    endings = [asked.ending for asked in getter.gets]
    with_one = endings.count(Ending.MESSAGE) + endings.count(Ending.LATE_MESSAGE)
    assert getter.received == with_one
