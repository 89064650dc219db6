"""What has to be remembered from earlier rows to tell one row in words.

A row says what happened and what its end then knew. Whether a flow raises or lowers the credit,
answers an echo or gives credit back, shows only against what came before: the counters before the
row, and the few facts kept here. No rule of the protocol is applied to them; a fact that the rows
did not tell (a slice begun in the middle) is simply not there, and the sentence does without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .fold import Change, Fold, Scope, Value, link_scope, observed_end, session_scope
from .schema import BROKER, CLIENT, OBSERVED, RECEIVED, SENT, Row, other_peer, peer_of

Counters = Mapping[str, Value]


class FlowWord(Enum):
    """What a flow means for its link; the values are keys of what is said of it."""

    GRANT = "grant"
    RAISE = "raise"
    REPEAT = "repeat"
    LOWER = "lower"
    STOP = "stop"
    DRAIN_REQUEST = "drain-request"
    DRAIN_ANSWER = "drain-answer"
    ECHO_ANSWER = "echo-answer"
    STATE = "state"
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One row with what surrounds it.

    Attributes:
        row: the row.
        frame: its fields as on the wire.
        before: link counters of the end that logged it, before the row; empty if not known.
        after: the same, after it.
        session_before: session counters of that end, before the row.
        session_after: the same, after it.
        other: link counters of the opposite end now, or None if no such end logs.
        messages_flying: transfer frames of this link in flight after the row.
        flow: what a flow means; None for other frames.
        first: for a transfer, whether it begins a message; None if that cannot be told.
        answer: the frame answers one of the same kind from the other peer.
        closed: it tells that the connection is over, which both peers have closed.
        initial: delivery-count the link began with, if its attach was seen.
        initial_outgoing_id: next-outgoing-id that the logging end's session began with.
        changes: counters that the row moved.
        many_links: more than one link has been seen, so links have to be named.
        queued: the reading end's session asks its queues, and hears their answers, one by one.
    """

    row: Row
    frame: Mapping[str, Any]
    before: Counters
    after: Counters
    session_before: Counters
    session_after: Counters
    other: Counters | None
    messages_flying: int
    flow: FlowWord | None
    first: bool | None
    answer: bool
    closed: bool
    initial: int | None
    initial_outgoing_id: int | None
    changes: tuple[Change, ...]
    many_links: bool
    queued: bool

    @property
    def from_sender(self) -> bool:
        """Whether the link's sender sent this frame."""
        return self.row.from_peer == self.row.link_sender

    @property
    def aside(self) -> bool:
        """Whether such a session keeps this flow for later: it has moved none of its counters."""
        return self.queued and not self._moved()

    def _moved(self) -> bool:
        return any(self.before.get(name) != self.after.get(name) for name in _COMPARED)

    def agree(self) -> bool | None:
        """Whether both ends have the same delivery-count and link-credit; None if not known."""
        return agree(self.after, self.other)

    def agree_now(self) -> bool:
        """Whether this row brought both ends to the same numbers."""
        return self._moved() and self.agree() is True


CLOSING_KINDS = ("close", "connection.close", "connection.close-ok")
CONTROL_KINDS = ("open", "begin", "end", "attach", "detach", "protocol-header", *CLOSING_KINDS)


@dataclass(slots=True, kw_only=True)
class Memory:
    """What the words about later rows need to know of earlier ones, beside the counters.

    Attributes:
        opened: frames that opened or ended something, by kind, connection, what, and who sent them.
        initial: delivery-count with which each link began.
        initial_out: next-outgoing-id with which each end of a session began.
        more: whether the last transfer of a link, as an end saw it, leaves its message open.
        echo: who owes an answer to an echo, and about what.
        links: links seen, and the ends that logged rows of them.
    """

    opened: set[tuple[Any, ...]] = field(default_factory=set)
    initial: dict[Scope, int] = field(default_factory=dict)
    initial_out: dict[tuple[Scope | None, str | None], int] = field(default_factory=dict)
    more: dict[tuple[str, str | None, Scope | None], bool] = field(default_factory=dict)
    echo: set[tuple[str | None, Scope | None]] = field(default_factory=set)
    links: dict[Scope, list[str]] = field(default_factory=dict)


# A difference in `available` is no disagreement: the receiver hears of it only now and then.
_COMPARED = ("delivery_count", "link_credit")


def agree(one: Counters, other: Counters | None) -> bool | None:
    """Whether two ends' counters of a link agree; None if either end's are not known."""
    if other is None:
        return None
    pairs = [(one.get(name), other.get(name)) for name in _COMPARED]
    if any(value is None for pair in pairs for value in pair):
        return None
    return all(left == right for left, right in pairs)


@dataclass(slots=True)
class Story:
    """Walks over rows and makes the `Moment` of each.

    Attributes:
        folding: the state just before the first row.
        memory: what is remembered of the rows before; it goes on with those that are told.
    """

    folding: Fold
    memory: Memory = field(default_factory=Memory)
    _words: dict[int, FlowWord] = field(default_factory=dict)
    _answers: set[int] = field(default_factory=set)
    _flying: Counter[tuple[Scope | None, str | None]] = field(default_factory=Counter)
    _telling: set[str] = field(default_factory=set)  # vantages that have told counters

    def __post_init__(self) -> None:
        for vantage, about in self.folding.ledgers:
            self._telling.add(vantage)
            self._meet(vantage, about)
        for flying in self.folding.in_flight.values():
            self._flying[flying.link, flying.kind] += 1

    def tell(self, row: Row) -> Moment:
        """Take in one row; rows come in order of `seq`."""
        link, end = link_scope(row), session_scope(row)
        session = end and end._replace(link_sender=None)  # of both ends, also in a capture
        if link is not None:
            self._meet(row.vantage, link)
        ledgers = self.folding.ledgers
        before = dict(ledgers.get((row.vantage, link), {})) if link else {}
        session_before = dict(ledgers.get((row.vantage, end), {})) if end else {}
        self._fly(row, link)
        changes = tuple(self.folding.apply(row))
        if row.ledger or row.unknown:
            self._telling.add(row.vantage)
        after = ledgers.get((row.vantage, link), {}) if link else {}
        frame = row.fields
        new = row.event in (SENT, OBSERVED)  # the first time that this frame is seen
        answer = self._answer(row, link, session, new)
        word = self._word(row, before, after, answer, new) if row.kind == "flow" else None
        if row.event in (RECEIVED, OBSERVED) and frame.get("echo") and row.kind == "flow":
            asked = link if "handle" in frame else session
            self.memory.echo.add((_reader(row), asked))
        self._remember(row, link, session)
        return Moment(
            row=row,
            frame=frame,
            before=before,
            after=after,
            session_before=session_before,
            session_after=ledgers.get((row.vantage, end), {}) if end else {},
            other=self._other(row, link),
            messages_flying=self._flying[link, "transfer"],
            flow=word,
            first=self._first(row, link, before, after) if row.kind == "transfer" else None,
            answer=answer,
            closed=row.event == "disconnect" and self._closed(row.connection),
            initial=self.memory.initial.get(link) if link else None,
            initial_outgoing_id=self.memory.initial_out.get((session, _own_peer(row))),
            changes=changes,
            many_links=len(self.memory.links) > 1,
            queued=row.kind == "flow" and row.event == RECEIVED and self._queued(row),
        )

    def differing(self) -> dict[Scope, bool]:
        """For each link with counters of both ends: whether they differ now."""
        found = {}
        for link, ends in self.memory.links.items():
            if len(ends) == 2:
                one, other = (self.folding.ledgers.get((end, link), {}) for end in ends)
                alike = agree(one, other)
                if alike is not None:
                    found[link] = not alike
        return found

    # -- what a frame is against what came before ---------------------------------------------

    def _answer(self, row: Row, link: Scope | None, session: Scope | None, new: bool) -> bool:
        """Whether the frame answers one of the same kind that the other peer sent before."""
        if row.frame_id is None:
            return False
        if not new:
            known = row.frame_id in self._answers
            self._answers.discard(row.frame_id)
            return known
        kind = row.kind
        if kind == "flow":
            asked = (row.from_peer, link if "handle" in (row.frame or {}) else session)
            answers = asked in self.memory.echo
            self.memory.echo.discard(asked)
        elif kind in CONTROL_KINDS:
            of_session = None if kind in CLOSING_KINDS else session
            about = link if kind in ("attach", "detach") else of_session
            key: tuple[Any, ...] = (kind, row.connection, about)
            if kind == "protocol-header":
                key = (*key, (row.frame or {}).get("protocol_id"))
            answers = (*key, _reader(row)) in self.memory.opened
            self.memory.opened.add((*key, row.from_peer))
            if kind == "detach":  # a link of this name may be attached and detached again
                self.memory.opened -= {("attach", row.connection, about, row.from_peer)}
            if kind == "attach":
                self.memory.opened -= {("detach", row.connection, about, row.from_peer)}
        else:
            return False
        if answers and row.event == SENT:
            self._answers.add(row.frame_id)
        return answers

    def _closed(self, connection: str | None) -> bool:
        """Whether both peers have said that the connection ends."""
        return all(
            any((kind, connection, None, peer) in self.memory.opened for kind in CLOSING_KINDS)
            for peer in (CLIENT, BROKER)
        )

    def _word(
        self, row: Row, before: Counters, after: Counters, answer: bool, new: bool
    ) -> FlowWord:
        if not new and row.frame_id is not None and row.frame_id in self._words:
            return self._words.pop(row.frame_id)
        word = _flow_word(row, before, after, answer)
        if row.event == SENT and row.frame_id is not None:
            self._words[row.frame_id] = word
        return word

    def _first(self, row: Row, link: Scope | None, before: Counters, after: Counters) -> bool:
        key = (row.vantage, row.from_peer, link)
        open_delivery = self.memory.more.get(key)
        self.memory.more[key] = row.goes_on
        if open_delivery is not None:
            return not open_delivery
        if "delivery_id" not in row.fields:
            return False
        if link in self.memory.initial:  # everything since the attach was seen
            return True
        if before.get("delivery_count") is not None and after.get("delivery_count") is not None:
            return before["delivery_count"] != after["delivery_count"]
        return True

    def _remember(self, row: Row, link: Scope | None, session: Scope | None) -> None:
        frame = row.fields
        if row.kind == "attach" and link is not None:
            initial = frame.get("initial_delivery_count")
            if initial is not None and frame.get("role") == "sender":
                self.memory.initial[link] = initial
        elif row.kind == "begin" and frame.get("next_outgoing_id") is not None:
            self.memory.initial_out[session, row.from_peer] = frame["next_outgoing_id"]

    def _meet(self, vantage: str, about: Scope) -> None:
        if about.group == "link" and about.link is not None:
            ends = self.memory.links.setdefault(about, [])
            if peer_of(vantage) is not None and vantage not in ends:
                ends.append(vantage)

    def _fly(self, row: Row, link: Scope | None) -> None:
        """Count the link's frames in flight; called before the fold takes the row."""
        if row.event == SENT:
            self._flying[link, row.kind] += 1
        elif row.event == RECEIVED and row.frame_id in self.folding.in_flight:
            flying = self.folding.in_flight[row.frame_id]
            self._flying[flying.link, flying.kind] -= 1

    def _queued(self, row: Row) -> bool:
        """Whether a broker's process for this session has told of itself."""
        process = f"session:{row.connection}/{row.session}"
        return row.vantage == BROKER and process in self._telling

    def _other(self, row: Row, link: Scope | None) -> Counters | None:
        if link is not None:
            for vantage in self.memory.links.get(link, ()):
                if vantage != row.vantage and (vantage, link) in self.folding.ledgers:
                    return self.folding.ledgers[vantage, link]
        return None


def _flow_word(row: Row, before: Counters, after: Counters, answer: bool) -> FlowWord:
    frame = row.fields
    if "handle" not in frame:
        return FlowWord.SESSION
    drain = bool(frame.get("drain"))
    if row.from_peer == row.link_sender:
        if drain and frame.get("link_credit") == 0:
            return FlowWord.DRAIN_ANSWER
        return FlowWord.ECHO_ANSWER if answer else FlowWord.STATE
    if drain:
        return FlowWord.DRAIN_REQUEST
    credit = frame.get("link_credit")
    had = before.get("link_credit")
    if row.event != SENT and after.get("link_credit") is not None:
        credit = after["link_credit"]  # elsewhere than at the receiver, `had` is the sender's
    if frame.get("link_credit") == 0 and (had or frame.get("echo")):
        return FlowWord.STOP
    if answer and credit == had:
        return FlowWord.ECHO_ANSWER
    if credit is None or credit == had:
        return FlowWord.REPEAT
    if had is None or not had:
        return FlowWord.GRANT
    return FlowWord.RAISE if credit > had else FlowWord.LOWER


def _own_peer(row: Row) -> str | None:
    """Which peer's counters the row holds."""
    if row.event == OBSERVED:
        return observed_end(row)
    return _reader(row) if row.event == RECEIVED else row.from_peer


def _reader(row: Row) -> str | None:
    """Who a frame is for."""
    return None if row.from_peer is None else other_peer(row.from_peer)
