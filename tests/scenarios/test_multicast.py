"""The article's run: rates and latencies come out of the mechanism, and what is given is said."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from workbench import presets
from workbench.peers.multicast091 import Rate
from workbench.scenarios import ParameterError, World, run
from workbench.scenarios.multicast import ALONE, BESIDE, Compared, compared, multicast, rates, told

BLOG = presets.get("blog2008")
# Half of a queue's time for a message is a channel's: what is left over is its penalty.
STANDING = (
    (BLOG.queue_enqueue_us + BLOG.queue_deliver_us - BLOG.channel_content_us)
    * 1_000
    // BLOG.penalty_ns
)


@cache
def played(messages: int = 1_000_000, lowered_ms: int = 100, **changes: Any) -> World:
    """The world at rest; the alarm comes with the look at two seconds, if there are messages."""
    preset = replace(BLOG, **changes)
    values = multicast.values(preset, {"messages": messages, "lowered_ms": lowered_ms})
    world = World(preset=multicast.effective(preset, values), parameters=values)
    multicast.build(world)
    world.clock.run_until_rest(5_000_000)
    assert not world.clock.due
    return world


def beside(messages: int = 6_500, **changes: Any) -> float:
    """Messages a second of the consumer in the first second beside the producer."""
    return rates(played(messages, **changes))[1][0].per_second


@pytest.mark.slow
def test_d12_rates_before_during_and_after_beside_the_article_s() -> None:
    """A thirtieth of its own rate beside the producer, and all of it when that has stopped."""
    world = played()
    found = {one.what: one for one in compared(world)}
    assert [one.what for one in found.values() if one.given] == ["producer", "consumer alone"]
    assert found["producer"].residual == found["consumer alone"].residual == 0
    slow, fast = found["consumer beside it"].computed, found["consumer alone"].computed
    assert -0.40 < found["consumer beside it"].residual < 0
    assert fast / slow > max(ALONE) / max(BESIDE)
    assert abs(found["average latency, line 1"].residual) < 0.10
    cleared = found["alarm set to cleared, 50 s of it given"]
    assert 50 < cleared.computed < 60


@pytest.mark.slow
def test_d12_the_producer_is_silent_while_the_alarm_is_on() -> None:
    """No line of it between set and clear, but lines of the consumer."""
    world = played()
    sent, received = rates(world)
    (set_us, _), (clear_us, _) = world.broker.memory.log
    inside = [line for line in sent if line.since_us > set_us and line.t_us < clear_us]
    assert inside == []
    assert len([line for line in received if set_us < line.t_us < clear_us]) >= 2
    text = told(world)
    assert sum("alarm_handler: {" in line for line in text) == 2
    assert text[-1].startswith("alarm set to cleared, 50 s of it given: ")


@pytest.mark.slow
def test_the_consumer_waits_behind_as_many_messages_as_the_penalty_leaves_standing() -> None:
    """Each commit passes the queue's mailbox: its wait is what stands there, message by message."""
    turn_us = BLOG.queue_enqueue_us + BLOG.queue_deliver_us
    assert beside() == pytest.approx(1e6 / (STANDING * turn_us + 232), rel=0.05)


@pytest.mark.slow
def test_where_acknowledgements_overtake_the_consumer_is_as_fast_as_alone() -> None:
    """As in later releases, whose queues take what settles first."""
    assert beside(settles_in_turn=False) > 30 * beside() * 0.8


def test_a_figure_within_the_article_s_lines_has_no_residual() -> None:
    """Else it is the distance from the nearer end."""
    at = {value: Compared(what="x", unit="s", computed=value, article=(100, 200)) for value in
          (50, 100, 150, 200, 300)}  # fmt: skip
    assert {value: round(one.residual, 2) for value, one in at.items()} == {
        50: -0.5, 100: 0, 150: 0, 200: 0, 300: 0.5,
    }  # fmt: skip
    assert str(at[300]) == "x: 300 s; the article 100 to 200; residual +50%"


def test_lines_are_written_as_the_program_writes_them() -> None:
    """With the names and units of the article's lines."""
    assert str(Rate(0, 1_000_000, 5410)) == "sending rate: 5410 msg/s"
    assert str(Rate(0, 2_000_000, 600, (6519, 458396, 835529))) == (
        "recving rate: 300 msg/s, min/avg/max latency: 6519/458396/835529 microseconds"
    )


@pytest.mark.parametrize(
    ("parameters", "telling"),
    [
        ({"socket_octets": 0}, "without end at one instant; legal: socket_octets from 1"),
        ({"lowered_to": "0"}, "watermark 0 is no part"),
        ({"lowered_to": "1.2"}, r"watermark 1\.2 is no part"),
        ({"messages": 0}, "messages is 0; legal: 1 to"),
        ({"total_octets": 0}, "total_octets is 0; legal: 1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(parameters, telling) -> None:
    """Before the run begins."""
    with pytest.raises(ParameterError, match=telling):
        run("multicast", "blog2008", parameters)
