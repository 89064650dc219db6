"""Article C and row D2, each by its number: producers, queues with watermarks, a subscriber."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import presets
from workbench.frontends.amqp010 import thresholds_of
from workbench.peers.client010 import Sender010
from workbench.presets import AMQP_0_10
from workbench.queues import FlowThresholds
from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.two_faces import faces
from workbench.trace.brakes import QPID_WINDOW
from workbench.trace.braking import PublishingBraking

QPID = presets.get("qpid-cpp")
ANY = 0  # no window


def begun(*acts: Any, **parameters: Any) -> Any:
    """A run with watermarks of 7 and 5, and what is done one after the other."""
    played = run("qpid", parameters={"window": 50, **parameters})
    for name, arguments in acts:
        played = played.then(name, **arguments)
    assert played.rested
    assert not played.world.tap.problems
    return played


def put(count: int, queue: str = "q1", producer: str = "p1") -> Any:
    return "publish", {"count": count, "queue": queue, "producer": producer}


def take(count: int, queue: str = "q1", processing_us: int = 0) -> Any:
    return "accept", {"count": count, "queue": queue, "processing_us": processing_us}


def task(played: Any, name: str = "p1", peer: str = "") -> Any:
    return played.world.peers[peer or name].tasks[name]


def flow(played: Any, queue: str = "q1") -> Any:
    """A queue's watermarks, as they stand at the end."""
    return played.world.broker.queues[queue].queue.flow


def incomplete(played: Any, name: str = "p1") -> int:
    """Commands of a producer that the broker holds as not complete."""
    sessions = played.world.broker.connections["c1" if name == "p1" else "c2"].sessions
    return (
        sum(len(session.received_incomplete) for session in sessions) - task(played, name).blocked
    )


def test_c1_without_watermarks_the_limit_ends_the_session_of_whoever_sends_next():
    """506; the connection stays, and the queue holds what it may."""
    played = begun(put(14), stop=0, resume=0, most=10)
    assert task(played).error[0] == 506
    assert not task(played).attached
    assert played.world.peers["p1"].amqp.opened
    assert flow(played).count == 10


@pytest.mark.parametrize("window", [1, 2, 3, 4, 7, 50])
def test_c2_a_producer_never_has_more_incomplete_than_its_window(window):
    """It reaches it, and blocks; the brake has its name."""
    played = begun(put(80), window=window)
    rows = [row for row in played.rows if row.connection == "c1" and row.ledger]
    counts = [row.ledger.get("incomplete_transfers", 0) for row in rows]
    assert max(counts) == window
    braking = PublishingBraking("c1")
    assert [braking.apply(row) for row in played.rows][-1] == QPID_WINDOW
    assert task(played).blocked
    assert flow(played).count <= 7 + window


@pytest.mark.parametrize(("window", "before"), [(50, [12, 25, 38, 51]), (8, [2, 5, 8, 11, 14])])
def test_c2_a_producer_asks_what_is_complete_every_quarter_of_its_window(window, before):
    """Before the message beyond a quarter, as Qpid's C++ client, whose window is 50 by default."""
    played = begun(put(before[-1] + 1), window=window, stop=0, resume=0)
    sent = [
        row.kind
        for row in played.rows
        if (row.connection, row.event, row.from_peer) == ("c1", "sent", "client")
    ]
    asked = [place for place, kind in enumerate(sent) if kind == "session.flush"]
    assert [sent[:place].count("message.transfer") for place in asked] == before
    assert Sender010("p").capacity == 50


def test_c3_above_the_mark_nothing_is_told_to_be_complete():
    """The queue takes the eighth and the ninth; the broker tells of the first seven."""
    played = begun(put(9), window=4)
    told = [
        last
        for row in played.rows
        if row.kind == "session.completed" and row.connection == "c1" and row.event == "received"
        for _, last in row.extra["commands"]
    ]
    # Of the two syncs the first is command 4: the seventh message is command 7, the eighth 8.
    assert flow(played).stopped
    assert max(told) == 7


def test_c4_a_message_for_two_queues_completes_when_both_are_fine():
    """Both are stopped; one goes on, and the message still waits for the other."""
    full = begun(put(8), put(8, "q2"), put(1, "both"))
    assert incomplete(full) == 3
    one = full.then("accept", count=6)
    assert not flow(one).stopped
    assert flow(one, "q2").stopped
    assert incomplete(one) == 2
    both = one.then("accept", queue="q2", count=6)
    assert incomplete(both) == 0


def test_c5_without_a_word_the_marks_are_at_80_and_70_per_cent():
    """Of the number that a queue may hold, and of its octets: 100 MiB if it says nothing."""
    assert thresholds_of(QPID, {}) == FlowThresholds(
        max_size=104_857_600, stop_size=83_886_080, resume_size=73_400_320
    )
    assert thresholds_of(QPID, {"qpid.max_count": 1000, "qpid.max_size": 10}) == FlowThresholds(
        max_count=1000, stop_count=800, resume_count=700, max_size=10, stop_size=8, resume_size=7
    )


def test_c6_watermarks_that_are_changed_hold_at_once():
    """As the proposal wanted: lower ones stop the queue, higher ones let everything go."""
    played = begun(put(6))
    lower = played.then("set_watermarks", stop=5, resume=3)
    assert flow(lower).stopped
    assert incomplete(lower.then("publish")) == 1
    higher = lower.then("publish").then("set_watermarks", stop=20, resume=10)
    assert not flow(higher).stopped
    assert incomplete(higher) == 0
    with pytest.raises(ActionError, match=r"qpid.flow_resume_count 9 lies above .* 8"):
        played.then("set_watermarks", stop=8, resume=9)


def turns(played: Any) -> list[tuple[str, int]]:
    """When a queue is stopped and goes on: the row's event, and what the queue holds then."""
    return [
        (row.event, row.ledger["queue_ready"] + row.ledger["queue_unsettled"])
        for row in played.rows
        if row.kind == "queue-flow"
    ]


def test_c7_the_flag_is_on_above_the_high_mark_and_off_below_the_low_one():
    """Both are strict: 8 and 4."""
    assert turns(begun(put(8), take(8))) == [("block", 8), ("unblock", 4)]
    assert turns(begun(put(7), take(7))) == []


def test_c8_a_message_counts_the_queues_that_hold_it():
    """It is in both; each that lets it go takes one off, and the last completes it."""
    held = begun(put(7), put(7, "q2"), put(1, "both"))
    pending = [flow(held, name).pending for name in ("q1", "q2")]
    assert [len(one) for one in pending] == [1, 1]
    assert incomplete(held) == 1
    half = held.then("accept", count=6)
    assert [len(flow(half, name).pending) for name in ("q1", "q2")] == [0, 1]
    assert incomplete(half) == 1


@pytest.mark.parametrize(("count", "held"), [(7, 0), (8, 1), (9, 2)])
def test_c9_the_eighth_message_is_held_and_not_the_seventh(count, held):
    """Stop 7."""
    assert len(flow(begun(put(count))).pending) == held


def test_c10_with_four_left_all_that_is_held_completes_at_once():
    """Resume 5: the fifth accept of nine releases nothing more than the rest together."""
    played = begun(put(9))
    assert incomplete(played.then("accept", count=4)) == 2
    released = played.then("accept", count=5)
    assert incomplete(released) == 0
    times = {row.t_us for row in released.rows if row.event == "confirm"}
    assert len(times) == 1


def test_c11_a_held_message_that_is_accepted_completes_although_the_queue_is_stopped():
    """It alone: of twelve the eighth, with a low mark that is not reached."""
    played = begun(put(12), take(8), resume=1)
    assert flow(played).stopped
    assert incomplete(played) == 4


def test_c12_a_producer_waits_for_the_window_and_not_for_a_destination():
    """Messages for the free queue go as long as the window is not full."""
    played = begun(put(8), put(5, "q2"), window=4)
    assert flow(played, "q2").count == 3  # and the eighth of the other queue: the window is full
    assert list(task(played).waiting) == ["q2"] * 2
    assert incomplete(played) == 1


def test_c13_nothing_overtakes_a_message_that_is_held():
    """For a full window it is the same that the next message's queue is empty."""
    played = begun(put(20), put(5, "q2"), window=4)
    assert list(task(played).waiting)[-5:] == ["q2"] * 5
    assert flow(played, "q2").count == 0
    assert flow(played.then("accept", count=20), "q2").count == 5


def test_c14_a_burst_is_survived():
    """More than the queue may hold, from a producer with a window, while somebody consumes."""
    parameters: dict[str, Any] = {"window": 3, "most": 10}
    burst = begun(take(30, processing_us=2000), put(30), **parameters)
    assert (task(burst).sent, task(burst).error) == (30, None)
    old = begun(take(30, processing_us=2000), put(30), **{**parameters, "window": ANY})
    assert task(old).error[0] == 506


def test_c15_a_consumer_that_is_too_slow_is_not_helped():
    """A window that is larger than the room above the mark ends at 506, however long it takes."""
    played = begun(take(60, processing_us=3000), put(60), window=8, most=10)
    assert task(played).error[0] == 506
    assert played.rows[-1].t_us > 50_000
    assert flow(played).stopped_count > 0


def test_c16_a_producer_without_a_window_is_ended_as_before():
    """Watermarks hold completions, and nobody waits for them."""
    played = begun(put(14), window=ANY, most=10)
    assert task(played).error[0] == 506
    assert flow(played).stopped
    assert not [row for row in played.rows if row.kind in ("session.flush", "execution.sync")]


def test_c18_nothing_but_completion_tells_a_producer_to_wait():
    """Credit is for subscribers: the broker sends a producer none, and knows none of its own."""
    played = begun(put(20), take(20), window=4)
    heard = {
        row.kind for row in played.rows if row.connection == "c1" and row.from_peer == "broker"
    }
    assert not {kind for kind in heard if kind and kind.startswith("message.")}
    assert "session.completed" in heard


def test_c19_amqp_1_0_says_it_by_credit():
    """The same queue that takes nothing in: the link's credit is not given again."""
    begun_10 = run("publishers", "rmq4.3").then("stall").then("publish", count=400)
    link = begun_10.world.peers["client"].publisher("q1").link
    assert link.ledger()["link_credit"] == 0
    assert AMQP_0_10 not in begun_10.preset.protocols


def test_two_producers_overshoot_by_the_sum_of_their_windows():
    """Stop 100, windows of 50 and 15: 165."""
    played = begun(
        put(400), put(400, producer="p2"), stop=100, resume=70, second_window=15, pause_us=10
    )
    assert flow(played).count == 165
    assert [task(played, name).blocked for name in ("p1", "p2")] == [True, True]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"stop": 5, "resume": 6}, "qpid.flow_resume_count 6 lies above qpid.flow_stop_count 5"),
        ({"stop": 9, "resume": 6, "most": 8}, "qpid.flow_stop_count 9 lies above qpid.max_count 8"),
    ],
)
def test_watermarks_that_cannot_be_are_refused_at_declaration(parameters, words):
    """As Qpid C++ does."""
    with pytest.raises(ParameterError, match=words):
        run("qpid", parameters=parameters)


def test_a_deleted_queue_lets_its_producer_go():
    """All that it held is complete, and what follows is dropped as unroutable."""
    played = begun(put(20), ("delete", {"queue": "q1"}), window=4)
    assert task(played).sent == 20
    assert not task(played).blocked
    with pytest.raises(ActionError, match="queue q1 is deleted"):
        played.then("delete", queue="q1")


# -- a subscriber ---------------------------------------------------------------------------------


def subscriber(*acts: Any, **parameters: Any) -> Any:
    played = run("qpid_credit", parameters=parameters)
    for name, arguments in acts:
        played = played.then(name, **arguments)
    return played


UNLIMITED = 4_294_967_295
OCTETS: Any = ("flow", {"unit": "octets", "value": UNLIMITED})


def grant(value: int, unit: str = "messages") -> Any:
    return "flow", {"value": value, "unit": unit}


CREDIT: Any = ("set_flow_mode", {"mode": "credit"})


@pytest.mark.parametrize(
    ("acts", "came"),
    [
        ([grant(2)], 0),
        ([OCTETS, grant(2)], 2),
        ([OCTETS, grant(2), grant(2)], 4),
        ([OCTETS, grant(3), ("stop", {}), grant(2)], 3),
        ([CREDIT, OCTETS, grant(3), ("stop", {}), grant(2), OCTETS], 5),
        ([OCTETS, grant(20), ("flush", {})], 10),
        ([grant(5), grant(40, "octets")], 2),
        ([grant(5), grant(40, "octets"), grant(20, "octets")], 3),
        ([OCTETS, grant(2), ("complete", {"count": 2})], 4),
        ([CREDIT, OCTETS, grant(2), ("complete", {"count": 2})], 2),
    ],
)
def test_d2_credit_is_in_messages_and_octets_and_adds(acts, came):
    """A window gives back what is completed, credit mode does not; a message has 20 octets here."""
    assert task(subscriber(*acts), "subscriber").received == came


def test_d2_the_same_two_clicks_are_another_sum_in_amqp_1_0():
    """Two and two: a flow of AMQP 1.0 sets, one of 0-10 adds."""
    old = subscriber(CREDIT, grant(2), grant(2))
    credit = [row.ledger["credit_messages"] for row in old.rows if row.kind == "message.flow"
              and row.event == "received"]  # fmt: skip
    assert credit == [2, 4]
    new = (
        run("credit", "spec", {"messages": 0})
        .then("grant", link_credit=2)
        .then("grant", link_credit=2)
    )
    told = [
        row.ledger["link_credit"]
        for row in new.rows
        if (row.kind, row.event, row.from_peer) == ("flow", "received", "client")
        and "link_credit" in row.ledger
    ]
    assert told[-2:] == [2, 2]


# -- Qpid's Java broker ---------------------------------------------------------------------------


def java(*acts: Any, **parameters: Any) -> Any:
    """The same under the preset of Broker-J: a queue may hold ten."""
    played = run("qpid", "broker-j", {"most": 10, **parameters})
    for name, arguments in acts:
        played = played.then(name, **arguments)
    return played


def told_producer(played: Any) -> list[str]:
    """What the broker has sent the producer by message commands, in order."""
    return [
        row.kind
        for row in played.rows
        if (row.connection, row.event, row.from_peer) == ("c1", "received", "broker")
        and row.kind.startswith("message.")
    ]


def test_c17_broker_j_holds_the_session_by_credit_and_goes_on_at_80_per_cent():
    """Above ten it says set-flow-mode and stop; with eight left it says flow, and nothing before.

    Every transfer is complete at once: what waits is what the producer has not sent.
    """
    played = java(put(40), window=ANY)
    assert told_producer(played) == ["message.set-flow-mode", "message.stop"]
    assert task(played).blocked
    (session,) = played.world.broker.connections["c1"].sessions
    assert len(session.received_incomplete) == 0
    braking = PublishingBraking("c1")
    assert [braking.apply(row) for row in played.rows][-1] == "link-credit"
    top = flow(played).count
    assert top > 10  # what was under way when the word came
    nearly = played.then("accept", count=top - 9)
    assert task(nearly).blocked
    assert told_producer(nearly) == told_producer(played)
    freed = played.then("accept", count=top - 8)
    assert told_producer(freed)[2] == "message.flow"
    assert task(freed).sent > task(played).sent


def test_c17_broker_j_stops_a_session_for_every_queue():
    """C++ holds what is for the full queue; Broker-J all that the session would publish later."""
    played = java(put(40), put(3, "q2"), window=ANY)
    assert flow(played, "q2").count == 0
    assert "q2" in task(played).waiting
    both = java(put(20, "both"), window=ANY, pause_us=5000)
    assert [flow(both, name).count for name in ("q1", "q2")] == [11, 11]
    one = both.then("accept", count=3)
    assert (flow(one).stopped, task(one).blocked) == (False, True)
    assert task(one.then("accept", queue="q2", count=3)).sent > task(one).sent


def test_c17_only_broker_j_has_two_faces():
    """Qpid C++ takes no credit away, over whichever protocol."""
    with pytest.raises(ParameterError, match="stops nobody by credit; legal: broker-j"):
        run("two_faces", "qpid-cpp")


def test_c17_broker_j_refuses_nothing_and_lets_go_when_the_queue_is_deleted():
    """No exception above the maximum; what the producer has left is dropped as unroutable."""
    played = java(put(60), window=ANY, pause_us=10)
    assert task(played).error is None
    gone = played.then("delete", queue="q1")
    assert (task(gone).sent, task(gone).blocked) == (60, False)


@pytest.mark.parametrize("most", [1, 3, 5])
def test_c17_the_first_queue_s_turns_are_told_though_the_second_is_full_as_well(most):
    """Over 1.0 each link is stopped by its own queue."""
    for face in faces(40, 6, most=most):
        assert face.goes_on_at < face.top
        assert face.stops
