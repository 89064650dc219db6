"""A learner's `on_flow` as a rule: called with care, stopped after a bound, faults told in words.

It runs in this process: it is the learner's own code in the learner's own kernel. The care is for
mistakes, not for malice; `watch` says what can be stopped and what cannot.
"""

from __future__ import annotations

import inspect
import linecache
import numbers
import reprlib
import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from functools import partial
from types import CodeType, TracebackType
from typing import Any, TypeGuard

from workbench.languages import phrase
from workbench.notebook import PlainError
from workbench.presets import UINT_MAX

from .watch import MAX_PRINTED, TooLongError, Watch

say = partial(phrase, "sandbox")

MAX_LINES = 20_000
MAX_SECONDS = 5.0
MAX_REMEMBERED = 200_000

__all__ = [
    "MAX_LINES",
    "MAX_PRINTED",
    "MAX_SECONDS",
    "FlowFrame",
    "GuardedRule",
    "LearnerCodeError",
    "OnFlow",
    "SenderState",
    "guarded",
]


class LearnerCodeError(PlainError):
    """What is wrong with the learner's function, in words, with the line and the call."""


@dataclass(slots=True)
class SenderState:
    """What a learner's `on_flow` gets of the sender; `link_credit` is to be set."""

    delivery_count: int
    link_credit: int

    def __str__(self) -> str:
        return f"delivery_count={self.delivery_count}, link_credit={self.link_credit}"


@dataclass(frozen=True, slots=True)
class FlowFrame:
    """What a learner's `on_flow` gets of the flow; it is the receiver's and cannot be changed."""

    delivery_count: int
    link_credit: int

    def __str__(self) -> str:
        return f"delivery_count={self.delivery_count}, link_credit={self.link_credit}"


OnFlow = Callable[[SenderState, FlowFrame], Any]


class GuardedRule:
    """A learner's function as a `CreditRule`; made by `guarded`.

    Attributes:
        on_flow: the learner's function.
    """

    def __init__(self, on_flow: OnFlow, max_lines: int, seconds: float) -> None:
        self.on_flow = on_flow
        self._watch = Watch(max_lines=max_lines, seconds=seconds)
        self._known: dict[tuple[int, int, int, int], int] = {}

    @property
    def printed(self) -> str:
        """The beginning of what it has printed."""
        return self._watch.printed

    def __call__(self, flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
        """The new link-credit.

        Raises:
            LearnerCodeError: the function fails, does not end, or gives no credit.
        """
        key = (flow_count, flow_credit, own_count, own_credit)
        known = self._known.get(key)
        if known is None:
            known = self._ask(*key)
            if len(self._known) < MAX_REMEMBERED:
                self._known[key] = known
        return known

    def _ask(self, flow_count: int, flow_credit: int, own_count: int, own_credit: int) -> int:
        state, frame = SenderState(own_count, own_credit), FlowFrame(flow_count, flow_credit)
        call = say("called", state=state, frame=frame)
        try:
            given = self._watch.call(self.on_flow, state, frame)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            where = _line_of(error.__traceback__, _code_of(self.on_flow))
            raise LearnerCodeError(f"{self._mishap(error, where)} {call}") from None
        fault = _foul(state, given, own_count)
        if fault:
            line = _line(_code_of(self.on_flow), self._watch.returned_at)
            back = [say("came-back", where=line)] if line else []
            raise LearnerCodeError(" ".join([fault, *back, call]))
        return int(state.link_credit if given is None else given)

    def _mishap(self, error: BaseException, where: str) -> str:
        """Why there is no answer."""
        watch = self._watch
        if isinstance(error, TooLongError):
            if watch.by == "lines":
                return say("no-end.lines", lines=watch.max_lines, where=where)
            return say("no-end.seconds", seconds=watch.seconds, where=where)
        if isinstance(error, RecursionError):
            return say("recursion", where=where)
        if isinstance(error, SystemExit):
            return say("exit", where=where)
        if isinstance(error, FrozenInstanceError):
            return say("frozen", where=where)
        if isinstance(error, AttributeError):
            for kind, name in ((FlowFrame, "frame"), (SenderState, "state")):
                if isinstance(error.obj, kind):
                    return say(f"no-attribute.{name}", attribute=error.name, where=where)
        text = _cut(" ".join(_text_of(error).split()))
        told = {"error": type(error).__name__, "text": text, "where": where}
        return say("raises.text" if text else "raises.bare", **told)


def guarded(
    on_flow: OnFlow, *, max_lines: int = MAX_LINES, seconds: float = MAX_SECONDS
) -> GuardedRule:
    """A learner's function as a rule for explorer and broker.

    The function gets `state` (`delivery_count`, `link_credit`: the sender's) and `frame`
    (`delivery_count`, `link_credit`: of the receiver's flow). It sets `state.link_credit`, or
    returns the new credit. The same question is asked once; so it should not depend on anything
    else.

    Args:
        on_flow: the function.
        max_lines: lines it may run for one flow.
        seconds: that it may take for all flows together, where there is an alarm (see `watch`).

    Raises:
        LearnerCodeError: it is no function of two arguments.
    """
    if not callable(on_flow):
        raise LearnerCodeError(say("no-function", given=_short(on_flow)))
    try:
        signature = inspect.signature(on_flow)
    except (TypeError, ValueError):  # some that are written in C do not tell
        return GuardedRule(on_flow, max_lines, seconds)
    try:
        signature.bind(None, None)
    except TypeError:
        takes = f"on_flow{signature}"
        raise LearnerCodeError(say("not-two-arguments", function=_cut(takes))) from None
    return GuardedRule(on_flow, max_lines, seconds)


def _foul(state: SenderState, given: object, own_count: int) -> str:
    """What is wrong with an answer, in words; empty if nothing is."""
    for name in ("delivery_count", "link_credit"):
        if not hasattr(state, name):
            return say("foul.deleted", name=name)
    count = state.delivery_count
    if not _whole(count) or count != own_count:
        return say("foul.count", count=_short(count))
    if given is state:
        return say("foul.state")
    if inspect.iscoroutine(given):
        given.close()
        return say("foul.async")
    if inspect.isgenerator(given):
        return say("foul.yield")
    credit = state.link_credit if given is None else given
    if not _whole(credit):
        return say("foul.leaves" if given is None else "foul.returns", credit=_short(credit))
    if not 0 <= int(credit) <= UINT_MAX:
        told = {"credit": _short(credit), "most": UINT_MAX}
        return say("foul.negative" if int(credit) < 0 else "foul.large", **told)
    return ""


def _whole(value: object) -> TypeGuard[numbers.Integral]:
    """Whether it is a whole number, Python's or numpy's; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _code_of(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial or an object that can be called."""
    while isinstance(function, partial):
        function = function.func
    for called in (function, type(function).__call__):
        code = getattr(called, "__code__", None)
        if isinstance(code, CodeType):
            return code
    return None


def _line_of(trail: TracebackType | None, code: CodeType | None) -> str:
    """` in line 3: credit = 1 / 0`, the last line of the learner's own file or cell."""
    if code is None:
        return ""
    own = [
        number
        for frame, number in traceback.walk_tb(trail)
        if frame.f_code.co_filename == code.co_filename
    ]
    return _line(code, own[-1] if own else 0)


def _line(code: CodeType | None, number: int) -> str:
    if code is None or not number:
        return ""
    text = linecache.getline(code.co_filename, number).strip()
    return say("where.code" if text else "where.line", number=number, code=_cut(text))


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a learner's own error may fail to say what it is
        return ""


_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxlong = _REPR.maxstring = 60


def _short(value: object) -> str:
    try:
        return _cut(" ".join(_REPR.repr(value).split()))
    except Exception:  # a learner's object may fail to show itself
        return say("some", kind=type(value).__name__)


def _cut(text: str, longest: int = 120) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."
