"""Deliveries over a link: frames of one message, settlement in all modes, and what is refused."""

import pytest

from tests.amqp10.pair import LinkPair
from tests.amqp10.talk import STARTS, Talk
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import (
    DeliveryAborted,
    DeliveryReceived,
    PartReceived,
)
from workbench.amqp10.frame import item_size
from workbench.amqp10.messaging import Accepted, Received, Rejected
from workbench.amqp10.performatives import (
    Disposition,
    Error,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings

SMALL = ConnectionSettings(max_frame_size=512)
BODY = bytes(range(256)) * 8


def received(pair):
    return [event.delivery for event in pair.receiving.heard(DeliveryReceived)]


def test_a_message_is_split_by_the_peers_max_frame_size():
    """No frame is larger; one credit for all of them, one of the window for each [2.6.14]."""
    pair = LinkPair(credit=100, client=SMALL)
    window = pair.sender_session.counters.remote_incoming_window
    delivery = pair.sender.send(BODY)
    frames = list(pair.sending.flying)
    assert [item_size(item) for item in frames[:-1]] == [512] * (len(frames) - 1)
    assert item_size(frames[-1]) <= 512
    assert [item.performative.more for item in frames] == [True] * (len(frames) - 1) + [None]
    assert all(item.performative.delivery_id is None for item in frames[1:])
    assert delivery.complete
    assert delivery.frames == len(frames) == 5
    assert pair.sender.credit == 99
    assert pair.sender_session.counters.remote_incoming_window == window - 5
    pair.pump()
    assert [one.payload for one in received(pair)] == [BODY]
    assert len(pair.receiving.heard(PartReceived)) == 4
    assert pair.link_credit() == (99, 99)


def test_a_message_that_just_fits_is_one_frame():
    """Splitting begins one octet later."""
    pair = LinkPair(credit=100, client=SMALL)
    overhead = item_size(_single_frame(LinkPair(credit=100, client=SMALL), b""))
    room = 512 - overhead
    assert item_size(_single_frame(pair, b"x" * room)) == 512
    pair.sender.send(b"x" * (room + 1))
    assert len(pair.sending.flying) == 2


def _single_frame(pair, payload):
    pair.sender.send(payload)
    frame = pair.sending.flying[-1]
    pair.pump()
    return frame


def test_a_delivery_stops_at_a_closed_window_and_goes_on():
    """It stops in its middle, and the peer's flow lets it go on [2.5.6]."""
    pair = LinkPair(credit=100, client=SMALL, client_session=SessionSettings(incoming_window=2))
    delivery = pair.sender.send(BODY)
    assert not delivery.complete
    assert (delivery.frames, len(pair.sending.flying)) == (2, 2)
    with pytest.raises(LocalProtocolError, match="may not interleave"):
        pair.sender.send(b"another")
    pair.pump()
    assert received(pair) == []
    pair.receiver_session.set_incoming_window(2)
    pair.receiver_session.flow()
    pair.pump()
    assert delivery.frames == 4
    pair.receiver_session.set_incoming_window(2)
    pair.receiver_session.flow()
    pair.pump()
    assert delivery.complete
    assert [one.payload for one in received(pair)] == [BODY]
    assert pair.link_credit() == (99, 99)


def test_with_the_window_closed_nothing_may_start():
    """At remote-incoming-window 0 no transfer goes out; flows and dispositions do [2.5.6]."""
    pair = LinkPair(credit=100, client_session=SessionSettings(incoming_window=1))
    pair.sender.send(b"a")
    before = pair.sending.connection.overview()
    with pytest.raises(LocalProtocolError, match="remote-incoming-window is 0"):
        pair.sender.send(b"b")
    assert pair.sending.connection.overview() == before
    pair.sender.flow()
    pair.sender.settle(0)
    pair.pump()
    assert pair.receiving.violations == []


def test_an_aborted_delivery_counts_as_settled():
    """The receiver drops it; its credit stays used [2.7.5]."""
    pair = LinkPair(credit=100, client=SMALL, client_session=SessionSettings(incoming_window=2))
    delivery = pair.sender.send(BODY)
    pair.sender.abort()
    pair.pump()
    assert delivery.aborted
    assert pair.receiving.heard(DeliveryAborted) == [], "its frame waits for the window too"
    assert list(pair.sender.unsettled) == list(pair.receiver.unsettled) == [0]
    pair.receiver_session.set_incoming_window(2)
    pair.receiver_session.flow()
    pair.pump()
    (event,) = pair.receiving.heard(DeliveryAborted)
    assert event.delivery.payload == b""
    assert pair.sender.unsettled == pair.receiver.unsettled == {}
    assert received(pair) == []
    assert pair.link_credit() == (99, 99)
    pair.sender.send(b"next")
    pair.pump()
    assert [one.payload for one in received(pair)] == [b"next"]


def test_abort_is_only_legal_in_the_middle():
    """A complete delivery cannot be taken back."""
    pair = LinkPair(credit=100)
    pair.sender.send(b"x")
    with pytest.raises(LocalProtocolError, match="no delivery is under way"):
        pair.sender.abort()


# -- settlement ------------------------------------------------------------------------------------


SETTLEMENTS = {
    "an empty message is a delivery, of one frame": """
        grant 9; pump; deliver 1 size=0; pump -> got 0 | credit 8/8""",
    # The receiver's disposition settles at both ends [2.6.12].
    **{
        f"mode first settles with the outcome {outcome}": f"""
        grant 9; pump; deliver 1; pump -> unsettled 0/0
        settle 0 None {outcome} -> unsettled 0/
        pump -> unsettled / | states {outcome}!"""
        for outcome in ("accepted", "rejected", "released", "modified")
    },
    # first to last, both included; ids that are settled already are passed over [2.7.6].
    "a disposition speaks for a range, which may wrap": """
        grant 9; pump; deliver 6; pump; settle 3 None released; settle 1 4; pump
        -> unsettled 0,5/0,5 | states released! accepted! accepted! accepted!""",
    # disposition(role sender) from the sender's side: the receiver forgets [2.6.12].
    "the sender may settle by itself": """
        grant 9; pump; deliver 3; pump; settle_first 0 1 released; pump
        -> unsettled 2/2 | states -""",
    # No disposition ever moves a flow counter.
    "acknowledging changes neither credit nor window": """
        grant 2; pump; deliver 2; pump -> credit 0/0 | window 2147483645
        settle 0 1; pump -> credit 0/0 | count 2/2 | window 2147483645""",
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("script", SETTLEMENTS.values(), ids=SETTLEMENTS)
def test_deliveries_and_their_settlement(script, start):
    """From any delivery-id on; an observer on the wire counts what is unsettled, too."""
    Talk(start).play(script)


def test_a_presettled_delivery_is_forgotten_at_once():
    """Nobody hears of it again [2.6.12]."""
    pair = LinkPair(credit=100)
    pair.sender.send(b"x", settled=True)
    pair.pump()
    assert pair.sender.unsettled == pair.receiver.unsettled == {}
    with pytest.raises(LocalProtocolError, match=r"no unsettled delivery of link l in 0\.\.0"):
        pair.receiver.settle(0)


def test_mode_second_lets_the_sender_settle_first():
    """disposition(settled false), then the sender settles, then the receiver [2.6.12]."""
    pair = LinkPair(credit=100, receiver_terms={"rcv_settle_mode": ReceiverSettleMode.SECOND})
    delivery = pair.sender.send(b"x")
    pair.pump()
    pair.receiver.settle(0)
    assert list(pair.receiver.unsettled) == [0]
    with pytest.raises(LocalProtocolError, match="sender settles delivery 0 first"):
        pair.receiver.settle(0, settled=True)
    pair.pump()
    assert delivery.settled
    assert pair.sender.unsettled == pair.receiver.unsettled == {}
    (from_receiver,) = pair.receiving.frames(Disposition)
    (from_sender,) = pair.sending.frames(Disposition)
    assert (from_receiver.settled, from_sender.settled) == (None, True)
    assert from_sender.state == Accepted()


def test_a_state_that_is_no_outcome_settles_nothing():
    """received is not terminal: the sender waits [3.4.1]."""
    pair = LinkPair(credit=100)
    delivery = pair.sender.send(b"x")
    pair.pump()
    pair.receiver.settle(0, state=Received(section_number=0, section_offset=0), settled=False)
    pair.pump()
    assert isinstance(delivery.remote_state, Received)
    assert not delivery.settled
    assert pair.sending.frames(Disposition) == []


def test_a_range_may_not_speak_for_another_links_delivery():
    """delivery-ids belong to the session: a range over two links would settle both [2.7.6]."""
    pair = LinkPair(credit=100)
    other = pair.client_session.attach_receiver("other", "q")
    other.grant(5)
    pair.pump()
    sender = pair.server_session.links[-1]
    pair.sender.send(b"x")
    sender.send(b"x")
    pair.sender.send(b"x")
    pair.pump()
    before = pair.client.connection.overview()
    with pytest.raises(LocalProtocolError, match=r"delivery-id 1 in 0\.\.2 belongs to link other"):
        pair.receiver.settle(0, 2)
    with pytest.raises(LocalProtocolError, match="last comes before first"):
        pair.receiver.settle(2, 0)
    assert pair.client.connection.overview() == before


@pytest.mark.parametrize(
    ("mode", "settled", "sent_settled"),
    [
        (SenderSettleMode.SETTLED, None, True),
        (SenderSettleMode.SETTLED, False, None),
        (SenderSettleMode.UNSETTLED, None, False),
        (SenderSettleMode.UNSETTLED, True, None),
        (SenderSettleMode.MIXED, None, False),
        (SenderSettleMode.MIXED, True, True),
    ],
)
def test_snd_settle_mode_decides_how_deliveries_are_sent(mode, settled, sent_settled):
    """settled only settled, unsettled only unsettled, mixed either [2.8.2]; None is refused."""
    pair = LinkPair(credit=100, sender_terms={"snd_settle_mode": mode})
    if sent_settled is None:
        with pytest.raises(LocalProtocolError, match=f"legal now: settled={not settled}"):
            pair.sender.send(b"x", settled=settled)
        assert pair.sender.credit == 100
    else:
        assert pair.sender.send(b"x", settled=settled).settled is sent_settled


def test_settled_on_a_later_frame_settles_the_whole_delivery():
    """True on any frame counts for all [2.7.5]."""
    pair = LinkPair(credit=100, answers=False)
    pair.inject(pair.sending, Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True), b"a")
    assert list(pair.receiver.unsettled) == [0]
    (event,) = pair.inject(pair.sending, Transfer(handle=0, settled=True), b"b")
    assert event.delivery.settled
    assert event.delivery.payload == b"ab"
    assert pair.receiver.unsettled == {}


# -- rules of delivery-tag and delivery-id ---------------------------------------------------------


def test_delivery_tags_are_unique_among_the_unsettled():
    """A tag is free again once its delivery is settled [2.6.12]."""
    pair = LinkPair(credit=100)
    pair.sender.send(b"x", delivery_tag=b"mine")
    before = pair.sending.connection.overview()
    with pytest.raises(LocalProtocolError, match="in use on link l"):
        pair.sender.send(b"y", delivery_tag=b"mine")
    with pytest.raises(LocalProtocolError, match="has 33 octets"):
        pair.sender.send(b"y", delivery_tag=b"x" * 33)
    assert pair.sending.connection.overview() == before
    pair.pump()
    pair.receiver.settle(0)
    pair.pump()
    pair.sender.send(b"y", delivery_tag=b"mine")


def test_delivery_ids_count_on_over_all_links_of_a_session():
    """One sequence per session and direction [2.6.12]."""
    pair = LinkPair(credit=100)
    other = pair.client_session.attach_receiver("other", "q")
    other.grant(5)
    pair.pump()
    sender = pair.server_session.links[-1]
    ids = [link.send(b"x").delivery_id for link in (pair.sender, sender, pair.sender)]
    assert ids == [0, 1, 2]


MORE = Transfer(handle=0, delivery_id=0, delivery_tag=b"t", more=True)


def test_a_message_above_max_message_size_ends_the_link():
    """At the sender it is refused; from the wire it detaches the link [2.7.3, 2.8.18]."""
    pair = LinkPair(credit=100, receiver_terms={"max_message_size": 10})
    with pytest.raises(LocalProtocolError, match="legal now: up to 10"):
        pair.sender.send(b"x" * 11)
    pair.sender.send(b"x" * 10)
    pair.pump()
    frame = Transfer(handle=0, delivery_id=1, delivery_tag=b"t")
    (event,) = pair.inject(pair.sending, frame, b"x" * 11)
    assert event.condition == "amqp:link:message-size-exceeded"
    pair.receiving.connection.answer(event)
    pair.pump()
    assert not pair.sender.attached
    assert pair.sender_session.mapped


def test_links_may_interleave_where_one_link_may_not():
    """Frames of deliveries on different links mix freely [2.6.14]."""
    pair = LinkPair(credit=100, answers=False)
    other = pair.client_session.attach_receiver("other", "q")
    other.grant(5)
    pair.pump()
    second = pair.server_session.links[-1]
    second.accept()
    pair.pump()
    (event,) = pair.inject(pair.sending, MORE, b"a")
    assert isinstance(event, PartReceived)
    (event,) = pair.inject(
        pair.sending, Transfer(handle=second.handle, delivery_id=1, delivery_tag=b"t"), b"whole"
    )
    assert event.delivery.payload == b"whole"
    (event,) = pair.inject(pair.sending, Transfer(handle=0), b"b")
    assert event.delivery.payload == b"ab"


def test_what_is_discarded_behind_a_detach_does_not_close_the_window_for_good():
    """Its frames have used the window [2.5.6]: when the peer has detached, too, it opens again."""
    session = SessionSettings(incoming_window=3, regrant_at=1)
    pair = LinkPair(credit=100, client_session=session)
    for _ in range(3):
        pair.sender.send(b"m")
    pair.receiver.close()
    pair.pump()
    assert received(pair) == []
    assert pair.sender_session.counters.remote_incoming_window == 3


def test_a_state_that_is_larger_than_the_peer_takes_is_not_repeated():
    """That the delivery is settled is what the receiver waits for [2.7.1]."""
    pair = LinkPair(credit=1, client=ConnectionSettings(max_frame_size=512))
    pair.answers = True
    pair.sender.send(b"m")
    pair.pump()
    pair.inject(
        pair.client,
        Disposition(Role.RECEIVER, 0, state=Rejected(Error("x:y", "long" * 500))),
    )
    pair.server.connection.answer(pair.server.events[-1])
    (said,) = pair.server.frames(Disposition)
    assert (said.settled, said.state) == (True, None)
