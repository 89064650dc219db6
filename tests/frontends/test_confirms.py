"""Confirms as RabbitMQ's session tells them: gathered, in ranges, across links, before credit.

How a conversation is written: `tests.broker.talk`.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import RMQ43, SPEC, Rig, data, rabbit
from tests.broker.talk import Talk
from workbench import serial
from workbench.amqp10.link import ranges

# A queue that needs no time confirms many messages in one moment.
AT_ONCE = replace(RMQ43, queue_enqueue_us=0)

CONFIRMS = {
    "confirms that come together are told in one range": """
        with queue_enqueue_us=0
        stall; attach; burst 10; resume -> told 0-9 | outcomes accepted*10 | waits 0""",
    # Nobody waits for a fuller range: a session that has nothing else to do tells at once.
    "confirms that come apart are told apart": """
        stall; attach; burst 3; resume -> told 0 1 2""",
    "a range speaks for the session whatever links it spans": """
        with queue_enqueue_us=0
        stall a; stall b; attach a to=a; attach b to=b; turns 10 a b -> a.waits 5 | b.waits 5
        resume a + resume b -> told 0-9 | a.waits 0 | b.waits 0""",
    "what is not confirmed breaks a range": """
        with queue_enqueue_us=0
        stall a; stall b; attach a to=a; attach b to=b; turns 10 a b
        resume a -> told 0 2 4 6 8 | a.waits 0 | b.waits 5""",
    "settled messages are in no range": """
        with queue_enqueue_us=0
        stall; attach; burst 2; presettled; burst 1; unsettled; burst 1; resume -> told 0-1 3""",
    # `process_routing_confirm` answers in the same turn; no other queue's word is waited for.
    "what no queue gets is released at once, each by itself": """
        with queue_enqueue_us=0
        attach to=/exchanges/amq.direct/nowhere; burst 3 -> told 0 1 2 | outcomes released*3""",
    # First the dispositions, then the flow (`send_delivery_state_changes`).
    "outcomes are told before the credit that they make legal": """
        with queue_enqueue_us=0
        stall; attach; flood; mark; resume -> new disposition flow | told 0-254 | credit 170""",
    # The range is broken where its confirms were.
    "a link that has gone hears nothing and others do": """
        with queue_enqueue_us=0
        stall a; stall b; attach a to=a; attach b to=b; turns 10 a b; a: close
        resume a + resume b -> told 1 3 5 7 9 | b.waits 0""",
    # Links of a session that is begun keep the old number, new ones on it too (`init`).
    "max_link_credit is read when a session begins": """
        attach before; configure publisher_credit=10; attach after -> limits 0@170 0@170
        session; attach later -> limits 0@170 0@170 0@10""",
}


@rabbit
@pytest.mark.parametrize("script", CONFIRMS.values(), ids=CONFIRMS)
def test_how_a_session_tells_of_confirms(preset, script) -> None:
    """As `rabbit_amqp_session.erl` gathers them."""
    Talk(preset).play(script)


def test_the_specifications_preset_tells_each_message_alone() -> None:
    """There, frames and messages correspond one to one."""
    Talk(replace(SPEC, queue_enqueue_us=0)).play("stall; attach; burst 3; resume -> told 0 1 2")


def held_back(preset, *, settled: bool = False, count: int = 10, names=("q",)):
    """A rig whose queues are stalled and hold messages, taken in turns, of one link each."""
    rig = Rig(preset)
    for name in names:
        rig.broker.declare(name).stall()
    client, session = rig.raw()
    links = [rig.sender(session, name, name) for name in names]
    for number in range(count):
        links[number % len(links)].send(data(b"m"), settled=settled)
    rig.rest()
    return rig, client, links


def test_the_ledger_counts_unconfirmed_settled_or_not() -> None:
    """On the row of the transfer that completes a message, and on the row that tells less."""
    for settled in (False, True):
        rig, _, _ = held_back(AT_ONCE, settled=settled, count=4)
        rig.broker.declare("q").resume()
        rig.rest()
        shown = [
            (row.kind, row.event, row.ledger["unconfirmed"])
            for row in rig.recorder.rows
            if row.vantage == "broker" and row.kind in ("transfer", "disposition", "confirmed")
        ]
        last = ("confirmed", "confirm", 0) if settled else ("disposition", "sent", 0)
        assert shown == [*(("transfer", "received", n) for n in (1, 2, 3, 4)), last]


def test_a_message_counts_when_it_is_complete() -> None:
    """A delivery of three frames is unconfirmed from its last frame on."""
    rig = Rig(RMQ43)
    rig.broker.declare("q").stall()
    client, session = rig.raw(settings=None)
    client.amqp.remote_max_frame_size = 512
    rig.sender(session).send(data(b"m" * 1200))
    rig.rest()
    shown = [
        row.ledger["unconfirmed"]
        for row in rig.recorder.rows
        if row.kind == "transfer" and row.event == "received"
    ]
    assert shown == [0, 0, 1]


def test_a_frame_about_several_links_names_none_and_each_link_has_a_row_of_its_own() -> None:
    """The trace then tells how many of each link were confirmed, and what is left."""
    rig, _, _ = held_back(AT_ONCE, names=("a", "b"))
    for name in ("a", "b"):
        rig.broker.declare(name).resume()
    rig.rest()
    rows = [row for row in rig.recorder.rows if row.vantage == "broker"]
    shown = [
        (row.link, row.extra["count"], row.ledger["unconfirmed"])
        for row in rows
        if row.event == "confirm"
    ]
    assert shown == [("a", 5, 0), ("b", 5, 0)]
    assert [row.link for row in rows if row.kind == "disposition"] == [None]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 40)), st.integers(0, 2**32 - 1))
def test_ranges_cover_exactly_the_ids_and_none_touches_the_next(offsets, oldest) -> None:
    """Whatever ids, across the wrap-around too."""
    ids = {serial.add(oldest, offset) for offset in offsets}
    found = ranges(ids, oldest)
    covered = [
        serial.add(first, step)
        for first, last in found
        for step in range(serial.diff(last, first) + 1)
    ]
    assert covered == [serial.add(oldest, offset) for offset in sorted(offsets)]
    for (_, last), (first, _) in itertools.pairwise(found):
        assert serial.diff(first, last) > 1
