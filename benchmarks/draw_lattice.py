"""Drawing the lattice: seconds from the search's end to a Bokeh document, and lines that cross.

The rival is what Bokeh and networkx offer ready-made: `from_networkx` with `spring_layout`. Both
draw the same states and moves. Target: at most 400 states below 1 s.

    python benchmarks/draw_lattice.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import networkx
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.plotting import figure, from_networkx

from workbench.scenarios.link_model import LinkModel
from workbench.scenarios.rules import rule_named
from workbench.sim.explorer import explore
from workbench.views.lattice import LatticePicture
from workbench.views.lattice_layout import graph_of, places

LINK = {"messages": 10, "grants": (3, 6)}
LARGE = {"messages": 40, "grants": (10,) * 5}
TARGET_S = 1.0


def sent(chart):
    """The octets that a browser gets for a figure."""
    document = Document()
    document.add_root(chart)
    return len(serialize_json(document.to_json(deferred=False)))


def ours(found):
    """Our picture."""
    return sent(LatticePicture(found).figure)


def ready_made(found):
    """The rival."""
    graph = networkx.DiGraph(graph_of(found))
    chart = figure()
    chart.renderers.append(from_networkx(graph, networkx.spring_layout, seed=1))
    return sent(chart)


def crossings(graph, at):
    """How many pairs of lines cross, as drawn."""
    lines = [(at[a], at[b]) for a, b in {(a, b) for a, b in graph.edges() if a != b}]

    def side(a, b, c):
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])

    return sum(
        side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0
        for number, (a, b) in enumerate(lines)
        for c, d in lines[number + 1 :]
    )


def best(rounds, draw, found):
    """The quickest of several rounds, in seconds, and what was sent."""
    quickest, octets = float("inf"), 0
    for _ in range(rounds):
        gc.collect()
        began = time.perf_counter()
        octets = draw(found)
        quickest = min(quickest, time.perf_counter() - began)
    return quickest, octets


def main():
    """Print times, ratio, sizes and crossings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    for rule in ("spec", "set"):
        found = explore(LinkModel(rule=rule_named(rule).rule, **LINK))
        mine, octets = best(rounds, ours, found)
        rival, other = best(rounds, ready_made, found)
        graph = graph_of(found)
        spring = networkx.spring_layout(networkx.DiGraph(graph), seed=1)
        print(f"rule {rule}, {found.states} states: {mine:.3f} s (target {TARGET_S} s)", end="")
        print(f", {octets / 1e3:.0f} kB; from_networkx: {rival:.3f} s, {other / 1e3:.0f} kB")
        print(f"  time, rival to ours: {rival / mine:.1f}; lines that cross:", end=" ")
        print(f"{crossings(graph, places(graph)):,} against {crossings(graph, spring):,}")
    found = explore(LinkModel(rule=rule_named("spec").rule, **LARGE))
    mine, octets = best(rounds, ours, found)
    print(f"{found.states:,} states, counted by depth: {mine:.3f} s, {octets / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
