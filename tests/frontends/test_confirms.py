"""Confirms as RabbitMQ's session tells them: gathered, in ranges, across links, before credit."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker.rig import RMQ43, Rig, data
from workbench import presets, serial
from workbench.amqp10.link import ranges
from workbench.amqp10.performatives import Disposition, Flow

# A queue that needs no time confirms many messages in one moment.
AT_ONCE = replace(RMQ43, queue_enqueue_us=0)


def told(client) -> list[tuple[int, int]]:
    """First and last of the dispositions that came."""
    return [
        (each.first, each.first if each.last is None else each.last)
        for each in client.frames(Disposition)
    ]


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


def test_confirms_that_come_together_are_told_in_one_range() -> None:
    """Ten messages confirmed in one moment: one disposition, first to last."""
    rig, client, _ = held_back(AT_ONCE)
    rig.broker.declare("q").resume()
    rig.rest()
    assert told(client) == [(0, 9)]
    (frame,) = client.frames(Disposition)
    assert (frame.role.name, frame.settled) == ("RECEIVER", True)


def test_confirms_that_come_apart_are_told_apart() -> None:
    """Nobody waits for a fuller range: a session that has nothing else to do tells at once."""
    rig, client, _ = held_back(RMQ43, count=3)
    rig.broker.declare("q").resume()
    rig.rest()
    assert told(client) == [(0, 0), (1, 1), (2, 2)]


def test_the_specifications_preset_tells_each_message_alone() -> None:
    """There, frames and messages correspond one to one."""
    rig, client, _ = held_back(replace(presets.get("spec"), queue_enqueue_us=0), count=3)
    rig.broker.declare("q").resume()
    rig.rest()
    assert told(client) == [(0, 0), (1, 1), (2, 2)]


def test_a_range_speaks_for_the_session_whatever_links_it_spans() -> None:
    """Two links in turns: ids 0 to 9 in one frame, and each link's own are settled."""
    rig, client, links = held_back(AT_ONCE, names=("a", "b"))
    assert [len(link.unsettled) for link in links] == [5, 5]
    for name in ("a", "b"):
        rig.broker.declare(name).resume()
    rig.rest()
    assert told(client) == [(0, 9)]
    assert [len(link.unsettled) for link in links] == [0, 0]
    assert client.amqp.sessions[0].outgoing == {}


def test_what_is_not_confirmed_breaks_a_range() -> None:
    """One of two queues stays stalled: every other id is left out."""
    rig, client, links = held_back(AT_ONCE, names=("a", "b"))
    rig.broker.declare("a").resume()
    rig.rest()
    assert told(client) == [(number, number) for number in range(0, 10, 2)]
    assert [len(link.unsettled) for link in links] == [0, 5]


def test_settled_messages_are_in_no_range() -> None:
    """They are confirmed inside the broker, and nobody asked to hear of it."""
    rig, client, (link,) = held_back(AT_ONCE, count=2)
    link.send(data(b"m"), settled=True)
    link.send(data(b"m"))
    rig.rest()
    rig.broker.declare("q").resume()
    rig.rest()
    assert told(client) == [(0, 1), (3, 3)]


def test_outcomes_are_told_before_the_credit_that_they_make_legal() -> None:
    """First the dispositions, then the flow (`send_delivery_state_changes`)."""
    rig = Rig(AT_ONCE)
    queue = rig.broker.declare("q")
    queue.stall()
    client, session = rig.raw()
    link = rig.sender(session)
    while link.can_send:
        link.send(data(b"m"))
        rig.rest()
    before = len(client.received)
    queue.resume()
    rig.rest()
    kinds = [type(item.performative) for item in client.received[before:]]
    assert kinds == [Disposition, Flow]
    assert told(client) == [(0, 254)]
    assert link.credit == 170


def test_a_link_that_has_gone_hears_nothing_and_others_do() -> None:
    """Its confirms have nobody to go to; the range is broken where they were."""
    rig, client, (a, b) = held_back(AT_ONCE, names=("a", "b"))
    a.close()
    rig.rest()
    for name in ("a", "b"):
        rig.broker.declare(name).resume()
    rig.rest()
    assert told(client) == [(number, number) for number in range(1, 10, 2)]
    assert b.unsettled == {}


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


@pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])
def test_max_link_credit_is_read_when_a_session_begins(preset) -> None:
    """Links of a session that is begun keep the old number, new ones on it too (`init`)."""
    rig = Rig(presets.get(preset))
    client, session = rig.raw()
    rig.sender(session, "q", "before")
    rig.broker.configure(publisher_credit=10)
    rig.sender(session, "q", "after")
    assert [flow.link_credit for flow in client.frames(Flow)] == [170, 170]
    later = client.amqp.begin()
    rig.rest()
    rig.sender(later, "q", "later")
    assert client.frames(Flow)[-1].link_credit == 10


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
