"""The top-up rules side by side: what each achieves comes out of its run."""

import pytest

from workbench import presets
from workbench.exercises import measure
from workbench.exercises.compare import Result, compare_rules

SPEC = presets.get("spec")


def results(**given: int) -> dict[str, Result]:
    """What each rule achieved, by its name."""
    return {one.rule: one for one in compare_rules(**given).results}


@pytest.mark.parametrize("latency_us", [1, 100, 1000, 20_000])
@pytest.mark.parametrize("n", [2, 6, 10, 64])
def test_the_rules_come_out_in_their_order_at_any_latency(latency_us: int, n: int) -> None:
    """One at a time < N then wait < N topped up at half, produced by the run."""
    by_rule = results(latency_us=latency_us, n=n, messages=150)
    one, wait = by_rule["one-at-a-time"], by_rule["batch-then-wait"]
    assert one.rate < wait.rate < by_rule["top-up-at-half"].rate
    assert {rule.messages for rule in by_rule.values()} == {150}


@pytest.mark.parametrize("n", [20, 200])
def test_rules_are_compared_with_the_same_number(n: int) -> None:
    """None of them grants more than N at once: what differs is when they grant."""
    compared = compare_rules(latency_us=1000, n=n, messages=400)
    most = {rule: max(measure.grants(run.rows)) for rule, run in compared.runs.items()}
    assert most == {"one-at-a-time": 1, "batch-then-wait": n, "top-up-at-half": n}


def test_the_article_s_rule_is_top_up_at_half_with_its_number() -> None:
    """200 and 100: the same flows at the same times."""
    rules = ("top-up-at-half", "article-200-100")
    half, article = (
        compare_rules(latency_us=1000, n=200, messages=1000, rules=[rule]).results[0]
        for rule in rules
    )
    assert half.time_us == article.time_us


def test_the_number_does_more_than_the_rule_and_the_rule_still_something() -> None:
    """As lesson 01 says: waiting with 200 beats topping up with 20, and loses to it with 200."""
    few, many = (results(latency_us=1000, n=n, messages=400) for n in (20, 200))
    wait, half = "batch-then-wait", "top-up-at-half"
    assert few[wait].rate < few[half].rate < many[wait].rate < many[half].rate


def test_an_odd_n_has_no_half_and_loses_the_remainder() -> None:
    """N = 5 is topped up by threes: over a slow wire only three of five come each round trip."""
    slow = results(latency_us=20_000, n=5, messages=300)
    assert slow["top-up-at-half"].rate / slow["batch-then-wait"].rate == pytest.approx(
        3 / 5, rel=0.05
    )
    quick = results(latency_us=1, n=5, messages=300)
    assert quick["top-up-at-half"].rate > quick["batch-then-wait"].rate


def test_one_at_a_time_costs_a_round_trip_per_message() -> None:
    """Two latencies and the queue's service time, each message."""
    one = results(latency_us=1000, n=2, messages=100)["one-at-a-time"]
    assert one.time_us == 100 * (2 * 1000 + SPEC.queue_deliver_us)
    assert one.flows == 100 + 1  # after the last message it asks for one more, in vain
