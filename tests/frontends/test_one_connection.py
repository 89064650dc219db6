"""What one connection carries: sessions, and on each of them links, publishers beside consumers."""

from __future__ import annotations

import pytest

from tests.broker.rig import RMQ43, SPEC, RawClient, Rig, every_preset, rabbit
from tests.broker.talk import Talk
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


SHARED = {
    # The consumer on it gives its messages back; the other session's goes on.
    "a62: the end of a session takes its links and no others": """
        ready 6; receive a; grant 2; session; receive b; grant 2 -> unsettled 4
        a: end -> unsettled 2 | ready 4
        disconnect -> unsettled 0 | ready 6""",
    # It costs a begin and its answer; both sessions publish and consume.
    "a63: a second session needs no second connection": """
        attach ta to=a; receive ra of=a; grant 1; ta: send m -> ra.credit 0
        mark; session -> new begin
        attach tb to=b; receive rb of=b; grant 1; tb: send m -> rb.credit 0 | connections 1""",
    # A held publisher holds no consumer beside it, so half the connections will do.
    "a72: one connection carries both ways": """
        ready 50; attach to=other; alarm -> remote_window 0
        receive; grant 40 -> sent 40 | connections 1""",
    "a72: as well as two": """
        ready 50; attach to=other; alarm -> remote_window 0
        client c2; receive; grant 40 -> sent 40 | connections 2""",
}


@every_preset
@pytest.mark.parametrize("script", SHARED.values(), ids=SHARED)
def test_what_one_connection_carries(preset, script) -> None:
    """How a conversation is written: `tests.broker.talk`."""
    Talk(preset).play(script)
