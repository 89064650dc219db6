"""A learner's `on_flow` as a rule: called with care, stopped after a bound, faults told in words.

It runs in this process: it is the learner's own code in the learner's own kernel. The care is for
mistakes, not for malice; `watch` says what can be stopped and what cannot.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import numbers
import reprlib
import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from types import CodeType, TracebackType
from typing import Any, TypeGuard

from workbench.presets import UINT_MAX

from .watch import MAX_PRINTED, TooLongError, Watch

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


class LearnerCodeError(Exception):
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
        call = f"It was called with state: {state}, and frame: {frame}."
        try:
            given = self._watch.call(self.on_flow, state, frame)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            fault = f"{self._mishap(error)}{_line_of(error.__traceback__, _code_of(self.on_flow))}."
            hint = ""
            if isinstance(error, TooLongError):
                hint = " Look for a loop that never stops."
                if self._watch.by == "seconds":
                    hint = " Look for something that waits, or works out a huge number."
            raise LearnerCodeError(f"{fault}{hint} {call}") from None
        fault = _foul(state, given, own_count)
        if fault:
            line = _line(_code_of(self.on_flow), self._watch.returned_at)
            back = f" It came back{line}." if line else ""
            raise LearnerCodeError(f"on_flow {fault}{back} {call}")
        return int(state.link_credit if given is None else given)

    def _mishap(self, error: BaseException) -> str:
        """Why there is no answer."""
        watch = self._watch
        if isinstance(error, TooLongError):
            if watch.by == "lines":
                after = f"{watch.max_lines:,} lines"
            else:
                after = f"{watch.seconds:g} s, the time for all its calls together,"
            return f"on_flow does not come to an end: it was stopped after {after}"
        if isinstance(error, RecursionError):
            return "on_flow calls itself again and again until Python gives up"
        if isinstance(error, SystemExit):
            return "on_flow ends the program instead of giving an answer (SystemExit)"
        if isinstance(error, FrozenInstanceError):
            return "on_flow tries to change the frame: the flow is the receiver's, and stays"
        if isinstance(error, AttributeError):
            for kind, name in ((FlowFrame, "frame"), (SenderState, "state")):
                if isinstance(error.obj, kind):
                    has = f"a {name} has delivery_count and link_credit"
                    return f"on_flow uses {name}.{error.name}; {has}"
        text = _cut(" ".join(_text_of(error).split()))
        return f"on_flow raises {type(error).__name__}" + (f" ({text})" if text else "")


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
        raise LearnerCodeError(
            f"on_flow is {_short(on_flow)}, not a function; write def on_flow(state, frame): ..."
        )
    try:
        signature = inspect.signature(on_flow)
    except (TypeError, ValueError):  # some that are written in C do not tell
        return GuardedRule(on_flow, max_lines, seconds)
    try:
        signature.bind(None, None)
    except TypeError:
        takes = f"on_flow{signature}"
        raise LearnerCodeError(
            f"{_cut(takes)} cannot be called with two arguments; it gets two: state and frame"
        ) from None
    return GuardedRule(on_flow, max_lines, seconds)


def _foul(state: SenderState, given: object, own_count: int) -> str:
    """What is wrong with an answer, as what `on_flow` does; empty if nothing is."""
    for name in ("delivery_count", "link_credit"):
        if not hasattr(state, name):
            return f"has deleted state.{name}; give it a new value, or let it be."
    count = state.delivery_count
    if not _whole(count) or count != own_count:
        return (
            f"has changed state.delivery_count to {_short(count)}. A flow changes what may"
            " be sent, not what was sent: delivery-count moves with each message alone."
        )
    if given is state:
        return (
            "returns the state itself; set state.link_credit and return nothing, or return"
            " the new link-credit."
        )
    if inspect.iscoroutine(given):
        given.close()
        return "is an async def, whose answer never comes; write def on_flow(state, frame)."
    if inspect.isgenerator(given):
        return "has a yield in it and so gives no answer; use return."
    credit = state.link_credit if given is None else given
    if not _whole(credit):
        where = "leaves in state.link_credit" if given is None else "returns"
        return f"{where} {_short(credit)}, which is no whole number."
    if not 0 <= int(credit) <= UINT_MAX:
        return (
            f"gives link-credit {_short(credit)}; legal: 0 to {UINT_MAX}. What is below 0"
            " counts as 0: max(0, ...)."
        )
    return ""


def _whole(value: object) -> TypeGuard[numbers.Integral]:
    """Whether it is a whole number, Python's or numpy's; True and False are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _code_of(function: Any) -> CodeType | None:
    """The code of a function, a method, a partial or an object that can be called."""
    while isinstance(function, functools.partial):
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
    return f" in line {number}" + (f": {_cut(text)}" if text else "")


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
        return f"a {type(value).__name__}"


def _cut(text: str, longest: int = 120) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."
