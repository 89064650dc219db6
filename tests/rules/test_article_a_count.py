"""Rows A35 to A41 of the feature table: what delivery-count is for."""

import itertools

import pytest

from tests.rules.runs import STARTS, begun, ledger, then, transfers
from workbench import serial
from workbench.scenarios.link_model import (
    FLOW_ARRIVES,
    SEND_FLOW,
    SEND_TRANSFER,
    TRANSFER_ARRIVES,
)
from workbench.scenarios.rules import RULES
from workbench.scenarios.schedules import play
from workbench.serial import link_credit_snd

ORDERS = [
    order
    for order in itertools.permutations((SEND_FLOW, SEND_TRANSFER, FLOW_ARRIVES, TRANSFER_ARRIVES))
    if order.index(SEND_FLOW) < order.index(FLOW_ARRIVES)
    and order.index(SEND_TRANSFER) < order.index(TRANSFER_ARRIVES)
]
CROSSING = [
    order
    for order in ORDERS
    if max(order.index(SEND_FLOW), order.index(SEND_TRANSFER))
    < min(order.index(FLOW_ARRIVES), order.index(TRANSFER_ARRIVES))
]


def raced(order, rule="spec", start=20):
    """The article's race: credit 3, a flow with 6, a message, in that order."""
    return play(order, grants=(6,), first_credit=3, initial_delivery_count=start, rule=rule)


@pytest.mark.parametrize("start", [20, *STARTS])
@pytest.mark.parametrize("order", CROSSING)
def test_a35_without_delivery_count_a_crossing_flow_and_transfer_leave_the_ends_one_apart(
    order, start
):
    """A35: a sender that sets has 6 where the receiver counts 5."""
    naive = raced(order, "set", start)
    assert ledger(naive, "broker")["link_credit"] == 6
    assert ledger(naive, "client:receiver")["link_credit"] == 5


@pytest.mark.parametrize("crossing", [1, 2, 3])
@pytest.mark.parametrize("granted", [6, 3, 11])
def test_a35_each_transfer_that_crosses_the_flow_sets_the_ends_one_further_apart(crossing, granted):
    """A35: k of them, k apart without delivery-count, and equal with it."""
    moves = [
        SEND_FLOW,
        *[SEND_TRANSFER] * crossing,
        FLOW_ARRIVES,
        *[TRANSFER_ARRIVES] * crossing,
    ]
    race = {"grants": (granted,), "first_credit": 3, "initial_delivery_count": 20}
    ends = {
        rule: [
            ledger(play(moves, rule=rule, **race), vantage)["link_credit"]
            for vantage in ("broker", "client:receiver")
        ]
        for rule in ("set", "spec")
    }
    left = granted - crossing
    assert ends == {"set": [granted, left], "spec": [left, left]}


@pytest.mark.parametrize("start", STARTS)
def test_a36_delivery_count_is_increased_by_one_with_each_message(start):
    """A36: the article says decreased; 2.6.7 and every ledger say increased, modulo 2^32."""
    played = then(begun(messages=12, initial_delivery_count=start), "grant", link_credit=12)
    for event in ("sent", "received"):
        counts = [row.ledger["delivery_count"] for row in transfers(played, event)]
        assert counts == [(start + number) % 2**32 for number in range(1, 13)]


@pytest.mark.parametrize("order", ORDERS)
def test_a37_the_formula_gives_both_ends_the_same_credit_in_every_order(order):
    """A37: dc(rcv) + credit(rcv) - dc(snd): 20 + 6 - 21 = 5; or 21 + 6 - 21 if it came before."""
    played = raced(order)
    known = order.index(TRANSFER_ARRIVES) < order.index(SEND_FLOW)
    for vantage in ("broker", "client:receiver"):
        counters = ledger(played, vantage)
        assert (counters["delivery_count"], counters["link_credit"]) == (21, 6 if known else 5)


@pytest.mark.parametrize("start", STARTS)
def test_a38_the_difference_of_the_counts_is_what_is_on_the_wire(start):
    """A38: delivery-count(snd) - delivery-count(rcv) = transfers in flight, after every row."""
    played = then(begun(messages=9, initial_delivery_count=start), "grant", link_credit=9)
    sent = arrived = start
    flying = 0
    for row in played.rows:
        if row.kind != "transfer":
            continue
        if row.event == "sent":
            sent, flying = row.ledger["delivery_count"], flying + 1
        else:
            arrived, flying = row.ledger["delivery_count"], flying - 1
        assert serial.diff(sent, arrived) == flying
    assert flying == 0


def test_a39_a_sequence_no_wraps_after_4294967295_and_compares_round_the_circle():
    """A39: RFC 1982, 32 bit: its vectors, and a link that counts over the end."""
    assert serial.add(4294967295, 1) == 0
    assert serial.add(4294967291, 10) == 5
    assert serial.compare(4294967295, 0) is serial.Order.LESS
    with pytest.raises(serial.SerialError):
        serial.compare(0, 2147483648)
    assert serial.diff(3, 4294967294) == 5
    assert link_credit_snd(4294967294, 6, 1) == 3
    played = then(begun(messages=3, initial_delivery_count=4294967295), "grant", link_credit=3)
    assert [row.ledger["delivery_count"] for row in transfers(played)] == [0, 1, 2]


@pytest.mark.parametrize("start", [10, 20, 2147483640, 2147483647, 4294967291, 4294967295])
def test_a40_behaviour_does_not_depend_on_the_initial_delivery_count(start):
    """A40: the same kinds, credits and times as from 0; counts are shifted by the start."""

    def story(first):
        played = then(begun(messages=7, initial_delivery_count=first), "grant", link_credit=5)
        crossing = played.act(transfers(played, "received")[1].seq, "grant", link_credit=8)
        again = then(then(crossing, "grant", link_credit=9), "drain")
        return [
            (
                row.vantage,
                row.event,
                row.kind,
                row.t_us,
                (row.ledger or {}).get("link_credit"),
                None
                if (row.ledger or {}).get("delivery_count") is None
                else serial.diff(row.ledger["delivery_count"], first),
            )
            for row in again.rows
        ]

    assert story(start) == story(0)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("after", [0, 1, 3])
def test_a41_the_atm_paper_s_balance_is_the_sender_s_credit_in_every_state(after, start):
    """A41: Crd_Bal = Buf_Alloc - (Tx_Cnt - Fwd_Cnt), kept by counting cells from 0."""
    played = then(begun(messages=20, initial_delivery_count=start), "grant", link_credit=4)
    for credit in (6, 9, 5):
        # While transfers are under way, so that the flow crosses them.
        arrived = transfers(played, "received")
        played = played.act(arrived[after - 4].seq, "grant", link_credit=credit)
    tx = fwd = allocated = told = crossed = 0
    for row in played.rows:
        if row.kind == "transfer" and row.event == "sent":
            tx += 1
        elif row.kind == "transfer" and row.event == "received":
            fwd += 1
        elif row.kind == "flow" and row.vantage == "client:receiver" and row.event == "sent":
            assert serial.diff(row.frame["delivery_count"], start) == fwd
        elif row.kind == "flow" and row.vantage == "broker" and row.event == "received":
            allocated = row.frame["link_credit"]
            told = serial.diff(row.frame["delivery_count"], start)
            crossed += tx - told
        else:
            continue
        if row.vantage == "broker":
            assert row.ledger["link_credit"] == allocated - (tx - told)
    assert fwd == tx > 10
    assert bool(crossed) is (after < 3)


def agrees(order, rule, start):
    """Whether the ends hold the same credit when both frames have landed."""
    played = raced(order, rule, start)
    ends = ("broker", "client:receiver")
    return len({ledger(played, end)["link_credit"] for end in ends}) == 1


@pytest.mark.parametrize(
    ("rule", "always", "past_the_wrap"),
    [
        ("spec", True, True),
        ("naive", True, False),
        ("set", False, False),
        ("add", False, False),
    ],
)
def test_the_race_finds_set_and_add_and_past_the_wrap_the_naive_rule_too(
    rule, always, past_the_wrap
):
    """A subtraction that does not wrap is right until the count does: one beginning is no proof."""
    assert set(RULES) == {"spec", "naive", "set", "add"}
    assert all(agrees(order, rule, 20) for order in ORDERS) is always
    assert all(agrees(order, rule, 2**32 - 1) for order in ORDERS) is past_the_wrap
