"""A queue that changes hands: who got which message, and which came twice."""

from __future__ import annotations

from workbench.scenarios.handover import Seen, seen
from workbench.scenarios.run import Run
from workbench.trace.schema import CLIENT, SENT
from workbench.trace.words import count

from . import measure
from .table import Table


class Handover:
    """What happened in a run of the scenario `handover`.

    Args:
        played: a run in which the first consumer leaves.

    Attributes:
        leaver: who had the queue first.
        heir: who had it next.
        of_leaver, of_next: the messages that came to each, in order.
    """

    def __init__(self, played: Run) -> None:
        self.played = played
        self.arrivals: list[Seen] = seen(played)
        names = list(played.world.peers)
        self.leaver, self.heir = str(names[0]), str(names[1])
        self.of_leaver = [one for one in self.arrivals if one.consumer == self.leaver]
        self.of_next = [one for one in self.arrivals if one.consumer != self.leaver]

    @property
    def again(self) -> int:
        """How many messages came a second time."""
        return sum(one.again for one in self.arrivals)

    @property
    def arrived_before_leaving(self) -> int:
        """How many had come to the first consumer when it began to leave."""
        rows = self.played.rows
        stops = [
            row.seq
            for kind in ("flow", "detach")
            for row in measure.frames(rows, kind, event=SENT, from_peer=CLIENT)
            if row.vantage == f"{CLIENT}:{self.leaver}"
            and row.seq > self.played.start_seq
            and not (row.frame or {}).get("link_credit")
        ]
        end = min(stops, default=rows[-1].seq)
        return sum(one.seq <= end for one in self.of_leaver)

    @property
    def in_order(self) -> bool:
        """Whether everybody who was served was served in the queue's order."""
        return all(
            [one.message for one in part] == sorted(one.message for one in part)
            for part in (self.of_leaver, self.of_next)
        )

    def line(self) -> tuple[str, ...]:
        """The run as a line of the table."""
        first = self.of_next[0].message if self.of_next else None
        return (
            str(self.played.parameters["way"]),
            _range(self.of_leaver),
            _range(self.of_next),
            count(self.again, "message") if first is not None else "–",
            "kept" if self.in_order else "violated",
        )


def _range(arrivals: list[Seen]) -> str:
    if not arrivals:
        return "none"
    numbers = [one.message for one in arrivals]
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def handovers(*runs: Run) -> Table:
    """Ways of handing a queue over, a line each.

    Args:
        runs: of the scenario `handover`.
    """
    return Table(
        name="Ways of handing a queue over",
        head=("way", "the first one got", "the next one got", "came twice", "order"),
        lines=[Handover(played).line() for played in runs],
    )
