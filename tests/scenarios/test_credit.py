"""Lesson 01's run: what credit does, over any acts, and the four top-up rules."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import presets, serial
from workbench.scenarios import ActionError, ParameterError, Run, run
from workbench.trace.schema import Row

SPEC = presets.get("spec")
STARTS = [0, 10, 2147483640, 4294967290]


def end(played: Run) -> int:
    return len(played.rows) - 1


def counters(row: Row) -> tuple[int, int]:
    assert row.ledger is not None
    return row.ledger["delivery_count"], row.ledger["link_credit"]


def link_rows(played: Run, vantage: str) -> list[Row]:
    """Rows with the counters of the consumer's link as one end has them."""
    return [
        row
        for row in played.rows
        if row.vantage == vantage
        and row.connection == "c1"
        and row.link is not None
        and row.ledger is not None
        and "delivery_count" in row.ledger
    ]


def last(played: Run, vantage: str) -> Row:
    return link_rows(played, vantage)[-1]


def sent(played: Run, kind: str = "transfer") -> int:
    return sum(1 for row in played.rows if row.kind == kind and row.event == "sent")


# -- what the lesson predicts ---------------------------------------------------------------


@pytest.mark.parametrize("credit", [0, 1, 3, 10, 11, 4294967295])
def test_as_many_transfers_follow_as_credit_and_messages_allow(credit: int) -> None:
    """Ten messages: three for credit 3, ten for any credit of ten or more [2.6.7]."""
    played = run("credit")
    played = played.act(played.start_seq, "grant", link_credit=credit)
    assert sent(played) == min(credit, 10)
    assert counters(last(played, "client:receiver"))[1] == credit - min(credit, 10)


def test_credit_is_absolute() -> None:
    """50 granted twice is 50."""
    played = run("credit", parameters={"messages": 0})
    for _ in range(2):
        played = played.act(end(played), "grant", link_credit=50)
    assert counters(last(played, "broker")) == (0, 50)


def test_acknowledging_moves_nothing() -> None:
    """A disposition changes neither credit nor windows."""
    played = run("credit")
    played = played.act(played.start_seq, "grant", link_credit=2)
    acked = played.act(end(played), "acknowledge")
    assert sent(acked) == 2
    assert counters(last(acked, "broker")) == counters(last(played, "broker"))


def test_the_article_s_race_comes_out_as_five() -> None:
    """dc 20, credit 3; a flow of 6 crosses one transfer: 20 + 6 - 21 = 5 [2.6.7]."""
    played = run("credit", parameters={"initial_delivery_count": 20, "messages": 0})
    played = played.act(played.start_seq, "grant", link_credit=3)
    played = played.act(end(played), "hold", direction="b2c")
    played = played.act(end(played), "publish", count=1)
    assert counters(last(played, "broker")) == (21, 2)
    played = played.act(end(played), "grant", link_credit=6)
    assert counters(last(played, "broker")) == (21, 5)
    assert counters(last(played, "client:receiver")) == (20, 6)
    played = played.act(end(played), "release", direction="b2c")
    assert counters(last(played, "client:receiver")) == (21, 5)


def test_stopping_means_credit_zero_and_an_echo() -> None:
    """After the echo's answer nothing more comes [2.6.10]."""
    played = run("credit", parameters={"messages": 50})
    played = played.act(played.start_seq, "grant", link_credit=50)
    first = next(row for row in played.rows if row.kind == "transfer" and row.event == "received")
    stopped = played.act(first.seq, "stop")
    assert 0 < sent(stopped) < 50
    final = stopped.rows[-1]
    assert (final.kind, final.event, final.vantage) == ("flow", "received", "client:receiver")


def test_a_policy_set_by_hand_grants_at_once_and_goes_on() -> None:
    """One at a time from now on: all messages come, a flow for each and one more."""
    played = run("credit")
    played = played.act(played.start_seq, "set_policy", policy="one-at-a-time")
    assert sent(played) == 10
    assert sent(played, "flow") == 11


def test_a_visible_publisher_publishes_over_its_own_connection() -> None:
    """c2 sends a transfer, the queue takes it, c1 gets it; the broker confirms on c2."""
    played = run("credit", parameters={"messages": 0, "publisher": "visible"})
    began = played.world_at(played.start_seq)
    assert began.peers["consumer"].attached
    assert began.peers["publisher"].attached
    assert not played.world_at(played.start_seq - 1).peers["publisher"].attached
    played = played.act(played.start_seq, "grant", link_credit=5)
    played = played.act(end(played), "publish", count=2)
    ways = [(r.connection, r.vantage) for r in played.rows if r.kind == "transfer"]
    assert ways.count(("c2", "client:publisher")) == 2
    assert ways.count(("c2", "broker")) == 2
    assert ways.count(("c1", "client:receiver")) == 2
    assert played.world.peers["publisher"].outcomes == {"accepted": 2}


def test_processing_time_delays_the_next_grant() -> None:
    """A slow receiver is a slow sender: the mechanism, not a script."""
    times = []
    for processing_us in (0, 5000):
        parameters = {"policy": "one-at-a-time", "processing_us": processing_us}
        times.append(run("credit", parameters=parameters).rows[-1].t_us)
    assert times[1] - times[0] == 10 * 5000


def test_received_messages_keep_their_order_and_content() -> None:
    """What is ready in the queue arrives, in order."""
    played = run("credit", parameters={"policy": "top-up-at-half", "messages": 40})
    bodies = played.world.peers["consumer"].payloads
    numbers = [int(body.split(b"message ")[1].split(b" ")[0]) for body in bodies]
    assert numbers == list(range(40))


def test_only_the_hand_drives_proton() -> None:
    """A policy for Proton is refused with what is legal."""
    with pytest.raises(ParameterError, match="legal: policy manual"):
        run("credit", parameters={"client": "proton", "policy": "one-at-a-time"})


# -- invariants -----------------------------------------------------------------------------

ACTS = st.one_of(
    st.tuples(st.just("grant"), st.fixed_dictionaries({"link_credit": st.integers(0, 8)})),
    st.tuples(st.just("publish"), st.fixed_dictionaries({"count": st.integers(1, 4)})),
    st.tuples(st.sampled_from(["acknowledge", "drain", "echo", "stop"]), st.just({})),
    st.tuples(
        st.sampled_from(["hold", "release"]),
        st.fixed_dictionaries({"direction": st.sampled_from(["c2b", "b2c"])}),
    ),
    st.tuples(st.just("set_latency"), st.fixed_dictionaries({"latency_us": st.integers(0, 3000)})),
)
PLANS = st.lists(st.tuples(ACTS, st.integers(0, 100)), min_size=1, max_size=7)


def played_plan(plan, initial: int = 0, outgoing: int = 0) -> Run:  # type: ignore[no-untyped-def]
    """Act at random rows, each later than the act before; what is refused is left out."""
    preset = replace(SPEC, initial_next_outgoing_id=outgoing)
    played = run("credit", preset, {"messages": 5, "initial_delivery_count": initial})
    at = played.start_seq
    for (name, arguments), place in plan:
        at += (len(played.rows) - 1 - at) * place // 100
        try:
            played = played.act(at, name, **arguments)
        except ActionError:
            continue
    for direction in ("c2b", "b2c"):
        if played.world.wires["c1"].gate_closed(direction):
            played = played.act(end(played), "release", direction=direction)
    return played


@settings(max_examples=80)
@given(PLANS, st.sampled_from(STARTS))
def test_the_senders_limit_is_the_last_one_it_heard(plan, initial: int) -> None:  # type: ignore[no-untyped-def]
    """Invariant 1: delivery-count + link-credit stays, unless floored at 0 after a cut."""
    limit = initial
    for row in link_rows(played_plan(plan, initial), "broker"):
        count, credit = counters(row)
        assert row.frame is not None or row.event == "note"
        if row.kind == "flow" and row.event == "received":
            assert row.frame is not None
            limit = serial.add(row.frame["delivery_count"], row.frame["link_credit"])
        if credit:
            assert serial.add(count, credit) == limit
        else:
            assert serial.diff(count, limit) >= 0


@settings(max_examples=80)
@given(PLANS, st.sampled_from(STARTS))
def test_both_ends_agree_once_the_wire_is_empty(plan, initial: int) -> None:  # type: ignore[no-untyped-def]
    """Invariant 2: what is under way is never negative, and nothing at the end."""
    played = played_plan(plan, initial)
    seen: dict[str, int] = {}
    for row in played.rows:
        if row.link is not None and row.ledger is not None and "delivery_count" in row.ledger:
            seen[row.vantage] = row.ledger["delivery_count"]
        if len(seen) == 2:
            assert serial.diff(seen["broker"], seen["client:receiver"]) >= 0
    assert played.world.wires["c1"].in_flight() == []
    assert counters(last(played, "broker")) == counters(last(played, "client:receiver"))


@settings(max_examples=40)
@given(PLANS)
def test_repeating_the_last_flow_changes_nothing(plan) -> None:  # type: ignore[no-untyped-def]
    """Invariant 3: two equal flows are one."""
    played = played_plan(plan)
    count, credit = counters(last(played, "client:receiver"))
    # Credit beyond what is ready would already have been used, so the queue is empty or credit 0.
    again = played.act(end(played), "grant", link_credit=credit)
    assert sent(again) == sent(played)
    assert counters(last(again, "broker")) == (count, credit)
    assert (
        again.world.broker.overview()["queue:q.ready"]
        == played.world.broker.overview()["queue:q.ready"]
    )


@settings(max_examples=25)
@given(PLANS)
def test_nothing_depends_on_where_the_numbers_begin(plan) -> None:  # type: ignore[no-untyped-def]
    """Invariant 4: initial-delivery-count and next-outgoing-id only shift what is counted."""
    shapes = []
    for start in STARTS:
        shape = []
        for row in played_plan(plan, start, start).rows:
            ledger = dict(row.ledger or {})
            broker_sends = row.vantage == "broker"
            mine = "next_outgoing_id" if broker_sends else "next_incoming_id"
            for name in ("delivery_count", mine):
                if name in ledger:
                    ledger[name] = serial.diff(ledger[name], start)
            shape.append((row.t_us, row.vantage, row.event, row.kind, ledger, row.brake))
        shapes.append(shape)
    assert shapes[0] == shapes[1] == shapes[2] == shapes[3]


@settings(max_examples=60)
@given(PLANS, st.sampled_from(STARTS))
def test_a_drain_answer_leaves_no_credit_and_the_limit_unchanged(plan, initial: int) -> None:  # type: ignore[no-untyped-def]
    """Invariant 14: the count moves by exactly the credit given back."""
    plan = [*plan, (("drain", {}), 100)]
    before: tuple[int, int] | None = None
    for row in link_rows(played_plan(plan, initial), "broker"):
        count, credit = counters(row)
        assert row.ledger is not None
        answer = row.kind == "flow" and row.event == "sent" and row.ledger["drain"]
        if answer and before is not None:
            assert credit == 0
            assert count == serial.add(*before)
        before = (count, credit)


# -- Proton ---------------------------------------------------------------------------------


def test_without_proton_the_client_says_how_to_install_it(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """One clear text, and it names the compiler."""
    monkeypatch.setitem(sys.modules, "proton", None)
    with pytest.raises(ImportError, match=r"needs a C compiler.*pip install"):
        run("credit", parameters={"client": "proton"})
