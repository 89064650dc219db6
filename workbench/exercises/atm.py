"""The counters of the ATM paper beside AMQP's, at every row that concerns the queue's link.

Kung and Morris, *Credit-Based Flow Control for ATM Networks* (IEEE Network, 1995): the node that
sends counts the cells that it has sent (`Tx_Cnt`), the node that receives counts those that it has
forwarded (`Fwd_Cnt`) and tells this count; with the buffer that it has set aside (`Buf_Alloc`) the
sender reckons ``Crd_Bal = Buf_Alloc - (Tx_Cnt - Fwd_Cnt)``. The text of the paper was not to be
had: this is read in the figure of RabbitMQ's article and in a lecture of Kung's.

So that the comparison is a check and no play on words, the paper's counters are kept here as the
paper keeps them: by counting cells (transfers) from 0, at each end, and never by looking at
delivery-count. Only `Buf_Alloc` comes from the flow, where it is link-credit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.trace.fold import link_scope
from workbench.trace.given import rows_of
from workbench.trace.schema import RECEIVED, SENT, Row

from . import measure
from .table import Table, Tabled, say, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Both sets of counters after one row of the sender.

    Attributes:
        seq: of the row.
        step: its number on the stage.
        kind: of its frame.
        tx_cnt: cells sent so far.
        fwd_cnt: cells that had arrived when the receiver sent the flow that the sender saw last.
        buf_alloc: link-credit of that flow; None before the first.
        delivery_count: the sender's own.
        link_credit: the sender's own.
    """

    seq: int
    step: str
    kind: str
    tx_cnt: int
    fwd_cnt: int
    buf_alloc: int | None
    delivery_count: int
    link_credit: int

    @property
    def crd_bal(self) -> int:
        """``Buf_Alloc - (Tx_Cnt - Fwd_Cnt)``; may be below zero; 0 before the first flow."""
        if self.buf_alloc is None:
            return 0
        return self.buf_alloc - (self.tx_cnt - self.fwd_cnt)

    @property
    def agrees(self) -> bool:
        """Whether the paper's balance is the sender's link-credit."""
        return self.crd_bal == self.link_credit


class Balances(Tabled):
    """The two accounts of one link, row by row.

    Args:
        rows: of the link's sender.
    """

    def __init__(self, rows: list[Balance]) -> None:
        self.rows = rows

    @property
    def differing(self) -> list[Balance]:
        """The rows in which the two accounts differ."""
        return [row for row in self.rows if not row.agrees]

    @property
    def table(self) -> Table:
        """One line a row: the paper's counters, AMQP's, and whether they agree."""
        return table_of(
            "atm",
            [
                (
                    row.step,
                    row.kind,
                    str(row.tx_cnt),
                    str(row.fwd_cnt),
                    "–" if row.buf_alloc is None else str(row.buf_alloc),
                    str(row.crd_bal),
                    str(row.link_credit),
                    str(row.delivery_count),
                    "=" if row.agrees else "≠",
                )
                for row in self.rows
            ],
        )

    @property
    def summary(self) -> str:
        """Whether the paper's balance is the sender's credit in every row."""
        differing = self.differing
        if not differing:
            return say("atm.agree", n=len(self.rows))
        steps = ", ".join(row.step for row in differing)
        same = len(self.rows) - len(differing)
        return say("atm.differ", same=same, n=len(self.rows), steps=steps)


def _is_sender_s(row: Row) -> bool:
    """Whether the sender of a link has logged a frame of it, with its counters."""
    told = {"link_credit", "delivery_count"} <= (row.ledger or {}).keys()
    return told and row.is_frame and measure.peer(row) == row.link_sender


def atm_counters(trace: Any, link: str | None = None) -> Balances:
    """Keep the paper's counters along a run.

    Args:
        trace: a run or its rows, with both ends in it (a capture sees only one point).
        link: name of the link, any if None; the first one of which its sender has a ledger.
    """
    rows = rows_of(trace)
    own = [row for row in rows if _is_sender_s(row) and link in (None, row.link)]
    about = link_scope(own[0]) if own else None
    begun: dict[str, bool] = {}  # by event: a message whose last frame has not passed yet
    sent = arrived = 0
    counted_at: dict[int | None, int] = {}  # by flow: how many cells had arrived when it left
    fwd_cnt, buf_alloc = 0, None
    balances: list[Balance] = []
    for row in rows:
        if about is None or link_scope(row) != about:
            continue
        fields = row.frame or {}
        from_sender = row.from_peer == row.link_sender
        if row.kind == "transfer":
            begins, begun[row.event] = not begun.get(row.event), bool(fields.get("more"))
            sent += begins and row.event == SENT
            arrived += begins and row.event == RECEIVED
        if row.kind == "flow" and not from_sender and fields.get("link_credit") is not None:
            if row.event == SENT:
                counted_at[row.frame_id] = arrived
            elif row.event == RECEIVED:
                fwd_cnt, buf_alloc = counted_at[row.frame_id], fields["link_credit"]
        ledger = row.ledger or {}
        if _is_sender_s(row):
            balances.append(
                Balance(
                    seq=row.seq,
                    step=measure.step_words(row),
                    kind=f"{row.kind} {row.event}",
                    tx_cnt=sent,
                    fwd_cnt=fwd_cnt,
                    buf_alloc=buf_alloc,
                    delivery_count=ledger["delivery_count"],
                    link_credit=ledger["link_credit"],
                )
            )
    return Balances(balances)
