"""The broker's conduct on links: attaching, credit, outcomes, detaching.

How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.rig import RMQ40, SPEC, Rig, consuming, every_preset, rabbit
from tests.broker.talk import Talk
from tests.growth import steps
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.events import DeliveryReceived, LinkAttached, LinkDetached
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import (
    Accepted,
    AmqpValue,
    Data,
    Header,
    MessageAnnotations,
    Modified,
    Released,
    Source,
    decode_message,
    encode_message,
)
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    Flow,
    Role,
    SenderSettleMode,
)
from workbench.amqp10.values import MapPairs, Symbol
from workbench.frontends import message_of
from workbench.frontends.keeping import keeps

LINKS = {
    "an address may name the queue plainly or under /queues": """
        receive plain of=a/b; receive under of=/queues/a%2Fb -> queues a/b""",
    "the initial delivery-count is the preset's": """
        with initial_delivery_count=4294967294
        ready 3; receive; grant 3 -> count 3 | credit 0""",
    # [2.6.7]
    "nothing comes without credit, and as much as credit says": """
        ready 10; receive -> got -
        grant 3 -> got m0 m1 m2 | credit 0""",
    # The answer carries no echo itself [2.7.4].
    "an echo is answered once with the present state": """
        receive; grant 5 echo -> answers 5/0 | flows 5@0/5000 | echoes None""",
    # It asks for ids and windows [2.7.4].
    "an echo without handle is answered with the session alone": """
        ask -> flows -/5000""",
    # delivery-count advances by the credit, which becomes 0; the limit stays [2.6.7].
    "drain on an empty queue is answered at once": """
        with initial_delivery_count=4294967290
        receive; grant 10; drain 10 echo -> answers 0/0! | flows 0@4/5000 | credit 0 | count 10""",
    "drain sends what there is first": """
        ready 2; receive; mark; drain 5 -> new transfer transfer flow | credit 0 | count 5""",
    # [2.5.6]
    "a closed session window holds transfers and keeps link-credit": """
        ready 5; client incoming_window=2; receive; grant 5 -> got m0 m1 | ready 3
        window 10 -> got m0 m1 m2 m3 m4""",
    # [2.6.14]
    "a message of many frames costs one credit and stops at the window": """
        ready 1 size=2000; publish second
        client frame=512 incoming_window=3; receive; grant 2 -> sent 3 | credit 1
        window 100 -> got 2000_octets second | credit 0""",
    "only the receiver whose turn it is is judged by the size": """
        publish small; ready 1 size=200; receive first max_message_size=100; receive second
        first: grant 2 + second: grant 1 -> got small 200_octets | detaches -""",
    # disposition(settled false) from the receiver; the sender's settled true follows [2.6.12].
    "in mode second the sender settles and says so": """
        ready 1; receive r second; grant 1; settle -> outcomes accepted | terminal 1 | holds -""",
    "a consumer that wants settled deliveries gets them settled": """
        ready 2; receive r settled; grant 2 -> got m0 m1 | terminal 2 | holds -""",
    "a link can be attached again under its name, and is another consumer": """
        ready 2; receive; close; receive; grant 1 -> got m0 | attach_no 2 2""",
    # An attach of a live name on another session [2.6.1].
    "a stolen link loses its messages to the new one": """
        ready 1; receive same; grant 1 -> unsettled 1
        session; forget; receive same; grant 1 -> detaches amqp:link:stolen | got m0 m0""",
    **{
        # [2.7.3]
        f"a {mode} message larger than the receiver takes ends the link and stays": f"""
        ready 1 size=200; receive r {mode} max_message_size=100; grant 1
        -> detaches amqp:link:message-size-exceeded | ready 1 | unsettled 0 | consumers 0"""
        for mode in ("settled", "unsettled", "mixed")
    },
    **{
        # [3.4]
        f"a message whose outcome is {outcome} {'leaves' if terminal else 'goes back'}": f"""
        ready 1; receive; grant 1; settle {outcome}
        -> ready {1 - terminal} | terminal {terminal} | unsettled 0 | credit 0 | flows -"""
        for outcome, terminal in (
            ("accepted", 1), ("rejected", 1), ("released", 0), ("modified", 0), ("nothing", 0),
        )
    },
    **{
        f"after {how} what was unsettled goes back in order": f"""
        ready 4; receive; grant 3; settle accepted 1
        {how} -> ready 3 | unsettled 0 | consumers 0
        client c2; receive; grant 9 -> got m0 m2 m3"""
        for how in ("detach", "close", "end", "disconnect", "lose")
    },
}  # fmt: skip


@pytest.mark.parametrize("script", LINKS.values(), ids=LINKS)
def test_a_link_under_the_specifications_preset(script) -> None:
    """As the specification says, in the paragraphs that are named."""
    Talk(SPEC).play(script)


def payloads(client) -> list[bytes]:  # type: ignore[no-untyped-def]
    return [event.delivery.payload for event in client.of(DeliveryReceived)]


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


def test_credit_cut_to_zero_in_the_middle_stops_the_sender() -> None:
    """The broker may not send at credit 0 or below [2.6.7]; what was under way arrives."""
    rig, client, _, link = consuming(None, 100)
    link.grant(50)
    rig.clock.run_until_rest(max_events=20)
    link.grant(0, echo=True)
    rig.rest()
    flow = client.frames(Flow)[-1]
    assert (flow.link_credit, flow.delivery_count) == (0, len(payloads(client)))
    assert 0 < len(payloads(client)) < 50
    assert isinstance(client.received[-1].performative, Flow)


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


@rabbit
def test_rabbitmq_lets_two_links_of_one_name_stand_by_their_handles(preset) -> None:
    """`rabbit_amqp_session.erl:handle_attach` keeps links by handle and looks at no name."""
    rig = Rig(preset)
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


def test_a_flow_lets_a_queue_look_once_however_many_consumers_are_there():
    """Each look goes over all consumers: once for each of them would be a square for every flow."""

    def grants(count: int) -> int:
        rig = Rig(SPEC, 0)
        rig.broker.declare("q")
        _client, session = rig.raw()
        links = [rig.receiver(session, name=f"r{number}") for number in range(count)]

        def grant(_: object) -> None:
            links[0].grant(1)
            rig.rest()

        return steps(grant, None)

    some = grants(20)
    assert grants(40) < 3 * some


@every_preset
def test_annotations_that_a_dict_cannot_hold_apart_come_with_an_outcome(preset):
    """A symbol and a string of the same letters are two keys of one map."""
    rig = Rig(preset, 0)
    rig.fill("q", 1)
    client, session = rig.raw()
    rig.receiver(session).grant(1)
    rig.rest()
    two = MapPairs(((Symbol("x-a"), 1), ("x-a", 2)))
    outcome = Modified(message_annotations=two)
    told = Disposition(role=Role.RECEIVER, first=0, last=0, settled=True, state=outcome)
    client.wire.send(client, Frame(session.channel, told))
    rig.rest()
    assert client.amqp.can_emit()
    assert rig.queue().unsettled == 0


@pytest.mark.parametrize("steps_before", range(1, 6))
def test_a_session_whose_connection_is_lost_before_its_turn_is_not_begun(steps_before):
    """What is taken in has a turn of its own, and the transport may be gone by then."""
    rig = Rig(replace(RMQ40, reader_us=2, session_us=7), 0)
    client, _ = rig.raw()
    begin = Begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
    client.wire.send(client, Frame(1, begin))
    for _ in range(steps_before):
        rig.clock.step()
    end = rig.broker.connections["c1"]
    end.lost()
    rig.rest()
    assert not end.overview()["sessions"]


def test_what_is_kept_of_a_client_s_words_is_short():
    """Nothing counts it, and a header may be as long as a message."""
    made = []

    @keeps
    def length(octets: bytes) -> int:
        made.append(octets)
        return len(octets)

    for octets in (b"short", b"long" * 100):
        assert [length(octets), length(octets)] == [len(octets)] * 2
    assert made == [b"short", b"long" * 100, b"long" * 100]
