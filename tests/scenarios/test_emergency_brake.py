"""RabbitMQ 1.5's emergency brake as a run: who stops, what is in whose memory, and its history."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.brakes_history import DIES, RELEASES, WAITS, history
from workbench.scenarios.declare import act
from workbench.scenarios.emergency_brake import APP, CONSUMER, PUBLISHER, WORKER, memory_of, told
from workbench.scenarios.world import World
from workbench.trace.braking import PublishingBraking

S = 1_000_000


def braked(preset: str = "rmq1.5", **parameters: Any) -> Any:
    played = run("emergency_brake", preset, parameters)
    assert played.rested and not played.note and not played.world.tap.problems
    return played


def alarms(played: Any) -> list[tuple[int, bool]]:
    return [(t_us // S, on) for t_us, on in memory_of(played.world).log]


def consumer(played: Any) -> Any:
    return played.world.peers[WORKER].tasks[CONSUMER]


def between(played: Any, begin: str = "alarm-set", end: str = "alarm-clear") -> list[Any]:
    """The rows of the first alarm."""
    first = next(row.seq for row in played.rows if row.event == begin)
    last = next(row.seq for row in played.rows if row.event in (end, "crash"))
    return played.rows[first:last]


def test_d1_d7_d8_a_cooperative_publisher_stops_goes_on_acknowledging_and_resumes() -> None:
    """Of methods with content it sends none while it is asked to; all it has arrives at last."""
    played = braked()
    stopped = between(played)
    from_app = [row.kind for row in stopped if row.vantage == "client:app" and row.event == "sent"]
    assert from_app == ["channel.flow-ok"]
    acks = [row for row in stopped if row.kind == "basic.ack" and row.event == "received"]
    assert acks, "the consumer's acknowledgements go on"
    task = played.world.peers[APP].tasks[PUBLISHER]
    assert (task.published, consumer(played).processed) == (60, 60)
    held = PublishingBraking(APP)
    brakes = {held.apply(row) for row in stopped}
    assert brakes == {"none", "alarm"} and held.brake == "alarm"
    assert memory_of(played.world).most <= memory_of(played.world).total


def test_d4_what_the_queue_holds_is_what_came_less_what_went() -> None:
    """At every row: ready and unsettled are the integral of in minus out."""
    played = braked(client="heedless")
    came = gone = 0
    for row in played.rows:
        came += row.event == "enqueue"
        gone += row.event == "settle"
        if row.event in ("enqueue", "settle") and row.vantage == "queue:q":
            assert row.ledger["queue_ready"] + row.ledger["queue_unsettled"] == came - gone
    assert came > gone > 0


def test_d7_a_heedless_publisher_ends_the_broker_of_1_5_and_this_machine_notices_nothing() -> None:
    """What it publishes is taken until the modelled machine has no octet left; then all is lost."""
    played = braked(client="heedless", messages=100_000, pause_us=1_000)
    assert memory_of(played.world).gone
    assert [row.event for row in played.rows].count("crash") == 1
    assert played.world.broker.held_octets == 0 and not played.world.broker.queues
    assert "died for want of memory" in told(played.world)[-1]
    with pytest.raises(ActionError, match="the broker has died"):
        played.then("publish")


def test_d10_the_watermark_is_changed_in_the_running_broker() -> None:
    """A person at its shell; the alarm comes with the next look, and again with the watermark."""
    calm = braked(messages=5, processing_us=60 * S)
    assert alarms(calm) == []
    at = next(row.seq for row in calm.rows if row.t_us >= 2 * S + 1)
    lowered = calm.act(at, "set_watermark", fraction="0.05")
    assert alarms(lowered)[0] == (3, True)
    raised = lowered.act(len(lowered.rows) - 1, "set_watermark", fraction="0.95")
    assert alarms(raised)[-1][1] is False


def test_d11_the_log_tells_set_and_clear_with_their_times() -> None:
    """One pair for each alarm, in order."""
    played = braked()
    lines = told(played.world)
    assert lines[:4] == [
        "=INFO REPORT==== 9-Nov-2008::15:14:10 ===",
        "    alarm_handler: {set,{system_memory_high_watermark,[]}}",
        "=INFO REPORT==== 9-Nov-2008::15:14:17 ===",
        "    alarm_handler: {clear,system_memory_high_watermark}",
    ]
    assert alarms(played)[:2] == [(44, True), (51, False)]


def test_others_on_the_machine_can_raise_the_alarm_of_1_5_and_not_that_of_2_0() -> None:
    """It looks at all that is in use, later ones at what the broker uses."""
    for preset, raised in (("rmq1.5", [True]), ("rmq2.0", [])):
        played = braked(preset, messages=2).then("set_others", octets=58_000)
        assert [on for _, on in alarms(played)] == raised


@pytest.mark.parametrize(("preset", "most"), [("rmq1.5", 19_000), ("rmq1.8", 2_000)])
def test_d13_without_basic_qos_everything_waits_in_the_client_s_heap(preset, most) -> None:
    """1.5 answers qos-ok and delivers what it has; TCP never holds the broker."""
    played = braked(preset, messages=20, pause_us=10_000, prefetch=3)
    assert consumer(played).most_octets == most
    assert not any(row.event == "block" and row.kind == "tcp" for row in played.rows)


def test_d13_the_client_s_heap_may_end_first() -> None:
    """Then its process dies, and what it had not acknowledged is the queue's again."""
    played = braked(messages=20, pause_us=10_000, heap_octets=8_000)
    assert consumer(played).heap_full and not memory_of(played.world).gone
    assert played.world.broker.queues["q"].queue.ready == 20
    assert [row.vantage for row in played.rows if row.event == "crash"] == ["client:worker"]


def test_d14_immediate_messages_never_wait_in_a_queue() -> None:
    """They come back with 313 while the only consumer wants none."""
    opened = braked("rmq1.8", messages=2, immediate=True)
    refused = opened.then("client_flow").then("publish", count=3)
    assert consumer(refused).received == 2
    assert refused.world.peers[APP].tasks[PUBLISHER].returned == [313] * 3
    wanted = refused.then("client_flow", active=True).then("publish", count=1)
    assert consumer(wanted).received == 3


@pytest.mark.parametrize("more", [0, 3])
def test_d15_a_client_that_is_asked_to_stop_may_start_more_consumers(more) -> None:
    """Then the queue drains faster, and the alarm is over sooner."""
    played = braked(more_consumers=more)
    tasks = played.world.peers[WORKER].tasks
    assert len(tasks) == 1 + more
    assert sum(task.processed for task in tasks.values()) == 60


def test_d15_with_more_consumers_all_is_consumed_sooner() -> None:
    """What was delivered to the first stays in its buffer: the others take what comes later."""
    done = {}
    for more in (0, 3):
        played = braked(more_consumers=more)
        done[more] = played.rows[-1].t_us
    assert done[3] < done[0]


def test_d18_without_memory_alarms_nobody_is_asked_and_the_broker_dies() -> None:
    """As with the application file of 1.5.0 left as it is; a publisher that would stop cannot."""
    played = braked(memory_alarms=False)
    assert alarms(played) == [] and memory_of(played.world).gone
    assert not any(row.kind == "channel.flow" for row in played.rows)


@pytest.mark.parametrize(
    ("parameters", "telling"),
    [
        ({"watermark": "0"}, "watermark 0 is no part of the memory; legal: above 0, up to 1"),
        ({"watermark": "1.5"}, r"watermark 1\.5 is no part"),
        ({"watermark": "much"}, "watermark 'much' is not a number; legal: above 0"),
        ({"total_octets": -1}, "total_octets is -1; legal: 1 to"),
        ({"others_octets": -1}, "others_octets is -1; legal: 0 to"),
        ({"heap_octets": -5}, "heap_octets is -5; legal"),
        ({"client": "rude"}, "client is 'rude'; legal: one of cooperative, heedless, silent"),
        ({"collected_us": -1}, "collected_us is -1"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(parameters, telling) -> None:
    """Before the run begins."""
    with pytest.raises(ParameterError, match=telling) as refused:
        run("emergency_brake", "rmq1.5", parameters)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("fraction", ["0", "1.01", "-1", "nan", "x"])
def test_a_watermark_that_is_none_is_refused_while_the_broker_runs(fraction) -> None:
    """And nothing has changed."""
    with pytest.raises(ActionError, match=r"watermark .* legal: above 0, up to 1"):
        braked(messages=0).then("set_watermark", fraction=fraction)


def test_an_unknown_release_is_refused_with_those_there_are() -> None:
    """In one line."""
    with pytest.raises(ValueError, match=r"no preset 'rmq1\.4'; there are: .*rmq1\.5"):
        run("emergency_brake", "rmq1.4")


def test_the_history_of_the_brakes_comes_out_of_runs() -> None:
    """From asking over watching to not reading; and who is told."""
    table = {found.preset: found for found in history()}
    assert tuple(table) == RELEASES
    tcp = "held by alarm and tcp"
    assert {name: (one.heedless, one.silent) for name, one in table.items()} == {
        "rmq1.5": (DIES, DIES),
        "rmq1.8": ("connection.close 503", "channel.close 406"),
        "rmq2.0": (tcp, tcp),
        "rmq3.5.5": (tcp, tcp),
        "rmq4.3": (tcp, tcp),
    }
    assert {name: one.asks for name, one in table.items()} == {
        "rmq1.5": ("channel.flow(active=false)",),
        "rmq1.8": ("channel.flow(active=false)",),
        "rmq2.0": (),
        "rmq3.5.5": ("connection.blocked",),
        "rmq4.3": ("connection.blocked",),
    }
    opens = ("channel.open-ok",)
    assert {name: one.late for name, one in table.items()} == {
        "rmq1.5": ("channel.open-ok", "channel.flow(active=false)"),
        "rmq1.8": (WAITS,),
        "rmq2.0": opens,
        "rmq3.5.5": opens,
        "rmq4.3": opens,
    }
    assert [one.taken > 0 for one in table.values()] == [True, False, False, False, False]


def gone_worker() -> Any:
    """A run in which the consumer's heap is full, so that it is gone."""
    return braked(messages=20, pause_us=10_000, heap_octets=8_000)


@pytest.mark.parametrize(
    ("name", "arguments"), [("client_flow", {}), ("open_channel", {"connection": WORKER})]
)
def test_an_act_of_a_client_that_is_gone_is_refused(name, arguments) -> None:
    """Its channels have gone with it."""
    played = gone_worker()
    assert not played.world.peers[WORKER].amqp.opened
    with pytest.raises(ActionError, match="connection c2 is closed; legal now: set_watermark"):
        played.act(played.last, name, **arguments)


def test_what_an_endpoint_of_0_9_1_refuses_the_act_is_refused_with() -> None:
    """As with AMQP 1.0: one line, with what would be legal."""
    played = gone_worker()
    spec = act()(_channel_opened)
    with pytest.raises(ActionError, match=r"channel\.open cannot be sent; legal now"):
        spec.do(played.world, {})


def _channel_opened(world: World) -> None:
    """Open a channel."""
    world.peers[WORKER].amqp.open_channel()


@pytest.mark.parametrize("preset", ["rmq1.5", "rmq1.8"])
def test_a_client_that_has_run_out_of_heap_starts_no_consumers(preset):
    """It is asked to stop when its connection is over."""
    played = run("emergency_brake", preset, {"more_consumers": 1, "heap_octets": 5000})
    assert played.rows
