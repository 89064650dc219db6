"""What questions ask of AMQP 0-9-1, which has no links; see `data/README.md`.

A channel's messages in one direction stand where AMQP 1.0 has a link: the key has no link's name,
the channel's number for a session, and for `link_sender` who sends them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.trace.schema import AMQP_0_9_1, BROKER, CLIENT, Row

from .intervals import Span
from .vantage import PEERS, LinkKey, ends, frames, once

MESSAGES = {"basic.publish": CLIENT, "basic.deliver": BROKER, "basic.get-ok": BROKER}
"""Methods with which a message begins, and who sends them."""
CONTENT = frozenset({*MESSAGES, "content-header", "content-body"})
ANSWERS = {
    CLIENT: frozenset({"basic.ack", "basic.nack"}),
    BROKER: frozenset({"basic.ack", "basic.nack", "basic.reject"}),
}
"""What settles the messages of each peer, said by the other."""
MEASURES = {CLIENT: "confirm", BROKER: "ack"}
PREFETCH, ALARM = "prefetch", "alarm"
TOLD = frozenset({"credit-flow", ALARM, "tcp"})
"""Brakes that internal rows tell."""

Begun = dict[LinkKey, tuple[list[Span], set[int]]]


def channel_key(row: Row, sender: str) -> LinkKey:
    """What a peer sends on the channel of a row."""
    return LinkKey(row.run, str(row.connection), row.session, None, sender, None)


def counted(rows: Iterable[Row], window_us: int) -> dict[LinkKey, dict[int, list[int]]]:
    """Messages, frames and octets by channel, sender and window, with the empty windows between."""
    found: dict[LinkKey, dict[int, list[int]]] = {}
    for row, key in _content(rows):
        windows = found.setdefault(key, {})
        window = row.t_us // window_us
        for between in range(max(windows, default=window), window + 1):
            windows.setdefault(between, [0, 0, 0])
        counts = windows[window]
        counts[0] += MESSAGES.get(row.kind or "") == row.from_peer
        counts[1] += 1
        counts[2] += row.body_bytes or 0
    return found


class Carried:
    """What a peer has sent on a channel.

    Attributes:
        key: whose they are.
        first: the first frame of a message.
        messages: how many.
        frames: of them: method, header, bodies.
    """

    __slots__ = ("first", "frames", "key", "messages")

    def __init__(self, key: LinkKey, first: Row) -> None:
        self.key = key
        self.first = first
        self.messages = 0
        self.frames = 0


def carried(rows: Iterable[Row]) -> list[Carried]:
    """By channel and sender."""
    found: dict[LinkKey, Carried] = {}
    for row, key in _content(rows):
        one = found.setdefault(key, Carried(key, row))
        one.messages += MESSAGES.get(row.kind or "") == row.from_peer
        one.frames += 1
    return list(found.values())


def _content(rows: Iterable[Row]) -> Iterable[tuple[Row, LinkKey]]:
    """Frames of messages, once each, with whose they are."""
    for row in once(rows, AMQP_0_9_1):
        if row.kind in CONTENT and row.session is not None and row.from_peer is not None:
            yield row, channel_key(row, row.from_peer)


def gaps(rows: Iterable[Row]) -> list[Span]:
    """From one message of a channel and sender to the next."""
    return [span for its in begun_messages(rows).values() for span in itertools.pairwise(its)]


def begun_messages(rows: Iterable[Row]) -> dict[LinkKey, list[Row]]:
    """The rows with which the messages of each channel and sender begin, among that sender's."""
    found: dict[LinkKey, list[Row]] = {}
    for end in ends(rows, AMQP_0_9_1):
        for row in end.rows:
            if (
                row.session is not None
                and MESSAGES.get(row.kind or "") == end.peer == row.from_peer
            ):
                found.setdefault(channel_key(row, end.peer), []).append(row)
    return found


def answered(rows: Iterable[Row]) -> dict[str, Begun]:
    """From publish to confirm, and from delivery to acknowledgement, by measure."""
    found: dict[str, Begun] = {measure: {} for measure in MEASURES.values()}
    for end in ends(rows, AMQP_0_9_1):
        its = found[MEASURES[end.peer]]
        waiting: dict[LinkKey, dict[int, Row]] = {}
        for row in end.rows:
            if row.session is None:
                continue
            key = channel_key(row, end.peer)
            if MESSAGES.get(row.kind or "") == end.peer == row.from_peer:
                number = _number(row, end.peer)
                if number is not None:
                    waiting.setdefault(key, {})[number] = row
                    its.setdefault(key, ([], set()))[1].add(row.seq)
            elif row.kind in ANSWERS[end.peer] and row.from_peer != end.peer:
                for number in _covered(row, waiting.get(key, {})):
                    since = waiting[key].pop(number)
                    spans, unanswered = its[key]
                    spans.append((since, row))
                    unanswered.remove(since.seq)
    return found


def _number(row: Row, sender: str) -> int | None:
    """By which an answer names a message; None if none will."""
    ledger = row.ledger or {}
    if sender == CLIENT:
        number = ledger.get("published")  # on a channel in confirm mode alone
        return None if number is None else int(number)
    waits = row.kind == "basic.deliver" and ledger.get("unacknowledged") != 0
    return row.fields.get("delivery_tag") if waits else None


def _covered(row: Row, waiting: dict[int, Row]) -> list[int]:
    tag = row.fields.get("delivery_tag")
    if tag is None:
        return []
    if not row.fields.get("multiple"):
        return [tag] if tag in waiting else []
    return [number for number in waiting if number <= tag or tag == 0]


def limits(rows: Iterable[Row]) -> dict[LinkKey, list[int]]:
    """The prefetch of the consumers on each channel, one after the other; 0 is none."""
    found: dict[LinkKey, list[int]] = {}
    for row in once(rows, AMQP_0_9_1):
        limit = (row.ledger or {}).get("prefetch_count")
        if row.kind == "basic.deliver" and limit is not None:
            its = found.setdefault(channel_key(row, BROKER), [])
            if int(limit) not in its:
                its.append(int(limit))
    return found


def prefetch(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """A row for each frame that concerns a consumer: what it has, and what it may have."""
    return [
        {
            "run": row.run, "connection": row.connection, "session": row.session,
            "consumer": row.consumer, "seq": row.seq, "frame_id": row.frame_id,
            "t_us": row.t_us, "prefetch_count": row.ledger["prefetch_count"],
            "unacknowledged": row.ledger["unacknowledged"],
            "full": 0 < row.ledger["prefetch_count"] <= row.ledger["unacknowledged"],
        }
        for end in ends(rows, AMQP_0_9_1)
        if end.peer == BROKER
        for row in end.rows
        if row.consumer is not None and row.ledger and "prefetch_count" in row.ledger
    ]  # fmt: skip


class Held:
    """An interval in which a peer was held.

    Attributes:
        key: what was held: a channel's direction, or all that a peer sends on a connection.
        brake: by what.
        first: the row with which it began.
        last: the row that released it; None: nothing did.
        end_us: when it was over.
        evidence: how it is known that something was to be sent.
    """

    __slots__ = ("brake", "end_us", "evidence", "first", "key", "last")

    def __init__(
        self, key: LinkKey, brake: str, first: Row, last: Row | None, end_us: int, evidence: str
    ) -> None:
        self.key = key
        self.brake = brake
        self.first = first
        self.last = last
        self.end_us = end_us
        self.evidence = evidence


def held(rows: Sequence[Row], prompt_us: int) -> list[Held]:
    """Intervals in which a peer with something to send was held."""
    return [*_prefetched(rows, prompt_us), *_told(rows)]


def _prefetched(rows: Iterable[Row], prompt_us: int) -> Iterable[Held]:
    """A consumer that had as many as it may, and got another as soon as it had fewer."""
    for end in ends(rows, AMQP_0_9_1):
        if end.peer != BROKER:
            continue
        full: dict[tuple[int | None, str], Row] = {}
        released: dict[tuple[int | None, str], list[Span]] = {}
        for row in end.rows:
            limit = (row.ledger or {}).get("prefetch_count")
            unacked = (row.ledger or {}).get("unacknowledged")
            if row.consumer is None or limit is None or unacked is None:
                continue
            consumer = row.session, row.consumer
            now = limit > 0 and unacked >= limit
            if not now and consumer in full:
                released.setdefault(consumer, []).append((full.pop(consumer), row))
            if row.kind == "basic.deliver":
                for first, last in released.pop(consumer, ()):
                    if row.t_us - last.t_us <= prompt_us:
                        key = channel_key(first, BROKER)
                        yield Held(key, PREFETCH, first, last, last.t_us, "later-frames")
            if now:
                full.setdefault(consumer, row)


def _told(rows: Sequence[Row]) -> Iterable[Held]:
    """What the broker's reader or a socket tells of itself; of an alarm else connection.blocked."""
    last = {(row.run, row.connection): row.t_us for row in frames(rows, AMQP_0_9_1)}
    inside = [
        row
        for row in rows
        if row.event in ("block", "unblock")
        and row.kind in TOLD
        and (row.run, row.connection) in last
        and _stops(row) is not None
    ]
    known = {(row.run, row.connection) for row in inside if row.kind == ALARM}
    on_wire = [
        row
        for row in once(rows, AMQP_0_9_1)
        if row.kind in ("connection.blocked", "connection.unblocked")
        and (row.run, row.connection) not in known
    ]
    begun: dict[tuple[LinkKey, str], Row] = {}
    for row in sorted([*inside, *on_wire], key=lambda one: (one.run, one.seq)):
        brake = ALARM if row.is_frame else str(row.kind)
        sender = CLIENT if row.is_frame else str(_stops(row))
        key = LinkKey(row.run, str(row.connection), None, None, sender, None)
        if row.event == "block" or row.kind == "connection.blocked":
            begun.setdefault((key, brake), row)
        elif (key, brake) in begun:
            yield Held(key, brake, begun.pop((key, brake)), row, row.t_us, "internal")
    for (key, brake), first in begun.items():
        end_us = max(first.t_us, last[key.run, key.connection])
        yield Held(key, brake, first, None, end_us, "internal")


def _stops(row: Row) -> str | None:
    """Whose messages a process that stops does not let through."""
    if row.vantage.startswith("reader:"):
        return CLIENT
    if row.kind != "tcp":
        return None
    peer = CLIENT if row.vantage.startswith("client:") else row.vantage
    return peer if peer in PEERS else None
