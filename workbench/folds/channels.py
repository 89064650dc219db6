"""What questions ask of AMQP 0-9-1 and 0-10, which have no links; see `data/README.md`.

The messages of a channel, or of a session of AMQP 0-10, in one direction stand where AMQP 1.0 has a
link: the key has no link's name, the channel's number for a session, and for `link_sender` who
sends them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench import serial
from workbench.trace.brakes import ALARM, CREDIT_FLOW, LINK_CREDIT, QPID_WINDOW, TCP
from workbench.trace.consumers import Consumer, Fullness, brake_of, consumer_name, gets_none
from workbench.trace.schema import (
    AMQP_0_9_1,
    AMQP_0_10,
    BLOCKED,
    BROKER,
    CLIENT,
    UNBLOCKED,
    Row,
)

from .intervals import Mark, Span, took
from .vantage import PEERS, End, LinkKey, ends, once

LINKLESS = (AMQP_0_9_1, AMQP_0_10)
MESSAGES: dict[str | None, tuple[str, ...]] = {
    "basic.publish": (CLIENT,), "basic.deliver": (BROKER,), "basic.get-ok": (BROKER,),
    "message.transfer": PEERS,
}  # fmt: skip
"""Methods and commands with which a message begins, and who may send them."""
CONTENT = frozenset({*MESSAGES, "content-header", "content-body", "header", "body"})
ANSWERS = {
    CLIENT: frozenset({"basic.ack", "basic.nack", "session.completed"}),
    BROKER: frozenset({"basic.ack", "basic.nack", "basic.reject", "session.completed"}),
}
"""What answers the messages of each peer, said by the other."""
MEASURES = {
    (AMQP_0_9_1, CLIENT): "confirm", (AMQP_0_9_1, BROKER): "ack",
    (AMQP_0_10, CLIENT): "completion", (AMQP_0_10, BROKER): "completion",
}  # fmt: skip
COMMAND = 1
"""`segment_type` of a command."""
SYNC, POINT = "execution.sync", "session.command-point"
TOLD = {
    "reader": frozenset({CREDIT_FLOW, ALARM, TCP}),
    CLIENT: frozenset({TCP, QPID_WINDOW, LINK_CREDIT}),
    BROKER: frozenset({TCP}),
}
"""Brakes that internal rows tell, by whose."""

INTERNAL, LATER = "internal", "later-frames"
"""How it is known that messages waited."""

Begun = dict[LinkKey, tuple[list[Span], set[int]]]
"""By link what was answered, from question to answer, and `seq` of each question that was not."""


def channel_key(row: Row, sender: str) -> LinkKey:
    """What a peer sends on the channel of a row."""
    return LinkKey(row.run, str(row.connection), row.session, None, sender, None)


def begins(row: Row) -> bool:
    """Whether a message begins with the row's frame."""
    return row.from_peer in MESSAGES.get(row.kind, ())


def content_key(row: Row) -> LinkKey | None:
    """Whose message the row's frame is a part of; None if it is of none."""
    if row.kind not in CONTENT or row.session is None or row.from_peer is None:
        return None
    return channel_key(row, row.from_peer)


@dataclass(slots=True, kw_only=True)
class Carried:
    """What a peer has sent on a channel.

    Attributes:
        key: whose they are.
        first, last: the first and the last frame of a message.
        begun: the row with which the first message begins; None: all that began before.
        messages: how many.
        frames: of them: method, header, bodies.
    """

    key: LinkKey
    first: Row
    last: Row
    begun: Row | None = None
    messages: int = 0
    frames: int = 0


def carried(rows: Iterable[Row]) -> list[Carried]:
    """By channel and sender."""
    found: dict[LinkKey, Carried] = {}
    for row in once(rows, *LINKLESS):
        key = content_key(row)
        if key is not None:
            one = found.setdefault(key, Carried(key=key, first=row, last=row))
            one.last = row
            if begins(row):
                one.begun = one.begun or row
                one.messages += 1
            one.frames += 1
    return list(found.values())


@dataclass(slots=True, kw_only=True)
class Held:
    """An interval in which a peer was held.

    Attributes:
        key: what was held: a channel's direction, or all that a peer sends on a connection.
        brake: by what.
        first: the row with which it began.
        last: the row that released it; None: nothing did.
        end_us: when it was over.
        evidence: how it is known that something was to be sent.
        waiting: messages that waited at the least.
    """

    key: LinkKey
    brake: str
    first: Row | Mark
    last: Row | None
    end_us: int
    evidence: str
    waiting: int = 1


@dataclass(slots=True, kw_only=True)
class Step:
    """One of an end's rows, and what it does.

    Attributes:
        row: the row.
        key: what the end sends on the row's channel.
        begins: one of the end's messages begins.
        asks: that is to be answered.
        answered: the end's messages that the row answers, from the row of each to it.
        held: what follows of times in which the end was held: by a consumer's prefetch, or credit,
            or on 0-10 by a command that it waited for.
    """

    row: Row
    key: LinkKey
    begins: bool = False
    asks: bool = False
    answered: list[Span] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Answers to what a peer has sent on a channel, so far.

    Attributes:
        measure: of `MEASURES`.
        worst_seq: where the slowest began; until one is answered, the first that began.
        asked: how many are to be answered.
        count: how many were.
        max_us: the slowest.
    """

    measure: str
    worst_seq: int
    asked: int = 0
    count: int = 0
    max_us: int | None = None


class Channels:
    """What one end of a connection sends on its channels, row by row.

    Args:
        end: whose rows these are.
        prompt_us: so soon after it is let go an end sends that had waited.
    """

    def __init__(self, end: End, prompt_us: int = 0) -> None:
        self.end, self.prompt_us = end, prompt_us
        self.waiting: dict[LinkKey, dict[int, Mark]] = {}  # for an answer, by number
        self.tallies: dict[LinkKey, Tally] = {}
        self.consumers: dict[Consumer, Row] = {}  # of 0-9-1: the latest row of each
        self._next: dict[LinkKey, int] = {}  # of AMQP 0-10: the number of the next command
        self._fullness = Fullness()
        self._released: dict[Consumer, list[tuple[Row | Mark, Row]]] = {}

    def step(self, row: Row) -> Step | None:
        """The next of the end's rows, with what it does; None if it is on no channel."""
        if row.session is None:
            return None
        step = Step(row=row, key=channel_key(row, self.end.peer))
        if row.from_peer == self.end.peer:
            self._said(step)
        elif row.kind in ANSWERS[self.end.peer]:
            its = self.waiting.get(step.key, {})
            answered = [(its.pop(number), row) for number in _covered(row, its)]
            step.answered += (span for span in answered if span[0].kind != SYNC)
            for span in step.answered:
                tally = self.tallies[step.key]
                slower = (-1 if tally.max_us is None else tally.max_us), -tally.worst_seq
                tally.count += 1
                if (took(span), -span[0].seq) > slower:
                    tally.max_us, tally.worst_seq = took(span), span[0].seq
            syncs = [span for span in answered if span[0].kind == SYNC]
            if syncs and self.end.peer == CLIENT:
                self._released.setdefault((row.session, SYNC), []).extend(syncs)
        if self.end.peer == BROKER:
            self._consumer(step)
        elif step.begins:
            self._go_on(step, SYNC, QPID_WINDOW)
        return step

    def _go_on(self, step: Step, name: str, brake: str) -> None:
        """A message that follows at once had waited for what let its sender go."""
        for first, last in self._released.pop((step.row.session, name), ()):
            if step.row.t_us - last.t_us <= self.prompt_us:
                step.held.append(
                    Held(key=step.key, brake=brake, first=first, last=last, end_us=last.t_us,
                         evidence=LATER)
                )  # fmt: skip

    def _said(self, step: Step) -> None:
        row = step.row
        step.begins = begins(row)
        number = self._number(step)
        if number is not None and (step.begins or row.kind == SYNC):
            step.asks = step.begins
            mark = Mark(row.run, row.seq, row.t_us, row.frame_id, row.kind)
            self.waiting.setdefault(step.key, {})[number] = mark
        if step.asks:
            measure = MEASURES[row.protocol, self.end.peer]
            tally = self.tallies.setdefault(step.key, Tally(measure=measure, worst_seq=row.seq))
            tally.asked += 1

    def _number(self, step: Step) -> int | None:
        """By which an answer names what the end sends; None if none will, or nobody knows."""
        row, fields, ledger = step.row, step.row.fields, step.row.ledger or {}
        if row.protocol == AMQP_0_10:
            if row.kind == POINT:
                self._next[step.key] = fields.get("command_id") or 0
                self.waiting.pop(step.key, None)
            if not (fields.get("segment_type") == COMMAND and fields.get("first_frame")):
                return None
            number = self._next.get(step.key)
            if number is not None:
                self._next[step.key] = serial.add(number, 1)
            return None if ledger.get("incomplete_commands") is None else number
        if self.end.peer == CLIENT:
            published = ledger.get("published")  # on a channel in confirm mode alone
            return None if published is None else int(published)
        waits = row.kind == "basic.deliver" and ledger.get("unacknowledged") != 0
        return fields.get("delivery_tag") if waits else None

    def answers(self, now_us: int) -> Iterator[dict[str, Any]]:
        """How each direction's messages were answered so far, as far as `latency` needs no list.

        Args:
            now_us: `waiting_us` of the oldest that waits counts up to then.
        """
        for key, tally in self.tallies.items():
            oldest = next((r for r in self.waiting.get(key, {}).values() if r.kind != SYNC), None)
            yield {
                **key._asdict(), "measure": tally.measure, "count": tally.count,
                "max_us": tally.max_us, "unanswered": tally.asked - tally.count,
                "worst_seq": tally.worst_seq,
                "waiting_us": None if oldest is None else now_us - oldest.t_us,
            }  # fmt: skip

    def _consumer(self, step: Step) -> None:
        """What is sent to a consumer is held while it gets none."""
        row, name = step.row, consumer_name(step.row)
        for consumer, since in self._fullness.take(row):
            self._released.setdefault(consumer, []).append((since, row))
        if name is None or gets_none(row) is None:
            return
        if row.protocol == AMQP_0_9_1:
            self.consumers[row.session, name] = row
        if step.begins:
            self._go_on(step, name, brake_of(row))


def _covered(row: Row, waiting: Mapping[int, Mark]) -> list[int]:
    """Which of these numbers, in order of sending, an answer names."""
    if row.protocol == AMQP_0_10:
        ranges = row.extra.get("commands") or ()
        sent = itertools.takewhile(
            lambda number: any(serial.signed(high, number) >= 0 for _, high in ranges), waiting
        )
        return [
            number
            for number in sent
            if any(
                serial.signed(number, low) >= 0 and serial.signed(high, number) >= 0
                for low, high in ranges
            )
        ]
    tag = row.fields.get("delivery_tag")
    if tag is None:
        return []
    if not row.fields.get("multiple"):
        return [tag] if tag in waiting else []
    return list(itertools.takewhile(lambda number: number <= tag or tag == 0, waiting))


def gaps(rows: Iterable[Row]) -> list[Span]:
    """From one message of a channel and sender to the next."""
    begun: dict[LinkKey, list[Row]] = {}
    for step in _steps(rows):
        if step.begins:
            begun.setdefault(step.key, []).append(step.row)
    return [span for its in begun.values() for span in itertools.pairwise(its)]


def answered(rows: Iterable[Row]) -> dict[str, Begun]:
    """From publish to confirm, delivery to acknowledgement, transfer to completion; by measure."""
    found: dict[str, Begun] = {measure: {} for measure in MEASURES.values()}
    for step in _steps(rows):
        its = found[MEASURES[step.row.protocol, str(step.key.link_sender)]]
        if step.asks:
            its.setdefault(step.key, ([], set()))[1].add(step.row.seq)
        for since, row in step.answered:
            spans, unanswered = its[step.key]
            spans.append((since, row))
            unanswered.remove(since.seq)
    return found


def _steps(rows: Iterable[Row]) -> Iterator[Step]:
    """Every row of every end that is on a channel, with what it does."""
    for end in ends(rows, *LINKLESS):
        yield from filter(None, map(Channels(end).step, end.rows))


def limits(rows: Iterable[Row]) -> dict[LinkKey, list[int]]:
    """The prefetch, or the producer's window, of each channel, one after the other; 0 is none.

    A channel with deliveries of AMQP 0-9-1 of which none tells the prefetch has an empty list.
    """
    found: dict[LinkKey, list[int]] = {}
    for row in once(rows, *LINKLESS):
        name = "prefetch_count" if row.from_peer == BROKER else "transfer_window"
        limit = (row.ledger or {}).get(name)
        if row.kind == "basic.get-ok" or not begins(row):
            continue
        if limit is not None or row.kind == "basic.deliver":
            its = found.setdefault(channel_key(row, str(row.from_peer)), [])
            if limit is not None and int(limit) not in its:
                its.append(int(limit))
    return found


class Told:
    """What the broker's reader, a producer or a socket tells of itself, row by row.

    Of an alarm the wire tells, where no reader has: connection.blocked.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}  # by connection, the time of its latest frame
        self._known: dict[tuple[str, str, str], int] = {}  # brakes it tells of, and since which row
        self._frames: set[tuple[str, str, int | None]] = set()  # those of connection.blocked
        self._begun: dict[tuple[LinkKey, str], Row] = {}

    def take(self, row: Row) -> Held | None:
        """The next row; gives what it ends."""
        if row.connection is None:
            return None
        place = row.run, row.connection
        if row.is_frame:
            if row.protocol not in LINKLESS:
                return None
            self._last[place] = row.t_us
            frame = *place, row.frame_id
            if row.kind not in (BLOCKED, UNBLOCKED) or (*place, ALARM) in self._known:
                return None
            if frame in self._frames:
                return None
            self._frames.add(frame)
            brake, sender, on = ALARM, CLIENT, row.kind == BLOCKED
            session = None
        else:
            whose = _stops(row)
            if whose is None:
                return None
            self._known.setdefault((*place, str(row.kind)), row.seq)
            if place not in self._last:
                return None
            brake, sender, on = str(row.kind), whose, row.event == "block"
            session = row.session
        key = LinkKey(*place, session, None, sender, None)
        if on:
            self._begun.setdefault((key, brake), row)
        elif (key, brake) in self._begun:
            first = self._begun.pop((key, brake))
            return self._held(key, brake, first, row, row.t_us)
        return None

    def tells(self, held: Held) -> bool:
        """Whether the connection itself has told of this brake before, so frames need not."""
        if held.evidence == INTERNAL or held.key.link_sender == BROKER:
            return False
        since = self._known.get((held.key.run, held.key.connection, held.brake))
        return since is not None and since < held.first.seq

    def finish(self) -> Iterator[Held]:
        """What nothing has ended: it lasts to the connection's last frame."""
        for (key, brake), first in self._begun.items():
            end_us = max(first.t_us, self._last[key.run, key.connection])
            yield self._held(key, brake, first, None, end_us)

    def forget(self, run: str, connection: str) -> Iterator[Held]:
        """Nothing more will come of a connection; gives what nothing has ended."""
        place = run, connection
        yield from (one for one in self.finish() if one.key[:2] == place)
        self._last.pop(place, None)
        for held in [one for one in self._begun if one[0][:2] == place]:
            del self._begun[held]
        for brake in [one for one in self._known if one[:2] == place]:
            del self._known[brake]
        self._frames = {one for one in self._frames if one[:2] != place}

    @staticmethod
    def _held(key: LinkKey, brake: str, first: Row, last: Row | None, end_us: int) -> Held:
        waiting = max(1, int((first.ledger or {}).get("waiting_transfers", 1)))
        return Held(
            key=key, brake=brake, first=first, last=last, end_us=end_us, evidence=INTERNAL,
            waiting=waiting,
        )  # fmt: skip


def _stops(row: Row) -> str | None:
    """Whose messages are held by the process that tells of itself in this row.

    None for any other row.
    """
    if row.event not in ("block", "unblock"):
        return None
    name = row.vantage.partition(":")[0]
    if row.kind not in TOLD.get(name, ()):
        return None
    return CLIENT if name == "reader" else name
