"""Short cuts over values: frame by frame and counter by counter what the plain path does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp import ConnectionSettings, SessionSettings, connection_input
from workbench.amqp.events import DeliveryReceived
from workbench.amqp.performatives import SenderSettleMode
from workbench.amqp.quick import send_settled

from .pair import LinkPair


def picture(pair):
    """Everything both ends know, and every frame and scope so far."""
    return [
        (
            side.connection.overview(),
            side.sent,
            side.scopes,
            [link.ledger() for session in side.connection.sessions for link in session.links],
            [session.counters for session in side.connection.sessions],
        )
        for side in (pair.client, pair.server)
    ]


def heard(pair):
    """What arrived, with everything that is known of it."""
    return [
        (one.delivery.overview(), one.delivery.payload, one.delivery.size, one.delivery.parts)
        for one in pair.receiving.heard(DeliveryReceived)
    ]


STEP = st.one_of(
    st.tuples(st.just("send"), st.integers(0, 700)),
    st.tuples(st.just("grant"), st.integers(0, 5)),
    st.tuples(st.just("deliver"), st.integers(1, 4)),
    st.tuples(st.just("unsettled"), st.just(3)),
)
TERMS = st.sampled_from(
    [{}, {"snd_settle_mode": SenderSettleMode.SETTLED}, {"max_message_size": 300}]
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    steps=st.lists(STEP, max_size=25),
    first=st.sampled_from([0, 250, 4294967290]),
    window=st.integers(1, 6),
    receiver=TERMS,
    frame=st.sampled_from([512, 32768]),
)
def test_a_short_cut_does_what_the_plain_path_does(steps, first, window, receiver, frame):
    """Any mix of sizes, grants, windows, settle modes and arrivals: both pairs stay alike."""
    sides = []
    for quick in (True, False):
        pair = LinkPair(
            server_sends=False,
            receiver_terms={k: v for k, v in receiver.items() if k == "max_message_size"},
            sender_terms={k: v for k, v in receiver.items() if k == "snd_settle_mode"},
            client_session=SessionSettings(next_outgoing_id=first, delivery_id=first),
            server_session=SessionSettings(incoming_window=window, regrant_at=window // 2),
            server=ConnectionSettings(max_frame_size=frame),
        )
        with pytest.MonkeyPatch.context() as patched:
            if not quick:
                patched.setattr(connection_input, "take_settled", lambda *_: None)
            for what, number in steps:
                one_step(pair, what, number, quick=quick)
            pair.pump()
        sides.append(pair)
    ours, plain = sides
    assert heard(ours) == heard(plain)
    assert picture(ours) == picture(plain)


def one_step(pair, what, number, *, quick):
    """Do one thing, if it is legal; `quick` with the short cut, which may decline."""
    link = pair.sender
    if what == "grant":
        if pair.receiver.attached:
            pair.receiver.grant(number)
            pair.pump()
        return
    if what == "deliver":
        for _ in range(min(number, len(pair.client.flying))):
            pair.deliver(pair.client)
        return
    settled = what == "send"
    unsettled_mode = link.snd_settle_mode is SenderSettleMode.SETTLED and not settled
    too_large = link.remote_attach.max_message_size and number > link.remote_attach.max_message_size
    if not link.attached or not link.can_send or unsettled_mode or too_large:
        return
    if settled and quick and send_settled(link, b"x" * number):
        return
    link.send(b"x" * number, settled=settled)


def test_what_is_not_plain_is_left_alone():
    """No credit, too large, no window: nothing sent, nothing changed."""
    pair = LinkPair(server_sends=False, server_session=SessionSettings(incoming_window=3))
    before = picture(pair)
    assert not send_settled(pair.sender, b"m")
    assert picture(pair) == before
    pair.receiver.grant(5)
    pair.pump()
    before = picture(pair)
    assert not send_settled(pair.sender, b"m" * 100_000)
    assert picture(pair) == before
    assert [send_settled(pair.sender, b"m") for _ in range(4)] == [True, True, True, False]
