"""Credit policies, each on a link without latency: how credit moves as messages are processed."""

import pytest

from workbench.amqp10.credit import BatchThenWait, Manual, OneAtATime, TopUp, TopUpAtHalf
from workbench.amqp10.errors import LocalProtocolError


def grants(policy, messages):
    """(deliveries processed so far, credit granted) for each grant."""
    credit = policy.initial()
    made, processed = [(0, credit)], 0
    for number in range(1, messages + 1):
        if not credit:
            break
        credit, processed = credit - 1, processed + 1
        wish = policy.after_delivery(credit, processed)
        if wish is not None:
            credit, processed = wish, 0
            made.append((number, wish))
    return made


def test_manual_never_grants():
    """Somebody else does."""
    assert Manual().initial() is None
    assert Manual().after_delivery(0, 5) is None


def test_one_at_a_time_grants_after_every_message():
    """The synchronous get [2.6.8]."""
    assert grants(OneAtATime(), 3) == [(0, 1), (1, 1), (2, 1), (3, 1)]


def test_a_batch_waits_until_all_are_done():
    """n, then nothing until n are processed, then n."""
    assert grants(BatchThenWait(10), 25) == [(0, 10), (10, 10), (20, 10)]
    assert BatchThenWait(10).after_delivery(0, 9) is None, "one is still being processed"


def test_the_articles_consumer_tops_up_200_at_100():
    """A grant of 200 whenever 100 are left: one flow per 100 messages."""
    assert grants(TopUp(200, 100), 350) == [(0, 200), (100, 200), (200, 200), (300, 200)]


@pytest.mark.parametrize(("n", "at"), [(170, 85), (10, 5), (7, 3), (1, 0)])
def test_top_up_at_half_grants_at_half_or_less(n, at):
    """RabbitMQ 4 grants to a publisher at 85 of 170 or less."""
    policy = TopUpAtHalf(n)
    assert policy.initial() == n
    assert policy.after_delivery(at + 1, 1) is None
    assert policy.after_delivery(at, 1) == n


@pytest.mark.parametrize(
    "make",
    [
        lambda: BatchThenWait(0),
        lambda: TopUp(10, 10),
        lambda: TopUp(10, -1),
        lambda: TopUp(4294967296, 5),
        lambda: TopUpAtHalf(0),
    ],
)
def test_absurd_policies_are_refused_with_what_is_legal(make):
    """A policy that grants nothing, or at once again, is none."""
    with pytest.raises(LocalProtocolError, match=r"legal"):
        make()
