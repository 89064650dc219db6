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
from workbench.trace.given import takes
from workbench.views.charts import curve_chart

from . import measure
from .measure import link_rate
from .progress_line import ProgressLine
from .table import Table, say, table_of

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
        more_us: by which an fsync was made longer.
    """

    fsync_us: int
    least: int
    most: int
    classic: tuple[int, int]
    more_us: int

    @property
    def rate(self) -> float:
        """Messages a second into the quorum queue, in the middle of the runs."""
        return (self.least + self.most) / 2 / SECONDS

    @property
    def classic_rate(self) -> float:
        """The same for the classic queue."""
        return sum(self.classic) / 2 / SECONDS


MEASURED = (
    Measured(fsync_us=350, least=188_023, most=189_493, classic=(184_920, 191_299), more_us=0),
    Measured(fsync_us=5_350, least=95_574, most=102_829, classic=(248_485, 286_875), more_us=5_000),
    Measured(
        fsync_us=20_350, least=38_675, most=39_587, classic=(296_126, 330_906), more_us=20_000
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
    with ProgressLine(say("real.running", ms=_ms(fsync_us))) as line:
        done = stream("two_senders", preset, given, told=lambda now_us: line.at(now_us, run_ms))
    found = {one.kind: one.messages / run_ms * 1_000 for one in counted(done.world)}
    return found[QUORUM], found[CLASSIC]


@takes
def real_chart(fsync_us: Sequence[int]) -> Any:
    """The model's curves over these fsync times and its own points, and the measured points."""
    times = sorted({*fsync_us, *(one.fsync_us for one in MEASURED)})
    return curve_chart(
        {
            say("real.disk"): [(us / 1000, modelled(us)) for us in times],
            say("real.processor"): [(us / 1000, with_processor(us)[0]) for us in times],
        },
        measured={say("real.measured"): [(one.fsync_us / 1000, one.rate) for one in MEASURED]},
        across=say("real.across"),
        up=say("real.up"),
        title=say("real.title"),
        logarithmic=True,
    )


def _ms(time_us: int) -> str:
    return f"{measure.milliseconds(time_us):g}"


def _range(least: float, most: float) -> str:
    return say("real.range", least=f"{least / SECONDS:,.0f}", most=f"{most / SECONDS:,.0f}")


def _residual(model: float, real: float) -> str:
    return f"{(model / real - 1) * 100:+,.0f} %"


def real_table() -> Table:
    """Measurement and both models, link by link, and how far apart they are."""
    lines = []
    for one in MEASURED:
        disk = say("real.more", ms=_ms(one.more_us)) if one.more_us else say("real.as-it-is")
        told = {"disk": disk, "ms": _ms(one.fsync_us)}
        quorum, classic = with_processor(one.fsync_us)
        alone = modelled(one.fsync_us)
        lines += [
            (
                say("real.quorum", **told),
                _range(one.least, one.most),
                f"{alone:,.0f}",
                _residual(alone, one.rate),
                f"{quorum:,.0f}",
                _residual(quorum, one.rate),
            ),
            (
                say("real.classic", **told),
                _range(*one.classic),
                "",
                "",
                f"{classic:,.0f}",
                _residual(classic, one.classic_rate),
            ),
        ]
    return table_of("real", lines)


@takes
@cache
def senders_table(run_ms: int = 500) -> Table:
    """The article's two_senders, AMQP 1.0 half, with preset blog2024, played now.

    Args:
        run_ms: virtual time; the article's counts are for ten seconds, and are cut to it.
    """
    with ProgressLine(say("real.article-running")) as line:
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
        for kind, model, real in [*rows, (say("real.both"), total, article)]
    ]
    return table_of("senders", lines, run_ms=run_ms)
