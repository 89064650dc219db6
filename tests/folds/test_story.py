"""The story of a capture: what it says of each link, and what it takes for the worst."""

from dataclasses import replace

import pytest

from tests.analysis.runs import acted, capture_rows
from workbench import folds
from workbench.capture.importer import import_capture
from workbench.folds.story import story


def lost(rows, *, end):
    """The same run, of which the trace ends before this row."""
    return [row for row in rows if row.seq < end]


@pytest.fixture(scope="module")
def late():
    """A receiver that grants twice, late, and then no more; messages are left."""
    return acted(
        "credit", "rmq4.3", {"messages": 30}, ("grant", {"link_credit": 5}),
        ("grant", {"link_credit": 7}),
    )  # fmt: skip


def test_stalls_by_brake_are_those_of_the_question():
    """Over every capture: as many, as long."""
    rows = list(capture_rows())
    by_run = {}
    for row in rows:
        by_run.setdefault(row.run, []).append(row)
    for its in by_run.values():
        found, told = folds.stalls(its), story(its)
        assert sum(one.stalls for one in told.brakes) == len(found)
        assert sum(one.lost_us for one in told.brakes) == sum(s.end_us - s.start_us for s in found)
        assert {one.brake for one in told.brakes} == {s.brake for s in found}
        if found:
            worst = max(found, key=lambda s: s.end_us - s.start_us)
            assert told.worst[1].lasted_us == worst.end_us - worst.start_us
            assert f"blocked by {told.worst[1].what}" in told.headline


def test_every_link_has_its_messages_and_advice(late):
    """As the summary has them; the one that waited longest comes first."""
    told = story(late)
    summary = {(s.connection, s.session, s.link, s.link_sender): s for s in folds.summarise(late)}
    for link in told.links:
        one = summary[link.key.connection, link.key.session, link.key.link, link.key.link_sender]
        assert (link.messages, link.advice) == (one.messages, one.advice)
    assert told.worst[0] is told.links[0]
    assert "granted credit 2 times" in " ".join(told.links[0].more)


def test_a_consumer_that_waits_for_ever_is_told_without_proof():
    """Its credit is used up, and no later frame shows that anything waited."""
    path = "data/captures/rmq43_b_consumer_credit.pcapng"
    rows = import_capture(path).rows
    flow = next(row for row in rows if row.kind == "flow" and row.frame["link_credit"] == 4)
    told = story([*lost(rows, end=24), replace(flow, seq=24, kind="disposition", frame={})])
    assert told.worst is not None
    assert not told.worst[1].stall or told.worst[1].seq == 11
    (link,) = told.links
    assert link.more[-1].startswith("When the trace ends it has had no credit for ")


def test_a_receiver_that_never_grants_is_named():
    """Nothing moves until it speaks."""
    (link,) = story(acted("credit", "rmq4.3", {"messages": 3})).links
    assert link.more[0] == "Its receiver never granted credit."


def test_a_closed_window_is_told_though_nobody_knows_that_anything_waited(repo):
    """RabbitMQ closes it to a publisher in an alarm."""
    rows = import_capture(repo / "data" / "captures" / "rmq43_f_memory_alarm.pcapng").rows
    publisher = next(one for one in story(rows).links if one.key.link_sender == "client")
    assert "session window was closed once, for 4.8 s at most" in " ".join(publisher.more)
    assert {one.what for one in publisher.intervals} == {"window closed"}


def test_nothing_to_tell_is_told():
    """A sender that always had credit."""
    rows = acted("credit", "rmq4.3", {"messages": 0}, ("grant", {"link_credit": 5}))
    told = story(rows)
    assert told.brakes == ()
    assert "stall" not in told.headline or told.headline.startswith("No stall can be proved")
