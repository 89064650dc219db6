"""States per second: the explorer with the link model, against a plain search over plain tuples.

The rival is the same breadth-first search written as shortly as it goes: no bounds, no names, no
serial arithmetic, integers only. Targets: 145 states below 50 ms; 40 messages with six grants of
10 below 3.5 s and 300 MB; at least a quarter of the rival's states per second. And the memory that
the explorer charges for its states may not be less than what a fresh process takes for them, in
links of several shapes.

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


# Links whose states weigh little and much: few flows or a hundred in flight, counts that are small
# numbers or large ones, and so many states that the index has just grown.
SHAPES = (
    ("the large one", *LARGE, "spec", 0),
    ("the same from 2^31", *LARGE, "spec", 2**31),
    ("by the rule set, cut off", *LARGE, "set", 2**31),
    ("one long grant", 500, (1000,), "add", 2**31),
    ("a hundred flows, cut off", 50, tuple(range(300, 400)), "add", 2**31),
)
CUT = 350_000
FRESH = """
import re, sys
sys.path.insert(0, sys.argv[1])
from benchmarks.explore_lattice import CUT, SHAPES, Bounds, LinkModel, explore
from workbench.scenarios.rules import rule_named
from workbench.sim.explorer import _octets

def taken(what):
    with open("/proc/self/status") as status:
        return int(re.search(what + r":\\s+(\\d+)", status.read())[1]) * 1024

_, messages, grants, rule, start = SHAPES[int(sys.argv[2])]
model = LinkModel(
    messages=messages, grants=grants, rule=rule_named(rule).rule, initial_delivery_count=start
)
idle = taken("VmRSS")
found = explore(model, Bounds(states=CUT, octets=10**10))
peak = taken("VmHWM")
print(found.states, peak - idle, sum(map(_octets, found.ordered)), peak)
"""


def memory(shape):
    """States, and MB: what a fresh process takes for them, as charged, and the whole process."""
    root = str(Path(__file__).resolve().parent.parent)
    told = subprocess.run(
        [sys.executable, "-c", FRESH, root, str(shape)],
        capture_output=True, text=True, check=True, cwd=root,
    )  # fmt: skip
    states, *octets = map(int, told.stdout.split())
    return states, *(number / 1e6 for number in octets)


def main() -> int:
    """Print times, rates, ratio and memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    missed = []

    def target(what, kept):
        if not kept:
            missed.append(what)

    small, found = best(rounds, ours, *SMALL)
    print(f"{found[0]} states: {small * 1e3:.1f} ms (target {SMALL_MS} ms)")
    target("the small one", small * 1e3 < SMALL_MS)
    mine, (states, bad, complete) = best(rounds, ours, *LARGE)
    rival, (other, other_bad, _) = best(rounds, plain, *LARGE)
    assert (states, bad) == (other, other_bad), "the two searches disagree"
    assert complete
    print(f"{states:,} states: {mine:.2f} s (target {LARGE_S} s), {states / mine:,.0f} a second")
    target("the large one", mine < LARGE_S)
    print(f"plain search of the same model: {rival:.2f} s, {states / rival:,.0f} a second")
    print(f"share of the plain search's speed: {rival / mine:.2f} (target {SHARE})")
    target("the share", rival / mine > SHARE)
    if Path("/proc/self/status").exists():
        print(f"{'memory in MB':28}{'states':>9}{'taken':>7}{'charged':>9}{'whole process':>15}")
        for number, (name, *_) in enumerate(SHAPES):
            states, grown, charged, whole = memory(number)
            print(f"{name:28}{states:9,}{grown:7.0f}{charged:9.0f}{whole:15.0f}")
            target(f"memory, {name}", grown <= charged)
            if number == 0:
                target("memory", whole < LARGE_MB)
    print(f"MISSED: {', '.join(missed)}" if missed else "all targets reached")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
