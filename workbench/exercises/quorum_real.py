"""The model's rate over a link to a quorum queue, beside what was measured on a real RabbitMQ.

The measured numbers are data and not results of the model: RabbitMQ 4.3.6, one node, queues with
one replica, two senders over AMQP 1.0 (messages settled, 12 octets) and two over AMQP 0-9-1 at the
same time, 10 s, three runs each; client and broker on the same machine with two cores. The disk's
own fdatasync took 0.30 to 0.40 ms in the mean; the slower ones are the same disk with a pause of 5
and 20 ms after each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from workbench.scenarios.run import run
from workbench.views.curve_chart import curve_chart

from . import measure
from .publish_runs import rate, then
from .quorum_runs import PRESET
from .table import Table

SECONDS = 10
QUEUE = "quorum"
MESSAGES = 2_500  # enough for some ten fsyncs


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured point.

    Attributes:
        fsync_us: mean time of an fsync.
        least, most: messages in the quorum queue after 10 s, of three runs.
        words: what was done to the disk.
    """

    fsync_us: int
    least: int
    most: int
    words: str

    @property
    def rate(self) -> float:
        """Messages a second, in the middle of the runs."""
        return (self.least + self.most) / 2 / SECONDS


MEASURED = (
    Measured(fsync_us=350, least=188_023, most=189_493, words="the disk as it is"),
    Measured(fsync_us=5_350, least=95_574, most=102_829, words="5 ms more"),
    Measured(fsync_us=20_350, least=38_675, most=39_587, words="20 ms more"),
)


@cache
def modelled(fsync_us: int) -> float:
    """Messages a second over an AMQP 1.0 link to a quorum queue, as the model has it.

    Credit, confirms and fsync are all that costs time: no processor does.
    """
    played = run("two_targets", PRESET, {"fsync_us": fsync_us, "settled": True, "latency_us": 0})
    return rate(then(played, "publish", queue=QUEUE, count=MESSAGES, rate=0), QUEUE)


def real_chart(fsync_us: Sequence[int]) -> Any:
    """The model's curve over these fsync times and its own points, and the measured points."""
    times = sorted({*fsync_us, *(one.fsync_us for one in MEASURED)})
    return curve_chart(
        {"model, RabbitMQ 4.3's rules": [(us / 1000, modelled(us)) for us in times]},
        measured={"measured, RabbitMQ 4.3": [(one.fsync_us / 1000, one.rate) for one in MEASURED]},
        across="fsync (ms)",
        up="messages a second",
        title="A link to a quorum queue: model and measurement",
        logarithmic=True,
    )


def real_table() -> Table:
    """Model and measurement, how far apart they are, and what two fsyncs were good for."""
    lines = []
    for one in MEASURED:
        model = modelled(one.fsync_us)
        pair = 2 * one.fsync_us / measure.MICROSECONDS
        lines.append(
            (
                f"{one.words} ({measure.milliseconds(one.fsync_us):g} ms)",
                f"{one.least / SECONDS:,.0f} to {one.most / SECONDS:,.0f}",
                f"{model:,.0f}",
                f"{(model / one.rate - 1) * 100:+,.0f} %",
                f"{model * pair:,.0f}",
                f"{one.rate * pair:,.0f}",
            )
        )
    head = (
        "fsync",
        "measured a second",
        "model",
        "residual",
        "messages in two fsyncs: model",
        "measured",
    )
    return Table(name="Model and measurement", head=head, lines=lines)
