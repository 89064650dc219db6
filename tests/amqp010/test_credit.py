"""Credit of a subscription: adds, two units, two modes, unlimited, flush and stop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.amqp010 import commands as c
from workbench.amqp010.credit import Credit
from workbench.amqp010.errors import LocalProtocolError
from workbench.amqp010.events import CommandReceived, CommandsCompleted, FlushReceived
from workbench.amqp010.frame import Headers

from .pair import Pair

MESSAGE, BYTE = c.CreditUnit.MESSAGE, c.CreditUnit.BYTE


def subscribed(mode=None, **flows):
    """A pair whose client has subscribed, with credit by unit."""
    pair = Pair()
    pair.client.kept = (c.MessageTransfer,)
    pair.session.send(c.MessageSubscribe("q", "d"))
    if mode is not None:
        pair.session.send(c.MessageSetFlowMode("d", mode))
    for unit, value in flows.items():
        pair.session.send(c.MessageFlow("d", c.CreditUnit[unit], value))
    pair.pump()
    return pair, pair.peer.subscriptions["d"]


def deliver(pair, subscription, count=1, octets=10):
    """Send messages under the subscription."""
    for _ in range(count):
        pair.peer.transfer(subscription, Headers(), b"x" * octets, octets)
    pair.pump()


def test_a_flow_adds_to_what_there_is():
    """Unlike link-credit of 1.0, which is told anew: two grants of ten are twenty."""
    pair, found = subscribed(MESSAGE=10, BYTE=100)
    pair.session.send(c.MessageFlow("d", MESSAGE, 10))
    pair.pump()
    assert (found.credit.messages.remaining, found.credit.octets.remaining) == (20, 100)
    assert found.ledger() == {"credit_messages": 20, "credit_octets": 100}


def test_both_units_must_allow_a_message():
    """Messages without octets are nothing, and the other way round."""
    pair, found = subscribed(MESSAGE=2, BYTE=25)
    deliver(pair, found, 1, 20)
    assert pair.peer.ledger() == {"incomplete_commands": 1}
    with pytest.raises(LocalProtocolError, match="5 octets"):
        deliver(pair, found, 1, 6)
    deliver(pair, found, 1, 5)
    with pytest.raises(LocalProtocolError, match="0 messages"):
        deliver(pair, found, 1, 0)


def test_credit_mode_uses_credit_up_and_window_mode_gives_it_back():
    """On completion, not on accept."""
    for mode, left in ((c.FlowMode.CREDIT, 0), (c.FlowMode.WINDOW, 3)):
        pair, found = subscribed(mode, MESSAGE=3, BYTE=30)
        deliver(pair, found, 3)
        assert found.credit.messages.remaining == found.credit.octets.remaining == 0
        for event in pair.client.of(CommandReceived):
            pair.session.complete(event.command_id)
        pair.session.tell_completed()
        pair.pump()
        assert pair.server.of(CommandsCompleted)[-1].ranges
        assert found.credit.messages.remaining == left
        assert found.credit.octets.remaining == 10 * left
        assert pair.peer.transfers == {}


def test_unlimited_stays_unlimited():
    """0xFFFFFFFF; a later grant changes nothing, a sum never becomes it."""
    pair, found = subscribed(MESSAGE=c.UNLIMITED, BYTE=c.UNLIMITED)
    deliver(pair, found, 5)
    pair.session.send(c.MessageFlow("d", MESSAGE, 1))
    pair.pump()
    assert found.credit.messages.remaining == c.UNLIMITED
    pair, found = subscribed(MESSAGE=c.UNLIMITED - 1)
    pair.session.send(c.MessageFlow("d", MESSAGE, c.UNLIMITED - 1))
    pair.pump()
    assert found.credit.messages.remaining == c.UNLIMITED - 1


def test_stop_takes_all_credit_at_once():
    """Unlimited credit too; it is complete when it is heard."""
    pair, found = subscribed(MESSAGE=c.UNLIMITED, BYTE=c.UNLIMITED)
    pair.session.send(c.MessageStop("d", sync=True))
    pair.pump()
    assert not found.credit.check(0)
    assert not pair.session.sent_incomplete


def test_flush_gives_what_is_there_and_takes_the_rest():
    """The owner sends first; then credit is 0 and the flush complete."""
    pair, found = subscribed(MESSAGE=5, BYTE=100)
    pair.session.send(c.MessageFlush("d", sync=True))
    octets, pair.client.out = b"".join(pair.client.out), []
    (event,) = [
        event
        for one in pair.server.reader.feed(octets)
        for event in pair.server.amqp.apply(one.item)
    ]
    assert isinstance(event, FlushReceived)
    deliver(pair, found, 2)
    assert pair.session.sent_incomplete
    pair.peer.flushed(event)
    pair.pump()
    assert found.credit.messages.remaining == 0
    assert not pair.session.sent_incomplete


@given(st.lists(st.sampled_from(["grant", "all", "send", "done", "stop", "mode"]), max_size=50))
def test_credit_is_what_a_book_keeper_says(acts):
    """Each mode has its own book: what was granted, what is out, in messages."""
    credit, out = Credit(), {True: 0, False: 0}
    granted = {True: 0, False: 0}
    for act in acts:
        mode = credit.window
        if act == "grant":
            credit.messages.grant(2)
            credit.octets.grant(2)
            granted[mode] = min(granted[mode] + 2, c.UNLIMITED)
        elif act == "all":
            credit.messages.grant(c.UNLIMITED)
            credit.octets.grant(c.UNLIMITED)
            granted[mode] = c.UNLIMITED
        elif act == "send" and credit.check(1):
            credit.consume(1)
            if granted[mode] != c.UNLIMITED:
                granted[mode] -= 0 if mode else 1
                out[mode] += mode
        elif act == "done" and out[True]:
            credit.move(1)
            if mode and granted[True] != c.UNLIMITED:
                out[True] -= 1
        elif act == "stop":
            credit.cancel()
            granted[mode] = 0
        elif act == "mode":
            credit.window = not mode
        mode = credit.window
        unlimited = granted[mode] == c.UNLIMITED
        want = c.UNLIMITED if unlimited else max(0, granted[mode] - out[mode])
        assert credit.messages.remaining == credit.octets.remaining == want
        assert credit.check(1) is (want > 0)
