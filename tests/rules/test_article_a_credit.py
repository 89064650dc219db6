"""Rows A1 to A14 and A32 to A34 of the feature table: what link credit is, as runs show it."""

import pytest

from tests.rules.runs import STARTS, begun, both, flows, ledger, then, transfers
from workbench.exercises.compare import compare_rules


def test_a01_a_link_joins_a_sender_to_a_receiver_and_attach_answers_attach_with_the_other_role():
    """A1: the role in the reply is the opposite one [2.6.3]."""
    played = begun(publisher="visible")
    attaches = [row for row in played.rows if row.kind == "attach" and row.event == "sent"]
    roles = {(row.connection, row.from_peer): row.frame["role"] for row in attaches}
    assert roles["c1", "client"] is not roles["c1", "broker"]
    assert roles["c2", "client"] is not roles["c2", "broker"]
    assert roles["c1", "client"] is not roles["c2", "client"]
    senders = {row.connection: row.link_sender for row in attaches}
    assert senders == {"c1": "broker", "c2": "client"}


@pytest.mark.parametrize(("credit", "ready"), [(10, 25), (1, 5), (7, 7), (12, 4)])
def test_a02_one_credit_is_one_message(credit, ready):
    """A2: credit 10 and 25 ready messages make exactly 10 transfers [2.6.7]."""
    played = then(begun(messages=ready), "grant", link_credit=credit)
    assert len(transfers(played)) == min(credit, ready)


@pytest.mark.parametrize("start", STARTS)
def test_a03_each_end_counts_when_the_message_passes_it_and_at_0_sending_stops(start):
    """A3: the sender counts on sending, the receiver on arrival; both end at N - k [2.6.7]."""
    played = then(begun(messages=4, initial_delivery_count=start), "grant", link_credit=6)
    at_sender = [row.ledger["link_credit"] for row in transfers(played)]
    at_receiver = [row.ledger["link_credit"] for row in transfers(played, "received")]
    assert at_sender == at_receiver == [5, 4, 3, 2]
    first_sent, first_arrived = transfers(played)[0], transfers(played, "received")[0]
    assert first_sent.t_us < first_arrived.t_us
    assert both(played) == (2, 2)
    used_up = then(begun(messages=9), "grant", link_credit=6)
    assert both(used_up) == (0, 0)
    assert len(transfers(used_up)) == 6


def test_a04_nothing_is_sent_between_attach_and_the_first_flow():
    """A4: a full queue and an attached link without a flow: 0 transfers."""
    assert transfers(begun(messages=50)) == []


def test_a05_a_synchronous_get_is_one_flow_one_transfer_then_none():
    """A5: figure 2.43."""
    played = begun("asking", mode="get", messages=9)
    assert [row.frame["link_credit"] for row in flows(played, "client")] == [1]
    assert len(transfers(played)) == 1
    assert both(played) == (0, 0)


def test_a06_overlapping_grants_keep_the_sender_going_and_what_is_in_flight_below_the_grant():
    """A6: figure 2.45: grant 6, again after 3; no credit 0 while the round trip is short."""
    played = begun("asking", mode="notify", n=6, messages=60, latency_us=100)
    assert len(transfers(played)) == 60
    assert min(row.ledger["link_credit"] for row in transfers(played)) > 0
    in_flight = most = 0
    for row in played.rows:
        if row.kind == "transfer":
            in_flight += 1 if row.event == "sent" else -1
            most = max(most, in_flight)
    assert most <= 6


def test_a07_one_at_a_time_is_slower_than_batches_and_batches_than_overlapping_grants():
    """A7: rate(1) < rate(N, wait for all) < rate(N, topped up at half) with a round trip."""
    rates = compare_rules(messages=120, latency_us=2000, n=20, preset="spec").rates
    assert rates["one-at-a-time"] < rates["batch-then-wait"] < rates["top-up-at-half"]


@pytest.mark.parametrize("start", STARTS)
def test_a08_credit_is_absolute_two_equal_flows_grant_once(start):
    """A8: credit after two flow(50) with the same delivery-count is 50."""
    once = then(begun(messages=0, initial_delivery_count=start), "grant", link_credit=50)
    twice = then(once, "grant", link_credit=50)
    assert both(twice) == (50, 50)


def test_a09_only_the_receiver_sets_credit():
    """A9: the sender's flow moves the receiver's credit through delivery-count alone."""
    played = then(begun(messages=3), "grant", link_credit=8)
    echoed = then(played, "echo")
    (answer,) = flows(echoed, "broker", "received")
    assert answer.ledger["link_credit"] == 5
    drained = then(played, "drain")
    (answer,) = flows(drained, "broker", "received")
    before = ledger(played, "client:receiver")
    moved = answer.frame["delivery_count"] - before["delivery_count"]
    assert answer.ledger["link_credit"] == before["link_credit"] - moved == 0


@pytest.mark.parametrize(("first", "second"), [(10, 2), (2, 10), (5, 0), (0, 5)])
def test_a10_the_receiver_raises_or_lowers_credit_at_any_time(first, second):
    """A10: flow(2) after flow(10): the limit is delivery-count + 2."""
    played = then(begun(messages=0), "grant", link_credit=first)
    changed = then(played, "grant", link_credit=second)
    counters = ledger(changed, "broker")
    assert counters["link_credit"] == second
    filled = then(changed, "publish", count=20)
    assert len(transfers(filled)) == second


def test_a11_a_change_of_credit_affects_one_link_only():
    """A11: the other link of the same session keeps its credit."""
    played = begun("two_queues", messages_urgent=0, messages_bulk=0)
    one = then(played, "grant", link_credit=7, queue="urgent")
    two = then(one, "grant", link_credit=3, queue="bulk")
    assert both(two, link="urgent") == (7, 7)
    assert both(two, link="bulk") == (3, 3)


@pytest.mark.parametrize("queue", ["urgent", "bulk"])
def test_a12_credit_on_one_link_alone_makes_that_queue_alone_deliver(queue):
    """A12: both queues are full; who has no credit is silent."""
    played = then(begun("two_queues"), "grant", link_credit=4, queue=queue)
    assert {row.link for row in transfers(played)} == {queue}
    assert len(transfers(played)) == 4


def test_a14_top_up_to_200_when_below_100_sends_its_flow_at_99_and_peaks_at_200():
    """A14: the article's advice: grant 200, again 200 when below 100."""
    played = begun(messages=450, policy="article-200-100")
    granted = flows(played, "client")
    assert {row.frame["link_credit"] for row in granted} == {200}
    arrivals = [row for row in played.rows if row.kind == "transfer" and row.event == "received"]
    for flow in granted[1:]:
        before = [row for row in arrivals if row.seq < flow.seq][-1]
        assert before.ledger["link_credit"] in (99, 100)
    assert max(row.ledger["link_credit"] for row in granted) == 200


def test_a32_acknowledging_frees_no_credit():
    """A32: with the credit used up, 10 dispositions bring 0 transfers [2.6.7]."""
    played = then(begun(messages=25), "grant", link_credit=10)
    acknowledged = then(played, "acknowledge", count=10)
    assert len(transfers(acknowledged)) == 10
    assert both(acknowledged) == (0, 0)
    assert any(row.kind == "disposition" for row in acknowledged.rows)


def test_a34_a_library_that_tops_up_on_settling_sends_disposition_and_flow_in_pairs():
    """A34: settle and grant after each message: one disposition and one flow for each."""
    played = begun(messages=12, policy="one-at-a-time", acknowledge="auto")
    own = [
        row.kind
        for row in played.rows
        if row.event == "sent" and row.from_peer == "client" and row.seq > played.start_seq
    ]
    assert own.count("disposition") == 12
    first = own.index("disposition")
    pairs = own[first : own.index("disposition", first) + 22]
    assert {tuple(sorted(pair)) for pair in zip(pairs[::2], pairs[1::2], strict=False)} == {
        ("disposition", "flow")
    }
