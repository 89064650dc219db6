"""Connections: opening and closing in any order, limits, silence, and what a tap can ask."""

import pytest

from tests.amqp10.pair import LinkPair, Pair
from workbench.amqp10.connection import Connection
from workbench.amqp10.errors import ErrorCondition, LocalProtocolError
from workbench.amqp10.events import CloseReceived, HeaderRefused, Heartbeat, ProtocolViolation
from workbench.amqp10.frame import Frame, ProtocolHeader, item_size
from workbench.amqp10.performatives import Begin, Close, End, Error, Flow, Open
from workbench.amqp10.session import Session
from workbench.amqp10.settings import ConnectionSettings
from workbench.amqp10.states import ConnectionState
from workbench.trace.schema import LEDGER_GROUPS

ERROR = Error(condition="amqp:connection:forced", description="restart")
BEGIN = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)


def names(side):
    return [
        "header" if isinstance(item, ProtocolHeader) else item.performative.NAME
        for item in side.sent
    ]


# -- opening and closing -----------------------------------------------------------------------


def test_a_client_pipelines_header_and_open():
    """It need not wait for the server's [2.4.1]."""
    pair = Pair(start=False)
    pair.client.connection.start()
    assert names(pair.client) == ["header", "open"]
    assert pair.client.connection.state is ConnectionState.OPEN_PIPE
    pair.pump()
    assert names(pair.server) == ["header", "open"]
    assert pair.client.connection.opened
    assert pair.server.connection.opened


def test_a_client_may_wait_for_the_header():
    """Then the open follows it."""
    pair = Pair(client=ConnectionSettings(pipeline_open=False), start=False)
    pair.client.connection.start()
    assert names(pair.client) == ["header"]
    pair.pump()
    assert names(pair.client) == ["header", "open"]
    assert pair.client.connection.opened


def test_everything_may_be_pipelined_from_header_to_close():
    """A server that reads it all at once still answers all of it [2.4.1]."""
    pair = Pair(start=False)
    pair.client.connection.start()
    session = pair.client.connection.begin()
    session.attach_receiver("l", "q").grant(5)
    session.end()
    pair.client.connection.close()
    pair.answers = False
    pair.deliver(pair.client, len(pair.client.flying))
    assert pair.server.connection.state is ConnectionState.OC_PIPE_RCVD
    for event in pair.server.events:
        pair.server.connection.answer(event)
    pair.answers = True
    pair.pump()
    assert pair.client.connection.ended
    assert pair.server.connection.ended
    assert pair.client.violations == pair.server.violations == []


def test_both_may_close_at_once():
    """Each has sent its close when the other's comes [2.4.3]."""
    pair = Pair()
    pair.client.connection.close()
    pair.server.connection.close()
    pair.pump()
    assert pair.client.connection.ended
    assert pair.server.connection.ended
    assert names(pair.client).count("close") == names(pair.server).count("close") == 1


def test_after_an_erroring_close_everything_is_dropped():
    """State DISCARDING, until the peer's close [2.4.3]."""
    pair = Pair()
    pair.client.connection.close(ERROR)
    assert pair.client.connection.state is ConnectionState.DISCARDING
    for frame in (BEGIN, End(), Flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)):
        assert pair.inject(pair.server, frame) == []
    with pytest.raises(LocalProtocolError, match="state DISCARDING"):
        pair.client.connection.begin()
    (event,) = pair.inject(pair.server, Close())
    assert isinstance(event, CloseReceived)
    assert pair.client.connection.ended


def test_a_close_takes_sessions_and_links_with_it():
    """The owner gets them, with what they had unsettled."""
    pair = LinkPair(credit=5)
    pair.sender.send(b"x")
    pair.pump()
    pair.client.connection.close(ERROR)
    pair.pump()
    (event,) = pair.server.heard(CloseReceived)
    assert event.error == ERROR
    assert event.sessions == (pair.server_session,)
    assert list(pair.sender.unsettled) == [0]
    assert pair.server.connection.sessions == []


@pytest.mark.parametrize(
    "header", [ProtocolHeader(0, 0, 9, 1), ProtocolHeader(3), ProtocolHeader(2)]
)
def test_a_server_answers_a_strange_header_with_one_it_likes(header):
    """And then the transport is closed [2.2]."""
    pair = Pair(start=False)
    (event,) = pair.server.connection.apply(header)
    assert isinstance(event, HeaderRefused)
    pair.server.connection.answer(event)
    assert pair.server.sent == [ProtocolHeader()]
    assert pair.server.connection.ended


# -- limits ------------------------------------------------------------------------------------


def test_an_open_must_fit_into_512_octets():
    """Before both opens are exchanged no frame is larger [2.4.1]."""
    connection = Connection(container_id="x" * 600, is_client=True, emit=lambda item: None)
    with pytest.raises(LocalProtocolError, match="before both opens are exchanged"):
        connection.start()


def test_a_violation_before_the_open_is_answered_with_open_and_close():
    """A close needs an open before it [2.4.3]."""
    pair = Pair(start=False)
    pair.server.connection.apply(ProtocolHeader())
    (event,) = pair.server.connection.apply(Frame(0, BEGIN))
    assert isinstance(event, ProtocolViolation)
    assert event.description == "begin came in state HDR_RCVD; legal: open"
    pair.server.connection.answer(event)
    assert names(pair.server) == ["header", "open", "close"]


def test_a_max_frame_size_below_512_is_refused():
    """512 is the least [2.7.1]."""
    with pytest.raises(LocalProtocolError, match="512 to"):
        ConnectionSettings(max_frame_size=511)
    pair = Pair(start=False)
    pair.server.connection.apply(ProtocolHeader())
    (event,) = pair.server.connection.apply(Frame(0, Open(container_id="c", max_frame_size=9)))
    assert event.condition == "amqp:invalid-field"


@pytest.mark.parametrize(
    "call",
    [
        lambda connection: connection.start(),
        lambda connection: connection.send_open(),
        lambda connection: connection.begin(channel=70000),
        lambda connection: connection.sessions[0].accept(),
        lambda connection: connection.sessions[0].attach_receiver("l", "q"),
        lambda connection: connection.sessions[0].attach_receiver("m", "q", handle=0),
        lambda connection: connection.sessions[0].attach_sender("m", initial_delivery_count=-1),
        lambda connection: connection.sessions[0].links[0].accept(),
        lambda connection: connection.sessions[0].links[0].grant(2**32),
        lambda connection: connection.sessions[0].links[0].settle(0, 5),
    ],
)
def test_refused_calls_change_nothing(call):
    """LocalProtocolError leaves every counter, and sends nothing."""
    pair = LinkPair()
    before, sent = pair.client.connection.overview(), len(pair.client.sent)
    with pytest.raises(LocalProtocolError, match=r"legal|nothing to accept|is not"):
        call(pair.client.connection)
    assert pair.client.connection.overview() == before
    assert len(pair.client.sent) == sent


# -- silence -----------------------------------------------------------------------------------


def test_a_promised_heartbeat_goes_out_in_time():
    """Half the peer's idle-time-out after the last frame [2.4.5]."""
    pair = Pair(server=ConnectionSettings(idle_time_out_ms=1000))
    client = pair.client.connection
    assert client.next_deadline(0) == 500_000
    assert client.on_deadline(499_999) == []
    assert client.on_deadline(500_000) == []
    assert pair.client.sent[-1] == Frame(0)
    pair.pump()
    assert len(pair.server.heard(Heartbeat)) == 1
    assert client.next_deadline(500_000) == 1_000_000


def test_other_frames_put_the_heartbeat_off():
    """Any frame shows that this end lives."""
    pair = Pair(server=ConnectionSettings(idle_time_out_ms=1000))
    client = pair.client.connection
    client.next_deadline(0)
    client.begin()
    assert client.next_deadline(400_000) == 900_000


def test_a_silent_peer_is_given_up_after_twice_the_told_time():
    """What is told is half the threshold, by convention [2.4.5]."""
    pair = Pair(server=ConnectionSettings(idle_time_out_ms=1000))
    server = pair.server.connection
    assert server.next_deadline(100) == 2_000_100
    assert server.on_deadline(2_000_099) == []
    (event,) = server.on_deadline(2_000_100)
    assert event.scope.value == "connection"
    assert "nothing was heard for 2000 ms" in event.description
    server.answer(event)
    pair.pump()
    assert server.ended


def test_who_has_closed_waits_for_no_deadline():
    """It says nothing more, and the peer's silence has been answered already."""
    pair = Pair(server=ConnectionSettings(idle_time_out_ms=1000))
    server = pair.server.connection
    server.next_deadline(0)
    server.close()
    assert server.next_deadline(5_000_000) is None
    assert server.on_deadline(5_000_000) == []


def test_without_idle_time_out_there_is_no_deadline():
    """Nothing to be woken for."""
    pair = Pair()
    assert pair.client.connection.next_deadline(5) is None
    assert pair.client.connection.on_deadline(10**12) == []


# -- what a tap can ask ------------------------------------------------------------------------


def test_scope_gives_the_counters_right_after_the_frame():
    """Within emit for a frame sent, after apply for one received."""
    pair = LinkPair()
    pair.receiver.grant(3)
    sent = pair.client.scopes[-1]
    assert (sent.session, sent.link, sent.link_sender_is_local, sent.attach_no) == (
        1,
        "l",
        False,
        1,
    )
    assert sent.link_ledger["link_credit"] == 3
    frame = pair.client.flying[0]
    pair.deliver(pair.client)
    heard = pair.server.connection.scope(frame, False)
    assert heard.link_sender_is_local
    assert heard.link_ledger == {
        "delivery_count": 0, "link_credit": 3, "available": 0, "drain": False, "unsettled": 0,
    }  # fmt: skip
    assert heard.session_ledger == pair.server_session.ledger()
    pair.sender.send(b"x")
    assert pair.server.scopes[-1].link_ledger["delivery_count"] == 1
    assert pair.server.scopes[-1].link_ledger["unsettled"] == 1


def test_ledger_keys_are_those_of_the_trace():
    """No view has to rename anything."""
    pair = LinkPair()
    assert set(pair.sender.ledger()) == set(pair.receiver.ledger())
    assert set(pair.sender.ledger()) <= set(LEDGER_GROUPS["link"])
    assert set(pair.sender_session.ledger()) == set(LEDGER_GROUPS["session"])


def test_endings_are_still_in_scope():
    """A detach and an end tell which link and session they end."""
    pair = LinkPair()
    pair.receiver.close()
    assert pair.client.scopes[-1].link == "l"
    pair.pump()
    assert pair.server.scopes[-1].link == "l"
    pair.client_session.end()
    assert pair.client.scopes[-1].session == 1
    pair.pump()
    assert pair.server.scopes[-1].session == 1
    assert pair.client.connection.scope(Frame(0), True).session is None


def test_each_frame_is_emitted_after_its_state():
    """At the third frame of a message the window already counts three."""
    pair = LinkPair(client=ConnectionSettings(max_frame_size=512), credit=5)
    before = pair.sender_session.counters.next_outgoing_id
    first = len(pair.server.scopes)
    pair.sender.send(bytes(1200))
    ids = [one.session_ledger["next_outgoing_id"] for one in pair.server.scopes[first:]]
    assert ids == [before + 1, before + 2, before + 3]
    counts = [one.link_ledger["delivery_count"] for one in pair.server.scopes[first:]]
    assert counts == [1, 1, 1]


@pytest.mark.parametrize("tells", ["link", "session", "connection"])
@pytest.mark.parametrize(("octets", "cut"), [(50, False), (300, False), (5_000, True)])
def test_an_error_is_told_in_a_frame_that_the_peer_takes(tells, octets, cut):
    """Its description is cut where the frame would be larger than max-frame-size [2.7.1]."""
    pair = LinkPair(client=ConnectionSettings(max_frame_size=512))
    ends = {
        "link": pair.sender.close,
        "session": pair.sender_session.end,
        "connection": pair.server.connection.close,
    }
    description = "ä" * (octets // 2)
    ends[tells](Error(condition=ErrorCondition.INTERNAL_ERROR, description=description))
    frame = pair.server.sent[-1]
    told = frame.performative.error
    assert told.condition is ErrorCondition.INTERNAL_ERROR
    assert item_size(frame) <= 512
    if not cut:
        assert told.description == description
        return
    assert item_size(frame) > 500
    assert told.description == "ä" * (len(told.description) - 3) + "..."


def test_late_answers_are_left_undone():
    """Between an event and its answer the owner may have ended things."""
    pair = LinkPair(answers=False)
    pair.sender.flow(echo=True)
    pair.receiver_session.flow(echo=True)
    pair.pump()
    events = list(pair.client.events) + list(pair.server.events)
    pair.client.connection.close()
    pair.server.connection.close()
    sent = len(pair.client.sent), len(pair.server.sent)
    for side in (pair.client, pair.server):
        for event in events:
            session = getattr(event, "session", None)
            if isinstance(session, Session) and session.connection is side.connection:
                side.connection.answer(event)
    assert (len(pair.client.sent), len(pair.server.sent)) == sent
