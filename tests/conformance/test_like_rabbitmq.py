"""Frame for frame: the live broker answers every scenario as RabbitMQ 4.3.6 did when it was recorded.

What may differ stands in allowed.txt, each with its reason.
"""

from pathlib import Path

import pytest

from .broker_in_memory import BrokerInMemory
from .compare import RECORDED, compare, read_known
from .driver import SCENARIOS, run_scenario

ALLOWED = Path(__file__).with_name("allowed.txt")


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_as_rabbitmq_does(name):
    """The same frames with the same fields in the same steps, but for the allowed differences."""
    with BrokerInMemory("rmq4.3") as broker:
        run = run_scenario(name, broker)
    same, lines = compare(name, run, read_known(ALLOWED))
    assert same, "\n".join(lines)
    assert broker.failures == []


def test_every_recording_has_its_scenario_and_every_allowed_difference_names_one():
    """Nothing recorded is left out, and no line of allowed.txt is for whatever differs."""
    assert sorted(SCENARIOS) == sorted(path.stem for path in RECORDED.glob("*.json"))
    assert [one.number for one in read_known(ALLOWED) if "*" in (one.scenario, one.what)] == []
