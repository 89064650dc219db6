"""Rows about credit between processes: what each may still send to the next, and what it grants."""

from __future__ import annotations

from functools import cache
from typing import Any

from workbench.sim import Clock, Tap

CREDIT_FLOW = "credit-flow"


class Hops:
    """Tells what becomes of one process's credit; see `CreditWatch`.

    A row has the process as its vantage and the next one in its columns: a channel is a session, a
    queue or a message store is a queue.

    Args:
        tap: takes the rows.
        clock: of the run.
        vantage: the process.
        columns: what its rows have in common, such as its connection.
    """

    def __init__(self, tap: Tap, clock: Clock, vantage: str, **columns: Any) -> None:
        self._note = tap.bind(clock, vantage=vantage, **columns).note

    def spent(self, to: str, left: int) -> None:
        """It has sent a message: so much credit is left, perhaps below 0."""
        self._note("note", "credit-spent", ledger={"hop_credit": left}, **_columns(to))

    def came(self, by: str, left: int) -> None:
        """A grant has come: so much credit is there now."""
        self._note("note", "credit-came", ledger={"hop_credit": left}, **_columns(by))

    def granted(self, to: str, credit: int) -> None:
        """It grants more to a process that sends to it."""
        self._note("grant", to, extra={"credit": credit})

    def kept(self, to: str, credit: int) -> None:
        """It is blocked, and keeps a grant to itself."""
        self._note("note", "grant-kept", extra={"credit": credit, "to": to})

    def blocking(self, on: bool) -> None:
        """Somebody downstream must go on first, or need not any more."""
        self._note("block" if on else "unblock", CREDIT_FLOW)


@cache
def _columns(process: str) -> dict[str, Any]:
    """How a row names the next process."""
    kind, _, name = process.partition(":")
    if kind == "channel":
        return {"session": int(name.rpartition("/")[2])}
    return {"queue": name if kind == "queue" else process}
