"""Flow control as formulas: the fact sheet's worked numbers, and laws on generated ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import serial
from workbench.amqp10.flow import (
    ReceiverLinkFlow,
    SenderLinkFlow,
    SessionFlow,
    remote_incoming_window,
)
from workbench.serial import link_credit_snd

STARTS = [0, 10, 2147483640, 4294967290]
SERIALS = st.one_of(st.integers(0, serial.MAX), st.sampled_from(STARTS))
rules = settings(derandomize=True, deadline=None, max_examples=200)


@pytest.mark.parametrize(
    ("delivery_count_rcv", "link_credit_rcv", "delivery_count_snd", "credit"),
    [
        (20, 6, 21, 5),  # a grant of 6 crosses one message
        (4294967294, 6, 1, 3),  # the counts have wrapped
        (20, 0, 23, 0),  # stopped while three are in flight: floored
        (20, 2, 23, 0),
        (0, 4294967295, 0, 4294967295),  # the largest credit there is
        (7, 3, 7, 3),
        (9, 4294967295, 7, 4294967295),  # a receiver that counts what was not sent
    ],
)
def test_senders_credit_after_a_flow(
    delivery_count_rcv, link_credit_rcv, delivery_count_snd, credit
):
    """dc(rcv) + credit(rcv) - dc(snd), floored at 0 [2.6.7]."""
    assert link_credit_snd(delivery_count_rcv, link_credit_rcv, delivery_count_snd) == credit


@pytest.mark.parametrize(
    ("next_incoming_id", "incoming_window", "next_outgoing_id", "window"),
    [(10, 4, 11, 3), (10, 4, 14, 0), (10, 0, 12, 0), (4294967294, 5, 1, 2), (0, 0, 0, 0)],
)
def test_remote_incoming_window_after_a_flow(
    next_incoming_id, incoming_window, next_outgoing_id, window
):
    """next-incoming-id + incoming-window - own next-outgoing-id [2.5.6]."""
    assert remote_incoming_window(next_incoming_id, incoming_window, next_outgoing_id) == window


def test_drain_of_the_largest_credit():
    """A credit may be larger than one serial step: 4294967295 moves the count all the way round."""
    link = SenderLinkFlow.starting_at(5)
    link.link_credit = 4294967295
    assert link.advance() == 4294967295
    assert link.delivery_count == 4


def test_receiver_follows_a_count_that_advances_by_itself():
    """After a drain answer the credit shrinks by what the count has moved [2.6.7]."""
    link = ReceiverLinkFlow(delivery_count=4294967290, link_credit=10)
    assert link.advanced_to(serial.add(4294967290, 10)) == 0
    assert link.advanced_to(serial.add(4294967290, 3)) == 7
    assert link.advanced_to(serial.add(4294967290, 30)) == 0, "floored"
    with pytest.raises(ValueError, match="behind"):
        link.advanced_to(4294967289)


@pytest.mark.parametrize("credit", [2147483647, 2147483648, 2147483653, 4294967295])
@pytest.mark.parametrize("start", STARTS)
def test_receiver_follows_a_drain_of_more_than_half_the_circle(start, credit):
    """Credit is a uint: all of it may be given back at once, which moves the count past 2^31."""
    sender = SenderLinkFlow.starting_at(start)
    sender.link_credit = credit
    receiver = ReceiverLinkFlow(delivery_count=start, link_credit=credit)
    sender.advance()
    assert receiver.advanced_to(sender.delivery_count) == 0
    assert receiver.advanced_to(serial.add(start, 7)) == credit - 7
    assert receiver.advanced_to(start) == credit


def test_deliveries_beyond_the_credit_leave_it_at_zero():
    """What was sent before a cut was seen still arrives [2.6.7]."""
    link = ReceiverLinkFlow(delivery_count=7, link_credit=1, available=1)
    link.take_delivery()
    link.take_delivery()
    assert (link.delivery_count, link.link_credit, link.available) == (9, 0, 0)


def test_before_the_senders_attach_a_receiver_has_no_count():
    """The field stays absent in its flows until then [2.7.4]."""
    link = ReceiverLinkFlow()
    assert link.delivery_count is None
    assert link.advanced_to(3) == 0


def test_a_flow_without_next_incoming_id_means_the_initial_outgoing_id():
    """The peer had not seen our begin when it spoke [2.5.6]."""
    session = SessionFlow.starting_at(40, incoming_window=5, outgoing_window=7)
    for _ in range(3):
        session.send_transfer()
    assert session.window_after(None, 5) == 2
    assert session.window_after(42, 5) == 4


def test_a_peer_cannot_have_received_what_was_not_sent():
    """next-incoming-id may not lead next-outgoing-id."""
    session = SessionFlow.starting_at(5, incoming_window=5, outgoing_window=7)
    with pytest.raises(ValueError, match="next-incoming-id 7 leads next-outgoing-id 5"):
        session.window_after(7, 3)


def test_the_largest_window_ever_told_is_what_the_peer_may_use():
    """A smaller one may still be under way to the peer: frames up to the larger are right."""
    session = SessionFlow.starting_at(0, incoming_window=4, outgoing_window=7)
    session.announce()
    session.take_transfer()
    session.incoming_window = 0
    session.announce()
    assert session.frames_allowed == 4
    session.incoming_window = 10
    session.announce()
    assert session.frames_allowed == 11


@rules
@given(SERIALS, st.integers(0, 1000), st.integers(0, 1000), SERIALS)
def test_credit_does_not_depend_on_where_counting_begins(start, in_flight, credit, other):
    """The same numbers from another initial delivery-count give the same credit [2.6.7]."""
    at = link_credit_snd(start, credit, serial.add(start, in_flight))
    assert at == link_credit_snd(other, credit, serial.add(other, in_flight))
    assert at == max(0, credit - in_flight)
