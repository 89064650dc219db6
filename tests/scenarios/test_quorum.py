"""The scenarios `quorum` and `quorum_chaos`: acts, rows, refusals, and seeds that open here."""

import base64
import gzip
import re

import pytest

from tests.rules.quorum_shelf import page_command
from workbench.cli import main as cli
from workbench.queues.raft import RULES_BROKEN
from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.quorum_chaos import Chaos
from workbench.sim import VirtualClock
from workbench.trace import files
from workbench.trace.hash import trace_hash


@pytest.fixture(scope="module")
def five():
    """Five replicas, a publisher attached, nothing sent."""
    return run("quorum", "rmq4.3")


def act(played, name, **arguments):
    """Act when all is at rest."""
    return played.act(played.rows[-1].seq, name, **arguments)


def since(played, before):
    """The rows that an act caused."""
    return played.rows[len(before.rows) :]


def of(rows, event, vantage=""):
    """Rows of one event, of vantages that begin so."""
    return [row for row in rows if row.event == event and row.vantage.startswith(vantage)]


def test_b20_a_message_goes_to_the_leader_to_the_logs_and_to_the_followers(five):
    """Session, leader, its log and four followers, then commit, apply and confirm."""
    rows = since(act(five, "publish", count=1), five)
    order = ["append", "replicate", "fsync", "commit", "apply", "confirm"]
    first = [next(row.seq for row in rows if row.event == event) for event in order]
    assert first == sorted(first)
    assert len(of(rows, "replicate", "queue:q@n1")) == 4
    assert len(of(rows, "fsync", "wal:")) == 5


def test_a20_of_five_replicas_the_third_fsync_triggers_the_confirm(five):
    """With five unequal disks the confirm follows the third of the fsyncs that the leader hears."""
    played = five
    for node, fsync_us in (("n1", 3000), ("n2", 9000), ("n3", 1000), ("n4", 40_000), ("n5", 7000)):
        played = act(played, "slow_disk", node=node, fsync_us=fsync_us)
    rows = since(act(played, "publish", count=1), played)
    synced = [row.vantage for row in of(rows, "fsync", "wal:")]
    (confirm,) = of(rows, "confirm")
    before = [row.vantage for row in of(rows, "fsync", "wal:") if row.seq < confirm.seq]
    assert synced == ["wal:n3", "wal:n1", "wal:n5", "wal:n2", "wal:n4"]
    assert before == ["wal:n3", "wal:n1", "wal:n5"]
    third = of(rows, "fsync", "wal:n5")[0]
    assert confirm.t_us == third.t_us + played.parameters["node_latency_us"]


def test_messages_survive_the_crash_of_any_minority(five):
    """Two of five die, the leader first; what was published before and after is confirmed."""
    played = act(five, "publish", count=20)
    played = act(played, "crash", node="leader")
    played = act(played, "crash", node="leader")
    played = act(played, "publish", count=20)
    confirmed = [row for row in played.rows if row.event == "confirm"]
    assert len(confirmed) == 40
    assert len(of(played.rows, "elect")) == 2
    told = [row for row in played.rows if row.kind == "disposition" and row.event == "received"]
    assert told[-1].ledger["unsettled"] == 0


def test_a_stall_without_a_majority_rests_and_names_its_brake(five):
    """Three of five die: the run rests, a row says why, the publisher is held by unconfirmed."""
    played = five
    for node in ("n1", "n2", "n3"):
        played = act(played, "crash", node=node)
    played = act(played, "publish", count=400)
    assert played.rested
    (why, *_) = [row.extra["why"] for row in played.rows if row.kind == "no-majority"]
    assert "2 of 5 replicas reach each other, 3 are a majority" in why
    assert "held by unconfirmed" in why
    assert "restart n1" in why
    blocks = [row for row in played.rows if row.event == "block" and row.kind == "unconfirmed"]
    assert blocks
    healed = act(played, "restart", node="n1")
    assert len([row for row in healed.rows if row.event == "confirm"]) == 400


@pytest.mark.parametrize(
    ("before", "name", "arguments", "why"),
    [
        ("n2", "crash", {"node": "n2"}, "n2 is down already; legal now: restart n2, or crash n1"),
        (None, "restart", {"node": "n1"}, "n1 is running; down now: none"),
        (None, "heal", {"a": "n1", "b": "n2"}, "n1-n2 is not cut; cut now: none"),
        (None, "heal", {}, "no such line is cut"),
        (None, "cut", {"a": "n1", "b": "n1"}, "there is no way n1-n1"),
        (None, "crash", {"node": "n7"}, "there is no node 'n7'; nodes: n1, n2, n3, n4, n5"),
        (None, "slow_disk", {"node": "n1", "fsync_us": -1}, r"legal: 0 to 1000000 µs \(1.0 s\)"),
        (None, "slow_way", {"a": "n1", "b": "n1", "latency_us": 5}, "there is no way n1-n1"),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_legal(five, before, name, arguments, why):
    """And nothing has changed."""
    played = five if before is None else act(five, "crash", node=before)
    with pytest.raises(ActionError, match=why):
        act(played, name, **arguments)


def test_a_number_of_replicas_may_be_given_as_a_number():
    """`5` and `"5"` are the same run: a learner writes the first."""
    as_number = run("quorum", parameters={"replicas": 5})
    as_text = run("quorum", parameters={"replicas": "5"})
    assert as_number.parameters == as_text.parameters
    assert trace_hash(as_number.rows) == trace_hash(as_text.rows)


@pytest.mark.parametrize("replicas", ["0", "2", "4", "8", 2])
def test_a_number_of_replicas_that_makes_no_sense_is_refused(replicas):
    """One line that names what is legal."""
    with pytest.raises(ParameterError, match="legal: one of 1, 3, 5, 7"):
        run("quorum", parameters={"replicas": replicas})


def test_a_majority_cut_for_ever_is_explained(five):
    """Every way of three nodes is cut: the words say what would help."""
    played = five
    for node in ("n1", "n2", "n3"):
        played = act(played, "cut", a=node)
    assert played.rested
    why = [row.extra["why"] for row in played.rows if row.kind == "no-majority"][-1]
    assert "heal n1-n2" in why
    assert "front" not in why  # a client's way, which no majority needs
    healed = act(act(played, "heal"), "publish", count=3)
    assert len([row for row in healed.rows if row.event == "confirm"]) == 3


def test_a_consumer_is_served_through_the_log_and_a_new_leader_goes_on():
    """Credit, deliveries, a crash of the leader, and more of the same; in order."""
    played = run("quorum", "rmq4.3", {"replicas": "3", "messages": 30, "link_credit": 100})
    crashed = act(played, "crash", node="leader")
    more = act(crashed, "publish", count=30)
    assert len([row for row in more.rows if row.event == "deliver"]) == 60
    assert len([row for row in more.rows if row.event == "confirm"]) == 60


@pytest.mark.parametrize("seed", [6, 11])
def test_a_seed_of_the_safety_test_is_the_same_run_on_the_stage(seed):
    """The rows tell of the same crashes and elections; the command names that seed."""
    played = run("quorum_chaos", parameters={"seed": seed})
    tally = Chaos(VirtualClock(), seed).run()
    assert played.rested and not played.note
    assert len([row for row in played.rows if row.event == "crash"]) == tally.kinds["crash"]
    assert len([row for row in played.rows if row.event == "elect"]) == tally.leader_changes


def test_the_command_that_a_failing_seed_prints_opens_that_run_on_the_stage(tmp_path, monkeypatch):
    """Every part of it does what it says, from keeping the trace to the page that is opened."""
    monkeypatch.chdir(tmp_path)
    kept, made, opened = page_command(7, mutant="commit-before-fsync", messages=5).split(" && ")
    assert cli(kept.split()[1:]) == 0
    assert cli(made.split()[1:]) == 0
    page = tmp_path / opened.split()[-1]
    assert opened.startswith("python -m webbrowser ")
    stored = re.search(r'id="scene">([^<]*)<', page.read_text())[1]
    assert "confirmed is on a majority" in gzip.decompress(base64.b64decode(stored)).decode()
    rows = files.read(kept.split()[-1])
    assert rows[-1].vantage == "referee"


def test_a_mutant_s_run_ends_where_the_referee_says_so():
    """The last row names the invariant; the run's note says it in words."""
    (name,) = [name for name in RULES_BROKEN if name == "confirm-before-majority"]
    played = run("quorum_chaos", parameters={"seed": 1, "mutant": name})
    assert not played.rested
    error = next(row for row in played.rows if row.event == "error")
    assert played.note.startswith(error.kind)


def test_one_end_says_which_ways_are_mended_whichever_it_is(five):
    """A heal of one node leaves what is cut between others."""
    played = act(act(five, "cut", a="n1", b="n2"), "cut", a="n2", b="n3")
    healed = [
        (row.vantage, row.extra["to"])
        for row in act(played, "heal", b="n1").rows
        if row.event == "heal"
    ]
    assert len(healed) == 1
    assert "n1" in str(healed)


@pytest.mark.parametrize("seed", range(3))
def test_a_storm_is_judged_when_its_publishers_are_done(seed):
    """However many messages they have."""
    stormy = run("quorum_chaos", parameters={"seed": seed, "messages": 1_000})
    assert stormy.world.fault == ""


def test_a_storm_has_no_set_up():
    """Its first row is its first step."""
    assert run("quorum_chaos", parameters={"messages": 5}).start_seq == 0
