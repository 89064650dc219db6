"""Breakpoints on a live wire: which frame, or which counter, closes the gates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.amqp.composite import BY_DESCRIPTOR
from workbench.amqp.performatives import Performative
from workbench.sim import Direction, WireError

KINDS = tuple(sorted(cls.NAME for cls in BY_DESCRIPTOR.values() if issubclass(cls, Performative)))
COUNTERS = (
    "delivery_count",
    "link_credit",
    "available",
    "unsettled",
    "next_incoming_id",
    "incoming_window",
    "next_outgoing_id",
    "outgoing_window",
    "remote_incoming_window",
    "remote_outgoing_window",
)

SIGNS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}
_WRITTEN = re.compile(
    r"(?P<name>[a-z][a-z_-]*)(\s*(?P<sign><=|>=|=)\s*(?P<value>\d{1,10}))?(\s+(?P<way>c2b|b2c))?"
)


@dataclass(slots=True, kw_only=True)
class Breakpoint:
    """Where to stop: at a kind of frame, or when a counter of the broker's end reaches a value.

    Attributes:
        kind: of frame: `transfer`, `flow`, ...; the frame itself is the first that is held.
        counter: of the broker's end: `link_credit`, `incoming_window`, ...; what the frame that
            brought it there causes is held.
        value: which the counter reaches or passes.
        sign: None for a counter that reaches or passes the value; `<=`, `>=` or `=` for one of
            which this becomes true.
        direction: only frames that way.
        link: only this link's, by name; for a counter.
    """

    kind: str | None = None
    counter: str | None = None
    value: int | None = None
    sign: str | None = None
    direction: Direction | None = None
    link: str | None = None
    _before: dict[Any, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if (self.kind is None) == (self.counter is None):
            raise WireError("a breakpoint needs either a kind of frame or a counter")
        if self.kind is not None and self.kind not in KINDS:
            raise WireError(f"no frame is a {self.kind!r}; legal: {', '.join(KINDS)}")
        if self.counter is not None and self.counter not in COUNTERS:
            raise WireError(f"no counter {self.counter!r}; legal: {', '.join(COUNTERS)}")
        if self.counter is not None and self.value is None:
            raise WireError(f"which value of {self.counter}? legal: a whole number")

    def __str__(self) -> str:
        """The breakpoint in words."""
        way = "" if self.direction is None else f" {self.direction.words}"
        if self.kind is not None:
            return f"a {self.kind}{way}"
        link = "" if self.link is None else f" of link {self.link}"
        return f"{self.counter}{link} {self.sign or 'reaches'} {self.value}{way}"

    def stops_at_kind(self, kind: str, direction: Direction) -> bool:
        """Whether a frame that is about to travel is the one."""
        return kind == self.kind and self.direction in (None, direction)

    def stops_at_counter(self, scope: Any, direction: Direction) -> bool:
        """Whether the broker's counters, right after a frame, have reached the value."""
        if self.counter is None or self.link not in (None, scope.link):
            return False
        groups: tuple[Mapping[str, int | bool] | None, ...]
        groups = (scope.link_ledger, scope.session_ledger)
        for number, group in enumerate(groups):
            now = (group or {}).get(self.counter)
            if now is None:
                continue
            key = (scope.session, (scope.link, scope.attach_no) if number == 0 else None)
            before = self._before.get(key)
            self._before[key] = now
            return self._reached(before, now) and self.direction in (None, direction)
        return False

    def _reached(self, before: int | None, now: int) -> bool:
        value = self.value
        assert value is not None
        if self.sign is not None:
            holds = SIGNS[self.sign]
            return before is not None and holds(now, value) and not holds(before, value)
        if now == value:
            return before != now
        return before is not None and (before < value < now or now < value < before)


def parse_breakpoint(words: str, *, link: str | None = None) -> Breakpoint:
    """A breakpoint as a person writes it: `transfer`, `flow c2b`, `link_credit <= 3`.

    Raises:
        WireError: if it is none; the text says what would be one.
    """
    found = _WRITTEN.fullmatch(words.strip())
    if found is None:
        raise WireError(
            f"{words!r} is no breakpoint; legal: a kind of frame (transfer, flow c2b), or a"
            " counter with <=, >= or = and a number (link_credit <= 3)"
        )
    name = found["name"].replace("-", "_")
    direction = None if found["way"] is None else Direction.of(found["way"])
    if found["sign"] is None:
        return Breakpoint(kind=found["name"], direction=direction)
    return Breakpoint(
        counter=name, value=int(found["value"]), sign=found["sign"], direction=direction, link=link
    )
