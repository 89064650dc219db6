"""Calls a function that may not come back, and stops it after so many lines or seconds.

Lines are counted by the interpreter's trace hook: the same bound on every machine and in every
thread. (Steps within a line count a little, for ``while True: pass`` on one line is the same line
for ever.) Seconds are a second net, for what runs no lines (``time.sleep``, ``10**10**10``) and for
code that catches everything; they need an alarm signal, which only the main thread of a Unix
process has. A single call into C that looks at no signal (``sum(range(10**12))``) ends by itself or
with the process: neither this nor the kernel's interrupt can stop it.

Meanwhile what it prints goes nowhere but for its beginning, which is kept. Trace hook, alarm and
streams are put back as they were.
"""

from __future__ import annotations

import contextlib
import dis
import gc
import io
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

MAX_PRINTED = 2_000  # characters
PATIENCE = 100  # lines of one call in which to look for a place where nobody catches the stop
STEP = 1 / 64  # of a line, for each instruction
AGAIN_S = 0.02  # between two attempts at code that catches everything


class TooLongError(BaseException):
    """It was stopped; no `except Exception` on the way catches this."""


class _Beginning(io.TextIOBase):
    """Keeps the beginning of what is written."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        if len(self.text) < MAX_PRINTED:
            part = text[: MAX_PRINTED - len(self.text)]
            # What no page can show (half of a surrogate pair) is written out.
            self.text += part.encode("utf-8", "backslashreplace").decode()
        return len(text)


_HERE = _Beginning.write.__code__.co_filename


class Watch:
    """Calls functions within bounds.

    Attributes:
        max_lines: that one call may run.
        seconds: that all calls together may take.
        left_s: what is left of them.
        by: which bound ended the last call, `lines` or `seconds`; else empty.
        returned_at: line from which the last function came back.
    """

    def __init__(self, *, max_lines: int, seconds: float) -> None:
        self.max_lines = max_lines
        self.seconds = seconds
        self.left_s = seconds
        self.by = ""
        self.returned_at = 0
        self._told = _Beginning()

    @property
    def printed(self) -> str:
        """The beginning of what was printed in all calls."""
        return self._told.text

    def call(self, function: Callable[..., Any], *arguments: object) -> Any:
        """What the function gives.

        Raises:
            TooLongError: it was stopped; `by` says why.
        """
        self.by = ""
        if self.left_s <= 0:
            self._stop("seconds")
        traced, streams = sys.gettrace(), (sys.stdout, sys.stderr)
        alarm = _Alarm(self)
        try:
            alarm.set()
            sys.stdout = sys.stderr = self._told
            sys.settrace(self._counter(alarm))
            given = function(*arguments)
        finally:
            sys.settrace(traced)
            alarm.unset()
            sys.stdout, sys.stderr = streams
        if self.by:  # it caught the stop, and came back
            self._stop(self.by)
        return given

    def _stop(self, by: str) -> None:
        self.by = by
        raise TooLongError

    def _counter(self, alarm: _Alarm) -> Callable[[FrameType, str, object], Any]:
        """A trace function that stops when too many lines have run.

        The interpreter drops a trace function that raises, so there is one try, and it is made
        where nobody catches it. Where no such place comes, the alarm rings, again and again, until
        a frame further out shows one; without an alarm the try is made all the same.
        """
        left: float = self.max_lines
        last: FrameType | None = None
        patience = PATIENCE

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal left, last, patience
            if frame.f_code.co_filename == _HERE:
                return None
            if event == "call":
                frame.f_trace_opcodes = True
            if event == "return":
                self.returned_at = frame.f_lineno
            elif event != "exception":
                left -= STEP if event == "opcode" else 1
                if left < 0 or self.by:
                    if not alarm.silently(_caught, frame):
                        self._stop(self.by or "lines")
                    last, patience = frame, patience - 1 if frame is last else PATIENCE
                    if patience < 0 or left < -self.max_lines:
                        # At full speed, so that the alarm meets it.
                        frame.f_trace_lines = frame.f_trace_opcodes = False
                        if not alarm.hasten():
                            self._stop("lines")
            return trace

        return trace


class _Alarm:
    """The alarm signal, as long as a call lasts; nothing where there is none."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._before: Any = None
        self._timer = (0.0, 0.0)
        self._is_set = False
        self._silent = False

    def set(self) -> None:
        """From now on, a stop when the time is over, again and again."""
        if not hasattr(signal, "setitimer"):
            return
        try:
            self._before = signal.signal(signal.SIGALRM, self._ring)
        except ValueError:  # not the main thread
            return
        self._is_set = True
        self._timer = signal.setitimer(signal.ITIMER_REAL, self._watch.left_s, AGAIN_S)

    def hasten(self) -> bool:
        """Ring soon, and again and again; says whether there is an alarm at all."""
        if self._is_set and not self._watch.by:
            self._watch.by = "lines"
            self._watch.left_s, _ = signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
        return self._is_set

    def silently(self, ask: Callable[[FrameType], bool], frame: FrameType) -> bool:
        """Ask something while it does not ring."""
        self._silent = True
        answer = ask(frame)
        self._silent = False
        return answer

    def unset(self) -> None:
        """As it was before; what has been used is charged."""
        if not self._is_set:
            return
        watch, had = self._watch, self._watch.left_s
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        if not watch.by:
            watch.left_s = left
        signal.signal(signal.SIGALRM, self._before or signal.SIG_DFL)
        delay, interval = self._timer
        if delay:  # somebody else's: a little late is better than never
            used = had - watch.left_s
            signal.setitimer(signal.ITIMER_REAL, max(delay - used, 0.001), interval)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        """Stop the function; but not the code here that is just putting things back."""
        watch = self._watch
        if self._silent or frame is None or frame.f_code.co_filename == _HERE:
            return
        if _collects(frame):
            return  # what is raised there is lost; it rings again
        if not watch.by:
            watch.left_s = 0.0
        watch._stop(watch.by or "seconds")


def _collects(inner: FrameType) -> bool:
    """Whether this is a callback of the garbage collector, or something that one calls."""
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    frame: FrameType | None = inner
    while frame is not None and frame.f_code.co_filename != _HERE:
        if frame.f_code in callbacks:
            return True
        frame = frame.f_back
    return False


def _caught(inner: FrameType) -> bool:
    """Whether something in the function, or in what it calls, would catch an exception here."""
    frame: FrameType | None = inner
    table = getattr(dis, "_parse_exception_table", None)
    with contextlib.suppress(Exception):  # no public name: if it changes, nothing is lost but this
        while table and frame is not None and frame.f_code.co_filename != _HERE:
            if any(each.start <= frame.f_lasti < each.end for each in table(frame.f_code)):
                return True
            frame = frame.f_back
    return False
