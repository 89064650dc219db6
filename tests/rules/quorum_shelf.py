"""The mutant shelf: which seed catches a broken rule soonest, and what is the least run of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from workbench.queues.raft import RIGHT, RULES_BROKEN
from workbench.queues.raft_referee import InvariantBrokenError
from workbench.scenarios.quorum_chaos import MESSAGES, Chaos
from workbench.sim import VirtualClock

MUTANTS = tuple(RULES_BROKEN)
FEWER = (1, 2, 3, 5, 8, 13, 21, 34, 55)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """A run in which the referee found an invariant broken.

    Attributes:
        mutant: the rule that was broken; empty: none.
        seed, messages: of the run.
        events: that happened before.
        t_us: virtual time by then.
        invariant: its name.
        what: the referee's words.
    """

    mutant: str
    seed: int
    messages: int
    events: int
    t_us: int
    invariant: str
    what: str

    @property
    def command(self) -> str:
        """Opens this run as a page."""
        return page_command(self.seed, mutant=self.mutant, messages=self.messages)


def caught(mutant: str, seed: int, messages: int = MESSAGES) -> Caught | None:
    """What the referee has against a run with this mutant; None: nothing."""
    clock = VirtualClock()
    try:
        Chaos(clock, seed, rules=RULES_BROKEN.get(mutant, RIGHT), messages=messages).run()
    except InvariantBrokenError as error:
        return Caught(
            mutant=mutant,
            seed=seed,
            messages=messages,
            events=clock.overview()["steps"],
            t_us=clock.now_us,
            invariant=error.invariant,
            what=str(error),
        )
    return None


def catches(mutant: str, seeds: Iterable[int], enough: int | None = None) -> list[Caught]:
    """The runs of these seeds that catch a mutant, the one with the fewest events first.

    Args:
        mutant: the rule that is broken.
        seeds: in the order in which they are tried.
        enough: stop after so many; None: try all.
    """
    found = (one for seed in seeds if (one := caught(mutant, seed)) is not None)
    return sorted(islice(found, enough), key=lambda one: (one.events, one.seed))


def shortest(found: Iterable[Caught]) -> Caught:
    """The least run that could be made of these, with fewer messages and the same invariant.

    Args:
        found: at least one; the first are tried first, the most promising ones.
    """
    found = list(found)
    best = found[0]
    for one in found:
        for messages in FEWER:
            fewer = caught(one.mutant, one.seed, messages)
            if fewer is not None and fewer.invariant == one.invariant:
                best = min(best, fewer, key=lambda run: (run.events, run.messages))
                break
    return best


def page_command(seed: int, *, mutant: str = "", messages: int = MESSAGES) -> str:
    """The command that keeps a run's trace, makes a page of it, and opens that."""
    more = f" --set mutant={mutant}" if mutant else ""
    if messages != MESSAGES:
        more += f" --set messages={messages}"
    name = "-".join(["chaos", *([mutant] if mutant else []), str(seed)])
    return (
        f"workbench run quorum_chaos --set seed={seed}{more} -o {name}.parquet"
        f" && workbench export {name}.parquet -o {name}.html"
        f" && python -m webbrowser {name}.html"
    )
