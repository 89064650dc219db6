"""`summary`: each link of a trace in one line, for a first look; see `data/README.md`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Any

from workbench.trace.brakes import LINK_CREDIT, UNCONFIRMED
from workbench.trace.clock import Clock
from workbench.trace.schema import CLIENT, Row
from workbench.trace.words import counted, duration, times

from .channels import carried
from .credit import SENDER, credit_rows
from .stalls import Stall, stalls
from .vantage import LinkKey, Way
from .violations import BEYOND_CREDIT, BEYOND_WINDOW, violations

__all__ = ["LinkSummary", "advice", "broken", "holding", "remedy", "summaries", "summarise"]


@dataclass(slots=True, kw_only=True)
class LinkSummary:
    """One link of one run, or what stands for one.

    Attributes:
        run: the run, and so on for the key.
        messages: deliveries that its sender began.
        first_seq: the row of the first of them; None if there is none.
        at_zero_us: time with link-credit 0, from its first frame to its last.
        lasted_us: time from its first frame to its last.
        stalls: how often a sender with something to send was held.
        longest_us: the longest of those.
        longest_brake: what held it then; None without a stall.
        longest_seq: the row where that began.
        violations: deliveries that were certainly begun without credit [2.6.7].
        beyond_window: transfer frames that were certainly sent beyond the session's window [2.5.6].
        advice: who waited, how long, why, and what to change.
    """

    run: str
    connection: str | None
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    messages: int = 0
    first_seq: int | None = None
    at_zero_us: int = 0
    lasted_us: int = 0
    stalls: int = 0
    longest_us: int = 0
    longest_brake: str | None = None
    longest_seq: int | None = None
    violations: int = 0
    beyond_window: int = 0
    advice: str = ""


def summarise(rows: Sequence[Row]) -> list[LinkSummary]:
    """One summary for each link, in order of its key.

    Args:
        rows: a whole trace in order.
    """
    return summaries(rows, stalls(rows), violations(rows))


def summaries(
    rows: Sequence[Row], held: Sequence[Stall], broken: Sequence[Mapping[str, Any]]
) -> list[LinkSummary]:
    """The same where `stalls` and `violations` of these rows have been answered already.

    Args:
        rows: a whole trace in order.
        held: its stalls.
        broken: its violations.
    """
    places = {(row.run, row.seq): row for row in rows}
    found: dict[tuple[Any, ...], LinkSummary] = {}
    before: dict[tuple[Any, ...], tuple[int, int | None]] = {}
    inside: set[tuple[Any, ...]] = set()  # links in the middle of a message
    for credit in credit_rows(rows):
        if credit.end != SENDER or credit.link is None:
            continue
        key, row = credit[:6], places[credit.run, credit.seq]
        link = found.get(key)
        if link is None:
            link = found[key] = LinkSummary(
                **dict(zip(credit._fields[:6], key, strict=True))  # type: ignore[arg-type]
            )
        then, left = before.get(key, (row.t_us, None))
        link.lasted_us += row.t_us - then
        if left == 0:
            link.at_zero_us += row.t_us - then
        before[key] = (row.t_us, credit.link_credit)
        if row.kind != "transfer" or row.from_peer != credit.link_sender:
            continue
        if key not in inside:
            link.messages += 1
            link.first_seq = credit.seq if link.first_seq is None else link.first_seq
        (inside.add if row.goes_on else inside.discard)(key)
    for one in carried(rows):
        found[one.key] = LinkSummary(
            **one.key._asdict(), messages=one.messages,
            first_seq=None if one.begun is None else one.begun.seq,
            lasted_us=one.last.t_us - one.first.t_us,
        )  # fmt: skip
    clocks: defaultdict[str, Clock] = defaultdict(Clock)
    for row in rows:
        clocks[row.run].see(row)
    longest: dict[tuple[Any, ...], str] = {}  # in words, where its number is no time
    for stall in held:
        key = LinkKey(*stall[:6])  # type: ignore[arg-type]
        if key.link is None:  # of a connection without links, nothing may have been sent
            found.setdefault(key, LinkSummary(**key._asdict()))
        link = found.get(key)
        if link is None:
            continue
        link.stalls += 1
        if link.longest_brake is None or stall.end_us - stall.start_us > link.longest_us:
            link.longest_us = stall.end_us - stall.start_us
            link.longest_brake, link.longest_seq = stall.brake, stall.seq
            longest[key] = clocks[stall.run].in_words(stall.start_us, stall.end_us)
    for breach in broken:
        link = found.get(LinkKey.of(breach))
        if link is not None and breach["certain"]:
            link.violations += breach["what"] == BEYOND_CREDIT
            link.beyond_window += breach["what"] == BEYOND_WINDOW
    links = [asdict(link) for link in found.values()]
    whole = holding(links)
    for (key, link), values in zip(found.items(), links, strict=True):
        link.advice = advice(values, longest.get(key, ""), whole=whole)
    return sorted(found.values(), key=lambda link: tuple(map(str, astuple(link)))[:6])


_WAITED = {
    "link-credit": (
        "for credit",
        "the receiver grants too little, or too late",
        "Let it grant more at a time, or before the last credit is used up",
    ),
    "unconfirmed": (
        "for credit",
        "the broker withholds it until its queues confirm",
        "Look at the slowest queue that this link fills: its disk, its replicas, its limits",
    ),
    "session-window": (
        "for the session window to open",
        "the receiver takes frames more slowly than they come",
        "Let it read faster, or announce a larger incoming-window",
    ),
    "alarm": (
        "for a resource alarm to end",
        "the broker is short of memory or disk",
        "Free some there, or consume what is queued",
    ),
    "prefetch": (
        "for acknowledgements",
        "its consumers had as many messages as their prefetch allows",
        "Let them acknowledge sooner; a larger prefetch helps only against long round trips",
    ),
    "qpid-window": (
        "for earlier transfers to complete",
        "its window was full, and a queue above its watermark completes nothing",
        "Consume faster, or raise the watermarks; a larger window helps only against long round"
        " trips",
    ),
    "credit-flow": (
        "for the broker to read on",
        "a process behind its reader had no credit to give",
        "Look at the slowest process behind it: the queue, its disk, its replicas",
    ),
    "tcp": (
        "for the connection to take octets",
        "the other end does not read its socket",
        "Look at the process there, and at the network between",
    ),
}
"""By brake: for what the sender waited, why, and what to change."""

_FIRST = (
    "for its first credit",
    "a link has none until its receiver grants some",
    "Let it grant as soon as the link is attached; that takes a round trip at least",
)
"""The same of a link that waited once, before its first message."""

_STOPPED = (
    "for the broker to give it credit",
    "a queue above its maximum stops the sessions that publish to it",
    "Consume faster, or raise the queue's maximum",
)
"""The same of the credit of a session, which Qpid's Java broker gives in AMQP 0-10."""

_UNGRANTED = (
    "for credit of its subscribers",
    "nothing was left of what they had granted, in messages or in octets",
    "Let them grant more, or complete messages sooner, which in window mode gives credit back",
)
"""The same of subscriptions in AMQP 0-10."""


_NONE: Mapping[Way, str] = {}


def holding(links: Iterable[Mapping[str, Any]]) -> dict[Way, str]:
    """What held whole connections without links, and so all of their channels: names, by way.

    Args:
        links: of a trace, each as of `advice`.
    """
    held = (LinkKey.of(link) for link in links if link["session"] is None and link["longest_us"])
    return {key.way: key.name for key in held}


def advice(link: Mapping[str, Any], longest: str = "", *, whole: Mapping[Way, str] = _NONE) -> str:
    """Who waited, how long, why, and what to change, in words.

    Args:
        link: the columns of a `LinkSummary`; of Spark's answer, too.
        longest: how long the longest wait was, where `longest_us` is no time; then nothing is
            said of the link's share of time without credit either.
        whole: what was `holding` connections of the trace.
    """
    sender, brake = link["link_sender"] or "sender", link["longest_brake"]
    wrong = broken(link)
    if brake is None or not (longest or link["longest_us"]):  # what took no time is no wait
        way = LinkKey.of(link).way
        if link["session"] is not None and way in whole:
            return f"Nothing held it but what held its connection: see {whole[way]}."
        return wrong or "Nothing that is known to have been ready had to wait."
    waited, why, change = _WAITED[brake]
    if brake == LINK_CREDIT and link["link"] is None:
        waited, why, change = _STOPPED if link["link_sender"] == CLIENT else _UNGRANTED
    elif (
        brake == LINK_CREDIT
        and link["stalls"] == 1  # of several the later ones can be helped
        and link["longest_seq"] < (link["first_seq"] or math.inf)
    ):
        waited, why, change = _FIRST
    took = longest or duration(link["longest_us"])
    text = f"The {sender} waited {took} {waited}"
    if link["stalls"] > 1:  # for one thing or another
        often = times(link["stalls"])
        text = f"The {sender} waited {often}; the longest wait, {took}, was {waited}"
    text += f": {why}. {change}."
    # What came before the trace is not counted: of all of it the share would be larger.
    zero_us = 0 if longest or link["attach_no"] is None else link["at_zero_us"]
    # A wait that went on after the link's last frame is longer than what is counted up to that.
    if zero_us and brake in (LINK_CREDIT, UNCONFIRMED) and link["longest_us"] <= zero_us:
        text += f" The link had no credit for {_share(zero_us, link['lasted_us'])} of its life."
    return f"{wrong} {text}".lstrip()


def _share(part: int, whole: int) -> str:
    """A share of something in percent, rounded; never to all or nothing of it: `more than 99%`."""
    percent = (200 * part + whole) // (2 * whole)
    if percent == 0 < part:
        return "less than 1%"
    if percent == 100 and part < whole:
        return "more than 99%"
    return f"{percent}%"


def remedy(brake: str) -> str:
    """What to change about a brake, without the full stop."""
    _, _, change = _WAITED[brake]
    return change


def broken(link: Mapping[str, Any]) -> str:
    """Which rules of flow control its sender broke, and what to correct; empty if none.

    Args:
        link: as of `advice`.
    """
    sender, wrong = link["link_sender"] or "sender", []
    if link["violations"]:
        begun = counted(link["violations"], "delivery", "deliveries")
        wrong.append(
            f"The {sender} began {begun} without credit, which 2.6.7 forbids. Correct how it counts"
            " its credit."
        )
    if link["beyond_window"]:
        sent = counted(link["beyond_window"], "frame")
        wrong.append(
            f"The {sender} sent {sent} beyond the session window, which 2.5.6 forbids. Correct how"
            " it counts the window."
        )
    return " ".join(wrong)
