"""The article's run of November 2008: MulticastMain floods RabbitMQ 1.5 until the alarm is set.

One producer publishes messages of 10,000 octets as fast as it may, one consumer acknowledges each
in a transaction of its own. After some seconds the watermark is lowered to 5 %, the alarm is set,
and the producer stops; the consumer drains what it has, and when collector and system have the
memory back the alarm is cleared. Both programs write their rates and latencies, and the broker its
log, as the article shows them. A run to be counted, not to be stepped through.

Given are the rate at which the broker takes messages in and hands them out (5,700 a second), the
rate of a consumer alone (4,300), the sizes of memory, when the watermark is lowered, and the two
delays after which memory is free. Computed are the consumer's rate beside the producer, latencies,
and how long the alarm is on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from workbench.peers import MulticastConsumer, MulticastProducer
from workbench.peers.multicast091 import TELL_US, Rate
from workbench.presets import AMQP_0_9_1

from .action import refusal
from .declare import PRESET, ParameterError, Whole, scenario
from .emergency_brake import (
    APP,
    CONSUMER,
    MOST_OCTETS,
    PUBLISHER,
    QUEUE,
    WORKER,
    Octets,
    Stamped,
    crash,
    join,
    lose,
    memory_of,
    say,
    watermark_of,
)
from .parameters import Latency, Microseconds, Processing, SocketOctets
from .world import World

MEANT_FOR = "blog2008"
US_PER_MS = 1_000
LOWERED = "0.05"
SENT = (5410, 5781, 5901, 6153, 5523)
BESIDE = (300, 352, 330, 245, 189)
ALONE = (4133, 4327, 4309, 4356, 4533, 4588)
AVERAGE_LATENCY_MS = (458, 1362, 2222)
MOST_LATENCY_MS = 6232
SET_TO_CLEAR_S = 58
"""What the article's lines show: data. What of it is given to the run is said above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A figure of the run beside the article's.

    Attributes:
        what: it is.
        unit: of both.
        computed: by the run.
        article: least and largest in the article's lines.
        given: it follows from an input that was taken from these lines.
    """

    what: str
    unit: str
    computed: float
    article: tuple[float, float]
    given: bool = False

    @property
    def residual(self) -> float:
        """How far it is outside the article's range, as a share of the nearer end; 0 within."""
        low, high = self.article
        near = min(max(self.computed, low), high)
        return self.computed / near - 1

    def __str__(self) -> str:
        low, high = self.article
        return say(
            "multicast.given" if self.given else "multicast.compared",
            what=self.what,
            computed=self.computed,
            unit=self.unit,
            article=say("multicast.one" if low == high else "multicast.range", low=low, high=high),
            residual=self.residual,
        )


def rates(world: World) -> tuple[list[Rate], list[Rate]]:
    """What producer and consumer have told, line by line."""
    return world.peers[APP].tasks[PUBLISHER].rates, world.peers[WORKER].tasks[CONSUMER].rates


def compared(world: World) -> list[Compared]:
    """The run's figures beside the article's; of a run that is over."""
    sent, received = rates(world)
    log = memory_of(world).log
    found = []

    def add(
        what: str, unit: str, computed: list[float], article: tuple[float, ...], given: bool
    ) -> None:
        if computed:
            value = sum(computed) / len(computed)
            span = min(article), max(article)
            found.append(Compared(what=what, unit=unit, computed=value, article=span, given=given))

    stopped = log[0].t_us if log else 0
    before = [line for line in sent if line.t_us <= stopped]
    beside = [line for line in received if line.t_us <= stopped]
    # A line is told with the next message: one that spans a pause is about the pause.
    drained = [line for line in received if line.since_us >= stopped]
    alone = [line for line in drained if line.t_us - line.since_us < 2 * TELL_US]
    add(say("multicast.producer"), "messages/s", [line.per_second for line in before], SENT, True)
    add(say("multicast.beside"), "messages/s", [one.per_second for one in beside], BESIDE, False)
    add(say("multicast.alone"), "messages/s", [line.per_second for line in alone], ALONE, True)
    for number, article in enumerate(AVERAGE_LATENCY_MS):
        latencies = [_ms(line, 1) for line in beside[number : number + 1]]
        add(say("multicast.latency", line=number + 1), "ms", latencies, (article,), False)
    most = [max(_ms(line, 2) for line in drained)] if drained else []
    add(say("multicast.most-latency"), "ms", most, (MOST_LATENCY_MS,), False)
    if len(log) > 1:
        on_s = (log[1].t_us - log[0].t_us) / 1_000_000
        given_s = (world.number("collected_us") + world.number("reclaimed_us")) / 1_000_000
        what = say("multicast.alarm", given=given_s)
        add(what, "s", [on_s], (SET_TO_CLEAR_S,), False)
    return found


def _ms(line: Rate, which: int) -> float:
    assert line.latency_us is not None
    return line.latency_us[which] / US_PER_MS


def told(world: World) -> list[str]:
    """Both programs' lines in order of time, the broker's log, and the comparison."""
    sent, received = rates(world)
    lines = [str(line) for line in sorted([*received, *sent], key=lambda line: line.t_us)]
    return [*lines, *memory_of(world).log_lines(), *(str(one) for one in compared(world))]


@scenario(
    "The article's run: MulticastMain against RabbitMQ 1.5",
    preset=MEANT_FOR,
    protocol=AMQP_0_9_1,
    long=True,
    told=told,
)
def multicast(
    world: World,
    lowered_ms: Annotated[
        int, Whole(1, 60_000, "ms"), "when the watermark is lowered, counted from the first message"
    ] = 4_000,
    lowered_to: Annotated[str, "fraction of the memory"] = LOWERED,
    total_octets: Annotated[int, Whole(1, MOST_OCTETS, "octets"), "of the machine"] = 2**32,
    others_octets: Annotated[Octets, "that others on the machine hold"] = 100_000_000,
    collected_us: Annotated[Microseconds, "until garbage is collected"] = 20_000_000,
    reclaimed_us: Annotated[Microseconds, "until the system has it back"] = 30_000_000,
    messages: Annotated[int, Whole(1, 1_000_000, "messages"), "that the producer has"] = 1_000_000,
    message_bytes: Stamped = PRESET,
    processing_us: Processing = PRESET,
    heap_octets: Annotated[Octets, "what the consumer's buffer may hold"] = 512 * 2**20,
    socket_octets: SocketOctets = 131_072,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A producer floods the broker until it is asked to stop; then the consumer drains the rest.

    With preset blog2008 some 30,000 messages: write it to a file.
    """
    if not (world.preset.queue_enqueue_us or world.preset.queue_deliver_us) or not socket_octets:
        raise ParameterError(refusal("fast.producer", preset=MEANT_FOR))
    fraction = watermark_of(lowered_to)
    memory = world.broker.watch_system(
        total=total_octets,
        others=others_octets,
        collected_us=collected_us,
        reclaimed_us=reclaimed_us,
        exhausted=lambda: crash(world),
    )
    world.broker.declare(QUEUE)
    producer = MulticastProducer(PUBLISHER, QUEUE, body=bytes(message_bytes))
    consumer = MulticastConsumer(
        CONSUMER,
        QUEUE,
        processing_us=processing_us,
        transactional=True,
        heap_octets=heap_octets,
        on_heap_full=lambda: lose(world, WORKER),
    )

    def lower() -> None:
        world.clock.call_later(lowered_ms * US_PER_MS, memory.set_watermark, fraction)

    def asked(active: bool) -> None:
        if active:  # the alarm is over, and the run with it
            producer.left = 0

    join(world, producer, consumer, socket_octets=socket_octets, then=lower, on_flow=asked)
