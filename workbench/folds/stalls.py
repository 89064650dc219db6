"""`stalls`: when a sender with something to send was held, and by what; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench import serial
from workbench.trace.consumers import Fullness
from workbench.trace.fields import FRAME_PROTOCOLS
from workbench.trace.schema import CLIENT, LOSSES, OBSERVED, OWN, Row, peer_of

from .channels import INTERNAL, LATER, LINKLESS, Channels, Held, Tally, Told
from .consumers import Starved
from .counters import Counters, LinkState
from .credit import SENDER
from .vantage import PEERS, End, LinkKey, ends, link_key, value

PROMPT_US = 20_000
"""A sender that waited answers a grant at once: a round trip and its machine's time."""

STATED, NONE, UNKNOWN = "available", "none", LATER
_KINDS = ("begin", "flow", "attach", "transfer", "detach", "end", "close")
_Session = tuple[str, str, int, str]


class Stall(NamedTuple):
    """Something to send and a brake on."""

    run: str
    connection: str | None
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    seq: int
    frame_id: int | None
    end: str
    brake: str
    start_us: int
    end_us: int
    messages_waiting: int
    release_frame_id: int | None
    evidence: str


@dataclass(slots=True, kw_only=True)
class _Interval:
    """A part of a hold in which neither the brake nor what is known of messages changed."""

    row: Row
    brake: str
    knows: str
    since_none: int | None
    waiting: int
    end_us: int | None = None
    release: int | None = None


@dataclass(slots=True, kw_only=True)
class _Release:
    """A brake went off: what follows tells whether somebody had waited for that."""

    intervals: list[_Interval]
    t_us: int
    begun: int
    in_message: bool
    last_us: int | None = None  # the latest transfer since, of the burst


@dataclass(slots=True, kw_only=True)
class _Link:
    """One link, and what holds its sender."""

    key: LinkKey
    state: LinkState
    closed: bool | None = False  # None: not known
    alarm: bool = False
    tcp: bool = False
    blocked: bool = False  # for want of confirms, as the broker tells it
    unblocked: bool = False  # no more, but credit has not come since
    blocked_at: int | None = None  # the broker's limit for the link then
    told: tuple[str, int, int] | None = None  # how, messages, and messages begun by then
    since_none: int | None = None  # the row in which the sender stated that none waits
    lost: int = 0  # how often octets of the sender were missing before its latest row
    over: bool = False
    hold: list[_Interval] = field(default_factory=list)
    release: _Release | None = None

    def miss(self, lost: int) -> None:
        """So often octets of the sender were missing by now: what it stated is out of date."""
        if lost > self.lost and self.told is not None and self.told[0] != INTERNAL:
            self.told = self.since_none = None
        self.lost = lost

    @property
    def in_message(self) -> bool:
        return self.state.in_message is True

    @property
    def out_of_credit(self) -> bool:
        return self.state.credit == 0 and not self.in_message

    def brake(self) -> str | None:
        """What holds the sender, if anything does."""
        if self.over:
            return None
        if self.out_of_credit:
            return "unconfirmed" if self.withheld else "link-credit"
        if self.closed:
            return "alarm" if self.alarm else "session-window"
        return "tcp" if self.tcp else None

    def is_off(self, brake: str) -> bool:
        """Whether it is known of a brake that does not hold the sender that it does not."""
        if brake in ("unconfirmed", "link-credit"):
            return self.in_message or self.state.credit is not None
        return self.closed is not None or brake == "tcp"

    @property
    def withheld(self) -> bool:
        """For want of confirms; if a grant of before is still on its way, that is not yet so."""
        same = self.blocked_at in (None, self.state.limit.upper_number)
        return (self.blocked or self.unblocked) and same

    @property
    def waiting(self) -> int:
        """Messages that are known to wait."""
        if self.told is None:
            return 0
        how, number, begun = self.told
        return number if how == INTERNAL else max(0, number - (self.state.begun - begun))

    def knows(self) -> str:
        """How it is known that messages wait; or that none does, or that nobody knows."""
        if self.told is None or (not self.waiting and self.in_message):
            return UNKNOWN  # in the middle of a message the rest of it may be there or not
        if self.waiting:
            return self.told[0]
        return NONE if self.told[0] == INTERNAL else UNKNOWN


class StallFold:
    """Takes a trace row by row; `found` has the stalls that are over, `finish` adds the others.

    Args:
        prompt_us: as of `stalls`.
    """

    def __init__(self, prompt_us: int = PROMPT_US) -> None:
        self.prompt_us = prompt_us
        self.found: list[Stall] = []
        self.links: dict[LinkKey, _Link] = {}
        # Of these what is not over, by connection and session: requests may have one each.
        self.open: dict[tuple[str, str | None], dict[int | None, dict[LinkKey, _Link]]] = {}
        self.closed: dict[_Session, tuple[bool | None, bool]] = {}
        self.alarm_word: dict[_Session, bool] = {}
        self.alarm_set: set[str] = set()
        self.told, self.starved = Told(), Starved()
        self.last_us: dict[str, int] = {}

    def counted(self, end: End, protocol: str) -> Counters | Channels:
        """What is to be counted at an end of a connection of this protocol."""
        return Channels(end, self.prompt_us) if protocol in LINKLESS else Counters(end)

    def take(self, row: Row, ends: Iterable[Counters | Channels]) -> None:
        """Take in the next row, with what is counted at the ends of which it is a row."""
        self.last_us[row.run] = row.t_us
        self._on_channels(self.told.take(row), *self.starved.take(row))
        if not row.is_frame:
            self._internal(row)
        for its in ends:
            if isinstance(its, Channels):
                step = its.step(row) if row.is_frame else None
                self._on_channels(*(step.held if step else ()))
            elif row.event in LOSSES:
                its.lose(row)
            elif row.kind in _KINDS:
                self._frame(its, row)

    def finish(self) -> None:
        """There are no more rows."""
        for link in self.links.values():
            self._finish(link, self.last_us[link.key.run])
        self._on_channels(*self.told.finish(), *self.starved.finish(self.last_us))

    def forget(self, run: str, connection: str) -> None:
        """Nothing more will come of a connection whose links are over."""
        self._on_channels(*self.told.forget(run, connection))
        self.starved.forget(run, connection)
        self.open.pop((run, connection), None)
        for link in [one for one in self.links if one[:2] == (run, connection)]:
            del self.links[link]
        for known in (self.closed, self.alarm_word):
            for session in [one for one in known if one[:2] == (run, connection)]:
                del known[session]

    # -- rows -----------------------------------------------------------------------------------

    def _on_channels(self, *found: Held | None) -> None:
        """What held a peer of a protocol without links; what it tells itself counts once."""
        for held in found:
            if held is not None and not (self.told.tells(held) or self.starved.tells(held)):
                last = None if held.last is None else held.last.frame_id
                self.found.append(
                    Stall(
                        *held.key, held.first.seq, held.first.frame_id, SENDER, held.brake,
                        held.first.t_us, held.end_us, held.waiting, last, held.evidence,
                    )
                )  # fmt: skip

    def _internal(self, row: Row) -> None:
        if row.event == "alarm-set":
            self.alarm_set.add(row.run)
        if row.event in ("block", "unblock") and row.kind == "tcp":
            for link in self._of(row.run, row.connection):
                if link.key.link_sender == peer_of(row.vantage):
                    link.tcp = row.event == "block"
                    self._turn(link, row, at_link=False)
        elif row.event == "disconnect":
            for link in self._of(row.run, row.connection):
                self._end(link, row)
        key = link_key(row)
        if key is None or key.session is None or key.link_sender not in PEERS:
            return
        available = _available(row)
        own = available is not None and peer_of(row.vantage) == key.link_sender
        gate = row.event in ("block", "unblock") and row.kind == "unconfirmed"
        if not (own or gate):
            return
        link = self._link(key)
        if own:
            link.told, link.since_none = (INTERNAL, available or 0, link.state.begun), None
        if gate and row.event == "block":
            link.blocked, link.blocked_at = True, _limit(row)
        elif gate:
            link.unblocked = (link.blocked or link.unblocked) and link.out_of_credit
            link.blocked = False
        self._turn(link, row, at_link=True)

    def _frame(self, counters: Counters, row: Row) -> None:
        """A row of one of the ends whose counters these are."""
        peer, mine = counters.end.peer, None
        if row.kind == "transfer" and row.from_peer != peer:
            return  # it tells nothing of what the end may send
        step = counters.step(row)
        if step.link is not None and step.link.key.session is not None:
            mine = self._link(step.link.key)
            mine.state = step.link
            mine.miss(counters.lost[0])
            self._tell(mine, row, own=counters.end.own)
        if row.session is not None and step.session is not None:
            session = (row.run, str(row.connection), row.session, peer)
            shut = None if step.session.left is None else step.session.left == 0
            if row.from_peer != peer and row.kind in ("begin", "flow"):
                window = value(row, "incoming_window")
                if window is not None:
                    says = row.event == OBSERVED or row.run in self.alarm_set
                    self.alarm_word[session] = window == 0 and peer == CLIENT and says
            now = (shut, self.alarm_word.get(session, False))
            changed = now != self.closed.get(session, (False, False))
            self.closed[session] = now
            if mine is not None:
                mine.closed, mine.alarm = now
                self._turn(mine, row, at_link=True, begins=step.begins)
            if changed:
                for link in self._of(row.run, row.connection, row.session, peer):
                    if link is not mine:
                        link.closed, link.alarm = now
                        self._turn(link, row, at_link=False)
        if row.kind in ("end", "close"):
            session_no = row.session if row.kind == "end" else None
            for link in self._of(row.run, row.connection, session_no, peer):
                self._end(link, row)

    def _tell(self, link: _Link, row: Row, *, own: bool) -> None:
        """What the row tells of messages that wait."""
        available = _available(row)
        if own and available is not None:
            link.told, link.since_none = (INTERNAL, available, link.state.begun), None
            return
        stated = value(row, "available")
        if row.kind == "flow" and row.from_peer == link.key.link_sender and stated is not None:
            link.told = STATED, stated, link.state.begun
            link.since_none = row.seq if stated == 0 else None

    def _link(self, key: LinkKey) -> _Link:
        """The link; at its first row it takes the window of its session as it is."""
        link = self.links.get(key)
        if link is None:
            link = self.links[key] = _Link(key=key, state=LinkState(key=key))
            sessions = self.open.setdefault((key.run, key.connection), {})
            sessions.setdefault(key.session, {})[key] = link
            session = (key.run, key.connection, int(key.session or 0), str(key.link_sender))
            link.closed, link.alarm = self.closed.get(session, (False, False))
        return link

    def _of(
        self,
        run: str,
        connection: str | None,
        session: int | None = None,
        peer: str | None = None,
    ) -> list[_Link]:
        sessions = self.open.get((run, connection), {})
        these = sessions.values() if session is None else [sessions.get(session, {})]
        return [
            link for its in these for link in its.values() if peer in (None, link.key.link_sender)
        ]

    # -- turns ----------------------------------------------------------------------------------

    def _turn(self, link: _Link, row: Row, *, at_link: bool, begins: bool = False) -> None:
        """How the link stands after the row, and what that begins or ends."""
        if link.over:
            return
        if at_link and row.kind == "detach":
            self._end(link, row, link.waiting)
            return
        if at_link and row.kind == "transfer":
            self._follow(link, row, link.state.begun - begins)
        link.unblocked = link.unblocked and link.out_of_credit
        brake, knows = link.brake(), link.knows()
        none = link.since_none if knows == UNKNOWN else None
        last = link.hold[-1] if link.hold else None
        told = link.waiting if at_link else 0
        if last is not None:
            last.waiting = max(last.waiting, told)
            if (last.brake, last.knows, last.since_none) == (brake, knows, none):
                return
            # What is not known any more, for octets are missing, was not released by this row.
            released = brake is not None or link.is_off(last.brake)
            last.end_us, last.release = row.t_us, row.frame_id if released else None
        if brake is None:
            if last is not None:
                self._known(link)
                if released:
                    link.release = _Release(
                        intervals=link.hold, t_us=row.t_us, begun=link.state.begun,
                        in_message=link.in_message,
                    )  # fmt: skip
                link.hold = []
            return
        self._burst_over(link, link.state.begun)
        link.hold.append(
            _Interval(row=row, brake=brake, knows=knows, since_none=none, waiting=told)
        )

    def _follow(self, link: _Link, row: Row, begun: int) -> None:
        """A transfer after a release: the proof, one more of the burst, or beyond its end."""
        release = link.release
        if release is None:
            return
        last_us = release.t_us if release.last_us is None else release.last_us
        if row.t_us - last_us > self.prompt_us:
            self._burst_over(link, begun)
        else:
            release.last_us = row.t_us

    def _burst_over(self, link: _Link, begun: int) -> None:
        """No more of the burst comes: the doubtful parts of the hold before it are told."""
        release, link.release = link.release, None
        if release is None or release.last_us is None:
            return
        waiting = begun - release.begun + release.in_message
        doubtful: list[_Interval] = []
        for interval in release.intervals:
            if interval.knows != UNKNOWN or interval.since_none == interval.row.seq:
                doubtful = []  # what waited at the end may have come since
            if interval.knows == UNKNOWN and interval.brake != "tcp":
                doubtful.append(interval)
        for interval in doubtful:
            self._add(link, interval, waiting)

    def _known(self, link: _Link) -> None:
        for interval in link.hold:
            if interval.knows in (INTERNAL, STATED):
                self._add(link, interval, interval.waiting)

    def _end(self, link: _Link, row: Row, waiting: int = 0) -> None:
        """The link is over: nothing holds it any more, and nothing has released it."""
        if not link.over:
            if link.hold:
                link.hold[-1].waiting = max(link.hold[-1].waiting, waiting)
            self._finish(link, row.t_us)
            link.over = True
            sessions = self.open[link.key.run, link.key.connection]
            del sessions[link.key.session][link.key]
            if not sessions[link.key.session]:
                del sessions[link.key.session]

    def _finish(self, link: _Link, t_us: int) -> None:
        if link.hold and not link.over:
            link.hold[-1].end_us, link.hold[-1].release = t_us, None
            self._known(link)
            link.hold = []
        self._burst_over(link, link.state.begun)

    def _add(self, link: _Link, interval: _Interval, waiting: int) -> None:
        assert interval.end_us is not None
        self.found.append(
            Stall(
                *link.key, interval.row.seq, interval.row.frame_id, SENDER, interval.brake,
                interval.row.t_us, interval.end_us, max(1, waiting), interval.release,
                interval.knows,
            )
        )  # fmt: skip


PARTS = (
    StallFold, Stall, _Interval, _Link, _Release, Channels, Fullness, Starved, Tally, Told,
)  # fmt: skip
"""Of what a fold consists; see `kept`."""


def _available(row: Row) -> int | None:
    """How many messages wait, where a counter of the end itself tells it."""
    return (row.ledger or {}).get("available") if row.ledger_source == OWN else None


def _limit(row: Row) -> int | None:
    """The limit of a link in the ledger of its receiver."""
    ledger = row.ledger or {}
    count, credit = ledger.get("delivery_count"), ledger.get("link_credit")
    return None if count is None or credit is None else serial.steps(count, -credit)


def stalls(rows: Iterable[Row], min_us: int = 0, prompt_us: int = PROMPT_US) -> list[Stall]:
    """When a sender had something to send and a brake was on, in order of run and row.

    Args:
        rows: a whole trace in order; its runs may follow each other.
        min_us: leave shorter ones out.
        prompt_us: how soon after the brake a transfer must follow to prove that it had waited.
    """
    return [
        stall for stall, _ in with_ends(rows, prompt_us) if stall.end_us - stall.start_us >= min_us
    ]


def with_ends(rows: Iterable[Row], prompt_us: int = PROMPT_US) -> list[tuple[Stall, bool]]:
    """Each stall, and whether nothing had ended it when the rows ended; see `stalls`."""
    rows, fold = list(rows), StallFold(prompt_us)
    views: dict[tuple[str, int], list[Counters | Channels]] = {}
    for end in ends(rows, *FRAME_PROTOCOLS):
        counted = fold.counted(end, end.rows[0].protocol)
        for row in (*end.rows, *end.lost):
            views.setdefault((row.run, row.seq), []).append(counted)
    for row in rows:
        fold.take(row, views.get((row.run, row.seq), ()))
    over = len(fold.found)
    fold.finish()
    found = [
        (stall, place >= over and unended(stall, fold.last_us[stall.run]))
        for place, stall in enumerate(fold.found)
    ]
    return sorted(found, key=lambda its: (its[0].run, its[0].seq, str(its[0][:6])))


def unended(stall: Stall, last_us: int) -> bool:
    """Whether one that only the rows' end gives was still on; the others had waited for proof."""
    return stall.release_frame_id is None and (stall.link is None or stall.end_us == last_us)
