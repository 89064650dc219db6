"""Taps: observers that record what passes, and that the observed code does not know.

A tap is called right after an end has updated its state for a frame and before any frame that this
one causes. Protocol code never looks at a tap and a tap never changes protocol state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from .lanes import End, Flight


Note: TypeAlias = Callable[..., None]
"""Makes a row of a series: called with the time in us, and a whole number for each name."""


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

    def series(
        self,
        *,
        event: str,
        vantage: str,
        ledger: tuple[str, ...] = (),
        extra: tuple[str, ...] = (),
        **columns: Any,
    ) -> Note:
        """Prepares rows as `internal` makes them, that differ in time and whole numbers alone.

        For what is told of each message: a row then costs a call with a few numbers.

        Args:
            event: of all of them, as vantage and columns; see `internal`.
            vantage: who logs them.
            ledger: names of counters.
            extra: names of details.
            **columns: what else they have in common.

        Returns:
            What makes a row: called with the time, then the counters, then the details.
        """


class NoTap:
    """Observes nothing; lets the observed code call without asking."""

    def sent(self, end: End, flight: Flight) -> None:
        """Nothing."""

    def received(self, end: End, flight: Flight) -> None:
        """Nothing."""

    def internal(self, *, t_us: int, event: str, vantage: str, **columns: Any) -> None:
        """Nothing."""

    def series(self, *, event: str, vantage: str, **columns: Any) -> Note:
        """Nothing either."""
        return _nothing


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

    def series(
        self,
        *,
        event: str,
        vantage: str,
        ledger: tuple[str, ...] = (),
        extra: tuple[str, ...] = (),
        **columns: Any,
    ) -> Note:
        """Each row passed on to every tap."""
        count = len(ledger)

        def note(t_us: int, *numbers: int) -> None:
            self.internal(
                t_us=t_us,
                event=event,
                vantage=vantage,
                ledger=dict(zip(ledger, numbers, strict=False)),
                extra=dict(zip(extra, numbers[count:], strict=True)),
                **columns,
            )

        return note

    def _guard(self, tap: Tap, method: str, *args: Any, **columns: Any) -> None:
        try:
            getattr(tap, method)(*args, **columns)
        except Exception as error:  # whatever it is: an observer must not disturb
            self.taps.remove(tap)
            self.failures.append((tap, error))


def _nothing(_t_us: int, *_numbers: int) -> None:
    pass
