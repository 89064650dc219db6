"""RabbitMQ's limits, and what it says to whoever goes beyond: condition and scope, by version.

One table for each layer. A row is what a client does, and what comes of it under 4.0 and under 4.3:
`close`, `end` or `detach` with a condition, or nothing.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from tests.broker.rig import RawClient, Rig
from workbench import presets
from workbench.amqp10.frame import Frame, ProtocolHeader
from workbench.amqp10.messaging import AmqpValue as Body
from workbench.amqp10.messaging import Source, Target, encode_message
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    ReceiverSettleMode,
    Role,
    SaslMechanisms,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.sasl import SaslClient
from workbench.amqp10.settings import ConnectionSettings
from workbench.amqp10.values import Described, Symbol
from workbench.queues import QueueArguments
from workbench.sim import Wire

RMQ40, RMQ43 = presets.get("rmq4.0"), presets.get("rmq4.3")
BOTH = pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda p: p.name)
BODY = encode_message([Body("x")])
SECOND = ReceiverSettleMode.SECOND
COORDINATOR = Described(Symbol("amqp:coordinator:list"), [])


def rig_of(preset) -> Rig:
    """A rig with RabbitMQ's own addresses, a queue `q` and some nodes that nobody may use."""
    rig = Rig(preset, plain_names=False)
    rig.broker.declare("q")
    rig.broker.vhost.routing.declare("inner", internal=True)
    return rig


def said(client) -> tuple[str, str] | None:
    """The first error that the broker told, and by which frame."""
    for kind, name in ((Close, "close"), (End, "end"), (Detach, "detach")):
        for frame in client.frames(kind):
            if frame.error is not None:
                condition = frame.error.condition
                return name, str(getattr(condition, "value", condition))
    return None


def put(client, performative, payload: bytes = b"", channel: int = 0) -> None:
    """A frame that the client's own endpoint would not send; it answers nothing from then on."""
    client.react = lambda events: None
    client.wire.send(client, Frame(channel, performative, payload))


# -- connection -----------------------------------------------------------------------------

OPENS = {
    "max-frame-size below 512": ({"max_frame_size": 511}, "amqp:invalid-field"),
    "max-frame-size of 512": ({"max_frame_size": 512}, None),
    "idle-time-out of 999 ms": ({"idle_time_out": 999}, "amqp:not-allowed"),
    "idle-time-out of 1000 ms": ({"idle_time_out": 1000}, None),
    "idle-time-out of 0": ({"idle_time_out": 0}, None),
    "another virtual host": ({"hostname": "vhost:other"}, "amqp:unauthorized-access"),
    "the virtual host /": ({"hostname": "vhost:/"}, None),
    "any other hostname": ({"hostname": "other"}, None),
}


class Opener(RawClient):
    """A client whose open has the fields of a row."""

    def __init__(self, fields) -> None:
        super().__init__()
        self.fields = fields

    def _emit(self, item) -> None:
        if isinstance(item, Frame) and isinstance(item.performative, Open):
            item = structs.replace(
                item, performative=structs.replace(item.performative, **self.fields)
            )
        super()._emit(item)


@BOTH
@pytest.mark.parametrize(("fields", "why"), OPENS.values(), ids=OPENS.keys())
def test_on_an_open_that_asks_for_too_much_the_broker_hangs_up(preset, fields, why) -> None:
    """No open and no close: a reader that is not running yet throws (`handle_exception`).

    Why it was is told to whoever runs the broker.
    """
    rig = rig_of(preset)
    client = rig.connect(Opener(fields))
    rig.rest()
    assert len(client.frames(Open)) == (why is None)
    assert client.frames(Close) == []
    amqp = rig.broker.connections["c1"].amqp
    assert amqp.ended is (why is not None)
    assert (None if amqp.error is None else amqp.error.condition) == why


@BOTH
@pytest.mark.parametrize(("asked", "agreed"), [(10, 10), (63, 63), (100, 63), (None, 63)])
def test_channel_max_is_the_smaller_of_both(preset, asked, agreed) -> None:
    """64 sessions at most, and a begin beyond what was agreed closes with framing-error."""
    rig = rig_of(preset)
    client = rig.connect(Opener({"channel_max": asked}))
    rig.rest()
    assert client.frames(Open)[0].channel_max == agreed
    begin = Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)
    put(client, begin, channel=agreed)
    rig.rest()
    assert len(client.frames(Begin)) == 1
    put(client, begin, channel=agreed + 1)
    rig.rest()
    assert said(client) == ("close", "amqp:connection:framing-error")


class Speechless(RawClient):
    """A client that begins with the header it is told to send."""

    def __init__(self, header: ProtocolHeader) -> None:
        super().__init__()
        self.header = header

    def connect(self, wire: Wire) -> None:
        self.wire = wire
        wire.send(self, self.header)


@BOTH
@pytest.mark.parametrize("protocol_id", [0, 2])
def test_a_client_that_skips_sasl_gets_the_sasl_header_and_no_more(preset, protocol_id) -> None:
    """SASL is compulsory; TLS by protocol id 2 is not spoken."""
    rig = rig_of(preset)
    client = rig.connect(Speechless(ProtocolHeader(protocol_id)))
    rig.rest()
    assert client.received == [ProtocolHeader(3)]


@BOTH
def test_sasl_offers_plain_and_anonymous_and_only_known_users_enter(preset) -> None:
    """A wrong password gets an outcome and no open."""
    rig = rig_of(preset)
    client = rig.connect(
        RawClient(sasl=SaslClient(mechanism="PLAIN", user="guest", password="wrong"))
    )
    rig.rest()
    assert client.frames(SaslMechanisms)[0].sasl_server_mechanisms == ("PLAIN", "ANONYMOUS")
    assert client.frames(Open) == []


@BOTH
def test_a_frame_larger_than_agreed_closes_the_connection(preset) -> None:
    """131072 octets: framing-error."""
    rig = rig_of(preset)
    client, session = rig.raw(settings=ConnectionSettings(max_frame_size=1 << 20))
    rig.sender(session, "/queues/q")
    transfer = Transfer(handle=0, delivery_id=0, delivery_tag=b"t")
    put(client, transfer, bytes(131072))
    rig.rest()
    assert said(client) == ("close", "amqp:connection:framing-error")


# -- session --------------------------------------------------------------------------------

A_FLOW = Flow(
    next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=0
)
A_TRANSFER = Transfer(handle=7, delivery_id=0, delivery_tag=b"t", settled=True)
AN_ATTACH = Attach(
    name="a",
    handle=0,
    role=Role.SENDER,
    source=Source(),
    target=Target(address="/queues/q"),
    initial_delivery_count=0,
)
SESSION_FAULTS = {
    "a handle above 255": (structs.replace(AN_ATTACH, handle=256), "amqp:connection:framing-error"),
    "the handle 255": (structs.replace(AN_ATTACH, handle=255), None),
    "a publisher without a target": (
        structs.replace(AN_ATTACH, target=None),
        "amqp:internal-error",
    ),
    "a publisher without initial-delivery-count": (
        structs.replace(AN_ATTACH, initial_delivery_count=None),
        "amqp:internal-error",
    ),
    "a transfer for no link": (A_TRANSFER, "amqp:session:unattached-handle"),
    "a transfer for a handle above 255": (
        structs.replace(A_TRANSFER, handle=256),
        "amqp:session:unattached-handle",
    ),
    "a flow for no link": (
        structs.replace(A_FLOW, next_incoming_id=None, handle=3),
        "amqp:session:unattached-handle",
    ),
    "a detach for no link": (Detach(handle=3), None),
    "a begin on its channel": (
        Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1),
        "amqp:internal-error",
    ),
    "a disposition for no delivery": (
        Disposition(role=Role.RECEIVER, first=5, last=9, settled=True),
        None,
    ),
    "next-incoming-id ahead of what was sent": (
        structs.replace(A_FLOW, next_incoming_id=100, handle=None),
        "amqp:session:window-violation",
    ),
}


@BOTH
@pytest.mark.parametrize(("frame", "condition"), SESSION_FAULTS.values(), ids=SESSION_FAULTS.keys())
def test_a_fault_on_a_session_ends_that_session_alone(preset, frame, condition) -> None:
    """The connection goes on, and another session on it."""
    rig = rig_of(preset)
    client, _ = rig.raw()
    other = client.amqp.begin()
    rig.rest()
    payload = BODY if isinstance(frame, Transfer) else b""
    put(client, frame, payload)
    rig.rest()
    assert said(client) == (None if condition is None else ("end", condition))
    assert rig.sender(other, "/queues/q").attached


@BOTH
@pytest.mark.parametrize("frame", [A_FLOW, A_TRANSFER, AN_ATTACH, Detach(handle=0), End()])
def test_a_frame_for_a_channel_without_session_is_dropped(preset, frame) -> None:
    """RabbitMQ's reader finds no process to hand it to."""
    rig = rig_of(preset)
    client, session = rig.raw()
    put(client, frame, channel=5)
    rig.rest()
    assert said(client) is None
    assert rig.sender(session, "/queues/q").attached


# -- attaching ------------------------------------------------------------------------------

LINK_FAULTS = {
    "no such queue": ({"target": Target(address="/queues/none")}, "amqp:not-found"),
    "no such exchange": ({"target": Target(address="/exchanges/none")}, "amqp:not-found"),
    "an internal exchange": (
        {"target": Target(address="/exchanges/inner")},
        "amqp:unauthorized-access",
    ),
    "the internal exchange that is always there": (
        {"target": Target(address="/exchanges/amq.rabbitmq.trace/x")},
        "amqp:unauthorized-access",
    ),
    "the default exchange by name": (
        {"target": Target(address="/exchanges/amq.default/q")},
        "amqp:invalid-field",
    ),
    "an address of no version": ({"target": Target(address="/none/such")}, "amqp:invalid-field"),
    "a name that is badly encoded": (
        {"target": Target(address="/queues/%zz")},
        "amqp:invalid-field",
    ),
    "an empty name": ({"target": Target(address="/queues/")}, "amqp:invalid-field"),
    "a transaction coordinator": ({"target": COORDINATOR}, "amqp:not-implemented"),
    "a dynamic target": ({"target": Target(dynamic=True)}, "amqp:not-implemented"),
    "deliveries of an earlier attach": ({"unsettled": {b"t": None}}, "amqp:not-implemented"),
    "settling second": ({"rcv_settle_mode": SECOND}, "amqp:not-implemented"),
}
SOURCE_FAULTS = {
    "no such queue": ({"source": Source(address="/queues/none")}, "amqp:not-found"),
    "an exchange": ({"source": Source(address="/exchanges/amq.topic")}, "amqp:invalid-field"),
    "no source": ({"source": None}, "amqp:invalid-field"),
    "no address": ({"source": Source()}, "amqp:invalid-field"),
    "an outcome that is none": (
        {"source": Source(address="/queues/q", outcomes=("amqp:lost:list",))},
        "amqp:not-implemented",
    ),
    "settling second": ({"rcv_settle_mode": SECOND}, "amqp:not-implemented"),
    "a dynamic source that is no temporary queue": (
        {"source": Source(dynamic=True)},
        "amqp:not-implemented",
    ),
}
A_CONSUMER = Attach(
    name="c", handle=0, role=Role.RECEIVER, source=Source(address="/queues/q"), target=Target()
)
ATTACHES = [
    pytest.param(structs.replace(template, **fields, handle=7), condition, id=f"{kind}: {name}")
    for kind, template, faults in (
        ("publisher", AN_ATTACH, LINK_FAULTS),
        ("consumer", A_CONSUMER, SOURCE_FAULTS),
    )
    for name, (fields, condition) in faults.items()
]


@BOTH
@pytest.mark.parametrize(("attach", "condition"), ATTACHES)
def test_an_attach_that_cannot_be_is_refused_by_4_3_and_ends_the_session_of_4_0(
    preset, attach, condition
) -> None:
    """4.3: an attach without the broker's terminus, then detach, closed, with the error."""
    rig = rig_of(preset)
    client, _ = rig.raw()
    put(client, attach)
    rig.rest()
    if preset is RMQ40:
        assert said(client) == ("end", condition)
        assert client.frames(Attach) == []
        return
    assert said(client) == ("detach", condition)
    (answer,) = client.frames(Attach)
    assert (answer.target if attach.role is Role.SENDER else answer.source) is None
    assert client.frames(Detach)[0].closed
    assert {frame.handle for frame in (answer, client.frames(Detach)[0])} == {attach.handle}
    put(client, Detach(handle=7, closed=True))
    put(client, A_CONSUMER)
    rig.rest()
    assert len(client.frames(Attach)) == 2
    assert said(client) == ("detach", condition)


@BOTH
def test_a_pre_settled_link_may_say_that_the_receiver_settles_second(preset) -> None:
    """There is nothing to settle; the answer says first."""
    rig = rig_of(preset)
    client, session = rig.raw()
    rig.sender(
        session,
        "/queues/q",
        rcv_settle_mode=SECOND,
        snd_settle_mode=SenderSettleMode.SETTLED,
    )
    assert said(client) is None
    assert client.frames(Attach)[0].rcv_settle_mode is ReceiverSettleMode.FIRST


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
    sender.send(BODY)
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


# -- transfers ------------------------------------------------------------------------------


def transfer(**fields) -> Transfer:
    return Transfer(**{"handle": 0, "delivery_id": 0, "delivery_tag": b"t", **fields})


@BOTH
def test_a_message_beyond_the_credit_detaches_the_link_and_the_session_lives(preset) -> None:
    """transfer-limit-exceeded: the one fault that 4.0, too, keeps on the link."""
    rig = rig_of(replace(preset, publisher_credit=2))
    rig.broker.queues["q"].stall()
    client, session = rig.raw()
    rig.sender(session, "/queues/q")
    other = rig.sender(session, "/queues/q", name="other")
    for number in range(4):
        put(client, transfer(delivery_id=number, settled=True), BODY)
        rig.rest()
    assert said(client) == ("detach", "amqp:link:transfer-limit-exceeded")
    assert other.attached


@BOTH
def test_a_full_queue_rejects_and_4_3_says_which_and_why(preset) -> None:
    """x-overflow reject-publish: rejected, since 4.3 with queue and reason in the error."""
    rig = rig_of(preset)
    rig.broker.declare("full", QueueArguments(max_length=1, overflow="reject-publish"))
    client, session = rig.raw()
    sender = rig.sender(session, "/queues/full")
    for _ in range(2):
        sender.send(BODY)
        rig.rest()
    refused = client.frames(Disposition)[-1].state
    assert type(refused).__name__ == "Rejected"
    if preset is RMQ40:
        assert refused.error is None
    else:
        assert refused.error.condition == "amqp:resource-limit-exceeded"
        assert refused.error.info == {"queue": "full", "reason": "maxlen"}
