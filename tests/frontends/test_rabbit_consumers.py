"""Consumers under the presets of RabbitMQ: a session stands between queue and link.

What is expected here was measured on RabbitMQ 4.0.5 and 4.3.6 where nothing else is said.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.broker.rig import Rig, consuming, data
from workbench import presets
from workbench.amqp10.errors import ErrorCondition
from workbench.amqp10.frame import Frame
from workbench.amqp10.messaging import Accepted, Modified
from workbench.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Role,
    SenderSettleMode,
    Transfer,
)
from workbench.amqp10.settings import ConnectionSettings
from workbench.frontends import message_of
from workbench.queues import QueueArguments

RMQ40, RMQ43 = presets.get("rmq4.0"), presets.get("rmq4.3")
BOTH = pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda p: p.name)


def answers(client) -> list[tuple[int, int, int]]:
    """(link-credit, available, drain) of the broker's flows about a consumer's link."""
    flows = [flow for flow in client.frames(Flow) if flow.available is not None]
    return [(flow.link_credit, flow.available, bool(flow.drain)) for flow in flows]


def buffered(rig, link: str = "r") -> int:
    return rig.broker.overview()[f"c1.{link}.buffered"]


def window(session, frames: int) -> None:
    session.set_incoming_window(frames)
    session.flow()


@BOTH
def test_a75_a_huge_credit_with_a_tiny_window_buffers_256_in_the_session(preset) -> None:
    """Window 5: 5 sent, 256 unsettled, 744 ready; after 310 sent: 512 [peers: 256, then 512]."""
    rig, client, session, link = consuming(preset, 1000)
    window(session, 5)
    link.grant(2147483647)
    rig.rest()
    assert len(client.frames(Transfer)) == 5
    assert (rig.queue().unsettled, rig.queue().ready) == (256, 744)
    assert buffered(rig) == 251
    window(session, 305)
    rig.rest()
    assert len(client.frames(Transfer)) == 310
    assert rig.queue().unsettled == 512
    assert buffered(rig) == 202


@BOTH
def test_a75_max_queue_credit_can_be_set(preset) -> None:
    """10: ten wait in the session; the next ten are asked for when these were sent."""
    rig, _, session, link = consuming(replace(preset, max_queue_credit=10), 100)
    window(session, 0)
    link.grant(1000)
    rig.rest()
    assert rig.queue().unsettled == 10
    window(session, 9)
    rig.rest()
    assert rig.queue().unsettled == 10
    window(session, 1)
    rig.rest()
    assert rig.queue().unsettled == 20


@BOTH
def test_a75_credit_reaches_the_queue_in_batches_of_256(preset) -> None:
    """1,000 messages on a credit of 2,000: three full batches, and the rest."""
    rig = Rig(preset)
    rig.fill("q", 1000)
    client, session = rig.raw()
    rig.receiver(session).grant(2000)
    rig.rest()
    assert len(client.frames(Transfer)) == 1000
    grants = [
        row.extra["credit"]
        for row in rig.recorder.rows
        if row.event == "grant" and row.vantage == "session:c1/1"
    ]
    assert grants == [256, 256, 256, 256]


@BOTH
def test_each_consumer_of_a_session_buffers_for_itself(preset) -> None:
    """Two consumers, window 0: 256 each."""
    rig = Rig(preset)
    rig.fill("a", 400)
    rig.fill("b", 400)
    _, session = rig.raw()
    window(session, 0)
    for name in ("a", "b"):
        rig.receiver(session, name, name).grant(1000)
    rig.rest()
    assert (buffered(rig, "a"), buffered(rig, "b")) == (256, 256)


@BOTH
def test_a_second_session_is_not_held_by_a_closed_first(preset) -> None:
    """Each session has its own line and its own window."""
    rig = Rig(preset)
    rig.fill("q", 100)
    client, first = rig.raw()
    window(first, 0)
    rig.receiver(first).grant(10)
    second = client.amqp.begin()
    rig.rest()
    rig.receiver(second, name="express").grant(10)
    rig.rest()
    assert len(client.frames(Transfer)) == 10


# -- the client's word meanwhile ------------------------------------------------------------


@BOTH
def test_what_is_in_the_session_is_sent_after_a_cut(preset) -> None:
    """Credit 0 while 251 wait: they come all the same, and credit stays at 0."""
    rig, client, session, link = consuming(preset, 1000)
    window(session, 5)
    link.grant(1000)
    rig.rest()
    link.grant(0)
    window(session, 2000)
    rig.rest()
    assert len(client.frames(Transfer)) == 256
    assert rig.queue().ready == 744
    overview = rig.broker.overview()
    assert overview["c1.r.link_credit"] == 0
    assert overview["c1.r.delivery_count"] == (preset.initial_delivery_count + 256) % 2**32


@BOTH
def test_stopping_with_echo_ends_after_a_whole_batch(preset) -> None:
    """Credit 2,500, stopped on the way: a multiple of 256 comes, nothing after the answer."""
    rig, client, session, link = consuming(preset, 2500)
    window(session, 10_000)
    link.grant(2500)
    while len(client.frames(Transfer)) < 300:
        assert rig.clock.step()
    link.stop_sender()
    rig.rest()
    sent = len(client.frames(Transfer))
    assert sent % 256 == 0
    assert sent < 2500
    assert answers(client) == [(0, 2500 - sent, False)]
    kinds = [type(item.performative) for item in client.received if isinstance(item, Frame)]
    assert Transfer not in kinds[len(kinds) - kinds[::-1].index(Flow) :]


@BOTH
def test_of_several_words_while_a_request_is_under_way_the_last_counts(preset) -> None:
    """The stalled queue answers none; when it goes on, the last word is what it hears."""
    rig = Rig(preset)
    rig.fill("q", 100)
    queue = rig.broker.queues["q"]
    client, session = rig.raw()
    link = rig.receiver(session)
    queue.stall()
    for credit in (10, 50, 3):
        link.grant(credit)
        rig.rest()
    assert client.frames(Transfer) == []
    queue.resume()
    rig.rest()
    assert len(client.frames(Transfer)) == 10  # the first request was under way
    assert rig.broker.overview()["c1.r.link_credit"] == 0


@BOTH
def test_credit_is_absolute(preset) -> None:
    """Two flows of 4 give 4; a late delivery-count is put right by the formula."""
    rig, client, _, link = consuming(preset, 25)
    link.grant(4)
    link.grant(4)
    rig.rest()
    assert len(client.frames(Transfer)) == 4
    link.counters.delivery_count = (link.delivery_count - 2) % 2**32
    link.grant(6)
    rig.rest()
    assert len(client.frames(Transfer)) == 8


@BOTH
def test_nothing_comes_before_the_first_flow_and_settling_brings_nothing(preset) -> None:
    """Only credit does."""
    rig, client, _, link = consuming(preset, 25)
    assert client.frames(Transfer) == []
    link.grant(10)
    rig.rest()
    for delivery_id in tuple(link.unsettled):
        link.settle(delivery_id)
    rig.rest()
    assert len(client.frames(Transfer)) == 10
    assert rig.queue().terminal == 10


# -- drain and echo -------------------------------------------------------------------------


@BOTH
def test_drain_on_an_empty_queue_gives_the_credit_back(preset) -> None:
    """delivery-count moves on by the credit, credit 0, available 0, drain."""
    rig, client, _, link = consuming(preset, 0)
    link.grant(5)
    rig.rest()
    assert answers(client) == []
    link.grant(5, drain=True)
    rig.rest()
    assert answers(client) == [(0, 0, True)]
    flow = client.frames(Flow)[-1]
    assert flow.delivery_count == (preset.initial_delivery_count + 5) % 2**32
    assert link.credit == 0


@BOTH
@pytest.mark.parametrize(("ready", "left"), [(3, 0), (10, 0), (12, 2), (700, 190)])
def test_drain_sends_what_there_is_and_then_answers(preset, ready, left) -> None:
    """Also over several batches, also where nothing is left to give back."""
    credit = 10 if ready < 100 else 510
    rig, client, _, link = consuming(preset, ready)
    link.grant(credit, drain=True)
    rig.rest()
    assert len(client.frames(Transfer)) == min(ready, credit)
    assert answers(client) == [(0, left, True)]
    assert isinstance(client.received[-1].performative, Flow)
    flow = client.frames(Flow)[-1]
    assert flow.delivery_count == (preset.initial_delivery_count + credit) % 2**32


@BOTH
def test_a_drain_is_finished_before_what_the_client_said_meanwhile(preset) -> None:
    """The drain's answer comes first, then the new credit counts from the count in it."""
    rig = Rig(preset)
    rig.fill("q", 0)
    queue = rig.broker.queues["q"]
    client, session = rig.raw()
    link = rig.receiver(session)
    queue.stall()
    link.grant(5, drain=True)
    rig.rest()
    link.grant(7)
    link.flow(echo=True)
    rig.rest()
    assert answers(client) == []
    queue.resume()
    rig.rest()
    # 7 from the old count is 2 from the new one: five were given back [2.6.7].
    assert answers(client) == [(0, 0, True), (2, 0, False)]


@BOTH
def test_after_a_drain_new_credit_works(preset) -> None:
    """Drain is off again with the next flow that does not ask for it."""
    rig, client, _, link = consuming(preset, 1)
    link.grant(10, drain=True)
    rig.rest()
    link.grant(2)
    rig.rest()
    rig.broker.queues["q"].publish(message_of(b"late"))
    rig.rest()
    assert len(client.frames(Transfer)) == 2
    assert link.credit == 1
    assert len(answers(client)) == 1


@BOTH
def test_a53_the_answer_to_echo_tells_what_is_ready(preset) -> None:
    """What was handed out does not count."""
    rig, client, _, link = consuming(preset, 30)
    link.grant(7)
    rig.rest()
    link.flow(echo=True)
    rig.rest()
    assert answers(client) == [(0, 23, False)]


@BOTH
def test_a56_only_answers_about_consumers_links_tell_available(preset) -> None:
    """Neither a publisher's flow nor one about no link has it."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    for number in range(200):
        link.send(data(b"%d" % number), settled=True)
        rig.rest()
    flows = client.frames(Flow)
    assert any(flow.handle is None for flow in flows)
    assert all(flow.available is None for flow in flows)


@BOTH
def test_an_echo_from_a_publisher_or_about_no_link_is_not_answered(preset) -> None:
    """Against 2.7.4."""
    rig = Rig(preset)
    client, session = rig.raw()
    link = rig.sender(session)
    before = len(client.frames(Flow))
    session.flow(echo=True)
    link.available = 77
    link.flow(echo=True)
    rig.rest()
    assert len(client.frames(Flow)) == before


@BOTH
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


@BOTH
def test_an_echo_waits_behind_what_the_session_holds(preset) -> None:
    """With window 0 it stays unanswered, for the answer may not overtake the deliveries."""
    rig, client, session, link = consuming(preset, 10)
    window(session, 0)
    link.grant(10)
    rig.rest()
    link.flow(echo=True)
    rig.rest()
    assert answers(client) == []
    window(session, 100)
    rig.rest()
    assert len(client.frames(Transfer)) == 10
    assert len(answers(client)) == 1


@BOTH
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


# -- what a session does not survive --------------------------------------------------------


@BOTH
@pytest.mark.parametrize("credit", [2147483647, 2147483648, 4294967295])
def test_a73_credit_above_2147483647_ends_the_session(preset, credit) -> None:
    """internal-error; 2147483647 is the most that works."""
    rig = Rig(preset)
    rig.fill("q", 2)
    client, session = rig.raw()
    rig.receiver(session).grant(credit)
    rig.rest()
    ends = client.frames(End)
    if credit == 2147483647:
        assert ends == []
        assert len(client.frames(Transfer)) == 2
    else:
        assert ends[0].error.condition == ErrorCondition.INTERNAL_ERROR
        assert (rig.queue().ready, rig.queue().unsettled) == (2, 0)


@BOTH
def test_a73_a_window_above_2147483647_ends_the_session(preset) -> None:
    """Also in a flow that names no link."""
    rig = Rig(preset)
    client, session = rig.raw()
    window(session, 2147483648)
    rig.rest()
    assert client.frames(End)[0].error.condition == ErrorCondition.INTERNAL_ERROR


@BOTH
def test_a_transfer_after_the_link_was_detached_ends_the_session(preset) -> None:
    """Over credit: detach with transfer-limit-exceeded, then end with unattached-handle."""
    rig = Rig(replace(preset, publisher_credit=1, publisher_credit_regrant_at=-1))
    client, session = rig.raw()
    link = rig.sender(session)
    link.counters.link_credit = 5
    for _ in range(3):
        link.send(data(b"m"), settled=True)
    rig.rest()
    assert client.frames(Detach)[0].error.condition == ErrorCondition.TRANSFER_LIMIT_EXCEEDED
    assert client.frames(End)[0].error.condition == ErrorCondition.UNATTACHED_HANDLE


@BOTH
def test_a_disposition_without_outcome_ends_the_session(preset) -> None:
    """invalid-field (rabbit_amqp_session.erl:settle_op_from_outcome)."""
    rig, client, _, link = consuming(preset, 1)
    link.grant(1)
    rig.rest()
    link.settle(0, state=None)
    rig.rest()
    assert client.frames(End)[0].error.condition == ErrorCondition.INVALID_FIELD


@pytest.mark.parametrize("preset", [RMQ40, RMQ43], ids=lambda p: p.name)
def test_a_link_that_cannot_be_is_refused_by_4_3_and_ends_the_session_of_4_0(preset) -> None:
    """Before 4.2 the session paid for it."""
    rig = Rig(replace(preset, auto_declare=False))
    client, session = rig.raw()
    link = session.attach_receiver("r", "/queues/none")
    rig.rest()
    if preset is RMQ43:
        (detach,) = client.frames(Detach)
        assert detach.error.condition == ErrorCondition.NOT_FOUND
        assert client.frames(Attach)[0].source is None
        assert client.frames(End) == []
    else:
        assert client.frames(End)[0].error.condition == ErrorCondition.NOT_FOUND
        assert client.frames(Attach) == []
    assert not link.attached


# -- frames ---------------------------------------------------------------------------------


@BOTH
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


@BOTH
def test_a_message_half_sent_goes_on_in_spite_of_credit_0(preset) -> None:
    """Its credit was spent when it began."""
    rig = Rig(preset)
    rig.broker.declare("q").fill(map(message_of, [b"x" * 4000]))
    client, session = rig.raw(settings=ConnectionSettings(max_frame_size=512))
    link = rig.receiver(session)
    window(session, 3)
    link.grant(1)
    rig.rest()
    assert len(client.frames(Transfer)) == 3
    session.set_incoming_window(100)
    link.grant(0)
    rig.rest()
    assert client.frames(Transfer)[-1].more is not True
    assert len(link.unsettled) == 1


@BOTH
def test_settled_deliveries_have_no_tag(preset) -> None:
    """A consumer that asks for settled gets them so."""
    rig, client, _, link = consuming(preset, 2, snd_settle_mode=SenderSettleMode.SETTLED)
    link.grant(2)
    rig.rest()
    tags = [(frame.settled, frame.delivery_tag) for frame in client.frames(Transfer)]
    assert tags == [(True, b"")] * 2
    assert rig.queue().terminal == 2


# -- what is over ---------------------------------------------------------------------------


@BOTH
def test_a_consumer_that_detaches_gives_back_what_the_session_held(preset) -> None:
    """In its old order, and the next consumer gets it from the beginning."""
    rig, client, session, link = consuming(preset, 300)
    window(session, 5)
    link.grant(1000)
    rig.rest()
    link.close()
    rig.rest()
    assert (rig.queue().ready, rig.queue().unsettled) == (300, 0)
    window(session, 500)
    rig.receiver(session, name="next").grant(10)
    rig.rest()
    payloads = [item.payload for item in client.received if isinstance(item, Frame)]
    assert [p for p in payloads if p][5:] == [b"m%d" % number for number in range(10)]


@BOTH
def test_undeliverable_here_takes_the_message_out_of_the_queue(preset) -> None:
    """RabbitMQ dead-letters or drops it."""
    rig, _, _, link = consuming(preset, 1)
    link.grant(1)
    rig.rest()
    link.settle(0, state=Modified(undeliverable_here=True))
    rig.rest()
    assert (rig.queue().ready, rig.queue().terminal) == (0, 1)


@BOTH
def test_an_unsettled_disposition_is_answered_with_a_settled_one(preset) -> None:
    """Same range, same state, from the sender; `settled` may not be left out."""
    rig, client, session, link = consuming(preset, 6)
    link.grant(6)
    rig.rest()
    link.settle(1)
    unsettled = Disposition(role=Role.RECEIVER, first=0, last=5, settled=False, state=Accepted())
    session.emit(unsettled)
    rig.rest()
    (answer,) = client.frames(Disposition)
    assert (answer.first, answer.last, answer.settled) == (0, 5, True)
    assert rig.queue().terminal == 6
    assert link.unsettled == {}
