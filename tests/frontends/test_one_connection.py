"""What one connection carries: sessions, and on each of them links, publishers beside consumers."""

from __future__ import annotations

import pytest

from tests.broker.rig import RMQ43, SPEC, RawClient, Rig, every_preset, rabbit
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    End,
    Flow,
    Open,
    Role,
    Transfer,
)
from workbench.queues import QueueArguments

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])

BEGIN = Begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10)
ATTACH = Attach(
    name="s",
    handle=0,
    role=Role.SENDER,
    source=Source(),
    target=Target(address="/queues/q"),
    initial_delivery_count=0,
)
TRANSFER = Transfer(handle=0, delivery_id=0, delivery_tag=b"t", settled=True)


# -- A59: properties ------------------------------------------------------------------------


@rabbit
@KINDS
def test_a59_4_0_leaves_the_properties_of_a_flow_empty_and_4_3_says_who_is_active(
    preset, kind
) -> None:
    """4.3 has one, rabbitmq:active, and tells it to consumers of quorum queues alone."""
    rig = Rig(preset)
    rig.broker.declare("q", QueueArguments(queue_type=kind))
    client, session = rig.raw()
    sender = rig.sender(session)
    receiver = rig.receiver(session)
    receiver.grant(5, echo=True)
    rig.rest()
    for _ in range(200):
        if sender.can_send:
            sender.send(b"\0Sw@", settled=True)
            rig.rest()
    receiver.grant(5, drain=True)
    rig.rest()
    told = [flow.properties for flow in client.frames(Flow) if flow.properties]
    if preset is RMQ43 and kind == "quorum":
        assert told == [{"rabbitmq:active": True}]
    else:
        assert told == []
    assert not any(frame.properties for frame in client.frames(Begin) + client.frames(Attach))


# -- A62: connection, sessions, links -------------------------------------------------------


def rawest(rig: Rig, frames: list[tuple[int, object]], *, opened: bool = True) -> RawClient:
    """A client that says these frames, whatever comes of it; with its open before them or not."""
    client = rig.connect(RawClient())
    if not opened:
        # Up to the headers behind SASL, and no open.
        client._emit = _without_open(client)  # type: ignore[method-assign]
        client.amqp.emit = client._emit
    rig.rest()
    client.react = lambda events: None
    for channel, performative in frames:
        payload = b"\0Sw@" if isinstance(performative, Transfer) else b""
        client.wire.send(client, Frame(channel, performative, payload))
    rig.rest()
    return client


def _without_open(client: RawClient):
    def emit(item) -> None:
        if not isinstance(getattr(item, "performative", None), Open):
            client.wire.send(client, item)

    return emit


def conditions(client: RawClient, kind: type) -> list[str]:
    return [str(frame.error.condition.value) for frame in client.frames(kind) if frame.error]


@every_preset
def test_a62_a_link_lives_in_a_session_and_a_session_in_a_connection(preset) -> None:
    """In order: one answer to each. What the client skips is not made up for."""
    rig = Rig(preset)
    rig.broker.declare("q")
    client = rawest(rig, [(0, BEGIN), (0, ATTACH), (0, TRANSFER)])
    kinds = [len(client.frames(kind)) for kind in (Open, Begin, Attach, End, Close)]
    assert kinds == [1, 1, 1, 0, 0]
    assert rig.queue().ready == 1


@every_preset
def test_a62_a_session_before_the_open_closes_the_connection(preset) -> None:
    """No session without a connection: close, and nothing is begun; RabbitMQ just hangs up."""
    rig = Rig(preset)
    client = rawest(rig, [(0, BEGIN)], opened=False)
    assert client.frames(Begin) == []
    assert conditions(client, Close) == (["amqp:illegal-state"] if preset is SPEC else [])
    if preset is not SPEC:
        assert rig.broker.connections["c1"].amqp.ended


@every_preset
def test_a62_a_link_without_session_is_not_attached(preset) -> None:
    """No link without a session: the specification's preset closes, RabbitMQ drops the frame."""
    rig = Rig(preset)
    client = rawest(rig, [(0, ATTACH)])
    assert client.frames(Attach) == []
    assert conditions(client, Close) == (["amqp:illegal-state"] if preset is SPEC else [])


@every_preset
def test_a62_a_message_without_link_ends_the_session(preset) -> None:
    """No message without a link: unattached-handle, and the connection goes on."""
    rig = Rig(preset)
    client = rawest(rig, [(0, BEGIN), (0, TRANSFER)])
    assert conditions(client, End) == ["amqp:session:unattached-handle"]
    assert client.frames(Close) == []


@every_preset
def test_a62_the_end_of_a_session_takes_its_links_and_no_others(preset) -> None:
    """The consumer on it gives its messages back; the other session's goes on."""
    rig = Rig(preset)
    rig.fill("q", 6)
    client, first = rig.raw()
    second = client.amqp.begin()
    rig.rest()
    for session, name in ((first, "a"), (second, "b")):
        rig.receiver(session, name=name).grant(2)
        rig.rest()
    assert rig.queue().unsettled == 4
    first.end()
    rig.rest()
    assert (rig.queue().unsettled, rig.queue().ready) == (2, 4)
    client.amqp.close()
    rig.rest()
    assert (rig.queue().unsettled, rig.queue().ready) == (0, 6)


# -- A63, A72: how many of each -------------------------------------------------------------


@every_preset
def test_a63_a_second_session_needs_no_second_connection(preset) -> None:
    """It costs a begin and its answer; both sessions publish and consume."""
    rig = Rig(preset)
    client, first = rig.raw()
    before = len(client.received)
    second = client.amqp.begin()
    rig.rest()
    assert len(client.received) - before == 1
    assert first.channel != second.channel
    for session, name in ((first, "a"), (second, "b")):
        sender = rig.sender(session, name, name=f"to-{name}")
        receiver = rig.receiver(session, name, name=f"from-{name}")
        receiver.grant(1)
        sender.send(b"\0Sw@", settled=True)
        rig.rest()
        assert receiver.credit == 0
    assert len(rig.broker.connections) == len(rig.wires) == 1


def consumed_while_publishers_wait(preset, connections: int) -> tuple[int, int]:
    """How many messages a consumer gets while an alarm holds a publisher, and of how many sockets.

    Args:
        preset: of the broker.
        connections: 1 for both clients together, 2 for one each.
    """
    rig = Rig(preset)
    rig.fill("q", 50)
    _, session = rig.raw()
    other = rig.raw("c2")[1] if connections == 2 else session
    sender = rig.sender(session, "other")
    rig.broker.set_alarm()
    rig.rest()
    assert not sender.can_send
    receiver = rig.receiver(other)
    receiver.grant(40)
    rig.rest()
    return 40 - receiver.credit, len(rig.broker.connections)


@every_preset
def test_a72_one_connection_carries_both_ways_as_well_as_two(preset) -> None:
    """A held publisher holds no consumer beside it, so half the connections will do."""
    assert consumed_while_publishers_wait(preset, 1) == (40, 1)
    assert consumed_while_publishers_wait(preset, 2) == (40, 2)
