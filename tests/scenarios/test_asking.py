"""Asking and stopping: figures 2.43 to 2.46 on the real broker, drained, echoed and stale."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.peers.getter import Ending
from workbench.scenarios import ActionError, run
from workbench.scenarios.asking import QUEUE, gets_of

from .endings import expected_ending

SPEC = presets.get("spec")


def asked(**parameters):
    """A run of the scenario."""
    return run("asking", parameters=parameters)


def late_arrivals(played):
    """Transfers that arrived after the receiver had stopped the link, before the answer."""
    rows = played.rows
    stops = [
        row.seq
        for row in rows
        if row.kind == "flow"
        and row.event == "sent"
        and row.from_peer == "client"
        and (row.frame or {}).get("echo")
        and (row.frame or {}).get("link_credit") == 0
    ]
    if not stops:
        return []
    return [
        row
        for row in rows
        if row.seq > stops[-1] and row.kind == "transfer" and row.event == "received"
    ]


def flows(played, peer, event="sent"):
    """The flows of a peer after the set-up, as dicts of what was on the wire."""
    return [
        row.frame
        for row in played.rows
        if row.kind == "flow"
        and row.event == event
        and row.from_peer == peer
        and row.seq > played.start_seq
    ]


def transfers(played):
    """Rows of messages that arrived at the receiver."""
    return [row for row in played.rows if row.kind == "transfer" and row.event == "received"]


@pytest.mark.parametrize(
    ("mode", "act"),
    [
        *((mode, "get") for mode in ("get", "get-with-timeout", "stop")),
        *((mode, "detach") for mode in ("get", "get-with-timeout", "stop", "notify")),
    ],
)
def test_an_act_at_the_start_comes_before_what_the_receiver_does_by_itself(mode, act):
    """Whatever it is: a get is not asked for twice, and nothing on a link that is gone."""
    idle = asked(mode=mode, messages=3)
    played = idle.act(idle.start_seq, act)
    assert played.rested
    assert len(gets_of(played)) == (act == "get")


def test_a_synchronous_get_is_one_credit_and_one_message():
    """Figure 2.43: flow(1), one transfer, then none, however many are ready."""
    played = asked(mode="get", messages=5)
    (get,) = gets_of(played)
    assert get.ending is Ending.MESSAGE
    assert [frame["link_credit"] for frame in flows(played, "client")] == [1]
    assert len(transfers(played)) == 1
    assert played.rested


def test_a_synchronous_get_waits_until_something_is_published():
    """Without a time-out it waits for ever; one publish ends it."""
    waiting = asked(mode="get")
    assert gets_of(waiting)[0].ending is None
    done = waiting.act(waiting.rows[-1].seq, "publish", count=3)
    assert gets_of(done)[0].ending is Ending.MESSAGE
    assert len(transfers(done)) == 1


TIMES = st.integers(0, 12_000)


@given(
    timeout_us=TIMES,
    latency_us=st.integers(0, 4_000),
    publish_at_us=st.none() | TIMES,
    ready=st.integers(0, 2),
)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_a_get_with_a_time_out_has_one_of_three_endings_and_always_the_reckoned_one(
    timeout_us, latency_us, publish_at_us, ready
):
    """Figure 2.44: message, message that crosses the drain, or nothing; then credit is 0."""
    played = asked(
        mode="get-with-timeout",
        timeout_us=timeout_us,
        latency_us=latency_us,
        publish_at_us=publish_at_us,
        messages=ready,
    )
    (get,) = gets_of(played)
    there_us = None if publish_at_us is None else publish_at_us + SPEC.queue_enqueue_us
    if ready:
        there_us = 0
    deliver_us = SPEC.queue_deliver_us
    arrives_us = max(there_us or 0, latency_us) + deliver_us + latency_us
    # At the very microsecond of a boundary either order of two events is right.
    if timeout_us != arrives_us and there_us != timeout_us + latency_us:
        assert get.ending is expected_ending(
            timeout_us=timeout_us,
            latency_us=latency_us,
            there_us=there_us,
            deliver_us=deliver_us,
        )
    came = len(transfers(played))
    assert came == (get.ending is not Ending.NOTHING)
    assert played.world.peers["consumer"].link_credit == 0
    assert (get.drained_us is None) == (get.ending is Ending.MESSAGE)
    assert played.rested


def test_nothing_comes_after_a_get_that_ended_with_nothing():
    """The answer to the drain is final: a message published later stays in the queue."""
    played = asked(mode="get-with-timeout", timeout_us=1000)
    later = played.act(played.rows[-1].seq, "publish", count=2)
    assert transfers(later) == []
    assert gets_of(later)[0].ending is Ending.NOTHING
    again = later.act(later.rows[-1].seq, "get", timeout_us=50_000)
    assert [get.ending for get in gets_of(again)] == [Ending.NOTHING, Ending.MESSAGE]


def test_notification_never_lets_the_sender_run_dry_when_the_round_trip_is_short():
    """Figure 2.45: grants overlap, at most n are in flight, and n is granted again at half."""
    played = asked(mode="notify", n=6, messages=60, latency_us=100)
    credits = [
        row.ledger["link_credit"]
        for row in played.rows
        if row.kind == "transfer" and row.event == "sent" and row.ledger
    ]
    assert len(credits) == 60
    assert 0 not in credits
    assert {frame["link_credit"] for frame in flows(played, "client")} <= {6}


def test_after_the_echo_answer_to_a_stop_nothing_comes_though_late_messages_came_before_it():
    """Figure 2.46: credit 0 with echo; what was on its way arrives before the answer."""
    played = asked(mode="stop", messages=200, n=150, stop_after=3)
    answer = max(
        row.seq
        for row in played.rows
        if row.kind == "flow" and row.event == "received" and row.from_peer == "broker"
    )
    assert late_arrivals(played)
    assert all(row.seq < answer for row in transfers(played))
    (told,) = flows(played, "broker")
    assert told["link_credit"] == 0
    assert not told.get("echo")
    assert told["available"] == 200 - len(transfers(played))


@pytest.mark.parametrize(("ready", "credit"), [(0, 10), (3, 10), (10, 10), (12, 5)])
def test_drain_with_none_some_enough_and_too_many_messages(ready, credit):
    """Transfers up to the limit, the rest of the credit is given back, the limit stays."""
    start = 4294967290
    played = asked(messages=ready, initial_delivery_count=start)
    granted = played.act(played.start_seq, "grant", link_credit=credit)
    flow = next(row for row in granted.rows if row.kind == "flow" and row.seq > played.start_seq)
    drained = granted.act(flow.seq, "drain")
    came = min(ready, credit)
    assert len(transfers(drained)) == came
    answers = flows(drained, "broker")
    assert len(answers) == (1 if came < credit else 0)
    if answers:
        assert answers[-1]["delivery_count"] == (start + credit) % 2**32
        assert answers[-1]["link_credit"] == 0
        assert answers[-1]["drain"] is True
    assert drained.world.peers["consumer"].link_credit == 0
    assert drained.rested


def test_available_is_an_estimate_that_can_be_stale():
    """What is published after the answer left is not in it; the next answer knows."""
    played = asked(messages=2)
    asking = played.act(played.start_seq, "echo")
    answer = next(row for row in asking.rows if row.kind == "flow" and row.from_peer == "broker")
    more = asking.act(answer.seq, "publish", count=3)
    arrived = flows(more, "broker", "received")
    assert arrived[-1]["available"] == 2
    known = more.world.peers["consumer"].link.counters.available
    assert known == 2
    again = more.act(more.rows[-1].seq, "echo")
    assert flows(again, "broker", "received")[-1]["available"] == 5


def test_available_is_stale_when_another_consumer_has_taken_what_it_counted():
    """Nobody tells the receiver; drain is the way to be sure."""
    played = asked(messages=5)
    told = played.act(played.start_seq, "echo")
    assert told.world.peers["consumer"].link.counters.available == 5
    taken = told.act(told.rows[-1].seq, "take", count=5)
    assert taken.world.peers["rival"].received == 5
    assert taken.world.peers["consumer"].link.counters.available == 5
    got = taken.act(taken.rows[-1].seq, "get", timeout_us=2000)
    assert gets_of(got)[-1].ending is Ending.NOTHING
    assert got.world.peers["consumer"].link.counters.available == 0
    with pytest.raises(ActionError, match=r"the queue is empty.*legal now: publish"):
        got.act(got.rows[-1].seq, "take")


def test_the_other_consumer_takes_only_what_there_is_and_then_waits_for_nothing():
    """It drains, so what is published later is not taken."""
    played = asked(messages=2)
    taken = played.act(played.start_seq, "take", count=10)
    later = taken.act(taken.rows[-1].seq, "publish", count=3)
    assert later.world.peers["rival"].received == 2
    again = later.act(later.rows[-1].seq, "take", count=2)
    assert again.world.peers["rival"].received == 4
    assert again.world.broker.declare(QUEUE).queue.ready == 1


def test_a_get_on_a_link_that_is_detached_ends_with_nothing():
    """What was on its way goes back into the queue."""
    waiting = asked(mode="get", messages=1)
    flow = next(row for row in waiting.rows if row.kind == "flow" and row.seq > waiting.start_seq)
    gone = waiting.act(flow.seq, "detach")
    (get,) = gets_of(gone)
    assert get.ending is Ending.NOTHING
    assert gone.world.peers["consumer"].received == 0
    assert gone.world.broker.declare(QUEUE).queue.ready == 1
    with pytest.raises(ActionError, match="not attached now"):
        gone.act(gone.rows[-1].seq, "get")


def test_echo_is_answered_without_echo():
    """Else two ends would never stop asking each other [2.7.4]."""
    played = asked(messages=1)
    asking = played.act(played.start_seq, "echo")
    (answer,) = flows(asking, "broker")
    assert not answer.get("echo")
    assert asking.rested


def test_properties_of_a_flow_that_nobody_knows_are_ignored():
    """A hypothetical note changes no counter and gets no answer; the frame carries it."""
    played = asked(messages=5)
    granted = played.act(played.start_seq, "grant", link_credit=2)
    before = granted.world.peers["consumer"].overview()
    noted = granted.act(granted.rows[-1].seq, "note", text="nearby")
    assert noted.world.peers["consumer"].overview() == before
    (frame,) = [frame for frame in flows(noted, "client") if "extra_json" in frame]
    assert "nearby" in json.dumps(frame)
    assert flows(noted, "broker") == []


def test_a_second_get_is_refused_while_one_waits_and_when_credit_is_out():
    """A message that came could not be told from one that was asked for."""
    waiting = asked(mode="get")
    with pytest.raises(ActionError, match="legal now: publish"):
        waiting.act(waiting.rows[-1].seq, "get")
    free = asked()
    granted = free.act(free.start_seq, "grant", link_credit=4)
    with pytest.raises(ActionError, match=r"link-credit 4.*legal now: stop"):
        granted.act(granted.rows[-1].seq, "get")


def test_pause_and_resume_need_no_new_link_and_keep_the_order():
    """Credit 0, then n: the same link goes on where it was."""
    played = asked(messages=8)
    some = played.act(played.start_seq, "grant", link_credit=3)
    paused = some.act(some.rows[-1].seq, "stop")
    resumed = paused.act(paused.rows[-1].seq, "grant", link_credit=8)
    payloads = resumed.world.peers["consumer"].payloads
    assert payloads == sorted(payloads)
    assert len(payloads) == 8
    assert sum(row.kind == "attach" and row.event == "sent" for row in resumed.rows) == 2
