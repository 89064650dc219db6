"""Quorum queues under faults: seeded runs with a referee, and mutants that it must catch.

100 of them in every test run, 2,000 in the long one; `python -m tests.rules.chaos_forever` goes on
from there without end.
"""

from dataclasses import dataclass, field
from functools import cache

import pytest

from tests.rules.quorum_shelf import MUTANTS, catches, caught, page_command, shortest
from workbench.queues.raft import RIGHT, RULES_BROKEN
from workbench.queues.raft_referee import (
    CONFIRMED_IS_SAFE,
    ELECTION_SAFETY,
    INVARIANTS,
    LEADER_COMPLETENESS,
    RETURNS,
    STAYS_ON_DISK,
    InvariantBrokenError,
)
from workbench.scenarios import run
from workbench.scenarios.quorum_chaos import Chaos
from workbench.sim import VirtualClock

SEEDS = 100
ALL_SEEDS = 2_000
SHELF = 100  # of the same seeds: as many as it takes to catch every mutant a few times
ENOUGH = 4
CAUGHT_BY = {
    "commit-before-fsync": CONFIRMED_IS_SAFE,
    "leader-counts-itself-early": CONFIRMED_IS_SAFE,
    "confirm-before-majority": CONFIRMED_IS_SAFE,
    "commit-of-an-old-term": LEADER_COMPLETENESS,
    "vote-not-persisted": ELECTION_SAFETY,
    "old-entries-cut-the-log": STAYS_ON_DISK,
    "returns-in-reverse": RETURNS,
}


@dataclass
class Sum:
    """What happened over all runs."""

    tallies: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    def share(self, condition):
        """In which share of the runs something was so."""
        return sum(map(condition, self.tallies)) / len(self.tallies)


def played(seeds):
    """Seeds, run once each."""
    found = Sum()
    for seed in seeds:
        try:
            found.tallies.append(Chaos(VirtualClock(), seed).run())
        except InvariantBrokenError as error:
            found.failures.append(f"seed {seed}: {error}\n  {page_command(seed)}")
    return found


@pytest.fixture(scope="module")
def runs():
    """The seeds of every test run."""
    return played(range(SEEDS))


def test_every_invariant_holds_in_every_run(runs):
    """What the Raft paper says, what is on disks, and what clients were promised."""
    assert not runs.failures, "\n" + "\n".join(runs.failures[:5])


@pytest.mark.slow
def test_every_invariant_holds_in_2_000_runs():
    """The seeds after those of every test run."""
    failures = played(range(SEEDS, ALL_SEEDS)).failures
    assert not failures, "\n" + "\n".join(failures[:5])


def test_runs_have_200_commands_and_3_faults(runs):
    """A run in which little happens proves little; a queue that refuses messages has fewer."""
    assert runs.share(lambda tally: tally.commands >= 200) >= 0.9
    assert runs.share(lambda tally: tally.commands >= 50) == 1
    assert runs.share(lambda tally: tally.faults >= 3) == 1


def test_half_of_the_runs_have_a_change_of_leader(runs):
    """And in those publishers sent something again."""
    assert runs.share(lambda tally: tally.leader_changes > 0) >= 0.5
    assert runs.share(lambda tally: tally.resent > 0) >= 0.5


def test_a_tenth_of_the_runs_crash_between_write_and_fsync(runs):
    """When a batch was written and its fsync had not come back."""
    assert runs.share(lambda tally: tally.torn > 0) >= 0.1


def test_the_same_seed_is_the_same_run():
    """A failing seed can be opened in the stepper, for nothing else than the seed is drawn from."""
    for seed in (6, 7, 8):
        assert Chaos(VirtualClock(), seed).run() == Chaos(VirtualClock(), seed).run()


@cache
def on_the_shelf(name):
    """What catches a mutant, the soonest first."""
    return catches(name, range(SHELF), ENOUGH)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_caught_by_the_invariant_that_it_breaks(name):
    """By that one alone, in many of the same seeds; each run ends where it is seen."""
    found = on_the_shelf(name)
    assert len(found) >= 3
    assert {one.invariant for one in found} == {CAUGHT_BY[name]}
    assert CAUGHT_BY[name] in INVARIANTS


@pytest.mark.parametrize("name", MUTANTS)
def test_the_shortest_run_of_a_mutant_has_fewer_messages_and_opens_in_the_stepper(name):
    """The least of the runs that were found, by events; the scenario ends with the same words."""
    found = on_the_shelf(name)
    least = shortest(found)
    assert least.events < found[0].events and least.messages < found[0].messages
    assert least.invariant == CAUGHT_BY[name]
    assert caught(name, least.seed, least.messages) == least
    given = {"seed": least.seed, "mutant": name, "messages": least.messages}
    played = run("quorum_chaos", parameters=given)
    assert played.note == least.what
    assert [row.kind for row in played.rows if row.event == "error"] == [least.invariant]
    for word in (f"seed={least.seed} ", f"mutant={name} ", f"messages={least.messages} "):
        assert word in least.command
    assert caught("", least.seed, least.messages) is None  # with every rule kept it is harmless


def test_the_shelf_has_one_mutant_for_every_rule():
    """Each mutant breaks exactly one of the rules, and each rule is broken by one."""
    names = RIGHT.__dataclass_fields__
    broken = [
        [name for name in names if not getattr(rules, name)] for rules in RULES_BROKEN.values()
    ]
    assert sorted(broken) == sorted([name] for name in names)
