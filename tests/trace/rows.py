"""Builders of hand-made rows: a test shows only what it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from workbench.trace import Explanation, Fold, Row, State, explain
from workbench.trace.schema import AMQP_1_0, COLUMNS

CLIENT_END = "client:receiver"
BROKER_END = "broker"
VANTAGE = {"client": CLIENT_END, "broker": BROKER_END}
OTHER = {"client": "broker", "broker": "client"}


class Hand:
    """Makes the rows of one link between a client and a broker, one call a row.

    The link's messages go from the broker to the client unless `sender` says otherwise.
    """

    def __init__(self, *, sender: str = "broker", link: str | None = "l", t_us: int = 100) -> None:
        self.rows: list[Row] = []
        self.sender = sender
        self.link = link
        self.t_us = t_us
        self.frames: dict[int, Row] = {}

    @property
    def receiver(self) -> str:
        return OTHER[self.sender]

    def sent(self, peer: str, kind: str, ledger: dict[str, Any] | None = None, **frame: Any) -> int:
        """The peer sends a frame; gives the number of the frame."""
        number = len(self.frames)
        self.frames[number] = self._frame("sent", VANTAGE[peer], peer, kind, ledger, frame, number)
        return number

    def received(self, number: int, ledger: dict[str, Any] | None = None) -> Row:
        """The frame arrives at the other end."""
        was = self.frames[number]
        assert was.from_peer is not None
        assert was.kind is not None
        vantage = VANTAGE[OTHER[was.from_peer]]
        return self._frame(
            "received", vantage, was.from_peer, was.kind, ledger, dict(was.frame or {}), number
        )

    def observed(
        self, peer: str, kind: str, ledger: dict[str, Any] | None = None, **frame: Any
    ) -> Row:
        """A capture sees the peer's frame."""
        number = len(self.frames)
        self.frames[number] = self._frame("observed", "wire", peer, kind, ledger, frame, number)
        return self.frames[number]

    def internal(self, event: str, vantage: str = "queue:q", **columns: Any) -> Row:
        return self._add(event=event, vantage=vantage, protocol="internal", **columns)

    def _frame(
        self,
        event: str,
        vantage: str,
        peer: str,
        kind: str,
        ledger: dict[str, Any] | None,
        frame: dict[str, Any],
        number: int,
    ) -> Row:
        linked = kind in ("attach", "flow", "transfer", "disposition", "detach")
        if kind == "flow" and "handle" not in frame:
            linked = False
        return self._add(
            event=event,
            vantage=vantage,
            from_peer=peer,
            kind=kind,
            frame=frame,
            ledger=ledger,
            ledger_source="own" if ledger else None,
            frame_id=number,
            connection="c1",
            session=None if kind in ("open", "close", "protocol-header", "heartbeat") else 1,
            link=self.link if linked else None,
            link_sender=self.sender if linked else None,
            attach_no=1 if linked else None,
        )

    def _add(self, **columns: Any) -> Row:
        columns = {"protocol": AMQP_1_0, **columns}
        row = Row(run="hand", seq=len(self.rows), t_us=self.t_us * len(self.rows), **columns)
        self.rows.append(row)
        return row


def race() -> list[Row]:
    """The race of the specification's rule: delivery-count 20, credit 3; a flow meets a transfer.

    The receiver raises its credit to 6 while the sender sends one message:
    20 + 6 - 21 = 5 at the sender, and 5 at the receiver once the message is there.
    """
    hand = Hand()
    start = {"delivery_count": 20, "link_credit": 3, "available": 9, "drain": False}
    hand.sent("client", "attach", {**start, "available": 0}, handle=0, name="l", role="receiver")
    hand.received(0, start)
    grant = hand.sent(
        "client",
        "flow",
        {"delivery_count": 20, "link_credit": 6},
        next_incoming_id=7,
        incoming_window=100,
        next_outgoing_id=0,
        outgoing_window=100,
        handle=0,
        delivery_count=20,
        link_credit=6,
    )
    message = hand.sent(
        "broker",
        "transfer",
        {
            "delivery_count": 21,
            "link_credit": 2,
            "available": 8,
            "next_outgoing_id": 8,
            "remote_incoming_window": 99,
        },
        handle=0,
        delivery_id=5,
    )
    hand.received(
        grant,
        {
            "delivery_count": 21,
            "link_credit": 5,
            "available": 8,
            "next_outgoing_id": 8,
            "remote_incoming_window": 99,
        },
    )
    hand.received(message, {"delivery_count": 21, "link_credit": 5, "available": 8})
    return hand.rows


def last(hand: Hand) -> Explanation:
    """The explanation of the last row."""
    return list(explain(hand.rows))[-1]


def link(count: int, credit: int, **more: Any) -> dict[str, Any]:
    """A ledger of a link."""
    return {"delivery_count": count, "link_credit": credit, **more}


def granted(before: dict[str, Any], after: dict[str, Any], **frame: Any) -> Explanation:
    """The explanation of a receiver's flow at the sender, whose ledger it changes so."""
    hand = Hand()
    hand.internal(
        "note",
        "broker",
        connection="c1",
        session=1,
        link="l",
        link_sender="broker",
        attach_no=1,
        ledger=before,
    )
    hand.received(hand.sent("client", "flow", None, handle=0, **frame), after)
    return last(hand)


class Pair:
    """A sender and a receiver that keep to the rules, with a wire each way, driven step by step."""

    def __init__(self, initial: int) -> None:
        self.hand = Hand()
        self.snd = link(initial, 0)
        self.rcv = link(initial, 0)
        self.wires: dict[str, list[tuple[int, dict[str, Any]]]] = {"client": [], "broker": []}

    def put(self, peer: str, kind: str, ledger: dict[str, Any], **frame: Any) -> None:
        number = self.hand.sent(peer, kind, dict(ledger), handle=0, **frame)
        self.wires[peer].append((number, {"kind": kind, **frame}))

    def grant(self, credit: int, drain: bool) -> None:
        self.rcv["link_credit"] = credit
        self.put("client", "flow", self.rcv, **self.rcv, drain=drain)

    def send(self) -> None:
        if self.snd["link_credit"] > 0:
            self.snd = link((self.snd["delivery_count"] + 1) % 2**32, self.snd["link_credit"] - 1)
            self.put("broker", "transfer", self.snd, delivery_id=len(self.hand.frames))

    def drained(self) -> None:
        counted = (self.snd["delivery_count"] + self.snd["link_credit"]) % 2**32
        self.snd = link(counted, 0)
        self.put("broker", "flow", self.snd, **self.snd, drain=True)

    def deliver(self, peer: str) -> None:
        if not self.wires[peer]:
            return
        number, frame = self.wires[peer].pop(0)
        if peer == "client":
            used = (self.snd["delivery_count"] - frame["delivery_count"]) % 2**32
            self.snd["link_credit"] = max(0, frame["link_credit"] - used)
            self.hand.received(number, dict(self.snd))
            return
        if frame["kind"] == "transfer":
            moved = 1
        else:
            moved = (frame["delivery_count"] - self.rcv["delivery_count"]) % 2**32
        counted = (self.rcv["delivery_count"] + moved) % 2**32
        self.rcv = link(counted, max(0, self.rcv["link_credit"] - moved))
        self.hand.received(number, dict(self.rcv))


VALUES = {
    "string": st.text(max_size=8),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "bool": st.booleans(),
    "binary": st.binary(max_size=8),
    "list<string>": st.lists(st.text(max_size=4), max_size=3).map(tuple),
}


def struct(fields):
    values = {field.name: VALUES[field.type] for field in fields}
    return st.none() | st.fixed_dictionaries({}, optional=values)


def of_column(column):
    if column.fields:
        return struct(column.fields)
    values = VALUES[column.type]
    return st.none() | values if column.nullable and column.type != "list<string>" else values


# Made once: a strategy is checked when it is first drawn from.
OF_COLUMN = {column.name: of_column(column) for column in COLUMNS}


@st.composite
def any_row(draw, **strategies):
    """Any row that the schema allows; `strategies` says more about some columns."""
    return Row(**{name: draw(values) for name, values in (OF_COLUMN | strategies).items()})


def state_after(rows: Iterable[Row], upto: int | None = None, start: State | None = None) -> State:
    """What everybody knows after every row with `seq` <= `upto`, or after all of them."""
    folding = Fold(start)
    for row in rows:
        if upto is None or row.seq <= upto:
            folding.apply(row)
    return folding.state()


def same(one: State, other: State) -> bool:
    """Equal, and the frames in flight in the same order."""
    return one == other and list(one.in_flight) == list(other.in_flight)
