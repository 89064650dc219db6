"""npm's amqplib speaks AMQP 0-9-1 to the live broker, in a node process of its own.

The library is installed from `amqplib/package-lock.json`, as rhea is.
"""

import functools
from pathlib import Path

import pytest

from tests.clients.conftest import MESSAGES, result
from tests.npm import installed

HERE = Path(__file__).resolve().parent / "amqplib"
pytestmark = pytest.mark.slow  # a node process takes a second to begin


@pytest.fixture(scope="session")
def modules():
    """The folder with amqplib in it, installed if it is not there yet."""
    return installed(HERE, "amqplib")


@pytest.fixture
def client(node):
    """Start clients of amqplib."""
    return functools.partial(node, HERE)


def test_amqplib_publishes_and_consumes_with_prefetch_in_order(serve, client):
    """Ten thousand, each confirmed and acknowledged; none is left, nor its consumer."""
    broker = serve()
    said = result(client(broker, "work", count=MESSAGES, prefetch=100))
    assert said["bodies"] == list(range(MESSAGES))
    broker.wait_for("q", "terminal", MESSAGES)
    assert broker.count("q", "consumers") == 0


def test_amqplib_is_told_what_went_wrong(serve, client):
    """Returned, and not there."""
    assert result(client(serve(), "wrong"))["heard"] == ["NO_ROUTE", 404]


def test_amqplib_hears_that_it_is_blocked(serve, client):
    """At its first publish under an alarm; it goes on when the alarm is over."""
    broker = serve()
    inside = broker.live.listener.broker
    broker.live.ask(inside.set_alarm)
    process = client(broker, "blocked")
    assert process.stdout.readline() == "blocked\n"
    broker.live.ask(inside.clear_alarm)
    assert result(process)["heard"] == ["low on memory"]
    assert broker.count("q") == 1


def test_amqplib_connects_again(serve, client):
    """After a cut without a word."""
    broker = serve()
    process = client(broker, "again", count=1, prefetch=10)
    assert process.stdout.readline() == "ready\n"
    assert broker.cut() == 1
    assert result(process)["bodies"] == [7]
