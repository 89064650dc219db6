"""The race on the real broker: a schedule of the model, move for move, with the same counters."""

import pytest

from tests.scenarios.ledgers import standing
from workbench import serial
from workbench.capture.importer import import_capture
from workbench.folds.violations import violations
from workbench.scenarios import ActionError, ParameterError, run
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
)
from workbench.scenarios.race import ACT_OF_MOVE, FlowPlan, plans_of, race
from workbench.scenarios.sandbox import guarded
from workbench.scenarios.schedules import play
from workbench.trace.explain import OTHER_RULE, explain
from workbench.trace.pcapng_out import export
from workbench.trace.transcript import transcript

ARTICLE = {"grants": (6,), "first_credit": 3, "initial_delivery_count": 20}


def counters(played):
    """(delivery-count, link-credit) of sender and receiver at the end, and the frames in flight."""
    return standing(played.rows)


@pytest.mark.parametrize(
    "order",
    [
        (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES),
        (SEND_FLOW, SEND_TRANSFER, TRANSFER_ARRIVES, FLOW_ARRIVES),
        (SEND_TRANSFER, SEND_FLOW, FLOW_ARRIVES, TRANSFER_ARRIVES),
        (SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, TRANSFER_ARRIVES),
    ],
)
def test_the_article_s_race_ends_with_five_and_five_whoever_lands_first(order):
    """delivery-count 20, credit 3; flow(20, 6) crosses a transfer: 20 + 6 - 21 = 5 at both ends."""
    sender, receiver, transfers, flows = counters(play(order, **ARTICLE))
    assert sender == receiver == (21, 5)
    assert (transfers, flows) == (0, ())


@pytest.mark.parametrize(("rule", "credit"), [("set", 6), ("add", 8)])
def test_in_the_article_s_race_a_wrong_rule_leaves_the_sender_with_too_much(rule, credit):
    """The receiver counts 5, a sender that sets or adds has more."""
    order = (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES)
    sender, receiver, _, _ = counters(play(order, rule=rule, **ARTICLE))
    assert sender == (21, credit)
    assert receiver == (21, 5)


def test_in_flight_is_the_difference_of_the_delivery_counts():
    """delivery-count of the sender less that of the receiver is what is on the wire."""
    moves = [SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER, SEND_TRANSFER, TRANSFER_ARRIVES, SEND_TRANSFER]
    played = play(moves, grants=(5,), initial_delivery_count=2**32 - 2)
    (sent, _), (arrived, _), transfers, _ = counters(played)
    assert serial.diff(sent, arrived) == transfers == 2


def test_a_frame_that_was_let_go_is_not_let_go_again():
    """The refusal says when it arrives, on the stage's clock; a later frame can follow it."""
    slow = run("race", parameters={"latency_us": 1000, "grants": "1,2"})
    slow = slow.act(slow.rows[-1].seq, "send_flow").act(slow.rows[-1].seq + 2, "flow_arrives")
    released = [row.seq for row in slow.rows if row.event == "release"][-1]
    arrives = f"{(slow.rows[-1].t_us - slow.start_us) / 1000:.1f}"
    assert slow.rows[-1].event == "received"
    with pytest.raises(ActionError, match=f"let go already; it arrives at {arrives} ms"):
        slow.act(released, "flow_arrives")
    second = slow.act(released, "send_flow")
    both = second.act(released + 2, "flow_arrives")
    assert counters(both).sender == (0, 2)


def test_a_move_that_is_not_possible_says_why_and_what_is():
    """At credit 0 nothing can be sent; what never was sent cannot arrive."""
    link = run("race")
    for act, why in (
        ("send_transfer", "link-credit 0"),
        ("transfer_arrives", "no transfer is in flight"),
        ("flow_arrives", "no flow is in flight"),
        ("send_other", "no other link"),
    ):
        with pytest.raises(
            ActionError, match=f"{why}.*legal now: send next flow .send_flow"
        ) as refused:
            link.act(link.rows[-1].seq, act)
        assert str(refused.value).count("legal now") == 1
    done = play([SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER], messages=1, grants=(2,))
    for act, why in (("send_flow", "it has sent 1 flow"), ("send_transfer", "no message left")):
        with pytest.raises(ActionError, match=why):
            done.act(done.rows[-1].seq, act)


def test_a_learner_s_rule_plays_and_is_no_part_of_the_run_s_identity():
    """Code cannot be put into a name or a code to share."""
    mine = play(
        [SEND_FLOW, FLOW_ARRIVES],
        grants=(3,),
        rule="yours",
        rule_function=lambda dc, credit, own, left: credit * 2,
    )
    assert counters(mine)[0] == (0, 6)
    other = play([], grants=(3,), rule="yours", rule_function=lambda dc, credit, own, left: 0)
    again = play([], grants=(3,), rule="yours", rule_function=lambda dc, credit, own, left: 1)
    assert other.name == again.name
    assert other.code.keys() == {"rule"}
    assert not run("race").code


def raising(dc, credit, own, left):
    raise ValueError("no idea")


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (raising, "raises ValueError: no idea"),
        (lambda dc, credit: credit, "raises TypeError"),
        (lambda dc, credit, own, left: -5, "gives link-credit -5; legal: 0 to 4294967295"),
        (lambda dc, credit, own, left: 2**32, "gives link-credit 4294967296; legal"),
        (lambda dc, credit, own, left: True, "gives True, which is not a whole number"),
        (lambda dc, credit, own, left: None, "gives None, which is not a whole number"),
        (lambda dc, credit, own, left: "7", "gives '7', which is not a whole number"),
        (guarded(lambda state, frame: state.credits), "on_flow uses state.credits"),
    ],
)
def test_a_learner_s_mistake_ends_the_run_with_its_words(rule, told):
    """What is no credit never gets into a ledger; the note says why, and so does any later act."""
    played = play([SEND_FLOW, FLOW_ARRIVES], grants=(3, 6), rule="yours", rule_function=rule)
    assert told in played.note
    assert not played.rested
    assert counters(played).sender == (0, 0)
    last = played.rows[-1].seq
    assert all("the run has ended" in why for why in played.legal(last).values())
    with pytest.raises(ActionError, match="the run has ended"):
        played.act(last, "send_transfer")
    with pytest.raises(ActionError, match="the run has ended"):
        play(
            [SEND_FLOW, FLOW_ARRIVES, SEND_TRANSFER],
            grants=(3,),
            rule="yours",
            rule_function=rule,
        )
    # Before the mistake there is nothing wrong.
    assert played.act(played.start_seq, "send_flow").rested


def test_yours_without_a_function_is_refused():
    """The text says how to give one."""
    with pytest.raises(ParameterError, match="code="):
        run("race", parameters={"rule": "yours"})


def test_flows_are_read_from_text_and_written_back():
    """`3, 6 drain, 3 echo`."""
    plans = (FlowPlan(3), FlowPlan(6, drain=True), FlowPlan(3, echo=True))
    assert plans_of("3, 6 drain, 3 echo") == plans
    assert plans_of(",".join(map(str, plans))) == plans
    assert plans_of("") == ()
    for bad in ("3,", "-1", "x", "4294967296", "3 4", "3 drian", ",".join(["1"] * 101)):
        with pytest.raises(ParameterError, match="grants has"):
            plans_of(bad)


def test_an_overrun_is_taken_or_ends_the_link_as_the_receiver_chooses():
    """Beyond its credit a receiver may take a message or detach with transfer-limit-exceeded."""
    schedule = [
        SEND_FLOW,
        SEND_FLOW,
        FLOW_ARRIVES,
        FLOW_ARRIVES,
        SEND_TRANSFER,
        TRANSFER_ARRIVES,
        SEND_TRANSFER,
        TRANSFER_ARRIVES,
    ]
    model = {"grants": (1, 1), "rule": "add"}
    taken = play(schedule, **model)
    assert counters(taken).receiver == (2, 0)
    beyond = list(explain(taken.rows))[-1]
    assert beyond.formula == "1 + 1 = 2; 0 − 1 = −1 → 0"
    assert "By its own numbers it had granted nothing more" in beyond.sentence
    refused = play(schedule, overrun="detach", **model)
    detaches = [row for row in refused.rows if row.kind == "detach" and row.event == "sent"]
    assert "transfer-limit-exceeded" in str(detaches[0].frame)
    assert detaches[0].vantage == "client:receiver"
    assert counters(refused).receiver == (1, 0)
    told = {explained.seq: explained.sentence for explained in explain(refused.rows)}
    assert "does not count it" in told[detaches[0].seq - 1]


def test_every_move_is_an_act_and_every_act_a_move():
    """The names differ only in their dashes."""
    acts = [spec.name for spec in race.actions]
    assert acts == list(ACT_OF_MOVE.values())
    assert [act.replace("_", "-") for act in acts] == list(ACT_OF_MOVE)


@pytest.mark.parametrize("rule", ["set", "add"])
def test_a_wrong_rule_s_row_tells_what_the_rule_would_have_given(rule):
    """The words stay true: the formula with its numbers, and what this sender made of it."""
    order = (SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES)
    played = play(order, rule=rule, **ARTICLE)
    credit = counters(played).sender[1]
    told = list(explain(played.rows))[-1]
    assert told.formula == f"20 + 6 − 21 = 5, but its counter says {credit}"
    assert told.reasons[0] == OTHER_RULE
    assert f"By 2.6.7 it may now send 5 messages; this one takes {credit}" in told.sentence
    line = list(transcript(played.rows))[-1]
    assert line.endswith(f"sender's credit 2 → {credit}  [{told.formula}]")


def test_a_capture_says_of_a_message_that_there_was_no_credit_for_it(tmp_path):
    """It used to spend a credit that was not there, in the words of any other message."""
    schedule = [SEND_FLOW, SEND_FLOW, FLOW_ARRIVES, FLOW_ARRIVES, SEND_TRANSFER, SEND_TRANSFER]
    path = tmp_path / "overrun.pcapng"
    export(play(schedule, grants=(1, 1), rule="add").rows, path)
    rows = import_capture(path).rows
    messages = [
        told for row, told in zip(rows, explain(rows), strict=True) if row.kind == "transfer"
    ]
    assert ["uses one credit" in told.sentence for told in messages] == [True, False]
    assert "the flows seen so far give no credit for it" in messages[1].sentence
    assert messages[1].seq == violations(rows)[0]["seq"]
