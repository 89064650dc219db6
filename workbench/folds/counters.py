"""What a sender may send, at each of its rows: credit, window, and the counters they come from.

From the fields on the wire alone; the ledgers in the trace are not looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from workbench import serial
from workbench.trace.schema import RECEIVED, Row, other_peer

from .vantage import End, LinkKey, attaches, link_key, lost_by, told_by_importer, value

_Session = int | None
NOTHING = 0, 0
"""Missing, of either peer."""


class Limit:
    """Up to where a sender may count: what its peer said, and where the sender stands.

    Inside, numbers do not wrap: `_at` and `upper` are places on a straight line, so that a grant
    of nearly 2^32 is one like any other.

    Attributes:
        started: the number with which the sender began; None if that was not seen.
        count: the sender's own, N or D; None if it is not known.
        spoken: whether the peer has said anything.
        upper: the limit by its latest word, on the straight line.
    """

    def __init__(self) -> None:
        self.started: int | None = None
        self.count: int | None = None
        self.spoken = False
        self._mark: tuple[int, int] | None = None  # a number, and its place
        self._at: int | None = None
        self.upper: int | None = None
        self._furthest: int | None = None
        self._more = 0  # by how many the peer's latest word goes beyond its base
        self._early: int | None = None  # a grant that counts from a start not seen yet
        self._claim: int | None = None  # the limit by the sender's own word
        self._huge: tuple[int, int, int] | None = None  # a grant of half a circle: number, place
        self._lost = NOTHING  # before its latest row
        self._lapsed = False  # of the peer something is missing since it last allowed anything

    def begin(self, number: int | None) -> None:
        """The sender tells with what it begins."""
        self.started = self.count = number
        self._at = None if number is None else self._place(number)
        if self._early is not None and number is not None:
            self._grant(number, self._early)

    def state(self, number: int) -> None:
        """The sender tells where it stands: ahead, as far as it was allowed, or else nearest."""
        if self.count is not None and self._at is not None:
            forward = serial.steps(number, self.count)
            if forward <= (self.left or 0):
                self._mark = number, self._at + forward
        self.count, self._at = number, self._place(number)

    def forget(self) -> None:
        """Frames of the sender are missing: nobody knows where it stands until it tells."""
        self.count = self._at = None

    def miss(self, lost: tuple[int, int]) -> bool:
        """So often octets were missing by now, of the sender and of its peer.

        Returns:
            Some are since the last row, of the peer: what it has allowed since then is not known.
        """
        (said, heard), self._lost = self._lost, lost
        if lost[0] > said:
            self.forget()
        if lost[1] > heard:
            self._lapsed = True
        if lost != (said, heard):
            self._claim = None
        return lost[1] > heard

    def allow(self, base: int | None, more: int) -> bool:
        """The peer allows so many beyond `base`, or the start; tells if that raises the limit."""
        first, self.spoken, self._lapsed, self._more = not self.spoken, True, False, more
        before, early = self.upper, self._early
        if base is None:
            base = self.started
        if base is None:
            self._early, self.upper = more, None
            return more > (early or 0)
        self._grant(base, more)
        assert self.upper is not None
        return more > 0 if first or before is None else self.upper > before

    def claim(self, more: int) -> None:
        """The sender tells what it has left: the best word where what was allowed is not known."""
        self._claim = None if self._at is None else self._at + more

    def step(self) -> None:
        """The sender sends one."""
        if self.count is not None and self._at is not None:
            self.count, self._at = serial.add(self.count, 1), self._at + 1
            self._mark = self.count, self._at

    @property
    def left(self) -> int | None:
        """How many more; None if that is not known.

        A limit of 0 is 0 whatever the count is, and what was allowed before the sender has begun is
        what it will begin with.
        """
        told = self.spoken and not self._lapsed
        upper = self.upper if told else self._claim
        if self._at is None or upper is None:
            begins_with = self._early is not None and self.started is None and not self._lost[0]
            return self._more if told and (self._more == 0 or begins_with) else None
        return min(max(0, _room(self._at, upper)), serial.MAX)

    @property
    def upper_number(self) -> int | None:
        """The limit as a serial number; None if it is not known."""
        return None if self.upper is None else serial.steps(self.upper, 0)

    @property
    def over(self) -> int | None:
        """How many beyond the limit the next one would be, 1 or more; None if it is allowed.

        None, too, if that is not known.
        """
        return None if self._lapsed else _beyond(self._at, self.upper)

    @property
    def over_furthest(self) -> int | None:
        """The same for the furthest limit there ever was; None, too, if the start was not seen."""
        return None if self.started is None else _beyond(self._at, self._furthest)

    def ahead(self, number: int) -> int | None:
        """How far a number is ahead of the count; None if the count is not known."""
        return None if self.count is None else serial.signed(number, self.count)

    def _grant(self, base: int, more: int) -> None:
        self._early = None
        place = self._place(base)
        self._huge = (base, place, more) if more >= serial.HALF else None
        self.upper = place + more
        self._furthest = max(self.upper, self.upper if self._furthest is None else self._furthest)

    def _place(self, number: int) -> int:
        """The place of a number: within a grant of half a circle, else nearest to the last."""
        if self._mark is None:
            self._mark = number, number
        if self._huge is not None and serial.steps(number, self._huge[0]) <= self._huge[2]:
            place = self._huge[1] + serial.steps(number, self._huge[0])
        else:
            known, place = self._mark
            place += serial.signed(number, known)
        self._mark = number, place
        return place


def _room(at: int, upper: int) -> int:
    """How many more; numbers a whole circle apart are the same number."""
    room = upper - at
    return room - serial.MODULUS if room > serial.MAX else room


def _beyond(at: int | None, upper: int | None) -> int | None:
    room = None if at is None or upper is None else _room(at, upper)
    return None if room is None or room > 0 else 1 - room


@dataclass(slots=True, kw_only=True)
class LinkState:
    """A link on which the end sends."""

    key: LinkKey
    limit: Limit = field(default_factory=Limit)
    attached: bool = False
    in_message: bool | None = None  # None: not known
    begun: int = 0  # messages in the trace

    @property
    def credit(self) -> int | None:
        """Credit of the link; 0 until a flow came, if the attach was seen."""
        if self.attached and not self.limit.spoken:
            return 0
        return self.limit.left

    def count(self, row: Row, *, lost: bool) -> None:
        """Take in a transfer: a message counts once, at its first one [2.6.7].

        Args:
            row: of the transfer.
            lost: octets of the sender are missing before it.
        """
        if told_by_importer(row, lost=lost):
            number = (row.ledger or {}).get("delivery_count")
            if number is None:
                self.limit.forget()
            else:
                self.limit.state(number)
        elif self.in_message is None:  # the first there is may be of a message that began before
            self.limit.forget()
        elif not self.in_message:
            self.limit.step()
        self.begun += not self.in_message
        self.in_message = row.goes_on


@dataclass(slots=True, kw_only=True)
class Step:
    """One of the sender's rows, and how things stand right after it.

    Attributes:
        row: the row.
        link: the link on which the end sends that the row concerns, or None.
        session: the limit of the session in the end's direction, or None.
        grants: the row raises the link's limit.
        opens: the row raises the window's upper end.
        begins, ends: the row's transfer begins, or ends, a message.
        credit_before: of a flow that is heard, the link's credit before it.
        over, window_over: of the end's transfer, by how many it is beyond the link's limit, or the
            window; None if it was allowed, or nobody knows.
        over_furthest, window_over_furthest: the same for the furthest there ever was.
        id_ahead: of a flow that is heard, how far its next-incoming-id was ahead of N.
    """

    row: Row
    link: LinkState | None = None
    session: Limit | None = None
    grants: bool = False
    opens: bool = False
    begins: bool = False
    ends: bool = False
    credit_before: int | None = None
    over: int | None = None
    over_furthest: int | None = None
    window_over: int | None = None
    window_over_furthest: int | None = None
    id_ahead: int | None = None


class Counters:
    """The counters of one end as a sender, row by row.

    Args:
        end: whose rows these are.
    """

    def __init__(self, end: End) -> None:
        self.end = end
        self.sessions: dict[_Session, Limit] = {}
        self.links: dict[LinkKey, LinkState] = {}
        self.lost = NOTHING

    def steps(self) -> Iterator[Step]:
        """Every row of the end with what it does; `sessions` and `links` are as after it."""
        gaps = deque(self.end.lost)
        for row in self.end.rows:
            while gaps and gaps[0].seq < row.seq:
                self.lose(gaps.popleft())
            yield self.step(row)

    def lose(self, row: Row) -> None:
        """Octets are missing here; each session and link minds that at its own next row."""
        said, heard = self.lost
        peer = lost_by(row)
        self.lost = said + (peer == self.end.peer), heard + (peer == other_peer(self.end.peer))

    def step(self, row: Row) -> Step:
        """The next of the end's rows, with what it does."""
        session = link = None
        if row.session is not None:
            session = self.sessions.get(row.session)
            if session is None:
                session = self.sessions[row.session] = Limit()
        key = link_key(row) if row.link_sender == self.end.peer else None
        if key is not None:
            link = self.links.get(key)
            if link is None:
                link = self.links[key] = LinkState(key=key)
            if link.limit.miss(self.lost):
                link.attached = False
        if session is not None:
            session.miss(self.lost)
        step = Step(row=row, link=link, session=session)
        if row.from_peer == self.end.peer:
            self._said(step)
        else:
            self._heard(step)
        return step

    def _said(self, step: Step) -> None:
        row, link, session = step.row, step.link, step.session
        match row.kind:
            case "begin" if session is not None:
                session.begin(value(row, "next_outgoing_id"))
            case "attach" if link is not None:
                link.attached |= attaches(row)
                link.limit.begin(value(row, "initial_delivery_count"))
                link.in_message = False
            case "flow":
                number = value(row, "next_outgoing_id")
                if session is not None and number is not None:
                    session.state(number)
                number = value(row, "delivery_count")
                if link is not None and number is not None:
                    link.limit.state(number)
                    credit = value(row, "link_credit")
                    # The receiver, whose row it may be, knows of what it has granted since.
                    if credit is not None and row.event != RECEIVED:
                        link.limit.claim(credit)
            case "transfer" if session is not None:
                step.window_over = session.over
                if step.window_over is not None:
                    step.window_over_furthest = session.over_furthest
                session.step()
                if link is None:
                    return
                step.over = link.limit.over
                if step.over is not None:
                    step.over_furthest = link.limit.over_furthest
                step.begins = not link.in_message
                step.ends = not row.goes_on
                link.count(row, lost=self.lost[0] > 0)

    def _heard(self, step: Step) -> None:
        row, link, session = step.row, step.link, step.session
        if session is not None and row.kind in ("begin", "flow"):
            told, window = value(row, "next_incoming_id"), value(row, "incoming_window")
            if row.kind == "flow" and told is not None:
                step.id_ahead = session.ahead(told)
            if window is not None:
                step.opens = session.allow(told, window)
        if link is not None and row.kind == "attach":
            link.attached |= attaches(row)
        if link is not None and row.kind == "flow":
            credit = value(row, "link_credit")
            if credit is not None:
                step.credit_before = link.credit
                step.grants = link.limit.allow(value(row, "delivery_count"), credit)
