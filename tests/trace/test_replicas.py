"""The fold of a quorum queue's rows: it says what the cluster itself knows, after any acts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.scenarios import ActionError, run
from workbench.trace.explain import explain
from workbench.trace.replicas import (
    APPLIED,
    COMMITTED,
    CONFIRMED,
    FSYNCED,
    REPLICATED,
    UNTOLD,
    WRITTEN,
    Replicas,
    Timeline,
)

NODES = ("n1", "n2", "n3")


def act(played, name, **arguments):
    """Act when all is at rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


def agrees(played):
    """The fold against the run's own cluster."""
    story = Replicas(played.rows)
    cluster = played.world.broker.cluster
    group = cluster.groups["q"]
    assert {frozenset(way) for way in story.cuts.now} == {
        frozenset(ends) for ends in cluster.network.cuts()
    }
    for name, node in story.nodes.items():
        wal = cluster.nodes[name].wal
        assert (node.waiting.now, node.syncing.now) == (wal.waiting, wal.syncing)
        assert (node.role.now == "down") == (not cluster.nodes[name].alive)
        on_disk = {
            entry.command.enqueue_seq
            for entry in wal.restore(group.writer).entries()
            if entry.command is not None and entry.command.enqueue_seq
        }
        said = {number for number, one in story.messages.items() if name in one.disks.now}
        assert said == on_disk
        member = group.members.get(name)
        if member is None or node.role.now == UNTOLD:
            continue
        assert node.role.now == member.replica.role
        assert node.last.now == member.replica.log.last_index
        assert (node.commit.now, node.applied.now) == (member.replica.commit, member.applied)
        in_log = {
            entry.command.enqueue_seq
            for entry in member.replica.log.entries()
            if entry.command is not None and entry.command.enqueue_seq
        }
        assert {number for number, one in story.messages.items() if name in one.logs.now} == in_log
    leaders = [name for name, node in story.nodes.items() if node.role.now == "leader"]
    if story.leader.now:
        assert story.leader.now in leaders
    confirms = [row for row in played.rows if row.event == "confirm"]
    assert story.confirmed.now == len(confirms)
    assert bool(story.stall.now) <= (cluster.stall("q") is not None)


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.fixed_dictionaries({"count": st.integers(1, 6)})),
        st.tuples(
            st.just("crash"),
            st.fixed_dictionaries(
                {"node": st.sampled_from((*NODES, "leader")), "saved": st.integers(0, 3)}
            ),
        ),
        st.tuples(
            st.sampled_from(("restart", "cut")),
            st.sampled_from(NODES).map(lambda node: {"node": node}),
        ),
        st.tuples(st.just("heal"), st.just({})),
        st.tuples(
            st.just("slow_disk"),
            st.fixed_dictionaries(
                {"node": st.sampled_from(NODES), "fsync_us": st.sampled_from((0, 700, 30_000))}
            ),
        ),
    ),
    min_size=1,
    max_size=7,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(acts=ACTS, early=st.integers(0, 60))
def test_after_any_acts_the_fold_says_what_the_cluster_knows(acts, early):
    """Roles, logs, disks, commit, cuts and messages; the last act comes before the run rests."""
    played = run("quorum", "rmq4.3", {"replicas": "3", "messages": 2})
    for number, (name, arguments) in enumerate(acts):
        given_ = {"a": arguments["node"]} if name == "cut" else arguments
        at = played.rows[-1].seq - (early if number == len(acts) - 1 else 0)
        try:
            played = played.act(max(played.start_seq, at), name, **given_)
        except ActionError:
            continue
        agrees(played)


@pytest.fixture(scope="module")
def unequal():
    """Five disks of five speeds, and one message."""
    played = run("quorum", "rmq4.3", {"replicas": "5"})
    for node, fsync_us in (("n1", 3000), ("n2", 9000), ("n3", 1000), ("n4", 40_000), ("n5", 7000)):
        played = act(played, "slow_disk", node=node, fsync_us=fsync_us)
    return act(played, "publish", count=1)


def test_a20_lamps_come_on_in_order_and_the_third_disk_lights_fsynced(unequal):
    """Written, replicated, fsynced, committed, applied, confirmed: each has its step."""
    story = Replicas(unequal.rows)
    message = story.messages[1]
    lit = {}
    for step in range(len(unequal.rows) + 1):
        for lamp in (WRITTEN, REPLICATED, FSYNCED, COMMITTED, APPLIED, CONFIRMED):
            on, nodes = story.reached(message, lamp, step)
            if on and lamp not in lit:
                lit[lamp] = step, nodes
    assert list(lit) == [WRITTEN, REPLICATED, FSYNCED, COMMITTED, APPLIED, CONFIRMED]
    assert lit[FSYNCED][1] == ("n3", "n1", "n5")
    assert lit[WRITTEN][1] == ("n1",)
    assert len(lit[REPLICATED][1]) == 2
    rows = unequal.rows
    assert [rows[lit[lamp][0] - 1].event for lamp in (FSYNCED, COMMITTED, APPLIED, CONFIRMED)] == [
        "fsync",
        "commit",
        "apply",
        "confirm",
    ]


def test_a_message_sent_again_stays_one_message(unequal):
    """The new leader's log holds it under its old number."""
    played = run("quorum", "rmq4.3", {"replicas": "3"})
    branch = act(played, "publish", count=5)
    at = next(row.seq for row in branch.rows if row.event == "append" and "@n2" in row.vantage)
    fallen = branch.act(at, "crash", node="leader")
    story = Replicas(fallen.rows)
    assert sorted(story.messages) == [1, 2, 3, 4, 5]
    assert all(CONFIRMED in one.done for one in story.messages.values())
    leader = story.leader.now
    after = [row for row in fallen.rows if row.seq > at and row.vantage == f"queue:q@{leader}"]
    again = [row.extra["messages"] for row in after if row.extra.get("messages")]
    assert [(first, count) for ((_, first, count),) in again] == [(1, 5)]


def test_a_new_leader_s_entries_take_the_place_of_those_that_nobody_had():
    """The old leader, cut off, took three messages; when it is back its log gives way."""
    played = run("quorum", "rmq4.3", {"replicas": "3", "messages": 2})
    played = act(played, "slow_disk", node="n1", fsync_us=0)
    for node in ("n2", "n3"):
        played = act(played, "cut", a=node, b="front")  # the session reaches n1 alone
    for node in ("n2", "n3"):
        at = next((row.seq for row in played.rows if row.extra.get("to") == "n2"), None)
        at = played.rows[-1].seq if at is None else at
        played = played.act(at, "cut", a="n1", b=node)
    at = next(row.seq for row in played.rows if row.extra.get("to") == "n3")
    played = played.act(at, "publish", count=3)
    agrees(played)
    assert "n1" in Replicas(played.rows).messages[5].disks.now
    back = act(act(played, "heal", a="n1", b="n2"), "heal", a="n1", b="n3")
    agrees(back)
    messages = Replicas(back.rows).messages
    assert [number for number, one in messages.items() if not one.logs.now] == [3, 4, 5]
    healed = act(back, "heal")
    agrees(healed)
    assert all(CONFIRMED in one.done for one in Replicas(healed.rows).messages.values())


def test_a_crash_loses_what_no_fsync_made_safe():
    """Logs forget it, disks never had it; what a saved batch left is on disk."""
    played = act(run("quorum", "rmq4.3", {"replicas": "3"}), "publish", count=3)
    at = max(row.seq for row in played.rows if row.event == "append" and "q@n1" in row.vantage)
    for saved in (0, 1):
        fallen = played.act(at, "crash", node="n1", saved=saved)
        story = Replicas(fallen.rows)
        step = next(row.seq for row in fallen.rows if row.event == "crash") + 1
        assert not any("n1" in one.logs.at(step) for one in story.messages.values())
        assert sum("n1" in one.disks.at(step) for one in story.messages.values()) == saved
        assert story.leader.at(step) == ""


def test_a_timeline_keeps_changes_only():
    """Before the first, at one, between, after; twice in one step the last counts."""
    line = Timeline(0)
    for step, value in ((3, 5), (3, 6), (4, 6), (9, 1)):
        line.put(step, value)
    assert (line.steps, line.values) == ([0, 3, 9], [0, 6, 1])
    assert [line.at(step) for step in (-1, 0, 2, 3, 8, 9, 99)] == [0, 0, 0, 6, 6, 1, 1]


def test_rows_without_a_quorum_queue_have_no_story():
    """No nodes, no messages; nothing fails."""
    story = Replicas(run("credit").rows)
    assert (story.queue, story.nodes, story.messages) == ("", {}, {})


def test_every_row_of_a_quorum_queue_reads_like_a_sentence(unequal):
    """Who did what, and which message; no field lists."""
    played = act(act(unequal, "crash", node="n1"), "cut", a="n2")
    played = act(act(act(played, "publish", count=40), "heal"), "restart", node="n1")
    told = [each.sentence for each in explain(played.rows)]
    for row, sentence in zip(played.rows, told, strict=True):
        if row.vantage.partition(":")[0] in ("queue", "wal", "node"):
            assert "=" not in sentence, sentence
            assert sentence.endswith(".")
    text = "\n".join(told)
    for words in (
        "Replica n1 takes entry 2 (its sender's number 1) into its log, not yet safe.",
        "The leader n1 sends entry 2 to n2.",
        "1 entry is safe on the disk of n3; 0 wait.",
        "Replica n1 knows that a majority has everything up to entry 2 safe.",
        "Queue “q” confirms its sender's number 1; 0 are still pending.",
        "Node n1 crashes; its log had no entries that no fsync had made safe.",
        "The line between n2 and n3 is cut; neither knows yet.",
        "counts as slow: 33 commands pending",
        "Node n1 is back, and knows what its disk knows.",
    ):
        assert words in text, words
