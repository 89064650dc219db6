"""A run is a pure function of its tuple, and an act in its past makes a branch."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets
from workbench.exercises import measure
from workbench.scenarios import Action, ActionError, Branches, Run, run
from workbench.trace.hash import trace_hash
from workbench.trace.schema import Row

SPEC = presets.get("spec")


def alike(one: Row, other: Row) -> bool:
    """The same but for the name of the run."""
    return replace(one, run="") == replace(other, run="")


def transfers(played: Run) -> int:
    return sum(1 for row in played.rows if row.kind == "transfer" and row.event == "sent")


@pytest.fixture(scope="module")
def quiet() -> Run:
    """Ten messages, a receiver attached, nothing granted."""
    return run("credit")


# -- one run --------------------------------------------------------------------------------


def test_the_same_tuple_gives_the_same_rows(quiet: Run) -> None:
    """Scenario, preset, parameters, actions, seed: nothing else matters."""
    actions = [
        Action(after_seq=quiet.start_seq, name="grant", arguments={"link_credit": 5}),
        Action(after_seq=quiet.start_seq + 4, name="hold", arguments={"direction": "b2c"}),
        Action(after_seq=quiet.start_seq + 9, name="set_latency", arguments={"latency_us": 7}),
    ]
    one, two = (run("credit", actions=actions, seed=3) for _ in range(2))
    assert one.rows == two.rows
    assert one.name == two.name
    assert trace_hash(one.rows) == trace_hash(two.rows)
    assert trace_hash(one.rows) != trace_hash(quiet.rows)


def test_rows_are_numbered_without_gaps_and_time_never_decreases(quiet: Run) -> None:
    """The order of a trace is total."""
    played = quiet.act(quiet.start_seq, "grant", link_credit=7)
    assert [row.seq for row in played.rows] == list(range(len(played.rows)))
    times = [row.t_us for row in played.rows]
    assert times == sorted(times)


def test_the_lesson_starts_when_the_attach_has_come_back(quiet: Run) -> None:
    """The set-up is in the trace; start_seq is its last row."""
    row = quiet.rows[quiet.start_seq]
    assert (row.kind, row.event, row.from_peer) == ("attach", "received", "broker")
    assert quiet.start_seq == len(quiet.rows) - 1
    assert quiet.rested
    assert not quiet.note


def test_a_constant_of_the_preset_reaches_the_ledgers() -> None:
    """Nothing a lesson shows is written down: change the preset, and the rows change."""
    changed = replace(
        SPEC, initial_delivery_count=20, initial_next_outgoing_id=7, incoming_window=8, messages=4
    )
    played = run("credit", preset=changed)
    played = played.act(played.start_seq, "grant", link_credit=1)
    ledger = played.rows[-1].ledger
    assert ledger is not None
    assert ledger["delivery_count"] == 21
    assert ledger["next_incoming_id"] == 8
    assert ledger["remote_incoming_window"] == 8
    sent = next(row for row in played.rows if row.kind == "transfer")
    assert sent.ledger is not None
    assert sent.ledger["available"] == 3


def test_a_parameter_takes_the_place_of_the_presets_number() -> None:
    """What a person sets wins over the preset."""
    played = run("credit", replace(SPEC, initial_delivery_count=5), {"initial_delivery_count": 9})
    assert played.rows[-1].ledger is not None
    assert played.rows[-1].ledger["delivery_count"] == 9


def test_a_run_that_does_not_rest_stops_at_its_bound_and_says_so() -> None:
    """100,000 rows by default; the note tells how far it came."""
    played = run("credit", parameters={"messages": 500, "policy": "one-at-a-time"}, max_rows=200)
    assert 200 <= len(played.rows) < 210
    assert not played.rested
    assert played.note == f"stopped at {len(played.rows)} rows; the run has not come to rest"


def test_a_held_frame_lets_the_run_rest(quiet: Run) -> None:
    """Nothing is due but what a hand holds."""
    played = quiet.act(quiet.start_seq, "hold", direction="c2b")
    played = played.act(len(played.rows) - 1, "grant", link_credit=3)
    assert played.rested
    assert transfers(played) == 0
    assert len(played.world.wires["c1"].held()) == 1


# -- acts -----------------------------------------------------------------------------------


def test_an_act_happens_right_after_its_row_at_that_time(quiet: Run) -> None:
    """The action row follows when the clock event that made the row is complete."""
    played = quiet.act(quiet.start_seq, "grant", link_credit=3)
    row = next(row for row in played.rows if row.event == "deliver")
    cut = played.act(row.seq, "grant", link_credit=0)
    action = next(other for other in cut.rows if other.event == "action" and other.seq > row.seq)
    assert action.t_us == row.t_us
    assert action.seq == row.seq + 2  # the transfer belongs to the same clock event
    assert action.kind == "grant"
    assert action.extra == {"link_credit": 0}


def test_rows_up_to_the_fork_are_the_parents(quiet: Run) -> None:
    """A branch shares the past; its parent is not touched."""
    parent = quiet.act(quiet.start_seq, "grant", link_credit=5)
    before = list(parent.rows)
    fork = quiet.start_seq + 6
    branch = parent.act(fork, "grant", link_credit=0)
    assert parent.rows == before
    assert branch.parent is parent
    assert all(map(alike, branch.rows[: fork + 1], parent.rows[: fork + 1]))
    assert not all(map(alike, branch.rows, parent.rows))


def test_acting_in_the_past_drops_later_acts(quiet: Run) -> None:
    """Acts at or before the cursor are kept."""
    played = quiet.act(quiet.start_seq, "grant", link_credit=2)
    end = len(played.rows) - 1
    played = played.act(end, "grant", link_credit=4)
    assert transfers(played) == 6
    branch = played.act(end - 1, "publish", count=1)
    assert [action.name for action in branch.actions] == ["grant", "publish"]
    assert transfers(branch) == 2


def test_two_acts_at_one_row_happen_in_the_order_in_which_they_were_made(quiet: Run) -> None:
    """The second branch keeps the first act, which stands at the cursor."""
    played = quiet.act(quiet.start_seq, "grant", link_credit=2)
    played = played.act(quiet.start_seq, "grant", link_credit=5)
    assert [action.arguments["link_credit"] for action in played.actions] == [2, 5]
    kinds = [row.kind for row in played.rows[quiet.start_seq + 1 : quiet.start_seq + 5]]
    assert kinds == ["grant", "flow", "grant", "flow"]
    assert transfers(played) == 5


def test_before_the_first_row_only_the_wire_can_be_handled(quiet: Run) -> None:
    """Row -1 is before everything; there is no link yet."""
    with pytest.raises(ActionError, match="not attached yet"):
        quiet.act(-1, "grant", link_credit=1)
    held = quiet.act(-1, "hold", direction="c2b")
    assert held.rows[0].event == "action"
    assert held.rested
    assert held.start_seq == len(held.rows) - 1


@pytest.mark.parametrize("after_seq", [-2, 27, 10**9, "3", True, 1.0])
def test_acting_at_a_row_that_does_not_exist_is_refused(quiet: Run, after_seq: object) -> None:
    """The text names the rows there are."""
    with pytest.raises(ActionError, match="legal: -1 to 26"):
        quiet.act(after_seq, "grant", link_credit=1)  # type: ignore[arg-type]


def test_actions_given_to_run_must_meet_their_rows() -> None:
    """An action after a row that never comes is refused, not forgotten."""
    late = Action(after_seq=5000, name="publish", arguments={})
    with pytest.raises(ActionError, match="row 5000 does not exist; legal: -1 to 26"):
        run("credit", actions=[late])


def test_an_act_that_is_not_legal_leaves_the_run_as_it_was(quiet: Run) -> None:
    """One line, what would be legal, and nothing changed."""
    rows, actions = list(quiet.rows), quiet.actions
    refused = [
        ("grant", {"link_credit": 4294967296}, "link_credit is 4294967296; legal: 0 to 4294967295"),
        ("grant", {"link_credit": -1}, "link_credit is -1; legal: 0 to 4294967295 messages"),
        ("grant", {}, "grant needs link_credit"),
        ("publish", {"count": 0}, "count is 0; legal: 1 to 100000 messages"),
        ("acknowledge", {}, "nothing is unsettled: 0 messages have arrived.*legal now: grant"),
        ("release", {"direction": "c2b"}, "nothing is held; legal now: hold"),
        ("hold", {"frame_id": 99}, "frame 99 is not in flight; no frame is in flight now"),
        ("hold", {}, "hold needs either frame_id or direction"),
        ("hold", {"direction": "up"}, "direction is 'up'; legal: one of c2b, b2c"),
        ("hold", {"direction": "c2b", "connection": "c9"}, "no connection 'c9'; there are: c1"),
        ("set_latency", {"latency_us": -1}, r"latency_us is -1; legal: 0 to 60000000 µs \(60 s\)"),
        ("flow", {"count": 1}, "this client sets it, legal now: grant"),
    ]
    for name, arguments, message in refused:
        with pytest.raises(ActionError, match=message) as caught:
            quiet.act(quiet.start_seq, name, **arguments)
        assert "\n" not in str(caught.value)
    assert quiet.rows == rows
    assert quiet.actions == actions


def test_publishing_more_than_a_machine_can_hold_is_refused() -> None:
    """The text says how many messages of this size are legal."""
    played = run("credit", parameters={"message_bytes": 1_000_000})
    with pytest.raises(ActionError, match="so up to 100 messages of this size"):
        played.act(played.start_seq, "publish", count=101)


def test_acknowledging_more_than_has_arrived_is_refused(quiet: Run) -> None:
    """The text says how many there are."""
    played = quiet.act(quiet.start_seq, "grant", link_credit=2)
    end = len(played.rows) - 1
    with pytest.raises(ActionError, match="cannot acknowledge 3: 2 deliveries are unsettled"):
        played.act(end, "acknowledge", count=3)
    assert played.act(end, "acknowledge", count=2).rested


def test_a_later_frame_cannot_be_let_past_an_earlier_one(quiet: Run) -> None:
    """The refusal gives the reason: TCP keeps the order of one direction."""
    played = quiet.act(quiet.start_seq, "hold", direction="b2c")
    played = played.act(len(played.rows) - 1, "grant", link_credit=2)
    first, second = (f.frame_id for f in played.world.wires["c1"].held())
    end = len(played.rows) - 1
    with pytest.raises(ActionError, match=f"frame {second} cannot arrive before frame {first}"):
        played.act(end, "release", frame_id=second)
    freed = played.act(end, "release", frame_id=first)
    assert [f.frame_id for f in freed.world.wires["c1"].held()] == [second]


def test_what_is_legal_can_be_asked_for_every_row(quiet: Run) -> None:
    """A panel asks it: None where an act is possible, else why not."""
    played = quiet.act(quiet.start_seq, "grant", link_credit=1)
    before, after = played.legal(quiet.start_seq - 1), played.legal(len(played.rows) - 1)
    assert before["grant"] is not None
    assert after["grant"] is None
    assert after["acknowledge"] is None
    assert before["acknowledge"] is not None
    assert set(before) == {spec.name for spec in played.scenario.actions}


# -- branches -------------------------------------------------------------------------------


def test_branches_stay_and_can_be_gone_back_to(quiet: Run) -> None:
    """Every act makes a branch below the current one; undo goes to the parent."""
    tree = Branches(quiet)
    start = quiet.start_seq
    first = tree.act(start, "grant", link_credit=3)
    tree.act(len(first.rows) - 1, "acknowledge")
    assert tree.current == 2
    assert tree.undo() is first
    assert tree.undo() is quiet
    assert tree.undo() is quiet
    tree.act(start, "publish", count=2)
    assert tree.children(0) == (1, 3)
    assert tree.parent(3) == 0
    assert tree.path(2) == (0, 1, 2)
    assert tree.fork(2) == len(first.rows) - 1
    assert tree.select(1) is first
    assert tree.lines() == [
        "  0: the run as it began",
        f">   1: grant(link_credit=3) after row {start}",
        f"      2: acknowledge(outcome=accepted) after row {len(first.rows) - 1}",
        f"    3: publish(count=2) after row {start}",
    ]


def test_an_act_that_is_not_reached_yet_is_replaced(quiet: Run) -> None:
    """It waits for the end of its row's clock event, whose further rows are before it, too."""
    tree = Branches(quiet.act(quiet.start_seq, "grant", link_credit=3))
    row = next(row for row in tree.run.rows if row.event == "deliver")
    acted = row.seq + 2
    assert tree.act(row.seq, "stop").rows[acted].event == "action"
    for seq in (row.seq, acted - 1):
        tree.select(1)
        assert [act.name for act in tree.act(seq, "drain").actions] == ["grant", "drain"]
    tree.select(1)
    assert [act.name for act in tree.act(acted, "drain").actions] == ["grant", "stop", "drain"]
    tree.select(0)
    assert [act.name for act in tree.act(quiet.start_seq, "drain").actions] == ["drain"]


def test_a_refused_act_makes_no_branch(quiet: Run) -> None:
    """The tree is as it was."""
    tree = Branches(quiet)
    with pytest.raises(ActionError):
        tree.act(quiet.start_seq, "acknowledge")
    with pytest.raises(IndexError, match="no branch 1; there are 0 to 0"):
        tree.select(1)
    assert (tree.current, len(tree.runs)) == (0, 1)


# -- any acts at all ------------------------------------------------------------------------

ACTS = st.one_of(
    st.tuples(st.just("grant"), st.fixed_dictionaries({"link_credit": st.integers(0, 6)})),
    st.tuples(st.just("publish"), st.fixed_dictionaries({"count": st.integers(1, 3)})),
    st.tuples(st.just("acknowledge"), st.just({})),
    st.tuples(st.just("drain"), st.just({})),
    st.tuples(st.just("echo"), st.just({})),
    st.tuples(st.just("stop"), st.just({})),
    st.tuples(
        st.sampled_from(["hold", "release"]),
        st.fixed_dictionaries({"direction": st.sampled_from(["c2b", "b2c"])}),
    ),
    st.tuples(st.just("set_latency"), st.fixed_dictionaries({"latency_us": st.integers(0, 3000)})),
)


@settings(max_examples=60)
@given(st.lists(st.tuples(ACTS, st.integers(0, 100)), min_size=1, max_size=6))
def test_whatever_is_done_when_the_past_stays_and_the_run_rests(plan) -> None:  # type: ignore[no-untyped-def]
    """Acts at any rows: branches share rows up to the fork, every refusal leaves all as it was."""
    played = run("credit", parameters={"messages": 4})
    for (name, arguments), place in plan:
        span = len(played.rows) - played.start_seq
        fork = min(played.start_seq + place * span // 100, len(played.rows) - 1)
        try:
            branch = played.act(fork, name, **arguments)
        except ActionError:
            continue
        assert all(map(alike, branch.rows[: fork + 1], played.rows[: fork + 1]))
        assert branch.rested
        again = run("credit", parameters={"messages": 4}, actions=branch.actions)
        assert trace_hash(again.rows) == trace_hash(branch.rows)
        played = branch


def test_steps_are_counted_from_where_a_run_begins_though_another_was_cut_in_its_set_up():
    """Both have one name, which does not say how many rows a run may have."""
    whole = run("credit")
    step = measure.step(whole.rows[whole.start_seq])
    assert not run("credit", max_rows=5).rested
    assert measure.step(whole.rows[whole.start_seq]) == step == 1
