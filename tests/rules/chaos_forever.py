"""Quorum queues under faults without end: `python -m tests.rules.chaos_forever --from 2000`.

Stops at the first run in which an invariant does not hold, and prints the command that opens it in
the stepper. `--runs` ends it earlier. With `--mutant NAME` it breaks a rule of Raft instead, and
prints the shortest run in which that is seen.
"""

import argparse
import itertools
import sys

from tests.rules.quorum_shelf import MUTANTS, catches, page_command, shortest
from workbench.queues.raft_referee import InvariantBrokenError
from workbench.scenarios.quorum_chaos import Chaos
from workbench.sim import VirtualClock

EVERY = 500
FIRST = 2_000  # seeds, if nothing is said, for a mutant
TRIED = 20  # of the runs that catch it, so many are made shorter


def main(arguments: list[str] | None = None) -> int:
    """Run seeds one after the other; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed")
    parser.add_argument("--runs", type=int, default=None, help="how many; left out: no end")
    parser.add_argument("--mutant", choices=MUTANTS, help="break this rule, and find the shortest")
    given = parser.parse_args(arguments)
    if given.mutant is not None:
        return shelf(given.mutant, range(given.first, given.first + (given.runs or FIRST)))
    seeds = itertools.count(given.first)
    for done, seed in enumerate(
        seeds if given.runs is None else itertools.islice(seeds, given.runs)
    ):
        try:
            Chaos(VirtualClock(), seed).run()
        except InvariantBrokenError as error:
            sys.stdout.write(f"seed {seed}: {error}\n  {page_command(seed)}\n")
            return 1
        if done % EVERY == EVERY - 1:
            sys.stdout.write(f"{done + 1} runs, up to seed {seed}, all well\n")
            sys.stdout.flush()
    return 0


def shelf(mutant: str, seeds: range) -> int:
    """Print the shortest run that catches a mutant; 1 if none of the seeds does."""
    found = catches(mutant, seeds)
    if not found:
        sys.stdout.write(f"{mutant}: {len(seeds)} seeds, and none catches it\n")
        return 1
    least = shortest(found[:TRIED])
    sys.stdout.write(
        f"{mutant}: caught by {len(found)} of {len(seeds)} seeds; the shortest run that was found"
        f" has {least.events} events:\n{least.what}\n  {least.command}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
