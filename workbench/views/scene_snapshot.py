"""A broker as it is now, as a still of the stage: who publishes, queues, who consumes."""

from __future__ import annotations

from typing import Any

from workbench.trace.words import queue_at, visible

from .scene import FORMAT, VERSION
from .scene_live import say

Doc = dict[str, Any]
MOST = 5
"""Queues, publishers and consumers that are drawn; the others are in the words."""
_PUBLISHES, _QUEUE, _CONSUMES = 0.0, 2.4, 4.8


def snapshot_scene(found: Any) -> Doc:
    """The scene of a snapshot (`net.snapshot.Snapshot`): one step, nothing moves.

    Queues with most messages come first, and links with least credit.
    """
    queues = sorted(found.queues, key=lambda one: -(one.ready + (one.unacknowledged or 0)))[:MOST]
    names = {queue.name: f"queue {place}" for place, queue in enumerate(queues)}
    by_credit = sorted(found.links, key=lambda one: one.credit or 0)
    nodes: list[Doc] = []
    states: dict[str, Doc] = {}
    links: list[Doc] = []
    for place, queue in enumerate(queues):
        key = names[queue.name]
        nodes.append(_node(key, queue.name, queue.kind, _QUEUE, place))
        held = queue.unacknowledged
        some = "" if held is None else "-held"
        ready = say(f"snapshot.ready{some}", n=queue.ready, held=held)
        alone = queue.ready and not queue.consumers
        states[key] = {
            "facts": [ready, say("snapshot.consumers", n=queue.consumers)],
            "blocked": say("snapshot.nobody") if alone else None,
        }
    for sends, column in ((False, _PUBLISHES), (True, _CONSUMES)):
        mine = [one for one in by_credit if one.sends is sends][:MOST]
        for place, link in enumerate(mine):
            key = f"{'consumer' if sends else 'publisher'} {place}"
            at = queue_at(link.address)
            nodes.append(_node(key, link.connection, at or link.address, column, place))
            what = "prefetch" if link.delivery_count is None else "credit"
            what = "window" if link.window == 0 else what  # it counts before the credit left
            fact = say(f"snapshot.left-{what}", n="?" if link.credit is None else link.credit)
            states[key] = {"facts": [fact], "blocked": _blocked(link)}
            queue = names.get(at or "")
            if queue is not None:
                ends = (queue, key) if sends else (key, queue)
                links.append({"id": f"link {key}", "from": ends[0], "to": ends[1], "names": []})
    if not nodes:
        nodes, states = (
            [_node("broker", say("snapshot.broker"), found.broker, _QUEUE, 0)],
            {"broker": {}},
        )
    advice = found.advice()
    told = [*advice, *(say("snapshot.not-read", what=one) for one in found.unread)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "title": say("snapshot.title", broker=visible(found.broker) or say("snapshot.a-broker")),
        "idea": visible(advice[0], 300) if advice else say("snapshot.idea"),
        "layout": "chain",
        "nodes": nodes,
        "links": links,
        "ends": 1,
        "branches": [
            {
                "id": 0, "parent": None, "keeps": 0, "at": 0, "label": say("snapshot.now"),
                "acts": [], "frames": [],
                "steps": [
                    {
                        "t": 0,
                        "sentence": visible(told[min(1, len(told) - 1)], 300) if told else "",
                        "in_words": visible(" ".join(told), 4_000),
                        "nodes": states,
                    }
                ],
            }
        ],
    }  # fmt: skip


def _node(key: str, name: str, sub: str, column: float, row: int) -> Doc:
    return {
        "id": key, "role": "", "name": visible(name, 40), "sub": visible(sub, 40),
        "place": [column, float(row)],
    }  # fmt: skip


def _blocked(link: Any) -> str | None:
    if link.window == 0:
        return say("snapshot.closed")
    spent = link.credit == 0 and link.delivery_count is not None
    return say("snapshot.no-credit") if spent else None
