"""Credit, drain, echo and available over a link, looked at with frames in flight."""

import pytest

from tests.amqp10.pair import LinkPair
from workbench import serial
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import FlowReceived, ProtocolViolation
from workbench.amqp10.performatives import Flow, Transfer
from workbench.amqp10.settings import CreditOverrun

STARTS = [0, 10, 2147483640, 4294967290]


def sender_at(start, **options):
    return LinkPair(sender_terms={"initial_delivery_count": start}, **options)


def test_nothing_moves_until_the_receiver_speaks():
    """Initially link-credit is 0 [2.6.7]."""
    pair = LinkPair()
    with pytest.raises(LocalProtocolError, match="link-credit 0 at delivery-count 0"):
        pair.sender.send(b"x")


@pytest.mark.parametrize("start", STARTS)
def test_credit_is_absolute_not_added(start):
    """Granting 50 twice makes 50 [2.6.7]."""
    pair = sender_at(start)
    pair.receiver.grant(50)
    assert pair.link_credit() == (0, 50), "the flow is still on the wire"
    pair.pump()
    pair.receiver.grant(50)
    pair.pump()
    assert pair.link_credit() == (50, 50)


@pytest.mark.parametrize("start", STARTS)
def test_a_grant_that_crosses_a_transfer_counts_from_its_delivery_count(start):
    """20 + 6 - 21 = 5: the fact sheet's worked numbers, from any initial delivery-count."""
    pair = sender_at(start)
    pair.receiver.grant(23)
    pair.pump()
    for _ in range(20):
        pair.sender.send(b"x", settled=True)
    pair.pump()
    assert pair.link_credit() == (3, 3)
    pair.receiver.grant(6)
    pair.sender.send(b"x", settled=True)
    assert pair.link_credit() == (2, 6)
    pair.pump()
    assert pair.link_credit() == (5, 5)
    assert pair.delivery_count() == (serial.add(start, 21),) * 2


def test_a_cut_below_what_is_in_flight_stops_at_zero():
    """Lowered credit never goes negative at either end, and both ends agree in the end [2.6.7]."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    pair.receiver.grant(1)
    for _ in range(3):
        pair.sender.send(b"x", settled=True)
    assert pair.link_credit() == (2, 1)
    pair.pump()
    assert pair.link_credit() == (0, 0)
    assert pair.delivery_count() == (3, 3)


def test_stopping_with_credit_0_and_echo_gets_a_last_word():
    """In-flight transfers may still come; nothing does after the answering flow [2.6.10]."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    pair.sender.send(b"x", settled=True)
    pair.receiver.stop_sender()
    pair.sender.send(b"x", settled=True)
    pair.pump()
    answer = pair.receiving.events[-1]
    assert isinstance(answer, FlowReceived)
    assert answer.frame.echo is None, "an answer to echo has no echo"
    assert (answer.frame.link_credit, answer.frame.delivery_count) == (0, 2)


def test_echo_on_the_session_is_answered_without_a_link():
    """Without handle it asks for the session's state alone [2.7.4]."""
    pair = LinkPair()
    pair.receiver_session.flow(echo=True)
    pair.pump()
    answer = pair.sending.frames(Flow)[-1]
    assert answer.handle is None
    assert answer.echo is None


@pytest.mark.parametrize("start", STARTS)
def test_drain_with_nothing_available_gives_all_credit_back(start):
    """The count advances to the limit, the credit is 0, drain is true in the answer [2.6.7]."""
    pair = sender_at(start)
    pair.receiver.grant(10)
    pair.pump()
    pair.sender.send(b"x", settled=True)
    pair.receiver.grant(10, drain=True)
    pair.pump()
    answer = pair.sending.frames(Flow)[-1]
    assert (answer.link_credit, answer.drain) == (0, True)
    assert answer.delivery_count == serial.add(start, 10)
    assert pair.link_credit() == (0, 0)
    assert pair.delivery_count() == (serial.add(start, 10),) * 2


def test_drain_waits_for_the_owner_while_messages_are_available():
    """Send everything available first [2.6.7]: what that is only the owner knows."""
    pair = LinkPair()
    pair.sender.available = 2
    pair.receiver.grant(5, drain=True)
    pair.pump()
    assert pair.sender.drain
    assert pair.link_credit() == (5, 5)
    pair.sender.send(b"a", settled=True)
    pair.sender.send(b"b", settled=True)
    assert pair.sender.available == 0
    assert pair.sender.drained() == 3
    pair.pump()
    assert pair.link_credit() == (0, 0)
    assert pair.delivery_count() == (5, 5)


def test_drain_that_meets_the_last_transfer_needs_no_answer():
    """Credit is used up by what crossed: the receiver sees it reach 0 by itself [2.6.8]."""
    pair = LinkPair()
    pair.receiver.grant(1)
    pair.pump()
    pair.receiver.grant(1, drain=True)
    pair.sender.send(b"x", settled=True)
    pair.pump()
    assert pair.link_credit() == (0, 0)
    assert pair.delivery_count() == (1, 1)
    assert pair.sending.frames(Flow) == []


def test_giving_credit_back_unasked_is_refused():
    """Only drain takes credit away from the sender."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    with pytest.raises(LocalProtocolError, match="not asked link l to drain"):
        pair.sender.drained()
    assert pair.link_credit() == (5, 5)


def test_a_link_may_leave_its_credit_to_its_owner():
    """The flow is heard, drain too, and what is wrong with it is told; the credit stays."""
    pair = LinkPair()
    pair.sender.credit_by_owner = True
    pair.receiver.grant(5, drain=True)
    pair.pump()
    assert (pair.sender.credit, pair.sender.drain) == (0, True)
    assert pair.sending.heard(FlowReceived)[-1].frame.link_credit == 5


def test_drain_ends_with_the_next_flow_that_has_none():
    """drain is the receiver's; the sender keeps the last value it heard [2.6.7]."""
    pair = LinkPair()
    pair.receiver.grant(2, drain=True)
    pair.pump()
    assert pair.sender.drain
    pair.receiver.grant(2)
    pair.pump()
    assert not pair.sender.drain
    assert pair.link_credit() == (2, 2)


def test_available_is_told_in_the_senders_flows_and_followed():
    """The receiver keeps the last value heard, less what has come since, floored at 0 [2.6.7]."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    pair.sender.available = 1
    pair.sender.flow()
    pair.pump()
    assert pair.receiver.available == 1
    for _ in range(2):
        pair.sender.send(b"x", settled=True)
    pair.pump()
    assert pair.receiver.available == 0
    assert pair.delivery_count() == (2, 2), "sending more than was said is legal"


def test_available_may_be_known_before_the_attach():
    """The first row of a link already has it."""
    pair = LinkPair()
    pair.answers = False
    pair.client_session.attach_receiver("other", "q")
    pair.pump()
    link = pair.server_session.links[-1]
    link.available = 7
    link.accept(initial_delivery_count=3)
    assert pair.server.scopes[-1].link_ledger["available"] == 7
    assert pair.server.scopes[-1].link_ledger["delivery_count"] == 3


def test_flow_properties_are_carried():
    """They reach the peer's owner with the event [2.7.4]."""
    pair = LinkPair()
    pair.sender.flow(properties={"rabbitmq:active": True})
    pair.pump()
    assert pair.receiving.heard(FlowReceived)[-1].frame.properties == {"rabbitmq:active": True}


def test_a_flow_sent_before_the_senders_attach_has_no_delivery_count():
    """The receiver leaves it out, and the sender counts from its initial one [2.6.7, 2.7.4]."""
    pair = LinkPair()
    late = pair.client_session.attach_receiver("late", "q")
    late.grant(4)
    assert pair.client.frames(Flow)[-1].delivery_count is None
    pair.deliver(pair.client, 2)
    link = pair.server_session.links[-1]
    assert link.name == "late"
    pair.pump()
    assert link.credit == late.credit == 4
    assert late.delivery_count == 0


def test_repeating_the_last_flow_changes_nothing():
    """Two equal flows are one [2.6.7]."""
    pair = LinkPair()
    pair.receiver.grant(9)
    pair.pump()
    pair.sender.send(b"x", settled=True)
    before = pair.sender.ledger()
    flow = pair.receiving.frames(Flow)[-1]
    events = pair.inject(pair.receiving, flow)
    assert not any(isinstance(event, ProtocolViolation) for event in events)
    assert pair.sender.ledger() == before


@pytest.mark.parametrize("credit", [-1, 4294967296, 1.5, True, None])
def test_absurd_credit_is_refused_and_changes_nothing(credit):
    """link-credit is a uint: 0 to 4294967295."""
    pair = LinkPair()
    pair.receiver.grant(3)
    before, sent = pair.receiving.connection.overview(), len(pair.receiving.sent)
    with pytest.raises(LocalProtocolError, match="0 to 4294967295"):
        pair.receiver.grant(credit)
    assert pair.receiving.connection.overview() == before
    assert len(pair.receiving.sent) == sent


def overrun(policy):
    pair = LinkPair(receiver_terms={}, answers=False)
    pair.receiver.credit_overrun = policy
    pair.receiver.grant(1)
    pair.pump()
    pair.sender.send(b"x", settled=True)
    pair.pump()
    frame = Transfer(handle=0, delivery_id=1, delivery_tag=b"t", settled=True)
    return pair, pair.inject(pair.sending, frame, b"y")


def test_a_tolerant_receiver_takes_a_delivery_beyond_the_credit():
    """It may have been sent before a cut was seen: the receiver may process it [2.6.7]."""
    pair, (event,) = overrun(CreditOverrun.TAKE)
    assert event.delivery.payload == b"y"
    assert (pair.receiver.credit, pair.receiver.delivery_count) == (0, 2)


def test_a_strict_receiver_detaches_at_a_delivery_beyond_the_credit():
    """With amqp:link:transfer-limit-exceeded; the link ends, the session lives [2.6.7, 2.6.5]."""
    pair, (event,) = overrun(CreditOverrun.DETACH)
    assert event.condition == "amqp:link:transfer-limit-exceeded"
    pair.answers = True
    pair.receiving.connection.answer(event)
    pair.pump()
    assert not pair.receiver.attached
    assert pair.sender.error.condition == "amqp:link:transfer-limit-exceeded"
    assert pair.sender_session.mapped


def test_a_sender_whose_count_goes_back_is_wrong():
    """delivery-count only moves on: what came is counted."""
    pair = LinkPair(answers=False)
    pair.receiver.grant(5)
    pair.pump()
    pair.sender.send(b"x", settled=True)
    pair.pump()
    flow = Flow(
        next_incoming_id=0, incoming_window=9, next_outgoing_id=1, outgoing_window=9, handle=0,
        delivery_count=0, link_credit=5,
    )  # fmt: skip
    (event,) = pair.inject(pair.sending, flow)
    assert "delivery-count 0 is behind 1" in event.description
    assert pair.receiver.delivery_count == 1
