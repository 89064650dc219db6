"""The model's rates over two links of one session, beside what was measured on real brokers.

The measured numbers are data and not results of the model: RabbitMQ 4.3.6, one node, queues with
one replica, two senders over AMQP 1.0 (messages settled, 12 octets) and two over AMQP 0-9-1 at the
same time, 10 s, three runs each; client and broker on the same machine with two cores. The disk's
own fdatasync took 0.30 to 0.40 ms in the mean; the slower ones are the same disk with a pause of 5
and 20 ms after each call. The article's counts are in `workbench.scenarios.two_senders`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from workbench import presets
from workbench.scenarios.run import run
from workbench.scenarios.streaming import stream
from workbench.scenarios.two_senders import CLASSIC, QUORUM, counted
from workbench.views.charts import curve_chart

from . import measure
from .measure import link_rate
from .progress_line import ProgressLine
from .table import Table

PRESET = "rmq4.3"  # whose brokers were measured
SECONDS = 10
MESSAGES = 2_500  # enough for some ten fsyncs
FSYNCS = 60  # so many, and the messages on their way at the end are few among all
LEAST_MS = 250
NS_PER_S = 1_000_000_000
NS_PER_US = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured point.

    Attributes:
        fsync_us: mean time of an fsync.
        least, most: messages in the quorum queue after 10 s, of three runs.
        classic: the same of the classic queue.
        words: what was done to the disk.
    """

    fsync_us: int
    least: int
    most: int
    classic: tuple[int, int]
    words: str

    @property
    def rate(self) -> float:
        """Messages a second into the quorum queue, in the middle of the runs."""
        return (self.least + self.most) / 2 / SECONDS

    @property
    def classic_rate(self) -> float:
        """The same for the classic queue."""
        return sum(self.classic) / 2 / SECONDS


MEASURED = (
    Measured(
        fsync_us=350,
        least=188_023,
        most=189_493,
        classic=(184_920, 191_299),
        words="the disk as it is",
    ),
    Measured(
        fsync_us=5_350,
        least=95_574,
        most=102_829,
        classic=(248_485, 286_875),
        words="5 ms more",
    ),
    Measured(
        fsync_us=20_350,
        least=38_675,
        most=39_587,
        classic=(296_126, 330_906),
        words="20 ms more",
    ),
)


@cache
def modelled(fsync_us: int) -> float:
    """Messages a second over an AMQP 1.0 link to a quorum queue, as the model has it.

    Credit, confirms and fsync are all that costs time: no processor does.
    """
    played = run("two_targets", PRESET, {"fsync_us": fsync_us, "settled": True, "latency_us": 0})
    return link_rate(played.then("publish", queue=QUORUM, count=MESSAGES, rate=0), QUORUM)


def transfer_ns() -> int:
    """What one transfer took of the measured machine's processor, client and broker together.

    Read off the sum of both links with the disk as it is, the run in which nothing but the
    processor was short; how the links share it is no part of it.
    """
    first = MEASURED[0]
    return round(NS_PER_S / (first.rate + first.classic_rate))


@cache
def with_processor(fsync_us: int) -> tuple[float, float]:
    """The same, and into a classic queue beside it, where each transfer takes `transfer_ns`."""
    us, ns = divmod(transfer_ns(), NS_PER_US)
    preset = replace(
        presets.get(PRESET),
        session_us=us,
        session_ns=ns,
        queue_enqueue_us=0,
        node_latency_us=0,
    )
    run_ms = max(LEAST_MS, FSYNCS * fsync_us // NS_PER_US)
    given = {"run_ms": run_ms, "fsync_us": fsync_us, "latency_us": 0, "message_bytes": 12}
    with ProgressLine(f"two senders, fsync {measure.milliseconds(fsync_us):g} ms") as line:
        done = stream("two_senders", preset, given, told=lambda now_us: line.at(now_us, run_ms))
    found = {one.kind: one.messages / run_ms * 1_000 for one in counted(done.world)}
    return found[QUORUM], found[CLASSIC]


def real_chart(fsync_us: Sequence[int]) -> Any:
    """The model's curves over these fsync times and its own points, and the measured points."""
    times = sorted({*fsync_us, *(one.fsync_us for one in MEASURED)})
    return curve_chart(
        {
            "model, disk alone": [(us / 1000, modelled(us)) for us in times],
            "model, disk and processor": [(us / 1000, with_processor(us)[0]) for us in times],
        },
        measured={"measured, RabbitMQ 4.3": [(one.fsync_us / 1000, one.rate) for one in MEASURED]},
        across="fsync (ms)",
        up="messages a second",
        title="A link to a quorum queue: model and measurement",
        logarithmic=True,
    )


def _residual(model: float, real: float) -> str:
    return f"{(model / real - 1) * 100:+,.0f} %"


def real_table() -> Table:
    """Measurement and both models, link by link, and how far apart they are."""
    lines = []
    for one in MEASURED:
        disk = f"{one.words} ({measure.milliseconds(one.fsync_us):g} ms)"
        quorum, classic = with_processor(one.fsync_us)
        alone = modelled(one.fsync_us)
        low, high = one.classic
        lines += [
            (
                f"quorum, {disk}",
                f"{one.least / SECONDS:,.0f} to {one.most / SECONDS:,.0f}",
                f"{alone:,.0f}",
                _residual(alone, one.rate),
                f"{quorum:,.0f}",
                _residual(quorum, one.rate),
            ),
            (
                f"classic, {disk}",
                f"{low / SECONDS:,.0f} to {high / SECONDS:,.0f}",
                "",
                "",
                f"{classic:,.0f}",
                _residual(classic, one.classic_rate),
            ),
        ]
    head = (
        "a second into",
        "measured",
        "model, disk alone",
        "residual",
        "model, disk and processor",
        "residual",
    )
    return Table(name="Model and measurement", head=head, lines=lines)


@cache
def senders_table(run_ms: int = 500) -> Table:
    """The article's two_senders, AMQP 1.0 half, with preset blog2024, played now.

    Args:
        run_ms: virtual time; the article's counts are for ten seconds, and are cut to it.
    """
    with ProgressLine("the article's two senders") as line:
        done = stream(
            "two_senders",
            parameters={"run_ms": run_ms},
            told=lambda now_us: line.at(now_us, run_ms),
        )
    found = counted(done.world)
    total, article = sum(one.messages for one in found), sum(one.article for one in found)
    rows = [(one.kind, one.messages, one.article) for one in found]
    lines = [
        (kind, f"{model:,}", f"{real:,.0f}", f"{(model / real - 1) * 100:+.1f} %")
        for kind, model, real in [*rows, ("both", total, article)]
    ]
    head = (f"two senders, {run_ms} ms", "model", "article, in as long", "residual")
    return Table(name="Two senders, model and article", head=head, lines=lines)
