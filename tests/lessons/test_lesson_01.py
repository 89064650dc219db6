"""What lesson 01 asks: answers are read off the run, and known mistakes get words of their own."""

import dataclasses
from pathlib import Path

import pytest

from tests.lessons.asking import judged, solved, told
from workbench import presets
from workbench.capture.importer import import_capture
from workbench.exercises import measure
from workbench.exercises.compare import RULES, compare_rules
from workbench.exercises.progress import Progress
from workbench.lessons.lesson_01 import arrival, check, opening, predict, real_receiver
from workbench.scenarios import Branches, run
from workbench.scenarios.declare import ParameterError
from workbench.views.trace_charts import credit_chart

CAPTURE = Path(__file__).resolve().parent.parent.parent / (
    "data/captures/rmq43_b_consumer_credit.pcapng"
)


@pytest.fixture(scope="module")
def queue():
    """Ten messages and a receiver that has said nothing."""
    return run("credit")


@pytest.fixture(scope="module")
def granted(queue):
    """Three of them fetched."""
    return queue.act(queue.start_seq, "grant", link_credit=3)


@pytest.fixture(scope="module")
def busy():
    """A grant of 40 on a queue of 60."""
    queue = run("credit", parameters={"messages": 60})
    return queue.act(queue.start_seq, "grant", link_credit=40)


@pytest.fixture(scope="module")
def rules():
    """The four rules, on few messages."""
    return compare_rules(messages=100, latency_us=1000, n=20)


def test_nothing_comes_before_the_first_flow(queue):
    """0 transfers until the first flow [2.6.7], and the run is at rest."""
    solution = solved(predict.before_any_flow, queue)
    assert solution.answer == 0
    assert "The run is at rest" in solution.reason
    assert told(solution, 10).startswith("the queue pushes: You said: 10. In this run: 0.")
    assert told(solution, 1).startswith("one comes on trial")


@pytest.mark.parametrize(("link_credit", "come"), [(3, 3), (10, 10), (25, 10), (0, 0)])
def test_one_credit_is_one_message(queue, link_credit, come):
    """As many transfers as credit, or as messages there are."""
    assert solved(predict.after_grant, queue, link_credit).answer == come


def test_a_flow_is_not_a_switch(queue):
    """Who expects the whole queue hears how many stay in it."""
    solution = solved(predict.after_grant, queue, 3)
    assert told(solution, 10).startswith("a flow opens the tap")
    assert "7 messages stay in the queue" in solution.reason
    assert told(solution, 1).startswith("one flow, one message")


def test_the_same_grant_twice_is_not_a_sum():
    """flow(50) and flow(50) with no transfer between leave 50, not 100 [2.6.7]."""
    empty = run("credit", parameters={"messages": 0})
    solution = solved(predict.granted_twice, empty, 50, publish=120)
    assert solution.answer == 50
    assert "link-credit was 50, then 50" in solution.reason
    assert "70 wait" in solution.reason
    assert told(solution, 100).startswith("adds: You said: 100. In this run: 50.")
    assert told(solution, 120).startswith("everything published")


def test_what_is_in_flight_cannot_be_called_back(busy):
    """After flow(0) there come those on the wire and those sent before the flow arrived."""
    second = arrival(busy, 2)
    solution = solved(predict.after_stop, busy, second)
    flying = measure.in_flight(busy.rows, "transfer", second)
    # Both directions take equally long, so as many are sent meanwhile as were on the wire.
    assert solution.answer == pytest.approx(2 * flying, abs=1)
    assert 0 < flying < solution.answer
    assert told(solution, 0).startswith("takes back")
    assert told(solution, flying).startswith("only what is in flight")
    assert told(solution, 38).startswith("a grant stands")


def test_an_acknowledgement_grants_nothing(granted):
    """After credit is used up, dispositions bring no transfer."""
    solution = solved(predict.after_acknowledging, granted)
    assert solution.answer == 0
    assert "was 0 before and 0 after" in solution.reason
    assert told(solution, 3).startswith("acknowledging grants")


def test_the_rules_rank_as_the_article_says(rules):
    """One at a time < N then wait < N topped up at half, at a latency above zero."""
    assert tuple(rules.rates) == RULES
    rates = list(rules.rates.values())
    assert rates == sorted(rates)
    assert rates[0] * 5 < rates[1]
    assert rates[1] * 1.2 < rates[2]
    assert [one.messages for one in rules.results] == [100] * 3
    held = [one.held for one in rules.results]
    assert held == sorted(held, reverse=True)
    solution = solved(predict.fastest_rule, rules)
    assert solution.answer == RULES[-1]
    assert told(solution, RULES[1]).startswith("waiting costs nothing")


def test_the_table_of_the_rules_is_text_too(rules):
    """Rule, messages, flows, time, rate and held time, for the page and for the terminal."""
    lines = str(rules).splitlines()
    assert lines[0].split()[:3] == ["rule", "messages", "flows"]
    assert [line.split()[0] for line in lines[1:]] == list(RULES)
    assert rules._repr_html_().count("<tr>") == 4


def test_proton_adds_in_its_library_and_sets_on_the_wire():
    """receiver.flow(10) twice sends link-credit 10 and then 20."""
    proton = real_receiver({"messages": 30})
    if proton is None:
        pytest.skip("python-qpid-proton is not installed")
    solution = solved(predict.proton_again, proton, 10)
    assert solution.answer == 20
    assert "link-credit 10 and 20" in solution.reason
    assert told(solution, 10).startswith("sets")


def test_without_proton_one_line_is_said(monkeypatch, capsys):
    """The lesson goes on, and the line says what would be needed."""
    from workbench.peers import proton_peer

    def missing():
        raise proton_peer.ProtonMissingError("python-qpid-proton is not installed.")

    monkeypatch.setattr(proton_peer, "_proton", missing)
    assert real_receiver() is None
    assert capsys.readouterr().out == "Skipped: python-qpid-proton is not installed.\n"


def test_rabbitmq_sets_credit_as_well():
    """Two equal flows in the capture are followed by as many transfers as one of them says."""
    rows = import_capture(CAPTURE).rows
    solution = solved(predict.rabbit_flows, rows)
    assert solution.answer == 4
    assert told(solution, 8).startswith("adds")


def test_every_question_has_a_name_of_its_own(queue, granted, busy, rules):
    """The log keeps answers by name."""
    rows = import_capture(CAPTURE).rows
    empty = run("credit", parameters={"messages": 0})
    asked = [
        predict.before_any_flow.question(queue),
        predict.after_grant.question(queue, 3),
        predict.granted_twice.question(empty, 50, publish=120),
        predict.after_stop.question(busy, arrival(busy, 2)),
        predict.fastest_rule.question(rules),
        predict.after_acknowledging.question(granted),
        predict.proton_again.question(queue, 10),
        predict.rabbit_flows.question(rows),
    ]
    names = [question.name for question in asked]
    assert len(set(names)) == len(names)
    assert all(name.startswith("01/") for name in names)


# -- checks -------------------------------------------------------------------------------------


def test_late_arrivals_are_recognised(busy):
    """A run in which messages arrive although the receiver's credit is 0."""
    log = Progress()
    stopped = busy.act(arrival(busy, 2), "grant", link_credit=0)
    verdict = check.late_arrivals(stopped, log=log)
    assert verdict.right
    assert "arrive after it" in verdict.text
    assert log.entries["01/late-arrivals"].right


def test_stopping_too_late_is_told(granted):
    """Nothing was in flight any more: the check says so, and what to try."""
    stopped = granted.then("grant", link_credit=0)
    verdict = judged(check.late_arrivals, stopped)
    assert verdict.right is False
    assert "nothing arrives after it" in verdict.text


def test_what_a_later_grant_brings_is_not_late(queue):
    """Nothing was in flight at the stop; the messages that came were granted afterwards."""
    fetched = queue.act(queue.start_seq, "grant", link_credit=5)
    again = fetched.then("grant", link_credit=0).then("grant", link_credit=5)
    verdict = judged(check.late_arrivals, again)
    assert verdict.right is False
    assert "nothing arrives before step" in verdict.text
    assert "no messages were on the wire then" in verdict.text


def test_a_stop_that_did_it_counts_whatever_comes_after_it(busy):
    """A second stop, or a grant at the end, takes nothing away from the first."""
    stopped = busy.act(arrival(busy, 2), "grant", link_credit=0)
    found = judged(check.late_arrivals, stopped)
    assert found.right
    twice = stopped.then("grant", link_credit=0)
    assert judged(check.late_arrivals, twice).text == found.text
    assert judged(check.late_arrivals, twice.then("grant", link_credit=5)).text == found.text


def test_a_run_as_it_began_is_not_judged(queue):
    """Who runs all cells at once is told what to do, not that they were wrong."""
    log = Progress()
    assert check.late_arrivals(queue, log=log).right is None
    assert check.never_more_than(queue, 3, log=log).right is None
    assert check.smallest_n(..., latency_us=1000, messages=100, log=log).right is None
    assert log.entries == {}


def test_a_stage_is_judged_by_the_branch_that_it_shows(busy):
    """What the learner sees is what is checked."""
    from workbench.views.stage_widget import StageWidget

    branches = Branches(run("credit", parameters={"messages": 60}))
    branches.act(branches.run.start_seq, "grant", link_credit=40)
    branches.act(arrival(branches.run, 2), "grant", link_credit=0)
    desk = StageWidget(branches)
    assert judged(check.late_arrivals, desk).right
    desk.branch = 1
    assert judged(check.late_arrivals, desk).right is False


def test_what_a_stage_was_given_with_is_not_judged_as_the_learners(granted):
    """The same run alone is judged as it is; an act on the stage makes it the learner's."""
    from workbench.views.stage_widget import StageWidget

    log, branches = Progress(), Branches(granted)
    untouched = check.late_arrivals(StageWidget(branches), log=log)
    assert (untouched.right, untouched.text) == (None, "Act first: this run is as it began.")
    assert check.late_arrivals(desk=StageWidget(branches), log=log).right is None
    assert log.entries == {}
    assert check.late_arrivals(granted, log=log).right is False
    branches.act(granted.last, "grant", link_credit=0)
    assert check.late_arrivals(StageWidget(branches), log=log).right is False


def test_fetching_all_in_small_grants_is_recognised(queue):
    """Four flows of at most 3 fetch ten messages."""
    fetched = queue
    for _ in range(4):
        fetched = fetched.then("grant", link_credit=3)
    verdict = judged(check.never_more_than, fetched, 3)
    assert verdict.right, verdict
    assert "All 10 messages arrived with 4 flows" in verdict.text


def test_granting_too_much_or_too_little_is_told(queue, granted):
    """With the row at which it was too much, or with how many still wait."""
    greedy = queue.act(queue.start_seq, "grant", link_credit=10)
    assert "link-credit 10" in judged(check.never_more_than, greedy, 3).text
    left = judged(check.never_more_than, granted, 3)
    assert left.right is False
    assert "3 messages arrived and 7 messages wait" in left.text


def test_the_smallest_n_is_found_by_running_the_model():
    """Too small starves, too large has a smaller neighbour, and one number is right."""
    given = {"latency_us": 1000, "messages": 150, "log": Progress()}
    right = [n for n in range(1, 80) if check.smallest_n(n, **given).right]
    assert len(right) == 1
    assert "with" in check.smallest_n(right[0], **given).text
    assert "runs out of credit" in check.smallest_n(right[0] - 1, **given).text
    assert "there is a smaller one" in check.smallest_n(right[0] + 5, **given).text


def test_a_time_that_is_told_is_that_of_the_stage():
    """It counts from the end of the set-up, as the picture of the same run does."""
    given = {"latency_us": 1000, "messages": 150}
    told = judged(check.smallest_n, 4, **given).text
    played = run("credit", parameters={"policy": "top-up-at-half", "n": 4, **given})
    first = measure.starvations(played.rows, "link-credit")[0]
    since_us = first.t_us - played.rows[played.start_seq].t_us
    assert f"first at {since_us / 1000:.1f} ms" in told


def test_charts_of_equal_length_begin_where_the_set_up_ends(rules):
    """What is cut is a run still, so its chart knows from when it counts."""
    for played in rules.runs.values():
        cut = opening(played, duration_us=20_000)
        assert cut.start_us == played.start_us > 0
        assert cut.rows[-1].t_us <= played.start_us + 20_000
        lasts = min(played.rows[-1].t_us - played.start_us, 20_000)
        assert cut.rows[-1].t_us - played.start_us > 0.9 * lasts
        lines = [one for one in credit_chart(cut).figure.renderers if one.name == "sender's view"]
        assert [line.data_source.data["x"][0] for line in lines] == [0]


@pytest.mark.parametrize("answer", [0, -3, "ten", 2.5, 2**40])
def test_an_answer_that_is_no_n_is_told_and_not_judged(answer):
    """The scenario's own words about what is legal."""
    verdict = judged(check.smallest_n, answer, latency_us=1000, messages=10)
    assert verdict.right is None
    assert "legal: 1 to 4294967295" in verdict.text


def test_what_is_no_run_is_a_mistake_in_the_cell():
    """A number instead of the desk is answered with what is wanted."""
    with pytest.raises(TypeError, match="a stage or a run"):
        check.late_arrivals(3)


def test_comparing_refuses_absurd_parameters():
    """As everywhere: the text says what would be legal."""
    with pytest.raises(ParameterError, match="legal: 0 to"):
        compare_rules(messages=10, latency_us=-1)


# -- measuring ----------------------------------------------------------------------------------


def test_a_message_of_several_frames_counts_once():
    """Credit is per message, so counting is too [2.6.7]."""
    small = dataclasses.replace(presets.get("spec"), client_max_frame_size=512)
    queue = run("credit", small, {"messages": 4, "message_bytes": 2000})
    fetched = queue.act(queue.start_seq, "grant", link_credit=2)
    assert len(measure.frames(fetched.rows, "transfer")) > 2
    assert measure.messages(fetched.rows) == 2


def test_a_row_that_does_not_exist_is_told(granted):
    """Placing a cursor at the fourth of three messages is refused with how many there are."""
    with pytest.raises(ValueError, match="there are 3 rows"):
        arrival(granted, 4)


def test_nothing_moved_has_no_rate(queue):
    """No division by zero, no infinite figure."""
    assert measure.rate(queue.rows) == 0.0
    assert measure.duration_us(queue.rows) == 0
