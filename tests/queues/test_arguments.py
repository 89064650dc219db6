"""A queue's arguments: read from RabbitMQ's names, refused with a text that says what is legal."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.amqp091.values import Timestamp
from workbench.queues import QueueArgumentError, QueueArguments
from workbench.queues.arguments import OVERFLOWS, QUEUE_TYPES, legal_names


def test_every_argument_is_read_from_rabbitmqs_name() -> None:
    """The names are those of `rabbit_amqqueue.erl:declare_args`."""
    read = QueueArguments.from_x(
        {
            "x-queue-type": "classic",
            "x-single-active-consumer": True,
            "x-max-length": 3,
            "x-max-length-bytes": 1000,
            "x-overflow": "reject-publish",
            "x-message-ttl": 60000,
            "x-expires": 1800000,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
        }
    )
    assert read == QueueArguments(
        single_active_consumer=True,
        max_length=3,
        max_length_bytes=1000,
        overflow="reject-publish",
        message_ttl_ms=60000,
        expires_ms=1800000,
        dead_letter_exchange="",
        dead_letter_routing_key="dead",
    )
    assert QueueArguments.from_x({"x-queue-type": "quorum", "x-delivery-limit": 5}) == (
        QueueArguments(queue_type="quorum", delivery_limit=5)
    )


def test_nothing_given_is_a_plain_classic_queue() -> None:
    """Classic is the default type, drop-head the default overflow."""
    plain = QueueArguments.from_x({})
    assert plain == QueueArguments()
    assert (plain.queue_type, plain.overflow, plain.max_length) == ("classic", "drop-head", None)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7D", 604_800_000),
     ("1M", 2_592_000_000), ("1Y", 31_536_000_000)],
)  # fmt: skip
def test_an_age_is_a_number_and_a_unit(text: str, ms: int) -> None:
    """Units as in `rabbit_amqqueue.erl:unit_value_in_ms`."""
    read = QueueArguments.from_x({"x-queue-type": "stream", "x-max-age": text})
    assert read.max_age_ms == ms


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ({"x-max-priority": 256}, "x-max-priority 256 is too large; legal: 0 to 255"),
        ({"x-queue-version": 3}, "x-queue-version '3' is unknown; legal: 1, 2"),
        (
            {"x-max-length": "3"},
            "x-max-length has the value '3' of type 'longstr'; legal: an integer",
        ),
        (
            {"x-max-length": True},
            "x-max-length has the value 'true' of type 'bool'; legal: an integer",
        ),
        (
            {"x-max-length": Timestamp(5)},
            "x-max-length has the value '5' of type 'timestamp'; legal: an integer",
        ),
        ({"x-max-length": -1}, "x-max-length -1 is too small; legal: 0 or more"),
        ({"x-expires": 0}, "x-expires 0 is too small; legal: 1 or more"),
        (
            {"x-message-ttl": 315_360_000_001},
            "x-message-ttl 315360000001 ms is too long; legal: up to 315360000000",
        ),
        ({"x-single-active-consumer": "true"}, "legal: true or false"),
        (
            {"x-overflow": "drop-tail"},
            "x-overflow 'drop-tail' is unknown; legal: drop-head, reject",
        ),
        ({"x-queue-type": "priority"}, "x-queue-type 'priority' is unknown; legal: classic"),
        ({"x-delivery-limit": 3}, "x-delivery-limit is not for a classic queue, only for: quorum"),
        ({"x-max-age": "7D"}, "x-max-age is not for a classic queue, only for: stream"),
        ({"x-queue-type": "stream", "x-max-length": 3}, "x-max-length is not for a stream queue"),
        ({"x-queue-type": "stream", "x-queue-mode": "lazy"}, "x-queue-mode is not for a stream"),
        (
            {"x-queue-type": "stream", "x-max-age": "7W"},
            "x-max-age '7W' is no age; legal: a number",
        ),
        ({"x-queue-type": "stream", "x-max-age": "0s"}, "x-max-age '0s' is no age"),
        ({"x-queue-type": "stream", "x-max-age": "9" * 5000 + "s"}, "is no age; legal: a number"),
        (
            {"x-queue-type": "stream", "x-max-age": 7},
            "x-max-age has the value '7' of type 'signedint'; legal: a s",
        ),
        (
            {"x-dead-letter-routing-key": "k"},
            "x-dead-letter-routing-key without x-dead-letter-exchange",
        ),
    ],
)
def test_what_cannot_be_is_refused(given_: dict[str, object], text: str) -> None:
    """The argument is named, and what is legal is said."""
    with pytest.raises(QueueArgumentError) as caught:
        QueueArguments.from_x(given_)
    assert text in str(caught.value)


def test_an_argument_about_storage_or_of_no_type_of_queue_is_read_over() -> None:
    """`x-queue-version` is legal with RabbitMQ, and so is what it does not know."""
    assert QueueArguments.from_x({"x-queue-version": 2, "x-max-lenght": 3}) == QueueArguments()


def test_arguments_given_in_python_are_checked_too() -> None:
    """A lesson meets the same texts as a client."""
    with pytest.raises(QueueArgumentError, match="x-max-length is not for a stream queue"):
        QueueArguments(queue_type="stream", max_length=3)
    with pytest.raises(QueueArgumentError, match="x-max-length -1 is too small"):
        QueueArguments(max_length=-1)


POSSIBLE = {
    "x-single-active-consumer": st.booleans(),
    "x-max-length": st.integers(0, 2**40),
    "x-max-length-bytes": st.integers(0, 2**40),
    "x-overflow": st.sampled_from(OVERFLOWS),
    "x-message-ttl": st.integers(0, 315_360_000_000),
    "x-expires": st.integers(1, 315_360_000_000),
    "x-max-priority": st.integers(0, 255),
    "x-dead-letter-exchange": st.text(max_size=5),
    "x-dead-letter-routing-key": st.text(max_size=5),
    "x-delivery-limit": st.integers(-1, 100),
    "x-max-age": st.integers(1, 10**6).map(lambda number: f"{number}s"),
}
WHAT_COMES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=9), st.floats(), st.binary(max_size=3)
)


@settings(derandomize=True, max_examples=150, deadline=None)
@given(
    queue_type=st.sampled_from(QUEUE_TYPES),
    values=st.fixed_dictionaries({}, optional=POSSIBLE),
)
def test_what_is_read_can_be_written_and_read_again(queue_type, values) -> None:  # type: ignore[no-untyped-def]
    """`to_x` and `from_x` are inverse to each other, for whatever the type takes."""
    values = {name: value for name, value in values.items() if name in legal_names(queue_type)}
    if "x-dead-letter-exchange" not in values:
        values.pop("x-dead-letter-routing-key", None)
    read = QueueArguments.from_x({"x-queue-type": queue_type, **values})
    assert QueueArguments.from_x(read.to_x()) == read
    for name, value in read.to_x().items():
        assert {"x-queue-type": queue_type, **values}[name] == value


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["x-queue-type", *POSSIBLE, "x-queue-mode", "other"]), WHAT_COMES
    )
)
def test_whatever_comes_is_read_or_refused_with_a_text(values) -> None:  # type: ignore[no-untyped-def]
    """No other error comes out: what a client sends cannot break the broker."""
    with suppress(QueueArgumentError):
        QueueArguments.from_x(values)
