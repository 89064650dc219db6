"""Rules for the sender's credit after a flow, against arithmetic without circles."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp10.flow import SenderLinkFlow
from workbench.amqp10.performatives import Flow
from workbench.frontends.outgoing_link import OutgoingLink
from workbench.presets import UINT_MAX
from workbench.scenarios.rules import RULES, rule_named
from workbench.serial import link_credit_snd

COUNTS = st.integers(0, 2**32 - 1)
CREDITS = st.one_of(st.integers(0, 50), st.integers(0, UINT_MAX))
BEHIND = st.one_of(st.integers(-50, 50), st.integers(-(2**31) + 1, 2**31 - 1))


@given(COUNTS, CREDITS, BEHIND, CREDITS)
@settings(derandomize=True, max_examples=300)
def test_spec_counts_the_flow_s_credit_from_where_the_receiver_stood(start, credit, sent, own):
    """With counts that never wrap it is credit minus what was sent since, from 0 up [2.6.7]."""
    own_count = (start + sent) % 2**32
    expected = min(max(0, credit - sent), UINT_MAX)
    assert RULES["spec"].rule(start, credit, own_count, own) == expected
    assert link_credit_snd(start, credit, own_count) == expected


@given(COUNTS, CREDITS, BEHIND, CREDITS)
@settings(derandomize=True, max_examples=300)
def test_naive_is_right_exactly_as_long_as_no_count_has_wrapped(start, credit, sent, own):
    """Otherwise it is a whole circle off for each lap between the two counts [RFC 1982]."""
    laps, own_count = divmod(start + sent, 2**32)
    right = RULES["spec"].rule(start, credit, own_count, own)
    wrong = RULES["naive"].rule(start, credit, own_count, own)
    assert wrong == min(max(0, credit - sent + laps * 2**32), UINT_MAX)
    if laps == 0:
        assert wrong == right


@given(COUNTS, CREDITS, CREDITS)
@settings(derandomize=True, max_examples=100)
def test_set_and_add_look_at_no_count(count, credit, own):
    """One forgets what was sent meanwhile, the other what the flow already contains."""
    for other in (0, 21, 2**32 - 1):
        assert RULES["set"].rule(count, credit, other, own) == credit
        assert RULES["add"].rule(count, credit, other, own) == min(own + credit, UINT_MAX)


def test_with_nothing_in_flight_and_no_credit_left_every_rule_agrees():
    """Which is why a test with one flow is green whatever the rule."""
    assert {named.rule(20, 6, 20, 0) for named in RULES.values()} == {6}


def test_the_article_s_race_tells_the_rules_apart():
    """Count 20 and credit 6 in the flow, 21 and 2 at the sender: 5 is right, 6 and 8 are not."""
    assert {name: named.rule(20, 6, 21, 2) for name, named in RULES.items()} == {
        "spec": 5,
        "set": 6,
        "add": 8,
        "naive": 5,
    }


@pytest.mark.parametrize("name", list(RULES))
def test_a_consumer_uses_the_rule_it_is_given_and_else_leaves_credit_to_the_endpoint(name):
    """A flow without delivery-count stands for the initial one [2.7.4]."""
    rule = RULES[name].rule
    for stated in (20, None):
        flow = Flow(
            incoming_window=9, next_outgoing_id=0, outgoing_window=9, handle=0,
            delivery_count=stated, link_credit=6,
        )  # fmt: skip
        for own, credit in ((rule, rule(20, 6, 21, 2)), (None, 2)):
            counters = SenderLinkFlow(initial_delivery_count=20, delivery_count=21, link_credit=2)
            link: Any = SimpleNamespace(counters=counters)
            OutgoingLink("c", link, None, None, None, own).heed(flow)  # type: ignore[arg-type]
            assert link.credit_by_owner is (own is not None)
            assert counters.link_credit == credit


def test_a_rule_is_found_by_name_and_says_what_it_does():
    """Each has a sentence and a formula for the page."""
    for name in RULES:
        named = rule_named(name)
        assert named.name == name
        assert named.doc
        assert named.formula
    with pytest.raises(ValueError, match="no rule 'nearly'; there are: spec, set, add"):
        rule_named("nearly")
