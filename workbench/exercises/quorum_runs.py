"""Runs and tables of lesson 07 that several cells share: disks, crashes, limits, rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench import presets
from workbench.scenarios.confirming import PIPELINED, STRATEGIES, Confirmed, publish_for
from workbench.scenarios.heeding import beside_a_hanging_disk
from workbench.scenarios.run import Run, run
from workbench.trace.replicas import COMMITTED, CONFIRMED, WRITTEN, Message, Nodes, Replicas
from workbench.trace.schema import CLIENT, RECEIVED, SENT, Row
from workbench.trace.words import count

from . import measure
from .measure import link_rate, stalls_us
from .table import Table

PRESET = "rmq4.3"  # whose broker the lesson is about
LINK = "publisher"
CHANNEL_MESSAGES = 2_000  # as many as no limit here lets in
SEND_US = 10  # what a message costs the racing publishers, if nothing else is said
SYNCS = 24  # so many fsyncs long is a run from which a rate is read
LEAST_US = 20_000  # and at least so long


def disks(played: Run, fsync_ms: Mapping[str, int]) -> Run:
    """The run in which these nodes have other disks: name to ms for one fsync."""
    for node, time_ms in fsync_ms.items():
        played = played.then("slow_disk", node=node, fsync_us=time_ms * 1000)
    return played


def slowed(played: Run, nodes: Sequence[str], fsync_ms: int) -> Run:
    """The run in which these nodes have this slow disk."""
    return disks(played, dict.fromkeys(nodes, fsync_ms))


def arrivals(rows: Sequence[Row], *, event: str = RECEIVED, after: int = -1) -> list[Row]:
    """Messages that publishers sent, as they come to the broker (or as they go out)."""
    return measure.frames(rows, "transfer", event=event, from_peer=CLIENT, after=after)


def leader(story: Replicas) -> str:
    """Who leads at the end of the run; empty if nobody."""
    return story.leader.now


def newest(story: Replicas) -> Message:
    """The message that was published last."""
    return story.messages[max(story.messages)]


def confirm_us(played: Run) -> int | None:
    """From the arrival of the last message at the broker to its confirm; None if there is none."""
    message = newest(Replicas(played.rows))
    step = message.done.get(CONFIRMED)
    if step is None:
        return None
    return played.rows[step - 1].t_us - arrivals(played.rows)[message.number - 1].t_us


def on_disk_when(story: Replicas, message: Message, lamp: str = COMMITTED) -> Nodes:
    """Nodes that the leader had heard of when a lamp of the message was lit.

    What is on a disk in the very last moment before cannot have been heard of yet, unless the disk
    is the leader's own.
    """
    step = message.done[lamp]
    t_us = story.rows[step - 1].t_us
    heard = [
        node
        for node in message.disks.at(step)
        if story.rows[_since(message, node) - 1].t_us < t_us or node == story.leader.at(step)
    ]
    return tuple(heard)


def deciders(story: Replicas, message: Message) -> Nodes:
    """Nodes with whose fsync the leader had a majority; more than one if they came at once."""
    heard = on_disk_when(story, message)
    times = {node: story.rows[_since(message, node) - 1].t_us for node in heard}
    last_needed = heard[story.majority - 1]
    leads = story.leader.at(message.done[COMMITTED])
    return tuple(
        node
        for node in heard
        if node == last_needed
        or (times[node] == times[last_needed] and leads not in (node, last_needed))
    )


def _since(message: Message, node: str) -> int:
    """The step from which a disk has the message."""
    line = message.disks
    return next(at for at, nodes in zip(line.steps, line.values, strict=True) if node in nodes)


def confirm_table(runs: Mapping[str, Run]) -> Table:
    """How long the last message of each run waited for its confirm, and for whose disks."""
    lines = []
    for words, played in runs.items():
        story = Replicas(played.rows)
        message = newest(story)
        time_us = confirm_us(played)
        if time_us is None:
            lines.append((words, "never", "none", ", ".join(message.disks.now) or "none"))
            continue
        heard = on_disk_when(story, message)
        shown = f"{measure.milliseconds(time_us):,.1f}"
        lines.append((words, shown, " or ".join(deciders(story, message)), ", ".join(heard)))
    head = ("disks", "confirm after, in ms", "decided by", "on disk then, as the leader knew")
    return Table(name="When the confirm comes", head=head, lines=lines)


# -- crashes ------------------------------------------------------------------------------------


def crashed(played: Run, pending: int, lamp: str = WRITTEN) -> Run:
    """Publish so many messages; the leader crashes when a lamp of the last of them is lit."""
    branch = played.then("publish", count=pending)
    story = Replicas(branch.rows)
    message = newest(story)
    lit = next(step for step in message.logs.steps if story.lamp(message, lamp, step)[0])
    return branch.act(lit - 1, "crash", node="leader")


def took_over(played: Run) -> Row:
    """The row of the first election."""
    return next(row for row in played.rows if row.event == "elect")


def sent_again(played: Run) -> list[Row]:
    """The rows in which the new leader takes messages into its log."""
    elected = took_over(played)
    return [
        row
        for row in played.rows
        if row.seq > elected.seq
        and row.event == "append"
        and row.vantage == elected.vantage
        and row.extra.get("messages")
    ]


def crash_table(played: Run) -> Table:
    """What became of the messages that were pending when the leader crashed."""
    story = Replicas(played.rows)
    crash = next(row for row in played.rows if row.event == "crash")
    elected = took_over(played)
    before = measure.step(crash.seq)
    new = elected.vantage.rpartition("@")[2]
    known = [message for message in story.messages.values() if message.known(before)]
    pending = [one for one in known if one.done.get(CONFIRMED, before + 1) > before]
    have = [one for one in pending if new in one.logs.at(measure.step(elected.seq))]
    again = sum(runs[-1] for row in sent_again(played) for runs in row.extra["messages"])
    frames = arrivals(played.rows, event=SENT, after=crash.seq)
    confirmed = [one for one in pending if CONFIRMED in one.done]
    lines = [
        ("pending when the leader crashed", str(len(pending))),
        ("of its log no fsync had made safe", count(int(crash.extra["lost"]), "entry", "entries")),
        ("in the log of the next leader already", str(len(have))),
        (f"sent to {new} by the broker's session, again", str(again)),
        ("sent by the publisher, again", str(len(frames))),
        ("confirmed in the end", str(len(confirmed))),
        ("ready in the queue", str(_ready(played))),
    ]
    return Table(
        name="What became of the pending messages", head=("messages", "how many"), lines=lines
    )


def _ready(played: Run) -> int:
    """Messages in the queue at the end, as the leader has it."""
    return next(
        int((row.ledger or {})["queue_ready"])
        for row in reversed(played.rows)
        if row.vantage.startswith("queue:") and "queue_ready" in (row.ledger or {})
    )


# -- limits and rates -----------------------------------------------------------------------------


def soft_limit_run(soft_limit: int, publish: int, *, confirmed: int = 0, **parameters: Any) -> Run:
    """A queue confirms some messages; then its disks hang, and many more come.

    Args:
        soft_limit: of the queue.
        publish: how many messages come while the disk hangs.
        confirmed: how many before.
        parameters: of the scenario.
    """
    preset = replace(presets.get(PRESET), quorum_soft_limit=soft_limit)
    played = run("quorum", preset, {"replicas": "1", **parameters})
    if confirmed:
        played = played.then("publish", count=confirmed)
    hangs = played.then("slow_disk", node="all", fsync_us=1_000_000)
    return hangs.then("publish", count=publish)


def slow_at(played: Run) -> int | None:
    """With how many pending commands the queue first counted as slow; None if it never did."""
    blocks = [row for row in played.rows if row.event == "block" and row.kind == "soft-limit"]
    return int(blocks[0].extra["pending"]) if blocks else None


def most_pending(played: Run) -> int:
    """The most messages that ever waited for a confirm, as the broker counts."""
    return max(
        int((row.ledger or {}).get("unconfirmed", 0))
        for row in played.rows
        if row.link_sender == CLIENT and row.vantage == "broker"
    )


def soft_limit_table(runs: Mapping[str, Run], channels: Mapping[str, int] | None = None) -> Table:
    """When a queue counts as slow, and how far it goes on all the same.

    Args:
        runs: over AMQP 1.0, by what they are called.
        channels: soft limits before a channel that heeds them, while the disk hangs.
    """
    lines = []
    for words, played in runs.items():
        slow = slow_at(played)
        lines.append((words, "never" if slow is None else str(slow), str(most_pending(played))))
    for words, limit in (channels or {}).items():
        channel = beside_a_hanging_disk(limit, CHANNEL_MESSAGES)
        slow = channel.slow_with
        lines.append((words, "never" if slow is None else str(slow), str(channel.most_inside)))
    head = ("run", "slow with so many pending", "most that waited for a confirm")
    return Table(name="The soft limit", head=head, lines=lines)


def pipelined(cap: int, fsync_us: int, **more: Any) -> Confirmed:
    """A publisher with at most `cap` unconfirmed, over a queue with one replica."""
    virtual_us = max(LEAST_US, SYNCS * fsync_us)
    given = {"replicas": 1, "latency_us": 0, "send_us": SEND_US, "virtual_us": virtual_us, **more}
    (result,) = publish_for(PIPELINED, n=cap, fsync_us=fsync_us, **given)
    return result


def rates_at(fsync_us: int, caps: Sequence[int]) -> dict[int, Confirmed]:
    """What a publisher reaches with each cap."""
    return {cap: pipelined(cap, fsync_us) for cap in caps}


def sync_table(fsync_us: int, results: Mapping[int, Confirmed]) -> Table:
    """Rate, latency, and how many fsyncs a message waited for, by what may be in flight."""
    lines = []
    for cap, result in results.items():
        syncs = f"{result.mean_latency_us / fsync_us:.2f}" if fsync_us else "no fsync time"
        latency = f"{measure.milliseconds(round(result.mean_latency_us)):,.1f}"
        lines.append((str(cap), f"{result.rate:,.0f}", latency, syncs))
    head = ("in flight at most", "confirmed a second", "mean latency in ms", "latency in fsyncs")
    return Table(name="Rate by what may be in flight", head=head, lines=lines)


def race(n: int, fsync_us: int, send_us: int, virtual_us: int = 500_000) -> dict[str, Confirmed]:
    """The three ways to confirm, each alone with a queue of three replicas."""
    found = {}
    for way in STRATEGIES:
        given = {"fsync_us": fsync_us, "send_us": send_us, "virtual_us": virtual_us}
        (found[way],) = publish_for(way, n=n, **given)
    return found


def percentile_us(result: Confirmed, share: int) -> int:
    """A percentile of the latencies; 0 if there are none."""
    ordered = sorted(result.latencies_us)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)] if ordered else 0


def race_table(results: Mapping[str, Confirmed]) -> Table:
    """Throughput and latency of each way."""
    lines = [
        (
            way,
            f"{result.rate:,.0f}",
            f"{measure.milliseconds(round(result.mean_latency_us)):,.1f}",
            f"{measure.milliseconds(percentile_us(result, 99)):,.1f}",
            str(result.most_unconfirmed),
        )
        for way, result in results.items()
    ]
    head = ("way", "confirmed a second", "mean latency in ms", "99th percentile", "most in flight")
    return Table(name="Three ways to confirm", head=head, lines=lines)


def targets_table(runs: Mapping[str, Run], links: Sequence[str]) -> Table:
    """Messages a second over each link, and how long each was held, a row a run."""
    head = ["run"]
    for link in links:
        head += [f"{link}, messages a second", "held, in ms"]
    lines = []
    for words, played in runs.items():
        cells = [words]
        for link in links:
            held = sum(stalls_us(played, link).values())
            cells += [f"{link_rate(played, link):,.0f}", f"{measure.milliseconds(held):,.1f}"]
        lines.append(tuple(cells))
    return Table(name="Two targets on one session", head=tuple(head), lines=lines)


__all__ = [
    "arrivals",
    "confirm_table",
    "confirm_us",
    "crash_table",
    "crashed",
    "deciders",
    "disks",
    "leader",
    "most_pending",
    "newest",
    "on_disk_when",
    "percentile_us",
    "pipelined",
    "race",
    "race_table",
    "rates_at",
    "sent_again",
    "slow_at",
    "slowed",
    "soft_limit_run",
    "soft_limit_table",
    "sync_table",
    "targets_table",
    "took_over",
]
