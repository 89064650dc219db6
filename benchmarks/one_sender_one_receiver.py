"""The article's one_sender_one_receiver at full scale: a million messages preloaded, ten seconds.

    python benchmarks/one_sender_one_receiver.py [--run-ms 10000] [--preload 1000000] [--measured]

Preset `blog2024`, both protocols, each part in a process of its own: on one connection as the
article has it, and over AMQP 0-9-1 with a connection for each task, where the consumer must recover
by ten times at least (the end status is 1 if it does not). No bar is set on the ratio, which two
parameters make that nobody knows of the article's run: it is told for some of their values, beside
the article's 73 and the points that were measured on RabbitMQ 4.3.6. With `--measured` the model is
played with what those runs had, at their three fsync times, and both stand in one table; and so for
two_senders.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LEAST_RECOVERY = 10.0
SHALLOW, DEEP = 200_000, 1_000_000

PROCESSOR = {"session_us": 26, "session_ns": 526, "channel_us": 28}
"""What the measured machine's two cores took for a transfer, and for a publish over 0-9-1, client
and broker together: ten seconds over the messages of both queues with the disk as it is, the run in
which nothing but the processor was short. Two inputs, each read off one sum."""
TWO_SENDERS = {350: (1.00, 1.10), 5_350: (1.70, 1.82), 20_350: (3.33, 4.33)}
"""Ratios of the sums, by microseconds of an fsync: the least and the most of three runs."""
BLOCKS = {350: 349, 5_350: 119, 20_350: 42}
"""How often a second the 0-9-1 connection was blocked there."""


def preset_of(measured: bool) -> Any:
    """The article's preset, or that of the brokers that were measured, on their machine."""
    from workbench import presets

    blog = presets.get("blog2024")
    if not measured:
        return blog
    same = ("queue_enqueue_us", "queue_deliver_us", "node_latency_us", "client_publish_us",
            "client_ack_us")  # fmt: skip
    numbers = {name: getattr(blog, name) for name in same}
    return replace(presets.get("rmq4.3"), **numbers, **PROCESSOR)


def played(scenario: str, measured: bool, given: dict[str, Any]) -> dict[str, Any]:
    """One run: what it told and took."""
    from workbench.scenarios import one_sender_one_receiver as mixed
    from workbench.scenarios import two_senders as senders
    from workbench.scenarios.streaming import stream

    wall, cpu = time.perf_counter(), time.process_time()
    world = stream(scenario, preset_of(measured), given).world
    module: Any = senders if scenario == "two_senders" else mixed
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "told": module.told(world),
        "compared": {one.what: one.model for one in module.compared(world)},
    }


def apart(scenario: str, measured: bool, **given: Any) -> dict[str, Any]:
    """One run in a process of its own."""
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        return pool.apply(played, (scenario, measured, given))


def tell(label: str, done: dict[str, Any]) -> None:
    """What one run took."""
    print(
        f"{label}: wall {done['wall']:.1f} s, CPU {done['cpu']:.1f} s, peak {done['peak']:.0f} MB",
        flush=True,
    )


def as_the_article(run_ms: int, preload: int) -> int:
    """The article's run, what a connection of its own does, and what depth and sharing do."""
    name, old = "one_sender_one_receiver", "consumed over amqp-091"
    common = {"run_ms": run_ms, "preload": preload}
    both = apart(name, False, **common)
    tell("both protocols", both)
    print("\n".join(both["told"]))
    separate = apart(name, False, **common, protocol="amqp-091", separate=True)
    tell("0-9-1, separate connections", separate)
    recovery = separate["compared"][old] / both["compared"][old]
    kept = recovery >= LEAST_RECOVERY
    print(
        f"consumed over a connection of its own: {separate['compared'][old]:,.0f},"
        f" {recovery:.1f} times as much; bar {LEAST_RECOVERY:g}: {'kept' if kept else 'MISSED'}"
    )
    new = both["compared"]["consumed over amqp-10"]
    for octets in (SHALLOW, DEEP):
        for publishes in (1, 20, 100):
            more = {"socket_octets": octets, "publishes_per_ack": publishes}
            done = apart(name, False, **common, **more, protocol="amqp-091")
            consumed = done["compared"][old]
            print(
                f"socket of {octets:,} octets, {publishes} publishes for an acknowledgement:"
                f" {consumed:,.0f} consumed over 0-9-1, ratio {new / consumed:.1f}",
                flush=True,
            )
    return 0 if kept else 1


def as_measured(run_ms: int, preload: int) -> None:
    """Model and measurement at three fsync times."""
    from workbench.scenarios.one_sender_one_receiver import MEASURED

    common = {"message_bytes": 12, "latency_us": 0, "protocol": "both"}
    blocks = "blocks of the 0-9-1 connection a second"
    print(f"{'fsync ms':>8} {'':<14} {'model':>7} {'measured':>14} {'blocks/s':>9} {'measured':>9}")
    for us, (least, most) in TWO_SENDERS.items():
        done = apart("two_senders", True, fsync_us=us, run_ms=run_ms, **common)["compared"]
        print(
            f"{us / 1000:>8g} {'two senders':<14} {done['ratio of the sums']:>7.2f}"
            f" {least:>6.2f} to {most:.2f} {done[blocks]:>9.0f} {BLOCKS[us]:>9}",
            flush=True,
        )
    for us, (least, most) in MEASURED.items():
        done = apart(
            "one_sender_one_receiver", True, fsync_us=us, run_ms=run_ms, preload=preload, **common
        )["compared"]
        print(
            f"{us / 1000:>8g} {'one and one':<14} {done['ratio of what was consumed']:>7.1f}"
            f" {least:>6.1f} to {most:.1f}",
            flush=True,
        )
        for what, count in done.items():
            if not what.startswith("ratio"):
                print(f"{'':>23} {what}: {count * 10_000 / run_ms:,.0f} in ten seconds")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run-ms", type=int, default=10_000)
    parser.add_argument("--preload", type=int, default=1_000_000)
    parser.add_argument("--measured", action="store_true")
    given = parser.parse_args()
    if given.measured:
        as_measured(given.run_ms, given.preload)
        return 0
    return as_the_article(given.run_ms, given.preload)


if __name__ == "__main__":
    sys.exit(main())
