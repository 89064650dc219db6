"""What a peer may not send: the condition, whose scope it ends, and the numbers in the text."""

import pytest

from tests.amqp10.pair import LinkPair
from workbench.amqp10.messaging import Source
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.amqp10.states import LinkState

FIELD, HANDLE = "amqp:invalid-field", "amqp:session:unattached-handle"
FRAMING = "amqp:connection:framing-error"
SECOND = ReceiverSettleMode.SECOND
OTHER_ID = {"delivery_id": 1, "delivery_tag": b"u"}


def transfer(**fields):
    return Transfer(**{"handle": 0, "delivery_id": 0, "delivery_tag": b"t", **fields})


def flow(**fields):
    ids = {"next_incoming_id": 0, "next_outgoing_id": 0}
    return Flow(**{**ids, "incoming_window": 9, "outgoing_window": 9, **fields})


def begin(**fields):
    return Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9, **fields)


def ending(**fields):
    return Disposition(role=Role.RECEIVER, **fields)


# By the sending server, over a link with credit; the last frame is the one that is wrong.
OF_A_SENDER = {
    # [2.6.14, 2.7.5, 2.6.12]
    "no delivery-id": ([transfer(delivery_id=None)], "session", FIELD, "no delivery-id"),
    "no delivery-tag": ([transfer(delivery_tag=None)], "link", FIELD, "no delivery-tag"),
    "a delivery within another": (
        [transfer(more=True), transfer(**OTHER_ID)],
        "link", FIELD, "delivery 1 begins while delivery 0 is not complete",
    ),
    "another tag in the middle": (
        [transfer(more=True), transfer(delivery_tag=b"u")],
        "link", FIELD, "began with delivery-tag 74 and goes on with 75",
    ),
    "a delivery-id that is in use": (
        [transfer(delivery_id=3)] * 2, "session", FIELD, "delivery-id 3 on link l is in use",
    ),
    "a settle mode that the link has not": (
        [transfer(rcv_settle_mode=SECOND)],
        "link", FIELD, "has rcv-settle-mode second; the link has first",
    ),
    "a delivery of an earlier link": (
        [transfer(resume=True)], "link", "amqp:not-implemented", "not resumed",
    ),
    "a transfer for no link": ([transfer(handle=5)], "session", HANDLE, "handle 5"),
    # It only moves on: what came is counted.
    "a delivery-count that goes back": (
        [transfer(settled=True), flow(next_outgoing_id=1, handle=0, delivery_count=0)],
        "link", FIELD, "delivery-count 0 is behind 1",
    ),
    # As a value on a wire too, where nobody counts octets on reading [2.3.1].
    "a frame above max-frame-size": (
        [(transfer(), bytes(600))], "connection", FRAMING, "largest accepted is 512",
    ),
}  # fmt: skip

# By the receiving client.
OF_A_RECEIVER = {
    # [2.5.6]
    "more received than was sent": (
        [flow(next_incoming_id=7)], "session", "amqp:session:window-violation",
        "next-incoming-id 7 leads next-outgoing-id 0",
    ),
    # They belong to a link [2.7.4].
    **{
        f"{name} without a handle": (
            [flow(**{name: value})], "session", FIELD, name.replace("_", "-"),
        )
        for name, value in (
            ("delivery_count", 0), ("link_credit", 5), ("available", 0), ("drain", True),
            ("properties", {}),
        )
    },
    # [2.8.17]
    "a flow for no link": ([flow(handle=4, link_credit=1)], "session", HANDLE, "handle 4"),
    "a detach for no link": ([Detach(handle=4)], "session", HANDLE, "handle 4"),
    "a handle that is in use": (
        [Attach(name="x", handle=0, role=Role.RECEIVER)],
        "session", "amqp:session:handle-in-use", "handle 0",
    ),
    "a sender without initial-delivery-count": (
        [Attach(name="x", handle=1, role=Role.SENDER)], "session", FIELD, "initial-delivery-count",
    ),
    "a range backwards": ([ending(first=5, last=2)], "session", FIELD, "last"),
    "a range of half the circle": (
        [ending(first=0, last=2147483648)], "session", FIELD, "no range",
    ),
    # Only the link's sender sends messages.
    "a transfer from the receiving end": ([transfer()], "link", "amqp:not-allowed", ""),
    # [2.7.1, 2.7.2]
    "a handle above handle-max": (
        [Attach(name="x", handle=5, role=Role.RECEIVER)], "connection", FRAMING, "handle-max",
    ),
    "a session above channel-max": ([(begin(), 7)], "connection", FRAMING, "channel-max"),
    # There is no session that could be ended.
    "a second open": (
        [Open(container_id="again")], "connection", None, "open came in state OPENED",
    ),
    "an end without a session": (
        [(End(), 6)], "connection", None, "channel 6, on which no session is begun",
    ),
    "a begin where a session runs": (
        [begin()], "connection", None, "begin on channel 0, on which a session runs",
    ),
    "an answer to no begin": (
        [(begin(remote_channel=9), 4)], "connection", None, "this end awaits no begin",
    ),
}  # fmt: skip

ROWS = [
    pytest.param(by, *row, id=name)
    for by, table in (("server", OF_A_SENDER), ("client", OF_A_RECEIVER))
    for name, row in table.items()
]


@pytest.mark.parametrize(("by", "frames", "scope", "condition", "words"), ROWS)
def test_what_a_peer_may_not_send_ends_what_it_belongs_to(by, frames, scope, condition, words):
    """A link, a session or the connection, and nothing around it [2.8.15 to 2.8.18]."""
    pair = LinkPair(
        client=ConnectionSettings(max_frame_size=512),
        server=ConnectionSettings(channel_max=6),
        server_session=SessionSettings(handle_max=4),
        credit=100,
    )
    side = pair.server if by == "server" else pair.client
    for frame in frames:
        performative, more = frame if isinstance(frame, tuple) else (frame, None)
        payload = more if isinstance(more, bytes) else b"x" * isinstance(performative, Transfer)
        channel = more if isinstance(more, int) else 0
        before = pair.receiver_session.ledger(), pair.sender_session.ledger()
        (event,) = pair.inject(side, performative, payload, channel)
    if condition == "amqp:session:window-violation":
        assert (pair.receiver_session.ledger(), pair.sender_session.ledger()) == before
    assert event.scope.value == scope
    assert condition in (None, event.condition)
    assert words in event.description
    hearing = pair.peer_of(side).connection
    hearing.answer(event)
    pair.pump()
    assert hearing.ended is (scope == "connection")
    assert (hearing.sessions != []) is (scope == "link")
    assert pair.sender.state is pair.receiver.state is LinkState.DETACHED or scope != "link"


@pytest.mark.parametrize(
    ("frame", "channel", "scope", "words"),
    [
        (Attach(name="x", handle=3, role=Role.RECEIVER), 0, "session", "handle-max is 0"),
        (begin(), 3, "connection", "channel-max is 0"),
    ],
)
def test_a_peer_that_takes_no_further_number_can_attach_and_begin_nothing(
    frame, channel, scope, words
):
    """An end may use what its peer takes; but the answer needs a number, too [2.7.1, 2.7.2]."""
    pair = LinkPair(
        client=ConnectionSettings(channel_max=0), client_session=SessionSettings(handle_max=0)
    )
    (event,) = pair.inject(pair.client, frame, channel=channel)
    assert (event.scope.value, event.condition) == (scope, "amqp:resource-limit-exceeded")
    assert words in event.description


def test_a_link_that_is_attached_anew_gives_its_number_back_first():
    """The older attachment is detached before the new one is answered [2.6.1]."""
    pair = LinkPair(client_session=SessionSettings(handle_max=0))
    stolen, attaching = pair.inject(
        pair.client, Attach(name="l", handle=3, role=Role.RECEIVER, source=Source())
    )
    for event in (stolen, attaching):
        pair.server.connection.answer(event)
    assert [type(frame) for frame in pair.server.frames()[-2:]] == [Detach, Attach]


@pytest.mark.parametrize(
    ("mode", "frames", "words"),
    [
        (SenderSettleMode.UNSETTLED, [{"settled": True}], "is sent settled"),
        (SenderSettleMode.UNSETTLED, [{"more": True}, {"settled": True}], "is sent settled"),
        (SenderSettleMode.UNSETTLED, [{"more": True}, {}], None),
        (SenderSettleMode.UNSETTLED, [{"more": True}, {"settled": True, "aborted": True}], None),
        (SenderSettleMode.SETTLED, [{}], "ends unsettled"),
        (SenderSettleMode.SETTLED, [{"more": True}, {}], "ends unsettled"),
        (SenderSettleMode.SETTLED, [{"settled": True, "more": True}, {}], None),
        (SenderSettleMode.SETTLED, [{"more": True}, {"settled": True}], None),
        (SenderSettleMode.SETTLED, [{"more": True}, {"aborted": True}], None),
        (SenderSettleMode.MIXED, [{"settled": True}], None),
        (SenderSettleMode.MIXED, [{}], None),
    ],
)
def test_a_delivery_is_settled_as_snd_settle_mode_promises(mode, frames, words):
    """Unsettled: no frame is settled; settled: at least one is; mixed allows both [2.7.5]."""
    pair = LinkPair(server_sends=False, sender_terms={"snd_settle_mode": mode}, credit=5)
    for place, fields in enumerate(frames):
        first = {"delivery_id": 0, "delivery_tag": b"t"} if place == 0 else {}
        pair.inject(pair.client, Transfer(handle=pair.sender.handle, **first, **fields), b"x")
    assert [(one.condition, words in one.description) for one in pair.server.violations] == (
        [(FIELD, True)] if words else []
    )
    assert pair.receiver.unsettled == {} or words is None
