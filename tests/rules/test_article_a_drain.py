"""Rows A42 to A50, A60 and A61: drain, echo, stop, hand-over, properties, and who owns what."""

import pytest

from tests.amqp10.pair import LinkPair
from tests.rules.runs import STARTS, begun, both, flows, ledger, then, transfers
from workbench.amqp10.performatives import Flow
from workbench.peers.getter import Ending
from workbench.scenarios.asking import gets_of
from workbench.scenarios.handover import seen


def test_a42_drain_is_false_until_the_receiver_says_so_and_the_sender_repeats_its_last_word():
    """A42: the flag in the sender's flow is the last one received."""
    played = begun("asking", messages=0)
    granted = then(played, "grant", link_credit=3)
    (plain,) = flows(then(granted, "echo"), "broker")
    assert not plain.frame.get("drain")
    drained = then(granted, "drain")
    assert flows(drained, "broker")[-1].frame["drain"] is True
    again = then(then(drained, "grant", link_credit=2), "echo")
    assert not flows(again, "broker")[-1].frame.get("drain")


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("ready", "credit"),
    [(3, 10), (0, 1), (1, 2), (9, 10), (3, 2147483653), (0, 4294967295), (2, 4294967295)],
)
def test_a43_drain_uses_the_credit_up_or_gives_it_back(ready, credit, start):
    """A43: 3 ready, credit 10, drain: 3 transfers, delivery-count + 10 in all, credit 0."""
    played = begun("asking", messages=ready, initial_delivery_count=start)
    granted = played.act(played.start_seq, "grant", link_credit=credit)
    drained = granted.act(flows(granted, "client")[0].seq, "drain")
    assert len(transfers(drained)) == ready
    (answer,) = flows(drained, "broker")
    assert answer.frame["delivery_count"] == (start + credit) % 2**32
    assert answer.frame["link_credit"] == 0
    assert both(drained) == (0, 0)
    assert both(drained, "delivery_count") == ((start + credit) % 2**32,) * 2


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("credit", [1, 7, 200])
def test_a44_drain_on_an_empty_queue_is_answered_at_once_with_a_flow_alone(credit, start):
    """A44: 0 transfers, 1 flow with delivery-count + credit."""
    empty = begun("asking", messages=0, initial_delivery_count=start)
    played = then(empty, "grant", link_credit=credit)
    drained = then(played, "drain")
    (answer,) = flows(drained, "broker")
    asked = flows(drained, "client", "received")[-1]
    assert transfers(drained) == []
    assert answer.t_us == asked.t_us
    assert answer.frame["delivery_count"] == (start + credit) % 2**32
    assert answer.frame["link_credit"] == 0


@pytest.mark.parametrize("timeout_us", [500, 2500, 4000, 5000, 6500, 9000])
@pytest.mark.parametrize("publish_at_us", [None, 0, 3000, 6000])
def test_a45_a_timed_get_ends_with_a_message_or_without_and_its_credit_is_gone(
    timeout_us, publish_at_us
):
    """A45: figure 2.44: after the drain credit is 0, and it is message xor nothing."""
    played = begun(
        "asking", mode="get-with-timeout", timeout_us=timeout_us, publish_at_us=publish_at_us
    )
    (get,) = gets_of(played)
    arrived = len(transfers(played, "received"))
    assert get.ending is not None
    assert arrived == (0 if get.ending is Ending.NOTHING else 1)
    assert both(played) == (0, 0)


@pytest.mark.parametrize(("latency_us", "stop_after"), [(1000, 4), (1000, 1), (300, 9), (4000, 2)])
def test_a47_after_the_answer_to_credit_0_with_echo_no_transfer_comes(latency_us, stop_after):
    """A47: figure 2.46: late ones come before the answer, none after it."""
    played = begun(
        "asking", mode="stop", messages=300, n=200, stop_after=stop_after, latency_us=latency_us
    )
    (answer,) = flows(played, "broker", "received")
    assert not answer.frame.get("echo")
    stop = flows(played, "client")[-1]
    late = [row for row in transfers(played, "received") if row.seq > stop.seq]
    assert late
    assert all(row.seq < answer.seq for row in late)
    more = then(played, "publish", count=5)
    assert len(transfers(more)) == len(transfers(played))


@pytest.mark.parametrize("stopped_after", [1, 4, 8])
def test_a48_credit_0_pauses_and_n_resumes_on_the_same_link_in_order(stopped_after):
    """A48: no detach, no second attach, messages in the order they came."""
    played = then(begun("asking", messages=9), "grant", link_credit=stopped_after)
    paused = then(played, "stop")
    assert len(transfers(paused)) == stopped_after
    resumed = then(paused, "grant", link_credit=9)
    assert {row.attach_no for row in transfers(resumed)} == {1}
    assert not [row for row in resumed.rows if row.kind == "detach"]
    payloads = resumed.world.peers["consumer"].payloads
    assert payloads == sorted(payloads)
    assert len(payloads) == 9


@pytest.mark.parametrize("leave_after", [1, 2, 4])
def test_a49_stop_acknowledge_detach_hands_over_without_redelivery_and_in_order(leave_after):
    """A49: 0 redeliveries, order kept."""
    arrivals = seen(begun("handover", way="graceful", leave_after=leave_after, link_credit=8))
    assert not any(one.again for one in arrivals)
    assert [one.message for one in arrivals] == sorted(one.message for one in arrivals)
    assert [one.consumer for one in arrivals if one.consumer == "b"]


@pytest.mark.parametrize("settled", [0, 1, 3])
def test_a50_detaching_requeues_and_the_next_one_begins_with_the_lowest_unacknowledged(settled):
    """A50: original order; what was acknowledged does not come again."""
    played = begun("handover", link_credit=5)
    if settled:
        played = then(played, "acknowledge", count=settled)
    gone = then(played, "leave", way="outright")
    at_b = [one.message for one in seen(gone) if one.consumer == "b"]
    assert at_b == list(range(settled, settled + 5))


def test_a60_unknown_properties_of_a_flow_are_ignored():
    """A60: nothing changes and nothing is answered (the note itself is hypothetical)."""
    played = then(begun("asking", messages=3), "grant", link_credit=5)
    noted = then(played, "note", text="somewhere else")
    assert both(noted) == both(played)
    assert both(noted, "delivery_count") == both(played, "delivery_count")
    assert len(flows(noted, "broker")) == len(flows(played, "broker"))


@pytest.mark.parametrize("active", [True, False])
def test_a60_a_client_ignores_the_unknown_properties_of_a_broker_s_flow(active):
    """A60: RabbitMQ 4.3 tells `rabbitmq:active`; who does not know it counts on as before."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    before = pair.receiver.ledger()
    sent = len(pair.receiving.sent)
    pair.sender.flow(properties={"rabbitmq:active": active})
    pair.pump()
    assert pair.receiver.ledger() == before
    assert len(pair.receiving.sent) == sent
    assert not pair.receiving.violations


@pytest.mark.parametrize("value", [0, 1, 77, 4294967295])
def test_a61_the_other_end_s_fields_in_a_flow_have_no_effect(value):
    """A61: a receiver's available and a sender's link-credit are not its own to set [2.6.7]."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    session = {
        "incoming_window": 100,
        "next_outgoing_id": 0,
        "outgoing_window": 100,
        "next_incoming_id": 0,
    }
    pair.sender.available = 3
    from_receiver = Flow(
        **session, handle=pair.receiver.handle, delivery_count=0, link_credit=5, available=value
    )
    pair.inject(pair.receiving, from_receiver)
    assert pair.sender.available == 3
    assert pair.sender.delivery_count == 0
    from_sender = Flow(
        **session,
        handle=pair.sender.handle,
        delivery_count=0,
        link_credit=value,
        available=3,
        drain=True,
    )
    pair.inject(pair.sending, from_sender)
    assert pair.receiver.credit == 5
    assert pair.receiver.counters.drain is False
    assert not pair.client.violations
    assert not pair.server.violations


def test_a61_the_sender_owns_available_and_delivery_count_and_the_receiver_hears_of_them():
    """A61: the receiver's copies follow the sender's flow."""
    played = then(begun("asking", messages=4), "grant", link_credit=1)
    echoed = then(played, "echo")
    assert ledger(echoed, "client:receiver")["available"] == 3
