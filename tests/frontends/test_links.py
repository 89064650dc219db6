"""The broker's conduct on links: attaching, credit, outcomes, detaching."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.rig import Rig, consuming
from workbench import presets
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.events import DeliveryReceived, LinkAttached, LinkDetached
from workbench.amqp10.messaging import (
    Accepted,
    AmqpValue,
    Data,
    Header,
    MessageAnnotations,
    Modified,
    Rejected,
    Released,
    Source,
    decode_message,
    encode_message,
)
from workbench.amqp10.performatives import (
    Attach,
    Detach,
    Disposition,
    Flow,
    ReceiverSettleMode,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings, SessionSettings
from workbench.frontends import message_of

SPEC = presets.get("spec")


def payloads(client) -> list[bytes]:  # type: ignore[no-untyped-def]
    return [event.delivery.payload for event in client.of(DeliveryReceived)]


# -- attaching ------------------------------------------------------------------------------


def test_a_queue_is_made_for_a_link_where_the_preset_says_so() -> None:
    """The spec preset declares automatically; source and target are echoed [2.6.3]."""
    rig = Rig()
    client, session = rig.raw()
    link = rig.receiver(session, "new")
    assert link.attached
    assert list(rig.broker.queues) == ["new"]
    (attach,) = client.frames(Attach)
    assert attach.source.address == "new"
    assert attach.source.default_outcome == Released()


@pytest.mark.parametrize("role", ["receiver", "sender"])
def test_a_link_to_an_unknown_queue_is_refused_where_it_is_not_made(role: str) -> None:
    """An attach with a null terminus, then a detach with not-found [2.6.3]; the session lives."""
    rig = Rig(replace(SPEC, auto_declare=False))
    rig.fill("there", 0)
    client, session = rig.raw()
    link = getattr(rig, role)(session, "missing")
    (attach,) = client.frames(Attach)
    assert (attach.source if role == "receiver" else attach.target) is None
    (detach,) = client.frames(Detach)
    assert detach.closed
    assert detach.error.condition == ErrorCondition.NOT_FOUND
    assert detach.error.description == "no queue 'missing'; there are: there"
    assert client.of(LinkAttached)[0].refused
    assert not link.attached
    assert rig.receiver(session, "there", name="again").attached


def test_a_dynamic_source_is_refused() -> None:
    """Nodes on demand are not offered; the text says what is legal."""
    rig = Rig()
    client, session = rig.raw()
    session.attach_receiver("r", Source(dynamic=True))
    rig.rest()
    (event,) = client.of(LinkDetached)
    assert event.error.condition == ErrorCondition.NOT_IMPLEMENTED
    assert "legal: the name of a queue" in event.error.description


def test_an_address_may_name_the_queue_plainly_or_under_queues() -> None:
    """`/queues/a%2Fb` and `a/b` are the same queue."""
    rig = Rig()
    rig.fill("a/b", 3)
    _, session = rig.raw()
    for name, address in (("plain", "a/b"), ("under", "/queues/a%2Fb")):
        rig.receiver(session, address, name)
    assert list(rig.broker.queues) == ["a/b"]


def test_the_initial_delivery_count_is_the_presets() -> None:
    """The broker begins its links where the preset says."""
    rig = Rig(replace(SPEC, initial_delivery_count=4294967294))
    rig.fill("q", 3)
    client, session = rig.raw()
    link = rig.receiver(session)
    assert client.frames(Attach)[0].initial_delivery_count == 4294967294
    link.grant(3)
    rig.rest()
    assert link.delivery_count == 1


# -- credit ---------------------------------------------------------------------------------


def test_nothing_comes_without_credit_and_as_much_as_credit_says() -> None:
    """Ten ready, credit 3: three transfers, in order [2.6.7]."""
    rig, client, _, link = consuming(None, 10)
    assert payloads(client) == []
    link.grant(3)
    rig.rest()
    assert payloads(client) == [b"m0", b"m1", b"m2"]
    assert link.credit == 0


def test_the_sender_knows_how_much_is_available() -> None:
    """available is the queue's ready messages, at once after the attach and in an echo."""
    rig, client, _, link = consuming(None, 10)
    attach = next(
        r
        for r in rig.recorder.rows
        if r.kind == "attach" and r.event == "sent" and r.vantage == "broker"
    )
    assert attach.ledger["available"] == 10
    assert attach.brake == "link-credit"
    link.flow(echo=True)
    rig.rest()
    assert client.frames(Flow)[-1].available == 10
    assert link.available == 10


def test_messages_that_come_without_credit_show_in_a_row_of_the_sender() -> None:
    """No transfer tells of them, so the broker's row does: available 1, held by link-credit."""
    rig = Rig()
    _, session = rig.raw()
    rig.receiver(session)
    rig.broker.declare("q").publish(message_of(b"late"))
    rig.rest()
    row = rig.recorder.rows[-1]
    assert (row.vantage, row.event, row.kind) == ("broker", "note", "available")
    assert row.ledger["available"] == 1
    assert row.brake == "link-credit"


def test_an_echo_is_answered_once_with_the_present_state() -> None:
    """The answer carries no echo itself [2.7.4]."""
    rig = Rig()
    client, session = rig.raw()
    link = rig.receiver(session)
    link.grant(5, echo=True)
    rig.rest()
    (flow,) = client.frames(Flow)
    assert (flow.delivery_count, flow.link_credit, flow.echo) == (0, 5, None)


def test_a_session_echo_is_answered_with_the_session_alone() -> None:
    """An echo without handle asks for ids and windows [2.7.4]."""
    rig = Rig()
    client, session = rig.raw()
    session.flow(echo=True)
    rig.rest()
    (flow,) = client.frames(Flow)
    assert flow.handle is None


def test_drain_on_an_empty_queue_is_answered_at_once() -> None:
    """delivery-count advances by the credit, which becomes 0; the limit stays [2.6.7]."""
    rig = Rig(replace(SPEC, initial_delivery_count=4294967290))
    client, session = rig.raw()
    link = rig.receiver(session)
    link.grant(10)
    rig.rest()
    link.grant(10, drain=True, echo=True)
    rig.rest()
    (flow,) = client.frames(Flow)
    assert (flow.delivery_count, flow.link_credit, flow.drain) == (4, 0, True)
    assert (link.credit, link.delivery_count) == (0, 4)


def test_drain_sends_what_there_is_first() -> None:
    """Two transfers, then the flow that gives back the rest."""
    rig, client, _, link = consuming(None, 2)
    link.grant(5, drain=True)
    rig.rest()
    kinds = [type(item.performative) for item in client.received[-3:]]
    assert kinds == [Transfer, Transfer, Flow]
    assert link.credit == 0
    assert link.delivery_count == 5


def test_credit_cut_to_zero_in_the_middle_stops_the_sender() -> None:
    """The broker may not send at credit 0 or below [2.6.7]; what was under way arrives."""
    rig, client, _, link = consuming(None, 100)
    link.grant(50)
    rig.clock.run_until_rest(max_events=20)
    link.stop_sender()
    rig.rest()
    flow = client.frames(Flow)[-1]
    assert (flow.link_credit, flow.delivery_count) == (0, len(payloads(client)))
    assert 0 < len(payloads(client)) < 50
    assert isinstance(client.received[-1].performative, Flow)


# -- window and size ------------------------------------------------------------------------


def test_a_closed_session_window_holds_transfers_and_keeps_link_credit() -> None:
    """Window 2, credit 5: two transfers; after a flow with a new window the others [2.5.6]."""
    rig = Rig()
    rig.fill("q", 5)
    client, session = rig.raw(session_settings=SessionSettings(incoming_window=2))
    link = rig.receiver(session)
    link.grant(5)
    rig.rest()
    assert payloads(client) == [b"m0", b"m1"]
    assert rig.queue().ready == 3
    session.set_incoming_window(10)
    session.flow()
    rig.rest()
    assert payloads(client) == [b"m0", b"m1", b"m2", b"m3", b"m4"]


def test_a_message_of_many_frames_costs_one_credit_and_stops_at_the_window() -> None:
    """Frames of 512 octets, window 3; the delivery goes on when the window opens [2.6.14]."""
    rig = Rig()
    big = encode_message([Data(b"x" * 2000)])
    rig.broker.declare("q").fill(map(message_of, [big, b"second"]))
    client, session = rig.raw(
        settings=ConnectionSettings(max_frame_size=512),
        session_settings=SessionSettings(incoming_window=3),
    )
    link = rig.receiver(session)
    link.grant(2)
    rig.rest()
    assert len(client.frames(Transfer)) == 3
    assert link.credit == 1
    session.set_incoming_window(100)
    session.flow()
    rig.rest()
    assert payloads(client) == [big, b"second"]
    assert link.credit == 0


@pytest.mark.parametrize("mode", list(SenderSettleMode))
def test_a_message_larger_than_the_receiver_takes_ends_the_link_and_stays(
    mode: SenderSettleMode,
) -> None:
    """message-size-exceeded; the message is ready for somebody else, settled or not [2.7.3]."""
    rig = Rig()
    rig.broker.declare("q").fill(map(message_of, [b"x" * 200]))
    client, session = rig.raw()
    link = rig.receiver(session, max_message_size=100, snd_settle_mode=mode)
    link.grant(1)
    rig.rest()
    (detach,) = client.frames(Detach)
    assert detach.error.condition == ErrorCondition.MESSAGE_SIZE_EXCEEDED
    assert (rig.queue().ready, rig.queue().unsettled) == (1, 0)
    assert rig.broker.overview()["queue:q.consumers"] == 0


@pytest.mark.parametrize("mode", [SenderSettleMode.SETTLED, SenderSettleMode.UNSETTLED])
def test_a_message_too_large_for_one_receiver_goes_to_another_in_its_place(
    mode: SenderSettleMode,
) -> None:
    """The one is no consumer any more when its detach leaves; the order stays [2.7.3]."""
    rig = Rig()
    rig.broker.declare("q").fill(map(message_of, [b"x" * 200, b"y"]))
    small, session = rig.raw()
    link = rig.receiver(session, max_message_size=100, snd_settle_mode=mode)
    link.grant(1)
    while rig.recorder.rows[-1].kind != "detach":
        assert rig.clock.step()
    assert rig.queue().consumers() == ()
    assert rig.queue().ready == 2
    assert payloads(small) == []
    large, session = rig.raw("c2")
    rig.receiver(session, snd_settle_mode=mode).grant(2)
    rig.rest()
    assert payloads(large) == [b"x" * 200, b"y"]


def test_only_the_receiver_whose_turn_it_is_is_judged_by_the_size() -> None:
    """A large message that goes to somebody else ends nobody's link."""
    rig = Rig()
    rig.broker.declare("q").fill(map(message_of, [b"small", b"x" * 200]))
    client, session = rig.raw()
    first = rig.receiver(session, name="first", max_message_size=100)
    second = rig.receiver(session, name="second")
    first.grant(2)
    second.grant(1)
    rig.rest()
    assert first.attached
    assert second.attached
    assert payloads(client) == [b"small", b"x" * 200]


def test_the_size_is_that_of_the_message_as_it_would_be_sent() -> None:
    """A header that marks it as handed out before may make it too large [2.7.3]."""
    rig = Rig()
    message = encode_message([Data(b"x" * 50)])
    rig.broker.declare("q").fill(map(message_of, [message]))
    client, session = rig.raw()
    link = rig.receiver(session, max_message_size=len(message))
    link.grant(1)
    rig.rest()
    link.settle(0, state=Released())
    link.grant(1)
    rig.rest()
    assert len(payloads(client)) == 1
    assert client.frames(Detach)[0].error.condition == ErrorCondition.MESSAGE_SIZE_EXCEEDED
    assert (rig.queue().ready, rig.queue().unsettled) == (1, 0)


# -- outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcome", "ready", "terminal"),
    [(Accepted(), 0, 1), (Rejected(), 0, 1), (Released(), 1, 0), (Modified(), 1, 0), (None, 1, 0)],
)
def test_each_outcome_does_to_the_message_what_the_specification_says(
    outcome: object, ready: int, terminal: int
) -> None:
    """Accepted and rejected leave; released, modified and no outcome at all go back [3.4]."""
    rig, client, _, link = consuming(None, 1)
    link.grant(1)
    rig.rest()
    link.settle(client.of(DeliveryReceived)[0].delivery.delivery_id, state=outcome)
    rig.rest()
    queue = rig.queue()
    assert (queue.ready, queue.terminal, queue.unsettled) == (ready, terminal, 0)
    assert link.credit == 0
    assert client.frames(Flow) == []


@pytest.mark.parametrize(("first", "count"), [([], 1), ([Header(delivery_count=2)], 3)])
def test_a_failed_delivery_counts_in_the_header_and_annotations_are_merged(
    first: list[Header], count: int
) -> None:
    """delivery-failed: the next attempt's header says one more than before [3.2.1, 3.4.5]."""
    rig = Rig()
    message = encode_message([*first, MessageAnnotations({"x-old": 1}), AmqpValue("hi")])
    rig.broker.declare("q").fill(map(message_of, [message]))
    client, session = rig.raw()
    link = rig.receiver(session)
    link.grant(1)
    rig.rest()
    link.settle(0, state=Modified(delivery_failed=True, message_annotations={"x-new": 2}))
    link.grant(1)
    rig.rest()
    header, annotations, body = decode_message(payloads(client)[1])
    assert header == Header(first_acquirer=False, delivery_count=count)
    assert annotations.value == {"x-old": 1, "x-new": 2}
    assert body == AmqpValue("hi")


@pytest.mark.parametrize("first", [[], [Header(durable=True, first_acquirer=True)]])
def test_what_was_handed_out_before_says_so_though_no_attempt_failed(first: list[Header]) -> None:
    """first-acquirer false; delivery-count stays, since a detach is no failed attempt [3.2.1]."""
    rig = Rig()
    rig.broker.declare("q").fill(map(message_of, [encode_message([*first, AmqpValue("hi")])]))
    client, session = rig.raw()
    link = rig.receiver(session)
    link.grant(1)
    rig.rest()
    link.close()
    rig.rest()
    rig.receiver(session).grant(1)
    rig.rest()
    before, again = (decode_message(payload) for payload in payloads(client))
    assert before == [*first, AmqpValue("hi")]
    header = again[0]
    assert isinstance(header, Header)
    assert header.first_acquirer is False
    assert (header.durable, header.delivery_count) == (True if first else None, None)
    assert again[-1] == AmqpValue("hi")


def test_one_disposition_may_settle_deliveries_of_two_links() -> None:
    """Delivery-ids belong to the session [2.7.6]; each queue gets its own back."""
    rig = Rig()
    rig.fill("a", 1)
    rig.fill("b", 1)
    client, session = rig.raw()
    for name in "ab":
        rig.receiver(session, name, name=name).grant(1)
    rig.rest()
    assert len(payloads(client)) == 2
    link = client.of(DeliveryReceived)[0].link
    session.emit_disposition(link, link.role, 0, 1, settled=True, state=Accepted())
    rig.rest()
    assert (rig.queue("a").terminal, rig.queue("b").terminal) == (1, 1)


def test_in_mode_second_the_sender_settles_and_says_so() -> None:
    """disposition(settled false) from the receiver; the sender's settled true follows [2.6.12]."""
    rig, client, _, link = consuming(None, 1, rcv_settle_mode=ReceiverSettleMode.SECOND)
    link.grant(1)
    rig.rest()
    link.settle(0)
    rig.rest()
    (disposition,) = client.frames(Disposition)
    assert disposition.settled
    assert isinstance(disposition.state, Accepted)
    assert (rig.queue().terminal, link.unsettled) == (1, {})


def test_a_consumer_that_wants_settled_deliveries_gets_them_settled() -> None:
    """snd-settle-mode settled: nothing to requeue afterwards."""
    rig, client, _, link = consuming(None, 2, snd_settle_mode=SenderSettleMode.SETTLED)
    link.grant(2)
    rig.rest()
    assert [transfer.settled for transfer in client.frames(Transfer)] == [True, True]
    assert rig.queue().terminal == 2


# -- detaching ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["detach", "close", "end", "connection", "lost"])
def test_what_was_unsettled_goes_back_in_order_however_the_link_ends(how: str) -> None:
    """Detach, end, close, or a lost transport: the next consumer gets the messages in order."""
    rig, client, session, link = consuming(None, 4)
    link.grant(3)
    rig.rest()
    link.settle(1)
    match how:
        case "detach":
            link.detach()
        case "close":
            link.close()
        case "end":
            session.end()
        case "connection":
            client.amqp.close()
        case _:
            rig.rest()
            rig.broker.connections["c1"].lost()
    rig.rest()
    assert (rig.queue().ready, rig.queue().unsettled) == (3, 0)
    assert rig.queue().consumers() == ()
    other, session = rig.raw("c2")
    rig.receiver(session).grant(9)
    rig.rest()
    assert payloads(other) == [b"m0", b"m2", b"m3"]


def test_a_link_can_be_attached_again_under_its_name() -> None:
    """The second attachment is another consumer; the trace counts it as attach 2."""
    rig = Rig()
    rig.fill("q", 2)
    client, session = rig.raw()
    rig.receiver(session).close()
    rig.rest()
    link = rig.receiver(session)
    link.grant(1)
    rig.rest()
    assert payloads(client) == [b"m0"]
    transfer = next(row for row in rig.recorder.rows if row.kind == "transfer")
    assert transfer.attach_no == 2


def test_a_stolen_link_loses_its_messages_to_the_new_one() -> None:
    """An attach of a live name on another session detaches the old link as stolen [2.6.1]."""
    rig, client, _, link = consuming(None, 1, name="same")
    link.grant(1)
    rig.rest()
    assert rig.queue().unsettled == 1
    second = client.amqp.begin()
    rig.rest()
    # Our own endpoint refuses to use a live name twice, so it has to forget the first.
    client.amqp.names.clear()
    rig.receiver(second, name="same").grant(1)
    rig.rest()
    (detach,) = client.frames(Detach)
    assert detach.error.condition == ErrorCondition.STOLEN
    assert payloads(client) == [b"m0", b"m0"]


@pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])
def test_rabbitmq_lets_two_links_of_one_name_stand_by_their_handles(preset) -> None:
    """`rabbit_amqp_session.erl:handle_attach` keeps links by handle and looks at no name."""
    rig = Rig(presets.get(preset))
    rig.fill("q", 2)
    client, session = rig.raw()
    first = rig.receiver(session, name="same")
    client.amqp.names.clear()
    second = rig.receiver(session, name="same")
    for link in (first, second):
        link.grant(1)
        rig.rest()
    assert client.frames(Detach) == []
    assert payloads(client) == [b"m0", b"m1"]
    assert [len(link.unsettled) for link in (first, second)] == [1, 1]
