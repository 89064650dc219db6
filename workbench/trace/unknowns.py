"""What a trace cannot tell, link by link, and why.

A question that is answered from a capture is as good as the capture. This fold reads a trace once
and lists what nobody can know from it: beginnings that were not recorded, the one place where a
capture stands, what never travels on the wire, a clock that is too coarse, octets that are missing
or cannot be read. The definitions are in `data/README.md`, question `unknowns`.

Nothing here is about what is *wrong*; that is `violations`. And what is not listed is known.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.languages import on_page
from workbench.trace.clock import COARSE_US, Clock
from workbench.trace.fold import ABOUT
from workbench.trace.schema import (
    AMQP_0_9_1,
    AMQP_0_10,
    AMQP_1_0,
    BROKER,
    CLIENT,
    LEDGER_GROUPS,
    LINK,
    LOSSES,
    OBSERVED,
    RECEIVED,
    Row,
    few,
    logged_by,
    other_peer,
)
from workbench.trace.words import counted, spec_name, times

__all__ = ["Unknown", "UnknownReport", "told_once", "unknowns"]

MANY_PLACES = 6
"""Of more places that one thing holds for, so many are named."""

_NUMBERED = re.compile(r".\d{1,5}")
"""A connection as the importer names them; a longer number is somebody else's name."""
_PEERS = (CLIENT, BROKER)
Finding = dict[str, Any]
"""The fields of an `Unknown` that do not say where it is."""

_TLS = 2
"""Protocol id of a header that changes to TLS [5.2.1]."""
# Rows about octets, or acts of a person: they tell nothing of what a peer does inside.
_NOT_INSIDE = frozenset(
    {"gap", "error", "action", "hold", "release", "latency", "note", "connect", "disconnect"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """One thing that the trace cannot tell.

    Attributes:
        run: of which run.
        connection: of which connection; None where it is about the whole run.
        session, link, link_sender, attach_no: of which link; None where it is about the whole
            connection. A link whose attach is not in the trace has no name.
        what: one of the words that `data/README.md` explains.
        unknown: what cannot be known, in words.
        why: why not, in words, with the trace's numbers.
        rows: how many rows it concerns; None where that means nothing.
        first_seq, last_seq: the first and the last of them.
    """

    run: str
    connection: str | None = None
    session: int | None = None
    link: str | None = None
    link_sender: str | None = None
    attach_no: int | None = None
    what: str = ""
    unknown: str = ""
    why: str = ""
    rows: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None

    @property
    def about_connection(self) -> bool:
        """Whether it is about a connection as a whole."""
        return self.connection is not None and self.link_sender is None and self.session is None

    @property
    def place(self) -> str:
        """What it is about, in a few words."""
        if self.connection is None:
            return "the whole trace"
        if self.about_connection:
            return f"connection {self.connection}"
        name = "a link without a name" if self.link is None else f"link {self.link}"
        again = f", attach {self.attach_no}" if (self.attach_no or 1) > 1 else ""
        return f"{self.connection}/{self.session} {name} from {self.link_sender or '?'}{again}"


class UnknownReport(list[Unknown]):
    """What cannot be told; for a person a page: a heading for each place, a line for each thing."""

    def __str__(self) -> str:
        if not self:
            return "Everything that these questions need is in the trace."
        lines: list[str] = []
        for place, found in told_once(self).items():
            lines += [place, *(f"  {one.unknown}: {one.why}" for one in found)]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{html.escape(str(self))}</p>"
        body = ""
        for place, found in told_once(self).items():
            lines = (
                f"<li><strong>{html.escape(one.unknown)}</strong>: {on_page(one.why)}</li>"
                for one in found
            )
            body += f"<p style='margin:8px 0 0'><strong>{html.escape(place)}</strong></p>"
            body += f"<ul style='margin:0'>{''.join(lines)}</ul>"
        return f'<div style="max-width:62em;line-height:1.5" role="note">{body}</div>'


def unknowns(rows: Iterable[Row]) -> UnknownReport:
    """What the trace cannot tell: of each run the whole first, then connections and links.

    Args:
        rows: a whole trace in order; it is read once, and no row is kept.
    """
    runs: dict[str, _Run] = {}
    for row in rows:
        if row.run not in runs:
            runs[row.run] = _Run(row.run, row.seq)
        runs[row.run].see(row)
    return UnknownReport(found for run in runs.values() for found in run.findings())


def told_once(found: Iterable[Unknown]) -> dict[str, list[Unknown]]:
    """What cannot be told, by place in words; what holds for several places is there once.

    Args:
        found: what `unknowns` gave.
    """
    alike: dict[tuple[str, str, str], list[Unknown]] = {}
    connections: dict[str, set[str]] = {}
    for one in found:
        alike.setdefault((one.run, one.unknown, one.why), []).append(one)
        connections.setdefault(one.run, set()).update([one.connection] if one.connection else [])
    by_place: dict[str, list[Unknown]] = {}
    for (run, *_), (first, *others) in alike.items():
        place, number = first.place, 1 + len(others)
        if others and first.about_connection and number == len(connections[run]):
            place = f"each of {number:,} connections"
        elif others:
            place = few([one.place for one in (first, *others)], MANY_PLACES)
        by_place.setdefault(f"{run}: {place}" if len(connections) > 1 else place, []).append(first)
    return by_place


# -- what was seen --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Places:
    """How many rows, and the first and last of them."""

    first: int
    rows: int = 0
    last: int = 0


class _Seen(dict[Any, _Places]):
    """Where each thing was seen; a thing is a word, or a word and of whom."""

    def add(self, thing: Any, seq: int) -> None:
        places = self.get(thing)
        if places is None:
            places = self[thing] = _Places(seq)
        places.rows += 1
        places.last = seq

    def rows(self, thing: Any) -> int:
        places = self.get(thing)
        return 0 if places is None else places.rows

    def of(self, word: str) -> list[Any]:
        """Of whom the word was seen, in order."""
        return [thing[1] for thing in self if type(thing) is tuple and thing[0] == word]


_ALIKE = {
    "connection.start": "open",
    "connection.start-ok": "open",
    "connection.close": "close",
}
"""Methods of AMQP 0-9-1 and 0-10 that do what performatives of 1.0 do."""


class _Connection(_Seen):
    """What was seen of one connection; rows that are about none are seen under None.

    Attributes:
        lost: octets of its gaps, by the peer that sent them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lost: dict[str, int] = {}

    def see(self, row: Row) -> None:
        """Takes one row of this connection."""
        if not row.is_frame:
            self._internal(row)
            return
        self.add(("logged by", "wire" if row.event == OBSERVED else logged_by(row)), row.seq)
        peer = row.from_peer or "?"
        if row.session is not None and row.protocol == AMQP_1_0:
            self.add(("session", row.session), row.seq)
        kind = _ALIKE.get(row.kind or "", row.kind)
        if kind == "begin":
            self.add(("begin", (row.session, peer)), row.seq)
        elif kind == "end":
            self.add(("end", row.session), row.seq)
        elif kind == "open":
            self.add(("open", peer), row.seq)
        elif kind == "close":
            self.add("close", row.seq)
        elif row.kind == "protocol-header" and (row.frame or {}).get("protocol_id") == _TLS:
            self.add(("tls", peer), row.seq)
        if row.protocol == AMQP_0_9_1:
            for name in row.unknown:
                self.add(("unknown", name), row.seq)
        if row.ledger_source == "shadow":
            self.add(("shadow", row.vantage), row.seq)
        if row.raw is not None:
            self.add("octets", row.seq)
        elif row.kind in ("transfer", "content-body", "body") and row.t_raw_us is not None:
            self.add("cut", row.seq)

    def _internal(self, row: Row) -> None:
        if row.event not in LOSSES:
            if row.event not in _NOT_INSIDE:
                self.add("inside", row.seq)
            return
        about = row.extra
        peer = str(about.get("from_peer") or row.from_peer or "?")
        self.add((row.event, peer), row.seq)
        octets = about.get("octets")
        if row.event == "gap" and isinstance(octets, int):
            self.lost[peer] = self.lost.get(peer, 0) + octets


class _Link(_Seen):
    """What was seen of one link: connection, session, link, link_sender, attach_no."""

    def see(self, row: Row) -> None:
        """Takes one frame row of this link."""
        seq, frame, ledger, sender = row.seq, row.frame or {}, row.ledger or {}, row.link_sender
        self.add("frame", seq)
        if row.kind == "attach":
            self.add(("attach", row.from_peer or "?"), seq)
        elif row.kind == "detach":
            self.add("detach", seq)
        for name in row.unknown:
            self.add(("unknown", name), seq)
        for name in ledger:
            if ("known", name) not in self:
                self.add(("known", name), seq)
        once = row.event != RECEIVED  # each frame in one vantage only
        if once and row.kind == "transfer":
            self.add("transfer", seq)
            if frame.get("settled") is True:
                self.add("settled", seq)
        told = frame.get("available") is not None and sender == (row.from_peer or "?")
        if once and row.kind == "flow" and told:
            self.add("stated", seq)
        own = row.ledger_source == "own" and row.event != OBSERVED and sender == logged_by(row)
        if own and "available" in ledger:
            self.add("own", seq)


class _Time(_Seen):
    """What was seen of a run's clock.

    Of a capture's rows the `observed` ones, those `raw` ones of them with a packet clock, those
    `shared` ones with the very packet time of the frame before, and those at which it was further
    `back` than it had been.

    Attributes:
        first_seq: the run's first row.
        clock: the clock.
    """

    def __init__(self, first_seq: int) -> None:
        super().__init__()
        self.first_seq = first_seq
        self.clock = Clock()
        self._last: int | None = None
        self._most = 0

    def see(self, row: Row) -> None:
        """Takes one row of the run."""
        self.clock.see(row)
        if row.event != OBSERVED:
            return
        self.add("observed", row.seq)
        now, last = row.t_raw_us, self._last
        if now is None:
            return
        self.add("raw", row.seq)
        if last is not None:
            if now == last:
                self.add("shared", row.seq)
            if now < self._most:
                self.add("back", row.seq)
        self._last, self._most = now, max(now, self._most)


class _Run:
    """What was seen of one run."""

    def __init__(self, name: str, first_seq: int) -> None:
        self.name = name
        self.time = _Time(first_seq)
        self.connections: defaultdict[str | None, _Connection] = defaultdict(_Connection)
        self.links: defaultdict[tuple[Any, ...], _Link] = defaultdict(_Link)

    def see(self, row: Row) -> None:
        self.time.see(row)
        self.connections[row.connection].see(row)
        # A frame that names a handle is about a link, whether its name is known or not.
        if not row.is_frame or row.connection is None:
            return
        if row.protocol == AMQP_0_10:
            return  # its rows name destinations, which nobody attaches
        if row.link is None and (row.session is None or (row.frame or {}).get("handle") is None):
            return
        self.links[row.connection, row.session, row.link, row.link_sender, row.attach_no].see(row)

    def findings(self) -> Iterator[Unknown]:
        names = [name for name in self.connections if name is not None]
        for found in _about_time(self.time, names):
            yield Unknown(run=self.name, **found)
        # A queue is on no connection, and tells of what all of them lead to.
        queues = "inside" in self.connections.get(None, ())
        links: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
        for key in self.links:
            links[key[0]].append(key)
        for name in names:
            connection = self.connections[name]
            inside = queues or "inside" in connection
            for found in _about_place(connection, inside=inside):
                yield Unknown(run=self.name, connection=name, **found)
            for key in links[name]:
                place: dict[str, Any] = dict(zip(ABOUT, key, strict=True))
                for found in _about_link(self.links[key], key, connection, inside=inside):
                    yield Unknown(run=self.name, **place, **found)


# -- in words -------------------------------------------------------------------------------------


def _about_time(time: _Time, connections: Iterable[str]) -> Iterator[Finding]:
    """What a whole run does not tell."""
    if time.first_seq:
        yield _found(
            "rows",
            f"the {time.first_seq:,} rows before row {time.first_seq:,}",
            "the trace was cut: a run begins with row 0",
        )
    if "observed" in time and "raw" not in time:
        yield _found(
            "clock",
            "every time",
            "the log carries none; t_us counts its rows, and only their order is true",
        )
    elif time.clock.gcd_us >= COARSE_US:
        yield _found(
            "clock",
            f"what lasts less than {time.clock.step}",
            f"all times of the capture's clock are multiples of {time.clock.step} apart",
        )
    if "shared" in time:
        shared = time.rows("shared")
        yield _found(
            "clock",
            "how long it took from frame to frame within a packet",
            f"{shared:,} of {time.rows('raw'):,} frames {'has' if shared == 1 else 'have'} the time"
            " of the one before: a packet carries several frames and has one time",
        )
    back = time.get("back")
    if back is not None:
        yield _found(
            "clock",
            f"the true time of {counted(back.rows, 'row')}",
            "the capture's clock went back; t_us stands still until it has caught up. If captures"
            " were appended to each other, reordercap sorts their packets",
            back,
        )
    numbers = {int(name[1:]) for name in connections if _NUMBERED.fullmatch(name)}
    missing = sorted(set(range(1, max(numbers, default=0) + 1)) - numbers)
    if missing and "observed" in time:
        listed = few([f"c{number}" for number in missing], MANY_PLACES)
        yield _found(
            "others",
            f"everything on connection {listed}" if len(missing) == 1 else f"what {listed} carried",
            "the capture has it, the trace has not: no AMQP that can be read (TLS, another"
            " protocol); it shares broker and queues all the same",
        )


def _about_place(seen: _Connection, *, inside: bool) -> Iterator[Finding]:
    """What one connection does not tell."""
    yield from _vantage(seen)
    if not inside:
        yield _found(
            "inside",
            "queue depth, the broker's own credit, its disks; what applications do",
            "the trace holds frames and no internal events, and none of this travels on the wire",
        )
    for vantage in seen.of("shadow"):
        yield _found(
            "reckoned",
            f"the counters that {vantage} really has",
            "it shows none; an endpoint of ours that got the same frames has worked them out",
            seen["shadow", vantage],
        )
    yield from _beginning(seen)
    for name in seen.of("unknown"):
        places = seen["unknown", name]
        yield _found(
            "counter",
            f"{spec_name(name)} of {places.rows:,} frames",
            "the channel was opened before its first frame in the trace, or frames are missing",
            places,
        )
    for peer in _PEERS:
        yield from _octets(seen, peer)
    # Where no row has octets, they were left out on purpose.
    if "cut" in seen and "octets" in seen:
        yield _found(
            "payload",
            f"octets of {counted(seen.rows('cut'), 'transfer')}",
            "the capture kept only the beginning of their packets (its snapshot length)",
            seen["cut"],
        )


def _vantage(seen: _Connection) -> Iterator[Finding]:
    loggers = seen.of("logged by")
    if "wire" in loggers:
        yield _found(
            "vantage",
            "when an end sent a frame, and when it took one in",
            "one place has logged them: t_us is when a frame passed there, so an end that seems to"
            " ignore a flow may not have it yet, or, like RabbitMQ, have put it aside",
        )
        return
    if len(loggers) == 1:
        (end,) = loggers
        yield _found(
            "vantage",
            f"when {other_peer(end)} sent and took its frames",
            f"{end} alone has logged them: what it sent may still be on its way",
        )


def _beginning(seen: _Connection) -> Iterator[Finding]:
    missing = " and ".join(peer for peer in _PEERS if ("open", peer) not in seen)
    if missing:
        yield _found(
            "beginning",
            f"largest frame, idle time-out and highest channel of {missing}",
            f"no open of {missing} is in the trace",
        )
    for session in sorted(seen.of("session")):
        lacking = " and ".join(peer for peer in _PEERS if ("begin", (session, peer)) not in seen)
        if lacking:
            yield _found(
                "beginning",
                f"how session {session} began: first ids and windows of {lacking}",
                f"no begin of {lacking} is in the trace, and a window is not known before a flow"
                " tells it",
            )


def _octets(seen: _Connection, peer: str) -> Iterator[Finding]:
    gaps, errors = seen.get(("gap", peer)), seen.get(("error", peer))
    if gaps is not None:
        octets = seen.lost.get(peer, 0)
        yield _found(
            "gap",
            f"what the {peer} said in {octets:,} octets",
            f"they are missing in {counted(gaps.rows, 'place')}: not captured, or cut off at an"
            " end",
            gaps,
        )
    if errors is not None:
        yield _found(
            "unreadable",
            f"what the {peer} said in {counted(errors.rows, 'place')}",
            "the octets are there and no frame can be read from them",
            errors,
        )
    if ("tls", peer) in seen:
        yield _found(
            "encrypted",
            f"all that the {peer} said after its protocol header",
            "it changes to TLS there; capture before encryption, or on the broker's plain port",
        )


def _about_link(
    link: _Link, key: tuple[Any, ...], connection: _Connection, *, inside: bool
) -> Iterator[Finding]:
    """What one link does not tell."""
    _, session, _, sender, attach_no = key
    yield from _attach(link, attach_no, sender)
    yield from _counters(link, attach_no)
    if "transfer" in link and "own" not in link:
        yield _waiting(link, sender)
    settled = link.rows("settled")
    if settled and not inside:
        yield _found(
            "confirmed",
            f"whether a queue has taken {settled:,} of {link.rows('transfer'):,} messages"
            if sender == CLIENT
            else f"whether the client is done with {settled:,} messages",
            "they were sent settled, so no disposition tells, and without internal events nothing"
            " else does: a sender held for want of confirms looks like one held for credit",
        )
    if not ("detach" in link or "close" in connection or ("end", session) in connection):
        yield _found(
            "ending",
            "how it went on, and how long what lasts at the end has lasted",
            "neither a detach of it nor an end or close is in the trace; its last row is"
            f" {link['frame'].last:,}",
        )


def _attach(link: _Link, attach_no: int | None, sender: str | None) -> Iterator[Finding]:
    if attach_no is None:
        yield _found(
            "beginning",
            "the link's name, its addresses, how it settles",
            "its attach is not in the trace; a frame names a link by a handle only",
        )
        return
    lacking = [peer for peer in _PEERS if ("attach", peer) not in link]
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
_UNTIL = {
    "delivery_count": "its sender states it in a flow or an attach",
    "link_credit": "a flow tells it while the delivery-count is known",
    "drain": "a flow of its receiver tells it",
    "unsettled": "all from before is known to be settled",
}


def _counters(link: _Link, attach_no: int | None) -> Iterator[Finding]:
    for name in LEDGER_GROUPS[LINK]:
        places = link.get(("unknown", name))
        if places is None:
            continue
        known = link.get(("known", name))
        if known is None:
            until = "never known in this trace"
        elif known.first > places.last:
            until = f"known from row {known.first:,} on"
        else:
            until = "known at its other rows"
        because = _UNTIL.get(name, "a frame tells it")
        if name == "delivery_count" and attach_no is None:
            because += ", or is seen to have used up all that was granted"
        yield _found(
            "counter",
            f"{spec_name(name)} at {places.rows:,} of {link.rows('frame'):,} rows",
            f"it cannot be known until {because}; {until}",
            places,
        )


def _waiting(link: _Link, sender: str | None) -> Finding:
    stated = link.rows("stated")
    if stated:
        return _found(
            "waiting",
            f"whether messages waited at the {sender or 'sender'} at any one moment",
            f"the sender has told `available` {times(stated)}, which is true only when it is sent;"
            " between, a transfer that follows a grant at once is the only sign",
        )
    return _found(
        "waiting",
        f"whether messages waited at the {sender or 'sender'}",
        "the sender never tells `available`, and the trace has no counter of its own; a transfer"
        " that follows a grant at once is the only sign",
    )


def _found(what: str, unknown: str, why: str, places: _Places | None = None) -> Finding:
    found: Finding = {"what": what, "unknown": unknown, "why": why}
    if places is not None:
        found |= {"rows": places.rows, "first_seq": places.first, "last_seq": places.last}
    return found
