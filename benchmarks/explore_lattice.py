"""States per second: the explorer with the link model, against a plain search over plain tuples.

The rival is the same breadth-first search written as shortly as it goes: no bounds, no names, no
serial arithmetic, integers only. Targets: 145 states below 50 ms; 40 messages with six grants of
10 below 3.5 s and 300 MB; at least a quarter of the rival's states per second.

    python benchmarks/explore_lattice.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from workbench.scenarios.link_model import LinkModel
from workbench.sim.explorer import Bounds, explore

SMALL = (10, (3, 6))
LARGE = (40, (10,) * 6)
SHARE = 0.25
SMALL_MS, LARGE_S, LARGE_MB = 50, 3.5, 300
ROOMY = Bounds(states=2_000_000, seconds=60, octets=2_000_000_000)


def ours(messages, grants):
    """The explorer's states, bad states and whether it is complete."""
    found = explore(LinkModel(messages=messages, grants=grants), ROOMY, now=time.monotonic)
    return found.states, found.bad, found.complete


def plain(messages, grants):
    """The rival."""
    start = (0, 0, messages, 0, 0, 0, 0, ())
    seen = {start: None}
    queue = [start]
    bad = 0
    for state in queue:
        dc, credit, left, rdc, issued, limit, flying, flows = state
        if dc + credit > limit:
            bad += 1
        after = []
        if issued < len(grants):
            g = grants[issued]
            after.append(
                (dc, credit, left, rdc, issued + 1, max(limit, rdc + g), flying, (*flows, (rdc, g)))
            )
        if credit > 0 and left > 0:
            after.append((dc + 1, credit - 1, left - 1, rdc, issued, limit, flying + 1, flows))
        if flying:
            after.append((dc, credit, left, rdc + 1, issued, limit, flying - 1, flows))
        if flows:
            fdc, fcredit = flows[0]
            new = max(0, fdc + fcredit - dc)
            after.append((dc, new, left, rdc, issued, limit, flying, flows[1:]))
        for one in after:
            if one not in seen:
                seen[one] = state
                queue.append(one)
    return len(seen), bad, True


def best(rounds, search, *arguments):
    """The quickest of several rounds, in seconds, and what was found."""
    quickest, found = float("inf"), None
    for _ in range(rounds):
        gc.collect()
        began = time.perf_counter()
        found = search(*arguments)
        quickest = min(quickest, time.perf_counter() - began)
    return quickest, found


def memory_mb():
    """What a fresh process takes for the large model: for the states, estimated, and in all."""
    code = (
        "import re, sys; sys.path.insert(0, sys.argv[1])\n"
        "from benchmarks.explore_lattice import LARGE, ROOMY, LinkModel, explore\n"
        "from workbench.sim.explorer import OCTETS_PER_STATE\n"
        "def taken():\n"
        "    with open('/proc/self/status') as status:\n"
        "        return int(re.search(r'VmRSS:\\s+(\\d+)', status.read())[1]) * 1024\n"
        "idle = taken()\n"
        "found = explore(LinkModel(messages=LARGE[0], grants=LARGE[1]), ROOMY)\n"
        "states = sum(OCTETS_PER_STATE + sys.getsizeof(one) for one in found.ordered)\n"
        "print(taken() - idle, states, taken())"
    )
    root = str(Path(__file__).resolve().parent.parent)
    told = subprocess.run(
        [sys.executable, "-c", code, root], capture_output=True, text=True, check=True, cwd=root
    )
    return [int(octets) / 1e6 for octets in told.stdout.split()]


def main():
    """Print times, rates, ratio and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    small, found = best(rounds, ours, *SMALL)
    print(f"{found[0]} states: {small * 1e3:.1f} ms (target {SMALL_MS} ms)")
    mine, (states, bad, complete) = best(rounds, ours, *LARGE)
    rival, (other, other_bad, _) = best(rounds, plain, *LARGE)
    assert (states, bad) == (other, other_bad), "the two searches disagree"
    assert complete
    print(f"{states:,} states: {mine:.2f} s (target {LARGE_S} s), {states / mine:,.0f} a second")
    print(f"plain search of the same model: {rival:.2f} s, {states / rival:,.0f} a second")
    print(f"share of the plain search's speed: {rival / mine:.2f} (target {SHARE})")
    if Path("/proc/self/status").exists():
        grown, estimated, whole = memory_mb()
        print(f"memory: {grown:.0f} MB for the states (estimated: {estimated:.0f} MB),", end=" ")
        print(f"{whole:.0f} MB the whole process (target {LARGE_MB})")


if __name__ == "__main__":
    main()
