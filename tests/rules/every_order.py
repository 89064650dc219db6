"""Every order of events of a small quorum group: `python -m tests.rules.every_order`.

Three replicas, two messages, one crash, one election time-out, and the node comes back: the largest
bound that is explored to its end. It takes some minutes and two gigabytes, so the tests explore
three smaller ones. Larger bounds can be given; what is not explored to its end is said.
"""

import argparse
import sys
import time

from tests.rules.quorum_model import QuorumModel
from workbench.queues.raft import RIGHT, RULES_BROKEN
from workbench.sim.explorer import Bounds, explore


def main(arguments: list[str] | None = None) -> int:
    """Explore; 1 if something bad was found, 2 if a bound of the exploration was met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=2)
    parser.add_argument("--crashes", type=int, default=1)
    parser.add_argument("--timeouts", type=int, default=1)
    parser.add_argument("--stays-away", action="store_true", help="who has crashed never returns")
    parser.add_argument("--mutant", choices=tuple(RULES_BROKEN), default=None)
    parser.add_argument("--states", type=int, default=3_000_000, help="no more than these")
    parser.add_argument("--octets", type=int, default=6_000_000_000, help="nor more memory")
    given = parser.parse_args(arguments)
    model = QuorumModel(
        commands=given.commands,
        crashes=given.crashes,
        timeouts=given.timeouts,
        comes_back=not given.stays_away,
        rules=RULES_BROKEN.get(given.mutant, RIGHT),
    )
    began = time.perf_counter()
    found = explore(
        model,
        Bounds(states=given.states, octets=given.octets),
        stop_at_bad=given.mutant is not None,
    )
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{found.states:,} states, {found.bad} bad, in {seconds:.0f} s; ")
    if found.bad:
        sys.stdout.write(f"{model.broken(found.bad_states[0])}, after:\n")
        sys.stdout.writelines(f"  {' '.join(move)}\n" for move in found.shortest or ())
        return 1
    sys.stdout.write("every order of events was explored\n" if found.complete else found.stopped)
    return 0 if found.complete else 2


if __name__ == "__main__":
    sys.exit(main())
