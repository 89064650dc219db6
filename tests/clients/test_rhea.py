"""npm's rhea against the live broker, in a node process of its own.

The library is installed from `rhea/package-lock.json`, which fixes it by its hash, into the user's
cache; the project holds no copy. Without node or npm, or without a registry, the tests are skipped.
"""

import time
from pathlib import Path

import pytest

from tests.clients.conftest import MESSAGES, PRESETS
from tests.clients.conftest import result as node_result
from tests.npm import installed
from tests.patience import TIMEOUT_S

HERE = Path(__file__).resolve().parent / "rhea"


@pytest.fixture(scope="session")
def modules():
    """The folder with rhea in it, installed if it is not there yet."""
    return installed(HERE, "rhea")


@pytest.fixture
def rhea(node):
    """Start clients of rhea."""

    def start(broker, act, address, **options):
        return node(HERE, broker, act, address=address, **options)

    return start


def result(process):
    """What a client says at its end; nothing went wrong."""
    said = node_result(process)
    assert said["errors"] == []
    return said


@pytest.mark.parametrize("preset", PRESETS)
def test_rhea_sends_and_receives_ten_thousand_messages_in_order(serve, rhea, preset):
    """Unsettled, with credit topped up at both ends; each is accepted and none is left."""
    broker = serve(preset)
    address = broker.declare("orders")
    sent = result(rhea(broker, "send", address, count=MESSAGES))
    assert sent["accepted"] == list(range(MESSAGES))
    assert sent["most_credit"] == 170
    got = result(rhea(broker, "receive", address, count=MESSAGES, credit=100))
    assert got["bodies"] == list(range(MESSAGES))
    broker.wait_for("orders", "terminal", MESSAGES)
    assert broker.count("orders") == 0


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("there", [0, 3])
def test_rhea_drains_what_is_there_and_gets_the_rest_of_its_credit_back(serve, rhea, preset, there):
    """drain of 10: `there` messages come, then the event `receiver_drained`, and no credit left."""
    broker = serve(preset)
    address = broker.declare("orders")
    if there:
        result(rhea(broker, "send", address, count=there))
    drained = result(rhea(broker, "drain", address, credit=10))
    assert drained["bodies"] == list(range(there))
    assert drained["left"] == 0


@pytest.mark.slow
def test_rhea_reconnects_and_no_accepted_message_is_lost(serve, rhea):
    """The connection is cut while rhea sends, and again while it receives; it comes back."""
    broker = serve()
    address = broker.declare("orders")
    sender = rhea(broker, "send", address, count=MESSAGES)
    deadline = time.monotonic() + TIMEOUT_S
    while broker.count("orders") < 1_000:
        assert time.monotonic() < deadline
    broker.cut()
    sent = result(sender)
    assert sent["opened"] == 2
    assert set(sent["accepted"]) == set(range(MESSAGES))
    receiver = rhea(broker, "receive", address, count=MESSAGES, credit=100)
    while broker.count("orders", "terminal") < 1_000:
        assert time.monotonic() < deadline
    broker.cut()
    got = result(receiver)
    assert got["opened"] == 2
    assert set(got["bodies"]) == set(range(MESSAGES))
