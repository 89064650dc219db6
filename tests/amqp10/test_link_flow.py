"""Credit, drain, echo and available over a link, looked at with frames in flight."""

import pytest

from tests.amqp10.pair import LinkPair
from tests.amqp10.talk import STARTS, Talk
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import FlowReceived, ProtocolViolation
from workbench.amqp10.performatives import Flow, Transfer
from workbench.amqp10.settings import CreditOverrun

WORDS = {
    # [2.6.7]
    "credit is absolute, not added": """
        grant 50 -> credit 0/50
        pump; grant 50; pump -> credit 50/50""",
    # 20 + 6 - 21 = 5
    "a grant that crosses a transfer counts from its delivery-count": """
        grant 23; pump; send 20; pump -> credit 3/3
        grant 6; send 1 -> credit 2/6
        pump -> credit 5/5 | count 21/21""",
    "a cut below what is in flight stops at zero, at both ends": """
        grant 5; pump; grant 1; send 3 -> credit 2/1
        pump -> credit 0/0 | count 3/3""",
    "any uint is a credit": """
        grant 2147483648; pump; send 1; pump -> credit 2147483647/2147483647
        grant 4294967295; pump; send 1; pump -> credit 4294967294/4294967294""",
    # In-flight transfers may still come; nothing does after the answer, which has no echo [2.6.10].
    "stopping with credit 0 and echo gets a last word": """
        grant 5; pump; send 1; stop; send 1; pump -> answers 0@2 | count 2/2""",
    # Without handle it asks for the session's state alone [2.7.4].
    "an echo on the session is answered without a link": """
        ask; pump -> answers session""",
    # The count advances to the limit, the credit is 0, drain is true in the answer [2.6.7].
    "drain with nothing available gives all credit back": """
        grant 10; pump; send 1; drain 10; pump -> answers 0@10! | credit 0/0 | count 10/10
        grant 1; pump -> credit 1/1""",
    # Send everything available first [2.6.7]: what that is only the owner knows.
    "drain waits for the owner while messages are available": """
        available 2; drain 5; pump -> draining True | credit 5/5
        send 2 -> available 0/0
        give_back 3; pump -> credit 0/0 | count 5/5""",
    # The receiver sees its credit reach 0 by itself [2.6.8].
    "drain that meets the last transfer needs no answer": """
        grant 1; pump; drain 1; send 1; pump -> credit 0/0 | count 1/1 | answers -""",
    # It is the receiver's; the sender keeps the last value it heard [2.6.7].
    "drain ends with the next flow that has none": """
        drain 2; pump -> draining True
        grant 2; pump -> draining False | credit 2/2""",
    # The last value heard, less what has come since, floored at 0 [2.6.7].
    "available is told in the sender's flows and followed": """
        grant 5; pump; available 1; tell; pump -> available 1/1
        send 2; pump -> available 0/0 | count 2/2""",
    # [2.5.6, 2.6.14]
    "a message of many frames costs one credit, and each frame one of the window": """
        grant 3; pump; send 1 size=1200; pump -> credit 2/2 | count 1/1
        send 1; pump -> credit 1/1 | count 2/2""",
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("script", WORDS.values(), ids=WORDS)
def test_credit_drain_and_echo_with_frames_in_flight(script, start):
    """From any initial delivery-count; and an observer on the wire knows the sender's counters."""
    Talk(start).play(script)


def test_nothing_moves_until_the_receiver_speaks():
    """Initially link-credit is 0 [2.6.7]."""
    pair = LinkPair()
    with pytest.raises(LocalProtocolError, match="link-credit 0 at delivery-count 0"):
        pair.sender.send(b"x")


def test_giving_credit_back_unasked_is_refused():
    """Only drain takes credit away from the sender."""
    pair = LinkPair(credit=5)
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
    pair = LinkPair(credit=9)
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
