"""What a trace cannot tell, in words: each thing that `unknowns` lists is written here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any

from workbench.trace.schema import BROKER, CLIENT, OBSERVED, Row
from workbench.trace.unknown_links import Connection, Link, Places

__all__ = [
    "COARSE_US",
    "SCOPES",
    "WHAT",
    "Finding",
    "Time",
    "about_link",
    "about_place",
    "about_time",
]

Finding = dict[str, Any]
"""The fields of an `Unknown` that do not say where it is."""

SCOPES = ("connection", "session", "link", "link_sender", "attach_no")

WHAT = {
    "rows": "rows before the first one of the trace",
    "clock": "times that the clock does not tell",
    "others": "connections of which nothing is in the trace",
    "vantage": "when the ends sent and took what was seen between them, or at one end",
    "inside": "what the peers did inside",
    "reckoned": "counters that the end itself did not tell",
    "beginning": "what was said before the trace began",
    "gap": "octets that are missing",
    "unreadable": "octets that are there and cannot be read",
    "encrypted": "what came after the change to TLS",
    "payload": "payload that the capture did not keep",
    "counter": "a counter, for some time",
    "waiting": "whether the sender had something to send",
    "confirmed": "whether a queue has taken the messages",
    "ending": "what came after the trace",
}
"""The words of the column `what`."""

COARSE_US = 1_000
"""A clock that counts in steps of this or more is coarse: frames follow each other faster."""

_PEERS = (CLIENT, BROKER)
_OTHER = {CLIENT: BROKER, BROKER: CLIENT}


@dataclass(slots=True)
class Time:
    """What has been seen of a run's clock.

    Attributes:
        first_seq: the run's first row.
        observed: rows of a capture.
        raw: of these, the ones with a packet clock.
        shared: frames with the very packet time of the frame before.
        back: rows at which the packet clock went back.
        step: greatest common divisor of all distances of packet times.
    """

    first_seq: int | None = None
    observed: int = 0
    raw: int = 0
    shared: int = 0
    back: Places = field(default_factory=Places)
    step: int = 0
    _last: int | None = None

    def see(self, row: Row) -> None:
        """Takes one row of the run."""
        if self.first_seq is None:
            self.first_seq = row.seq
        if row.event != OBSERVED:
            return
        self.observed += 1
        now = row.t_raw_us
        if now is None:
            return
        self.raw += 1
        if self._last is not None:
            self.shared += now == self._last
            self.step = gcd(self.step, abs(now - self._last))
            if now < self._last:
                self.back.add(row.seq)
        self._last = now


def about_time(time: Time, connections: Mapping[str | None, Connection]) -> Iterator[Finding]:
    """What a whole run does not tell."""
    if time.first_seq:
        yield _found(
            "rows",
            f"the {time.first_seq:,} rows before row {time.first_seq:,}",
            "the trace was cut: a run begins with row 0",
        )
    if time.observed and not time.raw:
        yield _found(
            "clock",
            "every time",
            "the log carries none; t_us counts its rows, and only their order is true",
        )
    elif time.step >= COARSE_US:
        yield _found(
            "clock",
            f"what lasts less than {time.step:,} µs",
            f"all times of the capture's clock are multiples of {time.step:,} µs apart",
        )
    if time.shared:
        yield _found(
            "clock",
            "how long it took from frame to frame within a packet",
            f"{time.shared:,} of {time.raw:,} frames have the time of the one before: a packet"
            " carries several frames and has one time",
        )
    if time.back.rows:
        yield _found(
            "clock",
            f"the true time of {time.back.rows:,} rows",
            "the capture's clock went back there; t_us stands still instead",
            time.back,
        )
    numbers = {int(name[1:]) for name in connections if name and name[1:].isdecimal()}
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - numbers)
    if missing and time.observed:
        listed = ", ".join(f"c{number}" for number in missing)
        yield _found(
            "others",
            f"everything on connection {listed}" if len(missing) == 1 else f"what {listed} carried",
            "the capture has it, the trace has not: no AMQP 1.0 that can be read (TLS, another"
            " protocol); it shares broker and queues all the same",
        )


def about_place(seen: Connection) -> Iterator[Finding]:
    """What one connection does not tell."""
    yield from _vantage(seen)
    if not seen.inside:
        yield _found(
            "inside",
            "queue depth, the broker's own credit, its disks; what applications do",
            "the trace holds frames and no internal events, and none of this travels on the wire",
        )
    for vantage, places in seen.shadow.items():
        yield _found(
            "reckoned",
            f"the counters that {vantage} really has",
            "it shows none; an endpoint of ours that got the same frames has worked them out",
            places,
        )
    yield from _beginning(seen)
    for peer in _PEERS:
        yield from _octets(seen, peer)
    if seen.cut.rows and seen.whole_octets:
        yield _found(
            "payload",
            f"octets of {seen.cut.rows:,} transfers",
            "the capture kept only the beginning of their packets (its snapshot length)",
            seen.cut,
        )


def _vantage(seen: Connection) -> Iterator[Finding]:
    if OBSERVED in seen.events:
        yield _found(
            "vantage",
            "when an end sent a frame, and when it took one in",
            "one place has logged them: t_us is when a frame passed there, so an end that seems to"
            " ignore a flow may not have it yet",
        )
        return
    loggers = {name for names in seen.events.values() for name in names}
    if len(loggers) == 1:
        (end,) = loggers
        other = _OTHER.get(end, "the other end")
        yield _found(
            "vantage",
            f"when {other} sent and took its frames",
            f"{end} alone has logged them: what it sent may still be on its way",
        )


def _beginning(seen: Connection) -> Iterator[Finding]:
    missing = [peer for peer in _PEERS if peer not in seen.opened]
    if missing:
        yield _found(
            "beginning",
            "largest frame, idle time-out and highest channel of " + _both(missing),
            f"no open of {_both(missing)} is in the trace",
        )
    for session in sorted(seen.sessions):
        lacking = [peer for peer in _PEERS if peer not in seen.began.get(session, set())]
        if lacking:
            yield _found(
                "beginning",
                f"how session {session} began: first ids and windows of {_both(lacking)}",
                f"no begin of {_both(lacking)} is in the trace, and a window is not known before"
                " a flow tells it",
            )


def _octets(seen: Connection, peer: str) -> Iterator[Finding]:
    gaps, errors = seen.gaps.get(peer), seen.errors.get(peer)
    if gaps is not None:
        octets = seen.lost.get(peer, 0)
        yield _found(
            "gap",
            f"what the {peer} said in {octets:,} octets",
            f"they are missing in {gaps.rows:,} places: not captured, or cut off at an end",
            gaps,
        )
    if errors is not None:
        yield _found(
            "unreadable",
            f"what the {peer} said in {errors.rows:,} places",
            "the octets are there and no frame can be read from them",
            errors,
        )
    if peer in seen.tls:
        yield _found(
            "encrypted",
            f"all that the {peer} said after its protocol header",
            "it changes to TLS there; capture before encryption, or on the broker's plain port",
        )


def about_link(link: Link, connection: Connection) -> Iterator[Finding]:
    """What one link does not tell."""
    _, session, name, sender, _ = link.key
    yield from _attach(link, name, sender)
    yield from _counters(link)
    if link.transfers.rows and not link.own and connection.events:
        yield _waiting(link, sender)
    if link.settled and not connection.inside:
        yield _found(
            "confirmed",
            f"whether a queue has taken {link.settled:,} of {link.transfers.rows:,} messages"
            if sender == CLIENT
            else f"whether the client is done with {link.settled:,} messages",
            "they were sent settled, so no disposition tells, and without internal events nothing"
            " else does: a sender held for want of confirms looks like one held for credit",
        )
    if not (link.ended or connection.closed or session in connection.over):
        yield _found(
            "ending",
            "how it went on, and how long what lasts at the end has lasted",
            "neither a detach of it nor an end or close is in the trace; its last row is"
            f" {link.frames.last:,}",
        )


def _attach(link: Link, name: str | None, sender: str | None) -> Iterator[Finding]:
    if name is None:
        yield _found(
            "beginning",
            "the link's name, its addresses, how it settles",
            "its attach is not in the trace; a frame names a link by a handle only",
        )
        return
    lacking = [peer for peer in _PEERS if peer not in link.attached]
    if not lacking:
        return
    ends = {peer: "sender" if peer == sender else "receiver" for peer in lacking}
    what = "settlement modes and addresses as the other end has them"
    if sender in lacking:
        what = "initial-delivery-count, settlement modes, addresses"
    yield _found(
        "beginning",
        what,
        "no attach of the " + " and of the ".join(f"{ends[peer]} ({peer})" for peer in lacking)
        + " is in the trace",
    )  # fmt: skip


# What a session's rows leave open is the same on each of its links; said once, with the session.
_OF_LINK = ("delivery_count", "link_credit", "available", "drain", "unsettled", "unconfirmed")
_UNTIL = {
    "delivery_count": "its sender states it in a flow or an attach",
    "link_credit": "a flow tells it while the delivery-count is known",
    "drain": "a flow of its receiver tells it",
    "unsettled": "all from before is known to be settled",
}


def _counters(link: Link) -> Iterator[Finding]:
    for name in _OF_LINK:
        places = link.unknown.get(name)
        if places is None:
            continue
        word = name.replace("_", "-")
        known = link.known.get(name)
        if known is None:
            until = "never known in this trace"
        elif known > places.last:
            until = f"known from row {known:,} on"
        else:
            until = "known at its other rows"
        because = _UNTIL.get(name, "a frame tells it")
        yield _found(
            "counter",
            f"{word} at {places.rows:,} of {link.frames.rows:,} rows",
            f"it cannot be known until {because}; {until}",
            places,
        )


def _waiting(link: Link, sender: str | None) -> Finding:
    if link.stated:
        times = "once" if link.stated == 1 else f"{link.stated:,} times"
        return _found(
            "waiting",
            f"whether messages waited at the {sender or 'sender'} at any one moment",
            f"the sender has told `available` {times}, which is true only when it is sent;"
            " between, a transfer that follows a grant at once is the only sign",
        )
    return _found(
        "waiting",
        f"whether messages waited at the {sender or 'sender'}",
        "the sender never tells `available`, and the trace has no counter of its own; a transfer"
        " that follows a grant at once is the only sign",
    )


def _both(peers: list[str]) -> str:
    return " and ".join(peers)


def _found(what: str, unknown: str, why: str, places: Places | None = None) -> Finding:
    found: Finding = {"what": what, "unknown": unknown, "why": why}
    if places is not None:
        found |= {"rows": places.rows, "first_seq": places.first, "last_seq": places.last}
    return found
