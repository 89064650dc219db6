"""Lesson 07: what a run says about each of its questions, and its checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from workbench import presets
from workbench.exercises import measure
from workbench.exercises.checks import is_whole
from workbench.exercises.measure import about, link_rate, stalls_us
from workbench.exercises.predict import questions
from workbench.exercises.quorum_desk import pipelined, sync_desk
from workbench.exercises.quorum_real import real_chart, real_table, senders_table
from workbench.exercises.table import Table, table_of, tables
from workbench.scenarios.beside import Measured, decided, followed
from workbench.scenarios.confirming import (
    BATCHES,
    ONE_AT_A_TIME,
    STRATEGIES,
    Confirmed,
    publish_for,
)
from workbench.scenarios.hanging_disk import beside_a_hanging_disk
from workbench.scenarios.run import Run, run
from workbench.trace.given import takes
from workbench.trace.replicas import (
    COMMITTED,
    CONFIRMED,
    DOWN,
    REPLICATED,
    WRITTEN,
    Message,
    Nodes,
    Replicas,
)
from workbench.trace.schema import CLIENT, RECEIVED, SENT, Row

from .declare import FORMS, Case, Declared, Facts, Found, case, facts, largest, reached
from .neighbours import beside_slow_target

__all__ = [
    "check",
    "confirm_table",
    "crashed",
    "disks",
    "predict",
    "questions",
    "race",
    "race_table",
    "real_chart",
    "real_table",
    "senders_table",
    "slowed",
    "soft_limit_run",
    "soft_limit_table",
    "sync_desk",
    "tables",
    "targets_table",
]

PRESET = "rmq4.3"  # whose broker the lesson is about
CHANNEL_MESSAGES = 2_000  # as many as no limit here lets in

lesson = Declared("07")
predict, check, say = lesson.predict, lesson.check, lesson.say


# -- what is read off a run


@takes
def disks(played: Run, fsync_ms: Mapping[str, int]) -> Run:
    """The run in which these nodes have other disks: name to ms for one fsync."""
    for node, time_ms in fsync_ms.items():
        played = played.then("slow_disk", node=node, fsync_us=time_ms * 1000)
    return played


@takes
def slowed(played: Run, nodes: Sequence[str], fsync_ms: int) -> Run:
    """The run in which these nodes have this slow disk."""
    return disks(played, dict.fromkeys(nodes, fsync_ms))


def _arrivals(rows: Sequence[Row], *, event: str = RECEIVED, after: int = -1) -> list[Row]:
    """Messages that publishers sent, as they come to the broker (or as they go out)."""
    return measure.frames(rows, "transfer", event=event, from_peer=CLIENT, after=after)


def newest(story: Replicas) -> Message:
    """The message that was published last."""
    return story.messages[max(story.messages)]


def confirm_us(played: Run) -> int | None:
    """From the arrival of the last message at the broker to its confirm; None if there is none."""
    message = newest(Replicas(played.rows))
    step = message.done.get(CONFIRMED)
    if step is None:
        return None
    return played.rows[step - 1].t_us - _arrivals(played.rows)[message.number - 1].t_us


def _safe_row(story: Replicas, message: Message, node: str) -> Row | None:
    """The row since which a disk has the message; None if it never had it."""
    steps = zip(message.disks.steps, message.disks.values, strict=True)
    return next((story.rows[at - 1] for at, nodes in steps if node in nodes), None)


def _safe_us(story: Replicas, message: Message, node: str) -> int:
    """When a disk had the message."""
    row = _safe_row(story, message, node)
    assert row is not None
    return row.t_us


def on_disk_when(story: Replicas, message: Message) -> Nodes:
    """Nodes that the leader had heard of when it took the message for committed.

    What is on a disk in the very last moment before cannot have been heard of yet, unless the disk
    is the leader's own.
    """
    step = message.done[COMMITTED]
    t_us = story.rows[step - 1].t_us
    return tuple(
        node
        for node in message.disks.at(step)
        if _safe_us(story, message, node) < t_us or node == story.leader.at(step)
    )


def deciders(story: Replicas, message: Message) -> Nodes:
    """Nodes with whose fsync the leader had a majority; more than one if they came at once."""
    heard = on_disk_when(story, message)
    times = {node: _safe_us(story, message, node) for node in heard}
    last_needed = heard[story.majority - 1]
    leads = story.leader.at(message.done[COMMITTED])
    return tuple(
        node
        for node in heard
        if node == last_needed
        or (times[node] == times[last_needed] and leads not in (node, last_needed))
    )


@takes
def crashed(played: Run, pending: int, state: str = WRITTEN) -> Run:
    """Publish so many messages; the leader crashes when the last of them has reached a state."""
    branch = played.then("publish", count=pending)
    return branch.act(_step_of(Replicas(branch.rows), state) - 1, "crash", node="leader")


def _step_of(story: Replicas, state: str) -> int:
    """The step at which the last message reaches a state."""
    message = newest(story)
    return next(step for step in message.logs.steps if story.reached(message, state, step)[0])


def _confirmed(story: Replicas) -> int:
    """How many messages are confirmed."""
    return sum(CONFIRMED in each.done for each in story.messages.values())


def _event(rows: Sequence[Row], event: str) -> Row:
    """The first row of a kind of event."""
    return next(row for row in rows if row.event == event)


def _node(row: Row) -> str:
    """Whose row it is."""
    return row.vantage.rpartition("@")[2]


def _sent_again(played: Run) -> list[Row]:
    """The rows in which the new leader takes messages into its log."""
    elected = _event(played.rows, "elect")
    return [
        row
        for row in played.rows[elected.seq + 1 :]
        if row.event == "append" and row.vantage == elected.vantage and row.extra.get("messages")
    ]


def _copies(played: Run) -> int:
    """How many messages those are."""
    return sum(runs[-1] for row in _sent_again(played) for runs in row.extra["messages"])


def _ready(played: Run) -> int:
    """Messages in the queue at the end, as the leader has it."""
    return next(
        int(row.ledger["queue_ready"])
        for row in reversed(played.rows)
        if row.vantage.startswith("queue:") and row.ledger and "queue_ready" in row.ledger
    )


@takes
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
    row = _slow(played)
    return None if row is None else int(row.extra["pending"])


def _slow(played: Run) -> Row | None:
    """The row at which the queue first counted as slow."""
    blocks = (row for row in played.rows if row.event == "block" and row.kind == "soft-limit")
    return next(blocks, None)


def _most_pending(played: Run) -> int:
    """The most messages that ever waited for a confirm, as the broker counts."""
    return max((number for _, number in _most_so_far(played)), default=0)


def _most_so_far(played: Run) -> Iterator[tuple[int, int]]:
    """The rows at which more wait than ever before, by `seq`, and how many."""
    most = 0
    for row in played.rows:
        if row.link_sender == CLIENT and row.vantage == "broker":
            number = int((row.ledger or {}).get("unconfirmed", 0))
            if number > most:
                most = number
                yield row.seq, number


@takes
def race(n: int, fsync_us: int, send_us: int, virtual_us: int = 500_000) -> dict[str, Confirmed]:
    """The three ways to confirm, each alone with a queue of three replicas."""
    found = {}
    for way in STRATEGIES:
        (found[way],) = publish_for(
            way, n=n, fsync_us=fsync_us, send_us=send_us, virtual_us=virtual_us
        )
    return found


# -- what is asked


def _listed(names: Sequence[str]) -> str:
    """Several names in a sentence: `n1, n2 and n4`."""
    *most, last = names
    return say("and", most=", ".join(most), last=last) if most else last


def _replicas(form: int) -> Run:
    return run("quorum", PRESET, {"replicas": "5" if form % 2 else "3"})


@lesson.asks
def trigger(run: Run) -> Found:
    """What has to be so before a message is confirmed?"""
    disks = Replicas(run.rows).nodes.values()
    assert all(disk.fsync_us.now is not None for disk in disks)  # of a dead node nobody knows
    times = [f"{measure.milliseconds(disk.fsync_us.now or 0):g}" for disk in disks]
    yield {"count": len(times), "times": _listed(times)}
    branch = run.then("publish", count=1)
    story = Replicas(branch.rows)
    message = newest(story)
    step = message.done[COMMITTED]
    heard = on_disk_when(story, message)
    minority = "leader" if story.leader.at(step) in heard else "memory"
    committed, in_memory = (branch.rows[at - 1] for at in (step, _step_of(story, REPLICATED)))
    return facts(
        "majority" if len(heard) >= story.majority else minority,
        disks=_listed(heard),
        heard=len(heard),
        nodes=len(story.nodes),
        majority=story.majority,
        lag=measure.milliseconds(committed.t_us - in_memory.t_us),
        wrong={
            "the leader alone decides": "leader",
            "memory is enough": "memory",
            "every replica must have it": "everybody",
        },
        seen=committed,
        shown=branch,
    )


@trigger.again
def _unequal(form: int) -> dict[str, Any]:
    step = form % FORMS
    times = {"n1": 3, "n2": 9 + step, "n3": 1, "n4": 60 + step, "n5": 6}
    return {"run": disks(run("quorum", PRESET, {"replicas": "5"}), times)}


@lesson.asks
def slow_disks(run: Run, nodes: Sequence[str], fsync_ms: int) -> Found:
    """When is a message confirmed if these disks are slow?"""
    equal = run.then("publish", count=1)
    story = Replicas(equal.rows)
    leader, majority = story.leader.now, story.majority
    few = "leader" if leader in nodes else "follower"
    yield {
        "leader": leader,
        "count": len(story.nodes),
        "names": _listed(nodes),
        "kind": "majority" if len(set(nodes)) >= majority else few,
    }
    slow = slowed(run, nodes, fsync_ms).then("publish", count=1)
    took, before = confirm_us(slow), confirm_us(equal)
    assert took is not None
    assert before is not None
    assert about(took, before) or took >= fsync_ms * 1_000
    story = Replicas(slow.rows)
    return facts(
        "before" if about(took, before) else "slow",
        took=measure.milliseconds(took),
        before=measure.milliseconds(before),
        heard=_listed(on_disk_when(story, newest(story))),
        majority=majority,
        wrong={"the slowest disk decides": "slow", "one disk is like another": "before"},
        beside=decided(slow, say("confirm"), slow.rows[newest(story).done[CONFIRMED] - 1]),
        shown=slow,
    )


slow_disks.again(
    lambda form: {"run": _replicas(form), "nodes": ["n2"], "fsync_ms": 30 + form % FORMS},
    kept_as="slow-follower",
)
slow_disks.again(
    lambda form: {
        "run": _replicas(form),
        "nodes": ["n1", "n3", "n5"] if form % 2 else ["n1", "n2"],
        "fsync_ms": 30 + form % FORMS,
    },
    kept_as="slow-majority",
)


@lesson.asks
def who_resends(run: Run, pending: int) -> Facts:
    """Who sends the pending messages again when the leader has crashed?"""
    branch = crashed(run, pending)
    crash, elected = _event(branch.rows, "crash"), _event(branch.rows, "elect")
    assert not _confirmed(Replicas(branch.rows[: crash.seq]))
    frames = len(_arrivals(branch.rows, event=SENT, after=crash.seq))
    told = _confirmed(Replicas(branch.rows))
    nobody = "leader" if told == pending else "nobody"
    inside = "session" if _sent_again(branch) else nobody
    return facts(
        "publisher" if frames else inside,
        crash=measure.step(crash),
        frames=frames,
        elected=_node(elected),
        election=measure.step(elected),
        told=told,
        wrong={
            "the publisher must send again": "publisher",
            "followers have everything": "leader",
            "what is pending is lost": "nobody",
        },
        beside=decided(branch, say("resends")),
        seen=elected,
    )


@lesson.asks
def twice(run: Run, pending: int) -> Facts:
    """How many messages are in the queue when all were sent to a log that had them already?"""
    branch = crashed(run, pending, REPLICATED)
    ready, again = _ready(branch), _copies(branch)
    assert again == pending
    return facts(
        ready,
        again=again,
        wrong={
            "what is sent again is there twice": ready + again,
            "what was not confirmed is gone": 0,
        },
        beside=decided(branch, say("queue")),
    )


twice.again(lambda form: {"run": _replicas(form), "pending": 10 + form % FORMS})


@lesson.asks
def beside(fast: Run, slow: Run, link: str, slow_link: str) -> Facts:
    """What becomes of the link to a classic queue beside a slow quorum queue?"""
    return beside_slow_target(fast, slow, link, slow_link)


@lesson.asks
def slower_sync(in_flight: int, fsync_us: int, times: int) -> Found:
    """What becomes of the rate if an fsync takes several times as long?"""
    yield {
        "fast_ms": measure.milliseconds(fsync_us),
        "slow_ms": measure.milliseconds(fsync_us * times),
    }
    fast, slow = (pipelined(in_flight, us).rate for us in (fsync_us, fsync_us * times))
    assert about(slow * times, fast)  # nothing but the disk is the limit
    doubled = times == 2
    return facts(
        {2: "half", 4: "quarter"}[times],
        fast=fast,
        slow=slow,
        wrong={
            "batches grow and make up for it": "same",
            **({"the leader's and the followers' times multiply": "quarter"} if doubled else {}),
        },
        beside=Measured(
            unit=say("rate"),
            heights={say("quick"): fast, say("slow"): slow},
            yours={
                "batches grow and make up for it": (say("slow"), fast),
                "the leader's and the followers' times multiply": (say("slow"), fast / times**2),
            },
        ),
    )


slower_sync.again(lambda form: {"in_flight": 40 + form % FORMS, "fsync_us": 4000, "times": 2})


@lesson.asks
def credit_bound(run: Run, publish: int) -> Found:
    """How fast can a publisher be whose credit and round trip are given?"""
    credit = run.preset.publisher_credit
    trip_us = 2 * int(run.parameters["latency_us"] or 0)
    each = {"one": 1, "all": credit, "double": 2 * credit}
    rates = {name: times * measure.MICROSECONDS // trip_us for name, times in each.items()}
    yield {
        "credit": credit,
        "trip_ms": measure.milliseconds(trip_us),
        "one": rates["one"],
        "all": rates["all"],
        "double": rates["double"],
    }
    assert not run.parameters["fsync_us"]
    seen = _arrivals(run.then("publish", count=publish).rows)
    reached = (len(seen) - 1) * measure.MICROSECONDS / (seen[-1].t_us - seen[0].t_us)
    return facts(
        min(rates, key=lambda name: abs(rates[name] - reached)),
        reached=reached,
        wrong={"one message for each round trip": "one", "two grants are out at a time": "double"},
        beside=Measured(
            unit=say("rate"),
            heights={say("link"): reached},
            yours={
                "one message for each round trip": (say("link"), rates["one"]),
                "two grants are out at a time": (say("link"), rates["double"]),
            },
        ),
    )


@lesson.asks
def best_way(results: Mapping[str, Confirmed], n: int) -> Found:
    """Which of three ways to confirm is the fastest?"""
    yield {"choices": tuple(results)}
    rate = {way: one.rate for way, one in results.items()}
    return facts(
        largest(rate),
        rates="; ".join(say("way", way=way, rate=one.rate) for way, one in results.items()),
        wrong={
            "batches use the disk best": BATCHES,
            "fewer in flight, less to wait for": ONE_AT_A_TIME,
        },
        beside=Measured(unit=say("rate"), heights=rate),
    )


@lesson.asks
def soft_limit(limit: int, publish: int) -> Facts:
    """How many commands are pending when a queue turns slow?"""
    branch = soft_limit_run(limit, publish)
    pending = slow_at(branch)
    assert pending is not None
    return facts(
        pending,
        wrong={"at the limit": limit, "when credit is used up": _most_pending(branch)},
        beside=decided(branch, say("pending"), _slow(branch)),
    )


soft_limit.again(lambda form: {"limit": 20 + form % FORMS, "publish": 300})


@lesson.asks
def overshoot(limit: int, publish: int) -> Facts:
    """And how many will be pending at most?"""
    branch = soft_limit_run(limit, publish)
    stop = slow_at(branch)
    assert stop is not None
    assert _most_pending(branch) < publish
    return facts(
        _most_pending(branch),
        wrong={"the soft limit stops the publisher": stop, "nothing stops it": publish},
        beside=followed(
            branch,
            say("waiting"),
            most := dict(_most_so_far(branch)),
            {
                "the soft limit stops the publisher": {
                    seq: min(number, stop) for seq, number in most.items()
                },
                "nothing stops it": {**most, branch.last: publish},
            },
        ),
    )


overshoot.again(lambda form: {"limit": 20 + form % FORMS, "publish": 400 + form % FORMS})


# -- what is checked


@lesson.checks(scenarios=("quorum",), acted=True)
def recovered(desk: Any) -> Case:
    """Was there a time without a majority, with messages waiting, and was all confirmed later?

    Args:
        desk: a stage, or a run.
    """
    played = Run.shown_by(desk)
    story = Replicas(played.rows)
    came = [row.seq + 1 for row in _arrivals(story.rows)]  # as the story counts
    changes = [*zip(story.stall.steps, story.stall.values, strict=True), (len(story.rows) + 1, "")]
    stalls = [(begin, end) for (begin, why), (end, _) in pairwise(changes) if why]
    if not stalls:
        return case("never")
    begun = measure.step(story.rows[stalls[0][0] - 1])
    waited = any(
        sum(at < begin for at in came) > story.confirmed.at(begin)
        or any(begin <= at < end for at in came)
        for begin, end in stalls
    )
    if not waited:
        return case("idle", begun=begun)
    left = len(came) - story.confirmed.now
    if left:
        return case("left", begun=begun, left=left)
    return case("right", begun=begun, came=len(came))


@lesson.checks()
def smallest_cap(answer: Any, *, rate: int, fsync_us: int) -> Case:
    """Is that the smallest cap with which a pipelined publisher reaches a rate?

    Args:
        answer: how many may be unconfirmed; `...` if there is none yet.
        rate: messages a second.
        fsync_us: time of an fsync.
    """
    if not is_whole(answer):
        return case("no-cap")
    if answer > rate:
        return case("beyond")
    reached = pipelined(answer, fsync_us).rate
    if reached < rate:
        return case("slow", reached=reached)
    less = pipelined(answer - 1, fsync_us).rate if answer > 1 else 0
    return case("right" if less < rate else "larger", reached=reached, next=answer - 1, less=less)


@lesson.checks()
def decides(answer: Any, played: Run) -> Case:
    """Is that the node whose fsync was the last one needed for the newest message's confirm?

    Args:
        answer: a node's name; `...` if there is none yet.
        played: the run.
    """
    story = Replicas(Run.shown_by(played).rows)
    if answer not in tuple(story.nodes):  # a list, too, is no node
        return case("no-node", given=repr(answer), nodes=", ".join(story.nodes))
    message = newest(story)
    if answer not in deciders(story, message):
        synced = _safe_row(story, message, answer)
        return case("never") if synced is None else case("synced", step=measure.step(synced))
    before = message.done[CONFIRMED] - 1
    down = [name for name, node in story.nodes.items() if node.role.at(before) == DOWN]
    return case(
        "right",
        leader=story.leader.at(before),
        heard=", ".join(on_disk_when(story, message)),
        down=", ".join(down) or say("none"),
    )


# -- tables


@takes
@reached()
def confirm_table(runs: Mapping[str, Run]) -> Table:
    """How long the last message of each run waited for its confirm, and for whose disks."""
    lines = []
    for words, played in runs.items():
        story = Replicas(played.rows)
        message = newest(story)
        time_us = confirm_us(played)
        told = (say("never"), say("none"), ", ".join(message.disks.now) or say("none"))
        if time_us is not None:
            decided = lesson.joined("or", deciders(story, message))
            heard = ", ".join(on_disk_when(story, message))
            told = (f"{measure.milliseconds(time_us):,.1f}", decided, heard)
        lines.append((words, *told))
    return table_of("confirms", lines)


@takes
def soft_limit_table(runs: Mapping[str, Run], channels: Mapping[str, int] | None = None) -> Table:
    """When a queue counts as slow, and how far it goes on all the same.

    Args:
        runs: over AMQP 1.0, by what they are called.
        channels: soft limits before a channel that heeds them, while the disk hangs.
    """
    found = [(words, slow_at(played), _most_pending(played)) for words, played in runs.items()]
    for words, limit in (channels or {}).items():
        channel = beside_a_hanging_disk(limit, CHANNEL_MESSAGES)
        found.append((words, channel.slow_with, channel.most_inside))
    lines = [
        (words, say("never") if slow is None else str(slow), str(most))
        for words, slow, most in found
    ]
    return table_of("soft-limit", lines)


@takes
def race_table(results: Mapping[str, Confirmed]) -> Table:
    """Throughput and latency of each way."""
    lines = []
    for way, result in results.items():
        ordered = sorted(result.latencies_us) or [0]
        late = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
        times = (round(result.mean_latency_us), late)
        shown = (f"{measure.milliseconds(time):,.1f}" for time in times)
        lines.append((way, f"{result.rate:,.0f}", *shown, str(result.most_unconfirmed)))
    return table_of("ways-to-confirm", lines)


@takes
@reached()
def targets_table(runs: Mapping[str, Run], links: Sequence[str]) -> Table:
    """Messages a second over each link, and how long each was held, a row a run."""
    more = [cell for link in links for cell in (say("target", link=link), say("target-held"))]
    lines = []
    for words, played in runs.items():
        cells = [words]
        for link in links:
            held = sum(stalls_us(played, link).values())
            cells += [f"{link_rate(played, link):,.0f}", f"{measure.milliseconds(held):,.1f}"]
        lines.append(tuple(cells))
    return table_of("targets", lines, more)
