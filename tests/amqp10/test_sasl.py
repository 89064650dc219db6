"""SASL: ANONYMOUS and PLAIN at both ends, in and out of order."""

import pytest

from tests.amqp10.pair import Pair
from workbench.amqp10.errors import LocalProtocolError
from workbench.amqp10.events import HeaderRefused, ProtocolViolation, SaslFinished
from workbench.amqp10.frame import Frame, ProtocolHeader
from workbench.amqp10.performatives import (
    SaslChallenge,
    SaslCode,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from workbench.amqp10.sasl import SaslClient, SaslServer

GUEST = SaslServer(check=lambda user, password: (user, password) == ("guest", "geheim"))
SASL = ProtocolHeader(3)


def opened(client, server=GUEST):
    return Pair(sasl=(client, server))


def test_anonymous_lets_everybody_in():
    """Headers, mechanisms, init, outcome, then the AMQP headers and opens [5.3.2]."""
    pair = opened(SaslClient())
    assert pair.client.connection.opened
    assert pair.server.connection.opened
    assert pair.server.connection.user == "anonymous"
    assert pair.client.sent[0] == SASL
    assert pair.client.sent[2] == ProtocolHeader()
    kinds = [getattr(item, "performative", item) for item in pair.server.sent]
    assert [type(kind) for kind in kinds[:4]] == [
        ProtocolHeader, SaslMechanisms, SaslOutcome, ProtocolHeader,
    ]  # fmt: skip


def test_plain_asks_the_owner():
    """User and password are the owner's to judge."""
    pair = opened(SaslClient(mechanism="PLAIN", user="guest", password="geheim"))
    assert pair.server.connection.opened
    assert pair.server.connection.user == pair.client.connection.user == "guest"


def test_a_wrong_password_ends_it():
    """Outcome auth, and neither end goes on [5.3.3.6]."""
    pair = opened(SaslClient(mechanism="PLAIN", user="guest", password="falsch"))
    assert [event.code for event in pair.client.heard(SaslFinished)] == [SaslCode.AUTH]
    assert pair.client.connection.ended
    assert pair.server.connection.ended


def test_a_mechanism_that_is_not_offered_ends_it():
    """The client does not try what the server did not name."""
    pair = opened(SaslClient(mechanism="PLAIN", user="a", password="b"), SaslServer())
    assert [event.code for event in pair.client.heard(SaslFinished)] == [SaslCode.AUTH]
    assert pair.client.connection.ended


def test_mechanisms_are_what_the_owner_allows():
    """PLAIN only with somebody who judges it."""
    assert GUEST.mechanisms == ("PLAIN", "ANONYMOUS")
    assert SaslServer().mechanisms == ("ANONYMOUS",)
    assert SaslServer(check=lambda u, p: True, anonymous=False).mechanisms == ("PLAIN",)


def server_with(frames, sasl=GUEST):
    pair = Pair(start=False, sasl=(None, sasl))
    events = []
    for item in (SASL, *(Frame(0, frame) for frame in frames)):
        events += pair.server.connection.apply(item)
    for event in events:
        pair.server.connection.answer(event)
    return pair, events


def test_plain_without_initial_response_is_asked_for_it():
    """An empty challenge, and then the response [5.3.3.3]."""
    pair, _ = server_with([SaslInit(mechanism="PLAIN")])
    assert pair.server.sent[-1].performative == SaslChallenge(challenge=b"")
    response = Frame(0, SaslResponse(response=b"\0guest\0geheim"))
    for event in pair.server.connection.apply(response):
        pair.server.connection.answer(event)
    assert pair.server.sent[-1].performative == SaslOutcome(code=SaslCode.OK)


@pytest.mark.parametrize(
    "response", [b"", b"guest", b"\0guest", b"\0a\0b\0c", b"\0\xff\0x", b"x" * 300]
)
def test_a_response_of_the_wrong_form_is_a_wrong_password(response):
    """Nothing else happens: the peer's octets are text or nothing."""
    pair, _ = server_with([SaslInit(mechanism="PLAIN", initial_response=response)])
    assert pair.server.sent[-1].performative == SaslOutcome(code=SaslCode.AUTH)
    assert pair.server.connection.ended


@pytest.mark.parametrize(
    "frames",
    [
        [SaslResponse(response=b"")],
        [SaslOutcome(code=SaslCode.OK)],
        [SaslInit(mechanism="PLAIN"), SaslInit(mechanism="ANONYMOUS")],
        [SaslInit(mechanism="ANONYMOUS"), SaslInit(mechanism="ANONYMOUS")],
    ],
)
def test_a_step_out_of_turn_ends_the_connection(frames):
    """The exchange has one order [5.3.2]."""
    _, events = server_with(frames)
    assert any(isinstance(event, ProtocolViolation) for event in events)


def test_sasl_frames_need_the_sasl_header():
    """Without it they have no meaning."""
    pair = Pair(start=False, sasl=(None, GUEST))
    (event,) = pair.server.connection.apply(Frame(0, SaslInit(mechanism="ANONYMOUS")))
    assert isinstance(event, ProtocolViolation)


def test_a_client_may_pipeline_the_whole_exchange():
    """SASL header, init, AMQP header, all before the server has spoken."""
    pair = Pair(start=False, sasl=(None, GUEST))
    events = []
    for item in (SASL, Frame(0, SaslInit(mechanism="ANONYMOUS")), ProtocolHeader()):
        events += pair.server.connection.apply(item)
    for event in events:
        pair.server.connection.answer(event)
    kinds = [type(getattr(item, "performative", item)) for item in pair.server.sent]
    assert kinds == [ProtocolHeader, SaslMechanisms, SaslOutcome, ProtocolHeader]


def test_skipping_sasl_is_the_owners_choice():
    """By default the server answers the AMQP header with the SASL header [2.2]."""
    pair = Pair(start=False, sasl=(None, GUEST))
    (event,) = pair.server.connection.apply(ProtocolHeader())
    assert isinstance(event, HeaderRefused)
    pair.server.connection.answer(event)
    assert pair.server.sent == [SASL]
    relaxed = Pair(sasl=(None, SaslServer(required=False)))
    assert relaxed.client.connection.opened
    assert relaxed.server.connection.user is None


def test_a_password_does_not_show_in_a_picture():
    """Neither in repr nor in overview."""
    client = SaslClient(mechanism="PLAIN", user="guest", password="geheim")
    pair = opened(client)
    assert "geheim" not in repr(client) + str(pair.client.connection.overview())


def test_each_side_takes_its_own_kind():
    """A client has a SaslClient, a server a SaslServer."""
    with pytest.raises(LocalProtocolError):
        Pair(start=False, sasl=(SaslServer(), None))
