"""Addresses of RabbitMQ 4, version 2 and version 1 (facts 3.8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.frontends.addresses import AddressError, Where, source, target

NAMES = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())


def encoded(name: str) -> str:
    """Percent-encode every octet that is not unreserved [RFC 3986, 2.3]."""
    return "".join(
        chr(octet)
        if (chr(octet).isalnum() and octet < 128) or chr(octet) in "-._~"
        else f"%{octet:02X}"
        for octet in name.encode()
    )


@given(NAMES)
def test_any_queue_name_survives_percent_encoding(name):
    """/queues/:queue names any queue, as target and as source."""
    where = target(f"/queues/{encoded(name)}", version_1=False)
    assert (where.exchange, where.routing_key, where.queue) == ("", name, name)
    assert source(f"/queues/{encoded(name)}", version_1=False).queue == name


@given(NAMES.filter(lambda name: name != "amq.default"), NAMES)
def test_exchange_and_key_are_decoded_each_by_itself(exchange, key):
    """A slash in a name is %2F; it does not divide."""
    where = target(f"/exchanges/{encoded(exchange)}/{encoded(key)}", version_1=False)
    assert (where.exchange, where.routing_key, where.queue) == (exchange, key, None)


def test_the_example_of_the_documentation():
    """my-routing_key/123 is written my-routing_key%2F123."""
    where = target("/exchanges/x/my-routing_key%2F123", version_1=False)
    assert where.routing_key == "my-routing_key/123"


def test_an_exchange_without_a_key_has_the_empty_one():
    """/exchanges/:exchange is the exchange with an empty routing key."""
    assert target("/exchanges/logs", version_1=False) == Where(exchange="logs")


def test_an_exchange_may_have_an_empty_key_behind_a_slash():
    """`amqp_address_SUITE.erl:target_exchange_routing_key_empty`."""
    assert target("/exchanges/logs/", version_1=False) == Where(exchange="logs")


@pytest.mark.parametrize(
    "address", ["/queues/✋", "/exchanges/✋", "/queues/a b", "/queues/a<b", "/exchanges/x/a|b"]
)
def test_what_has_to_be_percent_encoded_is_not_taken_as_it_is(address):
    """`amqp_address_SUITE.erl:bad_v2_addresses`; `cow_uri:urldecode` takes what RFC 3986 does."""
    with pytest.raises(AddressError, match="is not percent-encoded"):
        target(address, version_1=False)


@pytest.mark.parametrize("address", ["/exchanges/", "/exchanges/amq.default", "/exchanges//k"])
def test_the_default_exchange_is_not_addressed_by_name(address):
    """The default exchange is reached through /queues/ alone."""
    with pytest.raises(AddressError):
        target(address, version_1=False)


@pytest.mark.parametrize("address", ["/queues/a%2", "/queues/100%", "/queues/%zz", "/queues/%ff"])
def test_bad_escapes_are_named(address):
    """What is no percent-encoded UTF-8 is refused with the piece that is wrong."""
    with pytest.raises(AddressError, match="%"):
        target(address, version_1=True)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("/exchange/x", Where(exchange="x", version=1)),
        ("/exchange/x/k", Where(exchange="x", routing_key="k", version=1)),
        ("/topic/a.b", Where(exchange="amq.topic", routing_key="a.b", version=1)),
        ("/amq/queue/q", Where(exchange="", routing_key="q", queue="q", version=1)),
        ("/queue/q", Where(exchange="", routing_key="q", queue="q", declare=True, version=1)),
        ("q", Where(exchange="", routing_key="q", queue="q", declare=True, version=1)),
        ("/queue", Where(exchange="", version=1)),
    ],
)
def test_version_1_targets_are_read_only_where_they_are_tolerated(address, expected):
    """4.0 to 4.2 take version 1 of the addresses; 4.3 refuses it and says so."""
    assert target(address, version_1=True) == expected
    with pytest.raises(AddressError, match="version 1"):
        target(address, version_1=False)


@pytest.mark.parametrize(
    "address", ["", "/", "/nothing", "/queues", "/queues/a/b", "/exchanges/x/k/z"]
)
def test_what_names_nothing_is_refused_with_what_would(address):
    """The refusal lists the forms there are."""
    for version_1 in (True, False):
        with pytest.raises(AddressError, match="/queues/:queue"):
            source(address, version_1=version_1)
