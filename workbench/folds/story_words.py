"""What a story says: of what held a link's sender, of its receiver, of answers, in sentences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any

from workbench.trace.brakes import ALARM, CREDIT_FLOW, QPID_WINDOW
from workbench.trace.clock import UNKNOWN_TIME, Clock
from workbench.trace.schema import Row
from workbench.trace.words import counted, times

from . import channels, summary
from .intervals import Intervals, Span, took
from .stalls import PROMPT_US
from .summary import LinkSummary
from .vantage import LinkKey, percentile

NO_CREDIT, CLOSED, FULL = "no credit", "window closed", "prefetch used up"
NO_ROOM = "TCP window 0"
"""Times in which nothing could be sent; that somebody wanted to is what makes them stalls."""

_RULES = {
    "one-at-a-time": "one more after each message",
    "batch": "when all was used up",
    "at-half": "when half was used up",
    "fixed-timer": "at fixed times",
    "other": "now and then",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A time in which a link's sender could not send.

    Attributes:
        what: the brake of a stall; else `no credit`, `window closed`, `prefetch used up` or
            `TCP window 0`.
        start_us, end_us: since and until when, microseconds since the run's start.
        seq: the row with which it began.
        stall: something is known to have waited.
        late: it is known by what followed alone, and when it began nothing waited: for how long
            something did is not known.
        lasts: nothing had ended it when the trace ended.
        closed: nothing had ended it when its link was closed, or what carries it.
        cancelled: then its consumer was, and not what carries that.
        refused: the other end said that it takes nothing, whatever there was to send.
        lacks: octets of the connection are missing within it: what ended it may be among them.
        timed: the capture's clock tells how long it lasted; it does not where it goes back.
    """

    what: str
    start_us: int
    end_us: int
    seq: int
    stall: bool
    lasts: bool = False
    closed: bool = False
    cancelled: bool = False
    refused: bool = False
    late: bool = False
    lacks: bool = False
    timed: bool = True

    @property
    def lasted_us(self) -> int:
        """How long; 0 where nobody knows."""
        return self.end_us - self.start_us if self.timed else 0

    def lasted(self, clock: Clock) -> str:
        """How long, in words."""
        return clock.length(self.lasted_us) if self.timed else UNKNOWN_TIME


ALONE = {
    "confirm": ("no confirm", "confirmed", "take confirms as they come"),
    "settlement": ("no outcome", "settled", "take outcomes as they come"),
}
"""By measure: what was missing, and what is to be changed."""


def turn(measure: str, alone: Sequence[Interval], clock: Clock) -> str:
    """Who waited for the answer to each message, how long, why, and what to change."""
    _, answered, change = ALONE[measure]
    in_all = clock.length(sum(one.lasted_us for one in alone))
    return (
        f"The client waited {times(len(alone))}, {in_all} in all, until its message was {answered},"
        " and sent the next one at once: it has one message in flight at a time, which no brake"
        f" asks for. Let it publish several before it waits, or go on and {change}."
    )


def advice(link: LinkSummary, held: Sequence[Interval], clock: Clock, *, known: bool) -> str:
    """What is to be said of what held it.

    Args:
        link: its numbers.
        held: when it was held.
        clock: that told the times.
        known: its credit is, from its attach, if that was seen, to its end.
    """
    late = sum(one.late for one in held)
    if late and late == len(held):
        text = (
            f"The {link.link_sender} had nothing to send when it was stopped. Messages came"
            f" later and may have waited, {times(late)}, for {_at_most(held, clock)}."
        )
        return f"{summary.broken(asdict(link))} {text}".lstrip()
    more = f" Of these waits {late:,} began when nothing was to be sent." if late else ""
    exact = clock.exact and all(one.timed for one in held)
    if held and not (exact and known):
        # Either the number of the summary is no time, or its share of the link's life is larger.
        return f"{summary.advice(asdict(link), _longest(held, clock))}{more}"
    return f"{link.advice}{more}"


def _longest(its: Iterable[Interval], clock: Clock) -> str:
    """The longest of these, in words; of those of which the clock tells how long they were."""
    return max(its, key=lambda one: (one.timed, one.lasted_us)).lasted(clock)


def _at_most(its: Iterable[Interval], clock: Clock) -> str:
    longest = _longest(its, clock)
    return longest if longest == UNKNOWN_TIME else f"{longest} at most"


def answers(
    key: LinkKey,
    settled: Mapping[str, channels.Begun],
    places: Mapping[int, Row],
    missing: Sequence[Row],
    until_us: int | None,
    clock: Clock,
) -> Iterator[str]:
    """How long it took until messages were settled, confirmed and so on, in a sentence.

    Args:
        key: of whose messages.
        settled: what was and what was not, by measure.
        places: rows by `seq`.
        missing: rows that say that octets of the connection are missing, in order.
        until_us: up to when those have waited that never came; None if nobody knows.
        clock: that told the times.
    """
    for measure, its in settled.items():
        if key not in its:
            continue
        (spans, unanswered), (word, message, messages) = its[key], _ASKED[measure]
        many, one, tail = f"{len(unanswered):,}", len(unanswered) == 1, ""
        since_us = places[min(unanswered)].t_us if unanswered else 0
        lost = bool(unanswered and missing and min(unanswered) < missing[-1].seq)
        if lost:
            tail = f": octets are missing after {'it' if one else 'the first'}"
        elif unanswered and until_us is not None and clock.knows(since_us, until_us):
            waited = clock.length(until_us - since_us)
            tail = f": {'it' if one else 'the oldest'} had waited {waited} when the trace ended"
        if not spans and lost:
            whose = f"one {message}" if one else f"{many} {messages}"
            yield f"No answer to the {whose} is in the trace{tail}."
            continue
        if not spans:
            never = f"The one {message} was never {word}"
            if not one:
                never = f"None of the {many} {messages} was ever {word}"
            yield f"{never}{tail}."
            continue
        lasted = [took(span) for span in spans if clock.knows(span[0].t_us, span[1].t_us)]
        text = f"{word.capitalize()} after {UNKNOWN_TIME}"
        if lasted:
            typical = clock.length(percentile(lasted, 50) or 0)
            text = f"{word.capitalize()} after {typical} typically"
            text += f", {clock.length(max(lasted))} at most"
        if lasted and len(lasted) < len(spans):
            text += f"; of {len(spans) - len(lasted):,} the clock does not tell"
        if lost:
            text += f"; of {many} no answer is in the trace{tail}"
        elif unanswered:
            text += f"; {many} never {'was' if one else 'were'}{tail}"
        yield f"{text}."


_ASKED = {
    "settlement": ("settled", "message sent unsettled", "messages sent unsettled"),
    "confirm": (
        "confirmed", "message published in confirm mode", "messages published in confirm mode",
    ),
    "ack": (
        "acknowledged", "message delivered to a consumer", "messages delivered to consumers",
    ),
    "completion": ("completed", "transfer with a known number", "transfers with a known number"),
}  # fmt: skip
"""By measure of `latency`: what was wanted, and for what; a link may carry other messages, too."""


def limits(
    limits: Sequence[int] | None,
    full: Sequence[Intervals],
    could_not: Sequence[Interval],
    held: Sequence[Interval],
    clock: Clock,
) -> Iterator[str]:
    """What prefetch, or a producer's window, was, and how often it was reached.

    Rows tell when a consumer has all that it may have, whether or not anything waited. That a
    window is full they tell only where its producer waits, which is a stall.
    """
    if limits is None:
        return
    if not limits:
        yield "Its prefetch is not in the trace: whether it was used up cannot be known."
        return
    first, *others = (f"{limit:,}" if limit else "" for limit in limits)
    text = f"The limit was {first}" if first else "There was no limit"
    text += "".join(f"; then {f'it was {one}' if one else 'there was none'}" for one in others)
    its = [*(one for one in could_not if one.what == FULL),
           *(one for one in held if one.what == QPID_WINDOW)]  # fmt: skip
    if its:
        in_all = clock.length(sum(one.lasted_us for one in its))
        if not all(one.timed for one in its):
            in_all = UNKNOWN_TIME
        many = sum(bool(one.times) for one in full)
        whose = f" by {many:,} consumers" if many > 1 else ""
        text += f"; it was reached {times(len(its))}{whose}, for {in_all} in all"
    elif any(limits):
        text += "; it is not known to have been reached"
    yield f"{text}."


def unread(held: Sequence[Interval], *, delivers: bool) -> Iterator[str]:
    """Of a connection that the broker did not read: what its consumers said waited as well.

    RabbitMQ does not read a connection that has published while an alarm is on, nor one whose
    reader has no credit; `rabbit_reader.erl`.
    """
    if delivers and any(one.what in (ALARM, CREDIT_FLOW) for one in held):
        yield (
            "Its consumers acknowledge on the same connection, which was not read meanwhile: give"
            " them a connection of their own."
        )


def most(
    spans: Sequence[Span],
    unanswered: Iterable[int],
    places: Mapping[int, Row],
    until_us: int | None,
    clock: Clock,
) -> str:
    """Of a channel whose prefetch nobody knows: how much a consumer had, which hints at it."""
    begun = [since for since, _ in spans] + [places[seq] for seq in unanswered]
    turns = sorted(
        [(row.seq, row.t_us, 1) for row in begun]
        + [(answer.seq, answer.t_us, -1) for _, answer in spans]
    )
    now = list(accumulate(step for _, _, step in turns))
    most = max(now)
    edges = [t_us for _, t_us, _ in turns]
    edges.append(edges[-1] if until_us is None else until_us)
    held = [edges[at + 1] - edges[at] for at, there in enumerate(now) if there == most]
    in_all = clock.length(sum(held)) if clock.knows(edges[0], edges[-1]) else UNKNOWN_TIME
    return (
        f"At most {counted(most, 'message')} that the trace has {'was' if most == 1 else 'were'}"
        f" unacknowledged at once, {times(len(held))}, for {in_all} in all: if that is its"
        " prefetch, it was used up then."
    )


def without_room(could_not: Sequence[Interval], clock: Clock) -> Iterator[str]:
    """How often the other end had no room, in a sentence."""
    its = [one for one in could_not if one.what == NO_ROOM]
    if its:
        yield (
            f"The other end had no room for more (a TCP window of 0) {times(len(its))}, for"
            f" {_at_most(its, clock)}: it did not read."
        )


def grants(row: dict[str, Any], attached: bool, missing: Sequence[Row]) -> list[str]:
    """How the receiver grants, in a sentence.

    That it never does can be said where its attach was seen, and no octets are missing; by which
    rule, and up to how much, where none are.
    """
    if row["rule"] == "none":
        if not attached or missing:
            return ["No grant of its receiver is in the trace."]
        return ["Its receiver never granted credit."]
    if missing:  # how much each gave is counted from messages that may be in them
        return [f"Its receiver granted credit {times(row['grants'])} that the trace tells of."]
    if row["rule"] == "once":  # perhaps before its sender had attached: then nobody knows how much
        much = "" if row["granted"] is None else f": {row['granted']:,}"
        return [f"Its receiver granted credit once{much}."]
    granted = "" if row["granted"] is None else f", typically up to {row['granted']:,}"
    text = f"Its receiver granted credit {row['grants']:,} times{granted}, {_RULES[row['rule']]}"
    needed = row["credit_needed"]
    # More than there are messages is the pace of a burst, and nothing to be asked for.
    if row["advice"] == "raise" and needed is not None and needed <= row["messages"]:
        text += f"; to keep the sender going it takes about {needed:,}"
    return [f"{text}."]


def early(key: LinkKey, known: Row | None, clock: Clock) -> Iterator[str]:
    """Of a link that was attached before the trace begins: from which row its credit is known."""
    if key.attach_no is not None:
        return
    since = "never known, for its sender is not seen to use it up"
    if known is not None:
        since = f"known from {clock.moment(known.t_us)} on"
    yield f"Its attach is not in the trace: it is told by its handle, and its credit is {since}."


def closed(could_not: Sequence[Interval], clock: Clock, *, whole: bool) -> list[str]:
    """How often the window was closed, and whether the broker says so itself.

    What closed it may be in octets that are missing, or lie before the trace, which then is not the
    whole of it: it may have been closed before, and for longer.
    """
    closed = [one for one in could_not if one.what == CLOSED]
    if not closed:
        return []
    longest = _longest(closed, clock)
    most = "at most" if whole else "that the trace tells of"
    text = f"Its session window was closed {times(len(closed))}, for {longest} {most}"
    if any(one.refused for one in closed):
        text += "; RabbitMQ says so to a publisher while memory or disk is short. "
        text += summary.remedy(ALARM)
    return [f"{text}."]


def passed(
    beyond: Sequence[Row], could_not: Sequence[Interval], clock: Clock, *, whole: bool
) -> Iterator[str]:
    """How many frames passed while the window was closed, where nobody knows that it was heard of.

    Args:
        beyond: of these frames, in order.
        could_not: when the window was closed.
        clock: that told the times.
        whole: that is since when it was closed, as of `closed`.
    """
    if not beyond:
        return
    last = beyond[-1]
    since = [one for one in could_not if one.what == CLOSED and one.seq < last.seq]
    late = ""
    if whole and since and clock.knows(since[-1].start_us, last.t_us):
        late = f", {'the last ' if len(beyond) > 1 else ''}"
        late += f"{clock.length(last.t_us - since[-1].start_us)} after it was"
    yield (
        f"{counted(len(beyond), 'frame')} of the {last.from_peer} passed while it was closed{late}"
        f" (row {beyond[0].seq}): if it had heard of that by then, it broke 2.5.6."
    )


def lacks(one: Interval, missing: Sequence[Row]) -> bool:
    """Octets are missing within it; the rows that say so are in order."""
    at = bisect_right(missing, one.seq, key=attrgetter("seq"))
    return at < len(missing) and missing[at].t_us <= one.end_us


def doubts(missing: Sequence[Row], intervals: Sequence[Interval]) -> list[str]:
    """What the octets that its connection lacks make doubtful."""
    if not missing:
        return []
    text = f"Its connection lacks octets in {counted(len(missing), 'place')}"
    text += ": what they said is not counted here"
    # Where something is known to have waited, the times in which it could not send say no more,
    # but for those that are told beside it.
    waits = [one for one in intervals if one.stall or may_be_worse(one)] or intervals
    lacking = sum(one.lacks for one in waits)
    if lacking:
        text += f", and {counted(lacking, 'wait')} may have ended sooner"
    return [f"{text}."]


def may_be_worse(one: Interval) -> bool:
    """Nothing is known to have waited, and it is no sign that nothing did."""
    return _unended(one) or (one.refused and not one.stall)


def at_the_end(could_not: Sequence[Interval], held: Sequence[Interval], clock: Clock) -> list[str]:
    """What nothing had ended at the end: a consumer that waits for ever shows so."""
    if any(one.lasts for one in held):
        return ["When the trace ends it still waits."]
    longest = max((one.lasted_us for one in held), default=0)
    return [
        f"{when(one, clock)} it {has(one, clock)}: if messages were waiting, it"
        f" {_stalled_until(one)}."
        for one in could_not
        if _unended(one) and (not one.timed or one.lasted_us > (0 if one.lasts else longest))
    ]


def _unended(one: Interval) -> bool:
    """Nothing is known to have waited, and nothing had ended it.

    To be closed with no credit for a moment is what happens to whoever asks for so many messages.
    """
    return not one.stall and (one.lasts or (one.closed and one.lasted_us > PROMPT_US))


def when(one: Interval, clock: Clock) -> str:
    """How a sentence begins that says what nothing had ended."""
    if one.lasts:
        return "When the trace ends"
    if one.cancelled:
        return "When its consumer was cancelled"
    return "When it was closed" if one.closed else f"From {clock.moment(one.start_us)} on"


def has(one: Interval, clock: Clock) -> str:
    """What a link has had for how long."""
    if one.cancelled and one.what == FULL:
        return f"had had as many messages as its prefetch allows for {one.lasted(clock)}"
    verb = "has had" if one.lasts else "had had" if one.closed else "had"
    return f"{verb} {_HAD[one.what]} for {one.lasted(clock)}"


def _stalled_until(one: Interval) -> str:
    return f"is stalled until {_UNTIL[one.what]}" if one.lasts else "was stalled until then"


_HAD = {
    NO_CREDIT: "no credit",
    CLOSED: "its session window closed",
    FULL: "a consumer at its prefetch limit",
    NO_ROOM: "no room at the other end",
}


_UNTIL = {
    NO_CREDIT: "its receiver grants some",
    CLOSED: "the other end opens it",
    FULL: "some are acknowledged",
    NO_ROOM: "that end reads",
}
