"""Exchanges and bindings: where a message goes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.growth import steps
from workbench.broker.routing import Binding, Routing, RoutingError, headers_match, topic_matches

WORD = st.sampled_from(["a", "b", "cc"])
PATTERN = st.lists(st.sampled_from(["a", "b", "cc", "*", "#"]), max_size=5)


def as_regex(parts: list[str]) -> str:
    """The pattern as a regular expression over words that each end with a dot."""
    word = r"[^.]+\."
    return "".join(
        {"*": word, "#": f"(?:{word})*"}.get(part, re.escape(part) + r"\.") for part in parts
    )


@given(PATTERN, st.lists(WORD, max_size=6))
def test_topic_patterns_match_as_the_same_pattern_written_as_a_regular_expression(parts, words):
    """`*` is one word, `#` any number, everything else itself; `re` is the oracle."""
    subject = "".join(f"{word}." for word in words)
    assert topic_matches(".".join(parts), words) == bool(re.fullmatch(as_regex(parts), subject))


@pytest.mark.parametrize("part", ["a", "*", "#"])
def test_what_a_topic_pattern_costs_grows_as_it_and_the_key_do(part):
    """Over AMQP 1.0 both may have 65,000 words: their product would hold the broker for minutes."""

    def match(count):
        assert topic_matches(".".join([part] * count), ["a"] * count)

    assert steps(match, 400) < 2.5 * steps(match, 200)


def test_the_default_exchange_leads_to_every_queue_by_its_name():
    """Routing key is queue name; nothing is bound."""
    assert Routing().route("", "orders") == ("orders",)


def test_direct_and_fanout():
    """Direct asks for the same key, fanout for none."""
    routing = Routing()
    routing.bind(Binding("amq.direct", "one", key="k"))
    routing.bind(Binding("amq.direct", "two", key="other"))
    routing.bind(Binding("amq.fanout", "one"))
    routing.bind(Binding("amq.fanout", "two"))
    assert routing.route("amq.direct", "k") == ("one",)
    assert set(routing.route("amq.fanout", "whatever")) == {"one", "two"}


def test_a_queue_gets_a_message_once_however_many_bindings_match():
    """Two matching bindings to one queue are one delivery."""
    routing = Routing()
    routing.bind(Binding("amq.topic", "q", key="#"))
    routing.bind(Binding("amq.topic", "q", key="a.*"))
    assert routing.route("amq.topic", "a.b") == ("q",)


def test_exchanges_bound_in_a_circle_end():
    """A message passes each exchange once."""
    routing = Routing()
    routing.declare("x", "fanout")
    routing.declare("y", "fanout")
    routing.bind(Binding("x", "y", to_exchange=True))
    routing.bind(Binding("y", "x", to_exchange=True))
    routing.bind(Binding("y", "q"))
    assert routing.route("x", "") == ("q",)


@pytest.mark.parametrize(
    ("arguments", "headers", "matches"),
    [
        ({"x-match": "all", "a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, True),
        ({"x-match": "all", "a": 1, "b": 2}, {"a": 1}, False),
        ({"x-match": "any", "a": 1, "b": 2}, {"b": 2}, True),
        ({"x-match": "any", "a": 1}, {"a": 2}, False),
        ({"a": None}, {"a": "whatever"}, True),
        ({"a": None}, {}, False),
        ({}, {"a": 1}, True),
        ({"x-match": "any"}, {"a": 1}, False),
        ({"x-match": "all", "x-mine": 1}, {}, True),
        ({"x-match": "all-with-x", "x-mine": 1}, {}, False),
        ({"x-match": "any-with-x", "x-mine": 1}, {"x-mine": 1}, True),
    ],
)
def test_headers_match_all_or_any_of_the_pairs(arguments, headers, matches):
    """`x-match` says how many; pairs that begin with x- count only when asked for."""
    assert headers_match(sorted(arguments.items(), key=str), headers) is matches


def test_declaring_again_is_equal_or_refused():
    """The same declaration finds the exchange, another is a failed precondition."""
    routing = Routing()
    first = routing.declare("x", "topic")
    assert routing.declare("x", "topic") is first
    with pytest.raises(RoutingError, match="current is 'topic'") as caught:
        routing.declare("x", "fanout")
    assert caught.value.reason == "precondition-failed"


@pytest.mark.parametrize("name", ["amq.direct", "", "amq.match"])
def test_what_was_there_at_first_cannot_be_deleted(name):
    """Predeclared exchanges stay."""
    with pytest.raises(RoutingError) as caught:
        Routing().delete(name)
    assert caught.value.reason == "access-refused"


def test_an_auto_delete_exchange_goes_with_its_last_binding():
    """Not at once after it was declared, but when it has had bindings and the last one goes."""
    routing = Routing()
    routing.declare("x", "direct", auto_delete=True)
    routing.bind(Binding("x", "q", key="k"))
    routing.queue_gone("q")
    assert "x" not in routing.exchanges


def test_deleting_an_exchange_takes_the_bindings_to_it_along():
    """No message runs into an exchange that is gone."""
    routing = Routing()
    routing.declare("y", "fanout")
    routing.bind(Binding("amq.fanout", "y", to_exchange=True))
    assert routing.delete("y")
    assert not routing.delete("y")
    assert routing.route("amq.fanout", "") == ()


def test_an_unknown_exchange_is_said_to_be_unknown():
    """Publishing or binding to it is not-found."""
    for act in (
        lambda: Routing().route("nobody", "k"),
        lambda: Routing().bind(Binding("nobody", "q")),
        lambda: Routing().bind(Binding("amq.direct", "nobody", to_exchange=True)),
    ):
        with pytest.raises(RoutingError, match="nobody") as caught:
            act()
        assert caught.value.reason == "not-found"


def test_true_is_not_one_to_a_headers_exchange():
    """They are equal in Python; to a client they are values of two types."""
    assert not headers_match([("a", 1)], {"a": True})
    assert not headers_match([("a", False)], {"a": 0})
    assert headers_match([("a", True)], {"a": True})


def test_what_led_to_an_auto_delete_exchange_goes_with_it():
    """Its last queue gone, the exchange goes; a new one of its name is led to by nothing."""
    routing = Routing()
    routing.declare("x", "fanout", auto_delete=True)
    routing.bind(Binding("amq.fanout", "x", to_exchange=True))
    routing.bind(Binding("x", "q"))
    routing.queue_gone("q")
    assert "x" not in routing.exchanges
    routing.declare("x", "fanout")
    routing.bind(Binding("x", "r"))
    assert routing.route("amq.fanout", "") == ()


def test_a_chain_of_auto_delete_exchanges_goes_however_long_it_is():
    """Each takes the one before it along."""
    routing, count = Routing(), len(Routing().exchanges)
    for number in range(600):
        routing.declare(f"x{number}", "fanout", auto_delete=True)
        if number:
            routing.bind(Binding(f"x{number - 1}", f"x{number}", to_exchange=True))
    routing.bind(Binding("x599", "q"))
    routing.queue_gone("q")
    assert len(routing.exchanges) == count


def test_a_binding_with_true_is_another_than_the_one_with_1():
    """Each matches its own, and one of them is taken away alone."""
    routing = Routing()
    one, true = (Binding("amq.headers", "q", arguments=(("a", value),)) for value in (1, True))
    routing.bind(one)
    routing.bind(true)
    assert routing.bindings("amq.headers", "q") == [one, true]
    assert routing.unbind(true)
    assert not routing.unbind(true)
    assert routing.bindings("amq.headers", "q") == [one]
