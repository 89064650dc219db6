"""What RabbitMQ makes of frames that break a rule or go beyond a limit, with a column a version.

A row is what a client does, and what comes of it: `close`, `end` or `detach` with a condition, or
nothing. What a session of RabbitMQ has no clause for, or stumbles over, ends it with
internal-error; before 4.2 there were no faults of links but the want of credit.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tests.broker.rig import RMQ40, RMQ43, SPEC, RawClient, Rig, data, every_preset, rabbit
from workbench import presets
from workbench.amqp10.encoder import encode_value
from workbench.amqp10.frame import Frame, ProtocolHeader, encode_item
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
    SaslMechanisms,
    SaslOutcome,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings
from workbench.amqp10.values import Described, MapPairs, Symbol, UInt, ULong
from workbench.frontends import message_of
from workbench.frontends.address_resolver import OUTCOMES
from workbench.queues import QueueArguments
from workbench.sim import Wire

QUEUE = "/queues/q"
FIRST, SECOND = ReceiverSettleMode
UNSETTLED, SETTLED, MIXED = SenderSettleMode

CRASH = "end amqp:internal-error"
NO_LINK = "end amqp:session:unattached-handle"
END_FRAMING = "end amqp:connection:framing-error"
DETACH_FIELD = "detach amqp:invalid-field"
TOO_LARGE = "end amqp:link:message-size-exceeded"
CLOSE_CRASH = "close amqp:internal-error"
CLOSE_FRAMING = "close amqp:connection:framing-error"


def each(table: dict, names: str):
    """The rows of a table, by their names."""
    return pytest.mark.parametrize(names.split(", "), table.values(), ids=table.keys())


def said(client: RawClient) -> str | None:
    """The first error that the broker told, and by which frame."""
    for item in client.received:
        frame = getattr(item, "performative", None)
        error = getattr(frame, "error", None)
        if isinstance(frame, Close | End | Detach) and error is not None:
            return f"{frame.NAME} {getattr(error.condition, 'value', error.condition)}"
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
    """A rig with RabbitMQ's own addresses, a queue `q` and an exchange that nobody may use."""
    rig = Rig(replace(preset, **changes), plain_names=False)
    rig.broker.declare("q")
    rig.broker.vhost.routing.declare("inner", internal=True)
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


def halves(first: dict, second: dict, *, octets: bytes = b"m") -> list:
    """A message in two transfers."""
    whole = data(octets)
    return [(transfer(more=True, **first)[0], whole[:4]), (transfer(**second)[0], whole[4:])]


def begin(**fields) -> Begin:
    return Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9, **fields)


# -- connection -----------------------------------------------------------------------------

OPENS = {
    # name: (fields of the open, condition)
    "max-frame-size below 512": ({"max_frame_size": 511}, "amqp:invalid-field"),
    "max-frame-size of 512": ({"max_frame_size": 512}, None),
    "idle-time-out of 999 ms": ({"idle_time_out": 999}, "amqp:not-allowed"),
    "idle-time-out of 1000 ms": ({"idle_time_out": 1000}, None),
    "idle-time-out of 0": ({"idle_time_out": 0}, None),
    "another virtual host": ({"hostname": "vhost:other"}, "amqp:unauthorized-access"),
    "the virtual host /": ({"hostname": "vhost:/"}, None),
    "any other hostname": ({"hostname": "other"}, None),
}


class Rewriter(RawClient):
    """A client whose open or sasl-init has the fields of a row."""

    def __init__(self, kind: type, **fields) -> None:
        super().__init__()
        self.kind, self.fields = kind, fields

    def _emit(self, item) -> None:
        said = getattr(item, "performative", None)
        if isinstance(said, self.kind):
            item = structs.replace(item, performative=structs.replace(said, **self.fields))
        super()._emit(item)


@rabbit
@each(OPENS, "fields, why")
def test_on_an_open_that_asks_for_too_much_the_broker_hangs_up(preset, fields, why) -> None:
    """No open and no close: a reader that is not running yet throws (`handle_exception`).

    Why it was is told to whoever runs the broker.
    """
    rig = rig_of(preset)
    client = rig.connect(Rewriter(Open, **fields))
    rig.rest()
    assert len(client.frames(Open)) == (why is None)
    assert client.frames(Close) == []
    amqp = rig.broker.connections["c1"].amqp
    assert amqp.ended is (why is not None)
    assert (None if amqp.error is None else amqp.error.condition) == why


@rabbit
@pytest.mark.parametrize(("asked", "agreed"), [(10, 10), (63, 63), (100, 63), (None, 63)])
def test_channel_max_is_the_smaller_of_both(preset, asked, agreed) -> None:
    """64 sessions at most, and a begin beyond what was agreed closes with framing-error."""
    rig = rig_of(preset)
    client = rig.connect(Rewriter(Open, channel_max=asked))
    rig.rest()
    client.react = lambda events: None
    assert client.frames(Open)[0].channel_max == agreed
    put(rig, client, begin(), channel=agreed)
    assert len(client.frames(Begin)) == 1
    put(rig, client, begin(), channel=agreed + 1)
    assert said(client) == CLOSE_FRAMING


class Speechless(RawClient):
    """A client that begins with the header it is told to send."""

    def __init__(self, header: ProtocolHeader) -> None:
        super().__init__()
        self.header = header

    def connect(self, wire: Wire) -> None:
        self.wire = wire
        wire.send(self, self.header)


@rabbit
@pytest.mark.parametrize("protocol_id", [0, 2])
def test_a_client_that_skips_sasl_gets_the_sasl_header_and_no_more(preset, protocol_id) -> None:
    """SASL is compulsory; TLS by protocol id 2 is not spoken."""
    rig = rig_of(preset)
    client = rig.connect(Speechless(ProtocolHeader(protocol_id)))
    rig.rest()
    assert client.received == [ProtocolHeader(3)]


@rabbit
def test_a_frame_larger_than_agreed_closes_the_connection(preset) -> None:
    """131072 octets: framing-error."""
    rig = rig_of(preset)
    client, _ = dumb(rig, settings=ConnectionSettings(max_frame_size=1 << 20))
    put(rig, client, publisher(), (transfer()[0], bytes(131072)))
    assert said(client) == CLOSE_FRAMING


@every_preset
def test_a_second_open_closes_the_connection(preset) -> None:
    """illegal-state by the specification; RabbitMQ's reader has no clause for it."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    put(rig, client, Open(container_id="again"))
    assert said(client) == ("close amqp:illegal-state" if preset is SPEC else CLOSE_CRASH)


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


@every_preset
@each(INITS, "mechanism, response, in_spec, in_rabbit")
def test_a_sasl_response_that_cannot_be_read_gets_no_outcome_from_rabbitmq(
    preset, mechanism, response, in_spec, in_rabbit
) -> None:
    """A wrong password has the code auth; anything else that is wrong ends the connection."""
    code = in_spec if preset is SPEC else in_rabbit
    rig = rig_of(preset)
    client = rig.connect(Rewriter(SaslInit, mechanism=mechanism, initial_response=response))
    rig.rest()
    assert client.frames(SaslMechanisms)[0].sasl_server_mechanisms == ("PLAIN", "ANONYMOUS")
    assert [frame.code for frame in client.frames(SaslOutcome)] == ([] if code is None else [code])
    assert rig.broker.connections["c1"].amqp.ended is (code != 0)
    assert len(client.frames(Open)) == (code == 0)


@every_preset
def test_plain_without_an_initial_response_is_asked_for_it_by_the_specification(preset) -> None:
    """RabbitMQ takes the absent response as an empty one."""
    rig = rig_of(preset)
    client = rig.connect(Rewriter(SaslInit, mechanism="PLAIN", initial_response=None))
    rig.rest()
    kinds = [item.performative.NAME for item in client.received[1:]]
    assert ("sasl-challenge" in kinds) is (preset is SPEC)
    assert rig.broker.connections["c1"].amqp.ended


# -- session --------------------------------------------------------------------------------

A_LINKS_FIELDS = {"delivery_count": 7, "link_credit": 3, "available": 1, "drain": True}
SESSION_FAULTS = {
    # name: (attach before it, frame, what comes of it)
    "a publisher without a target": (None, publisher(target=None), CRASH),
    "a publisher without a count": (None, publisher(initial_delivery_count=None), CRASH),
    "a transfer for no link": (None, transfer(handle=7), NO_LINK),
    "a transfer for a handle above 255": (None, transfer(handle=256), NO_LINK),
    "a detach for no link": (None, Detach(handle=3), None),
    "a begin on its channel": (None, begin(), CRASH),
    "a disposition for no delivery": (
        None, Disposition(role=Role.RECEIVER, first=5, last=9, settled=True), None,
    ),
    "next-incoming-id ahead of what was sent": (
        None, flow(next_incoming_id=100), "end amqp:session:window-violation",
    ),
    "no link-credit for a consumer": (consumer(), flow(handle=0), CRASH),
    "no link-credit, with echo": (consumer(), flow(handle=0, echo=True), CRASH),
    "credit for a consumer": (consumer(), flow(handle=0, link_credit=1), None),
    "no link-credit for a publisher": (publisher(), flow(handle=0, available=4), None),
    "any delivery-count of a publisher": (publisher(), flow(handle=0, delivery_count=2**31), None),
    "drain=false for the session": (publisher(), flow(drain=False), None),
    "a link's fields for the session": (publisher(), flow(**A_LINKS_FIELDS), None),
    "a flow for no link": (publisher(), flow(handle=1), NO_LINK),
    "a window that cannot be added": (publisher(), flow(incoming_window=2**31), CRASH),
}  # fmt: skip


@rabbit
@each(SESSION_FAULTS, "attach, frame, expected")
def test_a_fault_on_a_session_ends_that_session_alone(preset, attach, frame, expected) -> None:
    """The connection goes on, and another session on it; of a flow little is looked at."""
    rig = rig_of(preset, initial_next_outgoing_id=0)
    client, _ = rig.raw()
    other = client.amqp.begin()
    rig.rest()
    client.react = lambda events: None
    put(rig, client, *([] if attach is None else [attach]), frame)
    assert said(client) == expected
    del client.react
    assert rig.sender(other, QUEUE, "other").attached


@rabbit
@pytest.mark.parametrize(
    "frame", [flow(handle=0), transfer(), publisher(), Detach(handle=0), End()], ids=lambda f: ""
)
def test_a_frame_for_a_channel_without_session_is_dropped(preset, frame) -> None:
    """RabbitMQ's reader finds no process to hand it to."""
    rig = rig_of(preset)
    client, session = rig.raw()
    put(rig, client, frame, channel=5)
    assert said(client) is None
    assert rig.sender(session, QUEUE).attached


@rabbit
def test_after_its_end_a_session_is_forgotten_at_once(preset) -> None:
    """A frame on its channel is dropped, and a begin there begins another."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    put(rig, client, transfer())
    assert said(client) == NO_LINK
    put(rig, client, transfer(), End())
    assert len(client.received) == 1
    put(rig, client, begin(), publisher())
    assert [type(item.performative) for item in client.received[1:]] == [Begin, Attach, Flow]


LONG = {"name": "r" * 500, "source": Source(address="q"), "target": Target(address="r")}


@pytest.mark.parametrize(
    ("preset", "source", "sent"),
    [(SPEC, "q", False), (SPEC, None, False), (RMQ40, "q", True), (RMQ43, "q", True)],
    ids=["yes", "no", "rmq4.0", "rmq4.3"],
)
def test_an_answer_above_what_the_client_takes_ends_its_session(preset, source, sent) -> None:
    """frame-size-too-small [2.8.15]; RabbitMQ measures nothing (`rabbit_amqp_writer.erl`)."""
    rig = Rig(preset)
    rig.broker.declare("q")
    client = rig.connect(Rewriter(Open, max_frame_size=512))
    rig.rest()
    client.react = lambda events: None
    attach = Attach(handle=0, role=Role.RECEIVER, **LONG | {"source": Source(address=source)})
    put(rig, client, begin(), attach)
    assert (max(len(encode_item(one)) for one in client.received) > 512) is sent
    if not sent:
        assert client.frames(Attach) == []
        assert client.frames(End)[0].error.condition == "amqp:frame-size-too-small"
        assert rig.queue().consumers() == ()
        short = Attach(handle=0, role=Role.RECEIVER, **LONG | {"name": "r"})
        put(rig, client, End(), begin(), short)
        assert len(client.frames(Attach)) == 1


@pytest.mark.parametrize(
    ("asked", "agreed"),
    [((7, 3), (7, 3)), ((40_000, 70_000),) * 2, ((None, None), (65_535, None))],
)
def test_the_article_s_beta_bounds_neither_sessions_nor_links(asked, agreed) -> None:
    """What a client says comes back: `rabbit_amqp_reader.erl`, `rabbit_amqp_session.erl` there."""
    rig = rig_of(presets.get("blog2024"))
    client = rig.connect(Rewriter(Open, channel_max=asked[0]))
    rig.rest()
    client.react = lambda events: None
    put(rig, client, begin(handle_max=asked[1]), channel=agreed[0])
    assert client.frames(Open)[0].channel_max == agreed[0]
    assert client.frames(Begin)[0].handle_max == agreed[1]


@rabbit
@pytest.mark.parametrize(("asked", "agreed"), [(3, 3), (255, 255), (70_000, 255), (None, 255)])
def test_handle_max_is_the_smaller_of_both(preset, asked, agreed) -> None:
    """A link beyond it ends the session with framing-error; there is one number for both ends."""
    rig = rig_of(preset)
    client = rig.connect(RawClient())
    rig.rest()
    client.react = lambda events: None
    put(rig, client, begin(handle_max=asked), publisher(handle=agreed))
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
    put(rig, client, begin(handle_max=3))
    rig.broker.set_alarm()
    rig.broker.clear_alarm()
    rig.rest()
    put(rig, client, publisher(handle=4))
    assert said(client) == END_FRAMING


# -- attaching, detaching -------------------------------------------------------------------

COORDINATOR = Described(Symbol("amqp:coordinator:list"), [])
TRACE = "/exchanges/amq.rabbitmq.trace/x"
PUBLISHERS = {
    "no such queue": ({"target": Target(address="/queues/none")}, "not-found"),
    "no such exchange": ({"target": Target(address="/exchanges/none")}, "not-found"),
    "an internal exchange": ({"target": Target(address="/exchanges/inner")}, "unauthorized-access"),
    "the internal exchange that is always there": (
        {"target": Target(address=TRACE)}, "unauthorized-access",
    ),
    "the default exchange by name": (
        {"target": Target(address="/exchanges/amq.default/q")}, "invalid-field",
    ),
    "an address of no version": ({"target": Target(address="/none/such")}, "invalid-field"),
    "a name that is badly encoded": ({"target": Target(address="/queues/%zz")}, "invalid-field"),
    "an empty name": ({"target": Target(address="/queues/")}, "invalid-field"),
    "a transaction coordinator": ({"target": COORDINATOR}, "not-implemented"),
    "a dynamic target": ({"target": Target(dynamic=True)}, "not-implemented"),
    "deliveries of an earlier attach": ({"unsettled": {b"t": None}}, "not-implemented"),
    "settling second": ({"rcv_settle_mode": SECOND}, "not-implemented"),
    "an outcome that is none": (
        {"source": Source(outcomes=("amqp:lost:list",))}, "not-implemented",
    ),
}  # fmt: skip
CONSUMERS = {
    "no such queue": ({"source": Source(address="/queues/none")}, "not-found"),
    "an exchange": ({"source": Source(address="/exchanges/amq.topic")}, "invalid-field"),
    "no source": ({"source": None}, "invalid-field"),
    "no address": ({"source": Source()}, "invalid-field"),
    "an outcome that is none": (
        {"source": Source(address=QUEUE, outcomes=("amqp:lost:list",))}, "not-implemented",
    ),
    "settling second": ({"rcv_settle_mode": SECOND}, "not-implemented"),
    "a dynamic source that is no temporary queue": (
        {"source": Source(dynamic=True)}, "not-implemented",
    ),
}  # fmt: skip
ATTACHES = {
    f"{attach.__name__}: {name}": (attach(**fields, handle=7), condition)
    for attach, faults in ((publisher, PUBLISHERS), (consumer, CONSUMERS))
    for name, (fields, condition) in faults.items()
}


@rabbit
@each(ATTACHES, "attach, condition")
def test_an_attach_that_cannot_be_is_refused_by_4_3_and_ends_the_session_of_4_0(
    preset, attach, condition
) -> None:
    """4.3: an attach without the broker's terminus, then detach, closed, with the error."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    put(rig, client, attach)
    if preset is RMQ40:
        assert said(client) == f"end amqp:{condition}"
        assert client.frames(Attach) == []
        return
    assert said(client) == f"detach amqp:{condition}"
    (answer,), (detach,) = client.frames(Attach), client.frames(Detach)
    assert (answer.target if attach.role is Role.SENDER else answer.source) is None
    assert detach.closed
    assert answer.handle == detach.handle == attach.handle
    put(rig, client, Detach(handle=7, closed=True), consumer(name="next"))
    assert len(client.frames(Attach)) == 2
    assert len(client.frames(Detach)) == 1


@every_preset
def test_nobody_consumes_beside_a_consumer_that_wants_to_be_the_only_one(preset) -> None:
    """One of AMQP 0-9-1: 4.3 calls it unauthorized-access, 4.0 internal-error of the session."""
    rig = Rig(preset)
    queue = rig.broker.declare("q")
    rig.broker.vhost.claim(queue, "another", exclusive=True)
    client, _ = dumb(rig)
    put(rig, client, consumer(source=Source(address="q"), target=Target(address="here")))
    expected = {
        SPEC: "detach amqp:resource-locked",
        RMQ40: CRASH,
        RMQ43: "detach amqp:unauthorized-access",
    }
    assert said(client) == expected[preset]


@rabbit
def test_a_pre_settled_link_may_say_that_the_receiver_settles_second(preset) -> None:
    """There is nothing to settle; the answer says first."""
    rig = rig_of(preset)
    client, session = rig.raw()
    rig.sender(
        session,
        QUEUE,
        rcv_settle_mode=SECOND,
        snd_settle_mode=SETTLED,
    )
    assert said(client) is None
    assert client.frames(Attach)[0].rcv_settle_mode is FIRST


@rabbit
@pytest.mark.parametrize("asked", [None, OUTCOMES[2::-2], OUTCOMES[:1]])
def test_a_consumer_is_promised_the_outcomes_that_it_asked_for(preset, asked) -> None:
    """All four if it named none (`outcomes`)."""
    rig = rig_of(preset)
    client, session = rig.raw()
    session.attach_receiver("r", Source(address=QUEUE, outcomes=asked))
    rig.rest()
    told = client.frames(Attach)[0].source
    assert told.outcomes == (asked or OUTCOMES)
    assert told.default_outcome == Released()


@rabbit
@pytest.mark.parametrize("dynamic", [False, True])
def test_4_3_does_not_repeat_the_capabilities_of_a_source(preset, dynamic) -> None:
    """It tells those of the queue's kind, of which none has any; 4.0 repeats what was said."""
    rig = rig_of(preset)
    client, session = rig.raw()
    wish = ("temporary-queue", "queue")
    if dynamic and preset is RMQ40:
        return  # it makes none
    address = None if dynamic else QUEUE
    session.attach_receiver("r", Source(address=address, dynamic=dynamic, capabilities=wish))
    rig.rest()
    told = client.frames(Attach)[0].source.capabilities
    assert told == (wish if preset is RMQ40 else None)


def test_4_3_makes_a_temporary_queue_for_a_dynamic_terminus() -> None:
    """Its address is told in the attach; it is the connection's own, and gone with the link."""
    rig = rig_of(RMQ43)
    client, session = rig.raw()
    wish = {"dynamic": True, "capabilities": ("temporary-queue",)}
    receiver = session.attach_receiver("in", Source(**wish))
    rig.rest()
    address = client.frames(Attach)[0].source.address
    assert address.startswith("/queues/amq.dyn-raw-in-")
    sender = rig.sender(session, address)
    sender.send(data(b"x"))
    receiver.grant(1)
    rig.rest()
    assert receiver.credit == 0
    receiver.close()
    rig.rest()
    assert list(rig.broker.queues) == ["q"]
    assert not sender.attached
    session.attach_sender("out", target=Target(**wish))
    rig.rest()
    assert client.frames(Attach)[-1].target.address.startswith("/queues/amq.dyn-raw-out-")
    client.amqp.close()
    rig.rest()
    assert list(rig.broker.queues) == ["q"]


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


@rabbit
@pytest.mark.parametrize("closed", [None, False, True])
@pytest.mark.parametrize("attach", [publisher, consumer])
def test_a_detach_comes_back_without_its_error(preset, attach, closed) -> None:
    """With the same `closed`, written out or not (`detach_reply` of 4.0 to 4.3)."""
    rig = rig_of(preset)
    client, _ = dumb(rig)
    error = Error(condition=Symbol("my:error"), description="mine")
    put(rig, client, attach(), Detach(handle=0, closed=closed, error=error))
    (detach,) = client.frames(Detach)
    assert detach.closed is closed
    assert detach.error is None


@rabbit
def test_after_its_detach_a_link_is_forgotten_at_once(preset) -> None:
    """The next transfer is for no link; no answer to the detach is awaited; its handle is free."""
    rig = rig_of(preset, publisher_credit=1)
    rig.broker.queues["q"].stall()
    client, _ = dumb(rig)
    settled = [transfer(delivery_id=n, settled=True) for n in range(3)]
    put(rig, client, publisher(), *settled[:2])
    assert said(client) == "detach amqp:link:transfer-limit-exceeded"
    put(rig, client, publisher(name="again"), Detach(handle=0), publisher(name="third"))
    assert [frame.name for frame in client.frames(Attach)] == ["p", "again", "third"]
    assert client.frames(End) == []
    put(rig, client, Detach(handle=0), settled[2])
    assert client.frames(End)[0].error.condition == "amqp:session:unattached-handle"


# -- transfers and dispositions -------------------------------------------------------------

NOT_ASKED = {"delivery_id": None, "delivery_tag": None}
OTHER = {"delivery_id": None, "delivery_tag": b"z", "message_format": 9}
IMPLEMENTS = "amqp:not-implemented"
DETACH_DECODE = "detach amqp:decode-error"
TRANSFERS = {
    # name: (fields of the attach, frames, RabbitMQ 4.0, RabbitMQ 4.3, ready afterwards)
    "a message": ({}, [transfer()], None, None, 1),
    "no delivery-id": ({}, [transfer(delivery_id=None)], CRASH, CRASH, 0),
    "no delivery-id on the first of two": ({}, halves({"delivery_id": None}, {}), CRASH, CRASH, 0),
    "a delivery-id that is in use": ({}, [transfer(), transfer()], CRASH, CRASH, 1),
    "no delivery-tag": ({}, [transfer(delivery_tag=None), transfer(delivery_id=1)], None, None, 2),
    "message-format 5": ({}, [transfer(message_format=5)], None, None, 1),
    "a state, to be resumed": ({}, [transfer(state=Accepted(), resume=True)], None, None, 1),
    "in two parts": ({}, halves({}, NOT_ASKED), None, None, 1),
    "in two parts, other tag and format": ({}, halves({}, OTHER), None, None, 1),
    "aborted, though whole": ({}, [transfer(aborted=True)], None, None, 1),
    "another delivery-id in between": (
        {}, halves({}, {"delivery_id": 1}), END_FRAMING, DETACH_FIELD, 0,
    ),
    "begun unsettled, ended settled": (
        {}, halves({}, {**NOT_ASKED, "settled": True}), END_FRAMING, DETACH_FIELD, 0,
    ),
    "begun settled, ended unsettled": (
        {}, halves({"settled": True}, {**NOT_ASKED, "settled": False}),
        END_FRAMING, DETACH_FIELD, 0,
    ),
    "unsettled on a settled link": (
        {"snd_settle_mode": SETTLED}, [transfer()], END_FRAMING, DETACH_FIELD, 0,
    ),
    "settled on an unsettled link": (
        {"snd_settle_mode": UNSETTLED}, [transfer(settled=True)], END_FRAMING, DETACH_FIELD, 0,
    ),
    "settled and unsettled on a mixed link": (
        {"snd_settle_mode": MIXED}, [transfer(settled=True), transfer(delivery_id=1)],
        None, None, 2,
    ),
    "settling second": (
        {}, [transfer(rcv_settle_mode=SECOND)], f"end {IMPLEMENTS}", f"detach {IMPLEMENTS}", 0,
    ),
    "settling second what is settled": (
        {}, [transfer(rcv_settle_mode=SECOND, settled=True)], None, None, 1,
    ),
    "no payload": ({}, [(transfer()[0], b"")], CRASH, DETACH_DECODE, 0),
    "no message": ({}, [(transfer()[0], b"\xff")], CRASH, DETACH_DECODE, 0),
    "a body that is cut short": (
        {}, [(transfer()[0], data(b"abc")[:-1])], None, DETACH_DECODE, None,
    ),
    "larger than max-message-size": ({}, [transfer(b"x" * 100)], TOO_LARGE, TOO_LARGE, 0),
    "larger, in its second part of three": (
        {}, [halves({}, {})[0], (transfer(more=True)[0], bytes(97)), halves({}, {})[1]],
        TOO_LARGE, TOO_LARGE, 0,
    ),
    "for a consumer's link": ({"handle": 1}, [consumer(), transfer()], NO_LINK, NO_LINK, 0),
}  # fmt: skip


@each(TRANSFERS, "terms, frames, in_40, in_43, ready")
@rabbit
def test_a_transfer_that_breaks_a_rule(preset, terms, frames, in_40, in_43, ready) -> None:
    """What is wrong, and whether the link pays for it or the session."""
    rig = rig_of(preset, max_message_size=100)
    if len(frames) > 1 and frames[0] == frames[1]:
        rig.broker.queues["q"].stall()  # a delivery-id is in use until the queue has confirmed it
    client, _ = dumb(rig)
    put(rig, client, publisher(**terms), *frames)
    rig.broker.queues["q"].resume()
    rig.rest()
    assert said(client) == (in_40 if preset is RMQ40 else in_43)
    assert ready in (None, rig.queue().ready)


def test_a_transfer_that_ends_its_link_uses_the_window_as_any_other() -> None:
    """The detach, then the flow that opens the window (`rabbit_amqp_session.erl:handle_frame`)."""
    rig = rig_of(RMQ43, incoming_window=2)
    client, _ = dumb(rig)
    put(rig, client, publisher(), transfer(rcv_settle_mode=SECOND))
    kinds = [type(item.performative) for item in client.received]
    assert kinds == [Attach, Flow, Detach, Flow]
    assert (client.frames(Flow)[-1].handle, client.frames(Flow)[-1].incoming_window) == (None, 2)


OTHER_X, OWN = ({Symbol(name): 1} for name in ("x-a", "a"))
NO_OUTCOME = "end amqp:invalid-field"
RECEIVED = Received(section_number=0, section_offset=0)
DISPOSITIONS = {
    # name: (fields, RabbitMQ with a delivery to settle, RabbitMQ with none)
    "accepted": ({"settled": True, "state": Accepted()}, None, None),
    "accepted, unsettled": ({"settled": False, "state": Accepted()}, None, None),
    "settled left out": ({"settled": None, "state": Accepted()}, CRASH, None),
    "no outcome": ({"settled": True}, NO_OUTCOME, None),
    "received": ({"settled": False, "state": RECEIVED}, NO_OUTCOME, None),
    "annotations x-": (
        {"settled": True, "state": Modified(message_annotations=OTHER_X)}, None, None,
    ),
    "reserved annotations": (
        {"settled": True, "state": Modified(message_annotations=OWN)}, CRASH, None,
    ),
    "of another delivery": ({"first": 4, "settled": True, "state": Released()}, None, None),
    "a range backwards": (
        {"first": 4, "last": 2, "settled": True, "state": Released()}, CRASH, None,
    ),
    "a publisher's": ({"role": Role.SENDER, "settled": True, "state": Released()}, CRASH, CRASH),
}  # fmt: skip


@each(DISPOSITIONS, "fields, with_one, with_none")
@pytest.mark.parametrize("messages", [0, 1])
@rabbit
def test_a_disposition_that_breaks_a_rule(preset, messages, fields, with_one, with_none) -> None:
    """While nothing is to be settled nothing of it is looked at but the role."""
    rig = rig_of(preset)
    rig.fill("q", messages)
    client, _ = dumb(rig)
    start = rig.preset.initial_next_outgoing_id
    credit = flow(handle=0, link_credit=1, next_incoming_id=start)
    put(rig, client, consumer(), credit)
    put(rig, client, Disposition(**{"role": Role.RECEIVER, "first": 0, **fields}))
    assert said(client) == (with_one if messages else with_none)


def state(value) -> Disposition:
    return Disposition(role=Role.RECEIVER, first=0, settled=True, state=value)


def annotated(key) -> bytes:
    return encode_value(Described(ULong(0x72), MapPairs(((key, 1),)))) + data(b"m")


BEGUN = [publisher(), transfer(settled=False, more=True)]
DELIVERED = [consumer(), flow(handle=0, link_credit=1)]
WORDS = {
    # name: (frames, what the error says)
    "a state": (
        [*DELIVERED, state(RECEIVED)],
        "received(section-number=0, section-offset=0) is no",
    ),
    "no state": ([*DELIVERED, state(None)], "null is no outcome; legal here: accepted"),
    "an annotation": (
        [*DELIVERED, state(Modified(message_annotations=OWN))],
        "the message-annotation a; legal: names that begin with x-",
    ),
    "booleans": (
        [*BEGUN, transfer(settled=True)],
        "delivery 0 began with settled false and goes on with true; legal here: the same",
    ),
    "no source": ([consumer(source=None)], "null is no source"),
    "no address": ([consumer(source=Source())], "bad address null; legal: a string"),
    "a symbol": (
        [consumer(source=Source(address=Symbol(QUEUE)))],
        "bad address /queues/q; legal: a string",
    ),
    "a descriptor": (
        [publisher(), (transfer()[0], encode_value(Described(ULong(0x79), [])))],
        "descriptor 0x79 names no section",
    ),
    "a key": (
        [publisher(), (transfer()[0], annotated(b"\x00"))],
        "message-annotations has the key 0x00 (1 octet), which is reserved [3.2.10]",
    ),
}


@each(WORDS, "frames, words")
def test_a_text_has_the_protocols_words_for_a_value(frames, words) -> None:
    """Not those of the language that the broker is written in."""
    rig = rig_of(RMQ43)
    rig.fill("q", 1)
    client, _ = dumb(rig)
    for frame in frames:
        if isinstance(frame, Flow):
            frame = structs.replace(frame, next_incoming_id=rig.preset.initial_next_outgoing_id)
        put(rig, client, frame)
    told = [
        item.performative.error.description
        for item in client.received
        if getattr(getattr(item, "performative", None), "error", None) is not None
    ]
    assert words in told[0]


@rabbit
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


def described(code: int, *fields) -> bytes:
    return encode_value(Described(ULong(code), list(fields)))


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


@each(BODIES, "octets, there, nowhere")
@pytest.mark.parametrize("channel", [0, 5])
@rabbit
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
    assert alive is (expected is None or expected.startswith("end"))


def test_under_the_specification_such_a_body_closes_with_decode_error() -> None:
    """2.3.2 wants a performative, and 2.8.15 has a condition for it."""
    for octets, *_ in (BODIES["not described"], BODIES["descriptor 0x99"]):
        rig = Rig(SPEC)
        client, _ = dumb(rig)
        client.wire.send(client, items(octets, 0)[0])
        rig.rest()
        assert said(client) == "close amqp:decode-error"


def test_a_delivery_tag_of_any_length_is_taken_by_rabbitmq_alone() -> None:
    """The type has 32 octets at most [2.8.7], which RabbitMQ does not look at."""
    fields = [UInt(0), UInt(0), b"x" * 40, UInt(0), False]
    octets = described(0x14, *fields) + data(b"m")
    for preset, expected in ((SPEC, "close amqp:decode-error"), (RMQ40, None), (RMQ43, None)):
        rig = rig_of(preset)
        client, _ = dumb(rig)
        put(rig, client, publisher(target=Target(address="q" if preset is SPEC else QUEUE)))
        client.wire.send(client, items(octets, 0)[0])
        rig.rest()
        assert said(client) == expected
        assert rig.queue().ready == (expected is None)
