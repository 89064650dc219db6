"""Rows A1 to A14 and A32 to A34 of the feature table: what link credit is, as runs show it."""

import pytest
from msgspec import structs

from tests.amqp10.pair import LinkPair
from tests.rules.runs import STARTS, begun, both, flows, ledger, then, transfers
from workbench import presets
from workbench.amqp10.performatives import Flow
from workbench.exercises.compare import compare_rules

SERVICE_US = presets.get("spec").queue_deliver_us


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
@pytest.mark.parametrize(("credit", "ready"), [(6, 4), (5, 5), (6, 9)])
def test_a03_each_end_counts_when_the_message_passes_it_and_at_0_sending_stops(
    credit, ready, start
):
    """A3: the sender counts on sending, the receiver on arrival; both end at N - k [2.6.7]."""
    k = min(credit, ready)
    played = then(begun(messages=ready, initial_delivery_count=start), "grant", link_credit=credit)
    at_sender = [row.ledger["link_credit"] for row in transfers(played)]
    at_receiver = [row.ledger["link_credit"] for row in transfers(played, "received")]
    assert at_sender == at_receiver == [credit - number for number in range(1, k + 1)]
    for sent, arrived in zip(transfers(played), transfers(played, "received"), strict=True):
        assert sent.t_us < arrived.t_us
    assert played.world.wires["c1"].in_flight() == []
    assert both(played) == (credit - k, credit - k)


def test_a04_nothing_is_sent_between_attach_and_the_first_flow():
    """A4: a full queue and an attached link without a flow: 0 transfers."""
    assert transfers(begun(messages=50)) == []


@pytest.mark.parametrize("ready", [0, 1, 9])
def test_a05_a_synchronous_get_is_one_flow_one_transfer_then_none(ready):
    """A5: figure 2.43: whatever is ready or comes later, one message for flow(1)."""
    played = begun("asking", mode="get", messages=ready)
    assert len(transfers(played)) == min(1, ready)
    later = then(then(played, "publish", count=4), "acknowledge")
    assert [row.frame["link_credit"] for row in flows(later, "client")] == [1]
    assert len(transfers(later)) == 1
    assert both(later) == (0, 0)


@pytest.mark.parametrize("round_trip_us", [0, 100, 200, 280, 600, 2000])
def test_a06_overlapping_grants_keep_the_sender_going_and_what_is_in_flight_below_the_grant(
    round_trip_us,
):
    """A6: figure 2.45: grant 6, again 6 after 3; no credit 0 while RTT < 3 service times."""
    played = begun("asking", mode="notify", n=6, messages=60, latency_us=round_trip_us // 2)
    assert len(transfers(played)) == 60
    arrived = [row for row in played.rows if row.kind == "transfer" and row.event == "received"]
    granted = flows(played, "client", whole=True)
    assert {row.frame["link_credit"] for row in granted} == {6}
    before = [sum(row.seq < flow.seq for row in arrived) for flow in granted]
    assert before == list(range(0, 61, 3))
    while_more_is_ready = [row.ledger["link_credit"] for row in transfers(played)[:-1]]
    assert (min(while_more_is_ready) > 0) is (round_trip_us < 3 * SERVICE_US)
    in_flight = most = 0
    for row in played.rows:
        if row.kind == "transfer":
            in_flight += 1 if row.event == "sent" else -1
            most = max(most, in_flight)
    assert most <= 6


@pytest.mark.parametrize(
    ("latency_us", "n"), [(100, 10), (400, 10), (900, 20), (100, 4), (2000, 50)]
)
def test_a07_one_at_a_time_is_slower_than_batches_and_batches_than_overlapping_grants(
    latency_us, n
):
    """A7: rate(1) < rate(N, wait for all) < rate(N, topped up at half) with a round trip.

    Grants overlap while the round trip is shorter than N service times, as here.
    """
    assert 0 < 2 * latency_us < n * SERVICE_US
    rates = compare_rules(messages=120, latency_us=latency_us, n=n, preset="spec").rates
    assert rates["one-at-a-time"] < rates["batch-then-wait"] < rates["top-up-at-half"]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("credit", [50, 1, 7])
def test_a08_credit_is_absolute_two_equal_flows_grant_once(credit, start):
    """A8: credit after two flow(50) with the same delivery-count is 50, and 50 come."""
    once = then(begun(messages=0, initial_delivery_count=start), "grant", link_credit=credit)
    twice = then(once, "grant", link_credit=credit)
    first, second = (row.frame for row in flows(twice, "client"))
    assert first == second
    assert both(twice) == (credit, credit)
    filled = then(twice, "publish", count=2 * credit + 3)
    assert len(transfers(filled)) == credit


@pytest.mark.parametrize(("granted", "ready"), [(8, 3), (8, 0), (3, 3), (1, 0)])
def test_a09_only_the_receiver_sets_credit(granted, ready):
    """A9: the sender's flow moves the receiver's credit through delivery-count alone."""
    played = then(begun(messages=ready), "grant", link_credit=granted)
    left = granted - ready
    (answer,) = flows(then(played, "echo"), "broker", "received")
    assert answer.ledger["link_credit"] == left
    if left:
        before = ledger(played, "client:receiver")
        (answer,) = flows(then(played, "drain"), "broker", "received")
        moved = answer.frame["delivery_count"] - before["delivery_count"]
        assert moved == left
        assert answer.ledger["link_credit"] == before["link_credit"] - moved == 0


@pytest.mark.parametrize("told", [0, 1, 77, 4294967295])
def test_a09_a_sender_that_tells_another_credit_changes_nothing_at_the_receiver(told):
    """A9: link-credit of a sender's flow is the sender's view, no more [2.6.7]."""
    pair = LinkPair()
    pair.receiver.grant(5)
    pair.pump()
    pair.sender.flow()
    pair.pump()
    (frame,) = pair.sending.frames(Flow)
    pair.inject(pair.sending, structs.replace(frame, link_credit=told))
    assert pair.link_credit() == (5, 5)
    assert not pair.receiving.violations


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("ready", [0, 4])
@pytest.mark.parametrize(("first", "second"), [(10, 2), (10, 0), (5, 10), (5, 5)])
def test_a10_the_receiver_raises_or_lowers_credit_at_any_time(first, second, ready, start):
    """A10: flow(2) after flow(10): the limit is delivery-count + 2."""
    played = begun(messages=ready, initial_delivery_count=start)
    changed = then(then(played, "grant", link_credit=first), "grant", link_credit=second)
    counters = ledger(changed, "broker")
    assert counters["delivery_count"] == (start + ready) % 2**32
    assert counters["link_credit"] == second
    filled = then(changed, "publish", count=20)
    assert len(transfers(filled)) == ready + second
    assert ledger(filled, "broker")["delivery_count"] == (start + ready + second) % 2**32


@pytest.mark.parametrize(("changed", "other"), [("urgent", "bulk"), ("bulk", "urgent")])
@pytest.mark.parametrize("credit", [0, 2, 9])
def test_a11_a_change_of_credit_affects_one_link_only(credit, changed, other):
    """A11: raised, lowered or stopped: the other link of the session keeps its credit."""
    played = begun("two_queues", messages_urgent=0, messages_bulk=0)
    for queue in (changed, other):
        played = then(played, "grant", link_credit=5, queue=queue)
    played = then(played, "grant", link_credit=credit, queue=changed)
    assert both(played, link=changed) == (credit, credit)
    assert both(played, link=other) == (5, 5)
    for queue in (changed, other):
        played = then(played, "publish", queue=queue, count=12)
    assert len(transfers(played, link=changed)) == credit
    assert len(transfers(played, link=other)) == 5


@pytest.mark.parametrize("queue", ["urgent", "bulk"])
def test_a12_credit_on_one_link_alone_makes_that_queue_alone_deliver(queue):
    """A12: both queues are full; who has no credit is silent."""
    played = then(begun("two_queues"), "grant", link_credit=4, queue=queue)
    assert {row.link for row in transfers(played)} == {queue}
    assert len(transfers(played)) == 4


@pytest.mark.parametrize("messages", [450, 101, 100])
def test_a14_top_up_to_200_when_below_100_sends_its_flow_at_99_and_peaks_at_200(messages):
    """A14: the article's advice: grant 200, again 200 when credit falls below 100."""
    played = begun(messages=messages, policy="article-200-100")
    granted = flows(played, "client", whole=True)
    assert {row.frame["link_credit"] for row in granted} == {200}
    assert len(granted) == 1 + messages // 101
    at_receiver = [
        row
        for row in played.rows
        if row.vantage == "client:receiver" and row.link and row.seq >= granted[0].seq
    ]
    for flow in granted[1:]:
        before = [row for row in at_receiver if row.seq < flow.seq][-1]
        assert (before.kind, before.ledger["link_credit"]) == ("transfer", 99)
    credits_ = [row.ledger["link_credit"] for row in at_receiver]
    assert max(credits_) == 200
    assert min(credits_) >= 99


@pytest.mark.parametrize("outcome", ["accepted", "rejected", "released", "modified"])
@pytest.mark.parametrize("acknowledged", [1, 10])
def test_a32_acknowledging_frees_no_credit(acknowledged, outcome):
    """A32: with the credit used up, 10 dispositions bring 0 transfers [2.6.7]."""
    played = then(begun(messages=25), "grant", link_credit=10)
    assert both(played) == (0, 0)
    done = played
    for _ in range(acknowledged):
        done = then(done, "acknowledge", count=1, outcome=outcome)
    sent = [row for row in done.rows if row.kind == "disposition" and row.from_peer == "client"]
    assert sum(row.event == "received" for row in sent) == acknowledged
    assert len(transfers(done)) == 10
    assert both(done) == (0, 0)
    assert both(done, "delivery_count") == both(played, "delivery_count")


@pytest.mark.parametrize("processing_us", [0, 700])
def test_a34_a_library_that_tops_up_on_settling_sends_disposition_and_flow_in_pairs(processing_us):
    """A34: the two frames appear together though neither causes the other [2.6.7, 2.6.12]."""
    played = begun(
        messages=12, policy="one-at-a-time", acknowledge="auto", processing_us=processing_us
    )
    own = [
        (row.kind, row.t_us)
        for row in played.rows
        if row.event == "sent" and row.from_peer == "client" and row.kind in ("flow", "disposition")
    ]
    assert own[0][0] == "flow"
    pairs = list(zip(own[1::2], own[2::2], strict=True))
    assert len(pairs) == 12
    for (first, at), (second, then_at) in pairs:
        assert (first, second) == ("disposition", "flow")
        assert at == then_at
