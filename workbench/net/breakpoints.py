"""Breakpoints on a live wire: which frame, or which counter, closes the gates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from workbench.sim import Direction, WireError

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
    "prefetch_count",
    "unacknowledged",
    "published",
    "confirmed",
)

SIGNS: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
}
_WRITTEN = re.compile(
    r"(?P<name>[a-z][a-z._-]*)(\s*(?P<sign><=|>=|=)\s*(?P<value>\d{1,10}))?(\s+(?P<way>c2b|b2c))?"
)


@dataclass(slots=True, kw_only=True)
class Breakpoint:
    """Where to stop: at a kind of frame, or when a counter of the broker's end reaches a value.

    Attributes:
        name: a kind of frame, `transfer`, `flow`, ...: the frame itself is the first that is held;
            or a counter, `link_credit`, ...: what the frame that brought it there causes is held.
        sign: of a counter: it stops when this becomes true; None for a kind of frame.
        value: with which the counter is compared.
        direction: only frames that way.
        link: only this link's counter, by name; in AMQP 0-9-1 this consumer's, by tag.
    """

    name: str
    sign: str | None = None
    value: int = 0
    direction: Direction | None = None
    link: str | None = None
    _before: dict[Any, int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, words: str, kinds: Collection[str], link: str | None = None) -> Breakpoint:
        """A breakpoint as a person writes it: `transfer`, `flow c2b`, `link_credit <= 3`.

        Args:
            words: what it says.
            kinds: of frames that the wire's protocol has.
            link: only this link's counter, by name.

        Raises:
            WireError: if it is none; the text says what would be one.
        """
        found = _WRITTEN.fullmatch(words.strip())
        if found is None:
            raise WireError(
                f"{words!r} is no breakpoint; legal: a kind of frame (transfer, flow c2b), or a"
                " counter with <=, >= or = and a number (link_credit <= 3)"
            )
        direction = None if found["way"] is None else Direction.of(found["way"])
        if found["sign"] is None:
            if found["name"] not in kinds:
                raise WireError(f"no frame is a {found['name']!r}; legal: {', '.join(kinds)}")
            return cls(name=found["name"], direction=direction)
        name = found["name"].replace("-", "_")
        if name not in COUNTERS:
            raise WireError(f"no counter {name!r}; legal: {', '.join(COUNTERS)}")
        value = int(found["value"])
        return cls(name=name, sign=found["sign"], value=value, direction=direction, link=link)

    def __str__(self) -> str:
        """The breakpoint in words."""
        way = "" if self.direction is None else f" {self.direction.words}"
        if self.sign is None:
            return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}{way}"
        link = "" if self.link is None else f" of link {self.link}"
        return f"{self.name}{link} {self.sign} {self.value}{way}"

    def stops_at_kind(self, kind: str, direction: Direction) -> bool:
        """Whether a frame that is about to travel is the one."""
        return self.sign is None and kind == self.name and self.direction in (None, direction)

    def stops_at_counter(self, scope: Any, direction: Direction) -> bool:
        """Whether the broker's counters, right after a frame, have reached the value."""
        if self.sign is None:
            return False
        link, books = _books(scope)
        if self.link not in (None, link):
            return False
        holds = SIGNS[self.sign]
        for owner, counters in books:
            now = (counters or {}).get(self.name)
            if now is None:
                continue
            before = self._before.get((scope.session, owner))
            self._before[scope.session, owner] = now
            if before is None or holds(before, self.value) or not holds(now, self.value):
                return False
            return self.direction in (None, direction)
        return False


def _books(scope: Any) -> tuple[str | None, tuple[tuple[Any, Any], ...]]:
    """The link, consumer or subscription of a frame, and the counters of each owner."""
    if hasattr(scope, "link_ledger"):
        owner = (scope.link, scope.attach_no)
        return scope.link, ((owner, scope.link_ledger), (None, scope.session_ledger))
    name = scope.consumer if hasattr(scope, "consumer") else scope.destination
    return name, ((name, scope.ledger),)
