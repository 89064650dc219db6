"""The plain folds: their answers on runs whose policy is known, and on captures with a note."""

from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.made import made_rows
from tests.analysis.runs import all_rows, capture_rows, scenario_rows, settled_late
from workbench import folds
from workbench.capture.importer import import_capture
from workbench.folds.channels import LINKLESS
from workbench.folds.counters import Counters
from workbench.folds.stalls import with_ends
from workbench.folds.throughput import EMPTY
from workbench.folds.vantage import ends, percentile
from workbench.scenarios import run, schedules
from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.rules import rule_named
from workbench.sim.explorer import explore

CAPTURES = Path(__file__).resolve().parent.parent.parent / "data" / "captures"
SHORT, PARTS = 150, 4
"""A shorter trace is cut behind each row to see what lasts there, a longer one in so many parts."""


def capture(name):
    """The rows of a committed capture."""
    return import_capture(CAPTURES / f"{name}.pcapng").rows


def only(answer, **wanted):
    """The one row of an answer with these values."""
    (row,) = [row for row in answer if all(row[key] == value for key, value in wanted.items())]
    return row


def acted(name, *acts, **parameters):
    """A run in which each act is done when the one before has come to rest."""
    played = run(name, parameters=parameters)
    for act, arguments in acts:
        played = played.act(played.rows[-1].seq, act, **arguments)
    return played


# -- grants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("one-at-a-time", "one-at-a-time"),
        ("batch-then-wait", "batch"),
        ("top-up-at-half", "at-half"),
    ],
)
def test_the_rule_by_which_a_receiver_tops_up_is_inferred(policy, rule):
    """The policy is the run's; the fold sees the wire alone."""
    played = run("credit", parameters={"policy": policy, "n": 6, "messages": 60})
    link = only(folds.grants(played.rows), link_sender="broker")
    assert link["rule"] == rule
    assert link["messages"] == 60
    assert link["known"]


def test_a_receiver_that_waits_for_all_n_needs_more_credit_and_is_told_so():
    """While it waits for the next grant the sender stands at zero."""
    played = run("credit", parameters={"policy": "batch-then-wait", "n": 5, "messages": 50})
    link = only(folds.grants(played.rows), link_sender="broker")
    assert (link["granted"], link["left"]) == (5, 0)
    assert link["zero_us"] > 0
    assert link["credit_needed"] > 5
    assert link["advice"] == "raise"
    assert link["arithmetic"].endswith(f" µs), rounded up: {link['credit_needed']}")


def test_the_publisher_s_grants_of_rabbitmq_are_topped_up_at_half():
    """170 at first, and 170 again at 85: what the capture's note says."""
    link = only(folds.grants(capture("rmq43_a_publisher_grants")), link="snd-0-/queues/cap_a")
    assert (link["rule"], link["granted"], link["left"]) == ("at-half", 170, 85)


def test_a_flow_that_lowers_credit_is_no_grant():
    """A stop says link-credit 0."""
    played = acted("credit", ("grant", {"link_credit": 4}), ("stop", {}), messages=2)
    assert only(folds.grants(played.rows), link_sender="broker")["grants"] == 1


# -- windows --------------------------------------------------------------------------------------


def test_a_window_of_three_frames_closes_in_the_middle_of_a_message():
    """The note of the capture: 3 frames, a pause of 0.4 s, 8 more."""
    answer = folds.windows(capture("rmq43_e_large_message_split"))
    there = only(answer, sender="broker")
    assert (there["frames"], there["messages"], there["frames_per_message"]) == (11, 1, 11.0)
    assert (there["closed_times"], there["window_least"]) == (1, 0)
    assert 350_000 < there["closed_us"] < 450_000
    assert only(answer, sender="client")["frames"] == 13


def test_an_alarm_closes_the_window_of_the_publishing_direction_alone():
    """The consumer goes on; a session begun meanwhile is closed from the start."""
    answer = folds.windows(capture("rmq43_f_memory_alarm"))
    assert only(answer, connection="c1", sender="client")["closed_times"] == 1
    assert only(answer, connection="c1", sender="broker")["closed_times"] == 0
    begun = only(answer, connection="c2", sender="client")
    assert (begun["window_first"], begun["closed_times"]) == (0, 1)


@pytest.mark.parametrize("name", ["credit", "race", "asking", "handover", "two_queues"])
def test_the_window_is_what_the_ledgers_of_our_own_ends_say(name):
    """Another way to the same number: the sender's own counter in the trace."""
    rows = run(name).rows
    compared = 0
    for end in ends(rows):
        assert end.own
        for step in Counters(end).steps():
            ledger = step.row.ledger or {}
            window = None if step.session is None else step.session.left
            if window is not None and "remote_incoming_window" in ledger:
                assert window == ledger["remote_incoming_window"], step.row
                compared += 1
            if step.link is not None and "link_credit" in ledger and step.link.credit is not None:
                assert step.link.credit == ledger["link_credit"], step.row
                compared += 1
    assert compared > 0


# -- latency --------------------------------------------------------------------------------------


def test_a_drain_and_an_echo_are_timed_from_the_receiver_s_side():
    """Two latencies of the wire, whatever the queue holds."""
    played = acted("credit", ("grant", {"link_credit": 4}), ("echo", {}), ("drain", {}), messages=2)
    for measure in ("drain", "echo"):
        row = only(folds.latency(played.rows), measure=measure)
        assert (row["count"], row["unanswered"]) == (1, 0)
        assert row["p50_us"] == row["max_us"] == 2 * played.preset.wire_latency_us


def test_settlement_counts_what_was_never_settled():
    """Ten were settled in the capture, fifteen not."""
    row = only(folds.latency(capture("rmq43_b_consumer_credit")), measure="settlement")
    assert (row["count"], row["unanswered"]) == (10, 15)


@pytest.mark.parametrize("rows", settled_late().values(), ids=settled_late())
def test_what_is_settled_after_its_link_s_end_is_not(rows):
    """The messages went back when the link was detached; only what came later is settled."""
    found = [row for row in folds.latency(rows) if row["measure"] == "settlement"]
    assert sum(row["count"] for row in found) == 1
    assert sum(row["unanswered"] for row in found) == 4


@given(st.lists(st.integers(0, 99), min_size=1), st.sampled_from([10, 50, 90, 99]))
@settings(derandomize=True)
def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed(values, percent):
    """Nearest rank, from its definition."""
    found = percentile(values, percent)
    assert found in values
    assert sum(one <= found for one in values) * 100 >= percent * len(values)
    below = [one for one in values if one < found]
    assert len(below) * 100 < percent * len(values)


# -- throughput -----------------------------------------------------------------------------------


def test_every_message_is_in_one_window():
    """Windows share nothing and leave nothing out; a link alone is fair to itself."""
    played = run("credit", parameters={"policy": "one-at-a-time", "messages": 20})
    answer = folds.throughput(played.rows, window_us=3000)
    rows = [row for row in answer if row["link_sender"] == "broker"]
    assert sum(row["messages"] for row in rows) == 20
    assert [row["window_start_us"] % 3000 for row in rows] == [0] * len(rows)
    assert {row["jain"] for row in rows} <= {None, 1.0}


def test_two_links_that_get_the_same_are_fair_and_one_that_gets_all_is_not():
    """Jain's index is 1 for equal shares and 1/n where one of n gets everything."""
    played = acted("two_queues", ("grant", {"queue": "bulk", "link_credit": 3}))
    answer = [row for row in folds.throughput(played.rows, 10**9) if row["messages"]]
    assert {row["link"] for row in answer} == {"bulk"}
    assert answer[0]["jain"] == 0.5


@pytest.mark.parametrize("pause", [EMPTY, EMPTY + 1])
def test_the_windows_of_a_pause_are_listed_unless_they_are_too_many(pause):
    """A clock that is set anew must not make a row for every second of decades."""
    rows = [row for row in capture("rmq43_b_consumer_credit") if row.kind == "transfer"]
    first, second = rows[0], replace(rows[1], t_us=rows[0].t_us + 7 * (pause + 1))
    answer = folds.throughput([first, second], 7)
    assert [row["messages"] for row in answer if row["messages"]] == [1, 1]
    assert len(answer) == (2 + pause if pause == EMPTY else 2)


def test_a_link_of_which_only_an_end_is_told_was_never_held_and_a_frame_of_no_session_neither():
    """In a trace that somebody else has written."""
    rows = capture("rmq43_b_consumer_credit")
    closed = next(replace(row, kind="close") for row in rows if row.kind == "attach")
    assert [row["head_of_line_us"] for row in folds.throughput([closed])] == [0]
    moved = [replace(row, session=None) for row in rows if row.kind == "transfer"]
    assert len(moved) > 1
    assert folds.latency(moved) == []


def test_a_window_without_length_is_refused():
    """One line that says what is legal."""
    with pytest.raises(ValueError, match="a window of 0 µs has no length; legal: 1 or more"):
        folds.throughput([], 0)


def test_more_windows_than_memory_holds_are_refused(monkeypatch):
    """Before they are all made: a quiet trace of a day has billions of microseconds."""
    rows = capture("rmq43_b_consumer_credit")
    found = len(folds.throughput(rows, 1_000))
    monkeypatch.setattr(import_module("workbench.folds.throughput"), "MOST", found)
    assert len(folds.throughput(rows, 1_000)) == found
    with pytest.raises(ValueError, match=r"more than [0-9,]+ windows of 100 µs: take longer ones"):
        folds.throughput(rows, 100)


# -- violations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcapng")), ids=lambda path: path.stem)
def test_what_real_peers_broke_is_what_the_captures_notes_say(path):
    """Only the alarm captures have one: a transfer sent in spite of window 0."""
    found = [(row["what"], row["clause"]) for row in folds.violations(import_capture(path).rows)]
    if "memory_alarm" in path.stem:
        assert found == [("beyond-window", "2.5.6")]
    else:
        assert found == []


def test_a_sender_that_adds_credit_is_caught_and_one_that_works_by_the_rule_is_not():
    """The explorer's shortest bad schedule of one; any whole schedule of the other."""
    whats = {}
    for rule in ("spec", "add"):
        model = LinkModel(messages=6, grants=(2, 2), rule=rule_named(rule).rule)
        found = explore(model)
        sends = ["send-transfer"] * 3  # with what the schedule has led it to believe
        moves = (
            [*found.shortest, *sends]
            if found.shortest
            else found.schedule_to(len(found.ordered) - 1)
        )
        whats[rule] = {
            row["what"] for row in folds.violations(schedules.play_model(model, moves, rule).rows)
        }
    assert whats == {"spec": set(), "add": {"beyond-credit"}}


# -- compare --------------------------------------------------------------------------------------


def test_a_trace_differs_from_itself_by_nothing():
    """No difference, ratio 1, no effect."""
    rows = run("credit", parameters={"policy": "one-at-a-time", "messages": 20}).rows
    for row in folds.compare(rows, rows):
        assert row["difference"] in (0.0, None)
        assert row["ratio"] in (1.0, None)
        assert row["effect"] in (0.0, None)


def test_a_policy_that_waits_more_has_longer_gaps():
    """More grants at once, fewer waits: the mean gap shrinks, and so the effect is below zero."""
    few, many = (
        run("credit", parameters={"policy": "batch-then-wait", "n": n, "messages": 40}).rows
        for n in (1, 20)
    )
    gap = only(folds.compare(few, many), measure="gap_us")
    assert gap["right"] < gap["left"]
    assert gap["effect"] < 0


def places(answer, side):
    """Of each measure the row that a side names."""
    return {row["measure"]: (row[f"{side}_run"], row[f"{side}_seq"]) for row in answer}


@pytest.fixture(scope="module")
def waiting():
    """A publisher behind an alarm and a consumer that is late with its grants: one has it twice."""
    late = acted("credit", ("grant", {"link_credit": 3}), ("grant", {"link_credit": 2}), messages=9)
    shut = run("publishers", "rmq4.3")
    for act, arguments in (
        ("alarm", {}), ("publish", {"count": 3}), ("clear", {}), ("publish", {"count": 2}),
    ):  # fmt: skip
        shut = shut.act(shut.rows[-1].seq, act, **arguments)
    return list(late.rows), list(shut.rows)


def test_each_side_shows_a_measure_where_it_is_most(waiting):
    """As its definition says, worked out in another way: from ledgers and by looking around."""
    late, shut = waiting
    by_seq = {row.run: {each.seq: each for each in rows} for rows in waiting for row in rows[:1]}
    left, right = (places(folds.compare(late, shut), side) for side in ("left", "right"))
    assert left["duration_us"] == (late[-1].run, late[-1].seq)
    for place in (left["messages"], left["frames"]):
        first = next(row for row in late if row.kind == "transfer" and row.from_peer == "broker")
        assert place == (first.run, first.seq)

    zero, shut_at = by_seq[left["zero_us"][0]][left["zero_us"][1]], right["closed_us"]
    assert zero.ledger["link_credit"] == 0
    (link,) = [row for row in folds.grants(late) if row["zero_times"]]
    assert zero.seq > next(row.seq for row in late if (row.ledger or {}).get("link_credit"))
    assert link["zero_us"] > 0
    closed = by_seq[shut_at[0]][shut_at[1]]
    assert closed.ledger["remote_incoming_window"] == 0
    opened = next(
        row for row in shut[closed.seq :]
        if row.vantage == closed.vantage and (row.ledger or {}).get("remote_incoming_window")
    )  # fmt: skip
    longest = max(row["longest_closed_us"] for row in folds.windows(shut))
    assert opened.t_us - closed.t_us == longest

    gap = by_seq[left["gap_us"][0]][left["gap_us"][1]]
    sent = [row for row in late if (row.kind, row.event, row.from_peer)
            == ("transfer", "sent", "broker")]  # fmt: skip
    after = sent[sent.index(gap) + 1]
    assert after.t_us - gap.t_us == max(late.t_us - soon.t_us for soon, late in pairwise(sent))
    slow = by_seq[right["settlement_us"][0]][right["settlement_us"][1]]
    most = max(row["max_us"] or 0 for row in folds.latency(shut) if row["measure"] == "settlement")
    assert slow.kind == "transfer"
    assert any(row.kind == "disposition" and row.t_us == slow.t_us + most for row in shut)


def test_a_violation_is_shown_by_the_first_one():
    """The alarm's publisher sent in spite of window 0."""
    rows = capture("rmq43_f_memory_alarm")
    answer = folds.compare(rows, [])
    (broken,) = folds.violations(rows)
    assert places(answer, "left")["violations"] == (broken["run"], broken["seq"])


def test_a_side_that_has_nothing_to_show_names_no_row(waiting):
    """An empty trace, and a trace without violations."""
    answer = folds.compare(waiting[0], [])
    assert set(places(answer, "right").values()) == {(None, None)}
    assert places(answer, "left")["violations"] == (None, None)
    assert places(answer, "left")["closed_us"] == (None, None)


def test_of_rows_that_show_as_much_the_first_is_named(waiting):
    """By run and seq, whatever their order in the trace."""
    late, _ = waiting
    again = [replace(row, run=f"{name} {row.run}") for name in ("b", "a") for row in late]
    named = {name for name, _ in places(folds.compare(again, late), "left").values()}
    assert named == {None, f"a {late[0].run}"}


@pytest.mark.parametrize("name", [name for name in folds.QUESTIONS if name != "compare"])
def test_no_two_rows_of_an_answer_have_the_same_place_in_its_order(name):
    """Else they would stand in one order by the fold and in another by Spark."""
    question = folds.QUESTIONS[name]
    answer = question.answer([*all_rows(), *made_rows(seed=2, runs=8)])
    assert answer, "no trace of tests/analysis/runs.py has a row for it"
    assert len({tuple(row[one] for one in question.order) for row in answer}) == len(answer)


def test_what_nothing_has_ended_goes_on_with_the_trace_and_nothing_else_does():
    """Whenever a trace ends, a later row of each connection tells which stalls had lasted."""
    runs = {**scenario_rows()}
    for row in capture_rows():
        runs.setdefault(row.run, []).append(row)
        coarse = replace(row, t_us=row.t_us // 100_000 * 100_000)
        runs.setdefault(f"{row.run} by a coarse clock", []).append(coarse)
    lasting = ended = 0
    for whole in runs.values():
        for end in _cuts(len(whole)):
            rows = whole[:end]
            longer = {_began(stall): stall.end_us for stall in folds.stalls([*rows, *_later(rows)])}
            for stall, unended in with_ends(rows):
                assert (longer.get(_began(stall), 0) > stall.end_us) is unended
                lasting, ended = lasting + unended, ended + (not unended)
    assert lasting > 30
    assert ended > 300


def _cuts(rows):
    """Of a short trace all, of a long one some."""
    return (
        range(1, rows + 1)
        if rows < SHORT
        else [rows * part // PARTS for part in range(1, PARTS + 1)]
    )


def _began(stall):
    return (*stall[:7], stall.brake, stall.start_us)


def _later(rows):
    """A second after the last row: a remark, and a frame of each connection without links."""
    nothing = {"frame": None, "ledger": None, "session": None, "consumer": None, "link": None}
    latest = {row.connection: row for row in rows if row.protocol in LINKLESS and row.connection}
    note = {"event": "note", "protocol": "internal", "connection": None, "frame_id": None}
    more = [{**note, "kind": None}]
    more += [{"protocol": row.protocol, "event": row.event, "vantage": row.vantage,
              "connection": row.connection, "kind": "heartbeat", "frame_id": -1}
             for row in latest.values()]  # fmt: skip
    return [
        replace(rows[-1], seq=rows[-1].seq + place, t_us=rows[-1].t_us + 1_000_000,
                **nothing, **changed)
        for place, changed in enumerate(more, 1)
    ]  # fmt: skip
