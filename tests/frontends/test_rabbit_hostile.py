"""Clients that say anything at any time under the presets of RabbitMQ."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import Rig
from workbench import presets
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Accepted, Modified, Received, Released, Source, Target
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Role,
    SenderSettleMode,
    Transfer,
)

NUMBER = st.sampled_from([0, 1, 2, 5, 300, 2147483647, 2147483648, 4294967290, 4294967295])
MAYBE = st.none() | NUMBER
HANDLE = st.integers(0, 2)
SETTLED = st.sampled_from([None, False, True])

ATTACH = st.builds(
    lambda name, handle, receiver, mode: Attach(
        name=name,
        handle=handle,
        role=Role.RECEIVER if receiver else Role.SENDER,
        snd_settle_mode=mode,
        source=Source(address="q"),
        target=Target(address="q"),
        initial_delivery_count=None if receiver else 0,
    ),
    st.sampled_from("abc"),
    HANDLE,
    st.booleans(),
    st.sampled_from([None, *SenderSettleMode]),
)
FRAMES = st.one_of(
    ATTACH,
    ATTACH,
    st.builds(
        Flow,
        next_incoming_id=st.just(0) | MAYBE,
        incoming_window=st.just(100) | NUMBER,
        next_outgoing_id=st.just(0) | NUMBER,
        outgoing_window=NUMBER,
        handle=st.none() | HANDLE,
        delivery_count=st.just(0) | MAYBE,
        link_credit=st.just(10) | MAYBE,
        drain=SETTLED,
        echo=SETTLED,
    ),
    st.builds(
        Transfer,
        handle=HANDLE,
        delivery_id=st.integers(0, 5),
        delivery_tag=st.sampled_from([b"0", b"1"]),
        settled=SETTLED,
        more=SETTLED,
        aborted=SETTLED,
    ),
    st.builds(
        Disposition,
        role=st.sampled_from(Role),
        first=st.integers(0, 5),
        last=st.none() | st.integers(0, 9),
        settled=SETTLED,
        state=st.sampled_from(
            [None, Accepted(), Released(), Modified(undeliverable_here=True),
             Received(section_number=0, section_offset=0)]
        ),
    ),
    st.builds(Detach, handle=HANDLE, closed=SETTLED),
    st.builds(End),
    st.builds(Begin, next_outgoing_id=NUMBER, incoming_window=NUMBER, outgoing_window=NUMBER),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), FRAMES, st.sampled_from(["", "stall", "alarm", "rest"]))),
    st.sampled_from(["rmq4.0", "rmq4.3"]),
)
def test_whatever_a_client_says_the_broker_keeps_count(said, preset) -> None:
    """No frame makes it stumble, no message is lost, and the next client is served."""
    rig = Rig(presets.get(preset), latency_us=0)
    rig.fill("q", 20)
    queue = rig.broker.queues["q"]
    client, _ = rig.raw()
    client.react = lambda events: None  # it answers nothing
    for channel, performative, act in said:
        client.wire.send(client, Frame(channel, performative))
        match act:
            case "stall":
                queue.stall()
            case "alarm":
                rig.broker.set_alarm()
            case "rest":
                queue.resume()
                rig.broker.clear_alarm()
                rig.rest()
    queue.resume()
    rig.broker.clear_alarm()
    rig.clock.run_until_rest(100_000)
    state = rig.queue()
    assert state.ready + state.unsettled + state.terminal == state.enqueued
    rig.broker.connections["c1"].lost()
    assert state.unsettled == 0
    _, session = rig.raw("c2")
    late = rig.receiver(session, name="late")
    late.grant(50)
    rig.rest()
    assert len(late.unsettled) == min(50, state.ready + state.unsettled)
