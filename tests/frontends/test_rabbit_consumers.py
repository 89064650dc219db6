"""Consumers under the presets of RabbitMQ: a session stands between queue and link.

What is expected here was measured on RabbitMQ 4.0.5 and 4.3.6 where nothing else is said. How a
conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import pytest

from tests.broker.rig import RMQ40, RMQ43, Rig, consuming, rabbit
from tests.broker.talk import Talk
from workbench import presets
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Accepted, Source
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Disposition,
    Flow,
    Open,
    Role,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings
from workbench.amqp10.values import Described, MapPairs, Symbol
from workbench.frontends import message_of
from workbench.queues import QueueArguments

BUFFERS = {
    # Peers keep 256, then 512.
    "a75: a huge credit with a tiny window buffers 256 in the session": """
        ready 1000; receive; window 5
        grant 2147483647 -> sent 5 | unsettled 256 | ready 744 | buffered 251
        window 305 -> sent 310 | unsettled 512 | buffered 202""",
    "a75: max_queue_credit can be set": """
        with max_queue_credit=10
        ready 100; receive; window 0
        grant 1000 -> unsettled 10
        window 9 -> unsettled 10
        window 1 -> unsettled 20""",
    "a75: credit reaches the queue in batches of 256": """
        ready 1000; receive
        grant 2000 -> sent 1000 | queue_grants 256 256 256 256""",
    "each consumer of a session buffers for itself": """
        ready 400 a; ready 400 b; window 0
        receive a of=a; grant 1000
        receive b of=b; grant 1000 -> a.buffered 256 | b.buffered 256""",
    "a second session is not held by a closed first": """
        ready 100; window 0; receive; grant 10
        session; receive express; grant 10 -> sent 10""",
    "what is in the session is sent after a cut": """
        ready 1000; receive; window 5; grant 1000
        grant 0 + window 2000 -> sent 256 | ready 744 | broker_credit 0 | broker_count 256""",
    # The first request was under way; the queue hears the last word after it.
    "of several words while a request is under way the last counts": """
        ready 100; receive; stall
        grant 10; grant 50; grant 3 -> sent 0
        resume -> sent 10 | broker_credit 0""",
    "an echo waits behind what the session holds": """
        ready 10; receive; window 0; grant 10; echo -> answers -
        window 100 -> sent 10 | answers 0/0 | last flow""",
    "a message half sent goes on in spite of credit 0": """
        ready 1 size=4000; client frame=512; receive; window 3
        grant 1 -> sent 3 | got -
        window 100 + grant 0 -> got 4000_octets""",
    "a consumer that detaches gives back what the session held, in its old order": """
        ready 300; receive; window 5; grant 1000
        close -> ready 300 | unsettled 0 | got m0 m1 m2 m3 m4
        window 500; receive next; grant 3 -> next.holds m0 m1 m2""",
}

CREDIT = {
    "credit is absolute, and a late delivery-count is put right by the formula": """
        ready 25; receive
        grant 4 + grant 4 -> sent 4
        unsee 2; grant 6 -> sent 8""",
    "nothing comes before the first flow, and settling brings nothing": """
        ready 25; receive -> sent 0
        grant 10; settle -> sent 10 | terminal 10""",
    "drain on an empty queue gives the credit back": """
        ready 0; receive
        grant 5 -> answers -
        drain 5 -> answers 0/0! | broker_count 5 | count 5 | credit 0""",
    "drain sends what there is first": """
        ready 3; receive; drain 10 -> sent 3 | answers 0/0! | last flow | broker_count 10""",
    "a drain's answer comes where nothing is left to give back": """
        ready 10; receive; drain 10 -> sent 10 | answers 0/0! | last flow | broker_count 10""",
    "a drain's answer tells what is still ready": """
        ready 12; receive; drain 10 -> sent 10 | answers 0/2! | last flow | broker_count 10""",
    "a drain may take several batches": """
        ready 700; receive; drain 510
        -> sent 510 | answers 0/190! | last flow | broker_count 510""",
    # 7 from the old count is 2 from the new one: five were given back [2.6.7].
    "a drain is finished before what the client said meanwhile": """
        ready 0; receive; stall; drain 5; grant 7 + echo -> answers -
        resume -> answers 0/0! 2/0""",
    "after a drain new credit works": """
        ready 1; receive; drain 10; grant 2
        publish late -> sent 2 | credit 1 | answers 0/0!""",
    "a53: the answer to echo tells what is ready, and not what was handed out": """
        ready 30; receive; grant 7; echo -> answers 0/23""",
    "a56: only answers about consumers' links tell available": """
        attach; presettled; send 200 -> windows 400 | answers -""",
    # Against 2.7.4.
    "an echo from a publisher or about no link is not answered": """
        attach; mark; ask; echo -> new -""",
    "undeliverable here takes the message out of the queue": """
        ready 1; receive; grant 1; settle undeliverable -> ready 0 | terminal 1""",
    "a73: a credit of 2147483647 is the most that works": """
        ready 2; receive; grant 2147483647 -> sent 2 | ends -""",
    "a73: credit above it ends the session": """
        ready 2; receive; grant 2147483648 -> ends amqp:internal-error | ready 2 | unsettled 0""",
    "a73: the largest credit does so too": """
        ready 2; receive; grant 4294967295 -> ends amqp:internal-error | ready 2 | unsettled 0""",
    "a73: a window above 2147483647 ends the session, also in a flow that names no link": """
        window 2147483648 -> ends amqp:internal-error""",
}


@rabbit
@pytest.mark.parametrize("script", BUFFERS.values(), ids=BUFFERS)
def test_what_a_session_holds_for_its_consumers(preset, script) -> None:
    """Of what they have credit for, as much as their queue is asked for at a time."""
    Talk(preset).play(script)


@rabbit
@pytest.mark.parametrize("script", CREDIT.values(), ids=CREDIT)
def test_what_comes_of_a_consumers_words(preset, script) -> None:
    """Credit, drain, echo, outcomes, and the numbers that a session does not survive."""
    Talk(preset).play(script)


@rabbit
def test_stopping_with_echo_ends_after_a_whole_batch(preset) -> None:
    """Credit 2,500, stopped on the way: a multiple of 256 comes, nothing after the answer."""
    rig, client, session, link = consuming(preset, 2500)
    session.set_incoming_window(10_000)
    session.flow()
    link.grant(2500)
    while len(client.frames(Transfer)) < 300:
        assert rig.clock.step()
    link.grant(0, echo=True)
    rig.rest()
    sent = len(client.frames(Transfer))
    assert sent % 256 == 0
    assert sent < 2500
    answer = next(flow for flow in client.frames(Flow) if flow.available is not None)
    assert (answer.link_credit, answer.available, bool(answer.drain)) == (0, 2500 - sent, False)
    kinds = [type(item.performative) for item in client.received if isinstance(item, Frame)]
    assert Transfer not in kinds[len(kinds) - kinds[::-1].index(Flow) :]


@rabbit
@pytest.mark.parametrize("kind", ["quorum", "classic"])
def test_a55_who_waits_behind_the_single_active_consumer_hears_of_nothing_available(
    preset, kind
) -> None:
    """Whatever its credit. 4.3 says besides who is active (A59), 4.0 sends no properties.

    That is a quorum queue; a classic one tells everybody how many messages it has, and no more.
    """
    rig = Rig(preset)
    rig.broker.declare("q", QueueArguments(queue_type=kind, single_active_consumer=True))
    rig.fill("q", 30)
    client, session = rig.raw()
    first, second = (rig.receiver(session, "q", name) for name in ("first", "second"))
    second.grant(5)
    second.flow(echo=True)
    first.grant(10)
    rig.rest()
    told = [
        (flow.handle, flow.available, dict(flow.properties or {}).get("rabbitmq:active"))
        for flow in client.frames(Flow)
    ]
    if kind == "classic":
        assert told == [(1, 30, None)]
    elif preset is RMQ40:
        assert told == [(1, 0, None)]
    else:
        assert told == [(0, 30, True), (1, 0, False)]
    first.close()
    rig.rest()
    assert len(second.unsettled) == 5
    assert [item.payload for item in client.received if isinstance(item, Frame)][-1] == b"m4"


@pytest.mark.parametrize("more", [False, True])
def test_who_becomes_active_is_told_drain_if_its_latest_credit_was_to_be_drained(more) -> None:
    """`rabbit_fifo.erl:consumer_update_active_effects` tells what the consumer asked for last."""
    rig = Rig(RMQ43)
    rig.broker.declare("q", QueueArguments(queue_type="quorum", single_active_consumer=True))
    client, session = rig.raw()
    first, second = (rig.receiver(session, "q", name) for name in ("first", "second"))
    second.grant(5, drain=True)
    rig.rest()
    if more:
        second.grant(5)
        rig.rest()
    first.close()
    rig.rest()
    told = [
        (flow.link_credit, flow.drain, dict(flow.properties)["rabbitmq:active"])
        for flow in client.frames(Flow)
        if flow.handle == 1
    ]
    assert told == [(0, True, False), (5, False, True) if more else (0, True, True)]


@rabbit
def test_a46_the_broker_never_asks_for_an_echo(preset) -> None:
    """4.3 writes echo=false out, 4.0 leaves it out."""
    rig = Rig(preset)
    rig.fill("q", 3)
    client, session = rig.raw()
    rig.receiver(session).grant(5, drain=True)
    rig.sender(session)
    rig.rest()
    assert {flow.echo for flow in client.frames(Flow)} <= {None, False}
    answer = next(flow for flow in client.frames(Flow) if flow.available is not None)
    assert answer.echo is (False if preset is RMQ43 else None)


@rabbit
def test_open_begin_and_attach_tell_rabbitmqs_limits(preset) -> None:
    """131072, 63 channels, 30 s; 255 handles; 16777216 octets; unsettled unless asked for."""
    rig = Rig(preset)
    client, session = rig.raw()
    rig.receiver(session)
    rig.sender(session, handle=7)
    (opened,) = client.frames(Open)
    assert (opened.max_frame_size, opened.channel_max) == (131072, 63)
    assert opened.idle_time_out == 30000
    assert opened.properties["product"] == "RabbitMQ"
    (begun,) = client.frames(Begin)
    assert (begun.handle_max, begun.outgoing_window) == (255, 4294967295)
    assert begun.next_outgoing_id == preset.initial_next_outgoing_id
    out, into = client.frames(Attach)
    assert out.initial_delivery_count == preset.initial_delivery_count
    assert out.snd_settle_mode is SenderSettleMode.UNSETTLED
    assert out.target is None
    assert into.max_message_size == 16777216
    assert into.handle == 7


@pytest.mark.parametrize(("preset", "room"), [(RMQ40, 481), (RMQ43, 486)], ids=["4.0", "4.3"])
def test_a_large_message_is_split_where_rabbitmq_splits_it(preset, room) -> None:
    """Frames of 512: 486 octets of the message in each, 481 in 4.0; all tell the delivery-id."""
    rig = Rig(preset)
    rig.broker.declare("q").fill(map(message_of, [b"x" * 5061]))
    client, session = rig.raw(settings=ConnectionSettings(max_frame_size=512))
    rig.sender(session, "other")
    rig.receiver(session).grant(1)
    rig.rest()
    parts = [
        item
        for item in client.received
        if isinstance(getattr(item, "performative", None), Transfer)
    ]
    assert [len(part.payload) for part in parts] == [room] * 10 + [5061 - 10 * room]
    assert {part.performative.delivery_id for part in parts} == {0}
    assert {part.performative.delivery_tag for part in parts} == {bytes(4)}


@rabbit
def test_settled_deliveries_have_no_tag(preset) -> None:
    """A consumer that asks for settled gets them so."""
    rig, client, _, link = consuming(preset, 2, snd_settle_mode=SenderSettleMode.SETTLED)
    link.grant(2)
    rig.rest()
    tags = [(frame.settled, frame.delivery_tag) for frame in client.frames(Transfer)]
    assert tags == [(True, b"")] * 2
    assert rig.queue().terminal == 2


@rabbit
@pytest.mark.parametrize(("first", "last", "settled"), [(0, 5, 5), (100, 102, 0)])
def test_an_unsettled_disposition_is_answered_with_a_settled_one(
    preset, first, last, settled
) -> None:
    """Same range, same state, from the sender, also of a range in which nothing is unsettled.

    `settled` may not be left out. Where the deliveries are of one link, the row tells its counters.
    """
    rig, client, session, link = consuming(preset, 6)
    link.grant(6)
    rig.rest()
    link.settle(1)
    unsettled = Disposition(
        role=Role.RECEIVER, first=first, last=last, settled=False, state=Accepted()
    )
    session.emit(unsettled)
    rig.rest()
    (answer,) = client.frames(Disposition)
    assert (answer.first, answer.last, answer.settled) == (first, last, True)
    assert rig.queue().terminal == 1 + settled
    assert len(link.unsettled) == 5 - settled
    (row,) = [
        row for row in rig.recorder.rows
        if (row.vantage, row.event, row.kind) == ("broker", "sent", "disposition")
    ]  # fmt: skip
    assert row.link == ("r" if settled else None)
    assert not settled or row.ledger["unsettled"] == 0


@rabbit
def test_nothing_unsettled_nothing_answered(preset) -> None:
    """A session without unsettled deliveries passes over what is said of any."""
    rig, client, session, _ = consuming(preset, 6)
    session.emit(Disposition(role=Role.RECEIVER, first=0, settled=False, state=Accepted()))
    rig.rest()
    assert client.frames(Disposition) == []


@rabbit
def test_available_counts_what_waits_in_the_session_too(preset) -> None:
    """Whatever its window lets through, the sender has all but what it has sent."""
    rig, _, session, link = consuming(preset, 20)
    session.set_incoming_window(2)
    for credit in (10, 8):
        link.grant(credit)
        rig.rest()
    told = [
        row.ledger["available"]
        for row in rig.recorder.rows
        if row.vantage == "broker" and row.link == "r" and row.kind in ("flow", "transfer")
    ]
    assert told[1:] == [19, 18, 18]


@pytest.mark.parametrize("preset", ["spec", "rmq4.0", "rmq4.3", "broker-j"])
def test_a_filter_whose_name_is_no_symbol_is_as_if_it_were_not_there(preset) -> None:
    """AMQP lets a list be a key; a filter-set's are symbols [3.5.8]."""
    rig = Rig(presets.get(preset))
    rig.broker.declare("q", QueueArguments(queue_type="stream"))
    client, session = rig.raw()
    wanted = Described(Symbol("rabbitmq:stream-offset-spec"), "first")
    odd = Source(address="q", filter=MapPairs((([1], wanted),)))
    link = session.attach_receiver("r", odd)
    rig.rest()
    assert link.attached
    assert not client.frames(Close)
