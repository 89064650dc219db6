"""Lesson 07: predictions, tables and checks; each answer comes from a run."""

import re
from dataclasses import replace

import pytest

from tests.lessons.asking import judged, solved, told
from workbench import presets, run
from workbench.broker.quorum_cluster import QuorumCluster
from workbench.exercises.progress import Progress
from workbench.exercises.quorum_desk import pipelined, sync_desk, sync_table
from workbench.exercises.quorum_real import (
    MEASURED,
    modelled,
    transfer_ns,
    with_processor,
)
from workbench.exercises.show_me import side_by_side
from workbench.lessons.lesson_07 import (
    check,
    confirm_table,
    confirm_us,
    crashed,
    deciders,
    disks,
    newest,
    predict,
    race,
    race_table,
    real_chart,
    real_table,
    senders_table,
    slow_at,
    slowed,
    soft_limit_run,
    soft_limit_table,
    tables,
    targets_table,
)
from workbench.lessons.table import words_of
from workbench.queues.raft import RULES_BROKEN
from workbench.scenarios.run import step_of
from workbench.trace.replicas import CONFIRMED, REPLICATED, Replicas
from workbench.views.scene import SceneMaker, Strip, parts_at, resolved


def said(question, key) -> str:
    """One of a question's choices, in its words."""
    return words_of("07")[question]["choices"][key]


@pytest.fixture(scope="module")
def five():
    """Five replicas, nothing sent."""
    return run("quorum", "rmq4.3", {"replicas": "5"})


@pytest.fixture(scope="module")
def unequal(five):
    """Five disks of five speeds."""
    return disks(five, {"n1": 3, "n2": 9, "n3": 1, "n4": 40, "n5": 7})


# -- predictions ----------------------------------------------------------------------------------


def test_a20_a_majority_of_disks_triggers_the_confirm(unequal):
    """With the disks named, and every other belief answered."""
    solution = solved(predict.trigger, unequal)
    assert solution.answer == said("trigger", "majority")
    assert "n3, n1 and n5 had told of it: 3 of 5" in solution.reason
    assert told(solution, said("trigger", "memory")).startswith("memory is enough")
    assert told(solution, said("trigger", "leader")).startswith("the leader alone decides")
    assert told(solution, said("trigger", "everybody")).startswith("every replica must have it")


@pytest.mark.parametrize(
    ("nodes", "kind", "answer"),
    [
        (["n1"], "slow-leader", "before"),
        (["n3"], "slow-follower", "before"),
        (["n2", "n4"], "slow-follower", "before"),
        (["n1", "n2"], "slow-leader", "before"),
        (["n1", "n2", "n3"], "slow-majority", "slow"),
        (["n3", "n4", "n5"], "slow-majority", "slow"),
    ],
)
def test_only_a_slow_majority_makes_a_confirm_slow(five, nodes, kind, answer):
    """The fastest majority decides, whether or not the leader is in it."""
    question = predict.slow_disks.question(five, nodes, 50)
    assert question.name == f"07/{kind}"
    names = " and ".join(filter(None, (", ".join(nodes[:-1]), nodes[-1])))
    assert question.text.startswith(f"Of 5 replicas n1 leads. On {names} an fsync")
    assert question.solve().answer == said("slow-disks", answer)


def test_the_session_sends_again(five):
    """Neither the publisher nor the new leader."""
    solution = solved(predict.who_resends, five, 40)
    assert solution.answer == said("who-resends", "session")
    assert "40 messages are confirmed in the end" in solution.reason
    assert told(solution, said("who-resends", "publisher")).startswith(
        "the publisher must send again"
    )


def test_what_is_sent_again_is_there_once(five):
    """Both copies are in the log; the queue knows the number."""
    solution = solved(predict.twice, five, 40)
    assert solution.answer == 40
    assert told(solution, 80).startswith("what is sent again is there twice")


@pytest.mark.parametrize(("in_flight", "fsync_us"), [(170, 5_000), (40, 4_000), (1, 5_000)])
def test_twice_the_fsync_time_half_the_rate(in_flight, fsync_us):
    """Whatever is in flight."""
    solution = solved(predict.slower_sync, in_flight, fsync_us, 2)
    assert solution.answer == "about half"
    assert told(solution, "the same").startswith("batches grow")


def test_a_channel_that_heeds_the_limit_stops_its_reader_only_when_that_has_no_credit():
    """Slow with one more than the limit; then what the reader may still send, 400 or 600."""
    table = soft_limit_table({}, channels={"32": 32, "256": 256})
    assert table.lines == [("32", "33", "400"), ("256", "257", "600")]


def test_170_credits_at_20_ms_are_8500_a_second():
    """The disk needs no time: credit divided by the round trip."""
    far = run("quorum", "rmq4.3", {"replicas": "1", "fsync_us": 0, "latency_us": 10_000})
    solution = solved(predict.credit_bound, far, 1_500)
    assert solution.answer == "about 8,500 a second"
    assert told(solution, "about 50 a second").startswith("one message for each round trip")
    less = replace(presets.get("rmq4.3"), publisher_credit=40)
    near = run("quorum", less, {"replicas": "1", "fsync_us": 0, "latency_us": 1_000})
    assert solved(predict.credit_bound, near, 600).answer == "about 20,000 a second"


def test_a7_pipelined_is_faster_than_batches_and_batches_than_one_at_a_time():
    """Rates and table from the same three runs."""
    results = race(n=100, fsync_us=5_000, send_us=100, virtual_us=200_000)
    assert solved(predict.best_way, results, 100).answer == "pipelined"
    rates = [one.rate for one in results.values()]
    assert rates == sorted(rates)
    assert rates[0] < rates[1] / 10
    assert race_table(results).lines[2][0] == "pipelined"
    assert int(race_table(results).lines[2][4]) <= 100


@pytest.mark.parametrize("limit", [32, 256, 7])
def test_b21_the_queue_is_slow_one_command_after_the_limit(limit):
    """The 33rd, the 257th; credit holds the publisher at 255, or a grant later."""
    played = soft_limit_run(limit, 600, confirmed=1)
    assert slow_at(played) == limit + 1
    solution = solved(predict.soft_limit, 32, 600)
    assert solution.answer == 33
    assert told(solution, 32).startswith("at the limit")


def test_credit_and_not_the_soft_limit_holds_a_1_0_publisher():
    """255 wait; with the old limit the queue never counts as slow."""
    solution = solved(predict.overshoot, 32, 600)
    assert solution.answer == 255
    assert told(solution, 33).startswith("the soft limit stops the publisher")
    runs = {
        "32": soft_limit_run(32, 600),
        "256": soft_limit_run(256, 600),
        "one before": soft_limit_run(256, 600, confirmed=1),
    }
    lines = soft_limit_table(runs).lines
    assert [line[1] for line in lines] == ["33", "never", "257"]
    assert [line[2] for line in lines][:2] == ["255", "255"]
    assert int(lines[2][2]) > 257


def test_a19_the_classic_link_is_as_fast_as_before():
    """And the table has both links."""
    fast = run("two_targets", "rmq4.3", {"fsync_us": 1_000}).then("publish", count=500)
    slow = run("two_targets", "rmq4.3", {"fsync_us": 20_000}).then("publish", count=500)
    solution = solved(predict.beside, fast, slow, "classic", "quorum")
    assert solution.answer == "as fast as without the slow disk"
    assert told(solution, "as slow as the quorum queue").startswith("a stall holds the connection")
    table = targets_table({"fast": fast, "slow": slow}, ["classic", "quorum"])
    assert table.lines[1][1] == table.lines[0][1]
    assert float(table.lines[1][4]) > 10


def test_another_rule_changes_what_the_lesson_says(monkeypatch, five, unequal):
    """With a leader that commits what a minority has, answer, table and time change."""
    before = confirm_us(unequal.then("publish", count=1))
    defaults = {**QuorumCluster.__init__.__kwdefaults__}
    defaults["rules"] = RULES_BROKEN["confirm-before-majority"]
    monkeypatch.setattr(QuorumCluster.__init__, "__kwdefaults__", defaults)
    weak = disks(
        run("quorum", "rmq4.3", {"replicas": "5"}),
        {"n1": 3, "n2": 9, "n3": 1, "n4": 40, "n5": 7},
    )
    assert confirm_us(weak.then("publish", count=1)) < before
    assert solved(predict.trigger, weak).answer != said("trigger", "majority")


# -- tables ---------------------------------------------------------------------------------------


def test_the_table_of_confirms_names_who_decided(five, unequal):
    """A majority of slow disks, a cut way, no majority at all."""
    dead = five
    for node in ("n3", "n4", "n5"):
        dead = dead.then("crash", node=node)
    runs = {
        "unequal": unequal.then("publish", count=1),
        "slow": slowed(five, ["n2", "n3", "n4"], 50).then("publish", count=1),
        "cut": five.then("cut", a="n1", b="n2").then("publish", count=1),
        "no majority": dead.then("publish", count=1),
    }
    lines = {line[0]: line[1:] for line in confirm_table(runs).lines}
    assert lines["unequal"] == ("7.4", "n5", "n3, n1, n5")
    assert lines["slow"] == ("50.4", "n2 or n3 or n4", "n1, n5, n2, n3, n4")
    assert lines["cut"][0] == "5.4"
    assert lines["no majority"][0] == "never"


@pytest.mark.parametrize(("lamp", "had"), [("written", 0), (REPLICATED, 40)])
def test_a_crash_of_the_leader_loses_and_doubles_nothing(five, lamp, had):
    """All are confirmed once; the publisher sends none again, whoever had them in a log."""
    fallen = crashed(five, 40, lamp)
    rows, story = fallen.rows, Replicas(fallen.rows)
    messages = story.messages.values()
    crash, elected = (next(row for row in rows if row.event == one) for one in ("crash", "elect"))
    new = elected.vantage.rpartition("@")[2]
    assert sum(new in one.logs.at(elected.seq + 1) for one in messages) == had
    assert sum(CONFIRMED in one.done for one in messages) == story.confirmed.now == 40
    assert not [row for row in rows if row.seq > crash.seq and row.kind == "transfer"]
    assert predict.twice.question(five, 40).solve().answer == 40


@pytest.mark.parametrize("fsync_us", [1_000, 5_000, 20_000])
def test_throughput_is_in_flight_by_one_to_two_fsyncs(fsync_us):
    """Little's law, and a message waits for its own fsync and at most one more."""
    results = {cap: pipelined(cap, fsync_us) for cap in (1, 8, 85, 170)}
    for cap, one in results.items():
        assert 0.9 * fsync_us <= one.mean_latency_us <= 2.1 * fsync_us
        assert one.rate <= cap * 1_000_000 / fsync_us
        assert one.rate >= 0.85 * cap * 1_000_000 / (2.1 * fsync_us)
        syncs = 1_000_000 / one.rate * cap / fsync_us
        assert syncs == pytest.approx(1 if cap == 1 else 2, rel=0.011)  # and the time to send
    assert sync_table(fsync_us, results).lines[0][3] == "1.00"


def test_the_slider_works_the_points_out_anew():
    """Another fsync time, another table; without fsync time there is nothing to divide by."""
    desk = sync_desk((1, 85), fsync_ms=5)
    slow = desk.results[85].rate
    desk.slider.value = 1
    assert desk.results[85].rate > 3 * slow
    assert repr(desk).startswith("fsync 1 ms")
    desk.slider.value = 0
    assert "no fsync time" in desk._table.value
    assert (desk.slider.min, desk.slider.max) == (0, 20)
    with pytest.raises(ValueError, match="legal: 0 to 20 ms"):
        sync_desk((1,), fsync_ms=21)


@pytest.mark.slow
def test_the_model_beside_measurement_has_its_order_and_is_not_slower():
    """Falls with the fsync as measured; residuals are printed as they are, with their sign."""
    model = [modelled(one.fsync_us) for one in MEASURED]
    measured = [one.rate for one in MEASURED]
    assert model == sorted(model, reverse=True)
    assert measured == sorted(measured, reverse=True)
    residuals = [line[3] for line in real_table().lines[::2]]
    for text, one, two in zip(residuals, model, measured, strict=True):
        assert text == f"{(one / two - 1) * 100:+,.0f} %"
    chart = real_chart((1_000,))
    assert {item.name for item in chart.figure.renderers} >= {"measured, RabbitMQ 4.3"}


@pytest.mark.slow
def test_the_processor_explains_the_fast_disk_and_every_classic_link():
    """One number, read off a sum, brings five of six rates near; two quorum links stay too fast."""
    for one in MEASURED:
        quorum, classic = with_processor(one.fsync_us)
        assert abs(classic / one.classic_rate - 1) < 0.15
        assert one.rate < quorum < modelled(one.fsync_us)
    fastest = MEASURED[0]
    assert abs(with_processor(fastest.fsync_us)[0] / fastest.rate - 1) < 0.1
    assert transfer_ns() * (fastest.rate + fastest.classic_rate) == pytest.approx(1e9, rel=1e-4)


@pytest.mark.slow
def test_the_articles_two_senders_are_played_and_their_residuals_told(capsys):
    """Model, article and residual for each queue and for both; a line told how far it was."""
    table = senders_table(100)
    told = capsys.readouterr().out
    assert "100 of 100 ms" in told
    assert [line[0] for line in table.lines] == ["classic", "quorum", "both"]
    for _, model, article, residual in table.lines:
        share = int(model.replace(",", "")) / float(article.replace(",", "")) - 1
        assert float(residual.removesuffix(" %")) == pytest.approx(share * 100, abs=0.1)
    both = tables(table, real_table())
    assert str(table) in str(both)
    assert both._repr_html_().count("<table") == 2


# -- checks ---------------------------------------------------------------------------------------


def test_who_comes_back_from_no_majority_has_passed(five):
    """Each step on the way there is told what is still missing."""
    assert judged(check.recovered, five).right is None
    played = five.then("publish", count=2)
    assert "a majority always reached" in judged(check.recovered, played).text
    for node in ("n1", "n2", "n3"):
        played = played.then("crash", node=node)
    assert "no message was waiting" in judged(check.recovered, played).text
    played = played.then("publish", count=5)
    assert "5 messages still wait" in judged(check.recovered, played).text
    played = played.then("restart", node="n1")
    log = Progress()
    assert check.recovered(played, log=log).right
    assert log.entries["07/recovered"].right
    assert judged(check.recovered, run("credit")).right is None


def test_messages_that_came_before_or_after_the_stall_do_not_count(five):
    """They waited for nobody."""
    played = five.then("publish", count=2)
    for node in ("n1", "n2", "n3"):
        played = played.then("crash", node=node)
    played = played.then("restart", node="n1").then("publish", count=3)
    assert judged(check.recovered, played).right is False


def test_the_smallest_cap_is_found_by_trying():
    """Both neighbours are told what is wrong with them."""
    given = {"rate": 6_000, "fsync_us": 4_000}
    right = [cap for cap in range(45, 60) if judged(check.smallest_cap, cap, **given).right]
    assert right == [48]  # the rate times two fsyncs
    less = judged(check.smallest_cap, right[0] - 1, **given)
    more = judged(check.smallest_cap, right[0] + 1, **given)
    assert "fewer than 6,000" in less.text
    assert "there is a smaller one" in more.text


@pytest.mark.parametrize("answer", [..., 0, -3, 2.5, "50", True, None, 6_001])
def test_what_is_no_cap_is_not_judged(answer):
    """It is told what would be one, and nothing is recorded."""
    log = Progress()
    verdict = check.smallest_cap(answer, rate=6_000, fsync_us=4_000, log=log)
    assert verdict.right is None
    assert log.entries == {}


def test_what_is_no_run_cannot_tell_which_node_decides():
    """A number instead of the run is answered with what is wanted."""
    with pytest.raises(TypeError, match="a stage or a run"):
        check.decides("n2", 3)


def test_the_node_that_decides_is_read_off_the_run(five):
    """The third disk of those that live."""
    mystery = disks(five, {"n1": 12, "n2": 14, "n3": 30, "n4": 8, "n5": 13})
    mystery = mystery.then("crash", node="n4").then("publish", count=2)
    story = Replicas(mystery.rows)
    assert deciders(story, newest(story)) == ("n2",)
    assert judged(check.decides, "n2", mystery).right
    for wrong in ("n1", "n3", "n4", "n5"):
        told = judged(check.decides, wrong, mystery)
        assert told.right is False
        # A wrong try tells of its own disk alone.
        assert set(re.findall(r"\bn\d", told.text)) == {wrong}
    assert "that never had the message" in judged(check.decides, "n4", mystery).text
    synced = next(row for row in reversed(mystery.rows)
                  if (row.vantage, row.event) == ("wal:n1", "fsync"))  # fmt: skip
    assert f"in step {step_of(synced)}." in judged(check.decides, "n1", mystery).text
    for answer in (..., "n9", 3, ["n2"]):
        assert judged(check.decides, answer, mystery).right is None


@pytest.mark.parametrize(
    ("name", "upto"),
    [("memory is enough", 2), ("the leader alone decides", 2), ("every replica must have it", 1)],
)
def test_a_belief_about_the_commit_is_shown_beside_the_rule_in_the_question_s_run(name, upto):
    """The stage stops where the two part, with both entries in words."""
    unequal = disks(run("quorum", "rmq4.3", {"replicas": "3"}), {"n1": 3, "n2": 9, "n3": 1})
    shown = predict.trigger.question(unequal).solve().shown
    view = side_by_side(name, shown)
    assert view is not None
    place = parts_at(shown, name)
    steps = list(resolved(SceneMaker(shown, rules=[name]).scene()))
    rule, later = (step["lines"]["log"]["rules"][name] for step in steps[place : place + 2])
    assert (rule["limit"], rule["limit"] != rule["at"]) == (upto, True)
    assert rule["differs"].startswith(f"Your rule: committed up to entry {upto}.")
    room = Strip(shown, rules=[name], theirs=True).states[place]["lines"]["log"]["rules"][name]
    assert room["differs"] == rule["differs"].replace("Your rule", "Their rule")
    number = step_of(shown.rows[place])
    assert later["differs"].startswith(f"Parted in step {number}. Your rule: up to entry {upto}.")
