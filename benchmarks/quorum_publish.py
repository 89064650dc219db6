"""Virtual quorum publish: messages per wall second, and memory.

    python benchmarks/quorum_publish.py [--messages 100000] [--replicas 5] [--links 4]

Publishers send pre-settled over AMQP 1.0 links into one quorum queue, on virtual wires, under the
numbers of RabbitMQ 4.3; everything between is the embedded broker: sessions, leader, followers,
write-ahead logs. A second figure leaves AMQP out: the queue's own ports, pipelined.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import tracemalloc

from workbench import presets
from workbench.amqp10.messaging import Data, encode_message
from workbench.broker import Broker
from workbench.frontends import accept
from workbench.peers import Client, Publisher
from workbench.queues import QueueArguments
from workbench.scenarios.confirming import PIPELINED, publish_for
from workbench.sim import VirtualClock, Wire


def over_amqp(messages: int, replicas: int, links: int) -> tuple[float, float]:
    """Publish over AMQP 1.0; returns wall and virtual seconds until all is in the queue."""
    clock = VirtualClock()
    broker = Broker(clock, presets.get("rmq4.3"))
    broker.declare("q", QueueArguments(queue_type="quorum"), replicas=replicas)
    ids = itertools.count()
    for number in range(links):
        sender = Publisher(address="/queues/q", settled=True)
        client = Client(clock, [sender], name=f"p{number}")
        end = accept(broker, f"c{number}")
        wire = Wire(
            clock, client, end, latency_us=(100, 100), connection=f"c{number}",
            next_frame_id=lambda: next(ids),
        )  # fmt: skip
        end.connect(wire)
        client.connect(wire)
        sender.publish([encode_message([Data(b"some payload")])] * (messages // links))
    began = time.perf_counter()
    queue = broker.queues["q"]
    while queue.queue.ready < messages // links * links:
        if not clock.run_until_rest(1_000):
            raise SystemExit(f"at rest with {queue.queue.ready} messages in the queue")
    return time.perf_counter() - began, clock.now_us / 1_000_000


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--replicas", type=int, default=5)
    parser.add_argument("--links", type=int, default=4)
    given = parser.parse_args()
    wall, virtual = over_amqp(given.messages, given.replicas, given.links)
    sys.stdout.write(
        f"over AMQP 1.0: {given.messages:,} messages, {given.replicas} replicas, {given.links}"
        f" links: {wall:.1f} s, {given.messages / wall:,.0f} messages per wall second,"
        f" {virtual:.1f} virtual seconds\n"
    )
    virtual_us = 1_000_000
    began = time.perf_counter()
    racing = publish_for(
        PIPELINED, n=170, publishers=given.links, replicas=given.replicas, virtual_us=virtual_us
    )
    wall = time.perf_counter() - began
    count = sum(each.messages for each in racing)
    sys.stdout.write(
        f"the queue alone: {count:,} messages in {virtual_us / 1e6:g} virtual s: {wall:.1f} s,"
        f" {count / wall:,.0f} messages per wall second\n"
    )
    few = max(given.links, given.messages // 10)
    tracemalloc.start()
    over_amqp(few, given.replicas, given.links)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    sys.stdout.write(
        f"memory: {peak / few:,.0f} octets a message at the peak, all {given.replicas} replicas"
        f" and their disks in it ({few:,} messages)\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
