"""Share codes whose numbers no run can have: what is wrong is named, the rest is restored."""

from dataclasses import replace

import pytest

from workbench.scenarios import run
from workbench.scenarios.share import open_code, share_code
from workbench.trace.share import decode, encode


def changed(**parts):
    """The code of a small run with other parts."""
    return encode(replace(decode(share_code(run("credit"))), **parts))


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_credit": 0},
        {"batch_credit": 2**53},
        {"wire_latency_us": 2**53},
        {"processing_us": 2**53},
        {"max_frame_size": 0},
    ],
)
@pytest.mark.parametrize("acts", [[], [(20, "grant", {"link_credit": 3})]])
def test_a_preset_with_a_senseless_number_is_named_and_the_standard_taken(changes, acts):
    """The run opens with the preset as it is; nothing is raised for what a code holds."""
    restored = open_code(changed(preset_changes=changes, parameters={}, acts=acts))
    assert restored.run is not None
    assert any("preset" in problem for problem in restored.problems)
    assert restored.run.preset.name == "spec"
