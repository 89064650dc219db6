"""The article's two senders: the counts come out of the mechanism, and a long run is no other."""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import cache

import pyarrow.parquet as pq
import pytest

from workbench import presets
from workbench.scenarios import ParameterError, World, run
from workbench.scenarios.streaming import stream
from workbench.scenarios.two_senders import (
    AMQP_0_9_1,
    AMQP_1_0,
    ARTICLE,
    ARTICLE_BLOCKS,
    ARTICLE_MS,
    BOTH,
    CLASSIC,
    INPUTS,
    KINDS,
    QUORUM,
    compared,
    counted,
    told,
    two_senders,
)
from workbench.sim import VirtualClock
from workbench.trace import files
from workbench.trace.schema import Row
from workbench.trace.taps import Recorder

BLOG = presets.get("blog2024")


@cache
def counts(run_ms=200, **changes):
    """Counts by kind after some virtual time, with some numbers of the preset changed."""
    done = stream("two_senders", replace(BLOG, **changes), {"run_ms": run_ms})
    return {one.kind: one for one in counted(done.world)}


@cache
def halves(run_ms=125, protocol=BOTH, **changes):
    """The world after some virtual time of the 0-9-1 half, or of both, with numbers changed."""
    given = {"run_ms": run_ms, "protocol": protocol}
    return stream("two_senders", replace(BLOG, **changes), given).world


def messages(world, protocol):
    """What is in the protocol's classic and quorum queue."""
    return [one.messages for one in counted(world) if one.protocol == protocol]


def recorded(run_ms, **given):
    """World and rows of a short run, each row kept."""
    clock = VirtualClock()
    recorder = Recorder("kept", now=lambda: clock.now_us)
    values = two_senders.values(BLOG, {"run_ms": run_ms, **given})
    built = World(
        preset=two_senders.effective(BLOG, values), parameters=values, tap=recorder, clock=clock
    )
    two_senders.build(built)
    clock.run_until_rest()
    assert not clock.due
    return built, recorder.rows


def test_the_article_s_counts_come_out_of_the_mechanism():
    """Within 10 % of the classic count and 30 % of the quorum count, second by second."""
    found = counts(1_000)
    assert ARTICLE_MS == 10_000
    assert found[CLASSIC].article * 10 == ARTICLE["amqp-10", CLASSIC] == 1_089_075
    assert found[QUORUM].article * 10 == ARTICLE["amqp-10", QUORUM] == 148_580
    assert abs(found[CLASSIC].residual) < 0.10
    assert abs(found[QUORUM].residual) < 0.30


@pytest.mark.slow
def test_the_disk_decides_how_two_links_share_one_session():
    """A slower disk takes from the quorum link what it gives to the classic one: no more in all."""
    fast, article, slow = counts(fsync_us=3_000), counts(), counts(fsync_us=12_000)
    for kind, sign in ((QUORUM, 1), (CLASSIC, -1)):
        found = [sign * each[kind].messages for each in (fast, article, slow)]
        assert found == sorted(found, reverse=True)
    sums = [sum(one.messages for one in each.values()) for each in (fast, article, slow)]
    assert max(sums) < 1.01 * min(sums)


@pytest.mark.slow
def test_the_session_s_time_is_the_sum_s_and_half_of_it_nearly_twice_the_classic_count():
    """1,237,655 transfers in ten seconds are 8.08 us each; the quorum link waits for its disk."""
    total = sum(one.messages for one in counts().values())
    assert total * (BLOG.session_us + BLOG.session_ns / 1000) == pytest.approx(2e5, rel=0.01)
    quick = counts(session_us=4, session_ns=40)
    assert quick[CLASSIC].messages > 1.8 * counts()[CLASSIC].messages
    assert quick[QUORUM].messages < 1.4 * counts()[QUORUM].messages


def test_a_confirm_waits_behind_the_transfers_before_it():
    """With a confirm that overtakes the mailbox the quorum link would be faster than it is."""
    _, rows = recorded(60)
    synced = next(row for row in rows if row.event == "fsync" and row.t_us > 20_000)
    queue = next(row for row in rows if row.seq > synced.seq and row.event == "confirm")
    heard = next(
        row for row in rows if row.seq > queue.seq and row.event == "confirm" and row.link == QUORUM
    )
    before = [row for row in rows if queue.seq < row.seq < heard.seq and row.event == "received"]
    transfers = [row for row in before if row.kind == "transfer"]
    waited_us = heard.t_us - queue.t_us
    assert len(transfers) > 50
    assert waited_us == pytest.approx(len(transfers) * 8.08, abs=9)


@pytest.mark.parametrize("kind", KINDS)
def test_no_message_is_lost_or_counted_twice(kind):
    """What was sent is in the queue, and no more is unconfirmed; credit was never overdrawn."""
    world, rows = recorded(50)
    sent = world.peers["client"].publishers[kind].sent
    queue = world.broker.queues[f"{kind}-queue-amqp-10"]
    arrived = [row for row in rows if row.kind == "transfer" and row.link == kind]
    assert sent == queue.queue.ready == sum(row.event == "received" for row in arrived)
    unconfirmed = [row.ledger["unconfirmed"] for row in arrived if row.event == "received"]
    assert max(unconfirmed) <= 255, "170 and the 85 that were left when it was granted again"
    assert world.broker.overview()[f"c1.{kind}.unconfirmed"] == 0


def test_a_streamed_trace_is_the_kept_one_row_by_row(tmp_path):
    """Whoever writes rows as they are made writes what a run that keeps them has."""
    path = tmp_path / "long.parquet"
    with files.TraceWriter(path, raw=False) as writer:
        done = stream("two_senders", BLOG, {"run_ms": 20}, take=writer.write)
    kept = run("two_senders", BLOG, {"run_ms": 20})
    assert kept.rested
    assert done.name == kept.name
    assert done.rows == len(kept.rows) == writer.count
    assert pq.read_table(path).to_pylist() == files.to_table(kept.rows, raw=False).to_pylist()


def test_a_run_without_a_tap_counts_the_same():
    """An observer changes nothing."""
    rows: list[Row] = []
    seen = stream("two_senders", BLOG, {"run_ms": 40}, take=rows.append)
    unseen = stream("two_senders", BLOG, {"run_ms": 40})
    assert told(seen.world) == told(unseen.world)
    assert seen.events == unseen.events
    assert unseen.rows == 0 < seen.rows == len(rows)


def test_residuals_are_told_with_their_sign():
    """One line for each queue: the model's count, the article's, and the difference."""
    done = stream("two_senders", parameters={"run_ms": 10})
    for line, one in zip(told(done.world), counted(done.world), strict=True):
        assert line.startswith(f"{one.kind}-queue-amqp-10: {one.messages:,} messages;")
        assert line.endswith(f"residual {one.messages / one.article - 1:+.1%}")


@pytest.mark.parametrize(
    ("preset", "given", "legal"),
    [
        ("rmq4.3", {"latency_us": 0}, "legal: latency_us from 1, or a preset with session_us"),
        ("blog2024", {"run_ms": 0}, "run_ms is 0; legal: 1 to 60000 ms"),
        ("blog2024", {"run_ms": 60_001}, "legal: 1 to 60000 ms"),
        ("blog2024", {"fsync_us": -1}, "fsync_us is -1; legal: 0 to"),
        ("blog2024", {"message_bytes": "12"}, "which is not a whole number"),
        ("blog2024", {"replicas": 3}, "it has: run_ms, fsync_us, message_bytes, latency_us"),
    ],
)
def test_what_cannot_be_is_refused_in_words(preset, given, legal):
    """With what is legal."""
    with pytest.raises(ParameterError) as refused:
        stream("two_senders", preset, given)
    assert legal in str(refused.value)


@pytest.mark.parametrize("enabled", [True, False])
def test_pythons_collector_is_as_it_was_after_a_long_run_even_one_that_fails(enabled):
    """It is switched off during the run alone, and never on by it."""

    def refuse(_table):
        raise OSError("no room")

    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        stream("two_senders", BLOG, {"run_ms": 1})
        assert gc.isenabled() is enabled
        with pytest.raises(OSError, match="no room"):
            stream("two_senders", BLOG, {"run_ms": 1}, take=refuse)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_a23_a24_four_times_as_much_over_1_0_and_no_number_was_read_off_the_ratio():
    """Both halves at once, beside the article's four counts: the bands that they have to reach."""
    found = {one.what: one for one in compared(halves())}
    assert 3.5 < found["ratio of the sums"].model < 4.5
    assert found["ratio of the sums"].article == pytest.approx(1_237_655 / 314_859)
    assert abs(found["sum over amqp-10"].residual) < 0.05
    assert abs(found["sum over amqp-091"].residual) < 0.05


def test_a25_a_connection_is_blocked_eighty_times_a_second_for_each_400_messages_once():
    """70 to 90 cycles, each of exactly as many messages as a channel has credit for."""
    blocks = compared(halves())[-1]
    assert (blocks.what, blocks.article) == (
        "blocks of the 0-9-1 connection a second",
        ARTICLE_BLOCKS,
    )
    assert 70 <= blocks.model <= 90
    _, rows = recorded(30, protocol=AMQP_0_9_1)
    published = 0
    for row in rows:
        published += row.event == "received" and row.kind == "basic.publish"
        if (row.event, row.kind, row.vantage) == ("block", "credit-flow", "reader:c2"):
            assert published == 400
            published = 0


def test_a26_twice_as_fast_a_disk_doubles_what_both_queues_of_a_connection_get():
    """And one that takes no time leaves only the client's writing, for the channel is quicker."""
    slow, half, none = (
        messages(halves(ms, AMQP_0_9_1, fsync_us=us), AMQP_0_9_1)
        for ms, us in ((64, 6_300), (64, 3_150), (10, 0))
    )
    for one, other in zip(half, slow, strict=True):
        assert one == pytest.approx(2 * other, rel=0.05)
    assert BLOG.client_publish_us > BLOG.channel_us
    assert sum(none) * BLOG.client_publish_us == pytest.approx(10_000, rel=0.01)


def test_a27_both_queues_of_one_0_9_1_connection_get_the_same():
    """The slower one decides for both; over 1.0 the classic one gets several times as much."""
    classic, quorum = messages(halves(), AMQP_0_9_1)
    assert classic == pytest.approx(quorum, rel=0.05)
    classic, quorum = messages(halves(), AMQP_1_0)
    assert classic > 4 * quorum


def test_a22_while_the_reader_is_blocked_no_frame_of_either_publisher_is_read():
    """The other queue hangs with it, and TCP holds the client."""
    _, rows = recorded(30, protocol=AMQP_0_9_1, socket_octets=20_000)
    blocked, read = False, []
    for row in rows:
        if row.vantage == "reader:c2" and row.kind == "credit-flow":
            blocked = row.event == "block"
        elif row.event == "received" and row.vantage == "broker" and blocked:
            read.append(row.kind)
    # The reader stops behind the header of the next message, which it has begun to read.
    assert set(read) <= {"basic.publish", "content-header", "content-body"}
    assert len(read) <= 4 * 3
    assert any(row.kind == "tcp" and row.event == "block" for row in rows)


def test_what_was_put_in_is_told_with_its_source_and_it_is_no_count():
    """Costs, a disk's time and RabbitMQ's own settings: each with a source, none from a ratio."""
    lines = told(halves())
    inputs = [line for line in lines if line.startswith("put in: ")]
    assert [line.split()[2] for line in inputs] == list(INPUTS)
    assert all(line.endswith("]") and "[]" not in line for line in inputs)
    assert lines[-1].startswith("blocks of the 0-9-1 connection a second: ")


def test_a_message_leaves_no_cycle_behind():
    """So memory does not grow while Python's collector looks seldom."""
    gc.collect()
    was = gc.isenabled()
    gc.disable()
    try:
        done = stream("two_senders", BLOG, {"run_ms": 20})
        found = gc.collect()
    finally:
        if was:
            gc.enable()
    messages = sum(one.messages for one in counted(done.world))
    assert found < messages / 20
