"""A run of `quorum_chaos` as a scenario, so that it opens in the stepper.

The same seed is the same run as in the tests. With a mutant the run ends where the referee finds an
invariant broken, and says which.
"""

from __future__ import annotations

from workbench.queues.raft import RIGHT, RULES_BROKEN
from workbench.queues.raft_referee import InvariantBrokenError

from .declare import Kind, Parameter, Scenario
from .quorum_chaos import MESSAGES, Chaos
from .registry import register
from .world import World

NONE = "none"
LAST_LOOK_US = 30_000_000


def build(world: World) -> None:
    """The cluster, its clients and the faults of a seed."""

    def broken(error: InvariantBrokenError) -> None:
        if not world.fault:
            world.fault = str(error)
            world.tap.internal(
                t_us=world.clock.now_us,
                event="error",
                vantage="referee",
                kind=error.invariant,
                extra={"why": str(error)},
            )

    def last_look() -> None:
        try:
            chaos.clients.check()
        except InvariantBrokenError as error:
            broken(error)

    chaos = Chaos(
        world.clock,
        world.number("seed"),
        world.tap,
        rules=RULES_BROKEN.get(world.text("mutant"), RIGHT),
        messages=world.number("messages"),
        report=broken,
    )
    world.clock.call_at(LAST_LOOK_US, last_look)


QUORUM_CHAOS = register(
    Scenario(
        name="quorum_chaos",
        title="A quorum queue under faults",
        doc=(
            "Publishers and a consumer of one quorum queue, while nodes crash, ways are cut and"
            " disks are slow, all drawn from a seed; a referee watches."
        ),
        parameters=(
            Parameter(
                name="seed",
                default=0,
                minimum=0,
                maximum=4294967295,
                doc="from which everything is drawn",
            ),
            Parameter(
                name="mutant",
                kind=Kind.TEXT,
                default=NONE,
                choices=(NONE, *RULES_BROKEN),
                doc="a rule of Raft that every replica breaks",
            ),
            Parameter(
                name="messages",
                default=MESSAGES,
                minimum=1,
                maximum=1_000,
                unit="messages",
                doc="that each of the two publishers sends",
            ),
        ),
        actions=(),
        build=build,
    )
)
