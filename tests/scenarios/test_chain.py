"""Three queues on one connection, one slow: who goes on, and who is held by what."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import presets
from workbench.scenarios import ParameterError, run
from workbench.scenarios.chain import QUEUES
from workbench.trace.braking import PublishingBraking


def flooded(count: int = 420, **parameters: Any) -> Any:
    """The first queue hangs, and its publisher sends more than the chain holds."""
    preset = presets.configured(presets.get("rmq4.3"), {"credit_flow_default_credit": 200})
    begun = run("chain", preset, {"latency_us": 100, "message_bytes": 20, **parameters})
    assert begun.rested and not begun.world.tap.problems
    flood = ("publish", {"count": count})
    return begun.act_each(["stall", flood, ("publish", {"queue": "second", "count": 5})])


def ready(played: Any) -> list[int]:
    return [played.world.broker.queues[name].queue.ready for name in QUEUES]


def brake(played: Any, connection: str = "c1") -> str:
    held = PublishingBraking(connection)
    return [held.apply(row) for row in played.rows][-1]


@pytest.mark.parametrize("queue_type", ["classic", "quorum"])
def test_e9_on_one_connection_every_queue_waits_for_the_slow_one(queue_type) -> None:
    """Nothing reaches the second queue; when the first goes on, all is there."""
    played = flooded(queue_type=queue_type)
    assert ready(played) == [0, 0, 0]
    assert brake(played) == "credit-flow"
    done = played.then("resume")
    assert ready(done) == [420, 5, 0]
    assert brake(done) == "none"


def test_e11_on_connections_of_their_own_the_others_go_on() -> None:
    """Only the slow queue's connection is held."""
    played = flooded(separate=True)
    assert ready(played) == [0, 5, 0]
    assert [brake(played, name) for name in ("c1", "c2", "c3")] == ["credit-flow", "none", "none"]


@pytest.mark.parametrize(("blocked", "came"), [(True, 200), (False, 300)])
def test_a29_acknowledgements_wait_behind_the_blocked_reader(blocked, came) -> None:
    """Of 300 messages from elsewhere a prefetch of 200 lets 200 come: no more are acknowledged."""
    begun = run(
        "chain",
        "rmq4.3",
        {
            "latency_us": 100,
            "message_bytes": 20,
            "consume": True,
            "prefetch": 200,
            "separate": True,
        },
    )
    held = begun.then("stall").then("publish", count=850) if blocked else begun
    played = held.then("publish", queue="second", count=300)
    assert played.world.peers["c1"].tasks["consumer"].received == came
    acknowledged = [row.kind for row in played.rows if row.event == "received"].count("basic.ack")
    assert acknowledged == (0 if blocked else came)


def test_a_preset_that_is_no_model_of_the_protocol_is_refused() -> None:
    """And the other way round; the text names those that are."""
    assert run("chain", "rmq3.5.5").rested
    with pytest.raises(ParameterError, match=r"rmq3\.5\.5 is no model of amqp-1\.0.*legal: spec"):
        run("credit", "rmq3.5.5")
