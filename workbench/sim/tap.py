"""Taps: observers that record what passes, and that the observed code does not know.

A tap is called right after an end has updated its state for a frame and before any frame that this
one causes. Protocol code never looks at a tap and a tap never changes protocol state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .wire import End, Flight


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


class NoTap:
    """Observes nothing; lets the observed code call without asking."""

    def sent(self, end: End, flight: Flight) -> None:
        """Nothing."""

    def received(self, end: End, flight: Flight) -> None:
        """Nothing."""

    def internal(self, *, t_us: int, event: str, vantage: str, **columns: Any) -> None:
        """Nothing."""


class Taps:
    """Several taps as one; a tap that fails is taken out and its error kept in `failures`."""

    def __init__(self, *taps: Tap) -> None:
        self.taps: list[Tap] = list(taps)
        self.failures: list[tuple[Tap, Exception]] = []

    def sent(self, end: End, flight: Flight) -> None:
        """Pass on to every tap."""
        for tap in tuple(self.taps):
            self._guard(tap, "sent", end, flight)

    def received(self, end: End, flight: Flight) -> None:
        """Pass on to every tap."""
        for tap in tuple(self.taps):
            self._guard(tap, "received", end, flight)

    def internal(self, *, t_us: int, event: str, vantage: str, **columns: Any) -> None:
        """Pass on to every tap."""
        for tap in tuple(self.taps):
            self._guard(tap, "internal", t_us=t_us, event=event, vantage=vantage, **columns)

    def _guard(self, tap: Tap, method: str, *args: Any, **columns: Any) -> None:
        try:
            getattr(tap, method)(*args, **columns)
        except Exception as error:  # whatever it is: an observer must not disturb
            self.taps.remove(tap)
            self.failures.append((tap, error))
