"""Quorum queues under faults without end: `python -m tests.rules.chaos_forever --from 2000`.

Stops at the first run in which an invariant does not hold, and prints the command that opens it in
the stepper. `--runs` ends it earlier.
"""

import argparse
import itertools
import sys

from workbench.queues.raft_referee import InvariantBrokenError
from workbench.scenarios.quorum_chaos import Chaos, stepper_command
from workbench.sim import VirtualClock

EVERY = 500


def main(arguments: list[str] | None = None) -> int:
    """Run seeds one after the other; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0, help="first seed")
    parser.add_argument("--runs", type=int, default=None, help="how many; left out: no end")
    given = parser.parse_args(arguments)
    seeds = itertools.count(given.first)
    for done, seed in enumerate(
        seeds if given.runs is None else itertools.islice(seeds, given.runs)
    ):
        try:
            Chaos(VirtualClock(), seed).run()
        except InvariantBrokenError as error:
            sys.stdout.write(f"seed {seed}: {error}\n  {stepper_command(seed)}\n")
            return 1
        if done % EVERY == EVERY - 1:
            sys.stdout.write(f"{done + 1} runs, up to seed {seed}, all well\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
