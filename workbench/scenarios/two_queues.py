"""Lesson 03: two queues on one session, and credit alone decides which is served.

One receiver has a link to each of two queues, on one session of one connection. With `policy`
`by-hand` a person grants; `equal` keeps the same credit on both; `prefer` keeps credit on the
first, asks with each grant what is available there, and lets the second have some only while that
is nothing.
Acts: grant, stop, publish, acknowledge (each of a queue), set_policy, hold, release, set_latency.
"""

from __future__ import annotations

from typing import Annotated, Any

from workbench.amqp10.events import DeliveryReceived, Event, FlowReceived
from workbench.peers import Client, Consumer
from workbench.presets import UINT_MAX

from .action import ActionError, refusal
from .acts import WIRE_ACTS
from .credit import connection_settings, session_settings
from .declare import PRESET, OneOf, Whole, act, scenario, unless
from .parameters import Count, Credit, Latency, Ready, SmallMessageBytes
from .world import World

FIRST, SECOND = "urgent", "bulk"
QUEUES = (FIRST, SECOND)
BY_HAND, EQUAL, PREFER = "by-hand", "equal", "prefer"
POLICIES = (BY_HAND, EQUAL, PREFER)

QueueName = Annotated[str, OneOf(*QUEUES), "which queue"]


class Preferring(Client):
    """A client that grants to its two links by a policy that looks at both.

    Args:
        policy: `equal`, `prefer` or `by-hand`.
        n: the credit that is kept up.
    """

    def __init__(self, *where: Any, policy: str, n: int, **arguments: Any) -> None:
        super().__init__(*where, **arguments)
        self.policy = policy
        self.n = n
        self._asked = False  # an echo of the first link is under way
        self._serves_second = False  # the first queue had nothing when last asked

    def set_policy(self, policy: str) -> None:
        """Grant by another policy from now on."""
        self.policy = policy
        self.begin()

    def begin(self) -> None:
        """The policy's first grants."""
        if self.policy == EQUAL:
            self._keep(FIRST, self.n)
            self._keep(SECOND, self.n)
        elif self.policy == PREFER:
            self._hold_second()
            self._ask(self.n)

    # -- inside -------------------------------------------------------------------------------

    def _arrived(self, name: str) -> None:
        link = self.consumers[name]
        low = link.link_credit <= self.n // 2  # at half: the next grant overlaps with deliveries
        if self.policy == EQUAL and low:
            link.grant(self.n)
        elif self.policy == PREFER and name == FIRST:
            self._hold_second()
            if low or not self._asked:
                self._ask(self.n if low else None)
        elif self.policy == PREFER and low and self._serves_second:
            link.grant(self.n)

    def handle(self, event: Event) -> None:
        """Grants, where what has come is a reason to."""
        super().handle(event)
        if isinstance(event, DeliveryReceived):
            self._arrived(event.link.name)
        elif not isinstance(event, FlowReceived) or event.link is None:
            return
        elif event.link.name == FIRST and self.policy == PREFER:
            self._asked = False
            if event.frame.available == 0:
                self._serves_second = True
                self._keep(SECOND, self.n)

    def _ask(self, link_credit: int | None) -> None:
        """Ask the first queue's link what is available, with a new grant or with the present."""
        link = self.consumers[FIRST]
        link.grant(link.link_credit if link_credit is None else link_credit, echo=True)
        self._asked = True

    def _hold_second(self) -> None:
        """What is on its way over the second link still comes; no more is asked for."""
        self._serves_second = False
        self._keep(SECOND, 0)

    def _keep(self, name: str, link_credit: int) -> None:
        link = self.consumers[name]
        if link.link_credit != link_credit:
            link.grant(link_credit)


# -- acts -----------------------------------------------------------------------------------


_attached = unless("two-queues.not-attached", lambda world: world.peers["consumer"].attached)


@act(_attached)
def grant(world: World, link_credit: Credit, queue: QueueName = FIRST) -> None:
    """Set the credit of one link; the other link's stays as it is."""
    world.peers["consumer"].consumer(queue).grant(link_credit)


@act(_attached)
def stop(world: World, queue: QueueName = FIRST) -> None:
    """Set the credit of one link to 0 and ask for an echo."""
    world.peers["consumer"].consumer(queue).stop()


@act()
def publish(
    world: World,
    queue: QueueName = FIRST,
    count: Annotated[Count, Whole(1, 10_000, "messages")] = 1,
) -> None:
    """Put messages into one of the queues."""
    world.put_messages(queue, count)


@act(_attached)
def acknowledge(world: World, queue: QueueName = FIRST) -> None:
    """Settle everything that came from one queue; no credit comes of it."""
    consumer = world.peers["consumer"].consumer(queue)
    if not consumer.unsettled:
        raise ActionError(refusal("two-queues.nothing-unsettled", queue=queue))
    consumer.acknowledge()


@act(_attached)
def set_policy(
    world: World, policy: Annotated[str, OneOf(*POLICIES), "which rule"] = PREFER
) -> None:
    """Let another rule grant from now on."""
    world.peers["consumer"].set_policy(policy)


@scenario(
    "One of two queues first, by credit alone",
    acts=(grant, stop, publish, acknowledge, set_policy, *WIRE_ACTS),
)
def two_queues(
    world: World,
    messages_urgent: Annotated[Ready, "ready in the first queue"] = 10,
    messages_bulk: Annotated[Ready, "ready in the second queue"] = 10,
    policy: Annotated[
        str,
        OneOf(*POLICIES),
        "who grants: a person, the same for both, or the first before the second",
    ] = BY_HAND,
    n: Annotated[
        int, Whole(1, UINT_MAX, "messages"), "credit that a rule keeps up, renewed at half"
    ] = PRESET.batch_credit,
    message_bytes: SmallMessageBytes = PRESET,
    latency_us: Latency = PRESET.wire_latency_us,
) -> None:
    """A receiver with links to two queues on one session.

    Which queue is served, and how fast, is decided by the credit of each link.
    """
    for name, ready in ((FIRST, messages_urgent), (SECOND, messages_bulk)):
        world.fill(name, ready)

    def attached() -> None:
        world.mark_start()
        world.clock.call_soon(consumer.begin)

    consumer = Preferring(
        world.clock,
        [Consumer(name, name) for name in QUEUES],
        name="receiver",
        policy=policy,
        n=n,
        settings=connection_settings(world.preset),
        session_settings=session_settings(world.preset),
        on_attached=attached,
    )
    world.connect(consumer, "c1", peer="consumer")
