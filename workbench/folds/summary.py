"""`summary`: each link of a trace in one line, for a first look; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workbench.trace.schema import Row

from .credit import SENDER, credit_rows
from .stalls import stalls
from .vantage import LinkKey
from .violations import BEYOND_CREDIT, violations

__all__ = ["LinkSummary", "advice", "summarise"]

MS = 1_000


@dataclass(slots=True, kw_only=True)
class LinkSummary:
    """One link of one run.

    Attributes:
        run: the run, and so on for the key.
        messages: deliveries that its sender began.
        at_zero_us: time with link-credit 0, from its first frame to its last.
        lasted_us: time from its first frame to its last.
        stalls: how often a sender with something to send was held.
        longest_us: the longest of those.
        longest_brake: what held it then; None without a stall.
        longest_seq: the row where that began.
        violations: deliveries that were certainly begun without credit [2.6.7].
        advice: what to look at first.
    """

    run: str
    connection: str | None
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    messages: int = 0
    at_zero_us: int = 0
    lasted_us: int = 0
    stalls: int = 0
    longest_us: int = 0
    longest_brake: str | None = None
    longest_seq: int | None = None
    violations: int = 0
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, in order."""
        return asdict(self)


def summarise(rows: Sequence[Row]) -> list[LinkSummary]:
    """One summary for each link, in order of its key.

    Args:
        rows: a whole trace in order.
    """
    times = {(row.run, row.seq): row for row in rows}
    found: dict[tuple[Any, ...], LinkSummary] = {}
    before: dict[tuple[Any, ...], tuple[int, int | None, int | None]] = {}
    for credit in credit_rows(rows):
        if credit.end != SENDER or credit.link is None:
            continue
        key, row = credit[:6], times[credit.run, credit.seq]
        link = found.get(key)
        if link is None:
            link = found[key] = LinkSummary(
                **dict(zip(credit._fields[:6], key, strict=True))  # type: ignore[arg-type]
            )
        then, left, count = before.get(key, (row.t_us, None, None))
        link.lasted_us += row.t_us - then
        if left == 0:
            link.at_zero_us += row.t_us - then
        first = count is not None and credit.delivery_count not in (None, count)
        if row.kind == "transfer" and (first or count is None):
            link.messages += 1
        before[key] = (row.t_us, credit.link_credit, credit.delivery_count)
    for stall in stalls(rows):
        link = found.get(stall[:6])
        if link is None:
            continue
        link.stalls += 1
        if link.longest_brake is None or stall.end_us - stall.start_us > link.longest_us:
            link.longest_us = stall.end_us - stall.start_us
            link.longest_brake, link.longest_seq = stall.brake, stall.seq
    for breach in violations(rows):
        link = found.get(tuple(breach[name] for name in LinkKey._fields))
        if link is not None and breach["what"] == BEYOND_CREDIT and breach["certain"]:
            link.violations += 1
    for link in found.values():
        link.advice = advice(
            longest_us=link.longest_us,
            brake=link.longest_brake,
            at_zero_us=link.at_zero_us,
            lasted_us=link.lasted_us,
            violations=link.violations,
        )
    return sorted(found.values(), key=lambda link: tuple(map(str, link.as_dict().values()))[:6])


_WORDS = {
    "link-credit": "the receiver grants too little or too late",
    "unconfirmed": "the broker waits for its queues to confirm",
    "session-window": "the receiver's session window is closed: it takes frames too slowly",
    "alarm": "a resource alarm at the broker: look at its memory and disk",
}


def advice(
    *, longest_us: int, brake: str | None, at_zero_us: int, lasted_us: int, violations: int
) -> str:
    """One line: what to look at first, with its numbers.

    Args:
        longest_us: the longest stall, microseconds.
        brake: what held the sender then; None without a stall.
        at_zero_us: time with link-credit 0.
        lasted_us: time in all.
        violations: deliveries that were certainly begun without credit.
    """
    if violations:
        return f"the sender began {violations} deliveries without credit, which 2.6.7 forbids"
    if brake is None:
        return "nothing that was ready had to wait"
    share = f", {at_zero_us * 100 // lasted_us}% of its time at credit 0" if lasted_us else ""
    what = _WORDS.get(brake, f"held by {brake}")
    return f"{what} ({longest_us / MS:.1f} ms at most{share})"
