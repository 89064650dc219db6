"""Episodes for traces of any size: real runs with stalls whose brake and place are known.

Each episode is a run of our own broker in which a brake was applied, or taken off, by an act. What
came of it is not looked up in any answer: a stall ends with the frame that the act causes at the
sender, and begins with the row that the act before left the sender held at. The near-misses are
runs in which a brake is on and nothing waits. `trace.tiling` writes as many copies as are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.trace.schema import RECEIVED, SENT, Row

from .run import Run, run

__all__ = ["Episode", "Planted", "episodes"]

Act = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A stall that an act made.

    Attributes:
        brake: what holds the sender.
        start_seq: the row with which it begins.
        end_seq: the row that ends it.
    """

    brake: str
    start_seq: int
    end_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One run and the stalls in it; none in a near-miss.

    Attributes:
        rows: the run.
        planted: its stalls, in order.
    """

    rows: Sequence[Row]
    planted: tuple[Planted, ...]


def episodes(latency_us: int = 1_000) -> list[Episode]:
    """All of them.

    Args:
        latency_us: of the wire; a stall of credit lasts until a grant has crossed it.
    """
    wire = {"latency_us": latency_us}
    return [
        _credit_withheld({"messages": 40, **wire}, (3, 5, 20)),
        _window_shut(wire, 12),
        # A brake, and nothing that waits for it:
        _near("credit", {"messages": 4, **wire}, ("grant", {"link_credit": 4}), skip=1),
        _near("credit", {"messages": 0, **wire}, ("grant", {"link_credit": 9}), ("drain", {})),
        _near("publishers", wire, ("alarm", {}), ("clear", {})),
    ]


def _played(name: str, parameters: dict[str, Any], acts: Sequence[Act]) -> tuple[Run, list[int]]:
    """A run with acts, each at its end, and the row after which each came."""
    played = run(name, "rmq4.3", parameters)
    places = []
    for act, arguments in acts:
        places.append(len(played.rows) - 1)
        played = played.act(places[-1], act, **arguments)
    return played, places


def _credit_withheld(parameters: dict[str, Any], grants: Sequence[int]) -> Episode:
    """A receiver that grants by hand: its sender waits from its last message to the next grant."""
    acts = [("grant", {"link_credit": grant}) for grant in grants]
    played, places = _played("credit", parameters, acts)
    planted = []
    for place in places:
        start = _last(played.rows[: place + 1], SENT, ("transfer", "attach"))
        end = next(_rows(played.rows[place + 1 :], RECEIVED, ("flow",), "broker"))
        planted.append(Planted(brake="link-credit", start_seq=start.seq, end_seq=end.seq))
    sent = sum(1 for _ in _rows(played.rows, SENT, ("transfer",), "broker"))
    assert sent == sum(grants) < parameters["messages"]
    last = _last(played.rows, SENT, ("transfer",))
    planted.append(Planted(brake="link-credit", start_seq=last.seq, end_seq=len(played.rows) - 1))
    return Episode(rows=played.rows, planted=tuple(planted))


def _window_shut(parameters: dict[str, Any], count: int) -> Episode:
    """A publisher has messages while a resource alarm keeps the session's window at 0."""
    acts: list[Act] = [("alarm", {}), ("publish", {"count": count}), ("clear", {})]
    played, places = _played("publishers", parameters, acts)
    held = played.rows[places[1] + 1 : places[2] + 1]
    released = next(
        row for row in played.rows[places[2] + 1 :]
        if row.event == RECEIVED and row.kind == "flow" and row.vantage.startswith("client:")
    )  # fmt: skip
    links = {row.link for row in held if row.event == "publish" and row.link}
    planted = [
        Planted(
            brake="alarm",
            start_seq=next(row.seq for row in held if row.link == link and row.ledger),
            end_seq=released.seq,
        )
        for link in sorted(links)
    ]
    return Episode(rows=played.rows, planted=tuple(planted))


def _near(name: str, parameters: dict[str, Any], *acts: Act, skip: int = 0) -> Episode:
    """A run without a stall; `skip` of 1: but for the one before the first grant."""
    played, places = _played(name, parameters, acts)
    planted: tuple[Planted, ...] = ()
    if skip:
        start = _last(played.rows[: places[0] + 1], SENT, ("attach",))
        end = next(_rows(played.rows[places[0] + 1 :], RECEIVED, ("flow",), "broker"))
        planted = (Planted(brake="link-credit", start_seq=start.seq, end_seq=end.seq),)
    return Episode(rows=played.rows, planted=planted)


def _rows(rows: Sequence[Row], event: str, kinds: tuple[str, ...], vantage: str) -> Iterator[Row]:
    return (
        row for row in rows
        if row.event == event and row.kind in kinds and row.vantage == vantage
    )  # fmt: skip


def _last(rows: Sequence[Row], event: str, kinds: tuple[str, ...]) -> Row:
    """The last such frame that the broker sent."""
    *_, last = _rows(rows, event, kinds, "broker")
    return last
