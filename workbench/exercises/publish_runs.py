"""Runs of lesson 05 that several cells share: stalled queues, slow targets, both ways at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.presets import Preset
from workbench.scenarios.publishers import QUEUES
from workbench.scenarios.run import Run, run
from workbench.trace.braking import blocked_us, held_by, links_of
from workbench.trace.fold import Scope
from workbench.trace.schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row
from workbench.trace.words import count

from . import measure
from .table import Table

FIRST = QUEUES[0]
PRESET = "rmq4.3"  # whose broker the lesson is about


def stalled(played: Run, publish: int, *, confirmed: int = 0) -> Run:
    """The run in which the first queue confirms some messages, stalls, and then more come.

    Args:
        played: a run of `publishers`.
        publish: how many messages the application wants to send to the stalled queue.
        confirmed: how many it sends before, and the queue confirms.
    """
    begun = played.then("publish", queue=FIRST, count=confirmed) if confirmed else played
    return begun.then("stall", queue=FIRST).then("publish", queue=FIRST, count=publish)


def waiting(preset: Preset | str, messages: int, **parameters: Any) -> Run:
    """A stalled queue with messages that wait for their confirm, and then go through at once."""
    given = {"service_us": "0", "rate": 0, **parameters}
    held = stalled(run("publishers", preset, given), messages)
    return held.then("resume", queue=FIRST)


def sent(rows: Sequence[Row], link: str = FIRST, *, event: str = SENT, after: int = -1) -> int:
    """Messages that the client sent over a link, or that arrived (`event`)."""
    found = measure.frames(rows, "transfer", event=event, from_peer=CLIENT, after=after)
    return sum(1 for row in found if row.link == link and not (row.frame or {}).get("more"))


def grants(
    rows: Sequence[Row], link: str | None = FIRST, *, event: str = SENT, after: int = -1
) -> list[Row]:
    """The broker's flows that grant a publisher credit; of every such link if None."""
    flows = measure.frames(rows, "flow", event=event, from_peer=BROKER, after=after)
    return [
        row
        for row in flows
        if row.link_sender == CLIENT
        and link in (None, row.link)
        and (row.frame or {}).get("link_credit") is not None
    ]


def granted(row: Row) -> int:
    """The link-credit of a flow."""
    return int((row.frame or {})["link_credit"])


def counter_before(rows: Sequence[Row], at: int, name: str, link: str = FIRST) -> int:
    """A counter of the broker's end of a publisher's link, as it was before a row."""
    found = 0
    for row in rows:
        if row.seq >= at:
            break
        if row.vantage == BROKER and row.link == link and row.link_sender == CLIENT:
            found = int((row.ledger or {}).get(name, found))
    return found


def blocks(rows: Sequence[Row], link: str = FIRST) -> list[Row]:
    """The rows at which the broker begins to withhold credit from a link for want of confirms."""
    return [
        row
        for row in rows
        if row.event == "block" and row.kind == "unconfirmed" and row.link == link
    ]


def dispositions(rows: Sequence[Row]) -> list[Row]:
    """The broker's outcomes for messages of publishers."""
    return [
        row
        for row in measure.frames(rows, "disposition", from_peer=BROKER)
        if (row.frame or {}).get("role") == "receiver"
    ]


def link_named(played: Run, name: str) -> Scope:
    """A client's sending link."""
    return next(link for link in links_of(played.rows, sender=CLIENT) if link.link == name)


def stalls_us(played: Run, link: str = FIRST) -> dict[str, int]:
    """How long each brake held a link's sender that had a message, in us, the longest first."""
    held = held_by(played.rows, link_named(played, link))
    total = blocked_us(played.rows, held)
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def rate(played: Run, link: str = FIRST) -> float:
    """Messages a second that arrive over a publisher's link, from the first to the last."""
    arrivals = [
        row.t_us
        for row in measure.frames(played.rows, "transfer", event=RECEIVED, from_peer=CLIENT)
        if row.link == link
    ]
    time_us = arrivals[-1] - arrivals[0] if arrivals else 0
    return (len(arrivals) - 1) * measure.MICROSECONDS / time_us if time_us else 0.0


def about(one: float, other: float) -> bool:
    """Whether two rates differ by less than a tenth."""
    return abs(one - other) < max(one, other) / 10


def consumed(played: Run, *, after: int = -1) -> int:
    """Messages that reached the client over its receiving link."""
    return measure.messages(played.rows, event=RECEIVED, after=after)


def first_link(rows: Sequence[Row]) -> list[Row]:
    """The flows of the first publisher's link of a capture, in order."""
    flows = grants(rows, None, event=OBSERVED)
    return [row for row in flows if row.link == flows[0].link] if flows else []


# -- tables -------------------------------------------------------------------------------------


def _table(name: str, head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Table:
    return Table(name=name, head=head, lines=lines)


def stall_table(
    confirmed: Sequence[int], *, preset: Preset | str, publish: int, **parameters: Any
) -> Table:
    """How many messages go out to a queue that confirmed some and then stalls; a row a run.

    Args:
        confirmed: how many it confirms before it stalls.
        preset: whose rules.
        publish: how many the application wants to send then.
        parameters: further ones of the scenario.
    """
    lines = []
    for before in confirmed:
        played = stalled(run("publishers", preset, parameters), publish, confirmed=before)
        flows = grants(played.rows)
        lines.append(
            (
                count(before, "message"),
                str(sent(played.rows)),
                str(counter_before(played.rows, played.last + 1, "unconfirmed")),
                str(len(flows)),
                ", ".join(str((row.frame or {})["delivery_count"]) for row in flows),
            )
        )
    head = ("confirmed before", "sent in all", "unconfirmed", "grants", "granted at delivery-count")
    return _table("Messages that go out to a queue that stalls", head, lines)


def rate_table(runs: dict[str, Run], links: Sequence[str] = QUEUES) -> Table:
    """Messages a second over each link, a row a run.

    Args:
        runs: by what to call them.
        links: columns; those that a run does not have are left empty.
    """
    there = [
        name
        for name in links
        if any(sent(played.rows, name, event=RECEIVED) for played in runs.values())
    ]
    lines = [
        (
            words,
            *(
                f"{rate(played, name):,.0f}" if sent(played.rows, name) else "none"
                for name in there
            ),
        )
        for words, played in runs.items()
    ]
    head = ("messages a second", *there)
    return _table("Messages a second over each link", head, lines)


def told_table(runs: dict[str, Run]) -> Table:
    """How many messages were confirmed and how many frames told of them, a row a run."""
    lines = []
    for words, played in runs.items():
        frames = dispositions(played.rows)
        ranges = ", ".join(
            f"{(row.frame or {})['first']} to {(row.frame or {}).get('last')}"
            if (row.frame or {}).get("last") is not None
            else str((row.frame or {})["first"])
            for row in frames[:3]
        )
        more = ", ..." if len(frames) > 3 else ""
        lines.append((words, str(sent(played.rows)), str(len(frames)), (ranges or "none") + more))
    head = ("run", "messages", "dispositions", "delivery-ids")
    return _table("How many frames tell of how many messages", head, lines)


def brake_table(played: Run) -> Table:
    """How long each brake held each link, a row a link."""
    links = [str(link.link) for link in links_of(played.rows, sender=CLIENT)]
    found = {name: stalls_us(played, name) for name in links}
    names = list(dict.fromkeys(brake for total in found.values() for brake in total))
    lines = [
        (name, *(f"{found[name].get(brake, 0) / 1000:,.1f}" for brake in names)) for name in links
    ]
    return _table("How long each brake held each link", ("link, in ms", *names), lines)
