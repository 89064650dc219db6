"""Formulas with live numbers: each from the rows, checked against what the end logged."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.rows import Hand, Pair, granted, last, link, race
from workbench.scenarios import run
from workbench.trace import explain, formulas


def test_race_gives_the_formula_with_live_numbers():
    """20 + 6 - 21 = 5 [2.6.7], and the sender's window by the same pattern [2.5.6]."""
    there = list(explain(race()))[4]
    assert there.formula == "20 + 6 − 21 = 5"
    assert there.formulas[0].symbolic == (
        "link-credit_snd := delivery-count_rcv + link-credit_rcv − delivery-count_snd"
    )
    assert [formula.numbers for formula in there.formulas] == [
        "20 + 6 − 21 = 5",
        "7 + 100 − 8 = 99",
    ]
    assert all(formula.agrees for formula in there.formulas)
    assert (there.clause, there.clause_title) == ("2.6.7", "Flow Control")
    change = there.changes[0]
    assert (change.vantage, change.field, change.before, change.after) == (
        "broker",
        "link_credit",
        2,
        5,
    )


def test_credit_below_zero_is_shown_and_floored():
    """Credit may be cut while transfers fly: 20 + 0 - 21 = -1, and the sender just stops."""
    found = granted(link(21, 2), link(21, 0), delivery_count=20, link_credit=0)
    assert found.formula == "20 + 0 − 21 = −1 → 0"
    assert found.formulas[0].agrees is True


def test_wrap_around_is_written_as_congruence():
    """Serial numbers wrap: the sum is equal modulo 2^32, not equal."""
    found = granted(link(1, 0), link(1, 3), delivery_count=4294967294, link_credit=6)
    assert found.formula == "4294967294 + 6 − 1 ≡ 3 (mod 2³²)"
    assert found.formulas[0].agrees is True
    below = formulas.link_credit(4294967295, 0, 1, 0)
    assert below.numbers == "4294967295 + 0 − 1 ≡ −2 (mod 2³²) → 0"
    count = formulas.transfer(4294967295, 3, 0, 2)
    assert count is not None
    assert count.numbers == "4294967295 + 1 ≡ 0 (mod 2³²); 3 − 1 = 2"


def test_a_ledger_that_does_not_follow_the_rule_is_told():
    """An end that adds instead of setting logs 8 where the rule gives 5; the text says so."""
    found = granted(link(21, 2), link(21, 8), delivery_count=20, link_credit=6)
    assert found.formula == "20 + 6 − 21 = 5, but its counter says 8"
    assert found.formulas[0].agrees is False


def test_a_sender_with_another_rule_is_marked_and_both_numbers_are_told():
    """The step is worth a stop, and its sentence has what 2.6.7 gives and what was taken."""
    found = granted(link(21, 2), link(21, 8), delivery_count=20, link_credit=6)
    assert found.reasons[0] == "not by the rule"
    assert found.sentence.startswith(
        "The flow reaches the sender. By 2.6.7 it may now send 5 messages; this one takes 8, so"
        " it follows another rule."
    )
    timid = granted(link(21, 2), link(21, 1), delivery_count=20, link_credit=6)
    assert timid.reasons[0] == "not by the rule"
    assert timid.formula == "20 + 6 − 21 = 5, but its counter says 1"
    right = granted(link(21, 2), link(21, 5), delivery_count=20, link_credit=6)
    assert "not by the rule" not in right.reasons


@pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])
def test_a_flow_that_rabbitmq_puts_aside_is_not_called_another_rule(preset):
    """Its counters stay as they are: at a closed window, and while its queue is still asked."""
    large = {"messages": 1, "message_bytes": 4500, "max_frame_size": 512, "client_window": 3}
    begun = run("windows", preset, large)
    stopped = begun.act(begun.start_seq, "grant", link_credit=1)
    queue = run("credit", preset, {"messages": 20})
    asked = queue.act(queue.start_seq, "grant", link_credit=2)
    for played, credit in (
        (stopped.then("grant", link_credit=5), 5),
        (asked.act(queue.start_seq, "grant", link_credit=6), 6),
    ):
        told = list(explain(played.rows))
        (aside,) = [one for one in told if "RabbitMQ puts a flow aside" in one.sentence]
        assert f"By 2.6.7 it may now send {credit} messages, but its counters" in aside.sentence
        assert aside.formula.endswith(f"= {credit}")
        assert not [one for one in told if "not by the rule" in one.reasons]


@pytest.mark.parametrize("preset", ["rmq4.0", "rmq4.3"])
def test_a_flow_that_was_put_aside_is_told_when_it_is_taken_up(preset):
    """Its row has the counters that follow, so that the next message is one by the rule."""
    queue = run("credit", preset, {"messages": 20})
    asked = queue.act(queue.start_seq, "grant", link_credit=2)
    rows = asked.act(queue.start_seq, "grant", link_credit=6).rows
    told = list(explain(rows))
    (at,) = [n for n, one in enumerate(told) if "takes up the flow" in one.sentence]
    assert [one[2:] for one in told[at].changes] == [("link_credit", 0, 4)]
    (after, *_) = [told[row.seq] for row in rows[at:] if row.kind == "transfer"]
    assert after.formula.endswith("; 4 − 1 = 3")
    assert not [one for one in told if "without credit, against 2.6.7" in one.sentence]


def test_a_wrong_rule_does_not_hide_what_else_the_flow_says():
    """A drain is still called a drain, and a wish for an answer is still told."""
    found = granted(
        link(21, 2), link(21, 8), delivery_count=20, link_credit=6, drain=True, echo=True
    )
    assert found.sentence.startswith("The drain request reaches the sender. By 2.6.7")
    assert "The receiver wants an answer." in found.sentence
    assert found.reasons[:2] == ("not by the rule", "drain")


def test_a_wrap_is_shown_where_a_plain_subtraction_goes_wrong():
    """The naive sender takes nearly all there is; the rule gives 5, modulo 2^32."""
    found = granted(link(0, 1), link(0, 4294967295), delivery_count=4294967295, link_credit=6)
    assert found.formula == ("4294967295 + 6 − 0 ≡ 5 (mod 2³²), but its counter says 4294967295")
    assert found.reasons[0] == "not by the rule"


def test_a_message_that_is_not_counted_is_said_to_be_not_counted():
    """A receiver that ends the link over an overrun leaves its count where it was."""
    hand = Hand()
    hand.sent("client", "flow", link(2, 1), handle=0, delivery_count=2, link_credit=1)
    granted_for = hand.sent("broker", "transfer", link(3, 1), handle=0, delivery_id=2)
    hand.received(granted_for, link(3, 0))
    extra = hand.sent("broker", "transfer", link(4, 0), handle=0, delivery_id=3)
    hand.received(extra, link(3, 0))
    told = last(hand)
    assert told.sentence.startswith(
        "Message 3 reaches the receiver, which does not count it: delivery-count 3, link-credit 0."
    )
    assert told.formula == "3 + 1 = 4, but its counter says 3; 0 − 1 = −1 → 0"


def test_the_very_first_message_may_be_one_that_is_not_counted():
    """The attach was seen, so no message is under way: the transfer begins one."""
    hand = Hand()
    hand.sent("broker", "attach", link(0, 0), handle=0, role="sender", initial_delivery_count=0)
    extra = hand.sent("broker", "transfer", link(1, 0), handle=0, delivery_id=0)
    hand.received(extra, link(0, 0))
    assert last(hand).sentence.startswith("Message 0 reaches the receiver, which counts it")
    hand = Hand()
    hand.sent("broker", "attach", link(0, 0), handle=0, role="sender", initial_delivery_count=0)
    hand.sent("client", "flow", link(0, 0), handle=0, delivery_count=0, link_credit=0)
    extra = hand.sent("broker", "transfer", link(1, 0), handle=0, delivery_id=0)
    hand.received(extra, link(0, 0))
    assert last(hand).sentence.startswith("Message 0 reaches the receiver, which does not count it")


def test_a_flow_without_delivery_count_starts_from_the_initial_one():
    """The receiver had not seen the sender's attach: its initial delivery-count counts [2.6.7]."""
    hand = Hand()
    hand.sent("broker", "attach", link(10, 0), handle=0, role="sender", initial_delivery_count=10)
    hand.sent("broker", "transfer", link(11, 4), handle=0, delivery_id=0)
    hand.received(hand.sent("client", "flow", None, handle=0, link_credit=5), link(11, 4))
    assert last(hand).formula == "10 + 5 − 11 = 4"
    assert last(hand).formulas[0].symbolic == (
        "link-credit_snd := initial-delivery-count + link-credit_rcv − delivery-count_snd"
    )


def test_formula_of_a_drain_answer_keeps_the_limit():
    """The sender's count takes the unused credit [2.6.7], and the receiver's shrinks alike."""
    hand = Hand()
    start = link(4, 3, drain=False)
    hand.sent("broker", "flow", start, handle=0, delivery_count=4, link_credit=3)
    hand.received(0, start)
    answer = hand.sent(
        "broker", "flow", link(7, 0), handle=0, delivery_count=7, link_credit=0, drain=True
    )
    told = last(hand)
    assert told.formula == "4 + 3 = 7; 3 → 0"
    assert told.reasons[0] == "drain"
    assert told.sentence == (
        "The sender gives back its unused credit of 3: its delivery-count moves on to 7 as if it"
        " had sent that many, and its credit is 0. The receiver does not know yet."
    )
    hand.received(answer, link(7, 0))
    told = last(hand)
    assert told.formula == "3 − (7 − 4) = 0"
    assert told.formulas[0].agrees is True
    assert told.sentence == (
        "The answer to the drain reaches the receiver: its credit goes from 3 to 0. Whatever was"
        " sent has arrived before it. Now both ends have the same numbers."
    )


def test_there_is_no_more_credit_than_a_frame_can_carry():
    """As the endpoints have it; a counter that goes on above that is told as it is."""
    formula = formulas.link_credit(10, 2**32 - 1, 0, 2**32 - 1)
    assert formula.numbers == "10 + 4294967295 − 0 = 4294967305 → 4294967295"
    assert formula.agrees is True
    formula = formulas.session_window(10, 2**32 - 1, 0, 2**32 + 9)
    assert formula.numbers == "10 + 4294967295 − 0 = 4294967305"
    assert formula.agrees is True


def test_a_transfer_moves_count_credit_and_window():
    """One credit per message, one place in the window per frame [2.6.7, 2.5.6]."""
    hand = Hand()
    hand.sent("broker", "flow", link(0, 5, next_outgoing_id=7, remote_incoming_window=9), handle=0)
    after = link(1, 4, next_outgoing_id=8, remote_incoming_window=8)
    hand.sent("broker", "transfer", after, handle=0, delivery_id=0)
    told = last(hand)
    assert [formula.numbers for formula in told.formulas] == [
        "0 + 1 = 1; 5 − 1 = 4",
        "7 + 1 = 8; 9 − 1 = 8",
    ]


def test_a_continuation_uses_no_credit():
    """Frames of one message: only the first moves delivery-count [2.6.14]."""
    hand = Hand()
    hand.sent("broker", "flow", link(0, 5, next_outgoing_id=7, remote_incoming_window=9), handle=0)
    ids = {"next_outgoing_id": 8, "remote_incoming_window": 8}
    hand.sent("broker", "transfer", link(1, 4, **ids), handle=0, delivery_id=0, more=True)
    assert last(hand).sentence.startswith("The sender begins message 0, which takes several frames")
    ids = {"next_outgoing_id": 9, "remote_incoming_window": 7}
    # A peer may repeat the delivery-id: the frame still goes on with the same message.
    hand.sent("broker", "transfer", link(1, 4, **ids), handle=0, delivery_id=0, more=True)
    assert [formula.numbers for formula in last(hand).formulas] == ["8 + 1 = 9; 8 − 1 = 7"]
    assert "sends the next frame of the message" in last(hand).sentence
    hand.sent("broker", "transfer", link(1, 4), handle=0)
    assert "sends the last frame of the message" in last(hand).sentence
    assert last(hand).clause == "2.6.14"
    hand.sent("broker", "transfer", link(2, 3), handle=0, delivery_id=1)
    assert last(hand).sentence.startswith("The sender sends message 1 and uses one credit: 3 left.")


def test_observed_flow_uses_the_entitlement_at_the_capture_point():
    """A capture knows the sender's count at the place where it was taken."""
    hand = Hand()
    hand.observed("broker", "transfer", link(21, 2), handle=0, delivery_id=0)
    hand.observed("client", "flow", link(21, 5), handle=0, delivery_count=20, link_credit=6)
    told = last(hand)
    assert told.formula == "20 + 6 − 21 = 5"
    assert told.sentence == (
        "The receiver grants 6: it may receive 6 more messages. The sender has sent some of it"
        " already: at this point it may send 5 more messages."
    )
    assert told.reasons[0] == "grant arrives"


def test_nothing_is_computed_from_what_is_not_known():
    """A capture begun in the middle: no number, no formula."""
    hand = Hand()
    row = hand.observed("client", "flow", None, handle=0, link_credit=6)
    row.ledger, row.unknown = {}, ("delivery_count", "link_credit")
    told = last(hand)
    assert told.formulas == ()
    assert told.sentence.endswith("How much of it is left at this point cannot be known.")


UINT = st.integers(0, 2**32 - 1)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(UINT, UINT, st.integers(0, 2**31 - 1))
def test_link_credit_does_not_depend_on_where_counting_began(start, credit, sent):
    """The result is the same for any initial delivery-count, and never below 0 [2.6.7]."""
    modulus = 2**32
    own = (start + sent) % modulus
    found = formulas.link_credit(start, credit, own, max(0, credit - sent))
    assert found.agrees is True
    wrong = formulas.link_credit(start, credit, own, max(0, credit - sent) + 1)
    assert wrong.agrees is False
    limit = formulas.delivery_limit(start, credit)
    assert limit is not None
    assert limit.numbers.startswith(f"{start} + {credit}")


def test_counts_too_far_apart_are_told_not_computed():
    """RFC 1982: the order of two numbers 2^31 apart is undefined."""
    found = formulas.link_credit(0, 6, 2**31, 3)
    assert "undefined" in found.numbers
    assert found.agrees is None


MOVES = st.one_of(
    st.tuples(st.just("grant"), st.integers(0, 9), st.booleans()),
    st.sampled_from([("send",), ("drained",), ("deliver", "client"), ("deliver", "broker")]),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from([0, 10, 2147483640, 4294967290]), st.lists(MOVES, max_size=40))
def test_two_ends_that_keep_the_rules_always_agree_with_the_formulas(initial, moves):
    """Whatever the schedule and the initial count, each formula gives what the end logged."""
    pair = Pair(initial)
    for name, *arguments in moves:
        getattr(pair, name)(*arguments)
    while pair.wires["client"] or pair.wires["broker"]:
        pair.deliver("client")
        pair.deliver("broker")
    rows = pair.hand.rows
    told = list(explain(rows))
    for row, explanation in zip(rows, told, strict=True):
        assert all(formula.agrees is not False for formula in explanation.formulas), row
        assert explanation.sentence.endswith(".")
    # The wire is empty, so counters that differed agree again; each difference ends once.
    reasons = [reason for explanation in told for reason in explanation.reasons]
    assert reasons.count("counters disagree") == reasons.count("counters agree again")
