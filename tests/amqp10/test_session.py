"""Sessions: windows both ways, handles, attaching and detaching, and errors with their scope."""

from functools import partial

import pytest

from tests.amqp10.pair import LinkPair, Pair
from workbench.amqp10.errors import FrameTooLargeError, LocalProtocolError
from workbench.amqp10.events import (
    FlowReceived,
    LinkAttached,
    LinkAttaching,
    LinkDetached,
    LinkStolen,
    SessionBegun,
    SessionEnded,
)
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Role,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.amqp10.states import LinkState, SessionState

NOT_FOUND = Error(condition="amqp:not-found", description="no such queue")


def begun(**options):
    pair = Pair(**options)
    session = pair.client.connection.begin()
    pair.pump()
    return pair, session, pair.server.connection.sessions[0]


# -- windows -----------------------------------------------------------------------------------


def test_begin_tells_both_ends_ids_and_windows():
    """next-incoming-id and the remote windows come from the peer's begin [2.5.6]."""
    _, ours, theirs = begun(
        client_session=SessionSettings(next_outgoing_id=7, incoming_window=3, outgoing_window=4),
        server_session=SessionSettings(next_outgoing_id=9, incoming_window=5, outgoing_window=6),
    )
    assert ours.ledger() == {
        "next_incoming_id": 9, "incoming_window": 3, "next_outgoing_id": 7, "outgoing_window": 4,
        "remote_incoming_window": 5, "remote_outgoing_window": 6,
    }  # fmt: skip
    assert theirs.ledger() == {
        "next_incoming_id": 7, "incoming_window": 5, "next_outgoing_id": 9, "outgoing_window": 6,
        "remote_incoming_window": 3, "remote_outgoing_window": 4,
    }  # fmt: skip


def test_before_the_peers_begin_its_side_is_unknown():
    """What only the peer can tell is not in the ledger."""
    pair = Pair()
    session = pair.client.connection.begin()
    assert set(session.ledger()) == {"incoming_window", "next_outgoing_id", "outgoing_window"}
    session.flow()
    assert pair.client.frames(Flow)[-1].next_incoming_id is None


def test_a_flow_that_crosses_transfers_counts_from_its_own_id():
    """10 + 4 - 11 = 3: the window is what the peer told less what is in flight [2.5.6]."""
    pair = LinkPair(server_session=SessionSettings(next_outgoing_id=10), credit=20)
    pair.receiver_session.set_incoming_window(4)
    pair.receiver_session.flow()
    pair.sender.send(b"x", settled=True)
    pair.pump()
    assert pair.sender_session.counters.remote_incoming_window == 3


def test_frames_sent_before_a_smaller_window_was_seen_are_no_violation():
    """What an earlier word allowed may still come; what none allowed may not [2.5.6]."""
    pair = LinkPair(client_session=SessionSettings(incoming_window=2), credit=9)
    pair.receiver_session.set_incoming_window(0)
    pair.receiver_session.flow()
    for _ in range(2):
        pair.sender.send(b"x", settled=True)
    pair.pump()
    assert pair.client.violations == []
    assert pair.receiver_session.counters.incoming_window == 0
    frame = Transfer(handle=0, delivery_id=2, delivery_tag=b"t", settled=True)
    (event,) = pair.inject(pair.server, frame, b"x")
    assert event.condition == "amqp:session:window-violation"
    assert "2 transfer frames were allowed" in event.description
    pair.client.connection.answer(event)
    assert pair.receiver_session.state is SessionState.DISCARDING
    pair.pump()
    assert pair.receiver_session.state is SessionState.UNMAPPED
    assert pair.sender_session.error.condition == "amqp:session:window-violation"


def test_a_flow_for_the_session_may_write_out_that_it_does_not_drain():
    """false is what the absence of drain means, too [2.7.4]."""
    pair, _, _ = begun()
    flow = Flow(
        next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, drain=False
    )
    (event,) = pair.inject(pair.server, flow)
    assert isinstance(event, FlowReceived)


def test_a_session_that_is_left_awaits_no_end():
    """Its channel is free at once, and what still comes there is for no session."""
    pair, _, theirs = begun()
    theirs.end(Error(condition="amqp:internal-error"))
    theirs.leave()
    end = pair.server.connection
    assert (end.sessions, end.remote_channels) == ([], {})
    assert theirs.state is SessionState.UNMAPPED
    again = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
    (event,) = pair.inject(pair.client, again)
    assert isinstance(event, SessionBegun)
    assert event.session is not theirs


def test_a_link_that_is_left_awaits_no_detach():
    """Its handle is free at once, and what still comes for it is for no link."""
    pair, ours, theirs = begun()
    ours.attach_sender("l", None, "q")
    pair.pump()
    (link,) = theirs.links
    link.close(NOT_FOUND)
    theirs.leave_link(link)
    assert (theirs.links, theirs.remote_handles, theirs.handles) == ([], {}, {})
    assert link.state is LinkState.DETACHED
    (event,) = pair.inject(pair.client, Detach(handle=0, closed=True))
    assert event.condition == "amqp:session:unattached-handle"


@pytest.mark.parametrize("closed", [None, False, True])
def test_a_detach_writes_closed_as_it_is_told(closed):
    """Left out, false and true are three ways to write two meanings [2.7.7]."""
    pair, ours, _ = begun()
    link = ours.attach_sender("l", None, "q")
    pair.pump()
    link.detach(closed=closed)
    pair.pump()
    (event,) = pair.server.heard(LinkDetached)
    assert event.frame.closed is closed
    assert link.closed is bool(closed)


@pytest.mark.parametrize("window", [-1, 4294967296])
def test_absurd_windows_are_refused(window):
    """A window is a uint."""
    _, ours, _ = begun()
    with pytest.raises(LocalProtocolError, match="0 to 4294967295"):
        ours.set_incoming_window(window)
    with pytest.raises(LocalProtocolError, match="0 to 4294967295"):
        SessionSettings(incoming_window=window)


# -- channels, handles, ordinals ---------------------------------------------------------------


def test_the_two_ends_may_number_a_session_differently():
    """begin's remote-channel says which is meant [2.5.1]."""
    pair = Pair()
    pair.answers = False
    session = pair.client.connection.begin(channel=3)
    pair.pump()
    (theirs,) = pair.server.connection.sessions
    theirs.accept(channel=8)
    pair.pump()
    assert (session.channel, session.remote_channel) == (3, 8)
    assert (theirs.channel, theirs.remote_channel) == (8, 3)
    session.flow(echo=True)
    pair.answers = True
    pair.pump()
    assert isinstance(pair.client.sent[-1].performative, Flow)
    assert pair.client.violations == pair.server.violations == []


def test_ordinals_are_not_reused_but_channels_are():
    """A channel is free again after the end; the ordinal names the session for ever."""
    pair, first, _ = begun()
    first.end()
    pair.pump()
    second = pair.client.connection.begin()
    pair.pump()
    assert (first.ordinal, second.ordinal) == (1, 2)
    assert (first.channel, second.channel) == (0, 0)
    assert pair.server.connection.sessions[0].ordinal == 2


def test_handles_may_differ_and_are_free_again_after_detach():
    """Each end chooses its own [2.6.2]."""
    pair, ours, theirs = begun()
    link = ours.attach_receiver("a", "q", handle=5)
    pair.pump()
    assert (link.handle, link.remote_handle) == (5, 0)
    link.detach(closed=True)
    pair.pump()
    assert link.state is LinkState.DETACHED
    assert ours.handles == ours.remote_handles == theirs.handles == theirs.remote_handles == {}
    assert ours.attach_receiver("b", "q").handle == 0


def test_handle_max_and_channel_max_bind_this_end():
    """Above the limit we refuse ourselves [2.7.1, 2.7.2]."""
    pair, ours, _ = begun(
        server_session=SessionSettings(handle_max=1), server=ConnectionSettings(channel_max=0)
    )
    ours.attach_receiver("a", "q")
    ours.attach_receiver("b", "q")
    with pytest.raises(LocalProtocolError, match="handle-max is 1"):
        ours.attach_receiver("c", "q")
    with pytest.raises(LocalProtocolError, match="channel-max is 0"):
        pair.client.connection.begin()


def test_no_attach_is_sent_that_is_larger_than_the_peer_takes():
    """It has one frame, which cannot be cut [2.7.1]; nothing has changed."""
    pair, ours, _ = begun(server=ConnectionSettings(max_frame_size=512))
    with pytest.raises(FrameTooLargeError, match="the peer takes frames of 512"):
        ours.attach_receiver("x" * 500, "q")
    assert ours.links == [] and ours.handles == {}
    link = ours.attach_receiver("x" * 350, "q")
    pair.pump()
    assert link.attached


def test_attach_numbers_count_attaches_of_a_name_and_direction():
    """A management pair shares a name: each direction counts by itself."""
    pair, ours, theirs = begun()
    for expected in (1, 2):
        sender, receiver = ours.attach_sender("m", None, "q"), ours.attach_receiver("m", "q")
        pair.pump()
        assert (sender.attach_no, receiver.attach_no) == (expected, expected)
        assert [link.attach_no for link in theirs.links] == [expected, expected]
        sender.close()
        receiver.close()
        pair.pump()
        assert ours.links == theirs.links == []


# -- attaching and detaching -------------------------------------------------------------------


def test_an_accepted_link_echoes_the_termini():
    """The answer has the actual source and target [2.6.3]."""
    pair, ours, _ = begun()
    link = ours.attach_receiver("l", "q")
    pair.pump()
    (event,) = pair.client.heard(LinkAttached)
    assert event.frame.source == Source(address="q")
    assert not event.refused
    assert link.attached


@pytest.mark.parametrize("sends", [True, False])
def test_a_refused_link_has_a_null_terminus_and_a_detach(sends):
    """attach with null local terminus, then detach closed with the reason [2.6.3].

    What was sent ahead for the link is dropped, and does not harm the session.
    """
    pair, ours, theirs = begun()
    pair.answers = False
    link = ours.attach_sender("l", None, "q") if sends else ours.attach_receiver("l", "q")
    if not sends:
        link.grant(10)
    pair.deliver(pair.client)
    (event,) = pair.server.heard(LinkAttaching)
    event.link.refuse(NOT_FOUND)
    pair.answers = True
    pair.pump()
    (attached,) = pair.client.heard(LinkAttached)
    assert attached.refused
    assert (attached.frame.target if sends else attached.frame.source) is None
    (detached,) = pair.client.heard(LinkDetached)
    assert (detached.closed, detached.error) == (True, NOT_FOUND)
    assert link.state is event.link.state is LinkState.DETACHED
    assert ours.mapped
    assert theirs.mapped
    assert pair.server.violations == []


def test_detach_suspends_and_close_ends():
    """closed false leaves the terminus, closed true does not; the answer says the same [2.6.6]."""
    pair, ours, _ = begun()
    for closed in (False, True):
        ours.attach_receiver("l", "q").detach(closed=closed)
        pair.pump()
        assert [frame.closed for frame in pair.server.frames(Detach)][-1:] == [closed or None]
        assert pair.server.heard(LinkDetached)[-1].closed is closed


def test_attach_and_detach_may_be_pipelined():
    """The peer's answers come to a link that is leaving already."""
    pair, ours, theirs = begun()
    link = ours.attach_receiver("l", "q")
    link.grant(5)
    link.close()
    session = pair.client.connection.begin()
    session.end()
    pair.pump()
    assert link.state is LinkState.DETACHED
    assert session.state is SessionState.UNMAPPED
    assert pair.client.violations == pair.server.violations == []
    assert ours.links == theirs.links == []
    assert len(pair.client.connection.sessions) == len(pair.server.connection.sessions) == 1


def test_a_detached_links_deliveries_stay_for_whoever_requeues_them():
    """They are no longer the session's, but the link still lists them."""
    pair = LinkPair(credit=5)
    pair.sender.send(b"x")
    pair.sender.send(b"y")
    pair.pump()
    pair.receiver.close()
    pair.pump()
    assert list(pair.sender.unsettled) == [0, 1]
    assert pair.sender_session.outgoing == {}


def test_a_new_attach_of_a_live_name_steals_the_link():
    """The old one is detached with amqp:link:stolen, the new one lives [2.6.1]."""
    pair = LinkPair()
    attach = Attach(
        name="l", handle=9, role=Role.RECEIVER, source=Source(address="q"), target=Target()
    )
    stolen, attaching = pair.inject(pair.client, attach)
    assert isinstance(stolen, LinkStolen)
    assert stolen.link is pair.sender
    assert isinstance(attaching, LinkAttaching)
    assert attaching.link.attach_no == 2
    pair.server.connection.answer(stolen)
    pair.server.connection.answer(attaching)
    assert pair.sender.error.condition == "amqp:link:stolen"
    assert attaching.link.attached
    assert not pair.sender.attached


def test_a_name_attached_on_another_session_steals_a_link_that_has_had_no_answer():
    """Ours waits for its answer on session 1, the peer attaches the name on session 2 [2.6.1]."""
    pair, ours, _ = begun()
    second = pair.client.connection.begin()
    pair.pump()
    link = ours.attach_receiver("l", "q")
    attach = Attach(
        name="l", handle=0, role=Role.SENDER, initial_delivery_count=0,
        source=Source(address="q"), target=Target(),
    )  # fmt: skip
    stolen, attaching = pair.inject(pair.server, attach, channel=second.remote_channel)
    assert isinstance(stolen, LinkStolen)
    assert stolen.link is link
    assert attaching.link.session is second
    pair.client.connection.answer(stolen)
    pair.client.connection.answer(attaching)
    assert link.error.condition == "amqp:link:stolen"
    assert attaching.link.attached


def test_the_late_answer_to_a_stolen_attach_steals_nothing_back():
    """It answers the attach of its own session, and the new link lives on [2.6.1]."""
    pair, ours, _ = begun()
    second = pair.client.connection.begin()
    pair.pump()
    link = ours.attach_receiver("l", "q")
    terms = {"role": Role.SENDER, "initial_delivery_count": 0, "target": Target()}
    attach = Attach(name="l", handle=0, source=Source(address="q"), **terms)
    stolen, attaching = pair.inject(pair.server, attach, channel=second.remote_channel)
    pair.client.connection.answer(stolen)
    pair.client.connection.answer(attaching)
    assert pair.inject(pair.server, attach, channel=ours.remote_channel) == []
    (gone,) = pair.inject(pair.server, Detach(handle=0, closed=True), channel=ours.remote_channel)
    assert gone.link is link
    assert link.state is LinkState.DETACHED
    assert attaching.link.attached
    assert pair.client.connection.names["l", Role.RECEIVER] is attaching.link


def test_a_live_name_cannot_be_attached_twice_by_this_end():
    """A link is named by name and direction [2.6.1]."""
    pair, ours, _ = begun()
    ours.attach_receiver("l", "q")
    before = pair.client.connection.overview()
    with pytest.raises(LocalProtocolError, match="link l is in use as receiver"):
        ours.attach_receiver("l", "q")
    assert pair.client.connection.overview() == before
    ours.attach_sender("l", None, "q")


# -- errors of the peer ------------------------------------------------------------------------


def test_an_error_of_the_peer_ends_the_session_with_its_links():
    """What a peer may not send: `test_violations`. The connection lives on [2.8.17]."""
    pair = LinkPair()
    (event,) = pair.inject(pair.client, Detach(handle=4))
    pair.server.connection.answer(event)
    pair.pump()
    (ended,) = pair.client.heard(SessionEnded)
    assert ended.error.condition == "amqp:session:unattached-handle"
    assert len(ended.links) == 1
    assert pair.client.connection.opened
    assert pair.client.connection.sessions == pair.server.connection.sessions == []


def test_after_an_erroring_end_everything_is_dropped():
    """Up to the peer's end nothing that comes has an effect [2.5.5]."""
    pair = LinkPair(answers=False)
    pair.receiver.grant(5)
    pair.receiver_session.end(NOT_FOUND)
    before = pair.receiver_session.ledger()
    frame = Transfer(handle=0, delivery_id=0, delivery_tag=b"t")
    assert pair.inject(pair.server, frame, b"x") == []
    assert pair.receiver_session.ledger() == before
    (event,) = pair.inject(pair.server, End())
    assert isinstance(event, SessionEnded)
    assert not event.by_peer


@pytest.mark.parametrize("strict", [True, False])
def test_input_for_a_link_detached_with_an_error(strict):
    """Only a detach may come; else the session ends, or by setting the input is dropped [2.6.5]."""
    pair = LinkPair(
        client_session=SessionSettings(errant_link_ends_session=strict), answers=False, credit=5
    )
    pair.sender.send(b"x")
    pair.receiver.close(NOT_FOUND)
    pair.deliver(pair.server)
    if strict:
        (event,) = pair.client.violations
        assert event.condition == "amqp:session:errant-link"
    else:
        assert pair.client.violations == []
        assert pair.receiver_session.counters.frames_in == 1, "the window counts it all the same"
    assert pair.receiver.delivery_count == 0


def test_input_for_a_link_detached_without_an_error_is_dropped():
    """It may have been under way when the detach was sent."""
    pair = LinkPair(credit=5)
    pair.sender.send(b"x")
    pair.receiver.close()
    pair.pump()
    assert pair.client.violations == pair.server.violations == []
    assert pair.receiver.state is pair.sender.state is LinkState.DETACHED


def test_the_peers_begin_is_answered_with_its_channel():
    """The event tells who began [2.5.1]."""
    pair, ours, _ = begun()
    assert [event.by_peer for event in pair.server.heard(SessionBegun)] == [True]
    assert [event.by_peer for event in pair.client.heard(SessionBegun)] == [False]
    assert pair.server.frames(Begin)[0].remote_channel == ours.channel


def test_dispositions_for_what_nobody_knows_are_passed_over():
    """They may have crossed a settlement: no error, no delivery."""
    pair = LinkPair()
    (event,) = pair.inject(pair.client, Disposition(role=Role.RECEIVER, first=3, last=900))
    assert event.deliveries == ()
    assert pair.inject(pair.client, Disposition(role=Role.SENDER, first=3))[0].deliveries == ()


def test_a_session_that_its_peer_has_ended_is_accepted_before_anything_else():
    """What is not legal changes nothing, and says what is."""
    pair = Pair()
    pair.answers = False
    pair.client.connection.begin().end()
    pair.deliver(pair.client, 2)
    (session,) = pair.server.connection.sessions
    for act in (session.end, partial(session.attach_sender, "l", target="q")):
        with pytest.raises(LocalProtocolError, match="is not begun here; legal now: accept it"):
            act()
    assert session.links == []
    session.accept()
    session.end()
    pair.pump()
    assert pair.client.violations == []


def test_a_link_that_its_peer_has_detached_is_accepted_before_it_is_detached():
    """The same for a link."""
    pair = Pair()
    theirs = pair.client.connection.begin()
    pair.pump()
    pair.answers = False
    theirs.attach_sender("l", target="q").detach()
    pair.deliver(pair.client, 2)
    (link,) = pair.server.connection.sessions[0].links
    with pytest.raises(LocalProtocolError, match="is not attached here; legal now: accept it"):
        link.detach()
    link.accept()
    link.detach()
    pair.pump()
    assert pair.client.violations == []
