"""What several lessons ask of a link whose neighbour's target is slow."""

from __future__ import annotations

from workbench.exercises.measure import about, link_rate
from workbench.exercises.table import say
from workbench.scenarios.beside import Measured
from workbench.scenarios.run import Run

from .declare import Facts, facts


def beside_slow_target(fast: Run, slow: Run, link: str, slow_link: str) -> Facts:
    """How fast a link is beside a slow target: `as-fast` as before, `as-slow` as that, or `shared`.

    Args:
        fast: the run without the slow target.
        slow: the run with it.
        link: whose rate is asked.
        slow_link: the link to the slow target.

    Returns:
        Besides the answer `now`, `alone` and `crawl`: messages a second over the link in both runs,
        and over the slow one.
    """
    alone, now, crawl = (
        link_rate(played, of) for played, of in ((fast, link), (slow, link), (slow, slow_link))
    )
    assert crawl < alone
    assert not about(crawl, alone)
    other = "as-slow" if about(now, crawl) else "shared"
    return facts(
        "as-fast" if about(now, alone) else other,
        now=now,
        alone=alone,
        crawl=crawl,
        wrong={"a stall holds the connection": "as-slow", "links share one credit": "shared"},
        beside=Measured(
            unit=say("neighbours.rate"),
            heights={link: now, slow_link: crawl},
            yours={
                "a stall holds the connection": (link, crawl),
                "links share one credit": (link, alone / 2),
            },
        ),
    )
