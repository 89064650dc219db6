"""What a sender may send, at each of its rows: credit, window, and the counters they come from.

From the fields on the wire alone; the ledgers in the trace are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from workbench import serial
from workbench.trace.schema import Row

from .vantage import End, LinkKey, is_set, link_key, value

_Session = int | None


@dataclass(slots=True, kw_only=True)
class Limit:
    """Up to where a sender may count: what its peer said, and where the sender stands.

    Attributes:
        started: the number with which the sender began; None if that was not seen.
        count: the sender's own, N or D; None if it is not known.
        upper: the limit by the peer's latest word.
        furthest: the furthest limit there ever was.
        spoken: whether the peer has said anything.
    """

    started: int | None = None
    count: int | None = None
    upper: int | None = None
    furthest: int | None = None
    spoken: bool = False
    _from_start: int | None = None  # a limit that counts from `started`, which is not known yet

    def begin(self, number: int | None) -> None:
        """The sender tells with what it begins."""
        self.started = self.count = number
        if self._from_start is not None and number is not None:
            self.allow(None, self._from_start)

    def allow(self, base: int | None, more: int) -> bool:
        """The peer allows so many beyond `base`, or the start; tells if that raises the limit."""
        first, self.spoken = not self.spoken, True
        if base is None:
            base = self.started
        if base is None:
            raised = more > (self._from_start or 0)
            self._from_start = more
            return raised
        self._from_start = None
        before, self.upper = self.upper, serial.add(base, more)
        if self.furthest is None or serial.diff(self.upper, self.furthest) > 0:
            self.furthest = self.upper
        return more > 0 if first or before is None else serial.diff(self.upper, before) > 0

    def step(self) -> None:
        """The sender sends one."""
        if self.count is not None:
            self.count = serial.add(self.count, 1)

    @property
    def left(self) -> int | None:
        """How many more; None if that is not known."""
        if self.count is None or self.upper is None:
            return None
        return max(0, serial.diff(self.upper, self.count))


@dataclass(slots=True, kw_only=True)
class LinkState:
    """A link on which the end sends."""

    key: LinkKey
    limit: Limit = field(default_factory=Limit)
    attached: bool = False
    in_message: bool = False

    @property
    def credit(self) -> int | None:
        """Credit of the link; 0 until a flow came, if the attach was seen."""
        if self.attached and not self.limit.spoken:
            return 0
        return self.limit.left


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
        credit_before, window_before: as they were before the row.
        stood, window_stood: D and N just before the row.
        allowed, window_allowed: the limit and the window's upper end then.
        furthest, window_furthest: the furthest that they had been.
    """

    row: Row
    link: LinkState | None = None
    session: Limit | None = None
    grants: bool = False
    opens: bool = False
    begins: bool = False
    ends: bool = False
    credit_before: int | None = None
    window_before: int | None = None
    stood: int | None = None
    allowed: int | None = None
    furthest: int | None = None
    window_stood: int | None = None
    window_allowed: int | None = None
    window_furthest: int | None = None


class Counters:
    """The counters of one end as a sender, row by row.

    Args:
        end: whose rows these are.
    """

    def __init__(self, end: End) -> None:
        self.end = end
        self.sessions: dict[_Session, Limit] = {}
        self.links: dict[LinkKey, LinkState] = {}

    def steps(self) -> Iterator[Step]:
        """Every row of the end with what it does; `sessions` and `links` are as after it."""
        for row in self.end.rows:
            yield self._step(row)

    def _step(self, row: Row) -> Step:
        session = None
        if row.session is not None:
            session = self.sessions.setdefault(row.session, Limit())
        key = link_key(row)
        link = None
        if key is not None and key.link_sender == self.end.peer:
            link = self.links.setdefault(key, LinkState(key=key))
        step = Step(row=row, link=link, session=session)
        if link is not None:
            step.credit_before = link.credit
            limit = link.limit
            step.stood, step.allowed, step.furthest = limit.count, limit.upper, limit.furthest
        if session is not None:
            step.window_before = session.left
            step.window_stood, step.window_allowed = session.count, session.upper
            step.window_furthest = session.furthest
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
                link.attached = True
                link.limit.begin(value(row, "initial_delivery_count"))
            case "flow":
                number = value(row, "next_outgoing_id")
                if session is not None and number is not None:
                    session.count = number
                number = value(row, "delivery_count")
                if link is not None and number is not None:
                    link.limit.count = number
            case "transfer" if link is not None and session is not None:
                session.step()
                step.begins = not link.in_message
                step.ends = not is_set(row, "more") or is_set(row, "aborted")
                link.in_message = not step.ends
                if step.begins:
                    link.limit.step()

    def _heard(self, step: Step) -> None:
        row, link, session = step.row, step.link, step.session
        window = value(row, "incoming_window")
        if session is not None and window is not None and row.kind in ("begin", "flow"):
            step.opens = session.allow(value(row, "next_incoming_id"), window)
        if link is None:
            return
        if row.kind == "attach":
            link.attached = True
        credit = value(row, "link_credit")
        if row.kind == "flow" and credit is not None:
            step.grants = link.limit.allow(value(row, "delivery_count"), credit)
