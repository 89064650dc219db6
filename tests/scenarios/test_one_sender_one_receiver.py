"""The article's one sender and one receiver: acknowledgements wait behind what was published."""

from __future__ import annotations

from functools import cache

import pytest

from workbench import presets
from workbench.scenarios.one_sender_one_receiver import ARTICLE, MEASURED, compared, moved, told
from workbench.scenarios.streaming import stream
from workbench.scenarios.two_senders import AMQP_0_9_1, AMQP_1_0, BOTH, CLASSIC

SMALL = {"run_ms": 36, "preload": 5_000, "batch": 1_200}


@cache
def played(protocol=AMQP_0_9_1, **given):
    """The world after a short run."""
    return stream(
        "one_sender_one_receiver", "blog2024", {**SMALL, "protocol": protocol, **given}
    ).world


def consumed(**given):
    """Messages over 0-9-1."""
    (one,) = moved(played(**given))
    return one.consumed


def test_a31_over_1_0_a_consumer_gets_many_times_as_much_beside_a_publisher():
    """The article has 73 times; no band is set, for the socket and the client decide it."""
    new, old = moved(played(BOTH))
    assert (new.protocol, old.protocol) == (AMQP_1_0, AMQP_0_9_1)
    assert new.consumed > 10 * old.consumed > 0
    ratio = compared(played(BOTH))[-1]
    assert ratio.model == pytest.approx(new.consumed / old.consumed)
    assert ratio.article == pytest.approx(73.2, abs=0.01)
    assert ARTICLE[AMQP_0_9_1, CLASSIC] == 1_000_000 - 990_932
    assert ARTICLE[AMQP_1_0, CLASSIC] == 1_000_000 - 336_229


def test_a30_on_a_connection_of_its_own_a_consumer_recovers_ten_times_over():
    """The publisher gets no less; the consumer's acknowledgements wait for nobody."""
    (together,), (apart,) = moved(played()), moved(played(separate=True))
    assert apart.consumed >= 10 * together.consumed
    assert apart.published >= together.published


def test_the_deeper_the_socket_the_longer_an_acknowledgement_waits():
    """A shallow socket holds the publisher up, and an acknowledgement soon has its turn."""
    depths = (2_000, 20_000, 100_000)
    found = [consumed(socket_octets=octets, publishes_per_ack=1) for octets in depths]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.8 * found[-1]


def test_the_more_publishes_go_first_the_fewer_acknowledgements_come_through():
    """While the socket is full, what shares the writer decides; that it is 20 is a hypothesis."""
    found = [consumed(socket_octets=20_000, publishes_per_ack=n) for n in (0, 5, 40)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.5 * found[-1]


def test_inputs_results_and_measured_points_are_told():
    """With the hypothesis named as one, and no band on the ratio."""
    lines = told(played(BOTH))
    assert any("publishes_per_ack 20 messages [hypothesis]" in line for line in lines)
    assert any(line.startswith("ratio of what was consumed: ") for line in lines)
    assert sum("measured on RabbitMQ 4.3.6" in line for line in lines) == len(MEASURED) == 3
    assert not any("ran empty" in line for line in lines)
    assert any("ran empty" in line for line in told(played(preload=10, run_ms=5, separate=True)))


def test_each_kind_of_work_costs_the_same_as_in_the_other_benchmark():
    """One preset serves both."""
    blog = presets.get("blog2024")
    assert played().preset.channel_us == blog.channel_us
    assert played(BOTH).preset.session_us == blog.session_us
