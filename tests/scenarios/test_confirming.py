"""Three ways to confirm: what cannot be is refused. What they do is in tests/rules."""

import pytest

from workbench.queues import QueueError
from workbench.scenarios import ParameterError
from workbench.scenarios.confirming import PIPELINED, publish_for


@pytest.mark.parametrize(
    ("strategy", "numbers", "why"),
    [
        ("at once", {}, "strategy 'at once'; legal: one-at-a-time, batches, pipelined"),
        (PIPELINED, {"n": 0}, "n is 0; legal: 1 or more messages"),
        (PIPELINED, {"send_us": -1}, "send_us is -1; legal: 0 or more"),
        (PIPELINED, {"virtual_us": 0}, "virtual_us is 0; legal: 1 or more"),
        (PIPELINED, {"virtual_us": -5}, "virtual_us is -5; legal: 1 or more"),
        (PIPELINED, {"publishers": 0}, "publishers is 0; legal: 1 or more"),
        (PIPELINED, {"fsync_us": -1}, "an fsync of -1 us"),
        (PIPELINED, {"latency_us": -1}, "latency_us is -1; legal: 0 or more"),
        (PIPELINED, {"replicas": 2}, "a majority of 2 is 2.*legal: 1, 3, 5, 7"),
        (PIPELINED, {"replicas": 0}, "legal: "),
    ],
)
def test_numbers_that_make_no_sense_are_refused(strategy, numbers, why):
    """In words that say what is legal."""
    with pytest.raises((ParameterError, QueueError), match=why):
        publish_for(strategy, **numbers)
