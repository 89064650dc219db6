"""Reader, sessions and writer with a service time: each delays its own, and nobody else.

That no invariant depends on service times: `test_rabbit_properties`.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from tests.broker.rig import RMQ43, Rig, consuming, data, rabbit
from workbench import presets
from workbench.amqp10.performatives import Close, Disposition, Transfer


def depths(rig: Rig, vantage: str, kind: str | None = None) -> list[int]:
    """Depths that a process told, in order."""
    return [
        row.ledger["mailbox"]
        for row in rig.recorder.rows
        if row.vantage == vantage
        and row.event == "note"
        and kind in (None, row.kind)
        and row.ledger is not None
    ]


def times(rig: Rig, kind: str, vantage: str = "broker", **columns: Any) -> list[int]:
    """When an end took frames of a kind in."""
    return [
        row.t_us
        for row in rig.recorder.rows
        if (row.event, row.kind, row.vantage) == ("received", kind, vantage)
        and all(getattr(row, name) == value for name, value in columns.items())
    ]


def burst(link: Any, count: int) -> None:
    for _ in range(count):
        link.send(data(b"m"), settled=True)


@pytest.mark.parametrize("name", presets.names(presets.AMQP_1_0))
def test_without_service_times_no_process_has_a_mailbox(name) -> None:
    """With 0, the default but of `blog2024`, no row tells of a process, nor does the overview."""
    rig = Rig(replace(presets.get(name), session_us=0, session_ns=0))
    rig.fill("q", 300)
    _, session = rig.raw()
    rig.receiver(session).grant(300)
    burst(rig.sender(session), 50)
    rig.rest()
    assert [row for row in rig.recorder.rows if row.kind in ("mailbox", "buffer", "tcp")] == []
    assert not any("mailbox" in key for key in rig.broker.overview() if key.startswith("c1"))


@rabbit
def test_a74_every_process_tells_the_depth_of_its_mailbox(preset) -> None:
    """Reader, session, queue and writer: four vantages, four mailboxes."""
    rig = Rig(replace(preset, reader_us=10, session_us=10, writer_us=10))
    _, session = rig.raw()
    burst(rig.sender(session), 5)
    rig.rest()
    told = {row.vantage for row in rig.recorder.rows if row.ledger and "mailbox" in row.ledger}
    assert told == {"reader:c1", "session:c1/1", "queue:q", "writer:c1"}
    assert {depths(rig, one)[-1] for one in told - {"queue:q"}} == {0}
    overview = rig.broker.overview()
    assert overview["c1.reader:c1.mailbox"] == overview["c1.session:c1/1.mailbox"] == 0


def test_a_slow_reader_takes_frames_in_one_by_one() -> None:
    """Four transfers at once, 500 us each: the mailbox grows to four and shrinks again."""
    rig = Rig(replace(RMQ43, reader_us=500))
    _, session = rig.raw()
    link = rig.sender(session)
    seen = len(depths(rig, "reader:c1"))
    burst(link, 4)
    rig.rest()
    assert depths(rig, "reader:c1")[seen:] == [1, 2, 3, 4, 3, 2, 1, 0]
    taken = times(rig, "transfer")
    assert [later - earlier for earlier, later in itertools.pairwise(taken)] == [500] * 3


@rabbit
@pytest.mark.parametrize(("process", "waits"), [("reader_us", 51), ("session_us", 1)])
def test_a64_a_slow_session_delays_no_other_session_and_a76_a_slow_reader_all(
    preset, process, waits
) -> None:
    """A transfer of the second session behind 50 of the first: the reader's guard is TCP alone."""
    rig = Rig(replace(preset, **{process: 1000}))
    client, first = rig.raw()
    second = client.amqp.begin()
    rig.rest()
    busy, other = rig.sender(first, "a", "a"), rig.sender(second, "b", "b")
    taken_us = rig.clock.now_us + rig.latency_us
    burst(busy, 50)
    burst(other, 1)
    rig.rest()
    assert times(rig, "transfer", link="b") == [taken_us + waits * 1000]
    assert times(rig, "transfer", link="a")[-1] == taken_us + 50_000
    if process == "session_us":
        assert max(depths(rig, "session:c1/1")) == 50
        assert max(depths(rig, "session:c1/2")) <= 2


def test_a_close_waits_for_what_the_sessions_still_have_to_do() -> None:
    """All that was sent before is taken in, by any session; then the connection closes."""
    rig = Rig(replace(RMQ43, session_us=1000))
    client, _ = rig.raw()
    second = client.amqp.begin()
    rig.rest()
    burst(rig.sender(second), 20)
    client.amqp.close()
    rig.rest()
    assert rig.queue().ready == 20
    assert len(client.frames(Close)) == 1
    assert times(rig, "close") >= times(rig, "transfer")[-1:]


def test_a_session_that_is_slow_takes_no_more_than_its_window_from_a_publisher() -> None:
    """400 frames may be under way to it: window and credit count what it has worked in."""
    rig = Rig(replace(RMQ43, session_us=1000, publisher_credit=10_000))
    _, session = rig.raw()
    link = rig.sender(session)
    while link.can_send:
        burst(link, 1)
    assert session.counters.remote_incoming_window == 0
    rig.clock.run_until_rest(5)
    assert len(times(rig, "transfer")) < 5
    rig.rest()
    assert max(depths(rig, "session:c1/1")) == 400


@rabbit
def test_a75_the_session_tells_how_many_messages_it_holds_and_never_above_256(preset) -> None:
    """Window 5, huge credit: 251 wait; each that leaves later is told; then the next batch."""
    rig, _, session, link = consuming(preset, 1000)
    session.set_incoming_window(5)
    session.flow()
    link.grant(2147483647)
    rig.rest()
    held = depths(rig, "session:c1/1", "buffer")
    assert held == list(range(1, 252))
    session.set_incoming_window(260)
    session.flow()
    rig.rest()
    later = depths(rig, "session:c1/1", "buffer")[len(held) :]
    assert later[:251] == list(range(250, -1, -1))
    assert max(later[251:]) == 256 - (260 - 251)
    row = next(row for row in rig.recorder.rows if row.kind == "buffer")
    assert (row.link, row.link_sender, row.session) == ("r", "broker", 1)


@rabbit
def test_a75_a_slow_session_with_an_open_window_holds_no_more_than_256_either(preset) -> None:
    """What the queue hands out waits in the session's mailbox; the next batch waits for it."""
    rig = Rig(replace(preset, session_us=1000, queue_deliver_us=1))
    rig.fill("q", 1000)
    client, session = rig.raw()
    rig.receiver(session).grant(2000)
    rig.rest()
    assert len(client.frames(Transfer)) == 1000
    # The queue's answer to the credit waits with them.
    assert 250 < max(depths(rig, "session:c1/1")) <= 257


@rabbit
def test_a_slow_writer_stops_the_sessions_at_400_frames_and_the_brake_is_tcp(preset) -> None:
    """RabbitMQ's credit_flow {400, 200}: stop at 400, on again when 200 were written."""
    rig = Rig(replace(preset, writer_us=1000, queue_deliver_us=1))
    rig.fill("q", 2000)
    client, session = rig.raw()
    rig.receiver(session).grant(2000)
    rig.rest()
    assert len(client.frames(Transfer)) == 2000
    assert max(depths(rig, "writer:c1")) == 400
    told = [(row.event, row.extra["frames"]) for row in rig.recorder.rows if row.kind == "tcp"]
    assert told[:2] == [("block", 400), ("unblock", 200)]
    assert [event for event, _ in told] == ["block", "unblock"] * (len(told) // 2)
    stopped = next(row.seq for row in rig.recorder.rows if row.kind == "tcp")
    row = rig.recorder.rows[stopped + 1]
    assert (row.kind, row.event, row.brake) == ("transfer", "sent", "tcp")
    assert max(depths(rig, "session:c1/1", "buffer")) <= 256


def test_a_stopped_session_still_answers_with_flows_and_dispositions() -> None:
    """Invariant 6 with the writer for a brake: they wait their turn in the writer, no longer."""
    rig = Rig(replace(RMQ43, writer_us=1000, queue_deliver_us=1))
    rig.fill("q", 2000)
    client, session = rig.raw()
    receiver, sender = rig.receiver(session), rig.sender(session, "t", "s")
    receiver.grant(2000)
    while not (told := [row.event for row in rig.recorder.rows if row.kind == "tcp"]):
        rig.clock.step()
    sender.send(data(b"m"))
    until_us = rig.clock.now_us + 2 * rig.latency_us
    while (rig.clock.next_us or until_us) < until_us:
        rig.clock.step()
    assert told == [row.event for row in rig.recorder.rows if row.kind == "tcp"] == ["block"]
    assert rig.queue("t").ready == 1
    rig.rest()
    assert len(client.frames(Disposition)) == 1


@rabbit
def test_each_session_has_a_credit_of_its_own_with_the_writer(preset) -> None:
    """One that has spent its 400 stops; another goes on, and fills the writer with 400 more."""
    rig = Rig(replace(preset, writer_us=1000, queue_deliver_us=1))
    rig.fill("q", 1000)
    rig.fill("p", 1000)
    client, first = rig.raw()
    one = rig.receiver(first)
    second = client.amqp.begin()
    rig.rest()
    other = rig.receiver(second, "p", "r2")

    def sent(session: Any) -> int:
        return sum(
            (row.kind, row.event, row.session) == ("transfer", "sent", session.ordinal)
            for row in rig.recorder.rows
        )

    one.grant(1000)
    while not any(row.kind == "tcp" for row in rig.recorder.rows):
        rig.clock.step()
    other.grant(50)
    while sent(second) < 50:
        rig.clock.step()
    assert [row.event for row in rig.recorder.rows if row.kind == "tcp"] == ["block"]
    assert sent(first) == 400
    other.grant(1000)
    rig.rest()
    assert (sent(first), sent(second)) == (1000, 1000)
    assert 400 < max(depths(rig, "writer:c1")) <= 800
    assert [row.event for row in rig.recorder.rows if row.kind == "tcp"][-1] == "unblock"


def test_a_lost_connection_leaves_nothing_to_be_done() -> None:
    """What waits in its processes goes with it, and the queue has its messages back."""
    rig = Rig(replace(RMQ43, reader_us=100, session_us=100, writer_us=100))
    rig.fill("q", 50)
    _, session = rig.raw()
    rig.receiver(session).grant(50)
    for _ in range(200):
        rig.clock.step()
    rig.broker.connections["c1"].lost()
    assert (
        sum(value for key, value in rig.broker.overview().items() if key.endswith("1.mailbox")) == 0
    )
    assert rig.queue().ready == 50
