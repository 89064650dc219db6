"""What Python works out for each row: changes, formula with live numbers, clause, sentence.

The stage shows this and knows no rule of its own. Everything comes from the rows, or from the
state just before the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import clauses, formulas
from .fold import Change, Fold, State, link_scope
from .formulas import Formula
from .schema import OBSERVED, RECEIVED, SENT, Row, peer_of
from .sentences import sentence
from .story import FlowWord, Memory, Moment, Story

# Why a step is worth stopping at; the most telling first.
ACTION = "action"
ERROR = "error"
HOLD = "hold"
RELEASE = "release"
ALARM = "alarm"
ELECTED = "leader elected"
QUEUE_FLOW = "queue stops or frees its senders"
DRAIN = "drain"
CREDIT_ZERO = "credit reaches 0"
GRANT = "grant arrives"
OTHER_RULE = "not by the rule"
DISAGREE = "counters disagree"
AGREE = "counters agree again"
REASONS: tuple[str, ...] = (
    ACTION,
    ERROR,
    HOLD,
    RELEASE,
    ALARM,
    ELECTED,
    QUEUE_FLOW,
    OTHER_RULE,
    DRAIN,
    CREDIT_ZERO,
    GRANT,
    DISAGREE,
    AGREE,
)
_BY_EVENT = {
    **{event: event for event in (ACTION, ERROR, HOLD, RELEASE)},
    "gap": ERROR, "drained": DRAIN, "alarm-set": ALARM, "alarm-clear": ALARM, "elect": ELECTED,
}  # fmt: skip
"""What is a reason wherever it stands, by the row's event."""
_LINK = ("delivery_count", "link_credit")
_CREDIT_RULES = (formulas.LINK_CREDIT, formulas.LINK_CREDIT_INITIAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One step, explained.

    Attributes:
        seq: the row's.
        changes: counters that moved: vantage, scope, field, before, after.
        formulas: the rules that made them move, with this step's numbers; the most telling first.
        clause: the clause, such as `2.6.7`; None for what no clause explains.
        clause_title: its title, if it is one of the specification.
        sentence: what happened and who knows it, in words.
        reasons: why this step is worth stopping at, the most telling first; see `REASONS`.
    """

    seq: int
    changes: tuple[Change, ...]
    formulas: tuple[Formula, ...]
    clause: str | None
    clause_title: str | None
    sentence: str
    reasons: tuple[str, ...]

    @property
    def formula(self) -> str | None:
        """The first formula with its numbers: `20 + 6 − 21 = 5`."""
        return self.formulas[0].numbers if self.formulas else None


def explain(rows: Iterable[Row], start: State | None = None) -> Iterator[Explanation]:
    """Explain the rows of one run, one by one.

    Args:
        rows: in order of `seq`, without gaps.
        start: as of `Explainer`.
    """
    explainer = Explainer(start)
    for row in rows:
        yield explainer.explain(row)


class Explainer:
    """Explains row after row; for a run that is still going on.

    Args:
        start: the state just before the first row; None if that is the first of the run.
        memory: what the words of later rows need to know of the rows before; none if None.
    """

    def __init__(self, start: State | None = None, memory: Memory | None = None) -> None:
        self._story = Story(Fold(start), memory or Memory())
        self._differs = self._story.differing()

    def explain(self, row: Row) -> Explanation:
        """The explanation of the next row."""
        moment = self._story.tell(row)
        clause = row.clause or (clauses.clause_of(row) if row.is_frame else None)
        rules = tuple(filter(None, _formulas(moment)))
        return Explanation(
            seq=row.seq,
            changes=moment.changes,
            formulas=rules,
            clause=clause,
            clause_title=clauses.title(clause),
            sentence=sentence(moment),
            reasons=self._reasons(moment, rules),
        )

    def state(self) -> State:
        """The state after the rows so far."""
        return self._story.folding.state()

    def _reasons(self, moment: Moment, rules: tuple[Formula, ...]) -> tuple[str, ...]:
        row = moment.row
        found = {_BY_EVENT[row.event]} if row.event in _BY_EVENT else set()
        if any(rule.agrees is False and rule.symbolic in _CREDIT_RULES for rule in rules):
            found.add(OTHER_RULE)
        if row.event in ("block", "unblock") and row.kind == "queue-flow":
            found.add(QUEUE_FLOW)
        if row.is_death or (row.is_frame and "error" in row.extra):
            found.add(ERROR)
        if moment.flow in (FlowWord.DRAIN_REQUEST, FlowWord.DRAIN_ANSWER):
            found.add(DRAIN)
        if _is_sender_s(row):
            was, now = moment.before.get("link_credit"), moment.after.get("link_credit")
            if now == 0 and was:
                found.add(CREDIT_ZERO)
            # The first row of an end that came in late has no `before`; no rise can be seen.
            # The same grant again raises nothing, which is what makes it worth a look.
            more = now and (now > (was or 0) or moment.flow is FlowWord.REPEAT)
            if more and row.kind == "flow" and not moment.from_sender:
                found.add(GRANT)
        found |= self._agreement(moment)
        return tuple(reason for reason in REASONS if reason in found)

    def _agreement(self, moment: Moment) -> set[str]:
        link, agree = link_scope(moment.row), moment.agree()
        if link is None or agree is None:
            return set()
        differed = self._differs.get(link, False)
        self._differs[link] = not agree
        if agree and differed:
            return {AGREE}
        return {DISAGREE} if not agree and not differed else set()


def _is_sender_s(row: Row) -> bool:
    """Whether the row's link counters are those of the link's sender."""
    if row.event == OBSERVED:
        return True
    return None not in (row.link, row.link_sender) and peer_of(row.vantage) == row.link_sender


# -- formulas -------------------------------------------------------------------------------------


def _formulas(moment: Moment) -> Iterator[Formula | None]:
    """The rules that a frame follows; None in the place of one of which numbers are missing."""
    row = moment.row
    if row.is_frame and row.kind == "flow":
        if moment.flow is not FlowWord.SESSION:
            yield _link_flow(moment)
        yield _session_flow(moment)
    elif row.is_frame and row.kind == "transfer":
        yield from _transfer(moment)


def _numbers(told: Mapping[str, Any], *names: str) -> tuple[int | None, ...]:
    """Counters, or fields of a frame; None for what is not told, or is no number."""
    values = (told.get(name) for name in names)
    return tuple(
        value if isinstance(value, int) and not isinstance(value, bool) else None
        for value in values
    )


def _link_flow(moment: Moment) -> Formula | None:
    row = moment.row
    stated, credit = _numbers(moment.frame, *_LINK)
    counted, had = _numbers(moment.before, *_LINK)
    count, left = _numbers(moment.after, *_LINK)
    if moment.from_sender:
        if row.event == RECEIVED:
            if counted is None or had is None or stated is None:
                return None
            return formulas.count_heard(counted, had, stated, left)
        if moment.flow is FlowWord.DRAIN_ANSWER and counted is not None and had is not None:
            return formulas.drained(counted, had, count, left)
        return None
    if credit is None:
        return None
    if row.event == SENT:
        return formulas.delivery_limit(stated, credit) if stated is not None else None
    base = moment.initial if stated is None else stated
    own = counted if counted is not None else count
    if base is None or own is None:
        return None
    if moment.aside:  # its counters are not those of this flow yet
        left = None
    return formulas.link_credit(base, credit, own, left, initial=stated is None)


def _session_flow(moment: Moment) -> Formula | None:
    """The window that a flow opens for the end whose session counters the row has."""
    row, frame = moment.row, moment.frame
    if row.event == SENT or (row.event == OBSERVED and row.link is not None and moment.from_sender):
        return None
    stated, window = _numbers(frame, "next_incoming_id", "incoming_window")
    base = moment.initial_outgoing_id if stated is None else stated
    (own,) = _numbers(moment.session_before, "next_outgoing_id")
    following, logged = _numbers(moment.session_after, "next_outgoing_id", "remote_incoming_window")
    if own is None:
        own = following
    if window is None or base is None or own is None:
        return None
    return formulas.session_window(base, window, own, logged, initial=stated is None)


def _transfer(moment: Moment) -> Iterator[Formula | None]:
    if moment.first is not False and not moment.frame.get("aborted"):
        yield formulas.transfer(*_numbers(moment.before, *_LINK), *_numbers(moment.after, *_LINK))
    incoming = moment.row.event == RECEIVED
    names = ("next_incoming_id",) if incoming else ("next_outgoing_id", "remote_incoming_window")
    tell: Callable[..., Formula | None] = (
        formulas.transfer_in if incoming else formulas.transfer_out
    )
    yield tell(*_numbers(moment.session_before, *names), *_numbers(moment.session_after, *names))
