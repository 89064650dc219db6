"""What happened on each link of a trace, in words: for whoever has one capture and one question.

It is put together from the answers of `summary`, `stalls`, `grants`, `windows` and `credit`;
nothing is worked out here that none of them says.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

from workbench.trace.brakes import QPID_WINDOW
from workbench.trace.clock import Clock
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, BROKER, LOSSES, Row
from workbench.trace.words import counted, times

from . import channels, consumers
from .credit import credit_rows
from .grants import answers, gathered
from .intervals import Intervals, Mark, Span, took
from .latency import answered
from .stalls import PROMPT_US, Stall, with_ends
from .summary import LinkSummary, advice, summaries
from .turns import LEAST, in_turn
from .vantage import LinkKey, once, percentile, value
from .violations import violations
from .windows import directions
from .wrong import Wrong, dropped, wrong

__all__ = ["BrakeSum", "Interval", "LinkStory", "Packets", "Story", "story", "story_in_parts"]

NO_CREDIT, CLOSED, FULL = "no credit", "window closed", "prefetch used up"
NO_ROOM = "TCP window 0"
UNKNOWN_TIME = "an unknown time"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkStory:
    """One link.

    Attributes:
        key: which.
        messages: that its sender began.
        advice: who waited, how long, why, and what to change.
        more: further sentences: of a link how its receiver grants and how it stands at the end, of
            a channel how long its answers took and what its limit was.
        intervals: in order of their beginning.
        in_turn: waits of a publisher that has one message in flight at a time, for the answer to
            each; no brake held it.
    """

    key: LinkKey
    messages: int
    advice: str
    more: tuple[str, ...]
    intervals: tuple[Interval, ...]
    in_turn: tuple[Interval, ...] = ()

    @property
    def in_turn_us(self) -> int:
        """For how long it waited for answers, in all."""
        return sum(map(_lasted, self.in_turn))

    @property
    def still_waits(self) -> bool:
        """Something is known to have waited when the trace ended."""
        return any(one.stall and one.lasts for one in self.intervals)


@dataclass(slots=True, kw_only=True)
class BrakeSum:
    """All stalls by one brake.

    Of `late` ones it is not known for how long something waited; of `untimed` ones the clock does
    not tell how long they were, and they are not in the sums.
    """

    brake: str
    stalls: int = 0
    late: int = 0
    untimed: int = 0
    links: set[LinkKey] = field(default_factory=set)
    lost_us: int = 0
    longest_us: int = 0

    def add(self, link: LinkKey, one: Interval) -> None:
        """One more."""
        self.stalls += 1
        self.late += one.late
        self.untimed += not one.timed
        self.links.add(link)
        self.lost_us += one.lasted_us
        self.longest_us = max(self.longest_us, one.lasted_us)

    def times(self, clock: Clock) -> tuple[str, str]:
        """Together and the longest, in words."""
        if self.untimed == self.stalls:
            return "unknown", "unknown"
        more = f", {self.untimed:,} unknown" if self.untimed else ""
        return f"{clock.length(self.lost_us)}{more}", clock.length(self.longest_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A run.

    Attributes:
        run: its name.
        lasted_us: from its first row to its end.
        links: the longest wait first, whether it is proved or nothing had ended it; then those with
            late ones only, and those that could not have sent.
        brakes: the one that took most time first.
        wrong: errors that a peer told, and rules that were broken, a line each.
        worst: the longest stall with its link; without any, the longest time in which one could
            not have sent; None if there was none.
        lasting: what had lasted longest when the trace ended, or its link was closed, or for how
            long an end said that it takes nothing, with the link, if it is longer than the worst:
            if messages were waiting, this is worse.
        in_turn: the link whose publisher waited longest for answers to one message at a time, if
            that is in all longer than any of these, and than all stalls by any one brake; None if
            there is none.
        untold: without a worst, what no row tells: the credit of some link, because its attach, or
            each grant, is not in the trace; the prefetch of some channel; empty if none is missing.
        unnamed: a frame is of a link whose attach is not in the trace.
        early: a connection had begun before the trace does.
        lacking: octets are missing or cannot be read.
        clock: what its times are worth.
    """

    run: str
    lasted_us: int
    links: tuple[LinkStory, ...]
    brakes: tuple[BrakeSum, ...]
    wrong: tuple[str, ...]
    worst: tuple[LinkStory, Interval] | None
    lasting: tuple[LinkStory, Interval] | None
    in_turn: LinkStory | None
    untold: str
    unnamed: bool
    early: bool
    lacking: bool
    clock: Clock = field(compare=False)

    @property
    def opened(self) -> tuple[LinkStory, Interval] | None:
        """Of what the headline tells that which lasted longest: its frame is opened."""
        if self.in_turn is not None:
            return self.in_turn, max(self.in_turn.in_turn, key=attrgetter("lasted_us"))
        return self.lasting or self.worst

    @property
    def opened_as(self) -> str:
        """What that is, in a line; empty if there is none."""
        if self.opened is None:
            return ""
        link, one = self.opened
        return f"{link.key.name}, {one.what} for {one.lasted(self.clock)}"

    @property
    def without_links(self) -> str:
        """What is to be said in the place of links; empty if there are some."""
        if self.links:
            return ""
        if not self.unnamed and self.lacking:
            return "None that can be read: octets are missing in the trace."
        if not self.unnamed and self.early:
            return (
                "None that the trace tells of: no link was attached in it, and no message was sent."
                " What had been attached, granted or sent before is not in it."
            )
        if not self.unnamed:
            return "None: no link was attached, and no message was sent."
        return (
            "None that can be named: neither an attach of one nor a message is in the trace."
            " Capture from before the client connects."
        )

    @property
    def headline(self) -> str:
        """The worst in a sentence; in others what makes it doubtful, and what may be worse."""
        text = self._worst
        if self.worst is not None and self.worst[1].lacks:
            text += " Octets are missing within it: it may have ended sooner."
        untimed = sum(one.untimed for one in self.brakes)
        if self.worst is not None and not self.worst[1].timed:
            text += " The capture's clock went back within it."
        elif untimed:
            text += (
                f" How long {counted(untimed, 'other stall')} lasted is not known: the capture's"
                " clock went back."
            )
        if self.lasting is not None:
            link, one = self.lasting
            text += f" {_when(one, self.clock)}, {link.key.name} {_has(one, self.clock)}."
        if self.in_turn is not None:
            link = self.in_turn
            text += (
                f" The client sent one message at a time on {link.key.name}: it waited for answers"
                f" {times(len(link.in_turn))}, {self.clock.length(link.in_turn_us)} in all."
            )
        return text

    @property
    def _worst(self) -> str:
        if self.worst is None or (self.worst[1].timed and not self.worst[1].lasted_us):
            if self.untold:
                return f"No stall can be proved: the trace never tells the {self.untold}."
            if self.lacking:
                return "No stall can be proved: octets are missing in the trace."
            if self.links and all(link.key.link is None for link in self.links):
                return "Nobody is known to have been held by a prefetch, a window or an alarm."
            if not self.links and self.early:
                return "No stall can be proved: no message passed, and what came before is unknown."
            if self.worst is not None:
                return "No sender was without credit for any time that the trace tells."
            return "No sender was ever without credit or behind a closed window."
        link, worst = self.worst
        since = self.clock.moment(worst.start_us)
        where = f"{worst.lasted(self.clock)} on {link.key.name}, from {since} on"
        if worst.stall and worst.late:
            return (
                "No stall can be proved. The longest time in which a message may have come and"
                f" waited: {where}; blocked by {worst.what}."
            )
        if worst.stall and not worst.timed:
            where = f"{link.key.name}, from {since} on"
            return f"A stall of unknown length on {where}; blocked by {worst.what}."
        if worst.stall:
            return f"The longest stall: {where}; blocked by {worst.what}."
        return (
            "No stall can be proved. The longest time in which a sender could not have sent:"
            f" {where}; {worst.what}."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Packets:
    """What the packets of a capture tell beside its rows.

    Attributes:
        until_us: when the capture ended, microseconds since the run's start.
        still_open: connections that nobody had closed then. What held a sender of theirs had held
            it up to that moment, and of others to their last row, or until they were `ended`.
        ended: when each of the others was closed or reset, and which peer was the first to do so.
        without_room: by connection and peer when the other end had no room for what it sends: from
            when to when; None: to the end.
    """

    until_us: int = 0
    still_open: Set[str] = frozenset()
    ended: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    without_room: Mapping[tuple[str, str], Sequence[tuple[int, int | None]]] = field(
        default_factory=dict
    )


def story(rows: Sequence[Row], packets: Packets = Packets()) -> Story:
    """What happened on each link.

    Args:
        rows: a whole run in order.
        packets: what is known beside them.
    """
    clock = Clock()
    for row in rows:
        clock.see(row)
    return story_in_parts([rows], packets, rows[-1].t_us if rows else 0, clock)


def story_in_parts(
    parts: Iterable[Sequence[Row]], packets: Packets, last_us: int, clock: Clock
) -> Story:
    """The same of a run that is too large for one piece.

    Args:
        parts: each with all rows of some connections, in order, and those of no connection.
        packets: what is known beside them.
        last_us: the time of its last row.
        clock: that has seen all of its rows.
    """
    end_us = max(last_us, packets.until_us)
    links: list[LinkStory] = []
    problems: list[Wrong] = []
    run, begin_us, untold, unnamed, early, lacking = "", end_us, "", False, False, False
    for rows in parts:
        known = replace(packets, still_open=packets.still_open | _still_open(rows))
        stalled, broken = _stalled(rows, known.still_open, end_us, clock), violations(rows)
        links += _links(rows, stalled, broken, known, end_us, clock)
        problems += [*wrong(rows, broken), *dropped(rows, packets.ended)]
        if not untold and not any(link.intervals for link in links):
            untold = _untold(rows)
        unnamed = unnamed or (not links and any(map(_is_unnamed, rows)))
        begun = {row.connection for row in rows if row.kind == "protocol-header"}
        early = early or any(row.is_frame and row.connection not in begun for row in rows)
        lacking = lacking or any(row.event in LOSSES for row in rows)
        if rows:
            run, begin_us = rows[0].run, min(begin_us, rows[0].t_us)
    links.sort(key=lambda link: tuple(map(str, link.key)))
    every = [(link, one) for link in links for one in link.intervals]
    brakes: dict[str, BrakeSum] = {}
    for link, one in every:
        if one.stall:
            brakes.setdefault(one.what, BrakeSum(brake=one.what)).add(link.key, one)
    worst = max(every, key=lambda its: _heavy(its[1]), default=None)
    lasting = max(
        (its for its in every if _may_be_worse(its[1]) and not its[0].still_waits),
        key=lambda its: its[1].lasted_us,
        default=None,
    )
    if worst is None or lasting is None or lasting[1].lasted_us <= worst[1].lasted_us:
        lasting = None
    alone = max(links, key=attrgetter("in_turn_us"), default=None)
    others_us = [one.lost_us for one in brakes.values()]
    others_us += [its[1].lasted_us for its in (worst, lasting) if its]
    if alone is not None and alone.in_turn_us <= max(others_us, default=0):
        alone = None
    return Story(
        run=run,
        lasted_us=end_us - begin_us,
        links=tuple(sorted(links, key=_weight, reverse=True)),
        brakes=tuple(sorted(brakes.values(), key=lambda one: -one.lost_us)),
        wrong=tuple(one.text for one in sorted(problems)),
        worst=worst,
        lasting=lasting,
        in_turn=alone,
        untold="" if worst else untold,
        unnamed=unnamed,
        early=early,
        lacking=lacking,
        clock=clock,
    )


def _still_open(rows: Sequence[Row]) -> set[str]:
    """Connections of which the rows tell that they were made, and not that they were lost.

    A capture's rows tell neither.
    """
    found: set[str] = set()
    for row in rows:
        if row.event == "connect" and row.connection is not None:
            found.add(row.connection)
        elif row.event == "disconnect":
            found.discard(str(row.connection))
    return found


def _stalled(
    rows: Sequence[Row], still_open: Set[str], end_us: int, clock: Clock
) -> list[tuple[Stall, bool]]:
    """The stalls, and whether each had not ended when the trace did."""
    found: list[tuple[Stall, bool]] = []
    for stall, unended in with_ends(rows):
        lasts = unended and stall.connection in still_open
        found.append((stall._replace(end_us=end_us) if lasts else stall, lasts))
    # What took no time held nobody: a clock that is coarse would show it as a wait. One that went
    # back does not tell that it took none.
    return [
        its for its in found
        if its[0].end_us > its[0].start_us or not clock.knows(its[0].start_us, its[0].end_us)
    ]  # fmt: skip


def _links(
    rows: Sequence[Row],
    stalled: Sequence[tuple[Stall, bool]],
    broken: Sequence[Mapping[str, Any]],
    packets: Packets,
    end_us: int,
    clock: Clock,
) -> Iterator[LinkStory]:
    found: dict[LinkKey, list[Interval]] = {}
    places = {row.seq: row for row in rows}
    for stall, lasts in stalled:
        interval = Interval(
            what=stall.brake, start_us=stall.start_us, end_us=stall.end_us, seq=stall.seq,
            stall=True, lasts=lasts,
            late=stall.evidence == channels.LATER
            and _none_waits(places[stall.seq], stall.link_sender),
            timed=clock.knows(stall.start_us, stall.end_us),
        )  # fmt: skip
        found.setdefault(LinkKey(*stall[:6]), []).append(interval)  # type: ignore[arg-type]
    credit, full = gathered(rows), consumers.full(rows, AMQP_0_9_1)
    without = consumers.full(rows, AMQP_0_10)
    granted = {tuple(row[name] for name in LinkKey._fields): row for row in answers(credit, rows)}
    closed: dict[tuple[Any, ...], list[tuple[Span, bool]]] = {
        (one.end.run, one.end.connection, one.session, one.end.peer): one.closed.told
        for one in directions(rows)
    }
    settled, limits = answered(rows), channels.limits(rows)
    turns = {key: (measure, waits) for measure, key, waits in in_turn(rows, settled)}
    no_room = _no_room(rows, packets, end_us)
    by_link = {
        LinkKey(*(getattr(link, name) for name in LinkKey._fields)): link
        for link in summaries(rows, [stall for stall, _ in stalled], broken)
    }
    missing: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        if row.event in LOSSES:
            missing.setdefault((row.run, row.connection), []).append(row)
    again = Counter(
        channels.channel_key(row, BROKER)
        for row in once(rows, AMQP_0_9_1)
        if row.kind == "basic.deliver" and row.fields.get("redelivered")
    )
    committed = {(row.connection, row.session) for row in rows if row.kind == "tx.commit"}
    # Of a connection without links what held it held all of its channels.
    whole = {_way(key): key for key in by_link if key.session is None}
    for key, link in by_link.items():
        connection = whole.get(_way(key))
        held = found.get(key, [])
        session = key.run, key.connection, key.session, key.link_sender
        spans = {
            NO_CREDIT: credit[key].without_credit(PROMPT_US)
            if key in credit
            else _told(without, key),
            CLOSED: closed.get(session, []) if key.link is not None else [],
            FULL: _told(full, key),
            NO_ROOM: no_room.get((key.connection, key.link_sender), []),
        }
        still_open = key.connection in packets.still_open
        ended_us, _ = packets.ended.get(str(key.connection), (None, None))
        could_not = [
            _interval(
                what, span, lasts, end_us, still_open=still_open, ended_us=ended_us,
                refused=what == NO_ROOM or (what == CLOSED and _says_closed(places[span[0].seq])),
            )
            for what, its in spans.items()
            for span, lasts in its
        ]  # fmt: skip
        could_not = [replace(one, timed=clock.knows(one.start_us, one.end_us)) for one in could_not]
        lost = missing.get(key[:2], ())
        until_us = end_us if still_open else None
        told_of = [*_answers(key, settled, places, lost, until_us, clock)]
        if key.link is None:
            more = [*told_of, *_limits(limits.get(key), full.get(key, []), could_not, held, clock)]
            if limits.get(key) == [] and key in settled.get("ack", {}):
                more.append(_most(*settled["ack"][key], places, until_us, clock))
            if key in again:
                more.append(
                    f"{again[key]:,} of its {counted(link.messages, 'message')} had been delivered"
                    " before: a consumer gave them back, or was gone."
                )
            if told_of and key[1:3] in committed and key.link_sender == BROKER:
                more.append("An acknowledgement in a transaction counts when that is committed.")
        else:
            more = [*_grants(key, granted.get(key)), *_closed(could_not, clock), *told_of]
            more += _early(key, rows, clock)
        more += [*_without_room(could_not, clock), *_at_the_end(could_not, held, clock)]
        intervals = [replace(one, lacks=_lacks(one, lost)) for one in (*could_not, *held)]
        more += _doubts(lost, intervals)
        measure, waits = turns.get(key, ("", []))
        # What held its connection held it as well.
        whole_held = found.get(connection, []) if connection not in (None, key) else []
        alone = tuple(_alone(measure, waits, [*intervals, *whole_held], clock))
        said = _advice(link, held, None if connection == key else connection, clock)
        if len(alone) < LEAST:
            alone = ()
        elif sum(map(_lasted, [*held, *whole_held])) > sum(map(_lasted, alone)):
            more.append(_turn(measure, alone, clock))
        else:
            more = [*([said] if held or whole_held else []), *more]
            said = _turn(measure, alone, clock)
        yield LinkStory(
            key=key, messages=_messages(key, by_link) if key == connection else link.messages,
            advice=said, more=tuple(more),
            intervals=tuple(sorted(intervals, key=lambda one: one.start_us)), in_turn=alone,
        )  # fmt: skip


def _alone(
    measure: str, waits: Iterable[Span], braked: Sequence[Interval], clock: Clock
) -> Iterator[Interval]:
    """The waits for answers of a publisher with one message in flight, in which no brake was on."""
    begun = sorted(braked, key=attrgetter("start_us"))
    ended = [-1, *accumulate((one.end_us for one in begun), max)]
    for since, answer in waits if clock.timed else ():
        start_us, end_us = since.t_us, answer.t_us
        if ended[bisect_left(begun, end_us, key=attrgetter("start_us"))] <= start_us:
            yield Interval(
                what=_ALONE[measure][0], start_us=start_us, end_us=end_us, seq=since.seq,
                stall=False, timed=clock.knows(start_us, end_us),
            )  # fmt: skip


_ALONE = {
    "confirm": ("no confirm", "confirmed", "take confirms as they come"),
    "settlement": ("no outcome", "settled", "take outcomes as they come"),
}
"""By measure: what was missing, and what is to be changed."""


def _turn(measure: str, alone: Sequence[Interval], clock: Clock) -> str:
    """Who waited for the answer to each message, how long, why, and what to change."""
    _, answered, change = _ALONE[measure]
    in_all = clock.length(sum(map(_lasted, alone)))
    return (
        f"The client waited {times(len(alone))}, {in_all} in all, until its message was {answered},"
        " and sent the next one at once: it has one message in flight at a time, which no brake"
        f" asks for. Let it publish several before it waits, or go on and {change}."
    )


def _told(intervals: Mapping[LinkKey, list[Intervals]], key: LinkKey) -> list[tuple[Span, bool]]:
    return [span for its in intervals.get(key, ()) for span in its.told]


def _untold(rows: Sequence[Row]) -> str:
    """What no row tells of some link, or channel; empty if there is none such."""
    told: dict[tuple[Any, ...], bool] = {}
    for row in credit_rows(rows):
        told[row[:6]] = told.get(row[:6], False) or row.known
    if not all(told.values()):
        return "credit of some link"
    return "" if all(channels.limits(rows).values()) else "prefetch of some channel"


def _is_unnamed(row: Row) -> bool:
    """Its frame has a handle, and nobody knows whose."""
    return row.link is None and row.fields.get("handle") is not None


def _advice(
    link: LinkSummary, held: Sequence[Interval], whole: LinkKey | None, clock: Clock
) -> str:
    """What is to be said of what held it; `whole` is a connection without links that was held."""
    if not held and whole is not None:
        return f"Nothing held it but what held its connection: see {whole.name}."
    late = sum(one.late for one in held)
    if late and late == len(held):
        longest = _longest(held, clock)
        return (
            f"The {link.link_sender} had nothing to send when it was stopped. Messages came"
            f" later and may have waited, {times(late)}, for {longest} at most."
        )
    more = f" Of these waits {late:,} began when nothing was to be sent." if late else ""
    if held and not (clock.timed and clock.step_us == 1 and all(one.timed for one in held)):
        # Neither the number of the summary is a time, nor its share of the link's life.
        told = asdict(replace(link, at_zero_us=0))
        return f"{advice(told, _longest(held, clock))}{more}"
    return f"{link.advice}{more}"


def _longest(its: Iterable[Interval], clock: Clock) -> str:
    """The longest of these, in words; of those of which the clock tells how long they were."""
    return max(its, key=lambda one: (one.timed, one.lasted_us)).lasted(clock)


def _messages(whole: LinkKey, by_link: Mapping[LinkKey, LinkSummary]) -> int:
    """Of a connection without links, in one direction: those of its channels."""
    return sum(link.messages for key, link in by_link.items() if _way(key) == _way(whole))


def _way(key: LinkKey) -> tuple[str, str, str | None]:
    """The connection, and who sends on it."""
    return key.run, key.connection, key.link_sender


def _answers(
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


def _limits(
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


def _most(
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


def _interval(
    what: str,
    span: Span,
    lasts: bool,
    end_us: int,
    *,
    still_open: bool,
    ended_us: int | None,
    refused: bool,
) -> Interval:
    """Times from row to row; nothing had ended one that `lasts` when there were no more rows."""
    first, last = span
    until_us, closed = last.t_us, last.kind in _CLOSES
    if lasts:  # then its last row is but the last that there is
        until_us = end_us if still_open else max(until_us, ended_us or 0)
        closed = ended_us is not None
    return Interval(
        what=what, start_us=first.t_us, end_us=until_us, seq=first.seq, stall=False,
        lasts=lasts and not closed and until_us == end_us, closed=closed, refused=refused,
    )  # fmt: skip


_CLOSES = frozenset({"detach", "end", "close", *consumers.GONE})
"""Frames that close a link, or what carries it."""


def _no_room(
    rows: Sequence[Row], packets: Packets, end_us: int
) -> dict[tuple[str, str | None], list[tuple[Span, bool]]]:
    """When a peer could not send on a connection, each from the connection's latest row then."""
    its: dict[str, list[Row]] = {connection: [] for connection, _ in packets.without_room}
    for row in rows:
        if row.connection in its:
            its[row.connection].append(row)
    return {
        (connection, sender): [
            ((_mark(its[connection], begin), _mark(its[connection], end or end_us)), end is None)
            for begin, end in spans
        ]
        for (connection, sender), spans in packets.without_room.items()
        if its[connection]
    }


def _mark(rows: Sequence[Row], t_us: int) -> Mark:
    row = rows[max(0, bisect_right(rows, t_us, key=attrgetter("t_us")) - 1)]
    return Mark(row.run, row.seq, t_us, row.frame_id, row.kind)


def _without_room(could_not: Sequence[Interval], clock: Clock) -> Iterator[str]:
    """How often the other end had no room, in a sentence."""
    its = [one for one in could_not if one.what == NO_ROOM]
    if its:
        longest = _longest(its, clock)
        yield (
            f"The other end had no room for more (a TCP window of 0) {times(len(its))}, for"
            f" {longest} at most: it did not read."
        )


def _lasted(one: Interval) -> int:
    return one.lasted_us


def _heavy(one: Interval) -> tuple[bool, bool, bool, int]:
    return one.stall, one.stall and not one.late, one.timed, one.lasted_us


def _weight(link: LinkStory) -> tuple[bool, bool, int]:
    """The longest wait before shorter ones, whether it is proved or nothing had ended it.

    Then the late ones, and those of which nobody knows that there were any.
    """
    return max(
        ((one.stall or _may_be_worse(one), not one.late, one.lasted_us)
         for one in link.intervals if one.lasted_us or not one.timed),
        default=(False, bool(link.in_turn), link.in_turn_us - 1),
    )  # fmt: skip


def _none_waits(row: Row, sender: str | None) -> bool:
    """The link's sender says in this row that it has nothing to send."""
    return row.from_peer == sender and value(row, "available") == 0


def _says_closed(row: Row) -> bool:
    """The broker says so itself; else the frames sent have used the window up."""
    said = row.kind in ("begin", "flow") and row.from_peer == BROKER
    return said and value(row, "incoming_window") == 0


def _grants(key: LinkKey, row: dict[str, Any] | None) -> list[str]:
    """How the receiver grants, in a sentence."""
    if row is None or row["rule"] == "none":
        if key.attach_no is None:
            return ["No grant of its receiver is in the trace."]
        return ["Its receiver never granted credit."]
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


def _early(key: LinkKey, rows: Sequence[Row], clock: Clock) -> Iterator[str]:
    """Of a link that was attached before the trace begins: since when its credit is known."""
    if key.attach_no is not None:
        return
    known = (row.seq for row in credit_rows(rows) if row.known and row[:6] == key)
    first = next(known, None)
    since = "never known, for its sender is not seen to use it up"
    if first is not None:
        (t_us,) = (row.t_us for row in rows if row.seq == first)
        since = f"known from {clock.moment(t_us)} on"
    yield f"Its attach is not in the trace: it is told by its handle, and its credit is {since}."


def _closed(could_not: Sequence[Interval], clock: Clock) -> list[str]:
    """How often the window was closed, and whether the broker says so itself."""
    closed = [one for one in could_not if one.what == CLOSED]
    if not closed:
        return []
    longest = _longest(closed, clock)
    text = f"Its session window was closed {times(len(closed))}, for {longest} at most"
    if any(one.refused for one in closed):
        text += "; RabbitMQ says so to a publisher while memory or disk is short"
    return [f"{text}."]


def _lacks(one: Interval, missing: Sequence[Row]) -> bool:
    """Octets are missing within it; the rows that say so are in order."""
    at = bisect_right(missing, one.seq, key=attrgetter("seq"))
    return at < len(missing) and missing[at].t_us <= one.end_us


def _doubts(missing: Sequence[Row], intervals: Sequence[Interval]) -> list[str]:
    """What the octets that its connection lacks make doubtful."""
    if not missing:
        return []
    text = f"Its connection lacks octets in {counted(len(missing), 'place')}"
    text += ": what they said is not counted here"
    # Where something is known to have waited, the times in which it could not send say no more.
    lacking = sum(one.lacks for one in [one for one in intervals if one.stall] or intervals)
    if lacking:
        text += f", and {counted(lacking, 'wait')} may have ended sooner"
    return [f"{text}."]


def _may_be_worse(one: Interval) -> bool:
    """Nothing is known to have waited, and it is no sign that nothing did."""
    return _unended(one) or (one.refused and not one.stall)


def _at_the_end(could_not: Sequence[Interval], held: Sequence[Interval], clock: Clock) -> list[str]:
    """What nothing had ended at the end: a consumer that waits for ever shows so."""
    if any(one.lasts for one in held):
        return ["When the trace ends it still waits."]
    longest = max((one.lasted_us for one in held), default=0)
    return [
        f"{_when(one, clock)} it {_has(one, clock)}: if messages were waiting, it"
        f" {_stalled_until(one)}."
        for one in could_not
        if _unended(one) and (not one.timed or one.lasted_us > (0 if one.lasts else longest))
    ]


def _unended(one: Interval) -> bool:
    """Nothing is known to have waited, and nothing had ended it.

    To be closed with no credit for a moment is what happens to whoever asks for so many messages.
    """
    return not one.stall and (one.lasts or (one.closed and one.lasted_us > PROMPT_US))


def _when(one: Interval, clock: Clock) -> str:
    if one.lasts:
        return "When the trace ends"
    return "When it was closed" if one.closed else f"From {clock.moment(one.start_us)} on"


def _has(one: Interval, clock: Clock) -> str:
    """What a link has had for how long."""
    verb = "has had" if one.lasts else "had had" if one.closed else "had"
    return f"{verb} {_HAD[one.what]} for {one.lasted(clock)}"


def _stalled_until(one: Interval) -> str:
    return f"is stalled until {_UNTIL[one.what]}" if one.lasts else "was stalled until then"


_HAD = {
    NO_CREDIT: "no credit",
    CLOSED: "its session window closed",
    FULL: "a consumer with all that its prefetch allows",
    NO_ROOM: "no room at the other end",
}
_UNTIL = {
    NO_CREDIT: "its receiver grants some",
    CLOSED: "the other end opens it",
    FULL: "some are acknowledged",
    NO_ROOM: "that end reads",
}
