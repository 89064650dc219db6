"""Where the states of a lattice are drawn: a column for each depth, few crossing lines.

The explorer's states and moves become a networkx graph. Columns come from the depth; within a
column states are sorted again and again by the mean place of their neighbours in the columns before
and behind, which untangles most of the lines.
"""

from __future__ import annotations

from typing import Any

import networkx

from workbench.sim.explorer import Exploration

SWEEPS = 8
Places = dict[int, tuple[float, float]]


def graph_of(found: Exploration[Any, Any]) -> networkx.MultiDiGraph:
    """The states as nodes 0, 1, ... with `depth` and `bad`, the moves as edges with `move`."""
    graph = networkx.MultiDiGraph()
    bad = set(found.bad_at)
    for index, depth in enumerate(found.depths()):
        graph.add_node(index, depth=depth, bad=index in bad)
    for source, move, target in found.edges():
        graph.add_edge(source, target, move=move)
    return graph


def places(graph: networkx.MultiDiGraph) -> Places:
    """Node to (x, y): x is the depth, y counts the places of the tallest column from its middle."""
    columns: dict[int, list[int]] = {}
    for node, depth in graph.nodes(data="depth"):
        columns.setdefault(depth, []).append(node)
    depths = sorted(columns)
    rank = {node: place for column in columns.values() for place, node in enumerate(column)}
    heights = {depth: len(column) for depth, column in columns.items()}

    def share(node: int) -> float:
        """Where a node stands in its column, from 0 to 1."""
        return (rank[node] + 0.5) / heights[graph.nodes[node]["depth"]]

    def wanted(node: int, neighbours: Any) -> float:
        """Mean place of the neighbours; its own if there are none."""
        shares = [share(other) for other in neighbours(node)]
        return sum(shares) / len(shares) if shares else share(node)

    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        neighbours = graph.predecessors if forward else graph.successors
        for depth in depths if forward else reversed(depths):
            keys = {node: (wanted(node, neighbours), node) for node in columns[depth]}
            columns[depth] = sorted(columns[depth], key=keys.__getitem__)
            rank.update((node, place) for place, node in enumerate(columns[depth]))
    return {
        node: (float(depth), place - (len(column) - 1) / 2)
        for depth, column in columns.items()
        for place, node in enumerate(column)
    }
