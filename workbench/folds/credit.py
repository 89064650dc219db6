"""`credit`: both counters of every link at every frame; see `data/README.md`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workbench.trace.schema import AMQP_1_0, LOSSES, OBSERVED, Row, logged_by

from .counters import Counters
from .vantage import End, LinkKey, value

__all__ = ["RECEIVER", "SENDER", "CreditRow", "credit_rows"]

SENDER, RECEIVER = "sender", "receiver"
_Place = tuple[str, str]
"""Run and connection."""


class CreditRow(NamedTuple):
    """Counters of one end of a link after a frame; see `data/README.md` for the key."""

    run: str
    connection: str | None
    session: int | None
    link: str | None
    link_sender: str | None
    attach_no: int | None
    seq: int
    frame_id: int | None
    end: str
    delivery_count: int | None
    link_credit: int | None
    known: bool


def credit_rows(rows: Sequence[Row]) -> list[CreditRow]:
    """Both counters of every link at each of its frames, from the wire fields alone.

    A capture shows the sender's, an end's rows its own.

    Args:
        rows: a whole trace in order; its runs may follow each other.
    """
    counters: dict[_Place, dict[tuple[str, str], Counters]] = {}
    lost: dict[_Place, list[Row]] = {}
    found: list[CreditRow] = []
    for row in rows:
        place = row.run, str(row.connection)
        if row.event in LOSSES:
            lost.setdefault(place, []).append(row)
            for one in counters.get(place, {}).values():
                one.lose(row)
        of_a_link = row.link is not None or value(row, "handle") is not None
        if not (
            row.is_frame and row.protocol == AMQP_1_0 and row.session is not None and of_a_link
        ):
            continue
        key = LinkKey(*place, row.session, row.link, row.link_sender, row.attach_no)
        if row.link is None or row.link_sender is None:
            found.append(CreditRow(*key, row.seq, row.frame_id, SENDER, None, None, False))
            continue
        own = row.event == OBSERVED or logged_by(row) == row.link_sender
        end = SENDER if own else RECEIVER
        here = counters.setdefault(place, {})
        its = here.get((row.link_sender, end))
        if its is None:
            whose = End(run=row.run, connection=place[1], peer=row.link_sender, own=False, rows=())
            its = here[row.link_sender, end] = Counters(whose)
            for gap in lost.get(place, ()):
                its.lose(gap)
        link = its.step(row).link
        assert link is not None
        count, left = link.limit.count, link.credit
        known = count is not None and left is not None
        found.append(CreditRow(*key, row.seq, row.frame_id, end, count, left, known))
    return found
