"""The article's benchmark two_senders: as fast as possible into a classic and a quorum queue.

One client has one AMQP 1.0 connection and session, and a link to each queue. Both links publish
settled messages as fast as they may for some time, and then everything comes to rest. What is in
the queues then is what the article counted ("Ten Benefits of AMQP 1.0 Flow Control", Benchmark: Two
senders). This is a run to be counted: what is due at one instant happens in one clock event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from workbench.amqp10.messaging import Data, encode_message
from workbench.broker.quorum_node import SyncTime
from workbench.peers import AtOnce, Publisher
from workbench.queues import QueueArguments

from .credit import client_of
from .declare import PRESET, ParameterError, Whole, scenario
from .parameters import Latency, SmallMessageBytes
from .publishers import address
from .quorum import Fsync
from .world import World

MEANT_FOR = "blog2024"
AMQP_1_0 = "amqp-10"
CLASSIC, QUORUM = "classic", "quorum"
KINDS = (CLASSIC, QUORUM)
LONGEST_MS = 60_000
US_PER_MS = 1_000
ARTICLE_MS = 10_000
ARTICLE = {(AMQP_1_0, CLASSIC): 1_089_075, (AMQP_1_0, QUORUM): 148_580}
"""What the article counted after ten seconds: data, of which nothing here is made."""
PAYLOAD = b"some payload"


def queue_name(kind: str, protocol: str = AMQP_1_0) -> str:
    """The queue of a protocol's sender, named as in the article."""
    return f"{kind}-queue-{protocol}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What came into one queue.

    Attributes:
        kind: of the queue, `classic` or `quorum`.
        protocol: of the sender.
        messages: in the queue at the end.
        article: how many the article counted, for as long a time as the run took.
    """

    kind: str
    protocol: str
    messages: int
    article: float

    @property
    def residual(self) -> float:
        """How far the model is from the article, as a share of the article's count."""
        return self.messages / self.article - 1


def counted(world: World) -> list[Counted]:
    """What is in the queues now, beside the article's counts.

    Args:
        world: of a run of this scenario.
    """
    share = world.number("run_ms") / ARTICLE_MS
    return [
        Counted(
            kind=kind,
            protocol=protocol,
            messages=world.broker.queues[queue_name(kind, protocol)].queue.ready,
            article=count * share,
        )
        for (protocol, kind), count in ARTICLE.items()
        if queue_name(kind, protocol) in world.broker.queues
    ]


def told(world: World) -> list[str]:
    """The counts in words."""
    return [
        f"{queue_name(one.kind, one.protocol)}: {one.messages:,} messages; the article counted"
        f" {one.article:,.0f} in as long; residual {one.residual:+.1%}"
        for one in counted(world)
    ]


def _amqp_10(world: World) -> None:
    """The AMQP 1.0 half: one connection, one session, a link to each queue."""

    def attached() -> None:
        world.mark_start()
        world.clock.call_later(world.number("run_ms") * US_PER_MS, client.stop)

    size = world.number("message_bytes")
    message = encode_message([Data(PAYLOAD.ljust(size, b".")[:size])])
    links = [
        Publisher(kind, address(queue_name(kind)), settled=True, endless=message) for kind in KINDS
    ]
    client = client_of(world, *links, name="app", sending=AtOnce(), on_attached=attached)
    world.peers["client"] = client
    latency = world.number("latency_us")
    world.connect(client, "c1", (latency, latency))


@scenario(
    "The article's benchmark: two senders on one session, as fast as they may",
    preset=MEANT_FOR,
    long=True,
    told=told,
)
def two_senders(
    world: World,
    run_ms: Annotated[
        int, Whole(1, LONGEST_MS, "ms"), "how long the client publishes, in virtual time"
    ] = 10_000,
    fsync_us: Fsync = PRESET,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A client publishes to a classic and to a quorum queue over one AMQP 1.0 session.

    It is as fast as credit and the session let it, for ten seconds of virtual time. With preset
    blog2024 more than a million messages: write it to a file.
    """
    if not (world.preset.session_us or world.preset.session_ns or latency_us):
        raise ParameterError(
            f"under preset {world.preset.name} a session needs no time for a transfer, and"
            " latency_us is 0: a client as fast as it may be would send without end at one instant;"
            f" legal: latency_us from 1, or a preset with session_us or session_ns, as {MEANT_FOR}"
        )
    world.broker.make_cluster(1, fsync=SyncTime.constant(fsync_us))
    world.broker.declare(queue_name(CLASSIC))
    world.broker.declare(queue_name(QUORUM), QueueArguments(queue_type=QUORUM), replicas=1)
    _amqp_10(world)
