"""A run of `quorum_chaos` as a scenario, so that it opens on the stage.

The same seed is the same run as in the tests. With a mutant the run ends where the referee finds an
invariant broken, and says which.
"""

from __future__ import annotations

from typing import Annotated

from workbench.presets import UINT_MAX
from workbench.queues.raft import RIGHT, RULES_BROKEN
from workbench.queues.raft_referee import InvariantBrokenError

from .declare import OneOf, Whole, scenario
from .quorum_chaos import MESSAGES, Chaos
from .world import World

NONE = "none"
LAST_LOOK_US = 30_000_000  # all was mended long before
MESSAGE_US = 90_000  # twice what a publisher takes for one


@scenario("A quorum queue under faults")
def quorum_chaos(
    world: World,
    seed: Annotated[int, Whole(0, UINT_MAX), "from which everything is drawn"] = 0,
    mutant: Annotated[
        str, OneOf(NONE, *RULES_BROKEN), "a rule of Raft that every replica breaks"
    ] = NONE,
    messages: Annotated[
        int, Whole(1, 1_000, "messages"), "that each of the two publishers sends"
    ] = MESSAGES,
) -> None:
    """Publishers and a consumer of one quorum queue, under faults drawn from a seed.

    Nodes crash, ways are cut and disks are slow; a referee watches.
    """

    def broken(error: InvariantBrokenError) -> None:
        if not world.fault:
            world.fault = str(error)
            world.record("error", "referee", kind=error.invariant, extra={"why": str(error)})

    def last_look() -> None:
        try:
            chaos.clients.check()
        except InvariantBrokenError as error:
            broken(error)

    chaos = Chaos(
        world.clock,
        seed,
        world.tap,
        rules=RULES_BROKEN.get(mutant, RIGHT),
        messages=messages,
        report=broken,
    )
    world.start_seq = 0  # nothing is set up
    world.clock.call_at(max(LAST_LOOK_US, messages * MESSAGE_US), last_look)
