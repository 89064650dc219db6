"""Less than a minute at a broker: runs for a large trace with something wrong, for lesson 10.

One recorder, one run for each client. Most are shops: each publishes to two queues, and
at noon all of them have nothing to send. One client publishes orders, and one empties an archive
over a long wire. Meanwhile a resource alarm comes and goes, and one queue hangs for a
while. All of it is done by acts; what comes of it nobody writes down.

The throughput has three dips: one in which nothing was there to send, one in which every publisher
was held, and a shallow one in which a single link was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.trace.copies import Part

from .run import Run, run

__all__ = ["Plan", "shift_parts", "shop_names"]

Act = tuple[str, dict[str, Any]]
Tell = Callable[[int, int, str], None]
"""Called with how many steps are done, how many there are, and what is being done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """When what happens, in seconds since the start, and how fast messages come.

    Attributes:
        noon: the shops' applications publish nothing.
        alarm: a resource of the broker runs short.
        hang: the queue of the orders takes nothing in.
        over: nobody publishes any more.
        shops: how many of them there are.
        shop, orders: messages a second over each of a shop's links, and of the links for orders.
        archive: messages in the archive; its receiver has little credit and a long wire.
    """

    noon: tuple[int, int] = (8, 15)
    alarm: tuple[int, int] = (22, 24)
    hang: tuple[int, int] = (29, 36)
    over: int = 45
    shops: int = 30
    shop: int = 30
    orders: int = 100
    archive: int = 4_500


ONE, BOTH, HANGS = "q1", "all", "q2"
Span = tuple[int, str, str | None]
"""Until when, over which links, and the act that comes then."""


def shift_parts(plan: Plan = Plan(), tell: Tell = lambda *_: None) -> list[Part]:
    """The runs, each with the names of its copies.

    Args:
        plan: when what happens.
        tell: told before each run.
    """
    makers: list[tuple[str, Callable[[Plan], Run], tuple[str, ...]]] = [
        ("shops", _shop, shop_names(plan.shops)),
        ("orders", _orders, ("orders",)),
        ("archive", _archive, ("archive",)),
    ]
    parts = []
    for place, (what, make, names) in enumerate(makers):
        tell(place, len(makers), what)
        parts.append(Part(rows=make(plan).rows, runs=names))
    tell(len(makers), len(makers), "")
    return parts


def shop_names(shops: int) -> tuple[str, ...]:
    """The names of the copies of the first part, which are clients of the same kind."""
    return tuple(f"shop-{number:02}" for number in range(1, shops + 1))


def _shop(plan: Plan) -> Run:
    """Two links; over the second one nothing is published at noon. The alarm holds both."""
    spans = [
        (plan.noon[0], BOTH, None),
        (plan.noon[1], ONE, None),
        (plan.alarm[0], BOTH, "alarm"),
        (plan.alarm[1], BOTH, "clear"),
        (plan.over, BOTH, None),
    ]
    return _played(spans, plan.shop)


def _orders(plan: Plan) -> Run:
    """The same client with more to do, no noon, and a queue that hangs."""
    spans = [
        (plan.alarm[0], BOTH, "alarm"),
        (plan.alarm[1], BOTH, "clear"),
        (plan.hang[0], BOTH, "stall"),
        (plan.hang[1], BOTH, "resume"),
        (plan.over, BOTH, None),
    ]
    return _played(spans, plan.orders)


def _played(spans: Sequence[Span], rate: int) -> Run:
    """A client with two links; when all of a span is published, an act."""
    played = run("publishers", "rmq4.3", {"queues": 2, "service_us": "200", "rate": rate})
    acts: list[Act] = []
    begun = 0
    for until, links, then in spans:
        acts.append(("publish", {"queue": links, "count": (until - begun) * rate}))
        if then is not None:
            acts.append((then, {"queue": HANGS} if then in {"stall", "resume"} else {}))
        begun = until
    return played.act_each(acts)


def _archive(plan: Plan) -> Run:
    """A receiver that grants a few, waits until all have come, and grants again; a long wire."""
    return run(
        "credit",
        "rmq4.3",
        {
            "messages": plan.archive,
            "policy": "batch-then-wait",
            "n": 8,
            "latency_us": 40_000,
            "acknowledge": "auto",
        },
    )
