"""Taps: observers that record what passes, and that the observed code does not know.

A tap is called right after an end has updated its state for a frame and before any frame that this
one causes. Protocol code never looks at a tap and a tap never changes protocol state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from .clock import Clock
    from .lanes import End, Flight


Ledger: TypeAlias = Callable[[], Mapping[str, int | bool]]
"""Gives counters as they are now; of one caller always the same ones."""


class Notes(Protocol):
    """Takes rows about one thing: they have their vantage and place in common."""

    def note(
        self,
        event: str,
        kind: str | None = None,
        *,
        extra: Mapping[str, Any] | None = None,
        **columns: Any,
    ) -> None:
        """Something happened there, now; see `Tap.internal`."""


class Tap(Protocol):
    """What an observer of a run implements."""

    def sent(self, end: End, flight: Flight) -> None:
        """`end` has sent the frame; its counters already include it."""

    def received(self, end: End, flight: Flight) -> None:
        """`end` has applied the frame; what it will do about it comes later."""

    def internal(
        self,
        *,
        t_us: int,
        event: str,
        vantage: str,
        kind: str | None = None,
        connection: str | None = None,
        session: int | None = None,
        link: str | None = None,
        link_sender: str | None = None,
        attach_no: int | None = None,
        queue: str | None = None,
        ledger: Mapping[str, int | bool] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Something happened that is no frame: `enqueue`, `deliver`, `hold`, `action`, ..."""

    def bind(
        self, clock: Clock, *, vantage: str, ledger: Ledger | None = None, **columns: Any
    ) -> Notes:
        """What makes rows that have columns in common.

        Args:
            clock: gives each row its time.
            vantage: who logs them.
            ledger: asked for counters whenever a row is made.
            **columns: what else the rows have in common; see `internal`.
        """


class NoTap:
    """Observes nothing; lets the observed code call without asking."""

    def sent(self, end: End, flight: Flight) -> None:
        """Nothing."""

    def received(self, end: End, flight: Flight) -> None:
        """Nothing."""

    def internal(self, *, t_us: int, event: str, vantage: str, **columns: Any) -> None:
        """Nothing."""

    def bind(self, clock: Clock, **columns: Any) -> Notes:
        """What makes no rows, and asks for no counters."""
        return NO_NOTES


class _NoNotes:
    def note(self, event: str, kind: str | None = None, **columns: Any) -> None:
        """Nothing."""


NO_NOTES: Notes = _NoNotes()
