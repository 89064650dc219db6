"""What happened on each link of a trace: when its sender was held, and what is to be said of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

from workbench.trace.clock import Clock
from workbench.trace.schema import AMQP_0_9_1, AMQP_0_10, BROKER, CLIENT, LOSSES, Row
from workbench.trace.words import counted

from . import channels, consumers
from . import story_words as words
from .credit import credit_rows
from .grants import Grants, gathered
from .intervals import Intervals, Mark, Span
from .latency import answered, round_trips
from .stalls import PROMPT_US, Stall, with_ends
from .story_words import CLOSED, FULL, NO_CREDIT, NO_ROOM, Interval
from .summary import LinkSummary, summaries
from .turns import LEAST, in_turn
from .vantage import LinkKey, once, value
from .violations import BEYOND_WINDOW
from .windows import directions

__all__ = ["LinkStory", "Packets", "link_stories", "stalled"]


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
        return _in_all(self.in_turn)

    @property
    def still_waits(self) -> bool:
        """Something is known to have waited when the trace ended."""
        return any(one.stall and one.lasts for one in self.intervals)


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
        unheard: by connection the peer that has said something, and no packet of it is there.
    """

    until_us: int = 0
    still_open: Set[str] = frozenset()
    ended: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    without_room: Mapping[tuple[str, str], Sequence[tuple[int, int | None]]] = field(
        default_factory=dict
    )
    unheard: Mapping[str, str] = field(default_factory=dict)


def stalled(
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


def link_stories(
    rows: Sequence[Row],
    stalled: Sequence[tuple[Stall, bool]],
    broken: Sequence[Mapping[str, Any]],
    packets: Packets,
    end_us: int,
    clock: Clock,
) -> Iterator[LinkStory]:
    """The story of each link, and of each direction of a channel, with messages or a wait.

    Args:
        rows: all rows of some connections, in order.
        stalled: of these rows, each with whether it had not ended when the trace did.
        broken: rules that were broken; see `violations`.
        packets: what is known beside the rows.
        end_us: when the trace ended.
        clock: that told the times.
    """
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
    trips = round_trips(rows)
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
    beyond: dict[LinkKey, list[Row]] = {}
    for breach in broken:
        if breach["what"] == BEYOND_WINDOW and not breach["certain"]:
            its_link = LinkKey.of(breach)
            beyond.setdefault(its_link, []).append(places[breach["seq"]])
    missing: dict[tuple[str, str | None], list[Row]] = {}
    for row in rows:
        if row.event in LOSSES:
            missing.setdefault((row.run, row.connection), []).append(row)
    again = Counter(
        channels.channel_key(row, BROKER)
        for row in once(rows, AMQP_0_9_1)
        if row.kind == "basic.deliver" and row.fields.get("redelivered")
    )
    confirming = {
        channels.channel_key(row, CLIENT)
        for row in once(rows, AMQP_0_9_1)
        if row.from_peer == BROKER and row.kind in ("basic.ack", "basic.nack")
    }
    known_from: dict[tuple[Any, ...], Row] = {}
    for told in credit_rows(rows):
        if told.known:
            known_from.setdefault(told[:6], places[told.seq])
    committed = {(row.connection, row.session) for row in rows if row.kind == "tx.commit"}
    # Of a connection without links what held it held all of its channels.
    whole = {key.way: key for key in by_link if key.session is None}
    ways = {key.way for key in by_link}
    for key, link in by_link.items():
        connection = whole.get(key.way)
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
        told_of = [*words.answers(key, settled, places, lost, until_us, clock)]
        if key.link is None:
            more = [
                *told_of,
                *words.limits(limits.get(key), full.get(key, []), could_not, held, clock),
            ]
            if limits.get(key) == [] and key in settled.get("ack", {}):
                more.append(words.most(*settled["ack"][key], places, until_us, clock))
            if key in confirming and key not in settled.get("confirm", {}):
                more.append(
                    "The broker confirms its messages, as it was asked to before the trace begins:"
                    " which one each confirm answers is not known, nor how long it took."
                )
            if key == connection:
                delivers = (key.run, key.connection, BROKER) in ways
                more += words.unread(held, delivers=delivers)
            if key in again:
                more.append(
                    f"{again[key]:,} of its {counted(link.messages, 'message')} had been delivered"
                    " before: a consumer gave them back, or was gone."
                )
            if told_of and key[1:3] in committed and key.link_sender == BROKER:
                more.append("An acknowledgement in a transaction counts when that is committed.")
        else:
            its_grants = credit.get(key, Grants())
            granted = its_grants.answer(trips.get(key, ()))
            more = [*words.grants(granted, its_grants.attached, lost)]
            seen_whole = key.attach_no is not None and not lost
            more += words.closed(could_not, clock, whole=seen_whole)
            more += words.passed(beyond.get(key, []), could_not, clock, whole=seen_whole)
            more += told_of
            more += words.early(key, known_from.get(key), clock)
        more += [*words.without_room(could_not, clock), *words.at_the_end(could_not, held, clock)]
        intervals = [replace(one, lacks=words.lacks(one, lost)) for one in (*could_not, *held)]
        more += words.doubts(lost, intervals)
        measure, waits = turns.get(key, ("", []))
        # What held its connection held it as well.
        whole_held = found.get(connection, []) if connection not in (None, key) else []
        alone = tuple(_alone(measure, waits, [*intervals, *whole_held], clock))
        known = not lost and not any(one.lasts for one in held)
        said = words.advice(link, held, clock, known=known)
        if len(alone) < LEAST:
            alone = ()
        elif _in_all(held) + _in_all(whole_held) > _in_all(alone):
            more.append(words.turn(measure, alone, clock))
        else:
            more = [*([said] if held or whole_held else []), *more]
            said = words.turn(measure, alone, clock)
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
                what=words.ALONE[measure][0], start_us=start_us, end_us=end_us, seq=since.seq,
                stall=False, timed=clock.knows(start_us, end_us),
            )  # fmt: skip


def _in_all(its: Iterable[Interval]) -> int:
    return sum(one.lasted_us for one in its)


def _told(intervals: Mapping[LinkKey, list[Intervals]], key: LinkKey) -> list[tuple[Span, bool]]:
    return [span for its in intervals.get(key, ()) for span in its.told]


def _messages(whole: LinkKey, by_link: Mapping[LinkKey, LinkSummary]) -> int:
    """Of a connection without links, in one direction: those of its channels."""
    return sum(link.messages for key, link in by_link.items() if key.way == whole.way)


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
        lasts=lasts and not closed and until_us == end_us, closed=closed,
        cancelled=last.kind in consumers.CANCELS and not lasts, refused=refused,
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


def _none_waits(row: Row, sender: str | None) -> bool:
    """The link's sender says in this row that it has nothing to send."""
    return row.from_peer == sender and value(row, "available") == 0


def _says_closed(row: Row) -> bool:
    """The broker says so itself; else the frames sent have used the window up."""
    said = row.kind in ("begin", "flow") and row.from_peer == BROKER
    return said and value(row, "incoming_window") == 0
