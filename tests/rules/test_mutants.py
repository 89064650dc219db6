"""Faults planted in the rules: each can still be planted, and ten are seen to be caught.

`python -m tests.mutants` plants every one and names the test that catches it.
"""

import pytest

from tests.mutants import MUTANTS, NAMED, caught_by, planted

TEN = (
    "credit below 0",
    "drain keeps the count",
    "publisher is not topped up",
    "window is not opened again",
    "echo is not answered",
    "vote twice",
    "commit of an old term's entry by count",
    "disk drops the last entry",
    "no dedupe",
    "no resend",
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_fault_is_planted_in_one_place(mutant):
    """The piece that it changes stands in its module once, and the module is Python afterwards."""
    compile(planted(mutant), mutant.module, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", TEN)
def test_a_planted_fault_is_caught(name):
    """A test that knows nothing of the fault fails."""
    assert caught_by(NAMED[name]) is not None
