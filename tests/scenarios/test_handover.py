"""A queue with a single active consumer changes hands."""

import contextlib
import re
from pathlib import Path

import pytest

from workbench.amqp10.messaging import decode_message
from workbench.capture.importer import import_capture
from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.handover import seen


def handed(**parameters):
    """A run of the scenario."""
    return run("handover", parameters=parameters)


def numbers(played, consumer=None):
    """Numbers of the messages that arrived, in order."""
    return [one.message for one in seen(played) if consumer is None or one.consumer == consumer]


@pytest.mark.parametrize("latency_us", [0, 100, 1000, 5000])
@pytest.mark.parametrize("leave_after", [1, 3, 5])
def test_a_graceful_hand_over_delivers_nothing_twice_and_keeps_the_order(latency_us, leave_after):
    """Stop with echo, take what still comes, settle, detach: 0 redeliveries."""
    played = handed(way="graceful", latency_us=latency_us, leave_after=leave_after, link_credit=8)
    arrivals = seen(played)
    assert not any(one.again for one in arrivals)
    assert numbers(played) == sorted(numbers(played))
    assert {one.consumer for one in arrivals} == {"a", "b"}


@pytest.mark.parametrize("leave_after", [1, 3, 5])
def test_detaching_outright_returns_what_was_held_in_the_original_order(leave_after):
    """The next consumer's first message is the lowest one that was not acknowledged."""
    played = handed(way="outright", leave_after=leave_after)
    assert numbers(played, "b")[0] == 0
    assert numbers(played, "b") == sorted(numbers(played, "b"))
    assert any(one.again for one in seen(played))


def test_what_was_acknowledged_before_detaching_does_not_come_again():
    """Two of five are settled: the next one begins with the third."""
    played = handed(link_credit=5)
    some = played.act(played.rows[-1].seq, "acknowledge", count=2)
    gone = some.act(some.rows[-1].seq, "leave", way="outright")
    assert numbers(gone, "b")[:3] == [2, 3, 4]


def test_a_waiting_consumer_is_told_that_nothing_is_available():
    """Its echo is answered with available 0, whatever its credit and however much is ready."""
    played = handed(link_credit=0)
    granted = played.act(played.rows[-1].seq, "grant", link_credit=5, consumer="b")
    asked = granted.act(granted.rows[-1].seq, "echo", consumer="b")
    answer = [
        row.frame
        for row in asked.rows
        if row.kind == "flow" and row.event == "received" and row.vantage == "client:b"
    ][-1]
    assert answer["available"] == 0
    assert answer["link_credit"] == 5
    assert numbers(asked, "b") == []


def test_the_queue_takes_messages_back_before_the_next_consumer_is_active():
    """The rows of the trace tell it in that order."""
    played = handed(way="outright")
    events = [row.event for row in played.rows if row.event in ("requeue", "activate")]
    assert events == ["activate", "requeue", "activate"]


def test_consumers_take_over_in_the_order_in_which_they_attached():
    """When the second leaves too, the third one goes on."""
    played = handed(way="graceful", consumers=3, link_credit=2, leave_after=1)
    gone = played.act(played.rows[-1].seq, "leave", consumer="b")
    assert list(dict.fromkeys(one.consumer for one in seen(gone))) == ["a", "b", "c"]
    assert numbers(gone) == sorted(numbers(gone))


def test_leaving_twice_and_acts_of_who_is_gone_are_refused():
    """The text says who is attached."""
    played = handed(way="graceful")
    with pytest.raises(ActionError, match="attached: b"):
        played.act(played.rows[-1].seq, "leave", consumer="a")
    with pytest.raises(ActionError, match="no consumer 'c'"):
        played.act(played.rows[-1].seq, "echo", consumer="c")


def test_the_way_of_0_9_1_is_refused_with_what_it_is_and_what_is_legal():
    """Cancelling with unsettled messages belongs to channels."""
    text = r"basic\.cancel of AMQP 0-9-1.*legal: one of"
    with pytest.raises(ParameterError, match=text):
        handed(way="cancel")
    with pytest.raises(ActionError, match=text):
        leave(handed(), way="cancel")


def leave(played, **arguments):
    """The run in which somebody leaves at rest."""
    return played.act(played.rows[-1].seq, "leave", **arguments)


def test_what_was_handed_out_before_is_marked_and_nothing_else_is():
    """first-acquirer is false for all that the leaver held, as RabbitMQ says it too [3.2.1]."""
    played = handed(way="outright", leave_after=2, link_credit=5, messages=8)
    at_b = [one for one in seen(played) if one.consumer == "b"]
    held = 5  # credit of the leaver: every one of these had left the queue
    assert [one.marked for one in at_b] == [one.message < held for one in at_b]


@pytest.mark.parametrize("way", ["graceful", "outright"])
def test_a_message_that_comes_again_is_marked(way):
    """No second copy without the header's word [3.2.1]."""
    arrivals = seen(handed(way=way, link_credit=4))
    assert all(one.marked for one in arrivals if one.again)
    assert any(one.marked for one in arrivals) is (way == "outright")


def test_a_waiting_consumer_that_drains_gets_nothing_and_has_no_credit_left():
    """All its credit comes back at once, though messages are ready and it is not its turn."""
    played = handed(link_credit=0)
    granted = played.act(played.rows[-1].seq, "grant", link_credit=7, consumer="b")
    drained = granted.act(granted.rows[-1].seq, "drain", consumer="b")
    (answer,) = [
        row.frame
        for row in drained.rows
        if row.kind == "flow" and row.event == "received" and row.vantage == "client:b"
    ]
    assert (answer["delivery_count"], answer["link_credit"], answer["drain"]) == (7, 0, True)
    assert answer["available"] == 0
    assert seen(drained) == []


def test_a_waiting_consumer_s_sender_has_no_message_for_it():
    """Its brake is no-message, whatever its credit; the active one's is link-credit."""
    played = handed(link_credit=3)
    brakes = {}
    for row in played.rows:
        if row.vantage == "broker" and row.link in ("a", "b") and row.brakes is not None:
            brakes[row.link] = row.brake
    assert brakes == {"a": "link-credit", "b": "no-message"}


def test_the_new_active_consumer_begins_with_the_credit_it_had_while_waiting():
    """No further flow of its own is needed [rmq43 capture h]."""
    played = leave(handed(link_credit=3), way="outright")
    activated = [row.seq for row in played.rows if row.event == "activate"][-1]
    flows_of_b = [
        row
        for row in played.rows
        if row.kind == "flow" and row.event == "sent" and row.vantage == "client:b"
    ]
    assert all(row.seq < activated for row in flows_of_b)
    assert len(numbers(played, "b")) == 3


CAPTURE = Path(__file__).parents[2] / "data/captures/rmq43_h_sac_handover.pcapng"


def test_real_rabbitmq_hands_over_the_same_messages_in_the_same_order_and_marks_the_same():
    """The script of capture h played here: A stops and leaves, B settles 3 of 5 and detaches."""
    rows = import_capture(CAPTURE).rows
    ready, first, second, third, settled = 30, 5, 5, 10, 3  # of the capture's note
    theirs: dict[str, list[tuple[int, bool]]] = {}
    for row in rows:
        if row.kind == "transfer" and row.from_peer == "broker":
            header, *_, body = decode_message(row.raw[-row.body_bytes :])
            number = int(re.search(rb"\d+", bytes(body.value))[0])
            marked = header.first_acquirer is False
            theirs.setdefault(row.connection, []).append((number, marked))

    played = handed(messages=ready, consumers=3, link_credit=0)
    for consumer, link_credit in (("a", first), ("b", second), ("c", third)):
        played = played.act(
            played.rows[-1].seq, "grant", consumer=consumer, link_credit=link_credit
        )
    waiting = played.act(played.rows[-1].seq, "echo", consumer="b")
    told = [row.frame for row in waiting.rows if row.vantage == "client:b" and row.kind == "flow"]
    played = leave(waiting, consumer="a", way="graceful")
    played = played.act(played.rows[-1].seq, "acknowledge", consumer="b", count=settled)
    played = leave(played, consumer="b", way="outright")
    ours: dict[str, list[tuple[int, bool]]] = {}
    for one in seen(played):
        ours.setdefault(one.consumer, []).append((one.message, one.marked))
    assert list(ours.values()) == list(theirs.values())

    to_b = [
        row.frame
        for row in rows
        if row.kind == "flow" and row.from_peer == "broker" and row.connection == list(theirs)[1]
        and row.frame.get("handle") is not None
    ]  # fmt: skip
    for name in ("delivery_count", "link_credit", "available"):
        assert told[-1][name] == to_b[0][name]


@pytest.mark.parametrize("way", ["graceful", "outright"])
def test_who_was_made_to_leave_leaves_once(way):
    """What comes before it has gone may be the last that it wanted: it leaves already."""
    played = run("handover", "rmq4.3", {"way": "graceful", "latency_us": 100})
    for row in played.rows[played.start_seq :]:
        with contextlib.suppress(ActionError):  # it is gone, or leaving
            assert played.act(row.seq, "leave", way=way).rested
