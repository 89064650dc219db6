"""A learner's `on_flow` as a rule: called with care, stopped after a bound, faults told in words.

It runs in this process: it is the learner's own code in the learner's own kernel. The care is for
mistakes, not for malice. Lines are counted while it runs, so a loop without end is stopped; a
single call into the interpreter's own machinery that never returns (such as ``10**10**10``) cannot
be stopped from here, and needs the kernel's interrupt.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import sys
import traceback
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

from workbench.presets import UINT_MAX

MAX_LINES = 20_000
MAX_REMEMBERED = 200_000
MAX_PRINTED = 2_000  # characters


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


class _TooLongError(BaseException):
    """Too many lines; no `except Exception` of the learner's catches it."""


class GuardedRule:
    """A learner's function as a `CreditRule`; made by `guarded`.

    Attributes:
        on_flow: the learner's function.
        printed: the beginning of what it has printed.
    """

    def __init__(self, on_flow: OnFlow, max_lines: int) -> None:
        self.on_flow = on_flow
        self.printed = ""
        self._max_lines = max_lines
        self._known: dict[tuple[int, int, int, int], int] = {}

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
        told = io.StringIO()
        try:
            with contextlib.redirect_stdout(told), _counted(self._max_lines):
                given = self.on_flow(state, frame)
        except _TooLongError:
            raise LearnerCodeError(
                f"on_flow does not come to an end: it was stopped after {self._max_lines:,} lines."
                f" Look for a loop that never stops. {call}"
            ) from None
        except RecursionError:
            raise LearnerCodeError(
                f"on_flow calls itself again and again until Python gives up. {call}"
            ) from None
        except Exception as error:
            raise LearnerCodeError(f"{self._mishap(error)} {call}") from None
        finally:
            room = MAX_PRINTED - len(self.printed)
            self.printed += told.getvalue()[: max(0, room)]
        if state.delivery_count != own_count:
            raise LearnerCodeError(
                f"on_flow has changed state.delivery_count to {_short(state.delivery_count)}. A"
                " flow changes what may be sent, not what was sent: delivery-count moves with"
                f" each message alone. {call}"
            )
        credit = state.link_credit if given is None else given
        if isinstance(credit, bool) or not isinstance(credit, int):
            where = "leaves in state.link_credit" if given is None else "returns"
            raise LearnerCodeError(
                f"on_flow {where} {_short(credit)}, which is no whole number. {call}"
            )
        if not 0 <= credit <= UINT_MAX:
            raise LearnerCodeError(
                f"on_flow gives link-credit {_short(credit)}; legal: 0 to {UINT_MAX}. What is"
                f" below 0 counts as 0: max(0, ...). {call}"
            )
        return credit

    def _mishap(self, error: Exception) -> str:
        """What was raised and in which line of the learner's."""
        kind, text = type(error).__name__, str(error)
        what = f"on_flow raises {kind}" + (f" ({text})" if text else "")
        if isinstance(error, FrozenInstanceError):
            what = "on_flow tries to change the frame: the flow is the receiver's, and stays"
        elif isinstance(error, AttributeError) and isinstance(error.obj, FlowFrame):
            what = f"on_flow uses frame.{error.name}; a frame has delivery_count and link_credit"
        elif isinstance(error, AttributeError) and isinstance(error.obj, SenderState):
            what = f"on_flow uses state.{error.name}; a state has delivery_count and link_credit"
        line = _line_of(error.__traceback__, getattr(self.on_flow, "__code__", None))
        return f"{what}{line}."


def guarded(on_flow: OnFlow, *, max_lines: int = MAX_LINES) -> GuardedRule:
    """A learner's function as a rule for explorer and broker.

    The function gets `state` (`delivery_count`, `link_credit`: the sender's) and `frame`
    (`delivery_count`, `link_credit`: of the receiver's flow). It sets `state.link_credit`, or
    returns the new credit. The same question is asked once; so it should not depend on anything
    else.

    Args:
        on_flow: the function.
        max_lines: lines it may run for one flow.

    Raises:
        LearnerCodeError: it is no function of two arguments.
    """
    if not callable(on_flow):
        raise LearnerCodeError(
            f"on_flow is {_short(on_flow)}, not a function; write def on_flow(state, frame): ..."
        )
    code = getattr(on_flow, "__code__", None)
    if isinstance(code, CodeType) and not code.co_flags & 0x04:  # no *args
        needed = code.co_argcount - len(getattr(on_flow, "__defaults__", None) or ())
        bound = 1 if hasattr(on_flow, "__self__") else 0
        if not needed - bound <= 2 <= code.co_argcount - bound:
            raise LearnerCodeError(
                f"on_flow takes {code.co_argcount - bound} arguments; it gets two: state and frame"
            )
    return GuardedRule(on_flow, max_lines)


@contextlib.contextmanager
def _counted(max_lines: int) -> Any:
    """Raise when more lines than that have run; whoever traced before goes on afterwards."""
    before = sys.gettrace()
    left = max_lines

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if event in ("line", "call"):
            left -= 1
            if left < 0:
                raise _TooLongError
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def _line_of(trail: TracebackType | None, code: CodeType | None) -> str:
    """` in line 3: credit = 1 / 0`, the last line of the learner's own file or cell."""
    if code is None:
        return ""
    own = [step for step in traceback.extract_tb(trail) if step.filename == code.co_filename]
    if not own or own[-1].lineno is None:
        return ""
    text = linecache.getline(code.co_filename, own[-1].lineno).strip()
    return f" in line {own[-1].lineno}" + (f": {text}" if text else "")


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # a learner's object may fail to show itself
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."
