"""What RabbitMQ makes of frames that break a rule: tables with a column for each version.

A row is what a client does, and what comes of it: `close`, `end` or `detach` with a condition, or
nothing. What a session of RabbitMQ has no clause for, or stumbles over, ends it with
internal-error; before 4.2 there were no faults of links but the want of credit.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.rig import RawClient, Rig, data
from workbench import presets
from workbench.amqp10.encoder import encode_value
from workbench.amqp10.frame import Frame, encode_item
from workbench.amqp10.framing import FrameReader
from workbench.amqp10.messaging import Accepted, Modified, Received, Released, Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    SaslInit,
    SaslOutcome,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.values import Described, Symbol, UInt, ULong
from workbench.frontends import message_of
from workbench.queues import QueueArguments

SPEC, RMQ40, RMQ43 = (presets.get(name) for name in ("spec", "rmq4.0", "rmq4.3"))
BOTH = pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda p: p.name)
ALL = pytest.mark.parametrize("preset", [SPEC, RMQ40, RMQ43], ids=lambda p: p.name)
QUEUE = "/queues/q"
FIRST, SECOND = ReceiverSettleMode
UNSETTLED, SETTLED, MIXED = SenderSettleMode

Said = tuple[str, str] | None
CRASH: Said = ("end", "amqp:internal-error")
NO_LINK: Said = ("end", "amqp:session:unattached-handle")
END_FRAMING: Said = ("end", "amqp:connection:framing-error")
DETACH_FIELD: Said = ("detach", "amqp:invalid-field")
TOO_LARGE: Said = ("end", "amqp:link:message-size-exceeded")
CLOSE_CRASH: Said = ("close", "amqp:internal-error")


def said(client: RawClient) -> Said:
    """The first error that the broker told, and by which frame."""
    for item in client.received:
        frame = getattr(item, "performative", None)
        error = getattr(frame, "error", None)
        if isinstance(frame, Close | End | Detach) and error is not None:
            return frame.NAME, str(getattr(error.condition, "value", error.condition))
    return None


def dumb(rig: Rig, **options) -> tuple[RawClient, object]:
    """A client with a session that answers nothing from now on, and says what a test tells it."""
    client, session = rig.raw(**options)
    client.react = lambda events: None  # type: ignore[method-assign]
    client.received.clear()
    return client, session


def put(rig: Rig, client: RawClient, *frames, channel: int = 0) -> None:
    """Says these frames: performatives, or pairs of one and its payload."""
    for frame in frames:
        performative, payload = frame if isinstance(frame, tuple) else (frame, b"")
        client.wire.send(client, Frame(channel, performative, payload))
    rig.rest()


def rig_of(preset, **changes) -> Rig:
    rig = Rig(replace(preset, **changes), plain_names=False)
    rig.broker.declare("q")
    return rig


def publisher(**fields) -> Attach:
    usual = {
        "name": "p",
        "handle": 0,
        "role": Role.SENDER,
        "source": Source(),
        "target": Target(address=QUEUE),
        "initial_delivery_count": 0,
    }
    return Attach(**{**usual, **fields})


def consumer(**fields) -> Attach:
    usual = {"name": "c", "handle": 0, "role": Role.RECEIVER, "source": Source(address=QUEUE)}
    return Attach(**{**usual, **fields})


def transfer(octets: bytes = b"m", **fields) -> tuple[Transfer, bytes]:
    usual = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t"}
    return Transfer(**{**usual, **fields}), octets if fields.pop("raw", False) else data(octets)


def flow(**fields) -> Flow:
    usual = {
        "next_incoming_id": 0,
        "incoming_window": 9,
        "next_outgoing_id": 0,
        "outgoing_window": 9,
    }
    return Flow(**{**usual, **fields})


def half(**fields) -> tuple[Transfer, bytes]:
    frame, octets = transfer(**fields)
    return frame, octets[:4]


def rest_of(**fields) -> tuple[Transfer, bytes]:
    frame, octets = transfer(**fields)
    return frame, octets[4:]


# -- transfers ------------------------------------------------------------------------------

NOT_ASKED = {"delivery_id": None, "delivery_tag": None}
TRANSFERS = {
    # name: (fields of the attach, frames, RabbitMQ 4.0, RabbitMQ 4.3, ready afterwards)
    "a message": ({}, [transfer()], None, None, 1),
    "no delivery-id": ({}, [transfer(delivery_id=None)], CRASH, CRASH, 0),
    "no delivery-id on the first of two": (
        {},
        [half(delivery_id=None, more=True), rest_of()],
        CRASH,
        CRASH,
        0,
    ),
    "a delivery-id that is in use": ({}, [transfer(), transfer()], CRASH, CRASH, 1),
    "no delivery-tag": ({}, [transfer(delivery_tag=None), transfer(delivery_id=1)], None, None, 2),
    "message-format 5": ({}, [transfer(message_format=5)], None, None, 1),
    "a state, to be resumed": ({}, [transfer(state=Accepted(), resume=True)], None, None, 1),
    "in two parts": ({}, [half(more=True), rest_of(**NOT_ASKED)], None, None, 1),
    "in two parts, other tag and format": (
        {},
        [half(more=True), rest_of(delivery_id=None, delivery_tag=b"z", message_format=9)],
        None,
        None,
        1,
    ),
    "aborted, though whole": ({}, [transfer(aborted=True)], None, None, 1),
    "another delivery-id in between": (
        {},
        [half(more=True), rest_of(delivery_id=1)],
        END_FRAMING,
        DETACH_FIELD,
        0,
    ),
    "begun unsettled, ended settled": (
        {},
        [half(more=True), rest_of(**NOT_ASKED, settled=True)],
        END_FRAMING,
        DETACH_FIELD,
        0,
    ),
    "begun settled, ended unsettled": (
        {},
        [half(more=True, settled=True), rest_of(**NOT_ASKED, settled=False)],
        END_FRAMING,
        DETACH_FIELD,
        0,
    ),
    "unsettled on a settled link": (
        {"snd_settle_mode": SETTLED},
        [transfer()],
        END_FRAMING,
        DETACH_FIELD,
        0,
    ),
    "settled on an unsettled link": (
        {"snd_settle_mode": UNSETTLED},
        [transfer(settled=True)],
        END_FRAMING,
        DETACH_FIELD,
        0,
    ),
    "settled and unsettled on a mixed link": (
        {"snd_settle_mode": MIXED},
        [transfer(settled=True), transfer(delivery_id=1)],
        None,
        None,
        2,
    ),
    "settling second": (
        {},
        [transfer(rcv_settle_mode=SECOND)],
        ("end", "amqp:not-implemented"),
        ("detach", "amqp:not-implemented"),
        0,
    ),
    "settling second what is settled": (
        {},
        [transfer(rcv_settle_mode=SECOND, settled=True)],
        None,
        None,
        1,
    ),
    "no payload": ({}, [(transfer()[0], b"")], CRASH, ("detach", "amqp:decode-error"), 0),
    "no message": ({}, [(transfer()[0], b"\xff")], CRASH, ("detach", "amqp:decode-error"), 0),
    "a body that is cut short": (
        {},
        [(transfer()[0], data(b"abc")[:-1])],
        None,
        ("detach", "amqp:decode-error"),
        0,
    ),
    "larger than max-message-size": ({}, [transfer(b"x" * 100)], TOO_LARGE, TOO_LARGE, 0),
    "larger, in its second part of three": (
        {},
        [half(more=True), (transfer(more=True)[0], bytes(97)), rest_of()],
        TOO_LARGE,
        TOO_LARGE,
        0,
    ),
    "for a consumer's link": ({"handle": 1}, [consumer(), transfer()], NO_LINK, NO_LINK, 0),
}


@pytest.mark.parametrize("row", TRANSFERS.values(), ids=TRANSFERS.keys())
@BOTH
def test_a_transfer_that_breaks_a_rule(preset, row) -> None:
    """What is wrong, and whether the link pays for it or the session."""
    terms, frames, in_40, in_43, ready = row
    rig = rig_of(preset, max_message_size=100)
    if len(frames) > 1 and frames[0] == frames[1]:
        rig.broker.queues["q"].stall()  # a delivery-id is in use until the queue has confirmed it
    client, _ = dumb(rig)
    put(rig, client, publisher(**terms), *frames)
    rig.broker.queues["q"].resume()
    rig.rest()
    assert said(client) == (in_40 if preset is RMQ40 else in_43)
    if row is not TRANSFERS["a body that is cut short"]:
        assert rig.queue().ready == ready


@BOTH
def test_after_its_detach_a_link_is_forgotten_at_once(preset) -> None:
    """The next transfer is for no link; no answer to the detach is awaited; its handle is free."""
    rig = rig_of(preset, publisher_credit=1)
    rig.broker.queues["q"].stall()
    client, _ = dumb(rig)
    settled = [transfer(delivery_id=n, settled=True) for n in range(3)]
    put(rig, client, publisher(), *settled[:2])
    assert said(client) == ("detach", "amqp:link:transfer-limit-exceeded")
    put(rig, client, publisher(name="again"), Detach(handle=0), publisher(name="third"))
    assert [frame.name for frame in client.frames(Attach)] == ["p", "again", "third"]
    assert client.frames(End) == []
    put(rig, client, Detach(handle=0), settled[2])
    assert client.frames(End)[0].error.condition == "amqp:session:unattached-handle"


@BOTH
def test_after_its_end_a_session_is_forgotten_at_once(preset) -> None:
    """A frame on its channel is dropped, and a begin there begins another."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    put(rig, client, transfer())
    assert said(client) == NO_LINK
    put(rig, client, transfer(), End())
    assert len(client.received) == 1
    put(rig, client, Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9), publisher())
    assert [type(item.performative) for item in client.received[1:]] == [Begin, Attach, Flow]


# -- attaching, detaching -------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("asked", "agreed"), [(3, 3), (255, 255), (70_000, 255), (None, 255)])
def test_handle_max_is_the_smaller_of_both(preset, asked, agreed) -> None:
    """A link beyond it ends the session with framing-error; there is one number for both ends."""
    rig = rig_of(preset)
    client = rig.connect(RawClient())
    rig.rest()
    client.react = lambda events: None
    begin = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9, handle_max=asked)
    put(rig, client, begin, publisher(handle=agreed))
    assert client.frames(Begin)[0].handle_max == agreed
    assert client.frames(Attach)[0].handle == agreed
    put(rig, client, publisher(name="beyond", handle=agreed + 1))
    assert said(client) == END_FRAMING


def test_an_alarm_leaves_the_agreed_handle_max_as_it_was() -> None:
    """Windows close and open again; what was agreed with the client stays."""
    rig = rig_of(RMQ43)
    client = rig.connect(RawClient())
    rig.rest()
    client.react = lambda events: None
    put(rig, client, Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9, handle_max=3))
    rig.broker.set_alarm()
    rig.broker.clear_alarm()
    rig.rest()
    put(rig, client, publisher(handle=4))
    assert said(client) == END_FRAMING


REFUSED = {
    "a flow": flow(handle=5, link_credit=1),
    "a transfer": Transfer(handle=5, delivery_id=0, delivery_tag=b"t"),
}


@pytest.mark.parametrize("frame", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("attach", [publisher, consumer])
def test_a_refused_link_has_the_clients_handle_and_is_none_afterwards(attach, frame) -> None:
    """What the client pipelined behind its attach ends the session [2.7.4]."""
    rig = rig_of(RMQ43)
    client, _ = dumb(rig)
    nowhere = {"source": Source(address="/queues/no"), "target": Target(address="/queues/no")}
    put(rig, client, attach(handle=5, **nowhere))
    kinds = [(type(item.performative), item.performative.handle) for item in client.received]
    assert kinds == [(Attach, 5), (Detach, 5)]
    put(rig, client, frame)
    assert client.frames(End)[0].error.condition == "amqp:session:unattached-handle"


@BOTH
@pytest.mark.parametrize("closed", [None, False, True])
@pytest.mark.parametrize("attach", [publisher, consumer])
def test_a_detach_comes_back_as_it_was(preset, attach, closed) -> None:
    """With the same `closed`, written out or not; 4.0 takes an error out of it."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    error = Error(condition=Symbol("my:error"), description="mine")
    put(rig, client, attach(), Detach(handle=0, closed=closed, error=error))
    (detach,) = client.frames(Detach)
    assert detach.closed is closed
    assert detach.error == (None if preset is RMQ40 else error)


# -- flows and dispositions -----------------------------------------------------------------

A_LINKS_FIELDS = {"delivery_count": 7, "link_credit": 3, "available": 1, "drain": True}
FLOWS = {
    # name: (attach, flow, RabbitMQ)
    "no link-credit for a consumer": (consumer(), flow(handle=0), CRASH),
    "no link-credit, with echo": (consumer(), flow(handle=0, echo=True), CRASH),
    "credit for a consumer": (consumer(), flow(handle=0, link_credit=1), None),
    "no link-credit for a publisher": (publisher(), flow(handle=0, available=4), None),
    "any delivery-count of a publisher": (publisher(), flow(handle=0, delivery_count=2**31), None),
    "drain=false for the session": (publisher(), flow(drain=False), None),
    "a link's fields for the session": (publisher(), flow(**A_LINKS_FIELDS), None),
    "no such link": (publisher(), flow(handle=1), NO_LINK),
    "a window that cannot be added": (publisher(), flow(incoming_window=2**31), CRASH),
}


@pytest.mark.parametrize(("attach", "frame", "expected"), FLOWS.values(), ids=FLOWS.keys())
@BOTH
def test_a_flow_that_breaks_a_rule(preset, attach, frame, expected) -> None:
    """A consumer's credit is all that a session looks at, besides its own fields."""
    rig = rig_of(preset, initial_next_outgoing_id=0)
    client, _ = dumb(rig)
    put(rig, client, attach, frame)
    assert said(client) == expected


DISPOSITIONS = {
    # name: (fields, RabbitMQ with a delivery to settle, RabbitMQ with none)
    "accepted": ({"settled": True, "state": Accepted()}, None, None),
    "accepted, unsettled": ({"settled": False, "state": Accepted()}, None, None),
    "settled left out": ({"settled": None, "state": Accepted()}, CRASH, None),
    "no outcome": ({"settled": True}, ("end", "amqp:invalid-field"), None),
    "received": (
        {"settled": False, "state": Received(section_number=0, section_offset=0)},
        ("end", "amqp:invalid-field"),
        None,
    ),
    "annotations x-": (
        {"settled": True, "state": Modified(message_annotations={Symbol("x-a"): 1})},
        None,
        None,
    ),
    "reserved annotations": (
        {"settled": True, "state": Modified(message_annotations={Symbol("a"): 1})},
        CRASH,
        None,
    ),
    "of another delivery": ({"first": 4, "settled": True, "state": Released()}, None, None),
    "a range backwards": (
        {"first": 4, "last": 2, "settled": True, "state": Released()},
        CRASH,
        None,
    ),
    "a publisher's": ({"role": Role.SENDER, "settled": True, "state": Released()}, CRASH, CRASH),
}


@pytest.mark.parametrize("row", DISPOSITIONS.values(), ids=DISPOSITIONS.keys())
@pytest.mark.parametrize("messages", [0, 1])
@BOTH
def test_a_disposition_that_breaks_a_rule(preset, messages, row) -> None:
    """While nothing is to be settled nothing of it is looked at but the role."""
    fields, with_one, with_none = row
    rig = rig_of(preset)
    rig.fill("q", messages)
    client, _ = dumb(rig)
    start = rig.preset.initial_next_outgoing_id
    credit = flow(handle=0, link_credit=1, next_incoming_id=start)
    put(rig, client, consumer(), credit)
    put(rig, client, Disposition(**{"role": Role.RECEIVER, "first": 0, **fields}))
    assert said(client) == (with_one if messages else with_none)


@BOTH
@pytest.mark.parametrize("mode", [UNSETTLED, SETTLED])
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_message_above_a_consumers_max_message_size_ends_its_session(preset, kind, mode) -> None:
    """message-size-exceeded; all links of the session go, and the messages stay."""
    rig = Rig(preset, plain_names=False)
    rig.broker.declare("q", QueueArguments(queue_type=kind)).fill(
        map(message_of, [data(b"y" * 200)] * 3)
    )
    rig.rest()
    client, _ = dumb(rig)
    start = rig.preset.initial_next_outgoing_id
    put(
        rig,
        client,
        consumer(max_message_size=100, snd_settle_mode=mode),
        consumer(name="other", handle=1, max_message_size=100),
        flow(handle=0, link_credit=3, next_incoming_id=start),
    )
    assert said(client) == TOO_LARGE
    assert client.frames(Detach) == []
    assert client.frames(Transfer) == []
    assert (rig.queue().ready, rig.queue().consumers()) == (3, ())


# -- bodies that are no performative --------------------------------------------------------


def body(value: object) -> bytes:
    return encode_value(value)


def described(code: int, *fields) -> bytes:
    return body(Described(ULong(code), list(fields)))


FLOW_FIELDS = [UInt(0), UInt(9), UInt(0), UInt(9)]
BODIES = {
    # name: (octets, on a session, on a channel without one)
    "no AMQP type": (b"\x01", CLOSE_CRASH, CLOSE_CRASH),
    "a list that is cut short": (b"\x00\x53\x13\xc0\x20\x04", CLOSE_CRASH, CLOSE_CRASH),
    "descriptor 0x99": (described(0x99), CLOSE_CRASH, CLOSE_CRASH),
    "not described": (b"\xa1\x03abc", CRASH, None),
    "a section of a message": (data(b"m"), CRASH, None),
    "too many fields": (described(0x17, None, 1, 2, 3), CLOSE_CRASH, CLOSE_CRASH),
    "a flow of three fields": (described(0x13, *FLOW_FIELDS[:3]), CLOSE_CRASH, CLOSE_CRASH),
    "a flow without next-outgoing-id": (
        described(0x13, UInt(0), UInt(9), None, UInt(9)),
        CRASH,
        None,
    ),
    "a flow with payload": (described(0x13, *FLOW_FIELDS) + b"x", CRASH, None),
    "an attach without handle and role": (described(0x12, "n"), CRASH, None),
    "an attach with a number for a name": (described(0x12, 5, UInt(0), False), CRASH, None),
    "a begin without fields": (described(0x11), CRASH, CLOSE_CRASH),
    "a begin that answers one": (described(0x11, 7, *FLOW_FIELDS[1:]), CRASH, CLOSE_CRASH),
    "an open without container-id": (described(0x10), CLOSE_CRASH, CLOSE_CRASH),
    "a SASL frame's body": (described(0x44, 0), CRASH, None),
}


def items(octets: bytes, channel: int) -> list:
    size = (8 + len(octets)).to_bytes(4, "big")
    whole = size + b"\x02\x00" + channel.to_bytes(2, "big") + octets
    reader = FrameReader(1 << 20, mid_stream=True, keeps_undecodable=True)
    read = [raw.item for raw in reader.feed(whole + encode_item(Frame(channel)))]
    assert len(read) == 2  # reading goes on behind it
    assert encode_item(read[0]) == whole
    return read


@pytest.mark.parametrize(("octets", "there", "nowhere"), BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("channel", [0, 5])
@BOTH
def test_a_body_that_is_no_performative(preset, channel, octets, there, nowhere) -> None:
    """The reader closes for what it cannot read; the session ends for what it does not expect."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    for item in items(octets, channel):
        client.wire.send(client, item)
    rig.rest()
    expected = there if channel == 0 else nowhere
    assert said(client) == expected
    alive = rig.broker.connections["c1"].amqp.opened
    assert alive is (expected is None or expected[0] == "end")


def test_under_the_specification_such_a_body_closes_with_decode_error() -> None:
    """2.3.2 wants a performative, and 2.8.15 has a condition for it."""
    for octets, *_ in (BODIES["not described"], BODIES["descriptor 0x99"]):
        rig = Rig(SPEC)
        client, _ = dumb(rig)
        client.wire.send(client, items(octets, 0)[0])
        rig.rest()
        assert said(client) == ("close", "amqp:decode-error")


def test_a_delivery_tag_of_any_length_is_taken_by_rabbitmq_alone() -> None:
    """The type has 32 octets at most [2.8.7], which RabbitMQ does not look at."""
    fields = [UInt(0), UInt(0), b"x" * 40, UInt(0), False]
    octets = described(0x14, *fields) + data(b"m")
    for preset, expected in ((SPEC, ("close", "amqp:decode-error")), (RMQ40, None), (RMQ43, None)):
        rig = rig_of(preset)
        client, _ = dumb(rig)
        put(rig, client, publisher(target=Target(address="q" if preset is SPEC else QUEUE)))
        client.wire.send(client, items(octets, 0)[0])
        rig.rest()
        assert said(client) == expected
        assert rig.queue().ready == (expected is None)


# -- connection -----------------------------------------------------------------------------


@ALL
def test_a_second_open_closes_the_connection(preset) -> None:
    """illegal-state by the specification; RabbitMQ's reader has no clause for it."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    put(rig, client, Open(container_id="again"))
    assert said(client) == (("close", "amqp:illegal-state") if preset is SPEC else CLOSE_CRASH)


class Mechanic(RawClient):
    """A client whose sasl-init a test writes."""

    def __init__(self, init: SaslInit) -> None:
        super().__init__()
        self.init = init

    def _emit(self, item) -> None:
        if isinstance(getattr(item, "performative", None), SaslInit):
            item = Frame(0, self.init)
        super()._emit(item)


GUEST = b"\0guest\0guest"
INITS = {
    # name: (mechanism, response, code in spec, code in RabbitMQ; None: it hangs up)
    "the right password": ("PLAIN", GUEST, 0, 0),
    "a wrong password": ("PLAIN", b"\0guest\0no", 1, 1),
    "an unknown user": ("PLAIN", b"\0nobody\0x", 1, 1),
    "anonymous": ("ANONYMOUS", b"x", 0, 0),
    "an unknown mechanism": ("FOO", b"", 1, None),
    "EXTERNAL": ("EXTERNAL", b"", 1, None),
    "no separators": ("PLAIN", b"garbage", 1, None),
    "an empty response": ("PLAIN", b"", 1, None),
    "too many separators": ("PLAIN", GUEST + b"\0", 1, None),
    "an authorisation identity": ("PLAIN", b"guest" + GUEST, 0, None),
}


@pytest.mark.parametrize("row", INITS.values(), ids=INITS.keys())
@ALL
def test_a_sasl_response_that_cannot_be_read_gets_no_outcome_from_rabbitmq(preset, row) -> None:
    """A wrong password has the code auth; anything else that is wrong ends the connection."""
    mechanism, response, in_spec, in_rabbit = row
    code = in_spec if preset is SPEC else in_rabbit
    rig = rig_of(preset)
    client = rig.connect(Mechanic(SaslInit(mechanism=mechanism, initial_response=response)))
    rig.rest()
    assert [frame.code for frame in client.frames(SaslOutcome)] == ([] if code is None else [code])
    assert rig.broker.connections["c1"].amqp.ended is (code != 0)


@ALL
def test_plain_without_an_initial_response_is_asked_for_it_by_the_specification(preset) -> None:
    """RabbitMQ takes the absent response as an empty one."""
    rig = rig_of(preset)
    client = rig.connect(Mechanic(SaslInit(mechanism="PLAIN")))
    rig.rest()
    kinds = [item.performative.NAME for item in client.received[1:]]
    assert ("sasl-challenge" in kinds) is (preset is SPEC)
    assert rig.broker.connections["c1"].amqp.ended
